//! Which reads of the host are sequential, and which pages to read ahead of them.
//!
//! A read that begins where a stream ended continues it. So does one that begins up to a window before or behind that: commands that
//! are in flight together overtake one another, and processes that share a file do not take turns (ZFS follows such streams up to
//! `zfetch_max_reorder`; Linux reads on wherever a read meets the pages that it marked). What continues no stream takes the place of
//! the one idle longest.
//!
//! From the `trigger`-th read of a stream on it is read ahead, in aligned runs, while the reads are a sequence: less than half of it is
//! left out. The `trigger`-th read asks for what one run reaches, each further one for a run more, up to a window behind the end: a burst of a
//! whole window would hold up those who read beside it. Of a run, what the stream has passed before the run is begun is not read any more.

use planewise_model::profile;

/// Consecutive pages to be read ahead of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Place of the stream, and the number of the read that began it.
    stream: u32,
    began: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Sector after the last one of those read; [`u64::MAX`] for none.
    end: u64,
    reads: u32,
    /// Sectors read, and sectors left out between them, in the stretch before `end`: the last ones count, older ones half, and so on.
    read: u64,
    left_out: u64,
    /// Pages before this one have been asked for.
    ahead_to: u64,
    /// Numbers of the reads that began it and continued it last; 0 for none.
    began: u64,
    used: u64,
}

const NO_STREAM: Stream =
    Stream { end: u64::MAX, reads: 0, read: 0, left_out: 0, ahead_to: 0, began: 0, used: 0 };

impl Stream {
    /// Takes a read in that lies close to the end. What was read before says nothing new, and one that reads some of it again and some more is
    /// no step of a sequence.
    fn take(&mut self, start: u64, end: u64, remembered: u64) {
        let begin = self.end - self.read - self.left_out;
        let (new, is_step) = if start >= self.end {
            self.left_out += start - self.end;
            (end - start, true)
        } else if end <= begin {
            self.left_out += begin - end;
            (end - start, true)
        } else {
            let inside = end.min(self.end) - start.max(begin);
            let filled = self.left_out.min(inside);
            self.left_out -= filled;
            (filled + (end - start - inside), filled > 0)
        };
        self.reads = self.reads.saturating_add(u32::from(is_step));
        self.read += new;
        self.end = self.end.max(end);
        if self.read + self.left_out > remembered {
            (self.read, self.left_out) = (self.read / 2, self.left_out / 2);
        }
    }

    /// Whether reads, the last one of `sectors`, leave out less than they read: every second page is no sequence.
    fn is_sequence(&self, sectors: u64) -> bool {
        self.left_out == 0 || self.left_out + sectors < self.read
    }
}

#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    reads: u64,
    trigger: u32,
    /// Pages.
    window: u64,
    run: u64,
    sectors_per_page: u64,
    user_pages: u64,
}

impl Streams {
    pub(crate) fn new(settings: &profile::ReadAhead, user_pages: u32, sectors_per_page: u32) -> Streams {
        Streams {
            streams: vec![NO_STREAM; settings.streams as usize],
            reads: 0,
            trigger: settings.trigger,
            window: u64::from(settings.window_pages),
            run: u64::from(settings.run_pages),
            sectors_per_page: u64::from(sectors_per_page),
            user_pages: u64::from(user_pages),
        }
    }

    /// Pages that are read ahead of a stream at most.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// A read of the host: calls `ask` with the runs to read ahead of it, up to `window` pages. Returns the pages that were asked for
    /// ahead of the stream that it ends.
    pub(crate) fn note(
        &mut self,
        start: u64,
        end: u64,
        window: u64,
        mut ask: impl FnMut(Run),
    ) -> std::ops::Range<u32> {
        self.reads += 1;
        let (index, ended) = self.stream_of(start);
        let stream = &mut self.streams[index];
        if stream.used == 0 {
            (stream.end, stream.began) = (start, self.reads);
        }
        stream.take(start, end, 2 * self.window * self.sectors_per_page);
        stream.used = self.reads;
        let past = stream.end.div_ceil(self.sectors_per_page);
        stream.ahead_to = stream.ahead_to.max(past);
        if stream.reads < self.trigger || !stream.is_sequence(end - start) {
            return ended;
        }
        let window = window.min(self.run * u64::from(stream.reads - self.trigger + 1));
        loop {
            let first = stream.ahead_to;
            let until = (first / self.run + 1) * self.run;
            if until > past + window || first >= self.user_pages {
                return ended;
            }
            let until = until.min(self.user_pages);
            let count = (until - first) as u32;
            ask(Run { first: first as u32, count, stream: index as u32, began: stream.began });
            stream.ahead_to = until;
        }
    }

