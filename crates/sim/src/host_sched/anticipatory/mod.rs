//! The anticipatory scheduler, as Linux 2.6.32 has it (`block/as-iosched.c`, documented in
//! `Documentation/block/as-iosched.txt`): a one-way elevator in batches of time that, after a synchronous request, waits a
//! moment for the next of the same process, so that requests that come one by one are not parted by those of others.

mod habits;
mod tunables;

use super::by_process::ByProcess;
use super::elevator::{Dispatching, Elevator, Pick};
use super::lineup::{Lineup, Places};
use super::one_way::OneWay;
use super::{Counters, Entry};
use crate::host::{HostQueue, QueuedRequest, Slot};
use habits::{Newcomers, Process};
use planewise_model::{Ns, Request};
use tunables::Settings;

pub(super) const ENTRY: Entry = Entry {
    name: "anticipatory",
    summary: "batches of time by address, waiting for the next close read of a process",
    source: "Linux 2.6.32, Documentation/block/as-iosched.txt",
    tunables: tunables::TUNABLES,
    uses_units: false,
    build: |host, values| {
        Ok(Box::new(Dispatching::new(Anticipatory::new(host.queue_length, Settings::new(values)))))
    },
};

/// Index of synchronous requests.
const SYNC: usize = 0;
/// Index of asynchronous requests.
const ASYNC: usize = 1;

/// Farthest step back, sectors, and its price (`MAXBACK`, `BACK_PENALTY`).
const WAY: OneWay = OneWay { back_max: 1024 * 1024, back_penalty: 2 };

/// A request this close, sectors, is as good as one of the process waited for; doubled for every tick of waiting.
const CLOSE: u64 = 8192;
/// A tick of the timer (`jiffy`) at 1000 a second.
const TICK: u64 = 1_000_000;
/// Ticks after which any request is close.
const CLOSE_TICKS_MAX: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    /// For the request of the process to end.
    AwaitsEnd,
    /// For its next, since the last ended.
    AwaitsNext,
    /// A good request came, or the time is over.
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// The requests of the last batch are still at the device.
    Draining,
    /// A batch of synchronous requests begins to count with the first that ends.
    AwaitsFirstEnd,
}

#[derive(Default)]
struct Counts {
    anticipations: u64,
    hits: u64,
    timeouts: u64,
    batches: u64,
}

struct Anticipatory {
    settings: Settings,
    places: Places,
    /// Synchronous, asynchronous.
    waiting: [Lineup; 2],
    /// Sector behind the last request of each kind.
    positions: [u64; 2],
    last_fifo_check: [Ns; 2],
    processes: ByProcess<Process>,
    newcomers: Newcomers,
    /// Kind of the batch.
    kind: usize,
    change: Change,
    batch_end: Ns,
    /// Asynchronous requests of a batch, and how many of them are left.
    write_batch_count: u64,
    writes_left: u64,
    /// Nothing else waited during the write batch: its time says nothing.
    write_batch_idled: bool,
    state: State,
    /// Whose request went last, if it was synchronous, and since when it is over.
    anticipated: Option<usize>,
    ended: Option<Ns>,
    /// Requests on the dispatch list or at the device.
    dispatched: u32,
    counts: Counts,
}

impl Anticipatory {
    fn new(slots: u32, settings: Settings) -> Anticipatory {
        Anticipatory {
            places: Places::new(slots, WAY),
            waiting: [Lineup::EMPTY; 2],
            positions: [0; 2],
            last_fifo_check: [Ns::ZERO; 2],
            processes: ByProcess::new(),
            newcomers: Newcomers::default(),
            kind: SYNC,
            change: Change::None,
            batch_end: settings.batch_expire[SYNC],
            write_batch_count: (settings.batch_expire[ASYNC].0 / TICK / 10).max(2),
            writes_left: 0,
            write_batch_idled: false,
            state: State::Off,
            anticipated: None,
            ended: None,
            dispatched: 0,
            counts: Counts::default(),
            settings,
        }
    }

    fn is_anticipating(&self) -> bool {
        matches!(self.state, State::AwaitsEnd | State::AwaitsNext)
    }

    /// When the wait is over, once it is for the next request.
    fn timeout(&self) -> Option<Ns> {
        let ended = self.ended.filter(|_| self.state == State::AwaitsNext);
        ended.map(|ended| ended + self.settings.antic_expire)
    }

    /// What the timer does, if it rang by now (`as_antic_timeout`).
    fn ring(&mut self, now: Ns) {
        if self.timeout().is_none_or(|at| at > now) {
            return;
        }
        self.counts.timeouts += 1;
        self.state = State::Finished;
    }

