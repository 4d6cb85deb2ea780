//! The family of trace formats: one file each, one line in [`FORMATS`] each.
//!
//! A format's file holds a `pub static FORMAT: Format`, its reader, where the format can be written its writer, and its
//! tests. Parsers work on bytes, allocate nothing per record, accept CRLF and a missing newline at the end, and never
//! panic on any input: every surprise is a [`TraceError`] with file, line (or byte), what was found and what is allowed.

pub mod blkparse;
pub mod blktrace;
mod block_events;
pub mod ftrace;
pub mod iolog;
pub mod parquet;
mod random_access;
#[cfg(test)]
mod testing;
mod tokens;
pub mod vscsi;

use crate::error::TraceError;
use crate::input::Input;
use planewise_model::Request;
use std::io::Write;
use std::path::Path;

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
    /// Looks at the first bytes (uncompressed, up to 64 KiB; `whole` when that is the whole file).
    pub detect: fn(head: &[u8], whole: bool) -> Certainty,
    /// Opens a reader.
    pub open: OpenReader,
    /// Opens a writer, where the format can be written.
    pub create: Option<OpenWriter>,
}

/// All formats, in the order in which help lists them.
pub static FORMATS: &[&Format] = &[
    &vscsi::FORMAT,
    &blkparse::FORMAT,
    &blktrace::FORMAT,
    &iolog::FORMAT,
    &ftrace::FORMAT,
    &parquet::FORMAT,
];
