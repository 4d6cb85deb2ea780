//! Who owns time: drivers of the engine.

pub mod closed_loop;
pub mod replay;
