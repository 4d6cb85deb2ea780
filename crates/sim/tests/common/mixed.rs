//! The benchmark of the PASS paper (section 2.2): requests of two kinds mixed by share, at a constant queue depth.
#![allow(dead_code)]

use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::observers::Observer;
use planewise_sim::{RunConfig, Simulator};
use rand::RngExt;

/// Requests of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub direction: Direction,
    pub sequential: bool,
    /// First sector of the area, and its sectors.
    pub area: (u64, u64),
}

/// A run of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    pub first: Kind,
    pub second: Kind,
    /// Share of requests of the second kind.
    pub share: f64,
    pub sectors: u32,
    pub depth: u32,
    pub requests: u64,
}

impl Benchmark {
    /// Requests of one kind alone.
    pub fn pure(kind: Kind, sectors: u32, depth: u32, requests: u64) -> Benchmark {
        Benchmark { first: kind, second: kind, share: 0.0, sectors, depth, requests }
    }

    /// Throughput in MB/s; the first third of the requests warms up.
    pub fn throughput<O: Observer>(&self, config: &RunConfig, observer: O) -> (f64, O) {
        let (throughput, simulator) = self.run(config, observer);
        (throughput, simulator.into_observer())
    }

    /// The same, and the simulator as it is when the last request has completed.
    pub fn run<O: Observer>(&self, config: &RunConfig, observer: O) -> (f64, Simulator<O>) {
        let mut simulator = Simulator::new(config, observer).expect("the profile is valid");
        simulator.keep_completions();
        let mut random = generator(config.seed, "benchmark");
        let mut next = [0u64; 2];
        let (mut issued, mut completed) = (0, 0);
        let (warm, mut from) = (self.requests / 3, Ns::ZERO);
        let mut done = Vec::new();
        while completed < self.requests {
            while issued - completed < u64::from(self.depth) && issued < self.requests {
                let request = self.request(simulator.now(), &mut random, &mut next);
                simulator.submit(&request).expect("the request is valid");
                issued += 1;
            }
            let event = simulator.next_event();
            simulator.advance(event).expect("the device goes on");
            simulator.take_completions(&mut done);
            for completion in done.drain(..) {
                completed += 1;
                if completed == warm {
                    from = completion.completed;
                }
            }
        }
        let bytes = (self.requests - warm) * u64::from(self.sectors) * 512;
        let throughput = bytes as f64 / 1e6 / (simulator.now() - from).as_secs_f64();
        (throughput, simulator)
    }

    fn request(&self, now: Ns, random: &mut Generator, next: &mut [u64; 2]) -> Request {
        let second = self.share > 0.0 && random.random::<f64>() < self.share;
        let kind = if second { self.second } else { self.first };
        let size = u64::from(self.sectors);
        let (start, sectors) = kind.area;
        let place = if kind.sequential {
            let place = next[usize::from(second)];
            next[usize::from(second)] = (place + 1) % (sectors / size);
            place
        } else {
            random.random_range(0..sectors / size)
        };
        Request::new(now, Lsn(start + place * size), self.sectors, kind.direction)
    }
}
