//! The policies of the kernel modules beside the simulator's, decision by decision: the same random and adversarial steps (arrivals,
//! merges, completions, requeues, time) and the same dispatches, times to ask again, answers about merges, and counters.
//!
//! `PLANEWISE_STEPS=10000000 cargo test -p planewise-kernel-core` runs as many steps for each policy; `PLANEWISE_SEED` another series.

use planewise_kernel_core::{Core, CoreTunable, Drive, Policy, tunables};
use planewise_model::geometry::AllocationOrder;
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host::{Gate, HostQueue, QueuedRequest, Side, Slot};
use planewise_sim::host_sched::{
    Decision, Entry, Growth, HostKnowledge, HostScheduler, TunableKind, TunableValues, find,
};
use rand::{RngExt, seq::IndexedRandom};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

const STEPS: u64 = 1_000_000;
/// Steps on one drive with one set of tunables.
const EPISODE: u64 = 5_000;
const PAGE_BYTES: u32 = 4096;
const PAGE_SECTORS: u64 = 8;
const CAPACITY_PAGES: u64 = 1 << 20;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}: found '{text}'; allowed: a whole number"))
    })
}

/// Which addresses an episode draws, in pages.
#[derive(Clone, Copy, Debug)]
enum Addresses {
    /// Anywhere.
    Uniform,
    /// All on one unit, now and then another: every request opens a batch.
    OneUnit,
    /// One behind the other: batches without end.
    Sequential,
    /// A few pages.
    Hot,
}

/// In which order an episode's drive completes what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completions {
    /// Any.
    Random,
    /// As issued: no direction ever overtakes the other.
    InOrder,
    /// By units that do one at a time, writes ten times as long as reads.
    ByUnit,
}

/// Both, in front of the same queue.
struct Pair {
    core: Core,
    scheduler: Box<dyn HostScheduler>,
    queue: HostQueue,
    waiting: Vec<Slot>,
    outstanding: Vec<Slot>,
    completions: Completions,
    units: UnitMap,
    page_bytes: u32,
    /// By unit: until when it is busy. By slot: when its request is through.
    busy: Vec<Ns>,
    finish: Vec<Ns>,
    now: Ns,
    sequence: u64,
    next_page: u64,
    dispatches: u64,
}

/// A drive, as both are told of it.
fn drive(random: &mut Generator) -> (Drive, UnitMap) {
    let mut size = |most: u32| random.random_range(1..=most);
    let (channels, chips_per_channel, dies_per_chip, planes_per_die) = (size(16), size(8), size(3), size(2));
    let orders = AllocationOrder::all();
    let order = *orders.choose(random).unwrap();
    let plane = random.random_bool(0.5);
    // One in five has contiguous regions on its chips, of any size, also such as planes do not share evenly: of pages, as in the simulator.
    let chunks = if random.random_bool(0.2) { random.random_range(1..=200) } else { 0 };
    let chunk_pages = if chunks > 0 { 1 } else { *[1, 1, 2, 3, 16].choose(random).unwrap() };
    let chunk_bytes = chunk_pages * PAGE_BYTES;
    let drive = Drive {
        channels,
        chips_per_channel,
        dies_per_chip,
        planes_per_die,
        chunk_bytes,
        level: if plane { "plane" } else { "chip" }.into(),
        order: order.to_string(),
        chip_region_bytes: chunks * u64::from(chunk_bytes),
    };
    let units = drive.unit_map().unwrap();
    (drive, units)
}

/// A value of each tunable: often the default, often small, at times at its ends.
fn values(declared: &[CoreTunable], random: &mut Generator) -> Vec<u64> {
    declared
        .iter()
        .map(|tunable| match random.random_range(0..5) {
            // One region to 65,536 of them; one that is larger than the drive is as large.
            _ if tunable.name == "region_size" => {
                CAPACITY_PAGES * u64::from(PAGE_BYTES)
                    / [1, 2, 3, 64, 65, 1000, 65_536].choose(random).unwrap()
                    / 4096
                    * 4096
                    * random.random_range(1..=2)
            }
            _ if !tunable.words.is_empty() => random.random_range(tunable.least..=tunable.most),
            0 => tunable.least,
            1 => tunable.most,
            2 => tunable.standard,
            _ => random.random_range(tunable.least..=tunable.most.min(tunable.standard * 2)),
        })
        .collect()
}