    /// Whether waiting on is pointless, or `candidate` is as good as what is waited for (`as_can_break_anticipation`).
    fn breaks(&mut self, now: Ns, candidate: Option<(usize, &Request)>) -> bool {
        let awaited = self.anticipated.expect("a process is anticipated");
        if candidate.is_some_and(|(process, _)| process == awaited)
            || self.ended.is_some_and(|ended| now >= ended + self.settings.antic_expire)
        {
            return true;
        }
        let process = &self.processes[awaited];
        if process.queued > 0 || process.dispatched > 0 {
            return true;
        }
        if let Some((_, request)) = candidate
            && request.synchronous
            && self.is_close(now, awaited, request.start.0)
        {
            // Processes that work in the same area count as one.
            self.processes[awaited].learn(now, request, &mut self.newcomers);
            return true;
        }
        let think = &self.processes[awaited].think;
        let mean = if think.is_known() { think.mean() } else { self.newcomers.think_mean() };
        mean > self.settings.antic_expire
    }

    /// Whether a request is close to the last one; what counts as close doubles with every tick (`as_close_req`).
    fn is_close(&self, now: Ns, awaited: usize, start: u64) -> bool {
        let ended = self.ended.filter(|_| self.state != State::Off);
        let ticks = ended.map_or(0, |ended| (now - ended).0 / TICK);
        if ticks > CLOSE_TICKS_MAX {
            return true;
        }
        let last = self.positions[self.kind];
        let reach = CLOSE << ticks;
        let seeks = &self.processes[awaited].seeks;
        let usual = if seeks.is_known() { seeks.mean() } else { self.newcomers.seek_mean() };
        last <= start + reach / 2 && start <= last + reach || usual > last.abs_diff(start)
    }

    /// Whether to wait rather than dispatch `next` (`as_can_anticipate`).
    fn waits_on(&mut self, now: Ns, next: Option<Slot>, queue: &HostQueue) -> bool {
        if self.anticipated.is_none() || self.state == State::Finished {
            return false;
        }
        let candidate = next.map(|slot| &queue.get(slot).request);
        let candidate = candidate.map(|request| (self.processes.number(request.process), request));
        !self.breaks(now, candidate)
    }

    fn wait(&mut self) {
        if self.state == State::Off {
            self.counts.anticipations += 1;
            self.state = if self.ended.is_some() { State::AwaitsNext } else { State::AwaitsEnd };
        }
    }

    /// Whether the oldest request of a kind is overdue; looked at once for each length of its deadline, or many overdue
    /// requests would break the order of addresses all the time (`as_fifo_expired`).
    fn is_overdue(&mut self, now: Ns, kind: usize) -> bool {
        if now - self.last_fifo_check[kind] < self.settings.expire[kind] {
            return false;
        }
        self.last_fifo_check[kind] = now;
        self.waiting[kind].overdue(&self.places, now).is_some()
    }

    fn batch_expired(&self, now: Ns) -> bool {
        self.change == Change::None && (now > self.batch_end || self.kind == ASYNC && self.writes_left == 0)
    }

    /// Adjusts the number of requests of a write batch to the time that they should take (`update_write_batch`).
    fn tune_write_batch(&mut self, now: Ns) {
        let target = self.settings.batch_expire[ASYNC].0 as i64;
        let taken = (now.0 as i64 - self.batch_end.0 as i64 + target).max(0);
        if taken > target && !self.write_batch_idled {
            self.write_batch_count =
                if taken > 3 * target { self.write_batch_count / 2 } else { self.write_batch_count - 1 };
        } else if taken < target && self.writes_left == 0 {
            self.write_batch_count =
                if target > 3 * taken { self.write_batch_count * 2 } else { self.write_batch_count + 1 };
        }
        self.write_batch_count = self.write_batch_count.max(1);
    }

