//! What can go wrong between a source of requests and a target.

use crate::target::TargetError;
use planewise_model::Lsn;
use planewise_sim::SimError;

/// An error of a run on a target.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The target failed or refused.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The host stack or the source of requests failed.
    #[error(transparent)]
    Host(#[from] SimError),
    /// A request that is not made of whole blocks.
    #[error(
        "request {number} covers sectors {start}..{end}, which are no whole blocks of {block_bytes} bytes of {target}", start = .start.0
    )]
    Misaligned {
        /// The target.
        target: String,
        /// Number of the request in the run, from 1.
        number: u64,
        /// First sector.
        start: Lsn,
        /// One past the last sector.
        end: u64,
        /// Unit of the target's addresses and lengths.
        block_bytes: u32,
    },
    /// A write or a discard to a target that was opened for reading.
    #[error(
        "request {number} writes at sector {start}, but {target} was opened for reading", start = .start.0
    )]
    ReadOnly {
        /// The target.
        target: String,
        /// Number of the request in the run, from 1.
        number: u64,
        /// First sector.
        start: Lsn,
    },
}
