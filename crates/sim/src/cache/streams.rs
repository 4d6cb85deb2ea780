//! Which reads of the host are sequential, and which pages to read ahead of them.
//!
//! A read that begins where another ended continues its stream; one that continues none takes the place of the stream idle longest.
//! From the `trigger`-th read of a stream on, up to `window` pages behind its end are read ahead, in aligned runs.

use planewise_model::profile;

/// Consecutive pages to be read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Sector after the last one read; [`u64::MAX`] for none.
    end: u64,
    reads: u32,
    /// Pages before this one have been asked for.
    ahead_to: u64,
    /// Number of the read that continued it last.
    used: u64,
}

const NO_STREAM: Stream = Stream { end: u64::MAX, reads: 0, ahead_to: 0, used: 0 };

#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    reads: u64,
    trigger: u32,
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

    /// A read of the host: calls `ask` with the runs to read ahead.
    pub(crate) fn note(&mut self, start: u64, end: u64, mut ask: impl FnMut(Run)) {
        self.reads += 1;
        let continued = self.streams.iter().position(|stream| stream.end == start);
        let index = continued.unwrap_or_else(|| {
            (0..self.streams.len()).min_by_key(|&index| self.streams[index].used).unwrap_or(0)
        });
        let past = end.div_ceil(self.sectors_per_page);
        let stream = &mut self.streams[index];
        if continued.is_none() {
            *stream = NO_STREAM;
        }
        (stream.end, stream.reads, stream.used) = (end, stream.reads + 1, self.reads);
        stream.ahead_to = stream.ahead_to.max(past);
        if stream.reads < self.trigger {
            return;
        }
        loop {
            let first = stream.ahead_to;
            let until = (first / self.run + 1) * self.run;
            if until > past + self.window || first >= self.user_pages {
                return;
            }
            let until = until.min(self.user_pages);
            ask(Run { first: first as u32, count: (until - first) as u32 });
            stream.ahead_to = until;
        }
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
        streams.note(page * 8, page * 8 + 8, |run| runs.push((run.first, run.count)));
        runs
    }

    #[test]
    fn the_second_read_in_sequence_fills_the_window_and_later_ones_keep_it_full() {
        let mut streams = streams(1);
        assert_eq!(note(&mut streams, 1), []);
        assert_eq!(note(&mut streams, 2), [(3, 1), (4, 4)]);
        assert_eq!(note(&mut streams, 3), [(8, 4)]);
        assert_eq!(note(&mut streams, 4), []);
        assert_eq!([note(&mut streams, 5), note(&mut streams, 6), note(&mut streams, 7)].concat(), [(12, 4)]);
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
