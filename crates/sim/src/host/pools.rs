//! Pools of request slots. Linux 2.6.32 counts requests that somebody waits for apart from write-back: a queue of
//! `nr_requests` for each, so that a writer that fills its own does not keep readers out (`block/blk-core.c`, `get_request`).
//! Since 3.x and with several hardware queues all share one.
//!
//! A pool that fills up lets the process that filled it go on for a batch of 32 requests or 20 ms, to half as many again as
//! `nr_requests`; so it does with one that had to wait. All others wait until a slot below `nr_requests` is free.

use super::{BlockLayer, HostQueue};
use crate::error::SimError;
use crate::host_sched;
use planewise_model::{Direction, Ns, Request};
use std::collections::BTreeMap;

/// Requests of a batch (`BLK_BATCH_REQ`).
const BATCH: u32 = 32;
/// How long a batch that was begun may take (`BLK_BATCH_TIME`).
const BATCH_TIME: Ns = Ns::from_millis(20);

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
    /// Two pools, of which Linux counts outstanding requests in each, and slots apart; today's block layer with either.
    pub(crate) fn queue(
        self,
        length: u32,
        apart: u32,
        scheduler: &str,
        block_layer: BlockLayer,
    ) -> Result<HostQueue, SimError> {
        if block_layer == BlockLayer::BlkMq {
            let refused = |key: &str, found: &str, allowed: &str| SimError::Option {
                key: key.into(),
                found: format!("'{found}' under block_layer 'blk-mq'"),
                allowed: allowed.into(),
            };
            return match (self, apart) {
                (RequestPools::Two, _) => {
                    Err(refused("request-pools", "two", "auto, one there: it has one set of tags"))
                }
                (_, 0) => Ok(HostQueue::with_tags(length)),
                _ => Err(refused(
                    "queue-counts",
                    "waiting",
                    "outstanding there: a tag is kept until completion",
                )),
            };
        }
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
