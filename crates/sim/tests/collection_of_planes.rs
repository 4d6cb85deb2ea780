//! Collections of an executor's planes: when the second one begins, and what they do side by side.

mod common;

use common::{aged, device, run, watch};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::gc::SCHEMES;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::{ArrayOperation, Cause, Collected, Observer, Work};
use planewise_sim::{Condition, RunConfig};
use rand::RngExt;

/// One die of planes of 64 blocks of 4 pages, 64 pages of 256 free; a plane is collected below 61.44.
fn die(scheme: &str, planes: u32) -> RunConfig {
    let mut profile = device(1, 1, 1, planes);
    profile.geometry.pages_per_block = 4;
    profile.interface.command_queue = "ncq:32".into();
    profile.translation.over_provisioning = 0.25;
    (profile.collection.threshold, profile.collection.ahead) = (0.24, 0.24);
    profile.collection.scheme = scheme.into();
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Filled;
    config
}

/// Overwrites of the first three pages of each of some planes, one of each at a time: the third takes them below the threshold.
fn three_of_each(planes: &[u64], of: u64) -> Vec<Request> {
    let write = |round: u64, plane: u64| {
        Request::new(Ns(round * 2_000_000), Lsn((round * of + plane) * 8), 8, Direction::Write)
    };
    (0..3).flat_map(|round| planes.iter().map(move |&plane| write(round, plane))).collect()
}

/// When collections began and ended, and on which planes.
#[derive(Default)]
struct Times {
    began: Vec<Ns>,
    ended: Vec<(Ns, u32)>,
}

impl Observer for Times {
    fn collection_start(&mut self, now: Ns, _executor: u32, _cause: Cause) {
        self.began.push(now);
    }

    fn collection_end(&mut self, now: Ns, _executor: u32, what: &Collected) {
        self.ended.push((now, what.plane));
    }
}

/// Both planes of a die fell below the threshold at once, and nobody writes any more.
#[test]
fn a_plane_that_fell_below_while_its_die_was_taken_is_collected_next_not_at_its_next_write() {
    for scheme in SCHEMES {
        let config = die(scheme.name, 3);
        let (invariants, times) =
            watch(&config, &three_of_each(&[0, 2], 3), (Invariants::new(), Times::default()));
        invariants.report().unwrap_or_else(|violations| panic!("{}: {violations}", scheme.name));
        let mut planes: Vec<u32> = times.ended.iter().map(|&(_, plane)| plane).collect();
        planes.sort_unstable();
        assert_eq!(planes, [0, 2], "{}: one each, and none of the plane that has room", scheme.name);
        if scheme.bound || scheme.name == "parallel" {
            assert_eq!(times.began[0], times.began[1]);
        } else {
            assert_eq!(times.began[1], times.ended[0].0, "{}: at once", scheme.name);
        }
    }
}

/// A plane whose collection leaves it below the threshold is collected again when it is written again: one collection for each write that
/// finds it there, as in the papers' simulator. Else a threshold that a drive cannot reach would have it collect for ever.
#[test]
fn a_plane_that_stays_below_is_collected_once_for_each_write() {
    let mut config = die("traditional", 2);
    // 64 are free of 256: none of these writes finds a plane above.
    (config.profile.collection.threshold, config.profile.collection.ahead) = (0.4, 0.4);
    let requests = three_of_each(&[0], 2)
        .into_iter()
        .map(|request| Request { arrival: Ns(request.arrival.0 * 20), ..request });
    let times = watch(&config, &requests.collect::<Vec<_>>(), Times::default());
    assert_eq!(times.ended.iter().map(|&(_, plane)| plane).collect::<Vec<_>>(), [0, 0, 0]);
}

/// Array operations of collections: what, of how many planes, and when they ended.
#[derive(Default)]
struct Operations(Vec<(ArrayOperation, u32, Ns)>);

