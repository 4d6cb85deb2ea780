//! Reads before writes: what RWS and the PIQ family share. Each direction waits in a lane of its own, a plain list or batches.

use super::fifo::Lane;
use super::{Counters, Decision, Growth, HostScheduler, WRITE_BATCHES, WRITE_BATCHES_PROMOTED};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::{Direction, Ns};

/// Two lanes; reads go first (TCAD paper, section IV-B.3).
pub(super) struct Separated<R, W> {
    reads: R,
    writes: W,
    /// PIQ+: a write batch that has waited longer than this is issued before waiting reads.
    promotion: Option<Promotion>,
}

/// PIQ+'s batch-level scheduling: one late write batch at a time, then reads again.
struct Promotion {
    threshold: Ns,
    /// The write batch that goes before reads now.
    promoted: Option<u64>,
    /// The read batch that must be issued before the next promotion.
    owed: Option<u64>,
    count: u64,
}

impl<R: Lane, W: Lane> Separated<R, W> {
    pub(super) fn new(reads: R, writes: W) -> Separated<R, W> {
        Separated { reads, writes, promotion: None }
    }

    pub(super) fn with_promotion(reads: R, writes: W, threshold: Ns) -> Separated<R, W> {
        let promotion = Promotion { threshold, promoted: None, owed: None, count: 0 };
        Separated { reads, writes, promotion: Some(promotion) }
    }

    /// Whether the head write batch goes before the waiting reads, and when to ask again if not.
    fn promoted(&mut self, now: Ns) -> (bool, Option<Ns>) {
        let Some(promotion) = &mut self.promotion else { return (false, None) };
        let Some((batch, created)) = self.writes.oldest_batch() else { return (false, None) };
        if promotion.promoted == Some(batch) {
            return (true, None);
        }
        if promotion.owed.is_some() && promotion.owed == self.reads.oldest_batch().map(|(batch, _)| batch) {
            return (false, None);
        }
        promotion.owed = None;
        let due = Ns(created.0.saturating_add(promotion.threshold.0));
        if due > now {
            return (false, Some(due));
        }
        promotion.promoted = Some(batch);
        promotion.count += 1;
        (true, None)
    }

    fn take_read(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let slot = self.reads.take(gate)?;
        // The batch that was owed its turn is issued as soon as nothing of it waits. It may stay open and take newcomers
        // for ever: they are owed nothing.
        let waiting = self.reads.oldest_batch().map(|(batch, _)| batch);
        if let Some(promotion) = &mut self.promotion
            && promotion.owed != waiting
        {
            promotion.owed = None;
        }
        Some(slot)
    }

    fn take_write(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let slot = self.writes.take(gate)?;
        let oldest = self.writes.oldest_batch().map(|(batch, _)| batch);
        if let Some(promotion) = &mut self.promotion
            && promotion.promoted.is_some()
            && promotion.promoted != oldest
        {
            // The promoted batch is through: reads have their turn before the next.
            promotion.promoted = None;
            promotion.owed = self.reads.oldest_batch().map(|(batch, _)| batch);
        }
        Some(slot)
    }
}

impl<R: Lane, W: Lane> HostScheduler for Separated<R, W> {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        match request.request.direction {
            Direction::Read => self.reads.insert(now, slot, request),
            Direction::Write => self.writes.insert(now, slot, request),
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        match growth.into.request.direction {
            Direction::Read => self.reads.may_grow(growth),
            Direction::Write => self.writes.may_grow(growth),
        }
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        match after.request.direction {
            Direction::Read => self.reads.grew(slot, after.pages),
            Direction::Write => self.writes.grew(slot, after.pages),
        }
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        match request.request.direction {
            Direction::Read => self.reads.forget(slot),
            Direction::Write => self.writes.forget(slot),
        }
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        let reads_wait = self.reads.is_waiting();
        // Under barrier = "complete" a batch that is out ends before one of the other direction starts.
        let (reads_out, writes_out) = (self.reads.is_draining(), self.writes.is_draining());
        let mut wake = Decision::Wait;
        if reads_wait && self.writes.is_waiting() {
            match self.promoted(now) {
                (true, _) if reads_out => return Decision::Wait,
                (true, _) => return self.take_write(gate).map_or(Decision::Wait, Decision::Issue),
                (false, Some(due)) => wake = Decision::WakeAt(due),
                (false, None) => {}
            }
        }
        if reads_wait && !writes_out {
            return self.take_read(gate).map_or(wake, Decision::Issue);
        }
        if reads_out {
            return wake;
        }
        self.take_write(gate).map_or(wake, Decision::Issue)
    }

    fn completed(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        match request.request.direction {
            Direction::Read => self.reads.completed(slot, request),
            Direction::Write => self.writes.completed(slot, request),
        }
    }

    fn counters(&self) -> Counters {
        let (read_batches, reads_joined) = self.reads.batch_counts();
        let (write_batches, writes_joined) = self.writes.batch_counts();
        let promoted = self.promotion.as_ref().map_or(0, |promotion| promotion.count);
        Counters::from([
            ("read_batches", read_batches),
            (WRITE_BATCHES, write_batches),
            (WRITE_BATCHES_PROMOTED, promoted),
            ("joined", reads_joined + writes_joined),
        ])
    }
}
