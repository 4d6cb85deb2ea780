//! Why a drive cannot be served.

use planewise_guest::GuestError;
use planewise_sim::SimError;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a server; requests that go wrong are answered, and are none.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The backing file is not what it has to be.
    #[error("{}: found {found}; allowed: {allowed}", path.display())]
    Backing {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it may be.
        allowed: String,
    },
    /// An option cannot be.
    #[error("--{option}: found {found}; allowed: {allowed}")]
    Option {
        /// Which.
        option: &'static str,
        /// What was given.
        found: String,
        /// What may be.
        allowed: String,
    },
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The engine.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl ServeError {
    /// The error of a system call.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> ServeError {
        ServeError::System { what: what.into(), source: source.into() }
    }

    /// The error of a backing file.
    pub fn backing(path: &Path, found: impl Into<String>, allowed: impl Into<String>) -> ServeError {
        ServeError::Backing { path: path.to_owned(), found: found.into(), allowed: allowed.into() }
    }
}

impl From<GuestError> for ServeError {
    fn from(error: GuestError) -> ServeError {
        match error {
            GuestError::System { what, source } => ServeError::System { what, source },
            other => ServeError::system("the contents", io::Error::other(other)),
        }
    }
}
