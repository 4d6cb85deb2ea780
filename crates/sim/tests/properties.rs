//! Properties over random devices, schedulers and requests: every invariant holds on every run. Failing cases print their seed.

mod common;

use common::{device, run};
use planewise_model::profile::{Arbitration, Link, Processor, ReadAhead, Regions, StreamRule, WriteBuffer};
use planewise_model::{AllocationOrder, Direction, Durability, Lpn, Lsn, Ns, Ppn, Request};
use planewise_sim::host::{Merging, Overlap};
use planewise_sim::observers::{Observer, Origin};
use planewise_sim::{AdvancedUse, RunConfig, Simulator, UnitLevel, host_sched};
use proptest::prelude::*;

fn any_config() -> impl Strategy<Value = RunConfig> {
    let shape = (1u32..4, 1u32..4, 1u32..3, 1u32..4);
    let names = (
        prop::sample::select(host_sched::SCHEDULERS.iter().map(|entry| entry.name).collect::<Vec<_>>()),
        prop::sample::select(planewise_sim::alloc::known()),
        prop::sample::select(vec!["blocking", "ncq:1", "ncq:3", "ncq:32"]),
        prop::sample::select(vec!["fcfs", "read-first", "out-of-order"]),
        prop::sample::select(vec!["fresh", "primed", "filled", "aged:80/12/8"]),
        prop::sample::select(vec!["none", "dynamic", "static:2"]),
    );
    let collection = (
        prop::sample::select(planewise_sim::gc::SCHEMES.iter().map(|scheme| scheme.name).collect::<Vec<_>>()),
        prop::sample::select(vec!["greedy", "cost-benefit", "d-choices:3", "fifo"]),
        prop::sample::select(vec![0u32, 1, 5, 20]),
        any::<bool>(),
        any::<bool>(),
    );
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let controller = (
        prop::option::of((1u32..2000, 0u64..5000)),
        prop::option::of((0u64..20_000, 0u64..200_000, 0u64..9000)),
        prop::option::of(1u32..3),
        prop::option::of((1u32..40, 0.0f64..0.99, 1u32..20, 1u32..20)),
        prop::option::of((1u32..4, 2u32..4, 1u32..20, any::<bool>())),
    );
    let registers = (any::<bool>(), any::<bool>(), any::<bool>());
    let numbers = (1u32..80, prop::option::of(1u32..40), prop::sample::select(vec![1u32, 3, 8]), 0u64..3000);
    let controller = prop::option::of(controller);
    let chunk = prop::sample::select(vec![1u32, 1, 2, 3, 4, 8]);
    let all = (shape, names, switches, registers, numbers, collection, controller, chunk);
    all.prop_map(|(shape, names, switches, registers, numbers, collection, controller, chunk)| {
        let mut profile = device(shape.0, shape.1, shape.2, shape.3);
        profile.geometry.blocks_per_plane = 24;
        profile.geometry.pages_per_block = 7;
        profile.geometry.page_bytes = 512 * numbers.2;
        profile.timing.command_ns = numbers.3;
        profile.translation.over_provisioning = 0.15;
        let has_chunks = names.1 == "write-order" || names.1.parse::<AllocationOrder>().is_ok();
        profile.translation.allocation = names.1;
        profile.translation.chunk_pages = if has_chunks { chunk } else { 1 };
        profile.translation.wear_levelling = names.5.into();
        profile.interface.command_queue = names.2.into();
        profile.interface.flash_scheduler = names.3.into();
        profile.advanced_commands.multi_plane = switches.0;
        profile.advanced_commands.die_interleave = switches.1;
        profile.advanced_commands.copyback = switches.2;
        profile.advanced_commands.copyback_same_parity = switches.3;
        profile.advanced_commands.multi_plane_same_block = switches.4;
        (profile.advanced_commands.cache_read, profile.advanced_commands.cache_program) =
            (registers.0, registers.1);
        if registers.2 {
            profile.interface.arbitration = Arbitration::CommandsFirst;
        }
        profile.collection.scheme = collection.0.into();
        profile.collection.victims = collection.1.into();
        profile.collection.buffer_pages = collection.2;
        profile.collection.replica_pages = collection.2;
        profile.collection.hot_cold_separation = collection.3;
        if collection.4 {
            // Most of what is free is below the threshold: collections all the time.
            (profile.collection.threshold, profile.collection.floor) = (0.15, 0.1);
            (profile.collection.ahead, profile.collection.streams) = (0.2, StreamRule::All);
        }
        profile.timing.whole_page_reads = switches.4;
        profile.timing.variation = if switches.5 { 0.2 } else { 0.0 };
        if let Some((link, processor, regions, write_buffer, read_ahead)) = controller
            && names.2 != "blocking"
        {
            profile.link = link.map(|(mb_per_s, command_ns)| Link {
                mb_per_s,
                command_ns,
                full_duplex: registers.1,
                latency_ns: command_ns * u64::from(switches.3),
            });
            profile.processor = processor.map(|(command_ns, operation_ns, scan_ns)| Processor {
                command_ns,
                operation_ns,
                run_page_ns: command_ns / 2,
                update_ns: command_ns * 2,
                turn_ns: command_ns * 3,
                drains_to_turn: registers.0,
                scan_ns,
                scan_entries: 5,
            });
            profile.regions = regions.map(|operations| Regions { mib: 1, operations });
            profile.write_buffer =
                write_buffer.map(|(pages, watermark, run_pages, in_flight_pages)| WriteBuffer {
                    pages,
                    watermark,
                    run_pages,
                    entry_order: registers.1,
                    in_flight_pages,
                    power_loss_protection: switches.3,
                });
            profile.read_ahead =
                read_ahead.map(|(streams, trigger, window_pages, dropped_by_writes)| ReadAhead {
                    streams,
                    trigger,
                    window_pages,
                    run_pages: window_pages.div_ceil(2),
                    buffer_pages: window_pages * 2,
                    dropped_by_writes,
                });
        }
        let mut config = RunConfig::new(profile);
        config.scheduler = names.0.into();
        if ["pass"].contains(&names.0) {
            // These devices are smaller than a region by default.
            let bytes = (1 + numbers.3 % 40) * u64::from(config.profile.geometry.page_bytes);
            config.tunables.push(("region_size".into(), bytes.to_string()));
        }
        config.merging = if switches.2 { Merging::Full } else { Merging::None };
        config.condition = names.4.parse().unwrap();
        config.level = if switches.5 { UnitLevel::Plane } else { UnitLevel::Chip };
        config.advanced = if switches.0 { AdvancedUse::Auto } else { AdvancedUse::On };
        config.overlap = if numbers.3 % 4 == 0 { Overlap::Ignore } else { Overlap::Keep };
        config.queue_length = numbers.0;
        config.told_units = numbers.1;
        config
    })
}

