//! `planewise replay`: a trace on a target, at the recorded times or at another pace.

use super::bench_real::{described, look_at};
use super::measured::{Claimed, Of, failed, one_by_one};
use crate::arguments::{ReplayArguments, Sends};
use crate::axes::AXES;
use crate::failure::{Failure, Kind};
use crate::host::{self, Hosts, OF_THE_HOST};
use crate::plan;
use crate::progress::Progress;
use crate::record::{Recorder, path_of_run};
use crate::request_log::{self, RequestLog};
use crate::source::{Scaled, Source};
use crate::target::{self, Wanted};
use planewise_io::drivers::ahead::Ahead;
use planewise_io::drivers::fit::{Fit, FitOptions, Fitted, FittedSource};
use planewise_io::drivers::replay::{self, Pace, ReplayOptions};
use planewise_io::drivers::{HostOptions, Outcome, Units};
use planewise_io::plan::WritePlan;
use planewise_io::{Target, TargetInfo};
use planewise_model::{Bytes, Ns, Operation, Request, SECTOR_BYTES};
use planewise_sim::drivers::replay::RequestSource;
use planewise_sim::host::HostStack;
use planewise_sim::host_sched;
use planewise_sim::results::{RunResult, Setup, Status};
use planewise_sim::{Condition, RunConfig, UnitLevel};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Traces up to this many requests are decoded before anything is issued (48 bytes each); longer ones by a thread, ahead.
const DECODED_REQUESTS_MAX: usize = 4_000_000;

/// Operations that a target takes at a time when nobody says: what SATA drives do. A target that takes all that waits leaves a
/// scheduler nothing to decide.
const DEPTH_DEFAULT: u32 = 32;

/// Runs the command.
///
/// # Errors
/// A trace, an option or a target that is wrong; a run that fails, Ctrl-C: with what was measured until then in the directory.
pub fn execute(arguments: &ReplayArguments, stop: &AtomicBool) -> Result<(), Failure> {
    let common = &arguments.common;
    let simulated = target::simulated(&arguments.place.target)?;
    let (plan, condition) = hosts(arguments, simulated.is_some())?;
    let mut seeds: Vec<u64> = Vec::new();
    for (host, _) in &plan.hosts {
        if !seeds.contains(&host.seed) {
            seeds.push(host.seed);
        }
    }
    let mut source = Source::find(&arguments.trace, &arguments.read, arguments.part.requests, &seeds)?;
    source.keep()?;
    check_paces(&source, &plan.paces, arguments)?;
    // Requests that are made, not read, differ from seed to seed.
    let apart = if source.is_one() { &seeds[..1] } else { &seeds[..] };
    let traces: Vec<Decoded> =
        apart.iter().map(|&seed| Decoded::new(&source, seed, stop)).collect::<Result<_, Failure>>()?;
    let trace = traces.iter().min_by_key(|trace| trace.requests).expect("one seed at least");
    if arguments.part.warmup > 0 && arguments.part.warmup >= trace.requests {
        return Err(Failure::usage(format!(
            "--warmup: found {}; allowed: fewer than the {} requests of {}",
            arguments.part.warmup,
            trace.requests,
            source.place_name()
        )));
    }
    let default = if simulated.is_some() { Sends::Send } else { Sends::Skip };
    let discards = arguments.discards.unwrap_or(default);
    let sends_discards = discards == Sends::Send && !arguments.reads_only;
    let trims = sends_discards && traces.iter().any(|trace| trace.discards > 0);
    let changing = |trace: &Decoded| trace.writes + if trims { trace.discards } else { 0 };
    let writing = traces.iter().find(|trace| changing(trace) > 0);
    let writes = writing.is_some() && !arguments.reads_only;
    if writes && simulated.is_none() && arguments.drive.destroy_data.is_none() {
        return Err(Failure::usage(format!(
            "{}: {} of its {} requests write{}; allowed: --destroy-data with the name of the target, whose data are lost then, or \
             --reads-only to leave writes out",
            source.place_name(),
            writing.map_or(0, changing),
            writing.map_or(0, |trace| trace.requests),
            if trims { " or discard" } else { "" }
        )));
    }
    let replay = Replay {
        arguments,
        source: &source,
        traces: &traces,
        writes,
        trims,
        discards,
        condition,
        plan: &plan,
    };
    let device_profile = match &simulated {
        Some(simulated) => simulated.described(&arguments.place.target),
        None => described(&look_at(&arguments.place.target)?),
    };
    let setup = Setup {
        trace: source.setup(trace.format)?,
        device_profile,
        condition: plan.hosts[0].0.condition.clone(),
        options: replay.options(),
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    };
    // Whatever speaks against trace and target is said before a directory is made for the results, and before anything is written.
    let fitted = {
        let target = replay.open(0)?;
        // A host that cannot be is refused before the runs ahead of it have written.
        for (host, _) in &plan.hosts {
            let stack = host.stack(target.info()).and_then(|config| HostStack::new(&config));
            stack.map_err(|error| failed(error.into(), Of::Replay))?;
        }
        let fitted = replay.check(target.info())?;
        replay.announce(target.info(), &fitted);
        fitted
    };
    let claimed = Claimed::new("replay", setup, &common.output)?;
    let mut notes = trace.warnings.clone();
    notes.extend(replay.notes(&fitted));
    notes.extend(simulated.as_ref().and_then(|simulated| simulated.note(&arguments.place.target)));
    let total = fitted.requests_of_runs;
    let progress = Progress::new(Some(total), common.output.quiet);
    let (done, failure) =
        one_by_one(plan.hosts.len(), stop, |index| replay.run(index, claimed.path(), &progress, stop))?;
    progress.end();
    if common.request_log {
        request_log::join(claimed.path(), done.len())?;
    }
    notes.extend(unfaithful(&done, &plan.names));
    claimed.finish(done, plan.hosts.len(), failure, &notes, planewise_report::replay)
}

