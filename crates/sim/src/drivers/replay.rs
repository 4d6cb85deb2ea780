//! Replay of a trace: requests arrive when a trace says, whatever the device does, or when a [`Pacer`] says. What the queue cannot
//! take waits outside, unread, so that a replay needs no memory for its backlog. At the recorded pace, where the queue has two pools and
//! one of them is full, it reads on.

use super::measure::{self, Measuring};
use super::pace::{Pace, Pacer};
use super::watch::{self, Watch};
use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::gc;
use crate::host::Outside;
use crate::host_sched::Counters;
use crate::observers::backlog::Backlog;
use crate::observers::recovery::Recovery;
use crate::observers::{Completion, Observer};
use crate::results::{Dependent, PowerLoss, RunResult, Status};
use planewise_model::{Ns, Request};
use std::sync::atomic::AtomicBool;

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
    /// When power is lost, if it is: the run ends there, and the result says what was found.
    pub power_cut: Option<PowerCut>,
}

/// When power is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// At a time of the run.
    At(Ns),
    /// At the arrival of the request after this many.
    After(u64),
}

/// Replays a source on a device, at the pace of the configuration, and measures.
///
/// # Errors
/// A configuration that cannot be, a request that the device cannot take, free space exhausted, a source that fails.
pub fn replay<O: Observer>(
    config: &RunConfig,
    source: &mut dyn RequestSource,
    observer: O,
    options: &mut ReplayOptions<'_>,
) -> Result<(RunResult, O), SimError> {
    if options.power_cut.is_some() && gc::find(&config.profile.collection.scheme)?.bound {
        return Err(SimError::Option {
            key: "power cut".into(),
            found: format!("one with the collection scheme {}", config.profile.collection.scheme),
            allowed: "schemes that a device could have: this one is a bound, its collections take no time"
                .into(),
        });
    }
    let is_volatile = config.profile.write_buffer.is_some_and(|buffer| !buffer.power_loss_protection);
    let recovery =
        options.power_cut.map(|_| if is_volatile { Recovery::of_volatile() } else { Recovery::new() });
    // At any pace but the recorded one nothing asks for more than is served.
    let backlog = (config.pace == Pace::Recorded).then(|| Backlog::new(options.warm_up));
    let observer = (measure::measuring(options.warm_up, recovery), (backlog, observer));
    let mut simulator = Simulator::new(config, observer)?;
    let mut pacing = Pacer::new(config.pace, config.scale_time).map(Pacing::new);
    if pacing.is_some() {
        simulator.keep_completions();
    }
    let mut batch = Vec::with_capacity(BATCH);
    let mut status = Status::Complete;
    // A pacer knows requests by their numbers: none may pass another on the way in.
    let outside = if pacing.is_some() { Outside::in_order() } else { simulator.outside() };
    let mut entrance = Entrance { outside, warm_up: options.warm_up, counters_before: None };
    let mut cut_at = if let Some(PowerCut::At(time)) = options.power_cut { time } else { Ns::MAX };
    let mut power = true;
    let mut watch = Watch::new(options.stop, options.progress);
    while status == Status::Complete && power {
        batch.clear();
        if source.next_batch(&mut batch, BATCH).map_err(SimError::Source)? == 0 {
            break;
        }
        for (index, request) in batch.iter().enumerate() {
            if let Some(later) = batch.get(index + PREFETCH_DISTANCE) {
                simulator.prefetch(later);
            }
            let paced = match &mut pacing {
                None => Ok(*request),
                Some(pacing) => pacing.leave(&mut simulator, request, cut_at, &mut watch)?,
            };
            let ended = match paced {
                Ok(request) => {
                    if let Some(PowerCut::After(count)) = options.power_cut
                        && simulator.submitted() >= count
                    {
                        cut_at = request.arrival;
                    }
                    if request.arrival >= cut_at {
                        Some(End::Power)
                    } else {
                        arrive(&mut simulator, &mut entrance, &request, cut_at, &mut watch)?
                    }
                }
                Err(end) => Some(end),
            };
            match ended {
                None => {}
                Some(End::Power) => power = false,
                Some(End::Stopped) => status = Status::Interrupted,
            }
            if ended.is_some() {
                break;
            }
        }
        if watch.look(simulator.submitted()) {
            status = Status::Interrupted;
        }
    }
    if status == Status::Complete && entrance.empty(&mut simulator, cut_at, &mut watch)? {
        status = Status::Interrupted;
    }
    let mut is_finished = true;
    let power_loss = match (options.power_cut, status) {
        (Some(_), _) => Some(lose_power(&mut simulator, cut_at)?),
        (None, Status::Complete) => simulator.finish_requests().map(|()| None)?,
        (None, Status::Interrupted) => {
            is_finished = watch::wind_up(&mut simulator)?;
            None
        }
    };
    // All requests had arrived, and the device has nothing more to do.
    let is_past_end = power_loss.is_some() && power && simulator.next_event() == Ns::MAX;
    let counters = simulator.scheduler_counters().since(&entrance.counters_before.unwrap_or_default());
    let mut result = measure::summarise(config, &simulator, &counters, options.trace, status)?;
    result.labels.pace = config.pace.to_string();
    result.metrics.gc.power_loss = power_loss;
    if is_past_end {
        result.notes.push(format!(
            "power was cut behind the end: the {} requests were served, and the device was at rest from {} on",
            simulator.submitted(),
            simulator.now()
        ));
    }
    let (backlog, _) = &simulator.observer().1;
    result.overload = backlog.as_ref().and_then(|backlog| backlog.overload(config.scale_time));
    result.dependent = pacing.and_then(|mut pacing| pacing.summary(&mut simulator));
    if power_loss.is_none() && is_finished {
        // What collections leave behind is not measured, but it is checked.
        simulator.drain()?;
    }
    Ok((result, simulator.into_observer().1.1))
}

