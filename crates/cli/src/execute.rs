//! Runs a plan: all runs over one trace or workload, as many at a time as there are cores, with the same results as one after the other.

use crate::failure::{Failure, Kind};
use crate::packed::Packed;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::record::{RecordAt, Recorder, path_of_run};
use crate::request_log::RequestLog;
use crate::source::{Scaled, Source};
use planewise_model::profile;
use planewise_model::{Ns, Profile, Request, SECTOR_BYTES};
use planewise_sim::drivers::closed_loop::{self, LoopOptions};
use planewise_sim::drivers::pace::Pace;
use planewise_sim::drivers::replay::{PowerCut, ReplayOptions, RequestSource, replay};
use planewise_sim::observers::Observer;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::timeline::Timeline;
use planewise_sim::results::{RunResult, Status};
use planewise_sim::{RunConfig, SimError};
use planewise_workload::Definition;
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Traces up to this many requests are decoded once and shared by all runs (48 bytes each); longer ones are streamed by each run.
const SHARED_REQUESTS_MAX: usize = 4_000_000;

/// What the runs of a plan serve.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// The same trace.
    Trace(&'a Source),
    /// Each a workload of its own: all of them variations of one.
    Workloads {
        /// What to call it.
        name: &'a str,
        /// By run.
        each: &'a [Definition],
        /// Requests of all of them, when that is known.
        requests: Option<u64>,
    },
}

impl Input<'_> {
    fn name(&self) -> &str {
        match self {
            Input::Trace(source) => &source.name,
            Input::Workloads { name, .. } => name,
        }
    }

    fn place_name(&self) -> String {
        match self {
            Input::Trace(source) => source.place_name(),
            Input::Workloads { name, .. } => format!("workload {name}"),
        }
    }
}

/// Where a timeline goes, how many operations at most, and from when to when.
pub type TimelineSink = (BufWriter<Packed>, u64, (Ns, Ns));

/// What a command wants besides results.
pub struct Extras<'a> {
    /// Requests that are not measured.
    pub warm_up: u64,
    /// Check invariants.
    pub check: bool,
    /// Cut the power of the (one) run.
    pub power_cut: Option<PowerCut>,
    /// Write the request log's parts to this directory.
    pub request_log: Option<&'a Path>,
    /// Write the block trace of each run: to a file of its own, seen where, replacing one that is there or not.
    pub record: Option<(&'a Path, RecordAt, bool)>,
    /// Write the timeline of the (one) run here: sink, most operations, and from when to when.
    pub timeline: Option<TimelineSink>,
    /// Where the timeline goes, for messages.
    pub timeline_path: Option<&'a Path>,
    /// Runs at a time; by cores and memory when not given.
    pub jobs: Option<NonZeroUsize>,
    /// Nothing on standard error.
    pub quiet: bool,
}

/// What came of a plan.
pub struct Outcome {
    /// Finished or cut-short runs in the order of the plan; runs that never began are missing.
    pub runs: Vec<RunResult>,
    /// What to tell the user about the trace.
    pub warnings: Vec<String>,
    /// Operations that the timeline holds.
    pub timeline_operations: Option<u64>,
}

/// Runs everything. After the first failure, runs behind the failed one are given up; the earliest failure is reported.
///
/// # Errors
/// A trace or a run that fails, a violated invariant, a log that cannot be written.
pub fn execute(
    plan: &Plan,
    input: Input<'_>,
    mut extras: Extras<'_>,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let runs = plan.configs.len();
    let (requests, total) = match input {
        Input::Trace(source) => {
            let requests = Requests::prepare(source, runs, stop)?;
            let total = requests.known.map(|known| known * runs as u64);
            (requests, total)
        }
        Input::Workloads { requests, .. } => (Requests::default(), requests),
    };
    let shared = Shared {
        input,
        names: &plan.names,
        varied: &plan.varied,
        requests: &requests,
        progress: Progress::new(total, extras.quiet),
        stop,
        first_failure: AtomicUsize::new(usize::MAX),
        done: AtomicUsize::new(0),
        runs,
        timeline: Mutex::new(extras.timeline.take()),
        timeline_operations: Mutex::new(None),
        extras: &extras,
    };
    let jobs = extras.jobs.map_or_else(|| jobs(&plan.configs), NonZeroUsize::get).min(runs);
    let results = in_order(jobs, runs, stop, |index| shared.run(index, &plan.configs[index]));
    let mut finished = Vec::with_capacity(runs);
    for result in results.into_iter().flatten() {
        finished.push(result?);
    }
    let timeline_operations =
        *shared.timeline_operations.lock().expect("no run panics while it holds the lock");
    Ok(Outcome { runs: finished, warnings: requests.warnings, timeline_operations })
}

