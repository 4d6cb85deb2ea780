//! LIFO: the youngest request first. What it trades: freshness against starvation of the old.

use super::{Decision, Entry, HostScheduler};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "lifo",
    summary: "youngest request first",
    source: "an example",
    tunables: &[],
    uses_units: false,
    build: |host, _| Ok(Box::new(Lifo { waiting: Vec::with_capacity(host.queue_length as usize) })),
};

struct Lifo {
    waiting: Vec<Slot>,
}

impl HostScheduler for Lifo {
    fn insert(&mut self, _now: Ns, slot: Slot, _request: &QueuedRequest) {
        self.waiting.push(slot);
    }

    fn removed(&mut self, slot: Slot, _request: &QueuedRequest, _into: Slot) {
        self.waiting.retain(|waiting| *waiting != slot);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        match self.waiting.last() {
            Some(&slot) if gate.accepts(slot) => {
                self.waiting.pop();
                Decision::Issue(slot)
            }
            _ => Decision::Wait,
        }
    }
}
