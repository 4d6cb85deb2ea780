//! When pages leave the valid page buffer: while requests wait, never too many at a time, and none too late.

mod common;

use common::{measure, watch};
use planewise_model::profile::{StreamRule, WriteBackRule};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lpn, Lsn, Ns, Ppn, Request};
use planewise_sim::RunConfig;
use planewise_sim::host::{QueuedRequest, Slot};
use planewise_sim::observers::{Cause, Collected, Observer, Origin};
use rand::RngExt;
use std::collections::HashMap;

/// The GC paper's device in small, every collection through the buffer.
fn aged(scheme: &str) -> RunConfig {
    let mut config = common::aged(scheme);
    config.profile.collection.streams = StreamRule::All;
    config
}

/// Requests of 1 to `longest` pages on the first half of the device, in bursts of `burst` with pauses that make `gap` the mean.
fn load(seed: u64, count: u64, read_share: f64, gap: Ns, (burst, longest): (u64, u64)) -> Vec<Request> {
    let mut random = generator(seed, "loads of the write-back tests");
    (0..count)
        .map(|number| {
            let length = random.random_range(1..=longest);
            let start = random.random_range(0..6_000 - length);
            let write = random.random::<f64>() >= read_share;
            let direction = if write { Direction::Write } else { Direction::Read };
            let arrival = Ns(number / burst * burst * gap.0);
            Request::new(arrival, Lsn(start * 8), (length * 8) as u32, direction)
        })
        .collect()
}

/// Pages on their way back, how many at most, and how many left while a request waited.
#[derive(Default)]
struct WriteBacks {
    waiting: u32,
    under_way: u32,
    most: u32,
    while_waiting: u64,
    all: u64,
}