fn both_with(
    policy: Policy,
    entry: &Entry,
    random: &mut Generator,
    slots: u32,
) -> (Core, Box<dyn HostScheduler>, HostKnowledge) {
    let (drive, units) = drive(random);
    let declared = tunables(policy);
    let values = values(&declared, random);
    let mut rust = TunableValues::defaults(entry.tunables);
    for (tunable, &value) in declared.iter().zip(&values) {
        let text = tunable.words.get(value as usize).cloned().unwrap_or_else(|| value.to_string());
        rust.set(entry.name, entry.tunables, &tunable.name, &text).unwrap();
    }
    let capacity_sectors = CAPACITY_PAGES * PAGE_SECTORS;
    let writes_stay = random.random_bool(0.8);
    let core = Core::new(policy, &drive, capacity_sectors, &values, slots, writes_stay).unwrap();
    let host = HostKnowledge {
        queue_length: slots,
        units,
        writes_stay,
        page_bytes: drive.page_bytes(),
        capacity_sectors,
    };
    (core, (entry.build)(&host, &rust).unwrap(), host)
}

impl Pair {
    fn new(policy: Policy, entry: &Entry, random: &mut Generator, slots: u32) -> Pair {
        let (core, scheduler, host) = both_with(policy, entry, random, slots);
        Pair {
            core,
            scheduler,
            queue: HostQueue::new(slots),
            waiting: Vec::new(),
            outstanding: Vec::new(),
            completions: *[Completions::Random, Completions::InOrder, Completions::ByUnit]
                .choose(random)
                .unwrap(),
            busy: vec![Ns::ZERO; host.units.units() as usize],
            units: host.units,
            page_bytes: host.page_bytes,
            finish: vec![Ns::ZERO; slots as usize],
            now: Ns(random.random_range(0..10_000)),
            sequence: 0,
            next_page: 0,
            dispatches: 0,
        }
    }

    fn page(&mut self, addresses: Addresses, random: &mut Generator) -> u64 {
        let page = match addresses {
            Addresses::Uniform => random.random_range(0..CAPACITY_PAGES - 64),
            Addresses::OneUnit if random.random_bool(0.1) => random.random_range(0..CAPACITY_PAGES - 64),
            // A multiple of every stripe that is drawn.
            Addresses::OneUnit => random.random_range(0..20u64) * 16 * 8 * 6 * 3 * 16 % (CAPACITY_PAGES - 64),
            Addresses::Sequential => self.next_page,
            Addresses::Hot => random.random_range(0..40),
        };
        self.next_page = (page + 1) % (CAPACITY_PAGES - 64);
        page
    }

    fn request(&mut self, addresses: Addresses, writes: f64, random: &mut Generator) -> Request {
        let page = self.page(addresses, random);
        // Not all begin and end with a page, and some are longer than a stripe.
        let start = page * PAGE_SECTORS + if random.random_bool(0.2) { random.random_range(0..8) } else { 0 };
        let sectors = match random.random_range(0..20) {
            0 => random.random_range(1..=64 * PAGE_SECTORS as u32 - 8),
            1..4 => random.random_range(1..40),
            _ => 8,
        };
        let direction = if random.random_bool(writes) { Direction::Write } else { Direction::Read };
        Request::new(self.now, Lsn(start), sectors, direction)
    }

    fn insert(&mut self, request: Request) {
        let pages = PageRange::of(&request, self.page_bytes);
        let queued = QueuedRequest::new(self.now, self.sequence, request, pages, false);
        self.sequence += 1;
        let slot = self.queue.enter(queued);
        self.scheduler.insert(self.now, slot, &queued);
        self.core.insert(self.now, slot, &request);
        self.waiting.push(slot);
    }

