//! Cache registers: transfers of one operation beside the array's work on the next.
//!
//! A plane has a data register, which the array reads into and programs from, and a cache register, which the channel reads and writes.
//! Reads: when the array is through and the cache register is empty, the pages move there; the array is given the next read, whose
//! command goes first on the channel, and the transfers out follow. Writes: the next pages are transferred in while the array programs the
//! last. Both only in one direction: reads wait until the registers have no page to be programmed, and the other way round; so does everything
//! that is not a read or a write of the host.
//!
//! The cache register of executor `e` is entry `executors + e` of the device's table of executors: it asks for the channel and has its
//! event as an executor does. To observers it is part of its executor, whose operation lasts from its first command to the end of its last
//! transfer, or to the start of the next operation if that is earlier.

use super::Phase;
use crate::device::transaction::NIL;
use crate::device::{Context, Device};
use crate::ftl::Stream;
use crate::observers::Observer;
use planewise_model::{Direction, Ns};

impl Device {
    /// The cache register of an executor.
    #[inline]
    fn register_of(&self, executor: u32) -> u32 {
        self.executor_count + executor
    }

    /// The executor that a cache register belongs to, or the executor itself.
    #[inline]
    pub(super) fn owner_of(&self, either: u32) -> u32 {
        if either < self.executor_count { either } else { either - self.executor_count }
    }

    /// Whether the cache register of an executor holds pages, or takes some in.
    #[inline]
    pub(in crate::device) fn register_is_in_use(&self, executor: u32) -> bool {
        self.executors[self.register_of(executor) as usize].phase != Phase::Idle
    }

