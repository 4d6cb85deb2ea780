//! The host stack: the I/O queue with its merging, and the scheduler that decides what of it goes to the device next.
//!
//! It has no clock, no thread and no device. Who owns it tells it what arrives and what completes, and asks it what to issue:
//! the simulator with a device model behind it, or a driver of a real device.

use super::pools::pool_of;
use super::{
    Answer, BlockLayer, CommandQueue, Conflicts, Gate, HostQueue, Interface, Merger, Merging, Overlap,
    Overlaps, Part, QueuedRequest, RequestPools, Side, Slot, WaitingWrites,
};
use crate::error::SimError;
use crate::host_sched::taken_ahead::TakenAhead;
use crate::host_sched::{self, Counters, Decision, Growth, HostKnowledge, HostScheduler, TunableValues};
use crate::observers::{Completion, Observer};
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::{Direction, Durability, Ns, Request};
use std::collections::{BTreeMap, VecDeque};

/// Latest arrival, 146 years: times after it leave room for the service of billions of requests before the clock overflows.
const LATEST_ARRIVAL: Ns = Ns(1 << 62);

/// What a host stack is made of.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Host scheduler by name.
    pub scheduler: String,
    /// Its tunables as `(name, value)`; the others have their defaults.
    pub tunables: Vec<(String, String)>,
    /// What the host knows of the device, and the length of its queue (1 to 4096).
    pub knowledge: HostKnowledge,
    /// Units by which requests conflict: the true ones where they are known. Only counted, never scheduled by.
    pub conflict_units: UnitMap,
    /// Which adjacent requests become one before they are scheduled.
    pub merging: Merging,
    /// Largest request that merging makes, KiB, 1 to 1,048,576 (Linux's `max_sectors_kb`).
    pub max_sectors_kb: u32,
    /// What becomes of a request that overlaps an earlier unfinished one, of which one writes.
    pub overlap: Overlap,
    /// When a request leaves the scheduler. [`BlockLayer::BlkMq`] is of devices with tags alone.
    pub block_layer: BlockLayer,
    /// The device's interface.
    pub command_queue: CommandQueue,
    /// How many pools the slots of the queue are counted by.
    pub request_pools: RequestPools,
    /// Slots that outstanding requests take beside the queue's length ([`super::QueueCounts`]); 0 when they count in it.
    pub slots_apart: u32,
}

impl StackConfig {
    /// The scheduler's tunables with their values.
    ///
    /// # Errors
    /// The scheduler or a tunable is unknown, or a value is not allowed.
    pub fn tunable_values(&self) -> Result<TunableValues, SimError> {
        let scheduler = host_sched::find(&self.scheduler)?;
        let mut values = TunableValues::defaults(scheduler.tunables);
        for (name, value) in &self.tunables {
            values.set(scheduler.name, scheduler.tunables, name, value)?;
        }
        Ok(values)
    }
}

/// Time that the device says a request spent waiting inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceWaits {
    /// Longest wait of one of its transactions for a die.
    pub die: Ns,
    /// Longest wait of one of its transactions for a channel.
    pub channel: Ns,
}

/// A host stack.
pub struct HostStack {
    queue: HostQueue,
    command_queue: CommandQueue,
    scheduler: Box<dyn HostScheduler>,
    scheduler_name: &'static str,
    /// When requests are merged.
    merger: Option<Merger>,
    /// Unless dependencies are ignored.
    overlaps: Option<Overlaps>,
    /// Requests that a completion releases, for a moment.
    released: Vec<Slot>,
    /// Waiting flushes and discards, in the order in which they may go: they take no unit, and schedulers do not know of them.
    apart: VecDeque<Slot>,
    conflicts: Conflicts,
    waiting_writes: WaitingWrites,
    /// When the scheduler wants to be asked again.
    wake: Ns,
    /// The last answer of the scheduler was a request, and nothing has happened since.
    continues: bool,
    /// A request arrived or completed: the scheduler may decide otherwise than before.
    has_changed: bool,
    submitted: u64,
    /// By pool: where there are two, requests of one do not wait for those of the other.
    last_arrival: [Ns; 2],
    /// Where requests of one process do not wait for those of another: by process.
    last_arrivals: BTreeMap<u32, Ns>,
    /// By process that waits for a tag: how many it may have.
    asked: BTreeMap<u32, u32>,
    completions: Vec<Completion>,
    keep_completions: bool,
    page_bytes: u32,
    capacity_sectors: u64,
}

