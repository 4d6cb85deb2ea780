//! From the command line to the list of runs: every name looked up, every value checked, before anything is simulated.

use crate::arguments::{CommonArguments, CompareArguments, RunArguments, SimulationArguments};
use crate::axes::{self, AXES, Axis};
use crate::failure::Failure;
use crate::source::EMBEDDED as EMBEDDED_TRACE;
use planewise_model::profile::{EMBEDDED, changes};
use planewise_model::{Profile, names};
use planewise_sim::drivers::pace::Pace;
use planewise_sim::drivers::replay::PowerCut;
use planewise_sim::gc::victims;
use planewise_sim::host::CommandQueue;
use planewise_sim::host_sched::{self, Tunable};
use planewise_sim::{Condition, RunConfig, SimError, Simulator, alloc, flash_sched, gc, wear};
use std::collections::BTreeMap;
use std::path::Path;

/// The runs of a command, and what its results say about them.
pub struct Plan {
    /// One entry per run; the first is the baseline.
    pub configs: Vec<RunConfig>,
    /// What to call each run in errors: what it differs from the others in.
    pub names: Vec<String>,
    /// Options of the workload that differ between runs, by run; nothing for a trace.
    pub varied: Vec<BTreeMap<String, String>>,
    /// The device before lists changed it.
    pub profile: Profile,
    /// Cut the power of the one run.
    pub power_cut: Option<PowerCut>,
    /// Every option that decides about results, defaults included, by its name on the command line.
    pub options: BTreeMap<String, String>,
}

/// The device where none is named, and how it takes commands: as drives of today do, and not blocking as in its profile, which is
/// that of a paper.
pub const DEVICE_DEFAULT: &str = "piq-128g";
const COMMAND_QUEUE_DEFAULT: &str = "ncq:32";

/// The pace of the trace inside the program: eight clients that wait for what they asked for, on a drive that is not theirs.
const EMBEDDED_PACE: &str = "dependent";

/// What is wrong with scaling the times of a trace that nothing goes by.
pub fn no_times_to_scale(pace: Pace) -> Failure {
    Failure::usage(format!(
        "--scale-time: found with --pace {pace}, which passes over recorded times; allowed: with --pace recorded or dependent"
    ))
}

/// Most runs of one command.
pub const RUNS_MAX: usize = 10_000;

impl Plan {
    /// The runs of `compare`.
    ///
    /// # Errors
    /// A name that is unknown, a value that is not allowed or given twice, a profile file that is wrong.
    pub fn compare(arguments: &CompareArguments) -> Result<Plan, Failure> {
        let mut given = arguments.axes.0.clone();
        if given[0].is_empty() && !axes::compares_devices(&given) {
            given[0] = axes::SCHEDULERS_DEFAULT.map(str::to_owned).into();
        }
        Plan::traced(&given, true, &arguments.simulation)
    }

    /// The one run of `run`.
    ///
    /// # Errors
    /// As [`Plan::compare`]; a power cut on a device that is a bound.
    pub fn run(arguments: &RunArguments) -> Result<Plan, Failure> {
        let given = &arguments.axes.0;
        for (axis, text) in AXES.iter().zip(given).filter_map(|(axis, given)| Some((axis, given.first()?))) {
            if text.contains(',') {
                return Err(Failure::usage(format!(
                    "--{}: found '{text}'; allowed: one value (lists are for `planewise compare`)",
                    axis.option(false)
                )));
            }
        }
        let mut plan = Plan::traced(given, false, &arguments.simulation)?;
        let scheme = gc::find(&plan.configs[0].profile.collection.scheme)?;
        if arguments.power_cut.is_some() && scheme.bound {
            return Err(Failure::usage(format!(
                "--power-cut: found with --gc {}; allowed: a scheme that a device could have, and no bound",
                scheme.name
            )));
        }
        plan.power_cut = arguments.power_cut;
        if let Some(cut) = plan.power_cut {
            let when = match cut {
                PowerCut::At(time) => format!("{}ns", time.0),
                PowerCut::After(requests) => format!("after:{requests}"),
            };
            plan.options.insert("power-cut".to_owned(), when);
        }
        Ok(plan)
    }

