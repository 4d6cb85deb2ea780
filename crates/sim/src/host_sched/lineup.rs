//! Requests that wait for the same turn, by arrival and by address, with the one to serve next: a queue of CFQ or BFQ, a
//! direction of the anticipatory scheduler.

use super::list::{Links, List};
use super::one_way::OneWay;
use super::tree::{Nodes, Tree};
use crate::host::{QueuedRequest, Slot};
use planewise_model::Ns;

/// What any number of [`Lineup`]s over the same slots share; a slot is in one of them at a time.
pub(super) struct Places {
    links: Links,
    nodes: Nodes<u64>,
    deadlines: Vec<Ns>,
    way: OneWay,
}

impl Places {
    pub(super) fn new(slots: u32, way: OneWay) -> Places {
        Places {
            links: Links::new(slots),
            nodes: Nodes::new(slots),
            deadlines: vec![Ns::ZERO; slots as usize],
            way,
        }
    }

    /// First sector of a request that waits.
    pub(super) fn start(&self, slot: Slot) -> u64 {
        self.nodes.key(slot)
    }

    fn closer(&self, position: u64, one: Option<Slot>, other: Option<Slot>) -> Option<Slot> {
        let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
        let first_is_closer = self.way.first_is_closer(position, self.start(first), self.start(second));
        Some(if first_is_closer { first } else { second })
    }
}

/// Requests that wait for the same turn.
#[derive(Clone, Copy)]
pub(super) struct Lineup {
    by_arrival: List,
    by_address: Tree,
    next: Option<Slot>,
}

impl Lineup {
    pub(super) const EMPTY: Lineup = Lineup { by_arrival: List::EMPTY, by_address: Tree::EMPTY, next: None };

    pub(super) fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    /// The request to serve next when none is overdue.
    pub(super) fn next(&self) -> Option<Slot> {
        self.next
    }

    /// The request that has waited longest.
    pub(super) fn oldest(&self) -> Option<Slot> {
        self.by_arrival.first()
    }

    /// The same, when its deadline has come.
    pub(super) fn overdue(&self, places: &Places, now: Ns) -> Option<Slot> {
        self.oldest().filter(|slot| places.deadlines[slot.index()] <= now)
    }

    /// A request arrives; `position` is the sector behind the last one served.
    pub(super) fn add(
        &mut self,
        places: &mut Places,
        slot: Slot,
        request: &QueuedRequest,
        deadline: Ns,
        position: u64,
    ) {
        places.deadlines[slot.index()] = deadline;
        self.by_arrival.push(&mut places.links, slot);
        self.by_address.insert(&mut places.nodes, slot, request.request.start.0);
        self.next = places.closer(position, self.next, Some(slot));
    }

    /// A request grew: at its front, it has another place by address.
    pub(super) fn grew(&mut self, places: &mut Places, slot: Slot, after: &QueuedRequest, position: u64) {
        if places.start(slot) != after.request.start.0 {
            self.by_address.remove(&mut places.nodes, slot);
            self.by_address.insert(&mut places.nodes, slot, after.request.start.0);
            self.next = places.closer(position, self.next, Some(slot));
        }
    }

    /// A request leaves; when it was the next, another is.
    pub(super) fn remove(&mut self, places: &mut Places, slot: Slot, position: u64) {
        if self.next == Some(slot) {
            self.next = self.neighbour(places, slot, position);
        }
        self.by_arrival.remove(&mut places.links, slot);
        self.by_address.remove(&mut places.nodes, slot);
    }

    /// A request is served: the next is one of its neighbours by address.
    pub(super) fn serve(&mut self, places: &mut Places, slot: Slot, position: u64) {
        self.next = self.neighbour(places, slot, position);
        self.remove(places, slot, position);
    }

    /// This one is served next, whatever its address.
    pub(super) fn put_next(&mut self, slot: Slot) {
        self.next = Some(slot);
    }

    /// How many wait.
    pub(super) fn count(&self) -> u32 {
        self.by_arrival.count()
    }

    /// The closer of the requests before and behind one, the sweep beginning again at its end.
    fn neighbour(&self, places: &Places, slot: Slot, position: u64) -> Option<Slot> {
        let first = || self.by_address.first(&places.nodes).filter(|first| *first != slot);
        let behind = places.nodes.next(slot).or_else(first);
        places.closer(position, behind, places.nodes.previous(slot))
    }
}
