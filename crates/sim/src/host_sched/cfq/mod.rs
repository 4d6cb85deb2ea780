//! CFQ, as Linux 2.6.32 has it (`block/cfq-iosched.c`): each process has the disk for a slice of time, asynchronous
//! requests of all processes together for shorter ones.

mod queues;
pub(super) mod tunables;

use super::by_process::ByProcess;
use super::elevator::{Dispatching, Elevator, Pick};
use super::habits::ThinkTime;
use super::lineup::Places;
use super::one_way::OneWay;
use super::{Counters, Entry, Growth};
use crate::host::{HostQueue, QueuedRequest, Slot};
use planewise_model::{Ns, Request};
use queues::{Queue, ServiceTree, Slice};
use tunables::Settings;

pub(super) const ENTRY: Entry = Entry {
    name: "cfq",
    summary: "time slices for each process, idling for synchronous ones",
    source: "Linux 2.6.32, block/cfq-iosched.c",
    tunables: tunables::TUNABLES,
    uses_units: false,
    build: |host, values| Ok(Box::new(Dispatching::new(Cfq::new(host.queue_length, Settings::new(values))))),
};

/// Number of the queue of asynchronous requests; those of the processes follow it.
const ASYNCHRONOUS: usize = 0;
/// A preempting queue is put this far before the first, ns: a second.
const FRONT: i64 = 1_000_000_000;
/// Wait at most for a process that seeks (`CFQ_MIN_TT`).
const SEEKY_IDLE: Ns = Ns::from_millis(2);
/// Requests at the device at once from which on it counts as one that queues (`CFQ_HW_QUEUE_MIN`).
const TAGGED_DEPTH: u32 = 5;
/// Completions between two looks at that, less one.
const TAGGED_SAMPLES: u32 = 50;

/// What CFQ remembers about a process (`cfq_io_context`).
#[derive(Default)]
struct Process {
    think: ThinkTime,
    /// End of its last synchronous request; at first, when it appeared.
    last_end: Option<Ns>,
}

/// Whether the device queues commands, from how many it was seen to hold (`cfq_update_hw_tag`).
struct TagDetector {
    tagged: bool,
    samples: u32,
    peak: u32,
}

impl TagDetector {
    fn completed(&mut self, waiting: u32, at_device: u32) {
        self.peak = self.peak.max(at_device);
        if waiting <= TAGGED_DEPTH && at_device <= TAGGED_DEPTH {
            return;
        }
        self.samples += 1;
        if self.samples > TAGGED_SAMPLES {
            self.tagged = self.peak >= TAGGED_DEPTH;
            (self.samples, self.peak) = (0, 0);
        }
    }
}

#[derive(Default)]
struct Counts {
    slices: u64,
    preemptions: u64,
    idle_waits: u64,
    idle_timeouts: u64,
}

struct Cfq {
    settings: Settings,
    places: Places,
    /// Queue of the request in each slot.
    queue_of: Vec<usize>,
    processes: ByProcess<Process>,
    queues: Vec<Queue>,
    service: ServiceTree,
    active: Option<usize>,
    /// While the disk waits for the active queue: until when.
    idle_until: Option<Ns>,
    waiting: u32,
    /// Requests at the device, asynchronous and synchronous.
    at_device: [u32; 2],
    /// Synchronous requests on the dispatch list or at the device.
    synchronous_flight: u64,
    tags: TagDetector,
    /// Sector behind the last request issued.
    position: u64,
    last_synchronous_end: Ns,
    counts: Counts,
}

impl Cfq {
    fn new(slots: u32, settings: Settings) -> Cfq {
        let way = OneWay { back_max: settings.back_seek_max, back_penalty: settings.back_seek_penalty };
        Cfq {
            settings,
            places: Places::new(slots, way),
            queue_of: vec![ASYNCHRONOUS; slots as usize],
            processes: ByProcess::new(),
            queues: vec![Queue::new(false)],
            service: ServiceTree::new(slots),
            active: None,
            idle_until: None,
            waiting: 0,
            at_device: [0; 2],
            synchronous_flight: 0,
            tags: TagDetector { tagged: true, samples: 0, peak: 0 },
            position: 0,
            last_synchronous_end: Ns::ZERO,
            counts: Counts::default(),
        }
    }

    /// Puts a queue where it belongs in the order of service: all have the same priority, so synchronous ones come 80 ms
    /// later for each other busy queue and asynchronous ones 140 ms, corrected by what was left of the last slice.
    fn schedule(&mut self, now: Ns, number: usize) {
        let offset = self.settings.offset(self.queues[number].synchronous);
        let others = self.service.count() as i64 - i64::from(self.queues[number].key.is_some());
        let queue = &mut self.queues[number];
        let due = now.0 as i64 + others * offset - std::mem::take(&mut queue.residue);
        self.place(number, due);
    }

    fn place(&mut self, number: usize, due: i64) {
        let queue = &mut self.queues[number];
        if let Some(key) = queue.key {
            self.service.remove(key);
        }
        queue.key = Some(self.service.insert(number, due));
    }

