//! The engine of Planewise: a device model and a host stack as plain values.
//!
//! The crate is one engine with four drivers (docs/architecture.md). Policies are files of a folder each: host schedulers
//! in [`host_sched`], page allocation in [`alloc`], garbage collection in [`gc`], wear levelling in [`wear`], flash
//! scheduling in [`flash_sched`]; observers in [`observers`] watch and change nothing.
//!
//! Everything is deterministic: integer nanoseconds, ties in the order of scheduling, one named generator of random
//! numbers, no iteration over hash maps.

pub mod alloc;
mod cache;
mod config;
mod device;
pub mod drivers;
mod engine;
mod error;
mod event;
pub mod flash_sched;
mod ftl;
pub mod gc;
pub mod host;
pub mod host_sched;
pub mod kernel_parameters;
pub mod observers;
pub mod parameter;
pub mod results;
pub mod wear;

pub use config::{AdvancedUse, RunConfig, UnitLevel};
pub use engine::Simulator;
pub use error::SimError;
pub use ftl::{Condition, Space};
