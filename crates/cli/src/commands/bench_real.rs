//! `planewise bench` on what is seen from outside: the same workloads on a block device or a file, in the time of a clock, or on an array
//! of simulated devices, in that of the model.

use super::bench::{self, Found, Variation};
use super::measured::{Claimed, Of, failed, one_by_one};
use crate::arguments::BenchArguments;
use crate::failure::Failure;
use crate::host::{self, Hosts};
use crate::progress::Progress;
use crate::record::{Recorder, path_of_run};
use crate::request_log::{self, RequestLog};
use crate::target::{self, Simulated, Wanted};
use planewise_io::drivers::closed_loop::{self, LoopOptions};
use planewise_io::drivers::{HostOptions, Outcome};
use planewise_io::plan::WritePlan;
use planewise_io::target::real::found::{Found as Drive, find};
use planewise_io::target::real::guard;
use planewise_io::{Target, TargetError};
use planewise_model::Bytes;
use planewise_sim::Condition;
use planewise_sim::host::{HostStack, Merging};
use planewise_sim::results::{RunResult, Setup, Status, TraceSetup};
use planewise_workload::{Definition, Needs};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A target that is looked at before it is opened.
///
/// # Errors
/// There is none, or it cannot be measured.
pub fn look_at(name: &str) -> Result<Drive, Failure> {
    let unusable = |problem| TargetError::Unusable { target: name.to_owned(), problem };
    let drive = find(name).map_err(unusable)?;
    guard::check_reading(&drive).map_err(unusable)?;
    Ok(drive)
}

/// What results say of a real target in the place of a profile: a comment that is TOML.
pub fn described(drive: &Drive) -> String {
    format!("# {}: {}\n", drive.canonical, drive.description())
}

/// Runs the command.
///
/// # Errors
/// A workload, an option or a target that is wrong; a run that fails, Ctrl-C: with what was measured until then in the directory.
pub fn execute(
    arguments: &BenchArguments,
    name: &str,
    simulated: Option<Simulated>,
    workload: Found,
    variations: impl Fn(u64) -> Result<Vec<Variation>, Failure>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let common = &arguments.common;
    let (capacity, device_profile) = match &simulated {
        Some(array) => (array.capacity(name)?.0, array.described(name)),
        None => {
            let drive = look_at(name)?;
            (drive.capacity.0, described(&drive))
        }
    };
    let variations = variations(capacity)?;
    let needs =
        variations.iter().map(|(_, definition)| definition.needs(capacity)).collect::<Result<Vec<_>, _>>()?;
    let in_flight = needs.iter().map(|needs| needs.in_flight).try_fold(0, |most, one| Some(one?.max(most)));
    let mut given = arguments.axes.0.clone();
    let condition = simulated.is_some().then(|| host::condition(&mut given)).transpose()?;
    let Hosts { mut hosts, names, mut options, .. } = host::hosts(&given, common, in_flight)?;
    let condition_text = condition.map_or("as found".to_owned(), |condition| condition.to_string());
    for (host, _) in &mut hosts {
        host.condition.clone_from(&condition_text);
    }
    if condition.is_some() {
        options.insert("condition".to_owned(), condition_text.clone());
    }
    if common.jobs.is_some_and(|jobs| jobs.get() > 1) {
        return Err(Failure::usage(
            "--jobs: found more than 1; allowed: 1, since runs on one target disturb each other",
        ));
    }
    let text = workload.definition.to_toml();
    options.remove("pace");
    options.extend(bench::options(arguments, name));
    let setup = Setup {
        trace: TraceSetup {
            name: workload.name.clone(),
            source: workload.source,
            format: "workload".to_owned(),
            hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
        },
        device_profile,
        condition: condition_text,
        options,
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    };
    let runs: Vec<Planned<'_>> = variations
        .iter()
        .flat_map(|(varied, definition)| {
            hosts.iter().zip(&names).map(move |((host, depth), name)| Planned {
                host,
                depth: *depth,
                name: bench::run_name(name, varied),
                varied,
                definition,
            })
        })
        .collect();
    // What is merged is larger than what is issued.
    let merges = hosts.iter().any(|(host, _)| host.merging != Merging::None);
    let largest = needs.iter().map(|needs| needs.largest).try_fold(0, |most, one| Some(one?.max(most)));
    let largest = largest.filter(|_| !merges);
    let bench = Bench {
        arguments,
        target: name,
        writes: needs.iter().any(|needs| needs.writes_to.is_some()),
        trims: needs.iter().any(|needs| needs.trims),
        count: runs.len(),
        largest,
        condition: condition.unwrap_or(Condition::Filled),
        quiet: Cell::new(common.output.quiet),
    };
    // Whatever speaks against the target is said before a directory is made for its results.
    let info = bench.open(&hosts[0].0, hosts[0].1)?.info().clone();
    // A host that cannot be, too, before the runs ahead of it have written.
    for (host, _) in &hosts {
        let stack = host.stack(&info).and_then(|config| HostStack::new(&config));
        stack.map_err(|error| failed(error.into(), Of::Bench))?;
    }
    let claimed = Claimed::new("bench", setup, &common.output)?;
    bench.announce(&needs, hosts.len(), &info);
    let mut notes = workload.definition.notes();
    let progress = Progress::new(None, common.output.quiet);
    let (done, failure) = one_by_one(runs.len(), stop, |index| {
        progress.say(format!("({index} of {} runs done)", runs.len()));
        bench.run(index, &runs[index], &workload.name, claimed.path(), &progress, stop)
    })?;
    progress.end();
    if common.request_log {
        request_log::join(claimed.path(), done.len())?;
    }
    notes.sort();
    claimed.finish(done, runs.len(), failure, &notes, planewise_report::bench)
}

