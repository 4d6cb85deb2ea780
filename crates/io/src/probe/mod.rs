//! The probe: what is inside a device, found from outside (Chen et al. 2016, section 5, and beyond it).

pub mod chunk;
pub mod domains;
mod error;
pub mod finding;
pub mod instrument;
pub mod relation;
pub mod statistics;

pub use error::ProbeError;
pub use finding::{Curve, Finding};
pub use instrument::{Area, Instrument};
