//! A run's configuration: the device, its condition, the host stack. Everything named is looked up in [`RunConfig::resolve`].

use crate::alloc::region;
use crate::drivers::pace::Pace;
use crate::error::SimError;
use crate::ftl::Condition;
use crate::host::{
    BlockLayer, CommandQueue, HostStack, Merging, Overlap, QueueCounts, RequestPools, StackConfig,
};
use crate::host_sched::{HostKnowledge, TunableValues};
use planewise_model::AllocationOrder;
use planewise_model::location::UnitMap;
use planewise_model::profile::{AdvancedCommands, Mapped, Profile};
use std::fmt;
use std::str::FromStr;

/// Granularity of parallel units: what the host scheduler reckons with, and the conflict metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitLevel {
    /// Chips. On a blocking interface the device runs one operation per chip, as in section V-B.1 of the TCAD paper.
    Chip,
    /// Planes, with the device's advanced commands (section V-B.2).
    Plane,
}

impl fmt::Display for UnitLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnitLevel::Chip => "chip",
            UnitLevel::Plane => "plane",
        })
    }
}

impl FromStr for UnitLevel {
    type Err = SimError;

    fn from_str(text: &str) -> Result<UnitLevel, SimError> {
        match text {
            "chip" => Ok(UnitLevel::Chip),
            "plane" => Ok(UnitLevel::Plane),
            _ => Err(SimError::Option {
                key: "level".into(),
                found: format!("'{text}'"),
                allowed: "chip, plane".into(),
            }),
        }
    }
}

/// Whether the device uses its advanced commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvancedUse {
    /// Off at chip level on a blocking interface (the papers' chip-level device), on otherwise.
    Auto,
    /// As far as the profile has them.
    On,
    /// Never.
    Off,
}

impl FromStr for AdvancedUse {
    type Err = SimError;

    fn from_str(text: &str) -> Result<AdvancedUse, SimError> {
        match text {
            "auto" => Ok(AdvancedUse::Auto),
            "on" => Ok(AdvancedUse::On),
            "off" => Ok(AdvancedUse::Off),
            _ => Err(SimError::Option {
                key: "advanced".into(),
                found: format!("'{text}'"),
                allowed: "auto, on, off".into(),
            }),
        }
    }
}

impl fmt::Display for AdvancedUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdvancedUse::Auto => "auto",
            AdvancedUse::On => "on",
            AdvancedUse::Off => "off",
        })
    }
}

/// Everything that determines a run, except its requests.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The device. Its policies and interface may be overridden below.
    pub profile: Profile,
    /// What the device has been through.
    pub condition: Condition,
    /// Host scheduler by name.
    pub scheduler: String,
    /// Tunables as `(name, value)`.
    pub tunables: Vec<(String, String)>,
    /// Granularity of the host's units.
    pub level: UnitLevel,
    /// Number of units that the host is told; the true one when [`None`].
    pub told_units: Option<u32>,
    /// Whether the device uses its advanced commands.
    pub advanced: AdvancedUse,
    /// Length of the host's I/O queue, 1 to 4096; of each pool, where there are two.
    pub queue_length: u32,
    /// How many pools its slots are counted by.
    pub request_pools: RequestPools,
    /// Which requests count in that length.
    pub queue_counts: QueueCounts,
    /// Which adjacent requests become one before they are scheduled.
    pub merging: Merging,
    /// Largest request that merging makes, KiB, 1 to 1,048,576 (Linux's `max_sectors_kb`).
    pub max_sectors_kb: u32,
    /// When the requests of a trace leave; workloads have a pace of their own.
    pub pace: Pace,
    /// What recorded times are multiplied by: gaps at the dependent pace. At the recorded pace the requests come with such times, and
    /// results only say so.
    pub scale_time: f64,
    /// What becomes of a request that overlaps an earlier unfinished one, of which one writes.
    pub overlap: Overlap,
    /// When a request leaves the scheduler.
    pub block_layer: BlockLayer,
    /// Seed of all randomness.
    pub seed: u64,
}

impl RunConfig {
    /// The defaults on a device: NOOP at chip level, a queue of 64, a filled device.
    pub fn new(profile: Profile) -> RunConfig {
        RunConfig {
            profile,
            condition: Condition::Filled,
            scheduler: "noop".into(),
            tunables: Vec::new(),
            level: UnitLevel::Chip,
            told_units: None,
            advanced: AdvancedUse::Auto,
            queue_length: 64,
            request_pools: RequestPools::Auto,
            queue_counts: QueueCounts::default(),
            merging: Merging::None,
            max_sectors_kb: 512,
            pace: Pace::Recorded,
            scale_time: 1.0,
            overlap: Overlap::Keep,
            block_layer: BlockLayer::Direct,
            seed: planewise_model::rng::DEFAULT_SEED,
        }
    }