impl Observer for WriteBacks {
    fn enter(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {
        self.waiting += 1;
    }

    fn issue(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {
        self.waiting -= 1;
    }

    fn page_program(&mut self, _now: Ns, origin: Origin, _lpn: Lpn, _ppn: Ppn) {
        if matches!(origin, Origin::Buffer { .. }) {
            self.under_way += 1;
            self.most = self.most.max(self.under_way);
            self.while_waiting += u64::from(self.waiting > 0);
            self.all += 1;
        }
    }

    fn write_back_end(&mut self, _now: Ns, _lpn: Lpn, _from: Ppn, _to: Ppn, _current: bool) {
        self.under_way -= 1;
    }
}

#[test]
fn no_more_than_a_share_of_the_chips_take_pages_at_a_time() {
    for (share, most) in [(0.0, 1), (0.25, 1), (0.5, 2), (1.0, 4)] {
        for scheme in ["idle_chip", "yielding"] {
            let mut config = aged(scheme);
            config.profile.collection.write_back_chips = share;
            let requests = load(1, 4_000, 0.4, Ns::from_millis(1), (16, 4));
            let seen = watch(&config, &requests, WriteBacks::default());
            assert!(seen.all > 500, "{scheme}: {} pages went back", seen.all);
            assert_eq!(seen.most, most, "{scheme} with {share} of 4 chips");
        }
    }
}

/// Figure 5: a request waits for the chip that collects, and chips that nobody needs take pages meanwhile.
#[test]
fn pages_go_back_between_two_issues_only_under_the_rule_of_section_4_2_2() {
    for (rule, expected) in [(WriteBackRule::Empty, false), (WriteBackRule::Between, true)] {
        let mut config = aged("idle_chip");
        config.profile.collection.write_backs = rule;
        config.profile.collection.write_back_watermark = 1.0;
        config.profile.collection.write_back_within_ns = Ns::from_millis(10_000).0;
        let requests = load(2, 4_000, 0.4, Ns::from_millis(2), (16, 4));
        let seen = watch(&config, &requests, WriteBacks::default());
        assert!(seen.all > 500, "{} pages went back", seen.all);
        assert_eq!(seen.while_waiting > 0, expected, "{rule:?}: {} of {}", seen.while_waiting, seen.all);
    }
}

/// Chips that waiting requests need are left alone: a read never finds its die taken by a page that left while it waited.
#[test]
fn between_two_issues_no_page_goes_to_a_chip_that_a_waiting_read_needs() {
    #[derive(Default)]
    struct Wanted {
        /// By slot of the queue: the pages of a waiting read.
        waiting: HashMap<u32, (u64, u32)>,
        /// By page: the plane that it is on.
        planes: HashMap<u32, u32>,
        pages_per_die: u32,
        pages: u32,
        left: u64,
    }
    impl Observer for Wanted {
        fn start(&mut self, geometry: &planewise_model::Geometry, executors: u32) {
            (self.pages, self.pages_per_die) = (geometry.pages(), geometry.pages() / executors);
        }
        fn wants_contents(&self) -> bool {
            true
        }
        fn holds(&mut self, lpn: Lpn, ppn: Ppn) {
            self.planes.insert(lpn.0, ppn.0 / self.pages_per_die);
        }
        fn enter(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
            if request.request.direction == Direction::Read {
                self.waiting.insert(slot.0, (request.pages.first, request.pages.count));
            }
        }
        fn issue(&mut self, _now: Ns, slot: Slot, _request: &QueuedRequest) {
            self.waiting.remove(&slot.0);
        }
        fn page_buffered(&mut self, _now: Ns, lpn: Lpn, _from: Ppn, _to: Ppn) {
            self.planes.remove(&lpn.0);
        }
        fn write_back_end(&mut self, _now: Ns, lpn: Lpn, _from: Ppn, to: Ppn, current: bool) {
            if current {
                self.planes.insert(lpn.0, to.0 / self.pages_per_die);
            }
        }
        fn page_program(&mut self, now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn) {
            let die = ppn.0 / self.pages_per_die;
            if !matches!(origin, Origin::Buffer { .. }) {
                self.planes.insert(lpn.0, die);
                return;
            }
            self.left += u64::from(!self.waiting.is_empty());
            // Looked at in any order: it is a question of whether.
            for &(first, count) in self.waiting.values() {
                for page in first as u32..first as u32 + count {
                    assert_ne!(self.planes.get(&page), Some(&die), "page {page} is waited for at {now}");
                }
            }
        }
    }
    let mut config = aged("idle_chip");
    config.profile.collection.write_back_watermark = 1.0;
    config.profile.collection.write_back_within_ns = Ns::from_millis(10_000).0;
    let requests = load(3, 4_500, 0.6, Ns::from_millis(2), (16, 4));
    let seen = watch(&config, &requests, Wanted::default());
    assert!(seen.left > 50, "{}", seen.left);
}

/// More than the device can serve for four seconds, so that a request waits all the time.
#[test]
fn a_page_waits_no_longer_than_it_may_and_the_watermark_holds_though_requests_wait_all_the_time() {
    for (queue, allocation) in
        [("blocking", "dynamic"), ("ncq:64", "dynamic"), ("blocking", "cwdp"), ("ncq:64", "cwdp")]
    {
        let mut config = aged("idle_chip");
        config.profile.interface.command_queue = queue.into();
        config.profile.translation.allocation = allocation.into();
        config.profile.collection.write_backs = WriteBackRule::Empty;
        config.profile.collection.write_back_watermark = 1.0;
        let requests = load(4, 6_000, 0.3, Ns(150_000), (16, 4));
        let longest = |within: Ns| {
            let mut config = config.clone();
            config.profile.collection.write_back_within_ns = within.0;
            let buffer = measure(&config, &requests).metrics.gc.buffer;
            (Ns(buffer.residency_ns_max), buffer.written_back)
        };
        // Without a bound pages stay for long, or to the end: of those nothing is measured.
        let (unbounded, left) = longest(Ns::from_millis(10_000));
        assert!(
            unbounded > Ns::from_millis(600) || left < 50,
            "{queue} {allocation}: {unbounded}, {left} left"
        );
        let (bounded, left) = longest(Ns::from_millis(30));
        assert!(left > 50, "{queue} {allocation}: {left} left");
        // What comes on top: a collection's own time before its pages are in line, and the pages in front; with static allocation also those
        // collections that the page's own chip has to do first.
        let most = Ns::from_millis(if allocation == "dynamic" { 100 } else { 200 });
        assert!(bounded < most, "{queue} {allocation}: {bounded}");
        // The watermark alone: pages leave although somebody always waits.
        let mut forced = config.clone();
        forced.profile.collection.write_back_within_ns = Ns::from_millis(10_000).0;
        let (full, forced) = (measure(&forced, &requests).metrics.gc, {
            forced.profile.collection.write_back_watermark = 0.25;
            measure(&forced, &requests).metrics.gc
        });
        if queue == "blocking" && allocation == "dynamic" {
            assert!(
                forced.buffered_share > 1.5 * full.buffered_share,
                "{} {}",
                forced.buffered_share,
                full.buffered_share
            );
        }
    }
}

/// Algorithm 1: once the buffer is full, the rest of a collection goes the traditional way.
#[test]
fn a_collection_that_found_the_buffer_full_asks_no_more() {
    #[derive(Default)]
    struct Order {
        /// By executor: whether the collection has moved a page the traditional way.
        moved: HashMap<u32, bool>,
        per_executor: u32,
        mixed: u64,
        both_ways: u64,
    }
    impl Observer for Order {
        fn start(&mut self, geometry: &planewise_model::Geometry, executors: u32) {
            self.per_executor = geometry.pages() / executors;
        }
        fn collection_start(&mut self, _now: Ns, executor: u32, _cause: Cause) {
            self.moved.insert(executor, false);
        }
        fn page_program(&mut self, _now: Ns, origin: Origin, _lpn: Lpn, ppn: Ppn) {
            if matches!(origin, Origin::Collection { .. }) {
                self.moved.insert(ppn.0 / self.per_executor, true);
            }
        }
        fn page_buffered(&mut self, _now: Ns, _lpn: Lpn, from: Ppn, _to: Ppn) {
            self.mixed += u64::from(self.moved[&(from.0 / self.per_executor)]);
        }
        fn collection_end(&mut self, _now: Ns, _executor: u32, what: &Collected) {
            self.both_ways += u64::from(what.moved > 0 && what.buffered > 0);
        }
    }
    let seen = |scheme: &str| {
        let mut config = aged(scheme);
        config.profile.collection.buffer_pages = 16;
        config.profile.collection.write_backs = WriteBackRule::Empty;
        let requests = load(5, 6_000, 0.3, Ns(500_000), (16, 4));
        watch(&config, &requests, Order::default())
    };
    let idle_chip = seen("idle_chip");
    assert_eq!(idle_chip.mixed, 0, "pages went to the buffer after one had moved the traditional way");
    assert!(idle_chip.both_ways > 10, "{}", idle_chip.both_ways);
    // Our own asks again.
    assert!(seen("yielding").mixed > 0);
}

/// Loads from quiet to far too much, reads to writes, single requests to bursts: what a scheme may cost where it cannot help.
#[test]
fn idle_chip_is_nowhere_much_worse_than_traditional() {
    let mut random = generator(7, "adversarial loads");
    for case in 0..36 {
        let seed = random.random::<u64>();
        let gap = Ns(random.random_range(100_000..2_000_000));
        let (read_share, burst) = (random.random_range(0.0..0.9), random.random_range(1..40));
        let longest = random.random_range(1..12);
        let requests = load(seed, 3_000, read_share, gap, (burst, longest));
        let queue = ["blocking", "ncq:8", "ncq:64"][case % 3];
        let allocation = ["dynamic", "cwdp"][case / 3 % 2];
        let mean = |scheme: &str| {
            let mut config = aged(scheme);
            config.profile.interface.command_queue = queue.into();
            config.profile.translation.allocation = allocation.into();
            measure(&config, &requests).metrics.all.latency_ns.mean
        };
        let ratio = mean("idle_chip") / mean("traditional");
        println!("{case} {queue} {allocation} {gap} {read_share:.2} {burst} {longest}: {ratio:.3}");
        assert!(
            ratio < 1.1,
            "{queue} {allocation}, seed {seed}, gap {gap}, reads {read_share:.2}, bursts of {burst} of up to {longest}: {ratio:.3}"
        );
    }
}
