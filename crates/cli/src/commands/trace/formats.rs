//! `planewise trace formats`: what is read and written.

use crate::failure::Failure;
use crate::output;
use planewise_trace::formats::FORMATS;

/// Lists the formats.
///
/// # Errors
/// Standard output cannot be written.
pub fn execute() -> Result<(), Failure> {
    let width = FORMATS.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for format in FORMATS {
        let use_ = if format.create.is_some() { "read, write" } else { "read" };
        let unit = if format.time_unit_open { "; needs --time-unit" } else { "" };
        let done = if format.completions { "; completions" } else { "" };
        text += &format!("{:<width$}  {use_:<11}  {}{unit}{done}\n", format.name, format.description);
    }
    text += "\nFormats with completions can say when requests completed: what --pace dependent goes by.\n";
    text +=
        "Plain, gzip and zstd files are told apart by their content, and so are formats where it decides.\n";
    output::print(&text)
}
