//! The probe: what is inside a device, found from outside (Chen et al. 2016, section 5, and beyond it).
//!
//! One stage, one file. Stages run in the order of [`run`], each with what the earlier ones found, and leave their findings with the
//! curves behind them.

pub mod array;
mod bus;
pub mod chunk;
pub mod collection;
pub mod controller;
pub mod domains;
mod edges;
mod error;
pub mod expected;
pub mod file;
pub mod finding;
mod findings;
pub mod flush;
mod held;
pub mod instrument;
pub mod interference;
pub mod latency;
pub mod mapping;
mod options;
pub mod page;
mod page_types;
pub mod pairs;
pub mod parallelism;
pub mod prepare;
pub mod profile;
mod program;
pub mod queue;
pub mod read_ahead;
pub mod regions;
pub mod relation;
mod rivals;
mod stages;
pub mod statistics;
mod steps;
pub mod units;
pub mod write_buffer;

pub use error::ProbeError;
pub use expected::{Expected, expected};
pub use file::ProbeFile;
pub use finding::{Curve, Finding};
pub use findings::{FORMAT, Findings, Stage, Subject};
pub use instrument::{Area, Instrument};
pub use options::{LEAST_AREA, Options, depth_for, options_for, subject};
pub use profile::{Probed, profile};
pub use stages::{Entry, STAGES, run, wanted};
