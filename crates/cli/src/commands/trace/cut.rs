//! `planewise trace cut`: a part of a trace.

use super::target::{self, Target};
use crate::arguments::CutArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use planewise_model::{Lsn, Ns};
use planewise_trace::transform::Cut;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// An empty part, or as `trace convert`.
pub fn execute(arguments: &CutArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let mut source = super::find(&arguments.trace)?;
    let first = arguments.skip.unwrap_or(0);
    let end = arguments.take.map_or(u64::MAX, |take| first.saturating_add(take));
    let cut = Cut::new(
        arguments.from.unwrap_or(Ns::ZERO)..arguments.until.unwrap_or(Ns::MAX),
        first..end,
        Lsn(arguments.first_sector.unwrap_or(0))..Lsn(arguments.end_sector.unwrap_or(u64::MAX)),
    );
    source.cut = Some(cut.map_err(Failure::usage)?);
    let mut stream = source.open()?;
    let to = &arguments.target;
    let format = target::format(&to.target, to.to.as_deref(), Some(stream.format()))?;
    let mut target = Target::create(&to.target, format, to.force)?;
    let progress = Progress::new(None, arguments.trace.quiet);
    super::for_each_batch(&mut stream, &progress, stop, |batch| target.write(batch))?;
    if target.written() == 0 {
        return Err(Failure::usage(format!(
            "{}: nothing of it lies in the part to keep",
            source.place_name()
        )));
    }
    super::finish(target, &stream, &progress, format, to, arguments.trace.quiet)
}
