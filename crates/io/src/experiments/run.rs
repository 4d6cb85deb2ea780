//! Takes the steps of an experiment on a target.

use super::{Measurement, Step, prepare};
use crate::drivers::closed_loop::{self, LoopOptions};
use crate::drivers::{DriverError, HostOptions, Outcome};
use crate::target::Target;
use planewise_sim::SimError;
use planewise_sim::results::{RunResult, Status};
use std::sync::atomic::{AtomicBool, Ordering};

/// What came of an experiment.
#[derive(Debug)]
pub struct Done {
    /// Its measurements in order, as far as they went.
    pub runs: Vec<RunResult>,
    /// Why it ended early, when neither its end nor the user ended it.
    pub failure: Option<DriverError>,
}

/// Takes the steps on the target. `progress` is called before each with its number.
///
/// # Errors
/// Options of the host that cannot be. What fails later is in what is returned, with what was measured until then.
pub fn run(
    target: &mut dyn Target,
    host: &HostOptions,
    name: &str,
    steps: &[Step],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize),
) -> Result<Done, DriverError> {
    let mut done = Done { runs: Vec::new(), failure: None };
    for (number, step) in steps.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        progress(number);
        match take(target, host, name, step, stop) {
            Ok(Some(Outcome { result, failure, .. })) => {
                let is_whole = result.status == Status::Complete;
                done.runs.push(result);
                done.failure = failure;
                if !is_whole {
                    break;
                }
            }
            Ok(None) => {}
            // Nothing was written or measured yet: it is the options that are wrong.
            Err(error @ DriverError::Host(_)) if done.runs.is_empty() => return Err(error),
            Err(error) => {
                done.failure = Some(error);
                break;
            }
        }
    }
    Ok(done)
}

fn take(
    target: &mut dyn Target,
    host: &HostOptions,
    name: &str,
    step: &Step,
    stop: &AtomicBool,
) -> Result<Option<Outcome<()>>, DriverError> {
    match step {
        Step::Write(writes) => writes.carry_out(target, host.seed, stop).map(|_| None).map_err(Into::into),
        Step::Rest(time) => prepare::rest(target, *time, stop).map(|_| None).map_err(Into::into),
        Step::Measure(Measurement { labels, jobs, .. }) => {
            let built = jobs.build(target.info().capacity.0, host.seed);
            let mut workload = built.map_err(|error| SimError::Source(error.to_string()))?;
            let mut options = LoopOptions { stop, progress: &mut |_| {}, name };
            let mut outcome = closed_loop::run(target, host, &mut workload, (), &mut options)?;
            outcome.result.labels.workload.clone_from(labels);
            Ok(Some(outcome))
        }
    }
}
