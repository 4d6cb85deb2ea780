//! How much replicas could do at best (GC paper, section 5.2.1: DPR): which of the pages that were read while their chip was collected could have had a
//! replica, had there been so many, made for nothing whenever the host read or wrote the page before.
//!
//! docs/claims-gc.md has the table of `cargo test --release -p planewise-io --test replica_bound -- --ignored --nocapture`.

use planewise_model::{Geometry, Lpn, Ns, Ppn, Profile, Request};
use planewise_sim::RunConfig;
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::host::{QueuedRequest, Slot};
use planewise_sim::observers::{Collected, Observer, Origin};
use planewise_sim::results::RunResult;
use planewise_trace::synth::Generator;
use planewise_trace::transform::{Fold, Source};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

const VOLUMES: [&str; 8] = ["hm_0", "prn_0", "prn_1", "proj_0", "prxy_0", "stg_0", "usr_0", "wdev_0"];
const SLOTS: [usize; 4] = [256, 1_024, 4_096, 16_384];

/// A page of the host, in the order in which pages were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Read; or read behind a collection of its chip: the request was there before that ended.
    Read(u32),
    Blocked(u32),
    Written(u32),
}

/// Notes every page that the host reads from flash or writes.
#[derive(Default)]
struct Accesses {
    all: Vec<Access>,
    planes_per_executor: u32,
    pages_per_plane: u32,
    pages: u32,
    /// By executor: when its last collection ended.
    ended: Vec<Ns>,
    /// By slot of the I/O queue.
    entered: Vec<Ns>,
}

impl Observer for Accesses {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.planes_per_executor = geometry.planes() / executors;
        self.pages_per_plane = geometry.pages_per_plane();
        self.pages = geometry.pages();
        self.ended = vec![Ns::ZERO; executors as usize];
    }

    fn enter(&mut self, now: Ns, slot: Slot, _request: &QueuedRequest) {
        self.entered.resize(self.entered.len().max(slot.index() + 1), Ns::ZERO);
        self.entered[slot.index()] = now;
    }

    fn collection_end(&mut self, now: Ns, executor: u32, _what: &Collected) {
        self.ended[executor as usize] = now;
    }

    fn page_read(&mut self, _now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, _modify: bool) {
        if ppn.0 < self.pages {
            let executor = ppn.0 / self.pages_per_plane / self.planes_per_executor;
            let blocked = self.ended[executor as usize] > self.entered[slot.index()];
            self.all.push(if blocked { Access::Blocked(lpn.0) } else { Access::Read(lpn.0) });
        }
    }

    fn page_program(&mut self, _now: Ns, origin: Origin, lpn: Lpn, _ppn: Ppn) {
        if matches!(origin, Origin::Host(_)) {
            self.all.push(Access::Written(lpn.0));
        }
    }
}

/// Of the pages that were read behind collections, those that replicas could have served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Served {
    of: usize,
    served: usize,
}

impl Served {
    fn share(self) -> f64 {
        self.served as f64 / self.of.max(1) as f64
    }
}

fn page(access: Access) -> u32 {
    match access {
        Access::Read(page) | Access::Blocked(page) | Access::Written(page) => page,
    }
}

/// With replicas of the pages that the host read or wrote last.
fn of_last_accessed(all: &[Access], slots: usize) -> Served {
    let (mut found, mut last, mut order) = (Served { of: 0, served: 0 }, HashMap::new(), BTreeSet::new());
    for (now, &access) in all.iter().enumerate() {
        let before = last.insert(page(access), now);
        let has_replica = before.is_some_and(|before| order.remove(&(before, page(access))));
        if let Access::Blocked(_) = access {
            found.of += 1;
            found.served += usize::from(has_replica);
        }
        order.insert((now, page(access)));
        if order.len() > slots {
            order.pop_first();
        }
    }
    found
}

/// With the replicas of somebody who knows the future: a slot is taken from the access before the blocked read up to that. As many of these
/// spans as there can be with no more than `slots` at a time: whenever there are more, the one that ends last goes.
fn of_clairvoyant(all: &[Access], slots: usize) -> Served {
    let mut last = HashMap::new();
    let (mut spans, mut of) = (Vec::new(), 0);
    for (now, &access) in all.iter().enumerate() {
        let before = last.insert(page(access), now);
        if let Access::Blocked(_) = access {
            of += 1;
            spans.extend(before.map(|before| (before, now)));
        }
    }
    spans.sort_unstable();
    let (mut under_way, mut served) = (BTreeSet::new(), 0);
    for (begin, end) in spans {
        while under_way.first().is_some_and(|&first| first <= begin) {
            under_way.pop_first();
            served += 1;
        }
        under_way.insert(end);
        if under_way.len() > slots {
            under_way.pop_last();
        }
    }
    Served { of, served: served + under_way.len() }
}

