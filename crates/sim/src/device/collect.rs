//! The mechanics of garbage collection: one victim, its valid pages one by one, the erase.
//!
//! Pages stay in their plane. Whether host transactions run in between is the scheme's decision (`gc/`), asked after every step.

use super::execute::{Collection, Phase};
use super::{Context, Device};
use crate::error::SimError;
use crate::ftl::{NONE, Stream};
use crate::observers::{Observer, Origin};
use planewise_model::{Ns, Ppn};

impl Device {
    /// Starts the collections that idle executors want, before the interface is asked what it takes: a unit about to be
    /// collected is not free.
    pub(crate) fn begin_wanted_collections(&mut self) {
        for index in 0..self.kicks.len() {
            let executor = self.kicks[index];
            let state = &self.executors[executor as usize];
            if state.wants_collection && state.phase == Phase::Idle && state.collection.is_none() {
                self.begin_wanted_collection(executor);
            }
        }
    }

    /// Starts a collection on the first plane of the executor that the scheme wants collected and that has a victim.
    pub(super) fn begin_wanted_collection(&mut self, executor: u32) -> bool {
        self.executors[executor as usize].wants_collection = false;
        self.load.planes_of(executor).any(|plane| {
            self.collector.should_start(self.plane_state(plane)) && self.begin_collection(executor, plane)
        })
    }

    /// Picks a victim on a plane; false when no block holds an invalid page.
    pub(super) fn begin_collection(&mut self, executor: u32, plane: u32) -> bool {
        let Some(victim) = self.planes.pick_victim(plane) else { return false };
        self.load.begin_collection(executor);
        self.executors[executor as usize].collection =
            Some(Collection { plane, victim, cursor: 0, moved: 0, source: Ppn(NONE) });
        true
    }

    /// Starts the next step: moves the next valid page, or erases the victim.
    pub(super) fn collection_step<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let mut collection = self.collection(executor);
        let first = self.planes.first_page(collection.plane, collection.victim);
        let pages = self.geometry.pages_per_block;
        let next =
            (collection.cursor..pages).find(|&page| self.mapping.valid_owner(Ppn(first.0 + page)).is_some());
        self.executors[executor as usize].group_planes = 1;
        context.observer.operation_start(context.now, executor, 1);
        let command = Ns(self.timing.command_ns);
        let Some(page) = next else {
            collection.cursor = pages;
            self.executors[executor as usize].collection = Some(collection);
            self.ask_channel(context, executor, Phase::Erase, command, Ns(self.timing.erase_ns));
            return Ok(());
        };
        collection.cursor = page + 1;
        collection.source = Ppn(first.0 + page);
        self.executors[executor as usize].collection = Some(collection);
        let read = self.timing.read_ns.of_page(page);
        if self.copyback_fits(collection.plane, page) {
            let program = self.remap(context, executor)?;
            self.ask_channel(context, executor, Phase::MoveCopyback, command, read + program);
        } else {
            self.ask_channel(context, executor, Phase::MoveRead, command, read);
        }
        Ok(())
    }

    /// Whether the plane's next page can take a page without its leaving the plane.
    fn copyback_fits(&mut self, plane: u32, page: u32) -> bool {
        let target = self.planes.write_pointer(plane, Stream::Collection);
        self.advanced.copyback
            && (!self.advanced.copyback_same_parity || target.is_some_and(|(_, to)| to % 2 == page % 2))
    }

    /// Gives the page being moved its new place; returns the time to program it there.
    fn remap<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) -> Result<Ns, SimError> {
        let mut collection = self.collection(executor);
        let lpn = self.mapping.valid_owner(collection.source).expect("checked by the caller");
        let Some(ppn) = self.planes.program(collection.plane, Stream::Collection) else {
            return Err(self.space_exhausted(context.now, collection.plane));
        };
        self.mapping.map(lpn, ppn);
        self.planes.invalidate(collection.source);
        collection.moved += 1;
        self.executors[executor as usize].collection = Some(collection);
        context.observer.page_program(context.now, Origin::Collection { from: collection.source }, lpn, ppn);
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
                let transfer = self.page_transfer;
                self.ask_channel(context, executor, Phase::MoveOut, transfer, Ns::ZERO);
            }
            Phase::MoveOut if self.mapping.valid_owner(collection.source).is_some() => {
                let program = self.remap(context, executor)?;
                let hold = Ns(self.timing.command_ns) + self.page_transfer;
                self.ask_channel(context, executor, Phase::MoveProgram, hold, program);
            }
            Phase::Erase => self.finish_collection(context, executor, collection),
            // Moved, or overwritten by the host while it was on its way: nothing left to program.
            _ => self.end_operation(context, executor),
        }
        Ok(())
    }

    fn finish_collection<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        done: Collection,
    ) {
        self.planes.erase(done.plane, done.victim);
        let block = done.plane * self.geometry.blocks_per_plane + done.victim;
        context.observer.block_erase(context.now, block);
        context.observer.collected(context.now, done.plane, done.moved);
        self.executors[executor as usize].collection = None;
        self.load.end_collection(executor);
        self.end_operation(context, executor);
    }

    fn collection(&self, executor: u32) -> Collection {
        self.executors[executor as usize].collection.expect("a collection is under way")
    }
}