    /// Moves a request to the dispatch list (`as_move_to_dispatch`).
    fn take(&mut self, kind: usize, slot: Slot, request: &Request) -> Pick {
        let process = self.processes.number(request.process);
        self.state = State::Off;
        self.positions[kind] = request.end().0;
        if kind == SYNC {
            self.anticipated = Some(process);
        } else {
            self.anticipated = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.ended = None;
        self.waiting[kind].serve(&mut self.places, slot, self.positions[kind]);
        self.processes[process].queued -= 1;
        self.processes[process].dispatched += 1;
        self.dispatched += 1;
        Pick::Request(slot)
    }

    /// Begins a batch of a kind; the oldest request is its first.
    fn begin(&mut self, now: Ns, kind: usize) -> Option<Slot> {
        if self.kind != kind {
            self.counts.batches += 1;
            self.change = Change::Draining;
        }
        if kind == ASYNC {
            self.writes_left = self.write_batch_count;
            self.write_batch_idled = false;
        }
        self.kind = kind;
        self.last_fifo_check[kind] = now;
        self.waiting[kind].oldest()
    }

    /// The request to dispatch, of the kind of the batch (`as_dispatch_request`).
    fn choose(&mut self, now: Ns, queue: &HostQueue) -> Option<Slot> {
        let [sync, r#async] = [SYNC, ASYNC].map(|kind| !self.waiting[kind].is_empty());
        if self.kind == ASYNC && !sync && (self.writes_left == 0 || !r#async) {
            self.write_batch_idled = true;
        }
        if !sync && !r#async || self.is_anticipating() || self.change == Change::Draining {
            return None;
        }
        let mut chosen = None;
        if !(sync && r#async && self.batch_expired(now)) {
            let next = self.waiting[self.kind].next();
            if self.kind == SYNC && self.settings.antic_expire > Ns::ZERO {
                if self.is_overdue(now, SYNC) {
                    return self.waiting[SYNC].oldest();
                }
                if self.waits_on(now, next, queue) {
                    self.wait();
                    return None;
                }
            }
            if next.is_some() && sync && !r#async {
                self.batch_end = now + self.settings.batch_expire[SYNC];
            }
            chosen = next;
        }
        if chosen.is_none() {
            let kind = if sync && !(r#async && self.kind == SYNC) { SYNC } else { ASYNC };
            chosen = self.begin(now, kind);
        }
        if self.is_overdue(now, self.kind) {
            chosen = self.waiting[self.kind].oldest();
        }
        if self.change == Change::Draining {
            if self.dispatched > 0 {
                return None;
            }
            // A batch of reads leaves the end of the write batch standing, to tell how long that took.
            if self.kind == ASYNC {
                self.batch_end = now + self.settings.batch_expire[ASYNC];
            }
            self.drained();
        }
        chosen
    }

    /// The device is empty after a change of kind: the batch begins, one of synchronous requests when the first ends.
    fn drained(&mut self) {
        self.change = if self.kind == SYNC { Change::AwaitsFirstEnd } else { Change::None };
    }
}

fn kind_of(request: &QueuedRequest) -> usize {
    if request.request.synchronous { SYNC } else { ASYNC }
}

impl Elevator for Anticipatory {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        // The timer rings first, except at this very instant: what comes in time is in time.
        self.ring(now.saturating_sub(Ns(1)));
        let kind = kind_of(request);
        let process = self.processes.number(request.request.process);
        if kind == SYNC {
            self.processes[process].learn(now, &request.request, &mut self.newcomers);
        }
        self.processes[process].queued += 1;
        let deadline = now + self.settings.expire[kind];
        self.waiting[kind].add(&mut self.places, slot, request, deadline, self.positions[kind]);
        if self.is_anticipating() && self.breaks(now, Some((process, &request.request))) {
            self.counts.hits += 1;
            self.state = State::Finished;
        }
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        let kind = kind_of(after);
        self.waiting[kind].grew(&mut self.places, slot, after, self.positions[kind]);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        let kind = kind_of(request);
        self.waiting[kind].remove(&mut self.places, slot, self.positions[kind]);
        let process = self.processes.number(request.request.process);
        self.processes[process].queued -= 1;
    }

    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick {
        self.ring(now);
        match self.choose(now, queue) {
            Some(slot) => self.take(self.kind, slot, &queue.get(slot).request),
            None => self.timeout().map_or(Pick::Nothing, Pick::At),
        }
    }

    fn issued(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        let process = self.processes.number(request.request.process);
        self.processes[process].dispatched -= 1;
    }

    fn completed(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        let kind = kind_of(request);
        if self.change == Change::Draining && self.dispatched == 1 {
            self.batch_end = now + self.settings.batch_expire[self.kind];
            self.drained();
        }
        self.dispatched -= 1;
        if self.change == Change::AwaitsFirstEnd && kind == SYNC && self.kind == SYNC {
            self.tune_write_batch(now);
            self.batch_end = now + self.settings.batch_expire[SYNC];
            self.change = Change::None;
        }
        let process = self.processes.number(request.request.process);
        if self.anticipated == Some(process) {
            self.ended = Some(now);
            if self.state == State::AwaitsEnd {
                self.state = State::AwaitsNext;
            }
        }
        if kind == SYNC {
            self.processes[process].last_end = Some(now);
        }
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("anticipations", self.counts.anticipations),
            ("anticipation_hits", self.counts.hits),
            ("anticipation_timeouts", self.counts.timeouts),
            ("batches", self.counts.batches),
        ])
    }
}