/// The host stacks, with what they are told of the device; and what a simulated one has been through.
fn hosts(arguments: &ReplayArguments, is_simulated: bool) -> Result<(Hosts, Condition), Failure> {
    let common = &arguments.common;
    if common.jobs.is_some_and(|jobs| jobs.get() > 1) {
        return Err(Failure::usage(
            "--jobs: found more than 1; allowed: 1, since runs on one target disturb each other",
        ));
    }
    let mut given = arguments.axes.0.clone();
    if is_simulated {
        check_outside(&given, common.check)?;
    }
    let mut take = |name: &str| -> Result<Option<String>, Failure> {
        let place = AXES.iter().position(|axis| axis.name == name).expect("an axis");
        match std::mem::take(&mut given[place]).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value.clone())),
            several => Err(Failure::usage(format!(
                "--{}: found {} values; allowed: one",
                AXES[place].option(true),
                several.len()
            ))),
        }
    };
    // A simulated device has a past, and a profile tells chips from planes.
    let condition = if is_simulated { take("condition")? } else { None };
    let condition = condition.map_or(Ok(Condition::Filled), |text| text.parse())?;
    let level = if arguments.device.is_some() { take("level")? } else { None };
    let level = level.map_or(Ok(UnitLevel::Chip), |text| text.parse())?;
    let is_given =
        |name: &str| AXES.iter().zip(&given).any(|(axis, given)| axis.name == name && !given.is_empty());
    let (depth_given, queue_given) = (is_given("command-queue"), is_given("queue"));
    let in_flight = in_flight(&given);
    let mut plan = host::hosts(&given, common, in_flight)?;
    let known = arguments.device.as_deref().map(plan::profile).transpose()?;
    for (host, depth) in &mut plan.hosts {
        if !depth_given {
            *depth = in_flight.map_or(DEPTH_DEFAULT, |requests| requests.min(4096) as u32);
        }
        if is_simulated {
            host.condition = condition.to_string();
        }
        host.page_bytes = arguments.page_bytes;
        if let Some(profile) = &known {
            let told_units = host.known_units();
            let config = RunConfig { level, told_units, ..RunConfig::new(profile.clone()) };
            host.units = Units::Profile(Box::new(config.host_knowledge()?));
            host.level = level.to_string();
        }
    }
    if !depth_given {
        plan.options.insert("command-queue".to_owned(), format!("ncq:{}", plan.hosts[0].1));
    }
    if let Some(in_flight) = in_flight
        && let Some((host, _)) = plan.hosts.iter().find(|(host, _)| u64::from(host.queue_length) < in_flight)
    {
        let short = if queue_given { host.queue_length } else { 4096 };
        return Err(Failure::usage(format!(
            "--pace: found closed:{in_flight} with a queue of {short}; allowed: up to the length of the queue, which is at most 4096"
        )));
    }
    if is_simulated {
        plan.options.insert("condition".to_owned(), condition.to_string());
    }
    Ok((plan, condition))
}

