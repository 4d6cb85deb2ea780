//! What a run measured, as `results.json` says it. Field names are the file's: changing one changes the format.

use crate::host::BlockLayer;
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
    /// What has to be known of how the run was set up: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the run reached the end of its trace.
    pub status: Status,
    /// Invariants checked, and how often; empty without `--check`.
    pub invariants: BTreeMap<String, u64>,
    /// What a closed loop measures besides; nothing when a trace was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoop>,
    /// What was measured from outside; nothing when the simulator itself measured. What only a simulator sees (utilization,
    /// waits for dies and channels, flash operations, collections) is 0 in `metrics` then, and no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<MeasuredTarget>,
    /// How a trace was replayed on a target; nothing for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// How the trace asked for more than could be served; nothing when it did not, and where nothing is due at recorded times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// What recorded completions did for the dependent pace; nothing for other paces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent: Option<Dependent>,
    /// What ran in a kernel of its own; nothing where requests came from elsewhere. The scheduler of the labels is the kernel's then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Guest>,
}

/// A program in a kernel whose time is the model's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// Its status as a shell has it; none where it was ended.
    pub status: Option<u8>,
    /// When it began, since the kernel booted, ns.
    pub began_ns: u64,
    /// How long it ran, ns.
    pub ran_ns: u64,
    /// What it says of itself.
    pub numbers: Vec<GuestNumber>,
    /// Requests to the drive from boot to power-off.
    pub requests: u64,
    /// Of these refused: malformed, or past its end.
    pub refused: u64,
    /// BLAKE3 hash of all that the drive was asked, when, and when it was done: that of another run with the same bytes is the same.
    pub trace_hash: String,
    /// BLAKE3 hash of the program's output and errors and of the kernel's log.
    pub output_hash: String,
}

/// A number in a program's output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestNumber {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Its value; none where the output has none.
    pub value: Option<f64>,
}

/// How a trace at recorded times asked for more than could be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A last part of the window holds more work than time: the backlog grows to its end.
    #[default]
    Grows,
    /// Requests wait outside the full queue for a fifth of the window or more.
    Stands,
}

/// A trace at recorded times that asked for more than could be served: latencies are those of the backlog, and depend on how long
/// the trace is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// How.
    pub cause: Cause,
    /// Of a backlog that grows: share of the window, at its end, that holds more work than time. Of one that stands: share of the
    /// window in which requests waited outside the full queue.
    pub window_share: f64,
    /// How much too fast the trace is, above 1: work over time in that part of the window; or the share in which the backlog stands,
    /// over the fifth of the window that bursts may take.
    pub factor: f64,
    /// Of a backlog that grows: mean wait before issue at its end, ns. Of one that stands: mean wait outside the queue, ns.
    pub backlog_ns: u64,
    /// Of a backlog that grows: requests that wait at the end of the window. Of one that stands: that wait outside the queue, mean over
    /// the time when any do.
    pub backlog_requests: u64,
    /// Requests a second that arrived.
    pub offered_iops: f64,
    /// Requests a second at which the trace would not be overloaded.
    pub stable_iops: f64,
    /// The factor of time (`--scale-time`) that makes it so.
    pub stable_scale_time: f64,
}

/// What a replay at the dependent pace knew, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dependent {
    /// Requests of which the trace does not say when they completed: nothing waited for them.
    pub without_completion: u64,
    /// From the first arrival to the last one in the recording, times the factor of time, ns.
    pub recorded_ns: u64,
    /// The same here, ns.
    pub replayed_ns: u64,
    /// Requests under way at an arrival, that one included, of those whose completions are known: mean over arrivals of the recording.
    pub recorded_depth: f64,
    /// The most of them.
    pub recorded_depth_max: u64,
    /// Requests under way at an arrival, that one included: mean over arrivals here.
    pub replayed_depth: f64,
    /// The most of them.
    pub replayed_depth_max: u64,
}

