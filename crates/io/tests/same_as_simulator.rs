//! The drivers on a simulated target give, request by request, the times that the simulator's own drivers give.

use planewise_io::Target;
use planewise_io::drivers::closed_loop::{self, LoopOptions};
use planewise_io::drivers::fit::{Fit, FitOptions, FittedSource};
use planewise_io::drivers::replay::{self, LATENESS_BOUND_DEFAULT, Pace, ReplayOptions};
use planewise_io::drivers::{HostOptions, Outcome, Units};
use planewise_io::target::SimTarget;
use planewise_model::rng::generator;
use planewise_model::{Durability, Ns, Operation, Profile, Request};
use planewise_sim::drivers::closed_loop as simulated;
use planewise_sim::drivers::replay::{self as simulated_replay, RequestSource};
use planewise_sim::host::{Merging, Overlap, QueueCounts, Slot};
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::results::{DirectionMetrics, RunResult, Status};
use planewise_sim::{Condition, RunConfig};
use planewise_trace::synth::Generator;
use planewise_trace::transform::{Fold, ScaleTime, Source};
use planewise_workload::jobs::JobFile;
use rand::RngExt;
use std::sync::atomic::AtomicBool;

const SEED: u64 = 11;

/// Keeps the times of every completion.
#[derive(Default, PartialEq, Debug)]
struct Kept(Vec<(u64, Ns, Ns, Ns)>);

impl Observer for Kept {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        let &Completion { sequence, entered, issued, completed, .. } = completion;
        self.0.push((sequence, entered, issued, completed));
    }
}

/// A configuration of the simulator, and the same as a target with a host before it. The device takes `depth` commands.
fn both(device: &str, scheduler: &str, depth: u32, queue: u32) -> (RunConfig, SimTarget, HostOptions) {
    let mut profile = Profile::embedded(device).unwrap();
    profile.interface.command_queue = format!("ncq:{depth}");
    // A queue shorter than the device's would keep it from being filled, if what is outstanding counted.
    let queue_counts = if queue < depth { QueueCounts::Waiting } else { QueueCounts::Outstanding };
    // Some that choose by direction or unit may also let overlapping requests pass one another.
    let overlap =
        if ["mq-deadline", "piq", "kyber"].contains(&scheduler) { Overlap::Ignore } else { Overlap::Keep };
    let config = RunConfig {
        scheduler: scheduler.into(),
        queue_length: queue,
        queue_counts,
        overlap,
        merging: if scheduler == "mq-deadline" { Merging::Full } else { Merging::None },
        seed: SEED,
        ..RunConfig::new(profile.clone())
    };
    let host = HostOptions {
        scheduler: scheduler.into(),
        queue_length: queue,
        queue_counts,
        merging: config.merging,
        overlap,
        units: Units::Profile(Box::new(config.host_knowledge().unwrap())),
        seed: SEED,
        ..HostOptions::new()
    };
    let target = SimTarget::new(&profile, Condition::Filled, depth, SEED).unwrap();
    (config, target, host)
}

/// What an outside view measures as the simulator does: everything about requests but the waits inside the device.
fn seen_from_outside(result: &RunResult) -> impl PartialEq + std::fmt::Debug {
    let without_waits = |of: &DirectionMetrics| DirectionMetrics {
        die_wait_ns_mean: 0.0,
        channel_wait_ns_mean: 0.0,
        ..of.clone()
    };
    let metrics = &result.metrics;
    let times = [&metrics.read, &metrics.write, &metrics.all].map(without_waits);
    let counts = (metrics.requests, metrics.duration_ns, metrics.direction_switches, metrics.conflict);
    let commands = (metrics.flushes.clone(), metrics.discards.clone());
    let depth = metrics.mean_queue_depth;
    (times, counts, depth, commands, result.scheduler_counters.clone(), result.closed_loop.clone())
}

