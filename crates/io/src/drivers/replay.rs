//! Replay: the requests of a trace on a target, at the recorded times or at another [`Pace`].
//!
//! A request that is due and not issued is late. In model time none is, but those that find the queue full; against the clock the
//! host has work to do between two requests, and may be interrupted. What was replayed late is not what was recorded: so lateness
//! is measured, request by request.

use super::{DriverError, Front, HostOptions, Outcome, measure};
use crate::target::Target;
use planewise_model::{Ns, Request};
use planewise_sim::SimError;
pub use planewise_sim::drivers::pace::Pace;
use planewise_sim::drivers::pace::Pacer;
use planewise_sim::drivers::replay::RequestSource;
use planewise_sim::host::Outside;
use planewise_sim::host_sched::Counters;
use planewise_sim::observers::backlog::Backlog;
use planewise_sim::observers::metrics::{MetricsObserver, Times};
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::results::{Replay, Status};
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests taken from the source at a time.
const BATCH: usize = 1024;
/// Rounds of the loop between two calls for progress.
const ROUNDS: u32 = 1024;

/// Default of [`ReplayOptions::lateness_bound`]. Recorded interarrival times of busy volumes are milliseconds, and a flash read takes a
/// tenth of one: a request that comes a millisecond late comes among other requests than it did.
pub const LATENESS_BOUND_DEFAULT: Ns = Ns::from_micros(1000);

/// How to run.
pub struct ReplayOptions<'a> {
    /// When requests are issued.
    pub pace: Pace,
    /// What recorded times are multiplied by: gaps at the dependent pace. At the recorded pace the requests come with such times.
    pub scale_time: f64,
    /// Requests at the beginning that are not measured.
    pub warm_up: u64,
    /// The 99th percentile of lateness above which the replay is marked as not faithful.
    pub lateness_bound: Ns,
    /// Set from outside to stop early; the result is marked as interrupted.
    pub stop: &'a AtomicBool,
    /// Called now and then with the number of requests submitted.
    pub progress: &'a mut dyn FnMut(u64),
    /// Name of the trace for the labels.
    pub name: &'a str,
}

/// Replays a source on a target and measures. Its time begins when the first requests are read.
///
/// # Errors
/// Options that cannot be; the source fails at once. A target, a source or a request that fails later is in the outcome, with what
/// was measured until then.
pub fn run<O: Observer>(
    target: &mut dyn Target,
    host: &HostOptions,
    source: &mut dyn RequestSource,
    observer: O,
    options: &mut ReplayOptions<'_>,
) -> Result<Outcome<O>, DriverError> {
    if options.pace == Pace::Closed(0) {
        let (key, found, allowed) = ("pace".into(), "closed:0".into(), Pace::ALLOWED.into());
        return Err(SimError::Option { key, found, allowed }.into());
    }
    let mut trace = Ahead { source, batch: Vec::with_capacity(BATCH), next: 0 };
    trace.peek()?;
    // At any pace but the recorded one nothing asks for more than is served.
    let backlog = (options.pace == Pace::Recorded).then(|| Backlog::new(options.warm_up));
    let observer = (MetricsObserver::new(options.warm_up), (backlog, observer));
    let front = Front::new(target, host, observer)?;
    let pacer = Pacer::new(options.pace, options.scale_time);
    let mut run = Run {
        // A pacer knows requests by their numbers: none may pass another on the way in.
        outside: if pacer.is_some() { Outside::in_order() } else { Outside::new(front.stack().queue()) },
        front,
        pacer,
        leaves: None,
        completions: Vec::new(),
        warm_up: options.warm_up,
        due: Vec::new(),
        lateness: Times::new(),
        is_due: false,
        late_for_room: 0,
        is_full: false,
        full_until: Ns::ZERO,
        counters_before: Counters::default(),
    };
    let ended = run.until_its_end(&mut trace, options);
    (options.progress)(run.front.stack().submitted());
    let (status, failure) = match ended {
        Ok(true) => (Status::Complete, None),
        Ok(false) => (Status::Interrupted, run.front.wind_up().err()),
        Err(failure) => (Status::Interrupted, Some(failure)),
    };
    let counters = run.front.stack().scheduler_counters().since(&run.counters_before);
    let mut result = measure::summarise(host, &run.front, &counters, options.name, status)?;
    if let Some(target) = &mut result.target {
        target.failure = failure.as_ref().map(DriverError::to_string);
    }
    result.labels.pace = options.pace.to_string();
    result.overload =
        run.front.observer().1.0.as_ref().and_then(|backlog| backlog.overload(options.scale_time));
    result.dependent = run.pacer.as_mut().and_then(Pacer::dependent);
    let lateness = run.lateness.distribution();
    result.replay = Some(Replay {
        lateness_ns: lateness,
        lateness_bound_ns: options.lateness_bound.0,
        faithful: run.is_due.then_some(lateness.p99 <= options.lateness_bound.0),
        late_for_room: run.late_for_room,
        ..Replay::default()
    });
    Ok(Outcome { result, observer: run.front.into_observer().1.1, failure })
}