/// Does numbered work on so many threads, taking it in order until told to stop: what was begun is a prefix of all, whatever
/// stops it, so that results, their labels and their logs are those of the first runs.
pub fn in_order<T: Send>(
    threads: usize,
    count: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::SeqCst);
            if index >= count {
                break;
            }
            let result = work(index);
            done.lock().expect("nobody panics while holding the lock").push((index, result));
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let mut done = done.into_inner().expect("nobody panics while holding the lock");
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The trace, decoded when it is short enough to be shared.
#[derive(Default)]
struct Requests {
    decoded: Option<Vec<Request>>,
    known: Option<u64>,
    warnings: Vec<String>,
}

impl Requests {
    fn prepare(source: &Source, runs: usize, stop: &AtomicBool) -> Result<Requests, Failure> {
        // Opened even when each run opens its own: a trace that cannot be read is known before anything else happens.
        let mut stream = source.open()?;
        let known = source.known_requests();
        let too_long = known.is_some_and(|known| known > SHARED_REQUESTS_MAX as u64);
        if runs == 1 || too_long || !source.is_one() {
            return Ok(Requests { decoded: None, known, warnings: Vec::new() });
        }
        let mut decoded = Vec::new();
        while decoded.len() <= SHARED_REQUESTS_MAX {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::interrupted("interrupted while the trace was read: nothing was run"));
            }
            if stream.read(&mut decoded, 1 << 14)? == 0 {
                let known = Some(decoded.len() as u64);
                return Ok(Requests { decoded: Some(decoded), known, warnings: stream.warnings() });
            }
        }
        Ok(Requests { decoded: None, known, warnings: Vec::new() })
    }

    /// The requests of a run, at the times at which they are due: other paces than the recorded one go by unscaled times.
    fn open(&self, source: &Source, config: &RunConfig) -> Result<Box<dyn RequestSource + '_>, Failure> {
        let is_scaled = config.pace == Pace::Recorded && config.scale_time != 1.0;
        Ok(match &self.decoded {
            Some(requests) if is_scaled => {
                Box::new(Scaled::new(requests.iter().copied(), config.scale_time)?)
            }
            Some(requests) => Box::new(requests.iter().copied()),
            None if is_scaled => Box::new(Scaled::new(source.open_for(config.seed)?, config.scale_time)?),
            None => Box::new(source.open_for(config.seed)?),
        })
    }
}

/// What all runs of a plan share.
struct Shared<'a> {
    input: Input<'a>,
    /// What to call each run in errors.
    names: &'a [String],
    /// Options of the workload that differ between runs, by run; none for a trace.
    varied: &'a [BTreeMap<String, String>],
    requests: &'a Requests,
    progress: Progress,
    stop: &'a AtomicBool,
    /// Lowest index of a run that failed: those behind it need not go on.
    first_failure: AtomicUsize,
    done: AtomicUsize,
    runs: usize,
    timeline: Mutex<Option<TimelineSink>>,
    timeline_operations: Mutex<Option<u64>>,
    extras: &'a Extras<'a>,
}

type Watchers = (Option<RequestLog>, (Option<Recorder>, Option<Timeline<BufWriter<Packed>>>));
type Observers = (Option<Invariants>, Watchers);

