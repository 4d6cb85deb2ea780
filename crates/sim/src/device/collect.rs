//! The mechanics of garbage collection: one victim, its valid pages one by one, the erase.
//!
//! Pages stay in their plane, or leave for the valid page buffer. Whether host transactions run in between, and when a way
//! into the buffer is opened, is the scheme's decision (`gc/`), asked before every step.

use super::execute::{Collection, LikelyReads, Phase};
use super::{Context, Device};
use crate::error::SimError;
use crate::ftl::{NONE, Stream};
use crate::gc::{PlaneState, Progress};
use crate::observers::{Cause, Collected, Observer};
use planewise_model::{Lpn, Ns, Ppn};

impl Device {
    /// Starts the collections that idle executors want, before the interface is asked what it takes: a unit about to be
    /// collected is not free.
    ///
    /// # Errors
    /// Free space exhausted.
    pub(crate) fn begin_wanted_collections<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
    ) -> Result<(), SimError> {
        for index in 0..self.kicks.len() {
            let executor = self.kicks[index];
            let state = &self.executors[executor as usize];
            if !state.wants_collection {
                continue;
            }
            let idle = state.phase == Phase::Idle
                && state.suspended.is_none()
                && !(self.pipelines && self.register_is_in_use(executor));
            if idle && state.collection.is_none() {
                self.begin_wanted_collection(context, executor)?;
            }
        }
        Ok(())
    }

    /// Pages of a plane were used up: it may want to be collected.
    pub(super) fn note_space_used(&mut self, executor: u32, plane: u32) {
        if self.collector.should_start(self.plane_state(plane)) {
            self.executors[executor as usize].wants_collection = true;
        } else if self.collects_ahead {
            self.note_may_collect_ahead(executor);
        }
    }

    /// Starts a collection on the plane of the executor with the fewest free pages, of those that the scheme wants collected and that have
    /// a victim; whether one is under way now.
    pub(super) fn begin_wanted_collection<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<bool, SimError> {
        self.executors[executor as usize].wants_collection = false;
        let mut last = None;
        while let Some((free, plane)) = self.neediest_plane(executor, last) {
            last = Some((free, plane));
            if let Some(victim) = self.planes.pick_victim(plane) {
                self.begin_collection(context, executor, plane, victim, Cause::Space)?;
                return Ok(self.collector.takes_time());
            }
        }
        let Some(plane) = self.executors[executor as usize].cold_plane.take() else { return Ok(false) };
        let Some(cold) = self.planes.pick_cold_block(plane) else { return Ok(false) };
        self.planes.begin_cold_move(plane);
        self.begin_collection(context, executor, plane, cold, Cause::Wear)?;
        Ok(self.collector.takes_time())
    }

    /// The plane of a collection under way, with how far that is.
    pub(super) fn state_of(&self, collection: &Collection) -> PlaneState {
        let &Collection { plane, valid, free, moved, buffered, .. } = collection;
        let state = self.plane_state(plane);
        let progress = Progress {
            host_pages: free.saturating_sub(state.free_pages + moved),
            steps: moved + buffered,
            valid,
            gains: self.geometry.pages_per_block.saturating_sub(valid),
        };
        PlaneState { progress, ..state }
    }

    /// The plane of an executor with the fewest free pages that the scheme wants collected, as `(free pages, plane)`: of those behind `last`,
    /// which had no victim.
    fn neediest_plane(&self, executor: u32, last: Option<(u32, u32)>) -> Option<(u32, u32)> {
        self.load
            .planes_of(executor)
            .filter(|&plane| self.collector.should_start(self.plane_state(plane)))
            .map(|plane| (self.planes.free_pages(plane), plane))
            .filter(|&key| last.is_none_or(|last| key > last))
            .min()
    }

    /// Starts the collection of a block on an idle executor, or carries it out at once where collections take no time.
    pub(super) fn begin_collection<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        plane: u32,
        victim: u32,
        cause: Cause,
    ) -> Result<(), SimError> {
        context.observer.collection_start(context.now, executor, cause);
        let collection = Collection {
            plane,
            victim,
            cursor: 0,
            moved: 0,
            buffered: 0,
            source: Ppn(NONE),
            target: Ppn(NONE),
            began: context.now,
            cause,
            valid: self.planes.valid_in(plane, victim),
            free: self.planes.free_pages(plane),
            replicate: LikelyReads::default(),
            stream: None,
            gave_up: false,
        };
        self.executors[executor as usize].collection = Some(collection);
        let first = self.planes.first_page(plane, victim).0;
        self.drop_replicas_in(context, first);
        if !self.collector.takes_time() {
            return self.collect_at_once(context, executor);
        }
        let cost = self.traditional_cost(plane, victim);
        if self.keeps_replicas {
            // A stream of reads that has rested for longer than the collection takes is not likely to go on during it.
            let likely = self.likely_reads_on(executor, context.now.saturating_sub(cost));
            self.collection_mut(executor).replicate = likely;
        }
        self.collecting += 1;
        self.collecting_ahead += u32::from(cause == Cause::Ahead);
        self.load.begin_collection(executor);
        self.load.hold(executor, self.collector.holds_chip(self.plane_state(plane)));
        let released = context.now + cost;
        self.executors[executor as usize].released = released;
        self.released_until = self.released_until.max(released);
        self.begun.push(executor);
        if self.keeps_replicas {
            self.redirect_waiting_reads(executor);
        }
        Ok(())
    }

    /// How long a traditional collection of the block would hold the chip, if nobody waited for the channel.
    fn traditional_cost(&self, plane: u32, victim: u32) -> Ns {
        let valid = u64::from(self.planes.valid_in(plane, victim));
        let (timing, command) = (&self.timing, self.timing.command_ns);
        let array = timing.read_ns.mean().0 + timing.program_ns.mean().0;
        if self.gathers {
            let layout = &self.operations.layout;
            let reads = valid.min(u64::from(self.geometry.pages_per_block / layout.read_units()));
            let programs = valid.div_ceil(u64::from(layout.program_units()));
            let transfers = (valid + programs * u64::from(layout.program_units())) * self.page_transfer.0;
            let arrays = reads * timing.read_ns.mean().0 + programs * timing.program_ns.mean().0;
            return Ns((reads + programs + 1) * command + arrays + transfers + timing.erase_ns);
        }
        Ns(valid * (2 * command + array + 2 * self.page_transfer.0) + command + timing.erase_ns)
    }

    fn collect_at_once<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let plane = self.collection(executor).plane;
        let mut last = None;
        while let Some((page, _)) = self.next_valid_page(executor) {
            last = Some(self.move_page(context, executor, plane, page)?);
        }
        if let Some(last) = last.filter(|_| self.is_apart) {
            self.end_programs(context, plane, last);
        }
        let done = self.collection(executor);
        self.reclaim_victim(context, executor);
        self.after_collection(executor, &done);
        self.kick(executor);
        Ok(())
    }

    /// The next valid page of the victim.
    pub(super) fn next_valid_page(&self, executor: u32) -> Option<(Ppn, u32)> {
        let collection = self.collection(executor);
        let first = self.planes.first_page(collection.plane, collection.victim);
        (collection.cursor..self.geometry.pages_per_block)
            .map(|page| (Ppn(first.0 + page), page))
            .find(|&(ppn, _)| self.mapping.valid_owner(ppn).is_some())
    }

    /// Starts the next step: moves the next valid page, or erases the victim.
    pub(super) fn collection_step<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let command = Ns(self.timing.command_ns);
        while let Some(lpn) = self.collection_mut(executor).replicate.pop() {
            let ppn = Ppn(self.mapping.physical(lpn));
            // The host may have written it elsewhere meanwhile.
            if ppn.0 >= self.flash_pages() || self.load.executor_of(self.planes.plane_of(ppn)) != executor {
                continue;
            }
            self.collection_mut(executor).source = ppn;
            self.start_operation(context, executor);
            let read =
                self.variation.of(self.read_time(self.planes.plane_of(ppn), self.planes.offset_of(ppn)));
            self.ask_channel(context, executor, Phase::ReplicaRead, command, read);
            return Ok(());
        }
        if self.gathers && self.move_units(context, executor)? {
            return Ok(());
        }
        let Some((source, page)) = self.next_valid_page(executor) else {
            self.close_stream(context.now, executor);
            let collection = self.collection_mut(executor);
            collection.cursor = u32::MAX;
            let (plane, victim) = (collection.plane, collection.victim);
            let first = self.planes.first_page(plane, victim).0;
            if self.is_being_replaced(first..first + self.geometry.pages_per_block) {
                self.erases_waiting.push(executor);
                return Ok(());
            }
            self.start_operation(context, executor);
            context.observer.erase_start(context.now, plane * self.geometry.blocks_per_plane + victim);
            let erase = self.variation.of(Ns(self.timing.erase_ns));
            self.ask_channel(context, executor, Phase::Erase, command, erase);
            return Ok(());
        };
        self.open_stream(executor);
        let collection = self.collection_mut(executor);
        (collection.cursor, collection.source) = (page + 1, source);
        let (plane, to_buffer) =
            (collection.plane, collection.stream.is_some_and(|stream| stream.has_room()));
        self.start_operation(context, executor);
        let read = self.read_time(plane, self.planes.offset_of(source));
        if !to_buffer && self.copyback_fits(plane, page) {
            let program = self.remap(context, executor)?;
            let array = self.variation.of(read + program);
            self.ask_channel(context, executor, Phase::MoveCopyback, command, array);
        } else {
            let read = self.variation.of(read);
            self.ask_channel(context, executor, Phase::MoveRead, command, read);
        }
        Ok(())
    }

    pub(super) fn start_operation<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        self.executors[executor as usize].group_planes = 1;
        context.observer.operation_start(context.now, executor, 1);
    }

    /// Whether the plane's next page can take a page without its leaving the plane.
    fn copyback_fits(&mut self, plane: u32, page: u32) -> bool {
        let target = self.planes.write_pointer(plane, Stream::Collection);
        self.advanced.copyback
            && self.operations.cache.is_none()
            && (!self.advanced.copyback_same_parity || target.is_some_and(|(_, to)| to % 2 == page % 2))
    }

    /// Gives the page being moved its new place; returns the time to program it there.
    fn remap<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) -> Result<Ns, SimError> {
        let Collection { plane, source, .. } = self.collection(executor);
        let ppn = self.move_page(context, executor, plane, source)?;
        Ok(self.timing.program_ns.of_page(self.planes.offset_of(ppn).1))
    }

    /// A phase of a step ended.
    pub(super) fn collection_phase_ended<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let collection = self.collection(executor);
        match self.executors[executor as usize].phase {
            Phase::MoveRead => {
                let transfer = self.transfer_of_moved(executor);
                self.ask_channel(context, executor, Phase::MoveOut, transfer, Ns::ZERO);
            }
            Phase::ReplicaRead => {
                let transfer = self.page_transfer;
                self.ask_channel(context, executor, Phase::ReplicaOut, transfer, Ns::ZERO);
            }
            Phase::ReplicaOut => {
                // Unless the host wrote it meanwhile, its data are in the controller now.
                if let Some(lpn) = self.mapping.valid_owner(collection.source) {
                    self.replicas.want(lpn);
                }
                self.end_operation(context, executor);
            }
            Phase::MoveOut if self.gathers => {
                self.gather_moved(executor);
                self.end_operation(context, executor);
            }
            Phase::MoveOut => match self.mapping.valid_owner(collection.source) {
                Some(lpn) if collection.stream.is_some_and(|stream| stream.has_room()) => {
                    self.put_in_buffer(context, executor, lpn);
                    self.end_operation(context, executor);
                }
                Some(_) => {
                    let program = self.remap(context, executor)?;
                    let program = self.variation.of(program);
                    let hold = Ns(self.timing.command_ns) + self.page_transfer;
                    self.ask_channel(context, executor, Phase::MoveProgram, hold, program);
                }
                // Overwritten by the host while it was on its way: nothing left to program.
                None => self.end_operation(context, executor),
            },
            Phase::Erase => {
                let done = self.collection(executor);
                self.reclaim_victim(context, executor);
                self.collecting -= 1;
                self.collecting_ahead -= u32::from(done.cause == Cause::Ahead);
                self.load.end_collection(executor);
                self.after_collection(executor, &done);
                self.end_operation(context, executor);
            }
            _ => self.end_operation(context, executor),
        }
        Ok(())
    }

    /// The victim is erased.
    fn reclaim_victim<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let Collection { plane, victim, cause, began, moved, buffered, .. } = self.collection(executor);
        self.planes.erase(plane, victim);
        context.observer.block_erase(context.now, plane * self.geometry.blocks_per_plane + victim);
        let collected = Collected { plane, cause, began, moved, buffered };
        context.observer.collection_end(context.now, executor, &collected);
        self.executors[executor as usize].collection = None;
    }

    /// What a collection leaves to do on its plane: cold data to move for wear levelling, more to collect ahead.
    fn after_collection(&mut self, executor: u32, done: &Collection) {
        if !matches!(done.cause, Cause::Wear | Cause::Fold)
            && self.planes.pick_cold_block(done.plane).is_some()
        {
            let state = &mut self.executors[executor as usize];
            (state.cold_plane, state.wants_collection) = (Some(done.plane), true);
        }
        if self.collects_ahead {
            self.note_may_collect_ahead(executor);
        }
    }

    pub(super) fn collection(&self, executor: u32) -> Collection {
        self.executors[executor as usize].collection.expect("a collection is under way")
    }

    pub(super) fn collection_mut(&mut self, executor: u32) -> &mut Collection {
        self.executors[executor as usize].collection.as_mut().expect("a collection is under way")
    }

    /// Logical pages that a block was written with last, and where: for what has to be forgotten before it is erased.
    pub(super) fn owners_in(&self, first: u32) -> impl Iterator<Item = (Lpn, Ppn)> {
        (first..first + self.geometry.pages_per_block)
            .map(|ppn| (self.mapping.logical(Ppn(ppn)), Ppn(ppn)))
            .filter(|&(lpn, _)| lpn != NONE)
            .map(|(lpn, ppn)| (Lpn(lpn), ppn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventQueue;
    use crate::ftl::Condition;
    use planewise_model::profile::Profile;

    #[test]
    fn the_plane_with_the_fewest_free_pages_is_collected_and_one_without_a_victim_passed_over() {
        let mut profile = Profile::embedded("gc-64g").unwrap();
        (profile.geometry.channels, profile.geometry.chips_per_channel) = (1, 1);
        (profile.geometry.dies_per_chip, profile.geometry.planes_per_die) = (1, 4);
        (profile.geometry.blocks_per_plane, profile.geometry.pages_per_block) = (16, 4);
        (profile.collection.threshold, profile.collection.floor) = (0.5, 0.0);
        profile.collection.ahead = 0.5;
        let advanced = profile.advanced_commands;
        // By plane: pages written, and of these overwritten.
        let collected = |planes: [(u32, u32); 4]| {
            let mut device = Device::new(&profile, advanced, Condition::Fresh, 32, 1).unwrap();
            for (plane, (written, stale)) in planes.into_iter().enumerate() {
                for page in 0..written {
                    let ppn = device.planes.program(plane as u32, Stream::Host).unwrap();
                    if page < stale {
                        device.planes.invalidate(ppn);
                    } else {
                        device.mapping.map(Lpn(plane as u32 * 50 + page), ppn);
                    }
                }
            }
            device.executors[0].wants_collection = true;
            let (mut events, mut observer) = (EventQueue::with_capacity(16), ());
            let mut context = Context { now: Ns::ZERO, events: &mut events, observer: &mut observer };
            device.begin_wanted_collection(&mut context, 0).unwrap();
            device.executors[0].collection.map(|collection| collection.plane)
        };
        assert_eq!(collected([(36, 8), (40, 8), (44, 8), (40, 8)]), Some(2));
        assert_eq!(collected([(36, 8), (40, 8), (44, 0), (40, 8)]), Some(1), "no victim there");
        assert_eq!(collected([(20, 8), (20, 8), (20, 8), (33, 8)]), Some(3), "the others have room");
        assert_eq!(collected([(20, 8); 4]), None);
    }
}
