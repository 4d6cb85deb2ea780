//! Pools of request slots: what somebody waits for does not queue behind write-back (Linux 2.6.32, `block/blk-core.c`).

mod common;

use common::{device, run};
use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::drivers::closed_loop::{LoopOptions, run as run_loop};
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::host::RequestPools;
use planewise_sim::observers::Completion;
use planewise_sim::results::RunResult;
use planewise_sim::{RunConfig, Simulator};
use planewise_workload::jobs::JobFile;
use std::sync::atomic::AtomicBool;

/// Four readers beside a writer that keeps 256 requests in flight and waits for none of them.
fn readers_beside_a_writer(config: &RunConfig) -> RunResult {
    let jobs = "[global]\nruntime = '2s'\ntime_based = true\nbs = '4k'\n\
        [job.readers]\nrw = 'randread'\nnumjobs = 4\n\
        [job.writer]\nrw = 'randwrite'\niodepth = 256\ndirect = 0\n";
    let bytes = Simulator::new(config, ()).unwrap().user_sectors() * 512;
    let mut workload = JobFile::parse(jobs, "test").unwrap().build(bytes, 7).unwrap();
    let stop = AtomicBool::new(false);
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    run_loop(config, &mut workload, (), &mut options).unwrap().0
}

fn on_ssd1(scheduler: &str, queue: u32, pools: RequestPools) -> RunConfig {
    RunConfig {
        scheduler: scheduler.into(),
        queue_length: queue,
        request_pools: pools,
        ..RunConfig::new(Profile::embedded("ssd1").unwrap())
    }
}

#[test]
fn under_cfq_readers_beside_a_deep_writer_wait_as_with_a_queue_that_has_room_for_all() {
    let p99 =
        |pools, queue| readers_beside_a_writer(&on_ssd1("cfq", queue, pools)).metrics.read.latency_ns.p99;
    let (two, one, long) =
        (p99(RequestPools::Auto, 128), p99(RequestPools::One, 128), p99(RequestPools::One, 512));
    assert!(one > 20 * long, "one pool keeps readers out: {one} ns, with room {long}");
    assert!(two < 2 * long, "two pools do not: {two} ns, with room {long}");
}

#[test]
fn those_of_linux_2_6_32_have_two_pools_and_the_others_one() {
    for (scheduler, slots) in
        [("cfq", 190), ("deadline", 190), ("anticipatory", 190), ("pass", 190), ("noop", 64), ("kyber", 64)]
    {
        let config = RunConfig { scheduler: scheduler.into(), ..RunConfig::new(device(1, 1, 1, 1)) };
        assert_eq!(slots_of(&config), slots, "{scheduler}");
        let two = RunConfig { request_pools: RequestPools::Two, ..config.clone() };
        assert_eq!(slots_of(&two), 190, "{scheduler}");
        let one = RunConfig { request_pools: RequestPools::One, ..config };
        assert_eq!(slots_of(&one), 64, "{scheduler}");
    }
}

/// Requests of both kinds that enter at once in all, from one process each: where there are two pools, the one that takes the last of
/// 64 has a batch of 32 that begins with it.
fn slots_of(config: &RunConfig) -> u32 {
    entered_at_once(config, |n| (n % 2 == 0, 1 + (n % 2) as u32))
}

/// How many requests enter at once, each synchronous and of a process as the rule says.
fn entered_at_once(config: &RunConfig, of: impl Fn(u64) -> (bool, u32)) -> u32 {
    let mut simulator = Simulator::new(config, ()).unwrap();
    for n in 0..1000 {
        let (synchronous, process) = of(n);
        let plain = Request::new(Ns::ZERO, Lsn(n % 500 * 8), 8, Direction::Write);
        let request = Request { synchronous, process, ..plain };
        if simulator.has_room(&request) {
            simulator.submit(&request).unwrap();
        }
    }
    simulator.pending()
}

