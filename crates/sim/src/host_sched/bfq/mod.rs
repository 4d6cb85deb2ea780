//! BFQ, as Linux has it today (6.x, `block/bfq-iosched.c`, documented in `Documentation/block/bfq-iosched.rst`): each
//! process has the disk for a budget of sectors, in the order of B-WF2Q+, and those that begin have precedence.

mod fair;
mod queue;
mod tunables;

use super::by_process::ByProcess;
use super::elevator::{Dispatching, Elevator, Pick};
use super::lineup::Places;
use super::one_way::OneWay;
use super::{Counters, Entry, Growth};
use crate::host::{HostQueue, QueuedRequest, Slot};
use fair::Clock;
use planewise_model::{Direction, Ns, Request};
use queue::{End, Queue};
use tunables::Settings;

pub(super) const ENTRY: Entry = Entry {
    name: "bfq",
    summary: "budgets of sectors for each process in fair order, precedence for those that begin",
    source: "Linux 6.x, Documentation/block/bfq-iosched.rst",
    tunables: tunables::TUNABLES,
    uses_units: false,
    build: |host, values| Ok(Box::new(Dispatching::new(Bfq::new(host.queue_length, Settings::new(values))))),
};

/// Number of the queue of asynchronous requests; those of processes follow it.
const ASYNCHRONOUS: usize = 0;
/// Asynchronous sectors are charged so many times (`bfq_async_charge_factor`): Linux does not where weights or classes differ that users
/// gave, which there are none of here.
const ASYNC_CHARGE: u64 = 3;
/// Wait at most for a process that seeks (`BFQ_MIN_TT`), and at least for one whose weight is raised.
const SEEKY_IDLE: Ns = Ns::from_millis(2);
const RAISED_IDLE: Ns = Ns::from_millis(20);
/// A process that goes on within so many waits takes up what was left of its budget.
const ARRIVES_IN_TIME: u64 = 3;
/// A process that begins so soon after another joins its queue (`bfq_burst_interval`), and one that begins so long after it is the next that
/// others join (`bfq_activation_stable_merging`).
const JOINS_WITHIN: Ns = Ns::from_millis(180);
const LAST_FOR: Ns = Ns::from_millis(600);
/// A queue with raised weight is waited for when others have so many more requests at the device.
const SURPLUS: u64 = 4;
/// Requests at the device at once above which it counts as one that queues, and the samples between two looks.
const TAGGED_DEPTH: u64 = 3;
const TAGGED_SAMPLES: u32 = 32;

#[derive(Default)]
struct Counts {
    turns: u64,
    preemptions: u64,
    idle_waits: u64,
    exhausted: u64,
    timeouts: u64,
}

struct Bfq {
    settings: Settings,
    places: Places,
    /// Queue of the request in each slot.
    queue_of: Vec<usize>,
    /// Sectors of the request in each slot.
    sectors: Vec<u64>,
    /// Queue of each process's synchronous requests, once it has made one.
    processes: ByProcess<Option<usize>>,
    /// The queue that those of processes which begin soon after it join, and when it was made.
    last_created: Option<(usize, Ns)>,
    queues: Vec<Queue>,
    clock: Clock,
    /// Queues with requests, or in service.
    active: Vec<usize>,
    in_service: Option<usize>,
    /// The queue that has its turn next, as it was found when a queue last changed: not always whom virtual time would choose now.
    next: Option<usize>,
    /// While the disk waits for the queue in service: until when.
    idle_until: Option<Ns>,
    /// Since when it last did.
    idle_since: Ns,
    waiting: u64,
    at_device: u64,
    /// Whether the device queues commands; unknown at first, which counts as yes. Once known to, it is not asked again.
    tagged: Option<bool>,
    samples: u32,
    peak: u64,
    position: u64,
    counts: Counts,
}

impl Bfq {
    fn new(slots: u32, settings: Settings) -> Bfq {
        let way = OneWay { back_max: settings.back_seek_max, back_penalty: settings.back_seek_penalty };
        Bfq {
            queues: vec![Queue::new(false, &settings)],
            settings,
            places: Places::new(slots, way),
            queue_of: vec![ASYNCHRONOUS; slots as usize],
            sectors: vec![0; slots as usize],
            processes: ByProcess::new(),
            last_created: None,
            clock: Clock::default(),
            active: Vec::with_capacity(slots as usize + 1),
            in_service: None,
            next: None,
            idle_until: None,
            idle_since: Ns::ZERO,
            waiting: 0,
            at_device: 0,
            tagged: None,
            samples: 0,
            peak: 0,
            position: 0,
            counts: Counts::default(),
        }
    }

