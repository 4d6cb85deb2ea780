//! Which host requests meet garbage collection: what the schemes try to avoid, counted the same way for all of them.

use super::transaction::NIL;
use super::{Context, Device};
use crate::host::{QueuedRequest, Slot};
use crate::observers::{Meeting, Observer};
use planewise_model::location::PageRange;
use planewise_model::{Direction, Lpn, Ns};

impl Device {
    /// Whether requests that arrive now can meet anything.
    #[inline]
    pub(crate) fn can_be_met(&self, now: Ns) -> bool {
        self.collecting + self.in_background > 0 || now < self.released_until
    }

    /// Tells the observer what a request that arrives, or waits, needs and cannot have because of collection.
    pub(crate) fn note_meetings<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        queued: &QueuedRequest,
    ) {
        let mut needed = std::mem::take(&mut self.needed);
        needed.clear();
        self.visit_needed(queued.request.direction, queued.pages, &mut |executor| needed.push(executor));
        for &executor in &needed {
            self.note_meeting(context, slot, executor);
        }
        self.needed = needed;
    }

    /// The same for one executor.
    pub(super) fn note_meeting<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        executor: u32,
    ) {
        let state = &self.executors[executor as usize];
        let meeting = if state.collection.is_some() {
            Meeting::Collection
        } else if state.background.is_some() {
            Meeting::Background
        } else if context.now < state.released {
            Meeting::Released
        } else {
            return;
        };
        context.observer.meets(context.now, slot, meeting);
    }

    /// Calls `visit` with the executors that a request needs. A write that may go anywhere needs a particular one only when
    /// none is idle: then it needs any of those that are not.
    fn visit_needed(&self, direction: Direction, pages: PageRange, visit: &mut dyn FnMut(u32)) {
        for lpn in (pages.first as u32..pages.first as u32 + pages.count).map(Lpn) {
            if direction == Direction::Read {
                if let Some((_, plane)) = self.place(lpn).filter(|_| !self.redirects_reads) {
                    visit(self.load.executor_of(plane));
                }
                continue;
            }
            if self.relocates && self.absorbs(lpn) {
                continue;
            }
            let known = self.allocation.would_touch(lpn, 1, &self.stripe, &mut |plane| {
                visit(self.load.executor_of(plane));
            });
            if !known {
                if self.load.idle().iter().all(|&word| word == 0) {
                    (0..self.executors.len() as u32).for_each(&mut *visit);
                }
                return;
            }
        }
    }

    /// Executors that a collection began on since the last call.
    pub(crate) fn take_begun(&mut self, begun: &mut Vec<u32>) {
        begun.append(&mut self.begun);
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Tells the observer of the transactions that wait at an executor whose collection began.
    pub(crate) fn note_waiting_meetings<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        for list in 0..2 {
            let mut index = self.executors[executor as usize].waiting[list].head;
            while index != NIL {
                if self.transactions[index].kind.is_host() {
                    let slot = self.transactions[index].slot;
                    self.note_meeting(context, slot, executor);
                }
                index = self.transactions[index].next;
            }
        }
    }

    /// Whether a scheme asks which executors waiting requests need, and a collection without a way into the buffer is about
    /// to take a step.
    pub(crate) fn asks_who_is_wanted(&self) -> bool {
        self.buffers
            && self.kicks.iter().any(|&executor| {
                let state = &self.executors[executor as usize];
                state.wants_collection
                    || state.collection.is_some_and(|collection| collection.stream.is_none())
            })
    }

    /// Forgets which executors waiting requests need.
    pub(crate) fn clear_wanted(&mut self) {
        for executor in self.wanted_list.drain(..) {
            self.wanted[executor as usize] = false;
        }
    }

    /// Notes the executors that a waiting request needs.
    pub(crate) fn note_wanted(&mut self, queued: &QueuedRequest) {
        let (mut wanted, mut list) =
            (std::mem::take(&mut self.wanted), std::mem::take(&mut self.wanted_list));
        self.visit_needed(queued.request.direction, queued.pages, &mut |executor| {
            if !std::mem::replace(&mut wanted[executor as usize], true) {
                list.push(executor);
            }
        });
        (self.wanted, self.wanted_list) = (wanted, list);
    }

    /// Whether a host request waits for an executor: in the I/O queue, or inside the device.
    pub(super) fn is_wanted(&self, executor: u32) -> bool {
        self.wanted[executor as usize]
            || self.executors[executor as usize].waiting.iter().any(|list| !list.is_empty())
    }
}
