//! The drivers against a target whose every delay is scripted: lateness to the nanosecond, limits kept, failures told.

use planewise_io::drivers::closed_loop::{self, LoopOptions};
use planewise_io::drivers::replay::{self, Pace, ReplayOptions};
use planewise_io::drivers::{DriverError, HostOptions, Outcome, Units};
use planewise_io::target::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::{Bytes, Direction, Lsn, Ns, Request};
use planewise_sim::host::Slot;
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::results::{Replay, Status};
use planewise_workload::jobs::JobFile;
use std::sync::atomic::{AtomicBool, Ordering};

const US: u64 = 1_000;

/// A target that serves every operation in the same time, all at once, and wakes its user late.
struct Scripted {
    info: TargetInfo,
    clock: Ns,
    service: Ns,
    /// How much later than asked for a wait ends.
    oversleeps: Ns,
    /// Operations after which all others fail.
    fails_after: usize,
    under_way: Vec<(u32, Ns)>,
    /// When each operation was submitted.
    log: Vec<(Ns, Operation)>,
    most_under_way: usize,
}

impl Scripted {
    fn new(depth: u32, service_us: u64) -> Scripted {
        let info = TargetInfo {
            name: "scripted".to_owned(),
            kind: TargetKind::BlockDevice,
            engine: "test",
            capacity: Bytes(1 << 30),
            block_bytes: 512,
            longest: Bytes(64 << 10),
            depth,
            writable: true,
            identity: None,
        };
        Scripted {
            info,
            // Its clock began long before the run.
            clock: Ns(77_000_123),
            service: Ns(service_us * US),
            oversleeps: Ns::ZERO,
            fails_after: usize::MAX,
            under_way: Vec::new(),
            log: Vec::new(),
            most_under_way: 0,
        }
    }
}

impl Target for Scripted {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.clock
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        assert!(tag < self.info.depth && self.under_way.iter().all(|(other, _)| *other != tag));
        self.under_way.push((tag, self.clock));
        self.log.push((self.clock, operation));
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let first = self.under_way.iter().map(|(_, issued)| *issued + self.service).min();
        let ends = first.unwrap_or(Ns::MAX);
        assert!(ends.min(until) < Ns::MAX, "a wait that never ends");
        if ends > until {
            if until > self.clock {
                self.clock = until + self.oversleeps;
            }
            return Ok(self.clock);
        }
        self.clock = self.clock.max(ends);
        if self.log.len() > self.fails_after {
            let (operation, problem) = (self.log[self.fails_after].1, "I/O error".to_owned());
            return Err(TargetError::Failed { target: self.info.name.clone(), operation, problem });
        }
        let (now, service) = (self.clock, self.service);
        self.under_way.retain(|&(tag, issued)| {
            let is_over = issued + service <= now;
            if is_over {
                completed.push(Completed { tag, issued, completed: now });
            }
            !is_over
        });
        Ok(now)
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        Ok(self.clock)
    }
}

/// Keeps completions, and stops the run after so many.
struct Kept<'a> {
    all: Vec<Completion>,
    stop: &'a AtomicBool,
    stop_after: usize,
}

impl Observer for Kept<'_> {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        self.all.push(*completion);
        if self.all.len() == self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

struct Ended {
    outcome: Outcome<()>,
    completions: Vec<Completion>,
}

impl Ended {
    fn replay(&self) -> &Replay {
        self.outcome.result.replay.as_ref().unwrap()
    }
}

fn replay_until(
    target: &mut Scripted,
    host: &HostOptions,
    requests: &[Request],
    pace: Pace,
    bound_us: u64,
    stop_after: usize,
) -> Result<Ended, DriverError> {
    let stop = AtomicBool::new(false);
    let kept = Kept { all: Vec::new(), stop: &stop, stop_after };
    let mut options = ReplayOptions {
        pace,
        scale_time: 1.0,
        warm_up: 0,
        lateness_bound: Ns(bound_us * US),
        stop: &stop,
        progress: &mut |_| {},
        name: "test",
    };
    let outcome = replay::run(target, host, &mut requests.iter().copied(), kept, &mut options)?;
    let Outcome { result, observer, failure } = outcome;
    Ok(Ended { outcome: Outcome { result, observer: (), failure }, completions: observer.all })
}

fn replay(target: &mut Scripted, host: &HostOptions, requests: &[Request], pace: Pace) -> Ended {
    replay_until(target, host, requests, pace, 20, usize::MAX).unwrap()
}

/// Reads of 4 KiB side by side, one every so many microseconds.
fn every(us: u64, count: u64) -> Vec<Request> {
    (0..count).map(|n| Request::new(Ns((n + 1) * us * US), Lsn(n * 8), 8, Direction::Read)).collect()
}

