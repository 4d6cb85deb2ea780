//! From the command line to the list of runs: every name looked up, every value checked, before anything is simulated.

use crate::arguments::{CompareArguments, RunArguments, SimulationArguments};
use crate::failure::Failure;
use planewise_model::{Profile, names};
use planewise_sim::host::CommandQueue;
use planewise_sim::host_sched::{self, Tunable};
use planewise_sim::{RunConfig, SimError, alloc, flash_sched, gc, wear};
use std::collections::BTreeMap;
use std::path::Path;

/// The runs of a command, and what its results say about them.
pub struct Plan {
    /// One entry per run; the first is the baseline.
    pub configs: Vec<RunConfig>,
    /// The device before lists changed it.
    pub profile: Profile,
    /// Every option that decides about results, defaults included, by its name on the command line.
    pub options: BTreeMap<String, String>,
}

/// The values that runs differ in.
struct Lists<'a> {
    schedulers: Vec<&'a str>,
    levels: Vec<&'a str>,
    allocations: Vec<String>,
    collectors: Vec<String>,
    command_queues: Vec<String>,
    queues: Vec<u32>,
}

impl Plan {
    /// The runs of `compare`.
    ///
    /// # Errors
    /// A name that is unknown, a value that is not allowed, a profile file that is wrong.
    pub fn compare(arguments: &CompareArguments) -> Result<Plan, Failure> {
        let profile = profile(&arguments.simulation.device)?;
        let or_own = |given: &[String], own: &str| {
            if given.is_empty() { vec![own.to_owned()] } else { given.to_vec() }
        };
        let lists = Lists {
            schedulers: arguments.schedulers.iter().map(String::as_str).collect(),
            levels: arguments.level.iter().map(String::as_str).collect(),
            allocations: or_own(&arguments.allocation, &profile.translation.allocation),
            collectors: or_own(&arguments.gc, &profile.collection.scheme),
            command_queues: or_own(&arguments.command_queue, &profile.interface.command_queue),
            queues: arguments.queue.clone(),
        };
        let mut plan = Plan::new(profile, &lists, &arguments.simulation)?;
        plan.options.insert("schedulers".to_owned(), arguments.schedulers.join(","));
        Ok(plan)
    }

    /// The one run of `run`.
    ///
    /// # Errors
    /// As [`Plan::compare`].
    pub fn run(arguments: &RunArguments) -> Result<Plan, Failure> {
        let profile = profile(&arguments.simulation.device)?;
        let or_own = |given: &Option<String>, own: &String| vec![given.as_ref().unwrap_or(own).clone()];
        let lists = Lists {
            schedulers: vec![&arguments.scheduler],
            levels: vec![&arguments.level],
            allocations: or_own(&arguments.allocation, &profile.translation.allocation),
            collectors: or_own(&arguments.gc, &profile.collection.scheme),
            command_queues: or_own(&arguments.command_queue, &profile.interface.command_queue),
            queues: vec![arguments.queue],
        };
        let mut plan = Plan::new(profile, &lists, &arguments.simulation)?;
        plan.options.insert("scheduler".to_owned(), arguments.scheduler.clone());
        Ok(plan)
    }

    fn new(
        mut profile: Profile,
        lists: &Lists<'_>,
        arguments: &SimulationArguments,
    ) -> Result<Plan, Failure> {
        if let Some(name) = &arguments.wear {
            profile.translation.wear_levelling.clone_from(name);
        }
        if let Some(name) = &arguments.flash_scheduler {
            profile.interface.flash_scheduler.clone_from(name);
        }
        let tunables = Tunables::parse(&arguments.tunable, &lists.schedulers)?;
        let mut configs = Vec::new();
        for &queue_length in &lists.queues {
            for command_queue in &lists.command_queues {
                for collector in &lists.collectors {
                    for allocation in &lists.allocations {
                        for level in &lists.levels {
                            for scheduler in &lists.schedulers {
                                let mut config = RunConfig::new(profile.clone());
                                config.profile.interface.command_queue.clone_from(command_queue);
                                config.profile.collection.scheme.clone_from(collector);
                                config.profile.translation.allocation.clone_from(allocation);
                                config.level = level.parse()?;
                                config.condition = arguments.condition.parse()?;
                                config.advanced = arguments.advanced.parse()?;
                                config.scheduler = (*scheduler).to_owned();
                                config.tunables = tunables.of(scheduler);
                                config.told_units = arguments.units;
                                config.queue_length = queue_length;
                                config.seed = arguments.seed;
                                check(&config)?;
                                configs.push(config);
                            }
                        }
                    }
                }
            }
        }
        let options = options(lists, arguments, &profile, &configs[0]);
        Ok(Plan { configs, profile, options })
    }
}

/// An embedded profile by name, or a file.
///
/// # Errors
/// Neither of that name, or a file that is wrong.
pub fn profile(name: &str) -> Result<Profile, Failure> {
    let unknown = match Profile::embedded(name) {
        Ok(profile) => return Ok(profile),
        Err(unknown) => unknown,
    };
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
fn check(config: &RunConfig) -> Result<(), Failure> {
    config.tunable_values()?;
    Ok(check_names(&config.profile)?)
}

/// Looks up every policy that a profile names.
///
/// # Errors
/// One of them is unknown.
pub fn check_names(profile: &Profile) -> Result<(), SimError> {
    profile.interface.command_queue.parse::<CommandQueue>()?;
    wear::find(&profile.translation.wear_levelling)?;
    flash_sched::find(&profile.interface.flash_scheduler)?;
    let allocation = &profile.translation.allocation;
    let known = alloc::known();
    if !known.contains(allocation) {
        return Err(names::unknown("allocation", allocation, known.iter().map(String::as_str)).into());
    }
    gc::find(&profile.collection.scheme)?;
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
fn options(
    lists: &Lists<'_>,
    arguments: &SimulationArguments,
    profile: &Profile,
    first: &RunConfig,
) -> BTreeMap<String, String> {
    let numbers: Vec<String> = lists.queues.iter().map(u32::to_string).collect();
    let optional = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let read = &arguments.read;
    [
        ("trace", arguments.trace.clone()),
        ("format", text(&read.format)),
        ("time-unit", read.time_unit.map(crate::source::unit_name).unwrap_or_default().to_owned()),
        ("event", text(&read.event)),
        ("volume", text(&read.volume)),
        ("sort-window", optional(read.sort_window.map(|window| window as u64))),
        ("trace-dir", read.trace_dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default()),
        ("requests", optional(arguments.requests)),
        ("warmup", arguments.warmup.to_string()),
        ("wrap", arguments.wrap.to_string()),
        ("scale-time", arguments.scale_time.map(|factor| factor.to_string()).unwrap_or_default()),
        ("device", arguments.device.clone()),
        ("condition", first.condition.to_string()),
        ("advanced", first.advanced.to_string()),
        ("flash-scheduler", profile.interface.flash_scheduler.clone()),
        ("wear", profile.translation.wear_levelling.clone()),
        ("tunable", arguments.tunable.join(",")),
        ("units", optional(arguments.units.map(u64::from))),
        ("seed", arguments.seed.to_string()),
        ("check", arguments.check.to_string()),
        ("request-log", arguments.request_log.to_string()),
        ("level", lists.levels.join(",")),
        ("allocation", lists.allocations.join(",")),
        ("gc", lists.collectors.join(",")),
        ("command-queue", lists.command_queues.join(",")),
        ("queue", numbers.join(",")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}
