//! Between host and firmware, to the nanosecond: time in the host, the two ways of a full-duplex link, the data path that is emptied before it turns.

mod common;

use common::{device, run};
use planewise_model::profile::{Link, Processor, WriteBuffer};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::{RunConfig, SimError, Simulator};

const READ: u64 = 30_000;
const TRANSFER: u64 = 40_960;
/// 4096 bytes at 256 MB/s, and a command.
const PAGE: u64 = 16_000;
const COMMAND: u64 = 1_000;

fn config() -> RunConfig {
    let mut config = RunConfig::new(device(4, 2, 1, 1));
    config.profile.link =
        Some(Link { mb_per_s: 256, command_ns: COMMAND, full_duplex: false, latency_ns: 0 });
    config.queue_length = 64;
    config
}

fn request(at: u64, direction: Direction, page: u64, pages: u32) -> Request {
    Request::new(Ns(at), Lsn(page * 8), pages * 8, direction)
}

/// When each completes, in the order of submission.
fn completed(config: &RunConfig, requests: &[Request]) -> Vec<u64> {
    let mut done = run(config, requests).unwrap();
    done.sort_by_key(|completion| completion.sequence);
    done.iter().map(|completion| completion.completed.0).collect()
}

#[test]
fn data_of_reads_wait_for_data_of_writes_only_on_a_half_duplex_link() {
    // The page is there at 71.96 us; the write has the link from 70 us on, for a command and eight pages.
    let requests = [request(0, Direction::Read, 0, 1), request(70_000, Direction::Write, 8, 8)];
    let mut config = config();
    let ready = COMMAND + READ + TRANSFER;
    let write_in = 70_000 + COMMAND + 8 * PAGE;
    assert_eq!(completed(&config, &requests)[0], write_in + PAGE);
    config.profile.link.as_mut().unwrap().full_duplex = true;
    assert_eq!(completed(&config, &requests)[0], ready + PAGE);
    // Each way still carries one thing at a time.
    let reads = [0, 1, 2].map(|page| request(0, Direction::Read, page, 1));
    assert_eq!(completed(&config, &reads), [1, 2, 3].map(|nth| ready + nth * PAGE));
}

#[test]
fn time_in_the_host_delays_every_command_and_occupies_nothing() {
    let mut config = config();
    let reads = [0, 1, 2].map(|page| request(0, Direction::Read, page, 1));
    let without = completed(&config, &reads);
    config.profile.link.as_mut().unwrap().latency_ns = 12_345;
    assert_eq!(completed(&config, &reads), without.iter().map(|time| time + 12_345).collect::<Vec<_>>());
    // Also when they come one after the other, faster than they get through.
    let staggered = [0, 1, 2].map(|nth| request(nth * 4_000, Direction::Read, nth, 1));
    let first = 12_345 + COMMAND + READ + TRANSFER + PAGE;
    assert_eq!(completed(&config, &staggered), [0, 1, 2].map(|nth| first + nth * PAGE));
}

fn drains() -> RunConfig {
    let mut config = config();
    config.profile.processor = Some(Processor {
        command_ns: 2_000,
        operation_ns: 0,
        run_page_ns: 0,
        update_ns: 0,
        turn_ns: 0,
        drains_to_turn: true,
        scan_ns: 0,
        scan_entries: 0,
    });
    config.profile.write_buffer = Some(WriteBuffer {
        pages: 64,
        watermark: 0.9,
        run_pages: 4,
        entry_order: false,
        in_flight_pages: 8,
        power_loss_protection: true,
    });
    config
}

#[test]
fn a_path_that_is_emptied_before_it_turns_lets_one_direction_in_at_a_time() {
    let mut config = drains();
    let requests = [
        request(0, Direction::Read, 0, 1),
        request(1, Direction::Read, 1, 1),
        request(2, Direction::Write, 40, 1),
        request(3, Direction::Read, 2, 1),
    ];
    let found = completed(&config, &requests);
    // Commands cross at 1, 2, 19 (with its page) and 20 us. The reads are taken in one after the other, and the first is started when both
    // are; the write is taken in when both are complete, the last read when the write is.
    let first = COMMAND + 2 * 2_000 + READ + TRANSFER + PAGE;
    assert_eq!(found[..2], [first, first + PAGE]);
    assert_eq!(found[2], first + PAGE + 2_000);
    assert_eq!(found[3], found[2] + 2_000 + READ + TRANSFER + PAGE);
    // Without, the write is in the buffer as soon as it is there, and the last read is read beside the others.
    config.profile.processor.as_mut().unwrap().drains_to_turn = false;
    let free = completed(&config, &requests);
    assert_eq!(free[2], 2 * COMMAND + COMMAND + PAGE + 2_000);
    assert!(free[3] + READ < found[3]);
}

#[test]
fn nobody_starves_behind_a_direction_that_never_ends() {
    // Reads one after the other, faster than they complete, and one write among them: those behind it wait for it.
    let mut requests: Vec<Request> =
        (0..40).map(|nth| request(nth * 5_000, Direction::Read, nth % 8, 1)).collect();
    requests.insert(5, request(25_000, Direction::Write, 40, 1));
    let found = completed(&drains(), &requests);
    let before = found[..5].iter().max().unwrap();
    assert_eq!(found[5], before + 2_000, "as soon as the five before it are complete");
    assert!(found[6..].iter().all(|&time| time > found[5]));
}

#[test]
fn nvme_depths_are_allowed_and_longer_times_are_not() {
    let mut deep = config();
    deep.profile.interface.command_queue = "ncq:65536".into();
    let reads: Vec<Request> = (0..50).map(|page| request(0, Direction::Read, page, 1)).collect();
    run(&deep, &reads).unwrap();
    deep.profile.link.as_mut().unwrap().latency_ns = 1_000_000_001;
    match Simulator::new(&deep, ()) {
        Err(SimError::Option { key, allowed, .. }) => {
            assert!(key == "link.latency_ns" && allowed.contains("0 to 1000000000 ns"), "{key} {allowed}");
        }
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("accepted"),
    }
}
