//! sysbench's random file test (`--test=fileio --file-test-mode=rndrw`, version 0.4) on files opened with O_DIRECT on ext4.
//!
//! All threads take requests from one counter. A thread reads while too few of the requests before it were reads, and else writes; offsets
//! are uniform over all files. sysbench (0.4 and 1.0) counts what is complete, so that threads whose requests are under way together all
//! decide the same: they read and write in bunches. After every `fsync_freq` requests each file is synchronised once, by whatever threads
//! are free: the file system then commits the inodes that writes changed. Data bypassed the page cache; with flushes the commit flushes the
//! device's cache, and a file without an inode to commit costs a flush of its own, as in ext4.

use super::files::{File, lay_out};
use super::journal::Journal;
use super::{Parameters, Wrong};
use crate::{Group, Io, Step, Workload};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Operation, Request};
use rand::RngExt;

/// Inodes of 256 bytes in a block of 4 KiB.
const INODES_PER_BLOCK: usize = 16;

struct SysbenchFile {
    groups: Vec<Group>,
    files: Vec<File>,
    block: u64,
    /// Blocks of all files.
    blocks: u64,
    ratio: f64,
    max_requests: u64,
    fsync_freq: u64,
    fsync_end: bool,
    flushes: bool,
    random: Generator,
    performed: u64,
    /// Reads and writes that the ratio goes by.
    counted: [u64; 2],
    counts: Counts,
    done: u64,
    /// Whether a write was begun ever, and since all files were synchronised.
    has_written: bool,
    is_dirty: bool,
    /// Next file to synchronise, during the run and at its end.
    fsynced: usize,
    fsynced_at_end: usize,
    /// By file: inode changed since the last commit began; changed in the commit under way.
    changed: Vec<bool>,
    committing: Vec<bool>,
    threads: Vec<Thread>,
    finished: u32,
    journal: Journal,
    woken: Vec<u32>,
}

/// The requests that decide what the next one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Those that are complete, as sysbench counts.
    Completed,
    /// Those that were begun: reads and writes alternate, however many threads there are.
    Issued,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Ready,
    InFlight,
    /// Waits for the journal.
    Syncing,
    Done,
}

pub(super) fn build(of: &Parameters<'_>, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, Wrong> {
    let threads = of.count("threads", 1, 4096)? as u32;
    let count = of.count("files", 1, 1 << 20)?;
    let block = of.size("block_size")?;
    let total = of.size("total_size")?;
    let size = total / count / block * block;
    if size == 0 || block > 1 << 30 {
        return Err(("block_size", format!("at most the size of a file, {} bytes, and 1g", total / count)));
    }
    let journal_bytes = of.journal_size()?;
    let flushes = of.switch("flushes")?;
    let counts = of.get("ratio_counts", |text| match text {
        "completed" => Ok(Counts::Completed),
        "issued" => Ok(Counts::Issued),
        _ => Err("completed or issued".to_owned()),
    })?;
    let laid = lay_out(
        device_bytes,
        &vec![size; count as usize],
        of.size("extent")?,
        of.number("spread", 0.0, 1.0)?,
        journal_bytes,
    )
    .map_err(|allowed| ("total_size", allowed))?;
    let group = |name: &str, processes, background| Group { name: name.to_owned(), processes, background };
    Ok(Box::new(SysbenchFile {
        groups: vec![group("threads", threads, false), group("jbd2", 1, true)],
        files: laid.files,
        block,
        blocks: size / block * count,
        ratio: of.number("rw_ratio", 0.0, 1e6)?,
        max_requests: of.count("max_requests", 1, u64::MAX >> 16)?,
        fsync_freq: of.count("fsync_freq", 0, u64::MAX >> 16)?,
        fsync_end: of.switch("fsync_end")?,
        flushes,
        random: generator(seed, "sysbench file"),
        performed: 0,
        counted: [0; 2],
        counts,
        done: 0,
        has_written: false,
        is_dirty: false,
        fsynced: 0,
        fsynced_at_end: 0,
        changed: vec![false; count as usize],
        committing: vec![false; count as usize],
        threads: vec![Thread::Ready; threads as usize],
        finished: 0,
        journal: Journal::new(laid.journal_start, journal_bytes, flushes),
        woken: Vec::new(),
    }))
}

