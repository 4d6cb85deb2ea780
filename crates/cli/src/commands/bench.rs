//! `planewise bench`: closed-loop workloads.

use super::simulate::{self, Job};
use super::{bench_real, experiment};
use crate::arguments::BenchArguments;
use crate::axes::AXES;
use crate::execute::Input;
use crate::failure::Failure;
use crate::plan::{Plan, RUNS_MAX};
use crate::target;
use planewise_model::names;
use planewise_sim::results::TraceSetup;
use planewise_workload::Definition;
use planewise_workload::jobs::JobFile;
use planewise_workload::models::{EMBEDDED, Model};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// A workload or an option that is wrong, and all of [`simulate::simulate`].
pub fn execute(arguments: &BenchArguments, stop: &AtomicBool) -> Result<(), Failure> {
    check_pace(arguments)?;
    if let Some(name) = &arguments.experiment {
        return experiment::execute(arguments, name, stop);
    }
    let mut workload = find(arguments)?;
    let given = given(arguments, &workload.definition)?;
    for (_, key, value) in &given {
        workload.definition.set(key, value)?;
    }
    if let Some(name) = &arguments.target {
        let simulated = target::simulated(name)?;
        // The simulator itself runs a single device, and sees its inside.
        if simulated.as_ref().is_none_or(|simulated| simulated.layout.is_some()) {
            let definition = workload.definition.clone();
            let vary = |device_bytes| variations(&arguments.vary, &given, &definition, device_bytes);
            return bench_real::execute(arguments, name, simulated, workload, vary, stop);
        }
    }
    let device = device(arguments, &workload.definition)?;
    arguments.drive.check_simulated(&format!("sim:{device}"))?;
    let mut plan = Plan::new(&arguments.axes.0, true, &device, &arguments.common)?;
    plan.options.remove("pace");
    let device_bytes = plan.profile.user_capacity().0;
    let variations = variations(&arguments.vary, &given, &workload.definition, device_bytes)?;
    let each = vary(&mut plan, &variations)?;
    let requests = check(&plan, &each)?;
    plan.options.extend(options(arguments, &format!("sim:{device}")));
    let text = workload.definition.to_toml();
    let job = Job {
        command: "bench",
        plan: &plan,
        notes: workload.definition.notes(),
        input: Input::Workloads { name: &workload.name, each: &each, requests },
        trace: TraceSetup {
            name: workload.name.clone(),
            source: workload.source,
            format: "workload".to_owned(),
            hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
        },
        warm_up: 0,
        common: &arguments.common,
        timeline: None,
        table: planewise_report::bench,
    };
    simulate::simulate(job, stop)
}

/// Requests of a workload leave when its processes are ready for them.
fn check_pace(arguments: &BenchArguments) -> Result<(), Failure> {
    let pace = AXES.iter().zip(&arguments.axes.0).find(|(axis, _)| axis.name == "pace");
    match pace.and_then(|(_, given)| given.first()) {
        Some(pace) => Err(Failure::usage(format!(
            "--pace: found '{pace}'; allowed: with a trace (compare, run, replay); a workload sets its own, by iodepth, thinktime and rate"
        ))),
        None => Ok(()),
    }
}

/// A workload that was found.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) definition: Definition,
}

fn find(arguments: &BenchArguments) -> Result<Found, Failure> {
    let Some(text) = arguments.file.as_ref().or(arguments.workload.as_ref()) else {
        if arguments.job_options.0.is_empty() && arguments.set.is_empty() && arguments.vary.is_empty() {
            return Err(Failure::usage(
                "bench: found no workload and no option of a job; allowed: planewise bench --target sim:PROFILE WORKLOAD (a job \
                 file, or a name of `planewise workload list`), or options such as --rw randread --bs 4k --iodepth 8",
            ));
        }
        let named = arguments.job_options.0.iter().find(|(key, _)| *key == "name");
        let name = named.map_or("job", |(_, name)| name.as_str());
        let definition = Definition::Jobs(JobFile::single(name));
        return Ok(Found { name: name.to_owned(), source: "command line".to_owned(), definition });
    };
    if EMBEDDED.iter().any(|(name, _)| name == text) {
        let definition = Definition::Model(Model::embedded(text)?);
        return Ok(Found { name: text.clone(), source: "embedded".to_owned(), definition });
    }
    if let Some(content) = Definition::embedded_text(text) {
        let definition = Definition::parse(content, text)?;
        return Ok(Found { name: text.clone(), source: "embedded".to_owned(), definition });
    }
    let looks_like_a_file = Path::new(text).exists() || text.contains(['/', '.']);
    if !looks_like_a_file {
        return Err(Failure::usage(format!(
            "{}, or a file of jobs or of a model",
            names::unknown("workload", text, Definition::names())
        )));
    }
    let content = super::workload::read(Path::new(text))?;
    let definition = Definition::parse(&content, text)?;
    let name = Path::new(text).file_stem().map_or(text.clone(), |stem| stem.to_string_lossy().into_owned());
    Ok(Found { name, source: text.clone(), definition })
}

/// The profile of the target, from the command line or the job file.
fn device(arguments: &BenchArguments, definition: &Definition) -> Result<String, Failure> {
    match (&arguments.target, definition.profile()) {
        (Some(target), _) => Ok(target.strip_prefix("sim:").unwrap_or(target).to_owned()),
        (None, Some(profile)) => Ok(profile.to_owned()),
        (None, None) => Err(Failure::usage(
            "--target: not given; allowed: sim:PROFILE, such as sim:piq-128g, the path of a block device or a file, or [target] with a \
             profile in the job file",
        )),
    }
}

fn assignment<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    text.split_once('=')
        .map(|(key, value)| (key.trim(), value.trim()))
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| Failure::usage(format!("--{option}: found '{text}'; allowed: KEY=VALUE")))
}

