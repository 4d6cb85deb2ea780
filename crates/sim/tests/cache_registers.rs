//! Cache registers: transfers beside the array's work, to the nanosecond. tR 30 us, tPROG 600 us, tXFER 40.96 us, tCMD as each test says.

mod common;

use common::{device, makespan, pages, run};
use planewise_model::profile::PageLatency;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::observers::{ArrayOperation, Observer, Work};
use planewise_sim::{AdvancedUse, RunConfig, Simulator};

const TRANSFER: u64 = 40_960;
const COMMAND: u64 = 700;

fn config(chips: u32, planes: u32, read: u64, program: u64) -> RunConfig {
    let mut config = RunConfig::new(device(1, chips, 1, planes));
    let profile = &mut config.profile;
    profile.advanced_commands.cache_read = true;
    profile.advanced_commands.cache_program = true;
    profile.timing.command_ns = COMMAND;
    profile.timing.read_ns = PageLatency::Uniform(read);
    profile.timing.program_ns = PageLatency::Uniform(program);
    config.queue_length = 4096;
    config
}

/// n reads of one die: tCMD + tR + (n - 1) (tCMD + max(tR, tXFER)) + tXFER.
fn reads(count: u64, read: u64, transfer: u64) -> Ns {
    Ns(COMMAND + read + (count - 1) * (COMMAND + read.max(transfer)) + transfer)
}

/// n writes of one die: tCMD + tXFER + (n - 1) max(tCMD + tXFER, tPROG) + tPROG.
fn writes(count: u64, program: u64, transfer: u64) -> Ns {
    Ns(COMMAND + transfer + (count - 1) * (COMMAND + transfer).max(program) + program)
}

#[test]
fn reads_of_one_die_overlap_array_and_transfer() {
    for read in [0, 30_000, TRANSFER, 90_000] {
        for count in [1, 2, 3, 50] {
            let config = config(1, 1, read, 600_000);
            let found = makespan(&config, &pages(Direction::Read, 0..count));
            assert_eq!(found, reads(count, read, TRANSFER), "{count} reads, tR {read}");
        }
    }
}

#[test]
fn writes_of_one_die_overlap_transfer_and_program() {
    for program in [0, 20_000, TRANSFER + COMMAND, 600_000] {
        for count in [1, 2, 3, 50] {
            let config = config(1, 1, 30_000, program);
            let found = makespan(&config, &pages(Direction::Write, 0..count));
            assert_eq!(found, writes(count, program, TRANSFER), "{count} writes, tPROG {program}");
        }
    }
}

#[test]
fn without_either_register_the_phases_follow_one_another() {
    let mut config = config(1, 1, 30_000, 600_000);
    config.profile.advanced_commands.cache_read = false;
    let one_read = COMMAND + 30_000 + TRANSFER;
    assert_eq!(makespan(&config, &pages(Direction::Read, 0..9)), Ns(9 * one_read));
    assert_eq!(makespan(&config, &pages(Direction::Write, 0..9)), writes(9, 600_000, TRANSFER));
    config.profile.advanced_commands.cache_read = true;
    config.profile.advanced_commands.cache_program = false;
    let one_write = COMMAND + TRANSFER + 600_000;
    assert_eq!(makespan(&config, &pages(Direction::Write, 0..9)), Ns(9 * one_write));
    assert_eq!(makespan(&config, &pages(Direction::Read, 0..9)), reads(9, 30_000, TRANSFER));
    // They are advanced commands: a device that uses none has none of it.
    config.advanced = AdvancedUse::Off;
    assert_eq!(makespan(&config, &pages(Direction::Read, 0..9)), Ns(9 * one_read));
}

#[test]
fn a_change_of_direction_ends_the_pipeline() {
    // Alternating directions, first come, first served: nothing overlaps.
    let config = config(1, 1, 30_000, 600_000);
    let requests: Vec<Request> = (0..20)
        .map(|page| {
            let direction = if page % 2 == 0 { Direction::Read } else { Direction::Write };
            Request::new(Ns::ZERO, Lsn(page * 8), 8, direction)
        })
        .collect();
    let (read, write) = (COMMAND + 30_000 + TRANSFER, COMMAND + TRANSFER + 600_000);
    assert_eq!(makespan(&config, &requests), Ns(10 * (read + write)));
    // Runs of three: each direction's law holds for its run alone.
    let runs: Vec<Request> = (0..12)
        .map(|page| {
            let direction = if page / 3 % 2 == 0 { Direction::Read } else { Direction::Write };
            Request::new(Ns::ZERO, Lsn(page * 8), 8, direction)
        })
        .collect();
    let expected = 2 * (reads(3, 30_000, TRANSFER).0 + writes(3, 600_000, TRANSFER).0);
    assert_eq!(makespan(&config, &runs), Ns(expected));
}