    /// A plan over a trace.
    fn traced(given: &[Vec<String>], lists: bool, arguments: &SimulationArguments) -> Result<Plan, Failure> {
        let mut given = given.to_vec();
        let mut by_default = |name: &str, value: &str| {
            let place = AXES.iter().position(|axis| axis.name == name).expect("an axis");
            if given[place].is_empty() {
                given[place].push(value.to_owned());
            }
        };
        if arguments.device.is_none() {
            by_default("command-queue", COMMAND_QUEUE_DEFAULT);
        }
        if arguments.trace == EMBEDDED_TRACE {
            by_default("pace", EMBEDDED_PACE);
        }
        let device = arguments.device.as_deref().unwrap_or(DEVICE_DEFAULT);
        let mut plan = Plan::new(&given, lists, device, &arguments.common)?;
        plan.options.extend(trace_options(arguments));
        let goes_by_times = |config: &RunConfig| config.pace.goes_by_times();
        if arguments.part.scale_time.is_some() && !plan.configs.iter().any(goes_by_times) {
            return Err(no_times_to_scale(plan.configs[0].pace));
        }
        for config in &mut plan.configs {
            config.scale_time = arguments.part.scale_time.unwrap_or(1.0);
        }
        Ok(plan)
    }

    /// The product of lists of options on a device.
    ///
    /// # Errors
    /// As [`Plan::compare`].
    pub fn new(
        given: &[Vec<String>],
        lists: bool,
        device: &str,
        common: &CommonArguments,
    ) -> Result<Plan, Failure> {
        let mut base = RunConfig::new(profile(device)?);
        let mut values = Vec::with_capacity(AXES.len());
        for (axis, given) in AXES.iter().zip(given) {
            values.push(effective(axis, given, &base, lists)?);
        }
        let runs = values.iter().try_fold(1usize, |runs, values| runs.checked_mul(values.len()));
        if runs.is_none_or(|runs| runs > RUNS_MAX) {
            return Err(Failure::usage(format!(
                "compare: found lists of more than {RUNS_MAX} runs; allowed: up to that"
            )));
        }
        for (axis, given) in AXES.iter().zip(given) {
            if let [value] = given.as_slice() {
                axis.apply(&mut base, value, lists)?;
            }
        }
        let profile = base.profile.clone();
        let schedulers: Vec<&str> = values[0].iter().map(String::as_str).collect();
        let tunables = Tunables::parse(&common.tunable, &schedulers)?;
        // The slowest axis first: each faster one goes through all its values inside.
        let mut configs = vec![base];
        for (axis, values) in AXES.iter().zip(&values).rev().filter(|(_, values)| values.len() > 1) {
            let mut product = Vec::with_capacity(configs.len() * values.len());
            for config in &configs {
                for value in values {
                    let mut config = config.clone();
                    axis.apply(&mut config, value, lists)?;
                    product.push(config);
                }
            }
            configs = product;
        }
        for config in &mut configs {
            config.tunables = tunables.of(&config.scheduler);
            check(config, given, lists)?;
        }
        check_conditions(&configs)?;
        let names = configs.iter().map(|config| run_name(config, &values)).collect();
        let options = options(&values, lists, common);
        Ok(Plan { configs, names, varied: Vec::new(), profile, power_cut: None, options })
    }

    /// The seeds of the runs, each once, in their order.
    pub fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = Vec::new();
        for config in &self.configs {
            if !seeds.contains(&config.seed) {
                seeds.push(config.seed);
            }
        }
        seeds
    }
}

/// The values of an axis as the runs have them: those given, or the one that the device or the program has by itself.
///
/// A value given twice is a slip, not a wish: the same run again would measure the same to the last bit.
fn effective(axis: &Axis, given: &[String], base: &RunConfig, lists: bool) -> Result<Vec<String>, Failure> {
    let mut values: Vec<String> = Vec::with_capacity(given.len().max(1));
    for text in given {
        let mut config = base.clone();
        axis.apply(&mut config, text, lists)?;
        let value = axis.value_of(&config);
        if values.contains(&value) {
            return Err(Failure::usage(format!(
                "--{}: found '{text}' a second time; allowed: each value once",
                axis.option(lists)
            )));
        }
        values.push(value);
    }
    if values.is_empty() {
        values.push(axis.value_of(base));
    }
    Ok(values)
}

