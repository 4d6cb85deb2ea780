//! Pools of request slots. Linux 2.6.32 counts requests that somebody waits for apart from write-back: a queue of
//! `nr_requests` for each, so that a writer that fills its own does not keep readers out (`block/blk-core.c`, `get_request`).
//! Since 3.x and with several hardware queues all share one.
//!
//! A pool that fills up lets the process that filled it go on for a batch of 32 requests or 20 ms, to half as many again as
//! `nr_requests`; so it does with one that had to wait. All others wait until a slot below `nr_requests` is free.

use super::HostQueue;
use crate::error::SimError;
use crate::host_sched;
use planewise_model::{Direction, Ns, Request};
use std::collections::{BTreeMap, VecDeque};

/// Requests of a batch (`BLK_BATCH_REQ`).
const BATCH: u32 = 32;
/// How long a batch that was begun may take (`BLK_BATCH_TIME`).
const BATCH_TIME: Ns = Ns::from_millis(20);
/// Requests of one pool that a replay reads ahead while they wait, to get at those of the other.
const OUTSIDE_MAX: usize = 65_536;

/// How many pools of slots the host's I/O queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPools {
    /// What the scheduler's kernel has: two for those of Linux 2.6.32, one for all others.
    Auto,
    /// One for all requests.
    One,
    /// One for requests that somebody waits for, one for the others.
    Two,
}

impl RequestPools {
    /// All of them, as on the command line.
    const NAMES: [(&'static str, RequestPools); 3] =
        [("auto", RequestPools::Auto), ("one", RequestPools::One), ("two", RequestPools::Two)];

    /// The queue of so many requests (1 to 4096; each pool, where there are two) in front of a scheduler. Outstanding requests take
    /// `apart` more slots of their own, 0 when they count in the length.
    ///
    /// # Errors
    /// Two pools, of which Linux counts outstanding requests in each, and slots apart.
    pub(crate) fn queue(self, length: u32, apart: u32, scheduler: &str) -> Result<HostQueue, SimError> {
        if apart > 0 {
            return match self {
                RequestPools::Two => Err(SimError::Option {
                    key: "request-pools".into(),
                    found: "'two' with a queue that counts only what waits".into(),
                    allowed: "two with --queue-counts outstanding; auto and one with both".into(),
                }),
                RequestPools::Auto | RequestPools::One => Ok(HostQueue::with_slots_apart(length, apart)),
            };
        }
        let two = match self {
            RequestPools::Auto => host_sched::OF_LINUX_2_6_32.contains(&scheduler),
            RequestPools::One => false,
            RequestPools::Two => true,
        };
        Ok(if two { HostQueue::with_pools(Pools::new(length)) } else { HostQueue::new(length) })
    }
}

impl std::fmt::Display for RequestPools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, pools)| pools == self).expect("each has a name");
        f.write_str(name)
    }
}

impl std::str::FromStr for RequestPools {
    type Err = SimError;

    fn from_str(text: &str) -> Result<RequestPools, SimError> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, pools)| *pools).ok_or_else(|| SimError::Option {
            key: "request-pools".into(),
            found: format!("'{text}'"),
            allowed: "auto, one, two".into(),
        })
    }
}

/// The pool of a request (`rw_is_sync`): 1 when somebody waits for it.
#[inline]
pub(crate) fn pool_of(request: &Request) -> usize {
    usize::from(request.synchronous || request.direction == Direction::Read)
}

#[derive(Clone, Copy, Default)]
struct Pool {
    taken: u32,
    /// Only batches get in.
    is_full: bool,
}

#[derive(Clone, Copy, Default)]
struct Batch {
    left: u32,
    until: Ns,
}

impl Batch {
    fn goes_on(&self, now: Ns) -> bool {
        self.left == BATCH || self.left > 0 && now < self.until
    }

    fn begin(&mut self, now: Ns) {
        if !self.goes_on(now) {
            *self = Batch { left: BATCH, until: now + BATCH_TIME };
        }
    }
}

/// Two pools.
pub(crate) struct Pools {
    /// `nr_requests`.
    length: u32,
    pools: [Pool; 2],
    /// By process.
    batches: BTreeMap<u32, Batch>,
}

impl Pools {
    fn new(length: u32) -> Pools {
        Pools { length, pools: [Pool::default(); 2], batches: BTreeMap::new() }
    }

    /// What a pool holds at most.
    fn most(&self) -> u32 {
        self.length + self.length / 2
    }