impl Operations {
    fn of(&self, what: ArrayOperation) -> Vec<u32> {
        self.0.iter().filter(|operation| operation.0 == what).map(|&(_, planes, _)| planes).collect()
    }
}

impl Observer for Operations {
    fn array_busy(
        &mut self,
        _executor: u32,
        _from: Ns,
        to: Ns,
        what: ArrayOperation,
        planes: u32,
        work: Work,
    ) {
        if work == Work::Collection {
            self.0.push((what, planes, to));
        }
    }
}

/// n planes whose victims and open blocks are level: one read, one program and one erase for all of them, and n transfers each way.
#[test]
fn planes_side_by_side_take_the_array_time_of_one_and_the_transfers_of_all() {
    const TRANSFER: u64 = 40_960;
    for planes in [2, 3, 4] {
        for command in [0, 300] {
            let span = |scheme: &str, copyback: bool| {
                let mut config = die(scheme, planes);
                config.profile.timing.command_ns = command;
                config.profile.advanced_commands.copyback = copyback;
                let all: Vec<u64> = (0..u64::from(planes)).collect();
                let requests = three_of_each(&all, u64::from(planes));
                let (times, operations) =
                    watch(&config, &requests, (Times::default(), Operations::default()));
                assert_eq!(times.ended.len(), planes as usize, "{scheme}");
                ((times.ended.last().unwrap().0 - times.began[0]).0, operations)
            };
            let n = u64::from(planes);
            let (together, operations) = span("parallel", false);
            let read_and_program = 30_000 + 600_000 + n * (2 * command + 2 * TRANSFER);
            assert_eq!(together, read_and_program + n * command + 3_000_000);
            for what in [ArrayOperation::Read, ArrayOperation::Program, ArrayOperation::Erase] {
                assert_eq!(operations.of(what), [planes], "{what:?}");
            }
            let (apart, operations) = span("traditional", false);
            assert_eq!(apart, n * (30_000 + 600_000 + 2 * command + 2 * TRANSFER + command + 3_000_000));
            assert_eq!(operations.of(ArrayOperation::Erase), vec![1; planes as usize]);
            let (together, operations) = span("parallel", true);
            assert_eq!(together, n * command + 630_000 + n * command + 3_000_000);
            assert_eq!(operations.of(ArrayOperation::Copyback), [planes]);
            assert_eq!(span("traditional", true).0, n * (2 * command + 630_000 + 3_000_000));
        }
    }
}