/// What a run differs from the others in; its scheduler when there are no others.
fn run_name(config: &RunConfig, values: &[Vec<String>]) -> String {
    let differing = AXES.iter().zip(values).filter(|(_, values)| values.len() > 1);
    let words: Vec<String> =
        differing.map(|(axis, _)| format!("{} {}", axis.name, axis.value_of(config))).collect();
    if words.is_empty() { format!("scheduler {}", config.scheduler) } else { words.join(", ") }
}

/// An embedded profile by name, or a file, either with changes of its keys behind a colon.
///
/// # Errors
/// Neither of that name, a file that is wrong, or a change that cannot be made.
pub fn profile(name: &str) -> Result<Profile, Failure> {
    let Some((base, changes)) = changes::split(name, is_profile) else {
        return unchanged(name);
    };
    let profile = unchanged(base)?.changed(changes, name)?;
    check_names(&profile).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    Ok(profile)
}

/// Whether there is a profile of just this name, or a file.
fn is_profile(name: &str) -> bool {
    EMBEDDED.iter().any(|(known, _)| *known == name) || Path::new(name).is_file()
}

fn unchanged(name: &str) -> Result<Profile, Failure> {
    let unknown = match Profile::embedded(name) {
        Ok(profile) => return Ok(profile),
        Err(unknown) => unknown,
    };
    if name.starts_with(crate::target::ARRAY) {
        return Err(Failure::usage(format!(
            "{name}: found an array in the place of a device; allowed: a profile, or the array as the target of bench, replay or probe"
        )));
    }
    let looks_like_a_file = Path::new(name).exists() || name.contains('/') || name.ends_with(".toml");
    if !looks_like_a_file {
        return Err(Failure::usage(format!("{unknown}, or a TOML file")));
    }
    let text = std::fs::read_to_string(name).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let profile = Profile::parse(&text, name)?;
    check_names(&profile).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    Ok(profile)
}

/// Checks a run, and what the engine looks up only when it builds a device, so that a slip costs no simulation.
fn check(config: &RunConfig, given: &[Vec<String>], lists: bool) -> Result<(), Failure> {
    config.profile.check().map_err(|(key, problem)| match axes::by_key(key) {
        // A value of the device can be wrong beside one that was given: a floor above a lower threshold.
        Some((index, axis)) => {
            let own = if given[index].is_empty() { " (the device's)" } else { "" };
            Failure::usage(format!("--{}{own}: {problem}", axis.option(lists)))
        }
        None => Failure::usage(format!("device {}: {key}: {problem}", config.profile.name)),
    })?;
    config.tunable_values()?;
    Ok(check_names(&config.profile)?)
}

/// Checks that the device can be in each of the conditions, on a device of one plane: all planes are alike, and one takes no time.
fn check_conditions(configs: &[RunConfig]) -> Result<(), Failure> {
    let mut checked: Vec<Condition> = Vec::new();
    for config in configs {
        if !checked.contains(&config.condition) {
            checked.push(config.condition);
            let mut plane = config.clone();
            let geometry = &mut plane.profile.geometry;
            geometry.channels = 1;
            geometry.chips_per_channel = 1;
            geometry.dies_per_chip = 1;
            geometry.planes_per_die = 1;
            plane.profile.collection.buffer_pages = 0;
            plane.profile.collection.replica_pages = 0;
            // What schedulers are told of the device is checked against the whole of it.
            (plane.scheduler, plane.tunables) = ("noop".into(), Vec::new());
            Simulator::new(&plane, ())?;
        }
    }
    Ok(())
}

/// Looks up an allocation.
///
/// # Errors
/// It is unknown.
pub fn check_allocation(name: &str) -> Result<(), SimError> {
    alloc::check(name)
}

