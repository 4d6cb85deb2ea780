//! `planewise run`: one scheme over a trace.

use super::simulate;
use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::plan::Plan;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// See [`simulate::replay`].
pub fn execute(arguments: &RunArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let plan = Plan::run(arguments)?;
    let timeline = arguments.timeline.as_deref();
    simulate::replay("run", &plan, &arguments.simulation, timeline, planewise_report::single, stop)
}