    /// The queue of a request.
    fn queue_number(&mut self, now: Ns, request: &Request) -> usize {
        if !request.synchronous {
            return ASYNCHRONOUS;
        }
        let process = self.processes.number(request.process);
        match self.processes[process] {
            Some(number) => number,
            None => {
                let number = self.join_or_create(now);
                self.processes[process] = Some(number);
                number
            }
        }
    }

    /// The queue of a process that makes its first synchronous request: on a disk that queues and does not rotate, that of one which made its own
    /// just before, as parts of one application do (`bfq_do_or_sched_stable_merge`). They stay together.
    fn join_or_create(&mut self, now: Ns) -> usize {
        let gains = !self.settings.rotational && self.tagged != Some(false);
        if let Some((last, created)) = self.last_created
            && gains
            && now <= created + JOINS_WITHIN
        {
            return last;
        }
        let number = self.queues.len();
        self.queues.push(Queue::new(true, &self.settings));
        if self.last_created.is_none_or(|(_, created)| now > created + LAST_FOR) {
            self.last_created = Some((number, now));
        }
        number
    }

    /// Sectors that a request counts for (`bfq_serv_to_charge`).
    fn charge(&self, number: usize, sectors: u64) -> u64 {
        sectors * if self.queues[number].synchronous { 1 } else { ASYNC_CHARGE }
    }

    fn raised_count(&self) -> usize {
        self.active.iter().filter(|&&number| self.queues[number].is_raised()).count()
    }

    /// Whether the disk should rather wait for the queue than serve others (`bfq_better_to_idle`).
    fn better_to_idle(&self, number: usize) -> bool {
        let queue = &self.queues[number];
        if self.settings.strict {
            return true;
        }
        if self.settings.slice_idle == Ns::ZERO || !queue.synchronous {
            return false;
        }
        self.idling_gains(number) || self.idling_guarantees(number)
    }

    /// Whether waiting gains throughput (`idling_boosts_thr_without_issues`).
    fn idling_gains(&self, number: usize) -> bool {
        let (queue, rotational) = (&self.queues[number], self.settings.rotational);
        let tagged = self.tagged != Some(false);
        let goes_on = !queue.is_seeky() && queue.thinks_shortly(&self.settings);
        (rotational && !tagged || (rotational || !tagged) && goes_on) && self.raised_count() == 0
    }

    /// Whether the queue would be served less than it is due without (`idling_needed_for_service_guarantees`).
    fn idling_guarantees(&self, number: usize) -> bool {
        let (queue, busy) = (&self.queues[number], self.active.len());
        queue.is_raised() && (self.raised_count() < busy || self.at_device >= queue.dispatched + SURPLUS)
            || busy == 1
    }

    /// Gives a queue that has requests the budget of its next turn.
    fn provide(&mut self, number: usize) {
        let next = self.queues[number].waiting.next().expect("the queue has requests");
        let charge = self.charge(number, self.sectors[next.index()]);
        let queue = &mut self.queues[number];
        queue.entity.budget = queue.max_budget.max(charge);
    }

    /// Charges a queue that was slow for its time (`bfq_bfqq_is_slow`, `bfq_bfqq_charge_time`): whoever seeks does not cost others theirs.
    fn charge_time(&mut self, until: Ns, number: usize, end: End) {
        const SHORT: Ns = Ns::from_millis(1);
        const LONG: Ns = Ns::from_millis(20);
        let (settings, queue) = (&self.settings, &self.queues[number]);
        let took = until.saturating_sub(queue.turn_began);
        let (slow, charged) = match took {
            _ if !queue.synchronous => (false, Ns::ZERO),
            _ if took < SHORT && settings.rotational => (queue.is_seeky(), settings.slice_idle),
            _ if took < SHORT => (queue.is_seeky(), SEEKY_IDLE),
            // Whole milliseconds, down.
            _ if took > LONG => {
                (queue.entity.service < settings.max_budget / 2, Ns::from_millis(took.0 / 1_000_000))
            }
            _ => (queue.is_seeky(), Ns::from_millis(took.0 / 1_000_000)),
        };
        let timed_out = end == End::BudgetTimeout && queue.entity.left() >= queue.entity.budget / 3;
        if queue.is_raised() || !slow && !timed_out {
            return;
        }
        let (charged, timeout) = (charged.min(settings.timeout).0, settings.timeout.0.max(1));
        let sectors = (u128::from(settings.max_budget) * u128::from(charged) / u128::from(timeout)) as u64;
        let entity = &mut self.queues[number].entity;
        let sectors = sectors.max(entity.service);
        entity.budget = entity.budget.max(sectors);
        let more = sectors - entity.service;
        self.clock.serve(entity, more);
    }

