//! The time between the end of what a process waits for and its next step: the interrupt, the scheduler that puts it on a
//! processor, the return of its system call and the next.
//!
//! Without it a process's next request arrives in the instant in which its last one ended, before the host has dispatched
//! anything in its place: no machine does that, and a scheduler that serves one process at a time then never sees its queue
//! empty.

use crate::{Group, Step, Workload};
use planewise_model::{Ns, Request};

/// A workload whose processes take so long to wake up.
pub(super) struct WakingUp {
    workload: Box<dyn Workload>,
    wakeup: Ns,
    /// By process: when it is awake.
    awake_at: Vec<Ns>,
    now: Ns,
}

impl WakingUp {
    pub(super) fn new(workload: Box<dyn Workload>, wakeup: Ns) -> WakingUp {
        let processes: u32 = workload.groups().iter().map(|group| group.processes).sum();
        WakingUp { workload, wakeup, awake_at: vec![Ns::ZERO; processes as usize], now: Ns::ZERO }
    }
}

impl Workload for WakingUp {
    fn groups(&self) -> &[Group] {
        self.workload.groups()
    }

    fn next(&mut self, process: u32, now: Ns) -> Step {
        self.now = now;
        match self.awake_at[process as usize] {
            awake if awake > now => Step::WaitUntil(awake),
            _ => self.workload.next(process, now),
        }
    }

    fn completed(&mut self, process: u32, request: &Request, now: Ns) {
        self.now = now;
        self.awake_at[process as usize] = now + self.wakeup;
        self.workload.completed(process, request, now);
    }

    fn take_woken(&mut self) -> Option<u32> {
        let process = self.workload.take_woken()?;
        self.awake_at[process as usize] = self.now + self.wakeup;
        Some(process)
    }

    fn ramp_time(&self) -> Ns {
        self.workload.ramp_time()
    }

    fn total_requests(&self) -> Option<u64> {
        self.workload.total_requests()
    }

    fn operations(&self) -> Option<(&'static str, u64)> {
        self.workload.operations()
    }
}
