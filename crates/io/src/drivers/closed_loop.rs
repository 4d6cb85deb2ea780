//! Closed loop: the processes of a workload issue a request when they are ready for it, in the target's time.

use super::{DriverError, Front, HostOptions, Outcome, measure};
use crate::target::Target;
use planewise_model::Ns;
use planewise_sim::SimError;
use planewise_sim::drivers::processes::{ALL_WAIT, Processes};
use planewise_sim::host::Outside;
use planewise_sim::host_sched::Counters;
use planewise_sim::observers::Observer;
use planewise_sim::observers::groups::Groups;
use planewise_sim::observers::metrics::MetricsObserver;
use planewise_sim::results::Status;
use planewise_workload::Workload;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rounds of the loop between two calls for progress.
const ROUNDS: u32 = 1024;

/// How to run.
pub struct LoopOptions<'a> {
    /// Set from outside to stop early; the result is marked as interrupted.
    pub stop: &'a AtomicBool,
    /// Called now and then with the number of requests submitted.
    pub progress: &'a mut dyn FnMut(u64),
    /// Name of the workload for the labels.
    pub name: &'a str,
}

type Watched<O> = (MetricsObserver, (Groups, O));

/// Runs a workload on a target to its end and measures.
///
/// # Errors
/// Options that cannot be, a ramp that outlasts the workload. A target or a request that fails later is in the outcome, with what
/// was measured until then.
pub fn run<O: Observer>(
    target: &mut dyn Target,
    host: &HostOptions,
    workload: &mut dyn Workload,
    observer: O,
    options: &mut LoopOptions<'_>,
) -> Result<Outcome<O>, DriverError> {
    let ramp = workload.ramp_time();
    // Without a ramp everything is measured; with one, nothing until it is over.
    let warm_up = if ramp == Ns::ZERO { 0 } else { u64::MAX };
    let groups = Groups::new(workload.groups(), warm_up);
    let observer = (MetricsObserver::new(warm_up), (groups, observer));
    let front = Front::new(target, host, observer)?;
    let mut run = Run {
        outside: Outside::new(front.stack().queue()),
        front,
        processes: Processes::new(workload),
        first: (ramp == Ns::ZERO).then_some(0),
        before: (Counters::default(), 0),
    };
    let ended = run.until_its_end(ramp, options);
    (options.progress)(run.front.stack().submitted());
    let (status, failure) = match ended {
        Ok(true) => (Status::Complete, None),
        Ok(false) => (Status::Interrupted, run.front.wind_up().err()),
        Err(failure) => (Status::Interrupted, Some(failure)),
    };
    let submitted = run.front.stack().submitted();
    if status == Status::Complete && ramp > Ns::ZERO && run.first.is_none_or(|first| submitted <= first) {
        return Err(DriverError::Host(SimError::Option {
            key: "ramp_time".into(),
            found: format!("{ramp}, but the workload issued its last request by {}", run.front.now()),
            allowed: "less than the workload takes, or nothing is measured".into(),
        }));
    }
    let counters = run.front.stack().scheduler_counters().since(&run.before.0);
    let mut result = measure::summarise(host, &run.front, &counters, options.name, status)?;
    let count = run.processes.workload().operations().map(|(what, count)| (what, count - run.before.1));
    let groups = &run.front.observer().1.0;
    result.closed_loop = Some(groups.metrics(result.metrics.duration_ns, count));
    result.metrics.fairness = groups.fairness(&result.metrics.processes);
    if let Some(target) = &mut result.target {
        target.failure = failure.as_ref().map(DriverError::to_string);
    }
    Ok(Outcome { result, observer: run.front.into_observer().1.1, failure })
}

struct Run<'a, O> {
    front: Front<'a, Watched<O>>,
    processes: Processes<'a>,
    /// Issued requests for which the I/O queue has no room. They wait outside, and that wait counts.
    outside: Outside,
    /// Number of the first request that is measured, once it is known.
    first: Option<u64>,
    /// The scheduler's counters and the workload's operations before that.
    before: (Counters, u64),
}

impl<O: Observer> Run<'_, O> {
    /// Runs until everything is complete: true; or until the user wants it to stop: false.
    fn until_its_end(&mut self, ramp: Ns, options: &mut LoopOptions<'_>) -> Result<bool, DriverError> {
        self.front.look_at_clock();
        let (mut completions, mut rounds) = (Vec::new(), 0u32);
        loop {
            if options.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if self.first.is_none() && self.front.now() >= ramp {
                self.begin_to_measure();
            }
            self.submit_due()?;
            if !self.processes.are_running()
                && self.outside.count() == 0
                && self.front.stack().queue().pending() == 0
            {
                return Ok(true);
            }
            let outstanding = self.front.stack().queue().outstanding();
            self.front.dispatch()?;
            // Where only what waits counts in the queue's length, what was issued made room for what found none.
            let made_room = self.front.stack().queue().outstanding() > outstanding;
            let due = match self.processes.next_due() {
                _ if made_room && self.outside.count() > 0 => self.front.now(),
                due => due,
            };
            if due == Ns::MAX && self.outside.count() == 0 && self.front.stack().queue().pending() == 0 {
                return Err(SimError::Source(ALL_WAIT.to_owned()).into());
            }
            self.front.wait(due)?;
            self.front.take_completions(&mut completions);
            for completion in completions.drain(..) {
                self.processes.completed(self.front.now(), &completion);
            }
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS) {
                (options.progress)(self.front.stack().submitted());
            }
        }
    }

    fn begin_to_measure(&mut self) {
        let stack = self.front.stack();
        let operations = self.processes.workload().operations().map_or(0, |(_, count)| count);
        self.before = (stack.scheduler_counters(), operations);
        // What waits outside was issued during the ramp, and gets its numbers next (of two pools, one may come to its turn sooner).
        let from = stack.submitted() + self.outside.count() as u64;
        let observer = self.front.observer_mut();
        observer.0.start_after(from);
        observer.1.0.start_after(from);
        self.first = Some(from);
    }

    /// Lets the processes act that are due, and puts what they issue in the queue while that has room.
    fn submit_due(&mut self) -> Result<(), DriverError> {
        let Run { front, processes, outside, .. } = self;
        let now = front.now();
        processes.act(now, &mut |request| {
            if !outside.is_before(&request) && front.has_room(&request) {
                front.submit(&request)
            } else {
                front.check(&request)?;
                outside.push(request);
                Ok(())
            }
        })?;
        while let Some(request) = outside.next(|request| front.has_room(request)) {
            front.submit(&request)?;
        }
        Ok(())
    }
}
