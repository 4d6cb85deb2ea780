//! Host schedulers: which queued request goes to the device next.
//!
//! One scheduler, one file, one line in [`SCHEDULERS`]. The interface mirrors the kernel's elevator operations, so that a
//! scheduler's kernel module is recognisably the same algorithm. A scheduler sees requests, the time, and whether the
//! device takes a command ([`Gate`]); it never sees where pages really are or what the flash is doing.

mod adios;
mod anticipatory;
mod batches;
mod bfq;
mod by_process;
mod cfq;
mod cost;
mod deadline;
mod elevator;
pub mod exercise;
mod fifo;
mod fios;
mod flashfq;
mod habits;
mod k2;
mod kyber;
// The example of CONTRIBUTING.md, compiled and run by its tests only.
#[cfg(test)]
mod lifo;
mod lineup;
mod list;
mod mq_deadline;
mod noop;
mod one_way;
mod pass;
mod piq;
mod piq_plus;
mod piq_plus_r;
mod piq_plus_w;
mod piq_r;
mod piq_w;
#[cfg(test)]
mod recipe_tests;
mod rws;
mod separated;
mod sorted;
pub(crate) mod taken_ahead;
pub(crate) mod tree;
mod tunables;
mod weave;

pub use tunables::{Tunable, TunableKind, TunableValues};

use crate::error::SimError;
use crate::host::{Gate, HostQueue, QueuedRequest, Side, Slot};
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::{Ns, Request, names};
use std::collections::BTreeMap;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Issue the request in this slot; the device takes it.
    Issue(Slot),
    /// Nothing now. Ask again when a request arrives or completes.
    Wait,
    /// Nothing now. Ask again at this time at the latest.
    WakeAt(Ns),
}

/// A host scheduler.
pub trait HostScheduler: Send {
    /// A request entered the queue.
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest);

    /// Whether a waiting request may grow by an adjacent one. Asked before every merge that the limits of the queue allow.
    fn allow_merge(&self, _growth: &Growth<'_>) -> bool {
        true
    }

    /// The waiting request in `slot` grew.
    fn merged(&mut self, _slot: Slot, _before: &QueuedRequest, _after: &QueuedRequest) {}

    /// The waiting request in `slot` became part of the one in `into`, which it turned out to be adjacent to; a call of
    /// [`HostScheduler::merged`] for that one follows.
    fn removed(&mut self, slot: Slot, request: &QueuedRequest, into: Slot);

    /// What to do now. Called until it issues nothing. A request issued must be one that `gate` accepts.
    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision;

    /// The command queue of the device is full, and requests wait. Told at every arrival and completion at which it is so.
    fn full(&mut self, _now: Ns, _queue: &HostQueue) {}

    /// Of the tags of a queue of `length`, how many at most a request of this kind may be given, 1 to `length` (`limit_depth`). Asked
    /// before today's block layer alone, where a request has its tag before it is inserted.
    fn depth_limit(&self, _request: &Request, length: u32) -> u32 {
        length
    }

    /// A request completed.
    fn completed(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}

    /// Counters for reports.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// What a reader of the results has to know of how it was set up: one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A merge about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Growth<'a> {
    /// The waiting request.
    pub slot: Slot,
    /// As it is.
    pub into: &'a QueuedRequest,
    /// On which side of it the other is.
    pub side: Side,
    /// The request that joins it.
    pub joining: &'a Request,
    /// Where that one waits already, when it is no newcomer.
    pub joining_slot: Option<Slot>,
    /// The pages of that request.
    pub added: PageRange,
    /// The pages of both together.
    pub union: PageRange,
}

/// Counter of write batches, and of those promoted before waiting reads: what `prioritized.write_batch_share` is made of.
pub(crate) const WRITE_BATCHES: &str = "write_batches";
/// See [`WRITE_BATCHES`].
pub(crate) const WRITE_BATCHES_PROMOTED: &str = "write_batches_promoted";

/// Counters of a scheduler by name, since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl<const N: usize> From<[(&str, u64); N]> for Counters {
    fn from(counters: [(&str, u64); N]) -> Counters {
        counters.into_iter().collect()
    }
}

impl<S: Into<String>> FromIterator<(S, u64)> for Counters {
    fn from_iter<I: IntoIterator<Item = (S, u64)>>(counters: I) -> Counters {
        Counters(counters.into_iter().map(|(name, count)| (name.into(), count)).collect())
    }
}

impl Counters {
    /// One counter, 0 when the scheduler does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Write batches that were promoted before waiting reads, and all write batches.
    pub fn write_batches(&self) -> (u64, u64) {
        (self.get(WRITE_BATCHES_PROMOTED), self.get(WRITE_BATCHES))
    }

    /// What was counted after `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        self.0.iter().map(|(name, count)| (name.clone(), count - earlier.get(name))).collect()
    }

    /// All of them.
    pub fn into_map(self) -> BTreeMap<String, u64> {
        self.0
    }
}

/// What a host knows when it sets up a scheduler. It may be wrong on purpose.
#[derive(Clone, Debug)]
pub struct HostKnowledge {
    /// Slots of the I/O queue.
    pub queue_length: u32,
    /// Parallel units and how pages are spread over them.
    pub units: UnitMap,
    /// Whether a write goes to the units that its addresses say; elsewhere under dynamic and write-order allocation.
    pub writes_stay: bool,
    /// Bytes of a flash page: what a request is rounded to.
    pub page_bytes: u32,
    /// Sectors of the device.
    pub capacity_sectors: u64,
}

/// Builds a scheduler for what the host knows, with its tunables.
pub type Build = fn(&HostKnowledge, &TunableValues) -> Result<Box<dyn HostScheduler>, SimError>;

/// One line of the table of schedulers.
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Its tunables.
    pub tunables: &'static [Tunable],
    /// Whether it goes by the parallel units that the host believes in.
    pub uses_units: bool,
    /// Builds it, or says which tunable does not go with the device.
    pub build: Build,
}

/// All schedulers: those of Linux, then those of the papers, then our own.
pub static SCHEDULERS: &[Entry] = &[
    noop::ENTRY,
    deadline::ENTRY,
    mq_deadline::ENTRY,
    kyber::ENTRY,
    bfq::ENTRY,
    adios::ENTRY,
    cfq::ENTRY,
    anticipatory::ENTRY,
    fios::ENTRY,
    flashfq::ENTRY,
    k2::ENTRY,
    rws::ENTRY,
    piq_r::ENTRY,
    piq_w::ENTRY,
    piq::ENTRY,
    piq_plus::ENTRY,
    piq_plus_r::ENTRY,
    piq_plus_w::ENTRY,
    pass::ENTRY,
    weave::ENTRY,
    #[cfg(test)]
    lifo::ENTRY,
];

/// Those of Linux 2.6.32, and PASS, which was a module of that kernel (PASS paper, section 3.6): behind them the block layer counts
/// requests by two pools.
pub const OF_LINUX_2_6_32: [&str; 4] = ["deadline", "cfq", "anticipatory", "pass"];

/// Those of today's kernel, whose block layer takes one request ahead of the device's tags ([`crate::host::BlockLayer::BlkMq`]) before
/// every device that has tags.
pub(crate) const OF_BLK_MQ: [&str; 3] = ["mq-deadline", "kyber", "bfq"];

/// Looks a scheduler up by name.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static Entry, SimError> {
    SCHEDULERS
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| names::unknown("scheduler", name, SCHEDULERS.iter().map(|entry| entry.name)).into())
}
