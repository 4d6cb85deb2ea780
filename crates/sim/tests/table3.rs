//! Raw bandwidth of the garbage collection paper's device (Table III) against what its own parameters (Table I) allow.
//!
//! 16 channels at 10 ns a byte carry 1600 MB/s, a page takes 40.96 us of its channel, 30 us to read and 600 us to program. Each
//! test holds a closed loop on the device to the closed form of its setting; `docs/claims-gc.md` has them in one table.

use planewise_model::profile::Profile;
use planewise_model::{Direction, Ns};
use planewise_sim::drivers::closed_loop::Driver;
use planewise_sim::{AdvancedUse, Condition, RunConfig, Simulator, UnitLevel};
use planewise_workload::jobs::JobFile;

const TRANSFER: u64 = 40_960;
const PROGRAM: u64 = 600_000;
const READ: u64 = 30_000;
/// One page written, and read, by a chip alone.
const WRITE_CYCLE: u64 = TRANSFER + PROGRAM;
const READ_CYCLE: u64 = READ + TRANSFER;

/// What comes before the direction in fio's name of a pattern, and the sectors of a request.
type Pattern = (&'static str, u32);
const SEQUENTIAL: Pattern = ("", 128);
const RANDOM: Pattern = ("rand", 8);
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A setting of the device. The number of blocks changes nothing before the first collection: short planes are quick to build.
fn setting(chips_per_channel: u32, allocation: &str, queue: &str, advanced: AdvancedUse) -> RunConfig {
    let mut profile = Profile::embedded("gc-128g").unwrap();
    profile.geometry.chips_per_channel = chips_per_channel;
    profile.geometry.blocks_per_plane = 64;
    profile.translation.allocation = allocation.into();
    profile.interface.command_queue = queue.into();
    let mut config = RunConfig::new(profile);
    config.advanced = advanced;
    config.level = if advanced == AdvancedUse::On { UnitLevel::Plane } else { UnitLevel::Chip };
    config
}

/// Both allocations and both interfaces, with and without advanced commands.
fn settings() -> Vec<RunConfig> {
    let mut all = Vec::new();
    for allocation in ["dynamic", "cwdp"] {
        for queue in ["blocking", "ncq:64"] {
            for advanced in [AdvancedUse::Off, AdvancedUse::On] {
                all.push(setting(4, allocation, queue, advanced));
            }
        }
    }
    all
}

fn name(config: &RunConfig) -> String {
    let profile = &config.profile;
    let (allocation, queue) = (&profile.translation.allocation, &profile.interface.command_queue);
    format!("{allocation}, {queue}, advanced {}", config.advanced)
}

/// Time that `requests` of a pattern take, `depth` at a time, one following another.
fn makespan(
    config: &RunConfig,
    (pattern, sectors): Pattern,
    direction: Direction,
    depth: u32,
    requests: u64,
) -> Ns {
    let mut simulator = Simulator::new(config, ()).unwrap();
    let area = simulator.user_sectors() / 128 * 128 * 512;
    let direction = if direction == Direction::Read { "read" } else { "write" };
    let bytes = sectors * 512;
    let job = format!(
        "[job.a]\nrw='{pattern}{direction}'\nbs={bytes}\nsize={area}\niodepth={depth}\nnumber_ios={requests}"
    );
    let mut workload = JobFile::parse(&job, "test").unwrap().build(area, 7).unwrap();
    let mut driver = Driver::new(&mut workload);
    while driver.step(&mut simulator).unwrap() {}
    simulator.finish_requests().unwrap();
    assert_eq!(simulator.submitted(), requests);
    simulator.now()
}

/// Bandwidth in MB/s, 10^6 bytes a second.
fn megabytes(pages: u64, time: Ns) -> f64 {
    pages as f64 * 4096.0 / time.0 as f64 * 1e3
}

#[test]
fn one_request_at_a_time_takes_one_page_time_whatever_its_size_up_to_a_page_a_channel() {
    for device in ["gc-128g", "gc-64g"] {
        let mut config = RunConfig::new(Profile::embedded(device).unwrap());
        for condition in [Condition::Filled, Condition::Fresh] {
            config.condition = condition;
            for pattern in [SEQUENTIAL, RANDOM] {
                let write = makespan(&config, pattern, Direction::Write, 1, 300);
                assert_eq!(write, Ns(300 * WRITE_CYCLE), "{device} {condition} {pattern:?}");
            }
        }
        config.condition = Condition::Filled;
        for pattern in [SEQUENTIAL, RANDOM] {
            let read = makespan(&config, pattern, Direction::Read, 1, 300);
            assert_eq!(read, Ns(300 * READ_CYCLE), "{device} {pattern:?}");
        }
    }
    for config in settings() {
        for pattern in [SEQUENTIAL, RANDOM] {
            let write = makespan(&config, pattern, Direction::Write, 1, 300);
            let read = makespan(&config, pattern, Direction::Read, 1, 300);
            assert_eq!((write, read), (Ns(300 * WRITE_CYCLE), Ns(300 * READ_CYCLE)), "{}", name(&config));
        }
    }
}

#[test]
fn random_writes_under_dynamic_allocation_use_as_many_chips_as_are_outstanding() {
    for queue in ["blocking", "ncq:64"] {
        for advanced in [AdvancedUse::Off, AdvancedUse::On] {
            let config = setting(4, "dynamic", queue, advanced);
            for depth in DEPTHS {
                let found = makespan(&config, RANDOM, Direction::Write, depth, 1024);
                // The first round's transfers line up on each channel; later ones never meet again.
                let line_up = u64::from(depth.div_ceil(16) - 1) * TRANSFER;
                let expected = line_up + 1024 / u64::from(depth) * WRITE_CYCLE;
                assert_eq!(found, Ns(expected), "{}, depth {depth}", name(&config));
            }
        }
    }
}

#[test]
fn random_writes_under_static_allocation_are_slower_at_every_depth() {
    for queue in ["blocking", "ncq:64"] {
        for depth in &DEPTHS[1..] {
            let of = |allocation| {
                makespan(
                    &setting(4, allocation, queue, AdvancedUse::Off),
                    RANDOM,
                    Direction::Write,
                    *depth,
                    1024,
                )
            };
            assert!(of("cwdp") > of("dynamic"), "{queue}, depth {depth}");
        }
    }
}

#[test]
fn sequential_writes_are_bound_by_programs_of_chips_dies_or_planes() {
    let requests = 256;
    let pages = requests * 16;
    // Lanes that program at a time, planes of an operation.
    let expected = |lanes: u64, planes: u64| {
        let line_up = (lanes / 16 - 1) * planes * TRANSFER;
        Ns(line_up + pages / lanes / planes * (planes * TRANSFER + PROGRAM))
    };
    for allocation in ["dynamic", "cwdp"] {
        for queue in ["blocking", "ncq:64"] {
            let config = setting(4, allocation, queue, AdvancedUse::Off);
            for depth in DEPTHS {
                let found = makespan(&config, SEQUENTIAL, Direction::Write, depth, requests);
                let lanes = u64::from(16 * depth).min(64);
                assert_eq!(found, expected(lanes, 1), "{}, depth {depth}", name(&config));
            }
            let config = setting(4, allocation, queue, AdvancedUse::On);
            let found = makespan(&config, SEQUENTIAL, Direction::Write, 8, requests);
            assert_eq!(found, expected(128, 1), "{}", name(&config));
        }
        let config = setting(4, allocation, "ncq:64", AdvancedUse::On);
        for depth in [32, 64] {
            let found = makespan(&config, SEQUENTIAL, Direction::Write, depth, requests);
            let least = expected(128, 2);
            // Writes that get their planes late are programmed with a partner wherever one is free: one of the last may find none.
            let most = if allocation == "dynamic" { least + Ns(PROGRAM) } else { least };
            assert!((least..=most).contains(&found), "{}, depth {depth}: {found}, {least}", name(&config));
        }
    }
}

#[test]
fn sequential_reads_are_bound_by_the_channels_from_a_depth_of_two() {
    let requests = 256;
    for config in settings() {
        for depth in &DEPTHS[1..] {
            let found = makespan(&config, SEQUENTIAL, Direction::Read, *depth, requests);
            assert_eq!(found, Ns(READ + requests * TRANSFER), "{}, depth {depth}", name(&config));
        }
    }
}

#[test]
fn no_depth_gives_the_published_reads() {
    // 92.1 MB/s of random 4 KiB reads are 1.6 reads of 70.96 us in flight (Little's law): a depth of 1 gives one, of 2 nearly two.
    let published = 92.1;
    let unit = megabytes(1, Ns(READ_CYCLE));
    let requests = 4096;
    for config in settings() {
        let of = |depth| {
            let found = makespan(&config, RANDOM, Direction::Read, depth, requests);
            megabytes(requests, found)
        };
        assert!((of(1) - unit).abs() < 1e-9 && unit < published * 0.9);
        let mut slower = of(2);
        // Two reads meet on a chip in one of 64 cases or, on its channel, in 3 more of 64.
        assert!(slower > unit * 2.0 * 0.96 && slower < unit * 2.0 * 0.995, "{} {slower}", name(&config));
        assert!(slower > published * 1.1);
        for depth in &DEPTHS[2..] {
            let found = of(*depth);
            let most = (f64::from(*depth) * unit).min(1600.0);
            assert!(found > slower * 0.995 && found < most, "{}, depth {depth}: {found}", name(&config));
            slower = found;
        }
        // Sequential ones of 64 KiB spread over all channels: even one at a time is 4.6 times as fast as published.
        let sequential = megabytes(16, Ns(READ_CYCLE));
        assert!(sequential > 202.5 * 4.5);
    }
}

#[test]
fn the_published_writes_are_those_of_sixteen_chips() {
    // Figure 6's geometry: one chip a channel. 16 programs at a time, and 16 programs of two planes.
    let config = setting(1, "dynamic", "blocking", AdvancedUse::Off);
    for depth in [16, 32, 64] {
        let found = makespan(&config, RANDOM, Direction::Write, depth, 1024);
        assert_eq!(found, Ns(1024 / 16 * WRITE_CYCLE), "depth {depth}");
        assert!((megabytes(1024, found) / 102.8 - 1.0).abs() < 0.01);
    }
    let mut config = setting(1, "cpwd", "ncq:64", AdvancedUse::On);
    config.profile.advanced_commands.die_interleave = false;
    let found = makespan(&config, SEQUENTIAL, Direction::Write, 2, 256);
    assert_eq!(found, Ns(256 / 2 * (2 * TRANSFER + PROGRAM)));
    assert!((megabytes(256 * 16, found) / 192.5 - 1.0).abs() < 0.01);
    // Its reads are as far from the published ones as those of 64 chips.
    let config = setting(1, "dynamic", "blocking", AdvancedUse::Off);
    for depth in DEPTHS {
        let found = makespan(&config, SEQUENTIAL, Direction::Read, depth, 256);
        assert_eq!(found, Ns(256 * READ_CYCLE), "depth {depth}");
    }
}