    /// One more request, before or behind one that waits, becomes part of it where both let it.
    fn merge(&mut self, random: &mut Generator) {
        let Some(&slot) = self.waiting.choose(random) else { return };
        let before = *self.queue.get(slot);
        let sectors = random.random_range(1..20u32);
        let front = random.random_bool(0.5) && before.request.start.0 >= u64::from(sectors);
        let start = if front {
            before.request.start.0 - u64::from(sectors)
        } else if before.request.end().0 + u64::from(sectors) <= CAPACITY_PAGES * PAGE_SECTORS {
            before.request.end().0
        } else {
            return;
        };
        let joining = Request::new(self.now, Lsn(start), sectors, before.request.direction);
        let after = Request {
            start: Lsn(before.request.start.0.min(start)),
            sectors: before.request.sectors + sectors,
            ..before.request
        };
        let union = PageRange::of(&after, self.page_bytes);
        let growth = Growth {
            slot,
            into: &before,
            side: if front { Side::Front } else { Side::Back },
            joining: &joining,
            joining_slot: None,
            added: PageRange::of(&joining, self.page_bytes),
            union,
        };
        let allowed = self.scheduler.allow_merge(&growth);
        assert_eq!(self.core.may_grow(slot, &joining), allowed, "a merge into {before:?} of {joining:?}");
        if allowed && after.sectors <= 1024 {
            self.queue.grow(slot, after, union);
            let grown = *self.queue.get(slot);
            self.scheduler.merged(slot, &before, &grown);
            self.core.grew(slot, &after);
        }
    }

    /// Whether both dispatched the same request, or the same nothing.
    fn dispatch(&mut self) -> bool {
        assert_eq!(self.core.has_waiting(), !self.waiting.is_empty());
        let decision = self.scheduler.dispatch(self.now, &Gate::new(&self.queue, &|_: &QueuedRequest| true));
        let core = match self.core.dispatch(self.now) {
            Ok(slot) => Decision::Issue(slot),
            Err(Ns::MAX) => Decision::Wait,
            Err(time) => Decision::WakeAt(time),
        };
        // Written down in kernel/README.md: a time that never comes is none.
        let expected = if decision == Decision::WakeAt(Ns::MAX) { Decision::Wait } else { decision };
        assert_eq!(
            core,
            expected,
            "the C and the simulator at {} with {} waiting",
            self.now,
            self.waiting.len()
        );
        let Decision::Issue(slot) = core else { return false };
        self.queue.issue(slot, self.now, false);
        let place = self.waiting.iter().position(|&waiting| waiting == slot);
        self.waiting.swap_remove(place.expect("what is dispatched waited"));
        self.outstanding.push(slot);
        let request = self.queue.get(slot);
        let takes = Ns(if request.request.direction == Direction::Read { 50_000 } else { 500_000 });
        let (now, busy, finish) = (self.now, &mut self.busy, &mut self.finish[slot.index()]);
        *finish = now;
        self.units.for_each_unit(request.pages, |unit| {
            let unit = &mut busy[unit as usize];
            *unit = (*unit).max(now) + takes;
            *finish = (*finish).max(*unit);
        });
        self.dispatches += 1;
        true
    }

    fn complete(&mut self, random: &mut Generator) -> Option<Request> {
        if self.outstanding.is_empty() {
            return None;
        }
        let place = match self.completions {
            Completions::Random => random.random_range(0..self.outstanding.len()),
            Completions::InOrder => 0,
            Completions::ByUnit => {
                let finish = |place: &usize| self.finish[self.outstanding[*place].index()];
                let first = (0..self.outstanding.len()).min_by_key(finish).expect("one is outstanding");
                self.now = self.now.max(finish(&first));
                first
            }
        };
        let slot = self.outstanding.remove(place);
        let queued = self.queue.leave(slot);
        self.scheduler.completed(self.now, slot, &queued);
        self.core.completed(self.now, slot);
        Some(queued.request)
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let (counters, expected) = (self.core.counters(), self.scheduler.counters());
        for (name, count) in &counters {
            assert_eq!(*count, expected.get(name), "{name}");
        }
        counters
    }
}

