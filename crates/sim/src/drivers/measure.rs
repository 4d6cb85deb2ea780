//! What every driver measures, and how it becomes a result.

use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::host_sched::Counters;
use crate::observers::Observer;
use crate::observers::collections::CollectionMetrics;
use crate::observers::metrics::MetricsObserver;
use crate::observers::recovery::Recovery;
use crate::results::{Labels, RunResult, Status};
use std::collections::BTreeMap;

/// What a driver itself watches: requests, collections, and the flash where power is to be lost.
pub type Measuring = (MetricsObserver, (CollectionMetrics, Option<Recovery>));

/// Observers of a run whose first `warm_up` requests are not measured.
pub fn measuring(warm_up: u64, recovery: Option<Recovery>) -> Measuring {
    (MetricsObserver::new(warm_up), (CollectionMetrics::new(warm_up), recovery))
}

/// Measures from the request with this number on: the warm-up had no number yet.
pub fn start_after(measuring: &mut Measuring, first: u64) {
    measuring.0.start_after(first);
    measuring.1.0.start_after(first);
}

/// The result of a run.
///
/// # Errors
/// Tunables that are not allowed.
pub fn summarise<O: Observer>(
    config: &RunConfig,
    simulator: &Simulator<(Measuring, O)>,
    counters: &Counters,
    trace: &str,
    status: Status,
) -> Result<RunResult, SimError> {
    let (metrics, (collections, _)) = &simulator.observer().0;
    let gc = collections.metrics(simulator.now(), simulator.wear(), |pages| simulator.flush_time(pages));
    let metrics = metrics.metrics(simulator.now(), counters.write_batches(), gc);
    let translation = &config.profile.translation;
    Ok(RunResult {
        labels: Labels {
            scheduler: config.scheduler.clone(),
            level: config.level.to_string(),
            allocation: translation.allocation.clone(),
            gc: config.profile.collection.scheme.clone(),
            victims: config.profile.collection.victims.clone(),
            buffer_pages: config.profile.collection.buffer_pages,
            gc_threshold: config.profile.collection.threshold,
            hot_cold_separation: config.profile.collection.hot_cold_separation,
            wear: translation.wear_levelling.clone(),
            condition: config.condition.to_string(),
            flash_scheduler: config.profile.interface.flash_scheduler.clone(),
            device: config.profile.name.clone(),
            trace: trace.to_owned(),
            command_queue: config.profile.interface.command_queue.clone(),
            queue_length: config.queue_length,
            request_pools: config.request_pools.to_string(),
            merging: config.merging.to_string(),
            pace: String::new(),
            overlap: config.overlap.to_string(),
            block_layer: config.block_layer.to_string(),
            seed: config.seed,
            workload: BTreeMap::new(),
        },
        metrics,
        tunables: config.tunable_values()?.to_text(),
        scheduler_counters: counters.clone().into_map(),
        notes: simulator.scheduler_notes(),
        status,
        invariants: BTreeMap::new(),
        closed_loop: None,
        target: None,
        replay: None,
        overload: None,
        dependent: None,
        guest: None,
    })
}