impl Shared<'_> {
    /// One run; nothing when it was not worth beginning.
    fn run(&self, index: usize, config: &RunConfig) -> Option<Result<RunResult, Failure>> {
        // What was taken before Ctrl-C is begun, and cut short: no run in front of another is missing.
        if self.first_failure.load(Ordering::Relaxed) < index {
            return None;
        }
        let mut result = self.simulate(index, config);
        if let (Ok(run), Some(varied)) = (&mut result, self.varied.get(index)) {
            run.labels.workload.clone_from(varied);
        }
        if result.is_err() {
            self.first_failure.fetch_min(index, Ordering::SeqCst);
        }
        let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        if self.runs > 1 {
            self.progress.say(format!("({done} of {} runs done)", self.runs));
        }
        Some(result)
    }

    fn given_up(&self, index: usize) -> bool {
        self.stop.load(Ordering::Relaxed) || self.first_failure.load(Ordering::Relaxed) < index
    }

    fn simulate(&self, index: usize, config: &RunConfig) -> Result<RunResult, Failure> {
        let timeline = self.timeline.lock().expect("no run panics while it holds the lock").take();
        // Without observers the engine's hooks compile to nothing.
        let extras = self.extras;
        if !extras.check && extras.request_log.is_none() && extras.record.is_none() && timeline.is_none() {
            let (mut result, ()) = self.drive(index, config, ())?;
            self.check_power_cut(index, &mut result)?;
            return Ok(result);
        }
        let log =
            self.extras.request_log.map(|directory| RequestLog::create(directory, index)).transpose()?;
        let recorder = self.extras.record.map(|(path, at, replace)| {
            Recorder::create(&path_of_run(path, &self.names[index], self.runs), at, replace)
        });
        let recorder = recorder.transpose()?;
        let observers: Observers = (
            self.extras.check.then(|| Invariants::of(config.overlap)),
            (
                log,
                (
                    recorder,
                    timeline.map(|(sink, limit, (from, to))| Timeline::new(sink, limit).within(from, to)),
                ),
            ),
        );
        let (mut result, (invariants, (log, (recorder, timeline)))) = self.drive(index, config, observers)?;
        self.check_power_cut(index, &mut result)?;
        let is_whole = result.status == Status::Complete;
        // A run that was stopped may have requests under way, which never complete.
        if let Some(invariants) = invariants
            .filter(|_| is_whole || result.metrics.requests.completed == result.metrics.requests.submitted)
        {
            result.invariants = invariants.report().map_err(|violation| {
                Failure::new(
                    Kind::Invariant,
                    format!("{}: invariant violated: {violation}", self.names[index]),
                )
            })?;
        }
        if let Some(log) = log {
            log.finish()?;
        }
        // Half a trace under the name of a whole one would be taken for it: unfinished, it leaves nothing.
        if let Some(recorder) = recorder.filter(|_| is_whole) {
            recorder.finish()?;
        }
        if let Some(timeline) = timeline {
            let refused = |error: std::io::Error| {
                let path = self.extras.timeline_path.unwrap_or(Path::new("timeline"));
                Failure::output(format!("{}: cannot write: {error}", path.display()))
            };
            let (sink, operations) = timeline.finish().map_err(refused)?;
            sink.into_inner().map_err(|error| refused(error.into_error()))?.finish().map_err(refused)?;
            *self.timeline_operations.lock().expect("no run panics while it holds the lock") =
                Some(operations);
        }
        Ok(result)
    }

    /// Lets the run's driver serve what it serves.
    fn drive<O: Observer>(
        &self,
        index: usize,
        config: &RunConfig,
        observer: O,
    ) -> Result<(RunResult, O), Failure> {
        let stop = AtomicBool::new(false);
        let mut before = 0;
        let mut progress = |submitted: u64| {
            self.progress.add(submitted - before);
            before = submitted;
            if self.given_up(index) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let (stop, progress, name) = (&stop, &mut progress, self.input.name());
        let done = match self.input {
            Input::Trace(source) => {
                let mut requests = self.requests.open(source, config)?;
                let Extras { warm_up, power_cut, .. } = *self.extras;
                let mut options = ReplayOptions { warm_up, stop, progress, trace: name, power_cut };
                replay(config, &mut *requests, observer, &mut options)
            }
            Input::Workloads { each, .. } => {
                let mut workload = each[index].build(config.profile.user_capacity().0, config.seed)?;
                let mut options = LoopOptions { stop, progress, name };
                closed_loop::run(config, &mut *workload, observer, &mut options)
            }
        };
        done.map_err(|error| self.explain(&self.names[index], error))
    }

    /// Whatever was acknowledged must be there after a power cut.
    fn check_power_cut(&self, index: usize, result: &mut RunResult) -> Result<(), Failure> {
        let Some(cut) = result.metrics.gc.power_loss else { return Ok(()) };
        if cut.lost_pages > 0 {
            return Err(Failure::new(
                Kind::Invariant,
                format!(
                    "{}: invariant violated: the power cut at {} ns lost {} acknowledged pages",
                    self.names[index], cut.at_ns, cut.lost_pages
                ),
            ));
        }
        let what = "no acknowledged page is lost".to_owned();
        result.invariants.insert(what, cut.recovered_pages);
        Ok(())
    }

    /// Errors of a run say which trace and which run; those of the trace itself name it already.
    fn explain(&self, name: &str, error: SimError) -> Failure {
        let message = match &error {
            SimError::Source(message) => message.clone(),
            SimError::PastEnd { end, .. } => {
                format!("{}: {error}{}", self.input.place_name(), larger_device(*end))
            }
            SimError::Empty { .. } | SimError::OutOfOrder { .. } => {
                format!("{}: {error}", self.input.place_name())
            }
            SimError::SpaceExhausted { .. } | SimError::Stalled { .. } => {
                format!("{}: {name}: {error}", self.input.place_name())
            }
            _ => error.to_string(),
        };
        Failure::new(Failure::from(error).kind, message)
    }
}

