//! `planewise trace synth`: a look-alike of a published volume as a trace file.

use super::target::{self, Target};
use crate::arguments::{ReadArguments, SynthArguments, TargetArguments};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::source::Source;
use planewise_trace::synth;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// An unknown volume, a description that is wrong, an output that cannot be written, Ctrl-C.
pub fn execute(arguments: &SynthArguments, stop: &AtomicBool) -> Result<(), Failure> {
    if !Path::new(&arguments.volume).is_file() {
        // Only volumes can be made: the error offers their names.
        synth::volume_or_file(&arguments.volume)?;
    }
    let source = Source::find(
        &arguments.volume,
        &ReadArguments::default(),
        Some(arguments.requests),
        &[arguments.seed],
    )?;
    if source.known_requests().is_none() {
        return Err(Failure::usage(format!(
            "{}: is a trace; allowed: a volume or a TOML file",
            arguments.volume
        )));
    }
    let mut stream = source.open()?;
    let to = TargetArguments {
        target: arguments.output.clone(),
        to: arguments.to.clone(),
        force: arguments.force,
    };
    let format = target::format(&to.target, to.to.as_deref(), Some("msr"))?;
    let mut target = Target::create(&to.target, format, to.force)?;
    let progress = Progress::new(source.known_requests(), arguments.quiet);
    super::for_each_batch(&mut stream, &progress, stop, |batch| target.write(batch))?;
    super::finish(target, &stream, &progress, format, &to, arguments.quiet)
}