impl SysbenchFile {
    /// The next file to synchronise, if it is time for that.
    fn file_to_sync(&mut self) -> Option<usize> {
        let all = self.files.len();
        if self.performed == self.max_requests {
            let wants = self.fsync_end && self.has_written && self.fsynced_at_end < all;
            return wants.then(|| {
                self.fsynced_at_end += 1;
                self.fsynced_at_end - 1
            });
        }
        if self.fsync_freq == 0 || !self.is_dirty || !self.performed.is_multiple_of(self.fsync_freq) {
            return None;
        }
        let file = self.fsynced;
        self.fsynced += 1;
        if self.fsynced == all {
            (self.fsynced, self.is_dirty) = (0, false);
        }
        Some(file)
    }

    /// Whether a thread has to wait until the inode of a file is committed.
    fn waits_for_commit(&mut self, process: u32, file: usize) -> bool {
        if self.changed[file] {
            let in_blocks = self.changed.chunks(INODES_PER_BLOCK);
            let metadata = in_blocks.filter(|inodes| inodes.contains(&true)).count() as u64;
            self.journal.request(process, metadata);
            self.woken.push(self.threads.len() as u32);
            true
        } else if self.committing[file] {
            self.journal.join(process);
            true
        } else {
            false
        }
    }

    fn io(&mut self) -> Io {
        let [reads, writes] = self.counted.map(|counted| counted as f64 + 1.0);
        let direction = if reads / writes < self.ratio { Direction::Read } else { Direction::Write };
        if self.counts == Counts::Issued {
            self.counted[direction.index()] += 1;
        }
        self.performed += 1;
        let place = self.random.random_range(0..self.blocks);
        let per_file = self.files[0].size / self.block;
        let file = (place / per_file) as usize;
        if direction == Direction::Write {
            (self.has_written, self.is_dirty, self.changed[file]) = (true, true, true);
        }
        let start = self.files[file].at(place % per_file * self.block);
        Io::transfer(Lsn(start / 512), (self.block / 512) as u32, direction, true)
    }
}

impl Workload for SysbenchFile {
    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn next(&mut self, process: u32, _now: Ns) -> Step {
        if process as usize == self.threads.len() {
            if self.finished == process && self.journal.is_idle() {
                return Step::Done;
            }
            let mut begins = false;
            let step = self.journal.next(&mut begins);
            if begins {
                std::mem::swap(&mut self.changed, &mut self.committing);
                self.changed.fill(false);
            }
            return step;
        }
        if matches!(self.threads[process as usize], Thread::InFlight | Thread::Syncing) {
            return Step::Wait;
        }
        while let Some(file) = self.file_to_sync() {
            if self.waits_for_commit(process, file) {
                self.threads[process as usize] = Thread::Syncing;
                return Step::Wait;
            }
            if self.flushes {
                self.threads[process as usize] = Thread::InFlight;
                return Step::Submit(Io::flush(Operation::FlushWithMetadata));
            }
        }
        if self.performed == self.max_requests {
            if self.threads[process as usize] != Thread::Done {
                self.threads[process as usize] = Thread::Done;
                self.finished += 1;
                self.woken.push(self.threads.len() as u32);
            }
            return Step::Done;
        }
        self.threads[process as usize] = Thread::InFlight;
        Step::Submit(self.io())
    }

    fn completed(&mut self, process: u32, request: &Request, _now: Ns) {
        if process as usize == self.threads.len() {
            let before = self.woken.len();
            if self.journal.completed(&mut self.woken) {
                self.committing.fill(false);
                for woken in &self.woken[before..] {
                    self.threads[*woken as usize] = Thread::Ready;
                }
            }
        } else {
            self.threads[process as usize] = Thread::Ready;
            if request.is_transfer() {
                self.done += 1;
                if self.counts == Counts::Completed {
                    self.counted[request.direction.index()] += 1;
                }
            }
        }
    }

