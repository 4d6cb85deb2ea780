//! What the commands that simulate share: claim the output, run the plan, write the run directory, print.

use crate::arguments::{CommonArguments, OutputArguments, SimulationArguments};
use crate::execute::{self, Extras, Input, Outcome};
use crate::failure::Failure;
use crate::output::{self, WholeFile};
use crate::packed::Packed;
use crate::plan::Plan;
use crate::record::path_of_run;
use crate::request_log;
use crate::source::Source;
use crate::target;
use planewise_model::Ns;
use planewise_report::{Overwrite, RunDirectory, Style};
use planewise_sim::drivers::pace::Pace;
use planewise_sim::results::{RESULTS_FORMAT, Results, Setup, Status, TraceSetup};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Operations in a timeline at most: the viewer gets slow past a few million.
const TIMELINE_OPERATIONS_MAX: u64 = 2_000_000;

/// Replays a trace under a plan, from claiming its directory to printing its results.
///
/// # Errors
/// A trace that cannot be read, and all of [`simulate`].
pub fn replay(
    command: &str,
    plan: &Plan,
    arguments: &SimulationArguments,
    timeline: Option<TimelineOf<'_>>,
    table: Table,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut source = Source::find(&arguments.trace, &arguments.read, arguments.part.requests, &plan.seeds())?;
    source.keep()?;
    source.wrap_sectors =
        arguments.wrap.then(|| plan.profile.user_capacity().0 / planewise_model::SECTOR_BYTES);
    check_warm_up(arguments.part.warmup, source.known_requests(), &source.place_name())?;
    if plan.configs.iter().any(|config| config.pace == Pace::Dependent) {
        source.check_completions()?;
    }
    let format = source.open()?.format();
    let job = Job {
        command,
        plan,
        input: Input::Trace(&source),
        notes: Vec::new(),
        trace: source.setup(format)?,
        warm_up: arguments.part.warmup,
        common: &arguments.common,
        timeline,
        table,
    };
    simulate(job, stop)
}

/// A timeline that is to be written: where to, and of what time.
#[derive(Clone, Copy)]
pub struct TimelineOf<'a> {
    /// File; `.gz` and `.zst` compress.
    pub path: &'a Path,
    /// From when to when.
    pub window: (Ns, Ns),
}

/// How results are shown on the terminal.
pub type Table = fn(&Results, Style) -> String;

/// A command that simulates.
pub struct Job<'a> {
    /// Its name.
    pub command: &'a str,
    /// Its runs.
    pub plan: &'a Plan,
    /// What they serve.
    pub input: Input<'a>,
    /// What to tell the user about that.
    pub notes: Vec<String>,
    /// What results say about that.
    pub trace: TraceSetup,
    /// Requests at the beginning that are not measured.
    pub warm_up: u64,
    /// Options that all such commands have.
    pub common: &'a CommonArguments,
    /// Where the timeline of the (one) run goes.
    pub timeline: Option<TimelineOf<'a>>,
    /// How its results are shown.
    pub table: Table,
}

/// Runs a plan from claiming its directory to printing its results.
///
/// # Errors
/// A place that cannot be written (found out first), a trace or run that fails, an invariant that is violated, Ctrl-C.
pub fn simulate(job: Job<'_>, stop: &AtomicBool) -> Result<(), Failure> {
    let Job { command, plan, input, notes, trace, warm_up, common, timeline: timeline_of, table } = job;
    let timeline_path = timeline_of.map(|of| of.path);
    let output = &common.output;
    let setup = setup(plan, trace);
    for path in common.record.iter().map(PathBuf::as_path).chain(timeline_path) {
        check_is_not_input(path, &setup.trace.source)?;
    }
    let (place, overwrite) = place(command, output, &setup);
    let directory = RunDirectory::create(&place, overwrite)?;
    if let Some(record) = &common.record {
        check_records(record, plan, output.force)?;
    }
    let timeline = timeline_path.map(|path| WholeFile::create(path, output.force)).transpose()?;
    let (timeline_file, timeline_sink) = timeline.unzip();
    let timeline_sink = timeline_sink.zip(timeline_of).map(|(file, of)| {
        let refused = |error| Failure::output(format!("{}: cannot write: {error}", of.path.display()));
        let packed = Packed::new(of.path, file).map_err(refused)?;
        Ok::<_, Failure>((BufWriter::with_capacity(1 << 16, packed), TIMELINE_OPERATIONS_MAX, of.window))
    });

    let extras = Extras {
        warm_up,
        check: common.check,
        power_cut: plan.power_cut,
        request_log: common.request_log.then(|| directory.path()),
        record: common.record.as_deref().map(|path| (path, common.record_at, output.force)),
        timeline: timeline_sink.transpose()?,
        timeline_path,
        jobs: common.jobs,
        quiet: output.quiet,
    };
    let outcome = execute::execute(plan, input, extras, stop)?;
    let status = execute::status(&outcome.runs, plan.configs.len());
    if status == Status::Complete {
        let measured = outcome.runs.iter().map(|run| run.metrics.requests.completed).max().unwrap_or(0);
        if measured == 0 && warm_up > 0 {
            check_warm_up(warm_up, Some(0), &setup.trace.source)?;
        }
    }

    if common.request_log {
        request_log::join(directory.path(), outcome.runs.len())?;
    }
    if let Some(file) = timeline_file {
        file.settle()?;
    }
    let note = note(&outcome, notes, output.quiet);
    let results = Results {
        format: RESULTS_FORMAT,
        generator: format!("planewise {}", env!("CARGO_PKG_VERSION")),
        status,
        setup,
        baseline: 0,
        runs: outcome.runs,
    };
    let replaced = directory.finish(&results, &[])?;
    if !output.quiet {
        note.iter().for_each(|line| eprintln!("note: {line}"));
    }
    print(&results, output, table, &place, replaced)?;
    match status {
        Status::Complete => Ok(()),
        Status::Interrupted => Err(Failure::interrupted(format!(
            "interrupted: {} of {} runs are complete; what was done is kept and marked in {}",
            results.runs.iter().filter(|run| run.status == Status::Complete).count(),
            plan.configs.len(),
            place.display()
        ))),
    }
}

