//! What Linux's elevators and their relatives have in common: they move one request at a time to the dispatch list, and
//! what is there waits for the driver (`elv_dispatch_sort`, `elv_next_request`). A head that the device does not take
//! holds back all behind it; it is merged with nothing any more.

use super::{Counters, Decision, Growth, HostScheduler};
use crate::host::{Gate, HostQueue, QueuedRequest, Slot};
use planewise_model::{Ns, Request};

/// What an elevator moves to the dispatch list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// This request, which is in none of its lists any more.
    Request(Slot),
    /// None, until a request arrives or completes.
    Nothing,
    /// None before this time, unless a request arrives or completes.
    At(Ns),
}

/// An elevator: the operations of Linux's `elevator_ops` that decide something.
pub(super) trait Elevator: Send {
    /// `elevator_add_req_fn`.
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest);

    /// `elevator_allow_merge_fn`.
    fn allow_merge(&self, _growth: &Growth<'_>) -> bool {
        true
    }

    /// `elevator_merged_fn`: a waiting request grew.
    fn merged(&mut self, _slot: Slot, _before: &QueuedRequest, _after: &QueuedRequest) {}

    /// `elevator_merge_req_fn`: the waiting request in `slot` became part of the one in `into`.
    fn removed(&mut self, slot: Slot, request: &QueuedRequest, into: Slot);

    /// `elevator_dispatch_fn`.
    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick;

    /// The device took the request.
    fn issued(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}

    /// `elevator_completed_req_fn`.
    fn completed(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}

    /// As [`HostScheduler::depth_limit`] (`limit_depth`).
    fn depth_limit(&self, _request: &Request, length: u32) -> u32 {
        length
    }

    /// Counters for reports.
    fn counters(&self) -> Counters;

    /// As [`HostScheduler::notes`].
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An elevator with its dispatch list.
pub(super) struct Dispatching<E> {
    elevator: E,
    head: Option<Slot>,
}

impl<E: Elevator> Dispatching<E> {
    pub(super) fn new(elevator: E) -> Dispatching<E> {
        Dispatching { elevator, head: None }
    }
}

impl<E: Elevator> HostScheduler for Dispatching<E> {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.elevator.add(now, slot, request);
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        let is_head = |slot| self.head == Some(slot);
        !is_head(growth.slot)
            && !growth.joining_slot.is_some_and(is_head)
            && self.elevator.allow_merge(growth)
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        self.elevator.merged(slot, before, after);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, into: Slot) {
        self.elevator.removed(slot, request, into);
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        let head = match self.head {
            Some(head) => head,
            None => match self.elevator.pick(now, gate.queue()) {
                Pick::Request(slot) => slot,
                Pick::Nothing => return Decision::Wait,
                Pick::At(time) => return Decision::WakeAt(time),
            },
        };
        if !gate.accepts(head) {
            self.head = Some(head);
            return Decision::Wait;
        }
        self.head = None;
        self.elevator.issued(now, head, gate.queue().get(head));
        Decision::Issue(head)
    }

    fn depth_limit(&self, request: &Request, length: u32) -> u32 {
        self.elevator.depth_limit(request, length)
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.elevator.completed(now, slot, request);
    }

    fn counters(&self) -> Counters {
        self.elevator.counters()
    }

    fn notes(&self) -> Vec<String> {
        self.elevator.notes()
    }
}
