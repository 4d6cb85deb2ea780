//! The metrics of docs/results.md, gathered while the run goes on.

use super::busy::BusyTimes;
use super::processes::Processes;
use super::{ArrayOperation, Completion, Observer, Work};
use crate::host::{QueuedRequest, Slot};
use crate::results::{
    CommandMetrics, ConflictShares, DirectionMetrics, Distribution, FlashCounts, GcMetrics, Metrics,
    OverlapMetrics, PrioritizedShares, RequestCounts, Utilization,
};
use hdrhistogram::Histogram;
use planewise_model::{Direction, Geometry, Lpn, Ns, Operation, Ppn, Request};

/// Longest time a histogram tells apart, ns: about 3 hours. Longer ones count as that; means and maxima stay exact.
const LONGEST_NS: u64 = 10_000_000_000_000;

/// A distribution of times in the making.
pub struct Times {
    histogram: Histogram<u64>,
    sum: u128,
    /// For the deviation: double precision is enough, and squares of hours would overflow.
    squares: f64,
    max: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times::new()
    }
}

impl Times {
    /// Nothing recorded yet.
    pub fn new() -> Times {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid");
        Times { histogram, sum: 0, squares: 0.0, max: 0 }
    }

    /// Records a time.
    #[inline]
    pub fn record(&mut self, time: Ns) {
        self.histogram.saturating_record(time.0);
        self.sum += u128::from(time.0);
        self.squares += time.0 as f64 * time.0 as f64;
        self.max = self.max.max(time.0);
    }

    pub(super) fn add(&mut self, other: &Times) {
        self.histogram.add(&other.histogram).expect("histograms of one shape");
        self.sum += other.sum;
        self.squares += other.squares;
        self.max = self.max.max(other.max);
    }

    /// Values that occurred with the number of times at or below each, rising.
    fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut sum = 0;
        self.histogram
            .iter_recorded()
            .map(|step| {
                sum += step.count_since_last_iteration();
                // A bucket may end above the largest value in it.
                (step.value_iterated_to().min(self.max), sum)
            })
            .collect()
    }

    /// The distribution of what was recorded; all zeros when nothing was.
    pub fn distribution(&self) -> Distribution {
        let cumulative = self.cumulative();
        let Some(&(_, count)) = cumulative.last() else { return Distribution::default() };
        let at = |quantile| cumulative[position(&cumulative, quantile)].0;
        let mean = self.sum as f64 / count as f64;
        Distribution {
            mean,
            deviation: (self.squares / count as f64 - mean * mean).max(0.0).sqrt(),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: self.max,
        }
    }

    /// About 200 points: even steps of probability, finer towards the tail.
    fn cdf(&self) -> Vec<(u64, f64)> {
        let cumulative = self.cumulative();
        let Some(&(_, count)) = cumulative.last() else { return Vec::new() };
        let body = (1..=100).map(|percent| f64::from(percent) / 101.0);
        let tail = (0..100).map(|step| 1.0 - 0.01 * 10f64.powf(-f64::from(step) / 25.0));
        let mut steps: Vec<usize> =
            body.chain(tail).map(|quantile| position(&cumulative, quantile)).collect();
        steps.push(cumulative.len() - 1);
        steps.dedup();
        steps.iter().map(|&step| (cumulative[step].0, cumulative[step].1 as f64 / count as f64)).collect()
    }
}

/// The first value that at least a share `quantile` of all are at or below.
fn position(cumulative: &[(u64, u64)], quantile: f64) -> usize {
    let count = cumulative.last().map_or(0, |&(_, count)| count);
    let rank = ((quantile * count as f64).ceil() as u64).clamp(1, count);
    cumulative.partition_point(|&(_, below)| below < rank)
}

/// One direction.
struct DirectionTimes {
    latency: Times,
    waiting: Times,
    processing: Times,
    die_wait: u128,
    channel_wait: u128,
    bytes: u64,
    count: u64,
    conflicts: u64,
    /// Requests that were held for an earlier one that they overlap, and for how long in all.
    held: u64,
    held_ns: u128,
}

