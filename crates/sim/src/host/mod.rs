//! The host stack: a bounded I/O queue of requests, waiting or outstanding, with merging and a scheduler.

mod block_layer;
mod conflicts;
mod counts;
mod merging;
mod outside;
mod overlaps;
mod pools;
mod queue;
mod stack;
mod tags;
mod threads;

pub use block_layer::BlockLayer;
use conflicts::Conflicts;
pub use counts::QueueCounts;
use merging::Merger;
pub use merging::{MAX_SEGMENTS, Merging, Side};
pub use outside::Outside;
pub use overlaps::Overlap;
use overlaps::Overlaps;
pub use pools::RequestPools;
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

/// A device's interface as a scheduler sees it: whether it takes a request now. A real one says no by keeping a unit's ready line
/// down (blocking), or by having no free tag (NCQ).
pub trait Interface {
    /// Whether it takes a request now.
    fn ask(&self, request: &QueuedRequest) -> Answer;

    /// Whether a ready line is down still. Only asked of lines that it named.
    fn is_down(&self, _line: Line) -> bool {
        false
    }
}

/// A ready line, by a number below the device's planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line(pub u32);

/// What an interface says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It takes it now.
    Accepted,
    /// It does not, and will not while this line is down.
    Refused(Line),
    /// It does not; when it will, no single line tells.
    RefusedForNow,
}

/// A function that says yes or no.
impl<F: Fn(&QueuedRequest) -> bool> Interface for F {
    fn ask(&self, request: &QueuedRequest) -> Answer {
        if self(request) { Answer::Accepted } else { Answer::RefusedForNow }
    }
}

/// What a scheduler sees besides its requests: the queue, and the only thing that it may ask the device.
pub struct Gate<'a> {
    queue: &'a HostQueue,
    interface: &'a dyn Interface,
    continues: bool,
}

impl<'a> Gate<'a> {
    /// A gate in front of any device, simulated or real.
    pub fn new(queue: &'a HostQueue, interface: &'a dyn Interface) -> Gate<'a> {
        Gate { queue, interface, continues: false }
    }

    /// Whether the device takes the request in `slot` now.
    #[inline]
    pub fn accepts(&self, slot: Slot) -> bool {
        self.ask(slot) == Answer::Accepted
    }

    /// The same, with the ready line that keeps the device from taking it.
    #[inline]
    pub fn ask(&self, slot: Slot) -> Answer {
        self.interface.ask(self.queue.get(slot))
    }

    /// Whether the scheduler issued a request just before, and nothing has happened since but that: no line went up.
    #[inline]
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// Whether a line named by [`Gate::ask`] is down still.
    #[inline]
    pub fn is_down(&self, line: Line) -> bool {
        self.interface.is_down(line)
    }

    /// The I/O queue.
    pub fn queue(&self) -> &HostQueue {
        self.queue
    }
}
