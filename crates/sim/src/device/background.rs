//! What idle chips do while no host request waits: they take pages back from the buffer, take replicas, and are collected
//! ahead of need.
//!
//! Idle chips are found round robin by the chips' state (GC paper, section 4.2.1): a chip is idle when it runs nothing and
//! nothing waits for it. Where allocation is static a page must stay on its plane, so it returns there once its chip is idle.

use super::execute::{BackgroundSource, BackgroundWrite, LikelyReads, Phase};
use super::{Context, Device};
use crate::error::SimError;
use crate::ftl::Stream;
use crate::gc::write_back::Haste;
use crate::observers::{Cause, Observer, Origin};
use planewise_model::{Lpn, Ns, Ppn};

/// How busy the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostState {
    /// No request is in the I/O queue.
    AtRest,
    /// Some are outstanding, none waits.
    Outstanding,
    /// Some wait.
    Waiting,
}

impl Device {
    /// Whether there is anything that idle chips could do.
    #[inline]
    pub(crate) fn has_background_work(&self) -> bool {
        self.buffer.first().is_some() || self.replicas.next_wanted().is_some() || !self.ahead.is_empty()
    }

    /// Whether it matters now which chips waiting requests need: pages could be written back to others.
    pub(crate) fn writes_back_between(&self, now: Ns) -> bool {
        self.buffer.first().is_some_and(|slot| {
            self.in_background < self.write_backs.at_once() && self.haste_of(now, slot) == Haste::Between
        })
    }

    fn haste_of(&self, now: Ns, slot: u32) -> Haste {
        self.write_backs.haste(now, self.buffer.since(slot), self.buffer.held())
    }

