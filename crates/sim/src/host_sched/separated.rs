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
    /// The write batch that goes before reads now. It takes no newcomers: they would keep reads waiting for ever.
    promoted: Option<u64>,
    /// The last read batch of the turn that reads have before the next promotion.
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
        if let (Some(owed), Some((oldest, _))) = (promotion.owed, self.reads.oldest_batch())
            && oldest <= owed
        {
            return (false, None);
        }
        promotion.owed = None;
        let due = Ns(created.0.saturating_add(promotion.threshold.0));
        if due > now {
            return (false, Some(due));
        }
        promotion.promoted = Some(batch);
        promotion.count += 1;
        self.writes.seal(batch);
        (true, None)
    }

    /// The other lane's batch may have to be complete where this one's would start.
    fn take_read(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let Separated { reads, writes, .. } = self;
        reads.take(|slot| gate.accepts(slot) && !writes.blocks(gate.queue().get(slot).pages))
    }

    fn take_write(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let Separated { reads, writes, promotion } = self;
        let slot = writes.take(|slot| gate.accepts(slot) && !reads.blocks(gate.queue().get(slot).pages))?;
        if let Some(promotion) = promotion
            && promotion.promoted.is_some()
            && promotion.promoted != writes.oldest_batch().map(|(batch, _)| batch)
        {
            // The promoted batch is through: reads have their turn before the next.
            promotion.promoted = None;
            promotion.owed = reads.is_waiting().then(|| reads.turn());
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
        if !self.reads.is_waiting() {
            return self.take_write(gate).map_or(Decision::Wait, Decision::Issue);
        }
        let mut wake = Decision::Wait;
        if self.writes.is_waiting() {
            match self.promoted(now) {
                (true, _) => return self.take_write(gate).map_or(Decision::Wait, Decision::Issue),
                (false, Some(due)) => wake = Decision::WakeAt(due),
                (false, None) => {}
            }
        }
        self.take_read(gate).map_or(wake, Decision::Issue)
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
