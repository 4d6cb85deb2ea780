//! `planewise trace convert`: the same requests in another format.

use super::target::{self, Target};
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// The input cannot be read, the format to write is not certain, the output cannot be written, Ctrl-C.
pub fn execute(arguments: &ConvertArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let source = super::find(&arguments.trace)?;
    let mut stream = source.open()?;
    let to = &arguments.target;
    let format = target::format(&to.target, to.to.as_deref(), None)?;
    let mut target = Target::create(&to.target, format, to.force)?;
    let progress = Progress::new(source.known_requests(), arguments.trace.quiet);
    super::for_each_batch(&mut stream, &progress, stop, |batch| target.write(batch))?;
    super::finish(target, &stream, &progress, format, to, arguments.trace.quiet)
}