/// A target as it was measured from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTarget {
    /// As the user names it: `sim:ssd-s`, `/dev/nvme0n1`.
    pub name: String,
    /// What it is: `simulated device`, `block device`, `file`.
    pub kind: String,
    /// What served it: `model`, `io_uring`, `synchronous`.
    pub engine: String,
    /// Bytes that can be addressed.
    pub capacity_bytes: u64,
    /// Unit of addresses and lengths, bytes.
    pub block_bytes: u32,
    /// Operations under way at most.
    pub depth: u32,
    /// Parallel units that the host believed in; none when it was told of none, and conflicts are 0 and no measurement.
    pub units: Option<u32>,
    /// Bytes of a page as the host believed in it.
    pub page_bytes: u32,
    /// Requests longer than the target's longest operation, made of several.
    pub split_requests: u64,
    /// Why the run ended early, when the target failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How a trace was replayed on a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// From the time when a request was due to when it was in the hands of the target's driver, or of the scheduler in front of
    /// it. All 0 at the paces `closed:N` and `asap`, where nothing is due.
    pub lateness_ns: Distribution,
    /// The 99th percentile of lateness above which the replay is not faithful, ns.
    pub lateness_bound_ns: u64,
    /// Whether the 99th percentile of lateness is within the bound. Absent where nothing says so: at the paces `closed:N` and
    /// `asap`, where nothing is due, and where no request was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faithful: Option<bool>,
    /// Requests that were late because the host's queue had no room: the target is slower than the trace.
    pub late_for_room: u64,
    /// Recorded requests that were left out because they write.
    pub writes_left_out: u64,
    /// Flushes that were left out.
    #[serde(default)]
    pub flushes_left_out: u64,
    /// Writes that went without the flush or the forced unit access that they were recorded with.
    #[serde(default)]
    pub writes_unforced: u64,
    /// Discards that were left out.
    #[serde(default)]
    pub discards_left_out: u64,
    /// Requests that were widened to whole blocks of the target.
    pub widened: u64,
    /// Discards that were narrowed to whole blocks of the target.
    #[serde(default)]
    pub narrowed: u64,
    /// Requests whose addresses were folded back onto the target.
    pub folded: u64,
    /// Of these, cut off at the end of the target.
    pub cut_at_end: u64,
}

/// What the processes of a workload got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// Jobs, or kinds of threads of an application model, in the order of their processes.
    pub jobs: Vec<JobMetrics>,
    /// What the workload's own benchmark counts.
    pub operations: Option<Operations>,
}

/// What one job got in the measured window; its own window ends with its last completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobMetrics {
    /// Its name.
    pub name: String,
    /// Number of its first process.
    pub first_process: u32,
    /// Processes.
    pub processes: u32,
    /// Whether they serve the others: page cleaners, journals.
    pub background: bool,
    /// From its first arrival that is measured to its last completion, ns.
    pub duration_ns: u64,
    /// Reads.
    pub read: JobDirection,
    /// Writes.
    pub write: JobDirection,
    /// Reads and writes together.
    pub all: JobDirection,
    /// Flushes: neither reads nor writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<CommandMetrics>,
    /// Discards, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards: Option<CommandMetrics>,
    /// Jain's index of the bytes that its processes got: 1 when all got the same.
    pub fairness: f64,
}

/// One direction of a job, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobDirection {
    /// Completed requests.
    pub requests: u64,
    /// Completed bytes.
    pub bytes: u64,
    /// Completed requests over the job's own window.
    pub iops: f64,
    /// Completed bytes over the job's own window.
    pub bandwidth_bytes_per_s: f64,
    /// Arrival to completion.
    pub latency_ns: Distribution,
}

/// What an application's benchmark counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operations {
    /// What they are: `transactions`, `requests`.
    pub what: String,
    /// How many were done in the measured window.
    pub count: u64,
    /// How many a second.
    pub per_s: f64,
}

