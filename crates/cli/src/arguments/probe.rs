//! Options of `probe`.

use super::{DriveArguments, PlaceArgument};
use clap::Args;
use planewise_model::Bytes;
use planewise_sim::Condition;
use std::path::PathBuf;

/// `planewise probe`
///
/// Finds chunk size, interleaving degree, sub-domains, mapping policy, latencies, effective parallelism, read-ahead, write buffer,
/// interference and the onset of garbage collection, each with a statistic and a confidence, or says `undetermined` and why. A real target is only read
/// unless --destroy-data allows to overwrite it; what needs writes is left out then. An interrupted probe goes on with the same
/// command.
#[derive(Debug, Args)]
pub struct ProbeArguments {
    /// What to probe.
    #[command(flatten)]
    pub place: PlaceArgument,
    /// The short probe: fewer samples, no long curves, no regions, interference or collection; under 30 s on a real device
    #[arg(long, help_heading = "Probe")]
    pub quick: bool,
    /// Size of the area that is measured, a multiple of 1 MiB from 64 MiB on [default: 1g or 1/128 of the drive, with --quick 256m or 1/512, or what there is]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true, help_heading = "Probe")]
    pub area: Option<Bytes>,
    /// Where the area begins, a multiple of 1 MiB [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true, help_heading = "Probe")]
    pub start: Option<Bytes>,
    /// Operations under way at a time, at most [default: 64, and one for every 4 GiB of a drive larger than 256 GiB, up to 256]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(4..=4096), help_heading = "Probe")]
    pub depth: Option<u32>,
    /// Seed of all places, and of a simulated device
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = super::seed, default_value_t = planewise_model::rng::DEFAULT_SEED, help_heading = "Probe")]
    pub seed: u64,
    /// What a simulated device went through before: fresh, primed, filled, aged, aged:V/I/F [default: filled]
    #[arg(long, value_name = "CONDITION", help_heading = "Device")]
    pub condition: Option<Condition>,
    /// How to use a real target.
    #[command(flatten)]
    pub drive: DriveArguments,
    /// Directory of the probe; one that holds an unfinished probe of the same is continued [default: planewise-out/probe-TARGET-HASH]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Begin anew, whatever probe the directory holds
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Print probe.json instead of the table, and nothing else, on standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print what the kernel modules are to be told of the drive (kernel/README.md) instead of the table, and nothing else, on standard output: exit
    /// code 1 where its units are undetermined
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub kernel_parameters: bool,
    /// What each finding rests on, behind it: samples, standard errors, how much likelier than the next
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,
    /// Nothing on standard error but errors, and what is about to be written to a real target
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// A size as jobs have it: `256m`, `1g`.
fn size(text: &str) -> Result<Bytes, String> {
    planewise_workload::values::bytes(text).map(Bytes).map_err(|allowed| format!("allowed: {allowed}"))
}
