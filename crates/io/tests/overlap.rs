//! On a target that completes commands in any order, as real drives do, requests that overlap take effect in the order of their arrival.

use planewise_io::drivers::closed_loop::{self, LoopOptions};
use planewise_io::drivers::replay::{self, Pace, ReplayOptions};
use planewise_io::drivers::{HostOptions, Units};
use planewise_io::target::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Bytes, Direction, Lsn, Ns, Request};
use planewise_sim::host::Overlap;
use planewise_workload::jobs::JobFile;
use rand::RngExt;
use std::sync::atomic::AtomicBool;

/// A drive that serves each operation in a time of its own and counts those that meet one under way that they overlap.
struct Shuffling {
    info: TargetInfo,
    clock: Ns,
    random: Generator,
    /// Tag, operation, when it was issued and when it completes.
    under_way: Vec<(u32, Operation, Ns, Ns)>,
    races: u64,
    most_under_way: usize,
}

impl Shuffling {
    fn new(seed: u64) -> Shuffling {
        let info = TargetInfo {
            name: "shuffling".to_owned(),
            kind: TargetKind::BlockDevice,
            engine: "test",
            capacity: Bytes(1 << 20),
            block_bytes: 512,
            longest: Bytes(16 << 10),
            depth: 16,
            writable: true,
            identity: None,
        };
        let random = generator(seed, "shuffling drive");
        Shuffling { info, clock: Ns::ZERO, random, under_way: Vec::new(), races: 0, most_under_way: 0 }
    }
}

impl Target for Shuffling {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.clock
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        let end = |operation: &Operation| operation.start.0 + u64::from(operation.sectors);
        let races = self.under_way.iter().any(|(_, other, ..)| {
            let one_writes = [operation.direction, other.direction].contains(&Direction::Write);
            one_writes && operation.start.0 < end(other) && other.start.0 < end(&operation)
        });
        self.races += u64::from(races);
        let takes = Ns(self.random.random_range(1_000..1_000_000));
        self.under_way.push((tag, operation, self.clock, self.clock + takes));
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let first = self.under_way.iter().map(|&(.., ends)| ends).min().unwrap_or(Ns::MAX);
        assert!(first.min(until) < Ns::MAX, "a wait that never ends");
        self.clock = self.clock.max(first.min(until));
        let now = self.clock;
        self.under_way.retain(|&(tag, _, issued, ends)| {
            if ends <= now {
                completed.push(Completed { tag, issued, completed: ends });
            }
            ends > now
        });
        Ok(now)
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        Ok(self.clock)
    }
}

fn host(scheduler: &str, overlap: Overlap) -> HostOptions {
    HostOptions { scheduler: scheduler.into(), units: Units::Told(8), overlap, ..HostOptions::new() }
}

/// Requests of a replay that met another under way, and how many were under way at most.
fn replayed(seed: u64, scheduler: &str, overlap: Overlap) -> (u64, usize) {
    let mut random = generator(seed, "overlapping requests");
    let requests: Vec<Request> = (0..2_000u64)
        .map(|nth| {
            let direction = if random.random_bool(0.5) { Direction::Read } else { Direction::Write };
            let sectors = random.random_range(1..=64);
            Request::new(Ns(nth * 30_000), Lsn(random.random_range(0..1_900)), sectors, direction)
        })
        .collect();
    let mut target = Shuffling::new(seed);
    let mut options = ReplayOptions {
        pace: Pace::Recorded,
        scale_time: 1.0,
        warm_up: 0,
        lateness_bound: Ns(20_000),
        stop: &AtomicBool::new(false),
        progress: &mut |_| {},
        name: "test",
    };
    let host = host(scheduler, overlap);
    let outcome = replay::run(&mut target, &host, &mut requests.iter().copied(), (), &mut options).unwrap();
    let metrics = &outcome.result.metrics;
    assert_eq!(metrics.requests.completed, 2_000);
    let held = metrics.overlap.read_share + metrics.overlap.write_share;
    assert_eq!(held > 0.0, overlap == Overlap::Keep, "{held}");
    (target.races, target.most_under_way)
}

#[test]
fn a_replay_never_has_two_requests_under_way_that_overlap_when_one_writes() {
    for scheduler in ["noop", "mq-deadline", "kyber", "piq+", "pass", "weave"] {
        for seed in 0..4 {
            let (races, under_way) = replayed(seed, scheduler, Overlap::Keep);
            assert!(races == 0 && under_way > 4, "{scheduler}, seed {seed}: {races}, {under_way}");
        }
    }
    assert!(replayed(0, "noop", Overlap::Ignore).0 > 100, "nothing to keep apart");
}

#[test]
fn nor_has_a_bench() {
    let jobs = "[global]\nrw = \"randrw\"\nbs = \"4k\"\niodepth = 16\nsize = \"64k\"\nnumber_ios = 2000\n[[job]]\nname = \"a\"\n[[job]]\nname = \"b\"\n";
    for overlap in [Overlap::Keep, Overlap::Ignore] {
        let mut target = Shuffling::new(7);
        let mut workload = JobFile::parse(jobs, "test").unwrap().build(1 << 20, 7).unwrap();
        let mut options = LoopOptions { stop: &AtomicBool::new(false), progress: &mut |_| {}, name: "test" };
        closed_loop::run(&mut target, &host("noop", overlap), &mut workload, (), &mut options).unwrap();
        assert_eq!(target.races == 0, overlap == Overlap::Keep, "{overlap}: {}", target.races);
    }
}
