//! The engine: the host's I/O queue in front of the device, driven from outside.
//!
//! It is a plain value without globals, threads or clocks. Its face is four calls: [`Simulator::submit`] a request at a
//! time, [`Simulator::next_event`], [`Simulator::advance`], and [`Simulator::take_completions`]. Who drives it owns the
//! time: a trace, closed-loop jobs, a wall clock, or a Python session.
//!
//! At each instant, first everything that ends then ends, then what arrives then enters the queue, then the scheduler is
//! asked, then idle dies start: so that requests issued at the same instant can share a multi-plane operation.

use crate::config::RunConfig;
use crate::device::{Context, Device};
use crate::error::SimError;
use crate::event::EventQueue;
use crate::ftl::Space;
use crate::host::{
    CommandQueue, Conflicts, Gate, HostQueue, Merger, Part, QueuedRequest, Side, Slot, WaitingWrites,
};
use crate::host_sched::{Counters, Decision, Growth, HostScheduler};
use crate::observers::{Completion, Observer};
use planewise_model::location::PageRange;
use planewise_model::{Direction, Geometry, Ns, Request};

/// Latest arrival, 146 years: times after it leave room for the service of billions of requests before the clock overflows.
const LATEST_ARRIVAL: Ns = Ns(1 << 62);

/// A host stack and a device.
pub struct Simulator<O = ()> {
    now: Ns,
    events: EventQueue,
    device: Device,
    queue: HostQueue,
    command_queue: CommandQueue,
    scheduler: Box<dyn HostScheduler>,
    scheduler_name: &'static str,
    /// When requests are merged.
    merger: Option<Merger>,
    conflicts: Conflicts,
    waiting_writes: WaitingWrites,
    /// When the scheduler wants to be asked again.
    wake: Ns,
    /// Something changed at this instant and nobody acted on it yet.
    unsettled: bool,
    /// A request arrived or completed, or the scheduler asked to be woken: it may decide otherwise than before.
    ask_scheduler: bool,
    submitted: u64,
    last_arrival: Ns,
    /// Working storage.
    begun: Vec<u32>,
    completions: Vec<Completion>,
    keep_completions: bool,
    page_bytes: u32,
    user_sectors: u64,
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
        let device =
            Device::new(&parts.profile, parts.advanced, config.condition, config.queue_length, config.seed)?;
        observer.start(device.geometry(), device.executors());
        if observer.wants_contents() {
            device.visit_contents(|lpn, ppn| observer.holds(lpn, ppn));
        }
        Ok(Simulator {
            now: Ns::ZERO,
            events: EventQueue::with_capacity((device.executors() + device.geometry().channels) as usize),
            queue: HostQueue::new(config.queue_length),
            command_queue: parts.command_queue,
            scheduler: parts.scheduler.1,
            merger: Merger::new(config.merging, config.max_sectors_kb * 2, config.queue_length),
            scheduler_name: parts.scheduler.0,
            conflicts: Conflicts::new(parts.true_units),
            waiting_writes: WaitingWrites::default(),
            wake: Ns::MAX,
            unsettled: false,
            ask_scheduler: false,
            submitted: 0,
            last_arrival: Ns::ZERO,
            begun: Vec::new(),
            completions: Vec::new(),
            keep_completions: false,
            page_bytes: device.geometry().page_bytes,
            user_sectors: u64::from(device.user_pages()) * u64::from(device.geometry().sectors_per_page()),
            device,
            observer,
        })
    }

    /// The current instant.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Whether the I/O queue takes another request. While it does not, arrivals wait outside, and that wait counts.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// Requests in the I/O queue.
    pub fn pending(&self) -> u32 {
        self.queue.pending()
    }

    /// Requests submitted so far.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// First sector past the user capacity.
    pub fn user_sectors(&self) -> u64 {
        self.user_sectors
    }

    /// The device's geometry.
    pub fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    /// The scheduler's counters.
    pub fn scheduler_counters(&self) -> Counters {
        self.scheduler.counters()
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
        self.keep_completions = true;
    }

    /// Moves the completions since the last call to the end of `to`.
    pub fn take_completions(&mut self, to: &mut Vec<Completion>) {
        to.append(&mut self.completions);
    }

    /// When the next thing happens; [`Ns::MAX`] when nothing will until a request is submitted.
    #[inline]
    pub fn next_event(&self) -> Ns {
        if self.unsettled { self.now } else { self.events.next_time().min(self.wake) }
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
        self.last_arrival = request.arrival;
        if request.arrival > self.now {
            assert!(
                !self.unsettled && self.next_event() >= request.arrival,
                "the driver advances to an arrival before it submits"
            );
            self.now = request.arrival;
        }
        self.enter(request);
        Ok(())
    }

    /// Tells that a request will be submitted soon, so that the processor can fetch what it needs meanwhile. Changes nothing.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        self.device.prefetch(PageRange::of(request, self.page_bytes));
    }

    /// Whether the device can take a request at all, as the next one. Drivers ask before they wait for its arrival.
    ///
    /// # Errors
    /// As [`Simulator::submit`].
    pub fn check(&self, request: &Request) -> Result<(), SimError> {
        let number = self.submitted + 1;
        if request.sectors == 0 {
            return Err(SimError::Empty { number, start: request.start });
        }
        if request.end().0 > self.user_sectors {
            let (start, end) = (request.start, request.end().0);
            return Err(SimError::PastEnd { number, start, end, capacity: self.user_sectors });
        }
        if request.arrival < self.last_arrival {
            return Err(SimError::OutOfOrder {
                number,
                arrival: request.arrival,
                previous: self.last_arrival,
            });
        }
        if request.arrival > LATEST_ARRIVAL {
            return Err(SimError::TooLate { number, arrival: request.arrival, latest: LATEST_ARRIVAL });
        }
        Ok(())
    }

    fn enter(&mut self, request: &Request) {
        let sequence = self.submitted;
        self.submitted += 1;
        self.unsettled = true;
        self.ask_scheduler = true;
        if let Some((slot, side)) = self.mergeable(request) {
            self.merge(slot, side, sequence, request);
            return;
        }
        let pages = PageRange::of(request, self.page_bytes);
        let conflict = self.conflicts.enter(pages);
        let queued = QueuedRequest::new(self.now, sequence, *request, pages, conflict);
        let slot = self.queue.enter(queued);
        if request.direction == Direction::Write {
            self.waiting_writes.push(sequence, slot, &self.queue);
        }
        self.scheduler.insert(self.now, slot, &queued);
        if let Some(merger) = &mut self.merger {
            merger.insert(slot, request);
        }
        self.observer.enter(self.now, slot, &queued);
        self.note_meetings(slot, &queued);
    }

    /// Tells the observer which collections the request that arrives in `slot` meets.
    fn note_meetings(&mut self, slot: Slot, queued: &QueuedRequest) {
        if self.device.can_be_met(self.now) {
            let mut context =
                Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
            self.device.note_meetings(&mut context, slot, queued);
        }
    }

    /// The waiting request that a newcomer joins, and on which side.
    fn mergeable(&self, request: &Request) -> Option<(Slot, Side)> {
        let merger = self.merger.as_ref()?;
        merger.find(request, &self.queue, |slot, side| self.allows_merge(slot, side, request, None))
    }

    /// Whether the scheduler lets the waiting request in `slot` grow by `joining`.
    fn allows_merge(&self, slot: Slot, side: Side, joining: &Request, joining_slot: Option<Slot>) -> bool {
        let into = self.queue.get(slot);
        let union = PageRange::of(&union(&into.request, joining), self.page_bytes);
        let added = PageRange::of(joining, self.page_bytes);
        self.scheduler.allow_merge(&Growth { slot, into, side, joining, joining_slot, added, union })
    }

    fn merge(&mut self, slot: Slot, side: Side, sequence: u64, request: &Request) {
        let before = *self.queue.get(slot);
        let own = PageRange::of(request, self.page_bytes);
        let conflict = self.conflicts.meets(own);
        let newcomer = QueuedRequest::new(self.now, sequence, *request, own, conflict);
        let pages = self.grow(slot, &before, request);
        self.queue.absorb(slot, Part::from(&newcomer), pages);
        self.scheduler.merged(slot, &before, self.queue.get(slot));
        self.observer.merge(self.now, slot, sequence, request);
        self.note_meetings(slot, &newcomer);
        self.join_neighbour(slot, side);
    }

    /// Keeps the books of a waiting request that grows by `request`; returns the pages it has then.
    fn grow(&mut self, slot: Slot, before: &QueuedRequest, request: &Request) -> PageRange {
        let union = union(&before.request, request);
        let pages = PageRange::of(&union, self.page_bytes);
        self.conflicts.leave(before.pages);
        self.conflicts.enter(pages);
        if let Some(merger) = &mut self.merger {
            merger.remove(slot);
            merger.insert(slot, &union);
        }
        pages
    }

    /// A request that grew on one side may have closed the gap to a waiting one there: they become one, in the place of the
    /// older.
    fn join_neighbour(&mut self, slot: Slot, side: Side) {
        let Some(merger) = &self.merger else { return };
        let Some(neighbour) = merger.neighbour(&self.queue.get(slot).request, side) else { return };
        let older = self.queue.get(slot).sequence < self.queue.get(neighbour).sequence;
        let (into, other, at) = match (older, side) {
            (true, side) => (slot, neighbour, side),
            (false, Side::Back) => (neighbour, slot, Side::Front),
            (false, Side::Front) => (neighbour, slot, Side::Back),
        };
        let (before, joining) = (*self.queue.get(into), *self.queue.get(other));
        let fits = merger.fits(into, &joining.request, self.queue.segments(other), &self.queue);
        if !fits || !self.allows_merge(into, at, &joining.request, Some(other)) {
            return;
        }
        self.conflicts.leave(joining.pages);
        if let Some(merger) = &mut self.merger {
            merger.remove(other);
        }
        let pages = self.grow(into, &before, &joining.request);
        self.queue.join(into, other, pages);
        self.scheduler.removed(other, &joining, into);
        self.scheduler.merged(into, &before, self.queue.get(into));
        self.observer.join(self.now, into, other);
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
            let next = self.events.next_time().min(self.wake);
            if next > until || next == Ns::MAX {
                return Ok(());
            }
            self.now = next;
            self.unsettled = true;
            self.ask_scheduler |= self.wake <= next;
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
        while self.queue.pending() > 0 {
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
        if self.queue.pending() == 0 { Ok(()) } else { self.stalled() }
    }

    fn stalled(&self) -> Result<(), SimError> {
        Err(SimError::Stalled {
            pending: self.queue.pending() as usize,
            now: self.now,
            scheduler: self.scheduler_name.to_owned(),
        })
    }

    /// Acts on everything that changed at this instant: dispatches requests and starts operations, until nothing more happens now.
    fn settle(&mut self) -> Result<(), SimError> {
        loop {
            self.unsettled = false;
            let mut context =
                Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
            self.device.begin_wanted_collections(&mut context)?;
            if std::mem::take(&mut self.ask_scheduler) | self.device.take_freed() {
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
            if self.queue.waiting() == 0 && self.device.has_background_work() {
                self.device.start_background_work(&mut context, self.queue.pending() == 0)?;
            }
            self.complete_finished();
            if !self.unsettled {
                return Ok(());
            }
        }
    }

    /// Collections that begin are in the way of requests that wait already.
    fn note_begun_collections(&mut self) {
        let mut begun = std::mem::take(&mut self.begun);
        self.device.take_begun(&mut begun);
        let mut context = Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
        for executor in begun.drain(..) {
            self.device.note_waiting_meetings(&mut context, executor);
        }
        if self.queue.waiting() > 0 {
            for (slot, queued) in self.queue.waiting_requests() {
                self.device.note_meetings(&mut context, slot, queued);
            }
        }
        self.begun = begun;
    }

    /// Tells the device which of its chips requests in the I/O queue wait for.
    fn tell_who_is_wanted(&mut self) {
        self.device.clear_wanted();
        if self.queue.waiting() > 0 {
            for (_, queued) in self.queue.waiting_requests() {
                self.device.note_wanted(queued);
            }
        }
    }

    fn dispatch(&mut self) {
        self.wake = Ns::MAX;
        while self.queue.waiting() > 0 {
            let (device, outstanding) = (&self.device, self.queue.outstanding());
            let decision = match self.command_queue {
                CommandQueue::Blocking => {
                    let accepts =
                        |queued: &QueuedRequest| device.is_free_for(queued.request.direction, queued.pages);
                    self.scheduler.dispatch(self.now, &Gate::new(&self.queue, &accepts))
                }
                CommandQueue::Ncq(depth) if outstanding >= depth => Decision::Wait,
                CommandQueue::Ncq(_) => self.scheduler.dispatch(self.now, &Gate::new(&self.queue, &|_| true)),
            };
            match decision {
                Decision::Issue(slot) => self.issue(slot),
                Decision::Wait => return,
                Decision::WakeAt(at) => {
                    // Asked for a time that is past, the engine would spin: the next nanosecond is the soonest.
                    self.wake = at.max(self.now + Ns(1));
                    return;
                }
            }
        }
    }

    fn issue(&mut self, slot: Slot) {
        let queued = self.queue.get(slot);
        // A scheduler that passes the gate by would be simulated on a device that does not exist.
        debug_assert!(
            self.command_queue != CommandQueue::Blocking
                || self.device.is_free_for(queued.request.direction, queued.pages),
            "the device accepts what a scheduler issues"
        );
        let (direction, sequence) = (queued.request.direction, queued.sequence);
        let overtakes = direction == Direction::Read
            && self.waiting_writes.oldest(&self.queue).is_some_and(|oldest| oldest < sequence);
        self.queue.issue(slot, self.now, overtakes);
        if let Some(merger) = &mut self.merger {
            merger.remove(slot);
        }
        let queued = *self.queue.get(slot);
        self.observer.issue(self.now, slot, &queued);
        let mut context = Context { now: self.now, events: &mut self.events, observer: &mut self.observer };
        self.device.submit(&mut context, slot, &queued.request, queued.pages);
    }

    fn complete_finished(&mut self) {
        for index in 0..self.device.finished.len() {
            let slot = self.device.finished[index];
            self.unsettled = true;
            self.ask_scheduler = true;
            let queued = self.queue.leave(slot);
            self.conflicts.leave(queued.pages);
            self.scheduler.completed(self.now, slot, &queued);
            let progress = self.device.progress(slot);
            let completion = Completion {
                sequence: queued.sequence,
                request: queued.request,
                entered: queued.entered,
                issued: queued.issued,
                completed: self.now,
                conflict: queued.conflict,
                overtakes: queued.overtakes,
                die_wait: progress.die_wait,
                channel_wait: progress.channel_wait,
            };
            if self.queue.parts(slot).is_empty() {
                self.report(slot, &completion);
            } else {
                self.complete_merged(slot, &completion);
            }
        }
        self.device.finished.clear();
    }

    fn report(&mut self, slot: Slot, completion: &Completion) {
        self.observer.complete(slot, completion);
        if self.keep_completions {
            self.completions.push(*completion);
        }
    }

    /// Requests that were merged complete together, each under its own number and arrival.
    fn complete_merged(&mut self, slot: Slot, completion: &Completion) {
        let mut parts = std::mem::take(self.queue.parts(slot));
        for &Part { sequence, entered, request, conflict } in &parts {
            self.report(slot, &Completion { sequence, entered, request, conflict, ..*completion });
        }
        parts.clear();
        *self.queue.parts(slot) = parts;
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
            pending: u64::from(self.queue.pending()),
            buffered_pages: pages,
            formula: self.device.flush_time(pages).formula,
            flush: self.device.simulated_flush(pages),
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

/// Two adjacent requests as one.
fn union(first: &Request, second: &Request) -> Request {
    Request { start: first.start.min(second.start), sectors: first.sectors + second.sectors, ..*first }
}
