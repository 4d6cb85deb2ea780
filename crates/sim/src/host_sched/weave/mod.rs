//! Weave: Planewise's own scheduler (docs/schedulers/weave.md). It never keeps the device waiting to make things better later,
//! but for one rule that is given up as soon as requests pile up, and it believes of the device what the device shows.
//!
//! * Of all waiting requests it issues one whose units have the least to do; of those a read first, where reads are the shorter
//!   ones; of those the oldest.
//! * Where the device serves directions in turns, it issues one direction for a while, then the other, each in the order of
//!   arrival: a turn of the device costs more than a busy unit.
//! * While few requests wait, a write stays here as long as two other writes are outstanding on one of its units, where writes queue
//!   by unit: inside the device, reads could not pass it any more.
//! * No request is passed by more than `passes_max` later ones. The closer it comes to that, the less is done for others.

mod evidence;
mod loads;

use super::list::{Links, List};
use super::tunables::TunableKind;
use super::{Counters, Decision, Entry, HostKnowledge, HostScheduler, Tunable, TunableValues};
use crate::host::{Gate, QueuedRequest, Slot};
use evidence::Evidence;
use loads::Loads;
use planewise_model::units::SECTOR_BYTES;
use planewise_model::{Direction, Ns};

pub(super) const ENTRY: Entry = Entry {
    name: "weave",
    summary: "the request whose units have the least to do, reads first on ties, as far as the device shows that this pays",
    source: "Planewise, docs/schedulers/weave.md",
    tunables: &[
        Tunable {
            name: "passes_max",
            unit: "requests",
            summary: "later requests that may be issued before one at most; fewer bounds waits closer, more lets reads go first for longer",
            kind: TunableKind::Number { default: 512, min: 0, max: 1_000_000 },
        },
        Tunable {
            name: "reads_first_bytes",
            unit: "bytes",
            summary: "bytes of later requests that may be issued before a request until reads no longer go before it on ties; fewer protects writes, more favours reads",
            kind: TunableKind::Size { default: "2m" },
        },
        Tunable {
            name: "write_hold_depth",
            unit: "requests",
            summary: "writes outstanding on a unit from which on others wait here, while few wait; fewer keeps the way clear for reads, more hides what a unit can do at once, 0 holds none",
            kind: TunableKind::Number { default: 2, min: 0, max: loads::LOADS as u64 },
        },
        Tunable {
            name: "write_hold_waiting",
            unit: "requests",
            summary: "requests waiting from which on no write is held; fewer gives in to a burst sooner, more keeps the way clear for longer",
            kind: TunableKind::Number { default: 8, min: 0, max: 4096 },
        },
        Tunable {
            name: "turn_requests",
            unit: "requests",
            summary: "requests of one direction in a row, on a device that takes turns; more saves turns, fewer lets the other direction wait less",
            kind: TunableKind::Number { default: 32, min: 1, max: 65_536 },
        },
        Tunable {
            name: "turn_bytes",
            unit: "bytes",
            summary: "bytes after which such a row ends, too: less than what a write buffer holds",
            kind: TunableKind::Size { default: "256k" },
        },
        Tunable {
            name: "look_ahead",
            unit: "requests",
            summary: "waiting requests looked at, in the order of arrival; fewer saves host time in long queues",
            kind: TunableKind::Number { default: 512, min: 1, max: 4096 },
        },
    ],
    uses_units: true,
    build: |host, values| Ok(Box::new(Weave::new(host, values))),
};

/// Arrivals after a read for which writes are held: without reads there is nothing to keep the way clear for.
const READS_REMEMBERED: u32 = 256;

struct Weave {
    loads: Loads,
    evidence: Evidence,
    /// Waiting requests in the order of arrival, and outstanding ones by direction in the order of issue.
    waiting: List,
    outstanding: [List; 2],
    links: Links,
    /// By slot.
    notes: Vec<Note>,
    /// Requests that left the waiting list, and their sectors.
    left: u64,
    left_sectors: u64,
    waiting_sectors: u64,
    /// The direction issued last, and how many requests and sectors of it in a row.
    turn: Direction,
    turn_requests: u64,
    turn_sectors: u64,
    /// Arrivals for which the last read is still remembered.
    reads_remembered: u32,
    settings: Settings,
    issued: Issued,
}

/// Requests issued, by the rule that they went by.
#[derive(Default)]
struct Issued {
    by_load: u64,
    in_turns: u64,
    reads_first: u64,
    late: u64,
    /// Times that nothing was issued for a write that was held.
    holds: u64,
}

