//! Streams that keep a request waiting as long as they last, under schedulers that let others pass it: each was found by hand, on a
//! drive of 64 chips with command queuing or on the papers' blocking interface.

mod common;

use common::run;
use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::observers::Completion;
use planewise_sim::{AdvancedUse, RunConfig, Simulator};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// 64 chips of a few blocks each; page `p` is on chip `p % 64`.
fn chips(scheduler: &str, interface: &str, tunables: &[(&str, &str)]) -> RunConfig {
    let mut profile = Profile::embedded("piq-128g").unwrap();
    profile.interface.command_queue = interface.into();
    profile.geometry.blocks_per_plane = 128;
    let mut config = RunConfig::new(profile);
    config.scheduler = scheduler.into();
    config.advanced = AdvancedUse::Off;
    config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    config
}

fn page(at: u64, page: u64, direction: Direction) -> Request {
    Request::new(Ns(at), Lsn(page * 8), 8, direction)
}

fn reads(until: u64, every: u64, pages: u64) -> impl Iterator<Item = Request> {
    (0..until / every).map(move |nth| page(nth * every, nth % pages, Direction::Read))
}

/// In the order of arrival.
fn stream(parts: impl IntoIterator<Item = Request>) -> Vec<Request> {
    let mut requests: Vec<Request> = parts.into_iter().collect();
    requests.sort_by_key(|request| request.arrival);
    requests
}

/// From entry to issue of the requests that begin on this page, in the order of arrival: a full queue is no scheduler's doing.
fn waits(completions: &[Completion], of: u64) -> Vec<u64> {
    let mut found: Vec<&Completion> =
        completions.iter().filter(|completion| completion.request.start == Lsn(of * 8)).collect();
    found.sort_by_key(|completion| completion.sequence);
    found.iter().map(|completion| (completion.issued - completion.entered).0).collect()
}

#[test]
fn under_piq_a_lone_read_does_not_wait_for_the_end_of_a_stream_of_reads() {
    // It waited for as long as the stream: a completion gave its unit back to newcomers of the batch before the read's.
    let lone = 64 * 3000 + 5;
    for (scheduler, until) in ["piq", "piq_r", "piq+", "piq+_r"].into_iter().zip([20, 60, 60, 60]) {
        let requests =
            stream(reads(until * MS, 8 * US, 100_000).chain([page(5 * MS, lone, Direction::Read)]));
        let wait = waits(&run(&chips(scheduler, "ncq:8", &[]), &requests).unwrap(), lone)[0];
        // What waits is 56 reads; its batch and the one before it have a read of each chip at most.
        assert!(wait <= 2 * 64 * 8 * US + MS, "{scheduler}, {until} ms: {wait} ns");
    }
}

#[test]
fn under_piq_plus_a_promoted_write_batch_does_not_keep_reads_waiting_while_writes_come() {
    let lone = 7 + 64 * 2000;
    let writes = (0..120 * MS / (75 * US)).map(|nth| page(nth * 75 * US, nth, Direction::Write));
    let every_5_ms = (1..24).map(|nth| page(nth * 5 * MS, lone, Direction::Read));
    let requests = stream(writes.chain(every_5_ms));
    for scheduler in ["piq+", "piq+_r", "piq+_w"] {
        let longest =
            waits(&run(&chips(scheduler, "ncq:8", &[]), &requests).unwrap(), lone).into_iter().max().unwrap();
        // One write batch of 64 chips at most, eight at a time, 641 us each.
        assert!(longest <= 64 / 8 * 700 * US + MS, "{scheduler}: {longest} ns");
    }
}

#[test]
fn under_piq_plus_the_turn_that_is_owed_to_reads_ends() {
    // Three writes of one chip, of one page or of three: each is a batch of its own.
    for same_page in [true, false] {
        let write = |nth: u64| {
            let row = if same_page { 0 } else { nth };
            page(500 * US + nth, 64 * (4000 + row) + 5, Direction::Write)
        };
        let requests = stream(reads(100 * MS, 8 * US, 100_000).chain((0..3).map(write)));
        for scheduler in ["piq+", "piq+_r", "piq+_w"] {
            let completions = run(&chips(scheduler, "ncq:8", &[]), &requests).unwrap();
            let longest = completions
                .iter()
                .filter(|completion| completion.request.direction == Direction::Write)
                .map(|completion| (completion.issued - completion.entered).0)
                .max()
                .unwrap();
            // A threshold, a turn of reads and a program for each of the three.
            let bound = 3 * (MS + 64 * 8 * US + 700 * US) + MS;
            assert!(longest <= bound, "{scheduler}, same page {same_page}: {longest} ns, at most {bound}");
        }
    }
}

