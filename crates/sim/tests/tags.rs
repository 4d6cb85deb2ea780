//! `--block-layer blk-mq`: slots are tags. A thread that finds none asks for nothing else, and schedulers limit requests of a kind
//! (Linux 6.12, `block/blk-mq-tag.c`, `limit_depth` of its schedulers).

mod common;

use common::{closed, device};
use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::host::{BlockLayer, Merging, QueueCounts, RequestPools};
use planewise_sim::observers::Completion;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::{RunConfig, Simulator};
use std::sync::atomic::AtomicBool;

fn config(scheduler: &str, tags: u32, queue: u32) -> RunConfig {
    let mut profile = Profile::embedded("ssd3").unwrap();
    profile.interface.command_queue = format!("ncq:{tags}");
    RunConfig {
        scheduler: scheduler.into(),
        queue_length: queue,
        block_layer: BlockLayer::BlkMq,
        ..RunConfig::new(profile)
    }
}

/// A replay at recorded times, with invariants checked.
fn run_trace(config: &RunConfig, requests: &[Request]) -> Vec<Completion> {
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    let observer = (common::Kept::default(), Invariants::of(config.overlap));
    let (_, (kept, invariants)) =
        replay(config, &mut requests.iter().copied(), observer, &mut options).unwrap();
    invariants.report().unwrap_or_else(|violations| panic!("{violations}"));
    kept.0
}

/// A reader of four requests beside a writer of sixteen, and six tags: who waits for one waits with one request, so that each has as many as the
/// other, and the reader, whose requests are a quarter as long, hardly waits for the writer's sixteen.
#[test]
fn before_few_tags_a_thread_with_many_requests_has_no_more_of_them_than_one_with_few() {
    let jobs = "[global]\nruntime = '1s'\ntime_based = true\n\
        [job.reads]\nrw = 'randread'\nbs = '16k'\niodepth = 4\n\
        [job.writes]\nrw = 'randwrite'\nbs = '64k'\niodepth = 16\n";
    let line = RunConfig { block_layer: BlockLayer::Direct, ..config("noop", 6, 6) };
    // Reads, writes.
    let counts = |config: &RunConfig| {
        let done = closed(config, jobs);
        let reads = done.iter().filter(|one| one.request.direction == Direction::Read).count();
        (reads as f64, (done.len() - reads) as f64)
    };
    let (by_threads, by_line) = (counts(&config("noop", 6, 6)), counts(&line));
    assert!(by_threads.0 > 1.2 * by_line.0, "{by_threads:?}, in one line {by_line:?}");
    assert!(
        by_threads.0 / by_threads.1 > 1.2 * by_line.0 / by_line.1,
        "{by_threads:?}, in one line {by_line:?}"
    );
}

/// A program that has several neighbours in flight makes one system call after the other, and the queue runs in between: the first goes at once where
/// there is a tag, and no neighbour joins it. Behind taken tags they wait, and join.
#[test]
fn neighbours_of_one_instant_join_only_where_they_wait() {
    let merged = |block_layer: BlockLayer, busy: u64| {
        let config = RunConfig { block_layer, merging: Merging::Full, ..config("mq-deadline", 4, 64) };
        // Those that take the tags, and one more, which is taken ahead of them.
        let mut requests: Vec<Request> =
            (0..busy).map(|at| Request::new(Ns::ZERO, Lsn(100_000 * (at + 1)), 8, Direction::Read)).collect();
        requests.extend((0..4).map(|at| Request::new(Ns(1_000), Lsn(8 * at), 8, Direction::Read)));
        let stop = AtomicBool::new(false);
        let mut options =
            ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
        let source = &mut requests.iter().copied();
        let (result, invariants) =
            replay(&config, source, Invariants::of(config.overlap), &mut options).unwrap();
        invariants.report().unwrap_or_else(|violations| panic!("{violations}"));
        assert_eq!(result.metrics.requests.completed, busy + 4);
        result.metrics.requests.merged
    };
    assert_eq!(merged(BlockLayer::BlkMq, 0), 0);
    assert_eq!(merged(BlockLayer::BlkMq, 5), 3);
    // Where nothing stands in front of the device, what comes at one instant is looked at together.
    assert_eq!(merged(BlockLayer::Direct, 0), 3);
}

/// How many requests of a kind enter at once in all.
fn entered(scheduler: &str, direction: Direction, synchronous: bool) -> u32 {
    let mut simulator = Simulator::new(&config(scheduler, 8, 64), ()).unwrap();
    for n in 0..200 {
        let request = Request { synchronous, ..Request::new(Ns::ZERO, Lsn(n * 80_000), 8, direction) };
        if simulator.has_room(&request) {
            simulator.submit(&request).unwrap();
        }
    }
    simulator.pending()
}