#[test]
fn a_host_on_time_is_never_late_and_latencies_are_the_targets() {
    let ended = replay(&mut Scripted::new(8, 100), &HostOptions::new(), &every(50, 1000), Pace::Recorded);
    let replay = ended.replay();
    assert_eq!((replay.lateness_ns.max, replay.late_for_room, replay.faithful), (0, 0, Some(true)));
    assert!(ended.completions.iter().all(|one| one.completed - one.request.arrival == Ns(100 * US)));
    assert_eq!(ended.outcome.result.metrics.duration_ns, 1000 * 50 * US + 100 * US);
}

#[test]
fn oversleeping_is_lateness_of_each_request_and_above_the_bound_the_replay_is_not_faithful() {
    for (oversleeps_us, bound_us, faithful) in [(30, 40, true), (30, 20, false)] {
        let mut target = Scripted { oversleeps: Ns(oversleeps_us * US), ..Scripted::new(8, 10) };
        let requests = every(1000, 200);
        let ended =
            replay_until(&mut target, &HostOptions::new(), &requests, Pace::Recorded, bound_us, usize::MAX)
                .unwrap();
        let lateness = ended.replay().lateness_ns;
        assert_eq!((lateness.mean, lateness.max), (30_000.0, 30_000));
        assert!(lateness.p50.abs_diff(30_000) <= 30 && lateness.p99.abs_diff(30_000) <= 30, "{lateness:?}");
        assert_eq!(ended.replay().faithful, Some(faithful));
        // The time since a request was due is its latency, whoever is to blame.
        assert!(ended.completions.iter().all(|one| one.completed - one.request.arrival == Ns(40 * US)));
        assert!(ended.outcome.result.status == Status::Complete, "late is not cut short");
    }
}

#[test]
fn what_finds_the_queue_full_is_late_and_counted_as_such() {
    // One at a time, 100 us each, before a queue of 2: of 10 that are due at once the third enters when the first is done, and so on.
    let host = HostOptions { queue_length: 2, ..HostOptions::new() };
    let requests: Vec<Request> = every(0, 10);
    let ended = replay(&mut Scripted::new(1, 100), &host, &requests, Pace::Recorded);
    assert_eq!(ended.replay().late_for_room, 8);
    let expected: u64 = (1..=8).map(|n| n * 100 * US).sum();
    assert_eq!(ended.replay().lateness_ns.mean, expected as f64 / 10.0);
    assert_eq!(ended.replay().lateness_ns.max, 800 * US);
    assert_eq!(ended.replay().faithful, Some(false));
}

#[test]
fn a_closed_loop_keeps_its_depth_and_the_order_of_the_trace() {
    for depth in [1, 3, 16] {
        let mut target = Scripted::new(32, 70);
        let requests: Vec<Request> = every(1_000_000, 500).into_iter().rev().collect();
        let mut in_order = requests.clone();
        // What was recorded when is of no interest; only the order is.
        in_order.iter_mut().for_each(|request| request.arrival = Ns::ZERO);
        let ended = replay(&mut target, &HostOptions::new(), &in_order, Pace::Closed(depth));
        assert_eq!(target.most_under_way, depth as usize);
        let submitted: Vec<u64> = target.log.iter().map(|(_, operation)| operation.start.0).collect();
        assert_eq!(submitted, requests.iter().map(|request| request.start.0).collect::<Vec<_>>());
        let rounds = 500u64.div_ceil(u64::from(depth));
        assert_eq!(ended.outcome.result.metrics.duration_ns, rounds * 70 * US);
        let replay = ended.replay();
        assert_eq!(
            (ended.outcome.result.labels.pace.as_str(), replay.lateness_ns.max),
            (format!("closed:{depth}").as_str(), 0)
        );
        assert_eq!(replay.faithful, None, "nothing is due");
    }
    let none =
        replay_until(&mut Scripted::new(1, 1), &HostOptions::new(), &every(1, 1), Pace::Closed(0), 1, 9);
    assert!(none.err().unwrap().to_string().contains("pace: found closed:0"));
}