fn closed_loops_agree(device: &str, scheduler: &str, depth: u32, queue: u32, jobs: &str) {
    let (config, mut target, host) = both(device, scheduler, depth, queue);
    let build =
        || JobFile::parse(jobs, "test").unwrap().build(config.profile.user_capacity().0, SEED).unwrap();
    let stop = AtomicBool::new(false);
    let mut options = simulated::LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    let (expected, kept) = simulated::run(&config, &mut build(), Kept::default(), &mut options).unwrap();
    let mut options = LoopOptions { stop: &stop, progress: &mut |_| {}, name: "test" };
    let outcome = closed_loop::run(&mut target, &host, &mut build(), Kept::default(), &mut options).unwrap();
    let what = format!("{device}, {scheduler}, depth {depth}, queue {queue}");
    assert!(outcome.failure.is_none() && outcome.result.status == Status::Complete, "{what}");
    assert!(kept.0.len() > 1000, "{what}: {} requests", kept.0.len());
    let differs = kept.0.iter().zip(&outcome.observer.0).position(|(one, other)| one != other);
    if let Some(at) = differs {
        panic!("{what}: completion {at}: {:?} and {:?}", kept.0[at], outcome.observer.0[at]);
    }
    assert_eq!(seen_from_outside(&expected), seen_from_outside(&outcome.result), "{what}");
}

/// A synthetic volume on the device, so much faster than it was described.
fn trace(volume: &str, requests: u64, factor: f64, sectors: u64) -> Vec<Request> {
    let volume = planewise_trace::synth::volume(volume).unwrap();
    let stream = Generator::new(&volume, requests, SEED).unwrap();
    let mut stream = stream.then(ScaleTime::new(factor).unwrap()).then(Fold::new(sectors).unwrap());
    let mut all = Vec::new();
    while stream.next_batch(&mut all, 4096).unwrap() > 0 {}
    all
}

/// A replay in the simulator.
fn simulated(config: &RunConfig, requests: &[Request], warm_up: u64) -> (RunResult, Kept) {
    let stop = AtomicBool::new(false);
    let mut options = simulated_replay::ReplayOptions {
        warm_up,
        stop: &stop,
        progress: &mut |_| {},
        trace: "test",
        power_cut: None,
    };
    let source = &mut requests.iter().copied();
    simulated_replay::replay(config, source, Kept::default(), &mut options).unwrap()
}

/// The same on a target, at the pace and the times of the configuration.
fn from_outside(
    target: &mut SimTarget,
    host: &HostOptions,
    source: &mut dyn RequestSource,
    (config, warm_up): (&RunConfig, u64),
) -> Outcome<Kept> {
    let stop = AtomicBool::new(false);
    let mut options = ReplayOptions {
        pace: config.pace,
        scale_time: config.scale_time,
        warm_up,
        lateness_bound: LATENESS_BOUND_DEFAULT,
        stop: &stop,
        progress: &mut |_| {},
        name: "test",
    };
    replay::run(target, host, source, Kept::default(), &mut options).unwrap()
}

fn replays_agree(device: &str, scheduler: &str, depth: u32, queue: u32, factor: f64) -> (u64, u64) {
    let (config, mut target, host) = both(device, scheduler, depth, queue);
    let requests = trace("piq-usr_0", 5000, factor, target.info().sectors());
    let warm_up = 500;
    let (expected, kept) = simulated(&config, &requests, warm_up);
    let source = &mut requests.iter().copied();
    let outcome = from_outside(&mut target, &host, source, (&config, warm_up));
    let what = format!("{device}, {scheduler}, depth {depth}, queue {queue}, times {factor}");
    assert!(outcome.failure.is_none() && outcome.result.status == Status::Complete, "{what}");
    assert_eq!(kept.0.len(), 5000, "{what}");
    if let Some(at) = kept.0.iter().zip(&outcome.observer.0).position(|(one, other)| one != other) {
        panic!("{what}: completion {at}: {:?} and {:?}", kept.0[at], outcome.observer.0[at]);
    }
    assert_eq!(seen_from_outside(&expected), seen_from_outside(&outcome.result), "{what}");
    let replay = outcome.result.replay.unwrap();
    // In model time only the queue makes anything late.
    let late = kept
        .0
        .iter()
        .filter(|(number, entered, ..)| *number >= warm_up && *entered > requests[*number as usize].arrival);
    assert_eq!(late.count() as u64, replay.late_for_room, "{what}");
    (replay.late_for_room, replay.lateness_ns.max)
}

