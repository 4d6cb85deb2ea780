//! Figures 1 to 3 of the PASS paper (JZUS-C 2014, section 2.2), measured on the profile `ssd1` or another, as tables.
//!
//! `cargo run --release -p planewise-sim --example ssd1_figures [-- PROFILE [FIGURES [CONDITION]]]`; PROFILE is a name or a file,
//! FIGURES as in `13`, CONDITION as the command line takes it.

#[path = "../tests/common/mixed.rs"]
mod mixed;

use mixed::{Benchmark, Kind};
use planewise_model::Direction::{Read, Write};
use planewise_model::{Direction, Profile};
use planewise_sim::RunConfig;

/// Sectors of a GB, as the paper's working sets are most likely counted.
const GB: u64 = (1 << 30) / 512;

/// A number and what prints it.
type Figure = (&'static str, fn(&RunConfig));

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "ssd1".into());
    let figure = arguments.next().unwrap_or_else(|| "123".into());
    let profile = match std::fs::read_to_string(&name) {
        Ok(text) => Profile::parse(&text, &name).unwrap_or_else(|error| panic!("{error}")),
        Err(_) => Profile::embedded(&name).unwrap_or_else(|error| panic!("{error}")),
    };
    let mut config = RunConfig::new(profile);
    if let Some(condition) = arguments.next() {
        config.condition = condition.parse().unwrap_or_else(|error| panic!("{error}"));
    }
    let figures: [Figure; 3] = [("1", figure_1), ("2", figure_2), ("3", figure_3)];
    for (number, print) in figures {
        if figure.contains(number) {
            print(&config);
        }
    }
}

/// Requests over 30 GB, or the whole drive where that is smaller.
fn kind(config: &RunConfig, direction: Direction, sequential: bool) -> Kind {
    Kind { direction, sequential, area: (0, (30 * GB).min(sectors(config))) }
}

/// Sectors of the drive.
fn sectors(config: &RunConfig) -> u64 {
    config.profile.user_capacity().0 / 512
}

fn measure(config: &RunConfig, benchmark: Benchmark) -> f64 {
    benchmark.throughput(config, ()).0
}

fn figure_1(config: &RunConfig) {
    println!("Figure 1: MB/s by request size, depth 8, 30 GB\n");
    println!("| KB | sequential read | random read | ratio | sequential write | random write | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for kib in [4u32, 8, 16, 32, 64, 128] {
        let of = |direction, sequential| {
            let requests = u64::from(3_200_000 / kib).min(120_000);
            measure(config, Benchmark::pure(kind(config, direction, sequential), kib * 2, 8, requests))
        };
        let (sr, rr, sw, rw) = (of(Read, true), of(Read, false), of(Write, true), of(Write, false));
        println!("| {kib} | {sr:.1} | {rr:.1} | {:.2} | {sw:.1} | {rw:.1} | {:.2} |", sr / rr, sw / rw);
    }
    println!();
}

fn figure_2(config: &RunConfig) {
    println!("Figure 2: MB/s of random 4 KB reads by working set and depth\n");
    println!("| GB | 1 | 2 | 4 | 8 | 16 | 32 |\n|---|---|---|---|---|---|---|");
    for gb in [1, 2, 4, 8, 16, 32].into_iter().filter(|gb| gb * GB <= sectors(config)) {
        let row: Vec<String> = [1, 2, 4, 8, 16, 32]
            .iter()
            .map(|&depth| {
                let area = Kind { area: (0, gb * GB), ..kind(config, Read, false) };
                format!("{:.2}", measure(config, Benchmark::pure(area, 8, depth, 20_000)))
            })
            .collect();
        println!("| {gb} | {} |", row.join(" | "));
    }
    println!();
}

fn figure_3(config: &RunConfig) {
    println!(
        "Figure 3: MB/s of 4 KB requests at depth 8, by percent of the second kind, and over the first kind alone\n"
    );
    println!(
        "| mix | 0 | 10 | 20 | 30 | 50 | 70 | 90 | 100 | at 10 |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    // The second sequential stream has an area of its own: behind the first's, or the second half of a smaller drive.
    let half = sectors(config) / 2;
    let behind = |kind: Kind| Kind { area: ((30 * GB).min(half), (15 * GB).min(half)), ..kind };
    let mixes = [
        ("SeqR+RndW", kind(config, Read, true), kind(config, Write, false)),
        ("SeqW+RndR", kind(config, Write, true), kind(config, Read, false)),
        ("SeqR+SeqW", kind(config, Read, true), behind(kind(config, Write, true))),
    ];
    for (name, first, second) in mixes {
        let row: Vec<f64> = [0, 10, 20, 30, 50, 70, 90, 100]
            .iter()
            .map(|&percent| {
                let share = f64::from(percent) / 100.0;
                let benchmark = Benchmark { first, second, share, sectors: 8, depth: 8, requests: 100_000 };
                measure(config, benchmark)
            })
            .collect();
        let text: Vec<String> = row.iter().map(|value| format!("{value:.1}")).collect();
        println!("| {name} | {} | {:.2} |", text.join(" | "), row[1] / row[0]);
    }
}
