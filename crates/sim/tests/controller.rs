//! The controller's optional parts, to the nanosecond: host link, processor, regions, write buffer, read-ahead.

mod common;

use common::{device, makespan, pages, run};
use planewise_model::profile::{Link, Processor, ReadAhead, Regions, WriteBuffer};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::drivers::replay::{ReplayOptions, replay};
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::recovery::Recovery;
use planewise_sim::{Condition, RunConfig, SimError, Simulator};
use std::sync::atomic::AtomicBool;

const TRANSFER: u64 = 40_960;
const PROGRAM: u64 = 600_000;
const READ: u64 = 30_000;
/// 4096 bytes at 256 MB/s.
const LINK_PAGE: u64 = 16_000;

fn config(channels: u32, chips: u32) -> RunConfig {
    let mut config = RunConfig::new(device(channels, chips, 1, 1));
    config.queue_length = 4096;
    config
}

fn link() -> Option<Link> {
    Some(Link { mb_per_s: 256, command_ns: 1_000, full_duplex: false, latency_ns: 0 })
}

fn processor(command_ns: u64, operation_ns: u64, scan_ns: u64, scan_entries: u32) -> Option<Processor> {
    let none = Processor {
        command_ns: 0,
        operation_ns: 0,
        run_page_ns: 0,
        update_ns: 0,
        turn_ns: 0,
        drains_to_turn: false,
        scan_ns: 0,
        scan_entries: 0,
    };
    Some(Processor { command_ns, operation_ns, scan_ns, scan_entries, ..none })
}

#[test]
fn an_unloaded_request_crosses_the_link_with_its_command_and_its_data() {
    let mut config = config(2, 2);
    config.profile.link = link();
    let read = pages(Direction::Read, 0..1);
    assert_eq!(makespan(&config, &read), Ns(1_000 + READ + TRANSFER + LINK_PAGE));
    let write = pages(Direction::Write, 0..1);
    assert_eq!(makespan(&config, &write), Ns(1_000 + LINK_PAGE + TRANSFER + PROGRAM));
}

#[test]
fn commands_and_data_share_the_link_first_come_first_served() {
    // Three reads on three channels: commands one after the other, arrays in parallel, data one after the other.
    let mut config = config(3, 1);
    config.profile.link = link();
    let reads = pages(Direction::Read, 0..3);
    let mut done: Vec<Ns> = run(&config, &reads).unwrap().iter().map(|c| c.completed).collect();
    done.sort();
    let first = 1_000 + READ + TRANSFER + LINK_PAGE;
    assert_eq!(done, [Ns(first), Ns(first + LINK_PAGE), Ns(first + 2 * LINK_PAGE)]);
}

#[test]
fn a_stream_of_reads_is_bound_by_the_link() {
    let mut config = config(8, 4);
    config.profile.link = link();
    let count = 2000;
    let bound = count * (1_000 + LINK_PAGE);
    let found = makespan(&config, &pages(Direction::Read, 0..count)).0;
    assert!(found >= bound && found < bound + READ + TRANSFER + 1_000, "{found} against {bound}");
}

#[test]
fn the_processor_takes_its_time_for_each_command_and_each_operation() {
    let mut config = config(4, 1);
    config.profile.processor = processor(7_000, 20_000, 0, 0);
    let two_pages = [Request::new(Ns::ZERO, Lsn(0), 16, Direction::Read)];
    assert_eq!(makespan(&config, &two_pages), Ns(7_000 + 2 * 20_000 + READ + TRANSFER));
    // Commands first: they are there before the operations that come of them.
    let reads = pages(Direction::Read, 0..4);
    assert_eq!(makespan(&config, &reads), Ns(4 * 7_000 + 4 * 20_000 + READ + TRANSFER));
}

#[test]
fn the_processor_looks_at_the_entries_of_the_list_and_no_further_than_it_may() {
    // Four reads of one die: 4, 4, 4, 4 entries are outstanding when each is started, as all end after the last is started.
    let mut config = config(1, 1);
    config.profile.processor = processor(0, 1_000, 100, 64);
    let reads = pages(Direction::Read, 0..4);
    let flash = READ + TRANSFER;
    assert_eq!(makespan(&config, &reads), Ns(1_400 + 4 * flash));
    config.profile.processor = processor(0, 1_000, 100, 3);
    assert_eq!(makespan(&config, &reads), Ns(1_300 + 4 * flash));
}

