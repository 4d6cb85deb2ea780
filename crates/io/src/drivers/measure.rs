//! What the drivers measure, and how it becomes a result.

use super::{Front, HostOptions};
use planewise_sim::SimError;
use planewise_sim::host_sched::Counters;
use planewise_sim::observers::Observer;
use planewise_sim::observers::metrics::MetricsObserver;
use planewise_sim::results::{ConflictShares, GcMetrics, Labels, MeasuredTarget, RunResult, Status};
use std::collections::BTreeMap;

/// For labels of what an outside view does not know.
const UNKNOWN: &str = "unknown";

/// The result of a run.
///
/// # Errors
/// Tunables that are not allowed.
pub(super) fn summarise<O: Observer>(
    options: &HostOptions,
    front: &Front<'_, (MetricsObserver, O)>,
    counters: &Counters,
    name: &str,
    status: Status,
) -> Result<RunResult, SimError> {
    let info = front.target().info();
    let units = options.known_units();
    let mut metrics = front.observer().0.metrics(front.now(), counters.write_batches(), GcMetrics::default());
    if units.is_none() {
        metrics.conflict = ConflictShares::default();
    }
    Ok(RunResult {
        labels: Labels {
            scheduler: options.scheduler.clone(),
            level: options.level.clone(),
            allocation: UNKNOWN.into(),
            gc: UNKNOWN.into(),
            victims: UNKNOWN.into(),
            buffer_pages: 0,
            gc_threshold: 0.0,
            hot_cold_separation: false,
            wear: UNKNOWN.into(),
            condition: options.condition.clone(),
            flash_scheduler: UNKNOWN.into(),
            device: info.name.clone(),
            trace: name.to_owned(),
            command_queue: format!("ncq:{}", info.depth),
            queue_length: options.queue_length,
            request_pools: options.request_pools.to_string(),
            merging: options.merging.to_string(),
            pace: String::new(),
            overlap: options.overlap.to_string(),
            block_layer: options.block_layer.to_string(),
            seed: options.seed,
            workload: BTreeMap::new(),
        },
        metrics,
        tunables: options.stack(info)?.tunable_values()?.to_text(),
        scheduler_counters: counters.clone().into_map(),
        status,
        notes: front.stack().scheduler_notes(),
        invariants: BTreeMap::new(),
        closed_loop: None,
        target: Some(MeasuredTarget {
            name: info.name.clone(),
            kind: info.kind.name().to_owned(),
            engine: info.engine.to_owned(),
            capacity_bytes: info.capacity.0,
            block_bytes: info.block_bytes,
            depth: info.depth,
            units,
            page_bytes: options.page_bytes(),
            split_requests: front.split_requests(),
            failure: None,
        }),
        replay: None,
        overload: None,
        dependent: None,
        guest: None,
    })
}