    fn take_woken(&mut self) -> Option<u32> {
        self.woken.pop()
    }

    fn total_requests(&self) -> Option<u64> {
        Some(self.max_requests)
    }

    fn operations(&self) -> Option<(&'static str, u64)> {
        Some(("requests", self.done))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Model;
    use crate::{Step, Workload};
    use planewise_model::Direction::{self, Read, Write};
    use planewise_model::{Ns, Request};

    /// Without fsyncs, and with threads that are awake at once. What counts is the default's where nothing is said.
    fn model(threads: u32, counts: Option<&str>) -> Box<dyn Workload> {
        let mut model = Model::embedded("sysbench-file").unwrap();
        let threads = threads.to_string();
        let always = [
            ("threads", threads.as_str()),
            ("fsync_freq", "0"),
            ("max_requests", "100000"),
            ("wakeup_time", "0"),
        ];
        for (key, value) in always.into_iter().chain(counts.map(|counts| ("ratio_counts", counts))) {
            model.set(key, value).unwrap();
        }
        model.build(60 << 30, 1).unwrap()
    }

    fn begin(workload: &mut dyn Workload, thread: u32) -> Request {
        match workload.next(thread, Ns::ZERO) {
            Step::Submit(io) => io.request(Ns::ZERO, thread),
            other => panic!("thread {thread}: {other:?}"),
        }
    }

    /// Directions in rounds: all threads begin a request, then all of them are complete.
    fn rounds(counts: Option<&str>, threads: u32, rounds: usize) -> Vec<Vec<Direction>> {
        let mut workload = model(threads, counts);
        let mut found = Vec::new();
        for _ in 0..rounds {
            let begun: Vec<Request> = (0..threads).map(|thread| begin(&mut *workload, thread)).collect();
            for (thread, request) in (0..threads).zip(&begun) {
                workload.completed(thread, request, Ns::ZERO);
            }
            found.push(begun.iter().map(|request| request.direction).collect());
        }
        found
    }

    #[test]
    fn threads_whose_requests_are_under_way_together_all_read_or_all_write() {
        let by_default = rounds(None, 16, 1000);
        let rounds = rounds(Some("completed"), 16, 1000);
        assert_eq!(by_default, rounds);
        assert_eq!(rounds[0], [Read; 16], "nothing is complete, so that reads are too few for each of them");
        assert_eq!(rounds[1], [Write; 16], "16 reads and no write are complete");
        assert!(rounds.iter().all(|round| round.iter().all(|direction| *direction == round[0])));
        let reads = rounds.iter().flatten().filter(|direction| **direction == Read).count();
        assert!(reads.abs_diff(9600) <= 16, "{reads} of 16000 requests, of which 0.6 are to be reads");
    }

    #[test]
    fn requests_that_count_when_they_begin_alternate_whatever_the_threads() {
        let flat = |threads: u32, rounds_of: usize| rounds(Some("issued"), threads, rounds_of).concat();
        let (alone, together) = (flat(1, 1600), flat(16, 100));
        assert_eq!(alone, together, "how many threads there are changes nothing");
        assert_eq!(together[..10], [Read, Write, Read, Write, Read, Read, Write, Read, Write, Read]);
        assert!(
            together.windows(2).all(|two| two != [Write; 2])
                && together.windows(3).all(|three| three != [Read; 3])
        );
        // A thread alone has no request under way when it decides.
        assert_eq!(alone, rounds(Some("completed"), 1, 1600).concat());
    }

    #[test]
    fn what_is_under_way_counts_only_from_its_end_on() {
        let mut workload = model(3, None);
        let first = begin(&mut *workload, 0);
        assert_eq!([first.direction, begin(&mut *workload, 1).direction], [Read; 2]);
        workload.completed(0, &first, Ns::ZERO);
        // One read is complete: another would be two for a write, above 1.5.
        assert_eq!([begin(&mut *workload, 2).direction, begin(&mut *workload, 0).direction], [Write; 2]);
    }
}