impl DirectionTimes {
    fn new() -> DirectionTimes {
        DirectionTimes {
            latency: Times::new(),
            waiting: Times::new(),
            processing: Times::new(),
            die_wait: 0,
            channel_wait: 0,
            bytes: 0,
            count: 0,
            conflicts: 0,
            held: 0,
            held_ns: 0,
        }
    }

    #[inline]
    fn record(&mut self, completion: &Completion) {
        let request = &completion.request;
        self.latency.record(completion.completed - request.arrival);
        self.waiting.record(completion.issued - request.arrival);
        self.processing.record(completion.completed - completion.issued);
        self.die_wait += u128::from(completion.die_wait.0);
        self.channel_wait += u128::from(completion.channel_wait.0);
        self.bytes += request.bytes().0;
        self.count += 1;
        self.conflicts += u64::from(completion.conflict);
        self.held += u64::from(completion.released > completion.entered);
        self.held_ns += u128::from((completion.released - completion.entered).0);
    }

    fn add(&mut self, other: &DirectionTimes) {
        self.latency.add(&other.latency);
        self.waiting.add(&other.waiting);
        self.processing.add(&other.processing);
        self.die_wait += other.die_wait;
        self.channel_wait += other.channel_wait;
        self.bytes += other.bytes;
        self.count += other.count;
        self.conflicts += other.conflicts;
        self.held += other.held;
        self.held_ns += other.held_ns;
    }

    fn metrics(&self, duration: Ns) -> DirectionMetrics {
        let mean = |sum: u128| if self.count == 0 { 0.0 } else { sum as f64 / self.count as f64 };
        DirectionMetrics {
            latency_ns: self.latency.distribution(),
            waiting_ns: self.waiting.distribution(),
            processing_ns: self.processing.distribution(),
            die_wait_ns_mean: mean(self.die_wait),
            channel_wait_ns_mean: mean(self.channel_wait),
            bandwidth_bytes_per_s: per_second(self.bytes, duration),
            iops: per_second(self.count, duration),
            cdf: self.latency.cdf(),
        }
    }

    fn conflict_share(&self) -> f64 {
        share(self.conflicts, self.count)
    }
}

/// Flushes or discards.
#[derive(Default)]
struct CommandTimes {
    latency: Times,
    bytes: u64,
    count: u64,
}

/// Flushes and discards, each from the first one on: most runs have none.
#[derive(Default)]
pub(super) struct Commands([Option<Box<CommandTimes>>; 2]);

impl Commands {
    /// Records the completion of a flush or a discard.
    #[cold]
    pub(super) fn record(&mut self, completion: &Completion) {
        let kind = usize::from(completion.request.operation == Operation::Discard);
        let times = self.0[kind].get_or_insert_default();
        times.latency.record(completion.completed - completion.request.arrival);
        times.bytes += completion.request.bytes().0;
        times.count += 1;
    }

    fn metrics(&self, kind: usize) -> Option<CommandMetrics> {
        self.0[kind].as_ref().map(|times| CommandMetrics {
            count: times.count,
            bytes: times.bytes,
            latency_ns: times.latency.distribution(),
        })
    }

    /// Flushes; none when there were none.
    pub(super) fn flushes(&self) -> Option<CommandMetrics> {
        self.metrics(0)
    }

    /// Discards; none when there were none.
    pub(super) fn discards(&self) -> Option<CommandMetrics> {
        self.metrics(1)
    }
}

fn per_second(amount: u64, duration: Ns) -> f64 {
    if duration == Ns::ZERO { 0.0 } else { amount as f64 / duration.as_secs_f64() }
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    per(part, whole)
}

/// How much of one thing for each of another; 0 where there is none of that.
pub(super) fn per(amount: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { amount as f64 / count as f64 }
}

