//! PASS: the address space in regions that are served round robin, a batch of one direction at a time (Li et al., JZUS-C
//! 2014, section 3).
//!
//! A region is a sub-queue with two FIFO lists and two trees by address (figure 5). In its turn it dispatches requests of
//! one direction in the order of their addresses, up to the batch threshold; the turn ends early when that direction has
//! none left; the region's next turn is the other direction's (section 3.3). Where requests are past their deadlines, the
//! region of the oldest has the next turn, beginning with that request: a turn is never broken off, so that nothing waits
//! longer than its deadline and one batch for each request that expired before it.

use super::deadline::{READ_EXPIRE, WRITE_EXPIRE, expire};
use super::elevator::{Dispatching, Elevator, Pick};
use super::list::{Links, List};
use super::sorted::{Sorted, Storage};
use super::tunables::TunableKind;
use super::{Counters, Entry, Growth, HostKnowledge, Tunable, TunableValues};
use crate::error::SimError;
use crate::host::{HostQueue, QueuedRequest, Slot};
use planewise_model::units::SECTOR_BYTES;
use planewise_model::{Bytes, Direction, Lsn, Ns};

pub(super) const ENTRY: Entry = Entry {
    name: "pass",
    summary: "regions in turn, each a batch of one direction by address, every request with a deadline",
    source: "Li et al., J. Zhejiang Univ. Sci. C 2014, section 3",
    tunables: &[REGION_SIZE, BATCH, READ_EXPIRE, WRITE_EXPIRE],
    uses_units: false,
    build: |host, values| Ok(Box::new(Dispatching::new(Pass::new(host, values)?))),
};

/// Shared with schedulers that know PASS's regions.
pub(super) const REGION_SIZE: Tunable = Tunable {
    name: "region_size",
    unit: "bytes",
    summary: "bytes of a region, a multiple of the flash page: about what one package holds; smaller separates what can run in parallel, larger keeps batches full",
    kind: TunableKind::Size { default: "4g" },
};

const BATCH: Tunable = Tunable {
    name: "batch",
    unit: "requests",
    summary: "requests that a region dispatches in a turn: as many as it serves best at a time; more favours long streams, fewer favours the other regions",
    kind: TunableKind::Number { default: 16, min: 1, max: 1_000_000 },
};

/// Regions at most: each costs memory of its own.
const REGIONS_MAX: u64 = 65_536;

/// How the address space is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regions {
    sectors: u64,
    count: u32,
}

impl Regions {
    /// # Errors
    /// A size of 0, not a multiple of the page, larger than the device, or one that makes more regions than there may be.
    pub(super) fn new(host: &HostKnowledge, scheduler: &str, bytes: u64) -> Result<Regions, SimError> {
        let capacity = host.capacity_sectors * SECTOR_BYTES;
        let page = u64::from(host.page_bytes);
        let refused = |allowed| refused(scheduler, bytes, allowed);
        if bytes == 0 || !bytes.is_multiple_of(page) {
            return Err(refused(format!("a multiple of the page, {page} bytes, above 0")));
        }
        if bytes > capacity {
            return Err(refused(format!("up to the device's {capacity} bytes ({})", Bytes(capacity))));
        }
        let sectors = bytes / SECTOR_BYTES;
        let count = host.capacity_sectors.div_ceil(sectors);
        if count > REGIONS_MAX {
            let least = capacity.div_ceil(REGIONS_MAX).next_multiple_of(page);
            return Err(refused(format!("{least} or more, so that there are at most {REGIONS_MAX} regions")));
        }
        Ok(Regions { sectors, count: count as u32 })
    }

    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// The region that a request belongs to: that of its first sector.
    #[inline]
    pub(super) fn of(&self, start: Lsn) -> usize {
        (start.0 / self.sectors) as usize
    }
}

fn refused(scheduler: &str, bytes: u64, allowed: String) -> SimError {
    SimError::Option {
        key: format!("{scheduler}.region_size"),
        found: format!("{bytes} ({})", Bytes(bytes)),
        allowed,
    }
}

