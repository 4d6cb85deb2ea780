//! Measuring devices from outside, the same way whether they are simulated or real.
//!
//! A [`Target`] takes reads and writes and tells when they completed: a simulated device in model time, or a block device or a
//! file against the clock. Whatever measures devices is written against it, so that it can be tried on devices whose inside is
//! known before it is let loose on one whose inside is not.
//!
//! * [`drivers`]: traces and workloads on a target, behind a host stack.
//! * [`experiments`]: those of a paper, as steps on a target.
//! * [`plan`]: what is said before the first write.
//! * [`probe`]: what is inside a device, found from outside.
//! * [`target`]: what a target is, and the kinds of it.

pub mod drivers;
pub mod experiments;
pub mod plan;
pub mod probe;
pub mod target;

pub use target::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