/// What distinguishes a run from the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Labels {
    /// Host scheduler.
    pub scheduler: String,
    /// Granularity it works at: `chip` or `plane`.
    pub level: String,
    /// Page allocation of the device.
    pub allocation: String,
    /// Garbage collection scheme of the device.
    pub gc: String,
    /// How the scheme picks its victims.
    pub victims: String,
    /// Pages of the valid page buffer.
    pub buffer_pages: u32,
    /// Share of free pages below which a plane is collected.
    pub gc_threshold: f64,
    /// Whether host and collection write to blocks of their own.
    pub hot_cold_separation: bool,
    /// Wear levelling.
    pub wear: String,
    /// Device condition before the first request.
    pub condition: String,
    /// Flash scheduler.
    pub flash_scheduler: String,
    /// Device profile.
    pub device: String,
    /// Trace.
    pub trace: String,
    /// `blocking` or `ncq:D`.
    pub command_queue: String,
    /// Length of the host's I/O queue.
    pub queue_length: u32,
    /// How many pools the queue's slots are counted by: `one`, `two`, or `auto`: what the scheduler's kernel has.
    #[serde(default = "one_pool")]
    pub request_pools: String,
    /// Which adjacent requests become one: `none`, `back` or `full`.
    #[serde(default = "no_merging")]
    pub merging: String,
    /// When the requests of the trace left: `recorded`, `dependent`, `closed:N` or `asap`; empty for a workload, which has a pace of
    /// its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pace: String,
    /// Whether the order of requests that overlap is kept: `keep` or `ignore`. Results from before the option ignored it.
    #[serde(default = "overlap_ignored")]
    pub overlap: String,
    /// When requests left the scheduler: `direct`, as in results from before the option, or `blk-mq`.
    #[serde(default = "block_layer_direct", skip_serializing_if = "is_direct")]
    pub block_layer: String,
    /// Seed.
    pub seed: u64,
    /// Options of the workload that differ between runs, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workload: BTreeMap<String, String>,
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
    /// Requests that were held for an earlier one that they overlap.
    #[serde(default)]
    pub overlap: OverlapMetrics,
    /// Flushes: neither reads nor writes, and in none of their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<CommandMetrics>,
    /// Discards, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards: Option<CommandMetrics>,
    /// Requests and batches that went ahead of earlier ones.
    pub prioritized: PrioritizedShares,
    /// Flash operations.
    pub flash: FlashCounts,
    /// Garbage collection.
    pub gc: GcMetrics,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// Mean number of pending requests, waiting and outstanding, over the window (Little's law holds it to the latencies).
    pub mean_queue_depth: f64,
    /// Requests issued in another direction than the one before.
    #[serde(default)]
    pub direction_switches: u64,
    /// How evenly processes were served.
    #[serde(default)]
    pub fairness: Fairness,
    /// What each process got, by process number.
    #[serde(default)]
    pub processes: Vec<ProcessMetrics>,
}

fn one_pool() -> String {
    "one".into()
}

fn no_merging() -> String {
    "none".into()
}

fn overlap_ignored() -> String {
    "ignore".to_owned()
}

fn block_layer_direct() -> String {
    BlockLayer::Direct.to_string()
}

/// Nothing is said of what nearly all runs are.
fn is_direct(name: &str) -> bool {
    name == block_layer_direct()
}

/// Jain's fairness index over processes, `(sum x)^2 / (n sum x^2)`: 1 when all get the same, 1/n when one gets everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Processes with completed requests.
    pub processes: u32,
    /// Of bytes served.
    pub bandwidth: f64,
    /// Of mean latencies.
    pub latency: f64,
}

/// What one process got in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessMetrics {
    /// Process number, of the trace or the job.
    pub process: u32,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Completed bytes.
    pub bytes: u64,
    /// Mean latency, ns.
    pub latency_ns_mean: f64,
    /// Longest latency, ns.
    pub latency_ns_max: u64,
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
    /// Standard deviation.
    #[serde(default)]
    pub deviation: f64,
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

/// Requests that overlap an earlier unfinished one, of which one writes, and are held until that one is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverlapMetrics {
    /// Of reads.
    pub read_share: f64,
    /// Of writes.
    pub write_share: f64,
    /// Mean time that those were held before the scheduler saw them, ns.
    pub held_ns_mean: f64,
}

/// Flushes or discards that completed in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandMetrics {
    /// How many.
    pub count: u64,
    /// Of flushes 0, of discards the bytes that they cover.
    pub bytes: u64,
    /// Arrival to completion.
    pub latency_ns: Distribution,
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
    /// Pages programmed with data (units of mapping, where those are smaller).
    pub programs: u64,
    /// Pages, or units of mapping, that programs left without data.
    #[serde(default, skip_serializing_if = "is_none")]
    pub padding: u64,
    /// Pages, or units of mapping, of parity programmed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub parity: u64,
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

/// Whether there were none, which need not be written.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Garbage collection in the measured window. Means and shares are 0 where nothing was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GcMetrics {
    /// Victims collected.
    pub collections: u64,
    /// Of these, for wear levelling: cold blocks moved.
    pub wear_collections: u64,
    /// Of these, blocks of a cache with one bit a cell that were emptied while the host was at rest.
    #[serde(default, skip_serializing_if = "is_none")]
    pub folds: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Share of collections that began while no request was in the I/O queue.
    pub idle_share: f64,
    /// Share of idle chips, over the time in which a collection runs and a request is pending, wherever it is: in the I/O queue or in the device.
    pub idle_chip_share: f64,
    /// Share of idle chips when a collection begins, mean over those that begin while a request is pending (GC paper, figure 6).
    pub idle_chip_share_at_start: f64,
    /// Pages the host wrote for each collection.
    pub host_pages_per_collection: f64,
    /// Valid pages moved for each collection.
    pub moved_per_collection: f64,
    /// Valid pages moved, by whatever way.
    pub pages_moved: u64,
    /// Of these, through the valid page buffer.
    pub pages_buffered: u64,
    /// Share of the pages moved that went through the valid page buffer.
    pub buffered_share: f64,
    /// Pages programmed over pages the host wrote; 1 when nothing was moved, 0 when nothing was written.
    pub write_amplification: f64,
    /// Largest minus smallest erase count of a block at the end.
    pub wear_spread: u64,
    /// What a collection costs the chip that it collects, mean over collections.
    pub cost: GcCost,
    /// Host requests that collections were in the way of.
    pub conflicts: GcConflicts,
    /// The valid page buffer.
    pub buffer: BufferMetrics,
    /// Copies of likely-hit pages on other chips.
    pub replicas: ReplicaMetrics,
    /// Programs and erases suspended for a read of the host.
    pub suspensions: u64,
    /// What a power cut found; none was asked for when empty.
    pub power_loss: Option<PowerLoss>,
}

