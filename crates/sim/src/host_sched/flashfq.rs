//! FlashFQ, after Shen and Park, "FlashFQ: A Fair Queueing I/O Scheduler for Flash-Based SSDs", USENIX ATC 2013: start-time
//! fair queueing of processes by what their requests cost, many at the device at once, but none that would put its process
//! further ahead of another than a threshold; and a process is counted as active for a moment after its last request, so
//! that it does not lose what it is behind because it issues one by one.

use super::by_process::ByProcess;
use super::cost::{CALIBRATIONS, Cost};
use super::habits::ThinkTime;
use super::list::{Links, List};
use super::tunables::{EXPIRE_MAX_MS, TunableKind, TunableValues};
use super::{Counters, Decision, Entry, Growth, HostScheduler, Tunable};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "flashfq",
    summary: "start-time fair queueing of processes, dispatch throttled to those that are not far ahead, short anticipation",
    source: "Shen and Park, USENIX ATC 2013",
    tunables: &TUNABLES,
    uses_units: false,
    build: |host, values| Ok(Box::new(FlashFq::new(host.queue_length, values))),
};

const TUNABLES: [Tunable; 6] = {
    let [small_read, large_read, small_write, large_write] = CALIBRATIONS;
    [
        Tunable {
            name: "throttle",
            unit: "ms",
            summary: "device time that a process may be ahead of the one that has had least; longer keeps more units busy, shorter is more even",
            kind: TunableKind::Number { default: 100, min: 0, max: EXPIRE_MAX_MS },
        },
        Tunable {
            name: "antic_percent",
            unit: "%",
            summary: "share of its time that a process that issues one by one may keep others from getting ahead while it thinks; 0 never waits",
            kind: TunableKind::Number { default: 50, min: 0, max: 95 },
        },
        small_read,
        large_read,
        small_write,
        large_write,
    ]
};

/// A think time counts this much at most: a longer one is no habit but a pause.
const THINK_TIME_MAX: Ns = Ns::from_millis(20);

/// A point in virtual time: the cost of what a process had, ns.
type Tag = u64;

struct Process {
    /// In order of arrival, which is that of their start tags.
    waiting: List,
    outstanding: List,
    /// Finish tag of its last request.
    finish: Tag,
    /// Until when it is counted as active though it has no request.
    awaited: Option<Ns>,
    think: ThinkTime,
    /// End of its last synchronous request, while it has none.
    last_end: Option<Ns>,
    is_active: bool,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            waiting: List::EMPTY,
            outstanding: List::EMPTY,
            finish: 0,
            awaited: None,
            think: ThinkTime::default(),
            last_end: None,
            is_active: false,
        }
    }
}

impl Process {
    fn has_requests(&self) -> bool {
        !self.outstanding.is_empty() || !self.waiting.is_empty()
    }

    /// How far it is: the start tag of its oldest unfinished request, or where its next one would start.
    fn progress(&self, tags: &[Tag]) -> Tag {
        let oldest = self.outstanding.first().or(self.waiting.first());
        oldest.map_or(self.finish, |slot| tags[slot.index()])
    }
}

struct FlashFq {
    cost: Cost,
    throttle: Tag,
    antic_percent: u64,
    links: Links,
    /// Start tags by slot.
    tags: Vec<Tag>,
    processes: ByProcess<Process>,
    /// Processes that have requests here or at the device, or are awaited.
    active: Vec<usize>,
    virtual_time: Tag,
    /// Highest finish tag.
    last_finish: Tag,
    throttled: u64,
    waits: u64,
    hits: u64,
}

impl FlashFq {
    fn new(slots: u32, values: &TunableValues) -> FlashFq {
        FlashFq {
            cost: Cost::new(values),
            throttle: Ns::from_millis(values.number("throttle")).0,
            antic_percent: values.number("antic_percent"),
            links: Links::new(slots),
            tags: vec![0; slots as usize],
            processes: ByProcess::new(),
            active: Vec::with_capacity(slots as usize),
            virtual_time: 0,
            last_finish: 0,
            throttled: 0,
            waits: 0,
            hits: 0,
        }
    }