    /// Ends the turn of the queue in service (`bfq_bfqq_expire`). `until`: up to when it counts, which is when the wait for it began where that
    /// was in vain.
    fn expire(&mut self, now: Ns, until: Ns, end: End) {
        let Some(number) = self.in_service else { return };
        self.idle_until = None;
        match end {
            End::Preempted => self.counts.preemptions += 1,
            End::BudgetExhausted => self.counts.exhausted += 1,
            End::BudgetTimeout => self.counts.timeouts += 1,
            End::TooIdle | End::NoMoreRequests => {}
        }
        self.charge_time(until, number, end);
        self.in_service = None;
        let queue = &mut self.queues[number];
        queue.recalculate(end, &self.settings);
        self.clock.end_turn(&mut queue.entity);
        if queue.waiting.is_empty() {
            queue.has_left = !matches!(end, End::BudgetTimeout | End::BudgetExhausted);
            if !queue.has_left {
                queue.entity.service = 0;
            }
            queue.rests(now);
            self.clock.rest(number, &queue.entity);
            self.active.retain(|other| *other != number);
            return;
        }
        self.provide(number);
        let queue = &mut self.queues[number];
        let weight = queue.weight();
        self.clock.go_on(&mut queue.entity, weight);
        self.update_next(Some(number));
    }

    /// What the idle timer does, if it rang by now.
    fn ring(&mut self, now: Ns) {
        let Some(at) = self.idle_until.filter(|at| *at <= now) else { return };
        self.idle_until = None;
        if let Some(number) = self.in_service {
            let queue = &self.queues[number];
            if queue.turn_end <= at {
                self.expire(at, self.idle_since, End::BudgetTimeout);
            } else if queue.waiting.is_empty() {
                self.expire(at, self.idle_since, End::TooIdle);
            }
        }
    }

    /// Finds the queue that has its turn next, after one has changed or without that (`bfq_update_next_in_service`).
    fn update_next(&mut self, changed: Option<usize>) {
        if let Some(number) = changed.filter(|number| self.next != Some(*number)) {
            let entity = &self.queues[number].entity;
            if self.next.is_none_or(|next| self.clock.comes_before(entity, &self.queues[next].entity)) {
                self.next = changed;
                return;
            }
        }
        let queues = &self.queues;
        let waiting = self.active.iter().filter(|&&number| self.in_service != Some(number));
        let waiting = waiting.map(|&number| (number, &queues[number].entity));
        self.next = self.clock.next(waiting, self.in_service.is_some());
    }

    /// The queue that may dispatch; [`None`] while the disk waits for the one in service (`bfq_select_queue`).
    fn select(&mut self, now: Ns) -> Option<usize> {
        if let Some(number) = self.in_service {
            let queue = &self.queues[number];
            let end = match queue.waiting.next() {
                _ if self.is_over(now, number)
                    && !(queue.waiting.is_empty() && self.better_to_idle(number)) =>
                {
                    End::BudgetTimeout
                }
                Some(next) if self.charge(number, self.sectors[next.index()]) <= queue.entity.left() => {
                    return Some(number);
                }
                Some(_) => End::BudgetExhausted,
                None if self.idle_until.is_some() || queue.dispatched > 0 && self.better_to_idle(number) => {
                    return None;
                }
                None => End::NoMoreRequests,
            };
            self.expire(now, now, end);
        }
        let number = self.next?;
        self.counts.turns += 1;
        let queue = &mut self.queues[number];
        queue.fifo_checked = false;
        queue.turn_began = now;
        // A raised weight stretches the turn as well.
        queue.turn_end = now + Ns(self.settings.timeout.0 * queue.raise_factor());
        self.in_service = Some(number);
        self.clock.begin_turn();
        self.update_next(None);
        Some(number)
    }

