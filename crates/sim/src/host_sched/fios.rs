//! FIOS, after Park and Shen, "FIOS: A Fair, Efficient Flash I/O Scheduler", FAST 2012: every process has the same time of
//! the device in an epoch and spends it when it likes, beside the others; reads go before writes and are not mixed with
//! them; and a process is waited for a moment, so that it does not lose its time or its reads their precedence because it
//! issues them one by one.

use super::by_process::ByProcess;
use super::cost::{CALIBRATIONS, Cost};
use super::habits::ThinkTime;
use super::list::{Links, List};
use super::tunables::{EXPIRE_MAX_MS, TunableKind, TunableValues};
use super::{Counters, Decision, Entry, Growth, HostScheduler, Tunable};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::{Direction, Ns};

pub(super) const ENTRY: Entry = Entry {
    name: "fios",
    summary: "equal device time for each process in an epoch, reads before writes, short anticipation",
    source: "Park and Shen, FAST 2012",
    tunables: &TUNABLES,
    uses_units: false,
    build: |host, values| Ok(Box::new(Fios::new(host.queue_length, values))),
};

const TUNABLES: [Tunable; 6] = {
    let [small_read, large_read, small_write, large_write] = CALIBRATIONS;
    [
        Tunable {
            name: "timeslice",
            unit: "ms",
            summary: "device time of a process in an epoch; longer lets bursts pass, shorter is more even and answers sooner",
            kind: TunableKind::Number { default: 100, min: 1, max: EXPIRE_MAX_MS },
        },
        Tunable {
            name: "antic_percent",
            unit: "%",
            summary: "share of its time at the device that may be lost waiting for a process that issues one by one; 0 never waits",
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

struct Process {
    /// Waiting requests by direction, in order of arrival.
    waiting: [List; 2],
    outstanding: u32,
    /// What is left of its timeslice, ns; less than nothing when the last request cost more.
    left: i64,
    /// What its reads took of it, ns, less the overdue writes that had as much since.
    read: i64,
    /// The epoch in which both hold.
    epoch: u64,
    /// The process is waited for: until when, and for what.
    awaited: Option<(Ns, Direction)>,
    think: ThinkTime,
    /// End of its last synchronous request, while it has none.
    last_end: Option<Ns>,
    is_active: bool,
}

impl Default for Process {
    fn default() -> Process {
        Process {
            waiting: [List::EMPTY; 2],
            outstanding: 0,
            left: 0,
            read: 0,
            epoch: 0,
            awaited: None,
            think: ThinkTime::default(),
            last_end: None,
            is_active: false,
        }
    }
}

impl Process {
    /// Gives the timeslices of the epochs that began meanwhile: a new one replaces what was left, and pays for what was
    /// overdrawn.
    fn enter_epoch(&mut self, epoch: u64, timeslice: i64) {
        let missed = i64::try_from(epoch - self.epoch).unwrap_or(i64::MAX);
        if missed > 0 {
            self.left = timeslice.min(self.left.min(0).saturating_add(missed.saturating_mul(timeslice)));
            self.read = 0;
            self.epoch = epoch;
        }
    }

    /// Epochs until it has time left again, at least 1.
    fn epochs_to_recover(&self, timeslice: i64) -> u64 {
        self.left.min(0).unsigned_abs() / timeslice.unsigned_abs() + 1
    }

    fn has_waiting(&self) -> bool {
        self.waiting.iter().any(|list| !list.is_empty())
    }
}

struct Fios {
    cost: Cost,
    timeslice: i64,
    antic_percent: u64,
    links: Links,
    processes: ByProcess<Process>,
    /// Processes that have requests here or at the device, or are awaited.
    active: Vec<usize>,
    reads_outstanding: u32,
    epoch: u64,
    epoch_began: Ns,
    waits: u64,
    hits: u64,
}

impl Fios {
    fn new(slots: u32, values: &TunableValues) -> Fios {
        Fios {
            cost: Cost::new(values),
            timeslice: Ns::from_millis(values.number("timeslice")).0 as i64,
            antic_percent: values.number("antic_percent"),
            links: Links::new(slots),
            processes: ByProcess::new(),
            active: Vec::with_capacity(slots as usize),
            reads_outstanding: 0,
            epoch: 1,
            epoch_began: Ns::ZERO,
            waits: 0,
            hits: 0,
        }
    }

    /// Processes with time left in this epoch.
    fn entitled(&self) -> impl Iterator<Item = &Process> {
        self.active.iter().map(|&number| &self.processes[number]).filter(|process| process.left > 0)
    }

    /// The request that waits longest among the first of each entitled process, of those that the device takes.
    fn first(&self, direction: Direction, gate: &Gate<'_>) -> Option<Slot> {
        let heads = self.entitled().filter_map(|process| process.waiting[direction.index()].first());
        heads.filter(|slot| gate.accepts(*slot)).min_by_key(|slot| gate.queue().get(*slot).sequence)
    }

    /// Whether writes have to wait: for reads at the device, here, or about to come.
    fn is_for_reads(&self) -> bool {
        let reads = |process: &Process| {
            !process.waiting[Direction::Read.index()].is_empty()
                || process.awaited.is_some_and(|(_, what)| what == Direction::Read)
        };
        self.reads_outstanding > 0 || self.entitled().any(reads)
    }

    /// Forgets waits that are over, and processes with nothing to do.
    fn tidy(&mut self, now: Ns) {
        let processes = &mut self.processes;
        self.active.retain(|&number| {
            let process = &mut processes[number];
            process.awaited = process.awaited.filter(|(until, _)| *until > now);
            process.is_active = process.has_waiting() || process.outstanding > 0 || process.awaited.is_some();
            process.is_active
        });
    }

    /// The writes that were here when the epoch began, of processes whose own reads took the time for them: the first of each.
    /// Before the next epoch, which pays for them, they have as much time as the reads had.
    fn overdue(&self, gate: &Gate<'_>) -> impl Iterator<Item = Slot> {
        let processes = self.active.iter().map(|&number| &self.processes[number]);
        processes
            .filter(|process| process.read > 0)
            .filter_map(|process| process.waiting[Direction::Write.index()].first())
            .filter(|slot| gate.queue().get(*slot).entered <= self.epoch_began)
    }

    /// Nobody with time left issues requests: time passes to the epoch in which somebody has a timeslice again.
    fn begin_epoch(&mut self, now: Ns) {
        let epochs =
            self.active.iter().map(|&number| self.processes[number].epochs_to_recover(self.timeslice));
        self.epoch += epochs.min().unwrap_or(1);
        self.epoch_began = now;
        for &number in &self.active {
            self.processes[number].enter_epoch(self.epoch, self.timeslice);
        }
    }

    fn take(&mut self, slot: Slot, request: &QueuedRequest) -> Decision {
        let cost = self.cost.of(&request.request);
        let number = self.processes.number(request.request.process);
        let process = &mut self.processes[number];
        let direction = request.request.direction;
        process.waiting[direction.index()].remove(&mut self.links, slot);
        process.outstanding += 1;
        process.left -= cost.0 as i64;
        process.read += match direction {
            Direction::Read => cost.0 as i64,
            Direction::Write => -(cost.0 as i64),
        };
        self.reads_outstanding += u32::from(direction == Direction::Read);
        Decision::Issue(slot)
    }
}

impl HostScheduler for Fios {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let number = self.processes.number(request.request.process);
        let process = &mut self.processes[number];
        process.enter_epoch(self.epoch, self.timeslice);
        if let Some(end) = process.last_end.take() {
            process.think.add((now - end).min(THINK_TIME_MAX));
        }
        self.hits += u64::from(process.awaited.take().is_some_and(|(until, _)| until >= now));
        process.waiting[request.request.direction.index()].push(&mut self.links, slot);
        if !std::mem::replace(&mut process.is_active, true) {
            self.active.push(number);
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        growth.into.request.process == growth.joining.process
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        let number = self.processes.number(request.request.process);
        self.processes[number].waiting[request.request.direction.index()].remove(&mut self.links, slot);
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        self.tidy(now);
        loop {
            let writes = || self.first(Direction::Write, gate).filter(|_| !self.is_for_reads());
            if let Some(slot) = self.first(Direction::Read, gate).or_else(writes) {
                return self.take(slot, gate.queue().get(slot));
            }
            if self.entitled().next().is_some() {
                let ends = self.entitled().filter_map(|process| process.awaited.map(|(until, _)| until));
                return ends.min().map_or(Decision::Wait, Decision::WakeAt);
            }
            if self.overdue(gate).next().is_some() {
                let due =
                    self.overdue(gate).filter(|slot| self.reads_outstanding == 0 && gate.accepts(*slot));
                let first = due.min_by_key(|slot| gate.queue().get(*slot).sequence);
                return first.map_or(Decision::Wait, |slot| self.take(slot, gate.queue().get(slot)));
            }
            self.begin_epoch(now);
        }
    }

    fn completed(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        let number = self.processes.number(request.request.process);
        let process = &mut self.processes[number];
        process.outstanding -= 1;
        let direction = request.request.direction;
        self.reads_outstanding -= u32::from(direction == Direction::Read);
        if !request.request.synchronous || process.outstanding > 0 || process.has_waiting() {
            return;
        }
        process.last_end = Some(now);
        // Of the time that the request and the wait take together, the wait may be this share.
        let wait = self.cost.of(&request.request).0 * self.antic_percent / (100 - self.antic_percent);
        let thinks_longer = process.think.is_valid() && process.think.mean() > Ns(wait);
        if wait > 0 && process.left > 0 && !thinks_longer {
            self.waits += 1;
            process.awaited = Some((now + Ns(wait), direction));
        }
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("epochs", self.epoch),
            ("anticipations", self.waits),
            ("anticipation_hits", self.hits),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn a_process_has_time_again_after_exactly_the_epochs_that_pay_for_what_it_overdrew() {
        let timeslice = 1_000_000;
        for (left, epochs) in [(0, 1), (-1, 1), (-999_999, 1), (-1_000_000, 2), (-(1 << 50), 1_125_899_907)] {
            let mut process = Process { left, ..Process::default() };
            assert_eq!(process.epochs_to_recover(timeslice), epochs, "{left}");
            process.enter_epoch(epochs - 1, timeslice);
            assert!(process.left <= 0, "{left}: not one epoch earlier");
            process.enter_epoch(epochs, timeslice);
            assert_eq!(process.left, left + epochs as i64 * timeslice, "{left}");
        }
    }
}
