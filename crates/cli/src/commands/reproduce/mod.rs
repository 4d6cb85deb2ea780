//! `planewise reproduce`: published figures, run again and judged.

mod divergence;
mod kept;
mod runner;

use crate::arguments::ReproduceArguments;
use crate::failure::{Failure, Kind};
use crate::output;
use kept::{Entry, Kept};
use planewise_model::names;
use planewise_report::study::{Missing, Reproduction};
use planewise_study::outcome::{Paper, Size, place_in_paper};
use planewise_study::{Cell, Claims, Outcome, Places, Study};
use runner::{Job, Runner, Scratch};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs the command.
///
/// # Errors
/// A study that is unknown or wrong, a directory without traces, results that cannot be written, a command of a study that fails, Ctrl-C.
pub fn execute(arguments: &ReproduceArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let claims = Claims::embedded();
    let embedded = Study::embedded(&claims);
    if arguments.list {
        return output::print(&list(&embedded));
    }
    let size = if arguments.full { Size::Full } else { Size::Quick };
    let (mut wanted, others) = choose(arguments, embedded, &claims)?;
    for study in &mut wanted {
        arguments.set.iter().try_for_each(|change| study.change(change)).map_err(Failure::usage)?;
    }
    let inputs = Inputs::find(arguments, &wanted, size)?;
    let kept = Kept::open(&arguments.out.join("runs"))?;
    let wanted = prepare(wanted, size, &inputs, &kept)?;
    let others = prepare(others, size, &inputs, &kept)?;

    let (jobs, total) = missing(&wanted, &kept);
    let say = |text: String| {
        if !arguments.quiet {
            eprintln!("{text}");
        }
    };
    say(format!(
        "{} of {} commands are kept already; {} to run, size {size}",
        total - jobs.len(),
        total,
        jobs.len()
    ));
    let finished = AtomicUsize::new(0);
    let done = |place: usize| {
        let count = finished.fetch_add(1, Ordering::SeqCst) + 1;
        say(format!("[{count}/{}] planewise {}", jobs.len(), jobs[place].words.join(" ")));
    };
    let threads = arguments.jobs.or_else(|| std::thread::available_parallelism().ok());
    let failures = {
        let scratch = Scratch::create(&arguments.out)?;
        let runner = Runner {
            kept: &kept,
            scratch: scratch.path(),
            threads: threads.map_or(1, NonZeroUsize::get),
            stop,
        };
        runner.run(&jobs, &done)?
    };
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted(format!(
            "interrupted: {} of {} commands are done and kept in {}; the same command goes on from there",
            total - jobs.len() + finished.load(Ordering::SeqCst),
            total,
            arguments.out.join("runs").display()
        )));
    }
    let (mut outcomes, mut absent) = (Vec::new(), Vec::new());
    let mut failed: Vec<String> = Vec::new();
    for study in &wanted {
        match study.judge(size, &inputs, &kept, &claims) {
            Ok(Some(outcome)) => outcomes.push(outcome),
            Ok(None) => {
                absent.push(study.missing("a command of it failed"));
                let problem = study.keys.iter().zip(&study.cells).find_map(|(key, cell)| {
                    let error = failures.get(key)?.as_ref().err()?;
                    Some(format!("{}: planewise {}: {error}", study.study.id, cell.words.join(" ")))
                });
                failed.push(problem.unwrap_or_else(|| format!("{}: a result is gone", study.study.id)));
            }
            Err(error) => {
                absent.push(study.missing("its formulas do not go with the results"));
                failed.push(error.to_string());
            }
        }
    }
    let shown: Vec<Outcome> = outcomes.clone();
    // Studies whose runs are all kept are in the index too: pages of earlier commands stay in it.
    for study in &others {
        match study.judge(size, &inputs, &kept, &claims) {
            Ok(Some(outcome)) => outcomes.push(outcome),
            Ok(None) | Err(_) => absent.push(study.missing("not asked for")),
        }
    }
    outcomes.sort_by_cached_key(|outcome| (outcome.paper, place_in_paper(&outcome.id)));
    let mut command = format!(
        "planewise reproduce {} --{size}",
        if arguments.all { "--all".to_owned() } else { arguments.studies.join(" ") }
    );
    for change in &arguments.set {
        // As a shell reads it.
        command += &format!(" --set '{}'", change.replace('\'', r"'\''"));
    }
    let divergence = divergence::list();
    let reproduction = Reproduction {
        unasked: outcomes.len() - shown.len(),
        outcomes: &outcomes,
        missing: &absent,
        command: &command,
        divergence: &divergence,
    };
    planewise_report::study::write(&arguments.out, &reproduction)?;
    if !shown.is_empty() {
        output::print(&summary(&shown, &arguments.out))?;
    }
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(
            Kind::Run,
            format!("{} of {} studies could not be finished: {first}", failed.len(), wanted.len()),
        )),
    }
}