/// Requests of the source that were read and not issued yet.
struct Ahead<'a> {
    source: &'a mut dyn RequestSource,
    batch: Vec<Request>,
    next: usize,
}

impl Ahead<'_> {
    /// The next request; none at the end.
    fn peek(&mut self) -> Result<Option<Request>, SimError> {
        if self.next == self.batch.len() {
            self.batch.clear();
            self.next = 0;
            self.source.next_batch(&mut self.batch, BATCH).map_err(SimError::Source)?;
        }
        Ok(self.batch.get(self.next).copied())
    }
}

struct Run<'a, O> {
    front: Front<'a, (MetricsObserver, (Option<Backlog>, O))>,
    /// Due requests of a full pool, while those of the other are read on.
    outside: Outside,
    /// Says when requests leave; none at the recorded pace.
    pacer: Option<Pacer>,
    /// When the next request leaves, once its pacer has said so.
    leaves: Option<Ns>,
    completions: Vec<Completion>,
    warm_up: u64,
    /// When the requests of this round were due; in a closed loop nothing ever is.
    due: Vec<Ns>,
    lateness: Times,
    /// Whether any measured request was due.
    is_due: bool,
    late_for_room: u64,
    /// A request that is due found no room in the queue.
    is_full: bool,
    /// When that last ended: what was due before and comes later had to wait for room.
    full_until: Ns,
    counters_before: Counters,
}

impl<O: Observer> Run<'_, O> {
    /// Runs until everything is complete: true; or until the user wants it to stop: false.
    fn until_its_end(
        &mut self,
        trace: &mut Ahead<'_>,
        options: &mut ReplayOptions<'_>,
    ) -> Result<bool, DriverError> {
        let mut rounds = 0u32;
        self.front.look_at_clock();
        loop {
            if options.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let mut next = self.submit_due(trace)?;
            if next.is_none() && self.front.stack().queue().pending() == 0 {
                return Ok(true);
            }
            let outstanding = self.front.stack().queue().outstanding();
            self.front.dispatch()?;
            // Where only what waits counts in the queue's length, what was issued made room for what found none.
            if next == Some(Ns::MAX) && self.front.stack().queue().outstanding() > outstanding {
                next = Some(self.front.now());
            }
            self.note_lateness();
            self.front.wait(next.unwrap_or(Ns::MAX))?;
            self.front.take_completions(&mut self.completions);
            for completion in self.completions.drain(..) {
                if let Some(pacer) = &mut self.pacer {
                    pacer.completed(&completion);
                }
            }
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS) {
                (options.progress)(self.front.stack().submitted());
            }
        }
    }

    /// Puts in the queue what is due and has room. Returns when there is more to do, but for completions; none when the trace is at
    /// its end.
    fn submit_due(&mut self, trace: &mut Ahead<'_>) -> Result<Option<Ns>, DriverError> {
        let now = self.front.now();
        if std::mem::take(&mut self.is_full) {
            self.full_until = now;
        }
        while let Some(request) = self.outside.next(|request| self.front.has_room(request)) {
            self.submit_due_one(&request)?;
        }
        loop {
            let Some(request) = trace.peek()? else { return Ok(None) };
            let Some(arrival) = self.arrival(&request) else { return Ok(Some(Ns::MAX)) };
            if arrival > now {
                return Ok(Some(arrival));
            }
            let request = Request { arrival, ..request };
            if self.outside.is_before(&request) || !self.front.has_room(&request) {
                // What cannot be taken at all will not be taken later either.
                self.front.check(&request)?;
                self.is_full = true;
                if !self.outside.reads_on() {
                    return Ok(Some(Ns::MAX));
                }
                self.outside.push(request);
            } else {
                self.submit_due_one(&request)?;
                self.leaves = None;
            }
            trace.next += 1;
        }
    }

    /// Submits a request, in time or late.
    fn submit_due_one(&mut self, request: &Request) -> Result<(), DriverError> {
        self.submit(request)?;
        if self.is_timed() && self.front.stack().submitted() > self.warm_up {
            self.due.push(request.arrival);
            self.late_for_room += u64::from(request.arrival < self.full_until);
        }
        Ok(())
    }

    /// When the next request leaves; none while that hangs on completions.
    fn arrival(&mut self, request: &Request) -> Option<Ns> {
        let Some(pacer) = &mut self.pacer else { return Some(request.arrival) };
        if self.leaves.is_none() {
            self.leaves = pacer.leaves(request, self.front.now(), self.front.has_room(request));
        }
        self.leaves
    }

    /// Whether requests are due at a time.
    fn is_timed(&self) -> bool {
        self.pacer.as_ref().is_none_or(Pacer::has_due_times)
    }

    fn submit(&mut self, request: &Request) -> Result<(), DriverError> {
        if self.front.stack().submitted() == self.warm_up {
            self.counters_before = self.front.stack().scheduler_counters();
        }
        self.front.submit(request)
    }

    /// The requests of this round are in the hands of the scheduler, and of the target as far as that lets them.
    fn note_lateness(&mut self) {
        if self.due.is_empty() {
            return;
        }
        self.is_due = true;
        let now = self.front.look_at_clock();
        for due in self.due.drain(..) {
            self.lateness.record(now - due);
        }
    }
}