/// Two planes, the open block of the second `behind` pages behind that of the first, and `valid` pages to move in each: first one of them alone until they are
/// level, then both, then what one has left; if that keeps the host waiting for less than one collection and, later, the other.
#[test]
fn planes_that_are_not_level_move_pages_alone_until_they_are_or_do_not_join() {
    const PAGES: u32 = 16;
    // The write with which the first plane falls below; none of them closes the open block.
    const LAST: u32 = 15;
    let (mut joined, mut left_alone) = (0, 0);
    for behind in 1..LAST {
        for (first, second) in [(1, 1), (1, 12), (4, 4), (4, 15), (8, 8), (8, 9), (14, 14), (15, 15), (3, 7)]
        {
            if second > LAST - behind {
                continue;
            }
            let mut config = die("parallel", 2);
            config.profile.geometry.pages_per_block = PAGES;
            (config.profile.collection.threshold, config.profile.collection.ahead) = (241.5 / 1024.0, 0.25);
            // So many pages of each victim are overwritten, the last of them again and again: the open block goes on.
            let plane = |plane: u32, writes: u32, overwritten: u32| {
                (0..writes).map(move |write| {
                    let page = u64::from(write.min(overwritten - 1) * 2 + plane);
                    Request::new(Ns::ZERO, Lsn(page * 8), 8, Direction::Write)
                })
            };
            let requests = plane(1, LAST - behind, second).chain(plane(0, LAST, first));
            let requests: Vec<Request> = requests
                .enumerate()
                .map(|(number, request)| Request { arrival: Ns(number as u64 * 700_000), ..request })
                .collect();
            let (invariants, (times, operations)) =
                watch(&config, &requests, (Invariants::new(), (Times::default(), Operations::default())));
            invariants.report().unwrap_or_else(|violations| panic!("{violations}"));
            let case = format!("{behind} behind, {first} and {second} overwritten: {:?}", operations.0);
            let valid = [PAGES - first, PAGES - second];
            // Whichever way round is shorter.
            let (alone, last, other) = if behind < PAGES / 2 {
                (behind, valid[1], valid[0])
            } else {
                (PAGES - behind, valid[0], valid[1])
            };
            let expected = if last >= alone { alone + (last - alone).max(other) } else { last + other };
            let time = |programs: u32, moves: u32| {
                f64::from(programs * 600_000 + moves * (30_000 + 2 * 40_960) + 3_000_000)
            };
            let together = time(expected, valid[0] + valid[1]);
            let apart = valid.map(|valid| time(valid, valid));
            if together * together > apart[0] * apart[0] + apart[1] * apart[1] {
                assert_eq!(operations.of(ArrayOperation::Erase), [1], "{case}");
                left_alone += 1;
                continue;
            }
            assert_eq!(times.ended.len(), 2, "{case}");
            assert_eq!(operations.of(ArrayOperation::Erase), [2], "{case}");
            let programs = operations.of(ArrayOperation::Program);
            assert_eq!(programs.iter().sum::<u32>(), valid[0] + valid[1], "{case}");
            assert_eq!(programs.len(), expected as usize, "{case}");
            joined += 1;
        }
    }
    assert!(joined > 25 && left_alone > 10, "{joined} joined, {left_alone} were left alone");
}

/// Pages that the host writes elsewhere between their read and their program are not programmed: dynamic allocation, other dies.
#[test]
fn invariants_hold_when_planes_collect_side_by_side_under_load() {
    let mut together = 0;
    for seed in 0..40 {
        let mut random = generator(seed, "loads of planes side by side");
        let mut config = aged("parallel");
        config.profile.geometry.planes_per_die = random.random_range(2..=4);
        config.profile.geometry.pages_per_block = random.random_range(3..=20);
        config.profile.advanced_commands.copyback = random.random_bool(0.3);
        config.profile.advanced_commands.copyback_same_parity = random.random_bool(0.5);
        config.profile.advanced_commands.multi_plane_same_block = random.random_bool(0.2);
        config.profile.advanced_commands.die_interleave = random.random_bool(0.7);
        config.profile.collection.hot_cold_separation = random.random_bool(0.5);
        config.profile.collection.ahead = 0.15;
        config.profile.translation.wear_levelling =
            ["none", "dynamic", "static:2"][random.random_range(0..3)].into();
        config.profile.interface.command_queue = ["blocking", "ncq:32"][random.random_range(0..2)].into();
        config.profile.translation.allocation = ["dynamic", "cwdp", "pdwc"][random.random_range(0..3)].into();
        let pages = config.profile.user_capacity().0 / 4096 / random.random_range(1..=8);
        let gap = random.random_range(20..400);
        let requests: Vec<Request> = (0..3_000u64)
            .map(|number| {
                let write = random.random_bool(0.8);
                let direction = if write { Direction::Write } else { Direction::Read };
                let sectors = random.random_range(1..=20);
                let start = random.random_range(0..pages * 8 - sectors);
                Request::new(Ns(number * gap * 1000), Lsn(start), sectors as u32, direction)
            })
            .collect();
        // `run` checks all invariants and audits the tables.
        run(&config, &requests).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let operations = watch(&config, &requests, Operations::default());
        together += operations.of(ArrayOperation::Erase).iter().filter(|&&planes| planes > 1).count();
    }
    assert!(together > 1_000, "{together} erases of several planes");
}