/// A study with its commands.
struct Prepared {
    study: Study,
    cells: Vec<Cell>,
    keys: Vec<String>,
}

impl Prepared {
    /// For the index.
    fn missing(&self, why: &str) -> Missing {
        Missing {
            id: self.study.id.clone(),
            title: self.study.title().to_owned(),
            paper: self.study.paper(),
            figure: self.study.figure().to_owned(),
            why: why.to_owned(),
        }
    }

    /// Its outcome, when all its commands are kept.
    fn judge(
        &self,
        size: Size,
        inputs: &Inputs,
        kept: &Kept,
        claims: &Claims,
    ) -> Result<Option<Outcome>, Failure> {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let Some(outputs) = runner::outputs(kept, &keys) else { return Ok(None) };
        let sources = inputs.describe(&self.study, size);
        let outcome = planewise_study::evaluate(&self.study, size, &self.cells, outputs, sources, claims);
        outcome.map(Some).map_err(|error| Failure::new(Kind::Run, error))
    }
}

fn prepare(studies: Vec<Study>, size: Size, inputs: &Inputs, kept: &Kept) -> Result<Vec<Prepared>, Failure> {
    let prepared = |study: Study| {
        let cells = study.cells(size, inputs).map_err(Failure::usage)?;
        for (name, text) in study.files() {
            let path = PathBuf::from(inputs.file(&study.id, name));
            // Left alone when it is there already: a command may be reading it.
            if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
                continue;
            }
            std::fs::create_dir_all(&inputs.files).map_err(|error| {
                Failure::output(format!("{}: cannot create: {error}", inputs.files.display()))
            })?;
            planewise_report::study::write_file(&path, text.as_bytes())?;
        }
        let keys = cells.iter().map(|cell| kept.key(&cell.words)).collect::<Result<_, _>>()?;
        Ok(Prepared { study, cells, keys })
    };
    studies.into_iter().map(prepared).collect()
}

/// Commands that are not kept, each once, and how many there are in all.
fn missing(studies: &[Prepared], kept: &Kept) -> (Vec<Job>, usize) {
    let mut seen = BTreeMap::new();
    let mut jobs = Vec::new();
    for (key, cell) in studies.iter().flat_map(|study| study.keys.iter().zip(&study.cells)) {
        if seen.insert(key, ()).is_some() {
            continue;
        }
        match kept.find(key) {
            Entry::Whole(_) => continue,
            Entry::Absent => {}
            Entry::Damaged(path) => {
                eprintln!("note: {} is damaged: it is run again", path.display());
            }
        }
        jobs.push(Job { words: cell.words.clone(), key: key.clone() });
    }
    (jobs, seen.len())
}

/// The studies that are asked for, and the others in the program.
fn choose(
    arguments: &ReproduceArguments,
    embedded: Vec<Study>,
    claims: &Claims,
) -> Result<(Vec<Study>, Vec<Study>), Failure> {
    if arguments.all {
        return Ok((embedded, Vec::new()));
    }
    if arguments.studies.is_empty() {
        return Err(Failure::usage(
            "reproduce: found no study; allowed: names of studies (see --list), TOML files, or --all",
        ));
    }
    let mut wanted: Vec<Study> = Vec::new();
    for name in &arguments.studies {
        if wanted.iter().any(|study| study.id == *name) {
            return Err(Failure::usage(format!("study: found '{name}' twice; allowed: each study once")));
        }
        if let Some(study) = embedded.iter().find(|study| study.id == *name) {
            wanted.push(study.clone());
            continue;
        }
        if !(name.ends_with(".toml") || name.contains('/')) {
            let known = embedded.iter().map(|study| study.id.as_str());
            let unknown = names::unknown("study", name, known);
            return Err(Failure::usage(format!("{unknown}; or the TOML file of a study")));
        }
        let text =
            std::fs::read_to_string(name).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let id =
            Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if embedded.iter().chain(&wanted).any(|study| study.id == id) {
            return Err(Failure::usage(format!(
                "{name}: found a study '{id}' besides; allowed: a file of another name, which names its pages"
            )));
        }
        wanted.push(Study::parse(&id, &text, name, claims).map_err(Failure::usage)?);
    }
    let others = embedded.into_iter().filter(|study| !arguments.studies.contains(&study.id)).collect();
    Ok((wanted, others))
}