/// One region.
#[derive(Clone)]
struct Region {
    waiting: Sorted,
    /// Of its next turn.
    direction: Direction,
    /// Turns of the ring it had had when that was noted: each one since, also an empty one, took the other direction.
    noted_at: u64,
    /// Where its last batch of each direction ended, in sectors.
    position: [u64; 2],
    dispatched: [u64; 2],
}

/// The turn under way.
#[derive(Clone, Copy)]
struct Turn {
    region: usize,
    direction: Direction,
    dispatched: u64,
}

struct Pass {
    regions: Regions,
    storage: Storage,
    region: Vec<Region>,
    /// Regions with waiting requests, a bit each.
    occupied: Vec<u64>,
    /// All waiting requests in the order of their arrival, which is that of their deadlines, by direction.
    arrivals: [List; 2],
    links: Links,
    /// The region whose turn it is after the present one, and the requests that wait in all.
    ring: usize,
    /// How often the ring went round.
    laps: u64,
    waiting: u32,
    turn: Option<Turn>,
    batch: u64,
    expire: [Ns; 2],
    expired: u64,
    turns: u64,
}

impl Pass {
    fn new(host: &HostKnowledge, values: &TunableValues) -> Result<Pass, SimError> {
        let regions = Regions::new(host, "pass", values.number("region_size"))?;
        let region = Region {
            waiting: Sorted::EMPTY,
            direction: Direction::Read,
            noted_at: 0,
            position: [0; 2],
            dispatched: [0; 2],
        };
        Ok(Pass {
            storage: Storage::new(host.queue_length),
            region: vec![region; regions.count()],
            occupied: vec![0; regions.count().div_ceil(64)],
            regions,
            arrivals: [List::EMPTY; 2],
            links: Links::new(host.queue_length),
            ring: 0,
            laps: 0,
            waiting: 0,
            turn: None,
            batch: values.number("batch"),
            expire: expire(values),
            expired: 0,
            turns: 0,
        })
    }

    /// The oldest request that is past its deadline; of two, the one whose deadline came first.
    fn expired(&self, now: Ns) -> Option<(Slot, Direction)> {
        Direction::ALL
            .into_iter()
            .filter_map(|direction| Some((self.arrivals[direction.index()].first()?, direction)))
            .filter(|&(slot, _)| self.storage.deadline(slot) <= now)
            .min_by_key(|&(slot, _)| self.storage.deadline(slot))
    }

    /// The next turn, and the request that it begins with.
    fn next_turn(&mut self, now: Ns, queue: &HostQueue) -> (Turn, Slot) {
        self.turns += 1;
        if let Some((slot, direction)) = self.expired(now) {
            self.expired += 1;
            let region = self.regions.of(queue.get(slot).request.start);
            return (Turn { region, direction, dispatched: 0 }, slot);
        }
        loop {
            let index = self.next_occupied();
            let direction = self.next_direction(index);
            self.laps += u64::from(index < self.ring);
            self.ring = index + 1;
            if self.ring == self.region.len() {
                (self.ring, self.laps) = (0, self.laps + 1);
            }
            let region = &self.region[index];
            if region.waiting.is_empty(direction) {
                // An empty turn: the other direction is next here, when the others have had theirs.
                continue;
            }
            let position = region.position[direction.index()];
            let ahead = region.waiting.at_or_after(&self.storage, direction, position);
            let slot = ahead.or(region.waiting.oldest(direction)).expect("requests wait");
            return (Turn { region: index, direction, dispatched: 0 }, slot);
        }
    }

    /// Turns of the ring that a region has had, regions without requests too.
    fn ring_turns(&self, region: usize) -> u64 {
        self.laps + u64::from(region < self.ring)
    }