/// `(gap in us, start as a share of the device, sectors, is a write)`.
fn any_requests() -> impl Strategy<Value = Vec<(u64, f64, u32, bool)>> {
    prop::collection::vec((0u64..400, 0.0f64..1.0, 1u32..60, any::<bool>()), 1..400)
}

fn requests(config: &RunConfig, raw: &[(u64, f64, u32, bool)]) -> Vec<Request> {
    let sectors = config.profile.user_capacity().0 / 512;
    let (mut arrival, mut follows) = (0, None);
    raw.iter()
        .map(|&(gap, place, length, write)| {
            arrival += gap * 1000;
            let length = u64::from(length).min(sectors);
            // Every other request goes on where the one before ended, if there is room: sequences for read-ahead to find.
            let start = match follows {
                Some(end) if gap % 2 == 0 && end + length <= sectors => end,
                _ => (place * (sectors - length) as f64) as u64,
            };
            follows = Some(start + length);
            let direction = if write { Direction::Write } else { Direction::Read };
            let request = Request::new(Ns(arrival), Lsn(start), length as u32, direction);
            match (write, gap % 16) {
                (true, 3) => Request::flush(request.arrival),
                (true, 5 | 6) => Request::discard(request.arrival, request.start, request.sectors),
                (true, 7) => Request { durability: Durability::ForceUnitAccess, ..request },
                (true, 9) => Request { durability: Durability::FlushFirstForceUnitAccess, ..request },
                (true, 11) => Request { durability: Durability::FlushFirst, ..request },
                _ => request,
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_invariant_holds_whatever_the_device_the_scheduler_and_the_requests(
        config in any_config(),
        raw in any_requests(),
    ) {
        // `run` checks all invariants, audits the tables and counts completions.
        let requests = requests(&config, &raw);
        let completions = run(&config, &requests).unwrap();
        let again = run(&config, &requests).unwrap();
        prop_assert_eq!(completions, again, "same input, same output");
    }

    #[test]
    fn first_fit_joins_the_oldest_batch_without_conflict(
        units in 1u32..70,
        queue in 1u32..200,
        raw in prop::collection::vec((0u64..300, 1u32..9), 1..200),
    ) {
        // All reads arrive at once, so that the batches are those of plain first fit over sets, and leave in that order.
        let mut profile = device(units, 1, 1, 1);
        profile.interface.command_queue = "blocking".into();
        let mut config = RunConfig::new(profile);
        config.scheduler = "piq".into();
        config.tunables.push(("barrier".into(), "complete".into()));
        config.queue_length = queue;
        let raw = &raw[..raw.len().min(queue as usize)];
        let requests: Vec<Request> = raw
            .iter()
            .map(|&(page, pages)| Request::new(Ns::ZERO, Lsn(page * 8), pages * 8, Direction::Read))
            .collect();
        let mut batches: Vec<std::collections::BTreeSet<u64>> = Vec::new();
        let mut expected = Vec::new();
        for &(page, pages) in raw {
            let touched: std::collections::BTreeSet<u64> =
                (page..page + u64::from(pages)).map(|page| page % u64::from(units)).collect();
            let fit = batches.iter().position(|batch| batch.is_disjoint(&touched)).unwrap_or_else(|| {
                batches.push(Default::default());
                batches.len() - 1
            });
            batches[fit].extend(touched);
            expected.push(fit);
        }
        let completions = run(&config, &requests).unwrap();
        let mut issues: Vec<Ns> = completions.iter().map(|completion| completion.issued).collect();
        issues.sort();
        issues.dedup();
        prop_assert_eq!(issues.len(), batches.len(), "one instant of issue for each batch");
        for completion in &completions {
            let batch = issues.binary_search(&completion.issued).unwrap();
            prop_assert_eq!(batch, expected[completion.sequence as usize], "request {}", completion.sequence);
        }
    }
}

#[test]
fn all_24_static_orders_put_a_page_where_their_name_says() {
    for order in AllocationOrder::all() {
        let mut profile = device(2, 3, 2, 2);
        profile.translation.allocation = order.to_string();
        let config = RunConfig::new(profile);
        let mut simulator = Simulator::new(&config, Places(Vec::new())).unwrap();
        for page in 0..200 {
            let at = Ns(page * 900_000);
            simulator.advance(at).unwrap();
            simulator.submit(&Request::new(at, Lsn(page * 8), 8, Direction::Write)).unwrap();
        }
        simulator.drain().unwrap();
        let (geometry, places) = (*simulator.geometry(), simulator.into_observer().0);
        assert_eq!(places.len(), 200);
        for (lpn, ppn) in places {
            let expected = order.stripe(&geometry)[(lpn.0 % geometry.planes()) as usize];
            assert_eq!(ppn.0 / geometry.pages_per_plane(), expected, "page {} under {order}", lpn.0);
        }
    }
}

struct Places(Vec<(Lpn, Ppn)>);

impl Observer for Places {
    fn page_program(&mut self, _now: Ns, _origin: Origin, lpn: Lpn, ppn: Ppn) {
        self.0.push((lpn, ppn));
    }
}
