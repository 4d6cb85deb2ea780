//! Operations and their phases.
//!
//! | operation | phases |
//! |---|---|
//! | read | command on the channel → array → one transfer out per page |
//! | write | command and transfer in of all its pages → array |
//! | erase | command → array |
//! | move (collection) | read → out → in → program; with copyback: command → array; into the buffer: read → out |
//! | background write (from the buffer, or of a replica) | command and transfer in → array |
//! | suspension | the array stops; after the time that takes, reads; then the rest of the array operation |
//!
//! With cache registers (`registers.rs`) a read's transfers out and a write's transfers in have the executor's register for themselves, and
//! the array goes on with the next operation of the same direction meanwhile.
//!
//! Consecutive phases without a decision in between share one event: an idle page write costs a single event, a read two.

mod channel;
mod registers;

pub(super) use channel::Channel;

use super::transaction::{Kind, List, NIL, Transaction};
use super::{Context, Device};
use crate::error::SimError;
use crate::event::Event;
use crate::flash_sched::Waiting;
use crate::ftl::{NONE, Stream};
use crate::gc::Turn;
use crate::gc::buffer::Stream as BufferStream;
use crate::observers::{Cause, Observer, Origin};
use planewise_model::{Direction, Lpn, Ns, Ppn};

/// How far a reordering flash scheduler looks for multi-plane partners.
const PARTNER_SEARCH_MAX: usize = 64;
/// Suspensions of one program or erase, and reads served during them, in all: reads without end must not keep a block from being
/// erased, nor writes behind it from their turn.
const SUSPENSIONS_MAX: u32 = 8;

/// What an executor is doing; ends with its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Command and array read of a group.
    ReadArray,
    /// Transfer out of the group's current page.
    ReadTransfer,
    /// Transfers in of the group's pages, and array program.
    Program,
    /// Collection: command and array read of the page to move.
    MoveRead,
    /// Collection: its transfer to the controller.
    MoveOut,
    /// Collection: its transfer back and program.
    MoveProgram,
    /// Collection: move inside the plane.
    MoveCopyback,
    /// Collection: erase of the victim.
    Erase,
    /// Before a collection: array read of a page for its replica.
    ReplicaRead,
    /// Before a collection: its transfer to the controller.
    ReplicaOut,
    /// Transfer in and program of a page from the buffer, or of a replica.
    Background,
    /// The time that it takes to suspend a program or an erase.
    Suspend,
    /// Read, and kept in the data register: the cache register is not empty yet. Has no event.
    ReadHeld,
    /// Of a cache register: pages to be transferred out, once the next read has been started.
    CacheRead,
    /// Of a cache register: transfer out of the group's current page.
    CacheOut,
    /// Of a cache register: transfers in of the group's pages.
    CacheIn,
    /// Of a cache register: pages that wait for the array to be free. Has no event.
    CacheLoaded,
}

/// A collection under way on an executor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collection {
    pub(super) plane: u32,
    pub(super) victim: u32,
    /// Next page of the victim to look at.
    pub(super) cursor: u32,
    pub(super) moved: u32,
    pub(super) buffered: u32,
    /// Page being moved.
    pub(super) source: Ppn,
    pub(super) began: Ns,
    pub(super) cause: Cause,
    /// Pages to be read for replicas before it begins.
    pub(super) replicate: LikelyReads,
    /// Its way into the valid page buffer, once it has one.
    pub(super) stream: Option<BufferStream>,
}

/// A few pages of a chip that are likely to be read while it is collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct LikelyReads {
    pages: [Lpn; LikelyReads::MOST],
    count: u8,
}

impl LikelyReads {
    /// Each takes 71 us of the chip before its collection begins.
    const MOST: usize = 8;

