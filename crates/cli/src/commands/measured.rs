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

/// The command that a run is of: each has options of its own against the same mishap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A workload on a target.
    Bench,
    /// A published experiment on a target.
    Experiment,
    /// A trace on a target.
    Replay,
}

/// A run on a target that failed, with the options of the command that would have helped.
pub fn failed(error: DriverError, of: Of) -> Failure {
    let units = |found: &SimError| matches!(found, SimError::Option { key, .. } if key == "units");
    match error {
        DriverError::Target(error) => error.into(),
        DriverError::Host(error @ (SimError::Source(_) | SimError::Stalled { .. })) => {
            Failure::new(Kind::Run, error)
        }
        DriverError::Host(error) if of == Of::Replay && units(&error) => Failure::usage(format!(
            "{error} with --units N, or --device PROFILE with what is known of the device"
        )),
        DriverError::Host(error) if units(&error) => Failure::usage(format!("{error} with --units N")),
        DriverError::Host(error) => error.into(),
        DriverError::Misaligned { ref target, block_bytes, .. } => Failure::usage(match of {
            Of::Bench => format!(
                "bs, blockalign, offset: found values that are no whole blocks of {target}; allowed: multiples of {block_bytes} bytes"
            ),
            Of::Experiment => format!(
                "--set sizes, area: found values that are no whole blocks of {target}; allowed: multiples of {block_bytes} bytes"
            ),
            Of::Replay => format!("{error}; allowed: --align to widen requests to whole blocks"),
        }),
        DriverError::ReadOnly { .. } => Failure::usage(match of {
            Of::Bench | Of::Experiment => format!("{error}; allowed: --destroy-data with its name"),
            Of::Replay => {
                format!("{error}; allowed: --destroy-data with its name, or --reads-only to leave writes out")
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::Lsn;

    const OF: [Of; 3] = [Of::Bench, Of::Experiment, Of::Replay];

    fn misaligned(of: Of) -> String {
        let (target, start) = ("drive".to_owned(), Lsn(7));
        failed(DriverError::Misaligned { target, number: 3, start, end: 9, block_bytes: 4096 }, of)
            .to_string()
    }

    fn read_only(of: Of) -> String {
        failed(DriverError::ReadOnly { target: "drive".to_owned(), number: 3, start: Lsn(8) }, of).to_string()
    }

    fn no_units(of: Of) -> String {
        let (key, found) = ("units".to_owned(), "none with scheduler piq, which goes by them".to_owned());
        let allowed = "the number of the device's parallel units".to_owned();
        failed(DriverError::Host(SimError::Option { key, found, allowed }), of).to_string()
    }

    #[test]
    fn a_request_that_is_no_whole_blocks_names_the_options_of_the_command_only() {
        let [bench, experiment, replay] = OF.map(misaligned);
        assert!(bench.starts_with("bs, blockalign, offset: found") && !bench.contains("--"), "{bench}");
        assert!(
            experiment.starts_with("--set sizes, area: found") && !experiment.contains("bs"),
            "{experiment}"
        );
        assert!(replay.starts_with("request 3 covers sectors 7..9"), "{replay}");
        assert!(replay.ends_with("allowed: --align to widen requests to whole blocks"), "{replay}");
        for error in [bench, experiment, replay] {
            assert!(error.contains("4096 bytes") && error.contains("drive"), "{error}");
        }
    }

    #[test]
    fn only_replay_can_leave_writes_out_and_look_up_units_in_a_profile() {
        for of in OF {
            let is_replay = of == Of::Replay;
            let (read_only, no_units) = (read_only(of), no_units(of));
            assert!(read_only.contains("--destroy-data"), "{read_only}");
            assert_eq!(read_only.contains("--reads-only"), is_replay, "{read_only}");
            assert!(
                no_units.starts_with("units: found none") && no_units.contains("--units N"),
                "{no_units}"
            );
            assert_eq!(no_units.contains("--device PROFILE"), is_replay, "{no_units}");
        }
    }
}
