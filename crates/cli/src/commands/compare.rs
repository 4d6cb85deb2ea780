//! `planewise compare`: schemes side by side over one trace.

use super::simulate;
use crate::arguments::CompareArguments;
use crate::failure::Failure;
use crate::plan::Plan;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// See [`simulate::replay`].
pub fn execute(arguments: &CompareArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let plan = Plan::compare(arguments)?;
    simulate::replay("compare", &plan, &arguments.simulation, None, planewise_report::comparison, stop)
}
