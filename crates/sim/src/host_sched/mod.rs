//! Host schedulers: which queued request goes to the device next.
//!
//! One scheduler, one file, one line in [`SCHEDULERS`]. The interface mirrors the kernel's elevator operations, so that a
//! scheduler's kernel module is recognisably the same algorithm. A scheduler sees requests, the time, and whether the
//! device takes a command ([`Gate`]); it never sees where pages really are or what the flash is doing.

mod batches;
mod fifo;
mod noop;
mod piq;
mod piq_plus;
mod piq_r;
mod piq_w;
mod rws;
mod separated;
mod tunables;

pub use tunables::{Tunable, TunableKind, TunableValues};

use crate::error::SimError;
use crate::host::{Gate, HostQueue, QueuedRequest, Slot};
use planewise_model::location::UnitMap;
use planewise_model::{Ns, Request, names};

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

    /// A waiting request that `request` should be merged into, when it is adjacent in front or behind and the scheduler
    /// merges. Called before [`HostScheduler::insert`], which does not happen then; [`HostScheduler::merged`] does.
    fn merge_into(&self, _request: &Request, _queue: &HostQueue) -> Option<Slot> {
        None
    }

    /// The waiting request in `slot` grew.
    fn merged(&mut self, _slot: Slot, _before: &QueuedRequest, _after: &QueuedRequest) {}

    /// What to do now. Called until it issues nothing. A request issued must be one that `gate` accepts.
    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision;

    /// A request completed.
    fn completed(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}

    /// Counters for reports.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// Counters of a scheduler, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read batches opened.
    pub read_batches: u64,
    /// Write batches opened.
    pub write_batches: u64,
    /// Write batches promoted before waiting reads.
    pub write_batches_promoted: u64,
    /// Requests that joined a batch another had opened.
    pub joined: u64,
}

impl Counters {
    /// What was counted after `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            read_batches: self.read_batches - earlier.read_batches,
            write_batches: self.write_batches - earlier.write_batches,
            write_batches_promoted: self.write_batches_promoted - earlier.write_batches_promoted,
            joined: self.joined - earlier.joined,
        }
    }
}

/// What a host knows when it sets up a scheduler. It may be wrong on purpose.
#[derive(Clone, Debug)]
pub struct HostKnowledge {
    /// Slots of the I/O queue.
    pub queue_length: u32,
    /// Parallel units and how pages are spread over them.
    pub units: UnitMap,
}

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
    /// Builds it.
    pub build: fn(&HostKnowledge, &TunableValues) -> Box<dyn HostScheduler>,
}

/// All schedulers, in the order of the TCAD paper.
pub static SCHEDULERS: &[Entry] =
    &[noop::ENTRY, rws::ENTRY, piq_r::ENTRY, piq_w::ENTRY, piq::ENTRY, piq_plus::ENTRY];

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