/// Of one request.
#[derive(Clone, Copy, Default)]
struct Note {
    /// Waiting: [`Weave::left`] as it will be when all that were before it have left. Outstanding: as it was at its issue.
    number: u64,
    /// Waiting: the same of [`Weave::left_sectors`].
    sectors: u64,
    /// One of its units was busy when it was issued.
    was_behind: bool,
    /// A request of the other direction was outstanding when it was issued.
    had_a_chance: bool,
}

struct Settings {
    /// Writes go to the units of their addresses.
    writes_stay: bool,
    passes_max: u64,
    reads_first_sectors: u64,
    write_hold_depth: usize,
    write_hold_waiting: u32,
    turn_requests: u64,
    turn_sectors: u64,
    look_ahead: u32,
}

/// Which requests go first: by load or not, and the direction that goes before the other among equals.
#[derive(Clone, Copy)]
struct Order {
    in_turns: bool,
    by_load: bool,
    first: Option<Direction>,
    holds_writes: bool,
    /// A request whose units are kept clear.
    clear: Option<Slot>,
}

impl Weave {
    fn new(host: &HostKnowledge, values: &TunableValues) -> Weave {
        Weave {
            loads: Loads::new(&host.units, host.queue_length),
            evidence: Evidence::default(),
            waiting: List::EMPTY,
            outstanding: [List::EMPTY; 2],
            links: Links::new(host.queue_length),
            notes: vec![Note::default(); host.queue_length as usize],
            left: 0,
            left_sectors: 0,
            waiting_sectors: 0,
            turn: Direction::Read,
            turn_requests: 0,
            turn_sectors: 0,
            reads_remembered: 0,
            settings: Settings {
                writes_stay: host.writes_stay,
                passes_max: values.number("passes_max"),
                reads_first_sectors: values.number("reads_first_bytes") / SECTOR_BYTES,
                // Where the device moves what is written, a unit says nothing of writes.
                write_hold_depth: match values.number("write_hold_depth") as usize {
                    depth if depth > 0 && host.writes_stay => depth,
                    _ => usize::MAX,
                },
                write_hold_waiting: values.number("write_hold_waiting") as u32,
                turn_requests: values.number("turn_requests"),
                turn_sectors: values.number("turn_bytes") / SECTOR_BYTES,
                look_ahead: values.number("look_ahead") as u32,
            },
            issued: Issued::default(),
        }
    }

    /// Later requests that were issued before the oldest one: nobody was passed by more.
    fn passes(&self, oldest: Slot) -> u64 {
        self.left - self.notes[oldest.index()].number
    }

    fn order(&self, oldest: Slot, gate: &Gate<'_>) -> Order {
        if self.evidence.takes_turns() {
            let goes_on = self.turn_requests < self.settings.turn_requests
                && self.turn_sectors < self.settings.turn_sectors;
            // Nor is a turn ended where arrival order would not end it.
            let first = if goes_on { self.turn } else { gate.queue().get(oldest).request.direction };
            return Order { in_turns: true, by_load: false, first: Some(first), holds_writes: false, clear: None };
        }
        if self.evidence.may_take_turns() {
            return Order { in_turns: false, by_load: false, first: None, holds_writes: false, clear: None };
        }
        let reads_are_shorter = self.evidence.reads_are_shorter();
        let passed = self.left_sectors.saturating_sub(self.notes[oldest.index()].sectors);
        let reads_first = reads_are_shorter && passed < self.settings.reads_first_sectors;
        let by_load = self.evidence.units_matter();
        Order {
            in_turns: false,
            by_load,
            first: reads_first.then_some(Direction::Read),
            holds_writes: by_load
                && reads_are_shorter
                && self.reads_remembered > 0
                && self.waiting.count() < self.settings.write_hold_waiting
                && self.evidence.queues_by_unit(Direction::Write),
            clear: None,
        }
    }