/// The smallest profile of ours that has so many sectors, as the end of a message about a device that has fewer.
fn larger_device(sectors: u64) -> String {
    let profiles =
        profile::EMBEDDED.iter().filter_map(|(name, _)| Some((*name, Profile::embedded(name).ok()?)));
    let fits = profiles
        .map(|(name, profile)| (profile.user_capacity().0 / SECTOR_BYTES, name))
        .filter(|(capacity, _)| *capacity >= sectors)
        .min();
    fits.map_or_else(String::new, |(_, name)| format!(", such as --device {name}"))
}

/// One run per core, but no more at a time than half of the available memory holds.
fn jobs(configs: &[RunConfig]) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let state = |config: &RunConfig| {
        u64::from(config.profile.mapped().profile.geometry.pages()) * STATE_BYTES_PER_PAGE
    };
    let largest = configs.iter().map(state).max();
    match (largest, available_memory()) {
        (Some(largest), Some(available)) if largest > 0 => {
            cores.min((available / 2 / largest).max(1) as usize)
        }
        _ => cores,
    }
}

/// Upper bound of a device's state.
const STATE_BYTES_PER_PAGE: u64 = 10;

/// Bytes of memory that can be had without swapping, where the system says so.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Whether all runs of a plan are there and reached the end of the trace.
pub fn status(runs: &[RunResult], planned: usize) -> Status {
    let complete = runs.len() == planned && runs.iter().all(|run| run.status == Status::Complete);
    if complete { Status::Complete } else { Status::Interrupted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_begun_in_order_and_a_stop_leaves_no_gap() {
        for threads in [1, 2, 5] {
            let stop = AtomicBool::new(false);
            let all = in_order(threads, 100, &stop, |index| index);
            assert_eq!(all, (0..100).collect::<Vec<_>>());
            let done = in_order(threads, 1000, &stop, |index| {
                if index == 20 {
                    stop.store(true, Ordering::SeqCst);
                }
                index
            });
            assert!(done.len() > 20 && done.len() < 1000, "{threads} threads: {}", done.len());
            assert_eq!(done, (0..done.len()).collect::<Vec<_>>());
        }
    }
}
