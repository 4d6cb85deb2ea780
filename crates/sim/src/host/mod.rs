//! The host stack: a bounded I/O queue of requests, waiting or outstanding, with merging and a scheduler.

mod conflicts;
mod counts;
mod merging;
mod overlaps;
mod pools;
mod queue;
mod stack;

use conflicts::Conflicts;
pub use counts::QueueCounts;
use merging::Merger;
pub use merging::{MAX_SEGMENTS, Merging, Side};
pub use overlaps::Overlap;
use overlaps::Overlaps;
pub use pools::{Outside, RequestPools};
pub use queue::{HostQueue, QueuedRequest, Slot};
use queue::{Part, WaitingWrites};
pub use stack::{DeviceWaits, HostStack, StackConfig};

/// The device's interface: when it takes another command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandQueue {
    /// A request is issued when all units it touches are free (the papers' device).
    Blocking,
    /// Up to this many requests are outstanding and queue at the units inside.
    Ncq(u32),
}

impl std::fmt::Display for CommandQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandQueue::Blocking => write!(f, "blocking"),
            CommandQueue::Ncq(depth) => write!(f, "ncq:{depth}"),
        }
    }
}

impl std::str::FromStr for CommandQueue {
    type Err = crate::error::SimError;

    fn from_str(text: &str) -> Result<CommandQueue, Self::Err> {
        if text == "blocking" {
            return Ok(CommandQueue::Blocking);
        }
        text.strip_prefix("ncq:")
            .and_then(|depth| depth.parse().ok())
            .filter(|depth| (1..=65_536).contains(depth))
            .map(CommandQueue::Ncq)
            .ok_or_else(|| crate::error::SimError::Option {
                key: "command_queue".into(),
                found: format!("'{text}'"),
                allowed: "blocking, or ncq:D with a depth D of 1 to 65536, e.g. ncq:32".into(),
            })
    }
}

/// The only thing a scheduler may ask the device: would it take this request now?
///
/// A real interface says no by keeping its ready line down (blocking) or by having no free tag (NCQ).
pub struct Gate<'a> {
    queue: &'a HostQueue,
    accepts: &'a dyn Fn(&QueuedRequest) -> bool,
}

impl<'a> Gate<'a> {
    /// A gate in front of any device, simulated or real.
    pub fn new(queue: &'a HostQueue, accepts: &'a dyn Fn(&QueuedRequest) -> bool) -> Gate<'a> {
        Gate { queue, accepts }
    }

    /// Whether the device takes the request in `slot` now.
    #[inline]
    pub fn accepts(&self, slot: Slot) -> bool {
        (self.accepts)(self.queue.get(slot))
    }

    /// The I/O queue.
    pub fn queue(&self) -> &HostQueue {
        self.queue
    }
}