#[test]
fn a_replay_takes_as_long_on_a_simulated_target_as_in_the_simulator() {
    for device in ["ssd1", "piq-128g"] {
        for (scheduler, depth, queue) in [
            ("noop", 32, 64),
            ("noop", 2, 8),
            ("mq-deadline", 8, 64),
            ("piq+", 16, 64),
            ("piq", 16, 5),
            ("weave", 8, 32),
        ] {
            let (late, longest) = replays_agree(device, scheduler, depth, queue, 1.0);
            assert_eq!(late > 0, longest > 0);
            // One after another, with pauses.
            assert_eq!(
                replays_agree(device, scheduler, depth, queue, 1000.0).1,
                0,
                "nothing is late in model time"
            );
            // Faster than the device: the queue is full most of the time.
            let (late, longest) = replays_agree(device, scheduler, depth, queue, 1e-4);
            assert!(late > 1000 && longest > 0, "{device} {scheduler}: {late}");
        }
    }
}

/// At other paces, too, what arrives when is the same, and so is everything that follows.
#[test]
fn every_pace_is_the_same_on_a_simulated_target_as_in_the_simulator() {
    for (scheduler, depth, queue) in
        [("noop", 32, 64), ("noop", 2, 4), ("mq-deadline", 8, 64), ("bfq", 16, 64)]
    {
        for pace in
            [Pace::Recorded, Pace::Dependent, Pace::Closed(1), Pace::Closed(9), Pace::Closed(200), Pace::Asap]
        {
            let what = format!("{scheduler}, depth {depth}, queue {queue}, {pace}");
            let (config, mut target, host) = both("piq-128g", scheduler, depth, queue);
            let config = RunConfig { pace, scale_time: 1.5, ..config };
            let mut requests = trace("piq-usr_0", 3000, 1e-3, target.info().sectors());
            for (number, request) in requests.iter_mut().enumerate() {
                // Every tenth does not say when it completed.
                request.response = (number % 10 != 3).then_some(Ns(20_000 + number as u64 * 7919 % 400_000));
            }
            let (expected, kept) = simulated(&config, &requests, 0);
            let source = &mut requests.iter().copied();
            let outcome = from_outside(&mut target, &host, source, (&config, 0));
            assert!(outcome.failure.is_none(), "{what}");
            assert_eq!(kept.0.len(), 3000, "{what}");
            assert!(kept.0 == outcome.observer.0, "{what}: completions differ");
            let result = outcome.result;
            assert_eq!(
                (expected.overload, expected.dependent),
                (result.overload, result.dependent),
                "{what}"
            );
            assert_eq!(
                (result.labels.pace.as_str(), expected.labels.pace),
                (pace.to_string().as_str(), pace.to_string())
            );
            assert_eq!(result.dependent.is_some(), pace == Pace::Dependent, "{what}");
        }
    }
}

const MIXED: &str = "[job.a]\nrw='randrw'\nnumber_ios=1500\niodepth=24\nsize='64m'\nbs='16k'\n\
                     [job.b]\nrw='randread'\nnumber_ios=500\nthinktime='200us'\nsize='32m'\noffset='64m'\n\
                     [job.c]\nrw='write'\nnumber_ios=300\niodepth=4\nsize='32m'\noffset='96m'\nbs='12k'";

#[test]
fn a_closed_loop_takes_as_long_on_a_simulated_target_as_in_the_simulator() {
    for device in ["ssd-s", "ssd1", "piq-128g"] {
        for (scheduler, depth, queue) in [
            ("noop", 32, 64),
            ("noop", 4, 16),
            ("mq-deadline", 8, 64),
            ("piq+", 16, 64),
            ("piq", 16, 5),
            ("kyber", 32, 256),
        ] {
            closed_loops_agree(device, scheduler, depth, queue, MIXED);
        }
    }
}

#[test]
fn schedulers_that_wait_on_purpose_are_woken_at_the_same_times() {
    // Not cfq: its slices end by the clock without a wish to be woken then, and the simulator asks besides whenever a die of the
    // device becomes free, which no real interface tells.
    for scheduler in ["anticipatory", "bfq", "weave", "fios", "pass"] {
        closed_loops_agree("ssd1", scheduler, 4, 64, MIXED);
    }
}

