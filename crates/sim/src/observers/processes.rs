//! What each process got, and how fair that was.

use super::Completion;
use crate::results::{Fairness, ProcessMetrics};
use planewise_model::Ns;

#[derive(Clone, Copy, Default)]
struct Process {
    number: u32,
    count: [u64; 2],
    bytes: u64,
    window: Window,
    latency: u128,
    longest: u64,
}

/// Sums by process. A few hundred processes at most are active: a sorted list, and the last one found first.
#[derive(Default)]
pub(super) struct Processes {
    sorted: Vec<Process>,
    last: usize,
}

impl Processes {
    #[inline]
    pub(super) fn record(&mut self, completion: &Completion) {
        let number = completion.request.process;
        if self.sorted.get(self.last).is_none_or(|process| process.number != number) {
            self.last =
                self.sorted.binary_search_by_key(&number, |process| process.number).unwrap_or_else(|at| {
                    self.sorted.insert(at, Process { number, ..Process::default() });
                    at
                });
        }
        let process = &mut self.sorted[self.last];
        let latency = (completion.completed - completion.request.arrival).0;
        process.count[completion.request.direction.index()] += 1;
        process.bytes += completion.request.bytes().0;
        process.window.record(completion);
        process.latency += u128::from(latency);
        process.longest = process.longest.max(latency);
    }

    pub(super) fn metrics(&self) -> Vec<ProcessMetrics> {
        self.sorted
            .iter()
            .map(|process| {
                let [reads, writes] = process.count;
                ProcessMetrics {
                    process: process.number,
                    reads,
                    writes,
                    bytes: process.bytes,
                    latency_ns_mean: process.latency as f64 / (reads + writes) as f64,
                    latency_ns_max: process.longest,
                }
            })
            .collect()
    }

    /// Over all processes, each by its own rate.
    pub(super) fn fairness(&self, metrics: &[ProcessMetrics]) -> Fairness {
        Fairness {
            processes: metrics.len() as u32,
            bandwidth: jain(self.sorted.iter().map(|process| process.window.rate(process.bytes))),
            latency: jain(metrics.iter().map(|process| process.latency_ns_mean)),
        }
    }
}

/// From a process's first measured arrival to its last completion.
#[derive(Clone, Copy, Default)]
pub(super) struct Window(pub(super) Option<(Ns, Ns)>);

impl Window {
    #[inline]
    pub(super) fn record(&mut self, completion: &Completion) {
        let (from, _) = self.0.unwrap_or((completion.request.arrival, completion.completed));
        self.0 = Some((from.min(completion.request.arrival), completion.completed));
    }

    pub(super) fn duration(self) -> Ns {
        self.0.map_or(Ns::ZERO, |(from, to)| to - from)
    }

    /// Bytes a second: who has less to do than others, and is done sooner, was not treated worse for that.
    pub(super) fn rate(self, bytes: u64) -> f64 {
        match self.duration() {
            Ns::ZERO => 0.0,
            duration => bytes as f64 / duration.as_secs_f64(),
        }
    }
}

/// Jain's index; 0 over nothing.
pub(super) fn jain(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares: f64 = values.clone().map(|value| value * value).sum();
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if squares == 0.0 { 0.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn the_index_is_one_for_equals_and_one_nth_for_a_winner_who_takes_all() {
        let index = |values: &[f64]| jain(values.iter().copied());
        assert_eq!(index(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(index(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!((index(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(index(&[]), 0.0);
    }
}
