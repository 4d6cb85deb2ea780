//! Region allocation: pages of a region are on its chip, whatever is written, moved or aged, and what that does to throughput.

mod common;
#[path = "common/mixed.rs"]
mod mixed;

use common::{device, makespan, pages};
use mixed::{Benchmark, Kind};
use planewise_model::{Direction, Lpn, Lsn, Ns, Ppn, Request};
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::{Observer, Origin};
use planewise_sim::{Condition, RunConfig, SimError, Simulator};

const TRANSFER: u64 = 40_960;
const READ: u64 = 30_000;

fn config(allocation: &str) -> RunConfig {
    let mut config = RunConfig::new(device(4, 1, 1, 2));
    config.profile.translation.allocation = allocation.into();
    config.queue_length = 4096;
    config
}

/// Every program with its place.
#[derive(Default)]
struct Programs(Vec<(Lpn, Ppn)>);

impl Observer for Programs {
    fn page_program(&mut self, _now: Ns, _origin: Origin, lpn: Lpn, ppn: Ppn) {
        self.0.push((lpn, ppn));
    }
}

#[test]
fn reads_of_one_region_have_one_chip_and_reads_of_several_have_several() {
    // 1 MiB: 256 pages a region. The two planes of a chip share an operation, not the channel.
    let config = config("region:1");
    let flash = |reads: u64| Ns(READ + reads * TRANSFER);
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 1])), flash(2));
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 2])), Ns(2 * flash(1).0));
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 256, 512, 768])), flash(1));
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 1024])), Ns(2 * flash(1).0));
}

#[test]
fn pages_stay_on_the_chip_of_their_region_through_collections_in_every_condition() {
    for condition in ["fresh", "primed", "filled", "aged:80/12/8"] {
        for (allocation, share) in [("region:1", Some(256)), ("concatenated", None)] {
            let mut config = config(allocation);
            config.condition = condition.parse::<Condition>().unwrap();
            let user = config.profile.user_pages();
            let share = share.unwrap_or(user / 4);
            let of = |direction| Kind { direction, sequential: false, area: (0, u64::from(user) * 8) };
            let (first, second) = (of(Direction::Write), of(Direction::Read));
            let benchmark = Benchmark { first, second, share: 0.2, sectors: 8, depth: 16, requests: 60_000 };
            let (_, simulator) = benchmark.run(&config, (Invariants::new(), Programs::default()));
            simulator.audit().unwrap();
            assert!(simulator.wear().1 > 0, "blocks were collected");
            let pages_per_chip = 2 * config.profile.geometry.pages_per_plane();
            let (invariants, programs) = simulator.into_observer();
            invariants.report().unwrap();
            for (lpn, ppn) in programs.0 {
                assert_eq!(ppn.0 / pages_per_chip, lpn.0 / share % 4, "page {} under {allocation}", lpn.0);
            }
        }
    }
}

#[test]
fn a_blocking_interface_waits_for_the_chip_of_the_region() {
    let mut config = config("region:1");
    config.profile.interface.command_queue = "blocking".into();
    let flash = READ + TRANSFER;
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 256])), Ns(flash));
    assert_eq!(makespan(&config, &pages(Direction::Read, [0, 2])), Ns(2 * flash));
    let write = TRANSFER + 600_000;
    assert_eq!(makespan(&config, &pages(Direction::Write, [0, 256])), Ns(write));
    assert_eq!(makespan(&config, &pages(Direction::Write, [0, 2])), Ns(2 * write));
}

#[test]
fn a_scheduler_told_the_regions_puts_requests_of_different_chips_side_by_side() {
    // Two reads of one chip before one of another: PIQ takes one of each first.
    let mut config = config("region:1");
    config.profile.interface.command_queue = "blocking".into();
    config.scheduler = "piq".into();
    let reads = pages(Direction::Read, [0, 2, 256]);
    let flash = READ + TRANSFER;
    let mut done: Vec<u64> =
        common::run(&config, &reads).unwrap().iter().map(|completion| completion.completed.0).collect();
    done.sort_unstable();
    assert_eq!(done, [flash, flash, 2 * flash]);
}

#[test]
fn impossible_regions_are_refused_with_what_would_do() {
    for name in ["region:0", "region:x", "region:", "region:99999999999999999999", "region:24"] {
        let config = config(name);
        match Simulator::new(&config, ()).err() {
            Some(SimError::Option { key, found, allowed }) => {
                assert_eq!(key, "allocation");
                assert!(found.contains(name) && allowed.contains("region"), "{found}: {allowed}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let request = Request::new(Ns::ZERO, Lsn(0), 8, Direction::Read);
    assert_eq!(makespan(&config("concatenated"), &[request]), Ns(READ + TRANSFER));
}
