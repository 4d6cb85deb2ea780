//! `planewise trace` and how traces are read everywhere.

use clap::{Args, Subcommand};
use planewise_trace::formats::TimeUnit;
use std::path::PathBuf;

/// How to read a trace: only what its content does not say for certain has to be given.
#[derive(Clone, Debug, Default, Args)]
pub struct ReadArguments {
    /// Format of the trace (see `planewise trace formats`) [default: detected]
    #[arg(long, value_name = "FORMAT", help_heading = "Reading")]
    pub format: Option<String>,
    /// Unit of the trace's time stamps, where its format leaves it open: ns, us, ms, s
    #[arg(long, value_name = "UNIT", value_parser = super::time_unit, help_heading = "Reading")]
    pub time_unit: Option<TimeUnit>,
    /// Event that makes a request, in logs of several events per request: Q, D, C; issue, insert, complete
    #[arg(long, value_name = "EVENT", help_heading = "Reading")]
    pub event: Option<String>,
    /// Take the requests of one volume (disk, ASU, LUN), by number or name [default: all]
    #[arg(long, value_name = "VOLUME", help_heading = "Reading")]
    pub volume: Option<String>,
    /// How many of its predecessors a request may belong before; out-of-order time stamps within are sorted, others are errors [default: 65536]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Reading")]
    pub sort_window: Option<usize>,
    /// Requests of one stamp arrive evenly within so much time: for traces whose clock has steps of it [default step: 1s]
    #[arg(
        long,
        value_name = "STEP",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = super::step,
        help_heading = "Reading"
    )]
    pub spread_arrivals: Option<planewise_model::Ns>,
    /// Directory of downloaded volumes: --trace hm_0 then finds hm_0.csv, hm_0.csv.gz or hm_0.csv.zst in it
    #[arg(long, value_name = "DIR", help_heading = "Reading")]
    pub trace_dir: Option<PathBuf>,
}

/// How much of a trace to use, and how fast.
#[derive(Clone, Debug, Args)]
pub struct PartArguments {
    /// Read at most this many requests; synthetic volumes have this many [default: all; 1000000 of synthetic volumes]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::requests, help_heading = "Trace")]
    pub requests: Option<u64>,
    /// Requests at the beginning that are served but not measured
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 0,
        help_heading = "Trace"
    )]
    pub warmup: u64,
    /// Multiply all arrival times: 0.5 makes a trace twice as fast
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true, value_parser = super::factor, help_heading = "Trace")]
    pub scale_time: Option<f64>,
}

/// `planewise trace …`
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Statistics of a trace: sizes, write ratio, working set, sequential share, bursts
    Info(InfoArguments),
    /// Write a trace in another format
    Convert(ConvertArguments),
    /// Keep a part of a trace: by time, by number of request, by address; the first request kept arrives at 0
    Cut(CutArguments),
    /// Multiply the arrival times of a trace by a factor
    ScaleTime(ScaleTimeArguments),
    /// Write a synthetic trace with the statistics of a published volume
    Synth(SynthArguments),
    /// List the formats that are read and written
    Formats,
    /// List the volumes of a trace with what each was asked for; without one, the synthetic volumes
    Volumes(VolumesArguments),
}

/// A trace to read.
#[derive(Debug, Args)]
pub struct TraceArguments {
    /// A trace file, - for standard input, or a name as --trace of `planewise run` takes it
    #[arg(value_name = "FILE|NAME")]
    pub trace: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArguments,
    /// Read at most this many requests; synthetic volumes have this many [default: all; 1000000 of synthetic volumes]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::requests, help_heading = "Reading")]
    pub requests: Option<u64>,
    /// Seed of synthetic volumes
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = super::seed, default_value_t = planewise_model::rng::DEFAULT_SEED, help_heading = "Reading")]
    pub seed: u64,
    /// Nothing on standard error but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// A trace to write.
#[derive(Debug, Args)]
pub struct TargetArguments {
    /// File to write; .gz and .zst compress
    #[arg(value_name = "OUTPUT")]
    pub target: PathBuf,
    /// Format to write (see `planewise trace formats`) [default: by the extension, where that is certain; else the input's]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Replace the file when it exists
    #[arg(long)]
    pub force: bool,
}

