//! Analytic laws of docs/device-model.md: the model equals the formula, to the nanosecond.

mod common;

use common::{device, makespan, pages, run};
use planewise_model::profile::{Arbitration, PageLatency};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::{AdvancedUse, Condition, RunConfig, UnitLevel};

const TRANSFER: u64 = 40_960;
const PROGRAM: u64 = 600_000;
const READ: u64 = 30_000;

fn config(channels: u32, chips: u32, dies: u32, planes: u32) -> RunConfig {
    let mut config = RunConfig::new(device(channels, chips, dies, planes));
    config.queue_length = 4096;
    config.level = UnitLevel::Plane;
    config
}

#[test]
fn an_unloaded_read_takes_command_array_and_transfer() {
    let mut config = config(2, 2, 2, 2);
    config.profile.timing.command_ns = 700;
    for sectors in [1, 3, 8] {
        let read = [Request::new(Ns(5), Lsn(16), sectors, Direction::Read)];
        let done = run(&config, &read).unwrap()[0].completed;
        assert_eq!(done, Ns(5 + 700 + READ + u64::from(sectors) * 512 * 10));
    }
}

#[test]
fn an_unloaded_write_takes_command_transfer_and_program() {
    let mut config = config(2, 2, 2, 2);
    config.profile.timing.command_ns = 700;
    let write = [Request::new(Ns(5), Lsn(16), 8, Direction::Write)];
    assert_eq!(run(&config, &write).unwrap()[0].completed, Ns(5 + 700 + TRANSFER + PROGRAM));
}

#[test]
fn a_partial_write_reads_the_rest_of_the_page_first_unless_nothing_is_there() {
    let mut config = config(1, 1, 1, 1);
    let write = [Request::new(Ns::ZERO, Lsn(1), 3, Direction::Write)];
    let rest = 5 * 512 * 10;
    assert_eq!(makespan(&config, &write), Ns(READ + rest + TRANSFER + PROGRAM));
    config.condition = Condition::Fresh;
    assert_eq!(makespan(&config, &write), Ns(TRANSFER + PROGRAM));
}

#[test]
fn a_read_of_a_page_that_was_never_written_needs_no_flash() {
    let mut config = config(1, 1, 1, 1);
    config.condition = Condition::Fresh;
    assert_eq!(makespan(&config, &pages(Direction::Read, 0..9)), Ns::ZERO);
}

#[test]
fn on_a_primed_device_unwritten_pages_read_as_on_a_filled_one_and_all_space_is_free() {
    let reads = pages(Direction::Read, (0..40).map(|n| n * 7));
    let mut primed = config(2, 2, 2, 2);
    primed.condition = Condition::Primed;
    assert_eq!(run(&primed, &reads).unwrap(), run(&config(2, 2, 2, 2), &reads).unwrap());
    // A partial write of a page that nobody wrote has nothing to read first.
    let write = [Request::new(Ns::ZERO, Lsn(1), 3, Direction::Write)];
    assert_eq!(makespan(&primed, &write), Ns(TRANSFER + PROGRAM));
}

#[test]
fn page_types_have_their_own_latencies() {
    let mut config = config(1, 1, 1, 1);
    config.condition = Condition::Fresh;
    config.profile.timing.program_ns = PageLatency::PerType(vec![200_000, 900_000]);
    // Pages of a block alternate: three programs take 200 + 900 + 200 us and three transfers.
    assert_eq!(makespan(&config, &pages(Direction::Write, 0..3)), Ns(1_300_000 + 3 * TRANSFER));
}

#[test]
fn streaming_reads_are_bound_by_the_channel_and_scale_with_channels() {
    // 8 chips a channel keep the channel busy from the first array read to the end.
    let count = 4000;
    for channels in [1, 2, 4] {
        let config = config(channels, 8, 1, 1);
        let expected = READ + count / u64::from(channels) * TRANSFER;
        assert_eq!(makespan(&config, &pages(Direction::Read, 0..count)), Ns(expected), "{channels} channels");
    }
}

#[test]
fn streaming_writes_of_one_chip_are_bound_by_program_and_transfer() {
    let mut config = config(1, 1, 1, 1);
    config.advanced = AdvancedUse::Off;
    assert_eq!(makespan(&config, &pages(Direction::Write, 0..100)), Ns(100 * (TRANSFER + PROGRAM)));
}

/// 2000 writes of 4 KiB at once on a fresh device: the makespan that pen and paper give.
///
/// `lanes` executors share a channel; each repeats (k transfers, program). With few of them the channel is never the
/// bottleneck: the last lane starts when the transfers of those before it are through, and is not held up again.
fn analytic(channels: u64, chips: u64, dies: u64, planes: u64) -> Ns {
    let lanes = chips * dies;
    let pages_a_lane = 2000 / (channels * lanes);
    let rounds = pages_a_lane / planes;
    let cycle = planes * TRANSFER + PROGRAM;
    assert!(lanes * planes * TRANSFER <= cycle, "the channel is not the bottleneck");
    Ns((lanes - 1) * planes * TRANSFER + rounds * cycle)
}

