//! The engine: the host's I/O queue in front of the device, driven from outside.
//!
//! It is a plain value without globals, threads or clocks. Its face is four calls: [`Simulator::submit`] a request at a
//! time, [`Simulator::next_event`], [`Simulator::advance`], and [`Simulator::take_completions`]. Who drives it owns the
//! time: a trace, closed-loop jobs, a wall clock, or a Python session.
//!
//! At each instant, first everything that ends then ends, then what arrives then enters the queue, then the scheduler is
//! asked, then idle dies start: so that requests issued at the same instant can share a multi-plane operation.

use crate::config::RunConfig;
use crate::device::{Context, Device, HostState};
use crate::error::SimError;
use crate::event::EventQueue;
use crate::ftl::Space;
use crate::host::{BlockLayer, DeviceWaits, HostStack, Outside};
use crate::host_sched::Counters;
use crate::observers::{Completion, Observer};
use planewise_model::{Geometry, Ns, Request};

/// A host stack and a device.
pub struct Simulator<O = ()> {
    now: Ns,
    events: EventQueue,
    device: Device,
    stack: HostStack,
    /// Something changed at this instant and nobody acted on it yet.
    unsettled: bool,
    /// Each request that enters the queue runs it, before the next of the same instant enters.
    runs_at_entry: bool,
    /// Working storage.
    begun: Vec<u32>,
    observer: O,
}

/// What a power cut found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCutState {
    /// When.
    pub at: Ns,
    /// Requests in the I/O queue, never acknowledged.
    pub pending: u64,
    /// Pages in the valid page buffer, for the capacitor to flush.
    pub buffered_pages: u32,
    /// Time of the flush by formula (1) of the GC paper as printed.
    pub formula: Ns,
    /// Time of the flush with these chips and channels.
    pub flush: Ns,
}

impl<O: Observer> Simulator<O> {
    /// Builds host and device.
    ///
    /// # Errors
    /// Unknown names, options out of range, a condition that the device cannot hold.
    pub fn new(config: &RunConfig, mut observer: O) -> Result<Simulator<O>, SimError> {
        let parts = config.resolve()?;
        let slots = parts.stack.queue().slots();
        let device = Device::new(&parts.profile, parts.advanced, config.condition, slots, config.seed)?;
        observer.start(device.geometry(), device.executors());
        if observer.wants_contents() {
            device.visit_contents(|lpn, ppn| observer.holds(lpn, ppn));
        }
        Ok(Simulator {
            now: Ns::ZERO,
            events: EventQueue::with_capacity((device.executors() + device.geometry().channels) as usize),
            stack: parts.stack,
            unsettled: false,
            runs_at_entry: config.block_layer == BlockLayer::BlkMq,
            begun: Vec::new(),
            device,
            observer,
        })
    }

    /// The current instant.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Whether the I/O queue takes a request, at its arrival or, when that is past, now. While it does not, the request waits
    /// outside, and that wait counts.
    #[inline]
    pub fn has_room(&mut self, request: &Request) -> bool {
        self.stack.has_room(self.now.max(request.arrival), request)
    }

    /// A place for requests that find no room.
    pub fn outside(&self) -> Outside {
        Outside::new(self.stack.queue())
    }

    /// Requests in the I/O queue.
    pub fn pending(&self) -> u32 {
        self.stack.queue().pending()
    }

    /// Requests submitted so far.
    pub fn submitted(&self) -> u64 {
        self.stack.submitted()
    }

    /// First sector past the user capacity.
    pub fn user_sectors(&self) -> u64 {
        self.stack.capacity_sectors()
    }

    /// The device's geometry.
    pub fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    /// What a reader of the results has to know of how the scheduler was set up: one sentence each.
    pub fn scheduler_notes(&self) -> Vec<String> {
        self.stack.scheduler_notes()
    }

    /// The scheduler's counters.
    pub fn scheduler_counters(&self) -> Counters {
        self.stack.scheduler_counters()
    }

    /// Smallest and largest erase count of a block.
    pub fn wear(&self) -> (u32, u32) {
        self.device.wear()
    }

    /// Valid, invalid and free pages now. Takes time in proportion to the planes.
    pub fn space(&self) -> Space {
        self.device.space()
    }

