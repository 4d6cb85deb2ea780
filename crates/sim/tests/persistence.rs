//! Flushes, forced unit access and discards: what they cost to the nanosecond, what they keep, and what they free.

mod common;

use common::{device, keeping, pages, run, times};
use planewise_model::profile::ReadAhead;
use planewise_model::rng::generator;
use planewise_model::{Direction, Durability, Lsn, Ns, Request};
use planewise_sim::host::Overlap;
use planewise_sim::observers::recovery::Recovery;
use planewise_sim::{Condition, RunConfig, Simulator};
use rand::RngExt;

const READ: u64 = 30_000;
const PROGRAM: u64 = 600_000;
const TRANSFER: u64 = 40_960;

fn write(at: u64, page: u64) -> Request {
    Request::new(Ns(at), Lsn(page * 8), 8, Direction::Write)
}

fn read(at: u64, page: u64) -> Request {
    Request::new(Ns(at), Lsn(page * 8), 8, Direction::Read)
}

#[test]
fn a_flush_takes_what_it_takes_to_program_the_buffer_and_nothing_before_a_capacitor() {
    let requests = [write(0, 0), write(0, 1), write(0, 2), Request::flush(Ns(1_000))];
    // One plane: three programs one after the other, the next page crossing when the array is free.
    let one = keeping(1, false);
    assert_eq!(times(&one, &requests), [0, 0, 0, 3 * (TRANSFER + PROGRAM)]);
    // Three channels: side by side.
    assert_eq!(times(&keeping(3, false), &requests), [0, 0, 0, TRANSFER + PROGRAM]);
    assert_eq!(times(&keeping(1, true), &requests), [0, 0, 0, 0], "power loss protection");
    let mut unbuffered = keeping(1, false);
    unbuffered.profile.write_buffer = None;
    assert_eq!(times(&unbuffered, &[write(0, 0), Request::flush(Ns(700_000))])[1], 0, "all is in flash");
    assert_eq!(times(&one, &[Request::flush(Ns(0)), Request::flush(Ns(5))]), [0, 0], "nothing to keep");
}

#[test]
fn a_flush_waits_for_what_was_there_before_it_and_for_nothing_later() {
    let config = keeping(1, false);
    let step = TRANSFER + PROGRAM;
    let mut requests = vec![write(0, 0), Request::flush(Ns(1_000))];
    // Writes go on, of other pages and of the same one; they are acknowledged at once and do not keep the first flush.
    requests.extend((1..40).map(|n| write(1_000 + n * 10_000, n % 5)));
    requests.push(Request::flush(Ns(450_000)));
    let times = times(&config, &requests);
    assert_eq!(times[1], step);
    assert!(times[2..41].iter().all(|&time| time == 0), "{times:?}");
    // The page under way, then the five pages that came meanwhile, of which page 0 in a newer version.
    assert_eq!(times[41], 1_000 + 6 * step - 450_000);
}

#[test]
fn forced_unit_access_waits_for_its_own_pages_and_a_flush_first_for_those_before() {
    let config = keeping(1, false);
    let step = TRANSFER + PROGRAM;
    let forced = |durability| Request { durability, ..write(1_000, 40) };
    let with = |durability| times(&config, &[write(0, 0), write(0, 16), forced(durability)])[2];
    assert_eq!(with(Durability::Volatile), 0);
    assert_eq!(with(Durability::ForceUnitAccess), step, "not for the pages of others");
    assert_eq!(with(Durability::FlushFirst), 2 * step);
    assert_eq!(with(Durability::FlushFirstForceUnitAccess), 3 * step);
    // A page that is on its way in an older version: one after the other.
    let again = Request { durability: Durability::ForceUnitAccess, ..write(1_001, 40) };
    assert_eq!(times(&config, &[forced(Durability::ForceUnitAccess), again])[1], 2 * step - 1);
}

