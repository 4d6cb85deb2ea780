//! Waiting requests by arrival and by address, reads and writes apart: the two FIFO lists and two sorted trees of Linux's
//! deadline elevator and of each region of PASS (PASS paper, section 3.3 and figure 5).

use super::list::{Links, List};
use super::tree::{Nodes, Tree};
use crate::host::{QueuedRequest, Slot};
use planewise_model::{Direction, Ns};

/// What any number of [`Sorted`] over the same slots share; a slot is in one of them at a time.
pub(super) struct Storage {
    links: Links,
    nodes: Nodes<u64>,
    deadlines: Vec<Ns>,
}

impl Storage {
    pub(super) fn new(slots: u32) -> Storage {
        Storage {
            links: Links::new(slots),
            nodes: Nodes::new(slots),
            deadlines: vec![Ns::ZERO; slots as usize],
        }
    }

    /// By when the request should be dispatched.
    pub(super) fn deadline(&self, slot: Slot) -> Ns {
        self.deadlines[slot.index()]
    }

    /// The request behind this one by address, in its direction (`elv_rb_latter_request`).
    pub(super) fn next_by_address(&self, slot: Slot) -> Option<Slot> {
        self.nodes.next(slot)
    }
}

/// Waiting requests; by direction, reads first.
#[derive(Clone, Copy)]
pub(super) struct Sorted {
    by_arrival: [List; 2],
    by_address: [Tree; 2],
}

impl Sorted {
    pub(super) const EMPTY: Sorted = Sorted { by_arrival: [List::EMPTY; 2], by_address: [Tree::EMPTY; 2] };

    pub(super) fn is_empty(&self, direction: Direction) -> bool {
        self.by_arrival[direction.index()].is_empty()
    }

    pub(super) fn add(&mut self, storage: &mut Storage, slot: Slot, request: &QueuedRequest, deadline: Ns) {
        let direction = request.request.direction.index();
        storage.deadlines[slot.index()] = deadline;
        self.by_arrival[direction].push(&mut storage.links, slot);
        self.by_address[direction].insert(&mut storage.nodes, slot, request.request.start.0);
    }

    pub(super) fn remove(&mut self, storage: &mut Storage, slot: Slot, direction: Direction) {
        self.by_arrival[direction.index()].remove(&mut storage.links, slot);
        self.by_address[direction.index()].remove(&mut storage.nodes, slot);
    }

    /// A request grew: at its front, it has another place by address.
    pub(super) fn grew(&mut self, storage: &mut Storage, slot: Slot, after: &QueuedRequest) {
        if storage.nodes.key(slot) != after.request.start.0 {
            let tree = &mut self.by_address[after.request.direction.index()];
            tree.remove(&mut storage.nodes, slot);
            tree.insert(&mut storage.nodes, slot, after.request.start.0);
        }
    }

    /// The request that has waited longest.
    pub(super) fn oldest(&self, direction: Direction) -> Option<Slot> {
        self.by_arrival[direction.index()].first()
    }

    /// The same, when its deadline has come.
    pub(super) fn expired(&self, storage: &Storage, direction: Direction, now: Ns) -> Option<Slot> {
        self.oldest(direction).filter(|slot| storage.deadline(*slot) <= now)
    }

    /// The first request at this sector or behind it.
    pub(super) fn at_or_after(&self, storage: &Storage, direction: Direction, sector: u64) -> Option<Slot> {
        self.by_address[direction.index()].at_or_after(&storage.nodes, sector)
    }
}