    pub(super) fn push(&mut self, lpn: Lpn) {
        if usize::from(self.count) < Self::MOST {
            self.pages[usize::from(self.count)] = lpn;
            self.count += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Lpn> {
        self.count = self.count.checked_sub(1)?;
        Some(self.pages[usize::from(self.count)])
    }
}

impl Default for LikelyReads {
    fn default() -> LikelyReads {
        LikelyReads { pages: [Lpn(0); LikelyReads::MOST], count: 0 }
    }
}

/// A page on its way to an idle chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackgroundWrite {
    pub(super) lpn: Lpn,
    /// Where it goes.
    pub(super) to: Ppn,
    pub(super) from: BackgroundSource,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum BackgroundSource {
    /// A slot of the valid page buffer.
    Buffer(u32),
    /// The page that it is a copy of.
    Original(Ppn),
}

/// A program or an erase that a read interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    phase: Phase,
    rest: Ns,
    planes: u32,
}

pub(super) struct Executor {
    pub(super) waiting: [List; 2],
    pub(super) phase: Phase,
    pub(super) kicked: bool,
    /// One of its planes fell below the threshold of collection.
    pub(super) wants_collection: bool,
    /// The plane whose cold data should move for wear levelling.
    pub(super) cold_plane: Option<u32>,
    pub(super) collection: Option<Collection>,
    pub(super) background: Option<BackgroundWrite>,
    pub(super) suspended: Option<Suspended>,
    suspensions: u32,
    /// With cache registers: planes of the operation that observers were told of last and that has not ended for them; 0 for none.
    open: u32,
    /// When a traditional collection, begun with the last one here, would have ended.
    pub(super) released: Ns,
    /// When its event is due: one that comes at another time belongs to an operation that was suspended.
    event_at: Ns,
    /// When the array operation of the phase starts.
    array_from: Ns,
    /// Transactions of the operation, linked; the one in transfer.
    group: u32,
    current: u32,
    pub(super) group_planes: u32,
    channel: u32,
    next_waiter: u32,
    /// What it asked the channel for: the hold, the array time after it, and when.
    hold: Ns,
    then: Ns,
    asked: Ns,
    channel_wait: Ns,
}

impl Executor {
    pub(super) fn new(channel: u32) -> Executor {
        Executor {
            waiting: [List::EMPTY; 2],
            phase: Phase::Idle,
            kicked: false,
            wants_collection: false,
            cold_plane: None,
            collection: None,
            background: None,
            suspended: None,
            suspensions: 0,
            open: 0,
            released: Ns::ZERO,
            event_at: Ns::MAX,
            array_from: Ns::ZERO,
            group: NIL,
            current: NIL,
            group_planes: 0,
            channel,
            next_waiter: NIL,
            hold: Ns::ZERO,
            then: Ns::ZERO,
            asked: Ns::ZERO,
            channel_wait: Ns::ZERO,
        }
    }
}

impl Device {
    /// Lets every executor that may start something do so.
    pub(crate) fn start_operations<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
    ) -> Result<(), SimError> {
        loop {
            self.run_front(context);
            if self.kicks.is_empty() {
                return Ok(());
            }
            // Kicks are served in the order given. Re-routing a read may kick another executor: hence the index.
            let mut index = 0;
            while index < self.kicks.len() {
                let executor = self.kicks[index];
                self.executors[executor as usize].kicked = false;
                if self.executors[executor as usize].phase == Phase::Idle {
                    self.start_next(context, executor)?;
                }
                if self.pipelines {
                    self.run_register(context, executor);
                }
                index += 1;
            }
            self.kicks.clear();
        }
    }

