//! What can go wrong with a target.

use super::Operation;
use planewise_model::{self as model, Direction, SECTOR_BYTES};
use planewise_sim::SimError;
use std::fmt;

/// An error of a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// An operation that the target cannot take.
    #[error("{target}: {} is refused: {problem}", Described(.operation))]
    Refused {
        /// The target.
        target: String,
        /// What was asked for.
        operation: Operation,
        /// Why, and what is allowed.
        problem: String,
    },
    /// An operation that failed.
    #[error("{target}: {} failed: {problem}", Described(.operation))]
    Failed {
        /// The target.
        target: String,
        /// What was asked for.
        operation: Operation,
        /// The system's word for it, and what it means here.
        problem: String,
    },
    /// The target cannot be opened or used at all.
    #[error("{target}: {problem}")]
    Unusable {
        /// The target.
        target: String,
        /// Why, and what is allowed.
        problem: String,
    },
    /// The simulated device failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// An operation in words.
struct Described<'a>(&'a Operation);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { command, direction, start, sectors, .. } = self.0;
        let what = match (command, direction) {
            (model::Operation::Flush | model::Operation::FlushWithMetadata, _) => {
                return f.write_str("a flush");
            }
            (model::Operation::Discard, _) => "discard",
            (model::Operation::Transfer, Direction::Read) => "read",
            (model::Operation::Transfer, Direction::Write) => "write",
        };
        write!(f, "a {what} of {} bytes at sector {}", u64::from(*sectors) * SECTOR_BYTES, start.0)
    }
}
