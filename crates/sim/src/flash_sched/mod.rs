//! Flash scheduling inside the controller: which waiting transaction a free die takes, and how far it looks for partners
//! of a multi-plane operation.
//!
//! | policy | takes | partners |
//! |---|---|---|
//! | `fcfs` | the oldest | only directly behind it |
//! | `read-first` | the oldest read, else the oldest write | any of its direction |
//! | `out-of-order` | the direction with the larger multi-plane group at its head, else the oldest | any of its direction |

use crate::error::SimError;
use planewise_model::{Direction, names};

/// What a free executor has to choose from. Sequence numbers rise with the order of arrival at the device.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Sequence of the oldest waiting read.
    pub oldest_read: Option<u64>,
    /// Sequence of the oldest waiting write.
    pub oldest_write: Option<u64>,
    /// Planes waited for by reads and by writes (distinct planes near the head of each list).
    pub planes: [u32; 2],
}

/// One flash scheduling policy.
pub struct Policy {
    /// Name in profiles.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Picks a direction; called only when something waits.
    pub choose: fn(&Waiting) -> Direction,
    /// Whether partners of a multi-plane operation may be taken from behind transactions that do not fit.
    pub reorders: bool,
    /// Whether `choose` looks at [`Waiting::planes`], which costs a look at the lists.
    pub counts_planes: bool,
}

/// All policies.
pub static POLICIES: &[Policy] = &[
    Policy {
        name: "fcfs",
        summary: "first come, first served",
        choose: oldest,
        reorders: false,
        counts_planes: false,
    },
    Policy {
        name: "read-first",
        summary: "reads before writes",
        choose: |waiting| if waiting.oldest_read.is_some() { Direction::Read } else { Direction::Write },
        reorders: true,
        counts_planes: false,
    },
    Policy {
        name: "out-of-order",
        summary: "whatever keeps most planes busy",
        choose: |waiting| match waiting.planes[0].cmp(&waiting.planes[1]) {
            std::cmp::Ordering::Greater => Direction::Read,
            std::cmp::Ordering::Less => Direction::Write,
            std::cmp::Ordering::Equal => oldest(waiting),
        },
        reorders: true,
        counts_planes: true,
    },
];

fn oldest(waiting: &Waiting) -> Direction {
    match (waiting.oldest_read, waiting.oldest_write) {
        (Some(read), Some(write)) if read < write => Direction::Read,
        (Some(_), None) => Direction::Read,
        _ => Direction::Write,
    }
}

/// Looks a policy up by name.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static Policy, SimError> {
    POLICIES
        .iter()
        .find(|policy| policy.name == name)
        .ok_or_else(|| names::unknown("flash scheduler", name, POLICIES.iter().map(|p| p.name)).into())
}
