//! What a line costs: each format's reader alone, and the pipeline around it. Throughput is in lines.
//!
//! `cargo bench -p planewise-trace --bench parse`

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use planewise_model::{Direction, Lsn, Ns, Request, rng};
use planewise_trace::formats::{self, ReadOptions, TimeUnit};
use planewise_trace::input::Input;
use planewise_trace::{Trace, TraceOptions};
use rand::RngExt;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const REQUESTS: u64 = 1_000_000;

/// Requests of the size and pace of a busy server volume, in the order of their arrival.
fn requests() -> Vec<Request> {
    let mut generator = rng::generator(1, "parse bench");
    let mut now = 0;
    (0..REQUESTS)
        .map(|_| {
            now += generator.random_range(100..1_000_000u64);
            let direction = Direction::ALL[generator.random_range(0..2usize)];
            let start = Lsn(generator.random_range(0..1u64 << 27) * 8);
            let response = Some(Ns(generator.random_range(100..10_000_000u64)));
            Request {
                response,
                ..Request::new(Ns(now), start, generator.random_range(1..=16u32) * 8, direction)
            }
        })
        .collect()
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn text(name: &str, requests: &[Request]) -> Vec<u8> {
    let sink = Sink::default();
    let create = formats::by_name(name).expect("known").create.expect("can be written");
    let mut writer = create(Box::new(sink.clone()), Path::new("bench")).expect("memory takes it");
    requests.iter().for_each(|request| writer.write(request).expect("the format holds it"));
    writer.finish().expect("memory takes it");
    std::mem::take(&mut *sink.0.lock().expect("no writer panics"))
}

fn parse(criterion: &mut Criterion) {
    let requests = requests();
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for name in ["msr", "spc", "ssdsim", "disksim", "systor", "tencent", "alibaba"] {
        let bytes = text(name, &requests);
        let format = formats::by_name(name).expect("known");
        let mut batch = Vec::with_capacity(4096);
        group.bench_function(format!("{name}/reader"), |bencher| {
            bencher.iter_batched(
                || Input::from_bytes("bench", bytes.clone()),
                |input| {
                    let mut reader = (format.open)(input, &ReadOptions::default()).expect("opens");
                    while reader.read(&mut batch, 4096).expect("parses") > 0 {
                        black_box(&batch);
                        batch.clear();
                    }
                },
                BatchSize::LargeInput,
            );
        });
        let read =
            ReadOptions { time_unit: format.time_unit_open.then_some(TimeUnit::Nanoseconds), event: None };
        let options = TraceOptions { format: Some(name.to_owned()), read, ..TraceOptions::default() };
        group.bench_function(format!("{name}/pipeline"), |bencher| {
            bencher.iter_batched(
                || Input::from_bytes("bench", bytes.clone()),
                |input| {
                    let mut trace = Trace::from_input(input, &options).expect("opens");
                    while trace.next_batch(&mut batch, 4096).expect("parses") > 0 {
                        black_box(&batch);
                        batch.clear();
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
