//! Who owns time: drivers of the engine.

pub mod closed_loop;
mod measure;
pub mod pace;
pub mod processes;
pub mod replay;
mod watch;
