//! Options of `compare` and `run`.

use super::ReadArguments;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `planewise compare`
///
/// Options that take a list are combined, each value with each: for every queue length, command queue, collection
/// scheme, allocation and level, one run per scheduler. The first run is the baseline of the ratios.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Host schedulers (see `planewise scheduler list`); the first is the baseline
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "noop,rws,piq_r,piq_w,piq,piq+",
        help_heading = "Schemes",
        alias = "scheduler"
    )]
    pub schedulers: Vec<String>,
    /// Granularity of the parallel units that schedulers reckon with: chip, plane
    #[arg(
        long,
        value_name = "LEVELS",
        value_delimiter = ',',
        default_value = "chip",
        help_heading = "Schemes"
    )]
    pub level: Vec<String>,
    /// Page allocation: cwdp or another order of c, w, d, p; dynamic; write-order [default: the device's]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Schemes")]
    pub allocation: Vec<String>,
    /// Garbage collection scheme [default: the device's]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Schemes")]
    pub gc: Vec<String>,
    /// How the device takes commands: blocking, or ncq:D with a depth D of 1 to 65536 [default: the device's]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', help_heading = "Schemes")]
    pub command_queue: Vec<String>,
    /// Slots of the host's I/O queue, 1 to 4096; arrivals beyond them wait outside
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_delimiter = ',', value_parser = super::slots, default_value = "64", help_heading = "Schemes")]
    pub queue: Vec<u32>,
    /// Everything that `run` has too.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// `planewise run`
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Host scheduler (see `planewise scheduler list`)
    #[arg(long, value_name = "NAME", default_value = "noop", help_heading = "Schemes", alias = "schedulers")]
    pub scheduler: String,
    /// Granularity of the parallel units that the scheduler reckons with: chip, plane
    #[arg(long, value_name = "LEVEL", default_value = "chip", help_heading = "Schemes")]
    pub level: String,
    /// Page allocation: cwdp or another order of c, w, d, p; dynamic; write-order [default: the device's]
    #[arg(long, value_name = "NAME", help_heading = "Schemes")]
    pub allocation: Option<String>,
    /// Garbage collection scheme [default: the device's]
    #[arg(long, value_name = "NAME", help_heading = "Schemes")]
    pub gc: Option<String>,
    /// How the device takes commands: blocking, or ncq:D with a depth D of 1 to 65536 [default: the device's]
    #[arg(long, value_name = "KIND", help_heading = "Schemes")]
    pub command_queue: Option<String>,
    /// Slots of the host's I/O queue, 1 to 4096; arrivals beyond them wait outside
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::slots, default_value = "64", help_heading = "Schemes")]
    pub queue: u32,
    /// Everything that `compare` has too.
    #[command(flatten)]
    pub simulation: SimulationArguments,
    /// Write the flash operations as trace events for the Perfetto viewer (the first 2 million)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub timeline: Option<PathBuf>,
}

/// What `compare` and `run` share.
#[derive(Debug, Args)]
pub struct SimulationArguments {
    /// A trace file; a synthetic volume (see `planewise trace volumes`); or pgbench, the trace inside the program
    #[arg(long, value_name = "FILE|NAME", default_value = "pgbench", help_heading = "Trace")]
    pub trace: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArguments,
    /// Read at most this many requests; synthetic volumes have this many [default: all; 1000000 of synthetic volumes]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Trace")]
    pub requests: Option<u64>,
    /// Requests at the beginning that are simulated but not measured
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 0,
        help_heading = "Trace"
    )]
    pub warmup: u64,
    /// Fold addresses past the end of the device back to its beginning instead of refusing them
    #[arg(long, help_heading = "Trace")]
    pub wrap: bool,
    /// Multiply all arrival times: 0.5 makes a trace twice as fast
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, value_parser = super::factor, help_heading = "Trace")]
    pub scale_time: Option<f64>,
    /// Device profile by name (see `planewise device list`) or TOML file
    #[arg(long, value_name = "PROFILE|FILE", default_value = "piq-128g", help_heading = "Device")]
    pub device: String,
    /// What the device has been through: fresh (never written), filled (every page written once), aged (84 % valid,
    /// 10 % invalid, 6 % free), or aged:VALID/INVALID/FREE in percent
    #[arg(long, value_name = "CONDITION", default_value = "filled", help_heading = "Device")]
    pub condition: String,
    /// Multi-plane, die-interleave and copyback commands: on as far as the profile has them, off, or auto (off at chip
    /// level on a blocking interface, on otherwise)
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Device")]
    pub advanced: String,
    /// Which waiting transaction a free die takes: fcfs, read-first, out-of-order [default: the device's]
    #[arg(long, value_name = "NAME", help_heading = "Device")]
    pub flash_scheduler: Option<String>,
    /// Wear levelling: none, dynamic [default: the device's]
    #[arg(long, value_name = "NAME", help_heading = "Device")]
    pub wear: Option<String>,
    /// A tunable of a scheduler (see `planewise scheduler show`); without a scheduler's name, of all that have it
    #[arg(long, value_name = "[SCHEDULER.]NAME=VALUE", value_delimiter = ',', help_heading = "Schemes")]
    pub tunable: Vec<String>,
    /// Number of parallel units that schedulers are told, 1 to 65536; may be wrong on purpose [default: the true number]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Schemes")]
    pub units: Option<u32>,
    /// Seed of all randomness: same seed, same bytes
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = super::seed, default_value_t = planewise_model::rng::DEFAULT_SEED, help_heading = "Trace")]
    pub seed: u64,
    /// Check the invariants of the model as it runs (slower): exit code 3 when one is violated
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Write every request with its times to requests.parquet in the run directory
    #[arg(long, help_heading = "Output")]
    pub request_log: bool,
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
    /// Nothing on standard error but errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}
