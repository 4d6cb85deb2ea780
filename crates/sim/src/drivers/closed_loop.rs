//! Closed loop: the processes of a workload issue a request when they are ready for it, most often because one completed.

use super::measure;
use super::processes::{ALL_WAIT, Processes};
use super::watch::{self, Watch};
use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::host::Outside;
use crate::host_sched::Counters;
use crate::observers::groups::Groups;
use crate::observers::{Completion, Observer};
use crate::results::{RunResult, Status};
use planewise_model::Ns;
use planewise_workload::Workload;
use std::sync::atomic::AtomicBool;

/// How to run.
pub struct LoopOptions<'a> {
    /// Set from outside to stop early; the result is marked as interrupted.
    pub stop: &'a AtomicBool,
    /// Called now and then with the number of requests submitted.
    pub progress: &'a mut dyn FnMut(u64),
    /// Name of the workload for the labels.
    pub name: &'a str,
}

/// Runs a workload on a device to its end and measures.
///
/// # Errors
/// A configuration that cannot be, a request that the device cannot take, free space exhausted, a ramp that outlasts the workload.
pub fn run<O: Observer>(
    config: &RunConfig,
    workload: &mut dyn Workload,
    observer: O,
    options: &mut LoopOptions<'_>,
) -> Result<(RunResult, O), SimError> {
    let ramp = workload.ramp_time();
    // Without a ramp everything is measured; with one, nothing until it is over.
    let warm_up = if ramp == Ns::ZERO { 0 } else { u64::MAX };
    let groups = Groups::new(workload.groups(), warm_up);
    let mut simulator = Simulator::new(config, (measure::measuring(warm_up, None), (groups, observer)))?;
    let mut before = (Counters::default(), 0);
    let mut driver = Driver::new(workload);
    let mut watch = Watch::new(options.stop, options.progress);
    // Number of the first request that is measured, once it is known.
    let mut first = (ramp == Ns::ZERO).then_some(0);
    let mut status = Status::Complete;
    loop {
        if first.is_none() && driver.now >= ramp {
            before = (simulator.scheduler_counters(), operations(driver.processes.workload()));
            // What waits outside was issued during the ramp, and gets its numbers next (of two pools, one may come to its turn sooner).
            let from = simulator.submitted() + driver.outside_count();
            let observer = simulator.observer_mut();
            measure::start_after(&mut observer.0, from);
            observer.1.0.start_after(from);
            first = Some(from);
        }
        if !driver.step(&mut simulator)? {
            break;
        }
        if watch.step(simulator.submitted()) {
            status = Status::Interrupted;
            break;
        }
    }
    if status == Status::Complete
        && ramp > Ns::ZERO
        && first.is_none_or(|first| simulator.submitted() <= first)
    {
        return Err(SimError::Option {
            key: "ramp_time".into(),
            found: format!("{ramp}, but the workload issued its last request by {}", driver.now),
            allowed: "less than the workload takes, or nothing is measured".into(),
        });
    }
    let is_finished = match status {
        Status::Complete => simulator.finish_requests().map(|()| true)?,
        Status::Interrupted => watch::wind_up(&mut simulator)?,
    };
    watch.look(simulator.submitted());
    let counters = simulator.scheduler_counters().since(&before.0);
    let mut result = measure::summarise(config, &simulator, &counters, options.name, status)?;
    let count = workload.operations().map(|(what, count)| (what, count - before.1));
    let groups = &simulator.observer().1.0;
    result.closed_loop = Some(groups.metrics(result.metrics.duration_ns, count));
    result.metrics.fairness = groups.fairness(&result.metrics.processes);
    if is_finished {
        // What collections leave behind is not measured, but it is checked.
        simulator.drain()?;
    }
    Ok((result, simulator.into_observer().1.1))
}

fn operations(workload: &dyn Workload) -> u64 {
    workload.operations().map_or(0, |(_, count)| count)
}

/// Lets a workload's processes act on a simulator.
pub struct Driver<'a> {
    processes: Processes<'a>,
    /// The simulator's clock stands between events; this one does not.
    now: Ns,
    /// Issued requests for which the I/O queue has no room. They wait outside, and that wait counts.
    outside: Option<Outside>,
    completions: Vec<Completion>,
}

impl<'a> Driver<'a> {
    /// All processes are to be asked at the beginning.
    pub fn new(workload: &'a mut dyn Workload) -> Driver<'a> {
        Driver { processes: Processes::new(workload), now: Ns::ZERO, outside: None, completions: Vec::new() }
    }

    /// Requests that were issued and are not in the queue.
    fn outside_count(&self) -> u64 {
        self.outside.as_ref().map_or(0, |outside| outside.count() as u64)
    }

    /// Lets the processes act that are due now, then lets time pass until the next thing happens. False when all processes
    /// are done and their requests are in the queue, or complete.
    ///
    /// # Errors
    /// As [`Simulator::submit`] and [`Simulator::advance`]; a workload all of whose processes wait for one another.
    pub fn step<O: Observer>(&mut self, simulator: &mut Simulator<O>) -> Result<bool, SimError> {
        simulator.keep_completions();
        let outside = self.outside.get_or_insert_with(|| simulator.outside());
        self.processes.act(self.now, &mut |request| {
            if !outside.is_before(&request) && simulator.has_room(&request) {
                simulator.submit(&request)
            } else {
                simulator.check(&request)?;
                outside.push(request);
                Ok(())
            }
        })?;
        while let Some(request) = outside.next(|request| simulator.has_room(request)) {
            simulator.submit(&request)?;
        }
        if !self.processes.are_running() && outside.count() == 0 {
            return Ok(false);
        }
        let due = self.processes.next_due();
        let next = simulator.next_event();
        if next.min(due) == Ns::MAX {
            simulator.drain()?;
            return Err(SimError::Source(ALL_WAIT.to_owned()));
        }
        if due < next {
            self.now = due;
        } else {
            simulator.advance(next)?;
            self.now = next;
            simulator.take_completions(&mut self.completions);
            for completion in self.completions.drain(..) {
                self.processes.completed(next, &completion);
            }
        }
        Ok(true)
    }
}
