//! One file per command.

pub mod bench;
mod bench_real;
pub mod compare;
pub mod completions;
pub mod device;
mod experiment;
pub mod linux;
pub mod man;
mod measured;
pub mod probe;
pub mod replay;
pub mod reproduce;
pub mod run;
pub mod scheduler;
#[cfg(feature = "serve")]
pub mod serve;
mod simulate;
pub mod trace;
pub mod workload;
