//! Chunks of several pages: where pages are, what the host believes, what a blocking interface waits for.

mod common;

use common::{device, makespan, pages, run};
use planewise_model::location::PageRange;
use planewise_model::{AllocationOrder, Direction, Geometry, Lpn, Lsn, Ns, Ppn, Request};
use planewise_sim::observers::{Observer, Origin};
use planewise_sim::{AdvancedUse, RunConfig, SimError, Simulator, UnitLevel};

const TRANSFER: u64 = 40_960;
const PROGRAM: u64 = 600_000;
const READ: u64 = 30_000;
const CHUNKS: [u32; 6] = [1, 2, 3, 4, 8, 16];

/// Where pages are written, and where they are at first.
#[derive(Default)]
struct Places {
    written: Vec<(Lpn, Ppn)>,
    held: Vec<(Lpn, Ppn)>,
}

impl Observer for Places {
    fn page_program(&mut self, _now: Ns, _origin: Origin, lpn: Lpn, ppn: Ppn) {
        self.written.push((lpn, ppn));
    }

    fn holds(&mut self, lpn: Lpn, ppn: Ppn) {
        self.held.push((lpn, ppn));
    }

    fn wants_contents(&self) -> bool {
        true
    }
}

fn config(allocation: &str, chunk_pages: u32) -> RunConfig {
    let mut profile = device(2, 3, 2, 2);
    profile.translation.allocation = allocation.into();
    profile.translation.chunk_pages = chunk_pages;
    RunConfig::new(profile)
}

/// Writes pages one after another.
fn write(config: &RunConfig, numbers: impl Iterator<Item = u64>) -> (Geometry, Places) {
    let mut simulator = Simulator::new(config, Places::default()).unwrap();
    for (turn, page) in numbers.enumerate() {
        let at = Ns(turn as u64 * 900_000);
        simulator.advance(at).unwrap();
        simulator.submit(&Request::new(at, Lsn(page * 8), 8, Direction::Write)).unwrap();
    }
    simulator.drain().unwrap();
    simulator.audit().unwrap();
    (*simulator.geometry(), simulator.into_observer())
}

#[test]
fn every_static_order_keeps_a_chunk_on_its_plane_however_the_device_was_filled() {
    for order in AllocationOrder::all() {
        for chunk in CHUNKS {
            for condition in ["fresh", "filled", "aged:80/12/8"] {
                let mut config = config(&order.to_string(), chunk);
                config.condition = condition.parse().unwrap();
                let (geometry, places) = write(&config, 0..100);
                let stripe = order.stripe(&geometry);
                let user_pages = config.profile.user_pages();
                assert_eq!(places.written.len(), 100);
                assert!(user_pages.is_multiple_of(geometry.planes() * chunk));
                if condition == "filled" {
                    assert_eq!(places.held.len(), user_pages as usize);
                }
                for (lpn, ppn) in places.written.into_iter().chain(places.held) {
                    let expected = stripe[(lpn.0 / chunk % geometry.planes()) as usize];
                    let plane = ppn.0 / geometry.pages_per_plane();
                    assert_eq!(
                        plane, expected,
                        "page {} under {order}, chunks of {chunk}, {condition}",
                        lpn.0
                    );
                }
            }
        }
    }
}

#[test]
fn write_order_gives_each_plane_a_chunk_of_what_is_written_in_turn() {
    for chunk in CHUNKS {
        // Far apart, so that addresses say nothing.
        let (geometry, places) = write(&config("write-order", chunk), (0..200).map(|turn| turn * 37 % 1000));
        let stripe = AllocationOrder::CWDP.stripe(&geometry);
        for (turn, (_, ppn)) in places.written.iter().enumerate() {
            let expected = stripe[turn / chunk as usize % stripe.len()];
            assert_eq!(ppn.0 / geometry.pages_per_plane(), expected, "write {turn}, chunks of {chunk}");
        }
    }
}

