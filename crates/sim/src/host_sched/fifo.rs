//! A first-in-first-out list of waiting requests, and what schedulers that keep reads and writes apart need of a list.

use super::Growth;
use super::list::{Links, List};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;
use planewise_model::location::PageRange;

/// One direction's waiting requests under a scheduler that separates reads and writes.
pub(super) trait Lane: Send {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest);

    /// Whether requests wait.
    fn is_waiting(&self) -> bool;

    /// Takes the next request that the device accepts.
    fn take(&mut self, gate: &Gate<'_>) -> Option<Slot>;

    fn completed(&mut self, _slot: Slot, _request: &QueuedRequest) {}

    /// Whether a waiting request may grow.
    fn may_grow(&self, _growth: &Growth<'_>) -> bool {
        true
    }

    /// The waiting request in `slot` grew to these pages.
    fn grew(&mut self, _slot: Slot, _after: PageRange) {}

    /// The waiting request in `slot` became part of another.
    fn forget(&mut self, slot: Slot);

    /// When the oldest waiting batch was created, and which it is; [`None`] for lanes without batches.
    fn oldest_batch(&self) -> Option<(u64, Ns)> {
        None
    }

    /// Whether issued requests of the lane's current batch are still out and it must end before another batch starts.
    fn is_draining(&self) -> bool {
        false
    }

    /// Batches opened, and requests that joined one.
    fn batch_counts(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Plain arrival order: a head that the device does not take holds back all behind it (TCAD paper, figure 6).
pub(super) struct Fifo {
    waiting: List,
    links: Links,
}

impl Fifo {
    pub(super) fn with_capacity(slots: u32) -> Fifo {
        Fifo { waiting: List::EMPTY, links: Links::new(slots) }
    }
}

impl Lane for Fifo {
    fn insert(&mut self, _now: Ns, slot: Slot, _request: &QueuedRequest) {
        self.waiting.push(&mut self.links, slot);
    }

    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn take(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let head = self.waiting.first()?;
        gate.accepts(head).then(|| {
            self.waiting.remove(&mut self.links, head);
            head
        })
    }

    fn forget(&mut self, slot: Slot) {
        self.waiting.remove(&mut self.links, slot);
    }
}