/// A look-alike on a quarter of the GC paper's drive, as the quick studies have it; latencies and accesses.
fn run(volume: &str, requests: u64, scheme: &str, command_queue: &str) -> (RunResult, Vec<Access>) {
    let mut profile = Profile::embedded("gc-128g").unwrap();
    profile.geometry.blocks_per_plane = 512;
    profile.collection.floor = 0.04996;
    profile.collection.scheme = scheme.into();
    profile.interface.command_queue = command_queue.into();
    let config = RunConfig { condition: "aged".parse().unwrap(), ..RunConfig::new(profile) };
    let described = planewise_trace::synth::volume(&format!("gc-{volume}")).unwrap();
    let sectors = config.profile.user_capacity().0 / 512;
    let mut stream =
        Generator::new(&described, requests, config.seed).unwrap().then(Fold::new(sectors).unwrap());
    let mut all: Vec<Request> = Vec::new();
    while stream.next_batch(&mut all, 4096).unwrap() > 0 {}
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    let source = &mut all.iter().copied();
    let (result, accesses) = replay(&config, source, Accesses::default(), &mut options).unwrap();
    (result, accesses.all)
}

#[test]
fn replicas_of_what_was_accessed_last_and_of_who_knows_the_future_by_hand() {
    use Access::{Blocked, Read, Written};
    let served =
        |all: &[Access], slots| (of_last_accessed(all, slots).served, of_clairvoyant(all, slots).served);
    assert_eq!(served(&[Blocked(1), Blocked(1)], 1), (1, 1), "nobody had the first");
    // One slot: page 2 takes it from page 1, which is read first.
    let all = [Read(1), Written(2), Blocked(1), Blocked(2)];
    assert_eq!((served(&all, 1), served(&all, 2)), ((0, 1), (2, 2)));
    // Two short spans within a long one.
    let all = [Read(1), Read(2), Blocked(2), Read(3), Blocked(3), Blocked(1)];
    assert_eq!((served(&all, 1), served(&all, 2), served(&all, 3)), ((2, 2), (2, 3), (3, 3)));
    assert_eq!(served(&[Blocked(1), Read(2)], 0), (0, 0));
}

#[test]
fn who_knows_the_future_is_never_worse_and_more_slots_serve_more() {
    let (result, all) = run("usr_0", 120_000, "traditional", "blocking");
    let blocked = all.iter().filter(|access| matches!(access, Access::Blocked(_))).count();
    assert!(blocked > 500 && result.metrics.gc.conflicts.reads > 100, "{blocked}");
    let mut before = [Served { of: blocked, served: 0 }; 2];
    for slots in SLOTS {
        let now = [of_last_accessed(&all, slots), of_clairvoyant(&all, slots)];
        assert!(now[0].served >= before[0].served && now[1].served >= before[1].served);
        assert!(now[0].served <= now[1].served && now[1].served <= blocked && now[1].of == blocked);
        before = now;
    }
    assert!(before[1].share() > 0.5, "{before:?}");
}

/// The table of docs/claims-gc.md.
#[test]
#[ignore = "a table for the documents: eight volumes of 400,000 requests, three schemes and two interfaces"]
fn table() {
    for queue in ["blocking", "ncq:64"] {
        println!(
            "{queue}: volume, pages read behind collections, never accessed before, then by slots: last accessed, clairvoyant; then read latency over traditional: dpr, gc_free; reads to replicas"
        );
        let mut sums = [0.0; 2 * SLOTS.len() + 3];
        for volume in VOLUMES {
            let (traditional, all) = run(volume, 400_000, "traditional", queue);
            let unlimited = of_clairvoyant(&all, usize::MAX);
            let mut row = vec![1.0 - unlimited.share()];
            for slots in SLOTS {
                row.push(of_last_accessed(&all, slots).share());
                row.push(of_clairvoyant(&all, slots).share());
            }
            let mut replicas = 0;
            for scheme in ["dpr", "gc_free"] {
                let (result, _) = run(volume, 400_000, scheme, queue);
                let mean = |of: &RunResult| of.metrics.read.latency_ns.mean;
                row.push(mean(&result) / mean(&traditional));
                replicas = replicas.max(result.metrics.gc.replicas.reads_redirected);
            }
            let text: Vec<String> = row.iter().map(|value| format!("{value:.3}")).collect();
            println!("| {volume} | {} | {} | {replicas} |", unlimited.of, text.join(" | "));
            sums.iter_mut().zip(&row).for_each(|(sum, value)| *sum += value / VOLUMES.len() as f64);
        }
        println!("mean {}", sums.map(|value| format!("{value:.3}")).join(" | "));
    }
}
