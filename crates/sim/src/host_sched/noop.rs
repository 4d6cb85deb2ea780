//! NOOP: arrival order. A head that the device does not take holds back all behind it (TCAD paper, section IV-B.4, figure 6).

use super::fifo::{Fifo, Lane};
use super::tunables::TunableKind;
use super::{Decision, Entry, HostScheduler, Tunable};
use crate::host::{Gate, HostQueue, QueuedRequest, Slot};
use planewise_model::{Ns, Request};
use std::collections::VecDeque;

pub(super) const ENTRY: Entry = Entry {
    name: "noop",
    summary: "arrival order",
    source: "Gao et al., IEEE TCAD 2017, section IV-B.4 and figure 6",
    tunables: &[Tunable {
        name: "merge",
        summary: "join a request to a waiting one that it is adjacent to, as Linux does: fewer, larger requests; the papers do not",
        kind: TunableKind::Choice(&["none", "adjacent"]),
    }],
    build: |host, values| {
        Box::new(Noop {
            waiting: Fifo::with_capacity(host.queue_length),
            mergeable: (values.choice("merge") == "adjacent").then(VecDeque::new),
        })
    },
};

/// Largest request that merging makes: 512 KiB, the `max_sectors_kb` that most Linux block devices start with.
const MERGED_SECTORS_MAX: u32 = 1024;

struct Noop {
    waiting: Fifo,
    /// Waiting requests, youngest last, when merging.
    mergeable: Option<VecDeque<Slot>>,
}

impl HostScheduler for Noop {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.waiting.insert(now, slot, request);
        if let Some(mergeable) = &mut self.mergeable {
            mergeable.push_back(slot);
        }
    }

    fn merge_into(&self, request: &Request, queue: &HostQueue) -> Option<Slot> {
        self.mergeable.as_ref()?.iter().rev().copied().find(|&slot| {
            let waiting = &queue.get(slot).request;
            let adjacent = waiting.end() == request.start || request.end() == waiting.start;
            adjacent
                && waiting.direction == request.direction
                && waiting.volume == request.volume
                && waiting.sectors + request.sectors <= MERGED_SECTORS_MAX
        })
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        match self.waiting.take(gate) {
            Some(slot) => {
                if let Some(mergeable) = &mut self.mergeable {
                    mergeable.retain(|&waiting| waiting != slot);
                }
                Decision::Issue(slot)
            }
            None => Decision::Wait,
        }
    }
}