/// Why no more requests arrive, before the end of the trace.
#[derive(Clone, Copy)]
enum End {
    /// Power is lost first.
    Power,
    /// The user wants it to stop.
    Stopped,
}

/// A pacer and what it has to be told.
struct Pacing {
    pacer: Pacer,
    completions: Vec<Completion>,
}

impl Pacing {
    fn new(pacer: Pacer) -> Pacing {
        Pacing { pacer, completions: Vec::new() }
    }

    /// Tells what completed.
    fn note<O: Observer>(&mut self, simulator: &mut Simulator<O>) {
        simulator.take_completions(&mut self.completions);
        self.completions.drain(..).for_each(|completion| self.pacer.completed(&completion));
    }

    /// Lets time pass until it is known when the request leaves. The request with that arrival.
    fn leave<O: Observer>(
        &mut self,
        simulator: &mut Simulator<O>,
        request: &Request,
        cut_at: Ns,
        watch: &mut Watch<'_>,
    ) -> Result<Result<Request, End>, SimError> {
        loop {
            self.note(simulator);
            if let Some(arrival) = self.pacer.leaves(request, simulator.now(), simulator.has_room(request)) {
                return Ok(Ok(Request { arrival, ..*request }));
            }
            let next = simulator.next_event();
            if next == Ns::MAX {
                simulator.drain()?;
            }
            if next >= cut_at {
                return Ok(Err(End::Power));
            }
            if watch.step(simulator.submitted()) {
                return Ok(Err(End::Stopped));
            }
            simulator.advance(next)?;
        }
    }

    fn summary<O: Observer>(&mut self, simulator: &mut Simulator<O>) -> Option<Dependent> {
        self.note(simulator);
        self.pacer.dependent()
    }
}