    /// Looks up every name and checks every value.
    ///
    /// # Errors
    /// The first that is not allowed.
    pub(crate) fn resolve(&self) -> Result<Resolved, SimError> {
        let profile = self.profile.clone();
        profile.check().map_err(|(key, problem)| {
            let (found, allowed) =
                problem.split_once("; allowed: ").unwrap_or((&problem, "see the profile's schema"));
            SimError::Option { key: key.into(), found: found.replace("found ", ""), allowed: allowed.into() }
        })?;
        if let Some(units) = self.told_units
            && !(1..=65_536).contains(&units)
        {
            return Err(SimError::Option {
                key: "units".into(),
                found: units.to_string(),
                allowed: "1 to 65536".into(),
            });
        }
        let command_queue: CommandQueue = profile.interface.command_queue.parse()?;
        let advanced = match (self.advanced, self.level, command_queue) {
            (AdvancedUse::Off, ..) | (AdvancedUse::Auto, UnitLevel::Chip, CommandQueue::Blocking) => {
                AdvancedCommands {
                    copyback: profile.advanced_commands.copyback,
                    copyback_same_parity: profile.advanced_commands.copyback_same_parity,
                    ..AdvancedCommands::NONE
                }
            }
            _ => profile.advanced_commands,
        };
        let mapped = profile.mapped();
        let conflict_units = units(&mapped.profile, mapped.user_pages, self.level)?;
        let knowledge = self.host_knowledge()?;
        let stack = StackConfig {
            scheduler: self.scheduler.clone(),
            tunables: self.tunables.clone(),
            knowledge,
            conflict_units,
            merging: self.merging,
            max_sectors_kb: self.max_sectors_kb,
            overlap: self.overlap,
            block_layer: self.block_layer,
            command_queue,
            request_pools: self.request_pools,
            slots_apart: self.queue_counts.slots_apart(match command_queue {
                // Each request that a blocking device works on keeps at least one plane from all others.
                CommandQueue::Blocking => profile.geometry.planes(),
                CommandQueue::Ncq(depth) => depth,
            }),
        };
        Ok(Resolved { profile, advanced, tunables: stack.tunable_values()?, stack: HostStack::new(&stack)? })
    }

    /// What the host knows of the device: the truth, but for the number of units where it is told another.
    ///
    /// # Errors
    /// An allocation that the device cannot have.
    pub fn host_knowledge(&self) -> Result<HostKnowledge, SimError> {
        let Mapped { profile, user_pages, .. } = &self.profile.mapped();
        let geometry = &profile.geometry;
        Ok(HostKnowledge {
            queue_length: self.queue_length,
            units: match self.told_units {
                Some(units) => UnitMap::modulo(units).of_chunks(profile.translation.chunk_pages),
                None => units(profile, *user_pages, self.level)?,
            },
            writes_stay: profile.translation.allocation.parse::<AllocationOrder>().is_ok(),
            page_bytes: geometry.page_bytes,
            capacity_sectors: u64::from(*user_pages) * u64::from(geometry.sectors_per_page()),
        })
    }

    /// The scheduler's tunables with their values.
    ///
    /// # Errors
    /// As [`crate::Simulator::new`].
    pub fn tunable_values(&self) -> Result<TunableValues, SimError> {
        Ok(self.resolve()?.tunables)
    }
}

/// Units of the device as static allocation spreads pages over them; Channel-Chip-Die-Plane where allocation is not static.
fn units(profile: &Profile, user_pages: u32, level: UnitLevel) -> Result<UnitMap, SimError> {
    let (geometry, allocation) = (&profile.geometry, profile.translation.allocation.as_str());
    if let Some(gangs) = region::gangs(allocation, geometry, user_pages)? {
        return Ok(UnitMap::gangs(gangs, level == UnitLevel::Plane));
    }
    let chunk = profile.translation.chunk_pages;
    let order: AllocationOrder = allocation.parse().unwrap_or_default();
    let stripe = order.stripe(geometry);
    let (planes_per_unit, units) = match level {
        UnitLevel::Chip => (geometry.planes() / geometry.chips(), geometry.chips()),
        UnitLevel::Plane => (1, geometry.planes()),
    };
    if order == AllocationOrder::CWDP {
        // Units are numbered in the order in which pages visit them: page p is on unit p % units.
        return Ok(UnitMap::modulo(units).of_chunks(chunk));
    }
    Ok(UnitMap::striped(stripe.iter().map(|plane| plane / planes_per_unit).collect()).of_chunks(chunk))
}

/// A configuration with every name looked up.
pub(crate) struct Resolved {
    pub(crate) profile: Profile,
    pub(crate) stack: HostStack,
    pub(crate) tunables: TunableValues,
    pub(crate) advanced: AdvancedCommands,
}