#[test]
fn forced_writes_of_more_pages_than_the_buffer_has_get_through_and_so_does_a_flush_behind_them() {
    let mut config = keeping(2, false);
    config.profile.write_buffer.as_mut().unwrap().pages = 3;
    let long = Request { sectors: 8 * 20, durability: Durability::ForceUnitAccess, ..write(0, 0) };
    let times = times(&config, &[long, Request::flush(Ns(1))]);
    assert_eq!(times[0], 10 * (TRANSFER + PROGRAM));
    assert!(times[1] <= times[0]);
}

#[test]
fn discarded_pages_read_as_zeros_without_flash_and_parts_of_pages_stay() {
    for (condition, miss) in [("filled", READ + TRANSFER), ("primed", READ + TRANSFER), ("fresh", 0)] {
        let mut config = RunConfig::new(device(1, 1, 1, 1));
        config.condition = condition.parse().unwrap();
        let requests = [
            // Sectors 20 to 51: pages 3 to 5, and parts of 2 and 6.
            Request::discard(Ns(0), Lsn(20), 32),
            read(1_000_000, 2),
            read(2_000_000, 3),
            read(3_000_000, 5),
            read(4_000_000, 6),
            write(5_000_000, 4),
            read(6_000_000, 4),
        ];
        let expected = [0, miss, 0, 0, miss, TRANSFER + PROGRAM, READ + TRANSFER];
        assert_eq!(times(&config, &requests), expected, "{condition}");
    }
}

#[test]
fn a_discard_frees_what_waits_in_the_buffer_and_waits_for_what_is_on_its_way() {
    let config = keeping(1, false);
    let step = TRANSFER + PROGRAM;
    // Page 0 is on its way, page 8 waits: the discard of both waits for the first.
    let requests = [
        write(0, 0),
        Request::flush(Ns(1)),
        write(1_000, 8),
        Request::discard(Ns(2_000), Lsn(0), 8 * 16),
        Request::flush(Ns(step + 2)),
        read(2_000_000, 0),
        read(3_000_000, 8),
    ];
    assert_eq!(times(&config, &requests), [0, step, 0, step + 1 - 2_000, 0, 0, 0]);
}

#[test]
fn what_is_discarded_need_not_be_moved_when_its_block_is_collected() {
    let moved = |discards: bool| {
        let mut config = RunConfig::new(device(1, 1, 1, 2));
        config.condition = "filled".parse().unwrap();
        let mut random = generator(3, "discards");
        let mut simulator = Simulator::new(&config, Moved::default()).unwrap();
        let user = simulator.user_sectors() / 8;
        if discards {
            simulator.submit(&Request::discard(Ns(0), Lsn(0), (user / 2 * 8) as u32)).unwrap();
        }
        let before = simulator.space();
        for _ in 0..6_000 {
            // The other half is overwritten at random.
            let page = user / 2 + random.random_range(0..user / 2);
            simulator.submit(&write(simulator.now().0, page)).unwrap();
            simulator.finish_requests().unwrap();
        }
        simulator.audit().unwrap();
        (simulator.into_observer().0, before.valid)
    };
    let ((kept, full), (freed, _)) = (moved(false), moved(true));
    assert!(full > 6_000);
    assert!(5 * freed < kept, "{freed} pages moved with half of the device discarded, {kept} without");
}

#[derive(Default)]
struct Moved(u64);

impl planewise_sim::observers::Observer for Moved {
    fn collection_end(&mut self, _now: Ns, _executor: u32, what: &planewise_sim::observers::Collected) {
        self.0 += u64::from(what.moved);
    }
}

