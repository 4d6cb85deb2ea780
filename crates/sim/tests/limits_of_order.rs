//! What no order of issue can do: a conservation law, and every order of a small case tried (docs/schedulers/weave.md).

mod common;

use common::{device, run};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::observers::Completion;
use rand::RngExt;

/// Schedulers that issue whenever the device takes something. The others wait for a process's next request.
const WORK_CONSERVING: [&str; 15] = [
    "noop",
    "deadline",
    "mq-deadline",
    "kyber",
    "adios",
    "flashfq",
    "rws",
    "piq",
    "piq_r",
    "piq_w",
    "piq+",
    "piq+_r",
    "piq+_w",
    "pass",
    "weave",
];

/// Kleinrock's conservation law: on one server that is never idle while something waits, the sum of service times wait does not depend on
/// the order. So what reads gain on a busy unit writes lose, weighted by their service: an order can only choose who pays.
#[test]
fn on_one_unit_the_sum_of_service_times_wait_is_the_same_in_every_order() {
    for seed in 0..4 {
        let mut random = generator(seed, "conservation");
        let mut at = 0.0;
        let requests: Vec<Request> = (0..2_000u64)
            .map(|n| {
                at -= 400_000.0 * (1.0 - random.random::<f64>()).ln();
                let direction = if random.random_bool(0.6) { Direction::Read } else { Direction::Write };
                Request::new(Ns(at as u64), Lsn(n % 3_000 * 8), 8, direction)
            })
            .collect();
        let mut sums: Vec<(&str, u128)> = Vec::new();
        for scheduler in WORK_CONSERVING {
            let mut config = RunConfig {
                scheduler: scheduler.into(),
                queue_length: 4096,
                ..RunConfig::new(device(1, 1, 1, 1))
            };
            config.profile.interface.command_queue = "ncq:1".into();
            // Enough for all writes: collection takes time of its own.
            config.profile.geometry.blocks_per_plane = 256;
            let completions = run(&config, &requests).unwrap();
            assert_eq!(completions.len(), requests.len());
            let product = |done: &Completion| {
                let (wait, service) = (done.issued - done.request.arrival, done.completed - done.issued);
                u128::from(wait.0) * u128::from(service.0)
            };
            sums.push((scheduler, completions.iter().map(product).sum()));
        }
        for (scheduler, sum) in &sums {
            assert_eq!(*sum, sums[0].1, "seed {seed}: {scheduler}");
        }
    }
}

/// All orders of the numbers below a count.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with = |order: Vec<usize>| {
        (0..count).map(move |place| {
            let mut order = order.clone();
            order.insert(place, count - 1);
            order
        })
    };
    orders(count - 1).into_iter().flat_map(with).collect()
}

/// Mean latencies of reads and writes that arrived from a time on.
fn means(completions: &[Completion], from: u64) -> [f64; 2] {
    Direction::ALL.map(|direction| {
        let own = completions
            .iter()
            .filter(|done| done.request.arrival.0 >= from && done.request.direction == direction);
        let times: Vec<u64> = own.map(|done| (done.completed - done.request.arrival).0).collect();
        times.iter().sum::<u64>() as f64 / times.len() as f64
    })
}

/// A burst at one time: reads and writes of one page on four units.
fn burst(random: &mut Generator) -> Vec<Request> {
    let mut burst: Vec<Request> = (0..6u64)
        .map(|n| {
            let page = 64 * n + random.random_range(0..4u64);
            let direction = if random.random_bool(0.5) { Direction::Read } else { Direction::Write };
            Request::new(Ns::ZERO, Lsn(page * 8), 8, direction)
        })
        .collect();
    burst[0].direction = Direction::Read;
    burst[1].direction = Direction::Write;
    burst
}

/// Teaches the device's ways: that writes are longer, that units matter, that reads overtake writes.
fn lesson() -> Vec<Request> {
    let one = |at: u64, page: u64, direction| Request::new(Ns(at), Lsn(page * 8), 8, direction);
    (0..40u64)
        .flat_map(|n| {
            let at = n * 8_000_000;
            let (read, write) = (Direction::Read, Direction::Write);
            [
                one(at, 4_000, write),
                one(at, 4_004, write),
                one(at + 4_000_000, 4_001, read),
                one(at + 4_000_000, 4_005, read),
                one(at + 6_000_000, 4_002, write),
                one(at + 6_000_000, 4_003, read),
            ]
        })
        .collect()
}

/// Every order of six requests, on an interface of two commands: how much better than weave the best of 720 is on reads and on
/// writes at once, and of those that writes bear (5 % more than under NOOP) the one with the fastest reads.
#[test]
fn no_order_of_a_small_case_is_better_than_weave_on_reads_and_writes() {
    const START: u64 = 400_000_000;
    let orders = orders(6);
    for seed in 0..20 {
        let burst = burst(&mut generator(seed, "small case"));
        let mut config = RunConfig::new(device(4, 1, 1, 1));
        config.profile.interface.command_queue = "ncq:2".into();
        let in_order = |order: &Vec<usize>| {
            let requests: Vec<Request> = order.iter().map(|&place| burst[place]).collect();
            means(&run(&config, &requests).unwrap(), 0)
        };
        let all: Vec<[f64; 2]> = orders.iter().map(in_order).collect();
        let mut requests = lesson();
        requests.extend(burst.iter().map(|request| Request { arrival: Ns(START), ..*request }));
        let weave = RunConfig { scheduler: "weave".into(), ..config.clone() };
        let weave = means(&run(&weave, &requests).unwrap(), START);
        let noop = in_order(&(0..burst.len()).collect());
        let better = all.iter().find(|of| of[0] < weave[0] && of[1] < weave[1]);
        assert_eq!(better, None, "seed {seed}: weave {weave:?}");
        let borne = all.iter().filter(|of| of[1] <= 1.05 * f64::max(noop[1], weave[1]));
        let fastest = borne.map(|of| of[0]).fold(f64::MAX, f64::min);
        println!(
            "seed {seed}: weave {weave:.0?}, NOOP {noop:.0?}, fastest reads that writes bear {fastest:.0}"
        );
    }
}