    /// The direction of a region's next turn.
    fn next_direction(&self, index: usize) -> Direction {
        let region = &self.region[index];
        let even = (self.ring_turns(index) - region.noted_at).is_multiple_of(2);
        if even { region.direction } else { region.direction.other() }
    }

    /// The first region with waiting requests, from where the ring stands on; there is one.
    fn next_occupied(&self) -> usize {
        let words = self.occupied.len();
        let (start, bit) = (self.ring / 64, self.ring % 64);
        (0..=words)
            .find_map(|step| {
                let word = (start + step) % words;
                let ahead = if step == 0 { u64::MAX << bit } else { u64::MAX };
                let found = self.occupied[word] & ahead;
                (found != 0).then(|| word * 64 + found.trailing_zeros() as usize)
            })
            .expect("requests wait in a region")
    }

    /// A region has requests, or has none any more.
    fn note_occupied(&mut self, region: usize) {
        let waiting = &self.region[region].waiting;
        let bit = 1 << (region % 64);
        if Direction::ALL.iter().all(|direction| waiting.is_empty(*direction)) {
            self.occupied[region / 64] &= !bit;
        } else {
            self.occupied[region / 64] |= bit;
        }
    }

    fn take(&mut self, mut turn: Turn, slot: Slot, queue: &HostQueue) -> Pick {
        let noted_at = self.ring_turns(turn.region);
        let region = &mut self.region[turn.region];
        turn.dispatched += 1;
        region.position[turn.direction.index()] = queue.get(slot).request.end().0;
        region.dispatched[turn.direction.index()] += 1;
        (region.direction, region.noted_at) = (turn.direction.other(), noted_at);
        region.waiting.remove(&mut self.storage, slot, turn.direction);
        self.arrivals[turn.direction.index()].remove(&mut self.links, slot);
        self.waiting -= 1;
        let through = turn.dispatched >= self.batch || region.waiting.is_empty(turn.direction);
        self.turn = (!through).then_some(turn);
        self.note_occupied(turn.region);
        Pick::Request(slot)
    }
}

impl Elevator for Pass {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction.index();
        let index = self.regions.of(request.request.start);
        let region = &mut self.region[index];
        region.waiting.add(&mut self.storage, slot, request, now + self.expire[direction]);
        self.note_occupied(index);
        self.arrivals[direction].push(&mut self.links, slot);
        self.waiting += 1;
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        // "With an existing request in the same sub-queue" (section 3.3).
        self.regions.of(growth.into.request.start) == self.regions.of(growth.joining.start)
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        self.region[self.regions.of(after.request.start)].waiting.grew(&mut self.storage, slot, after);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        let direction = request.request.direction;
        let index = self.regions.of(request.request.start);
        self.region[index].waiting.remove(&mut self.storage, slot, direction);
        self.note_occupied(index);
        self.arrivals[direction.index()].remove(&mut self.links, slot);
        self.waiting -= 1;
    }

    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick {
        if self.waiting == 0 {
            return Pick::Nothing;
        }
        if let Some(turn) = self.turn {
            let region = &self.region[turn.region];
            let position = region.position[turn.direction.index()];
            let ahead = region.waiting.at_or_after(&self.storage, turn.direction, position);
            if let Some(slot) = ahead.or(region.waiting.oldest(turn.direction)) {
                return self.take(turn, slot, queue);
            }
            // What was left of the turn was merged away.
            self.turn = None;
        }
        let (turn, slot) = self.next_turn(now, queue);
        self.take(turn, slot, queue)
    }

    fn counters(&self) -> Counters {
        let regions = self.region.iter().enumerate().flat_map(|(index, region)| {
            ["reads", "writes"]
                .into_iter()
                .zip(region.dispatched)
                .filter(|&(_, count)| count > 0)
                .map(move |(what, count)| (format!("region_{index:03}_{what}"), count))
        });
        let own = [("expired".to_owned(), self.expired), ("turns".to_owned(), self.turns)];
        own.into_iter().chain(regions).collect()
    }
}