impl HostStack {
    /// Looks up every name and checks every value.
    ///
    /// # Errors
    /// The first that is not allowed.
    pub fn new(config: &StackConfig) -> Result<HostStack, SimError> {
        let out_of_range = |key: &str, found: u32, allowed: &str| SimError::Option {
            key: key.into(),
            found: found.to_string(),
            allowed: allowed.into(),
        };
        let length = config.knowledge.queue_length;
        if !(1..=4096).contains(&length) {
            return Err(out_of_range("queue", length, "1 to 4096"));
        }
        if !(1..=1 << 20).contains(&config.max_sectors_kb) {
            return Err(out_of_range("max-sectors-kb", config.max_sectors_kb, "1 to 1048576"));
        }
        let scheduler = host_sched::find(&config.scheduler)?;
        let queue =
            config.request_pools.queue(length, config.slots_apart, scheduler.name, config.block_layer)?;
        // Schedulers index what they remember by slot.
        let slots = queue.slots();
        let knowledge = HostKnowledge { queue_length: slots, ..config.knowledge.clone() };
        // Tunables that do not go with the device are known here, before anything runs.
        let policy = (scheduler.build)(&knowledge, &config.tunable_values()?)?;
        let is_of_blk_mq = host_sched::OF_BLK_MQ.contains(&scheduler.name);
        let policy = match (config.block_layer, config.command_queue) {
            (BlockLayer::BlkMq, CommandQueue::Ncq(_)) => TakenAhead::around(policy),
            (BlockLayer::Direct, CommandQueue::Ncq(_)) if is_of_blk_mq => TakenAhead::around(policy),
            (BlockLayer::Direct, _) => policy,
            (BlockLayer::BlkMq, CommandQueue::Blocking) => {
                return Err(SimError::Option {
                    key: "block_layer".into(),
                    found: "blk-mq before a blocking command queue".into(),
                    allowed: "direct there; blk-mq where command_queue is ncq:D".into(),
                });
            }
        };
        Ok(HostStack {
            queue,
            command_queue: config.command_queue,
            scheduler: policy,
            scheduler_name: scheduler.name,
            merger: Merger::new(config.merging, config.max_sectors_kb * 2, slots),
            overlaps: Overlaps::new(config.overlap, slots),
            released: Vec::new(),
            apart: VecDeque::new(),
            conflicts: Conflicts::new(config.conflict_units.clone()),
            waiting_writes: WaitingWrites::default(),
            wake: Ns::MAX,
            continues: false,
            has_changed: false,
            submitted: 0,
            last_arrival: [Ns::ZERO; 2],
            last_arrivals: BTreeMap::new(),
            asked: BTreeMap::new(),
            completions: Vec::new(),
            keep_completions: false,
            page_bytes: config.knowledge.page_bytes,
            capacity_sectors: config.knowledge.capacity_sectors,
        })
    }

    /// The I/O queue.
    #[inline]
    pub fn queue(&self) -> &HostQueue {
        &self.queue
    }

    /// Requests submitted so far.
    #[inline]
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// First sector past the device's capacity.
    pub fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// The pages that a request touches.
    #[inline]
    pub fn pages(&self, request: &Request) -> PageRange {
        PageRange::of(request, self.page_bytes)
    }

