//! A first-in-first-out list of waiting requests, and what schedulers that keep reads and writes apart need of a list.

use super::Growth;
use super::list::{Links, List};
use crate::host::{QueuedRequest, Slot};
use planewise_model::Ns;
use planewise_model::location::PageRange;

/// One direction's waiting requests under a scheduler that separates reads and writes.
pub(super) trait Lane: Send {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest);

    /// Whether requests wait.
    fn is_waiting(&self) -> bool;

    /// Takes the next request that may go.
    fn take(&mut self, may_go: impl Fn(Slot) -> bool) -> Option<Slot>;

    fn completed(&mut self, _slot: Slot, _request: &QueuedRequest) {}

    /// Whether a waiting request may grow.
    fn may_grow(&self, _growth: &Growth<'_>) -> bool {
        true
    }

    /// The waiting request in `slot` grew to these pages.
    fn grew(&mut self, _slot: Slot, _after: PageRange) {}

    /// The waiting request in `slot` became part of another.
    fn forget(&mut self, slot: Slot);

    /// Number of the oldest waiting batch, counted in the order in which they leave, and when it was created. In a lane without
    /// batches each request is one.
    fn oldest_batch(&self) -> Option<(u64, Ns)>;

    /// Number of the last batch of a turn that begins now: the oldest batch; in a lane without batches all that waits.
    fn turn(&self) -> u64;

    /// A batch that is there takes no newcomers any more.
    fn seal(&mut self, _batch: u64) {}

    /// Whether issued requests that must complete before others start on their units touch those of these pages.
    fn blocks(&self, _pages: PageRange) -> bool {
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
    /// By slot.
    since: Vec<Ns>,
    taken: u64,
}

impl Fifo {
    pub(super) fn with_capacity(slots: u32) -> Fifo {
        Fifo {
            waiting: List::EMPTY,
            links: Links::new(slots),
            since: vec![Ns::ZERO; slots as usize],
            taken: 0,
        }
    }

    /// Takes the first that may go, past those before it that may not.
    pub(super) fn take_any(&mut self, may_go: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mut next = self.waiting.first();
        while let Some(slot) = next {
            if may_go(slot) {
                self.waiting.remove(&mut self.links, slot);
                self.taken += 1;
                return Some(slot);
            }
            next = self.links.next(slot);
        }
        None
    }
}

impl Lane for Fifo {
    fn insert(&mut self, now: Ns, slot: Slot, _request: &QueuedRequest) {
        self.waiting.push(&mut self.links, slot);
        self.since[slot.index()] = now;
    }

    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn take(&mut self, may_go: impl Fn(Slot) -> bool) -> Option<Slot> {
        let head = self.waiting.first()?;
        may_go(head).then(|| {
            self.waiting.remove(&mut self.links, head);
            self.taken += 1;
            head
        })
    }

    fn oldest_batch(&self) -> Option<(u64, Ns)> {
        self.waiting.first().map(|head| (self.taken, self.since[head.index()]))
    }

    fn turn(&self) -> u64 {
        (self.taken + u64::from(self.waiting.count())).saturating_sub(1)
    }

    fn batch_counts(&self) -> (u64, u64) {
        (self.taken + u64::from(self.waiting.count()), 0)
    }

    fn forget(&mut self, slot: Slot) {
        self.waiting.remove(&mut self.links, slot);
    }
}
