//! What formats with one record a line share: the loop over lines, headers, detection and writing.

use super::tokens::{Unexpected, quote};
use super::{Certainty, ReadOptions, Reader, Writer};
use crate::error::{Position, TraceError};
use crate::input::Input;
use crate::text::{Wrong, is_header, sector_range, wrong};
use planewise_model::{Request, SECTOR_BYTES};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes written at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// How a format lays out a request in a line.
pub(crate) trait Layout: Send + Sized + 'static {
    /// The column names that a first line may hold; empty where the format has no header.
    const HEADER: &'static [&'static str];

    /// A parser that follows the user's options.
    fn new(options: &ReadOptions) -> Self;

    /// The request in a line; `None` for a record that is deliberately left out. Must leave `self` as it is when it fails.
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong>;

    /// How sure it is that a line that parses is of this format and no other.
    fn certainty(line: &[u8]) -> Certainty;

    /// See [`Reader::volume_names`].
    fn volume_names(&self) -> &[String] {
        &[]
    }

    /// See [`Reader::warnings`].
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Lines that detection looks at. Errors further down are better told by the reader, with the line's number.
const DETECTION_LINES: usize = 3;

/// Whether the first lines are of a layout.
pub(crate) fn detect<L: Layout>(head: &[u8], whole: bool) -> Certainty {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // The head may end inside a line.
    let head = if whole { head } else { &head[..head.iter().rposition(|byte| *byte == b'\n').unwrap_or(0)] };
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut lines = lines.filter(|line| !line.trim_ascii().is_empty()).take(DETECTION_LINES).peekable();
    if lines.peek().is_some_and(|line| is_header(line, L::HEADER)) {
        return Certainty::Certain;
    }
    let mut layout = L::new(&ReadOptions::default());
    let mut fit = |line| if layout.parse(line).is_ok() { L::certainty(line) } else { Certainty::No };
    let Some(first) = lines.next().map(&mut fit) else { return Certainty::No };
    // One line that no other format could have decides; one that is not of this format rules it out.
    lines.fold(first, |sum, line| match (sum, fit(line)) {
        (Certainty::No, _) | (_, Certainty::No) => Certainty::No,
        (sum, next) => sum.max(next),
    })
}

/// Opens a reader of a layout.
pub(crate) fn open<L: Layout>(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    Ok(Box::new(LineReader { input, layout: L::new(options), line: 0, header_line: 0 }))
}

struct LineReader<L> {
    input: Input,
    layout: L,
    /// Line of the request appended last; 0 before the first.
    line: u64,
    /// Line of the header; 0 while there is none.
    header_line: u64,
}

impl<L: Layout> LineReader<L> {
    /// Whether a line that does not parse may be passed over: it is empty, or the header before the first request.
    #[cold]
    fn accept(&mut self, line: &[u8], wrong: Unexpected) -> Result<(), TraceError> {
        let number = self.input.line_number();
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let is_first = self.line == 0 && self.header_line == 0;
        if is_first && is_header(line, L::HEADER) {
            self.header_line = number;
            return Ok(());
        }
        let starts_as_text = line.trim_ascii().first().is_some_and(u8::is_ascii_alphabetic);
        let (found, allowed) = if is_first && starts_as_text && !L::HEADER.is_empty() {
            (
                format!("first line '{}'", quote(line)),
                format!("a request, or the header '{}'", L::HEADER.join(",")),
            )
        } else {
            (wrong.found, wrong.allowed.to_owned())
        };
        Err(TraceError::malformed(self.input.path(), Position::Line(number), found, allowed))
    }
}

impl<L: Layout> Reader for LineReader<L> {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < limit {
            let Some(line) = self.input.next_line()? else { break };
            match self.layout.parse(line) {
                Ok(Some(request)) => {
                    batch.push(request);
                    count += 1;
                    self.line = self.input.line_number();
                }
                Ok(None) => {}
                Err(wrong) => {
                    let line = line.to_vec();
                    self.accept(&line, *wrong)?;
                }
            }
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        if self.line == 0 { Position::File } else { Position::Line(self.line) }
    }

    fn volume_names(&self) -> &[String] {
        self.layout.volume_names()
    }

    fn warnings(&self) -> Vec<String> {
        self.layout.warnings()
    }
}

/// Writes a request as a line, its end included, or says why the format cannot hold it.
pub(crate) type Put = fn(&mut dyn Write, &Request) -> Result<(), PutError>;

/// Why a request was not written.
pub(crate) enum PutError {
    /// The format cannot hold it.
    Refused(Wrong),
    /// Writing failed.
    Io(io::Error),
}

impl From<Wrong> for PutError {
    fn from(wrong: Wrong) -> PutError {
        PutError::Refused(wrong)
    }
}

impl From<io::Error> for PutError {
    fn from(error: io::Error) -> PutError {
        PutError::Io(error)
    }
}

/// A request's offset and length in bytes.
///
/// # Errors
/// It is empty, or lies past what 64 bits can address in bytes.
pub(crate) fn byte_range(request: &Request) -> Result<(u64, u64), Wrong> {
    sector_range(request.start.0, u64::from(request.sectors))?;
    Ok((request.start.0 * SECTOR_BYTES, request.bytes().0))
}

/// Opens a writer that begins with `header` (its line end included; empty for none).
pub(crate) fn create(
    sink: Box<dyn Write + Send>,
    path: &Path,
    header: fmt::Arguments<'_>,
    put: Put,
) -> Result<Box<dyn Writer>, TraceError> {
    Ok(Box::new(LineWriter::new(sink, path, header, put)?))
}

/// The same for a format without a column for the volume: requests of a second one are refused.
pub(crate) fn create_single(
    sink: Box<dyn Write + Send>,
    path: &Path,
    header: fmt::Arguments<'_>,
    put: Put,
) -> Result<Box<dyn Writer>, TraceError> {
    Ok(Box::new(LineWriter { is_single: true, ..LineWriter::new(sink, path, header, put)? }))
}

struct LineWriter {
    sink: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    put: Put,
    requests: u64,
    is_single: bool,
    volume: Option<u32>,
}

impl LineWriter {
    fn new(
        sink: Box<dyn Write + Send>,
        path: &Path,
        header: fmt::Arguments<'_>,
        put: Put,
    ) -> Result<LineWriter, TraceError> {
        // Lines are short: without a buffer each would be a call to the system.
        let mut sink = BufWriter::with_capacity(BUFFER_BYTES, sink);
        sink.write_fmt(header).map_err(|source| TraceError::io(path, source))?;
        Ok(LineWriter { sink, path: path.to_owned(), put, requests: 0, is_single: false, volume: None })
    }

    fn check_volume(&mut self, request: &Request) -> Result<(), Wrong> {
        if self.is_single && *self.volume.get_or_insert(request.volume) != request.volume {
            let allowed = "one volume, as the format has no column for it; choose one with --volume";
            return Err(wrong("volume", request.volume.to_string().as_bytes(), allowed));
        }
        Ok(())
    }
}

impl Writer for LineWriter {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        self.requests += 1;
        let result = self.check_volume(request).map_err(PutError::from);
        result.and_then(|()| (self.put)(&mut self.sink, request)).map_err(|error| match error {
            PutError::Refused(wrong) => {
                let found = format!("request {}: {}", self.requests, wrong.found);
                TraceError::malformed(&self.path, Position::File, found, wrong.allowed)
            }
            PutError::Io(source) => TraceError::io(&self.path, source),
        })
    }

    fn finish(mut self: Box<Self>) -> Result<(), TraceError> {
        self.sink.flush().map_err(|source| TraceError::io(&self.path, source))
    }
}
