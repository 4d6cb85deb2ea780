//! Weave: Planewise's own scheduler, which joins what PIQ and PASS know and bounds every wait (docs/schedulers/weave.md).
//!
//! Like PIQ it reckons with the units that requests touch; but it keeps no batches that leave in order. At each dispatch it
//! asks for every waiting request whether its units have room, and issues the first that fits: late requests first, then
//! reads, then writes; of each the shortest first, of equals the oldest. Three rules keep the threads from tangling:
//!
//! * a write stays off units that a waiting read wants, and does not start right behind a read: direction batches,
//!   kept by unit where the units are known, and by the device where its own business may cross;
//! * a unit, and a region of the address space, holds no more outstanding requests than it serves best: what waits, waits
//!   here, where reads can still go before writes, and not inside the device (PASS's region depth, PASS paper, section 3.4);
//! * a request past its deadline goes first, and while it does not fit, nothing else enters its units.

use super::list::{Links, List};
use super::pass::{REGION_SIZE, Regions};
use super::tunables::TunableKind;
use super::{Counters, Decision, Entry, HostKnowledge, HostScheduler, Tunable, TunableValues};
use crate::error::SimError;
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::{Direction, Ns};

const LONGEST_WAIT_NS: u64 = 1_000_000_000_000;

pub(super) const ENTRY: Entry = Entry {
    name: "weave",
    summary: "whichever request's units have room: late ones, then reads, then writes that no read waits for",
    source: "Planewise, docs/schedulers/weave.md",
    tunables: &[
        Tunable {
            name: "unit_depth",
            unit: "requests",
            summary: "requests outstanding on a unit at most; 1 keeps every choice open, more hides the time between two requests, too many let reads wait behind writes inside the device; 0: 2 where writes stay on the units of their addresses, 4 where the device moves them and the guess is less sure",
            kind: TunableKind::Number { default: 0, min: 0, max: DEPTH_MAX as u64 },
        },
        REGION_SIZE,
        Tunable {
            name: "region_depth",
            unit: "requests",
            summary: "requests outstanding in a region at most, 0 for any number; for devices that serve a crowded region slower",
            kind: TunableKind::Number { default: 0, min: 0, max: u16::MAX as u64 },
        },
        Tunable {
            name: "reads_out_max",
            unit: "requests",
            summary: "reads outstanding above which no write starts: fewer keeps bursts of reads clear of writes, more lets writes go sooner",
            kind: TunableKind::Number { default: 0, min: 0, max: 65_536 },
        },
        Tunable {
            name: "write_hold_ns",
            unit: "ns",
            summary: "time since the last read was issued after which outstanding reads hold writes no longer: they wait for something that writes do not make worse, such as a collection",
            kind: TunableKind::Number { default: 500_000, min: 0, max: LONGEST_WAIT_NS },
        },
        Tunable {
            name: "read_wait_max_ns",
            unit: "ns",
            summary: "age at which a read goes before shorter ones; shorter bounds long reads, longer favours the mean",
            kind: TunableKind::Number { default: 20_000_000, min: 0, max: LONGEST_WAIT_NS },
        },
        Tunable {
            name: "write_wait_max_ns",
            unit: "ns",
            summary: "age at which a write goes before reads; shorter bounds writes and hurts reads",
            kind: TunableKind::Number { default: 20_000_000, min: 0, max: LONGEST_WAIT_NS },
        },
        Tunable {
            name: "look_ahead",
            unit: "requests",
            summary: "waiting requests of a direction that are tried for one that fits; fewer saves host time in long queues",
            kind: TunableKind::Number { default: 256, min: 1, max: 4_096 },
        },
    ],
    uses_units: true,
    build: |host, values| Ok(Box::new(Weave::new(host, values)?)),
};

/// Largest depth of a unit that the book tells apart.
const DEPTH_MAX: usize = 64;
/// Lengths told apart: 1 unit, 2, 3 to 4, 5 to 8, and so on to 65,536 units.
const LENGTHS: usize = 17;

struct Weave {
    units: UnitMap,
    /// Words of a vector.
    words: usize,
    /// Units that the request in each slot touches, and its length class.
    vectors: Vec<u64>,
    length: Vec<u8>,
    /// Waiting requests in the order of their arrival, by direction, and by direction and length.
    arrivals: [List; 2],
    by_length: [[List; LENGTHS]; 2],
    arrival_links: Links,
    length_links: Links,
    /// By unit: requests outstanding, and reads waiting.
    outstanding: Vec<u16>,
    reads_waiting: Vec<u16>,
    /// Units without room, units that reads wait for, units that late requests wait for.
    full: Vec<u64>,
    wanted: Vec<u64>,
    claimed: Vec<u64>,
    unit_depth: u16,
    /// Regions and requests outstanding in each, where their depth is limited.
    regions: Option<(Regions, Vec<u16>)>,
    region_depth: u16,
    /// Reads outstanding, and how many may be when a write starts.
    reads_out: u32,
    reads_out_max: u32,
    write_hold: Ns,
    last_read: Ns,
    wait_max: [Ns; 2],
    look_ahead: u32,
    late: [u64; 2],
}

