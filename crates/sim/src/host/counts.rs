//! What the length of the I/O queue bounds.

use crate::error::SimError;
use std::fmt;
use std::str::FromStr;

/// Which requests take a place of the I/O queue. The PIQ paper gives its queue a length and does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QueueCounts {
    /// Those that wait and those that are outstanding, as tags do in a kernel.
    #[default]
    Outstanding,
    /// Only those that wait. With a length of 1 there is nothing to choose from, and every scheduler that does not hold
    /// requests back is NOOP.
    Waiting,
}

impl QueueCounts {
    /// Slots that outstanding requests take beside the queue's length, in front of a device that takes so many at a time.
    pub fn slots_apart(self, device_depth: u32) -> u32 {
        match self {
            QueueCounts::Outstanding => 0,
            QueueCounts::Waiting => device_depth,
        }
    }
}

impl fmt::Display for QueueCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueCounts::Outstanding => "outstanding",
            QueueCounts::Waiting => "waiting",
        })
    }
}

impl FromStr for QueueCounts {
    type Err = SimError;

    fn from_str(text: &str) -> Result<QueueCounts, SimError> {
        match text {
            "outstanding" => Ok(QueueCounts::Outstanding),
            "waiting" => Ok(QueueCounts::Waiting),
            _ => Err(SimError::Option {
                key: "queue-counts".into(),
                found: format!("'{text}'"),
                allowed: "outstanding, waiting".into(),
            }),
        }
    }
}
