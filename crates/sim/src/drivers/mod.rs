//! Who owns time: drivers of the engine.

pub mod closed_loop;
pub mod measure;
pub mod pace;
pub mod processes;
pub mod replay;
pub mod stepped;
mod watch;