    /// Forgets waits that are over, and processes with nothing to do.
    fn tidy(&mut self, now: Ns) {
        let processes = &mut self.processes;
        self.active.retain(|&number| {
            let process = &mut processes[number];
            process.awaited = process.awaited.filter(|until| *until > now);
            process.is_active = process.has_requests() || process.awaited.is_some();
            process.is_active
        });
        // Nobody is behind once all are through.
        if self.active.is_empty() {
            self.virtual_time = self.virtual_time.max(self.last_finish);
        }
    }

    /// The active process that is least far, and how far the one after it is.
    fn least(&self) -> Option<(usize, Tag, Tag)> {
        let mut least: Option<(usize, Tag, Tag)> = None;
        for &number in &self.active {
            let progress = self.processes[number].progress(&self.tags);
            least = Some(match least {
                None => (number, progress, Tag::MAX),
                Some((_, first, _)) if progress < first => (number, progress, first),
                Some((least, first, second)) => (least, first, second.min(progress)),
            });
        }
        least
    }

    /// Virtual time is where the active process is that is least far; it never goes back.
    fn advance_virtual_time(&mut self) {
        if let Some((_, progress, _)) = self.least() {
            self.virtual_time = self.virtual_time.max(progress);
        }
    }

    /// The waiting request with the lowest start tag of those that the device takes and that do not put their process too far
    /// ahead; and whether one was held back for that.
    fn choose(&self, gate: &Gate<'_>) -> (Option<Slot>, bool) {
        let Some((least, first, second)) = self.least() else { return (None, false) };
        let (mut best, mut held) = (None, false);
        for &number in &self.active {
            let Some(slot) = self.processes[number].waiting.first() else { continue };
            let tag = self.tags[slot.index()];
            let others = if number == least { second } else { first };
            if tag.saturating_sub(others) > self.throttle {
                held = true;
                continue;
            }
            let rank = (tag, gate.queue().get(slot).sequence);
            if best.is_none_or(|(found, _)| rank < found) && gate.accepts(slot) {
                best = Some((rank, slot));
            }
        }
        (best.map(|(_, slot)| slot), held)
    }
}

impl HostScheduler for FlashFq {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        // A process whose wait is over has no claim on the time before.
        self.tidy(now);
        self.advance_virtual_time();
        let number = self.processes.number(request.request.process);
        let process = &mut self.processes[number];
        if let Some(end) = process.last_end.take() {
            process.think.add((now - end).min(THINK_TIME_MAX));
        }
        self.hits += u64::from(process.awaited.take().is_some());
        let start = process.finish.max(self.virtual_time);
        process.finish = start.saturating_add(self.cost.of(&request.request).0);
        self.last_finish = self.last_finish.max(process.finish);
        self.tags[slot.index()] = start;
        process.waiting.push(&mut self.links, slot);
        if !std::mem::replace(&mut process.is_active, true) {
            self.active.push(number);
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        growth.into.request.process == growth.joining.process
    }