#[test]
fn the_process_that_fills_a_pool_has_a_batch_of_half_as_many_again_and_others_have_none() {
    let queue = |length| RunConfig {
        queue_length: length,
        request_pools: RequestPools::Two,
        ..RunConfig::new(device(1, 1, 1, 1))
    };
    assert_eq!(entered_at_once(&queue(16), |_| (false, 1)), 24, "half as many again");
    assert_eq!(
        entered_at_once(&queue(128), |_| (false, 1)),
        128 + 31,
        "the last of the 128 is the batch's first of 32"
    );
    // The first 15 are of others: the one that fills it goes on alone.
    assert_eq!(entered_at_once(&queue(16), |n| (false, if n < 15 { 1 } else { 2 })), 24);
    assert_eq!(entered_at_once(&queue(16), |n| (false, n as u32)), 16, "each another process");
    assert_eq!(entered_at_once(&queue(1), |_| (false, 1)), 1);
}

#[test]
fn in_a_replay_reads_pass_writes_that_wait_outside_and_all_complete_in_any_number_of_pools() {
    // 400 writes at once, then a read: with one pool it waits for most of them.
    let mut requests: Vec<Request> =
        (0..400).map(|n| Request::new(Ns::ZERO, Lsn(n * 8), 8, Direction::Write)).collect();
    requests.push(Request::new(Ns(1_000), Lsn(500 * 8), 8, Direction::Read));
    requests.extend((0..50).map(|n| Request::new(Ns(2_000 + n), Lsn((600 + n) * 8), 8, Direction::Write)));
    let read_latency = |pools| {
        let mut profile = device(4, 1, 1, 1);
        profile.interface.command_queue = "ncq:8".into();
        let config =
            RunConfig { scheduler: "deadline".into(), request_pools: pools, ..RunConfig::new(profile) };
        let stop = AtomicBool::new(false);
        let mut options =
            ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
        let result = replay(&config, &mut requests.clone().into_iter(), (), &mut options).unwrap().0;
        assert_eq!((result.metrics.requests.submitted, result.metrics.requests.completed), (451, 451));
        result.metrics.read.latency_ns.max
    };
    let (one, two) = (read_latency(RequestPools::One), read_latency(RequestPools::Two));
    assert!(one > 30_000_000 && two < 3_000_000, "{one} ns with one pool, {two} with two");
}

#[test]
fn a_read_does_not_pass_a_write_of_its_page_that_waits_outside() {
    // 200 writes at once, of which the pool takes some; then reads of the last one's page and of another.
    let mut requests: Vec<Request> =
        (0..200).map(|n| Request::new(Ns::ZERO, Lsn(n * 8), 8, Direction::Write)).collect();
    requests.push(Request::new(Ns(1_000), Lsn(500 * 8), 8, Direction::Read));
    requests.push(Request::new(Ns(1_001), Lsn(199 * 8), 8, Direction::Read));
    let config = RunConfig {
        queue_length: 16,
        request_pools: RequestPools::Two,
        ..RunConfig::new(device(4, 1, 1, 1))
    };
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    let kept = replay(&config, &mut requests.into_iter(), common::Kept::default(), &mut options).unwrap().1;
    let of = |arrival: u64, page: u64| {
        let mut found = kept.0.iter().filter(|one| one.request.start == Lsn(page * 8));
        found.find(|one| one.request.arrival == Ns(arrival)).unwrap()
    };
    assert!(of(1_000, 500).completed < of(0, 199).entered, "another page's read is not kept out");
    assert!(of(1_001, 199).issued >= of(0, 199).completed, "the page's own read waits for its write");
}

#[test]
fn a_pool_serves_its_own_in_their_order() {
    let requests: Vec<Request> = (0..300)
        .map(|n| Request {
            process: 1 + n as u32 % 3,
            ..Request::new(Ns(n), Lsn(n * 8), 8, Direction::Write)
        })
        .collect();
    let mut config = RunConfig { request_pools: RequestPools::Two, ..RunConfig::new(device(1, 1, 1, 1)) };
    config.queue_length = 8;
    let mut completions: Vec<Completion> = run(&config, &requests).unwrap();
    completions.sort_by_key(|completion| completion.sequence);
    assert!(completions.windows(2).all(|pair| pair[0].request.arrival <= pair[1].request.arrival));
}

#[test]
fn an_unknown_number_of_pools_is_refused_with_what_is_allowed() {
    let error = "three".parse::<RequestPools>().unwrap_err().to_string();
    assert!(error.contains("'three'") && error.contains("auto, one, two"), "{error}");
    for name in ["auto", "one", "two"] {
        assert_eq!(name.parse::<RequestPools>().unwrap().to_string(), name);
    }
}
