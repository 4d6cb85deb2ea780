//! The host stack in front of a target: its options, and what the host is told of a device that it cannot look into.

use crate::target::TargetInfo;
use planewise_model::location::UnitMap;
use planewise_sim::SimError;
use planewise_sim::host::{
    BlockLayer, CommandQueue, Merging, Overlap, QueueCounts, RequestPools, StackConfig,
};
use planewise_sim::host_sched::{self, HostKnowledge};

/// Page that a host reckons with when nobody tells it the device's, bytes: the block of file systems and databases.
pub const PAGE_BYTES_DEFAULT: u32 = 4096;

/// What the host is told of the device's parallel units.
#[derive(Clone, Debug)]
pub enum Units {
    /// Nothing: schedulers that go by units are refused.
    Unknown,
    /// That there are so many, 1 to 65,536, and page `p` is on unit `p % units`.
    Told(u32),
    /// What a profile says, one that was probed, for one: units, their order, whether writes stay on them.
    Profile(Box<HostKnowledge>),
}

/// Options of the host stack in front of a target.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Host scheduler by name.
    pub scheduler: String,
    /// Its tunables as `(name, value)`.
    pub tunables: Vec<(String, String)>,
    /// Length of the host's I/O queue, 1 to 4096; of each pool, where there are two.
    pub queue_length: u32,
    /// How many pools its slots are counted by.
    pub request_pools: RequestPools,
    /// Which requests count in that length.
    pub queue_counts: QueueCounts,
    /// Which adjacent requests become one before they are scheduled.
    pub merging: Merging,
    /// Largest request that merging makes, KiB, 1 to 1,048,576.
    pub max_sectors_kb: u32,
    /// What becomes of a request that overlaps an earlier unfinished one, of which one writes.
    pub overlap: Overlap,
    /// When a request leaves the scheduler.
    pub block_layer: BlockLayer,
    /// What the host is told of parallel units.
    pub units: Units,
    /// Bytes of a page, a multiple of 512; what the profile says when [`None`], or else 4096.
    pub page_bytes: Option<u32>,
    /// Granularity of the units for labels: `chip`, `plane`, or `unit` when only their number is known.
    pub level: String,
    /// What the target has been through, for labels.
    pub condition: String,
    /// Seed, for labels: the target and the workload have drawn from it.
    pub seed: u64,
}

impl HostOptions {
    /// NOOP before a queue of 64, nothing known.
    pub fn new() -> HostOptions {
        HostOptions {
            scheduler: "noop".into(),
            tunables: Vec::new(),
            queue_length: 64,
            request_pools: RequestPools::Auto,
            queue_counts: QueueCounts::default(),
            merging: Merging::None,
            max_sectors_kb: 512,
            overlap: Overlap::Keep,
            block_layer: BlockLayer::Direct,
            units: Units::Unknown,
            page_bytes: None,
            level: "unit".into(),
            condition: "as found".into(),
            seed: planewise_model::rng::DEFAULT_SEED,
        }
    }

    /// Number of units that the host believes in, when it does.
    pub fn known_units(&self) -> Option<u32> {
        match &self.units {
            Units::Unknown => None,
            Units::Told(units) => Some(*units),
            Units::Profile(knowledge) => Some(knowledge.units.units()),
        }
    }

    /// Bytes of a page as the host believes in it.
    pub fn page_bytes(&self) -> u32 {
        match &self.units {
            Units::Profile(knowledge) => self.page_bytes.unwrap_or(knowledge.page_bytes),
            _ => self.page_bytes.unwrap_or(PAGE_BYTES_DEFAULT),
        }
    }

    /// The host stack before a target.
    ///
    /// # Errors
    /// A scheduler that is unknown, one that goes by units when there are none, a number out of range.
    pub fn stack(&self, target: &TargetInfo) -> Result<StackConfig, SimError> {
        let option = |key: &str, found: String, allowed: &str| SimError::Option {
            key: key.into(),
            found,
            allowed: allowed.into(),
        };
        let scheduler = host_sched::find(&self.scheduler)?;
        if scheduler.uses_units && self.known_units().is_none() {
            return Err(option(
                "units",
                format!("none with scheduler {}, which goes by them", scheduler.name),
                "the number of the device's parallel units",
            ));
        }
        if let Units::Told(units) = self.units
            && !(1..=65_536).contains(&units)
        {
            return Err(option("units", units.to_string(), "1 to 65536"));
        }
        let page_bytes = self.page_bytes();
        if !(512..=1 << 20).contains(&page_bytes) || !page_bytes.is_multiple_of(512) {
            return Err(option("page-bytes", page_bytes.to_string(), "multiples of 512 from 512 to 1048576"));
        }
        let (units, writes_stay) = match &self.units {
            // Without any to tell apart, all requests are on the one unit there is.
            Units::Unknown => (UnitMap::modulo(1), true),
            Units::Told(units) => (UnitMap::modulo(*units), true),
            Units::Profile(knowledge) => (knowledge.units.clone(), knowledge.writes_stay),
        };
        Ok(StackConfig {
            scheduler: self.scheduler.clone(),
            tunables: self.tunables.clone(),
            conflict_units: units.clone(),
            knowledge: HostKnowledge {
                queue_length: self.queue_length,
                units,
                writes_stay,
                page_bytes,
                capacity_sectors: target.sectors(),
            },
            merging: self.merging,
            max_sectors_kb: self.max_sectors_kb,
            overlap: self.overlap,
            block_layer: self.block_layer,
            command_queue: CommandQueue::Ncq(target.depth),
            request_pools: self.request_pools,
            slots_apart: self.queue_counts.slots_apart(target.depth),
        })
    }
}

impl Default for HostOptions {
    fn default() -> HostOptions {
        HostOptions::new()
    }
}
