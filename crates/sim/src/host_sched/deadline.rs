//! Deadline, as Linux 2.6.32 has it (`block/deadline-iosched.c`, documented in `Documentation/block/deadline-iosched.txt`):
//! batches in the order of addresses, reads before writes, and a deadline for every request.

use super::elevator::{Dispatching, Elevator, Pick};
use super::sorted::{Sorted, Storage};
use super::tunables::{EXPIRE_MAX_MS, TunableKind};
use super::{Counters, Entry, Growth, Tunable};
use crate::host::{HostQueue, QueuedRequest, Side, Slot};
use planewise_model::{Direction, Ns};

pub(super) const ENTRY: Entry = Entry {
    name: "deadline",
    summary: "batches by address, reads before writes, every request with a deadline",
    source: "Linux 2.6.32, Documentation/block/deadline-iosched.txt",
    tunables: &[READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, FIFO_BATCH, FRONT_MERGES],
    uses_units: false,
    build: |host, values| {
        Ok(Box::new(Dispatching::new(Deadline {
            storage: Storage::new(host.queue_length),
            waiting: Sorted::EMPTY,
            next: None,
            batching: 0,
            alternation: Alternation::new(values),
            expire: expire(values),
            fifo_batch: values.number("fifo_batch"),
            front_merges: values.number("front_merges") == 1,
            expired: 0,
        })))
    },
};

/// Shared with the elevators that descend from this one.
pub(super) const READ_EXPIRE: Tunable = Tunable {
    name: "read_expire",
    unit: "ms",
    summary: "time after its arrival by which a read should be dispatched; shorter bounds waits and breaks the order of addresses",
    kind: TunableKind::Number { default: 500, min: 0, max: EXPIRE_MAX_MS },
};
/// Shared with the elevators that descend from this one.
pub(super) const WRITE_EXPIRE: Tunable = Tunable {
    name: "write_expire",
    unit: "ms",
    summary: "time after its arrival by which a write should be dispatched; longer lets reads pass for longer",
    kind: TunableKind::Number { default: 5_000, min: 0, max: EXPIRE_MAX_MS },
};
/// Shared with the elevators that descend from this one.
pub(super) const WRITES_STARVED: Tunable = Tunable {
    name: "writes_starved",
    unit: "batches",
    summary: "batches of reads that may go before waiting writes; more favours reads",
    kind: TunableKind::Number { default: 2, min: 0, max: 1_000_000 },
};
/// Shared with the elevators that descend from this one.
pub(super) const FIFO_BATCH: Tunable = Tunable {
    name: "fifo_batch",
    unit: "requests",
    summary: "requests dispatched by address before deadlines and the other direction are looked at; more is throughput, fewer is latency",
    kind: TunableKind::Number { default: 16, min: 1, max: 1_000_000 },
};
/// Shared with the elevators that descend from this one.
pub(super) const FRONT_MERGES: Tunable = Tunable {
    name: "front_merges",
    unit: "",
    summary: "1: join requests to the front of others too, where the run merges at all; 0 saves the search where it finds nothing",
    kind: TunableKind::Number { default: 1, min: 0, max: 1 },
};

/// The deadlines' lengths, by direction.
pub(super) fn expire(values: &super::TunableValues) -> [Ns; 2] {
    ["read_expire", "write_expire"].map(|name| Ns::from_millis(values.number(name)))
}

/// Whose batch is next: reads before writes, but not before a write that so many batches of reads went before.
pub(super) struct Alternation {
    starved: u64,
    writes_starved: u64,
}

impl Alternation {
    pub(super) fn new(values: &super::TunableValues) -> Alternation {
        Alternation { starved: 0, writes_starved: values.number("writes_starved") }
    }

    /// The direction of the next batch; none when nothing waits.
    pub(super) fn choose(&mut self, waiting: &Sorted) -> Option<Direction> {
        let [reads, writes] = Direction::ALL.map(|direction| !waiting.is_empty(direction));
        if reads && writes {
            self.starved += 1;
        }
        let direction = match (reads, writes) {
            (false, false) => return None,
            (true, false) => Direction::Read,
            (true, true) if self.starved <= self.writes_starved => Direction::Read,
            (_, true) => Direction::Write,
        };
        if direction == Direction::Write {
            self.starved = 0;
        }
        Some(direction)
    }
}

struct Deadline {
    storage: Storage,
    waiting: Sorted,
    /// The request that goes on with the batch, with its direction (`next_rq`).
    next: Option<(Slot, Direction)>,
    batching: u64,
    alternation: Alternation,
    expire: [Ns; 2],
    fifo_batch: u64,
    front_merges: bool,
    expired: u64,
}

impl Deadline {
    fn take(&mut self, slot: Slot, direction: Direction) -> Pick {
        self.batching += 1;
        self.next = self.storage.next_by_address(slot).map(|next| (next, direction));
        self.waiting.remove(&mut self.storage, slot, direction);
        Pick::Request(slot)
    }
}

impl Elevator for Deadline {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        let deadline = now + self.expire[request.request.direction.index()];
        self.waiting.add(&mut self.storage, slot, request, deadline);
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        self.front_merges || growth.side == Side::Back
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        self.waiting.grew(&mut self.storage, slot, after);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        // The one it went into arrived earlier and so has the earlier deadline.
        if self.next.is_some_and(|(next, _)| next == slot) {
            self.next = self.storage.next_by_address(slot).map(|behind| (behind, request.request.direction));
        }
        self.waiting.remove(&mut self.storage, slot, request.request.direction);
    }

    fn pick(&mut self, now: Ns, _queue: &HostQueue) -> Pick {
        if let Some((slot, direction)) = self.next
            && self.batching < self.fifo_batch
        {
            return self.take(slot, direction);
        }
        let Some(direction) = self.alternation.choose(&self.waiting) else { return Pick::Nothing };
        self.batching = 0;
        let expired = self.waiting.expired(&self.storage, direction, now);
        self.expired += u64::from(expired.is_some());
        let next = self.next.filter(|&(_, of)| of == direction).map(|(slot, _)| slot);
        let slot = expired.or(next).or(self.waiting.oldest(direction)).expect("requests wait");
        self.take(slot, direction)
    }

    fn counters(&self) -> Counters {
        Counters::from([("expired", self.expired)])
    }
}
