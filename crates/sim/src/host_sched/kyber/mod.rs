//! Kyber, as Linux has it today (6.x, `block/kyber-iosched.c`): reads and writes take tokens, and each kind has as many as
//! lets the other meet its target.

mod latencies;

use super::elevator::{Dispatching, Elevator, Pick};
use super::list::{Links, List};
use super::tunables::{Tunable, TunableKind};
use super::{Counters, Entry};
use crate::host::{HostQueue, QueuedRequest, Slot};
use latencies::{GOOD, Latencies};
use planewise_model::{Direction, Ns, Request};

pub(super) const ENTRY: Entry = Entry {
    name: "kyber",
    summary: "tokens for reads and writes, as many as let both meet their target latencies",
    source: "Linux 6.x, block/kyber-iosched.c",
    tunables: &[
        target("read_lat_nsec", 2_000_000, "reads should take no longer; shorter throttles writes sooner"),
        target("write_lat_nsec", 10_000_000, "writes should take no longer; shorter throttles reads sooner"),
    ],
    uses_units: false,
    build: |host, values| {
        let target = |name| Ns(values.number(name));
        Ok(Box::new(Dispatching::new(Kyber {
            links: Links::new(host.queue_length),
            domains: [
                Domain::new(256, 16, target("read_lat_nsec")),
                Domain::new(128, 8, target("write_lat_nsec")),
            ],
            current: 0,
            batching: 0,
            timer: None,
        })))
    },
};

const fn target(name: &'static str, default: u64, summary: &'static str) -> Tunable {
    const MINUTE: u64 = 60_000_000_000;
    Tunable { name, unit: "ns", summary, kind: TunableKind::Number { default, min: 1, max: MINUTE } }
}

/// Latencies are looked at so long after a request completed.
const PERIOD: Ns = Ns::from_millis(100);

/// Requests of one direction.
struct Domain {
    waiting: List,
    /// Requests that hold a token.
    taken: u64,
    tokens: u64,
    tokens_max: u64,
    /// Requests in a row before the other domain has its turn.
    batch: u64,
    latencies: Latencies,
    /// The last 99th percentile while no domain missed its target: it counts when one does before there is a new one.
    remembered: Option<usize>,
    shrunk: u64,
    grown: u64,
    token_waits: u64,
}

impl Domain {
    fn new(tokens: u64, batch: u64, target: Ns) -> Domain {
        Domain {
            waiting: List::EMPTY,
            taken: 0,
            tokens,
            tokens_max: tokens,
            batch,
            latencies: Latencies::new(target),
            remembered: None,
            shrunk: 0,
            grown: 0,
            token_waits: 0,
        }
    }

    /// Takes the first request, if it gets a token.
    fn take(&mut self, links: &mut Links) -> Option<Slot> {
        if self.taken >= self.tokens {
            self.token_waits += u64::from(!self.waiting.is_empty());
            return None;
        }
        let slot = self.waiting.pop(links)?;
        self.taken += 1;
        Some(slot)
    }

    /// Scales the tokens with the 99th percentile over the target: a domain that is quicker than it need be makes room, one
    /// that is too slow gets more.
    fn resize(&mut self, now: Ns, congested: bool) {
        let fresh = self.latencies.total_p99(now);
        let p99 = if congested {
            fresh.or(self.remembered.take())
        } else {
            self.remembered = fresh.or(self.remembered);
            fresh
        };
        let Some(p99) = p99.filter(|p99| congested || *p99 >= GOOD) else { return };
        let tokens = (self.tokens * (p99 as u64 + 1) / GOOD as u64).clamp(1, self.tokens_max);
        self.shrunk += u64::from(tokens < self.tokens);
        self.grown += u64::from(tokens > self.tokens);
        self.tokens = tokens;
    }
}

struct Kyber {
    links: Links,
    /// Reads, writes.
    domains: [Domain; 2],
    /// The domain of the batch, and requests of it so far.
    current: usize,
    batching: u64,
    /// When latencies are looked at next.
    timer: Option<Ns>,
}

impl Kyber {
    /// What the timer does, if it rang by now (`kyber_timer_fn`).
    fn ring(&mut self, now: Ns) {
        let Some(at) = self.timer.filter(|at| *at <= now) else { return };
        self.timer = None;
        let mut congested = false;
        for domain in &mut self.domains {
            congested |= domain.latencies.device_p90(at).is_some_and(|p90| p90 >= GOOD);
        }
        self.domains.iter_mut().for_each(|domain| domain.resize(at, congested));
    }

    fn domain(&mut self, direction: Direction) -> &mut Domain {
        &mut self.domains[direction.index()]
    }
}

impl Elevator for Kyber {
    fn add(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        self.domains[request.request.direction.index()].waiting.push(&mut self.links, slot);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        self.domains[request.request.direction.index()].waiting.remove(&mut self.links, slot);
    }

    fn pick(&mut self, now: Ns, _queue: &HostQueue) -> Pick {
        self.ring(now);
        if self.batching < self.domains[self.current].batch
            && let Some(slot) = self.domains[self.current].take(&mut self.links)
        {
            self.batching += 1;
            return Pick::Request(slot);
        }
        for _ in 0..self.domains.len() {
            self.current = (self.current + 1) % self.domains.len();
            if let Some(slot) = self.domains[self.current].take(&mut self.links) {
                self.batching = 1;
                return Pick::Request(slot);
            }
        }
        self.batching = 0;
        // What waits here waits for a token; the timer may bring some.
        self.timer.map_or(Pick::Nothing, Pick::At)
    }

    fn completed(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        let (total, device) = (now - request.entered, now - request.issued);
        let domain = self.domain(request.request.direction);
        domain.taken -= 1;
        domain.latencies.add(total, device);
        self.timer.get_or_insert(now + PERIOD);
    }

    /// A quarter of the tags is left for what somebody waits for (`kyber_limit_depth`).
    fn depth_limit(&self, request: &Request, length: u32) -> u32 {
        let is_waited_for = request.synchronous || request.direction == Direction::Read;
        if is_waited_for { length } else { (length * 3 / 4).max(1) }
    }

    fn counters(&self) -> Counters {
        let [reads, writes] = &self.domains;
        Counters::from([
            ("read_tokens_shrunk", reads.shrunk),
            ("read_tokens_grown", reads.grown),
            ("read_token_waits", reads.token_waits),
            ("write_tokens_shrunk", writes.shrunk),
            ("write_tokens_grown", writes.grown),
            ("write_token_waits", writes.token_waits),
        ])
    }
}