    /// Handles an event of the device.
    #[inline]
    pub(crate) fn handle<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        event: Event,
    ) -> Result<(), SimError> {
        match event {
            Event::Channel(channel) => {
                self.next_in_line(context, channel);
                Ok(())
            }
            Event::Executor(executor) => self.phase_ended(context, executor),
            Event::Link(way) => {
                self.carried(way);
                Ok(())
            }
            Event::Host => {
                self.through_host(context);
                Ok(())
            }
            Event::Processor => {
                self.worked(context);
                Ok(())
            }
        }
    }

    fn phase_ended<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let state = &mut self.executors[executor as usize];
        if state.event_at != context.now {
            return Ok(());
        }
        state.event_at = Ns::MAX;
        match state.phase {
            Phase::Idle | Phase::ReadHeld | Phase::CacheRead | Phase::CacheLoaded => {
                unreachable!("{:?} has no event", state.phase)
            }
            Phase::ReadArray => {
                state.current = state.group;
                if self.advanced.cache_read {
                    self.read_into_register(context, executor);
                } else {
                    self.transfer_out(context, executor);
                }
            }
            Phase::ReadTransfer => {
                let current = state.current;
                let next = self.transactions[current].next;
                self.finish_transaction(context, executor, current);
                if next == NIL {
                    self.end_operation(context, executor);
                } else {
                    self.executors[executor as usize].current = next;
                    self.transfer_out(context, executor);
                }
            }
            Phase::Program => {
                let mut index = state.group;
                while index != NIL {
                    let next = self.transactions[index].next;
                    self.finish_transaction(context, executor, index);
                    index = next;
                }
                self.end_operation(context, executor);
                self.kick_waiting_erases();
                if self.advanced.cache_program {
                    self.program_loaded(context, executor);
                }
            }
            Phase::CacheOut => self.page_out_of_register(context, executor),
            Phase::CacheIn => self.register_loaded(context, executor),
            Phase::Background => self.background_write_ended(context, executor),
            Phase::Suspend => self.end_operation(context, executor),
            Phase::MoveRead
            | Phase::MoveOut
            | Phase::MoveProgram
            | Phase::MoveCopyback
            | Phase::Erase
            | Phase::ReplicaRead
            | Phase::ReplicaOut => {
                return self.collection_phase_ended(context, executor);
            }
        }
        Ok(())
    }

    /// Ends an operation of the executor and looks for the next one once all events of this instant are in.
    pub(super) fn end_operation<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let state = &mut self.executors[executor as usize];
        state.phase = Phase::Idle;
        if state.suspended.is_none() {
            state.suspensions = 0;
        }
        state.open = 0;
        context.observer.operation_end(context.now, executor, state.group_planes);
        self.kick(executor);
    }

    /// Starts the next operation of an idle executor, if there is one.
    fn start_next<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        if self.relocates {
            self.serve_waiting(context, executor);
        }
        if self.pipelines && self.register_is_in_use(executor) {
            return self.continue_reads(context, executor);
        }
        let state = &self.executors[executor as usize];
        if state.suspended.is_some() {
            if state.waiting[Direction::Read.index()].is_empty() || state.suspensions >= SUSPENSIONS_MAX {
                self.resume(context, executor);
                return Ok(());
            }
            self.executors[executor as usize].suspensions += 1;
            return self.start_read(context, executor);
        }
        let host_waits = !state.waiting[0].is_empty() || !state.waiting[1].is_empty();
        if let Some(collection) = state.collection {
            let plane = self.plane_state(collection.plane);
            self.load.hold(executor, self.collector.holds_chip(plane));
            if !host_waits || self.collector.turn(plane, self.choose(executor)) == Turn::Collection {
                return self.collection_step(context, executor);
            }
        } else if state.wants_collection && self.begin_wanted_collection(context, executor)? {
            return self.collection_step(context, executor);
        }
        if host_waits {
            let direction = self.choose(executor);
            match direction {
                Direction::Read => self.start_read(context, executor)?,
                Direction::Write => self.start_write(context, executor)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn choose(&self, executor: u32) -> Direction {
        let [reads, writes] = &self.executors[executor as usize].waiting;
        if writes.is_empty() {
            return Direction::Read;
        }
        if reads.is_empty() {
            return Direction::Write;
        }
        let sequence = |list: &List| Some(self.transactions[list.head].sequence);
        let planes = if self.flash_scheduler.counts_planes {
            [self.planes_waited_for(reads), self.planes_waited_for(writes)]
        } else {
            [0; 2]
        };
        let waiting = Waiting { oldest_read: sequence(reads), oldest_write: sequence(writes), planes };
        (self.flash_scheduler.choose)(&waiting)
    }

    fn planes_waited_for(&self, list: &List) -> u32 {
        let mut planes = 0u64;
        let mut index = list.head;
        for _ in 0..PARTNER_SEARCH_MAX {
            if index == NIL {
                break;
            }
            planes |= 1 << (self.transactions[index].plane % self.geometry.planes_per_die % 64);
            index = self.transactions[index].next;
        }
        planes.count_ones()
    }

    fn start_read<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let list = Direction::Read.index();
        let Some(first) = self.executors[executor as usize].waiting[list].pop_front(&self.transactions)
        else {
            return Ok(());
        };
        let Some(ppn) = self.source_of(first) else {
            self.load.remove(self.transactions[first].plane);
            let lpn = self.transactions[first].lpn;
            if let Some((_, plane)) = self.place(lpn) {
                // The page moved while the read waited: follow it.
                self.transactions[first].plane = plane;
                self.enqueue(first);
                let Transaction { slot, kind, .. } = self.transactions[first];
                if kind.is_host() {
                    let executor = self.load.executor_of(plane);
                    self.note_meeting(context, slot, executor);
                    self.suspend_for_read(context, executor);
                }
            } else if self.transactions[first].kind == Kind::ReadAhead {
                self.read_ahead_elsewhere(context, first);
            } else {
                // The rest of a page to be written in part: it is in the buffer, on its way back to flash, and needs no read.
                let kind = self.transactions[first].kind.after_read();
                let plane = self.allocate(lpn);
                let write = &mut self.transactions[first];
                (write.kind, write.plane, write.sectors) = (kind, plane, self.sectors_per_page);
                self.enqueue(first);
            }
            self.kick(executor);
            return Ok(());
        };
        let offset = self.planes.offset_of(ppn);
        self.transactions[first].next = NIL;
        let planes = self.gather(executor, Direction::Read, first, offset);
        self.begin(context, executor, (first, planes));
        let mut index = first;
        while index != NIL {
            let transaction = self.transactions[index];
            // A primed device has no page of its own for what nobody wrote.
            let unwritten = self.mapping.physical(transaction.lpn) == NONE;
            let ppn = if unwritten { Ppn(NONE) } else { self.source_of(index).expect("it was gathered") };
            let modify = transaction.kind == Kind::ReadForWrite;
            if !unwritten && self.mapping.readable(transaction.lpn) != ppn.0 {
                context.observer.replica_read(context.now, transaction.lpn);
            }
            if transaction.kind.is_host() {
                // What the write buffer has of the page goes over what comes from flash.
                let from = match self.front.active && !modify {
                    true => self.in_write_buffer(transaction.lpn).unwrap_or(ppn),
                    false => ppn,
                };
                context.observer.page_read(context.now, transaction.slot, transaction.lpn, from, modify);
            } else if transaction.kind == Kind::ReadAhead {
                self.note_read_ahead(context, index, ppn);
            }
            index = transaction.next;
        }
        let command = Ns(self.timing.command_ns * u64::from(planes));
        let array = self.variation.of(self.timing.read_ns.of_page(offset.1));
        self.ask_channel(context, executor, Phase::ReadArray, command, array);
        Ok(())
    }

    /// The page that a waiting read finds on its plane: its own, or a replica. None when there is none any more.
    fn source_of(&self, index: u32) -> Option<Ppn> {
        let transaction = &self.transactions[index];
        let ppn = self.mapping.readable(transaction.lpn);
        if ppn < self.flash_pages()
            && (self.redirects_reads || self.planes.plane_of(Ppn(ppn)) == transaction.plane)
        {
            return Some(Ppn(ppn));
        }
        self.replicas
            .find(transaction.lpn)
            .filter(|&replica| self.planes.plane_of(replica) == transaction.plane)
    }

    fn start_write<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let list = Direction::Write.index();
        let first = self.executors[executor as usize].waiting[list].head;
        let plane = self.transactions[first].plane;
        if !self.can_program(plane) {
            // No page left but those kept for collection: collect now, whatever the scheme's threshold says.
            if self.executors[executor as usize].collection.is_some() {
                return self.collection_step(context, executor);
            }
            if let Some(victim) = self.planes.pick_victim(plane) {
                self.begin_collection(context, executor, plane, victim, Cause::Space)?;
                if self.collector.takes_time() {
                    return self.collection_step(context, executor);
                }
                self.kick(executor);
                return Ok(());
            }
            if self.drop_replicas_on(context, plane) {
                // They were all that stood in the way of a victim.
                self.kick(executor);
                return Ok(());
            }
            if self.plane_with_room().is_none()
                && (0..self.geometry.planes())
                    .fold(false, |any, plane| any | self.drop_replicas_on(context, plane))
            {
                self.kick(executor);
                return Ok(());
            }
            let Some(other) = self.plane_with_room() else {
                return Err(self.space_exhausted(context.now, plane));
            };
            self.executors[executor as usize].waiting[list].pop_front(&self.transactions);
            self.load.remove(plane);
            self.transactions[first].plane = other;
            self.enqueue(first);
            self.kick(executor);
            return Ok(());
        }
        let (group, page) = self.gather_writes(executor);
        if self.advanced.cache_program {
            self.load_register(context, executor, group);
            return Ok(());
        }
        self.begin(context, executor, group);
        self.map_writes(context, executor, group.0);
        let hold = self.transfer_in(group);
        let program = self.variation.of(self.timing.program_ns.of_page(page));
        self.ask_channel(context, executor, Phase::Program, hold, program);
        Ok(())
    }

    /// Takes the write that has waited longest, and those that can run with it, out of the line: the first and how many, and which page of
    /// a block they go to.
    #[inline(always)]
    fn gather_writes(&mut self, executor: u32) -> ((u32, u32), u32) {
        let list = &mut self.executors[executor as usize].waiting[Direction::Write.index()];
        let first = list.pop_front(&self.transactions).expect("a write waits");
        let plane = self.transactions[first].plane;
        let offset = self.planes.write_pointer(plane, Stream::Host).expect("can_program found a page");
        self.transactions[first].next = NIL;
        ((first, self.gather(executor, Direction::Write, first, offset)), offset.1)
    }

    /// Channel time of a write's commands and transfers: the planes' registers are loaded back to back, as a controller does not let go of
    /// the channel in between.
    fn transfer_in(&self, (_, planes): (u32, u32)) -> Ns {
        Ns((self.timing.command_ns + self.page_transfer.0) * u64::from(planes))
    }

    /// Gives the pages of a group their places.
    #[inline(always)]
    fn map_writes<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, first: u32) {
        let mut index = first;
        while index != NIL {
            let transaction = self.transactions[index];
            let ppn = self.planes.program(transaction.plane, Stream::Host).expect("can_program found a page");
            let old = self.mapping.map(transaction.lpn, ppn);
            // A slot of the buffer that is being written back frees itself when that is through.
            if old < self.flash_pages() {
                self.planes.invalidate(Ppn(old));
            }
            self.transactions[index].old = old;
            let origin = match transaction.kind {
                Kind::WriteBack => Origin::WriteBuffer { from: self.page_of_write_slot(transaction.slot.0) },
                _ => Origin::Host(transaction.slot),
            };
            context.observer.page_program(context.now, origin, transaction.lpn, ppn);
            if self.front.active {
                self.forget_read_ahead(transaction.lpn);
            }
            if self.keeps_replicas {
                self.replicas.no_longer_wanted(transaction.lpn);
                if let Some(replica) = self.replicas.remove(transaction.lpn) {
                    self.planes.invalidate(replica);
                    context.observer.replica_dropped(context.now, transaction.lpn, true);
                }
            }
            self.host_pages_written += 1;
            self.note_space_used(executor, transaction.plane);
            index = transaction.next;
        }
    }

    /// Whether the host may program a page of the plane. The last free block is kept for collection; while one is under way
    /// there, it may have opened that block, and its valid pages must still fit.
    pub(super) fn can_program(&self, plane: u32) -> bool {
        let executor = &self.executors[self.load.executor_of(plane) as usize];
        match executor.collection {
            Some(collection) if collection.plane == plane => {
                let pages = self.geometry.pages_per_block;
                self.planes.free_pages(plane) > self.planes.valid_in(plane, collection.victim).max(pages)
            }
            _ => !self.planes.active_is_full(plane) || self.planes.free_blocks(plane) > 1,
        }
    }

    /// The emptiest plane that can take a page of a write whose own plane is full of valid data; none where pages stay put.
    fn plane_with_room(&self) -> Option<u32> {
        let most = self.planes.most_valid();
        (0..self.geometry.planes())
            .filter(|_| !self.static_allocation)
            .min_by_key(|&plane| self.planes.valid_total(plane))
            .filter(|&plane| self.planes.valid_total(plane) <= most)
    }

    /// Links to `first` the waiting transactions that can run with it as one multi-plane operation; returns their number.
    fn gather(&mut self, executor: u32, direction: Direction, first: u32, offset: (u32, u32)) -> u32 {
        let mut count = 1;
        if !self.advanced.multi_plane || self.geometry.planes_per_die == 1 {
            return count;
        }
        // With dies that do not interleave, an executor spans several: partners must be of the same die.
        let die = self.transactions[first].plane / self.geometry.planes_per_die;
        let mut taken = 1u64 << (self.transactions[first].plane % self.geometry.planes_per_die % 64);
        let (mut last, mut previous) = (first, NIL);
        let mut index = self.executors[executor as usize].waiting[direction.index()].head;
        let other = self.executors[executor as usize].waiting[1 - direction.index()].head;
        let limit = if other == NIL { u64::MAX } else { self.transactions[other].sequence };
        for _ in 0..PARTNER_SEARCH_MAX {
            if index == NIL || count == self.geometry.planes_per_die {
                break;
            }
            let candidate = self.transactions[index];
            let plane_bit = 1u64 << (candidate.plane % self.geometry.planes_per_die % 64);
            let fits = candidate.plane / self.geometry.planes_per_die == die
                && taken & plane_bit == 0
                && self.fits_offset(direction, index, offset);
            if fits && (self.flash_scheduler.reorders || candidate.sequence < limit) {
                let list = &mut self.executors[executor as usize].waiting[direction.index()];
                list.remove_after(&mut self.transactions, previous);
                self.transactions[last].next = index;
                self.transactions[index].next = NIL;
                last = index;
                taken |= plane_bit;
                count += 1;
            } else if self.flash_scheduler.reorders {
                previous = index;
            } else {
                break;
            }
            index = candidate.next;
        }
        count
    }

    /// Whether a waiting transaction goes to the page offset that a multi-plane operation needs.
    fn fits_offset(&mut self, direction: Direction, index: u32, offset: (u32, u32)) -> bool {
        let plane = self.transactions[index].plane;
        let found = match direction {
            Direction::Read => {
                let Some(ppn) = self.source_of(index) else { return false };
                self.planes.offset_of(ppn)
            }
            Direction::Write => {
                if !self.can_program(plane) || (self.relocates && self.absorbs(self.transactions[index].lpn))
                {
                    return false;
                }
                self.planes.write_pointer(plane, Stream::Host).expect("can_program found a page")
            }
        };
        found.1 == offset.1 && (found.0 == offset.0 || !self.advanced.multi_plane_same_block)
    }

    /// Makes a group the executor's operation.
    fn begin<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        (group, planes): (u32, u32),
    ) {
        self.take_group(context.now, executor, (group, planes));
        if self.pipelines {
            self.close_operation(context, executor);
            self.executors[executor as usize].open = planes;
        }
        context.observer.operation_start(context.now, executor, planes);
    }

    /// Gives an executor, or its cache register, a group: its transactions have waited long enough.
    #[inline]
    fn take_group(&mut self, now: Ns, taker: u32, (group, planes): (u32, u32)) {
        let state = &mut self.executors[taker as usize];
        state.group = group;
        state.group_planes = planes;
        state.channel_wait = Ns::ZERO;
        let mut index = group;
        while index != NIL {
            let transaction = &self.transactions[index];
            if transaction.kind.is_host() {
                let progress = &mut self.progress[transaction.slot.index()];
                progress.die_wait = progress.die_wait.max(now - transaction.queued);
            }
            index = transaction.next;
        }
    }

    fn transfer_out<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let sectors = self.transactions[self.executors[executor as usize].current].sectors;
        let hold = self.timing.transfer(sectors * 512);
        self.ask_channel(context, executor, Phase::ReadTransfer, hold, Ns::ZERO);
    }

    /// A read of the host came for an executor that is at work for itself: suspends that, if the scheme does such things.
    pub(super) fn suspend_for_read<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        if !self.suspends {
            return;
        }
        let state = &mut self.executors[executor as usize];
        if !matches!(state.phase, Phase::MoveProgram | Phase::Erase | Phase::Background)
            || state.suspensions >= SUSPENSIONS_MAX
            || context.now < state.array_from
            || state.event_at == Ns::MAX
        {
            return;
        }
        let rest = state.event_at - context.now;
        // Nothing is won by stopping what is about to end.
        if rest <= self.suspend + self.suspend {
            return;
        }
        state.suspended = Some(Suspended { phase: state.phase, rest, planes: state.group_planes });
        state.suspensions += 1;
        state.phase = Phase::Suspend;
        state.event_at = context.now + self.suspend;
        context.observer.array_suspended(context.now, executor, rest);
        context.events.schedule(state.event_at, Event::Executor(executor));
    }

    /// Goes on with what a read interrupted.
    fn resume<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let state = &mut self.executors[executor as usize];
        let Some(suspended) = state.suspended.take() else { return };
        state.group_planes = suspended.planes;
        context.observer.operation_start(context.now, executor, suspended.planes);
        self.ask_channel(context, executor, suspended.phase, Ns::ZERO, self.suspend + suspended.rest);
    }

    /// Victims whose erase waited for a program may be free of such pages now.
    fn kick_waiting_erases(&mut self) {
        while let Some(executor) = self.erases_waiting.pop() {
            self.kick(executor);
        }
    }

    /// Whether a host program under way replaces a page of these: until it is through, the old page is the only one there is.
    pub(super) fn is_being_replaced(&self, pages: std::ops::Range<u32>) -> bool {
        self.executors.iter().filter(|state| state.phase == Phase::Program).any(|state| {
            let mut index = state.group;
            while index != NIL {
                if pages.contains(&self.transactions[index].old) {
                    return true;
                }
                index = self.transactions[index].next;
            }
            false
        })
    }

    /// The page that a host program under way replaces is now elsewhere.
    pub(super) fn replaced_page_moved(&mut self, from: u32, to: u32) {
        for executor in 0..self.executors.len() {
            if self.executors[executor].phase == Phase::Program {
                let mut index = self.executors[executor].group;
                while index != NIL {
                    if self.transactions[index].old == from {
                        self.transactions[index].old = to;
                    }
                    index = self.transactions[index].next;
                }
            }
        }
    }

    /// A transaction is through: its request may be complete, or it goes on as a write.
    fn finish_transaction<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, index: u32) {
        let transaction = self.transactions[index];
        if transaction.kind.is_host() {
            let progress = &mut self.progress[transaction.slot.index()];
            progress.channel_wait = progress.channel_wait.max(self.executors[executor as usize].channel_wait);
        }
        self.load.remove(transaction.plane);
        match transaction.kind {
            Kind::Read | Kind::Write => self.close_transaction(index),
            Kind::ReadForWrite | Kind::ReadForWriteBack => self.go_on_as_write(context, index),
            Kind::ReadAhead => self.read_ahead_ended(context, index),
            Kind::WriteBack => self.write_back_ended(index),
        }
    }

    /// The rest of a page to be written in part has been read.
    fn go_on_as_write<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let plane = self.allocate(self.transactions[index].lpn);
        let write = &mut self.transactions[index];
        write.kind = write.kind.after_read();
        write.plane = plane;
        write.queued = context.now;
        let executor = self.load.add(plane);
        // It keeps its place: the write goes before those that came after the request it belongs to.
        self.executors[executor as usize].waiting[Direction::Write.index()]
            .push_front(&mut self.transactions, index);
        self.kick(executor);
    }

    /// Forgets a transaction; its request is complete with its last one.
    pub(super) fn close_transaction(&mut self, index: u32) {
        let slot = self.transactions[index].slot;
        if self.front.active {
            self.leave_list(index);
        }
        self.transactions.remove(index);
        self.page_done(slot);
    }
}