    /// The scheduler's name.
    pub fn scheduler_name(&self) -> &'static str {
        self.scheduler_name
    }

    /// What a reader of the results has to know of how the scheduler was set up: one sentence each.
    pub fn scheduler_notes(&self) -> Vec<String> {
        self.scheduler.notes()
    }

    /// The scheduler's counters.
    pub fn scheduler_counters(&self) -> Counters {
        self.scheduler.counters()
    }

    /// Keeps completions for [`HostStack::take_completions`] from now on.
    pub fn keep_completions(&mut self) {
        self.keep_completions = true;
    }

    /// Moves the completions since the last call to the end of `to`.
    pub fn take_completions(&mut self, to: &mut Vec<Completion>) {
        to.append(&mut self.completions);
    }

    /// When the scheduler wants to be asked though nothing arrives or completes; [`Ns::MAX`] when it does not.
    #[inline]
    pub fn wake(&self) -> Ns {
        self.wake
    }

    /// Whether the scheduler is to be asked at `now`: a request arrived or completed since this was asked last, or it wants to be.
    #[inline]
    pub fn take_changed(&mut self, now: Ns) -> bool {
        std::mem::take(&mut self.has_changed) | (self.wake <= now)
    }

    /// Whether the device can take a request at all, as the next one.
    ///
    /// # Errors
    /// An empty request, one past the end of the device, one that arrives before its predecessor or after the end of time.
    pub fn check(&self, request: &Request) -> Result<(), SimError> {
        let number = self.submitted + 1;
        if request.sectors == 0 && !request.operation.is_flush() {
            return Err(SimError::Empty { number, start: request.start });
        }
        if request.end().0 > self.capacity_sectors {
            let (start, end) = (request.start, request.end().0);
            return Err(SimError::PastEnd { number, start, end, capacity: self.capacity_sectors });
        }
        let previous = self.last_arrival(request);
        if request.arrival < previous {
            return Err(SimError::OutOfOrder { number, arrival: request.arrival, previous });
        }
        if request.arrival > LATEST_ARRIVAL {
            return Err(SimError::TooLate { number, arrival: request.arrival, latest: LATEST_ARRIVAL });
        }
        Ok(())
    }

    /// When the last request arrived behind which this one would wait.
    fn last_arrival(&self, request: &Request) -> Ns {
        if self.queue.has_tags() {
            return self.last_arrivals.get(&request.process).copied().unwrap_or(Ns::ZERO);
        }
        self.last_arrival[self.pool(request)]
    }

    /// The pool of a request: 0 where there is only one.
    #[inline]
    fn pool(&self, request: &Request) -> usize {
        if self.queue.has_two_pools() { pool_of(request) } else { 0 }
    }

    /// Whether the I/O queue takes a request at `now`. Before tags, of one process after its requests before it are in the queue.
    #[inline]
    pub fn has_room(&mut self, now: Ns, request: &Request) -> bool {
        if self.queue.has_tags() { self.has_tag(request) } else { self.queue.has_room(now, request) }
    }

    /// Whether there is a tag for a request. The scheduler says once how many it may have, when the thread asks first and begins to wait.
    #[cold]
    fn has_tag(&mut self, request: &Request) -> bool {
        let asked = self.asked.get(&request.process);
        let limit = asked.copied().unwrap_or_else(|| self.limit(request));
        let has = self.queue.has_tag(limit);
        if !has {
            self.asked.insert(request.process, limit);
        }
        has
    }

    /// How many tags a request may be given.
    fn limit(&self, request: &Request) -> u32 {
        // A flush takes its tag as any other does; the scheduler is asked of what moves data.
        if request.is_transfer() {
            self.scheduler.depth_limit(request, self.queue.slots())
        } else {
            self.queue.slots()
        }
    }

    /// A slot for a request for which there is room.
    #[inline]
    fn place(&mut self, queued: QueuedRequest) -> Slot {
        if self.queue.has_tags() {
            let asked = self.asked.remove(&queued.request.process);
            let limit = asked.unwrap_or_else(|| self.limit(&queued.request));
            return self.queue.enter_within(queued, limit);
        }
        self.queue.enter(queued)
    }

    /// Puts a request that passed [`HostStack::check`] in the I/O queue at `now`. `entered` is called with its slot and the
    /// request itself once the observer was told, before anything else becomes of it.
    ///
    /// # Panics
    /// When the queue is full.
    #[inline]
    pub fn enter<O: Observer>(
        &mut self,
        now: Ns,
        request: &Request,
        observer: &mut O,
        mut entered: impl FnMut(&mut O, Slot, &QueuedRequest),
    ) {
        let sequence = self.submitted;
        self.submitted += 1;
        if self.queue.has_tags() {
            self.last_arrivals.insert(request.process, request.arrival);
        } else {
            self.last_arrival[self.pool(request)] = request.arrival;
        }
        self.has_changed = true;
        let pages = self.pages(request);
        if !request.is_transfer() {
            return self.enter_apart(now, sequence, request, observer, entered);
        }
        let earlier = self.overlaps.as_ref().map_or(0, |overlaps| overlaps.met_by(request));
        if earlier == 0
            && let Some((slot, side)) = self.mergeable(request)
        {
            // It needs no tag, whatever it would have been given.
            self.asked.remove(&request.process);
            let conflict = self.conflicts.meets(pages);
            let newcomer = QueuedRequest::new(now, sequence, *request, pages, conflict);
            self.merge(slot, &newcomer);
            observer.merge(now, slot, sequence, request);
            entered(observer, slot, &newcomer);
            if let Some((into, other)) = self.join_neighbour(slot, side) {
                observer.join(now, into, other);
            }
            return;
        }
        let conflict = self.conflicts.enter(pages);
        let mut queued = QueuedRequest::new(now, sequence, *request, pages, conflict);
        if earlier > 0 {
            queued.released = Ns::MAX;
        }
        let slot = self.place(queued);
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.insert(slot, request, sequence, earlier);
        }
        if request.direction == Direction::Write {
            self.waiting_writes.push(sequence, slot, &self.queue);
        }
        if earlier == 0 {
            self.scheduler.insert(now, slot, &queued);
            if let Some(merger) = &mut self.merger {
                merger.insert(slot, request);
            }
        }
        observer.enter(now, slot, &queued);
        entered(observer, slot, &queued);
    }

    /// Takes in a flush or a discard. Linux hands flushes to the driver past its schedulers, and discards through them although they keep no
    /// unit busy; here both pass.
    #[cold]
    fn enter_apart<O: Observer>(
        &mut self,
        now: Ns,
        sequence: u64,
        request: &Request,
        observer: &mut O,
        mut entered: impl FnMut(&mut O, Slot, &QueuedRequest),
    ) {
        let flushes = request.operation.is_flush();
        let pages = if flushes { PageRange { first: 0, count: 0 } } else { self.pages(request) };
        let mut queued = QueuedRequest::new(now, sequence, *request, pages, false);
        // What a flush keeps was acknowledged before: it depends on nobody.
        let overlaps = self.overlaps.as_ref().filter(|_| !flushes);
        let earlier = overlaps.map_or(0, |overlaps| overlaps.met_by(request));
        if earlier > 0 {
            queued.released = Ns::MAX;
        }
        let slot = self.place(queued);
        if let Some(overlaps) = self.overlaps.as_mut().filter(|_| !flushes) {
            overlaps.insert(slot, request, sequence, earlier);
        }
        if earlier == 0 {
            self.apart.push_back(slot);
        }
        observer.enter(now, slot, &queued);
        entered(observer, slot, &queued);
    }

    /// The waiting request that a newcomer joins, and on which side.
    fn mergeable(&self, request: &Request) -> Option<(Slot, Side)> {
        // Linux merges no request that is to be flushed or forced.
        let merger = self.merger.as_ref().filter(|_| request.durability == Durability::Volatile)?;
        merger.find(request, &self.queue, |slot, side| self.allows_merge(slot, side, request, None))
    }

    /// Whether the scheduler lets the waiting request in `slot` grow by `joining`.
    fn allows_merge(&self, slot: Slot, side: Side, joining: &Request, joining_slot: Option<Slot>) -> bool {
        let into = self.queue.get(slot);
        let union = self.pages(&union(&into.request, joining));
        let added = self.pages(joining);
        self.scheduler.allow_merge(&Growth { slot, into, side, joining, joining_slot, added, union })
    }

    fn merge(&mut self, slot: Slot, newcomer: &QueuedRequest) {
        let before = *self.queue.get(slot);
        let pages = self.grow(slot, &before, &newcomer.request);
        self.queue.absorb(slot, Part::from(newcomer), pages);
        self.scheduler.merged(slot, &before, self.queue.get(slot));
    }

    /// Keeps the books of a waiting request that grows by `request`; returns the pages it has then.
    fn grow(&mut self, slot: Slot, before: &QueuedRequest, request: &Request) -> PageRange {
        let union = union(&before.request, request);
        let pages = self.pages(&union);
        self.conflicts.leave(before.pages);
        self.conflicts.enter(pages);
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.grew(slot, &union);
        }
        if let Some(merger) = &mut self.merger {
            merger.remove(slot);
            merger.insert(slot, &union);
        }
        pages
    }

    /// A request that grew on one side may have closed the gap to a waiting one there: they become one, in the place of the
    /// older. Returns its slot and the one that is free then.
    fn join_neighbour(&mut self, slot: Slot, side: Side) -> Option<(Slot, Slot)> {
        let merger = self.merger.as_ref()?;
        let neighbour = merger.neighbour(&self.queue.get(slot).request, side)?;
        let older = self.queue.get(slot).sequence < self.queue.get(neighbour).sequence;
        let (into, other, at) = match (older, side) {
            (true, side) => (slot, neighbour, side),
            (false, Side::Back) => (neighbour, slot, Side::Front),
            (false, Side::Front) => (neighbour, slot, Side::Back),
        };
        let (before, joining) = (*self.queue.get(into), *self.queue.get(other));
        let fits = merger.fits(into, &joining.request, self.queue.segments(other), &self.queue);
        if !fits || !self.allows_merge(into, at, &joining.request, Some(other)) {
            return None;
        }
        self.conflicts.leave(joining.pages);
        if let Some(merger) = &mut self.merger {
            merger.remove(other);
        }
        if let Some(overlaps) = &mut self.overlaps {
            overlaps.join(into, other);
        }
        let pages = self.grow(into, &before, &joining.request);
        self.queue.join(into, other, pages);
        self.scheduler.removed(other, &joining, into);
        self.scheduler.merged(into, &before, self.queue.get(into));
        Some((into, other))
    }

    /// The request that goes to the device now, if one does; asked until none does. `interface` says what a blocking one
    /// would take now; a command queue takes anything while it has room.
    #[inline]
    pub fn next_issue<O: Observer>(
        &mut self,
        now: Ns,
        interface: &dyn Interface,
        observer: &mut O,
    ) -> Option<Slot> {
        self.wake = Ns::MAX;
        let continues = std::mem::take(&mut self.continues);
        let held = self.overlaps.as_ref().map_or(0, Overlaps::held);
        if self.queue.waiting() == held {
            return None;
        }
        if !self.apart.is_empty() {
            return self.next_apart(now, observer);
        }
        let decision = match self.command_queue {
            CommandQueue::Blocking => {
                let gate = Gate { continues, ..Gate::new(&self.queue, interface) };
                self.scheduler.dispatch(now, &gate)
            }
            CommandQueue::Ncq(depth) if self.queue.outstanding() >= depth => {
                self.tell_full(now);
                Decision::Wait
            }
            CommandQueue::Ncq(_) => {
                self.scheduler.dispatch(now, &Gate::new(&self.queue, &|_: &QueuedRequest| true))
            }
        };
        match decision {
            Decision::Issue(slot) => {
                // A scheduler that passes the gate by would be measured on a device that does not exist.
                debug_assert!(
                    self.command_queue != CommandQueue::Blocking
                        || interface.ask(self.queue.get(slot)) == Answer::Accepted,
                    "the device accepts what a scheduler issues"
                );
                self.issue(now, slot);
                self.continues = true;
                observer.issue(now, slot, self.queue.get(slot));
                Some(slot)
            }
            Decision::Wait => None,
            Decision::WakeAt(at) => {
                // Asked for a time that is past, its owner would spin: the next nanosecond is the soonest.
                self.wake = at.max(now + Ns(1));
                None
            }
        }
    }

    /// Tells the scheduler that the device takes nothing more, as [`HostStack::next_issue`] does where its own count says so: for
    /// devices that take fewer requests than that, since one request may need several of their tags.
    pub fn tell_full(&mut self, now: Ns) {
        self.wake = Ns::MAX;
        let held = self.overlaps.as_ref().map_or(0, Overlaps::held);
        if self.queue.waiting() > held && self.apart.is_empty() {
            self.scheduler.full(now, &self.queue);
        }
    }

    /// The next flush or discard, if the device has room for a command.
    #[cold]
    fn next_apart<O: Observer>(&mut self, now: Ns, observer: &mut O) -> Option<Slot> {
        if matches!(self.command_queue, CommandQueue::Ncq(depth) if self.queue.outstanding() >= depth) {
            return None;
        }
        let slot = self.apart.pop_front()?;
        self.queue.issue(slot, now, false);
        observer.issue(now, slot, self.queue.get(slot));
        Some(slot)
    }

    fn issue(&mut self, now: Ns, slot: Slot) {
        let queued = self.queue.get(slot);
        let (direction, sequence) = (queued.request.direction, queued.sequence);
        let overtakes = direction == Direction::Read
            && self.waiting_writes.oldest(&self.queue).is_some_and(|oldest| oldest < sequence);
        self.queue.issue(slot, now, overtakes);
        if let Some(merger) = &mut self.merger {
            merger.remove(slot);
        }
    }

    /// The outstanding request in `slot` completed, and with it all that were merged into it.
    #[inline]
    pub fn complete<O: Observer>(&mut self, now: Ns, slot: Slot, waits: DeviceWaits, observer: &mut O) {
        self.has_changed = true;
        let queued = self.queue.leave(slot);
        if queued.request.is_transfer() {
            self.conflicts.leave(queued.pages);
            self.scheduler.completed(now, slot, &queued);
        }
        if !queued.request.operation.is_flush() {
            self.release_dependents(now, slot);
        }
        let completion = Completion {
            sequence: queued.sequence,
            request: queued.request,
            entered: queued.entered,
            released: queued.released,
            issued: queued.issued,
            completed: now,
            conflict: queued.conflict,
            overtakes: queued.overtakes,
            die_wait: waits.die,
            channel_wait: waits.channel,
        };
        if self.queue.parts(slot).is_empty() {
            self.report(slot, &completion, observer);
        } else {
            self.complete_merged(slot, &completion, observer);
        }
    }

    /// The scheduler hears of the requests that waited for the one in `slot` and for no other.
    #[inline]
    fn release_dependents(&mut self, now: Ns, slot: Slot) {
        let Some(overlaps) = &mut self.overlaps else { return };
        overlaps.complete(slot, &mut self.released);
        for slot in self.released.drain(..) {
            let queued = self.queue.release(slot, now);
            if !queued.request.is_transfer() {
                self.apart.push_back(slot);
                continue;
            }
            self.scheduler.insert(now, slot, queued);
            if let Some(merger) = &mut self.merger {
                merger.insert(slot, &queued.request);
            }
        }
    }

    fn report<O: Observer>(&mut self, slot: Slot, completion: &Completion, observer: &mut O) {
        observer.complete(slot, completion);
        if self.keep_completions {
            self.completions.push(*completion);
        }
    }

    /// Requests that were merged complete together, each under its own number and arrival.
    fn complete_merged<O: Observer>(&mut self, slot: Slot, completion: &Completion, observer: &mut O) {
        let mut parts = std::mem::take(self.queue.parts(slot));
        for &Part { sequence, entered, released, request, conflict } in &parts {
            let part = Completion { sequence, entered, released, request, conflict, ..*completion };
            self.report(slot, &part, observer);
        }
        parts.clear();
        *self.queue.parts(slot) = parts;
    }
}

/// Two adjacent requests as one.
fn union(first: &Request, second: &Request) -> Request {
    Request { start: first.start.min(second.start), sectors: first.sectors + second.sectors, ..*first }
}
