//! Worked examples of both PIQ papers, and the promises of the schedulers.

mod common;

use common::{device, run};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::observers::Completion;
use planewise_sim::{RunConfig, UnitLevel};

const READ: u64 = 30_000 + 40_960;
const WRITE: u64 = 600_000 + 40_960;

/// Four units that do not share a channel, on the papers' blocking interface.
fn four_units(scheduler: &str) -> RunConfig {
    let mut profile = device(4, 1, 1, 1);
    profile.interface.command_queue = "blocking".into();
    let mut config = RunConfig::new(profile);
    config.scheduler = scheduler.into();
    config.level = UnitLevel::Chip;
    config
}

/// A request that touches units `unit` and `unit + 1`: two pages. Writes go to pages of their own: no request depends on another.
fn pair(arrival: Ns, unit: u64, direction: Direction) -> Request {
    let row = if direction == Direction::Read { 0 } else { 1 + unit + arrival.0 % 1009 };
    Request::new(arrival, Lsn((row * 4 + unit) * 8), 16, direction)
}

/// Figures 6 and 7: R0 = 0011, R1 = 0110, R2 = 1100 on four units, and three writes alike, all in the queue at once. Each
/// request conflicts with the one before it, so that arrival order serves them one by one.
fn six_requests() -> Vec<Request> {
    let reads = [2, 1, 0].map(|unit| pair(Ns::ZERO, unit, Direction::Read));
    let writes = [0, 1, 2].map(|unit| pair(Ns::ZERO, unit, Direction::Write));
    [reads, writes].concat()
}

fn makespan(completions: &[Completion]) -> u64 {
    completions.iter().map(|completion| completion.completed.0).max().unwrap()
}

#[test]
fn figure_6_noop_needs_three_read_and_three_write_cycles() {
    let completions = run(&four_units("noop"), &six_requests()).unwrap();
    assert_eq!(makespan(&completions), 3 * READ + 3 * WRITE);
}

#[test]
fn figure_7_piq_needs_two_read_and_two_write_cycles() {
    for scheduler in ["piq", "piq+"] {
        for barrier in ["issue", "complete"] {
            let mut config = four_units(scheduler);
            config.tunables.push(("barrier".into(), barrier.into()));
            let completions = run(&config, &six_requests()).unwrap();
            assert_eq!(makespan(&completions), 2 * READ + 2 * WRITE, "{scheduler}, barrier = {barrier}");
            // R0 and R2 share a batch; R1 waits for it.
            let issued = |sequence| completions.iter().find(|c| c.sequence == sequence).unwrap().issued;
            assert_eq!([issued(0), issued(2), issued(1)], [Ns(0), Ns(0), Ns(READ)]);
        }
    }
}

#[test]
fn half_the_family_needs_two_cycles_in_one_direction_only() {
    assert_eq!(makespan(&run(&four_units("piq_r"), &six_requests()).unwrap()), 2 * READ + 3 * WRITE);
    assert_eq!(makespan(&run(&four_units("piq_w"), &six_requests()).unwrap()), 3 * READ + 2 * WRITE);
    assert_eq!(makespan(&run(&four_units("rws"), &six_requests()).unwrap()), 3 * READ + 3 * WRITE);
}

#[test]
fn rws_issues_a_read_ahead_of_an_earlier_write_and_counts_it() {
    let requests = [
        pair(Ns(0), 0, Direction::Write),
        pair(Ns(10), 0, Direction::Write),
        pair(Ns(20), 0, Direction::Read),
    ];
    let read_issued = |scheduler: &str| {
        let completions = run(&four_units(scheduler), &requests).unwrap();
        completions.iter().find(|c| c.request.direction == Direction::Read).unwrap().issued
    };
    assert_eq!(read_issued("noop"), Ns(2 * WRITE));
    assert_eq!(read_issued("rws"), Ns(WRITE));
}

#[test]
fn a_late_write_batch_goes_before_reads_once_and_then_reads_have_their_turn() {
    // Reads of one unit arrive faster than it serves them; two writes to it, of two batches, wait behind.
    let mut requests = vec![pair(Ns(0), 0, Direction::Read)];
    requests.push(pair(Ns(1), 0, Direction::Write));
    requests.push(pair(Ns(2), 0, Direction::Write));
    requests.extend((1..60u64).map(|n| pair(Ns(n * 10_000), 0, Direction::Read)));
    let mut config = four_units("piq+");
    config.tunables.push(("write_wait_max_ns".into(), "500000".into()));
    let completions = run(&config, &requests).unwrap();
    let mut order: Vec<_> = completions.iter().map(|c| (c.issued, c.request.direction)).collect();
    order.sort();
    let writes: Vec<usize> = (0..order.len()).filter(|&i| order[i].1 == Direction::Write).collect();
    // Promoted at the first issue after 500 us: eight reads of 71 us started before it.
    assert_eq!(writes[0], 8, "{order:?}");
    assert!(writes[1] > writes[0] + 1, "reads have a turn between two promotions: {writes:?}");
    let last = run(&four_units("piq"), &requests).unwrap();
    let write_issue = |completions: &[Completion]| {
        completions
            .iter()
            .filter(|c| c.request.direction == Direction::Write)
            .map(|c| c.issued)
            .min()
            .unwrap()
    };
    assert!(write_issue(&completions) < write_issue(&last), "PIQ keeps writes waiting until no read waits");
}