#[test]
fn a_region_has_so_many_operations_under_way_and_others_do_not_wait_for_it() {
    // Regions of 1 MiB: 256 pages. Four channels; pages 0 to 3 are one region's, 256 and 513 are others'.
    let mut config = config(4, 1);
    config.profile.processor = processor(0, 5_000, 0, 0);
    let flash = READ + TRANSFER;
    let of = |config: &RunConfig, numbers: [u64; 3]| makespan(config, &pages(Direction::Read, numbers)).0;
    assert_eq!(of(&config, [0, 1, 2]), 3 * 5_000 + flash);
    config.profile.regions = Some(Regions { mib: 1, operations: 1 });
    assert_eq!(of(&config, [0, 1, 2]), 3 * (5_000 + flash));
    assert_eq!(of(&config, [0, 257, 514]), 3 * 5_000 + flash);
    config.profile.regions = Some(Regions { mib: 1, operations: 2 });
    assert_eq!(of(&config, [0, 1, 2]), 2 * (5_000 + flash));
}

#[test]
fn waiting_for_the_controller_is_not_waiting_for_a_die() {
    let mut config = config(4, 1);
    config.profile.processor = processor(7_000, 5_000, 0, 0);
    config.profile.regions = Some(Regions { mib: 1, operations: 1 });
    let waits = |numbers: [u64; 3]| -> Vec<u64> {
        run(&config, &pages(Direction::Read, numbers)).unwrap().iter().map(|c| c.die_wait.0).collect()
    };
    // One after the other, as one region has one under way: each finds its die free.
    assert_eq!(waits([0, 1, 2]), [0; 3]);
    // Three regions, one die: each is started 5 us after the one before it, and waits for its array and transfer.
    let flash = READ + TRANSFER;
    assert_eq!(waits([0, 256, 512]), [0, flash - 5_000, 2 * (flash - 5_000)]);
}

#[test]
fn a_region_is_held_through_the_read_and_the_write_of_a_partial_write() {
    let mut config = config(2, 1);
    config.profile.regions = Some(Regions { mib: 1, operations: 1 });
    let mut requests = vec![Request::new(Ns::ZERO, Lsn(1), 3, Direction::Write)];
    requests.extend(pages(Direction::Read, 1..2));
    let write = READ + 5 * 512 * 10 + TRANSFER + PROGRAM;
    assert_eq!(makespan(&config, &requests), Ns(write + READ + TRANSFER));
}

#[test]
fn whole_page_reads_move_the_page_for_a_sector() {
    let mut config = config(1, 1);
    config.profile.timing.whole_page_reads = true;
    let read = [Request::new(Ns::ZERO, Lsn(0), 1, Direction::Read)];
    assert_eq!(makespan(&config, &read), Ns(READ + TRANSFER));
}

#[test]
fn impossible_controllers_are_refused_by_key() {
    let refused = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(1, 1);
        change(&mut config);
        match Simulator::new(&config, ()).err() {
            Some(SimError::Option { key, allowed, .. }) => {
                assert!(!allowed.is_empty());
                key
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|c| c.profile.link = Some(Link { mb_per_s: 0, ..link().unwrap() })), "link.mb_per_s");
    assert_eq!(refused(&|c| c.profile.processor = processor(u64::MAX, 0, 0, 0)), "processor.command_ns");
    assert_eq!(refused(&|c| c.profile.regions = Some(Regions { mib: 0, operations: 1 })), "regions.mib");
    assert_eq!(
        refused(&|c| {
            c.profile.link = link();
            c.profile.interface.command_queue = "blocking".into();
        }),
        "command_queue"
    );
}

fn write_buffer(pages: u32, watermark: f64, run_pages: u32, in_flight_pages: u32) -> Option<WriteBuffer> {
    Some(WriteBuffer {
        pages,
        watermark,
        run_pages,
        entry_order: false,
        in_flight_pages,
        power_loss_protection: true,
    })
}

fn read_ahead(
    streams: u32,
    window_pages: u32,
    buffer_pages: u32,
    dropped_by_writes: bool,
) -> Option<ReadAhead> {
    let run_pages = window_pages.div_ceil(2);
    Some(ReadAhead { streams, trigger: 2, window_pages, run_pages, buffer_pages, dropped_by_writes })
}