/// Gathers everything `results.json` holds about a run.
pub struct MetricsObserver {
    /// Requests before this number are warm-up.
    warm_up: u64,
    measuring: bool,
    window_start: Ns,
    last: Ns,
    directions: [DirectionTimes; 2],
    commands: Commands,
    submitted: u64,
    merged: u64,
    /// Pending requests; since when there is at least one; such time so far.
    pending: u32,
    active_since: Ns,
    active: Ns,
    /// Integral of the number of pending requests over time.
    queue_area: u128,
    geometry: Option<Geometry>,
    busy: BusyTimes,
    flash: FlashCounts,
    overtaking_reads: u64,
    /// Direction of the last request issued.
    last_issued: Option<Direction>,
    direction_switches: u64,
    processes: Processes,
}

impl MetricsObserver {
    /// Of a run whose first `warm_up` requests are not measured.
    pub fn new(warm_up: u64) -> MetricsObserver {
        MetricsObserver {
            warm_up,
            measuring: warm_up == 0,
            window_start: Ns::ZERO,
            last: Ns::ZERO,
            directions: [DirectionTimes::new(), DirectionTimes::new()],
            commands: Commands::default(),
            submitted: 0,
            merged: 0,
            pending: 0,
            active_since: Ns::ZERO,
            active: Ns::ZERO,
            queue_area: 0,
            geometry: None,
            busy: BusyTimes::default(),
            flash: FlashCounts::default(),
            overtaking_reads: 0,
            last_issued: None,
            direction_switches: 0,
            processes: Processes::default(),
        }
    }

    /// Measures from the request with this number on.
    pub fn start_after(&mut self, first: u64) {
        self.warm_up = first;
    }

    /// Time in which requests were pending, up to now.
    #[inline]
    fn active_clock(&self, now: Ns) -> Ns {
        if self.pending > 0 { self.active + (now - self.active_since) } else { self.active }
    }

    #[inline]
    fn note_time(&mut self, now: Ns) {
        self.queue_area += u128::from(self.pending) * u128::from((now - self.last).0);
        self.last = now;
    }

    /// Forgets the warm-up. What is under way counts from here on.
    fn start_window(&mut self, now: Ns) {
        self.measuring = true;
        self.window_start = now;
        self.queue_area = 0;
        self.active = Ns::ZERO;
        self.active_since = now;
        self.busy.start_window(now);
        self.flash = FlashCounts::default();
        (self.submitted, self.merged, self.overtaking_reads, self.direction_switches) = (0, 0, 0, 0);
    }

    fn submitted_one(&mut self, now: Ns, sequence: u64) {
        if !self.measuring && sequence >= self.warm_up {
            self.note_time(now);
            self.start_window(now);
        }
        self.submitted += 1;
    }

    /// The results. Batch counts, (promoted, all), are the scheduler's, of the same window. Units whose number nobody told, by
    /// [`Observer::start`], have no utilization: 0.
    pub fn metrics(&self, now: Ns, write_batches: (u64, u64), gc: GcMetrics) -> Metrics {
        let duration = now.saturating_sub(self.window_start);
        let active = self.active_clock(now);
        let mut all = DirectionTimes::new();
        self.directions.iter().for_each(|direction| all.add(direction));
        let [read, write] = &self.directions;
        let processes = self.processes.metrics();
        Metrics {
            requests: RequestCounts {
                submitted: self.submitted,
                completed: all.count,
                reads: read.count,
                writes: write.count,
                merged: self.merged,
            },
            read: read.metrics(duration),
            write: write.metrics(duration),
            all: all.metrics(duration),
            utilization: self.geometry.map_or_else(Utilization::default, |geometry| {
                self.busy.utilization(&geometry, now, duration, active)
            }),
            conflict: ConflictShares {
                read_share: read.conflict_share(),
                write_share: write.conflict_share(),
            },
            overlap: OverlapMetrics {
                read_share: share(read.held, read.count),
                write_share: share(write.held, write.count),
                held_ns_mean: if all.held == 0 { 0.0 } else { all.held_ns as f64 / all.held as f64 },
            },
            flushes: self.commands.flushes(),
            discards: self.commands.discards(),
            prioritized: PrioritizedShares {
                read_share: share(self.overtaking_reads, read.count),
                write_batch_share: share(write_batches.0, write_batches.1),
            },
            flash: self.flash,
            gc,
            duration_ns: duration.0,
            mean_queue_depth: if duration == Ns::ZERO {
                0.0
            } else {
                self.queue_area as f64 / duration.0 as f64
            },
            direction_switches: self.direction_switches,
            fairness: self.processes.fairness(&processes),
            processes,
        }
    }
}

