//! Open loop: requests arrive when a trace says, whatever the device does. What the queue cannot take waits outside, unread,
//! so that a replay needs no memory for its backlog.

use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::host_sched::Counters;
use crate::observers::Observer;
use crate::observers::metrics::MetricsObserver;
use crate::results::{Labels, RunResult, Status};
use planewise_model::Request;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests taken from the source at a time.
const BATCH: usize = 1024;
/// How many requests ahead the processor is told what it will need.
const PREFETCH_DISTANCE: usize = 4;

/// Where requests come from, in order of arrival.
pub trait RequestSource {
    /// Appends up to `limit` requests to `batch`; returns how many, 0 at the end.
    ///
    /// # Errors
    /// A message that names the file and the place.
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String>;
}

impl<I: Iterator<Item = Request>> RequestSource for I {
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, String> {
        let before = batch.len();
        batch.extend(self.by_ref().take(limit));
        Ok(batch.len() - before)
    }
}

/// How to run.
pub struct ReplayOptions<'a> {
    /// Requests at the beginning that are simulated but not measured.
    pub warm_up: u64,
    /// Set from outside to stop early; the result is marked as interrupted.
    pub stop: &'a AtomicBool,
    /// Called now and then with the number of requests submitted.
    pub progress: &'a mut dyn FnMut(u64),
    /// Name of the trace for the labels.
    pub trace: &'a str,
}

/// Replays a source on a device and measures.
///
/// # Errors
/// A configuration that cannot be, a request that the device cannot take, free space exhausted, a source that fails.
pub fn replay<O: Observer>(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    observer: O,
    options: &mut ReplayOptions<'_>,
) -> Result<(RunResult, O), SimError> {
    let mut simulator = Simulator::new(config, (MetricsObserver::new(options.warm_up), observer))?;
    let mut batch = Vec::with_capacity(BATCH);
    let mut status = Status::Complete;
    let mut counters_before = Counters::default();
    while status == Status::Complete {
        batch.clear();
        if source.next_batch(&mut batch, BATCH).map_err(SimError::Source)? == 0 {
            break;
        }
        for (index, request) in batch.iter().enumerate() {
            if let Some(later) = batch.get(index + PREFETCH_DISTANCE) {
                simulator.prefetch(later);
            }
            if simulator.submitted() == options.warm_up {
                counters_before = simulator.scheduler_counters();
            }
            arrive(&mut simulator, request)?;
        }
        (options.progress)(simulator.submitted());
        if options.stop.load(Ordering::Relaxed) {
            status = Status::Interrupted;
        }
    }
    simulator.drain()?;
    let counters = simulator.scheduler_counters().since(&counters_before);
    let result = summarise(config, &simulator, &counters, options.trace, status)?;
    Ok((result, simulator.into_observer().1))
}

/// Lets time pass until the request arrives and the queue has room for it, then submits it.
#[inline]
fn arrive<O: Observer>(simulator: &mut Simulator<O>, request: &Request) -> Result<(), SimError> {
    simulator.check(request)?;
    while simulator.next_event() < request.arrival
        || simulator.next_event() == request.arrival && simulator.now() < request.arrival
    {
        simulator.advance(request.arrival)?;
    }
    while !simulator.has_room() {
        let next = simulator.next_event();
        if next == planewise_model::Ns::MAX {
            return simulator.drain();
        }
        simulator.advance(next)?;
    }
    simulator.submit(request)
}

fn summarise<O: Observer>(
    config: &RunConfig,
    simulator: &Simulator<(MetricsObserver, O)>,
    counters: &Counters,
    trace: &str,
    status: Status,
) -> Result<RunResult, SimError> {
    let batches = (counters.write_batches_promoted, counters.write_batches);
    let metrics = simulator.observer().0.metrics(simulator.now(), batches, simulator.wear());
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
            seed: config.seed,
        },
        metrics,
        tunables: config.tunable_values()?.to_text(),
        scheduler_counters: BTreeMap::from([
            ("read_batches".to_owned(), counters.read_batches),
            ("write_batches".to_owned(), counters.write_batches),
            ("write_batches_promoted".to_owned(), counters.write_batches_promoted),
            ("joined".to_owned(), counters.joined),
        ]),
        status,
        invariants: BTreeMap::new(),
    })
}