/// Each request with the time after the last one's completion at which it comes: how long each takes.
fn one_by_one(config: &RunConfig, requests: &[Request]) -> Vec<u64> {
    let mut simulator = Simulator::new(config, Invariants::new()).unwrap();
    simulator.keep_completions();
    let mut done = Vec::new();
    for request in requests {
        let arrival = simulator.now() + request.arrival;
        simulator.advance(arrival).unwrap();
        simulator.submit(&Request { arrival, ..*request }).unwrap();
        simulator.finish_requests().unwrap();
        simulator.take_completions(&mut done);
    }
    simulator.drain().unwrap();
    simulator.observer().report().unwrap();
    simulator.audit().unwrap();
    done.iter().map(|c| c.completed.0 - c.request.arrival.0).collect()
}

fn after(gap: u64, request: Request) -> Request {
    Request { arrival: Ns(gap), ..request }
}

fn page(direction: Direction, number: u64) -> Request {
    Request::new(Ns::ZERO, Lsn(number * 8), 8, direction)
}

#[test]
fn pages_still_in_the_write_buffer_are_no_part_of_write_amplification() {
    let mut config = config(2, 1);
    config.profile.write_buffer = write_buffer(8, 0.5, 2, 8);
    let requests: Vec<Request> = (0..40)
        .map(|number| Request { arrival: Ns(number * 300_000), ..page(Direction::Write, number) })
        .collect();
    let stop = AtomicBool::new(false);
    for (count, warm_up) in [(6, 0), (40, 0), (40, 6), (40, 37)] {
        let mut options =
            ReplayOptions { warm_up, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
        let requests = &mut requests[..count].iter().copied();
        let (result, _) = replay(&config, requests, (), &mut options).unwrap();
        // Nothing is collected and nothing written twice: one program for each page.
        assert_eq!(result.metrics.gc.write_amplification, 1.0, "{count} writes, the first {warm_up} before");
    }
}

#[test]
fn pages_written_in_part_are_read_once_each_and_amplify_writes_with_and_without_a_write_buffer() {
    for buffer in [None, write_buffer(8, 0.5, 2, 8)] {
        let mut config = config(2, 1);
        config.condition = Condition::Filled;
        config.profile.write_buffer = buffer;
        // A quarter of each page, all of every fifth.
        let requests: Vec<Request> = (0..50)
            .map(|number| {
                let sectors = if number % 5 == 4 { 8 } else { 2 };
                Request::new(Ns(number * 900_000), Lsn(number * 8), sectors, Direction::Write)
            })
            .collect();
        let stop = AtomicBool::new(false);
        let mut options =
            ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
        let (result, _) = replay(&config, &mut requests.iter().copied(), (), &mut options).unwrap();
        let (flash, amplification) = (result.metrics.flash, result.metrics.gc.write_amplification);
        assert_eq!(flash.reads, flash.read_modify_writes, "{buffer:?}");
        match buffer {
            None => assert_eq!((flash.programs, flash.reads), (50, 40)),
            // The last ones are still in the buffer.
            Some(_) => {
                assert!((30..50).contains(&flash.programs) && (24..40).contains(&flash.reads), "{flash:?}")
            }
        }
        // What a page costs is 8 sectors; what was written of each is known.
        let programmed = flash.programs * 8;
        let written: f64 = programmed as f64 / amplification;
        let fits = |left: u64| {
            let in_flash = &requests[..50 - left as usize];
            (in_flash.iter().map(|request| f64::from(request.sectors)).sum::<f64>() - written).abs() < 1e-6
        };
        assert!(fits(50 - flash.programs), "{amplification} {flash:?}");
    }
}

#[test]
fn a_write_is_complete_in_the_buffer_and_reads_of_it_need_no_flash() {
    let mut config = config(2, 1);
    (config.profile.link, config.profile.write_buffer) = (link(), write_buffer(8, 0.5, 4, 8));
    let requests = [page(Direction::Write, 3), page(Direction::Read, 3), page(Direction::Read, 4)];
    let written = 1_000 + LINK_PAGE;
    assert_eq!(
        one_by_one(&config, &requests),
        [written, 1_000 + LINK_PAGE, 1_000 + READ + TRANSFER + LINK_PAGE]
    );
}

#[test]
fn a_full_buffer_makes_writes_wait_for_programs() {
    // Two slots, one die, pages back one by one: the third write waits for the first program, the fourth for the second.
    let mut config = config(1, 1);
    config.profile.write_buffer = write_buffer(2, 0.0, 1, 2);
    let writes = pages(Direction::Write, 0..4);
    let mut done: Vec<u64> = run(&config, &writes).unwrap().iter().map(|c| c.completed.0).collect();
    done.sort_unstable();
    assert_eq!(done, [0, 0, TRANSFER + PROGRAM, 2 * (TRANSFER + PROGRAM)]);
}

#[test]
fn pages_written_in_sequence_are_programmed_together_on_all_planes_of_a_die() {
    // Four planes: a run of four pages takes one program. Single pages of four other groups take one each.
    let mut config = RunConfig::new(device(1, 1, 1, 4));
    config.queue_length = 4096;
    config.profile.write_buffer = write_buffer(4, 0.75, 4, 4);
    let mut writes = pages(Direction::Write, 0..4);
    writes.push(page(Direction::Write, 8));
    let together = run(&config, &writes).unwrap().iter().map(|c| c.completed.0).max().unwrap();
    assert_eq!(together, 4 * TRANSFER + PROGRAM);
    let mut scattered = pages(Direction::Write, [0, 16, 32, 48]);
    scattered.push(page(Direction::Write, 64));
    let alone = run(&config, &scattered).unwrap().iter().map(|c| c.completed.0).max().unwrap();
    assert_eq!(alone, TRANSFER + PROGRAM);
}

#[test]
fn sub_page_writes_coalesce_and_a_page_that_is_whole_needs_no_read() {
    let mut config = config(1, 1);
    config.profile.write_buffer = write_buffer(2, 0.5, 1, 2);
    // Two halves of page 0, then two pages that push it out, then one that waits for it.
    let half = |start| Request::new(Ns::ZERO, Lsn(start), 4, Direction::Write);
    let rest = [page(Direction::Write, 1), page(Direction::Write, 2)];
    let whole: Vec<Request> = [half(0), half(4)].into_iter().chain(rest).collect();
    assert_eq!(makespan(&config, &whole), Ns(TRANSFER + PROGRAM));
    let part: Vec<Request> = [half(0)].into_iter().chain(rest).collect();
    assert_eq!(makespan(&config, &part), Ns(READ + TRANSFER / 2 + TRANSFER + PROGRAM));
}

#[test]
fn a_read_of_more_than_the_buffer_has_of_a_page_goes_to_flash_as_well() {
    let mut config = config(1, 1);
    config.profile.write_buffer = write_buffer(2, 0.5, 1, 2);
    let part = |sectors, direction| Request::new(Ns::ZERO, Lsn(2), sectors, direction);
    let requests = [part(2, Direction::Write), part(2, Direction::Read), part(4, Direction::Read)];
    assert_eq!(one_by_one(&config, &requests), [0, 0, READ + 4 * 512 * 10]);
}

#[test]
fn a_power_cut_loses_nothing_of_what_the_write_buffer_acknowledged() {
    for cut in (0..40).map(|n| Ns(n * 97_001)) {
        let mut config = config(2, 1);
        config.profile.write_buffer = write_buffer(6, 0.4, 4, 3);
        let mut simulator = Simulator::new(&config, Recovery::new()).unwrap();
        for number in 0..60u64 {
            let at = Ns(number * 60_000);
            while simulator.next_event() <= at.min(cut) {
                simulator.advance(simulator.next_event()).unwrap();
            }
            if at > cut {
                break;
            }
            let request =
                Request::new(at, Lsn(number * 37 % 23 * 4), 4 + number as u32 % 9, Direction::Write);
            simulator.submit(&request).unwrap();
        }
        simulator.advance(cut).unwrap();
        simulator.cut_power();
        let found = simulator.observer().found().unwrap().clone();
        assert_eq!(found.lost, 0, "cut at {cut}: {:?}", found.examples);
    }
}

#[test]
fn a_sequential_stream_is_read_ahead_and_finds_its_pages_there() {
    let mut config = config(4, 1);
    (config.profile.link, config.profile.read_ahead) = (link(), read_ahead(1, 4, 8, false));
    let miss = 1_000 + READ + TRANSFER + LINK_PAGE;
    let hit = 1_000 + LINK_PAGE;
    let reads: Vec<Request> = (0..6).map(|n| after(200_000, page(Direction::Read, n))).collect();
    assert_eq!(one_by_one(&config, &reads), [miss, miss, hit, hit, hit, hit]);
}

#[test]
fn a_run_of_pages_that_are_in_the_buffer_costs_the_processor_nothing() {
    let mut config = config(4, 1);
    config.profile.processor = processor(7_000, 50_000, 0, 0);
    config.profile.read_ahead = read_ahead(1, 8, 64, false);
    // Pages up to 11 are read ahead of the first four reads; a read elsewhere ends the stream, and it begins again.
    let slow = [0, 1, 2, 3, 100, 4, 5].map(|number| after(1_000_000, page(Direction::Read, number)));
    let reads: Vec<Request> = slow.into_iter().chain([after(0, page(Direction::Read, 6))]).collect();
    // The run of pages 6 and 7 that the read of page 5 asks for is not between it and the read of page 6.
    assert_eq!(one_by_one(&config, &reads)[5..], [7_000; 3]);
}

#[test]
fn a_read_waits_for_what_is_left_of_a_page_that_is_coming() {
    let mut config = config(4, 1);
    config.profile.read_ahead = read_ahead(1, 2, 8, false);
    let gaps = [0, 0, 0];
    let reads: Vec<Request> = (0..3).map(|n| after(gaps[n as usize], page(Direction::Read, n))).collect();
    // The second read asked for page 2, at once: it comes with the second read itself.
    assert_eq!(one_by_one(&config, &reads), [READ + TRANSFER, READ + TRANSFER, 0]);
}

#[test]
fn reads_in_between_break_a_stream_when_there_are_more_of_them_than_streams_are_told_apart() {
    let miss = READ + TRANSFER;
    for (streams, third) in [(1, miss), (2, 0)] {
        let mut config = config(4, 1);
        config.profile.read_ahead = read_ahead(streams, 4, 8, false);
        let numbers = [0, 700, 1, 800, 2];
        let reads = numbers.map(|n| after(200_000, page(Direction::Read, n)));
        assert_eq!(one_by_one(&config, &reads)[4], third, "{streams} streams");
    }
}

#[test]
fn a_write_makes_what_was_read_ahead_of_its_page_old_or_ends_read_ahead_altogether() {
    let miss = READ + TRANSFER;
    for (dropped, behind) in [(false, 0), (true, miss)] {
        for buffered in [false, true] {
            let mut config = config(8, 1);
            config.profile.read_ahead = read_ahead(1, 4, 8, dropped);
            config.profile.write_buffer = write_buffer(8, 0.9, 1, 1).filter(|_| buffered);
            let requests = [
                page(Direction::Read, 0),
                page(Direction::Read, 1),
                after(200_000, page(Direction::Write, 2)),
                after(2_000_000, page(Direction::Read, 2)),
                after(200_000, page(Direction::Read, 3)),
            ];
            let took = one_by_one(&config, &requests);
            assert_eq!(took[3], if buffered { 0 } else { miss });
            assert_eq!(took[4], behind, "dropped by writes: {dropped}, buffered: {buffered}");
        }
    }
}

#[test]
fn the_processor_enters_what_is_written_and_turns_between_directions() {
    let mut config = config(4, 1);
    let times = Processor { update_ns: 300, turn_ns: 50, ..processor(7_000, 20_000, 0, 0).unwrap() };
    config.profile.processor = Some(times);
    let (read, write) = (READ + TRANSFER, TRANSFER + PROGRAM);
    let requests = [page(Direction::Read, 0), page(Direction::Write, 1), page(Direction::Read, 2)];
    let unloaded = [27_000 + read, 27_350 + write, 27_050 + read];
    assert_eq!(one_by_one(&config, &requests), unloaded);
    // A run is looked up and entered once, and read ahead once: four pages of four groups, one of them sub-page.
    config.profile.processor = Some(Processor { run_page_ns: 1_000, ..times });
    config.profile.write_buffer = write_buffer(4, 0.75, 4, 4);
    let mut writes = pages(Direction::Write, 0..4);
    writes.push(page(Direction::Write, 4));
    let last = run(&config, &writes).unwrap().iter().map(|c| c.completed.0).max().unwrap();
    // Five commands, a turn, then the run of four: the fifth write waits for a slot that the first program frees.
    assert_eq!(last, 50 + 5 * 7_000 + 20_000 + 3_000 + 300 + write);
}

#[test]
fn a_page_written_again_on_its_way_to_a_busy_die_is_not_overtaken_by_its_newer_version() {
    // The first version waits behind five reads of one die; the other die would be free for the second long before.
    let mut config = config(2, 1);
    config.profile.translation.allocation = "dynamic".into();
    config.profile.write_buffer = write_buffer(8, 0.0, 1, 8);
    let mut requests = pages(Direction::Read, [0, 2, 4, 6, 8, 1]);
    requests.extend([1, 2].map(|at| after(at, page(Direction::Write, 100))));
    requests.push(after(9_000_000, page(Direction::Read, 100)));
    run(&config, &requests).unwrap();
}