#[test]
fn a_power_cut_keeps_what_was_flushed_forced_or_protected_and_may_lose_the_rest() {
    let mut unflushed = 0;
    for seed in 0..400 {
        let mut random = generator(seed, "power cuts");
        let protected = random.random_bool(0.2);
        let mut config = keeping(random.random_range(1..4), protected);
        let buffer = config.profile.write_buffer.as_mut().unwrap();
        buffer.pages = random.random_range(1..30);
        buffer.watermark = *[0.0, 0.5, 0.95].get(random.random_range(0..3usize)).unwrap();
        (buffer.run_pages, buffer.in_flight_pages) = (random.random_range(1..8), random.random_range(1..8));
        buffer.entry_order = random.random_bool(0.5);
        config.profile.geometry.blocks_per_plane = 12;
        config.profile.geometry.pages_per_block = 8;
        (config.profile.collection.buffer_pages, config.profile.collection.replica_pages) = (0, 0);
        config.profile.translation.over_provisioning = 0.45;
        config.condition = ["fresh", "filled"][random.random_range(0..2usize)].parse().unwrap();
        config.overlap = if random.random_bool(0.3) { Overlap::Ignore } else { Overlap::Keep };
        let observer = if protected { Recovery::new() } else { Recovery::of_volatile() };
        let mut simulator = Simulator::new(&config, observer).unwrap();
        let sectors = simulator.user_sectors();
        let cut = Ns(random.random_range(0..40_000_000));
        let mut at = 0;
        loop {
            at += random.random_range(0..400_000);
            let start = random.random_range(0..sectors - 40);
            let data = Request::new(Ns(at), Lsn(start), random.random_range(1..40), Direction::Write);
            let request = match random.random_range(0..12) {
                0 => Request::flush(Ns(at)),
                1 => Request::discard(Ns(at), Lsn(start), data.sectors),
                2 => Request { durability: Durability::ForceUnitAccess, ..data },
                3 => Request { durability: Durability::FlushFirstForceUnitAccess, ..data },
                4 => Request { direction: Direction::Read, ..data },
                _ => data,
            };
            while simulator.next_event() <= cut
                && (simulator.next_event() <= request.arrival || !simulator.has_room(&request))
            {
                simulator.advance(simulator.next_event()).unwrap();
            }
            if request.arrival > cut || !simulator.has_room(&request) {
                break;
            }
            simulator.submit(&request).unwrap();
        }
        simulator.advance(cut).unwrap();
        simulator.cut_power();
        let found = simulator.observer().found().unwrap();
        assert_eq!(found.lost, 0, "seed {seed}, cut at {cut}: {:?}", found.examples);
        assert!(!protected || found.unflushed == 0, "seed {seed}");
        unflushed += found.unflushed;
    }
    assert!(unflushed > 1_000, "a volatile buffer loses what nobody flushed: {unflushed} pages");
}

#[test]
fn flushes_and_discards_are_in_no_number_of_reads_and_writes_and_pass_every_scheduler() {
    use planewise_sim::host_sched::SCHEDULERS;
    for entry in SCHEDULERS {
        let mut config = keeping(2, false);
        config.scheduler = entry.name.into();
        if entry.name == "pass" {
            config.tunables.push(("region_size".into(), "1m".into()));
        }
        config.profile.interface.command_queue = "ncq:4".into();
        let mut requests = pages(Direction::Write, 0..40);
        requests.insert(20, Request::flush(Ns(0)));
        requests.insert(30, Request::discard(Ns(0), Lsn(8 * 500), 8 * 100));
        requests.push(Request::flush(Ns(0)));
        let completions = run(&config, &requests).unwrap();
        let apart = completions.iter().filter(|completion| !completion.request.is_transfer()).count();
        assert_eq!((apart, completions.len()), (3, 43), "{}", entry.name);
    }
}

/// The read waits for a page that is coming into the read buffer; the host, which keeps no order, discards it meanwhile.
#[test]
fn a_read_under_way_may_have_the_page_that_is_discarded_meanwhile() {
    let mut profile = device(1, 1, 1, 1);
    profile.read_ahead = Some(ReadAhead {
        streams: 1,
        trigger: 2,
        window_pages: 3,
        run_pages: 2,
        buffer_pages: 6,
        dropped_by_writes: false,
    });
    for overlap in [Overlap::Ignore, Overlap::Keep] {
        let mut config = RunConfig::new(profile.clone());
        (config.condition, config.overlap) = (Condition::Filled, overlap);
        let discard = Request::discard(Ns(210_000), Lsn(0), 8 * 8);
        let requests =
            [read(0, 0), read(1, 1), read(2, 2), read(3, 3), read(200_000, 4), discard, read(900_000, 4)];
        let times = times(&config, &requests);
        assert!(times[4] > 10_000, "it was waiting when the discard came: {times:?}");
        assert_eq!(times[6], 0, "zeros");
    }
}