#[test]
fn schedulers_leave_tags_for_what_somebody_waits_for() {
    use Direction::{Read, Write};
    for scheduler in ["noop", "mq-deadline", "piq+", "pass", "weave"] {
        for (direction, synchronous) in [(Read, true), (Write, true), (Write, false)] {
            assert_eq!(entered(scheduler, direction, synchronous), 64, "{scheduler} {direction:?}");
        }
    }
    assert_eq!(entered("kyber", Write, false), 48);
    assert_eq!(entered("kyber", Write, true), 64);
    assert_eq!(entered("bfq", Read, true), 64);
    // The first request of a process begins with raised weight: the fewer are left for writes from then on.
    assert_eq!(entered("bfq", Write, true), 24);
    assert_eq!(entered("bfq", Write, false), 32);
}

/// Of 64 tags a process with raised weight may have 24 for writes. With that many requests of any kind it is held to the one tag that there
/// always is, until it gets that one, also when it has fewer meanwhile (`bfqq_request_over_limit`).
#[test]
fn under_bfq_a_process_that_has_its_share_waits_for_one_tag_and_no_other() {
    let of = |process, direction, at: u64| Request {
        synchronous: true,
        process,
        ..Request::new(Ns::ZERO, Lsn(at * 8), 8, direction)
    };
    let mut profile = device(8, 1, 1, 1);
    profile.interface.command_queue = "ncq:8".into();
    let mut simulator = Simulator::new(&RunConfig { profile, ..config("bfq", 8, 64) }, ()).unwrap();
    simulator.keep_completions();
    // The first has the tag, and takes longest.
    simulator.submit(&Request { sectors: 80, ..of(1, Direction::Read, 800) }).unwrap();
    for at in 1..23 {
        simulator.submit(&of(1, Direction::Read, at)).unwrap();
    }
    assert!(simulator.has_room(&of(1, Direction::Write, 30)));
    simulator.submit(&of(1, Direction::Read, 23)).unwrap();
    assert!(simulator.has_room(&of(1, Direction::Read, 31)), "reads have all tags");
    let write = of(1, Direction::Write, 30);
    assert!(!simulator.has_room(&write));
    assert!(simulator.has_room(&of(2, Direction::Write, 32)), "another process has had nothing");
    let mut done = Vec::new();
    while !simulator.has_room(&write) {
        let next = simulator.next_event();
        simulator.advance(next).unwrap();
        simulator.take_completions(&mut done);
    }
    assert!(done.len() > 1, "one completed, and the process was below its share: {}", done.len());
    assert!(done.iter().any(|one| one.sequence == 0), "the first request had the tag");
}

/// A write that was kept out and then joins a waiting one takes no tag: what it might have been given is nothing to the next request.
#[test]
fn a_limit_ends_with_the_request_that_it_was_of() {
    let of = |process, direction, page: u64| Request {
        synchronous: true,
        process,
        ..Request::new(Ns::ZERO, Lsn(page * 8), 8, direction)
    };
    let mut profile = device(8, 1, 1, 1);
    profile.interface.command_queue = "ncq:1".into();
    let config = RunConfig { profile, merging: Merging::Full, ..config("bfq", 8, 64) };
    let mut simulator = Simulator::new(&config, ()).unwrap();
    simulator.submit(&of(1, Direction::Read, 0)).unwrap();
    for at in 1..23 {
        simulator.submit(&of(1, Direction::Read, 2 * at)).unwrap();
    }
    simulator.submit(&of(1, Direction::Write, 500)).unwrap();
    let write = of(1, Direction::Write, 501);
    assert!(!simulator.has_room(&write), "the process has its share, and the one tag is taken");
    while !simulator.has_room(&write) {
        let next = simulator.next_event();
        simulator.advance(next).unwrap();
    }
    let pending = simulator.pending();
    simulator.submit(&write).unwrap();
    assert_eq!(simulator.pending(), pending, "it joined the one before it");
    // Another process takes all tags of the first word that are free, the one tag among them.
    for at in 0..16 {
        simulator.submit(&of(2, Direction::Read, 600 + 2 * at)).unwrap();
    }
    assert!(simulator.has_room(&of(1, Direction::Read, 700)), "there are more than twenty tags for a read");
}

