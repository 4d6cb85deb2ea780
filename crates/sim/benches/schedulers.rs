//! Cost of a host scheduler alone: insert, dispatch and complete one request while others are queued.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use planewise_sim::host_sched;
use planewise_sim::host_sched::exercise::Exercise;
use std::hint::black_box;

const UNITS: u32 = 256;

fn schedulers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert+dispatch+complete, 256 units");
    for entry in host_sched::SCHEDULERS {
        for queued in [64, 512] {
            group.bench_function(BenchmarkId::new(entry.name, queued), |bencher| {
                bencher.iter_batched_ref(
                    || Exercise::new(entry, UNITS, queued).expect("defaults fit"),
                    |exercise| (0..10_000).for_each(|_| black_box(&mut *exercise).step()),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = schedulers
}
criterion_main!(benches);
