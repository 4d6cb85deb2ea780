//! PASS: the address space in regions that are served round robin, a batch of one direction at a time (Li et al., JZUS-C
//! 2014, section 3).
//!
//! A region is a sub-queue with two FIFO lists and two trees by address (figure 5). In its turn it dispatches requests of
//! one direction in the order of their addresses, up to the batch threshold; the turn ends early when that direction has
//! none left; the region's next turn is the other direction's (section 3.3). Where requests are past their deadlines, the
//! region of the oldest has the next turn, beginning with that request: a turn is never broken off, so that nothing waits
//! longer than its deadline and one batch for each request that expired before it.
//!
//! Interference avoidance (section 3.3): a turn may have to wait until what is outstanding of the other direction is complete,
//! in its region or everywhere (`barrier`). The ring goes past regions whose turn has to wait; a turn that `pass_over` others
//! went before is the next one, and until it can begin nothing is dispatched.

mod regions;

pub(super) use regions::{REGION_SIZE, Regions};

use super::deadline::{READ_EXPIRE, WRITE_EXPIRE, expire};
use super::elevator::{Dispatching, Elevator, Pick};
use super::list::{Links, List};
use super::sorted::{Sorted, Storage};
use super::tunables::TunableKind;
use super::{Counters, Entry, Growth, HostKnowledge, Tunable, TunableValues};
use crate::error::SimError;
use crate::host::{HostQueue, QueuedRequest, Slot};
use planewise_model::{Direction, Ns};
use std::collections::VecDeque;

pub(super) const ENTRY: Entry = Entry {
    name: "pass",
    summary: "regions in turn, each a batch of one direction by address, every request with a deadline",
    source: "Li et al., J. Zhejiang Univ. Sci. C 2014, section 3",
    tunables: &[REGION_SIZE, BATCH, BARRIER, PASS_OVER, READ_EXPIRE, WRITE_EXPIRE],
    uses_units: false,
    build: |host, values| Ok(Box::new(Dispatching::new(Pass::new(host, values)?))),
};

const BATCH: Tunable = Tunable {
    name: "batch",
    unit: "requests",
    summary: "requests that a region dispatches in a turn: as many as it serves best at a time; more favours long streams, fewer favours the other regions",
    kind: TunableKind::Number { default: 16, min: 1, max: 1_000_000 },
};

const BARRIER: Tunable = Tunable {
    name: "barrier",
    unit: "",
    summary: "a turn begins when what is outstanding of the other direction is complete: everywhere (device), in its region (region), or at once (none); a barrier keeps reads and writes apart in a drive that pays for each change, and lets the others rest meanwhile",
    kind: TunableKind::Choice(&["none", "region", "device"]),
};

