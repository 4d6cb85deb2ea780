//! `planewise trace`: look at, convert, cut, stretch and make traces.

mod convert;
mod cut;
mod formats;
mod info;
mod scale_time;
mod synth;
mod target;
mod volumes;

use crate::arguments::{TargetArguments, TraceArguments, TraceCommand};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::source::{Source, Stream};
use planewise_model::Request;
use planewise_trace::formats::Format;
use std::sync::atomic::{AtomicBool, Ordering};
pub use target::Target;

/// Requests read at a time.
const BATCH: usize = 4096;

/// Runs one of the commands.
///
/// # Errors
/// A trace that cannot be read, a file that cannot be written, Ctrl-C.
pub fn execute(command: &TraceCommand, stop: &AtomicBool) -> Result<(), Failure> {
    match command {
        TraceCommand::Info(arguments) => info::execute(arguments, stop),
        TraceCommand::Convert(arguments) => convert::execute(arguments, stop),
        TraceCommand::Cut(arguments) => cut::execute(arguments, stop),
        TraceCommand::ScaleTime(arguments) => scale_time::execute(arguments, stop),
        TraceCommand::Synth(arguments) => synth::execute(arguments, stop),
        TraceCommand::Formats => formats::execute(),
        TraceCommand::Volumes(arguments) => volumes::execute(arguments, stop),
    }
}

/// Finds the trace that a command names.
fn find(arguments: &TraceArguments) -> Result<Source, Failure> {
    Source::find(&arguments.trace, &arguments.read, arguments.requests, &[arguments.seed])
}

/// Hands a stream on in batches, with progress.
fn for_each_batch(
    stream: &mut Stream,
    progress: &Progress,
    stop: &AtomicBool,
    mut each: impl FnMut(&[Request]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted: nothing was written"));
        }
        batch.clear();
        if stream.read(&mut batch, BATCH)? == 0 {
            return Ok(());
        }
        progress.add(batch.len() as u64);
        each(&batch)?;
    }
}

/// Tells what the reader left out or found missing.
fn warn(stream: &Stream, quiet: bool) {
    if !quiet {
        stream.warnings().iter().for_each(|line| eprintln!("note: {line}"));
    }
}

/// Ends a written trace and says what was written.
fn finish(
    target: Target,
    stream: &Stream,
    progress: &Progress,
    format: &Format,
    to: &TargetArguments,
    quiet: bool,
) -> Result<(), Failure> {
    let note = target.note();
    let written = target.finish()?;
    progress.end();
    warn(stream, quiet);
    if !quiet {
        note.iter().for_each(|line| eprintln!("note: {line}"));
        // Whoever reads it is asked for the unit.
        let unit = if format.time_unit_open { ", --time-unit ns" } else { "" };
        eprintln!("{}: {written} requests, format {}{unit}", to.target.display(), format.name);
    }
    Ok(())
}