/// Refuses to write over what is read.
fn check_is_not_input(path: &Path, source: &str) -> Result<(), Failure> {
    match (path.canonicalize(), Path::new(source).canonicalize()) {
        (Ok(output), Ok(input)) if output == input => Err(Failure::usage(format!(
            "{}: is read and written; allowed: another file to write",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether the traces of all runs have a place: found out before anything is simulated.
fn check_records(path: &Path, plan: &Plan, replace: bool) -> Result<(), Failure> {
    let runs = plan.names.len();
    plan.names
        .iter()
        .try_for_each(|name| WholeFile::create(&path_of_run(path, name, runs), replace).map(|_| ()))
}

fn setup(plan: &Plan, trace: TraceSetup) -> Setup {
    Setup {
        trace,
        device_profile: plan.profile.to_toml(),
        condition: plan.options["condition"].replace(',', ", "),
        options: plan.options.clone(),
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    }
}

/// The run directory: as asked for, or one whose name follows from what is run, so that the same command finds its own place again.
pub(super) fn place(command: &str, output: &OutputArguments, setup: &Setup) -> (PathBuf, Overwrite) {
    if let Some(directory) = &output.out {
        let overwrite = if output.force { Overwrite::EarlierRun } else { Overwrite::Never };
        return (directory.clone(), overwrite);
    }
    let identity = format!("{setup:?}");
    let hash = blake3::hash(identity.as_bytes()).to_hex();
    let profile =
        planewise_model::Profile::parse(&setup.device_profile, "device").map(|profile| profile.name);
    let target = setup.options.get("target");
    let array = target.map(String::as_str).filter(|target| target.starts_with(target::ARRAY));
    let target = target.and_then(|target| Path::new(target).file_name());
    let target = target.map_or("device".into(), |name| name.to_string_lossy());
    let device = array.or(profile.as_deref().ok()).unwrap_or(&target);
    let words = [command, &setup.trace.name, device, &hash.as_str()[..8]].map(plain);
    (Path::new("planewise-out").join(words.join("-")), Overwrite::EarlierRun)
}

/// A word for a directory's name: letters, digits, `_`, `.` and `+` stay; no leading dot.
fn plain(word: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "_.+-".contains(c) { c } else { '_' };
    word.chars().map(safe).take(64).collect::<String>().trim_start_matches('.').to_owned()
}

fn check_warm_up(warm_up: u64, requests: Option<u64>, trace: &str) -> Result<(), Failure> {
    match requests {
        Some(0) => Err(Failure::usage(format!(
            "warmup: found {warm_up}; allowed: fewer than the requests of {trace}, or nothing is measured"
        ))),
        Some(requests) if warm_up >= requests => Err(Failure::usage(format!(
            "warmup: found {warm_up}; allowed: fewer than the {requests} requests of {trace}"
        ))),
        _ => Ok(()),
    }
}

/// What the user should know besides the results.
fn note(outcome: &Outcome, mut notes: Vec<String>, quiet: bool) -> Vec<String> {
    if quiet {
        return Vec::new();
    }
    notes.extend(outcome.warnings.iter().cloned());
    if outcome.timeline_operations == Some(TIMELINE_OPERATIONS_MAX) {
        notes.push(format!(
            "the timeline ends after {TIMELINE_OPERATIONS_MAX} operations; --requests N makes a shorter run"
        ));
    }
    notes
}

/// Prints the results and where the report is.
pub(super) fn print(
    results: &Results,
    output: &OutputArguments,
    table: Table,
    place: &Path,
    replaced: bool,
) -> Result<(), Failure> {
    let replaced = if replaced { " (replaced the earlier run)" } else { "" };
    let report = format!("Report: {}{replaced}", place.join("report.html").display());
    if output.json {
        output::print(&planewise_report::json(results))?;
        if !output.quiet {
            eprintln!("{report}");
        }
        return Ok(());
    }
    output::print(&format!("{}\n{report}\n", table(results, output::style())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;

    #[test]
    fn names_of_traces_become_one_plain_word_of_a_path() {
        assert_eq!(plain("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(plain("piq+ x"), "piq+_x");
    }

    #[test]
    fn a_warm_up_that_leaves_nothing_is_refused() {
        assert!(check_warm_up(10, Some(10), "t").is_err());
        assert!(check_warm_up(9, Some(10), "t").is_ok());
        assert_eq!(check_warm_up(9, None, "t").map_err(|failure| failure.kind), Ok(()));
        assert_eq!(check_warm_up(1, Some(0), "t").unwrap_err().kind, Kind::Usage);
    }
}
