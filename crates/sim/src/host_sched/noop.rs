//! NOOP: arrival order. A head that the device does not take holds back all behind it (TCAD paper, section IV-B.4, figure 6), unless
//! `pass_blocked` says that each request goes as soon as its own chips are idle (GC paper, section 4.2.2).

use super::fifo::{Fifo, Lane};
use super::tunables::TunableKind;
use super::{Decision, Entry, HostScheduler, Tunable};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;

pub(super) const ENTRY: Entry = Entry {
    name: "noop",
    summary: "arrival order",
    source: "Gao et al., IEEE TCAD 2017, section IV-B.4 and figure 6",
    tunables: &[PASS_BLOCKED],
    uses_units: false,
    build: |host, values| {
        Ok(Box::new(Noop {
            line: Fifo::with_capacity(host.queue_length),
            passes: values.choice(PASS_BLOCKED.name) == "yes",
        }))
    },
};

const PASS_BLOCKED: Tunable = Tunable {
    name: "pass_blocked",
    unit: "",
    summary: "whether requests behind one that the device does not take yet may go before it: no chip idles, but a request of many chips may wait without bound",
    kind: TunableKind::Choice(&["no", "yes"]),
};

struct Noop {
    line: Fifo,
    passes: bool,
}

impl HostScheduler for Noop {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.line.insert(now, slot, request);
    }

    fn removed(&mut self, slot: Slot, _request: &QueuedRequest, _into: Slot) {
        self.line.forget(slot);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        let next = match self.passes {
            false => self.line.take(|slot| gate.accepts(slot)),
            true => self.line.take_any(|slot| gate.accepts(slot)),
        };
        next.map_or(Decision::Wait, Decision::Issue)
    }
}
