//! What a run measured, as `results.json` says it. Field names are the file's: changing one changes the format.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the `results.json` format.
pub const RESULTS_FORMAT: u32 = 1;

/// The whole of `results.json`: one invocation, one or more runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`RESULTS_FORMAT`].
    pub format: u32,
    /// Program and version that wrote the file, e.g. `planewise 0.1.0`.
    pub generator: String,
    /// `complete`, or `interrupted` when runs are missing or cut short.
    pub status: Status,
    /// Trace, device and options, fully expanded.
    pub setup: Setup,
    /// Index into `runs` of the run that ratios refer to.
    pub baseline: usize,
    /// One entry per run, in the order asked for.
    pub runs: Vec<RunResult>,
}

/// Whether everything asked for was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All runs finished.
    Complete,
    /// Stopped early (Ctrl-C): what is there is true, but not all.
    Interrupted,
}

/// What all runs of an invocation share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Name of the trace, its file, format, content hash and size.
    pub trace: TraceSetup,
    /// The device profile, expanded, as TOML.
    pub device_profile: String,
    /// Device condition before the first request: `fresh`, `primed`, `filled`, or `aged:84/10/6`.
    pub condition: String,
    /// Every option with its value, defaults included, by its command line name.
    pub options: BTreeMap<String, String>,
    /// Name of the random generator.
    pub random_generator: String,
}

/// The trace of an invocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSetup {
    /// Short name for titles.
    pub name: String,
    /// File as given, or `embedded`, or `synthetic`.
    pub source: String,
    /// Format it was read as.
    pub format: String,
    /// BLAKE3 hash of the file's bytes (of the description for synthetic traces).
    pub hash: String,
}

/// One run: one scheduler on one device over the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What distinguishes the run.
    pub labels: Labels,
    /// What it measured.
    pub metrics: Metrics,
    /// Tunables of the scheduler with their values.
    pub tunables: BTreeMap<String, String>,
    /// Counters of the scheduler's own (batches opened, joined, promoted, …).
    pub scheduler_counters: BTreeMap<String, u64>,
    /// Whether the run reached the end of its trace.
    pub status: Status,
    /// Invariants checked, and how often; empty without `--check`.
    pub invariants: BTreeMap<String, u64>,
}

/// What distinguishes a run from the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Host scheduler.
    pub scheduler: String,
    /// Granularity it works at: `chip` or `plane`.
    pub level: String,
    /// Page allocation of the device.
    pub allocation: String,
    /// Garbage collection scheme of the device.
    pub gc: String,
    /// Device profile.
    pub device: String,
    /// Trace.
    pub trace: String,
    /// `blocking` or `ncq:D`.
    pub command_queue: String,
    /// Length of the host's I/O queue.
    pub queue_length: u32,
    /// Seed.
    pub seed: u64,
}

/// Everything measured. The measured window begins after the warm-up requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Counts of requests.
    pub requests: RequestCounts,
    /// Reads only.
    pub read: DirectionMetrics,
    /// Writes only.
    pub write: DirectionMetrics,
    /// Reads and writes together.
    pub all: DirectionMetrics,
    /// How busy the parallel units were.
    pub utilization: Utilization,
    /// Requests that met another on a unit when they arrived.
    pub conflict: ConflictShares,
    /// Requests and batches that went ahead of earlier ones.
    pub prioritized: PrioritizedShares,
    /// Flash operations.
    pub flash: FlashCounts,
    /// Garbage collection.
    pub gc: GcMetrics,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// Mean number of requests in the I/O queue (waiting and outstanding) over the window, by Little's law checked against latencies.
    pub mean_queue_depth: f64,
}

/// Counts of requests in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests that arrived.
    pub submitted: u64,
    /// Requests that completed.
    pub completed: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Requests absorbed by another in the queue.
    pub merged: u64,
}

/// Latencies and throughput of one direction, or of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionMetrics {
    /// Arrival to completion.
    pub latency_ns: Distribution,
    /// Arrival to issue.
    pub waiting_ns: Distribution,
    /// Issue to completion.
    pub processing_ns: Distribution,
    /// Part of processing spent waiting for a die, mean over requests, ns (longest transaction of each request).
    pub die_wait_ns_mean: f64,
    /// Part of processing spent waiting for a channel, mean over requests, ns.
    pub channel_wait_ns_mean: f64,
    /// Completed bytes over the window.
    pub bandwidth_bytes_per_s: f64,
    /// Completed requests over the window.
    pub iops: f64,
    /// Cumulative distribution of latencies: `[latency_ns, share of requests at or below it]`, rising, about 200 points, the last share is 1.
    pub cdf: Vec<(u64, f64)>,
}

/// A distribution of times, ns. Percentiles are from an HDR histogram with three significant digits; mean and max are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// 99.99th percentile.
    pub p9999: u64,
    /// Largest.
    pub max: u64,
}

/// Shares of time in which units were busy, 0 to 1, mean over the units of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// Chips.
    pub chip: UnitUtilization,
    /// Planes.
    pub plane: UnitUtilization,
    /// Dies.
    pub die: UnitUtilization,
    /// Channels.
    pub channel: UnitUtilization,
}

/// Utilization of one kind of unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitUtilization {
    /// Over the time in which at least one request is pending: what the papers' figures mean.
    pub active: f64,
    /// Over the whole measured window.
    pub wall: f64,
}

/// Shares of requests that conflict on arrival with a request in the I/O queue, waiting or outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConflictShares {
    /// Of reads.
    pub read_share: f64,
    /// Of writes.
    pub write_share: f64,
}

/// Shares that a scheduler moved ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrioritizedShares {
    /// Reads issued while an earlier write still waited, of all reads.
    pub read_share: f64,
    /// Write batches promoted before waiting reads, of all write batches.
    pub write_batch_share: f64,
}

/// Flash operations of the measured window, garbage collection included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashCounts {
    /// Pages read.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Pages moved by reads that a partial page write needed.
    pub read_modify_writes: u64,
    /// Pages served by multi-plane operations.
    pub multiplane: u64,
    /// Operations started while another die of their chip was busy.
    pub interleaved: u64,
    /// Pages moved by copyback.
    pub copybacks: u64,
}

/// Garbage collection in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GcMetrics {
    /// Victims collected.
    pub collections: u64,
    /// Valid pages moved.
    pub pages_moved: u64,
    /// Pages programmed over pages the host wrote; 1 when nothing was moved, 0 when nothing was written.
    pub write_amplification: f64,
    /// Largest minus smallest erase count of a block at the end.
    pub wear_spread: u64,
}