    /// Gives idle chips something to do, once requests have been issued. Chips that waiting requests need are left alone, unless it presses.
    ///
    /// # Errors
    /// Free space exhausted.
    pub(crate) fn start_background_work<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        host: HostState,
    ) -> Result<(), SimError> {
        self.write_back(context, host);
        if host == HostState::Waiting {
            return Ok(());
        }
        self.replicate(context);
        if host == HostState::AtRest { self.collect_ahead(context) } else { Ok(()) }
    }

    /// Chips that ended an operation take pages that have been in line for too long, before the host has its turn.
    #[inline]
    pub(crate) fn write_back_overdue<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        if self.buffer.first().is_some() {
            self.write_back_where_kicked(context);
        }
    }

    fn write_back_where_kicked<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        for index in 0..self.kicks.len() {
            let Some(first) = self.buffer.first() else { return };
            if !self.write_backs.is_overdue(context.now, self.buffer.since(first))
                || self.in_background >= self.write_backs.at_once()
            {
                return;
            }
            let executor = self.kicks[index];
            let state = &self.executors[executor as usize];
            if !self.is_between_operations(executor) || state.collection.is_some() || state.wants_collection {
                continue;
            }
            let mut in_line = Some(first);
            while let Some(slot) = in_line
                && self.write_backs.is_overdue(context.now, self.buffer.since(slot))
            {
                let lpn = self.buffer.page(slot);
                let plane = if self.static_allocation {
                    let home = self.allocate(lpn);
                    (self.load.executor_of(home) == executor && self.can_program(home)).then_some(home)
                } else {
                    self.emptiest_plane(executor)
                };
                if let Some(plane) = plane {
                    self.write_slot_back(context, slot, plane);
                    break;
                }
                in_line = self.buffer.after(slot).filter(|_| self.static_allocation);
            }
        }
    }

    /// Whether an executor could begin an operation.
    pub(super) fn is_between_operations(&self, executor: u32) -> bool {
        let state = &self.executors[executor as usize];
        state.phase == Phase::Idle
            && state.suspended.is_none()
            && !(self.pipelines && self.register_is_in_use(executor))
    }

    fn is_idle(&self, executor: u32) -> bool {
        let state = &self.executors[executor as usize];
        self.is_between_operations(executor)
            && state.collection.is_none()
            && !state.wants_collection
            && state.waiting.iter().all(super::transaction::List::is_empty)
    }

    /// Segments first in, first out, each page to the next idle chip. Where pages must return to their own planes, one whose chip is
    /// busy keeps none behind it waiting.
    fn write_back<O: Observer>(&mut self, context: &mut Context<'_, O>, host: HostState) {
        let mut in_line = self.buffer.first();
        while let Some(slot) = in_line
            && self.in_background < self.write_backs.at_once()
        {
            in_line = self.buffer.after(slot);
            let leave_wanted = match self.haste_of(context.now, slot) {
                Haste::AtRest if host == HostState::Waiting => return,
                Haste::Between => host == HostState::Waiting,
                Haste::AtRest | Haste::Forced => false,
            };
            let plane = self.idle_plane_for(self.buffer.page(slot), leave_wanted);
            match plane {
                Some(plane) => self.write_slot_back(context, slot, plane),
                None if self.static_allocation => {}
                None => return,
            }
        }
    }

    fn write_slot_back<O: Observer>(&mut self, context: &mut Context<'_, O>, slot: u32, plane: u32) {
        let lpn = self.buffer.page(slot);
        self.buffer.begin_write_back(slot);
        let from = BackgroundSource::Buffer(slot);
        let origin = Origin::Buffer { from: self.page_of_slot(slot) };
        self.start_background_write(context, lpn, plane, from, origin);
    }

    /// Chips that work ahead of need at a time: few enough that who comes next finds most of them free.
    fn most_ahead(&self) -> u32 {
        (self.executor_count / 8).max(1)
    }

    /// Replicas go to any idle chip but that of the page itself.
    fn replicate<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while self.in_background < self.most_ahead() {
            let Some(lpn) = self.replicas.next_wanted() else { return };
            let ppn = self.mapping.physical(lpn);
            if ppn < self.flash_pages() {
                let home = self.load.executor_of(self.planes.plane_of(Ppn(ppn)));
                let Some(plane) = self.next_idle_plane(|_, executor| executor != home) else { return };
                let of = Ppn(ppn);
                self.start_background_write(
                    context,
                    lpn,
                    plane,
                    BackgroundSource::Original(of),
                    Origin::Replica { of },
                );
            }
            self.replicas.take_wanted();
        }
    }

    /// The pages on an executor that are likely to be read while it collects, by what was read since a time, and have no
    /// replica yet.
    pub(super) fn likely_reads_on(&self, executor: u32, since: Ns) -> LikelyReads {
        let mut found = LikelyReads::default();
        let likely = self.replicas.likely(since).filter(|lpn| lpn.0 < self.user_pages);
        for lpn in likely {
            let ppn = self.mapping.physical(lpn);
            if ppn < self.flash_pages()
                && self.load.executor_of(self.planes.plane_of(Ppn(ppn))) == executor
                && self.replicas.find(lpn).is_none()
            {
                found.push(lpn);
            }
        }
        found
    }

    /// A plane of an idle chip for a page; `leave_wanted`: of one that no waiting request needs.
    fn idle_plane_for(&mut self, lpn: Lpn, leave_wanted: bool) -> Option<u32> {
        if self.static_allocation {
            let plane = self.allocate(lpn);
            let executor = self.load.executor_of(plane);
            let fits = self.is_idle(executor) && !(leave_wanted && self.wanted[executor as usize]);
            return (fits && self.can_program(plane)).then_some(plane);
        }
        self.next_idle_plane(|device, executor| !(leave_wanted && device.wanted[executor as usize]))
    }

    /// A plane of the next idle chip that is suitable.
    fn next_idle_plane(&mut self, suits: impl Fn(&Device, u32) -> bool) -> Option<u32> {
        let executors = self.executor_count;
        for step in 0..executors {
            let executor = (self.next_idle + step) % executors;
            if !self.is_idle(executor) || !suits(self, executor) {
                continue;
            }
            let plane = self.emptiest_plane(executor);
            if plane.is_some() {
                self.next_idle = (executor + 1) % executors;
                return plane;
            }
        }
        None
    }

    /// The plane of an executor with most free pages, of those that can take a page.
    fn emptiest_plane(&self, executor: u32) -> Option<u32> {
        let most = self.planes.most_valid();
        self.load
            .planes_of(executor)
            .filter(|&plane| self.planes.valid_total(plane) < most && self.can_program(plane))
            .max_by_key(|&plane| (self.planes.free_pages(plane), std::cmp::Reverse(plane)))
    }

    fn start_background_write<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        lpn: Lpn,
        plane: u32,
        from: BackgroundSource,
        origin: Origin,
    ) {
        let executor = self.load.executor_of(plane);
        let to = self.planes.program(plane, Stream::Collection).expect("the plane was asked for a page");
        context.observer.operation_start(context.now, executor, 1);
        context.observer.page_program(context.now, origin, lpn, to);
        self.load.add(plane);
        self.in_background += 1;
        let state = &mut self.executors[executor as usize];
        state.background = Some(BackgroundWrite { lpn, to, from });
        state.group_planes = 1;
        let hold = Ns(self.timing.command_ns) + self.page_transfer;
        let program = self.variation.of(self.timing.program_ns.of_page(self.planes.offset_of(to).1));
        self.note_space_used(executor, plane);
        self.ask_channel(context, executor, Phase::Background, hold, program);
    }

    /// The program of a page from elsewhere ended.
    pub(super) fn background_write_ended<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) {
        let done =
            self.executors[executor as usize].background.take().expect("a background write is under way");
        let BackgroundWrite { lpn, to, from } = done;
        match from {
            BackgroundSource::Buffer(slot) => {
                let page = self.page_of_slot(slot);
                let current = self.mapping.physical(lpn) == page.0;
                if current {
                    self.mapping.map(lpn, to);
                } else {
                    // The host wrote the page meanwhile. If that program is still under way, this is the page it replaces.
                    self.mapping.note_copy(lpn, to);
                    self.planes.invalidate(to);
                    self.replaced_page_moved(page.0, to.0);
                }
                self.buffer.end_write_back(slot);
                context.observer.write_back_end(context.now, lpn, page, to, current);
            }
            BackgroundSource::Original(of) => {
                self.mapping.note_copy(lpn, to);
                let current = self.mapping.physical(lpn) == of.0;
                let dropped = if current { self.replicas.insert(lpn, to) } else { Some((lpn, to)) };
                if let Some((dropped, at)) = dropped {
                    self.planes.invalidate(at);
                    context.observer.replica_dropped(context.now, dropped, !current);
                }
            }
        }
        self.in_background -= 1;
        self.load.remove(self.planes.plane_of(to));
        self.end_operation(context, executor);
    }

    /// The page that replicas under way are copies of is elsewhere now; its data are the same.
    pub(super) fn original_moved(&mut self, from: Ppn, to: Ppn) {
        for background in self.executors.iter_mut().filter_map(|state| state.background.as_mut()) {
            if let BackgroundSource::Original(of) = &mut background.from
                && *of == from
            {
                *of = to;
            }
        }
    }

    /// Before a block is collected, the replicas in it are forgotten: they counted as valid, so that a block full of them is
    /// no cheap victim, but nobody moves them.
    pub(super) fn drop_replicas_in<O: Observer>(&mut self, context: &mut Context<'_, O>, first: u32) {
        if !self.keeps_replicas {
            return;
        }
        let owners: Vec<(Lpn, Ppn)> = self.owners_in(first).collect();
        for (lpn, ppn) in owners {
            if self.replicas.find(lpn) == Some(ppn) {
                self.replicas.remove(lpn);
                self.planes.invalidate(ppn);
                context.observer.replica_dropped(context.now, lpn, false);
            }
        }
    }

    /// Gives up all replicas on a plane that has run out of space; whether there were any.
    pub(super) fn drop_replicas_on<O: Observer>(&mut self, context: &mut Context<'_, O>, plane: u32) -> bool {
        let here: Vec<Lpn> = self
            .replicas
            .all()
            .filter(|&(_, ppn)| self.planes.plane_of(ppn) == plane)
            .map(|(lpn, _)| lpn)
            .collect();
        for &lpn in &here {
            if let Some(ppn) = self.replicas.remove(lpn) {
                self.planes.invalidate(ppn);
                context.observer.replica_dropped(context.now, lpn, false);
            }
        }
        !here.is_empty()
    }

    /// Reads that wait at an executor whose collection begins go to replicas, where there are any.
    pub(super) fn redirect_waiting_reads(&mut self, executor: u32) {
        let list = planewise_model::Direction::Read.index();
        let (mut previous, mut index) =
            (super::transaction::NIL, self.executors[executor as usize].waiting[list].head);
        while index != super::transaction::NIL {
            let next = self.transactions[index].next;
            let plane = self.transactions[index].plane;
            match self.place(self.transactions[index].lpn) {
                Some((_, elsewhere)) if self.load.executor_of(elsewhere) != executor => {
                    self.executors[executor as usize].waiting[list]
                        .remove_after(&mut self.transactions, previous);
                    self.load.remove(plane);
                    self.transactions[index].plane = elsewhere;
                    self.enqueue(index);
                }
                _ => previous = index,
            }
            index = next;
        }
    }

    pub(super) fn note_may_collect_ahead(&mut self, executor: u32) {
        if !std::mem::replace(&mut self.may_collect_ahead[executor as usize], true) {
            self.ahead.push_back(executor);
        }
    }

    /// Collects idle chips while the host is at rest.
    fn collect_ahead<O: Observer>(&mut self, context: &mut Context<'_, O>) -> Result<(), SimError> {
        for _ in 0..self.ahead.len() {
            if self.collecting_ahead >= self.most_ahead() {
                break;
            }
            let Some(executor) = self.ahead.pop_front() else { break };
            if !self.is_idle(executor) {
                self.ahead.push_back(executor);
                continue;
            }
            self.may_collect_ahead[executor as usize] = false;
            let best = self
                .load
                .planes_of(executor)
                .filter_map(|plane| {
                    let valid = self.planes.cheapest_victim_valid(plane)?;
                    let share = f64::from(valid) / f64::from(self.geometry.pages_per_block);
                    let worth = self.collector.should_start_ahead(self.plane_state(plane), share);
                    worth.then_some((self.planes.free_pages(plane), plane))
                })
                .min();
            if let Some((_, plane)) = best
                && let Some(victim) = self.planes.pick_victim(plane)
            {
                self.begin_collection(context, executor, plane, victim, Cause::Ahead)?;
                self.collection_step(context, executor)?;
            }
        }
        Ok(())
    }
}