    /// The active queue loses the disk (`cfq_slice_expired`).
    fn expire(&mut self, now: Ns, keeps_residue: bool) {
        let Some(number) = self.active.take() else { return };
        self.idle_until = None;
        let queue = &mut self.queues[number];
        queue.slice.waits = false;
        if let Some(end) = queue.slice.end
            && keeps_residue
        {
            queue.residue = end.0 as i64 - now.0 as i64;
        }
        if queue.key.is_some() {
            self.schedule(now, number);
        }
    }

    fn activate(&mut self, number: usize) {
        self.counts.slices += 1;
        self.idle_until = None;
        self.queues[number].slice = Slice::default();
        self.active = Some(number);
    }

    /// What the idle timer does, if it rang by now (`cfq_idle_slice_timer`).
    fn ring(&mut self, now: Ns) {
        let Some(at) = self.idle_until.filter(|at| *at <= now) else { return };
        self.idle_until = None;
        let Some(active) = self.active else { return };
        let queue = &self.queues[active];
        if queue.slice.must_dispatch {
            return;
        }
        let somebody_else_waits = !self.service.is_empty() && queue.waiting.is_empty();
        if queue.slice.is_used(at) || somebody_else_waits {
            self.counts.idle_timeouts += 1;
            self.expire(at, false);
        }
    }

    /// The queue that may dispatch; [`None`] while the disk waits for the active one (`cfq_select_queue`).
    fn select(&mut self, now: Ns) -> Option<usize> {
        let mut successor = None;
        if let Some(active) = self.active {
            let queue = &self.queues[active];
            if !queue.slice.is_used(now) || queue.slice.must_dispatch {
                if !queue.waiting.is_empty() {
                    return Some(active);
                }
                successor = self.cooperator(active);
                if successor.is_none() && (self.idle_until.is_some() || queue.dispatched > 0 && queue.idles) {
                    return None;
                }
            }
            self.expire(now, false);
        }
        let chosen = successor.or_else(|| self.service.first().map(|(_, queue)| queue))?;
        self.activate(chosen);
        Some(chosen)
    }

    /// Another synchronous queue whose next request is close to the last one: no need to wait (`cfq_close_cooperator`).
    fn cooperator(&self, number: usize) -> Option<usize> {
        let queue = &self.queues[number];
        if !queue.synchronous || queue.is_seeky() {
            return None;
        }
        let distance = |other: &usize| {
            let next = self.queues[*other].waiting.next().expect("busy queues have requests");
            self.places.start(next).abs_diff(self.position)
        };
        let closest = self.service.queues().filter(|other| *other != number).min_by_key(distance)?;
        let other = &self.queues[closest];
        (queue.is_close(distance(&closest)) && other.synchronous && !other.is_seeky()).then_some(closest)
    }

    /// Whether a queue may have one more request at the device (`cfq_may_dispatch`).
    fn may_dispatch(&self, now: Ns, number: usize) -> bool {
        let queue = &self.queues[number];
        if queue.idles && self.at_device[0] > 0 || self.synchronous_flight > 0 && !queue.synchronous {
            return false;
        }
        let mut depth = self.settings.quantum;
        if queue.dispatched >= depth {
            if self.service.count() > 1 {
                return false;
            }
            depth *= 4;
        }
        if !queue.synchronous && self.settings.low_latency {
            // Asynchronous requests come back one for each synchronous slice without a synchronous request.
            let slices = (now.saturating_sub(self.last_synchronous_end)).0 / self.settings.slice_sync.0;
            depth = depth.min(if queue.dispatched == 0 { slices.max(1) } else { slices });
        }
        queue.dispatched < depth
    }

    /// Starts to wait for the next request of the active queue, if that pays (`cfq_arm_slice_timer`).
    fn wait_for(&mut self, now: Ns, number: usize, process: usize) {
        let queue = &mut self.queues[number];
        let quick = !self.settings.rotational && self.tags.tagged;
        let slice_idle = self.settings.slice_idle;
        if quick || slice_idle == Ns::ZERO || !queue.idles || self.at_device != [0; 2] {
            return;
        }
        let think = &self.processes[process].think;
        let left = queue.slice.end.expect("a request has completed").saturating_sub(now);
        if think.is_valid() && left < think.mean() {
            return;
        }
        queue.slice.waits = true;
        let seeks = queue.seeks.is_valid() && queue.is_seeky();
        self.idle_until = Some(now + if seeks { slice_idle.min(SEEKY_IDLE) } else { slice_idle });
        self.counts.idle_waits += 1;
    }

    /// Learns from a request how its process behaves.
    fn learn(&mut self, now: Ns, number: usize, process: usize, request: &Request) {
        let slice_idle = self.settings.slice_idle;
        let habits = &mut self.processes[process];
        let elapsed = now - *habits.last_end.get_or_insert(now);
        habits.think.add(elapsed.min(Ns(2 * slice_idle.0)));
        let queue = &mut self.queues[number];
        let distance = if queue.position == 0 { 0 } else { queue.position.abs_diff(request.start.0) };
        queue.seeks.add(distance);
        queue.position = request.end().0;
        if !queue.synchronous {
            return;
        }
        if slice_idle == Ns::ZERO || !self.settings.low_latency && self.tags.tagged && queue.is_seeky() {
            queue.idles = false;
        } else if habits.think.is_valid() {
            let worth = if queue.seeks.is_valid() && queue.is_seeky() { SEEKY_IDLE } else { slice_idle };
            queue.idles = habits.think.mean() <= worth;
        }
    }