/// Some steps of one drive, one set of tunables, and one kind of load.
fn episode(policy: Policy, entry: &Entry, seed: u64, steps: u64) -> (u64, Vec<(String, u64)>) {
    let mut random = generator(seed, "kernel core decisions");
    let slots = *[1, 2, 7, 32, 64, 130, 300].choose(&mut random).unwrap();
    let depth = *[1, 2, 8, 32, 1000].choose(&mut random).unwrap();
    let addresses = *[Addresses::Uniform, Addresses::OneUnit, Addresses::Sequential, Addresses::Hot]
        .choose(&mut random)
        .unwrap();
    let writes = *[0.0, 0.1, 0.5, 0.9, 1.0].choose(&mut random).unwrap();
    // How much more often something arrives than completes: the queue is full, or empty, or in between.
    let arrivals = random.random_range(20..60u32);
    let tick = *[1, 1_000, 50_000, 5_000_000].choose(&mut random).unwrap();
    let mut pair = Pair::new(policy, entry, &mut random, slots);
    for _ in 0..steps {
        match random.random_range(0..100u32) {
            step if step < arrivals => {
                let burst = if random.random_bool(0.05) { slots } else { 1 };
                for _ in 0..burst {
                    let request = pair.request(addresses, writes, &mut random);
                    if pair.queue.has_room(pair.now, &request) {
                        pair.insert(request);
                    }
                }
            }
            60..70 => pair.merge(&mut random),
            70..80 => {
                pair.complete(&mut random);
            }
            80..82 => {
                // What the drive gave back enters again as if it were new.
                if let Some(request) = pair.complete(&mut random) {
                    pair.insert(request);
                }
            }
            82..90 => pair.now += Ns(random.random_range(0..=tick)),
            90 => while pair.complete(&mut random).is_some() {},
            _ => {
                let most = if random.random_bool(0.3) { u32::MAX } else { 1 };
                let mut issued = 0;
                while issued < most && pair.outstanding.len() < depth && pair.dispatch() {
                    issued += 1;
                }
            }
        }
    }
    // Nothing is lost: all that waits is dispatched and completes.
    while !pair.waiting.is_empty() {
        if !pair.dispatch() {
            assert!(
                pair.complete(&mut random).is_some(),
                "requests wait, nothing is out, nothing is dispatched"
            );
        }
    }
    while pair.complete(&mut random).is_some() {}
    (pair.dispatches, pair.counters())
}

