//! What can be wrong with a trace, in words a user can act on.

use std::path::{Path, PathBuf};

/// Where in a trace something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The file as a whole.
    File,
    /// A line of a text format, from 1.
    Line(u64),
    /// A byte offset in a binary format, counted in the uncompressed stream.
    Byte(u64),
}

/// An error of a trace file: names the file, the place, what was found and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The content is not what the format allows.
    #[error("{}{}: {found}; allowed: {allowed}", .file.display(), place(.position))]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Where in it.
        position: Position,
        /// What was found there.
        found: String,
        /// What the format allows.
        allowed: String,
    },
    /// The format or the time unit cannot be told from the content with certainty.
    #[error("{}: {reason}; {remedy}", .file.display())]
    Ambiguous {
        /// The file.
        file: PathBuf,
        /// What fits and why that does not decide it.
        reason: String,
        /// The option to give, with an example.
        remedy: String,
    },
    /// An option given by name is unknown.
    #[error(transparent)]
    UnknownName(#[from] planewise_model::names::UnknownName),
    /// Reading, decompressing or writing failed.
    #[error("{}: {source}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system or the decompressor said.
        source: std::io::Error,
    },
}

fn place(position: &Position) -> String {
    match position {
        Position::File => String::new(),
        Position::Line(line) => format!(":{line}"),
        Position::Byte(byte) => format!(": byte {byte}"),
    }
}

impl TraceError {
    /// Content that the format does not allow.
    pub fn malformed(
        file: &Path,
        position: Position,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> TraceError {
        TraceError::Malformed {
            file: file.to_owned(),
            position,
            found: found.into(),
            allowed: allowed.into(),
        }
    }

    /// A failure of the system underneath.
    pub fn io(file: &Path, source: std::io::Error) -> TraceError {
        TraceError::Io { file: file.to_owned(), source }
    }
}
