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
//!
//! Here is what an executor does next and what the end of each phase means; how operations begin is in `reads.rs`, `writes.rs` and
//! `groups.rs`, who has the channel in `channel.rs`, what a read interrupts in `suspension.rs`.

mod channel;
mod groups;
mod reads;
mod registers;
mod suspension;
mod units;
mod writes;

pub(super) use channel::Channel;
pub(super) use units::Operations;

use super::transaction::{Kind, List, NIL};
use super::{Context, Device};
use crate::error::SimError;
use crate::event::Event;
use crate::flash_sched::Waiting;
use crate::gc::Turn;
use crate::gc::buffer::Stream as BufferStream;
use crate::observers::{Cause, Observer};
use planewise_model::{Direction, Lpn, Ns, Ppn};
use suspension::{SUSPENSIONS_MAX, Suspended};

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
    /// Page being moved, and where it goes inside its plane: until the program ends there, only the source can be read.
    pub(super) source: Ppn,
    pub(super) target: Ppn,
    pub(super) began: Ns,
    pub(super) cause: Cause,
    /// Valid pages of the victim, and free ones of the plane, when it began.
    pub(super) valid: u32,
    pub(super) free: u32,
    /// Pages to be read for replicas before it begins.
    pub(super) replicate: LikelyReads,
    /// Its way into the valid page buffer, once it has one; or there was no slot left, and it has given up.
    pub(super) stream: Option<BufferStream>,
    pub(super) gave_up: bool,
}

/// A few pages of a chip that are likely to be read while it is collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct LikelyReads {
    pages: [Lpn; LikelyReads::MOST],
    count: u8,
    next: u8,
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

    /// Takes the most likely one, which came first.
    pub(super) fn pop(&mut self) -> Option<Lpn> {
        let first = (self.next < self.count).then(|| self.pages[usize::from(self.next)])?;
        self.next += 1;
        Some(first)
    }
}

impl Default for LikelyReads {
    fn default() -> LikelyReads {
        LikelyReads { pages: [Lpn(0); LikelyReads::MOST], count: 0, next: 0 }
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
            self.bind_waiting_writes(context);
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
                self.channel_is_free(context, channel);
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
            Event::Rest => {
                self.fold_at_rest(context);
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

    /// For how long the array of an executor is still at work: not for transfers, nor for what waits for the channel.
    pub(super) fn array_busy_for(&self, executor: u32, now: Ns) -> Ns {
        let state = &self.executors[executor as usize];
        let started = state.event_at != Ns::MAX && state.phase != Phase::Idle && state.array_from <= now;
        if started { state.event_at.saturating_sub(now) } else { Ns::ZERO }
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
            let plane = self.state_of(&collection);
            if collection.cause == Cause::Fold && self.fold_waits(collection.plane) {
                self.load.hold(executor, false);
                return if host_waits { self.start_waiting(context, executor) } else { Ok(()) };
            }
            self.load.hold(executor, self.collector.holds_chip(plane));
            if !host_waits || self.collector.turn(plane, self.choose(executor)) == Turn::Collection {
                return self.collection_step(context, executor);
            }
        } else if state.wants_collection && self.begin_wanted_collection(context, executor)? {
            return self.collection_step(context, executor);
        }
        if host_waits {
            return self.start_waiting(context, executor);
        }
        if self.folds_now()
            && self.executors[executor as usize].collection.is_none()
            && self.begin_fold(context, executor)?
        {
            return self.collection_step(context, executor);
        }
        Ok(())
    }

    /// Starts what waits on an executor and goes first.
    #[inline(always)]
    fn start_waiting<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        match self.choose(executor) {
            Direction::Read => self.start_read(context, executor),
            Direction::Write => self.start_write(context, executor),
        }
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

    /// A transaction is through: its request may be complete, or it goes on as a write.
    fn finish_transaction<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, index: u32) {
        let transaction = self.transactions[index];
        if transaction.kind.is_host() {
            let progress = &mut self.progress[transaction.slot.index()];
            progress.channel_wait = progress.channel_wait.max(self.executors[executor as usize].channel_wait);
        }
        self.load.remove(transaction.plane);
        if self.buffers && transaction.kind.direction() == Direction::Write {
            self.release_replaced(context, &transaction);
        }
        match transaction.kind {
            Kind::Read | Kind::Write => self.close_transaction(index),
            Kind::ReadForWrite | Kind::ReadForWriteBack => self.go_on_as_write(context, index),
            Kind::ReadAhead => self.read_ahead_ended(context, index),
            Kind::WriteBack => self.write_back_ended(context, index),
        }
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