fn decisions_are_the_same(policy: Policy, name: &str) {
    let entry = find(name).unwrap();
    let (steps, first) = (from_environment("PLANEWISE_STEPS", STEPS), from_environment("PLANEWISE_SEED", 1));
    let mut dispatches = 0;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for nth in 0..steps.div_ceil(EPISODE) {
        let seed = first + nth;
        let run = AssertUnwindSafe(|| episode(policy, entry, seed, EPISODE.min(steps - nth * EPISODE)));
        match std::panic::catch_unwind(run) {
            Ok((count, counters)) => {
                dispatches += count;
                counters.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
            }
            Err(panic) => {
                eprintln!("{name}: PLANEWISE_SEED={seed} PLANEWISE_STEPS={EPISODE} repeats it");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{name}: {steps} steps, {dispatches} dispatches, {sums:?}");
    if steps >= STEPS {
        assert!(sums.values().all(|&count| count > 1_000), "each rule decided often: {sums:?}");
    }
    assert!(dispatches > steps / 10, "{dispatches} dispatches in {steps} steps say little");
}

#[test]
fn piq_in_the_kernel_decides_as_piq_plus_of_the_simulator() {
    decisions_are_the_same(Policy::Piq, "piq+");
}

#[test]
fn pass_in_the_kernel_decides_as_pass_of_the_simulator() {
    decisions_are_the_same(Policy::Pass, "pass");
}

#[test]
fn weave_in_the_kernel_decides_as_weave_of_the_simulator() {
    decisions_are_the_same(Policy::Weave, "weave");
}

/// Names, defaults and ranges of the kernel's tunables are the simulator's.
#[test]
fn tunables_are_the_simulators() {
    for (policy, name) in [(Policy::Piq, "piq+"), (Policy::Pass, "pass"), (Policy::Weave, "weave")] {
        same_tunables(policy, find(name).unwrap());
    }
}

fn same_tunables(policy: Policy, entry: &Entry) {
    let declared = tunables(policy);
    let found: Vec<&str> = declared.iter().map(|tunable| tunable.name.as_str()).collect();
    let expected: Vec<&str> = entry.tunables.iter().map(|tunable| tunable.name).collect();
    assert_eq!(found, expected);
    for (ours, theirs) in declared.iter().zip(entry.tunables) {
        match theirs.kind {
            TunableKind::Number { default, min, max } => {
                assert_eq!((ours.standard, ours.least, ours.most), (default, min, max), "{}", ours.name);
            }
            TunableKind::Choice(choices) => {
                assert_eq!(ours.words, choices, "{}", ours.name);
                assert_eq!((ours.standard, ours.least, ours.most), (0, 0, choices.len() as u64 - 1));
            }
            TunableKind::Size { default } => {
                let (number, unit) = default.split_at(default.len() - 1);
                let shift = if unit == "g" { 30 } else { 10 };
                assert_eq!(ours.standard, number.parse::<u64>().unwrap() << shift, "{}", ours.name);
            }
        }
    }
}

/// Geometry that cannot be is refused by the name of the parameter, never computed with.
#[test]
fn impossible_geometry_is_refused_by_name() {
    let good = Drive {
        channels: 8,
        chips_per_channel: 8,
        dies_per_chip: 1,
        planes_per_die: 2,
        chunk_bytes: 4096,
        level: "chip".into(),
        order: "cwdp".into(),
        chip_region_bytes: 0,
    };
    let refused = |change: fn(&mut Drive)| {
        let mut drive = good.clone();
        change(&mut drive);
        Core::new(Policy::Piq, &drive, 1 << 20, &[0, 1_000_000], 1, true).err().map(|(name, _)| name)
    };
    assert_eq!(refused(|_| ()), None);
    type Change = fn(&mut Drive);
    let cases: [(&str, Change); 19] = [
        ("channels", |drive| drive.channels = 0),
        ("channels", |drive| drive.channels = u32::MAX),
        ("chips_per_channel", |drive| drive.chips_per_channel = 0),
        ("chips_per_channel", |drive| drive.chips_per_channel = 65_536),
        ("chips_per_channel", |drive| drive.chips_per_channel = 129),
        ("dies_per_chip", |drive| drive.dies_per_chip = 65_536),
        // 2^32 altogether: a product that is 0 in 32 bits.
        ("planes_per_die", |drive| (drive.channels, drive.planes_per_die) = (1024, 65_536)),
        ("planes_per_die", |drive| (drive.level, drive.planes_per_die) = ("plane".into(), 17)),
        ("chunk_bytes", |drive| drive.chunk_bytes = 0),
        ("chunk_bytes", |drive| drive.chunk_bytes = 513),
        ("chunk_bytes", |drive| drive.chunk_bytes = 1 << 31),
        ("level", |drive| drive.level = "die".into()),
        ("order", |drive| drive.order = "cwd".into()),
        ("order", |drive| drive.order = "cwdpc".into()),
        ("order", |drive| drive.order = "ccdp".into()),
        ("order", |drive| drive.order = String::new()),
        ("chip_region_bytes", |drive| drive.chip_region_bytes = 4095),
        ("chip_region_bytes", |drive| drive.chip_region_bytes = u64::MAX),
        ("chip_region_bytes", |drive| drive.chip_region_bytes = (1 << 60) + 4096),
    ];
    for (name, change) in cases {
        assert_eq!(refused(change).as_deref(), Some(name));
    }
}