#[test]
fn parallelism_is_real_two_thousand_writes_finish_in_the_analytic_makespan() {
    let writes = pages(Direction::Write, 0..2000);
    for (channels, chips, dies, planes) in [
        (1, 1, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 1, 1),
        (1, 1, 2, 1),
        (1, 1, 1, 2),
        (1, 1, 2, 2),
        (1, 2, 1, 2),
        (2, 2, 2, 2),
        (4, 4, 1, 1),
        (2, 1, 1, 4),
        (5, 1, 4, 1),
    ] {
        for condition in [Condition::Fresh, Condition::Filled] {
            let mut config = config(channels, chips, dies, planes);
            config.condition = condition;
            config.profile.collection.threshold = 0.0;
            config.profile.geometry.blocks_per_plane = 512;
            let expected = analytic(channels.into(), chips.into(), dies.into(), planes.into());
            let found = makespan(&config, &writes);
            assert_eq!(found, expected, "{channels} x {chips} x {dies} x {planes} {condition}");
        }
    }
}

#[test]
fn the_published_makespans_come_out() {
    let writes = pages(Direction::Write, 0..2000);
    let milliseconds = |config: &RunConfig| makespan(config, &writes).0 as f64 / 1e6;
    let of = |channels, chips, dies, planes| {
        let mut config = config(channels, chips, dies, planes);
        config.condition = Condition::Fresh;
        milliseconds(&config)
    };
    assert_eq!(of(1, 1, 1, 1), 1281.92);
    assert!((of(1, 1, 2, 1) - 1281.92 / 2.0).abs() < 0.05);
    assert!((of(1, 2, 1, 1) - 1281.92 / 2.0).abs() < 0.05);
    assert_eq!(of(2, 1, 1, 1), 640.96);
    assert_eq!(of(1, 1, 1, 2), 681.92);
    assert!((of(1, 1, 2, 2) - 681.92 / 2.0).abs() < 0.1);
}

#[test]
fn without_advanced_commands_dies_and_planes_bring_nothing() {
    let writes = pages(Direction::Write, 0..2000);
    for (dies, planes) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
        let mut config = config(1, 1, dies, planes);
        config.condition = Condition::Fresh;
        config.advanced = AdvancedUse::Off;
        assert_eq!(makespan(&config, &writes), Ns(2000 * (TRANSFER + PROGRAM)), "{dies} x {planes}");
    }
}

#[test]
fn the_blocking_interface_reaches_the_same_makespans() {
    let writes = pages(Direction::Write, 0..2000);
    // Not for 2 x 2: when one die ends before the other, the head of the queue waits for the other and holds back the partner
    // plane of the first. That is what a blocking interface costs, and what PIQ is for.
    for (dies, planes) in [(1, 1), (2, 1), (1, 2)] {
        let mut config = config(1, 1, dies, planes);
        config.condition = Condition::Fresh;
        config.profile.interface.command_queue = "blocking".into();
        assert_eq!(
            makespan(&config, &writes),
            analytic(1, 1, dies.into(), planes.into()),
            "{dies} x {planes}"
        );
    }
}

#[test]
fn multi_plane_needs_the_same_page_offset() {
    // One write to plane 0 alone puts the planes out of step: the pairs after it can no longer share an operation.
    let mut config = config(1, 1, 1, 2);
    config.condition = Condition::Fresh;
    let writes = pages(Direction::Write, [0, 4, 1, 2, 3]);
    let alone = TRANSFER + PROGRAM;
    // 0 | 4 | 1+2? page 2 is plane 0 at offset 2, plane 1 at offset 0: every write runs alone.
    assert_eq!(makespan(&config, &writes), Ns(5 * alone));
    let paired = pages(Direction::Write, [0, 1, 2, 3]);
    assert_eq!(makespan(&config, &paired), Ns(2 * (2 * TRANSFER + PROGRAM)));
}

#[test]
fn a_read_first_flash_scheduler_lets_reads_pass_writes_inside_the_device() {
    let mut config = config(1, 1, 1, 1);
    let mut requests = pages(Direction::Write, 0..3);
    requests.extend(pages(Direction::Read, 10..11));
    let read_done = |scheduler: &str, config: &mut RunConfig| {
        config.profile.interface.flash_scheduler = scheduler.into();
        let completions = run(config, &requests).unwrap();
        completions.iter().find(|c| c.request.direction == Direction::Read).unwrap().completed
    };
    let write = TRANSFER + PROGRAM;
    assert_eq!(read_done("fcfs", &mut config), Ns(3 * write + READ + TRANSFER));
    assert_eq!(read_done("read-first", &mut config), Ns(READ + TRANSFER));
}

