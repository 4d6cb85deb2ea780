//! A device whose time is somebody else's: how the steps fall changes nothing.

mod common;

use common::device;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::drivers::stepped::Stepped;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::results::Status;
use planewise_sim::{RunConfig, SimError};
use rand::RngExt;
use std::sync::atomic::AtomicBool;

fn requests(seed: u64, gap: u64) -> Vec<Request> {
    let (mut random, mut now) = (generator(seed, "stepped"), 0);
    (0..2000)
        .map(|_| {
            now += random.random_range(0..gap);
            let start = Lsn(random.random_range(0..4000) * 8);
            match random.random_range(0..20) {
                0 => Request::flush(Ns(now)),
                1 => Request::discard(Ns(now), start, 16),
                kind => Request::new(
                    Ns(now),
                    start,
                    random.random_range(1..40),
                    Direction::ALL[kind as usize % 2],
                ),
            }
        })
        .collect()
}

#[test]
fn a_device_that_is_stepped_at_random_measures_what_a_replay_measures() {
    for seed in 0..6 {
        // The last ones are more than the queue takes: requests wait outside.
        for (gap, queue) in [(2_000_000, 64), (200_000, 64), (20_000, 8)] {
            let mut config = RunConfig::new(device(2, 2, 1, 1));
            config.queue_length = queue;
            config.profile.interface.command_queue = "ncq:32".into();
            let requests = requests(seed, gap);
            let stop = AtomicBool::new(false);
            let mut options =
                ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "t", power_cut: None };
            let expected = replay(&config, &mut requests.iter().copied(), (), &mut options).unwrap().0;

            let mut random = generator(seed, "steps");
            let mut stepped = Stepped::new(&config, Invariants::of(config.overlap)).unwrap();
            let (mut now, mut done) = (0, vec![0; requests.len()]);
            for (tag, request) in requests.iter().enumerate() {
                while now < request.arrival.0 {
                    now = (now + random.random_range(0..3 * gap)).min(request.arrival.0);
                    stepped.advance(Ns(now)).unwrap();
                }
                assert_eq!(stepped.submit(request, tag as u64).unwrap(), request.arrival);
            }
            assert!(stepped.wind_up().unwrap());
            while let Some((tag, completion)) = stepped.take() {
                done[tag as usize] += 1;
                assert_eq!(completion.request.start, requests[tag as usize].start);
            }
            assert!(done.iter().all(|count| *count == 1), "seed {seed}");
            let found = stepped.result("t", Status::Complete).unwrap();
            assert_eq!(found.metrics, expected.metrics, "seed {seed}, gap {gap}");
            stepped.into_observer().report().unwrap();
        }
    }
}

#[test]
fn a_request_of_the_past_arrives_now_and_one_that_cannot_be_changes_nothing() {
    let mut stepped = Stepped::new(&RunConfig::new(device(2, 2, 1, 1)), ()).unwrap();
    let read = |at, start| Request::new(Ns(at), Lsn(start), 8, Direction::Read);
    assert_eq!(stepped.submit(&read(1000, 0), 1).unwrap(), Ns(1000));
    assert_eq!(stepped.submit(&read(10, 8), 2).unwrap(), Ns(1000));
    stepped.advance(Ns(50_000_000)).unwrap();
    let past = stepped.submit(&read(20, 16), 3).unwrap();
    assert!(past >= Ns(1000) && past <= Ns(50_000_000), "{past}");
    let error = stepped.submit(&read(60_000_000, u64::MAX - 4), 4).unwrap_err();
    assert!(matches!(error, SimError::PastEnd { .. }), "{error}");
    assert!(stepped.wind_up().unwrap());
    let tags: Vec<u64> = std::iter::from_fn(|| stepped.take()).map(|(tag, _)| tag).collect();
    assert_eq!(tags.len(), 3);
    assert_eq!(stepped.under_way(), 0);
}