/// A run.
struct Planned<'a> {
    host: &'a HostOptions,
    depth: u32,
    name: String,
    varied: &'a BTreeMap<String, String>,
    definition: &'a Definition,
}

/// What all runs share.
struct Bench<'a> {
    arguments: &'a BenchArguments,
    target: &'a str,
    writes: bool,
    trims: bool,
    count: usize,
    /// Bytes of the largest request, where that is known.
    largest: Option<u32>,
    /// What a simulated target went through before.
    condition: Condition,
    /// What there is to know of the target is said once.
    quiet: Cell<bool>,
}

impl Bench<'_> {
    fn open(&self, host: &HostOptions, depth: u32) -> Result<Box<dyn Target>, Failure> {
        let wanted = Wanted {
            writes: self.writes,
            discards: self.trims,
            depth,
            longest: target::longest(self.largest, depth),
            condition: self.condition,
            seed: host.seed,
        };
        target::open(self.target, &self.arguments.drive, wanted, self.quiet.replace(true))
    }

    /// Says what is written before anything is.
    fn announce(&self, needs: &[Needs], hosts: usize, info: &planewise_io::TargetInfo) {
        let bounds = needs.iter().filter_map(|needs| needs.writes_to);
        let Some((start, end)) = bounds.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))) else {
            return;
        };
        let sum = |each: fn(&Needs) -> Option<u64>| {
            let one_each = needs.iter().map(each).try_fold(0u64, |sum, one| sum.checked_add(one?));
            one_each.and_then(|sum| sum.checked_mul(hosts as u64))
        };
        let plan = WritePlan {
            target: info,
            what: match (self.trims, self.count == 1) {
                (false, true) => "a workload",
                (false, false) => "workloads, one after another",
                (true, true) => "a workload that trims",
                (true, false) => "workloads that trim, one after another",
            },
            start: Bytes(start),
            area: Bytes(end.min(info.capacity.0) - start),
            volume: sum(|needs| needs.written).map(Bytes),
            time: sum(|needs| needs.time.map(|time| time.0)).map(Duration::from_nanos),
        };
        target::announce(&plan);
    }

    /// One run, and what ended it early.
    fn run(
        &self,
        index: usize,
        planned: &Planned<'_>,
        workload: &str,
        directory: &Path,
        progress: &Progress,
        stop: &AtomicBool,
    ) -> Result<(RunResult, Option<Failure>), Failure> {
        let common = &self.arguments.common;
        let mut target = self.open(planned.host, planned.depth)?;
        let capacity = target.info().capacity.0;
        let mut built = planned.definition.build(capacity, planned.host.seed)?;
        let log = common.request_log.then(|| RequestLog::create(directory, index)).transpose()?;
        let recorder = common.record.as_ref().map(|path| {
            let path = path_of_run(path, &planned.name, self.count);
            Recorder::create(&path, common.record_at, common.output.force)
        });
        let mut before = 0;
        let mut count = |submitted: u64| {
            progress.add(submitted - before);
            before = submitted;
        };
        let mut options = LoopOptions { stop, progress: &mut count, name: workload };
        let observer = (log, recorder.transpose()?);
        let Outcome { mut result, observer: (log, recorder), failure } =
            closed_loop::run(&mut *target, planned.host, &mut *built, observer, &mut options)
                .map_err(|error| failed(error, Of::Bench))?;
        result.labels.workload.clone_from(planned.varied);
        if let Some(log) = log {
            log.finish()?;
        }
        // Half a trace under the name of a whole one would be taken for it: unfinished, it leaves nothing.
        if let Some(recorder) = recorder.filter(|_| result.status == Status::Complete) {
            recorder.finish()?;
        }
        Ok((result, failure.map(|error| failed(error, Of::Bench))))
    }
}
