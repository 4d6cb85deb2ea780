//! Which host requests meet garbage collection: what the schemes try to avoid, counted the same way for all of them.

use super::transaction::{List, NIL};
use super::{Context, Device};
use crate::host::{QueuedRequest, Slot};
use crate::observers::{Meeting, Observer};
use planewise_model::location::PageRange;
use planewise_model::{Direction, Lpn, Ns};
use std::ops::ControlFlow;

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
        self.visit_needed(queued.request.direction, queued.pages, &mut |executor| {
            needed.push(executor);
            ControlFlow::Continue(())
        });
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

    /// Calls `visit` with the executors that a request needs, until it has seen enough. A write that may go anywhere needs a particular one only when
    /// none is idle: then it needs any of those that are not.
    fn visit_needed(
        &self,
        direction: Direction,
        pages: PageRange,
        visit: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) {
        let mut flow = ControlFlow::Continue(());
        for lpn in (pages.first as u32..pages.first as u32 + pages.count).map(Lpn) {
            if direction == Direction::Read {
                if let Some((_, plane)) = self.place(lpn).filter(|_| !self.redirects_reads) {
                    flow = visit(self.load.executor_of(plane));
                }
                if flow.is_break() {
                    return;
                }
                continue;
            }
            if self.relocates && self.absorbs(lpn) {
                continue;
            }
            let known = self.allocation.would_touch(lpn, 1, &self.stripe, &mut |plane| {
                flow = visit(self.load.executor_of(plane));
            });
            if !known && self.load.idle().iter().all(|&word| word == 0) {
                let _ = (0..self.executor_count).try_for_each(&mut *visit);
            }
            if !known || flow.is_break() {
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

    /// Forgets which executors waiting requests need, and notes those that commands inside the device do.
    pub(crate) fn clear_wanted(&mut self) {
        for executor in self.wanted_list.drain(..) {
            self.wanted[executor as usize] = false;
        }
        if self.front.active {
            let (mut wanted, mut list) =
                (std::mem::take(&mut self.wanted), std::mem::take(&mut self.wanted_list));
            for (request, pages) in self.front.arriving() {
                self.add_wanted(request.direction, *pages, &mut wanted, &mut list);
            }
            (self.wanted, self.wanted_list) = (wanted, list);
        }
    }

    /// Notes the executors that a waiting request needs.
    pub(crate) fn note_wanted(&mut self, queued: &QueuedRequest) {
        let (mut wanted, mut list) =
            (std::mem::take(&mut self.wanted), std::mem::take(&mut self.wanted_list));
        self.add_wanted(queued.request.direction, queued.pages, &mut wanted, &mut list);
        (self.wanted, self.wanted_list) = (wanted, list);
    }

    /// Adds the executors that a request needs, which a write into the write buffer does not; returns how many it was told. Requests may be larger than the
    /// device is wide: it stops when all executors are there.
    fn add_wanted(
        &self,
        direction: Direction,
        pages: PageRange,
        wanted: &mut [bool],
        list: &mut Vec<u32>,
    ) -> usize {
        let mut asked = 0;
        let needs_chips = direction == Direction::Read || self.write_buffer.is_none();
        if needs_chips && list.len() < wanted.len() {
            self.visit_needed(direction, pages, &mut |executor| {
                asked += 1;
                if !std::mem::replace(&mut wanted[executor as usize], true) {
                    list.push(executor);
                }
                if list.len() == wanted.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        asked
    }

    /// Whether a host request waits for an executor: in the I/O queue, or inside the device.
    pub(super) fn is_wanted(&self, executor: u32) -> bool {
        self.wanted[executor as usize]
            || !self.unbound.is_empty()
            || self.front.coming.get(executor as usize).is_some_and(|&coming| coming > 0)
            || self.executors[executor as usize].waiting.iter().any(|list| self.has_host(list))
    }

    /// Whether a list has a transaction of the host: those of the read and the write buffer do not keep it waiting.
    fn has_host(&self, list: &List) -> bool {
        let mut index = list.head;
        while index != NIL {
            if self.transactions[index].kind.is_host() {
                return true;
            }
            index = self.transactions[index].next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::transaction::Kind;
    use crate::event::EventQueue;
    use crate::ftl::Condition;
    use planewise_model::profile::{Processor, Profile, Regions, WriteBuffer};
    use planewise_model::{Lsn, Request};

    /// 16 channels of one chip of one die of one plane; page `n` is on channel `n % 16`.
    fn device(change: impl Fn(&mut Profile)) -> Device {
        let mut profile = Profile::embedded("gc-64g").unwrap();
        (profile.geometry.chips_per_channel, profile.geometry.dies_per_chip) = (1, 1);
        (profile.geometry.planes_per_die, profile.geometry.blocks_per_plane) = (1, 64);
        profile.translation.allocation = "cwdp".into();
        profile.collection.scheme = "idle_chip".into();
        profile.interface.command_queue = "ncq:32".into();
        change(&mut profile);
        profile.check().unwrap();
        Device::new(&profile, profile.advanced_commands, Condition::Primed, 32, 1).unwrap()
    }

    fn submit(device: &mut Device, slot: u32, direction: Direction, first: u64, count: u32) {
        let request = Request::new(Ns::ZERO, Lsn(first * 8), count * 8, direction);
        let (mut events, mut observer) = (EventQueue::with_capacity(16), ());
        let mut context = Context { now: Ns::ZERO, events: &mut events, observer: &mut observer };
        device.submit(&mut context, Slot(slot), &request, PageRange { first, count });
        device.run_front(&mut context);
    }

    fn wanted(device: &mut Device) -> Vec<u32> {
        device.clear_wanted();
        (0..16).filter(|&executor| device.is_wanted(executor)).collect()
    }

    #[test]
    fn no_more_pages_of_a_request_are_asked_for_than_it_takes_to_name_all_executors() {
        let device = device(|_| {});
        let asked = |count| {
            let (mut wanted, mut list) = ([false; 16], Vec::new());
            let pages = PageRange { first: 5, count };
            (device.add_wanted(Direction::Read, pages, &mut wanted, &mut list), list.len())
        };
        assert_eq!([asked(3), asked(16), asked(16_384)], [(3, 3), (16, 16), (16, 16)]);
        let (mut wanted, mut list) = ([true; 16], (0..16).collect());
        let pages = PageRange { first: 0, count: 16_384 };
        assert_eq!(device.add_wanted(Direction::Read, pages, &mut wanted, &mut list), 0);
    }

    #[test]
    fn requests_in_the_controller_want_chips_wherever_they_wait() {
        let busy = Processor {
            command_ns: 1_000,
            operation_ns: 1_000,
            run_page_ns: 0,
            update_ns: 0,
            turn_ns: 0,
            drains_to_turn: false,
            scan_ns: 0,
            scan_entries: 0,
        };
        let mut at_the_processor = device(|profile| profile.processor = Some(busy));
        submit(&mut at_the_processor, 0, Direction::Read, 3, 1);
        submit(&mut at_the_processor, 1, Direction::Read, 7, 2);
        assert_eq!(wanted(&mut at_the_processor), [3, 7, 8]);
        let mut in_a_region = device(|profile| profile.regions = Some(Regions { mib: 1, operations: 1 }));
        submit(&mut in_a_region, 0, Direction::Read, 3, 2);
        assert_eq!(in_a_region.front.coming.iter().sum::<u32>(), 1, "the second waits for the first");
        assert_eq!(wanted(&mut in_a_region), [3, 4]);
    }

    #[test]
    fn what_the_write_buffer_sends_to_a_chip_keeps_no_request_waiting() {
        let buffer = WriteBuffer {
            pages: 8,
            watermark: 0.0,
            run_pages: 1,
            entry_order: false,
            in_flight_pages: 8,
            power_loss_protection: true,
        };
        let mut device = device(|profile| profile.write_buffer = Some(buffer));
        submit(&mut device, 0, Direction::Write, 3, 1);
        let waiting = device.executors[3].waiting[Direction::Write.index()].head;
        assert_eq!(device.transactions[waiting].kind, Kind::WriteBack);
        assert_eq!(wanted(&mut device), [] as [u32; 0]);
        submit(&mut device, 1, Direction::Read, 19, 1);
        assert_eq!(wanted(&mut device), [3], "a read behind it does wait");
    }
}