#[test]
fn long_requests_are_split_and_counted_as_one() {
    // 64 KiB at most at a time, and two tags: 200 KiB are four operations, two after two.
    let mut target = Scripted::new(2, 100);
    let requests = [
        Request::new(Ns::ZERO, Lsn(1000), 400, Direction::Write),
        Request::new(Ns::ZERO, Lsn(0), 8, Direction::Read),
    ];
    let ended = replay(&mut target, &HostOptions::new(), &requests, Pace::Recorded);
    let operations: Vec<(u64, u32)> =
        target.log.iter().map(|(_, operation)| (operation.start.0, operation.sectors)).collect();
    assert_eq!(operations, [(1000, 128), (1128, 128), (1256, 128), (1384, 16), (0, 8)]);
    let times: Vec<(u64, Ns)> = ended.completions.iter().map(|one| (one.sequence, one.completed)).collect();
    assert_eq!(times, [(0, Ns(200 * US)), (1, Ns(300 * US))]);
    let result = &ended.outcome.result;
    assert_eq!(result.target.as_ref().unwrap().split_requests, 1);
    assert_eq!((result.metrics.requests.completed, result.metrics.requests.writes), (2, 1));
}

#[test]
fn an_error_in_the_middle_keeps_and_marks_what_was_measured() {
    let mut target = Scripted { fails_after: 500, ..Scripted::new(4, 10) };
    let ended = replay(&mut target, &HostOptions::new(), &every(20, 1000), Pace::Recorded);
    let result = &ended.outcome.result;
    let failure = ended.outcome.failure.as_ref().unwrap().to_string();
    assert!(failure.contains("scripted: a read of 4096 bytes at sector 4000 failed: I/O error"), "{failure}");
    assert_eq!(result.status, Status::Interrupted);
    assert_eq!(result.target.as_ref().unwrap().failure.as_ref(), Some(&failure));
    assert_eq!((result.metrics.requests.completed, result.metrics.requests.submitted), (500, 501));
    let mut target = Scripted { fails_after: 300, ..Scripted::new(4, 10) };
    let jobs =
        JobFile::parse("[job.a]\nrw='randread'\nnumber_ios=1000\niodepth=2\nsize='8m'", "test").unwrap();
    let (stop, mut workload) = (AtomicBool::new(false), jobs.build(1 << 30, 3).unwrap());
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    let outcome =
        closed_loop::run(&mut target, &HostOptions::new(), &mut workload, (), &mut options).unwrap();
    assert!(outcome.failure.is_some() && outcome.result.status == Status::Interrupted);
    assert_eq!(outcome.result.metrics.requests.completed, 300);
}

#[test]
fn a_stopped_run_lets_the_target_finish_and_is_marked() {
    let requests = every(10, 1000);
    let mut target = Scripted::new(4, 1000);
    let ended = replay_until(&mut target, &HostOptions::new(), &requests, Pace::Recorded, 20, 100).unwrap();
    assert!(target.under_way.is_empty());
    let result = &ended.outcome.result;
    assert!(ended.outcome.failure.is_none() && result.status == Status::Interrupted);
    assert_eq!(result.metrics.requests.completed, ended.completions.len() as u64);
    assert!((100..110).contains(&ended.completions.len()));
}

#[test]
fn what_a_scheduler_needs_and_is_not_told_is_asked_for() {
    let with = |scheduler: &str, units| {
        let host = HostOptions { scheduler: scheduler.into(), units, ..HostOptions::new() };
        replay_until(&mut Scripted::new(1, 1), &host, &every(1, 10), Pace::Recorded, 1, usize::MAX)
            .map(|ended| ended.outcome.result.target.unwrap().units)
            .map_err(|error| error.to_string())
    };
    for scheduler in ["piq", "piq+", "piq_r", "piq_w", "weave"] {
        let error = with(scheduler, Units::Unknown).unwrap_err();
        assert!(error.contains("units: found none") && error.contains("parallel units"), "{error}");
        assert!(with(scheduler, Units::Told(0)).unwrap_err().contains("units: found 0"));
        assert_eq!(with(scheduler, Units::Told(16)), Ok(Some(16)));
    }
    assert_eq!(with("noop", Units::Unknown), Ok(None));
    let error = with("pig+", Units::Told(4)).unwrap_err();
    assert!(error.contains("did you mean 'piq+'"), "{error}");
}

#[test]
fn what_only_a_simulator_sees_is_zero_and_not_made_up() {
    let ended = replay(&mut Scripted::new(4, 50), &HostOptions::new(), &every(10, 100), Pace::Recorded);
    let metrics = &ended.outcome.result.metrics;
    assert_eq!(metrics.utilization, Default::default());
    assert_eq!((metrics.flash, metrics.gc.collections), (Default::default(), 0));
    // Without units, every request would conflict with every other.
    assert_eq!(metrics.conflict, Default::default());
    let told = HostOptions { units: Units::Told(1), ..HostOptions::new() };
    let ended = replay(&mut Scripted::new(4, 50), &told, &every(10, 100), Pace::Recorded);
    assert!(ended.outcome.result.metrics.conflict.read_share > 0.9);
}
