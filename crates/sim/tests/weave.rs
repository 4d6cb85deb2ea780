//! Weave's rules, one at a time (docs/schedulers/weave.md).

mod common;

use common::{device, run};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::observers::Completion;

const READ: u64 = 30_000 + 40_960;
const WRITE: u64 = 600_000 + 40_960;

/// Four units that share no channel.
fn four_units(interface: &str, tunables: &[(&str, u64)]) -> RunConfig {
    let mut profile = device(4, 1, 1, 1);
    profile.interface.command_queue = interface.into();
    let mut config = RunConfig { scheduler: "weave".into(), ..RunConfig::new(profile) };
    config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), value.to_string())).collect();
    config
}

/// Page `p` is on unit `p % 4`.
fn request(at: u64, page: u64, pages: u32, direction: Direction) -> Request {
    Request::new(Ns(at), Lsn(page * 8), pages * 8, direction)
}

fn read(at: u64, page: u64, pages: u32) -> Request {
    request(at, page, pages, Direction::Read)
}

fn write(at: u64, page: u64) -> Request {
    request(at, page, 1, Direction::Write)
}

/// When each request is issued, in the order of submission.
fn issued(config: &RunConfig, requests: &[Request]) -> Vec<u64> {
    let mut completions: Vec<Completion> = run(config, requests).unwrap();
    completions.sort_by_key(|completion| completion.sequence);
    completions.iter().map(|completion| completion.issued.0).collect()
}

#[test]
fn a_request_whose_units_are_free_goes_whatever_waits_before_it() {
    // Unit 0 is busy; a second request for it waits, those for units 1 and 2 do not. NOOP would hold them back.
    let requests = [read(0, 0, 1), read(0, 4, 1), read(0, 1, 1), write(0, 2)];
    let config = four_units("blocking", &[("reads_out_max", 4)]);
    assert_eq!(issued(&config, &requests), [0, READ, 0, 0]);
}

#[test]
fn the_shortest_read_goes_first_and_of_equals_the_oldest() {
    // All need unit 0, which is busy until READ.
    let requests = [read(0, 0, 1), read(1, 4, 4), read(2, 8, 1), read(3, 12, 1)];
    let issued = issued(&four_units("blocking", &[]), &requests);
    assert_eq!([issued[2], issued[3], issued[1]], [READ, 2 * READ, 3 * READ]);
}

#[test]
fn a_write_stays_off_units_that_a_waiting_read_wants() {
    // A read of units 0 and 1 waits for unit 0. The write could have unit 1 at once; it goes when the read has gone. The
    // write on unit 2 is in nobody's way.
    let requests = [read(0, 0, 1), read(1, 4, 2), write(2, 1), write(3, 2)];
    let config = four_units("blocking", &[("reads_out_max", 4)]);
    assert_eq!(issued(&config, &requests), [0, READ, 2 * READ, 3]);
}

#[test]
fn a_burst_of_reads_holds_writes_for_a_while() {
    let requests = [read(0, 0, 1), read(0, 1, 1), read(0, 2, 1), write(1, 3)];
    let write = |tunables: &[(&str, u64)]| issued(&four_units("ncq:32", tunables), &requests)[3];
    // Until they are complete, or so few are out as may be, or the last was issued long enough ago.
    assert_eq!(write(&[]), READ);
    assert_eq!(write(&[("reads_out_max", 2)]), READ);
    assert_eq!(write(&[("reads_out_max", 3)]), 1);
    assert_eq!(write(&[("write_hold_ns", 50_000)]), 50_000);
    assert_eq!(write(&[("write_hold_ns", 0)]), 1);
}

#[test]
fn what_waits_waits_where_a_read_can_still_go_before_it() {
    // Four writes for unit 0, then a read. With a depth of 1 it goes after the first; NOOP's device has them all by then.
    let mut requests: Vec<Request> = (0..4).map(|n| write(0, 4 * n)).collect();
    requests.push(read(1, 16, 1));
    for (depth, expected) in [(1, WRITE), (64, 1)] {
        let config = four_units("ncq:32", &[("unit_depth", depth)]);
        let completions = run(&config, &requests).unwrap();
        let read = completions.iter().find(|completion| completion.sequence == 4).unwrap();
        assert_eq!(read.issued.0, expected, "depth {depth}");
        let writes_before = if depth == 1 { 1 } else { 4 };
        assert_eq!(read.completed.0, writes_before * WRITE + READ, "depth {depth}");
    }
}

#[test]
fn a_late_write_goes_first_and_keeps_its_units_clear() {
    // Reads of units 0 and 1 without end; a write of both would find one of them busy at any time.
    let mut requests = vec![request(0, 0, 2, Direction::Write)];
    requests.extend((0..200).map(|n| read(0, 4 * n + n % 2, 1)));
    requests.sort_by_key(|request| request.direction.index());
    let mut config = four_units("blocking", &[("write_wait_max_ns", 2_000_000)]);
    config.queue_length = 300;
    let completions = run(&config, &requests).unwrap();
    let write =
        completions.iter().find(|completion| completion.request.direction == Direction::Write).unwrap();
    // Late at 2 ms, it waits for the reads that are out then, and no more.
    assert!((2_000_000..=2_000_000 + READ).contains(&write.issued.0), "{}", write.issued);
}

#[test]
fn a_region_holds_no_more_than_its_depth() {
    // Eight reads of eight units in one region of 4 MiB, four in the next.
    let mut profile = device(8, 1, 1, 1);
    profile.interface.command_queue = "ncq:32".into();
    let mut config = RunConfig { scheduler: "weave".into(), ..RunConfig::new(profile) };
    config.tunables = vec![("region_size".into(), "4m".into()), ("region_depth".into(), "2".into())];
    let mut requests: Vec<Request> = (0..8).map(|page| read(0, page, 1)).collect();
    requests.extend((0..4).map(|page| read(0, 1024 + page, 1)));
    let issued = issued(&config, &requests);
    assert_eq!(issued[..8], [0, 0, READ, READ, 2 * READ, 2 * READ, 3 * READ, 3 * READ]);
    // The next region has two of its own at once, on units that the first region's second pair then waits for in the device.
    assert_eq!(issued[8..10], [0, 0]);
}
