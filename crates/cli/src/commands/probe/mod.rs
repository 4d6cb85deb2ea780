//! `planewise probe`: what is inside a drive, found from outside.

mod journal;

use crate::arguments::ProbeArguments;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::target::{self, Wanted};
use journal::{Before, Journal, Wish};
use planewise_io::plan::WritePlan;
use planewise_io::probe::file::{ProbeFile, Simulated, Status};
use planewise_io::probe::{self, Findings, Options, ProbeError, Probed, STAGES, Subject};
use planewise_io::{Target, TargetKind};
use planewise_model::Bytes;
use planewise_sim::kernel_parameters::KernelParameters;
use planewise_sim::{Condition, RunConfig};
use std::cell::Cell;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Longest operation that a probe issues.
const LONGEST: Bytes = Bytes(1 << 20);

/// Runs the command.
///
/// # Errors
/// A target or an option that cannot be used, a directory that cannot, a target that fails, Ctrl-C.
pub fn execute(arguments: &ProbeArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let (mut target, simulated) = open(arguments)?;
    let options = options(arguments, &*target);
    let subject = probe::subject(&*target, &options)?;
    let new = ProbeFile {
        format: probe::FORMAT,
        generator: format!("planewise {}", env!("CARGO_PKG_VERSION")),
        status: Status::UnderWay,
        problem: String::new(),
        simulated,
        command: command(arguments),
        findings: Findings { format: probe::FORMAT, subject, ..Findings::default() },
    };
    let place = arguments.out.clone().unwrap_or_else(|| default_place(&new));
    let wish = Wish { named: arguments.out.is_some(), force: arguments.force };
    let (mut journal, before) = Journal::open(&place, new, wish)?;
    say_before(&before, &journal, arguments.quiet);
    let ended = announce(&mut *target, &options, &journal, stop, arguments.quiet)
        .map_err(End::Probe)
        .and_then(|()| measure(&mut *target, &options, &mut journal, before, stop, arguments.quiet));
    finish(ended, &mut journal, arguments)
}

fn open(arguments: &ProbeArguments) -> Result<(Box<dyn Target>, Option<Simulated>), Failure> {
    let device = target::simulated(&arguments.place.target)?;
    if let (None, Some(condition)) = (&device, arguments.condition) {
        return Err(Failure::usage(format!(
            "--condition: found {condition}; allowed: only with sim:PROFILE, {} is in the condition it is in",
            arguments.place.target
        )));
    }
    let condition = arguments.condition.unwrap_or(Condition::Filled);
    let name = &arguments.place.target;
    let capacity = match &device {
        Some(device) => device.capacity(name)?,
        None => Bytes(size_of(Path::new(name)).unwrap_or(0)),
    };
    let simulated = device.map(|device| Simulated {
        profile: device.described(&arguments.place.target),
        condition: condition.to_string(),
    });
    let wanted = Wanted {
        writes: simulated.is_some() || arguments.drive.destroy_data.is_some(),
        discards: false,
        depth: arguments.depth.unwrap_or_else(|| probe::depth_for(capacity)),
        longest: LONGEST,
        condition,
        seed: arguments.seed,
    };
    Ok((target::open(&arguments.place.target, &arguments.drive, wanted, arguments.quiet)?, simulated))
}

/// Bytes of a file or a block device, as far as that is known before it is opened to be measured.
fn size_of(path: &Path) -> Option<u64> {
    use std::os::unix::fs::FileTypeExt;
    let kind = path.metadata().ok()?.file_type();
    let is_seekable = kind.is_file() || kind.is_block_device();
    is_seekable.then(|| File::open(path).ok()?.seek(SeekFrom::End(0)).ok())?
}

fn options(arguments: &ProbeArguments, target: &dyn Target) -> Options {
    let usual = probe::options_for(target, arguments.quick);
    let start = arguments.start.unwrap_or(usual.start);
    let room = Bytes(target.info().capacity.0.saturating_sub(start.0) >> 20 << 20);
    let area = arguments.area.unwrap_or(usual.area.min(room));
    Options { quick: arguments.quick, start, area, seed: arguments.seed }
}

