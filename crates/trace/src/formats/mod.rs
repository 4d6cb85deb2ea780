//! The family of trace formats: one file each, one line in [`FORMATS`] each.
//!
//! A format's file holds a `pub static FORMAT: Format`, its reader, where the format can be written its writer, and its
//! tests. Parsers work on bytes, allocate nothing per record, accept CRLF and a missing newline at the end, and never
//! panic on any input: every surprise is a [`TraceError`] with file, line (or byte), what was found and what is allowed.

pub mod alibaba;
pub mod blkparse;
pub mod blktrace;
mod block_events;
pub mod cloudphysics;
pub mod disksim;
mod event_log;
pub mod ftrace;
pub mod iolog;
mod lines;
pub mod mqsim;
pub mod msr;
pub mod parquet;
mod random_access;
pub mod spc;
pub mod ssdsim;
pub mod systor;
pub mod tencent;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tokens;
pub mod vscsi;

use crate::error::TraceError;
use crate::input::Input;
use planewise_model::Request;
use planewise_model::names::{self, UnknownName};
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

/// The unit of the time stamps of formats that leave it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// The names that `--time-unit` takes, from short to long.
    pub const NAMES: [&'static str; 4] = ["ns", "us", "ms", "s"];

    /// One unit in nanoseconds.
    pub const fn nanoseconds(self) -> u64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<TimeUnit, UnknownName> {
        match name {
            "ns" => Ok(TimeUnit::Nanoseconds),
            "us" => Ok(TimeUnit::Microseconds),
            "ms" => Ok(TimeUnit::Milliseconds),
            "s" => Ok(TimeUnit::Seconds),
            _ => Err(names::unknown("time unit", name, TimeUnit::NAMES)),
        }
    }
}

/// How sure a format is that bytes are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Cannot be this format.
    No,
    /// Fits, but so may another format: the user is asked, unless it is the only one that fits and its meaning is fixed.
    Possible,
    /// A magic number, a header line or a shape that no other format shares.
    Certain,
}

/// What a user may tell a reader.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Unit of the time stamps, where the format leaves it open (or the file lies about it).
    pub time_unit: Option<TimeUnit>,
    /// The event that makes a request in formats that log several per request (blktrace, blkparse, ftrace):
    /// e.g. `Q`, `D`, `C` or `issue`, `complete`. Default: the format's own, documented in its file.
    pub event: Option<String>,
}

/// A stream of requests with **absolute** times in nanoseconds, in file order, before filtering, sorting and rebasing.
///
/// `volume` is the disk, ASU or LUN as the file numbers it (or numbered in order of first appearance where the file
/// uses names: [`Reader::volume_names`]).
pub trait Reader: Send {
    /// Appends up to `limit` requests to `batch`. Returns how many; 0 means the end of the trace.
    ///
    /// # Errors
    /// The first record that the format does not allow. Requests appended before it stay valid.
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError>;

    /// Where the most recently appended request stands, for errors found later in the pipeline.
    fn position(&self) -> crate::error::Position;

    /// Names of the volumes by number, where the format uses names; empty otherwise.
    fn volume_names(&self) -> &[String] {
        &[]
    }

    /// What the user should know about the trace read so far, one line each: requests that are missing, records left out.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A sink of requests.
pub trait Writer {
    /// Writes one request. Times are relative to the start of the trace; formats that need an absolute clock add a fixed epoch.
    ///
    /// # Errors
    /// When the request cannot be said in the format, or writing fails.
    fn write(&mut self, request: &Request) -> Result<(), TraceError>;

    /// Writes what comes last and flushes.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(self: Box<Self>) -> Result<(), TraceError>;
}

/// Opens a reader of one format over an input.
pub type OpenReader = fn(Input, &ReadOptions) -> Result<Box<dyn Reader>, TraceError>;
/// Opens a writer of one format over a sink; the path is for messages.
pub type OpenWriter = fn(Box<dyn Write + Send>, &Path) -> Result<Box<dyn Writer>, TraceError>;

/// One trace format.
pub struct Format {
    /// The name given to `--format`: lower case, hyphens.
    pub name: &'static str,
    /// One line for `--help`: what it is, and its columns.
    pub description: &'static str,
    /// Whether the stamps' unit must be asked for (`--time-unit`) because files of this format disagree about it.
    pub time_unit_open: bool,
    /// Whether its files can say when requests completed ([`Request::response`]), which the dependent pace of a replay goes by.
    pub completions: bool,
    /// Whether its writer takes flushes and discards.
    pub commands: bool,
    /// Whether its writer keeps what the acknowledgement of a write promises ([`Request::durability`]).
    pub durability: bool,
    /// Looks at the first bytes (uncompressed, up to 64 KiB; `whole` when that is the whole file).
    pub detect: fn(head: &[u8], whole: bool) -> Certainty,
    /// Opens a reader.
    pub open: OpenReader,
    /// Opens a writer, where the format can be written.
    pub create: Option<OpenWriter>,
}

/// All formats, in the order in which help lists them.
pub static FORMATS: &[&Format] = &[
    &msr::FORMAT,
    &spc::FORMAT,
    &ssdsim::FORMAT,
    &mqsim::FORMAT,
    &disksim::FORMAT,
    &cloudphysics::FORMAT,
    &systor::FORMAT,
    &tencent::FORMAT,
    &alibaba::FORMAT,
    &vscsi::FORMAT,
    &blkparse::FORMAT,
    &blktrace::FORMAT,
    &iolog::FORMAT,
    &ftrace::FORMAT,
    &parquet::FORMAT,
];

/// The format of a name.
///
/// # Errors
/// There is none of that name; the error offers the nearest.
pub fn by_name(name: &str) -> Result<&'static Format, UnknownName> {
    let known = FORMATS.iter().map(|format| format.name);
    let format = FORMATS.iter().copied().find(|format| format.name == name);
    format.ok_or_else(|| names::unknown("trace format", name, known))
}

/// All requests in bytes of one format, as its reader gives them: absolute times, file order, the format's own options.
/// Keeps everything in memory, which suits tests and fuzzing; [`crate::pipeline::Trace`] streams.
///
/// # Errors
/// The first record that the format does not allow.
pub fn parse_all(format: &Format, bytes: &[u8]) -> Result<Vec<Request>, TraceError> {
    let mut reader = (format.open)(Input::from_bytes("bytes", bytes.to_vec()), &ReadOptions::default())?;
    let mut requests = Vec::new();
    while reader.read(&mut requests, 4096)? > 0 {}
    Ok(requests)
}
