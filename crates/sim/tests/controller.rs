//! The controller's optional parts, to the nanosecond: host link, processor, regions.

mod common;

use common::{device, makespan, pages, run};
use planewise_model::profile::{Link, Processor, Regions};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::{RunConfig, SimError, Simulator};

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
    Some(Link { mb_per_s: 256, command_ns: 1_000 })
}

fn processor(command_ns: u64, operation_ns: u64, scan_ns: u64, scan_entries: u32) -> Option<Processor> {
    Some(Processor { command_ns, operation_ns, run_page_ns: 0, scan_ns, scan_entries })
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
    assert_eq!(refused(&|c| c.profile.link = Some(Link { mb_per_s: 0, command_ns: 0 })), "link.mb_per_s");
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
