//! The overload verdict: of runs that cannot keep up, of bursts that fit, and of the rate at which it is another.

mod common;

use common::device;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::drivers::pace::Pace;
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::host::RequestPools;
use planewise_sim::results::{Cause, Overload, RunResult};
use rand::RngExt;
use std::sync::atomic::AtomicBool;

/// One read of 4 KiB on the device of one chip.
const SERVICE: u64 = 30_000 + 40_960;

fn run(config: &RunConfig, arrivals: &[u64], warm_up: u64) -> RunResult {
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    let mut requests = arrivals.iter().enumerate().map(|(n, &at)| {
        let request = Request::new(Ns(at), Lsn(n as u64 * 7919 % 3000 * 8), 8, Direction::Read);
        Request { response: Some(Ns(SERVICE)), ..request }
    });
    replay(config, &mut requests, (), &mut options).unwrap().0
}

fn config() -> RunConfig {
    RunConfig::new(device(1, 1, 1, 1))
}

fn verdict(arrivals: &[u64]) -> Option<Overload> {
    run(&config(), arrivals, 0).overload
}

/// So many arrivals from a time on, each so many service times after the one before.
fn steady(from: u64, count: u64, gap: f64) -> impl Iterator<Item = u64> {
    (0..count).map(move |n| from + (n as f64 * gap * SERVICE as f64) as u64)
}

fn random(seed: u64, count: u64, gap: f64) -> Vec<u64> {
    let mut random = generator(seed, "arrivals");
    let mut at = 0.0;
    let mut next = || {
        at -= (1.0 - random.random::<f64>()).ln() * gap * SERVICE as f64;
        at as u64
    };
    (0..count).map(|_| next()).collect()
}

fn scaled(arrivals: &[u64], factor: f64) -> Vec<u64> {
    arrivals.iter().map(|&at| (at as f64 * factor) as u64).collect()
}

/// The verdict must be there, and gone at the rate that it tells.
fn overloaded(arrivals: &[u64], what: &str) -> Overload {
    let found = verdict(arrivals).unwrap_or_else(|| panic!("{what}: not found"));
    let again = verdict(&scaled(arrivals, found.stable_scale_time));
    assert!(again.is_none(), "{what}: {found:?}, and at that rate {again:?}");
    found
}

#[test]
fn a_steady_trace_is_overloaded_above_the_rate_of_the_device_and_not_below() {
    for (gap, is_overloaded) in
        [(2.0, false), (1.1, false), (1.0, false), (0.98, true), (0.5, true), (0.01, true)]
    {
        let arrivals: Vec<u64> = steady(0, 20_000, gap).collect();
        if !is_overloaded {
            assert_eq!(verdict(&arrivals), None, "gap {gap}");
            continue;
        }
        let found = overloaded(&arrivals, &format!("gap {gap}"));
        let (factor, scale) = (1.0 / gap, found.stable_scale_time);
        assert!((found.factor / factor - 1.0).abs() < 0.05, "gap {gap}: {found:?}");
        assert!(scale >= factor && scale < factor * 1.3, "gap {gap}: {found:?}");
        let iops = 1e9 / SERVICE as f64;
        assert!((found.offered_iops / (iops * factor) - 1.0).abs() < 0.01, "gap {gap}: {found:?}");
        assert!(found.stable_iops <= iops && found.stable_iops > iops / 1.3, "gap {gap}: {found:?}");
    }
}

#[test]
fn random_arrivals_are_overloaded_above_the_rate_of_the_device_and_not_below() {
    for seed in 0..20 {
        for count in [2_000, 20_000] {
            assert_eq!(verdict(&random(seed, count, 1.25)), None, "seed {seed}, {count}");
            overloaded(&random(seed, count, 0.8), &format!("seed {seed}, {count}"));
        }
    }
}

#[test]
fn the_length_of_the_queue_does_not_decide() {
    for queue in [1, 2, 8, 64, 512, 4096] {
        for command_queue in ["blocking", "ncq:1", "ncq:32"] {
            let mut config = RunConfig { queue_length: queue, ..config() };
            config.profile.interface.command_queue = command_queue.into();
            let found = |gap| run(&config, &random(3, 20_000, gap), 0).overload;
            assert_eq!(found(1.25), None, "queue {queue}, {command_queue}");
            assert!(found(0.8).is_some(), "queue {queue}, {command_queue}");
        }
    }
}

#[test]
fn a_burst_that_fits_is_no_overload_wherever_it_is() {
    // 2,000 at once take a tenth of the window.
    for at in [0u64, 9_000, 18_000] {
        let mut arrivals: Vec<u64> = steady(0, 2_000, 10.0).chain(steady(at * SERVICE, 2_000, 0.0)).collect();
        arrivals.sort_unstable();
        assert_eq!(verdict(&arrivals), None, "at {at}");
    }
    // One that takes three times as long as the window has left does not, and half a window of backlog is no burst.
    let late: Vec<u64> = steady(0, 2_000, 10.0).chain(steady(19_999 * SERVICE, 20_000, 0.0)).collect();
    assert_eq!(overloaded(&late, "late").cause, Cause::Grows);
    let mut half: Vec<u64> = steady(0, 2_000, 10.0).chain(steady(2_000 * SERVICE, 10_000, 0.0)).collect();
    half.sort_unstable();
    assert_eq!(overloaded(&half, "half").cause, Cause::Stands);
}

