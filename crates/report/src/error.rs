//! Why a run directory or a page could not be written.

use std::io;
use std::path::PathBuf;

/// Why a run directory or a page could not be written. Each prints as one line that names the path and the cause.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The directory holds an earlier run and overwriting was not allowed.
    #[error("{}: holds an earlier run; choose another directory, or replace it with --force", .0.display())]
    EarlierRun(PathBuf),
    /// The directory holds something other than a run: it is never replaced.
    #[error("{}: is not empty and not a run directory (no results.json of planewise in it); choose another directory (--force replaces run directories only)", .0.display())]
    NotARunDirectory(PathBuf),
    /// There is a file of that name.
    #[error("{}: is a file; name a directory", .0.display())]
    IsAFile(PathBuf),
    /// The path ends in no name (`/`, `.` or `..`), so that nothing can be renamed into its place.
    #[error("{}: names no directory of its own; name one to create, such as runs/first", .0.display())]
    NoName(PathBuf),
    /// An additional file has a name that is not a plain, new file name.
    #[error(
        "'{0}': not a name for an additional file; allowed: a plain file name other than config.toml, results.json, report.html"
    )]
    ExtraName(String),
    /// A figure could not be turned into pixels.
    #[error("cannot draw the picture: {0}")]
    Picture(String),
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// What was tried: `write`, `create the directory`, …
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}