#[test]
fn under_piq_plus_no_write_starves_while_reads_flood_the_device() {
    // 100 ms of reads at 1.4 times what a unit can serve; the writes' wait stays bounded by the threshold and the queue.
    for barrier in ["issue", "complete"] {
        let mut requests: Vec<Request> =
            (0..2000u64).map(|n| pair(Ns(n * 50_000), n % 3, Direction::Read)).collect();
        requests.extend((0..20u64).map(|n| pair(Ns(n * 5_000_000 + 1), n % 3, Direction::Write)));
        requests.sort_by_key(|request| request.arrival);
        let mut config = four_units("piq+");
        config.tunables.push(("barrier".into(), barrier.into()));
        config.queue_length = 4096;
        let completions = run(&config, &requests).unwrap();
        let longest = completions
            .iter()
            .filter(|c| c.request.direction == Direction::Write)
            .map(|c| (c.issued - c.request.arrival).0)
            .max()
            .unwrap();
        // One threshold, the batch of reads that is owed its turn (at most a read for each pair of units), one write batch.
        let bound = 1_000_000 + 3 * (2 * READ + WRITE);
        assert!(longest <= bound, "barrier = {barrier}: {longest} ns, bound {bound} ns");
    }
}

#[test]
fn under_piq_plus_reads_that_never_conflict_do_not_starve_writes_either() {
    // One read every 50 us, round robin over 32 units: all join the same batch, which never ends. Two writes over all units.
    for flood_ms in [10, 50, 200u64] {
        let mut profile = device(32, 1, 1, 1);
        profile.interface.command_queue = "blocking".into();
        let mut config = RunConfig::new(profile);
        config.scheduler = "piq+".into();
        let mut requests: Vec<Request> = (0..flood_ms * 20)
            .map(|n| Request::new(Ns(n * 50_000), Lsn(n % 32 * 8), 8, Direction::Read))
            .collect();
        for at in [1_001, 3_000_001] {
            requests.push(Request::new(Ns(at), Lsn(0), 32 * 8, Direction::Write));
        }
        requests.sort_by_key(|request| request.arrival);
        let completions = run(&config, &requests).unwrap();
        for write in completions.iter().filter(|c| c.request.direction == Direction::Write) {
            let waited = (write.issued - write.request.arrival).0;
            assert!(waited <= 1_000_000 + 2 * READ + WRITE, "{waited} ns in a flood of {flood_ms} ms");
        }
    }
}

#[test]
fn batches_work_under_orders_that_stay_on_a_chip() {
    // Plane-die-chip-channel: four pages in a row are one chip. Two requests to each of four chips are two cycles, not eight.
    let mut profile = device(4, 1, 1, 4);
    profile.translation.allocation = "pdwc".into();
    profile.interface.command_queue = "blocking".into();
    let mut config = RunConfig::new(profile);
    let requests: Vec<Request> = [0, 0, 1, 1, 2, 2, 3, 3]
        .iter()
        .enumerate()
        .map(|(n, chip)| Request::new(Ns::ZERO, Lsn((chip * 4 + n as u64 % 2 * 16) * 8), 32, Direction::Read))
        .collect();
    let noop = makespan(&run(&config, &requests).unwrap());
    config.scheduler = "piq".into();
    let piq = makespan(&run(&config, &requests).unwrap());
    assert_eq!(piq, 2 * 4 * READ);
    assert!(noop > piq, "{noop}");
}

#[test]
fn a_wrong_number_of_units_still_gives_correct_results() {
    for units in [1, 2, 3, 7, 32, 1024] {
        let mut config = four_units("piq+");
        config.told_units = Some(units);
        let requests: Vec<Request> = (0..500u64)
            .map(|n| {
                let direction = if n % 3 == 0 { Direction::Write } else { Direction::Read };
                Request::new(Ns(n * 20_000), Lsn(n * 7919 % 50_000), 1 + (n % 40) as u32, direction)
            })
            .collect();
        run(&config, &requests).unwrap();
    }
}

/// GC paper, section 4.2.2: what is blocked stays in the queue, and requests behind it go as their own chips become idle.
#[test]
fn noop_that_passes_blocked_requests_holds_back_only_those_whose_units_are_taken() {
    let requests = [
        pair(Ns(0), 0, Direction::Write),
        pair(Ns(10), 0, Direction::Read),
        pair(Ns(20), 2, Direction::Read),
        pair(Ns(30), 0, Direction::Read),
    ];
    let issued = |pass_blocked: &str| {
        let mut config = four_units("noop");
        config.tunables.push(("pass_blocked".into(), pass_blocked.into()));
        let completions = run(&config, &requests).unwrap();
        let mut issued: Vec<_> = completions.iter().map(|c| (c.sequence, c.issued)).collect();
        issued.sort();
        issued.into_iter().map(|(_, at)| at).collect::<Vec<_>>()
    };
    assert_eq!(issued("no"), [Ns(0), Ns(WRITE), Ns(WRITE), Ns(WRITE + READ)]);
    assert_eq!(issued("yes"), [Ns(0), Ns(WRITE), Ns(20), Ns(WRITE + READ)]);
}