const PASS_OVER: Tunable = Tunable {
    name: "pass_over",
    unit: "turns",
    summary: "turns that go before one that the barrier holds; 0: the ring stands still; more keeps the drive at work in one direction for longer, fewer bounds the wait of the other",
    kind: TunableKind::Number { default: 8, min: 0, max: 1_000_000 },
};

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    Nothing,
    /// The other direction, in its region.
    Region,
    /// The other direction, everywhere.
    Device,
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
    /// Requests at the device, by direction.
    outstanding: [u32; 2],
    /// While the barrier holds a turn of it, in `direction`, that the ring went past: how many turns there had been.
    owed_since: Option<u64>,
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
    barrier: Barrier,
    pass_over: u64,
    /// Requests at the device, by direction.
    outstanding: [u32; 2],
    /// Regions with a turn that is owed, the longest first.
    owed: VecDeque<usize>,
    /// The barrier holds everything that waits.
    is_held: bool,
    expire: [Ns; 2],
    expired: u64,
    turns: u64,
    barrier_waits: u64,
    passed_over: u64,
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
            outstanding: [0; 2],
            owed_since: None,
        };
        let barrier = match values.choice("barrier") {
            "region" => Barrier::Region,
            "device" => Barrier::Device,
            _ => Barrier::Nothing,
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
            barrier,
            pass_over: values.number("pass_over"),
            outstanding: [0; 2],
            owed: VecDeque::new(),
            is_held: false,
            expire: expire(values),
            expired: 0,
            turns: 0,
            barrier_waits: 0,
            passed_over: 0,
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

    /// The next turn, and the request that it begins with; none while the barrier holds it.
    fn next_turn(&mut self, now: Ns, queue: &HostQueue) -> Option<(Turn, Slot)> {
        if let Some((slot, direction)) = self.expired(now) {
            let region = self.regions.of(queue.get(slot).request.start);
            if self.is_blocked(region, direction) {
                return None;
            }
            self.expired += 1;
            return Some((Turn { region, direction, dispatched: 0 }, slot));
        }
        let (region, direction) = match self.longest_owed() {
            Some(owed) if self.is_blocked(owed, self.region[owed].direction) => return None,
            Some(owed) => (owed, self.region[owed].direction),
            None => self.next_of_ring()?,
        };
        let slot = self.next_request(region, direction).expect("a turn has requests");
        Some((Turn { region, direction, dispatched: 0 }, slot))
    }

    /// The request that a turn goes on with.
    fn next_request(&self, region: usize, direction: Direction) -> Option<Slot> {
        let region = &self.region[region];
        let ahead = region.waiting.at_or_after(&self.storage, direction, region.position[direction.index()]);
        ahead.or(region.waiting.oldest(direction))
    }

    /// Whether a turn has to wait for what is outstanding of the other direction.
    #[inline]
    fn is_blocked(&self, region: usize, direction: Direction) -> bool {
        let outstanding = match self.barrier {
            Barrier::Nothing => return false,
            Barrier::Region => &self.region[region].outstanding,
            Barrier::Device => &self.outstanding,
        };
        outstanding[direction.other().index()] > 0
    }

    /// The region whose turn is owed for longest, once it is not to wait for any further.
    fn longest_owed(&self) -> Option<usize> {
        let &index = self.owed.front()?;
        let since = self.region[index].owed_since.expect("those in the list are owed a turn");
        (self.turns - since >= self.pass_over).then_some(index)
    }

    /// A turn that the barrier holds is owed from now on, whatever the ring does meanwhile.
    fn owe(&mut self, index: usize, direction: Direction) {
        let region = &mut self.region[index];
        region.direction = direction;
        if region.owed_since.is_none() {
            region.owed_since = Some(self.turns);
            self.owed.push_back(index);
        }
    }

    /// The region has had the turn that it was owed, or needs none any more.
    fn settle(&mut self, index: usize) {
        if self.region[index].owed_since.take().is_some() {
            self.owed.retain(|&owed| owed != index);
        }
    }

    /// The next turn as the ring goes, and the ring behind it. None when the barrier holds all: the ring stands where it stood.
    fn next_of_ring(&mut self) -> Option<(usize, Direction)> {
        let (end, ring, laps) = (self.region.len(), self.ring, self.laps);
        let first_round = [(ring, end, laps), (0, ring, laps + 1)];
        let mut passed_over = 0;
        for round in 0..2 {
            for (mut from, to, lap) in first_round {
                while let Some(index) = self.next_occupied(from, to) {
                    from = index + 1;
                    let mut direction = self.next_direction(index);
                    if round == 1 && self.region[index].owed_since.is_none() {
                        direction = direction.other();
                    }
                    if self.region[index].waiting.is_empty(direction) {
                        // An empty turn: the other direction is next here, when the others have had theirs.
                        continue;
                    }
                    if !self.is_blocked(index, direction) {
                        self.stand_behind(index, lap + round);
                        self.passed_over += passed_over;
                        return Some((index, direction));
                    }
                    if self.pass_over == 0 {
                        return None;
                    }
                    self.owe(index, direction);
                    passed_over += 1;
                }
            }
        }
        None
    }

    /// The ring stands behind a region that has its turn in this round.
    fn stand_behind(&mut self, index: usize, lap: u64) {
        (self.ring, self.laps) = (index + 1, lap);
        if self.ring == self.region.len() {
            (self.ring, self.laps) = (0, lap + 1);
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
        if even || region.owed_since.is_some() { region.direction } else { region.direction.other() }
    }

    /// The first region with waiting requests from one region on and before another.
    fn next_occupied(&self, from: usize, to: usize) -> Option<usize> {
        let mut ahead = u64::MAX << (from % 64);
        for word in from / 64..to.div_ceil(64) {
            let found = self.occupied[word] & ahead;
            if found != 0 {
                let index = word * 64 + found.trailing_zeros() as usize;
                return (index < to).then_some(index);
            }
            ahead = u64::MAX;
        }
        None
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
        let region = &self.region[turn.region];
        // A turn of an overdue request does not settle one that is owed to the other direction.
        let settles = region.owed_since.is_none() || region.direction == turn.direction;
        if settles {
            self.settle(turn.region);
        }
        let noted_at = self.ring_turns(turn.region);
        let region = &mut self.region[turn.region];
        if settles {
            (region.direction, region.noted_at) = (turn.direction.other(), noted_at);
        }
        turn.dispatched += 1;
        region.position[turn.direction.index()] = queue.get(slot).request.end().0;
        region.dispatched[turn.direction.index()] += 1;
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
        let noted_at = self.ring_turns(index);
        let region = &mut self.region[index];
        region.waiting.remove(&mut self.storage, slot, direction);
        if region.owed_since.is_some() && region.waiting.is_empty(region.direction) {
            region.noted_at = noted_at;
            self.settle(index);
        }
        self.note_occupied(index);
        self.arrivals[direction.index()].remove(&mut self.links, slot);
        self.waiting -= 1;
    }

    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick {
        if self.waiting == 0 {
            return Pick::Nothing;
        }
        if let Some(turn) = self.turn {
            if let Some(slot) = self.next_request(turn.region, turn.direction) {
                return self.take(turn, slot, queue);
            }
            // What was left of the turn was merged away.
            self.turn = None;
        }
        let Some((turn, slot)) = self.next_turn(now, queue) else {
            self.barrier_waits += u64::from(!self.is_held);
            self.is_held = true;
            return Pick::Nothing;
        };
        self.is_held = false;
        self.turns += 1;
        self.take(turn, slot, queue)
    }

    fn issued(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction.index();
        self.region[self.regions.of(request.request.start)].outstanding[direction] += 1;
        self.outstanding[direction] += 1;
    }

    fn completed(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction.index();
        self.region[self.regions.of(request.request.start)].outstanding[direction] -= 1;
        self.outstanding[direction] -= 1;
    }

    fn counters(&self) -> Counters {
        let regions = self.region.iter().enumerate().flat_map(|(index, region)| {
            ["reads", "writes"]
                .into_iter()
                .zip(region.dispatched)
                .filter(|&(_, count)| count > 0)
                .map(move |(what, count)| (format!("region_{index:03}_{what}"), count))
        });
        let own = [
            ("barrier_waits", self.barrier_waits),
            ("expired", self.expired),
            ("passed_over", self.passed_over),
            ("turns", self.turns),
        ];
        own.map(|(name, count)| (name.to_owned(), count)).into_iter().chain(regions).collect()
    }

    fn notes(&self) -> Vec<String> {
        self.regions.note().into_iter().collect()
    }
}
