//! `planewise linux`: programs in a kernel of the model's time, on a simulated drive.

mod plan;
mod watch;

use super::measured::Claimed;
use crate::arguments::LinuxArguments;
use crate::execute;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::record::path_of_run;
use plan::Plan;
use planewise_guest::contents::Contents;
use planewise_guest::drive::Drive;
use planewise_guest::kernel::{ERRORS, LOG, OUTPUT, Settings};
use planewise_guest::run::{self, Outcome};
use planewise_guest::snapshot::Snapshot;
use planewise_guest::{GuestError, kernel};
use planewise_model::SECTOR_BYTES;
use planewise_sim::results::{Guest, GuestNumber, RunResult, Setup, Status, TraceSetup};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use watch::Watch;

/// How often output is passed on while a program runs.
const OUTPUT_EVERY: Duration = Duration::from_millis(50);

/// What snapshots of drives take up at most, but for the one in use.
const SNAPSHOTS_BYTES: u64 = 4 << 30;

/// Runs the command.
///
/// # Errors
/// A command line that is wrong, a kernel or a root that is missing, a guest that fails, output that cannot be written.
pub fn execute(arguments: &LinuxArguments, stop: &AtomicBool) -> Result<(), Failure> {
    if arguments.recipes {
        return output::print(&plan::list()?);
    }
    let plan = Plan::new(arguments)?;
    let setup = Setup {
        trace: TraceSetup {
            name: plan.name.clone(),
            source: "guest".to_owned(),
            format: "linux".to_owned(),
            hash: blake3::hash(format!("{:?}", plan.options).as_bytes()).to_hex().to_string(),
        },
        device_profile: plan.device.profile.to_toml(),
        condition: plan.device.condition.to_string(),
        options: plan.options.clone(),
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    };
    let claimed = Claimed::new("linux", setup, &arguments.output)?;
    if !plan.is_frozen() && !arguments.output.quiet {
        eprintln!(
            "note: the root is this machine's own: results move with its files (`make linux-root` makes one that stays)"
        );
    }
    let guests =
        Guests { plan: &plan, arguments, stop, place: claimed.path(), processors: run::processors() };
    let (snapshot, _directory) = plan.is_set_up().then(|| guests.set_up()).transpose()?.unzip();
    let jobs = arguments.jobs.map_or_else(cores, NonZeroUsize::get).min(plan.runs.len());
    let failed = AtomicBool::new(false);
    let done = execute::in_order(jobs, plan.runs.len(), stop, |index| {
        (!failed.load(Ordering::Relaxed)).then(|| {
            let done = guests.run(index, snapshot.as_ref());
            failed.fetch_or(!matches!(done, Ok((_, None))), Ordering::Relaxed);
            done
        })
    });
    let (mut runs, mut failure) = (Vec::new(), None);
    for done in done.into_iter().flatten() {
        match done {
            Ok((result, ended)) => {
                runs.push(result);
                failure = failure.or(ended);
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    if let Some(failure) = failure.take_if(|_| runs.is_empty()) {
        return Err(failure);
    }
    claimed.finish(runs, plan.runs.len(), failure, &[], planewise_report::guest)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What all guests of a command share.
struct Guests<'a> {
    plan: &'a Plan,
    arguments: &'a LinuxArguments,
    stop: &'a AtomicBool,
    /// The run directory.
    place: &'a Path,
    /// Processors that guests may be on.
    processors: Vec<usize>,
}

impl Guests<'_> {
    fn is_shown(&self) -> bool {
        self.plan.runs.len() == 1 && !self.arguments.output.json && !self.arguments.output.quiet
    }

    /// Guests that run side by side are on different ones, as far as there are some.
    fn processor(&self, run: usize) -> Option<usize> {
        self.processors.get(run % self.processors.len().max(1)).copied()
    }

    fn say(&self, text: &str) {
        if !self.arguments.output.quiet {
            eprintln!("{text}");
        }
    }

    fn boot(
        &self,
        job: &kernel::Job,
        settings: &Settings,
        processor: Option<usize>,
        directory: &Path,
        drives: Vec<(Watch, Contents)>,
        prepare: &mut dyn FnMut(&mut Drive<Watch>) -> Result<(), GuestError>,
    ) -> Result<Outcome<Watch>, Failure> {
        let wanted = run::Plan {
            build: &self.plan.build,
            settings,
            job,
            directory,
            device: &self.plan.device,
            check: self.arguments.check,
            sharing: self.arguments.time_sharing,
            limit: self.arguments.limit,
            patience: Duration::from_secs(self.arguments.patience),
            stop: self.stop,
            name: &self.plan.name,
            processor,
        };
        run::run(&wanted, drives, prepare).map_err(failure)
    }

    fn sectors(&self) -> u64 {
        self.plan.device.profile.user_capacity().0 / SECTOR_BYTES
    }

    /// What a recipe does once: found where it was kept, or done now; with the directory that it is in, where it is not kept.
    fn set_up(&self) -> Result<(Snapshot, Option<tempfile::TempDir>), Failure> {
        let kept = self.plan.snapshot();
        if let Some(snapshot) = kept.as_deref().and_then(Snapshot::find) {
            return Ok((snapshot, None));
        }
        let began = Instant::now();
        self.say("setting up, once: the drive is kept as this leaves it");
        let directory = working_directory()?;
        let drives = self.empty_drives(None, 0)?;
        let job = self.plan.setup_job();
        let mut keep = |drive: &mut Drive<Watch>| {
            drive.keep_requests();
            Ok(())
        };
        let mut outcome =
            self.boot(&job, &self.plan.settings, self.processor(0), directory.path(), drives, &mut keep)?;
        if let Some(error) = outcome.failure.take() {
            return Err(failure(error).about("setting up"));
        }
        if outcome.status != Some(0) {
            let errors = last_lines(&directory.path().join(ERRORS), &directory.path().join(OUTPUT));
            return Err(Failure::new(
                Kind::Run,
                format!("setting up: ended with status {}: {errors}", outcome.status.unwrap_or_default()),
            ));
        }
        self.say(&format!(
            "set up in {:.1} s ({} of the guest's)",
            began.elapsed().as_secs_f64(),
            outcome.end
        ));
        let temporary = directory.path().join("snapshot");
        let place = kept.as_deref().unwrap_or(&temporary);
        let contents =
            outcome.contents.first().ok_or_else(|| Failure::new(Kind::Run, "setting up: no drive"))?;
        let requests = outcome.requests.pop().unwrap_or_default();
        let snapshot = Snapshot::keep(place, contents, requests, outcome.end).map_err(failure)?;
        // Others are made again when they are asked for.
        if let Some(all) = kept.as_deref().and_then(Path::parent) {
            Snapshot::make_room(all, place, SNAPSHOTS_BYTES)
                .map_err(|error| Failure::output(format!("{}: cannot make room: {error}", all.display())))?;
        }
        Ok((snapshot, kept.is_none().then_some(directory)))
    }

    fn empty_drives(
        &self,
        snapshot: Option<&Snapshot>,
        run: usize,
    ) -> Result<Vec<(Watch, Contents)>, Failure> {
        let drives = usize::from(self.arguments.drives);
        let of_drive = |drive: usize| {
            let record =
                self.arguments.record.as_deref().filter(|_| snapshot.is_some() || !self.plan.is_set_up());
            let path = record.map(|path| {
                let run_name = path_of_run(path, &self.run_name(run), self.plan.runs.len());
                path_of_run(&run_name, &format!("drive {drive}"), drives)
            });
            let watch = Watch::new(path.as_deref().map(|path| (path, self.arguments.output.force)))?;
            let contents = match snapshot.filter(|_| drive == 0) {
                Some(snapshot) => snapshot.contents(self.sectors()),
                None => Contents::new(self.sectors()),
            };
            Ok((watch, contents.map_err(failure)?))
        };
        (0..drives).map(of_drive).collect()
    }

    /// What it differs from the others in.
    fn run_name(&self, run: usize) -> String {
        let (scheduler, seed) = &self.plan.runs[run];
        if self.arguments.seed.len() > 1 { format!("{scheduler} seed {seed}") } else { scheduler.clone() }
    }

    fn run(
        &self,
        index: usize,
        snapshot: Option<&Snapshot>,
    ) -> Result<(RunResult, Option<Failure>), Failure> {
        let (scheduler, seed) = &self.plan.runs[index];
        let name = self.run_name(index);
        let kept = self.place.join(format!("guest-{index}"));
        fs::create_dir(&kept)
            .map_err(|error| Failure::output(format!("{}: cannot create: {error}", kept.display())))?;
        let kept = kept.canonicalize().unwrap_or(kept);
        let directory = working_directory()?;
        let job = self.plan.job(scheduler, &kept);
        let settings = Settings { seed: *seed, ..self.plan.settings.clone() };
        let drives = self.empty_drives(snapshot, index)?;
        let mut number = 0;
        let mut prepare = |drive: &mut Drive<Watch>| {
            number += 1;
            snapshot.filter(|_| number == 1).map_or(Ok(()), |snapshot| snapshot.serve(drive))
        };
        let is_over = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            if self.is_shown() {
                scope.spawn(|| pass_on(directory.path(), &is_over));
            }
            let outcome =
                self.boot(&job, &settings, self.processor(index), directory.path(), drives, &mut prepare);
            is_over.store(true, Ordering::SeqCst);
            outcome
        })?;
        for file in [LOG, OUTPUT, ERRORS] {
            fs::copy(directory.path().join(file), kept.join(file)).map_err(|error| {
                Failure::output(format!("{}: cannot write: {error}", kept.join(file).display()))
            })?;
        }
        let output = fs::read(kept.join(OUTPUT)).unwrap_or_default();
        self.say(&format!(
            "{name}: ran {} of the guest's time in {:.1} s of wall time from boot to power-off ({} requests, {:.0} a second)",
            outcome.window.1 - outcome.window.0,
            outcome.wall.as_secs_f64(),
            outcome.disks.iter().map(|disk| disk.requests).sum::<u64>(),
            outcome.disks.iter().map(|disk| disk.requests).sum::<u64>() as f64 / outcome.wall.as_secs_f64(),
        ));
        self.result(index, outcome, &kept, &String::from_utf8_lossy(&output))
    }

    fn result(
        &self,
        index: usize,
        mut outcome: Outcome<Watch>,
        kept: &Path,
        output: &str,
    ) -> Result<(RunResult, Option<Failure>), Failure> {
        let (scheduler, seed) = &self.plan.runs[index];
        let name = self.run_name(index);
        let mut failed = outcome.failure.take().map(|error| failure(error).about(&name));
        if let Some(status) = outcome.status.filter(|status| *status != 0 && failed.is_none()) {
            let errors = last_lines(&kept.join(ERRORS), &kept.join(OUTPUT));
            failed = Some(Failure::new(
                Kind::Run,
                format!("{name}: the command ended with status {status}: {errors}"),
            ));
        }
        let mut hash = blake3::Hasher::new();
        let is_whole = failed.is_none();
        for watch in outcome.observers {
            hash.update(watch.finish(is_whole)?.as_bytes());
        }
        let mut text_hash = blake3::Hasher::new();
        for file in [OUTPUT, ERRORS, LOG] {
            text_hash.update(&fs::read(kept.join(file)).unwrap_or_default());
        }
        // Of several drives the first is that of the file system; all are in the run directory.
        let mut results = outcome.results.into_iter();
        let mut result = results.next().ok_or_else(|| {
            failed.take().unwrap_or_else(|| Failure::new(Kind::Run, format!("{name}: nothing was measured")))
        })?;
        result.labels.scheduler.clone_from(scheduler);
        result.labels.seed = *seed;
        if failed.is_some() {
            result.status = Status::Interrupted;
        }
        for (drive, other) in results.enumerate() {
            result.notes.push(format!(
                "drive {}: {} reads, {} writes, mean latencies {:.0} and {:.0} us",
                drive + 1,
                other.metrics.requests.reads,
                other.metrics.requests.writes,
                other.metrics.read.latency_ns.mean / 1e3,
                other.metrics.write.latency_ns.mean / 1e3,
            ));
        }
        if let Some((kept, all)) = lost_events(&fs::read_to_string(kept.join(EVENTS)).unwrap_or_default()) {
            let note =
                format!("{EVENTS} has the last {kept} of {all} events: for all of them, a shorter run");
            self.say(&format!("note: {name}: {note}"));
            result.notes.push(note);
        }
        let numbers = self.plan.numbers.iter().map(|number| GuestNumber {
            name: number.name.clone(),
            unit: number.unit.clone(),
            more_is_better: number.more_is_better,
            value: number.find(output),
        });
        result.guest = Some(Guest {
            status: outcome.status,
            began_ns: outcome.window.0.0,
            ran_ns: (outcome.window.1 - outcome.window.0).0,
            numbers: numbers.collect(),
            requests: outcome.disks.iter().map(|disk| disk.requests).sum(),
            refused: outcome.disks.iter().map(|disk| disk.refused).sum(),
            trace_hash: hash.finalize().to_hex().to_string(),
            output_hash: text_hash.finalize().to_hex().to_string(),
        });
        Ok((result, failed))
    }
}

