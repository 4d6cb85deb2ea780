//! Slots of the I/O queue.

use super::pools::Pools;
use super::tags::Tags;
use planewise_model::location::PageRange;
use planewise_model::{Direction, Lsn, Ns, Request};
use std::collections::VecDeque;

/// A place in the I/O queue, from 0 to its slots - 1: schedulers index their own arrays with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request in the I/O queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRequest {
    /// As submitted; when others were merged into it, the union.
    pub request: Request,
    /// The pages it touches.
    pub pages: PageRange,
    /// Number of the request in the run, from 0.
    pub sequence: u64,
    /// When it entered the queue.
    pub entered: Ns,
    /// When no earlier unfinished request that overlaps it was left: its entry, where there was none. Until then the scheduler does
    /// not know of it, and this is [`Ns::MAX`].
    pub released: Ns,
    /// When it was issued; meaningless before.
    pub issued: Ns,
    /// Whether it met another request of the queue on a unit when it entered.
    pub conflict: bool,
    /// Whether it is a read that was issued while an earlier write still waited; meaningless before.
    pub overtakes: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    Outstanding,
}

impl QueuedRequest {
    /// A request that enters the queue at `now` as number `sequence`, and depends on no other.
    pub fn new(now: Ns, sequence: u64, request: Request, pages: PageRange, conflict: bool) -> QueuedRequest {
        QueuedRequest {
            request,
            pages,
            sequence,
            entered: now,
            released: now,
            issued: Ns::ZERO,
            conflict,
            overtakes: false,
            state: State::Waiting,
        }
    }
}

/// One of the requests that a union is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) sequence: u64,
    pub(crate) entered: Ns,
    pub(crate) released: Ns,
    pub(crate) request: Request,
    pub(crate) conflict: bool,
}

impl From<&QueuedRequest> for Part {
    fn from(queued: &QueuedRequest) -> Part {
        let &QueuedRequest { sequence, entered, released, request, conflict, .. } = queued;
        Part { sequence, entered, released, request, conflict }
    }
}

/// The bounded I/O queue. Waiting and outstanding requests both take a slot, as tags do in a kernel.
pub struct HostQueue {
    slots: Vec<QueuedRequest>,
    /// Requests that may wait at a time: fewer than slots where outstanding ones have slots apart.
    waiting_max: u32,
    free: Vec<Slot>,
    waiting: u32,
    outstanding: u32,
    /// When the request in the slot is a union: its parts, with their numbers and times of entry.
    parts: Vec<Vec<Part>>,
    /// Where slots are counted by pools.
    pools: Option<Pools>,
    /// Where a slot is a tag that requests of a kind may not have: which are free, instead of `free`.
    tags: Option<Tags>,
}

impl HostQueue {
    /// An empty queue of a number of slots.
    pub fn new(length: u32) -> HostQueue {
        HostQueue::with_slots_apart(length, 0)
    }

    /// An empty queue in which `length` requests may wait at a time and up to `apart` more slots are taken by outstanding ones.
    pub fn with_slots_apart(length: u32, apart: u32) -> HostQueue {
        let slots = length + apart;
        let request = Request::new(Ns::ZERO, Lsn(0), 1, Direction::Read);
        let pages = PageRange { first: 0, count: 1 };
        let empty =
            QueuedRequest { state: State::Free, ..QueuedRequest::new(Ns::ZERO, 0, request, pages, false) };
        HostQueue {
            slots: vec![empty; slots as usize],
            waiting_max: length,
            free: (0..slots).rev().map(Slot).collect(),
            waiting: 0,
            outstanding: 0,
            parts: vec![Vec::new(); slots as usize],
            pools: None,
            tags: None,
        }
    }

    /// An empty queue whose slots are those of two pools.
    pub(super) fn with_pools(pools: Pools) -> HostQueue {
        let queue = HostQueue::new(pools.slots());
        HostQueue { pools: Some(pools), ..queue }
    }

    /// An empty queue whose slots are tags, handed out as Linux does.
    pub(super) fn with_tags(length: u32) -> HostQueue {
        HostQueue { tags: Some(Tags::new(length)), free: Vec::new(), ..HostQueue::new(length) }
    }

    /// Whether slots are tags: then threads wait for them one request at a time, and a scheduler may limit requests of a kind.
    pub fn has_tags(&self) -> bool {
        self.tags.is_some()
    }