    /// Bytes of device state that grow with its pages and blocks.
    pub fn table_bytes(&self) -> u64 {
        self.device.table_bytes()
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to change.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the simulation and returns its observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Keeps completions for [`Simulator::take_completions`] from now on.
    pub fn keep_completions(&mut self) {
        self.stack.keep_completions();
    }

    /// Moves the completions since the last call to the end of `to`.
    pub fn take_completions(&mut self, to: &mut Vec<Completion>) {
        self.stack.take_completions(to);
    }

    /// When the next thing happens; [`Ns::MAX`] when nothing will until a request is submitted.
    #[inline]
    pub fn next_event(&self) -> Ns {
        if self.unsettled { self.now } else { self.events.next_time().min(self.stack.wake()) }
    }

    /// Puts a request in the I/O queue, at its arrival or, when that is past, now.
    ///
    /// # Errors
    /// An empty request, one past the end of the device, arrivals out of order.
    ///
    /// # Panics
    /// When the queue is full, or something would have happened before the arrival: the driver must advance first.
    pub fn submit(&mut self, request: &Request) -> Result<(), SimError> {
        self.check(request)?;
        if request.arrival > self.now {
            assert!(
                !self.unsettled && self.next_event() >= request.arrival,
                "the driver advances to an arrival before it submits"
            );
            self.now = request.arrival;
        }
        self.enter(request);
        if self.runs_at_entry {
            self.run_at_entry();
        }
        Ok(())
    }

    /// Tells that a request will be submitted soon, so that the processor can fetch what it needs meanwhile. Changes nothing.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        self.device.prefetch(self.stack.pages(request));
    }

    /// Whether the device can take a request at all, as the next one. Drivers ask before they wait for its arrival.
    ///
    /// # Errors
    /// As [`Simulator::submit`].
    pub fn check(&self, request: &Request) -> Result<(), SimError> {
        self.stack.check(request)
    }

    fn enter(&mut self, request: &Request) {
        self.unsettled = true;
        let Simulator { now, events, device, stack, observer, .. } = self;
        stack.enter(*now, request, observer, |observer, slot, queued| {
            // Collections under way are in the way of what arrives.
            if device.can_be_met(*now) && queued.request.is_transfer() {
                device.note_meetings(&mut Context { now: *now, events, observer }, slot, queued);
            }
        });
    }

    /// Lets time pass up to and including `until`. What ends at `until` has ended; what could start then waits for the
    /// requests that may still be submitted at that instant, until the next call.
    ///
    /// # Errors
    /// Free space exhausted, or a scheduler that withholds requests for ever.
    pub fn advance(&mut self, until: Ns) -> Result<(), SimError> {
        loop {
            if self.unsettled {
                self.settle()?;
            }
            let next = self.events.next_time().min(self.stack.wake());
            if next > until || next == Ns::MAX {
                return Ok(());
            }
            self.now = next;
            self.unsettled = true;
            let mut context = Context { now: next, events: &mut self.events, observer: &mut self.observer };
            while let Some(event) = context.events.pop_at(next) {
                self.device.handle(&mut context, event)?;
            }
            self.complete_finished();
            if next == until {
                return Ok(());
            }
        }
    }

    /// Runs until everything submitted is complete, and no further: collections and write-backs may still be under way.
    ///
    /// # Errors
    /// As [`Simulator::advance`].
    pub fn finish_requests(&mut self) -> Result<(), SimError> {
        while self.stack.queue().pending() > 0 {
            match self.next_event() {
                Ns::MAX => return self.stalled(),
                next => self.advance(next)?,
            }
        }
        Ok(())
    }

    /// Runs until everything submitted is complete and the device is at rest.
    ///
    /// # Errors
    /// As [`Simulator::advance`].
    pub fn drain(&mut self) -> Result<(), SimError> {
        self.advance(Ns::MAX)?;
        if self.stack.queue().pending() == 0 { Ok(()) } else { self.stalled() }
    }

    fn stalled(&self) -> Result<(), SimError> {
        Err(SimError::Stalled {
            pending: self.stack.queue().pending() as usize,
            now: self.now,
            scheduler: self.stack.scheduler_name().to_owned(),
        })
    }