/// What commands read: real volumes, where there are any, and files of the studies.
struct Inputs {
    real: BTreeMap<String, PathBuf>,
    directory: Option<PathBuf>,
    /// Where the files of the studies are written.
    files: PathBuf,
}

impl Inputs {
    /// Looks for the volumes of the studies.
    ///
    /// # Errors
    /// A directory that is none, or has none of the volumes.
    fn find(arguments: &ReproduceArguments, studies: &[Study], size: Size) -> Result<Inputs, Failure> {
        let files = arguments.out.join("files");
        let Some(directory) = &arguments.trace_dir else {
            return Ok(Inputs { real: BTreeMap::new(), directory: None, files });
        };
        let entries = std::fs::read_dir(directory)
            .map_err(|error| Failure::usage(format!("--trace-dir: {}: {error}", directory.display())))?;
        let mut wanted: Vec<String> =
            studies.iter().flat_map(|study| study.volumes(size)).flat_map(|(_, volumes)| volumes).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut real = BTreeMap::new();
        for volume in &wanted {
            let files =
                ["csv", "csv.gz", "csv.zst"].map(|extension| directory.join(format!("{volume}.{extension}")));
            if let Some(path) = files.into_iter().find(|path| path.is_file()) {
                real.insert(volume.clone(), path);
            }
        }
        if real.is_empty() && !wanted.is_empty() {
            let mut found: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            found.sort_unstable();
            found.truncate(5);
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            return Err(Failure::usage(format!(
                "--trace-dir: {}: found {found}; allowed: files named by volume, such as {}.csv, .csv.gz or .csv.zst",
                directory.display(),
                wanted[0]
            )));
        }
        Ok(Inputs { real, directory: Some(directory.clone()), files })
    }

    /// Which traces served, in a sentence for each family.
    fn describe(&self, study: &Study, size: Size) -> Vec<String> {
        let mut sentences = Vec::new();
        for (family, volumes) in study.volumes(size) {
            let (real, made): (Vec<&str>, Vec<&str>) =
                volumes.iter().map(String::as_str).partition(|volume| self.real.contains_key(*volume));
            if !made.is_empty() {
                sentences.push(format!(
                    "{}: look-alikes ({family}-VOLUME), made from what the paper's table says of the real volumes",
                    made.join(", ")
                ));
            }
            if let (false, Some(directory)) = (real.is_empty(), &self.directory) {
                let directory =
                    directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                sentences.push(format!(
                    "{}: the real volumes in {directory}, addresses folded onto the device",
                    real.join(", ")
                ));
            }
        }
        sentences
    }
}

impl Places for Inputs {
    fn trace(&self, family: &str, volume: &str) -> (String, bool) {
        match self.real.get(volume) {
            Some(path) => (path.display().to_string(), true),
            None => ().trace(family, volume),
        }
    }

    fn file(&self, study: &str, name: &str) -> String {
        self.files.join(format!("{study}-{name}")).display().to_string()
    }
}

/// The studies, by document.
fn list(studies: &[Study]) -> String {
    let width = studies.iter().map(|study| study.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for paper in Paper::ALL {
        let own: Vec<&Study> = studies.iter().filter(|study| study.paper() == paper).collect();
        if own.is_empty() {
            continue;
        }
        text += &format!("{}\n", paper.heading());
        for study in own {
            text += &format!("  {:width$}  {}: {}\n", study.id, study.figure(), study.title());
        }
    }
    text
}

/// The verdicts of each study, and where the pages are.
fn summary(outcomes: &[Outcome], directory: &Path) -> String {
    use planewise_study::Verdict;
    let width = outcomes.iter().map(|outcome| outcome.id.len()).max().unwrap_or(0).max(5);
    let mut text = format!("{:width$}  holds  direction  fails\n", "study");
    for outcome in outcomes {
        let count = |verdict| outcome.checks.iter().filter(|check| check.verdict == Some(verdict)).count();
        let (holds, direction, fails) =
            (count(Verdict::Holds), count(Verdict::Direction), count(Verdict::Fails));
        text += &format!("{:width$}  {holds:5}  {direction:9}  {fails:5}\n", outcome.id);
    }
    let page = match outcomes {
        [one] => format!("{}.html", one.id),
        _ => "index.html".to_owned(),
    };
    text + &format!("\nPage: {}\n", directory.join(page).display())
}