    fn merged(&mut self, _slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        let grown = self.cost.of(&after.request).0.saturating_sub(self.cost.of(&before.request).0);
        let number = self.processes.number(before.request.process);
        let process = &mut self.processes[number];
        process.finish = process.finish.saturating_add(grown);
        self.last_finish = self.last_finish.max(process.finish);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        let number = self.processes.number(request.request.process);
        self.processes[number].waiting.remove(&mut self.links, slot);
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        self.tidy(now);
        let (slot, held) = self.choose(gate);
        if let Some(slot) = slot {
            let number = self.processes.number(gate.queue().get(slot).request.process);
            let process = &mut self.processes[number];
            process.waiting.remove(&mut self.links, slot);
            process.outstanding.push(&mut self.links, slot);
            return Decision::Issue(slot);
        }
        self.throttled += u64::from(held);
        // When a process is no longer waited for, those ahead of it may go on.
        let ends = self.active.iter().filter_map(|&number| self.processes[number].awaited);
        ends.min().filter(|_| held).map_or(Decision::Wait, Decision::WakeAt)
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let number = self.processes.number(request.request.process);
        let process = &mut self.processes[number];
        process.outstanding.remove(&mut self.links, slot);
        let ended = !process.has_requests();
        if ended && request.request.synchronous {
            process.last_end = Some(now);
            // Of the time that the request and the wait take together, the wait may be this share.
            let wait = self.cost.of(&request.request).0 * self.antic_percent / (100 - self.antic_percent);
            let thinks_longer = process.think.is_valid() && process.think.mean() > Ns(wait);
            if wait > 0 && !thinks_longer {
                self.waits += 1;
                process.awaited = Some(now + Ns(wait));
            }
        }
        self.tidy(now);
        self.advance_virtual_time();
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("throttled", self.throttled),
            ("anticipations", self.waits),
            ("anticipation_hits", self.hits),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostQueue;
    use planewise_model::location::PageRange;
    use planewise_model::rng::generator;
    use planewise_model::{Direction, Lsn, Request};
    use rand::RngExt;

    /// Random processes, sizes and directions; a device that refuses at random and completes in any order.
    #[test]
    fn no_request_is_issued_that_puts_its_process_further_ahead_than_the_throttle() {
        for seed in 0..40 {
            let mut random = generator(seed, "flashfq throttle");
            let slots = random.random_range(1..64u32);
            let mut values = TunableValues::defaults(&TUNABLES);
            let throttle = random.random_range(0..4u64);
            values.set("flashfq", &TUNABLES, "throttle", &throttle.to_string()).unwrap();
            let mut scheduler = FlashFq::new(slots, &values);
            let mut queue = HostQueue::new(slots);
            let (mut now, mut sequence) = (Ns::ZERO, 0);
            // Slots of unfinished requests with their processes; the outstanding ones.
            let mut unfinished: Vec<(Slot, u32)> = Vec::new();
            let mut outstanding: Vec<Slot> = Vec::new();
            let (mut issued, mut virtual_time) = (0, 0);
            for _ in 0..4_000 {
                now = now + Ns(random.random_range(0..200_000));
                if queue.has_room() && random.random::<bool>() {
                    let direction = if random.random::<bool>() { Direction::Read } else { Direction::Write };
                    let process = random.random_range(0..3);
                    let start = Lsn(random.random_range(0..1_000u64) * 8);
                    let request = Request {
                        process,
                        ..Request::new(now, start, 8 << random.random_range(0..5), direction)
                    };
                    let queued =
                        QueuedRequest::new(now, sequence, request, PageRange::of(&request, 4096), false);
                    let slot = queue.enter(queued);
                    scheduler.insert(now, slot, &queued);
                    unfinished.push((slot, process));
                    sequence += 1;
                }
                let refused = random.random_range(0..4u64);
                let accepts = |request: &QueuedRequest| request.sequence % 4 != refused;
                while let Decision::Issue(slot) = scheduler.dispatch(now, &Gate::new(&queue, &accepts)) {
                    let own = queue.get(slot).request.process;
                    let others = unfinished.iter().filter(|(_, process)| *process != own);
                    let least = others.map(|(slot, _)| scheduler.tags[slot.index()]).min();
                    let tag = scheduler.tags[slot.index()];
                    assert!(
                        least.is_none_or(|least| tag <= least + throttle * 1_000_000),
                        "seed {seed}: {tag}, the least is at {least:?}"
                    );
                    queue.issue(slot, now, false);
                    outstanding.push(slot);
                    issued += 1;
                }
                if !outstanding.is_empty() && random.random::<bool>() {
                    let slot = outstanding.swap_remove(random.random_range(0..outstanding.len()));
                    let queued = queue.leave(slot);
                    unfinished.retain(|(other, _)| *other != slot);
                    scheduler.completed(now, slot, &queued);
                }
                assert!(scheduler.virtual_time >= virtual_time, "seed {seed}: virtual time goes back");
                virtual_time = scheduler.virtual_time;
            }
            assert!(issued > 1_000, "seed {seed}: {issued} of {sequence} issued");
        }
    }
}
