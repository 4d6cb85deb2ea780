//! Figures 1 to 3 of the PASS paper (JZUS-C 2014, section 2.2) on the profile `ssd1`: the direction of each claim, with sizes near
//! the paper's. `docs/ssd1.md` has the figures in full, and what each part of the model has to do with them.

#[path = "common/mixed.rs"]
mod mixed;

use mixed::{Benchmark, Kind};
use planewise_model::Direction::{Read, Write};
use planewise_model::{Direction, Profile};
use planewise_sim::RunConfig;
use planewise_sim::observers::invariants::Invariants;

/// Sectors of a GB.
const GB: u64 = (1 << 30) / 512;

fn ssd1() -> RunConfig {
    RunConfig::new(Profile::embedded("ssd1").unwrap())
}

fn over(gb: u64, direction: Direction, sequential: bool) -> Kind {
    Kind { direction, sequential, area: (0, gb * GB) }
}

fn measure(config: &RunConfig, benchmark: Benchmark) -> f64 {
    benchmark.throughput(config, ()).0
}

fn random_reads(config: &RunConfig, gb: u64, depth: u32) -> f64 {
    measure(config, Benchmark::pure(over(gb, Read, false), 8, depth, 6_000))
}

/// Throughput of sequential requests over that of random ones, at depth 8 over 30 GB.
fn sequential_gain(config: &RunConfig, direction: Direction, sectors: u32, requests: u64) -> f64 {
    let of =
        |sequential| measure(config, Benchmark::pure(over(30, direction, sequential), sectors, 8, requests));
    of(true) / of(false)
}

#[test]
fn figure_1_sequential_is_faster_than_random_at_every_size_and_in_both_directions() {
    let config = ssd1();
    for sectors in [8, 16, 32, 64, 128] {
        // Writes have to fill the buffer before they show what the flash does.
        let reads = sequential_gain(&config, Read, sectors, 6_000);
        let writes = sequential_gain(&config, Write, sectors, 8_000);
        assert!(reads > 1.2 && writes > 1.2, "{sectors} sectors: {reads:.2}, {writes:.2}");
        if sectors == 32 {
            // Paper: 4.7 and 3.5 at 16 KB.
            assert!((4.0..5.4).contains(&reads), "{reads:.2}");
            assert!((3.0..4.0).contains(&writes), "{writes:.2}");
        }
    }
}

#[test]
fn figure_2_one_region_is_flat_and_larger_sets_peak_higher_at_depths_that_do_not_fall() {
    let config = ssd1();
    let depths = [1, 2, 4, 8, 16, 32];
    let mut last_peak = (0.0, 0);
    for gb in [1, 2, 4, 8, 16, 32] {
        let curve = depths.map(|depth| random_reads(&config, gb, depth));
        let best = (0..depths.len()).max_by(|&a, &b| curve[a].total_cmp(&curve[b])).unwrap();
        let (peak, depth) = (curve[best], depths[best]);
        match gb {
            1 | 2 => {
                let least = curve.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(peak / least < 1.2, "{gb} GB is flat: {curve:.1?}");
            }
            4 => assert_eq!(depth, 8, "{curve:.1?}"),
            8 => assert_eq!(depth, 16, "{curve:.1?}"),
            _ => assert!((8..=16).contains(&depth), "{gb} GB: {curve:.1?}"),
        }
        if gb >= 4 {
            assert!(peak > last_peak.0 && depth >= last_peak.1.min(8), "{gb} GB: {curve:.1?}");
            assert!(curve[5] < peak, "too deep a queue costs throughput: {curve:.1?}");
        }
        last_peak = (peak, depth);
    }
    // Paper: 25.85 and 27.78 MB/s at depth 16.
    let at_16 = [16, 32].map(|gb| random_reads(&config, gb, 16));
    assert!((at_16[0] / 25.85 - 1.0).abs() < 0.06 && (at_16[1] / 27.78 - 1.0).abs() < 0.06, "{at_16:.2?}");
    assert!(at_16[0] < at_16[1]);
}

/// Share of the pure stream's throughput that is left with a tenth of the other kind.
fn left(config: &RunConfig, first: Kind, second: Kind) -> f64 {
    let mixed = Benchmark { first, second, share: 0.1, sectors: 8, depth: 8, requests: 20_000 };
    measure(config, mixed) / measure(config, Benchmark::pure(first, 8, 8, 20_000))
}

#[test]
fn figure_3_a_tenth_of_the_other_direction_costs_most_of_a_streams_throughput() {
    let config = ssd1();
    let behind = Kind { area: (30 * GB, 15 * GB), ..over(30, Write, true) };
    // Paper: 0.38, 0.34, 0.39.
    for (name, first, second) in [
        ("SeqR+RndW", over(30, Read, true), over(30, Write, false)),
        ("SeqW+RndR", over(30, Write, true), over(30, Read, false)),
        ("SeqR+SeqW", over(30, Read, true), behind),
    ] {
        let left = left(&config, first, second);
        assert!((0.2..0.5).contains(&left), "{name}: {left:.2}");
    }
}

#[test]
fn each_cause_switched_off_takes_its_curve_with_it() {
    let without = |change: &dyn Fn(&mut Profile)| {
        let mut config = ssd1();
        change(&mut config.profile);
        config
    };
    // No regions: one GB has as much parallelism as the drive.
    let unlimited = without(&|profile| profile.regions = None);
    assert!(random_reads(&unlimited, 1, 8) > 2.0 * random_reads(&unlimited, 1, 1));
    // No scan of lists: no queue is too deep.
    let unscanned = without(&|profile| profile.processor.as_mut().unwrap().scan_ns = 0);
    assert!(random_reads(&unscanned, 4, 32) > random_reads(&unscanned, 4, 8));
    // No read-ahead, no write buffer: sequential is no faster than random.
    let blind = without(&|profile| profile.read_ahead = None);
    assert!(sequential_gain(&blind, Read, 32, 3_000) < 1.0);
    let unbuffered = without(&|profile| profile.write_buffer = None);
    assert!(sequential_gain(&unbuffered, Write, 32, 3_000) < 1.0);
    // No turns: streams of both directions go side by side.
    let agile = without(&|profile| profile.processor.as_mut().unwrap().turn_ns = 0);
    let behind = Kind { area: (30 * GB, 15 * GB), ..over(30, Write, true) };
    assert!(left(&agile, over(30, Read, true), behind) > 0.9);
}

#[test]
fn the_invariants_hold_under_a_mix_of_everything() {
    let second = Kind { area: (0, GB / 64), ..over(1, Write, false) };
    let first = Kind { area: (0, GB / 64), ..over(1, Read, true) };
    for share in [0.1, 0.5, 0.9] {
        let mixed = Benchmark { first, second, share, sectors: 5, depth: 24, requests: 9_000 };
        let (_, invariants) = mixed.throughput(&ssd1(), Invariants::new());
        invariants.report().unwrap();
    }
}