/// Requests under way at a time, when that is what all runs go by; the most of them.
fn in_flight(given: &[Vec<String>]) -> Option<u64> {
    let place = AXES.iter().position(|axis| axis.name == "pace").expect("an axis");
    let closed = given[place].iter().map(|text| match text.parse() {
        Ok(Pace::Closed(requests)) => Some(u64::from(requests)),
        // What is no pace at all is refused where all axes are read.
        _ => None,
    });
    closed.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Whether the trace has what the paces go by.
fn check_paces(source: &Source, paces: &[Pace], arguments: &ReplayArguments) -> Result<(), Failure> {
    if arguments.part.scale_time.is_some() && !paces.iter().any(|pace| pace.goes_by_times()) {
        return Err(plan::no_times_to_scale(paces[0]));
    }
    if paces.contains(&Pace::Dependent) { source.check_completions() } else { Ok(()) }
}

/// Of a simulated target, too, only the profile decides what is inside.
fn check_outside(given: &[Vec<String>], check: bool) -> Result<(), Failure> {
    let taken = ["condition", "level"];
    for (axis, values) in AXES.iter().zip(given) {
        let is_inside = !OF_THE_HOST.contains(&axis.name) && !taken.contains(&axis.name);
        if let Some(value) = values.first().filter(|_| is_inside) {
            return Err(Failure::usage(format!(
                "--{}: found '{value}'; allowed: a profile that says so, as sim:FILE, or `planewise run`; replay sees the target from outside",
                axis.option(true)
            )));
        }
    }
    if check {
        return Err(Failure::usage(
            "--check: found; allowed: with `planewise run`; replay sees the target from outside",
        ));
    }
    Ok(())
}

/// A trace as it was read before anything is replayed.
struct Decoded {
    /// What it was made with, if it is not read.
    seed: u64,
    /// Its requests, when they are few enough to keep.
    kept: Option<Vec<Request>>,
    requests: u64,
    writes: u64,
    discards: u64,
    /// When the last request is due.
    last: Ns,
    format: &'static str,
    warnings: Vec<String>,
}

impl Decoded {
    /// Reads all of it once: what is wrong with it is known before its first request goes out.
    fn new(source: &Source, seed: u64, stop: &AtomicBool) -> Result<Decoded, Failure> {
        let mut stream = source.open_for(seed)?;
        let mut decoded = Decoded {
            seed,
            kept: Some(Vec::new()),
            requests: 0,
            writes: 0,
            discards: 0,
            last: Ns::ZERO,
            format: stream.format(),
            warnings: Vec::new(),
        };
        let mut batch = Vec::new();
        while stream.read(&mut batch, 1 << 14)? > 0 {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::interrupted(
                    "interrupted while the trace was read: nothing was replayed",
                ));
            }
            decoded.requests += batch.len() as u64;
            decoded.writes += batch.iter().filter(|request| request.moves_to_device()).count() as u64;
            let discards = |request: &&Request| request.operation == Operation::Discard;
            decoded.discards += batch.iter().filter(discards).count() as u64;
            decoded.last = batch.last().map_or(decoded.last, |request| request.arrival);
            let room = decoded.requests <= DECODED_REQUESTS_MAX as u64 && source.is_one();
            match &mut decoded.kept {
                Some(kept) if room => kept.append(&mut batch),
                kept => *kept = None,
            }
            batch.clear();
        }
        if decoded.requests == 0 {
            return Err(Failure::new(
                Kind::Run,
                format!("{}: no request in it; allowed: one or more", source.place_name()),
            ));
        }
        decoded.warnings = stream.warnings();
        Ok(decoded)
    }
}

/// What all runs share.
struct Replay<'a> {
    arguments: &'a ReplayArguments,
    source: &'a Source,
    /// One for each seed, where the requests differ with it; otherwise one.
    traces: &'a [Decoded],
    writes: bool,
    /// Whether discards are sent, and there are some.
    trims: bool,
    /// What becomes of discards, unless all that changes the target is left out.
    discards: Sends,
    condition: Condition,
    plan: &'a Hosts,
}