#[test]
fn what_the_host_believes_of_a_range_is_where_the_device_has_it() {
    for order in AllocationOrder::all() {
        for chunk in CHUNKS {
            let mut config = config(&order.to_string(), chunk);
            let (geometry, places) = write(&config, 0..0);
            let plane_of: std::collections::BTreeMap<u32, u32> =
                places.held.iter().map(|(lpn, ppn)| (lpn.0, ppn.0 / geometry.pages_per_plane())).collect();
            for level in [UnitLevel::Chip, UnitLevel::Plane] {
                config.level = level;
                let units = config.host_knowledge().unwrap().units;
                let per_unit = geometry.planes() / units.units();
                // The host numbers units as it likes: one of its units is one of the device's, throughout.
                let mut known = vec![None; units.units() as usize];
                for first in 0..u64::from(2 * units.period()) {
                    let mut unit = Vec::new();
                    units.for_each_unit(PageRange { first, count: 1 }, |one| unit.push(one));
                    assert_eq!(unit.len(), 1);
                    let device = plane_of[&(first as u32)] / per_unit;
                    assert_eq!(
                        *known[unit[0] as usize].get_or_insert(device),
                        device,
                        "{order}, {chunk}, {level:?}"
                    );
                }
                let mut all: Vec<u32> = known.into_iter().flatten().collect();
                all.sort_unstable();
                assert_eq!(all, (0..units.units()).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_chunk_is_written_page_after_page_and_chunks_side_by_side() {
    for chunk in [2, 4, 8] {
        let mut config = RunConfig::new(device(4, 1, 1, 1));
        config.profile.translation.chunk_pages = chunk;
        let pages_of = |numbers: Vec<u64>| pages(Direction::Write, numbers);
        let inside = makespan(&config, &pages_of((0..u64::from(chunk)).collect()));
        assert_eq!(inside, Ns(u64::from(chunk) * (TRANSFER + PROGRAM)));
        let apart = makespan(&config, &pages_of((0..4).map(|turn| turn * u64::from(chunk)).collect()));
        assert_eq!(apart, Ns(TRANSFER + PROGRAM));
    }
}

#[test]
fn a_blocking_interface_waits_for_the_units_of_chunks_and_of_no_others() {
    for (advanced, level) in [(AdvancedUse::Off, UnitLevel::Chip), (AdvancedUse::On, UnitLevel::Plane)] {
        let mut config = RunConfig::new(device(4, 1, 1, 1));
        config.profile.interface.command_queue = "blocking".into();
        config.profile.translation.chunk_pages = 4;
        (config.advanced, config.level) = (advanced, level);
        // Pages 0 and 3 are on one unit; 4 is on the next; 2 to 5 are on both.
        let read =
            |first: u64, count: u32| Request::new(Ns::ZERO, Lsn(first * 8), count * 8, Direction::Read);
        let ends = |requests: &[Request]| -> Vec<u64> {
            run(&config, requests).unwrap().iter().map(|done| done.completed.0).collect()
        };
        let page = READ + TRANSFER;
        assert_eq!(ends(&[read(0, 1), read(3, 1)]), [page, 2 * page]);
        assert_eq!(ends(&[read(0, 1), read(4, 1)]), [page, page]);
        assert_eq!(ends(&[read(2, 4), read(8, 1)]), [page, 2 * page], "the short one is complete first");
        assert_eq!(ends(&[read(4, 1), read(2, 4)]), [page, 3 * page]);
    }
}

#[test]
fn chunks_that_cannot_be_are_refused_by_key() {
    for (allocation, chunk, allowed) in [
        ("dynamic", 2, "with a static order or write-order"),
        ("conflict-free", 4, "with a static order or write-order"),
        ("concatenated", 2, "with a static order or write-order"),
        ("region:1", 2, "with a static order or write-order"),
        ("cwdp", 0, "1 to 1024"),
        ("cwdp", 1025, "1 to 1024"),
    ] {
        match Simulator::new(&config(allocation, chunk), ()).err() {
            Some(SimError::Option { key, found, allowed: said }) => {
                assert_eq!((key.as_str(), found), ("chunk_pages", chunk.to_string()));
                assert!(said.contains(allowed), "{said}");
            }
            other => panic!("{allocation} with chunks of {chunk}: {other:?}"),
        }
    }
    let mut small = config("cwdp", 64);
    small.profile.geometry.pages_per_block = 8;
    small.profile.geometry.blocks_per_plane = 8;
    assert!(matches!(Simulator::new(&small, ()), Err(SimError::Option { key, .. }) if key == "chunk_pages"));
}

/// A read of a page that was written elsewhere finds it, under every allocation that has chunks (invariants are checked by `run`).
#[test]
fn pages_are_found_again_under_overwrites_and_collections() {
    for allocation in ["cwdp", "pdwc", "write-order"] {
        for chunk in CHUNKS {
            let mut config = config(allocation, chunk);
            (config.profile.geometry.blocks_per_plane, config.profile.geometry.pages_per_block) = (12, 8);
            config.profile.translation.over_provisioning = 0.4;
            config.condition = "aged:50/25/25".parse().unwrap();
            let user = u64::from(config.profile.user_pages());
            let requests: Vec<Request> = (0..3000u64)
                .map(|turn| {
                    let page = turn * turn * 7919 % (user - 5);
                    let direction = if turn % 3 == 0 { Direction::Read } else { Direction::Write };
                    Request::new(Ns(turn * 50_000), Lsn(page * 8), 8 * (1 + turn as u32 % 5), direction)
                })
                .collect();
            run(&config, &requests).unwrap();
        }
    }
}
