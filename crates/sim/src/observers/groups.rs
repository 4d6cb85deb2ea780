//! What each job of a workload got.

use super::metrics::Times;
use super::{Completion, Observer};
use crate::host::Slot;
use crate::results::{ClosedLoop, JobDirection, JobMetrics, Operations};
use planewise_model::Ns;
use planewise_workload::Group;

/// Gathers completions by group of processes.
pub(crate) struct Groups {
    warm_up: u64,
    groups: Vec<OfGroup>,
    /// Group of each process, and the bytes that it got.
    processes: Vec<(u32, u64)>,
}

struct OfGroup {
    group: Group,
    directions: [Direction; 2],
    /// First arrival and last completion.
    window: Option<(Ns, Ns)>,
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
    pub(crate) fn new(groups: &[Group], warm_up: u64) -> Groups {
        let numbered = groups.iter().enumerate();
        let processes =
            numbered.flat_map(|(index, group)| (0..group.processes).map(move |_| (index as u32, 0)));
        let of_group = |group: &Group| OfGroup {
            group: group.clone(),
            directions: [Direction::new(), Direction::new()],
            window: None,
        };
        Groups { warm_up, processes: processes.collect(), groups: groups.iter().map(of_group).collect() }
    }

    /// Measures from the request with this number on.
    pub(crate) fn start_after(&mut self, first: u64) {
        self.warm_up = first;
    }

    /// The results; what was counted with its number, over the window of the run, ns.
    pub(crate) fn metrics(&self, duration_ns: u64, operations: Option<(&str, u64)>) -> ClosedLoop {
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
        let duration = of.window.map_or(Ns::ZERO, |(from, to)| to - from);
        let mut all = Direction::new();
        for direction in &of.directions {
            all.times.add(&direction.times);
            all.requests += direction.requests;
            all.bytes += direction.bytes;
        }
        let from = first_process as usize - 1;
        let shares =
            self.processes[from..from + of.group.processes as usize].iter().map(|(_, bytes)| *bytes as f64);
        let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        JobMetrics {
            name: of.group.name.clone(),
            first_process,
            processes: of.group.processes,
            background: of.group.background,
            duration_ns: duration.0,
            read: of.directions[0].metrics(duration),
            write: of.directions[1].metrics(duration),
            all: all.metrics(duration),
            fairness: if squares == 0.0 {
                0.0
            } else {
                sum * sum / (f64::from(of.group.processes) * squares)
            },
        }
    }
}

impl Observer for Groups {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        if completion.sequence < self.warm_up {
            return;
        }
        let request = &completion.request;
        let (group, got) = &mut self.processes[request.process as usize - 1];
        *got += request.bytes().0;
        let of = &mut self.groups[*group as usize];
        let direction = &mut of.directions[request.direction.index()];
        direction.times.record(completion.completed - request.arrival);
        direction.requests += 1;
        direction.bytes += request.bytes().0;
        let (from, _) = of.window.unwrap_or((request.arrival, completion.completed));
        of.window = Some((from.min(request.arrival), completion.completed));
    }
}