    /// Slots of both.
    pub(crate) fn slots(&self) -> u32 {
        2 * self.most()
    }

    /// Whether a request gets a slot now.
    pub(crate) fn has_room(&self, now: Ns, request: &Request) -> bool {
        let pool = self.pools[pool_of(request)];
        let batch = || self.batches.get(&request.process).is_some_and(|batch| batch.goes_on(now));
        pool.taken < self.most() && (pool.taken + 1 < self.length || !pool.is_full || batch())
    }

    /// A request for which there is room gets its slot.
    pub(crate) fn enter(&mut self, now: Ns, request: &Request) {
        let length = self.length;
        let pool = &mut self.pools[pool_of(request)];
        let has_waited = request.arrival < now;
        let fills = pool.taken + 1 >= length;
        pool.taken += 1;
        if has_waited || fills {
            let batch = self.batches.entry(request.process).or_default();
            if has_waited || !pool.is_full {
                batch.begin(now);
            }
            if fills && batch.goes_on(now) {
                batch.left -= 1;
            }
        }
        pool.is_full |= fills;
    }

    /// A request gives its slot back.
    pub(crate) fn leave(&mut self, request: &Request) {
        let pool = &mut self.pools[pool_of(request)];
        pool.taken -= 1;
        pool.is_full &= pool.taken >= self.length;
    }
}

/// Requests that wait outside for a slot: those of a pool in their order, and those that overlap another in theirs.
pub struct Outside {
    /// With the number of each.
    waiting: [VecDeque<(u64, Request)>; 2],
    two: bool,
    pushed: u64,
    /// Where there are two pools: the requests by first sector and number.
    by_sector: BTreeMap<(u64, u64), Request>,
    /// Sectors of the longest that ever waited.
    longest: u64,
}

impl Outside {
    /// In front of a queue.
    pub fn new(queue: &HostQueue) -> Outside {
        Outside { two: queue.has_two_pools(), ..Outside::in_order() }
    }

    /// In front of any queue, for a replay that must submit in the order of its trace.
    pub fn in_order() -> Outside {
        Outside { waiting: Default::default(), two: false, pushed: 0, by_sector: BTreeMap::new(), longest: 0 }
    }

    /// How many wait.
    #[inline]
    pub fn count(&self) -> usize {
        self.waiting[0].len() + self.waiting[1].len()
    }

    fn pool(&self, request: &Request) -> usize {
        if self.two { pool_of(request) } else { 0 }
    }

    /// Whether one waits that goes before: one of the same pool, or one that it overlaps, of which one writes.
    #[inline]
    pub fn is_before(&self, request: &Request) -> bool {
        self.count() > 0
            && (!self.waiting[self.pool(request)].is_empty() || self.overlaps_earlier(self.pushed, request))
    }

    /// Whether a replay may let a request wait here and read on: others may have room where it has none.
    pub fn reads_on(&self) -> bool {
        self.two && self.count() < OUTSIDE_MAX
    }

    /// A request waits.
    pub fn push(&mut self, request: Request) {
        self.waiting[self.pool(&request)].push_back((self.pushed, request));
        if self.two {
            self.by_sector.insert((request.start.0, self.pushed), request);
            self.longest = self.longest.max(request.sectors.into());
        }
        self.pushed += 1;
    }

    /// The next that has room: of two the one that arrived first.
    #[inline]
    pub fn next(&mut self, has_room: impl Fn(&Request) -> bool) -> Option<Request> {
        let goes = |pool: usize| {
            let &(number, request) = self.waiting[pool].front()?;
            (has_room(&request) && !self.overlaps_earlier(number, &request)).then_some((number, pool))
        };
        let (_, pool) = [goes(0), goes(1)].into_iter().flatten().min()?;
        let (number, request) = self.waiting[pool].pop_front()?;
        self.by_sector.remove(&(request.start.0, number));
        Some(request)
    }

    /// Whether a request overlaps one that waits with a lower number, and one of them writes.
    fn overlaps_earlier(&self, number: u64, request: &Request) -> bool {
        let (start, end) = (request.start.0, request.end().0);
        let near = self.by_sector.range((start.saturating_sub(self.longest), 0)..(end, 0));
        near.into_iter().any(|(&(_, other), earlier)| {
            let one_writes = [request, earlier].iter().any(|one| one.direction == Direction::Write);
            other < number && earlier.end().0 > start && one_writes
        })
    }
}