#[test]
fn a_calm_end_hides_no_overload_and_a_calm_beginning_neither() {
    let busy: Vec<u64> = steady(0, 9_000, 0.5).collect();
    let end = 4_500 * SERVICE;
    for calm in [10, 500, 4_000] {
        let arrivals: Vec<u64> = busy.iter().copied().chain(steady(end, calm, 1.0)).collect();
        overloaded(&arrivals, &format!("{calm} calm requests at the end"));
    }
    let mut begins_calm: Vec<u64> = steady(0, 300, 10.0).collect();
    begins_calm.extend(steady(3_000 * SERVICE, 4_000, 0.7));
    let found = overloaded(&begins_calm, "calm beginning");
    assert!(found.cause == Cause::Grows && found.window_share < 0.55, "{found:?}");
    // Hours of nothing behind it, in which everything was served long ago.
    let mut served: Vec<u64> = busy;
    served.extend(steady(60_000 * SERVICE, 100, 1.0));
    assert_eq!(verdict(&served), None);
}

#[test]
fn too_little_to_tell_is_no_overload() {
    assert_eq!(verdict(&[]), None);
    assert_eq!(verdict(&[0]), None);
    assert_eq!(verdict(&[5, 5]), None);
    assert_eq!(verdict(&[0; 5_000]), None, "all at once: no rate");
    assert_eq!(verdict(&steady(0, 60, 0.01).collect::<Vec<_>>()), None);
    assert!(verdict(&steady(0, 200, 0.1).collect::<Vec<_>>()).is_some());
}

#[test]
fn the_window_begins_behind_the_warm_up() {
    // The same load before and in the window: the same verdict, and a rate at which it is another.
    let arrivals: Vec<u64> = steady(0, 10_000, 0.9).collect();
    let found = |arrivals: &[u64]| run(&config(), arrivals, 5_000).overload;
    let half = found(&arrivals).expect("overloaded before and behind the warm-up");
    assert_eq!(found(&scaled(&arrivals, half.stable_scale_time)), None, "{half:?}");
    // An overload that was served before the window, and one that the window makes up for: none.
    let calm_from = |at: f64, gap: f64| {
        let calm = steady((at * SERVICE as f64) as u64, 5_000, gap);
        steady(0, 5_000, 0.2).chain(calm).collect::<Vec<u64>>()
    };
    assert!(verdict(&calm_from(5_000.0, 1.0)).is_some());
    assert_eq!(found(&calm_from(5_000.0, 1.0)), None);
    assert_eq!(found(&calm_from(1_000.0, 10.0)), None, "served in a tenth of the window");
    // One that stands through the window, though it does not grow there.
    assert_eq!(found(&calm_from(1_000.0, 1.0)).map(|found| found.cause), Some(Cause::Stands));
    // A calm warm-up hides none, however long it is.
    let busy_behind = |warm_up: u64| {
        let busy = steady(warm_up * 10 * SERVICE, 5_000, 0.7);
        let arrivals: Vec<u64> = steady(0, warm_up, 10.0).chain(busy).collect();
        run(&config(), &arrivals, warm_up).overload
    };
    for warm_up in [0, 100, 5_000, 50_000] {
        let found = busy_behind(warm_up).unwrap_or_else(|| panic!("behind {warm_up}"));
        assert!((found.factor - 1.0 / 0.7).abs() < 0.05, "behind {warm_up}: {found:?}");
    }
}

#[test]
fn no_other_pace_is_ever_overloaded() {
    let arrivals: Vec<u64> = steady(0, 3_000, 0.1).collect();
    assert!(verdict(&arrivals).is_some());
    for pace in [Pace::Dependent, Pace::Closed(1), Pace::Closed(32), Pace::Closed(4096), Pace::Asap] {
        let result = run(&RunConfig { pace, ..config() }, &arrivals, 0);
        assert_eq!((result.overload, result.labels.pace.as_str()), (None, pace.to_string().as_str()));
        assert_eq!(result.metrics.requests.completed, 3_000);
    }
}

#[test]
fn a_scale_that_was_given_is_part_of_the_one_that_is_told() {
    let arrivals: Vec<u64> = steady(0, 10_000, 0.5).collect();
    let plain = verdict(&arrivals).unwrap().stable_scale_time;
    let config = RunConfig { scale_time: 0.5, ..config() };
    let scaled = run(&config, &scaled(&arrivals, 0.5), 0).overload.unwrap().stable_scale_time;
    assert!((scaled / plain - 1.0).abs() < 0.05, "{plain} {scaled}");
}

#[test]
fn two_pools_of_slots_tell_the_rate_that_was_asked_for() {
    // 6,000 writes at once and 20,000 reads in a second: whoever waits outside of the one pool enters behind later ones of the other.
    let mut requests: Vec<Request> = (0..6_000u64)
        .map(|n| Request::new(Ns(n * 300), Lsn(n % 3_000 * 8), 8, Direction::Write))
        .chain(
            (0..20_000)
                .map(|n| Request::new(Ns(n * 50_000 + 1), Lsn((4_000 + n % 9_000) * 8), 8, Direction::Read)),
        )
        .collect();
    requests.sort_by_key(|request| request.arrival);
    for pools in [RequestPools::One, RequestPools::Two] {
        let mut config =
            RunConfig { scheduler: "cfq".into(), queue_length: 4, ..RunConfig::new(device(8, 1, 1, 1)) };
        config.profile.interface.command_queue = "ncq:8".into();
        config.request_pools = pools;
        let mut options = ReplayOptions {
            warm_up: 0,
            stop: &AtomicBool::new(false),
            progress: &mut |_| {},
            trace: "test",
            power_cut: None,
        };
        let found = replay(&config, &mut requests.iter().copied(), (), &mut options).unwrap().0.overload;
        let found = found.unwrap_or_else(|| panic!("{pools}: not found"));
        assert!((found.offered_iops / 26_000.0 - 1.0).abs() < 0.01, "{pools}: {found:?}");
        assert!(found.factor < 20.0 && found.stable_scale_time < 100.0, "{pools}: {found:?}");
    }
}
