//! Weave: Planewise's own scheduler (docs/schedulers/weave.md). It is work conserving: what the device would take never
//! waits for something better, but for what is late. And it believes of the device what the device shows.
//!
//! * Of all waiting requests it issues one whose units have the least to do; of those a read first, where reads are the shorter
//!   ones; of those the oldest.
//! * Where the device serves directions in turns, it issues one direction for a while, then the other, each in the order of
//!   arrival: a turn of the device costs more than a busy unit.
//! * No request is passed by more than a number of later ones. The closer it comes to that, the less is done for others.

mod evidence;
mod loads;
mod ranks;
mod refused;

use super::list::{Links, List};
use super::tunables::TunableKind;
use super::{Counters, Decision, Entry, HostKnowledge, HostScheduler, Tunable, TunableValues};
use crate::host::{Answer, Gate, Line, QueuedRequest, Slot};
use evidence::Evidence;
use loads::Loads;
use planewise_model::units::SECTOR_BYTES;
use planewise_model::{Direction, Ns};
use ranks::{Preferred, Ranks};
use refused::Refused;

pub(super) const ENTRY: Entry = Entry {
    name: "weave",
    summary: "the request whose units have the least to do, reads first on ties, as far as the device shows that this pays",
    source: "Planewise, docs/schedulers/weave.md",
    tunables: &[
        Tunable {
            name: "passes_per_slot",
            unit: "requests",
            summary: "later requests that may be issued before one at most, for each slot of the I/O queue up to 64 (below 64 slots fewer, as their square); fewer bounds waits closer, more gives more to choose from, 0 is arrival order",
            kind: TunableKind::Number { default: 8, min: 0, max: 65_536 },
        },
        Tunable {
            name: "reads_first_per_slot",
            unit: "bytes",
            summary: "bytes issued before a request, for each slot of the I/O queue up to 64, until reads no longer go before it on ties; fewer protects writes, more favours reads",
            kind: TunableKind::Size { default: "64k" },
        },
        Tunable {
            name: "reads_first_longest",
            unit: "bytes",
            summary: "longest read that goes before others on ties; more favours longer reads, and leaves units idle where such reads come in rows",
            kind: TunableKind::Size { default: "16k" },
        },
        Tunable {
            name: "turn_requests",
            unit: "requests",
            summary: "requests of one direction in a row, on a device that takes turns; more saves turns, fewer lets the other direction wait less",
            kind: TunableKind::Number { default: 64, min: 1, max: 65_536 },
        },
        Tunable {
            name: "turn_bytes",
            unit: "bytes",
            summary: "bytes after which such a row ends, too: less than what a write buffer holds",
            kind: TunableKind::Size { default: "512k" },
        },
        Tunable {
            name: "look_ahead",
            unit: "requests",
            summary: "waiting requests looked at, in the order of arrival; fewer saves host time in long queues",
            kind: TunableKind::Number { default: 1024, min: 1, max: 4096 },
        },
    ],
    uses_units: true,
    build: |host, values| Ok(Box::new(Weave::new(host, values))),
};

/// Slots that count for what may go before a request: a queue of more has more to choose from, and as much to wait for. Fewer allow
/// fewer passes for each of them.
const FULL_QUEUE: u64 = 64;

struct Weave {
    loads: Loads,
    ranks: Ranks,
    evidence: Evidence,
    /// Waiting requests in the order of arrival, and outstanding ones by direction in the order of issue.
    waiting: List,
    outstanding: [List; 2],
    links: Links,
    refused: Refused,
    /// Those of one search.
    newly_refused: Vec<(Slot, Line)>,
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
    /// Requests in the device when it was issued.
    outstanding: u32,
}

struct Settings {
    /// Writes go to the units of their addresses.
    writes_stay: bool,
    passes_max: u64,
    reads_first_sectors: u64,
    read_sectors_max: u64,
    turn_requests: u64,
    turn_sectors: u64,
    look_ahead: u32,
}

/// Which requests go first: by load or not, and the direction that goes before the other among equals.
#[derive(Clone, Copy)]
struct Order {
    in_turns: bool,
    by_load: bool,
    first: Preferred,
    /// A request whose units are kept clear.
    clear: Option<Slot>,
}

impl Order {
    /// Arrival order.
    const ARRIVAL: Order = Order { in_turns: false, by_load: false, first: Preferred::Nobody, clear: None };
}

