//! A first-in-first-out list of waiting requests, and what schedulers that keep reads and writes apart need of a list.

use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;
use std::collections::VecDeque;

/// One direction's waiting requests under a scheduler that separates reads and writes.
pub(super) trait Lane: Send {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest);

    /// Whether requests wait.
    fn is_waiting(&self) -> bool;

    /// Takes the next request that the device accepts.
    fn take(&mut self, gate: &Gate<'_>) -> Option<Slot>;

    fn completed(&mut self, _slot: Slot, _request: &QueuedRequest) {}

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
#[derive(Default)]
pub(super) struct Fifo(VecDeque<Slot>);

impl Fifo {
    pub(super) fn with_capacity(capacity: u32) -> Fifo {
        Fifo(VecDeque::with_capacity(capacity as usize))
    }
}

impl Lane for Fifo {
    fn insert(&mut self, _now: Ns, slot: Slot, _request: &QueuedRequest) {
        self.0.push_back(slot);
    }

    fn is_waiting(&self) -> bool {
        !self.0.is_empty()
    }

    fn take(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let head = *self.0.front()?;
        gate.accepts(head).then(|| {
            self.0.pop_front();
            head
        })
    }
}
