//! K2, after Miemietz et al., "K2: Work-Constraining Scheduling of NVMe-Attached Storage", RTSS 2019: what is at the device
//! is bounded, by number and by the time that it is reckoned to take, so that a real-time request that arrives finds little
//! before it. Real-time requests go first, everything else in order of arrival.

use super::cost::{CALIBRATIONS, Cost};
use super::list::{Links, List};
use super::tunables::{TunableKind, TunableValues};
use super::{Counters, Decision, Entry, Growth, HostScheduler, Tunable};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::{Direction, Ns, Request};

pub(super) const ENTRY: Entry = Entry {
    name: "k2",
    summary: "real-time requests first, and little at the device: its estimated time is bounded",
    source: "Miemietz et al., RTSS 2019",
    tunables: &TUNABLES,
    uses_units: false,
    build: |host, values| Ok(Box::new(K2::new(host.queue_length, values))),
};

const TUNABLES: [Tunable; 8] = {
    let [small_read, large_read, small_write, large_write] = CALIBRATIONS;
    [
        Tunable {
            name: "max_inflight",
            unit: "requests",
            summary: "requests at the device at most; fewer lets a real-time request find less before it, more keeps more units busy",
            kind: TunableKind::Number { default: 32, min: 1, max: 65_536 },
        },
        Tunable {
            name: "max_inflight_latency",
            unit: "ns",
            summary: "sum of the estimated times of all requests at the device, at most; a request that exceeds it alone goes alone",
            kind: TunableKind::Number { default: 20_510_720, min: 1, max: 60_000_000_000 },
        },
        Tunable {
            name: "real_time",
            unit: "",
            summary: "which requests are of the real-time class: traces carry no priorities. synchronous: those that somebody waits for",
            kind: TunableKind::Choice(&["reads", "synchronous", "process", "none"]),
        },
        Tunable {
            name: "real_time_process",
            unit: "",
            summary: "with real_time=process: the process whose requests are of the real-time class",
            kind: TunableKind::Number { default: 0, min: 0, max: u32::MAX as u64 },
        },
        small_read,
        large_read,
        small_write,
        large_write,
    ]
};

/// Which requests are of the real-time class.
#[derive(Clone, Copy)]
enum RealTime {
    Reads,
    Synchronous,
    Process(u32),
    None,
}

impl RealTime {
    fn new(values: &TunableValues) -> RealTime {
        match values.choice("real_time") {
            "reads" => RealTime::Reads,
            "synchronous" => RealTime::Synchronous,
            "process" => RealTime::Process(values.number("real_time_process") as u32),
            _ => RealTime::None,
        }
    }

    /// Number of a request's class: 0 real-time, 1 the rest.
    fn class(self, request: &Request) -> usize {
        let is_real_time = match self {
            RealTime::Reads => request.direction == Direction::Read,
            RealTime::Synchronous => request.synchronous,
            RealTime::Process(process) => request.process == process,
            RealTime::None => false,
        };
        usize::from(!is_real_time)
    }
}

struct K2 {
    cost: Cost,
    real_time: RealTime,
    max_inflight: u64,
    max_inflight_latency: Ns,
    links: Links,
    /// Waiting requests by class, in order of arrival.
    waiting: [List; 2],
    inflight: u64,
    inflight_latency: Ns,
    /// The head that was held back last, so that each is counted once.
    held_back: Option<Slot>,
    real_time_issued: u64,
    held: u64,
}

impl K2 {
    fn new(slots: u32, values: &TunableValues) -> K2 {
        K2 {
            cost: Cost::new(values),
            real_time: RealTime::new(values),
            max_inflight: values.number("max_inflight"),
            max_inflight_latency: Ns(values.number("max_inflight_latency")),
            links: Links::new(slots),
            waiting: [List::EMPTY; 2],
            inflight: 0,
            inflight_latency: Ns::ZERO,
            held_back: None,
            real_time_issued: 0,
            held: 0,
        }
    }

    /// Whether the device has room for so much more.
    fn fits(&self, cost: Ns) -> bool {
        self.inflight == 0
            || self.inflight < self.max_inflight && self.inflight_latency + cost <= self.max_inflight_latency
    }
}

impl HostScheduler for K2 {
    fn insert(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.waiting[self.real_time.class(&request.request)].push(&mut self.links, slot);
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        // A request of the rest must not lend a real-time one its size, nor borrow its class.
        self.real_time.class(&growth.into.request) == self.real_time.class(growth.joining)
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        self.waiting[self.real_time.class(&request.request)].remove(&mut self.links, slot);
    }

    fn dispatch(&mut self, _now: Ns, gate: &Gate<'_>) -> Decision {
        let class = usize::from(self.waiting[0].is_empty());
        let Some(slot) = self.waiting[class].first() else { return Decision::Wait };
        let cost = self.cost.of(&gate.queue().get(slot).request);
        if !self.fits(cost) {
            self.held += u64::from(self.held_back.replace(slot) != Some(slot));
            return Decision::Wait;
        }
        if !gate.accepts(slot) {
            return Decision::Wait;
        }
        self.held_back = None;
        self.waiting[class].remove(&mut self.links, slot);
        self.inflight += 1;
        self.inflight_latency = self.inflight_latency + cost;
        self.real_time_issued += u64::from(class == 0);
        Decision::Issue(slot)
    }

    fn completed(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.inflight -= 1;
        self.inflight_latency = self.inflight_latency - self.cost.of(&request.request);
    }

    fn counters(&self) -> Counters {
        Counters::from([("real_time", self.real_time_issued), ("held", self.held)])
    }
}
