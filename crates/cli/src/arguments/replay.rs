//! Options of `replay`.

use super::{CommonArguments, DriveArguments, PartArguments, PlaceArgument, ReadArguments};
use crate::axes::Given;
use clap::{Args, ValueEnum};
use planewise_model::Ns;

/// What becomes of commands of a trace that move no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sends {
    /// They go to the target.
    Send,
    /// They are left out, and counted.
    Skip,
}

impl Sends {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sends::Send => "send",
            Sends::Skip => "skip",
        }
    }
}

/// `planewise replay`
///
/// Replays a trace on a simulated device, a block device or a file, behind a host stack of this program: its I/O queue, merging and
/// any of its schedulers. Requests are issued at the recorded times, or at another --pace; how late each was issued is measured, and a
/// run that was late too often is marked as not faithful. Options that take a list (`<NAME,..>`) are combined, each value with each: one run after another
/// on the same target.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// A trace file; a synthetic volume (see `planewise trace volumes`); or pgbench, the trace inside the program
    #[arg(value_name = "TRACE")]
    pub trace: String,
    /// What to replay it on.
    #[command(flatten)]
    pub place: PlaceArgument,
    /// How to read the trace.
    #[command(flatten)]
    pub read: ReadArguments,
    /// How much of it, and how fast.
    #[command(flatten)]
    pub part: PartArguments,
    /// Fold addresses past the end of the target back to its beginning instead of refusing them; what then reaches past its end is
    /// cut off there
    #[arg(long, help_heading = "Trace")]
    pub wrap: bool,
    /// Widen requests to whole blocks of the target instead of refusing those that are not
    #[arg(long, help_heading = "Trace")]
    pub align: bool,
    /// Leave writes out, and with them flushes and discards
    #[arg(long, help_heading = "Trace", conflicts_with_all = ["flushes", "discards"])]
    pub reads_only: bool,
    /// Whether flushes of the trace are sent, and writes as kept once acknowledged that were recorded so (forced unit access)
    #[arg(
        long,
        value_name = "send|skip",
        default_value = "send",
        hide_possible_values = true,
        help_heading = "Trace"
    )]
    pub flushes: Sends,
    /// Whether discards of the trace are sent [default: send to a simulated target, skip before a real one, where --discards send
    /// needs --destroy-data]
    #[arg(long, value_name = "send|skip", hide_possible_values = true, help_heading = "Trace")]
    pub discards: Option<Sends>,
    /// Lateness that 99 % of requests must not exceed for a replay to count as faithful, such as 200us
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = super::time, default_value = "1ms", help_heading = "Trace")]
    pub lateness_bound: Ns,
    /// Profile of which the host knows units, their order and the page size, such as one that was probed; nothing of it is simulated
    #[arg(long, value_name = "PROFILE|FILE", help_heading = "Device")]
    pub device: Option<String>,
    /// Page that the host reckons with, bytes: a multiple of 512 [default: that of --device, or else 4096]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, help_heading = "Device")]
    pub page_bytes: Option<u32>,
    /// How to use a real target.
    #[command(flatten)]
    pub drive: DriveArguments,
    /// What runs differ in.
    #[command(flatten)]
    pub axes: Given<true>,
    /// What all commands that simulate have.
    #[command(flatten)]
    pub common: CommonArguments,
}
