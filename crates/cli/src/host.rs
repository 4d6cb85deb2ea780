//! From the command line to the host stack in front of a target that is measured from outside.

use crate::arguments::CommonArguments;
use crate::axes::AXES;
use crate::failure::Failure;
use crate::plan::Plan;
use planewise_io::drivers::{HostOptions, Units};
use planewise_sim::drivers::pace::Pace;
use planewise_sim::host::CommandQueue;
use planewise_sim::{Condition, RunConfig};
use std::collections::BTreeMap;

/// Options of the host: all others are of a device that is simulated.
pub const OF_THE_HOST: [&str; 12] = [
    "scheduler",
    "merging",
    "max-sectors-kb",
    "overlap",
    "block-layer",
    "command-queue",
    "queue",
    "request-pools",
    "queue-counts",
    "units",
    "pace",
    "seed",
];

/// Carries the options of the host through the checks that runs of the simulator have; nothing of it is simulated.
const STAND_IN: &str = "piq-128g";

/// Longest queue of the host.
const QUEUE_MAX: u64 = 4096;

/// Host stacks, one for each run, and what to call them.
pub struct Hosts {
    /// The stacks, and how many operations the target takes from each at a time.
    pub hosts: Vec<(HostOptions, u32)>,
    /// When the requests of a trace leave, by run.
    pub paces: Vec<Pace>,
    /// What to call each in errors.
    pub names: Vec<String>,
    /// Every option that decides about results, by its name on the command line.
    pub options: BTreeMap<String, String>,
}

/// The product of the lists of options of the host. `in_flight` requests of the workload, when that is known, have room in the
/// queue unless it is told to be shorter.
///
/// # Errors
/// An option of the device, a name that is unknown, a value that is not allowed.
pub fn hosts(
    given: &[Vec<String>],
    common: &CommonArguments,
    in_flight: Option<u64>,
) -> Result<Hosts, Failure> {
    let is_given =
        |name: &str| AXES.iter().zip(given).any(|(axis, given)| axis.name == name && !given.is_empty());
    for (axis, values) in AXES.iter().zip(given) {
        if let Some(value) = values.first().filter(|_| !OF_THE_HOST.contains(&axis.name)) {
            return Err(Failure::usage(format!(
                "--{}: found '{value}'; allowed: with one simulated device (sim:PROFILE) and a workload; this target is seen from outside (what is simulated is changed behind its name: PROFILE:KEY=VALUE)",
                axis.option(true)
            )));
        }
    }
    if common.check {
        return Err(Failure::usage(
            "--check: found; allowed: with sim:PROFILE, whose inside can be seen; this target is seen from outside",
        ));
    }
    let mut plan = Plan::new(given, true, STAND_IN, common)?;
    let queue_given = is_given("queue");
    let room = in_flight.unwrap_or(0).clamp(64, QUEUE_MAX) as u32;
    let depth_given = is_given("command-queue");
    let mut hosts = Vec::with_capacity(plan.configs.len());
    for config in &plan.configs {
        let queue_length = if queue_given { config.queue_length } else { room };
        let depth = if depth_given { depth(config)? } else { queue_length };
        hosts.push((host(config, queue_length), depth));
    }
    plan.options.retain(|name, _| {
        let axis = AXES.iter().find(|axis| axis.option(true) == name);
        axis.is_none_or(|axis| OF_THE_HOST.contains(&axis.name)) && name != "check"
    });
    if !queue_given {
        plan.options.insert("queue".to_owned(), room.to_string());
    }
    if !depth_given {
        plan.options.insert("command-queue".to_owned(), format!("ncq:{room}"));
    }
    let paces = plan.configs.iter().map(|config| config.pace).collect();
    Ok(Hosts { hosts, paces, names: plan.names, options: plan.options })
}

/// Takes the one condition out of what is given.
///
/// # Errors
/// There are several, or it is none.
pub fn condition(given: &mut [Vec<String>]) -> Result<Condition, Failure> {
    let place = AXES.iter().position(|axis| axis.name == "condition").expect("an axis");
    match std::mem::take(&mut given[place]).as_slice() {
        [] => Ok(Condition::Filled),
        [text] => Ok(text.parse()?),
        several => Err(Failure::usage(format!(
            "--condition: found {} values; allowed: one with a target that is seen from outside",
            several.len()
        ))),
    }
}

fn depth(config: &RunConfig) -> Result<u32, Failure> {
    match config.profile.interface.command_queue.parse::<CommandQueue>()? {
        CommandQueue::Ncq(depth) if depth <= planewise_io::target::real::DEPTH_MAX => Ok(depth),
        _ => Err(Failure::usage(format!(
            "--command-queue: found {}; allowed: ncq:D with a depth D of 1 to {} in front of a real target",
            config.profile.interface.command_queue,
            planewise_io::target::real::DEPTH_MAX
        ))),
    }
}

fn host(config: &RunConfig, queue_length: u32) -> HostOptions {
    HostOptions {
        scheduler: config.scheduler.clone(),
        tunables: config.tunables.clone(),
        queue_length,
        request_pools: config.request_pools,
        queue_counts: config.queue_counts,
        merging: config.merging,
        max_sectors_kb: config.max_sectors_kb,
        overlap: config.overlap,
        block_layer: config.block_layer,
        units: config.told_units.map_or(Units::Unknown, Units::Told),
        seed: config.seed,
        ..HostOptions::new()
    }
}
