//! Bounded waiting: under a flood of reads no write waits longer than its deadline and one batch.

mod common;

use common::{device, run};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::RunConfig;
use rand::RngExt;

const READ: u64 = 30_000 + 4 * 40_960;
const WRITE: u64 = 600_000 + 40_960;

/// A flood that keeps the queue full of reads, of 1 to 4 pages, and a write of one page every 8 to 30 ms.
fn flood(seed: u64) -> Vec<Request> {
    let mut random = generator(seed, "flood");
    let mut next_write = random.random_range(8_000_000..30_000_000u64);
    (0..12_000u64)
        .map(|number| {
            let at = number * 20_000;
            let page = random.random_range(0..800u64);
            if at < next_write {
                return Request::new(
                    Ns(at),
                    Lsn(page * 8),
                    8 * random.random_range(1..=4u32),
                    Direction::Read,
                );
            }
            next_write = at + random.random_range(8_000_000..30_000_000u64);
            Request::new(Ns(at), Lsn(page * 8), 8, Direction::Write)
        })
        .collect()
}

/// Longest wait of a write that depends on nothing else in the queue, and how many there were.
fn longest_wait(config: &RunConfig, seed: u64) -> (Ns, usize) {
    let completions = run(config, &flood(seed)).unwrap();
    let waits = completions
        .iter()
        .filter(|completion| completion.request.direction == Direction::Write)
        .map(|completion| completion.issued - completion.released);
    (waits.clone().max().unwrap(), waits.count())
}

#[test]
fn under_a_flood_of_reads_no_write_waits_longer_than_its_deadline_and_one_batch() {
    // The deadline in its tunable and in ns, and the requests of one batch.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u64, u64);
    let cases: [Case<'_>; 6] = [
        ("deadline", &[("write_expire", "10"), ("fifo_batch", "16")], 10_000_000, 16),
        ("mq-deadline", &[("write_expire", "10"), ("fifo_batch", "16")], 10_000_000, 16),
        ("pass", &[("write_expire", "5"), ("batch", "16"), ("region_size", "819200")], 5_000_000, 16),
        ("piq+", &[("write_wait_max_ns", "3000000")], 3_000_000, 4),
        ("weave", &[("write_wait_max_ns", "3000000")], 3_000_000, 4),
        // The rest of an epoch and all of the next one: charges are what requests take one after the other. The batch is the
        // queue of other writes.
        ("fios", &[("timeslice", "5"), ("read_128k_ns", "1340720")], 10_000_000, 16),
    ];
    for (scheduler, tunables, deadline, batch) in cases {
        for interface in ["blocking", "ncq:1", "ncq:8"] {
            for seed in 0..6 {
                let mut profile = device(4, 1, 1, 1);
                profile.interface.command_queue = interface.into();
                let mut config = RunConfig { scheduler: scheduler.into(), ..RunConfig::new(profile) };
                config.tunables =
                    tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
                let (wait, writes) = longest_wait(&config, seed);
                assert!(writes > 5, "seed {seed}: {writes} writes");
                // A batch, with the write that may be out before it and the one command each of its requests waits for.
                let bound = Ns(deadline + (batch + 1) * READ + WRITE);
                assert!(wait <= bound, "{scheduler} on {interface}, seed {seed}: {wait}, at most {bound}");
            }
        }
    }
}

#[test]
fn without_deadlines_a_write_waits_for_as_long_as_reads_come() {
    // What the test above would not see if the flood were none.
    for (scheduler, tunables) in [
        ("rws", &[][..]),
        ("piq", &[]),
        ("weave", &[("write_wait_max_ns", "1000000000000"), ("unit_depth", "1")]),
    ] {
        let mut profile = device(4, 1, 1, 1);
        profile.interface.command_queue = "ncq:8".into();
        let mut config = RunConfig { scheduler: scheduler.into(), ..RunConfig::new(profile) };
        config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (wait, _) = longest_wait(&config, 0);
        assert!(wait > Ns::from_millis(100), "{scheduler}: {wait}");
    }
}