/// The command line that measures the same.
fn command(arguments: &ProbeArguments) -> String {
    let mut words = vec!["planewise probe".to_owned(), quoted(&arguments.place.target)];
    if arguments.quick {
        words.push("--quick".to_owned());
    }
    let mut add = |option: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{option} {}", quoted(&value))));
    };
    add("area", arguments.area.map(|bytes| bytes.0.to_string()));
    add("start", arguments.start.map(|bytes| bytes.0.to_string()));
    add("depth", arguments.depth.map(|depth| depth.to_string()));
    let is_usual = arguments.seed == planewise_model::rng::DEFAULT_SEED;
    add("seed", (!is_usual).then(|| arguments.seed.to_string()));
    add("condition", arguments.condition.map(|condition| condition.to_string()));
    add("destroy-data", arguments.drive.destroy_data.clone());
    words.join(" ")
}

/// The word as a POSIX shell must see it.
fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A place whose name follows from what is probed and how, so that the same command finds its own place again.
fn default_place(file: &ProbeFile) -> PathBuf {
    let identity = format!("{:?} {:?}", file.findings.subject, file.simulated);
    let hash = blake3::hash(identity.as_bytes()).to_hex();
    let name = plain_name(&file.findings.subject.target);
    Path::new("planewise-out").join(format!("probe-{name}-{}", &hash.as_str()[..8]))
}

/// The last part of a target's name, as a word for a file's name: letters, digits, `_`, `.`, `+` and `-` stay; no leading dot.
fn plain_name(target: &str) -> String {
    let target = target.strip_prefix("sim:").unwrap_or(target);
    let name = Path::new(target)
        .file_name()
        .map_or_else(|| target.to_owned(), |name| name.to_string_lossy().into_owned());
    let is_plain = |c: char| c.is_alphanumeric() || "_.+-".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(64).collect();
    name.trim_start_matches('.').to_owned()
}

fn say_before(before: &Before, journal: &Journal, quiet: bool) {
    if quiet {
        return;
    }
    let place = journal.directory().display();
    match before {
        Before::Nothing => {}
        Before::Finished => eprintln!("note: {place}: replaces the earlier probe"),
        Before::Unfinished(file) => match file.findings.stages.last() {
            None => eprintln!("note: {place}: continues a probe that had no stage done"),
            Some(stage) if file.simulated.is_some() => eprintln!(
                "note: {place}: continues after stage {}; a simulated device begins anew each time, so the stages before it are run again and must find the same",
                stage.name
            ),
            Some(stage) => eprintln!("note: {place}: continues after stage {}", stage.name),
        },
    }
}

/// Says what is going to be written to a real target, and how long it takes; or what is left out because nothing may be.
fn announce(
    target: &mut dyn Target,
    options: &Options,
    journal: &Journal,
    stop: &AtomicBool,
    quiet: bool,
) -> Result<(), ProbeError> {
    let findings = &journal.kept().findings;
    let is_unsaid = quiet && !target.info().writable;
    if is_unsaid || target.info().kind == TargetKind::Simulated {
        return Ok(());
    }
    let expected = probe::expected(target, options, findings, stop)?;
    let info = target.info();
    if !info.writable {
        let what: Vec<&str> = STAGES
            .iter()
            .filter(|entry| entry.writes && probe::wanted(entry, true, options.quick))
            .map(|entry| entry.name)
            .collect();
        eprintln!(
            "note: {} is only read, for about {} s; stages that write are left out: {}. --destroy-data {} allows them and loses its data",
            info.name,
            expected.time.as_secs().max(1),
            what.join(", "),
            quoted(&typed_again(&info.name))
        );
        return Ok(());
    }
    if expected.writing.is_empty() {
        return Ok(());
    }
    let page = findings.page_bytes();
    let what = format!(
        "stages {}: in order and at random, {} at most with pages of {page} and, whatever their size",
        expected.writing.join(", "),
        expected.written
    );
    let plan = WritePlan {
        target: info,
        what: &what,
        start: options.start,
        area: options.area,
        volume: Some(expected.written_most),
        time: Some(expected.time),
    };
    target::announce(&plan);
    Ok(())
}

