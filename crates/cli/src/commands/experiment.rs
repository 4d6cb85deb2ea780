//! `planewise bench --experiment`: published experiments on any target, simulated or real.

use super::bench_real::{described, look_at};
use super::measured::{Claimed, Of, failed};
use crate::arguments::BenchArguments;
use crate::failure::Failure;
use crate::host;
use crate::target::{self, Wanted};
use planewise_io::experiments::{self, Experiment, Measurement, Options, Step};
use planewise_io::plan::WritePlan;
use planewise_io::{Target, TargetInfo};
use planewise_model::{Bytes, Ns, Profile};
use planewise_sim::Condition;
use planewise_sim::results::{Setup, TraceSetup};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Deepest queue of the experiments' own lists, and what a target is opened with at least.
const DEPTH: u32 = 64;

/// Runs an experiment.
///
/// # Errors
/// A name, an option or a target that is wrong; a step that fails, Ctrl-C: with what was measured until then in the directory.
pub fn execute(arguments: &BenchArguments, name: &str, stop: &AtomicBool) -> Result<(), Failure> {
    let experiment = experiments::find(name)?;
    refuse_workloads(arguments, experiment)?;
    let options = options(arguments, experiment)?;
    let place = arguments.target.as_deref().ok_or_else(|| {
        Failure::usage("--target: not given; allowed: sim:PROFILE, or the path of a block device or a file")
    })?;
    let simulated = target::simulated(place)?;
    let mut given = arguments.axes.0.clone();
    let condition = if simulated.is_some() { host::condition(&mut given)? } else { Condition::Filled };
    let hosts = host::hosts(&given, &arguments.common, Some(u64::from(most(&options))))?;
    let [(host, depth)] = hosts.hosts.as_slice() else {
        return Err(Failure::usage(
            "bench --experiment: found a list of schemes; allowed: one value of each option",
        ));
    };
    let device_profile = match &simulated {
        Some(simulated) => simulated.described(place),
        None => described(&look_at(place)?),
    };
    let writes = (experiment.writes)(&options);
    let wanted = Wanted {
        writes,
        discards: false,
        depth: *depth,
        longest: target::longest(None, *depth),
        condition,
        seed: host.seed,
    };
    let quiet = arguments.common.output.quiet;
    let mut target = target::open(place, &arguments.drive, wanted, quiet)
        .map_err(|failure| hint(failure, experiment, &options))?;
    let steps = (experiment.steps)(&options, target.info())
        .map_err(|error| Failure::usage(format!("bench --experiment {name}: --set {error}")))?;
    let left_out = experiments::left_out(experiment, &options, target.info());
    if !left_out.is_empty() && !quiet {
        eprintln!(
            "note: sizes {} are left out: {place} takes multiples of {} bytes up to {}",
            left_out.join(", "),
            target.info().block_bytes,
            target.info().longest.min(options.area)
        );
    }
    let setup = Setup {
        trace: TraceSetup {
            name: name.to_owned(),
            source: experiment.source.to_owned(),
            format: "experiment".to_owned(),
            hash: blake3::hash(format!("{options:?}").as_bytes()).to_hex().to_string(),
        },
        device_profile,
        condition: condition_text(simulated.is_some(), condition),
        options: all_options(arguments, name, hosts.options),
        random_generator: planewise_model::rng::GENERATOR_NAME.to_owned(),
    };
    let alone = simulated.as_ref().filter(|simulated| simulated.layout.is_none());
    let notes = alone.map(|simulated| misled(experiment, &options, &simulated.profile)).unwrap_or_default();
    let claimed = Claimed::new("bench", setup, &arguments.common.output)?;
    if simulated.is_none() && writes {
        announce(&mut *target, experiment, &steps)?;
    }
    let host = planewise_io::drivers::HostOptions {
        condition: condition_text(simulated.is_some(), condition),
        ..host.clone()
    };
    let planned = steps.iter().filter(|step| matches!(step, Step::Measure(_))).count();
    let progress = crate::progress::Progress::new(None, quiet);
    let mut say = |step: usize| {
        progress.add(1);
        progress.say(format!("(step {} of {})", step + 1, steps.len()));
    };
    let done = experiments::run(&mut *target, &host, name, &steps, stop, &mut say)
        .map_err(|error| failed(error, Of::Experiment))?;
    progress.end();
    let failure = done.failure.map(|error| failed(error, Of::Experiment));
    claimed.finish(done.runs, planned, failure, &notes, planewise_report::bench)
}

fn options(arguments: &BenchArguments, experiment: &Experiment) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut seen: Vec<&str> = Vec::new();
    for text in &arguments.set {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "--set: found '{text}'; allowed: KEY=VALUE with a key of {}",
                experiment.keys.join(", ")
            ))
        })?;
        let key = key.trim();
        if experiments::KEYS.contains(&key) && !experiment.keys.contains(&key) {
            return Err(Failure::usage(format!(
                "--set {key}: found with experiment {}, which has nothing of it; allowed: {}",
                experiment.name,
                experiment.keys.join(", ")
            )));
        }
        if seen.contains(&key) {
            return Err(Failure::usage(format!(
                "--set {key}: found a second time; allowed: each option once"
            )));
        }
        options.set(key, value.trim()).map_err(|error| Failure::usage(format!("--set {error}")))?;
        seen.push(key);
    }
    Ok(options)
}

