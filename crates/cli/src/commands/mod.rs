//! One file per command.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod device;
pub mod man;
pub mod probe;
pub mod run;
pub mod scheduler;
mod simulate;
pub mod trace;
pub mod workload;
