//! What the commands that measure from outside share: claim the output, write the run directory, print, say how it ended.

use super::simulate::{self, Table};
use crate::arguments::OutputArguments;
use crate::failure::{Failure, Kind};
use planewise_io::drivers::DriverError;
use planewise_report::RunDirectory;
use planewise_sim::SimError;
use planewise_sim::results::{RESULTS_FORMAT, Results, RunResult, Setup, Status};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A place for results, claimed before anything is measured.
pub struct Claimed<'a> {
    directory: RunDirectory,
    place: PathBuf,
    setup: Setup,
    output: &'a OutputArguments,
}

impl<'a> Claimed<'a> {
    /// Claims the place that the command line names, or the one that follows from what is run.
    ///
    /// # Errors
    /// It cannot be written, or holds something else.
    pub fn new(command: &str, setup: Setup, output: &'a OutputArguments) -> Result<Claimed<'a>, Failure> {
        let (place, overwrite) = simulate::place(command, output, &setup);
        let directory = RunDirectory::create(&place, overwrite)?;
        Ok(Claimed { directory, place, setup, output })
    }

    /// The directory, for what is written besides results.
    pub fn path(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Writes the results of `planned` runs, as far as they went, and prints them.
    ///
    /// # Errors
    /// Output that cannot be written; that it ended early, and why.
    pub fn finish(
        self,
        runs: Vec<RunResult>,
        planned: usize,
        failure: Option<Failure>,
        notes: &[String],
        table: Table,
    ) -> Result<(), Failure> {
        let status = crate::execute::status(&runs, planned);
        let results = Results {
            format: RESULTS_FORMAT,
            generator: format!("planewise {}", env!("CARGO_PKG_VERSION")),
            status,
            setup: self.setup,
            baseline: 0,
            runs,
        };
        let replaced = self.directory.finish(&results, &[])?;
        if !self.output.quiet {
            notes.iter().for_each(|note| eprintln!("note: {note}"));
        }
        simulate::print(&results, self.output, table, &self.place, replaced)?;
        let complete = results.runs.iter().filter(|run| run.status == Status::Complete).count();
        let kept = format!(
            "{complete} of {planned} runs are complete; what was done is kept and marked in {}",
            self.place.display()
        );
        match (failure, status) {
            (Some(failure), _) => Err(Failure::new(failure.kind, format!("{failure}; {kept}"))),
            (None, Status::Complete) => Ok(()),
            (None, Status::Interrupted) => Err(Failure::interrupted(format!("interrupted: {kept}"))),
        }
    }
}

/// Makes so many runs one after the other, as they share a target, until one ends early or `stop` is set. Returns those that were made and why
/// there are no more.
///
/// # Errors
/// The first run failed: there is nothing to keep.
pub fn one_by_one(
    count: usize,
    stop: &AtomicBool,
    mut run: impl FnMut(usize) -> Result<(RunResult, Option<Failure>), Failure>,
) -> Result<(Vec<RunResult>, Option<Failure>), Failure> {
    let (mut done, mut failure): (Vec<RunResult>, Option<Failure>) = (Vec::new(), None);
    for index in 0..count {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match run(index) {
            Ok((result, ended)) => {
                let is_whole = result.status == Status::Complete;
                done.push(result);
                failure = ended;
                if !is_whole {
                    break;
                }
            }
            Err(error) if done.is_empty() => return Err(error),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    Ok((done, failure))
}

/// A run on a target that failed.
pub fn failed(error: DriverError) -> Failure {
    match error {
        DriverError::Target(error) => error.into(),
        DriverError::Host(error @ (SimError::Source(_) | SimError::Stalled { .. })) => {
            Failure::new(Kind::Run, error)
        }
        DriverError::Host(error) => error.into(),
        DriverError::Misaligned { target, block_bytes, .. } => Failure::usage(format!(
            "bs, blockalign, offset: found values that are no whole blocks of {target}; allowed: multiples of {block_bytes} bytes"
        )),
        other => Failure::new(Kind::Run, other),
    }
}
