//! `--queue-counts`: whether the length of the I/O queue bounds what waits and what is outstanding, or only what waits.

mod common;

use common::{device, pages, run};
use planewise_model::{Direction, Lsn, Ns, Request, rng};
use planewise_sim::RunConfig;
use planewise_sim::host::QueueCounts;
use rand::RngExt;

/// Schedulers that never hold back the only request there is.
const WORK_CONSERVING: [&str; 8] =
    ["noop", "deadline", "mq-deadline", "rws", "piq_r", "piq_w", "piq", "piq+"];

fn config(interface: &str, scheduler: &str, length: u32, counts: QueueCounts) -> RunConfig {
    let mut profile = device(4, 2, 2, 2);
    profile.interface.command_queue = interface.into();
    let mut config = RunConfig::new(profile);
    config.scheduler = scheduler.into();
    config.queue_length = length;
    config.queue_counts = counts;
    config
}

/// Reads and writes of one to four pages in bursts.
fn bursts(seed: u64) -> Vec<Request> {
    let mut random = rng::generator(seed, "test");
    let mut now = 0;
    (0..400)
        .map(|_| {
            now += if random.random_bool(0.8) { random.random_range(0..30_000) } else { 2_000_000 };
            let direction = if random.random_bool(0.5) { Direction::Read } else { Direction::Write };
            Request::new(
                Ns(now),
                Lsn(random.random_range(0..400) * 8),
                8 * random.random_range(1..=4u32),
                direction,
            )
        })
        .collect()
}

#[test]
fn where_only_one_request_may_wait_every_work_conserving_scheduler_is_noop_to_the_nanosecond() {
    for seed in 1..=4 {
        let requests = bursts(seed);
        for interface in ["blocking", "ncq:1", "ncq:8"] {
            let served = |scheduler| {
                let config = config(interface, scheduler, 1, QueueCounts::Waiting);
                let mut completions = run(&config, &requests).unwrap();
                completions.sort_by_key(|completion| completion.sequence);
                completions.iter().map(|served| (served.issued, served.completed)).collect::<Vec<_>>()
            };
            let noop = served("noop");
            for scheduler in WORK_CONSERVING {
                assert_eq!(served(scheduler), noop, "seed {seed}, {interface}, {scheduler}");
            }
        }
    }
}

#[test]
fn a_queue_of_one_that_counts_only_what_waits_fills_the_device_and_one_that_counts_all_serves_one_by_one() {
    const READ: u64 = 30_000 + 40_960;
    // A page on each of the four channels: nothing is shared.
    let requests = pages(Direction::Read, 0..4);
    for interface in ["blocking", "ncq:8"] {
        let last = |counts| common::makespan(&config(interface, "noop", 1, counts), &requests).0;
        assert_eq!(last(QueueCounts::Waiting), READ, "{interface}");
        assert_eq!(last(QueueCounts::Outstanding), 4 * READ, "{interface}");
    }
    // A command queue of two has two requests under way, whatever may wait.
    let config = config("ncq:2", "noop", 1, QueueCounts::Waiting);
    assert_eq!(common::makespan(&config, &requests).0, 2 * READ);
}

#[test]
fn a_word_that_is_neither_is_refused_with_both() {
    let error = "tags".parse::<QueueCounts>().unwrap_err().to_string();
    assert!(error.contains("'tags'") && error.contains("outstanding, waiting"), "{error}");
    for counts in [QueueCounts::Outstanding, QueueCounts::Waiting] {
        assert_eq!(counts.to_string().parse::<QueueCounts>().unwrap(), counts);
    }
}
