//! Cost of a host scheduler alone: insert, dispatch and complete one request while others are queued.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host::{Gate, HostQueue, QueuedRequest};
use planewise_sim::host_sched::{self, Decision, HostKnowledge, HostScheduler, TunableValues};
use rand::RngExt;
use std::hint::black_box;

const UNITS: u32 = 256;

struct Bench {
    scheduler: Box<dyn HostScheduler>,
    queue: HostQueue,
    requests: Vec<Request>,
    next: usize,
    sequence: u64,
}

impl Bench {
    /// A scheduler with `queued` requests of 1 to 4 pages waiting.
    fn new(name: &str, queued: u32) -> Bench {
        let entry = host_sched::find(name).expect("a scheduler of the table");
        let host = HostKnowledge {
            queue_length: queued + 1,
            units: UnitMap::modulo(UNITS),
            writes_stay: true,
            page_bytes: 4096,
            capacity_sectors: 1 << 28,
        };
        let mut random = generator(1, "scheduler bench");
        let requests = (0..65_536)
            .map(|_| {
                let direction = if random.random::<bool>() { Direction::Read } else { Direction::Write };
                let pages = random.random_range(1..=4u32);
                Request::new(Ns::ZERO, Lsn(random.random_range(0..1u64 << 20) * 8), pages * 8, direction)
            })
            .collect();
        let scheduler = (entry.build)(&host, &TunableValues::defaults(entry.tunables)).expect("defaults fit");
        let mut bench =
            Bench { scheduler, queue: HostQueue::new(queued + 1), requests, next: 0, sequence: 0 };
        (0..queued).for_each(|_| bench.insert());
        bench
    }

    fn insert(&mut self) {
        let request = self.requests[self.next % self.requests.len()];
        self.next += 1;
        let pages = PageRange::of(&request, 4096);
        let queued = QueuedRequest::new(Ns::ZERO, self.sequence, request, pages, false);
        self.sequence += 1;
        let slot = self.queue.enter(queued);
        self.scheduler.insert(Ns::ZERO, slot, &queued);
    }

    fn insert_and_dispatch(&mut self) {
        self.insert();
        match self.scheduler.dispatch(Ns::ZERO, &Gate::new(&self.queue, &|_| true)) {
            Decision::Issue(slot) => {
                self.queue.issue(slot, Ns::ZERO, false);
                let queued = self.queue.leave(slot);
                self.scheduler.completed(Ns::ZERO, slot, &queued);
            }
            other => panic!("something waits: {other:?}"),
        }
    }
}

fn schedulers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert+dispatch+complete, 256 units");
    for entry in host_sched::SCHEDULERS {
        for queued in [64, 512] {
            group.bench_function(BenchmarkId::new(entry.name, queued), |bencher| {
                bencher.iter_batched_ref(
                    || Bench::new(entry.name, queued),
                    |bench| (0..10_000).for_each(|_| black_box(&mut *bench).insert_and_dispatch()),
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