    /// Ends an executor's operation for the observers, if one is open.
    pub(super) fn close_operation<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let planes = std::mem::take(&mut self.executors[executor as usize].open);
        if planes > 0 {
            context.observer.operation_end(context.now, executor, planes);
        }
    }

    /// Starts what the register can do beside the array: the transfer out of what was read, the transfer in of what is written next.
    pub(super) fn run_register<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let register = self.register_of(executor);
        match self.executors[register as usize].phase {
            Phase::CacheRead => self.page_to_channel(context, register),
            Phase::Idle if self.advanced.cache_program => self.load_next(context, executor),
            _ => {}
        }
    }

    /// Whether an executor has nothing to do but the requests of the host.
    fn serves_host_only(&self, executor: u32) -> bool {
        let state = &self.executors[executor as usize];
        state.collection.is_none() && !state.wants_collection && state.suspended.is_none()
    }

    /// The array is idle, the cache register is not: reads may follow reads, all else waits.
    pub(super) fn continue_reads<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), crate::error::SimError> {
        let reads = matches!(
            self.executors[self.register_of(executor) as usize].phase,
            Phase::CacheRead | Phase::CacheOut
        );
        let waits = !self.executors[executor as usize].waiting[Direction::Read.index()].is_empty();
        if reads && waits && self.serves_host_only(executor) && self.choose(executor) == Direction::Read {
            return self.start_read(context, executor);
        }
        Ok(())
    }

    /// The array has read a group: it goes on to the cache register, as soon as that is empty.
    pub(super) fn read_into_register<O: Observer>(&mut self, _context: &mut Context<'_, O>, executor: u32) {
        let register = self.register_of(executor);
        if self.executors[register as usize].phase != Phase::Idle {
            self.executors[executor as usize].phase = Phase::ReadHeld;
            return;
        }
        self.executors[executor as usize].phase = Phase::Idle;
        self.move_group(executor, register, Phase::CacheRead);
        self.kick(executor);
    }

    fn move_group(&mut self, from: u32, to: u32, phase: Phase) {
        let source = &self.executors[from as usize];
        let (group, planes, wait) = (source.group, source.group_planes, source.channel_wait);
        let target = &mut self.executors[to as usize];
        (target.phase, target.group, target.current) = (phase, group, group);
        (target.group_planes, target.channel_wait) = (planes, wait);
    }

    fn page_to_channel<O: Observer>(&mut self, context: &mut Context<'_, O>, register: u32) {
        let sectors = self.transactions[self.executors[register as usize].current].sectors;
        let hold = self.timing.transfer(sectors * 512);
        self.ask_channel(context, register, Phase::CacheOut, hold, Ns::ZERO);
    }

    /// A page of the cache register has been transferred out.
    pub(super) fn page_out_of_register<O: Observer>(&mut self, context: &mut Context<'_, O>, register: u32) {
        let current = self.executors[register as usize].current;
        let next = self.transactions[current].next;
        self.finish_transaction(context, register, current);
        if next != NIL {
            self.executors[register as usize].current = next;
            self.page_to_channel(context, register);
            return;
        }
        self.executors[register as usize].phase = Phase::Idle;
        let executor = self.owner_of(register);
        match self.executors[executor as usize].phase {
            Phase::ReadHeld => self.read_into_register(context, executor),
            Phase::Idle => {
                self.close_operation(context, executor);
                self.kick(executor);
            }
            _ => {}
        }
    }

    /// Loads the next write of an executor whose array is programming one.
    fn load_next<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        if self.executors[executor as usize].phase != Phase::Program || !self.serves_host_only(executor) {
            return;
        }
        if self.relocates {
            self.serve_waiting(context, executor);
        }
        let head = self.executors[executor as usize].waiting[Direction::Write.index()].head;
        if head != NIL
            && self.choose(executor) == Direction::Write
            && self.can_program(self.transactions[head].plane)
        {
            let plane = self.transactions[head].plane;
            let (group, offset) = self.gather_writes(executor);
            let (hold, _) = self.program_cost(plane, offset, group.1);
            self.load_register(context, executor, group, hold);
        }
    }

    /// Transfers a group of writes into the cache register.
    pub(super) fn load_register<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        group: (u32, u32),
        hold: Ns,
    ) {
        let register = self.register_of(executor);
        self.take_group(context.now, register, group);
        if self.executors[executor as usize].phase == Phase::Idle {
            self.open_operation(context, executor, group.1);
        }
        self.ask_channel(context, register, Phase::CacheIn, hold, Ns::ZERO);
    }

    fn open_operation<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, planes: u32) {
        self.executors[executor as usize].open = planes;
        context.observer.operation_start(context.now, executor, planes);
    }

    /// The cache register has all its pages.
    pub(super) fn register_loaded<O: Observer>(&mut self, context: &mut Context<'_, O>, register: u32) {
        self.executors[register as usize].phase = Phase::CacheLoaded;
        let executor = self.owner_of(register);
        if self.executors[executor as usize].phase == Phase::Idle {
            self.program_register(context, executor);
        }
    }

    /// A program ended: what was loaded meanwhile, or is being loaded, is the executor's operation now.
    pub(super) fn program_loaded<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let register = &self.executors[self.register_of(executor) as usize];
        let (phase, planes) = (register.phase, register.group_planes);
        if phase != Phase::Idle {
            self.open_operation(context, executor, planes);
        }
        if phase == Phase::CacheLoaded {
            self.program_register(context, executor);
        }
    }

    /// The pages of the cache register move to the data register and are programmed.
    fn program_register<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let register = self.register_of(executor);
        self.executors[register as usize].phase = Phase::Idle;
        self.move_group(register, executor, Phase::Program);
        let group = self.executors[executor as usize].group;
        let plane = self.transactions[group].plane;
        let offset = self.planes.write_pointer(plane, Stream::Host).expect("can_program found a page");
        let (_, program) = self.program_cost(plane, offset, 1);
        let program = self.variation.of(program);
        self.map_writes(context, executor, group);
        self.ask_channel(context, executor, Phase::Program, Ns::ZERO, program);
        self.kick(executor);
    }
}