impl Weave {
    fn new(host: &HostKnowledge, values: &TunableValues) -> Result<Weave, SimError> {
        let units = host.units.units() as usize;
        let words = units.div_ceil(64);
        let slots = host.queue_length as usize;
        let region_depth = values.number("region_depth");
        let regions = match region_depth {
            // Not used: the default need not go with the device. But no device has regions of nothing.
            0 if values.number("region_size") == 0 => Some(Regions::new(host, "weave", 0)?),
            0 => None,
            _ => Some(Regions::new(host, "weave", values.number("region_size"))?),
        };
        let regions = regions.map(|regions| (regions, vec![0; regions.count()]));
        Ok(Weave {
            units: host.units.clone(),
            words,
            vectors: vec![0; words * slots],
            length: vec![0; slots],
            arrivals: [List::EMPTY; 2],
            by_length: [[List::EMPTY; LENGTHS]; 2],
            arrival_links: Links::new(host.queue_length),
            length_links: Links::new(host.queue_length),
            outstanding: vec![0; units],
            reads_waiting: vec![0; units],
            full: vec![0; words],
            wanted: vec![0; words],
            claimed: vec![0; words],
            unit_depth: match values.number("unit_depth") as u16 {
                0 if host.writes_stay => 2,
                0 => 4,
                depth => depth,
            },
            regions,
            region_depth: region_depth as u16,
            reads_out: 0,
            reads_out_max: values.number("reads_out_max") as u32,
            write_hold: Ns(values.number("write_hold_ns")),
            last_read: Ns::ZERO,
            wait_max: ["read_wait_max_ns", "write_wait_max_ns"].map(|name| Ns(values.number(name))),
            look_ahead: values.number("look_ahead") as u32,
            late: [0; 2],
        })
    }

    #[inline]
    fn vector(&self, slot: Slot) -> &[u64] {
        &self.vectors[slot.index() * self.words..][..self.words]
    }

    fn set_vector(&mut self, slot: Slot, pages: PageRange) {
        let vector = &mut self.vectors[slot.index() * self.words..][..self.words];
        vector.fill(0);
        self.units.for_each_unit(pages, |unit| vector[unit as usize / 64] |= 1 << (unit % 64));
        let units: u32 = vector.iter().map(|word| word.count_ones()).sum();
        self.length[slot.index()] =
            (units.next_power_of_two().trailing_zeros() as usize).min(LENGTHS - 1) as u8;
    }

    /// Adds a waiting request to the books, or takes it off them.
    fn wait(&mut self, slot: Slot, direction: Direction, starts: bool) {
        let length = &mut self.by_length[direction.index()][usize::from(self.length[slot.index()])];
        if starts {
            length.push(&mut self.length_links, slot);
        } else {
            length.remove(&mut self.length_links, slot);
        }
        if direction == Direction::Read {
            self.want(slot, starts);
        }
    }

    /// A read waits for its units, or no longer does.
    fn want(&mut self, slot: Slot, starts: bool) {
        let vector = &self.vectors[slot.index() * self.words..][..self.words];
        tally(vector, &mut self.reads_waiting, starts, 1, &mut self.wanted);
    }

    /// The same for an outstanding request.
    fn occupy(&mut self, slot: Slot, request: &QueuedRequest, starts: bool) {
        let vector = &self.vectors[slot.index() * self.words..][..self.words];
        tally(vector, &mut self.outstanding, starts, self.unit_depth, &mut self.full);
        if request.request.direction == Direction::Read {
            if starts { self.reads_out += 1 } else { self.reads_out -= 1 }
        }
        if let Some((regions, outstanding)) = &mut self.regions {
            let count = &mut outstanding[regions.of(request.request.start)];
            if starts { *count += 1 } else { *count -= 1 }
        }
    }

    /// Whether all units of a request, and its region, have room for it.
    #[inline]
    fn fits(&self, slot: Slot, direction: Direction, gate: &Gate<'_>) -> bool {
        let taken = self.full.iter().zip(&self.claimed).zip(&self.wanted).map(|((full, claimed), wanted)| {
            full | claimed | if direction == Direction::Write { *wanted } else { 0 }
        });
        self.vector(slot).iter().zip(taken).all(|(vector, taken)| vector & taken == 0)
            && self.region_has_room(slot, gate)
            && gate.accepts(slot)
    }

    fn region_has_room(&self, slot: Slot, gate: &Gate<'_>) -> bool {
        self.regions.as_ref().is_none_or(|(regions, outstanding)| {
            outstanding[regions.of(gate.queue().get(slot).request.start)] < self.region_depth
        })
    }