/// Looks up every policy that a profile names.
///
/// # Errors
/// One of them is unknown.
pub fn check_names(profile: &Profile) -> Result<(), SimError> {
    profile.interface.command_queue.parse::<CommandQueue>()?;
    wear::find(&profile.translation.wear_levelling)?;
    flash_sched::find(&profile.interface.flash_scheduler)?;
    check_allocation(&profile.translation.allocation)?;
    gc::find(&profile.collection.scheme)?;
    victims::find(&profile.collection.victims)?;
    Ok(())
}

/// Tunables as given: for one scheduler, or for all that have them.
struct Tunables<'a>(Vec<(Option<&'a str>, &'a str, &'a str)>);

impl<'a> Tunables<'a> {
    fn parse(given: &'a [String], schedulers: &[&str]) -> Result<Tunables<'a>, Failure> {
        let mut parsed = Vec::with_capacity(given.len());
        for text in given {
            let (left, value) = text.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "tunable: found '{text}'; allowed: NAME=VALUE or SCHEDULER.NAME=VALUE"
                ))
            })?;
            let (scheduler, name) =
                left.split_once('.').map_or((None, left), |(scheduler, name)| (Some(scheduler), name));
            if let Some(scheduler) = scheduler {
                host_sched::find(scheduler)?;
                if !schedulers.contains(&scheduler) {
                    let run = schedulers.iter().copied();
                    return Err(names::unknown("scheduler of this command", scheduler, run).into());
                }
            } else {
                let mut tunables: Vec<&str> = Vec::new();
                for scheduler in schedulers {
                    tunables.extend(host_sched::find(scheduler)?.tunables.iter().map(|tunable| tunable.name));
                }
                if !tunables.contains(&name) {
                    tunables.sort_unstable();
                    tunables.dedup();
                    return Err(names::unknown("tunable", name, tunables).into());
                }
            }
            if let Some((_, _, old)) = parsed.iter().find(|(of, other, _)| (*of, *other) == (scheduler, name))
            {
                return Err(Failure::usage(format!(
                    "tunable: found {left}={value} after {left}={old}; allowed: each tunable once"
                )));
            }
            parsed.push((scheduler, name, value));
        }
        Ok(Tunables(parsed))
    }

    /// Those of one scheduler. What is given for it by name comes last and so wins.
    fn of(&self, scheduler: &str) -> Vec<(String, String)> {
        let has = |name: &str| {
            let has_it = |tunable: &Tunable| tunable.name == name;
            host_sched::find(scheduler).is_ok_and(|entry| entry.tunables.iter().any(has_it))
        };
        let general = self.0.iter().filter(|(of, name, _)| of.is_none() && has(name));
        let own = self.0.iter().filter(|(of, ..)| *of == Some(scheduler));
        general.chain(own).map(|(_, name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

/// Options that decide about results. Where output goes and how many runs go on at a time do not.
fn options(values: &[Vec<String>], lists: bool, common: &CommonArguments) -> BTreeMap<String, String> {
    let shared = [
        ("tunable", common.tunable.join(",")),
        ("check", common.check.to_string()),
        ("request-log", common.request_log.to_string()),
    ];
    let axes = AXES.iter().zip(values).map(|(axis, values)| (axis.option(lists), values.join(",")));
    shared.into_iter().chain(axes).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Options that decide about what is replayed where.
fn trace_options(arguments: &SimulationArguments) -> BTreeMap<String, String> {
    let optional = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let read = &arguments.read;
    let options = [
        ("trace", arguments.trace.clone()),
        ("format", text(&read.format)),
        ("time-unit", read.time_unit.map(crate::source::unit_name).unwrap_or_default().to_owned()),
        ("event", text(&read.event)),
        ("volume", text(&read.volume)),
        ("sort-window", optional(read.sort_window.map(|window| window as u64))),
        ("trace-dir", read.trace_dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default()),
        ("requests", optional(arguments.part.requests)),
        ("warmup", arguments.part.warmup.to_string()),
        ("wrap", arguments.wrap.to_string()),
        ("scale-time", arguments.part.scale_time.map(|factor| factor.to_string()).unwrap_or_default()),
        ("device", arguments.device.clone().unwrap_or_else(|| DEVICE_DEFAULT.to_owned())),
    ];
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