    /// Whether the turn in service has lasted long enough (`bfq_may_expire_for_budg_timeout`).
    fn is_over(&self, now: Ns, number: usize) -> bool {
        let queue = &self.queues[number];
        let entity = &queue.entity;
        queue.turn_end <= now && (self.idle_until.is_none() || entity.left() >= entity.budget / 3)
    }

    /// A queue that waits for its turn has another next request (`bfq_updated_next_req`).
    fn rebudget(&mut self, number: usize) {
        let next = self.queues[number].waiting.next().expect("the queue has requests");
        let charge = self.charge(number, self.sectors[next.index()]);
        let queue = &mut self.queues[number];
        let budget = queue.max_budget.max(charge).max(queue.entity.service);
        if budget != queue.entity.budget {
            self.clock.rebudget(&mut queue.entity, budget);
            self.update_next(Some(number));
        }
    }

    /// A queue that was without requests has one (`bfq_bfqq_handle_idle_busy_switch`).
    fn activate(&mut self, now: Ns, number: usize) {
        let wait = Ns(ARRIVES_IN_TIME * self.settings.slice_idle.0);
        let queue = &mut self.queues[number];
        let in_time = queue.last_end.is_none_or(|end| now <= end + wait);
        // One that only waited for what it had asked for goes on where it was, and does not lose its place to those that came meanwhile.
        let goes_on = std::mem::take(&mut queue.has_left) && in_time && queue.entity.left() > 0;
        if goes_on {
            queue.entity.budget = queue.entity.left().min(queue.max_budget);
        } else {
            self.provide(number);
        }
        let least = self.settings.min_budget();
        let queue = &mut self.queues[number];
        queue.entity.service = 0;
        if queue.raise(now, &self.settings) {
            queue.entity.budget = queue.entity.budget.min(2 * least);
        }
        self.active.push(number);
        let (weight, factor) = (queue.weight(), queue.raise_factor());
        if goes_on {
            self.clock.take_up(number, &mut queue.entity, weight, factor);
        } else {
            self.clock.activate(number, &mut queue.entity, weight);
        }
        self.update_next(Some(number));
        let Some(serving) = self.in_service else { return };
        let serving_queue = &self.queues[serving];
        if goes_on && factor >= serving_queue.raise_factor()
            || weight > serving_queue.entity.weight
            || !self.better_to_idle(serving)
        {
            self.expire(now, now, End::Preempted);
        }
    }

    fn update_tagged(&mut self) {
        self.peak = self.peak.max(self.at_device);
        if self.tagged == Some(true) || self.at_device + self.waiting <= TAGGED_DEPTH {
            return;
        }
        let is_small = |number: usize| {
            let queue = &self.queues[number];
            let all = queue.dispatched + u64::from(queue.waiting.count());
            queue.thinks_shortly(&self.settings) && all < TAGGED_DEPTH && self.at_device < TAGGED_DEPTH
        };
        if self.in_service.is_some_and(is_small) {
            return;
        }
        self.samples += 1;
        if self.samples > TAGGED_SAMPLES {
            self.tagged = Some(self.peak > TAGGED_DEPTH);
            (self.samples, self.peak) = (0, 0);
        }
    }
}

impl Elevator for Bfq {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        // The timer rings first, except at this very instant: what comes in time is in time.
        self.ring(now.saturating_sub(Ns(1)));
        let number = self.queue_number(now, &request.request);
        self.queue_of[slot.index()] = number;
        self.waiting += 1;
        let queue = &mut self.queues[number];
        queue.learn(now, request.request.start.0, u64::from(request.request.sectors), &self.settings);
        let deadline = now + self.settings.expire(queue.synchronous);
        let before = queue.waiting.next();
        queue.waiting.add(&mut self.places, slot, request, deadline, self.position);
        self.sectors[slot.index()] = u64::from(request.request.sectors);
        let is_next = queue.waiting.next() != before;
        if self.in_service == Some(number) {
            if self.idle_until.take().is_some() && queue.turn_end <= now {
                self.expire(now, now, End::BudgetTimeout);
            }
        } else if queue.entity.is_active() {
            if is_next {
                self.rebudget(number);
            }
        } else {
            self.activate(now, number);
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        let queue = if growth.joining.synchronous {
            self.processes.find(growth.joining.process).and_then(|process| self.processes[process])
        } else {
            Some(ASYNCHRONOUS)
        };
        queue == Some(self.queue_of[growth.slot.index()])
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        let number = self.queue_of[slot.index()];
        self.queues[number].waiting.grew(&mut self.places, slot, after, self.position);
        self.sectors[slot.index()] = u64::from(after.request.sectors);
        let is_next = self.queues[number].waiting.next() == Some(slot);
        if self.in_service != Some(number) && is_next {
            self.rebudget(number);
        }
    }