/// Dynamic allocation binds a write when a plane can take it: the first that is through, not the next in the round.
#[test]
fn a_write_that_finds_every_plane_busy_goes_to_the_first_that_is_free() {
    let mut profile = device(2, 1, 1, 1);
    profile.translation.allocation = "dynamic".into();
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Filled;
    // Filling puts even pages on chip 0: forty reads of it take 2.84 ms. One write has chip 1, the next finds nothing free.
    let mut requests: Vec<Request> =
        (0..40).map(|n| Request::new(Ns::ZERO, Lsn(n * 16), 8, Direction::Read)).collect();
    let write = |at: u64, page: u64| Request::new(Ns(at), Lsn(page * 8), 8, Direction::Write);
    requests.extend([write(0, 1), write(10_000, 3), write(20_000, 5)]);
    let completions = run(&config, &requests).unwrap();
    let done = |number: u64| completions.iter().find(|c| c.sequence == number).unwrap().completed;
    let program = 40_960 + 600_000;
    assert_eq!(
        [done(40), done(41), done(42)],
        [1, 2, 3].map(|n| Ns(n * program)),
        "one after the other on chip 1"
    );
}

/// Writes that wait for a plane still share multi-plane operations.
#[test]
fn writes_bound_late_are_programmed_two_planes_at_a_time() {
    let mut profile = device(1, 1, 1, 2);
    profile.translation.allocation = "dynamic".into();
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Fresh;
    (config.level, config.advanced) = (UnitLevel::Plane, AdvancedUse::On);
    let requests: Vec<Request> =
        (0..20).map(|n| Request::new(Ns::ZERO, Lsn(n * 8), 8, Direction::Write)).collect();
    let last = run(&config, &requests).unwrap().iter().map(|c| c.completed).max().unwrap();
    assert!(last <= Ns(11 * (2 * 40_960 + 600_000)), "{last} for twenty pages");
}

/// Reads of two packages on one channel, all there at the beginning: `count` of each, with the command cycles named.
fn two_packages(arbitration: Arbitration, count: u64, command_ns: u64) -> u64 {
    let mut config = RunConfig::new(device(1, 2, 1, 1));
    config.queue_length = 4096;
    config.profile.timing.command_ns = command_ns;
    config.profile.interface.arbitration = arbitration;
    makespan(&config, &pages(Direction::Read, 0..2 * count)).0
}

#[test]
fn two_packages_of_a_channel_fall_into_step_unless_commands_pass_transfers() {
    // READ < TRANSFER: an array is through before the other package's transfer.
    for count in [1, 2, 3, 1000] {
        for command in [200, 5_000, 25_000] {
            // Both arrays read at the same time, the second command behind the first array's, and then both transfer.
            let fifo = count * (command + READ + 2 * TRANSFER);
            assert_eq!(two_packages(Arbitration::Fifo, count, command), fifo, "{count} reads each");
            // The first command and array; then all transfers and all but the first two commands, without a gap.
            let first = command + READ + 2 * count * TRANSFER + (2 * count - 2) * command;
            assert_eq!(two_packages(Arbitration::CommandsFirst, count, command), first, "{count} reads each");
        }
    }
}

#[test]
fn a_command_waits_for_the_transfer_under_way_and_passes_those_behind_it() {
    // Three packages. Page 3 is behind page 0 on the first; the transfers of 1 and 2 wait while that of 0 is under way.
    let ends = |arbitration: Arbitration| -> Vec<u64> {
        let mut config = RunConfig::new(device(1, 3, 1, 1));
        config.profile.timing.command_ns = 1_000;
        config.profile.interface.arbitration = arbitration;
        run(&config, &pages(Direction::Read, 0..4)).unwrap().iter().map(|c| c.completed.0).collect()
    };
    let first = 1_000 + READ + TRANSFER;
    let last = first + 2 * TRANSFER + 1_000;
    assert_eq!(
        ends(Arbitration::Fifo),
        [first, first + TRANSFER, first + 2 * TRANSFER, last + READ + TRANSFER]
    );
    let passed = [first, first + 1_000 + TRANSFER, first + 1_000 + 2 * TRANSFER, last + TRANSFER];
    assert_eq!(ends(Arbitration::CommandsFirst), passed);
}

#[test]
fn writes_and_single_packages_are_the_same_whoever_goes_first() {
    for direction in [Direction::Read, Direction::Write] {
        let of = |arbitration: Arbitration, chips: u32| {
            let mut config = RunConfig::new(device(2, chips, 1, 1));
            config.profile.timing.command_ns = 1_000;
            config.profile.interface.arbitration = arbitration;
            makespan(&config, &pages(direction, 0..200))
        };
        let chips = if direction == Direction::Read { 1 } else { 4 };
        assert_eq!(of(Arbitration::Fifo, chips), of(Arbitration::CommandsFirst, chips), "{direction:?}");
    }
}