impl Weave {
    fn new(host: &HostKnowledge, values: &TunableValues) -> Weave {
        let slots = u64::from(host.queue_length).min(FULL_QUEUE);
        Weave {
            loads: Loads::new(&host.units, host.queue_length),
            ranks: Ranks::new(host.queue_length),
            evidence: Evidence::default(),
            waiting: List::EMPTY,
            outstanding: [List::EMPTY; 2],
            links: Links::new(host.queue_length),
            refused: Refused::new(host.queue_length),
            newly_refused: Vec::with_capacity(host.queue_length as usize),
            notes: vec![Note::default(); host.queue_length as usize],
            left: 0,
            left_sectors: 0,
            waiting_sectors: 0,
            turn: Direction::Read,
            turn_requests: 0,
            turn_sectors: 0,
            settings: Settings {
                writes_stay: host.writes_stay,
                // A short queue does few at a time: each pass costs the one that is passed more.
                passes_max: values.number("passes_per_slot") * slots * slots / FULL_QUEUE,
                read_sectors_max: values.number("reads_first_longest") / SECTOR_BYTES,
                reads_first_sectors: slots.saturating_mul(values.number("reads_first_per_slot"))
                    / SECTOR_BYTES,
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
            return Order { in_turns: true, first: Preferred::All(first), ..Order::ARRIVAL };
        }
        if self.evidence.may_take_turns() {
            return Order::ARRIVAL;
        }
        let passed = self.left_sectors.saturating_sub(self.notes[oldest.index()].sectors);
        let reads_first = self.evidence.reads_are_shorter() && passed < self.settings.reads_first_sectors;
        // Where the device moves writes, what a unit has to do is not what its addresses say.
        let by_load = self.settings.writes_stay && self.evidence.units_matter();
        let first = if reads_first { Preferred::ShortReads } else { Preferred::Nobody };
        Order { by_load, first, ..Order::ARRIVAL }
    }

    /// The first in an order that the device accepts.
    fn find(&mut self, order: Order, gate: &Gate<'_>) -> Option<Slot> {
        let Weave { loads, ranks, newly_refused, .. } = self;
        let by = order.by_load.then_some(&*loads);
        let found = ranks.first(by, order.first, self.settings.look_ahead, |slot| {
            if order.clear.is_some_and(|clear| loads.meet(clear, slot)) {
                return false;
            }
            let answer = gate.ask(slot);
            if let Answer::Refused(line) = answer {
                newly_refused.push((slot, line));
            }
            answer == Answer::Accepted
        });
        for (slot, line) in self.newly_refused.drain(..) {
            self.ranks.refuse(slot);
            self.refused.add(slot, line);
        }
        found
    }

    fn is_short_read(&self, request: &QueuedRequest) -> bool {
        request.request.direction == Direction::Read
            && u64::from(request.request.sectors) <= self.settings.read_sectors_max
    }

    /// A request no longer waits.
    fn leave(&mut self, slot: Slot, request: &QueuedRequest) {
        let sectors = u64::from(request.request.sectors);
        self.waiting.remove(&mut self.links, slot);
        self.ranks.remove(slot);
        self.refused.remove(slot);
        self.loads.leave(slot);
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
            was_behind: self.loads.is_behind(slot),
            outstanding: self.outstanding.iter().map(List::count).sum(),
            had_a_chance: !self.outstanding[direction.other().index()].is_empty(),
        };
        self.outstanding[direction.index()].push(&mut self.links, slot);
        self.loads.add(slot);
        Decision::Issue(slot)
    }
}

impl HostScheduler for Weave {
    fn insert(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.loads.enter(slot, request.pages);
        let is_short_read = self.is_short_read(request);
        self.ranks.push(slot, request.request.direction, is_short_read);
        let note = &mut self.notes[slot.index()];
        note.number = self.left + u64::from(self.waiting.count());
        note.sectors = self.left_sectors + self.waiting_sectors;
        self.waiting_sectors += u64::from(request.request.sectors);
        self.waiting.push(&mut self.links, slot);
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        self.waiting_sectors += u64::from(after.request.sectors - before.request.sectors);
        self.loads.leave(slot);
        self.loads.enter(slot, after.pages);
        self.ranks.set_short_read(slot, self.is_short_read(after));
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        self.leave(slot, request);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        if !gate.continues() {
            self.refused.ask_again(gate, &mut self.ranks);
        }
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
        if order.by_load && !self.loads.follows() {
            let Weave { loads, waiting, links, .. } = self;
            loads.follow(std::iter::successors(waiting.first(), |&slot| links.next(slot)));
        }
        let Some(slot) = self.find(order, gate) else { return Decision::Wait };
        self.issued.by_load += u64::from(order.by_load);
        self.issued.in_turns += u64::from(order.in_turns);
        self.issued.reads_first += u64::from(!order.in_turns && order.first == Preferred::ShortReads);
        self.issue(slot, gate.queue().get(slot))
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let direction = request.request.direction;
        self.outstanding[direction.index()].remove(&mut self.links, slot);
        self.loads.remove(slot);
        let note = self.notes[slot.index()];
        let overtook = note.had_a_chance.then(|| {
            let earliest = self.outstanding[direction.other().index()].first();
            earliest.is_some_and(|other| self.notes[other.index()].number < note.number)
        });
        let time = now - request.issued;
        self.evidence.completed(direction, time, note.outstanding, note.was_behind, overtook);
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("issued_by_load", self.issued.by_load),
            ("issued_in_turns", self.issued.in_turns),
            ("issued_late", self.issued.late),
            ("issued_reads_first", self.issued.reads_first),
        ])
    }
}