/// The name that `--destroy-data` takes for a target: the last part of its path without links, as in `/dev/disk/by-id`.
fn typed_again(name: &str) -> String {
    let path = std::fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
    path.file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Why a probe ended early.
enum End {
    Probe(ProbeError),
    Failure(Failure),
}

impl From<ProbeError> for End {
    fn from(error: ProbeError) -> End {
        End::Probe(error)
    }
}

fn measure(
    target: &mut dyn Target,
    options: &Options,
    journal: &mut Journal,
    before: Before,
    stop: &AtomicBool,
    quiet: bool,
) -> Result<(), End> {
    let is_simulated = target.info().kind == TargetKind::Simulated;
    let earlier = match before {
        Before::Unfinished(file) => file.findings,
        _ => Findings::default(),
    };
    let Subject { writes, quick, .. } = journal.kept().findings.subject;
    let all = STAGES.iter().filter(|entry| probe::wanted(entry, writes, quick)).count();
    let done = Cell::new(if is_simulated { 0 } else { earlier.stages.len() });
    // Nothing of a simulated device outlives the program: it has to go through the earlier stages again.
    let mut findings = if is_simulated { Findings::default() } else { earlier.clone() };
    let mut open_line = OpenLine { quiet, is_open: Cell::new(false) };
    let line = &mut open_line;
    let lines = &*line;
    probe::run::<End>(
        target,
        options,
        &mut findings,
        stop,
        |entry| lines.begin(&format!("stage {} of {all}, {}: {}", done.get() + 1, entry.name, entry.what)),
        |findings| {
            done.set(findings.stages.len());
            if is_simulated && findings.stages.len() <= earlier.stages.len() {
                check_again(findings, &earlier)?;
            } else {
                journal.keep(findings).map_err(End::Failure)?;
            }
            let seconds = findings.stages.last().map_or(0.0, |stage| stage.seconds);
            lines.end(&format!("{seconds:.2} s"));
            Ok(())
        },
    )
}

/// A line of progress that is open while its stage goes on.
struct OpenLine {
    quiet: bool,
    is_open: Cell<bool>,
}

impl OpenLine {
    fn begin(&self, text: &str) {
        if !self.quiet {
            eprint!("{text} ... ");
            self.is_open.set(true);
        }
    }

    fn end(&self, text: &str) {
        if self.is_open.replace(false) {
            eprintln!("{text}");
        }
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        self.end("not finished");
    }
}

/// Whether the stages of a simulated device that were run again found what they had found.
fn check_again(findings: &Findings, earlier: &Findings) -> Result<(), End> {
    let again = findings.stages.len();
    let is_same = findings.stages[..] == earlier.stages[..again]
        && (again < earlier.stages.len() || findings == earlier);
    if is_same {
        return Ok(());
    }
    let stage = findings.stages.last().map_or("", |stage| &stage.name);
    Err(End::Failure(Failure::usage(format!(
        "probe.json: stage {stage} finds something else than what is there: it was measured by another version of the program, or altered; begin anew with --force"
    ))))
}

fn finish(ended: Result<(), End>, journal: &mut Journal, arguments: &ProbeArguments) -> Result<(), Failure> {
    let place = journal.directory().to_owned();
    let mut profile = None;
    let failure = match ended {
        Ok(()) => {
            journal.mark(Status::Complete, String::new());
            profile = made_profile(journal.kept(), arguments.quiet);
            if let Some(Probed { profile, .. }) = &profile {
                journal.add("profile.toml", &profile.to_toml())?;
            }
            if let Ok(parameters) = kernel_parameters(journal.kept(), profile.as_ref()) {
                journal.add("kernel-parameters", &format!("{parameters}\n"))?;
            }
            None
        }
        Err(End::Failure(failure)) => return Err(failure),
        Err(End::Probe(ProbeError::Interrupted)) => {
            journal.mark(Status::Interrupted, String::new());
            let done = journal.kept().findings.stages.len();
            Some(Failure::interrupted(format!(
                "interrupted: {} done and kept in {}; the same command continues",
                if done == 1 { "1 stage is".to_owned() } else { format!("{done} stages are") },
                place.display()
            )))
        }
        Err(End::Probe(error @ ProbeError::Option { .. })) => return Err(error.into()),
        Err(End::Probe(error @ ProbeError::Target(_))) => {
            journal.mark(Status::Failed, error.to_string());
            let failure = Failure::from(error);
            Some(Failure::new(
                failure.kind,
                format!(
                    "{failure}; what was found before is kept in {} and marked as failed, without a profile; the same command continues",
                    place.display()
                ),
            ))
        }
    };
    let text = profile.as_ref().map(|probed| probed.profile.to_toml()).unwrap_or_default();
    let page = planewise_report::probe::html(journal.kept(), &text);
    journal.add("report.html", &page)?;
    // Last: a probe whose file says that it is complete has all its files.
    journal.save()?;
    match (arguments.kernel_parameters, failure) {
        (true, Some(failure)) => Err(failure),
        (true, None) => {
            let parameters = kernel_parameters(journal.kept(), profile.as_ref())?;
            if !arguments.quiet {
                eprintln!("Report: {}", place.join("report.html").display());
            }
            output::print(&format!("{parameters}\n"))
        }
        (false, failure) => {
            print(journal.kept(), profile.as_ref(), &place, arguments)?;
            failure.map_or(Ok(()), Err)
        }
    }
}

/// What the kernel modules are told of the probed drive: no guess where its units are undetermined.
fn kernel_parameters(file: &ProbeFile, probed: Option<&Probed>) -> Result<KernelParameters, Failure> {
    let units = file.findings.domains.as_ref().map(|domains| &domains.units);
    if let Some(units) = units.filter(|units| units.value.is_none()) {
        return Err(Failure::new(
            Kind::Run,
            format!("no kernel parameters: the units are undetermined: {}", units.reason),
        ));
    }
    let probed =
        probed.ok_or_else(|| Failure::new(Kind::Run, "no kernel parameters: no profile was made"))?;
    Ok(KernelParameters::of(&RunConfig::new(probed.profile.clone()))?)
}

/// The profile of a finished probe.
fn made_profile(file: &ProbeFile, quiet: bool) -> Option<Probed> {
    let name = format!("probed-{}", plain_name(&file.findings.subject.target));
    match probe::profile(&file.findings, &name) {
        Ok(probed) => {
            let units = file.findings.domains.as_ref().and_then(|domains| domains.units.value);
            if units.is_none() && !quiet {
                eprintln!(
                    "note: units are undetermined: the profile has what was measured, and assumes the rest (its source says what)"
                );
            }
            Some(probed)
        }
        Err(problem) => {
            if !quiet {
                eprintln!("note: no profile was made: {problem}");
            }
            None
        }
    }
}

fn print(
    file: &ProbeFile,
    probed: Option<&Probed>,
    place: &Path,
    arguments: &ProbeArguments,
) -> Result<(), Failure> {
    let mut paths = format!("Report: {}\n", place.join("report.html").display());
    if let Some(Probed { found, assumed, .. }) = probed {
        let most = match (*found, *assumed) {
            (0, _) => "all assumed: ",
            (found, assumed) if assumed > found => "mostly assumed: ",
            _ => "",
        };
        paths += &format!(
            "Profile: {} ({most}{} found, {assumed} assumed; its `source` says which)\n",
            place.join("profile.toml").display(),
            if *found == 1 { "1 property".to_owned() } else { format!("{found} properties") }
        );
    }
    if !arguments.json {
        let text = planewise_report::probe::text(file, output::style(), arguments.verbose);
        return output::print(&format!("{text}\n{paths}"));
    }
    output::print(&file.to_json())?;
    if !arguments.quiet {
        eprint!("{paths}");
    }
    Ok(())
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Failure {
        match error {
            ProbeError::Target(error) => error.into(),
            ProbeError::Option { key, found, allowed } => {
                Failure::usage(format!("--{key}: found {found}; allowed: {allowed}"))
            }
            ProbeError::Interrupted => Failure::new(Kind::Interrupted, error),
        }
    }
}