impl Observer for MetricsObserver {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.geometry = Some(*geometry);
        self.busy.start(geometry, executors);
    }

    #[inline]
    fn enter(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.submitted_one(now, request.sequence);
        self.note_time(now);
        if self.pending == 0 {
            self.active_since = now;
            self.busy.set_active(now, true);
        }
        self.pending += 1;
    }

    fn merge(&mut self, now: Ns, _slot: Slot, sequence: u64, _request: &Request) {
        self.submitted_one(now, sequence);
        self.merged += 1;
        self.note_time(now);
        self.pending += 1;
    }

    fn join(&mut self, _now: Ns, _into: Slot, _other: Slot) {
        self.merged += 1;
    }

    #[inline]
    fn issue(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction;
        if !request.request.is_transfer() {
            return;
        }
        self.direction_switches += u64::from(self.last_issued.is_some_and(|last| last != direction));
        self.last_issued = Some(direction);
    }

    #[inline]
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        self.note_time(completion.completed);
        self.pending -= 1;
        if self.pending == 0 {
            self.active += completion.completed - self.active_since;
            self.busy.set_active(completion.completed, false);
        }
        if completion.sequence < self.warm_up {
            return;
        }
        if !completion.request.is_transfer() {
            self.commands.record(completion);
        } else {
            self.directions[completion.request.direction.index()].record(completion);
            self.processes.record(completion);
            self.overtaking_reads += u64::from(completion.overtakes);
        }
    }

    #[inline]
    fn page_read(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, _ppn: Ppn, modify: bool) {
        self.flash.read_modify_writes += u64::from(modify);
    }

    fn rest_read(&mut self, _now: Ns, _lpn: Lpn, _ppn: Ppn) {
        self.flash.read_modify_writes += 1;
    }

    #[inline]
    fn page_program(&mut self, _now: Ns, _origin: super::Origin, _lpn: Lpn, _ppn: Ppn) {
        self.flash.programs += 1;
    }

    fn pages_padded(&mut self, _now: Ns, _first: Ppn, count: u32) {
        self.flash.padding += u64::from(count);
    }

    fn parity_programmed(&mut self, _now: Ns, pages: u32) {
        self.flash.parity += u64::from(pages);
    }

    fn block_erase(&mut self, _now: Ns, _block: u32) {
        self.flash.erases += 1;
    }

    #[inline]
    fn channel_busy(&mut self, channel: u32, _executor: u32, from: Ns, to: Ns, _work: Work) {
        self.busy.channel(channel, from, to);
    }

    #[inline]
    fn array_busy(
        &mut self,
        _executor: u32,
        _from: Ns,
        _to: Ns,
        what: ArrayOperation,
        planes: u32,
        _work: Work,
    ) {
        let pages = u64::from(planes);
        match what {
            ArrayOperation::Read => self.flash.reads += pages,
            ArrayOperation::Program | ArrayOperation::Erase => {}
            ArrayOperation::Copyback => {
                self.flash.reads += pages;
                self.flash.copybacks += pages;
            }
        }
        if planes > 1 {
            self.flash.multiplane += pages;
        }
    }

    #[inline]
    fn operation_start(&mut self, now: Ns, executor: u32, planes: u32) {
        self.flash.interleaved += u64::from(self.busy.begin(now, executor, planes));
    }

    #[inline]
    fn operation_end(&mut self, now: Ns, executor: u32, _planes: u32) {
        self.busy.end(now, executor);
    }
}