    /// Acts on everything that changed at this instant: dispatches requests and starts operations, until nothing more happens now.
    fn settle(&mut self) -> Result<(), SimError> {
        loop {
            self.unsettled = false;
            let mut context =
                Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
            self.device.begin_wanted_collections(&mut context)?;
            self.device.write_back_overdue(&mut context);
            // Those that have been issued have what is free before those that have not.
            self.device.bind_waiting_writes(&mut context);
            if self.stack.take_changed(self.now) | self.device.take_freed() {
                self.dispatch();
            }
            if self.device.has_begun() {
                self.note_begun_collections();
            }
            if self.device.asks_who_is_wanted() {
                self.tell_who_is_wanted();
            }
            let mut context =
                Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
            self.device.start_operations(&mut context)?;
            if self.device.has_background_work() {
                self.start_background_work()?;
            }
            let mut context =
                Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
            self.device.hand_channels_over(&mut context);
            self.complete_finished();
            if !self.unsettled {
                return Ok(());
            }
        }
    }

    fn start_background_work(&mut self) -> Result<(), SimError> {
        let host = match (self.stack.queue().waiting(), self.stack.queue().pending()) {
            (0, 0) => HostState::AtRest,
            (0, _) => HostState::Outstanding,
            _ => HostState::Waiting,
        };
        if host == HostState::Waiting && self.device.writes_back_between(self.now) {
            self.tell_who_is_wanted();
        }
        let mut context = Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
        self.device.start_background_work(&mut context, host)
    }

    /// Collections that begin are in the way of requests that wait already.
    fn note_begun_collections(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        self.device.take_begun(&mut begun);
        let mut context = Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
        for executor in begun.drain(..) {
            self.device.note_waiting_meetings(&mut context, executor);
        }
        if self.stack.queue().waiting() > 0 {
            for (slot, queued) in self.stack.queue().waiting_requests() {
                self.device.note_meetings(&mut context, slot, queued);
            }
        }
        self.begun = begun;
    }

    /// Tells the device which of its chips requests in the I/O queue wait for.
    fn tell_who_is_wanted(&mut self) {
        self.device.clear_wanted();
        if self.stack.queue().waiting() > 0 {
            for (_, queued) in self.stack.queue().waiting_requests() {
                self.device.note_wanted(queued);
            }
        }
    }

    /// A program's next system call comes after the block layer has run the queue (`blk_mq_submit_bio`): what goes at once does not wait for a
    /// neighbour to join.
    #[cold]
    fn run_at_entry(&mut self) {
        let mut context = Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
        self.device.bind_waiting_writes(&mut context);
        self.dispatch();
    }

    #[inline(always)]
    fn dispatch(&mut self) {
        let Simulator { now, events, device, stack, observer, .. } = self;
        loop {
            let Some(slot) = stack.next_issue(*now, &*device, observer) else { return };
            let queued = stack.queue().get(slot);
            let mut context = Context { now: *now, events, observer };
            device.submit(&mut context, slot, &queued.request, queued.pages);
        }
    }

    fn complete_finished(&mut self) {
        for index in 0..self.device.finished.len() {
            let slot = self.device.finished[index];
            self.unsettled = true;
            let progress = self.device.progress(slot);
            let waits = DeviceWaits { die: progress.die_wait, channel: progress.channel_wait };
            self.stack.complete(self.now, slot, waits, &mut self.observer);
        }
        self.device.finished.clear();
    }

    /// Checks the translation layer's tables against one another: every logical page is mapped to at most one physical page
    /// and back, valid counts are what the map says, and free + valid + invalid pages are all pages. Takes time in
    /// proportion to the device.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn audit(&self) -> Result<(), String> {
        self.device.audit()
    }

    /// Cuts the power now: tells the observer what the capacitor flushes, and returns how many pages that are and how long it
    /// takes. Nothing can be simulated after it but the same device anew.
    pub fn cut_power(&mut self) -> PowerCutState {
        let buffered = self.device.buffered_pages();
        self.observer.power_cut(self.now, &buffered);
        let pages = buffered.len() as u32;
        PowerCutState {
            at: self.now,
            pending: u64::from(self.stack.queue().pending()),
            buffered_pages: pages,
            formula: self.device.flush_time(pages).formula,
            flush: self.device.simulated_flush(self.now, pages),
        }
    }

    /// Time to flush a number of buffered pages on power loss: by formula (1) of the GC paper as printed, which rounds down,
    /// and rounding up.
    pub fn flush_time(&self, pages: u32) -> (Ns, Ns) {
        let flush = self.device.flush_time(pages);
        (flush.formula, flush.at_least)
    }

    /// Flash transactions waiting or under way: 0 once everything is complete.
    pub fn transactions_in_flight(&self) -> u32 {
        self.device.transactions_in_flight()
    }
}