/// `planewise trace volumes`
#[derive(Debug, Args)]
pub struct VolumesArguments {
    /// A trace file [default: the volumes that this program makes]
    #[arg(value_name = "FILE")]
    pub trace: Option<String>,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArguments,
    /// Nothing on standard error but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// `planewise trace info`
#[derive(Debug, Args)]
pub struct InfoArguments {
    /// What to read.
    #[command(flatten)]
    pub trace: TraceArguments,
    /// Page size for the working set and updates, bytes: a multiple of 512
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, default_value_t = 4096)]
    pub page_bytes: u32,
    /// One JSON document instead of the table
    #[arg(long)]
    pub json: bool,
}

/// `planewise trace convert`
#[derive(Debug, Args)]
pub struct ConvertArguments {
    /// What to read.
    #[command(flatten)]
    pub trace: TraceArguments,
    /// What to write.
    #[command(flatten)]
    pub target: TargetArguments,
}

/// `planewise trace cut`
#[derive(Debug, Args)]
pub struct CutArguments {
    /// What to read.
    #[command(flatten)]
    pub trace: TraceArguments,
    /// What to write.
    #[command(flatten)]
    pub target: TargetArguments,
    /// Keep arrivals from this time on, seconds since the trace's start
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds, help_heading = "Part")]
    pub from: Option<planewise_model::Ns>,
    /// Keep arrivals before this time, seconds since the trace's start
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds, help_heading = "Part")]
    pub until: Option<planewise_model::Ns>,
    /// Leave out this many requests at the beginning
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Part")]
    pub skip: Option<u64>,
    /// Keep at most this many requests after that
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Part")]
    pub take: Option<u64>,
    /// Keep what lies at this sector (of 512 bytes) or behind it; requests across the border are cut off there
    #[arg(long, value_name = "SECTOR", allow_negative_numbers = true, help_heading = "Part")]
    pub first_sector: Option<u64>,
    /// Keep what lies before this sector (of 512 bytes); requests across the border are cut off there
    #[arg(long, value_name = "SECTOR", allow_negative_numbers = true, help_heading = "Part")]
    pub end_sector: Option<u64>,
}

/// `planewise trace scale-time`
#[derive(Debug, Args)]
pub struct ScaleTimeArguments {
    /// What to multiply arrival times by: 0.5 makes the trace twice as fast
    #[arg(value_parser = super::factor, allow_negative_numbers = true)]
    pub factor: f64,
    /// What to read.
    #[command(flatten)]
    pub trace: TraceArguments,
    /// What to write.
    #[command(flatten)]
    pub target: TargetArguments,
}

/// `planewise trace synth`
#[derive(Debug, Args)]
pub struct SynthArguments {
    /// A volume (see `planewise trace volumes`), or a TOML file that describes one
    #[arg(value_name = "NAME|FILE.toml")]
    pub volume: String,
    /// Requests to make
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,
    /// Seed: same seed, same bytes
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = super::seed, default_value_t = planewise_model::rng::DEFAULT_SEED)]
    pub seed: u64,
    /// File to write; .gz and .zst compress
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Format to write [default: by the extension, where that is certain; else msr]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Replace the file when it exists
    #[arg(long)]
    pub force: bool,
    /// Nothing on standard error but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Seconds with up to nine digits behind the point, exactly.
fn seconds(text: &str) -> Result<planewise_model::Ns, String> {
    // A bare number is seconds; with a unit it is a time as everywhere.
    let exact = if text.ends_with(|last: char| last.is_ascii_digit()) {
        decimal(text, 9)
    } else {
        super::time(text).ok().map(|time| time.0)
    };
    exact.filter(|ns| *ns <= 1_000_000_000 * 1_000_000_000).map(planewise_model::Ns).ok_or_else(
        || "allowed: seconds from 0 to 1000000000, with up to 9 digits behind the point, or a time with its unit such as 10min".to_owned(),
    )
}

/// A decimal number times ten to the power of `digits`, exactly; none when it has more digits behind the point, or is no
/// plain number, or too large.
pub(super) fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || text.ends_with('.') || part.len() > digits || !plain(whole) || !plain(part) {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}