/// What all runs together do, as far as it is known before the first.
#[derive(Default)]
struct Checked {
    /// What is done to the requests of each trace, once.
    once: Fitted,
    /// Requests of each trace, once, before that.
    requests: u64,
    /// Requests of all runs.
    requests_of_runs: u64,
    /// Bytes that all runs write.
    volume: u64,
    /// When the last request of each run is due, together.
    time: Ns,
}

impl Checked {
    /// Adds a trace that so many runs replay.
    fn add(&mut self, trace: &Decoded, fitted: &Fitted, runs: u64) {
        let once = &mut self.once;
        once.requests += fitted.requests;
        once.writes += fitted.writes;
        once.bytes_written += fitted.bytes_written;
        once.writes_left_out += fitted.writes_left_out;
        once.discards += fitted.discards;
        once.flushes_left_out += fitted.flushes_left_out;
        once.unforced += fitted.unforced;
        once.narrowed += fitted.narrowed;
        once.discards_left_out += fitted.discards_left_out;
        once.widened += fitted.widened;
        once.folded += fitted.folded;
        once.cut_at_end += fitted.cut_at_end;
        once.written = match (once.written, fitted.written) {
            (Some((start, end)), Some((first, last))) => Some((start.min(first), end.max(last))),
            (written, other) => written.or(other),
        };
        self.requests += trace.requests;
        self.requests_of_runs += fitted.requests * runs;
        self.volume = self.volume.saturating_add(fitted.bytes_written.saturating_mul(runs));
        self.time = Ns(self.time.0.saturating_add(trace.last.0.saturating_mul(runs)));
    }
}

