//! Timing variation: array times scatter as the profile says, and by the seed alone.

mod common;

use common::{device, pages, run};
use planewise_model::profile::PageLatency;
use planewise_model::rng::generator;
use planewise_model::{Direction, Geometry, Lsn, Ns, Request};
use planewise_sim::observers::{ArrayOperation, Observer, Work};
use planewise_sim::{RunConfig, SimError, Simulator};
use rand::RngExt;

/// Deviation of N(0, 1) cut off at 3, by integration: sqrt(0.99730 - 6 x 0.0044318 + 18 x 0.0013499).
const CUT_OFF: f64 = 0.99750;

fn config(variation: f64, seed: u64) -> RunConfig {
    let mut config = RunConfig::new(device(2, 2, 1, 2));
    config.profile.timing.variation = variation;
    config.queue_length = 64;
    config.seed = seed;
    config
}

/// Array times by operation.
#[derive(Default)]
struct ArrayTimes(Vec<(ArrayOperation, u64, u32)>);

impl Observer for ArrayTimes {
    fn start(&mut self, _geometry: &Geometry, _executors: u32) {}

    fn array_busy(&mut self, _: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, _: Work) {
        self.0.push((what, (to - from).0, planes));
    }
}

/// Overwrites a small device until blocks are collected, with reads in between.
fn array_times(config: &RunConfig) -> ArrayTimes {
    let mut simulator = Simulator::new(config, ArrayTimes::default()).unwrap();
    let mut random = generator(config.seed, "test");
    let pages = u64::from(config.profile.user_pages());
    for _ in 0..60_000 {
        let direction = if random.random_bool(0.5) { Direction::Read } else { Direction::Write };
        let start = Lsn(random.random_range(0..pages) * 8);
        let mut request = Request::new(simulator.now(), start, 8, direction);
        while !simulator.has_room(&request) {
            let next = simulator.next_event();
            simulator.advance(next).unwrap();
        }
        request.arrival = simulator.now();
        simulator.submit(&request).unwrap();
    }
    simulator.drain().unwrap();
    simulator.into_observer()
}

fn mean_and_deviation(times: &[f64]) -> (f64, f64) {
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
    (mean, (squares / times.len() as f64).sqrt())
}

#[test]
fn mean_and_deviation_of_every_array_operation_are_the_profiles() {
    for (variation, seed) in [(0.05, 1), (0.05, 2), (0.2, 3)] {
        let times = array_times(&config(variation, seed)).0;
        for (what, nominal) in [
            (ArrayOperation::Read, 30_000.0),
            (ArrayOperation::Program, 600_000.0),
            (ArrayOperation::Erase, 3e6),
        ] {
            let found: Vec<f64> =
                times.iter().filter(|time| time.0 == what).map(|time| time.1 as f64 / nominal).collect();
            assert!(found.len() > 200, "{what:?}: {} of them", found.len());
            let (mean, deviation) = mean_and_deviation(&found);
            // Five standard errors of the mean, and of the deviation.
            let error = 5.0 * variation / (found.len() as f64).sqrt();
            assert!((mean - 1.0).abs() < error, "seed {seed}, {what:?}: mean {mean}, allowed {error}");
            assert!(
                (deviation - CUT_OFF * variation).abs() < error,
                "seed {seed}, {what:?}: deviation {deviation}, allowed {error}"
            );
            let (least, most) = (1.0 - 3.0 * variation, 1.0 + 3.0 * variation);
            assert!(
                found.iter().all(|&time| time > least - 1e-4 && time < most + 1e-4),
                "seed {seed}, {what:?}: cut off at three deviations"
            );
        }
    }
}

#[test]
fn planes_of_one_operation_share_one_draw() {
    // Pages 0 and 4 are on the two planes of one die: one array operation, one time for both.
    let mut config = config(0.1, 4);
    config.profile.timing.transfer_ps_per_byte = 0;
    let both = run(&config, &pages(Direction::Read, [0, 4])).unwrap();
    assert_eq!(both[0].completed, both[1].completed);
    assert_ne!(both[0].completed, Ns(30_000));
    // Pages 0 and 1 are on two channels: two operations, two times.
    let two = run(&config, &pages(Direction::Read, [0, 1])).unwrap();
    assert_ne!(two[0].completed, two[1].completed);
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let requests = pages(Direction::Read, 0..200);
    let times = |variation, seed| {
        run(&config(variation, seed), &requests).unwrap().iter().map(|c| c.completed).collect::<Vec<_>>()
    };
    assert_eq!(times(0.1, 7), times(0.1, 7));
    assert_ne!(times(0.1, 7), times(0.1, 8));
    assert_eq!(times(0.0, 7), times(0.0, 8));
}

#[test]
fn no_time_is_negative_and_none_scatters_that_is_zero() {
    let times = array_times(&config(0.5, 5)).0;
    let least = times.iter().filter(|time| time.0 == ArrayOperation::Read).map(|time| time.1).min();
    assert_eq!(least, Some(0), "half the mean as deviation: some reads would take less than nothing");
    let mut config = config(0.5, 5);
    config.profile.timing.read_ns = PageLatency::Uniform(0);
    let reads = run(&config, &pages(Direction::Read, 0..1)).unwrap();
    assert_eq!(reads[0].completed, Ns(40_960));
}

#[test]
fn impossible_shares_are_refused_with_the_key_and_what_is_allowed() {
    for wrong in [-0.1, 0.51, f64::NAN, f64::INFINITY] {
        match Simulator::new(&config(wrong, 1), ()) {
            Err(SimError::Option { key, allowed, .. }) => {
                assert!(key == "variation" && allowed.contains("0 to 0.5"), "{key} {allowed}");
            }
            Err(error) => panic!("{error:?}"),
            Ok(_) => panic!("{wrong} was accepted"),
        }
    }
}
