//! From the name of a target to the open target: `sim:PROFILE`, `raid0:MEMBERSxCHUNK:PROFILE`, or the path of a block device or a file.

use crate::arguments::DriveArguments;
use crate::failure::{Failure, Kind};
use crate::plan;
use planewise_io::plan::WritePlan;
use planewise_io::target::SimTarget;
use planewise_io::target::raid0::{Layout, Raid0Target};
use planewise_io::target::real::{self, RealOptions};
use planewise_io::{Target, TargetError};
use planewise_model::{Bytes, Profile, names};
use planewise_sim::Condition;
use planewise_sim::host::CommandQueue;
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
    /// Whether it writes or discards.
    pub writes: bool,
    /// Whether it discards.
    pub discards: bool,
    /// Operations under way at a time.
    pub depth: u32,
    /// Longest operation; simulated targets have their own limit.
    pub longest: Bytes,
    /// What a simulated device went through before.
    pub condition: Condition,
    /// Seed of a simulated device.
    pub seed: u64,
}

/// What a name says of a simulated target.
pub struct Simulated {
    /// The device, or each of an array.
    pub profile: Profile,
    /// How an array is laid over its members; none for a single device.
    pub layout: Option<Layout>,
}

impl Simulated {
    /// Bytes that can be addressed.
    ///
    /// # Errors
    /// An array's chunk is larger than a member.
    pub fn capacity(&self, name: &str) -> Result<Bytes, Failure> {
        let of_member = self.profile.user_capacity();
        let capacity = self.layout.map_or(Ok(of_member), |layout| layout.capacity(of_member));
        capacity.map_err(|problem| Failure::usage(format!("{name}: {problem}")))
    }

    /// What results say of the device: its profile as TOML, and what an array is made of as a comment.
    pub fn described(&self, name: &str) -> String {
        let array = self.layout.map_or(String::new(), |layout| {
            format!("# {name}: a RAID-0 of {}, chunks of {}; each is:\n", layout.members(), layout.chunk())
        });
        array + &self.profile.to_toml()
    }

    /// What a user who gives the host a command queue should know of the device's own.
    pub fn note(&self, name: &str) -> Option<String> {
        let blocks = self.profile.interface.command_queue == CommandQueue::Blocking.to_string();
        blocks.then(|| {
            format!(
                "{name} has a blocking interface inside: no command enters a busy chip, whatever --command-queue lets the host \
                 issue; {name}{}interface.command_queue=ncq:32 takes 32",
                if name.matches(':').count() > usize::from(self.layout.is_some()) + 1 { "," } else { ":" }
            )
        })
    }
}

/// What a simulated target is: none for a real one.
///
/// # Errors
/// A word that is neither: nothing of the kind before it, and nothing at such a path; a profile or a layout that is wrong.
pub fn simulated(name: &str) -> Result<Option<Simulated>, Failure> {
    if let Some(profile) = name.strip_prefix("sim:").filter(|profile| !profile.is_empty()) {
        return Ok(Some(Simulated { profile: plan::profile(profile)?, layout: None }));
    }
    if let Some(array) = name.strip_prefix(ARRAY) {
        let (layout, profile) =
            array.split_once(':').filter(|(_, profile)| !profile.is_empty()).ok_or_else(|| {
                Failure::usage(format!(
                    "--target: found '{name}'; allowed: {ARRAY_FORM}, such as raid0:4x32k:ssd-s"
                ))
            })?;
        let layout: Layout =
            layout.parse().map_err(|problem| Failure::usage(format!("{name}: {problem}")))?;
        let array = Simulated { profile: plan::profile(profile)?, layout: Some(layout) };
        array.capacity(name)?;
        return Ok(Some(array));
    }
    if name.contains('/') || Path::new(name).exists() {
        return Ok(None);
    }
    let hint = meant(name).map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    let problem = match name {
        "" => "found an empty name of a target".to_owned(),
        "sim:" => "found sim: without a profile".to_owned(),
        name => format!("{name}: there is no such device or file{hint}"),
    };
    Err(Failure::usage(format!(
        "{problem}; allowed: sim:PROFILE, such as sim:ssd-s (see `planewise device list`), {ARRAY_FORM}, or the path of a block device or a file"
    )))
}

/// What begins the name of an array.
pub const ARRAY: &str = "raid0:";
const ARRAY_FORM: &str = "raid0:MEMBERSxCHUNK:PROFILE";

/// The target that was likely meant.
fn meant(name: &str) -> Option<String> {
    let (word, rest) = name.split_once(':').unwrap_or((name, ""));
    if let Some(kind) = names::nearest(word, ["sim", "raid0"]).filter(|_| !rest.is_empty()) {
        return Some(format!("{kind}:{rest}"));
    }
    let known = planewise_model::profile::EMBEDDED.iter().map(|(known, _)| *known);
    names::nearest(word, known).map(|nearest| format!("sim:{nearest}"))
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
    let Wanted { writes, discards, depth, longest, condition, seed } = wanted;
    if let Some(Simulated { profile, layout }) = simulated(name)? {
        arguments.check_simulated(name)?;
        return Ok(match layout {
            Some(layout) => Box::new(Raid0Target::new(name, layout, &profile, condition, depth, seed)?),
            None => Box::new(SimTarget::new(&profile, condition, depth, seed)?),
        });
    }
    let options = RealOptions {
        writes,
        discards,
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