/// Two processes that begin together share a queue, as parts of one application do (`bfq_do_or_sched_stable_merge`): the reader has no precedence over the
/// writer. One that begins later has a queue of its own, and raised weight.
#[test]
fn under_bfq_processes_that_begin_together_are_served_as_one() {
    let mean = |later: &str, rotational: &str| {
        let jobs = format!(
            "[global]\nruntime = '2s'\ntime_based = true\n\
             [job.writes]\nrw = 'randwrite'\nbs = '64k'\niodepth = 16\n\
             [job.reads]\nrw = 'randread'\nbs = '16k'\niodepth = 4\nstartdelay = '{later}'\n"
        );
        let tunables = vec![("rotational".to_owned(), rotational.to_owned())];
        let done = closed(&RunConfig { tunables, ..config("bfq", 6, 64) }, &jobs);
        let reads = done.iter().filter(|one| one.request.direction == Direction::Read);
        let times: Vec<f64> = reads.map(|one| (one.completed - one.request.arrival).0 as f64).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (together, after, apart) = (mean("100ms", "0"), mean("1s", "0"), mean("100ms", "1"));
    assert!(together > 2.0 * after, "{together} and {after} ns");
    assert!(together > 2.0 * apart, "on a disk that rotates each has its own: {apart} ns");
}

#[test]
fn one_process_that_is_kept_out_by_a_limit_does_not_keep_others_out_of_a_replay() {
    // 100 writes of nobody's, of which 48 get in under kyber, then a read of another process.
    let mut requests: Vec<Request> = (0..100)
        .map(|n| {
            let write = Request::new(Ns::ZERO, Lsn(n * 80_000), 8, Direction::Write);
            Request { synchronous: false, process: 1, ..write }
        })
        .collect();
    requests.push(Request { process: 2, ..Request::new(Ns(1_000), Lsn(8_000_000), 8, Direction::Read) });
    let completions = run_trace(&config("kyber", 8, 64), &requests);
    assert_eq!(completions.len(), 101);
    let read = completions.iter().find(|one| one.request.direction == Direction::Read).unwrap();
    assert_eq!(read.entered, Ns(1_000), "there are 16 tags left for it");
}

/// Whatever processes, directions, sizes, overlaps: all complete once, in order within each process, and data are as arrival order says.
#[test]
fn in_any_mixture_all_complete_and_what_overlaps_keeps_its_order() {
    use planewise_model::rng::generator;
    use rand::RngExt;
    for seed in 0..40 {
        let mut random = generator(seed, "tags of a mixture");
        let schedulers = ["noop", "mq-deadline", "kyber", "bfq", "piq+", "pass", "weave"];
        let mut profile = device(4, 1, 1, 1);
        profile.interface.command_queue = format!("ncq:{}", [1, 3, 32][seed as usize % 3]);
        let config = RunConfig {
            scheduler: schedulers[seed as usize % 7].into(),
            queue_length: [1, 2, 5, 64][seed as usize % 4],
            block_layer: BlockLayer::BlkMq,
            ..RunConfig::new(profile)
        };
        let mut now = Ns::ZERO;
        let requests: Vec<Request> = (0..400)
            .map(|_| {
                now += Ns(random.random_range(0..30_000));
                let direction =
                    if random.random_range(0..2) == 0 { Direction::Read } else { Direction::Write };
                let plain = Request::new(
                    now,
                    Lsn(random.random_range(0..100)),
                    random.random_range(1..40),
                    direction,
                );
                Request {
                    synchronous: random.random_range(0..2) == 0,
                    process: random.random_range(0..5),
                    ..plain
                }
            })
            .collect();
        let completions = run_trace(&config, &requests);
        assert_eq!(completions.len(), requests.len(), "seed {seed}");
        let mut last = [0; 5];
        let mut by_number = completions.clone();
        by_number.sort_by_key(|one| one.sequence);
        for one in &by_number {
            let arrival = one.request.arrival.0;
            let process = one.request.process as usize;
            assert!(arrival >= last[process], "seed {seed}: process {process} is in its order");
            last[process] = arrival;
        }
    }
}

#[test]
fn what_todays_block_layer_does_not_have_is_refused() {
    let two = RunConfig { request_pools: RequestPools::Two, ..config("noop", 8, 64) };
    let refused = Simulator::new(&two, ()).err().unwrap().to_string();
    assert!(refused.contains("request-pools") && refused.contains("blk-mq"), "{refused}");
    let apart = RunConfig { queue_counts: QueueCounts::Waiting, ..config("noop", 8, 64) };
    let refused = Simulator::new(&apart, ()).err().unwrap().to_string();
    assert!(refused.contains("queue-counts") && refused.contains("outstanding"), "{refused}");
    // PASS has two pools in the kernel that it comes from, and one set of tags in this one.
    assert!(Simulator::new(&config("pass", 8, 64), ()).is_ok());
}