#[test]
fn a_ramp_is_left_out_of_the_same_requests() {
    closed_loops_agree("ssd1", "noop", 8, 64, &MIXED.replacen("[job.a]\n", "[job.a]\nramp_time='20ms'\n", 1));
}

const DURABLE: &str = "[job.a]\nrw='randrw'\nnumber_ios=800\niodepth=8\nsize='64m'\nbs='16k'\nfdatasync=5\n\
                       [job.b]\nrw='randtrimwrite'\nnumber_ios=200\niodepth=4\nsize='32m'\noffset='64m'\nbs='2m'\nend_fsync=1\n\
                       [job.c]\nrw='write'\nnumber_ios=300\nsize='32m'\noffset='96m'\nbs='4k'\nsync='dsync'\n\
                       [job.d]\nrw='trim'\nnumber_ios=20\nsize='32m'\noffset='32m'\nbs='200k'\nfsync=1";

/// The drive of this profile forgets what it has not flushed.
const VOLATILE: &str = "tlc-nvme-1t";

#[test]
fn flushes_trims_and_forced_writes_take_as_long_on_a_simulated_target_as_in_the_simulator() {
    // Writes of 2 MiB would be two operations of a target, and one of the simulator.
    let jobs = DURABLE.replace("'2m'", "'256k'");
    for (device, scheduler, depth, queue) in [
        (VOLATILE, "noop", 32, 64),
        (VOLATILE, "mq-deadline", 8, 64),
        (VOLATILE, "bfq", 8, 64),
        ("ssd-s", "noop", 4, 16),
        // Commands pass the scheduler: one that comes in the very instant in which requests complete may go before or after what waits
        // there, which shows where the queue is full (kyber on ssd-s, any but noop on piq-128g, whose commands take no time).
        ("piq-128g", "noop", 8, 64),
    ] {
        closed_loops_agree(device, scheduler, depth, queue, &jobs);
    }
}

#[test]
fn a_trace_with_flushes_discards_and_forced_writes_is_the_same_on_a_simulated_target() {
    for (device, seed) in [(VOLATILE, 1), (VOLATILE, 2), ("ssd-s", 3), ("piq-128g", 4)] {
        let (config, mut target, host) = both(device, "noop", 16, 64);
        let mut random = generator(seed, "commands of a trace");
        let mut requests = trace("piq-usr_0", 3000, 1e-2, target.info().sectors());
        for request in &mut requests {
            let promises =
                [Durability::ForceUnitAccess, Durability::FlushFirst, Durability::FlushFirstForceUnitAccess];
            match random.random_range(0..10) {
                0 => *request = Request::flush(request.arrival),
                1 => *request = Request::discard(request.arrival, request.start, request.sectors),
                2 if request.moves_to_device() => request.durability = promises[random.random_range(0..3)],
                _ => {}
            }
        }
        let (expected, kept) = simulated(&config, &requests, 0);
        let fit = FitOptions { flushes: true, discards: true, ..FitOptions::default() };
        let source = &mut requests.iter().copied();
        let mut source = FittedSource::new(source, Fit::new(target.info(), fit));
        let outcome = from_outside(&mut target, &host, &mut source, (&config, 0));
        assert!(outcome.failure.is_none(), "{device}, seed {seed}: {:?}", outcome.failure);
        let differs = kept.0.iter().zip(&outcome.observer.0).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!(
                "{device}, seed {seed}: completion {at}: {:?} and {:?}",
                kept.0[at], outcome.observer.0[at]
            );
        }
        assert_eq!(seen_from_outside(&expected), seen_from_outside(&outcome.result), "{device}, seed {seed}");
        let of = |what: Operation| requests.iter().filter(|request| request.operation == what).count() as u64;
        let metrics = &outcome.result.metrics;
        assert_eq!(metrics.flushes.as_ref().map(|of| of.count), Some(of(Operation::Flush)));
        assert_eq!(metrics.discards.as_ref().map(|of| of.count), Some(of(Operation::Discard)));
    }
}
