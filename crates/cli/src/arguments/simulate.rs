//! Options of `compare` and `run`, and those that `bench` shares with them.

use super::{PartArguments, ReadArguments};
use crate::axes::Given;
use crate::record::RecordAt;
use clap::Args;
use planewise_sim::drivers::replay::PowerCut;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `planewise compare`
///
/// Options that take a list (`<NAME,..>`) are combined, each value with each: one run for every combination. Schedulers
/// vary fastest, then level, allocation, gc, victims, buffer-pages, gc-threshold, separate, wear, flash-scheduler,
/// merging, command-queue, queue, condition, pace, and seed slowest. The first run is the baseline of the ratios. When an option of the
/// device has several values and no schedulers are given, only noop runs.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// What runs differ in.
    #[command(flatten)]
    pub axes: Given<true>,
    /// Everything that `run` has too.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// `planewise run`
#[derive(Debug, Args)]
pub struct RunArguments {
    /// What `compare` varies.
    #[command(flatten)]
    pub axes: Given<false>,
    /// Everything that `compare` has too.
    #[command(flatten)]
    pub simulation: SimulationArguments,
    /// Cut the power at a time of the model, which begins with the trace (12.5s, 300ms, 10min), or when N requests have
    /// arrived (after:N); then flush the buffer, rebuild the map from flash and compare: exit code 3 when a page is lost
    #[arg(long, value_name = "TIME|after:N", allow_negative_numbers = true, value_parser = super::power_cut, help_heading = "Device")]
    pub power_cut: Option<PowerCut>,
    /// Write the flash operations as trace events for the Perfetto viewer (the first 2 million); .gz and .zst compress
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub timeline: Option<PathBuf>,
    /// Only what happens between two times of the model: 10s..10.5s, 2min.. or ..300ms
    #[arg(long, value_name = "FROM..TO", value_parser = super::window, requires = "timeline", help_heading = "Output")]
    pub timeline_window: Option<(planewise_model::Ns, planewise_model::Ns)>,
}

/// What `compare` and `run` share.
#[derive(Debug, Args)]
pub struct SimulationArguments {
    /// A trace file, - for standard input; a synthetic volume (see `planewise trace volumes`); or pgbench, the trace inside the program
    #[arg(long, value_name = "FILE|NAME", default_value = "pgbench", help_heading = "Trace")]
    pub trace: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArguments,
    /// How much of it, and how fast.
    #[command(flatten)]
    pub part: PartArguments,
    /// Fold addresses past the end of the device back to its beginning instead of refusing them
    #[arg(long, help_heading = "Trace")]
    pub wrap: bool,
    /// Device profile by name (see `planewise device list`) or TOML file; behind it changes of its keys:
    /// gc-128g:geometry.channels=8,interface.command_queue=ncq:16 [default: piq-128g, with a command queue of ncq:32 in the place of its
    /// blocking interface]
    #[arg(long, value_name = "PROFILE|FILE", help_heading = "Device")]
    pub device: Option<String>,
    /// What `bench` has too.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// What all commands that simulate share.
#[derive(Debug, Args)]
pub struct CommonArguments {
    /// A tunable of a scheduler (see `planewise scheduler show`); without a scheduler's name, of all that have it
    #[arg(long, value_name = "[SCHEDULER.]NAME=VALUE", value_delimiter = ',', help_heading = "Schemes")]
    pub tunable: Vec<String>,
    /// Check the invariants of the model as it runs (slower): exit code 3 when one is violated
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Write every request with its times to requests.parquet in the run directory
    #[arg(long, help_heading = "Output")]
    pub request_log: bool,
    /// Write the block trace as it was issued to the device (or, with --record-at queue, as it arrived), as Parquet that
    /// --trace reads; of several runs each to a file of its own, whose name ends in what the run differs in
    #[arg(long, value_name = "FILE.parquet", value_parser = crate::record::parquet_path, help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// Where requests are recorded
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "device",
        requires = "record",
        help_heading = "Output"
    )]
    pub record_at: RecordAt,
    /// Where the output goes.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Runs at the same time; results do not depend on it [default: one per core, as far as memory reaches]
    #[arg(long, value_name = "N", value_parser = super::at_least_one, allow_negative_numbers = true, help_heading = "Output")]
    pub jobs: Option<NonZeroUsize>,
}

/// Where the output goes.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Run directory: must not exist or be empty [default: planewise-out/COMMAND-TRACE-DEVICE-HASH, replaced when it is there]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace the run directory when it holds an earlier run
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Print results.json instead of the table, and nothing else, on standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Nothing on standard error but errors, and what is about to be written to a real target
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}