    /// Whether a new request takes the disk from the active queue (`cfq_should_preempt`).
    fn preempts(&self, now: Ns, request: &Request) -> bool {
        let Some(active) = self.active else { return false };
        let queue = &self.queues[active];
        queue.slice.is_used(now)
            || request.synchronous && !queue.synchronous
            || queue.slice.waits && queue.is_close(request.start.0.abs_diff(self.position))
    }

    fn preempt(&mut self, now: Ns, number: usize) {
        self.counts.preemptions += 1;
        self.expire(now, true);
        let (first, _) = self.service.first().expect("the preempting queue is in it");
        self.place(number, first - FRONT);
    }

    fn queue_number(&mut self, request: &Request) -> (usize, usize) {
        let process = self.processes.number(request.process);
        while self.queues.len() <= self.processes.count() {
            self.queues.push(Queue::new(true));
        }
        (process, if request.synchronous { process + 1 } else { ASYNCHRONOUS })
    }

    fn leave_service(&mut self, number: usize) {
        let queue = &mut self.queues[number];
        if queue.waiting.is_empty()
            && let Some(key) = queue.key.take()
        {
            self.service.remove(key);
        }
    }
}

impl Elevator for Cfq {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.ring(now.saturating_sub(Ns(1)));
        let (process, number) = self.queue_number(&request.request);
        self.queue_of[slot.index()] = number;
        let queue = &mut self.queues[number];
        let deadline = now + self.settings.expire(queue.synchronous);
        queue.waiting.add(&mut self.places, slot, request, deadline, self.position);
        if queue.key.is_none() {
            self.schedule(now, number);
        }
        self.waiting += 1;
        self.learn(now, number, process, &request.request);
        if self.active == Some(number) {
            let slice = &mut self.queues[number].slice;
            if slice.waits {
                slice.must_dispatch = true;
                self.idle_until = None;
            }
        } else if self.preempts(now, &request.request) {
            self.preempt(now, number);
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
        let queue = &mut self.queues[self.queue_of[slot.index()]];
        queue.waiting.grew(&mut self.places, slot, after, self.position);
    }

    fn removed(&mut self, slot: Slot, _request: &QueuedRequest, _into: Slot) {
        let number = self.queue_of[slot.index()];
        self.queues[number].waiting.remove(&mut self.places, slot, self.position);
        self.waiting -= 1;
        self.leave_service(number);
    }

    fn pick(&mut self, now: Ns, _queue: &HostQueue) -> Pick {
        self.ring(now);
        if self.service.is_empty() {
            return Pick::Nothing;
        }
        let Some(number) = self.select(now) else {
            return self.idle_until.map_or(Pick::Nothing, Pick::At);
        };
        if !self.may_dispatch(now, number) {
            return Pick::Nothing;
        }
        let queue = &mut self.queues[number];
        let overdue = queue.waiting.overdue(&self.places, now).filter(|_| !queue.slice.fifo_checked);
        queue.slice.fifo_checked = true;
        let slot = overdue.or(queue.waiting.next()).expect("a queue in service has requests");
        queue.waiting.serve(&mut self.places, slot, self.position);
        queue.dispatched += 1;
        queue.slice.dispatched += 1;
        queue.slice.must_dispatch = false;
        let synchronous = queue.synchronous;
        let used_up = !synchronous && queue.slice.dispatched >= self.settings.async_requests();
        self.waiting -= 1;
        self.synchronous_flight += u64::from(synchronous);
        self.leave_service(number);
        if used_up && self.service.count() > 1 {
            self.expire(now, false);
        }
        Pick::Request(slot)
    }

    fn issued(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.at_device[usize::from(request.request.synchronous)] += 1;
        self.position = request.request.end().0;
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        let (process, number) = self.queue_number(&request.request);
        debug_assert_eq!(number, self.queue_of[slot.index()]);
        let synchronous = request.request.synchronous;
        self.tags.completed(self.waiting, self.at_device[0] + self.at_device[1]);
        self.at_device[usize::from(synchronous)] -= 1;
        self.queues[number].dispatched -= 1;
        if synchronous {
            self.synchronous_flight -= 1;
            self.processes[process].last_end = Some(now);
            self.last_synchronous_end = now;
        }
        if self.active != Some(number) {
            return;
        }
        let queue = &mut self.queues[number];
        queue.slice.end.get_or_insert(now + self.settings.slice(synchronous));
        if queue.slice.is_used(now) {
            self.expire(now, true);
        } else if queue.waiting.is_empty() && synchronous && self.cooperator(number).is_none() {
            self.wait_for(now, number, process);
        }
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("slices", self.counts.slices),
            ("preemptions", self.counts.preemptions),
            ("idle_waits", self.counts.idle_waits),
            ("idle_timeouts", self.counts.idle_timeouts),
        ])
    }
}
