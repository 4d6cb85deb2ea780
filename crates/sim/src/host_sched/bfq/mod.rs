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
use planewise_model::{Ns, Request};
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

/// Number of the queue of asynchronous requests; those of the processes follow it.
const ASYNCHRONOUS: usize = 0;
/// Asynchronous sectors are charged so many times, where not all queues weigh the same (`bfq_async_charge_factor`).
const ASYNC_CHARGE: u64 = 3;
/// Wait at most for a process that seeks (`BFQ_MIN_TT`), and at least for one whose weight is raised.
const SEEKY_IDLE: Ns = Ns::from_millis(2);
const RAISED_IDLE: Ns = Ns::from_millis(20);
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
    processes: ByProcess<()>,
    queues: Vec<Queue>,
    clock: Clock,
    /// Queues with requests, or in service.
    active: Vec<usize>,
    in_service: Option<usize>,
    /// While the disk waits for the queue in service: until when.
    idle_until: Option<Ns>,
    waiting: u64,
    at_device: u64,
    /// Whether the device queues commands; unknown at first, which counts as yes.
    tagged: bool,
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
            clock: Clock::default(),
            active: Vec::with_capacity(slots as usize + 1),
            in_service: None,
            idle_until: None,
            waiting: 0,
            at_device: 0,
            tagged: true,
            samples: 0,
            peak: 0,
            position: 0,
            counts: Counts::default(),
        }
    }

    fn queue_number(&mut self, request: &Request) -> usize {
        let process = self.processes.number(request.process);
        while self.queues.len() <= self.processes.count() {
            self.queues.push(Queue::new(true, &self.settings));
        }
        if request.synchronous { process + 1 } else { ASYNCHRONOUS }
    }

    /// Sectors that a request counts for (`bfq_serv_to_charge`).
    fn charge(&self, number: usize, sectors: u64) -> u64 {
        let is_plain = self.queues[number].synchronous || !self.is_asymmetric();
        sectors * if is_plain { 1 } else { ASYNC_CHARGE }
    }

    /// Whether active queues have different weights (`bfq_asymmetric_scenario`).
    fn is_asymmetric(&self) -> bool {
        let mut weights = self.active.iter().map(|&number| self.queues[number].entity.weight);
        let first = weights.next();
        weights.any(|weight| Some(weight) != first)
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
        let rotational = self.settings.rotational;
        let quick = queue.think.mean() <= self.settings.slice_idle;
        let gains = rotational && (!self.tagged || !queue.is_seeky() && quick);
        let raised = self.raised_count();
        let alone = raised == self.active.len();
        let guarantees = queue.is_raised() && (!alone || self.at_device >= queue.dispatched + SURPLUS)
            || self.is_asymmetric();
        gains && raised == 0 || guarantees
    }

    /// Gives a queue that has requests the budget of its next turn; returns its weight.
    fn provide(&mut self, number: usize) -> u64 {
        let next = self.queues[number].waiting.next().expect("the queue has requests");
        let first = self.sectors[next.index()];
        let charge = self.charge(number, first);
        let queue = &mut self.queues[number];
        queue.entity.budget = queue.max_budget.max(charge);
        queue.weight()
    }

    /// Ends the turn of the queue in service (`bfq_bfqq_expire`).
    fn expire(&mut self, now: Ns, end: End) {
        let Some(number) = self.in_service.take() else { return };
        self.idle_until = None;
        match end {
            End::Preempted => self.counts.preemptions += 1,
            End::BudgetExhausted => self.counts.exhausted += 1,
            End::BudgetTimeout => self.counts.timeouts += 1,
            End::TooIdle | End::NoMoreRequests => {}
        }
        let queue = &mut self.queues[number];
        queue.recalculate(end, &self.settings);
        self.clock.end_turn(&mut queue.entity);
        queue.lower(now);
        if queue.waiting.is_empty() {
            queue.rests(now);
            self.active.retain(|other| *other != number);
        } else {
            let weight = self.provide(number);
            self.clock.go_on(&mut self.queues[number].entity, weight);
        }
    }

    /// What the idle timer does, if it rang by now.
    fn ring(&mut self, now: Ns) {
        let Some(at) = self.idle_until.filter(|at| *at <= now) else { return };
        self.idle_until = None;
        if let Some(number) = self.in_service {
            let queue = &self.queues[number];
            if queue.turn_end <= at {
                self.expire(at, End::BudgetTimeout);
            } else if queue.waiting.is_empty() {
                self.expire(at, End::TooIdle);
            }
        }
    }

    /// The queue that may dispatch; [`None`] while the disk waits for the one in service (`bfq_select_queue`).
    fn select(&mut self, now: Ns) -> Option<usize> {
        if let Some(number) = self.in_service {
            let queue = &self.queues[number];
            let end = match queue.waiting.next() {
                _ if queue.turn_end <= now && !(queue.waiting.is_empty() && self.better_to_idle(number)) => {
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
            self.expire(now, end);
        }
        let queues = &self.queues;
        let active = self.active.iter().map(|&number| (number, &queues[number].entity));
        let number = self.clock.next(active)?;
        self.counts.turns += 1;
        let queue = &mut self.queues[number];
        queue.fifo_checked = false;
        // A raised weight stretches the turn as well.
        queue.turn_end = now + Ns(self.settings.timeout.0 * queue.raise_factor());
        self.in_service = Some(number);
        Some(number)
    }

    fn update_tagged(&mut self) {
        self.peak = self.peak.max(self.at_device);
        if self.at_device + self.waiting <= TAGGED_DEPTH {
            return;
        }
        self.samples += 1;
        if self.samples >= TAGGED_SAMPLES {
            self.tagged = self.peak > TAGGED_DEPTH;
            (self.samples, self.peak) = (0, 0);
        }
    }
}

impl Elevator for Bfq {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        // The timer rings first, except at this very instant: what comes in time is in time.
        self.ring(now.saturating_sub(Ns(1)));
        let number = self.queue_number(&request.request);
        self.queue_of[slot.index()] = number;
        self.waiting += 1;
        let queue = &mut self.queues[number];
        queue.learn(now, request.request.start.0, u64::from(request.request.sectors), &self.settings);
        let deadline = now + self.settings.expire(queue.synchronous);
        queue.waiting.add(&mut self.places, slot, request, deadline, self.position);
        self.sectors[slot.index()] = u64::from(request.request.sectors);
        if queue.entity.is_active() {
            if self.in_service == Some(number) {
                self.idle_until = None;
            }
            return;
        }
        self.queues[number].raise(now, &self.settings);
        self.active.push(number);
        let weight = self.provide(number);
        self.clock.activate(&mut self.queues[number].entity, weight);
        if let Some(serving) = self.in_service
            && (self.queues[number].weight() > self.queues[serving].weight() || !self.better_to_idle(serving))
        {
            self.expire(now, End::Preempted);
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        let queue = if growth.joining.synchronous {
            self.processes.find(growth.joining.process).map(|process| process + 1)
        } else {
            Some(ASYNCHRONOUS)
        };
        queue == Some(self.queue_of[growth.slot.index()])
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        let number = self.queue_of[slot.index()];
        self.queues[number].waiting.grew(&mut self.places, slot, after, self.position);
        self.sectors[slot.index()] = u64::from(after.request.sectors);
        let charge = self.charge(number, u64::from(after.request.sectors));
        let queue = &mut self.queues[number];
        if self.in_service != Some(number) && queue.waiting.next() == Some(slot) {
            let budget = queue.entity.budget.max(charge);
            self.clock.rebudget(&mut queue.entity, budget);
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
        let serving = &mut self.queues[number];
        let overdue = serving.waiting.overdue(&self.places, now).filter(|_| !serving.fifo_checked);
        serving.fifo_checked = true;
        let slot = overdue.or(serving.waiting.next()).expect("a queue in service has requests");
        serving.waiting.serve(&mut self.places, slot, self.position);
        serving.dispatched += 1;
        self.waiting -= 1;
        let charge = self.charge(number, u64::from(queue.get(slot).request.sectors));
        self.clock.serve(&mut self.queues[number].entity, charge);
        Pick::Request(slot)
    }

    fn issued(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.at_device += 1;
        self.position = request.request.end().0;
    }

    fn completed(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        self.update_tagged();
        self.at_device -= 1;
        let number = self.queue_number(&request.request);
        let queue = &mut self.queues[number];
        queue.dispatched -= 1;
        queue.last_end = Some(now);
        if self.in_service != Some(number) || !queue.waiting.is_empty() {
            return;
        }
        let (last, is_over) = (queue.dispatched == 0, queue.turn_end <= now);
        let (seeky, raised) = (queue.is_seeky(), queue.is_raised());
        if last && self.better_to_idle(number) {
            let idle = self.settings.slice_idle;
            self.counts.idle_waits += 1;
            self.idle_until = Some(
                now + match (seeky, raised) {
                    (true, false) if !self.is_asymmetric() => idle.min(SEEKY_IDLE),
                    (_, true) => idle.max(RAISED_IDLE),
                    _ => idle,
                },
            );
        } else if is_over {
            self.expire(now, End::BudgetTimeout);
        } else if last || !self.better_to_idle(number) {
            self.expire(now, End::NoMoreRequests);
        }
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
