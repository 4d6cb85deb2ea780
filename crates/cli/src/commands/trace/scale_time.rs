//! `planewise trace scale-time`: the same requests, faster or slower.

use super::target::{self, Target};
use crate::arguments::ScaleTimeArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// As `trace convert`.
pub fn execute(arguments: &ScaleTimeArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let mut source = super::find(&arguments.trace)?;
    source.scale_time = Some(arguments.factor);
    let mut stream = source.open()?;
    let to = &arguments.target;
    let format = target::format(&to.target, to.to.as_deref(), Some(stream.format()))?;
    let mut target = Target::create(&to.target, format, to.force)?;
    let progress = Progress::new(source.known_requests(), arguments.trace.quiet);
    super::for_each_batch(&mut stream, &progress, stop, |batch| target.write(batch))?;
    super::finish(target, &stream, &progress, format, to, arguments.trace.quiet)
}