    /// The oldest requests of both directions that are past their deadlines, the later one last; and when the next will be.
    fn late(&self, now: Ns, gate: &Gate<'_>) -> ([Option<(Slot, Direction)>; 2], Ns) {
        let mut late = [None; 2];
        let mut next = Ns::MAX;
        for direction in Direction::ALL {
            let Some(slot) = self.arrivals[direction.index()].first() else { continue };
            let due = gate.queue().get(slot).entered + self.wait_max[direction.index()];
            if due > now {
                next = next.min(due);
            } else {
                late[direction.index()] = Some((due, slot, direction));
            }
        }
        late.sort_unstable_by_key(|found| found.map_or(Ns::MAX, |(due, ..)| due));
        (late.map(|found| found.map(|(_, slot, direction)| (slot, direction))), next)
    }

    /// The shortest, and of those the oldest, that fits.
    fn find(&self, direction: Direction, gate: &Gate<'_>) -> Option<Slot> {
        let mut tries = self.look_ahead;
        for length in &self.by_length[direction.index()] {
            let mut at = length.first();
            while let Some(slot) = at {
                if tries == 0 {
                    return None;
                }
                tries -= 1;
                if self.fits(slot, direction, gate) {
                    return Some(slot);
                }
                at = self.length_links.next(slot);
            }
        }
        None
    }

    fn issue(&mut self, slot: Slot, direction: Direction, gate: &Gate<'_>) -> Decision {
        self.arrivals[direction.index()].remove(&mut self.arrival_links, slot);
        self.wait(slot, direction, false);
        self.occupy(slot, gate.queue().get(slot), true);
        Decision::Issue(slot)
    }
}

fn wake(at: Ns) -> Decision {
    if at == Ns::MAX { Decision::Wait } else { Decision::WakeAt(at) }
}

/// Counts one request more or less on each unit of its vector; `reached` holds the units that count `limit` or more.
fn tally(vector: &[u64], counts: &mut [u16], more: bool, limit: u16, reached: &mut [u64]) {
    for (word, (&vector, reached)) in vector.iter().zip(reached).enumerate() {
        let mut bits = vector;
        while bits != 0 {
            let bit = bits & bits.wrapping_neg();
            bits ^= bit;
            let count = &mut counts[word * 64 + bit.trailing_zeros() as usize];
            if more {
                *count += 1
            } else {
                *count -= 1
            }
            if *count >= limit { *reached |= bit } else { *reached &= !bit }
        }
    }
}

impl HostScheduler for Weave {
    fn insert(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.set_vector(slot, request.pages);
        let direction = request.request.direction;
        self.arrivals[direction.index()].push(&mut self.arrival_links, slot);
        self.wait(slot, direction, true);
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        let direction = before.request.direction;
        let length = self.length[slot.index()];
        if direction == Direction::Read {
            self.want(slot, false);
        }
        self.set_vector(slot, after.pages);
        if direction == Direction::Read {
            self.want(slot, true);
        }
        // Among its equals it keeps its place; longer, it is the youngest of the longer ones.
        if self.length[slot.index()] != length {
            let lists = &mut self.by_length[direction.index()];
            lists[usize::from(length)].remove(&mut self.length_links, slot);
            lists[usize::from(self.length[slot.index()])].push(&mut self.length_links, slot);
        }
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        let direction = request.request.direction;
        self.arrivals[direction.index()].remove(&mut self.arrival_links, slot);
        self.wait(slot, direction, false);
    }

    fn dispatch(&mut self, now: Ns, gate: &Gate<'_>) -> Decision {
        self.claimed.fill(0);
        let (late, next) = self.late(now, gate);
        for (slot, direction) in late.into_iter().flatten() {
            // Late, it waits for no one but those before it.
            if self.fits(slot, Direction::Read, gate) {
                self.late[direction.index()] += 1;
                return self.issue(slot, direction, gate);
            }
            let vector = &self.vectors[slot.index() * self.words..][..self.words];
            self.claimed.iter_mut().zip(vector).for_each(|(claimed, vector)| *claimed |= vector);
        }
        if let Some(slot) = self.find(Direction::Read, gate) {
            self.last_read = now;
            return self.issue(slot, Direction::Read, gate);
        }
        let held = self.last_read + self.write_hold;
        if self.reads_out > self.reads_out_max && now < held {
            let writes_wait = !self.arrivals[Direction::Write.index()].is_empty();
            return wake(if writes_wait { next.min(held) } else { next });
        }
        if let Some(slot) = self.find(Direction::Write, gate) {
            return self.issue(slot, Direction::Write, gate);
        }
        wake(next)
    }

    fn completed(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.occupy(slot, request, false);
    }

    fn counters(&self) -> Counters {
        Counters::from([("late_reads", self.late[0]), ("late_writes", self.late[1])])
    }

    fn notes(&self) -> Vec<String> {
        self.regions.iter().filter_map(|(regions, _)| regions.note()).collect()
    }
}
