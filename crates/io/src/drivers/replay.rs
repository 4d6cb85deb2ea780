//! Replay: the requests of a trace on a target, at the recorded times, or as fast as so many in flight allow.
//!
//! A request that is due and not issued is late. In model time none is, but those that find the queue full; against the clock the
//! host has work to do between two requests, and may be interrupted. What was replayed late is not what was recorded: so lateness
//! is measured, request by request.

use super::{DriverError, Front, HostOptions, Outcome, measure};
use crate::target::Target;
use planewise_model::{Ns, Request};
use planewise_sim::SimError;
use planewise_sim::drivers::replay::RequestSource;
use planewise_sim::host::Outside;
use planewise_sim::host_sched::Counters;
use planewise_sim::observers::Observer;
use planewise_sim::observers::metrics::{MetricsObserver, Times};
use planewise_sim::results::{Replay, Status};
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests taken from the source at a time.
const BATCH: usize = 1024;
/// Rounds of the loop between two calls for progress.
const ROUNDS: u32 = 1024;

/// Default of [`ReplayOptions::lateness_bound`]. Recorded interarrival times of busy volumes are milliseconds, and a flash read takes a
/// tenth of one: a request that comes a millisecond late comes among other requests than it did.
pub const LATENESS_BOUND_DEFAULT: Ns = Ns::from_micros(1000);

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When the trace says.
    Recorded,
    /// In the order of the trace, the next when fewer than this many (1 or more) are in flight: in the queue or in the target.
    Closed(u32),
}

/// How to run.
pub struct ReplayOptions<'a> {
    /// When requests are issued.
    pub pace: Pace,
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
    let depth = match options.pace {
        Pace::Recorded => None,
        Pace::Closed(depth) => Some(depth),
    };
    if depth == Some(0) {
        let (key, found, allowed) = ("depth".into(), "0".into(), "1 or more".into());
        return Err(SimError::Option { key, found, allowed }.into());
    }
    let mut trace = Ahead { source, batch: Vec::with_capacity(BATCH), next: 0 };
    trace.peek()?;
    let observer = (MetricsObserver::new(options.warm_up), observer);
    let front = Front::new(target, host, observer)?;
    let mut run = Run {
        outside: Outside::new(front.stack().queue()),
        front,
        depth,
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
    let lateness = run.lateness.distribution();
    result.replay = Some(Replay {
        mode: if depth.is_some() { "closed" } else { "open" }.to_owned(),
        depth,
        lateness_ns: lateness,
        lateness_bound_ns: options.lateness_bound.0,
        faithful: run.is_due.then_some(lateness.p99 <= options.lateness_bound.0),
        late_for_room: run.late_for_room,
        ..Replay::default()
    });
    Ok(Outcome { result, observer: run.front.into_observer().1, failure })
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
    front: Front<'a, (MetricsObserver, O)>,
    /// Due requests of a full pool, while those of the other are read on.
    outside: Outside,
    /// Of a closed loop.
    depth: Option<u32>,
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
        let (mut completions, mut rounds) = (Vec::new(), 0u32);
        self.front.look_at_clock();
        loop {
            if options.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let next = self.submit_due(trace)?;
            if next.is_none() && self.front.stack().queue().pending() == 0 {
                return Ok(true);
            }
            self.front.dispatch()?;
            self.note_lateness();
            self.front.wait(next.unwrap_or(Ns::MAX))?;
            self.front.take_completions(&mut completions);
            completions.clear();
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
            match self.depth {
                Some(depth) => {
                    if self.front.stack().queue().pending() >= depth || !self.front.has_room(&request) {
                        return Ok(Some(Ns::MAX));
                    }
                    self.submit(&Request { arrival: now, ..request })?;
                }
                None if request.arrival > now => return Ok(Some(request.arrival)),
                None if self.outside.is_before(&request) || !self.front.has_room(&request) => {
                    // What cannot be taken at all will not be taken later either.
                    self.front.check(&request)?;
                    self.is_full = true;
                    if !self.outside.reads_on() {
                        return Ok(Some(Ns::MAX));
                    }
                    self.outside.push(request);
                }
                None => self.submit_due_one(&request)?,
            }
            trace.next += 1;
        }
    }

    /// Submits a request at its recorded time, or late.
    fn submit_due_one(&mut self, request: &Request) -> Result<(), DriverError> {
        self.submit(request)?;
        if self.front.stack().submitted() > self.warm_up {
            self.due.push(request.arrival);
            self.late_for_room += u64::from(request.arrival < self.full_until);
        }
        Ok(())
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
        self.is_due = self.depth.is_none();
        let now = self.front.look_at_clock();
        for due in self.due.drain(..) {
            self.lateness.record(now - due);
        }
    }
}
