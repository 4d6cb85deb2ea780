//! One run of a kernel, from what is wanted of it to what came of it.

use crate::contents::Contents;
use crate::disk::{Disk, DiskCounts};
use crate::drive::Drive;
use crate::error::GuestError;
use crate::kernel::{Announcement, Build, Job, Kernel, Settings};
use crate::session::{Attendant, Session, Sharing};
use planewise_model::{Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::observers::Observer;
use planewise_sim::results::{RunResult, Status};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a kernel may take to go when it has powered off.
const GOES_WITHIN: Duration = Duration::from_secs(5);

/// What is wanted.
pub struct Plan<'a> {
    /// The kernel's files.
    pub build: &'a Build,
    /// How it is set up.
    pub settings: &'a Settings,
    /// What it runs.
    pub job: &'a Job,
    /// An empty directory for its sockets and its output.
    pub directory: &'a Path,
    /// The drives.
    pub device: &'a RunConfig,
    /// Every invariant of the drives is checked, and that a read returns the last write.
    pub check: bool,
    /// How time is shared.
    pub sharing: Sharing,
    /// The longest time of the model, ns.
    pub limit: Ns,
    /// The longest wall time in which neither a message comes nor time moves.
    pub patience: Duration,
    /// Set from outside to end it early.
    pub stop: &'a AtomicBool,
    /// What to call it in results.
    pub name: &'a str,
    /// The processor that all of it is on: of a kernel, its programs and its drives only one is ever at work, and handing that over is cheapest there.
    pub processor: Option<usize>,
}

/// An observer that can be told what is measured.
pub trait Windowed: Observer {
    /// Requests from this number on are.
    fn begin(&mut self, _first: u64) {}
    /// Those from this number on are not any more.
    fn end(&mut self, _first: u64) {}
}

impl Windowed for () {}

/// What came of it.
pub struct Outcome<O> {
    /// The command's status, as a shell has it; none where it did not end.
    pub status: Option<u8>,
    /// What each drive did while the command ran.
    pub results: Vec<RunResult>,
    /// Who watched each of them.
    pub observers: Vec<O>,
    /// What is on each.
    pub contents: Vec<Contents>,
    /// The requests of each, where they were kept.
    pub requests: Vec<Vec<Request>>,
    /// What each disk did from boot to power-off.
    pub disks: Vec<DiskCounts>,
    /// When the command began, and when it ended or was ended.
    pub window: (Ns, Ns),
    /// When the kernel ended.
    pub end: Ns,
    /// Wall time of all of it.
    pub wall: Duration,
    /// Messages about time, to and fro.
    pub messages: u64,
    /// Why it ended early.
    pub failure: Option<GuestError>,
}

/// Runs a kernel with its drives until it powers off, or somebody or something ends it: what was measured until then is in the outcome, and why it
/// ended, too.
///
/// # Errors
/// It could not begin.
pub fn run<O: Windowed>(
    plan: &Plan<'_>,
    mut drives: Vec<(O, Contents)>,
    prepare: &mut dyn FnMut(&mut Drive<O>) -> Result<(), GuestError>,
) -> Result<Outcome<O>, GuestError> {
    let began = Instant::now();
    let _pinned = plan.processor.and_then(Pinned::to);
    let mut built = Vec::with_capacity(drives.len());
    for (observer, contents) in drives.drain(..) {
        let mut drive = Drive::new(plan.device, plan.check, observer)?;
        prepare(&mut drive)?;
        built.push((drive, contents));
    }
    let (kernel, time, listeners) =
        Kernel::start(plan.build, plan.settings, plan.job, plan.directory, built.len())?;
    let unit = plan.device.profile.mapped().profile.geometry.page_bytes;
    let disks =
        listeners.into_iter().zip(built).enumerate().map(|(number, (listener, (drive, contents)))| {
            let mut disk = Disk::new(listener, drive, contents, unit, format!("planewise{number}"));
            disk.check_contents(plan.check);
            disk
        });
    let mut session = Session::new(time, disks.collect(), plan.sharing);
    session.set_limit(plan.limit);
    let mut guardian = Guardian { kernel, plan, began: None, ended: None, results: Vec::new() };
    let run = session.run(&mut guardian);
    let now = session.now();
    let mut failure = run.err();
    if failure.is_none() && guardian.ended.is_none() {
        failure = Some(guardian.kernel.ended("the kernel ended before the command did"));
    }
    if failure.is_some() && guardian.results.is_empty() {
        guardian.measure(session.disks(), Status::Interrupted)?;
    }
    guardian.kernel.stop(if failure.is_none() { GOES_WITHIN } else { Duration::ZERO });
    let Guardian { began: first, ended, results, .. } = guardian;
    let mut outcome = Outcome {
        status: ended.map(|(_, status)| status),
        results,
        observers: Vec::new(),
        contents: Vec::new(),
        requests: Vec::new(),
        disks: session.disks().iter().map(Disk::counts).collect(),
        window: window(first, ended.map(|(at, _)| at), now),
        end: now,
        wall: began.elapsed(),
        messages: session.messages(),
        failure,
    };
    for (number, disk) in session.into_disks().into_iter().enumerate() {
        let wrong_reads = disk.wrong_reads();
        let (mut drive, contents) = disk.into_parts();
        outcome.requests.push(drive.take_requests());
        let (observer, checked) = drive.into_observer();
        let checked = checked.and_then(|checked| with_reads(checked, wrong_reads));
        match (checked, outcome.results.get_mut(number)) {
            (Ok(checked), Some(result)) => result.invariants = checked,
            (Err(violation), _) => {
                outcome.failure.get_or_insert(GuestError::Invariant { drive: number, violation });
            }
            (Ok(_), None) => {}
        }
        outcome.observers.push(observer);
        outcome.contents.push(contents);
    }
    Ok(outcome)
}

