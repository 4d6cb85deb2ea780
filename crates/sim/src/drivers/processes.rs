//! The processes of a workload: which of them is to be asked when. They know nothing of what serves their requests.

use crate::observers::Completion;
use planewise_model::{Ns, Request};
use planewise_workload::{Step, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is wrong with a workload that will never issue another request and is not done.
pub const ALL_WAIT: &str = "the workload's processes all wait, and nothing is under way";

/// The processes of a workload and their turns.
pub struct Processes<'a> {
    workload: &'a mut dyn Workload,
    /// When processes want to be asked, the earliest on top; ties by process. Entries that `wake_at` does not confirm are stale.
    due: BinaryHeap<Reverse<(Ns, u32)>>,
    wake_at: Vec<Ns>,
    is_done: Vec<bool>,
    running: u32,
}

impl<'a> Processes<'a> {
    /// All processes are to be asked at the beginning.
    pub fn new(workload: &'a mut dyn Workload) -> Processes<'a> {
        let processes: u32 = workload.groups().iter().map(|group| group.processes).sum();
        Processes {
            workload,
            due: (0..processes).map(|process| Reverse((Ns::ZERO, process))).collect(),
            wake_at: vec![Ns::ZERO; processes as usize],
            is_done: vec![false; processes as usize],
            running: processes,
        }
    }

    /// The workload.
    pub fn workload(&self) -> &dyn Workload {
        self.workload
    }

    /// Whether any process has more to do.
    pub fn are_running(&self) -> bool {
        self.running > 0
    }

    /// When the next process wants to be asked, at the earliest; [`Ns::MAX`] when all wait for something else than time.
    pub fn next_due(&self) -> Ns {
        self.due.peek().map_or(Ns::MAX, |&Reverse((at, _))| at)
    }

    /// Asks the processes that are due at `now`; their requests, which arrive now, go to `submit`.
    ///
    /// # Errors
    /// What `submit` says.
    pub fn act<E>(&mut self, now: Ns, submit: &mut impl FnMut(Request) -> Result<(), E>) -> Result<(), E> {
        while let Some(&Reverse((at, process))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            if self.wake_at[process as usize] == at {
                self.ask(now, process, submit)?;
            }
        }
        Ok(())
    }

    /// Tells a process that its request completed; it and those that it wakes are due now.
    pub fn completed(&mut self, now: Ns, completion: &Completion) {
        let process = completion.request.process - 1;
        self.workload.completed(process, &completion.request, completion.completed);
        self.wake(now, process);
        self.wake_others(now);
    }

    fn wake(&mut self, now: Ns, process: u32) {
        // Several completions at one instant ask once.
        if self.wake_at[process as usize] != now && !self.is_done[process as usize] {
            self.wake_at[process as usize] = now;
            self.due.push(Reverse((now, process)));
        }
    }

    fn wake_others(&mut self, now: Ns) {
        while let Some(process) = self.workload.take_woken() {
            self.wake(now, process);
        }
    }

    /// Carries out what a process does, until it waits.
    fn ask<E>(
        &mut self,
        now: Ns,
        process: u32,
        submit: &mut impl FnMut(Request) -> Result<(), E>,
    ) -> Result<(), E> {
        self.wake_at[process as usize] = Ns::MAX;
        loop {
            let step = self.workload.next(process, now);
            self.wake_others(now);
            match step {
                Step::Submit(io) => submit(io.request(now, process))?,
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
