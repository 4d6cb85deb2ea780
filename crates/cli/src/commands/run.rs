//! `planewise run`: one scheme over a trace.

use super::simulate::{self, TimelineOf};
use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::plan::Plan;
use planewise_model::Ns;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// See [`simulate::replay`].
pub fn execute(arguments: &RunArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let plan = Plan::run(arguments)?;
    let window = arguments.timeline_window.unwrap_or((Ns::ZERO, Ns::MAX));
    let timeline = arguments.timeline.as_deref().map(|path| TimelineOf { path, window });
    simulate::replay("run", &plan, &arguments.simulation, timeline, planewise_report::single, stop)
}