/// Lets time pass until the cut, cuts, and asks what is left.
fn lose_power<O: Observer>(
    simulator: &mut Simulator<(Measuring, O)>,
    cut_at: Ns,
) -> Result<PowerLoss, SimError> {
    // Past the end of the trace, the cut finds the device at rest.
    while simulator.next_event() <= cut_at && simulator.next_event() != Ns::MAX {
        let next = simulator.next_event();
        simulator.advance(next)?;
    }
    let state = simulator.cut_power();
    let at = if cut_at == Ns::MAX { state.at } else { cut_at };
    let recovery = simulator.observer().0.1.1.as_ref();
    let found = recovery.and_then(Recovery::found).cloned().unwrap_or_default();
    Ok(PowerLoss {
        at_ns: at.0,
        requests_lost: state.pending,
        torn_pages: found.torn_pages,
        torn_blocks: found.torn_blocks,
        buffered_pages: state.buffered_pages,
        flush_formula_ns: state.formula.0,
        flush_ns: state.flush.0,
        recovered_pages: found.pages,
        lost_pages: found.lost,
        unflushed_pages: found.unflushed,
    })
}

/// Where requests wait for room in the queue, and what is noted when the first measured one gets in.
struct Entrance {
    outside: Outside,
    warm_up: u64,
    /// The scheduler's counters at that time.
    counters_before: Option<Counters>,
}

impl Entrance {
    #[inline]
    fn submit<O: Observer>(
        &mut self,
        simulator: &mut Simulator<O>,
        request: &Request,
    ) -> Result<(), SimError> {
        if self.counters_before.is_none() && simulator.submitted() >= self.warm_up {
            self.counters_before = Some(simulator.scheduler_counters());
        }
        simulator.submit(request)
    }

    /// Submits what has room of those that wait outside.
    #[inline(always)]
    fn submit_outside<O: Observer>(&mut self, simulator: &mut Simulator<O>) -> Result<(), SimError> {
        // Asked after every event, and hardly ever does one wait here.
        if self.outside.count() == 0 { Ok(()) } else { self.submit_all_outside(simulator) }
    }

    #[cold]
    fn submit_all_outside<O: Observer>(&mut self, simulator: &mut Simulator<O>) -> Result<(), SimError> {
        while let Some(request) = self.outside.next(|request| simulator.has_room(request)) {
            self.submit(simulator, &request)?;
        }
        Ok(())
    }

    /// Lets time pass until nothing waits outside, or the power goes. True when the run is to stop instead.
    fn empty<O: Observer>(
        &mut self,
        simulator: &mut Simulator<O>,
        cut_at: Ns,
        watch: &mut Watch<'_>,
    ) -> Result<bool, SimError> {
        while self.outside.count() > 0 && simulator.next_event() < cut_at {
            if watch.step(simulator.submitted()) {
                return Ok(true);
            }
            let next = simulator.next_event();
            simulator.advance(next)?;
            self.submit_outside(simulator)?;
        }
        Ok(false)
    }
}

/// Lets time pass until the request arrives and the queue has room for it, then submits it; or leaves it outside, where those behind it
/// may have room. What ends the run instead, if that does.
#[inline]
fn arrive<O: Observer>(
    simulator: &mut Simulator<O>,
    entrance: &mut Entrance,
    request: &Request,
    cut_at: Ns,
    watch: &mut Watch<'_>,
) -> Result<Option<End>, SimError> {
    simulator.check(request)?;
    while simulator.next_event() < request.arrival
        || simulator.next_event() == request.arrival && simulator.now() < request.arrival
    {
        // What waits outside gets in at the event that makes room for it.
        let until = if entrance.outside.count() == 0 { request.arrival } else { simulator.next_event() };
        simulator.advance(until)?;
        entrance.submit_outside(simulator)?;
    }
    while entrance.outside.is_before(request) || !simulator.has_room(request) {
        if entrance.outside.reads_on() {
            entrance.outside.push(*request);
            return Ok(None);
        }
        let next = simulator.next_event();
        if next == Ns::MAX && cut_at == Ns::MAX {
            return simulator.drain().map(|()| None);
        }
        if next >= cut_at {
            // It never gets in: the power goes first.
            return Ok(Some(End::Power));
        }
        if watch.step(simulator.submitted()) {
            return Ok(Some(End::Stopped));
        }
        simulator.advance(next)?;
        entrance.submit_outside(simulator)?;
    }
    entrance.submit(simulator, request).map(|()| None)
}