#[test]
fn requests_of_one_page_keep_their_order_whatever_the_scheduler() {
    // Writes of pages 2, 4, 2, reads of chip 3 in between, page 2 again, and a read of it behind each write.
    let mut requests = vec![
        page(0, 2, Direction::Write),
        page(2 * US, 4, Direction::Write),
        page(3 * US, 2, Direction::Write),
        page(4 * US, 2, Direction::Read),
    ];
    requests.extend((0..12).map(|nth| page(5 * US + nth, 3 + 64 * nth, Direction::Read)));
    requests.extend([page(700 * US, 2, Direction::Write), page(701 * US, 2, Direction::Read)]);
    for entry in planewise_sim::host_sched::SCHEDULERS {
        for interface in ["blocking", "ncq:1", "ncq:8"] {
            // The invariants are checked by `run`; here is the order itself.
            let completions = run(&chips(entry.name, interface, &[]), &requests).unwrap();
            let mut of_page: Vec<&Completion> =
                completions.iter().filter(|completion| completion.request.start == Lsn(2 * 8)).collect();
            of_page.sort_by_key(|completion| completion.sequence);
            for pair in of_page.windows(2) {
                assert!(pair[0].completed <= pair[1].issued, "{} {interface}: {pair:?}", entry.name);
            }
        }
    }
}

#[test]
fn an_order_that_is_ignored_is_not_kept() {
    // What the test above would not see if nothing changed places: reads go before writes, also before one of their own page.
    let requests = [
        page(0, 3, Direction::Write),
        page(US, 4, Direction::Write),
        page(2 * US, 2, Direction::Write),
        page(3 * US, 2, Direction::Read),
    ];
    let mut config = chips("rws", "ncq:1", &[]);
    let issued = |config: &RunConfig| {
        let mut simulator = Simulator::new(config, ()).unwrap();
        simulator.keep_completions();
        for request in &requests {
            while simulator.now() < request.arrival && simulator.next_event() <= request.arrival {
                simulator.advance(simulator.next_event()).unwrap();
            }
            simulator.submit(request).unwrap();
        }
        simulator.drain().unwrap();
        let mut completions = Vec::new();
        simulator.take_completions(&mut completions);
        completions.sort_by_key(|completion| completion.sequence);
        completions.iter().map(|completion| completion.issued).collect::<Vec<_>>()
    };
    let kept = issued(&config);
    config.overlap = planewise_sim::host::Overlap::Ignore;
    let ignored = issued(&config);
    let (write, read) = (2, 3);
    assert!(kept[write] < kept[read] && ignored[read] < ignored[write], "{kept:?} {ignored:?}");
}

#[test]
fn a_batch_is_promoted_once() {
    // The share was 73: a batch that took newcomers after its promotion was counted again each time.
    let writes = (0..120 * MS / (75 * US)).map(|nth| page(nth * 75 * US, nth, Direction::Write));
    let requests = stream(
        writes.chain(
            reads(120 * MS, 40 * US, 100_000)
                .map(|read| Request { start: Lsn(read.start.0 + 64 * 8 * 4000), ..read }),
        ),
    );
    for scheduler in ["piq+", "piq+_r", "piq+_w"] {
        let mut promotions = 0;
        for interface in ["blocking", "ncq:1", "ncq:8", "ncq:32"] {
            let config = chips(scheduler, interface, &[]);
            let mut simulator = Simulator::new(&config, ()).unwrap();
            for request in &requests {
                while !simulator.has_room(request)
                    || simulator.now() < request.arrival && simulator.next_event() <= request.arrival
                {
                    simulator.advance(simulator.next_event()).unwrap();
                }
                simulator.submit(request).unwrap();
            }
            simulator.drain().unwrap();
            let (promoted, batches) = simulator.scheduler_counters().write_batches();
            assert!(promoted <= batches, "{scheduler} {interface}: {promoted} of {batches}");
            promotions += promoted;
        }
        assert!(promotions > 0, "{scheduler}");
    }
}

#[test]
fn with_batches_that_end_before_the_next_a_write_of_an_idle_chip_waits_for_no_read() {
    let requests = stream(reads(60 * MS, 50 * US, 60).chain([page(MS, 63, Direction::Write)]));
    for scheduler in ["piq", "piq+", "piq_w", "piq_r"] {
        let completions = run(&chips(scheduler, "blocking", &[("barrier", "complete")]), &requests).unwrap();
        let wait = waits(&completions, 63)[0];
        assert!(wait <= 100 * US, "{scheduler}: {wait} ns");
    }
}