    /// Whether a request that may have `limit` tags gets one.
    pub(super) fn has_tag(&self, limit: u32) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.has(limit))
    }

    /// Whether requests that somebody waits for and others have slots of their own.
    pub fn has_two_pools(&self) -> bool {
        self.pools.is_some()
    }

    /// The request in a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> &QueuedRequest {
        &self.slots[slot.index()]
    }

    /// Slots in the queue, those of outstanding requests included.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Requests not issued yet.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Requests issued and not complete.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Waiting and outstanding requests.
    #[inline]
    pub fn pending(&self) -> u32 {
        self.waiting + self.outstanding
    }

    /// Whether another request may wait, and a slot is free for it at `now`.
    #[inline]
    pub fn has_room(&self, now: Ns, request: &Request) -> bool {
        match (&self.pools, &self.tags) {
            (None, None) => self.waiting < self.waiting_max && !self.free.is_empty(),
            (Some(pools), _) => pools.has_room(now, request),
            (None, Some(tags)) => tags.has(tags.count()),
        }
    }

    /// Gives a request a slot.
    ///
    /// # Panics
    /// When the queue is full.
    #[inline]
    pub fn enter(&mut self, request: QueuedRequest) -> Slot {
        self.enter_within(request, u32::MAX)
    }

    /// The same, for a request that may have `limit` of all tags.
    ///
    /// # Panics
    /// When there is none for it.
    #[inline]
    pub(super) fn enter_within(&mut self, request: QueuedRequest, limit: u32) -> Slot {
        let slot = match &mut self.tags {
            None => self.free.pop().expect("the caller checked for room"),
            Some(tags) => Slot(tags.take(limit)),
        };
        if let Some(pools) = &mut self.pools {
            pools.enter(request.entered, &request.request);
        }
        self.slots[slot.index()] = request;
        self.waiting += 1;
        slot
    }

    /// Marks a waiting request as issued.
    ///
    /// # Panics
    /// When the request is not waiting.
    #[inline]
    pub fn issue(&mut self, slot: Slot, now: Ns, overtakes: bool) {
        let queued = &mut self.slots[slot.index()];
        assert_eq!(queued.state, State::Waiting, "a scheduler issues each request once");
        queued.state = State::Outstanding;
        queued.issued = now;
        queued.overtakes = overtakes;
        self.waiting -= 1;
        self.outstanding += 1;
    }

    /// Marks a request that was held as released.
    #[inline]
    pub(crate) fn release(&mut self, slot: Slot, now: Ns) -> &QueuedRequest {
        let queued = &mut self.slots[slot.index()];
        debug_assert!(queued.state == State::Waiting && queued.released == Ns::MAX);
        queued.released = now;
        queued
    }

    /// Frees the slot of a request that completed, and returns the request.
    #[inline]
    pub fn leave(&mut self, slot: Slot) -> QueuedRequest {
        let queued = self.slots[slot.index()];
        debug_assert_eq!(queued.state, State::Outstanding);
        self.slots[slot.index()].state = State::Free;
        self.outstanding -= 1;
        self.free(slot);
        queued
    }

    /// Waiting requests that move data, with their slots, by slot.
    pub(crate) fn waiting_requests(&self) -> impl Iterator<Item = (Slot, &QueuedRequest)> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, queued)| queued.state == State::Waiting && queued.request.is_transfer())
            .map(|(slot, queued)| (Slot(slot as u32), queued))
    }

    /// Grows the waiting request in `slot` by an adjacent one.
    pub(crate) fn absorb(&mut self, slot: Slot, part: Part, pages: PageRange) {
        let queued = &mut self.slots[slot.index()];
        debug_assert_eq!(queued.state, State::Waiting);
        let parts = &mut self.parts[slot.index()];
        if parts.is_empty() {
            parts.push(Part::from(&*queued));
        }
        parts.push(part);
        queued.request.start = queued.request.start.min(part.request.start);
        queued.request.sectors += part.request.sectors;
        queued.pages = pages;
    }

    /// The waiting request in `slot` becomes this longer one on these pages: for whoever drives a scheduler without a host stack.
    pub fn grow(&mut self, slot: Slot, after: Request, pages: PageRange) {
        let queued = &mut self.slots[slot.index()];
        debug_assert_eq!(queued.state, State::Waiting);
        (queued.request, queued.pages) = (after, pages);
    }

    /// Moves the waiting request in `other` into the adjacent one in `slot`, and frees its slot.
    pub(crate) fn join(&mut self, slot: Slot, other: Slot, pages: PageRange) {
        let joining = self.slots[other.index()];
        debug_assert_eq!(joining.state, State::Waiting);
        let mut parts = std::mem::take(&mut self.parts[other.index()]);
        if parts.is_empty() {
            parts.push(Part::from(&joining));
        }
        let queued = &mut self.slots[slot.index()];
        let own = &mut self.parts[slot.index()];
        if own.is_empty() {
            own.push(Part::from(&*queued));
        }
        own.append(&mut parts);
        queued.request.start = queued.request.start.min(joining.request.start);
        queued.request.sectors += joining.request.sectors;
        queued.pages = pages;
        self.parts[other.index()] = parts;
        self.slots[other.index()].state = State::Free;
        self.waiting -= 1;
        self.free(other);
    }

    fn free(&mut self, slot: Slot) {
        match &mut self.tags {
            None => self.free.push(slot),
            Some(tags) => tags.give_back(slot.0),
        }
        if let Some(pools) = &mut self.pools {
            pools.leave(&self.slots[slot.index()].request);
        }
    }

    /// Requests that the one in `slot` is made of.
    #[inline]
    pub(crate) fn segments(&self, slot: Slot) -> usize {
        self.parts[slot.index()].len().max(1)
    }

    /// The parts of the request in `slot`, when it is a union.
    pub(crate) fn parts(&mut self, slot: Slot) -> &mut Vec<Part> {
        &mut self.parts[slot.index()]
    }
}

/// Which waiting write came first, so that reads issued ahead of one can be counted.
#[derive(Default)]
pub(crate) struct WaitingWrites(VecDeque<(u64, Slot)>);

impl WaitingWrites {
    /// A write entered the queue. What left it since the last call is forgotten, so that the list stays as short as the queue.
    #[inline]
    pub(crate) fn push(&mut self, sequence: u64, slot: Slot, queue: &HostQueue) {
        self.oldest(queue);
        self.0.push_back((sequence, slot));
    }

    /// Number of the oldest write still waiting.
    #[inline]
    pub(crate) fn oldest(&mut self, queue: &HostQueue) -> Option<u64> {
        while let Some(&(sequence, slot)) = self.0.front() {
            let queued = queue.get(slot);
            if queued.sequence == sequence && queued.state == State::Waiting {
                return Some(sequence);
            }
            self.0.pop_front();
        }
        None
    }
}
