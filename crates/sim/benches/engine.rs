//! Cost of a simulated request: 4 to 16 KiB, 60 % writes, exponential arrivals, 2 GiB working set, on the 128 GiB device.
//!
//! `idle` is 1 ms between arrivals and a queue of 64; `saturated` 20 us and a queue of 256. Construction of the device is included.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::RunConfig;
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use rand::RngExt;
use std::sync::atomic::AtomicBool;

const REQUESTS: u64 = 200_000;

fn requests(mean_gap_ns: f64) -> Vec<Request> {
    let mut random = generator(1, "engine bench");
    let mut arrival = 0.0;
    (0..REQUESTS)
        .map(|_| {
            arrival -= mean_gap_ns * (1.0 - random.random::<f64>()).ln();
            let pages = random.random_range(1..=4u32);
            let page = random.random_range(0..(2u64 << 30) / 4096 - 4);
            let direction = if random.random::<f64>() < 0.6 { Direction::Write } else { Direction::Read };
            Request::new(Ns(arrival as u64), Lsn(page * 8), pages * 8, direction)
        })
        .collect()
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for (load, gap_ns, queue) in [("idle", 1e6, 64), ("saturated", 2e4, 256)] {
        let requests = requests(gap_ns);
        for (scheduler, command_queue) in [("noop", "blocking"), ("noop", "ncq:32"), ("piq+", "blocking")] {
            let mut profile = Profile::embedded("piq-128g").expect("an embedded profile");
            profile.interface.command_queue = command_queue.into();
            let mut config = RunConfig::new(profile);
            config.scheduler = scheduler.into();
            config.queue_length = queue;
            group.bench_function(BenchmarkId::new(format!("{scheduler} {command_queue}"), load), |bencher| {
                bencher.iter_batched(
                    || requests.clone(),
                    |requests| {
                        let stop = AtomicBool::new(false);
                        let mut options = ReplayOptions {
                            warm_up: 0,
                            stop: &stop,
                            progress: &mut |_| {},
                            trace: "",
                            power_cut: None,
                        };
                        replay(&config, &mut requests.into_iter(), (), &mut options)
                            .expect("the run completes")
                    },
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
