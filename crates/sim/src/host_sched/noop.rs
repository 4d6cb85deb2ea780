//! NOOP: arrival order. A head that the device does not take holds back all behind it (TCAD paper, section IV-B.4, figure 6).

use super::fifo::{Fifo, Lane};
use super::{Decision, Entry, HostScheduler};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "noop",
    summary: "arrival order",
    source: "Gao et al., IEEE TCAD 2017, section IV-B.4 and figure 6",
    tunables: &[],
    uses_units: false,
    build: |host, _| Ok(Box::new(Noop(Fifo::with_capacity(host.queue_length)))),
};

struct Noop(Fifo);

impl HostScheduler for Noop {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.0.insert(now, slot, request);
    }

    fn removed(&mut self, slot: Slot, _request: &QueuedRequest, _into: Slot) {
        self.0.forget(slot);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        self.0.take(|slot| gate.accepts(slot)).map_or(Decision::Wait, Decision::Issue)
    }
}
