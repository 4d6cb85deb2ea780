//! Telling the format from the first bytes.

use crate::error::{Position, TraceError};
use crate::formats::tokens::quote;
use crate::formats::{Certainty, FORMATS, Format, blktrace};
use crate::input::Input;

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
