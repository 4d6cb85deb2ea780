//! From the name of a target to the open target: `sim:PROFILE`, or the path of a block device or a file.

use crate::arguments::DriveArguments;
use crate::failure::{Failure, Kind};
use crate::plan;
use planewise_io::plan::WritePlan;
use planewise_io::target::SimTarget;
use planewise_io::target::real::{self, RealOptions};
use planewise_io::{Target, TargetError};
use planewise_model::Bytes;
use planewise_model::names;
use planewise_sim::Condition;
use std::path::Path;

/// Longest operation that real targets are opened for: requests beyond it are made of several.
pub const LONGEST: Bytes = Bytes(1 << 20);

/// Memory for the operations of a real target: deep queues take shorter operations, and longer requests are made of several.
const MEMORY: u64 = 512 << 20;

/// Longest operation to open a real target for: requests of up to `largest` bytes (where that is known), `depth` at a time.
pub fn longest(largest: Option<u32>, depth: u32) -> Bytes {
    let wanted = largest.map_or(LONGEST.0, u64::from).min(LONGEST.0).min(MEMORY / u64::from(depth.max(1)));
    Bytes(wanted.next_power_of_two().max(4096))
}

/// What a command wants of its target.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Whether it writes.
    pub writes: bool,
    /// Operations under way at a time.
    pub depth: u32,
    /// Longest operation; simulated targets have their own limit.
    pub longest: Bytes,
    /// What a simulated device went through before.
    pub condition: Condition,
    /// Seed of a simulated device.
    pub seed: u64,
}

/// The profile that a target names: none for a real one.
///
/// # Errors
/// A word that is neither: no `sim:` before it, and nothing at such a path.
pub fn simulated(name: &str) -> Result<Option<&str>, Failure> {
    if let Some(profile) = name.strip_prefix("sim:").filter(|profile| !profile.is_empty()) {
        return Ok(Some(profile));
    }
    if name.contains('/') || Path::new(name).exists() {
        return Ok(None);
    }
    let known = planewise_model::profile::EMBEDDED.iter().map(|(known, _)| *known);
    let hint = names::nearest(name.trim_start_matches("sim:").split(':').next().unwrap_or_default(), known)
        .map(|nearest| format!(" (did you mean 'sim:{nearest}'?)"))
        .unwrap_or_default();
    let problem = match name {
        "" => "found an empty name of a target".to_owned(),
        "sim:" => "found sim: without a profile".to_owned(),
        name => format!("{name}: there is no such device or file{hint}"),
    };
    Err(Failure::usage(format!(
        "{problem}; allowed: sim:PROFILE, such as sim:ssd-s (see `planewise device list`), or the path of a block device or a file"
    )))
}

/// Opens a target. What a user should know of a real one goes to standard error unless `quiet`. Only the calling thread may use it.
///
/// # Errors
/// There is none of that name, it may not be used this way, or the system refuses something.
pub fn open(
    name: &str,
    arguments: &DriveArguments,
    wanted: Wanted,
    quiet: bool,
) -> Result<Box<dyn Target>, Failure> {
    let Wanted { writes, depth, longest, condition, seed } = wanted;
    if let Some(profile) = simulated(name)? {
        arguments.check_simulated(name)?;
        let profile = plan::profile(profile)?;
        return Ok(Box::new(SimTarget::new(&profile, condition, depth, seed)?));
    }
    let options = RealOptions {
        writes,
        destroy_data: arguments.destroy_data.clone(),
        engine: arguments.engine.unwrap_or_default(),
        processor: arguments.cpu.unwrap_or_default(),
        depth,
        longest,
    };
    let target = real::open(name, &options)?;
    if !quiet {
        for note in target.notes() {
            eprintln!("note: {note}");
        }
    }
    Ok(Box::new(target))
}

/// Says what is going to be written to a real target, whatever else is to be left unsaid: it is the last chance to stop it.
pub fn announce(plan: &WritePlan<'_>) {
    if plan.target.kind != planewise_io::TargetKind::Simulated {
        eprintln!("{plan}");
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Failure {
        match error {
            TargetError::Simulation(error) => error.into(),
            TargetError::Unusable { .. } | TargetError::Refused { .. } => Failure::usage(error),
            TargetError::Failed { .. } => Failure::new(Kind::Run, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_queues_do_not_take_all_memory() {
        assert_eq!(longest(None, 64), LONGEST);
        assert_eq!(longest(Some(1 << 30), 1), LONGEST);
        assert_eq!(longest(Some(4096), 4096), Bytes(4096));
        assert_eq!(longest(None, 4096), Bytes(128 << 10));
        assert_eq!(longest(Some(512), 1), Bytes(4096));
        assert_eq!(longest(Some(12 << 10), 1), Bytes(16 << 10));
    }
}