impl Replay<'_> {
    /// The requests, when they are the same for all runs and few enough to keep.
    fn kept(&self) -> Option<&Vec<Request>> {
        self.traces[0].kept.as_ref()
    }

    /// What recorded times are multiplied by.
    fn scale(&self) -> f64 {
        self.arguments.part.scale_time.unwrap_or(1.0)
    }

    /// The target of a run: a simulated one begins anew with each.
    fn open(&self, index: usize) -> Result<Box<dyn Target>, Failure> {
        let (host, depth) = &self.plan.hosts[index];
        let wanted = Wanted {
            writes: self.writes,
            discards: self.trims,
            depth: *depth,
            longest: target::LONGEST,
            condition: self.condition,
            seed: host.seed,
        };
        target::open(&self.arguments.place.target, &self.arguments.drive, wanted, true)
    }

    fn fit(&self, target: &TargetInfo) -> Fit {
        let &ReplayArguments { wrap, align, reads_only, .. } = self.arguments;
        let (flushes, discards) = (self.arguments.flushes == Sends::Send, self.discards == Sends::Send);
        Fit::new(target, FitOptions { wrap, align, reads_only, flushes, discards })
    }

    /// Whether all that any run will do fits the target, and what is done to it for that.
    fn check(&self, target: &TargetInfo) -> Result<Checked, Failure> {
        let mut checked = Checked::default();
        for trace in self.traces {
            let fitted = self.check_trace(target, trace)?;
            let is_of_trace = |seed: u64| self.source.is_one() || seed == trace.seed;
            let runs = self.plan.hosts.iter().filter(|(host, _)| is_of_trace(host.seed)).count();
            checked.add(trace, &fitted, runs as u64);
        }
        Ok(checked)
    }

    fn check_trace(&self, target: &TargetInfo, trace: &Decoded) -> Result<Fitted, Failure> {
        let misfit = |error| failed(error, Of::Replay).about(&self.source.place_name());
        let mut fit = self.fit(target);
        let mut batch = Vec::new();
        if let Some(kept) = &trace.kept {
            for requests in kept.chunks(1 << 14) {
                batch.clear();
                batch.extend_from_slice(requests);
                fit.apply(&mut batch, 0).map_err(misfit)?;
            }
        } else {
            let mut stream = self.source.open_for(trace.seed)?;
            while stream.read(&mut batch, 1 << 14)? > 0 {
                fit.apply(&mut batch, 0).map_err(misfit)?;
                batch.clear();
            }
        }
        if fit.done().requests == 0 {
            let why = if self.arguments.reads_only {
                "all its requests write; allowed with --reads-only: a trace with reads"
            } else {
                "nothing is left of it; allowed: a trace with reads or writes, or --flushes and --discards send"
            };
            return Err(Failure::usage(format!("{}: {why}", self.source.place_name())));
        }
        Ok(fit.done())
    }

    /// Says what is written before anything is.
    fn announce(&self, target: &TargetInfo, checked: &Checked) {
        let Some((start, end)) = checked.once.written else { return };
        // Only recorded times say how long it takes.
        let is_recorded = self.plan.paces.iter().all(|pace| *pace == Pace::Recorded);
        let time = is_recorded.then(|| Duration::from_nanos((checked.time.0 as f64 * self.scale()) as u64));
        let plan = WritePlan {
            target,
            what: match (checked.once.discards > 0, self.plan.hosts.len() == 1) {
                (false, true) => "the writes of a trace",
                (false, false) => "the writes of a trace, once for each run",
                (true, true) => "the writes and the discards of a trace",
                (true, false) => "the writes and the discards of a trace, once for each run",
            },
            start: Bytes(start * SECTOR_BYTES),
            area: Bytes((end - start) * SECTOR_BYTES),
            volume: Some(Bytes(checked.volume)),
            time,
        };
        target::announce(&plan);
    }

    /// What the user should know of the requests that are replayed, and of what the host believes.
    fn notes(&self, checked: &Checked) -> Vec<String> {
        let fitted = &checked.once;
        let mut notes = Vec::new();
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                notes.push(format!("{count} of {} requests {what}", checked.requests));
            }
        };
        say(fitted.writes_left_out, "were left out because they write (--reads-only)");
        let why = |option| if self.arguments.reads_only { "--reads-only" } else { option };
        let flushes = format!("were left out because they are flushes ({})", why("--flushes skip"));
        say(fitted.flushes_left_out, &flushes);
        say(
            fitted.unforced,
            "are writes that go without the flush or forced unit access they had (--flushes skip)",
        );
        let discards = format!("were left out because they are discards ({})", why("--discards skip"));
        let discards = if self.discards == Sends::Send && !self.arguments.reads_only {
            "were left out because they are discards of no whole block (--align)"
        } else {
            &discards
        };
        say(fitted.discards_left_out, discards);
        say(fitted.narrowed, "were narrowed to whole blocks (--align), as discards");
        say(
            fitted.folded,
            "were folded onto the target (--wrap): they meet others than they did where they were recorded",
        );
        say(fitted.cut_at_end, "were cut off at the end of the target (--wrap)");
        say(fitted.widened, "were widened to whole blocks (--align)");
        let host = &self.plan.hosts[0].0;
        let uses_units =
            self.plan.hosts.iter().any(|(host, _)| {
                host_sched::find(&host.scheduler).is_ok_and(|scheduler| scheduler.uses_units)
            });
        if uses_units && self.arguments.device.is_none() && self.arguments.page_bytes.is_none() {
            notes.push(format!(
                "pages are taken to be {} bytes, and page p to be on unit p modulo the units; --page-bytes or --device PROFILE says otherwise",
                host.page_bytes()
            ));
        }
        notes
    }

    /// Every option that decides about results, by its name on the command line.
    fn options(&self) -> BTreeMap<String, String> {
        let arguments = self.arguments;
        let read = &arguments.read;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let own = [
            ("trace", arguments.trace.clone()),
            ("target", arguments.place.target.clone()),
            ("format", text(&read.format)),
            ("time-unit", read.time_unit.map(crate::source::unit_name).unwrap_or_default().to_owned()),
            ("event", text(&read.event)),
            ("volume", text(&read.volume)),
            ("sort-window", number(read.sort_window.map(|window| window as u64))),
            ("trace-dir", read.trace_dir.as_ref().map(|path| path.display().to_string()).unwrap_or_default()),
            ("requests", number(arguments.part.requests)),
            ("warmup", arguments.part.warmup.to_string()),
            ("scale-time", arguments.part.scale_time.map(|factor| factor.to_string()).unwrap_or_default()),
            ("wrap", arguments.wrap.to_string()),
            ("align", arguments.align.to_string()),
            ("reads-only", arguments.reads_only.to_string()),
            ("flushes", arguments.flushes.name().to_owned()),
            ("discards", self.discards.name().to_owned()),
            ("lateness-bound", format!("{}ns", arguments.lateness_bound.0)),
            ("device", text(&arguments.device)),
            ("page-bytes", number(arguments.page_bytes.map(u64::from))),
            ("destroy-data", text(&arguments.drive.destroy_data)),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.plan.options.clone().into_iter().chain(own).collect()
    }

    /// One run, and what ended it early.
    fn run(
        &self,
        index: usize,
        directory: &Path,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<(RunResult, Option<Failure>), Failure> {
        let seed = self.plan.hosts[index].0.seed;
        // Other paces than the recorded one go by unscaled times.
        let scale = if self.plan.paces[index] == Pace::Recorded { self.scale() } else { 1.0 };
        if let Some(kept) = self.kept() {
            let mut target = self.open(index)?;
            let source = &mut Scaled::new(kept.iter().copied(), scale)?;
            return self.replay(index, directory, &mut *target, source, progress, stop);
        }
        std::thread::scope(|scope| {
            // Before the target is opened, which keeps this thread, and those that it starts, on one processor.
            let ahead =
                Ahead::start(scope, || self.source.open_for(seed).map_err(|failure| failure.to_string()));
            let mut target = self.open(index)?;
            let source = &mut Scaled::new(ahead, scale)?;
            self.replay(index, directory, &mut *target, source, progress, stop)
        })
    }

    fn replay(
        &self,
        index: usize,
        directory: &Path,
        target: &mut dyn Target,
        source: &mut dyn RequestSource,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<(RunResult, Option<Failure>), Failure> {
        let common = &self.arguments.common;
        let (host, name) = (&self.plan.hosts[index].0, &self.plan.names[index]);
        let host: &HostOptions = host;
        let log = common.request_log.then(|| RequestLog::create(directory, index)).transpose()?;
        let recorder = common.record.as_ref().map(|path| {
            let path = path_of_run(path, name, self.plan.hosts.len());
            Recorder::create(&path, common.record_at, common.output.force)
        });
        let mut before = 0;
        let mut count = |submitted: u64| {
            progress.add(submitted - before);
            before = submitted;
        };
        let mut options = ReplayOptions {
            pace: self.plan.paces[index],
            scale_time: self.scale(),
            warm_up: self.arguments.part.warmup,
            lateness_bound: self.arguments.lateness_bound,
            stop,
            progress: &mut count,
            name: &self.source.name,
        };
        let mut source = FittedSource::new(source, self.fit(target.info()));
        let observer = (log, recorder.transpose()?);
        let outcome = replay::run(target, host, &mut source, observer, &mut options);
        let Outcome { mut result, observer: (log, recorder), failure } =
            outcome.map_err(|error| failed(error, Of::Replay))?;
        let fitted = source.done();
        if let Some(replay) = &mut result.replay {
            replay.writes_left_out = fitted.writes_left_out;
            replay.flushes_left_out = fitted.flushes_left_out;
            replay.writes_unforced = fitted.unforced;
            replay.narrowed = fitted.narrowed;
            replay.discards_left_out = fitted.discards_left_out;
            replay.widened = fitted.widened;
            replay.folded = fitted.folded;
            replay.cut_at_end = fitted.cut_at_end;
        }
        if let Some(log) = log {
            log.finish()?;
        }
        // Half a trace under the name of a whole one would be taken for it: unfinished, it leaves nothing.
        if let Some(recorder) = recorder.filter(|_| result.status == Status::Complete) {
            recorder.finish()?;
        }
        Ok((result, failure.map(|error| failed(error, Of::Replay))))
    }
}

/// Which runs were late too often to be what was recorded, and why.
fn unfaithful(runs: &[RunResult], names: &[String]) -> Vec<String> {
    let late = runs.iter().zip(names).filter_map(|(run, name)| {
        let replay = run.replay.as_ref().filter(|replay| replay.faithful == Some(false))?;
        let why = if replay.late_for_room * 100 > run.metrics.requests.submitted {
            "the target is slower than the trace, and the host's queue was full"
        } else {
            "the host did not keep up"
        };
        Some(format!(
            "{name}: not faithful, p99 of lateness {} is above {}: {why}",
            Ns(replay.lateness_ns.p99),
            Ns(replay.lateness_bound_ns)
        ))
    });
    late.collect()
}
