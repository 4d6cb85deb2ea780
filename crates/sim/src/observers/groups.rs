//! What each job of a workload got.

use super::metrics::{Commands, Times};
use super::processes::{Window, jain};
use super::{Completion, Observer};
use crate::host::Slot;
use crate::results::{ClosedLoop, Fairness, JobDirection, JobMetrics, Operations, ProcessMetrics};
use planewise_model::Ns;
use planewise_workload::Group;

/// Gathers completions by group of processes.
pub struct Groups {
    warm_up: u64,
    groups: Vec<OfGroup>,
    processes: Vec<OfProcess>,
}

#[derive(Clone, Copy)]
struct OfProcess {
    group: u32,
    bytes: u64,
    window: Window,
}

struct OfGroup {
    group: Group,
    directions: [Direction; 2],
    commands: Commands,
    window: Window,
}

struct Direction {
    times: Times,
    requests: u64,
    bytes: u64,
}

impl Direction {
    fn new() -> Direction {
        Direction { times: Times::new(), requests: 0, bytes: 0 }
    }

    fn metrics(&self, duration: Ns) -> JobDirection {
        let per_s = |amount: u64| {
            if duration == Ns::ZERO { 0.0 } else { amount as f64 / duration.as_secs_f64() }
        };
        JobDirection {
            requests: self.requests,
            bytes: self.bytes,
            iops: per_s(self.requests),
            bandwidth_bytes_per_s: per_s(self.bytes),
            latency_ns: self.times.distribution(),
        }
    }
}

impl Groups {
    /// Of a workload whose first `warm_up` requests are not measured.
    pub fn new(groups: &[Group], warm_up: u64) -> Groups {
        let numbered = groups.iter().enumerate();
        let processes = numbered.flat_map(|(index, group)| {
            let process = OfProcess { group: index as u32, bytes: 0, window: Window::default() };
            (0..group.processes).map(move |_| process)
        });
        let of_group = |group: &Group| OfGroup {
            group: group.clone(),
            directions: [Direction::new(), Direction::new()],
            commands: Commands::default(),
            window: Window::default(),
        };
        Groups { warm_up, processes: processes.collect(), groups: groups.iter().map(of_group).collect() }
    }

    /// Measures from the request with this number on.
    pub fn start_after(&mut self, first: u64) {
        self.warm_up = first;
    }

    /// The results; what was counted with its number, over the window of the run, ns.
    pub fn metrics(&self, duration_ns: u64, operations: Option<(&str, u64)>) -> ClosedLoop {
        let operations = operations.map(|(what, count)| Operations {
            what: what.to_owned(),
            count,
            per_s: if duration_ns == 0 { 0.0 } else { count as f64 * 1e9 / duration_ns as f64 },
        });
        let mut first = 1;
        let mut jobs = Vec::with_capacity(self.groups.len());
        for of in &self.groups {
            jobs.push(self.job(of, first));
            first += of.group.processes;
        }
        ClosedLoop { jobs, operations }
    }

    fn job(&self, of: &OfGroup, first_process: u32) -> JobMetrics {
        let duration = of.window.duration();
        let mut all = Direction::new();
        for direction in &of.directions {
            all.times.add(&direction.times);
            all.requests += direction.requests;
            all.bytes += direction.bytes;
        }
        let from = first_process as usize - 1;
        let processes = &self.processes[from..from + of.group.processes as usize];
        JobMetrics {
            name: of.group.name.clone(),
            first_process,
            processes: of.group.processes,
            background: of.group.background,
            duration_ns: duration.0,
            read: of.directions[0].metrics(duration),
            write: of.directions[1].metrics(duration),
            all: all.metrics(duration),
            flushes: of.commands.flushes(),
            discards: of.commands.discards(),
            fairness: bandwidth_fairness(processes.iter()),
        }
    }

    /// Over the processes that nobody else waits for: nobody asks whether a page cleaner got its share. Over none where some were
    /// never at work together, as on two sides of a stonewall: they had nothing to share.
    pub fn fairness(&self, metrics: &[ProcessMetrics]) -> Fairness {
        let is_foreground = |process: &OfProcess| !self.groups[process.group as usize].group.background;
        let of = |metrics: &ProcessMetrics| &self.processes[metrics.process as usize - 1];
        let counted = metrics.iter().filter(|metrics| is_foreground(of(metrics)));
        let latest = counted.clone().filter_map(|metrics| of(metrics).window.0).map(|(from, _)| from).max();
        let earliest = counted.clone().filter_map(|metrics| of(metrics).window.0).map(|(_, to)| to).min();
        if latest >= earliest {
            return Fairness::default();
        }
        Fairness {
            processes: counted.clone().count() as u32,
            bandwidth: bandwidth_fairness(counted.clone().map(of)),
            latency: jain(counted.map(|metrics| metrics.latency_ns_mean)),
        }
    }
}

/// Jain's index of the rates of those that completed anything.
fn bandwidth_fairness<'a>(processes: impl Iterator<Item = &'a OfProcess> + Clone) -> f64 {
    let active = processes.filter(|process| process.window.0.is_some());
    jain(active.map(|process| process.window.rate(process.bytes)))
}

impl Observer for Groups {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        if completion.sequence < self.warm_up {
            return;
        }
        let request = &completion.request;
        let process = &mut self.processes[request.process as usize - 1];
        process.window.record(completion);
        let of = &mut self.groups[process.group as usize];
        of.window.record(completion);
        if !request.is_transfer() {
            of.commands.record(completion);
            return;
        }
        process.bytes += request.bytes().0;
        let direction = &mut of.directions[request.direction.index()];
        direction.times.record(completion.completed - request.arrival);
        direction.requests += 1;
        direction.bytes += request.bytes().0;
    }
}