/// A thread, and the processes that it starts, on one processor; where it was before once this is dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn to(processor: usize) -> Option<Pinned> {
        let before = sched_getaffinity(None).ok()?;
        let mut one = CpuSet::new();
        (processor < CpuSet::MAX_CPU && before.is_set(processor)).then(|| one.set(processor))?;
        sched_setaffinity(None, &one).ok()?;
        Some(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Processors that this thread may be on.
pub fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// How many reads returned the last write, or which did not.
fn with_reads(
    mut checked: BTreeMap<String, u64>,
    reads: Option<Result<u64, String>>,
) -> Result<BTreeMap<String, u64>, String> {
    if let Some(reads) = reads {
        checked.insert("a read returns the last write".into(), reads?);
    }
    Ok(checked)
}

/// Looks after a kernel.
struct Guardian<'a> {
    kernel: Kernel,
    plan: &'a Plan<'a>,
    began: Option<Ns>,
    ended: Option<(Ns, u8)>,
    results: Vec<RunResult>,
}

impl Guardian<'_> {
    fn measure<O: Observer>(&mut self, disks: &[Disk<O>], status: Status) -> Result<(), GuestError> {
        let results = disks.iter().map(|disk| disk.drive().measured(self.plan.name, status));
        self.results = results.collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl<O: Windowed> Attendant<O> for Guardian<'_> {
    fn look(&mut self, now: Ns, unchanged: Duration) -> Result<(), GuestError> {
        if self.plan.stop.load(Ordering::Relaxed) {
            return Err(GuestError::Interrupted);
        }
        if now > self.plan.limit {
            return Err(self
                .kernel
                .ended(format!("the guest is at {now}, past the limit of {}", self.plan.limit)));
        }
        if self.kernel.status()?.is_some() && unchanged > Duration::from_millis(200) {
            return Err(self.kernel.ended("the kernel's process ended"));
        }
        if unchanged > self.plan.patience {
            let who = crate::spin::running(self.kernel.process(), self.kernel.program());
            return Err(self.kernel.ended(format!(
                "for {} s of wall time the guest's time has stood still at {now}: {who}",
                unchanged.as_secs()
            )));
        }
        Ok(())
    }

    fn hear(&mut self, message: u64, now: Ns, disks: &mut [Disk<O>]) -> Result<(), GuestError> {
        let Some((announcement, said)) = Announcement::from_message(message) else { return Ok(()) };
        // A kernel that shares the schedule may be past what it has written there, and is never past a drive's next event.
        let next = disks.iter().map(|disk| disk.next(now)).min().unwrap_or(now);
        let now = said.min(next).max(now);
        match announcement {
            Announcement::Begins => {
                self.began = Some(now);
                for disk in disks {
                    let drive = disk.drive_mut();
                    drive.advance(now)?;
                    let first = drive.begin();
                    drive.observer_mut().begin(first);
                }
            }
            Announcement::Ended(status) if self.began.is_some() => {
                self.ended = Some((now, status));
                for disk in &mut *disks {
                    let drive = disk.drive_mut();
                    drive.advance(now)?;
                    let end = drive.submitted();
                    drive.observer_mut().end(end);
                }
                self.measure(disks, Status::Complete)?;
            }
            Announcement::NotPrepared(status) => {
                return Err(self
                    .kernel
                    .ended(format!("what comes before the command failed with status {status}")));
            }
            Announcement::Ended(_) => {}
        }
        Ok(())
    }
}

/// When the command began and ended. The guest says when it began by its own clock, which may be ahead of ours where it never handed over again.
fn window(began: Option<Ns>, ended: Option<Ns>, now: Ns) -> (Ns, Ns) {
    let began = began.unwrap_or(now);
    (began, ended.unwrap_or(now).max(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_is_ahead_when_it_is_ended_ran_for_no_time_and_not_for_centuries() {
        assert_eq!(window(Some(Ns(7)), None, Ns(5)), (Ns(7), Ns(7)));
        assert_eq!(window(Some(Ns(7)), Some(Ns(9)), Ns(12)), (Ns(7), Ns(9)));
        assert_eq!(window(None, None, Ns(5)), (Ns(5), Ns(5)));
    }
}