    /// The first in an order; and whether a write was held.
    fn find(&self, order: Order, gate: &Gate<'_>) -> (Option<Slot>, bool) {
        let mut best: Option<((usize, usize), Slot)> = None;
        let mut held = false;
        let mut at = self.waiting.first();
        for _ in 0..self.settings.look_ahead {
            let Some(slot) = at else { break };
            at = self.links.next(slot);
            let direction = gate.queue().get(slot).request.direction;
            let load = if order.by_load { self.loads.of(slot) } else { 0 };
            if order.holds_writes
                && direction == Direction::Write
                && self.loads.of_writes(slot) >= self.settings.write_hold_depth
            {
                held = true;
                continue;
            }
            let second = usize::from(order.first.is_some_and(|first| first != direction));
            // Loads that include writes say little where writes go elsewhere.
            let rank = if self.settings.writes_stay { (load, second) } else { (second, load) };
            let is_better = best.is_none_or(|(best, _)| rank < best)
                && order.clear.is_none_or(|clear| !self.loads.meet(clear, slot))
                && gate.accepts(slot);
            if is_better {
                best = Some((rank, slot));
                if rank == (0, 0) {
                    break;
                }
            }
        }
        (best.map(|(_, slot)| slot), held)
    }

    /// A request no longer waits.
    fn leave(&mut self, slot: Slot, request: &QueuedRequest) {
        let sectors = u64::from(request.request.sectors);
        self.waiting.remove(&mut self.links, slot);
        self.left += 1;
        self.left_sectors += sectors;
        self.waiting_sectors -= sectors;
    }

    fn issue(&mut self, slot: Slot, request: &QueuedRequest) -> Decision {
        let direction = request.request.direction;
        let mut sectors = u64::from(request.request.sectors);
        // What takes long anyway is worth a turn of its own.
        if sectors >= self.settings.turn_sectors / 8 {
            sectors = self.settings.turn_sectors;
        }
        if direction == self.turn {
            self.turn_requests += 1;
            self.turn_sectors += sectors;
        } else {
            (self.turn, self.turn_requests, self.turn_sectors) = (direction, 1, sectors);
        }
        self.leave(slot, request);
        self.notes[slot.index()] = Note {
            number: self.left,
            sectors: 0,
            was_behind: self.loads.of(slot) > 0,
            had_a_chance: !self.outstanding[direction.other().index()].is_empty(),
        };
        self.outstanding[direction.index()].push(&mut self.links, slot);
        self.loads.add(slot, direction);
        Decision::Issue(slot)
    }
}

impl HostScheduler for Weave {
    fn insert(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.loads.place(slot, request.pages);
        let note = &mut self.notes[slot.index()];
        note.number = self.left + u64::from(self.waiting.count());
        note.sectors = self.left_sectors + self.waiting_sectors;
        self.waiting_sectors += u64::from(request.request.sectors);
        self.waiting.push(&mut self.links, slot);
        self.reads_remembered = match request.request.direction {
            Direction::Read => READS_REMEMBERED,
            Direction::Write => self.reads_remembered.saturating_sub(1),
        };
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        self.waiting_sectors += u64::from(after.request.sectors - before.request.sectors);
        self.loads.place(slot, after.pages);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        self.leave(slot, request);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        let Some(oldest) = self.waiting.first() else { return Decision::Wait };
        let passes = self.passes(oldest);
        let mut order = self.order(oldest, gate);
        if passes >= self.settings.passes_max / 2 {
            if gate.accepts(oldest) {
                self.issued.late += 1;
                return self.issue(oldest, gate.queue().get(oldest));
            }
            if passes >= self.settings.passes_max {
                return Decision::Wait;
            }
            order.clear = Some(oldest);
        }
        let (found, held) = self.find(order, gate);
        let Some(slot) = found else {
            self.issued.holds += u64::from(held);
            return Decision::Wait;
        };
        self.issued.by_load += u64::from(order.by_load);
        self.issued.in_turns += u64::from(order.in_turns);
        self.issued.reads_first += u64::from(!order.in_turns && order.first == Some(Direction::Read));
        self.issue(slot, gate.queue().get(slot))
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction;
        self.outstanding[direction.index()].remove(&mut self.links, slot);
        self.loads.remove(slot, direction);
        let note = self.notes[slot.index()];
        let overtook = note.had_a_chance.then(|| {
            let earliest = self.outstanding[direction.other().index()].first();
            earliest.is_some_and(|other| self.notes[other.index()].number < note.number)
        });
        self.evidence.completed(direction, now - request.issued, note.was_behind, overtook);
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("issued_by_load", self.issued.by_load),
            ("issued_in_turns", self.issued.in_turns),
            ("issued_late", self.issued.late),
            ("issued_reads_first", self.issued.reads_first),
            ("writes_held", self.issued.holds),
        ])
    }
}