/// Parts of a collection on its chip, mean over collections, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GcCost {
    /// Array reads of valid pages.
    pub read_ns: f64,
    /// Transfers of valid pages, out and back in.
    pub transfer_ns: f64,
    /// Programs of valid pages.
    pub program_ns: f64,
    /// The erase.
    pub erase_ns: f64,
    /// Sum of the parts.
    pub total_ns: f64,
    /// Programs and transfers of buffered pages and replicas on other chips: not part of the total.
    pub elsewhere_ns: f64,
    /// From the beginning of a collection to the end of its erase, with all waits and all host operations let in between.
    pub span_ns: f64,
}

/// Host requests that needed a chip while it was collected, on arrival or while they waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GcConflicts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Requests that needed a chip while a buffered page or a replica was written to it: conflicts that the scheme made.
    pub new: u64,
    /// Requests for a chip already released that a traditional collection, begun at the same time, would still have held.
    pub avoided: u64,
    /// Share of all requests that conflicted.
    pub share: f64,
    /// Mean latency of the reads that conflicted, ns.
    pub read_latency_ns_mean: f64,
    /// Mean latency of the writes that conflicted, ns.
    pub write_latency_ns_mean: f64,
    /// Latency of the requests that conflicted.
    pub latency_ns: Distribution,
}

/// The valid page buffer in the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferMetrics {
    /// Pages of host reads that it served.
    pub reads_served: u64,
    /// Pages of host writes that it absorbed.
    pub writes_absorbed: u64,
    /// Pages written back to flash.
    pub written_back: u64,
    /// Mean time from a page's arrival in the buffer to the end of its program, ns.
    pub residency_ns_mean: f64,
    /// Longest such time, ns.
    pub residency_ns_max: u64,
    /// Pages in the buffer, mean over time.
    pub occupancy_mean: f64,
    /// Most pages at a time.
    pub occupancy_max: u32,
    /// Time to flush the most pages that were in it on power loss, by formula (1) of section 5.2.2 as printed (rounding down), ns.
    pub flush_formula_ns: u64,
    /// The same with the pages of the fullest chip counted (rounding up), which is what the flush takes at least, ns.
    pub flush_ns: u64,
}

/// Replicas, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaMetrics {
    /// Written.
    pub created: u64,
    /// Reads of the host that went to one.
    pub reads_redirected: u64,
    /// Dropped because the host wrote the page.
    pub dropped_on_write: u64,
    /// Dropped because their block was erased, or for room in the table.
    pub dropped_for_space: u64,
    /// Most at a time.
    pub most: u32,
}

/// A power cut: what was in the buffer, how long the capacitor must last, and whether everything acknowledged is there afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerLoss {
    /// When, ns of model time.
    pub at_ns: u64,
    /// Requests in the I/O queue that were never acknowledged.
    pub requests_lost: u64,
    /// Pages whose program the cut tore.
    pub torn_pages: u64,
    /// Blocks whose erase the cut tore.
    pub torn_blocks: u64,
    /// Pages in the buffer.
    pub buffered_pages: u32,
    /// Time of the flush by formula (1) as printed, ns.
    pub flush_formula_ns: u64,
    /// Time that the flush takes with these chips and channels, ns.
    pub flush_ns: u64,
    /// Logical pages with data after the map was rebuilt from flash and flush.
    pub recovered_pages: u64,
    /// Pages that were not there, or only in an older version, although they had been acknowledged or, before a volatile write buffer,
    /// flushed since: 0, or the device is broken.
    pub lost_pages: u64,
    /// Before a volatile write buffer: pages acknowledged, not flushed since, and lost. No promise was broken.
    #[serde(default)]
    pub unflushed_pages: u64,
}