    /// The stream that a read continues: the one that ends closest to its start; else the one idle longest, emptied, with what was asked
    /// for ahead of it.
    fn stream_of(&mut self, start: u64) -> (usize, std::ops::Range<u32>) {
        let reach = self.window * self.sectors_per_page;
        let distances = self.streams.iter().enumerate().filter(|(_, stream)| stream.used > 0);
        let closest = distances.map(|(index, stream)| (stream.end.abs_diff(start), index)).min();
        if let Some((distance, index)) = closest
            && distance <= reach
        {
            return (index, 0..0);
        }
        let idle = (0..self.streams.len()).min_by_key(|&index| self.streams[index].used).unwrap_or(0);
        let stream = std::mem::replace(&mut self.streams[idle], NO_STREAM);
        let passed = (stream.end / self.sectors_per_page).min(stream.ahead_to);
        (idle, passed as u32..stream.ahead_to as u32)
    }

    /// The pages of a run that are still ahead of its stream: none when that has ended.
    pub(crate) fn still_ahead(&self, run: &Run) -> std::ops::Range<u32> {
        let stream = &self.streams[run.stream as usize];
        let end = run.first + run.count;
        if stream.began != run.began {
            return end..end;
        }
        let passed = (stream.end / self.sectors_per_page).min(u64::from(end)) as u32;
        run.first.max(passed)..end
    }

    /// Ends all streams.
    pub(crate) fn forget(&mut self) {
        self.streams.fill(NO_STREAM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(count: u32) -> Streams {
        let settings = profile::ReadAhead {
            streams: count,
            trigger: 2,
            window_pages: 8,
            run_pages: 4,
            buffer_pages: 8,
            dropped_by_writes: false,
        };
        Streams::new(&settings, 100, 8)
    }

    fn note(streams: &mut Streams, page: u64) -> Vec<(u32, u32)> {
        let mut runs = Vec::new();
        let window = streams.window();
        streams.note(page * 8, page * 8 + 8, window, |run| runs.push((run.first, run.count)));
        runs
    }

    #[test]
    fn the_second_read_in_sequence_begins_a_run_and_later_ones_fill_the_window_and_keep_it_full() {
        let mut streams = streams(1);
        assert_eq!(note(&mut streams, 1), []);
        assert_eq!(note(&mut streams, 2), [(3, 1)]);
        assert_eq!(note(&mut streams, 3), [(4, 4), (8, 4)]);
        assert_eq!(note(&mut streams, 4), []);
        assert_eq!([note(&mut streams, 5), note(&mut streams, 6), note(&mut streams, 7)].concat(), [(12, 4)]);
    }

    #[test]
    fn a_sequence_in_disorder_is_one_stream_and_every_second_page_is_none() {
        let asked = |pages: &[u64]| {
            let mut streams = streams(1);
            let runs = pages.iter().flat_map(|&page| note(&mut streams, page));
            runs.last().map(|(first, count)| first + count)
        };
        // Wherever the last one is, the window behind the farthest is asked for, and nothing twice.
        assert_eq!(asked(&[0, 1, 2, 3, 4, 5]), Some(12));
        assert_eq!(asked(&[1, 0, 3, 2, 5, 4]), Some(12));
        assert_eq!(asked(&[2, 1, 0, 5, 4, 3]), Some(12));
        assert_eq!(asked(&[0, 2, 4, 6, 8, 10]), None);
        assert_eq!(asked(&[0, 8, 1, 9, 2, 10]), None, "two readers of different places");
        assert_eq!(asked(&[5, 5, 5, 5, 5, 5]), None, "one page again and again");
        assert_eq!(asked(&[5, 7, 1, 3, 9]), None, "what lies before the stretch fills no gap in it");
        let mut streams = streams(1);
        let mut asked = false;
        for sectors in [1, 8, 16, 40] {
            streams.note(80, 80 + sectors, 8, |_| asked = true);
        }
        assert!(!asked, "the same again, and more");
    }

    #[test]
    fn of_a_run_what_the_stream_has_passed_is_not_read_and_nothing_when_it_has_ended() {
        let mut streams = streams(1);
        let mut runs = Vec::new();
        for page in 0..3 {
            streams.note(page * 8, page * 8 + 8, 8, |run| runs.push(run));
        }
        assert_eq!(streams.still_ahead(&runs[1]), 4..8);
        streams.note(5 * 8, 5 * 8 + 12, 8, |_| ());
        assert_eq!(streams.still_ahead(&runs[1]), 6..8, "of page 6 a part is still to come");
        assert_eq!(streams.note(60 * 8, 61 * 8, 8, |_| ()), 6..12, "what was asked for in vain");
        assert!(streams.still_ahead(&runs[1]).is_empty());
    }

    #[test]
    fn as_many_streams_live_side_by_side_as_are_told_apart() {
        for (tracked, survives) in [(1, false), (2, true)] {
            let mut streams = streams(tracked);
            note(&mut streams, 1);
            note(&mut streams, 50);
            assert_eq!(!note(&mut streams, 2).is_empty(), survives, "{tracked}");
        }
    }

    #[test]
    fn the_window_ends_with_the_device() {
        let mut streams = streams(1);
        note(&mut streams, 96);
        assert_eq!(note(&mut streams, 97), [(98, 2)]);
        assert_eq!(note(&mut streams, 98), []);
        assert_eq!(note(&mut streams, 99), []);
    }
}
