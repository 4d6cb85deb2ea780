//! Closed loop: the processes of a workload issue a request when they are ready for it, most often because one completed.

use super::measure;
use super::watch::{self, Watch};
use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::error::SimError;
use crate::host_sched::Counters;
use crate::observers::groups::Groups;
use crate::observers::{Completion, Observer};
use crate::results::{RunResult, Status};
use planewise_model::{Ns, Request};
use planewise_workload::{Step, Workload};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
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
            before = (simulator.scheduler_counters(), operations(&*driver.workload));
            // What waits outside was issued during the ramp, and gets its numbers next.
            let from = simulator.submitted() + driver.outside.len() as u64;
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
    workload: &'a mut dyn Workload,
    /// The simulator's clock stands between events; this one does not.
    now: Ns,
    /// When processes want to be asked, the earliest on top; ties by process. Entries that `wake_at` does not confirm are stale.
    due: BinaryHeap<Reverse<(Ns, u32)>>,
    wake_at: Vec<Ns>,
    is_done: Vec<bool>,
    running: u32,
    /// Issued requests for which the I/O queue has no room. They wait outside, and that wait counts.
    outside: VecDeque<Request>,
    completions: Vec<Completion>,
}

impl<'a> Driver<'a> {
    /// All processes are to be asked at the beginning.
    pub fn new(workload: &'a mut dyn Workload) -> Driver<'a> {
        let processes: u32 = workload.groups().iter().map(|group| group.processes).sum();
        Driver {
            workload,
            now: Ns::ZERO,
            due: (0..processes).map(|process| Reverse((Ns::ZERO, process))).collect(),
            wake_at: vec![Ns::ZERO; processes as usize],
            is_done: vec![false; processes as usize],
            running: processes,
            outside: VecDeque::new(),
            completions: Vec::new(),
        }
    }

    /// Lets the processes act that are due now, then lets time pass until the next thing happens. False when all processes
    /// are done and their requests are in the queue, or complete.
    ///
    /// # Errors
    /// As [`Simulator::submit`] and [`Simulator::advance`]; a workload all of whose processes wait for one another.
    pub fn step<O: Observer>(&mut self, simulator: &mut Simulator<O>) -> Result<bool, SimError> {
        simulator.keep_completions();
        while let Some(&Reverse((at, process))) = self.due.peek() {
            if at > self.now {
                break;
            }
            self.due.pop();
            if self.wake_at[process as usize] == at {
                self.ask(simulator, process)?;
            }
        }
        while simulator.has_room()
            && let Some(request) = self.outside.pop_front()
        {
            simulator.submit(&request)?;
        }
        if self.running == 0 && self.outside.is_empty() {
            return Ok(false);
        }
        let due = self.due.peek().map_or(Ns::MAX, |&Reverse((at, _))| at);
        let next = simulator.next_event();
        if next.min(due) == Ns::MAX {
            simulator.drain()?;
            let message = "the workload's processes all wait, and nothing is under way".to_owned();
            return Err(SimError::Source(message));
        }
        if due < next {
            self.now = due;
        } else {
            simulator.advance(next)?;
            self.now = next;
            self.tell(simulator);
        }
        Ok(true)
    }

    /// Tells processes what completed; those and the ones that they wake are due now.
    fn tell<O: Observer>(&mut self, simulator: &mut Simulator<O>) {
        let mut completions = std::mem::take(&mut self.completions);
        simulator.take_completions(&mut completions);
        for completion in completions.drain(..) {
            let process = completion.request.process - 1;
            self.workload.completed(process, &completion.request, completion.completed);
            self.wake(process);
            self.wake_others();
        }
        self.completions = completions;
    }

    fn wake(&mut self, process: u32) {
        // Several completions at one instant ask once.
        if self.wake_at[process as usize] != self.now && !self.is_done[process as usize] {
            self.wake_at[process as usize] = self.now;
            self.due.push(Reverse((self.now, process)));
        }
    }

    fn wake_others(&mut self) {
        while let Some(process) = self.workload.take_woken() {
            self.wake(process);
        }
    }

    /// Carries out what a process does, until it waits.
    fn ask<O: Observer>(&mut self, simulator: &mut Simulator<O>, process: u32) -> Result<(), SimError> {
        let now = self.now;
        self.wake_at[process as usize] = Ns::MAX;
        loop {
            let step = self.workload.next(process, now);
            self.wake_others();
            match step {
                Step::Submit(io) => {
                    let request = io.request(now, process);
                    if self.outside.is_empty() && simulator.has_room() {
                        simulator.submit(&request)?;
                    } else {
                        simulator.check(&request)?;
                        self.outside.push_back(request);
                    }
                }
                Step::WaitUntil(at) if at <= now => {}
                Step::WaitUntil(at) => {
                    self.wake_at[process as usize] = at;
                    self.due.push(Reverse((at, process)));
                    return Ok(());
                }
                Step::Wait => return Ok(()),
                Step::Done => {
                    if !std::mem::replace(&mut self.is_done[process as usize], true) {
                        self.running -= 1;
                    }
                    return Ok(());
                }
            }
        }
    }
}
