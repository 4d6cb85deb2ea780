//! What each part of the profile `ssd1` has to do with figures 1 to 3 of the PASS paper (JZUS-C 2014): one part at a time is switched
//! off, or put in another's place.
//!
//! `cargo run --release -p planewise-sim --example ssd1_causes`

#[path = "../tests/common/mixed.rs"]
mod mixed;

use mixed::{Benchmark, Kind};
use planewise_model::Direction;
use planewise_model::Direction::{Read, Write};
use planewise_model::profile::{Processor, Profile};
use planewise_sim::RunConfig;

/// Sectors of a GB.
const GB: u64 = (1 << 30) / 512;

/// A name and what it does to the profile.
type Cause = (&'static str, fn(&mut Profile));

fn main() {
    let causes: [Cause; 12] = [
        ("all as they are", |_| ()),
        ("no regions", |profile| profile.regions = None),
        ("region allocation in place of regions", |profile| {
            profile.regions = None;
            profile.translation.allocation = "region:64".into();
        }),
        ("no look at the list", |profile| processor(profile).scan_ns = 0),
        ("no processor", |profile| profile.processor = None),
        ("no cheaper runs", |profile| processor(profile).run_page_ns = processor(profile).operation_ns),
        ("no map updates", |profile| processor(profile).update_ns = 0),
        ("no turns", |profile| processor(profile).turn_ns = 0),
        ("no read-ahead", |profile| profile.read_ahead = None),
        ("no write buffer", |profile| profile.write_buffer = None),
        ("no link", |profile| profile.link = None),
        ("4 channels of 4 packages", |profile| {
            (profile.geometry.channels, profile.geometry.chips_per_channel) = (4, 4);
        }),
    ];
    println!(
        "| part | 16 KB read: seq / rnd | 16 KB write: seq / rnd | 1 GB: most / least | 4 GB: best at | 8 GB: best at | 32 GB at 16 | SeqR+RndW | SeqW+RndR | SeqR+SeqW |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, change) in causes {
        let mut config = RunConfig::new(Profile::embedded("ssd1").expect("it is embedded"));
        change(&mut config.profile);
        println!("| {name} | {} |", row(&config).join(" | "));
    }
}

fn processor(profile: &mut Profile) -> &mut Processor {
    profile.processor.as_mut().expect("ssd1 has one")
}

fn row(config: &RunConfig) -> Vec<String> {
    let measure = |benchmark: Benchmark| benchmark.throughput(config, ()).0;
    let kind = |direction: Direction, sequential| Kind { direction, sequential, area: (0, 30 * GB) };
    let pattern = |direction| {
        let of = |sequential| measure(Benchmark::pure(kind(direction, sequential), 32, 8, 40_000));
        let (sequential, random) = (of(true), of(false));
        format!("{sequential:.0} / {random:.0} = {:.2}", sequential / random)
    };
    let curve = |gb: u64| {
        [1u32, 2, 4, 8, 16, 32].map(|depth| {
            let area = Kind { area: (0, gb * GB), ..kind(Read, false) };
            (measure(Benchmark::pure(area, 8, depth, 20_000)), depth)
        })
    };
    let best = |gb| {
        let best = curve(gb).into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("six depths");
        format!("{} ({:.1})", best.1, best.0)
    };
    let one = curve(1).map(|(throughput, _)| throughput);
    let most = one.iter().copied().fold(0.0, f64::max);
    let least = one.iter().copied().fold(f64::INFINITY, f64::min);
    let left = |first: Kind, second: Kind| {
        let mixed = Benchmark { first, second, share: 0.1, sectors: 8, depth: 8, requests: 60_000 };
        format!("{:.2}", measure(mixed) / measure(Benchmark::pure(first, 8, 8, 60_000)))
    };
    let behind = Kind { area: (30 * GB, 15 * GB), ..kind(Write, true) };
    vec![
        pattern(Read),
        pattern(Write),
        format!("{:.2}", most / least),
        best(4),
        best(8),
        format!("{:.1}", curve(32)[4].0),
        left(kind(Read, true), kind(Write, false)),
        left(kind(Write, true), kind(Read, false)),
        left(kind(Read, true), behind),
    ]
}
