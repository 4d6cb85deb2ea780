//! Flash translation layer: where each logical page is, which physical pages hold valid data, which blocks are free.

pub mod condition;
mod mapping;
mod planes;

pub use condition::Condition;

/// Pages of a device by what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Current data.
    pub valid: u64,
    /// Stale data.
    pub invalid: u64,
    /// Nothing: can be programmed.
    pub free: u64,
}

pub(crate) use mapping::{Mapping, NONE, Spread};
pub(crate) use planes::{CacheBlocks, PlanePolicies, Planes, Stream};