/// What only workloads have.
fn refuse_workloads(arguments: &BenchArguments, experiment: &Experiment) -> Result<(), Failure> {
    let common = &arguments.common;
    let given = [
        ("a workload", arguments.file.is_some() || arguments.workload.is_some()),
        ("--vary", !arguments.vary.is_empty()),
        ("--record", common.record.is_some()),
        ("--request-log", common.request_log),
        ("--check", common.check),
    ];
    let job = arguments.job_options.0.first().map(|(key, _)| format!("--{key}"));
    let found = given.into_iter().find(|(_, given)| *given).map(|(name, _)| name.to_owned()).or(job);
    match found {
        Some(found) => Err(Failure::usage(format!(
            "bench --experiment: found {found}; allowed: --set with {}",
            experiment.keys.join(", ")
        ))),
        None => Ok(()),
    }
}

/// What a profile says against the options: where it is known that data do not come to lie as the experiment means.
fn misled(experiment: &Experiment, options: &Options, profile: &Profile) -> Vec<String> {
    if !experiment.keys.contains(&"domains") {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let channels = profile.geometry.channels;
    if options.domains != channels {
        notes.push(format!(
            "--set domains: {} is not what {} has, which is {channels}: data do not come to lie on as many domains as the rows say; --set domains={channels} does that",
            options.domains, profile.name
        ));
    }
    if profile.translation.allocation != "write-order" {
        notes.push(format!(
            "{} has allocation {}: where data lie does not follow the order of writes, as this experiment supposes",
            profile.name, profile.translation.allocation
        ));
    }
    notes
}

fn condition_text(is_simulated: bool, condition: Condition) -> String {
    if is_simulated { condition.to_string() } else { "as found".to_owned() }
}

/// Requests in flight at most.
fn most(options: &Options) -> u32 {
    // Two jobs may be side by side.
    2 * options.depths.iter().copied().max().unwrap_or(0).max(DEPTH / 2)
}

/// What to do when a target may not be written: some experiments can do without.
fn hint(failure: Failure, experiment: &Experiment, options: &Options) -> Failure {
    let patterns = options.patterns.iter().copied().filter(|pattern| !pattern.writes()).collect();
    let reading = Options { fill: false, patterns, ..options.clone() };
    let mut readable = reading.clone();
    if readable.patterns.is_empty() {
        readable.patterns = vec![experiments::Pattern::Read, experiments::Pattern::RandomRead];
    }
    if (experiment.writes)(&readable) || !(experiment.writes)(options) {
        return failure;
    }
    let words = readable.patterns.iter().map(|pattern| pattern.name()).collect::<Vec<_>>().join(",");
    let patterns = if (experiment.writes)(&Options { patterns: Vec::new(), ..readable }) {
        format!(";patterns={words}")
    } else {
        String::new()
    };
    Failure::new(failure.kind, format!("{failure}; or --set 'fill=0{patterns}' only reads"))
}

fn all_options(
    arguments: &BenchArguments,
    name: &str,
    host: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let own = [
        ("experiment", name.to_owned()),
        ("target", arguments.target.clone().unwrap_or_default()),
        ("set", arguments.set.join(";")),
    ];
    own.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(host).collect()
}

/// Says what is written before anything is, with a time that a look at how fast the target reads gives.
fn announce(target: &mut dyn Target, experiment: &Experiment, steps: &[Step]) -> Result<(), Failure> {
    let rate = experiments::reading_rate(target)?;
    let (mut volume, mut end, mut time) = (Some(0), 0, Ns::ZERO);
    for step in steps {
        match step {
            Step::Write(writes) => {
                volume = volume.zip(writes.volume()).map(|(sum, bytes)| sum + bytes.0);
                end = end.max(writes.end());
                let bytes = writes.volume().map_or(0, |bytes| bytes.0);
                time += writes.time().unwrap_or(Ns((bytes as f64 / rate * 1e9) as u64));
            }
            Step::Rest(rest) => time += *rest,
            Step::Measure(Measurement { time: own, writes_to, .. }) => {
                end = end.max(*writes_to);
                time += *own;
                if *writes_to > 0 {
                    volume = None;
                }
            }
        }
    }
    let info: TargetInfo = target.info().clone();
    let plan = WritePlan {
        target: &info,
        what: experiment.summary,
        start: Bytes(0),
        area: Bytes(end),
        volume: volume.map(Bytes),
        time: Some(Duration::from_nanos(time.0)),
    };
    target::announce(&plan);
    Ok(())
}
