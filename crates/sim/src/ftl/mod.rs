//! Flash translation layer: where each logical page is, which physical pages hold valid data, which blocks are free.

pub mod condition;
mod mapping;
mod planes;

pub use condition::Condition;
pub(crate) use mapping::{Mapping, NONE};
pub(crate) use planes::Planes;
