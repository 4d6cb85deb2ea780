//! Merging: a request that is adjacent to a waiting one joins it, in front or behind, whatever the scheduler.
//!
//! As Linux's block layer does it: same direction, same disk, adjacent without a gap, within the limits of the queue
//! (`max_sectors_kb`, `max_segments`); the back is tried before the front; and the scheduler may refuse. Where a request
//! fills the gap between two waiting ones, all three become one.

use super::{HostQueue, Slot};
use crate::error::SimError;
use crate::host_sched::tree::{Nodes, Tree};
use planewise_model::Request;
use std::fmt;
use std::str::FromStr;

/// Segments (bios here) of a request at most: `max_segments`, which most Linux drivers leave at 128.
pub const MAX_SEGMENTS: usize = 128;

/// Which merges are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// None: requests reach the device as they came. The PIQ papers' simulator, and traces recorded below the block layer.
    None,
    /// Behind a waiting request only.
    Back,
    /// Behind, then in front.
    Full,
}

impl fmt::Display for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Merging::None => "none",
            Merging::Back => "back",
            Merging::Full => "full",
        })
    }
}

impl FromStr for Merging {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Merging, SimError> {
        match text {
            "none" => Ok(Merging::None),
            "back" => Ok(Merging::Back),
            "full" => Ok(Merging::Full),
            _ => Err(SimError::Option {
                key: "merging".into(),
                found: format!("'{text}'"),
                allowed: "none, back, full".into(),
            }),
        }
    }
}

/// On which side of a waiting request another is adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It begins where the waiting one ends.
    Back,
    /// It ends where the waiting one begins.
    Front,
}

/// Volume, durability and direction, then sector: requests that may become one have equal first parts.
type Edge = (u64, u64);

/// Waiting requests by where they begin and where they end.
pub(crate) struct Merger {
    front: bool,
    max_sectors: u32,
    starts: Nodes<Edge>,
    by_start: Tree,
    ends: Nodes<Edge>,
    by_end: Tree,
}

impl Merger {
    /// For a queue of a number of slots; [`None`] when nothing is merged.
    pub(crate) fn new(merging: Merging, max_sectors: u32, slots: u32) -> Option<Merger> {
        (merging != Merging::None).then(|| Merger {
            front: merging == Merging::Full,
            max_sectors,
            starts: Nodes::new(slots),
            by_start: Tree::EMPTY,
            ends: Nodes::new(slots),
            by_end: Tree::EMPTY,
        })
    }

    /// A request waits, or has grown.
    pub(crate) fn insert(&mut self, slot: Slot, request: &Request) {
        let disk = disk(request);
        self.by_start.insert(&mut self.starts, slot, (disk, request.start.0));
        self.by_end.insert(&mut self.ends, slot, (disk, request.end().0));
    }

    /// A request no longer waits, or is about to grow.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.by_start.remove(&mut self.starts, slot);
        self.by_end.remove(&mut self.ends, slot);
    }

    /// The waiting request that a newcomer joins, and where; `allows` is the scheduler's word.
    pub(crate) fn find(
        &self,
        request: &Request,
        queue: &HostQueue,
        allows: impl Fn(Slot, Side) -> bool,
    ) -> Option<(Slot, Side)> {
        let back = self.neighbour(request, Side::Front).map(|slot| (slot, Side::Back));
        let front = self.front.then(|| self.neighbour(request, Side::Back)).flatten();
        let front = front.map(|slot| (slot, Side::Front));
        let fits = |slot| self.fits(slot, request, 1, queue);
        back.into_iter().chain(front).find(|&(slot, side)| fits(slot) && allows(slot, side))
    }

    /// The waiting request that begins where `request` ends (on its back), or ends where it begins (on its front).
    pub(crate) fn neighbour(&self, request: &Request, side: Side) -> Option<Slot> {
        let disk = disk(request);
        match side {
            Side::Back => self.by_start.find(&self.starts, (disk, request.end().0)),
            Side::Front => self.by_end.find(&self.ends, (disk, request.start.0)),
        }
    }

    /// Whether the request in `slot` may grow by `request`, itself made of so many segments, within the queue's limits.
    pub(crate) fn fits(&self, slot: Slot, request: &Request, segments: usize, queue: &HostQueue) -> bool {
        let sectors = queue.get(slot).request.sectors.saturating_add(request.sectors);
        sectors <= self.max_sectors && queue.segments(slot) + segments <= MAX_SEGMENTS
    }
}

fn disk(request: &Request) -> u64 {
    u64::from(request.volume) << 4 | (request.durability as u64) << 1 | request.direction.index() as u64
}
