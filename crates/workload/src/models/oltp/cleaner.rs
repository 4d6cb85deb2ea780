//! The page cleaner: writes dirty pages in batches, each first to the doublewrite buffer and then to its place.

use super::pool::{Page, Pool};
use super::{LARGEST_BYTES, Oltp, io};
use crate::{Io, Step};
use planewise_model::{Direction, Operation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Writes the batch to the doublewrite buffer: bytes issued so far.
    Doublewrite(u64),
    /// Waits for the journal after that, or for its own flush.
    SyncingDoublewrite,
    /// Writes the pages to their places: pages issued so far.
    Pages(usize),
    /// Waits for the journal after that.
    SyncingPages,
    /// The batch is on the device.
    Written,
    Done,
}

pub(super) struct Cleaner {
    stage: Stage,
    in_flight: u32,
    batch: Vec<Page>,
    most: usize,
    dirty_most: u32,
    log_bytes: u64,
    /// Which half of the doublewrite buffer is next.
    half: u64,
    /// A thread found no clean page to replace.
    pub(super) wants_places: bool,
}

impl Cleaner {
    /// With batches of up to `most` pages, when more than `dirty_most` pages are dirty or a log of `log_bytes` fills up.
    pub(super) fn new(most: usize, dirty_most: u32, log_bytes: u64) -> Cleaner {
        Cleaner {
            stage: Stage::Idle,
            in_flight: 0,
            batch: Vec::with_capacity(most),
            most,
            dirty_most,
            log_bytes,
            half: 0,
            wants_places: false,
        }
    }

    /// The part of the log that pages in memory need, bytes.
    fn age(pool: &mut Pool, written: u64) -> u64 {
        pool.oldest_change().map_or(0, |oldest| written - oldest)
    }

    /// Whether changes have to wait: seven eighths of the log are needed (as InnoDB's synchronous checkpoint).
    pub(super) fn log_is_full(&self, pool: &mut Pool, written: u64) -> bool {
        Self::age(pool, written) > self.log_bytes / 8 * 7
    }

    /// Whether there is something to write: no places, too many dirty pages, or three quarters of the log needed.
    pub(super) fn is_wanted(&self, pool: &mut Pool, written: u64) -> bool {
        self.wants_places
            || pool.dirty() > self.dirty_most
            || Self::age(pool, written) > self.log_bytes / 4 * 3
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) fn completed(&mut self) {
        self.in_flight -= 1;
        // All writes were complete before the flush.
        self.synced();
    }

    pub(super) fn synced(&mut self) {
        self.stage = match self.stage {
            Stage::SyncingDoublewrite => Stage::Pages(0),
            Stage::SyncingPages => Stage::Written,
            other => other,
        };
    }
}

impl Oltp {
    pub(super) fn next_of_cleaner(&mut self) -> Step {
        let process = self.cleaner_process();
        loop {
            match self.cleaner.stage {
                Stage::Idle if self.is_over() => {
                    self.cleaner.stage = Stage::Done;
                    if self.has_journal {
                        self.woken.push(self.journal_process());
                    }
                    return Step::Done;
                }
                Stage::Idle => {
                    if !self.cleaner.is_wanted(&mut self.pool, self.redo.written) {
                        return Step::Wait;
                    }
                    let is_full = self.cleaner.log_is_full(&mut self.pool, self.redo.written);
                    let by_use = self.cleaner.wants_places && !is_full;
                    self.cleaner.wants_places = false;
                    let mut batch = std::mem::take(&mut self.cleaner.batch);
                    self.pool.take_dirty(self.cleaner.most, by_use, &mut batch);
                    self.cleaner.batch = batch;
                    if self.cleaner.batch.is_empty() {
                        return Step::Wait;
                    }
                    self.cleaner.stage = Stage::Doublewrite(0);
                }
                Stage::Doublewrite(issued) => {
                    let bytes = self.cleaner.batch.len() as u64 * self.page_bytes;
                    if issued < bytes {
                        let piece = (bytes - issued).min(LARGEST_BYTES);
                        let start = self.files.doublewrite.size / 2 * self.cleaner.half + issued;
                        self.cleaner.stage = Stage::Doublewrite(issued + piece);
                        return self.write(self.files.doublewrite.at(start), piece);
                    }
                    if self.cleaner.in_flight > 0 {
                        return Step::Wait;
                    }
                    self.cleaner.half = 1 - self.cleaner.half;
                    self.cleaner.stage = Stage::SyncingDoublewrite;
                    match self.sync_of_cleaner(process) {
                        Some(step) => return step,
                        None => self.cleaner.synced(),
                    }
                }
                Stage::Pages(issued) => {
                    if let Some(page) = self.cleaner.batch.get(issued) {
                        let start = self.files.table.at(u64::from(*page) * self.page_bytes);
                        self.cleaner.stage = Stage::Pages(issued + 1);
                        return self.write(start, self.page_bytes);
                    }
                    if self.cleaner.in_flight > 0 {
                        return Step::Wait;
                    }
                    self.cleaner.stage = Stage::SyncingPages;
                    match self.sync_of_cleaner(process) {
                        Some(step) => return step,
                        None => self.cleaner.synced(),
                    }
                }
                Stage::Written => {
                    self.pool.flushed(&self.cleaner.batch);
                    self.cleaner.batch.clear();
                    self.cleaner.stage = Stage::Idle;
                    self.wake_waiting();
                }
                Stage::SyncingDoublewrite | Stage::SyncingPages => return Step::Wait,
                Stage::Done => return Step::Done,
            }
        }
    }

    /// Makes sure that what was written is kept: by the journal, or else by a flush; none where nothing is to be done.
    fn sync_of_cleaner(&mut self, process: u32) -> Option<Step> {
        if self.has_journal {
            self.sync(process);
            return Some(Step::Wait);
        }
        self.flushes.then(|| {
            self.cleaner.in_flight += 1;
            Step::Submit(Io::flush(Operation::Flush))
        })
    }

    /// A write of the cleaner: nobody waits for a single one.
    fn write(&mut self, start: u64, bytes: u64) -> Step {
        self.cleaner.in_flight += 1;
        io(start, bytes, Direction::Write, false)
    }
}