    fn removed(&mut self, slot: Slot, _request: &QueuedRequest, _into: Slot) {
        let number = self.queue_of[slot.index()];
        self.queues[number].waiting.remove(&mut self.places, slot, self.position);
        self.waiting -= 1;
    }

    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick {
        self.ring(now);
        if self.settings.strict && self.at_device > 0 {
            return Pick::Nothing;
        }
        let Some(number) = self.select(now) else {
            return self.idle_until.map_or(Pick::Nothing, Pick::At);
        };
        let request =
            &queue.get(self.queues[number].waiting.next().expect("a queue in service has requests")).request;
        let charge = self.charge(number, u64::from(request.sectors));
        // The next one is sought from where this one ends.
        self.position = request.end().0;
        let serving = &mut self.queues[number];
        let slot = serving.waiting.next().expect("a queue in service has requests");
        let is_oldest = serving.waiting.oldest() == Some(slot);
        serving.waiting.serve(&mut self.places, slot, self.position);
        if !std::mem::replace(&mut serving.fifo_checked, true)
            && !is_oldest
            && let Some(overdue) = serving.waiting.overdue(&self.places, now)
        {
            serving.waiting.put_next(overdue);
        }
        serving.dispatched += 1;
        self.waiting -= 1;
        self.at_device += 1;
        self.clock.serve(&mut serving.entity, charge);
        if serving.served(now, charge) {
            let weight = serving.weight();
            self.clock.reweigh(&mut serving.entity, weight);
        }
        Pick::Request(slot)
    }

    fn completed(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        self.update_tagged();
        self.at_device -= 1;
        let number = self.queue_number(now, &request.request);
        let queue = &mut self.queues[number];
        queue.dispatched -= 1;
        queue.last_end = Some(now);
        if queue.dispatched == 0 && !queue.entity.is_active() {
            queue.rests(now);
        }
        if self.in_service != Some(number) {
            return;
        }
        let queue = &self.queues[number];
        let (last, is_empty) = (queue.dispatched == 0, queue.waiting.is_empty());
        let (seeky, raised) = (queue.is_seeky(), queue.is_raised());
        if is_empty && self.better_to_idle(number) {
            if last {
                let idle = self.settings.slice_idle;
                self.counts.idle_waits += 1;
                self.idle_since = now;
                self.idle_until = Some(
                    now + match (seeky, raised) {
                        (true, false) => idle.min(SEEKY_IDLE),
                        (_, true) => idle.max(RAISED_IDLE),
                        _ => idle,
                    },
                );
            }
        } else if self.is_over(now, number) {
            self.expire(now, now, End::BudgetTimeout);
        } else if is_empty {
            self.expire(now, now, End::NoMoreRequests);
        }
    }

    /// Tags are left for reads, more of them while a process has raised weight; and a queue that has more requests than its weight's share of what
    /// is left to it is held to the one tag that there always is (`bfq_limit_depth`, `bfqq_request_over_limit`).
    fn depth_limit(&self, request: &Request, length: u32) -> u32 {
        let sixteenths = match (request.direction, request.synchronous, self.raised_count() > 0) {
            (Direction::Read, ..) => 16,
            (Direction::Write, false, false) => 8,
            (Direction::Write, true, false) => 12,
            (Direction::Write, false, true) => 3,
            (Direction::Write, true, true) => 6,
        };
        let limit = (length * sixteenths / 16).max(1);
        let number = if request.synchronous {
            self.processes.find(request.process).and_then(|process| self.processes[process])
        } else {
            Some(ASYNCHRONOUS)
        };
        let Some(queue) = number.map(|number| &self.queues[number]).filter(|queue| queue.entity.is_active())
        else {
            return limit;
        };
        let requests = u64::from(queue.waiting.count()) + queue.dispatched;
        if requests >= self.clock.share(&queue.entity, limit.into()) { 1 } else { limit }
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("turns", self.counts.turns),
            ("preemptions", self.counts.preemptions),
            ("idle_waits", self.counts.idle_waits),
            ("budgets_exhausted", self.counts.exhausted),
            ("turns_timed_out", self.counts.timeouts),
        ])
    }
}
