//! Deadline as Linux has it today (6.x, `block/mq-deadline.c`, documented in `Documentation/block/deadline-iosched.rst`):
//! each direction goes on where its own last request was, also after a batch of the other.

use super::deadline::{
    Alternation, FIFO_BATCH, FRONT_MERGES, READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, expire,
};
use super::elevator::{Dispatching, Elevator, Pick};
use super::sorted::{Sorted, Storage};
use super::{Counters, Entry, Growth};
use crate::host::{HostQueue, QueuedRequest, Side, Slot};
use planewise_model::{Direction, Ns};

pub(super) const ENTRY: Entry = Entry {
    name: "mq-deadline",
    summary: "deadline with a position of its own for each direction",
    source: "Linux 6.x, Documentation/block/deadline-iosched.rst",
    tunables: &[READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, FIFO_BATCH, FRONT_MERGES],
    uses_units: false,
    build: |host, values| {
        Ok(Box::new(Dispatching::new(MqDeadline {
            storage: Storage::new(host.queue_length),
            waiting: Sorted::EMPTY,
            positions: [0; 2],
            // As Linux begins (`dd_init_sched`).
            direction: Direction::Write,
            batching: 0,
            alternation: Alternation::new(values),
            expire: expire(values),
            fifo_batch: values.number("fifo_batch"),
            front_merges: values.number("front_merges") == 1,
            expired: 0,
        })))
    },
};

struct MqDeadline {
    storage: Storage,
    waiting: Sorted,
    /// First sector of the last request of each direction (`latest_pos`).
    positions: [u64; 2],
    /// That of the batch (`last_dir`).
    direction: Direction,
    batching: u64,
    alternation: Alternation,
    expire: [Ns; 2],
    fifo_batch: u64,
    front_merges: bool,
    expired: u64,
}

impl MqDeadline {
    /// The request that goes on by address.
    fn next(&self, direction: Direction) -> Option<Slot> {
        self.waiting.at_or_after(&self.storage, direction, self.positions[direction.index()])
    }

    /// The first request of a new batch.
    fn begin(&mut self, now: Ns) -> Option<Slot> {
        let direction = self.alternation.choose(&self.waiting)?;
        self.direction = direction;
        self.batching = 0;
        let expired = self.waiting.expired(&self.storage, direction, now);
        self.expired += u64::from(expired.is_some());
        expired.or(self.next(direction)).or(self.waiting.oldest(direction))
    }
}

impl Elevator for MqDeadline {
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
        self.waiting.remove(&mut self.storage, slot, request.request.direction);
    }

    fn pick(&mut self, now: Ns, queue: &HostQueue) -> Pick {
        let goes_on = self.next(self.direction).filter(|_| self.batching < self.fifo_batch);
        let Some(slot) = goes_on.or_else(|| self.begin(now)) else { return Pick::Nothing };
        self.batching += 1;
        self.positions[self.direction.index()] = queue.get(slot).request.start.0;
        self.waiting.remove(&mut self.storage, slot, self.direction);
        Pick::Request(slot)
    }

    fn counters(&self) -> Counters {
        Counters::from([("expired", self.expired)])
    }
}
