//! What can go wrong between a kernel and its drive.

use planewise_model::Ns;
use planewise_sim::SimError;
use std::io;

/// An error of a run.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A socket, the memory, or the contents.
    #[error("{what}: {source}")]
    System {
        /// What was done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The kernel said something that the protocol does not allow.
    #[error("{protocol}: found {found}; allowed: {allowed}")]
    Protocol {
        /// Which of the two protocols.
        protocol: &'static str,
        /// What came.
        found: String,
        /// What may come.
        allowed: String,
    },
    /// The kernel went past the time at which the drive had something for it.
    #[error("causality: the kernel is at {kernel} when the drive's next event is at {device}, after {now}")]
    Causality {
        /// The kernel's time.
        kernel: Ns,
        /// The drive's next event.
        device: Ns,
        /// The time that both had agreed on.
        now: Ns,
    },
    /// The kernel sleeps for ever, and the drive has nothing for it.
    #[error("at {now} the kernel waits for nothing that has a time, and the drive has nothing to complete")]
    Deadlock {
        /// When.
        now: Ns,
    },
    /// The kernel ended, or was ended, before its work was done.
    #[error("{what}{}", after(.log))]
    Ended {
        /// Why.
        what: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// The drive, or what is on it, is not as it must be.
    #[error("invariant violated on drive {drive}: {violation}")]
    Invariant {
        /// Number of the drive.
        drive: usize,
        /// Which, and where.
        violation: String,
    },
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The engine.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

fn after(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; the last of the kernel's log:\n{log}") }
}

impl GuestError {
    /// The error of a system call.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> GuestError {
        GuestError::System { what: what.into(), source: source.into() }
    }

    /// The error of a message.
    pub fn protocol(
        protocol: &'static str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> GuestError {
        GuestError::Protocol { protocol, found: found.into(), allowed: allowed.into() }
    }
}