/// A variation of a workload: what was varied, and the result.
pub(super) type Variation = (BTreeMap<String, String>, Definition);

/// An option of the workload: by which argument it was given, its name, its value.
type Given<'a> = (&'static str, &'a str, &'a str);

/// What the command line says of the workload, each option once.
fn given<'a>(arguments: &'a BenchArguments, definition: &Definition) -> Result<Vec<Given<'a>>, Failure> {
    let options = arguments.job_options.0.iter().map(|(key, value)| Ok(("an option", *key, value.as_str())));
    let set =
        arguments.set.iter().map(|text| assignment("set", text).map(|(key, value)| ("--set", key, value)));
    let mut all: Vec<Given<'a>> = Vec::new();
    for one in options.chain(set) {
        let (how, key, value) = one?;
        if let Some((before, other, old)) = by_name(&all, key, definition) {
            return Err(Failure::usage(format!(
                "{key}: found '{value}' by {how} after {other} '{old}' by {before}; allowed: each option once"
            )));
        }
        all.push((how, key, value));
    }
    Ok(all)
}

fn by_name<'a>(given: &[Given<'a>], key: &str, definition: &Definition) -> Option<Given<'a>> {
    let plain = key.replace('-', "_");
    let is_it = |other: &str| definition.first_name(other).replace('-', "_") == definition.first_name(&plain);
    given.iter().find(|(_, other, _)| is_it(other)).copied()
}

/// All combinations; the last option varies fastest.
fn variations(
    vary: &[String],
    given: &[Given<'_>],
    definition: &Definition,
    device_bytes: u64,
) -> Result<Vec<Variation>, Failure> {
    let mut all = vec![(BTreeMap::new(), definition.clone())];
    let mut keys: Vec<Given<'_>> = Vec::new();
    for text in vary {
        let (key, values) = assignment("vary", text)?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if by_name(&keys, key, definition).is_some() {
            return Err(Failure::usage(format!(
                "--vary: found {key} a second time; allowed: each option once"
            )));
        }
        if let Some((how, other, old)) = by_name(given, key, definition) {
            return Err(Failure::usage(format!(
                "--vary: found {key}, and {other} '{old}' by {how}; allowed: one of the two"
            )));
        }
        keys.push(("--vary", key, ""));
        let mut product: Vec<Variation> = Vec::with_capacity(all.len() * values.len());
        for (varied, definition) in &all {
            for (index, value) in values.iter().enumerate() {
                if values[..index].contains(value) {
                    return Err(Failure::usage(format!(
                        "--vary {key}: found '{value}' a second time; allowed: each value once"
                    )));
                }
                let (mut varied, mut definition) = (varied.clone(), definition.clone());
                definition.set(key, value)?;
                varied.insert(key.to_owned(), (*value).to_owned());
                let siblings: &[Variation] = &product[product.len() - index..];
                if let Some(same) =
                    siblings.iter().find(|(_, other)| other.means_the_same(&definition, device_bytes))
                {
                    return Err(Failure::usage(format!(
                        "--vary {key}: found '{}' and '{value}', which mean the same workload; allowed: each value once",
                        same.0[key]
                    )));
                }
                product.push((varied, definition));
            }
        }
        if product.len() > RUNS_MAX {
            return Err(Failure::usage(format!(
                "--vary: found more than {RUNS_MAX} runs; allowed: up to that"
            )));
        }
        all = product;
    }
    Ok(all)
}

/// Runs each variation under each configuration of the plan, configurations varying fastest; returns the workload of each run.
fn vary(plan: &mut Plan, variations: &[Variation]) -> Result<Vec<Definition>, Failure> {
    let runs = plan.configs.len() * variations.len();
    if runs > RUNS_MAX {
        return Err(Failure::usage(format!("bench: found lists of {runs} runs; allowed: up to {RUNS_MAX}")));
    }
    let (configs, names) = (std::mem::take(&mut plan.configs), std::mem::take(&mut plan.names));
    let mut each = Vec::with_capacity(runs);
    for (varied, definition) in variations {
        for (config, name) in configs.iter().zip(&names) {
            plan.configs.push(config.clone());
            plan.names.push(run_name(name, varied));
            plan.varied.push(varied.clone());
            each.push(definition.clone());
        }
    }
    Ok(each)
}

/// What to call a run: its scheme, and what varies about its workload.
pub(super) fn run_name(scheme: &str, varied: &BTreeMap<String, String>) -> String {
    let words = varied.iter().map(|(key, value)| format!("{key} {value}"));
    std::iter::once(scheme.to_owned()).chain(words).collect::<Vec<_>>().join(", ")
}

/// Checks all workloads against their devices, and counts their requests where they know how many.
fn check(plan: &Plan, each: &[Definition]) -> Result<Option<u64>, Failure> {
    let mut total = Some(0u64);
    for (config, workload) in plan.configs.iter().zip(each) {
        let requests = workload.build(config.profile.user_capacity().0, config.seed)?.total_requests();
        total = total.zip(requests).map(|(total, requests)| total.saturating_add(requests));
    }
    Ok(total)
}

pub(super) fn options(arguments: &BenchArguments, target: &str) -> BTreeMap<String, String> {
    let workload = arguments.file.as_ref().or(arguments.workload.as_ref()).cloned().unwrap_or_default();
    let own = [
        ("target", target.to_owned()),
        ("workload", workload),
        ("set", arguments.set.join(";")),
        ("vary", arguments.vary.join(";")),
    ];
    let jobs = arguments.job_options.0.iter().map(|(key, value)| (*key, value.clone()));
    own.into_iter().chain(jobs).map(|(key, value)| (key.to_owned(), value)).collect()
}