/// The block layer's events, in the run directory.
const EVENTS: &str = "block-events.txt";

/// How many events the tracer has kept, of how many, where it has lost some.
fn lost_events(events: &str) -> Option<(u64, u64)> {
    let line =
        events.lines().take(10).find_map(|line| line.split("entries-in-buffer/entries-written:").nth(1))?;
    let (kept, all) = line.split_whitespace().next()?.split_once('/')?;
    let (kept, all) = (kept.parse().ok()?, all.parse().ok()?);
    (kept < all).then_some((kept, all))
}

/// A directory for sockets, whose paths must be short.
fn working_directory() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("planewise-")
        .tempdir()
        .map_err(|error| Failure::output(format!("a directory for a kernel's sockets: {error}")))
}

fn failure(error: GuestError) -> Failure {
    let kind = match &error {
        GuestError::Interrupted => Kind::Interrupted,
        GuestError::Invariant { .. } => Kind::Invariant,
        _ => Kind::Run,
    };
    Failure::new(kind, error)
}

/// Passes on what a program writes while it runs.
fn pass_on(directory: &Path, is_over: &AtomicBool) {
    let mut places = [0, 0];
    loop {
        // What is written between the last look and the end comes with one more look.
        let is_last = is_over.load(Ordering::SeqCst);
        for (place, file) in places.iter_mut().zip([OUTPUT, ERRORS]) {
            let mut bytes = Vec::new();
            let Ok(mut opened) = fs::File::open(directory.join(file)) else { continue };
            if opened.seek(SeekFrom::Start(*place)).is_ok() && opened.read_to_end(&mut bytes).is_ok() {
                *place += bytes.len() as u64;
                // A pipe that was closed has had what it wanted.
                let _ = match file {
                    OUTPUT => std::io::stdout().write_all(&bytes),
                    _ => std::io::stderr().write_all(&bytes),
                };
            }
        }
        if is_last {
            let _ = std::io::stdout().flush();
            return;
        }
        std::thread::sleep(OUTPUT_EVERY);
    }
}

/// The end of a program's errors, or of its output where it has none.
fn last_lines(errors: &Path, output: &Path) -> String {
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let text = Some(read(errors)).filter(|text| !text.trim().is_empty()).unwrap_or_else(|| read(output));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_the_tracer_lost_are_counted() {
        let header = |numbers: &str| {
            format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {numbers}   #P:1\n")
        };
        assert_eq!(lost_events(&header("230280/300000")), Some((230_280, 300_000)));
        assert_eq!(lost_events(&header("860/860")), None);
        assert_eq!(lost_events(""), None);
    }
}