#[test]
fn groups_of_planes_pipeline_as_pages_do() {
    // Pages 0..2n alternate between the two planes: n groups, each with two commands and two transfers.
    let config = config(1, 2, 90_000, 600_000);
    let (commands, transfers) = (2 * COMMAND, 2 * TRANSFER);
    let found = makespan(&config, &pages(Direction::Read, 0..20));
    assert_eq!(found, Ns(commands + 90_000 + 9 * (commands + 90_000.max(transfers)) + transfers));
    let found = makespan(&config, &pages(Direction::Write, 0..20));
    let load = commands + transfers;
    assert_eq!(found, Ns(load + 9 * 600_000.max(load) + 600_000));
}

#[test]
fn a_read_that_comes_during_the_transfer_waits_for_the_channel_alone() {
    let config = config(1, 1, 30_000, 600_000);
    let first = COMMAND + 30_000 + TRANSFER;
    for arrival in [1_000, COMMAND + 30_000 + 5_000] {
        let requests = [
            Request::new(Ns::ZERO, Lsn(0), 8, Direction::Read),
            Request::new(Ns(arrival), Lsn(8), 8, Direction::Read),
        ];
        let second = run(&config, &requests).unwrap()[1].completed;
        // In time for the first transfer to wait for its command, or behind that transfer.
        let expected =
            if arrival == 1_000 { reads(2, 30_000, TRANSFER).0 } else { first + COMMAND + 30_000 + TRANSFER };
        assert_eq!(second, Ns(expected), "arrival {arrival}");
    }
}

#[test]
fn chips_that_share_a_channel_keep_it_busy_with_or_without_registers() {
    // Eight chips: the channel is the limit anyway, registers gain nothing and lose nothing but where commands fall.
    for cache in [false, true] {
        let mut config = config(8, 1, 30_000, 600_000);
        config.profile.timing.command_ns = 0;
        config.profile.advanced_commands.cache_read = cache;
        let found = makespan(&config, &pages(Direction::Read, 0..800));
        assert_eq!(found, Ns(30_000 + 800 * TRANSFER), "{cache}");
    }
}

/// What a channel and an array of one die did.
#[derive(Default)]
struct Slices {
    transfers: Vec<(u64, u64)>,
    reads: Vec<(u64, u64)>,
}

impl Observer for Slices {
    fn channel_busy(&mut self, _: u32, executor: u32, from: Ns, to: Ns, _: Work) {
        assert_eq!(executor, 0, "a register is part of its executor");
        self.transfers.push((from.0, to.0));
    }

    fn array_busy(&mut self, _: u32, from: Ns, to: Ns, what: ArrayOperation, _: u32, _: Work) {
        assert_eq!(what, ArrayOperation::Read);
        self.reads.push((from.0, to.0));
    }
}

#[test]
fn the_next_command_goes_before_the_transfer_and_the_array_works_beside_it() {
    let config = config(1, 1, 30_000, 600_000);
    let mut simulator = Simulator::new(&config, Slices::default()).unwrap();
    for request in pages(Direction::Read, 0..3) {
        simulator.submit(&request).unwrap();
    }
    simulator.drain().unwrap();
    let Slices { transfers, reads } = simulator.into_observer();
    let round = COMMAND + TRANSFER;
    let first = COMMAND + 30_000;
    assert_eq!(
        reads,
        [0, 1, 2].map(|n| if n == 0 {
            (COMMAND, first)
        } else {
            let start = first + (n - 1) * round + COMMAND;
            (start, start + 30_000)
        })
    );
    let mut expected = vec![(0, COMMAND)];
    for n in 0..3 {
        let start = first + n * round;
        if n < 2 {
            expected.push((start, start + COMMAND));
            expected.push((start + COMMAND, start + round));
        } else {
            expected.push((start, start + TRANSFER));
        }
    }
    assert_eq!(transfers, expected);
}
