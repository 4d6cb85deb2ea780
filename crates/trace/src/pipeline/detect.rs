//! Telling the format from the first bytes.

use crate::error::{Position, TraceError};
use crate::formats::tokens::quote;
use crate::formats::{Certainty, FORMATS, Format, ReadOptions, TimeUnit, blktrace};
use crate::input::Input;
use planewise_model::Request;
use std::path::Path;

/// Bytes shown to the formats.
const HEAD_BYTES: usize = 64 * 1024;

/// The only format of which a trace is several files.
pub(super) static OF_FOLDERS: &Format = &blktrace::FORMAT;

/// The one format that an input can be.
///
/// # Errors
/// None fits, or several do; the error names them and the option to give.
pub(super) fn detect(input: &mut Input) -> Result<&'static Format, TraceError> {
    if input.is_folder() {
        return Ok(OF_FOLDERS);
    }
    let path = input.path().to_owned();
    let head = input.peek(HEAD_BYTES + 1)?;
    let whole = head.len() <= HEAD_BYTES;
    let head = &head[..head.len().min(HEAD_BYTES)];
    if head.is_empty() {
        return Err(TraceError::malformed(
            &path,
            Position::File,
            "an empty file",
            "a trace with at least one request",
        ));
    }
    let of =
        |certainty| FORMATS.iter().copied().filter(move |format| (format.detect)(head, whole) == certainty);
    let certain: Vec<_> = of(Certainty::Certain).collect();
    let fitting = if certain.is_empty() { of(Certainty::Possible).collect() } else { certain };
    let names = || fitting.iter().map(|format| format.name).collect::<Vec<_>>();
    match fitting[..] {
        [format] => Ok(format),
        [] => {
            if let Some(error) = first_misfit(&path, head, whole) {
                return Err(error);
            }
            let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
            let known = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
            let found = format!("no known format; it begins '{}'", quote(first));
            let allowed = format!("{known}; what one of them misses is told with --format NAME");
            Err(TraceError::malformed(&path, Position::File, found, allowed))
        }
        _ => {
            let example = fitting[0];
            let unit = if example.time_unit_open { " --time-unit ns" } else { "" };
            Err(TraceError::Ambiguous {
                file: path,
                reason: format!("the content fits the formats {}", names().join(", ")),
                remedy: format!("name the one it is, e.g. --format {}{unit}", example.name),
            })
        }
    }
}

/// A text that begins as a format and then leaves it: the error of the format's own reader, which names the line.
///
/// Of several formats that the first line fits, the one that reads furthest is the one meant. Nothing when no format
/// fits the first line, or when a reader objects to nothing in what is there.
fn first_misfit(path: &Path, head: &[u8], whole: bool) -> Option<TraceError> {
    let line_end = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
    let first = &head[..line_end(head)?];
    // The last line of a head is not all there, unless the file ends with it.
    let lines = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if !whole => &head[..=end],
        _ => head,
    };
    let begins = FORMATS.iter().filter(|format| (format.detect)(first, false) != Certainty::No);
    begins
        .filter_map(|format| misfit(format, path, lines))
        .max_by_key(|(line, _)| *line)
        .map(|(_, error)| error)
}

/// The first line that a format's reader does not allow.
fn misfit(format: &Format, path: &Path, lines: &[u8]) -> Option<(u64, TraceError)> {
    // The unit changes no line's form; where it is open, any does.
    let options = ReadOptions {
        time_unit: format.time_unit_open.then_some(TimeUnit::Nanoseconds),
        ..ReadOptions::default()
    };
    let mut requests: Vec<Request> = Vec::new();
    let read = (format.open)(Input::from_bytes(path, lines.to_vec()), &options)
        .and_then(|mut reader| while_any(|| reader.read(&mut requests, 4096)));
    match read {
        Err(TraceError::Malformed { file, position: Position::Line(line), found, allowed }) if line > 1 => {
            let allowed = format!("{allowed} (the lines before are of format {})", format.name);
            Some((line, TraceError::Malformed { file, position: Position::Line(line), found, allowed }))
        }
        _ => None,
    }
}

/// Repeats a step until it does nothing.
fn while_any(mut step: impl FnMut() -> Result<usize, TraceError>) -> Result<(), TraceError> {
    while step()? > 0 {}
    Ok(())
}
