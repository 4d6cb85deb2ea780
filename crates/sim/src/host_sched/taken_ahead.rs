//! Today's block layer around a policy that knows nothing of it (`block/blk-mq-sched.c`): requests are taken from the policy until one finds no
//! tag of the device's. That one is out of the policy's hands, and goes first when there is a tag, whatever arrives meanwhile.

use super::{Counters, Decision, Growth, HostScheduler};
use crate::host::{Gate, HostQueue, QueuedRequest, Slot};
use planewise_model::{Ns, Request};

/// A policy of which one request is taken before there is a tag for it.
pub(crate) struct TakenAhead {
    policy: Box<dyn HostScheduler>,
    /// Dispatched by the policy, and without a tag.
    head: Option<Slot>,
}

impl TakenAhead {
    pub(crate) fn around(policy: Box<dyn HostScheduler>) -> Box<dyn HostScheduler> {
        Box::new(TakenAhead { policy, head: None })
    }
}

impl HostScheduler for TakenAhead {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.policy.insert(now, slot, request);
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        let is_head = |slot| self.head == Some(slot);
        !is_head(growth.slot) && !growth.joining_slot.is_some_and(is_head) && self.policy.allow_merge(growth)
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        self.policy.merged(slot, before, after);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, into: Slot) {
        self.policy.removed(slot, request, into);
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        match self.head.take() {
            Some(head) => Decision::Issue(head),
            None => self.policy.dispatch(now, gate),
        }
    }

    fn full(&mut self, now: Ns, queue: &HostQueue) {
        if self.head.is_none()
            && let Decision::Issue(slot) =
                self.policy.dispatch(now, &Gate::new(queue, &|_: &QueuedRequest| true))
        {
            self.head = Some(slot);
        }
    }

    fn depth_limit(&self, request: &Request, length: u32) -> u32 {
        self.policy.depth_limit(request, length)
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.policy.completed(now, slot, request);
    }

    fn counters(&self) -> Counters {
        self.policy.counters()
    }

    fn notes(&self) -> Vec<String> {
        self.policy.notes()
    }
}
