//! NOOP: arrival order. A head that the device does not take holds back all behind it (TCAD paper, section IV-B.4, figure 6).

use super::fifo::{Fifo, Lane};
use super::tunables::TunableKind;
use super::{Decision, Entry, HostScheduler, Tunable};
use crate::host::{Gate, HostQueue, QueuedRequest, Slot};
use planewise_model::{Direction, Ns, Request};
use std::collections::BTreeMap;

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
            mergeable: (values.choice("merge") == "adjacent").then(Edges::default),
        })
    },
};

/// Largest request that merging makes: 512 KiB, the `max_sectors_kb` that most Linux block devices start with.
const MERGED_SECTORS_MAX: u32 = 1024;

struct Noop {
    waiting: Fifo,
    /// When merging.
    mergeable: Option<Edges>,
}

/// Waiting requests by where they begin and where they end. Of two with the same edge, the younger is found.
#[derive(Default)]
struct Edges {
    starts: BTreeMap<Edge, Slot>,
    ends: BTreeMap<Edge, Slot>,
}

/// Direction, volume, sector.
type Edge = (Direction, u32, u64);

impl Edges {
    fn insert(&mut self, slot: Slot, request: &Request) {
        self.starts.insert((request.direction, request.volume, request.start.0), slot);
        self.ends.insert((request.direction, request.volume, request.end().0), slot);
    }

    fn remove(&mut self, slot: Slot, request: &Request) {
        let start = (request.direction, request.volume, request.start.0);
        let end = (request.direction, request.volume, request.end().0);
        for (edges, edge) in [(&mut self.starts, start), (&mut self.ends, end)] {
            if edges.get(&edge) == Some(&slot) {
                edges.remove(&edge);
            }
        }
    }

    /// A waiting request that ends where `request` begins, or begins where it ends.
    fn adjacent(&self, request: &Request, queue: &HostQueue) -> Option<Slot> {
        let before = self.ends.get(&(request.direction, request.volume, request.start.0));
        let behind = self.starts.get(&(request.direction, request.volume, request.end().0));
        let fits = |slot: &Slot| queue.get(*slot).request.sectors + request.sectors <= MERGED_SECTORS_MAX;
        before.into_iter().chain(behind).copied().find(fits)
    }
}

impl HostScheduler for Noop {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.waiting.insert(now, slot, request);
        if let Some(edges) = &mut self.mergeable {
            edges.insert(slot, &request.request);
        }
    }

    fn merge_into(&self, request: &Request, queue: &HostQueue) -> Option<Slot> {
        self.mergeable.as_ref()?.adjacent(request, queue)
    }

    fn merged(&mut self, slot: Slot, before: &QueuedRequest, after: &QueuedRequest) {
        if let Some(edges) = &mut self.mergeable {
            edges.remove(slot, &before.request);
            edges.insert(slot, &after.request);
        }
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        let Some(slot) = self.waiting.take(gate) else { return Decision::Wait };
        if let Some(edges) = &mut self.mergeable {
            edges.remove(slot, &gate.queue().get(slot).request);
        }
        Decision::Issue(slot)
    }
}
