//! The schedulers of Linux and their relatives, step by step: what distinguishes each, seen in the order in which requests
//! are issued to a device that takes one at a time.

mod common;

use common::{closed, device, makespan, run};
use planewise_model::profile::{PageLatency, Profile};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host::{Merging, Overlap, RequestPools};
use planewise_sim::host_sched::{SCHEDULERS, TunableKind};
use planewise_sim::observers::Completion;
use planewise_sim::{RunConfig, Simulator};
use rand::RngExt;

/// Service of one page alone: a read, a write.
const READ: u64 = 30_000 + 40_960;
const WRITE: u64 = 600_000 + 40_960;

/// One request at a time on one plane.
fn single(scheduler: &str, tunables: &[(&str, u64)]) -> RunConfig {
    let mut profile = device(1, 1, 1, 1);
    profile.interface.command_queue = "ncq:1".into();
    RunConfig {
        scheduler: scheduler.into(),
        tunables: tunables.iter().map(|(name, value)| ((*name).into(), value.to_string())).collect(),
        queue_length: 256,
        ..RunConfig::new(profile)
    }
}

/// A page read or written by a process at a time.
fn page(at: u64, process: u32, direction: Direction, page: u64) -> Request {
    Request { process, ..Request::new(Ns(at), Lsn(page * 8), 8, direction) }
}

fn read(at: u64, process: u32, number: u64) -> Request {
    page(at, process, Direction::Read, number)
}

fn write(at: u64, process: u32, number: u64) -> Request {
    page(at, process, Direction::Write, number)
}

/// Completions in the order of issue.
fn issued(config: &RunConfig, requests: &[Request]) -> Vec<Completion> {
    let mut completions = run(config, requests).unwrap();
    completions.sort_by_key(|completion| (completion.issued, completion.sequence));
    completions
}

/// Pages in the order of issue; reads as they are, writes negative.
fn order(config: &RunConfig, requests: &[Request]) -> Vec<i64> {
    let page = |completion: &Completion| {
        let page = (completion.request.start.0 / 8) as i64;
        if completion.request.direction == Direction::Read { page } else { -page }
    };
    issued(config, requests).iter().map(page).collect()
}

/// Lengths of the runs of equal marks in the order of issue.
fn runs<M: PartialEq>(
    config: &RunConfig,
    requests: &[Request],
    mark: impl Fn(&Request) -> M,
) -> Vec<(M, u32)> {
    let mut runs: Vec<(M, u32)> = Vec::new();
    for completion in issued(config, requests) {
        let mark = mark(&completion.request);
        match runs.last_mut() {
            Some((last, count)) if *last == mark => *count += 1,
            _ => runs.push((mark, 1)),
        }
    }
    runs
}

#[test]
fn deadline_begins_a_batch_with_the_oldest_and_mq_deadline_where_its_direction_was() {
    let requests = [read(0, 0, 1), read(1, 0, 30), read(1, 0, 10), read(1, 0, 20)];
    assert_eq!(order(&single("deadline", &[]), &requests), [1, 30, 10, 20]);
    assert_eq!(order(&single("mq-deadline", &[]), &requests), [1, 10, 20, 30]);
}

#[test]
fn mq_deadline_keeps_the_position_of_a_direction_while_the_other_has_its_batch() {
    let requests = [
        read(0, 0, 1),
        read(1, 0, 30),
        read(1, 0, 5),
        read(1, 0, 20),
        read(1, 0, 10),
        write(1, 0, 200),
        write(1, 0, 100),
    ];
    let config = single("mq-deadline", &[("fifo_batch", 1), ("writes_starved", 1)]);
    assert_eq!(order(&config, &requests), [1, 5, -100, 10, -200, 20, 30]);
}

#[test]
fn two_batches_of_reads_starve_writes_and_then_these_have_one() {
    // The first read comes alone. Under deadline it is a batch; under mq-deadline the next by address goes on with it.
    for (scheduler, expected) in [("deadline", [5, 2, 4, 2, 3, 2]), ("mq-deadline", [6, 2, 4, 2, 2, 2])] {
        let mut requests = vec![read(0, 0, 0)];
        requests.extend((0..6).map(|n| write(1, 0, 100 + n)));
        requests.extend((1..12).map(|n| read(1, 0, n)));
        let runs = runs(&single(scheduler, &[("fifo_batch", 2)]), &requests, |request| request.direction);
        let directions = Direction::ALL.into_iter().cycle();
        assert_eq!(runs, directions.zip(expected).collect::<Vec<_>>(), "{scheduler}");
    }
}

#[test]
fn an_expired_request_goes_first_at_the_next_batch_and_not_before() {
    let mut requests = vec![read(0, 0, 50), read(1, 0, 40)];
    requests.extend((60..70).map(|n| read(1, 0, n)));
    let late = |expire| {
        let config = single("mq-deadline", &[("fifo_batch", 4), ("read_expire", expire)]);
        order(&config, &requests).iter().position(|page| *page == 40).unwrap()
    };
    assert_eq!(late(0), 4, "after the batch 50, 60, 61, 62");
    assert_eq!(late(500), 11, "at the end of the sweep");
}

#[test]
fn while_the_device_is_full_one_request_is_taken_ahead_and_goes_next_whatever_arrives() {
    // As a kernel of 6.12 does it (`__blk_mq_do_dispatch_sched` takes requests until one finds no tag): 40 is taken when it arrives, alone, and so
    // goes before the reads that go on behind 50.
    let mut requests = vec![read(0, 0, 50), read(1, 0, 40)];
    requests.extend((60..64).map(|n| read(2, 0, n)));
    for scheduler in ["mq-deadline", "kyber"] {
        assert_eq!(order(&single(scheduler, &[]), &requests), [50, 40, 60, 61, 62, 63], "{scheduler}");
    }
    // With room for two, the two that find it go as they come, and the third is the one that was taken ahead.
    let mut config = single("mq-deadline", &[]);
    config.profile = device(2, 1, 1, 1);
    config.profile.interface.command_queue = "ncq:2".into();
    let requests = [read(0, 0, 50), read(1, 0, 60), read(2, 0, 40), read(3, 0, 61), read(4, 0, 62)];
    assert_eq!(order(&config, &requests), [50, 60, 40, 61, 62]);
}

#[test]
fn mq_deadline_begins_with_writes() {
    // As in Linux (`dd_init_sched`), when both are there before anything was dispatched.
    let requests = [read(0, 0, 1), write(0, 0, 100), write(0, 0, 101)];
    assert_eq!(order(&single("mq-deadline", &[]), &requests), [-100, -101, 1]);
}

/// Two processes that want the disk all the time, `count` reads each, far apart.
fn two_readers(count: u64) -> Vec<Request> {
    (0..count).flat_map(|n| [read(0, 1, n), read(0, 2, 2000 + n)]).collect()
}

#[test]
fn cfq_gives_each_process_its_slice_from_the_end_of_its_first_request() {
    let config = single("cfq", &[("slice_sync", 1)]);
    // 16 reads begin before the end of the first and a millisecond more.
    assert_eq!((READ + 1_000_000) / READ, 15);
    let runs = runs(&config, &two_readers(30), |request| request.process);
    assert_eq!(runs, [(1, 16), (2, 16), (1, 14), (2, 14)]);
}

#[test]
fn cfq_serves_a_synchronous_request_before_the_asynchronous_ones_that_have_the_disk() {
    let mut requests: Vec<Request> = (0..8).map(|n| write(0, 1, n)).collect();
    requests.push(read(1, 2, 1000));
    assert_eq!(order(&single("cfq", &[]), &requests), [0, 1000, -1, -2, -3, -4, -5, -6, -7]);
    let synchronous = Request { synchronous: true, ..write(1, 2, 1000) };
    requests[8] = synchronous;
    assert_eq!(order(&single("cfq", &[]), &requests), [0, -1000, -1, -2, -3, -4, -5, -6, -7]);
}

#[test]
fn an_asynchronous_slice_of_cfq_is_sixteen_requests_when_others_wait() {
    // Writes that take no longer than their transfer, so that the number ends the slice and not the time.
    let mut config = single("cfq", &[("slice_sync", 1), ("slice_async", 1)]);
    config.profile.timing.program_ns = PageLatency::Uniform(1_000);
    let requests: Vec<Request> =
        (0..40).map(|n| read(0, 1, n)).chain((0..20).map(|n| write(0, 2, 2000 + n))).collect();
    let runs_of = |config: &RunConfig| runs(config, &requests, |request| request.process);
    assert_eq!(runs_of(&config), [(1, 16), (2, 16), (1, 16), (2, 4), (1, 8)]);
    config.tunables.push(("slice_async_rq".into(), "1".into()));
    assert_eq!(runs_of(&config)[1], (2, 8));
}

#[test]
fn cfq_lets_asynchronous_requests_out_one_by_one_unless_low_latency_is_off() {
    let mut profile = device(8, 1, 1, 1);
    profile.interface.command_queue = "ncq:32".into();
    let requests: Vec<Request> = (0..8).map(|n| write(0, 1, n)).collect();
    let last_issue = |low_latency: &str| {
        let config = RunConfig {
            scheduler: "cfq".into(),
            tunables: vec![("low_latency".into(), low_latency.into())],
            ..RunConfig::new(profile.clone())
        };
        issued(&config, &requests).last().unwrap().issued
    };
    assert_eq!(last_issue("1"), Ns(7 * WRITE));
    assert_eq!(last_issue("0"), Ns::ZERO, "alone it may have four quanta of four at the device");
}

#[test]
fn cfq_idles_for_a_process_on_a_rotating_disk_and_never_on_one_that_queues_without_rotating() {
    // Process 1 thinks for a millisecond between two reads; the read of process 2 is far away.
    let requests = [read(0, 1, 0), read(10_000, 2, 3000), read(READ + 1_000_000, 1, 1)];
    let config = single("cfq", &[("rotational", 1)]);
    assert_eq!(order(&config, &requests), [0, 1, 3000]);
    // The wait for a third read ends 8 ms after the second.
    assert_eq!(issued(&config, &requests)[2].issued, Ns(2 * READ + 1_000_000 + 8_000_000));
    let config = single("cfq", &[("rotational", 0)]);
    assert_eq!(order(&config, &requests), [0, 3000, 1]);
    assert_eq!(issued(&config, &requests)[1].issued, Ns(READ));
    let config = single("cfq", &[("rotational", 1), ("slice_idle", 0)]);
    assert_eq!(issued(&config, &requests)[1].issued, Ns(READ));
}

#[test]
fn cfq_does_not_idle_when_the_next_process_works_close_by() {
    let requests = [read(0, 1, 0), read(10_000, 2, 5), read(READ + 1_000_000, 1, 1)];
    assert_eq!(order(&single("cfq", &[("rotational", 1)]), &requests), [0, 5, 1]);
}

#[test]
fn cfq_stops_idling_for_a_process_that_thinks_too_long() {
    // Reads of process 1 every 20 ms; after each one, a far one of process 2 waits.
    let requests: Vec<Request> = (0..6)
        .flat_map(|n| [read(n * 20_000_000, 1, n), read(n * 20_000_000 + 10_000, 2, 3000 + 500 * (n % 2))])
        .collect();
    let config = single("cfq", &[("rotational", 1)]);
    let completions = issued(&config, &requests);
    let waited: Vec<u64> = completions
        .iter()
        .filter(|completion| completion.request.process == 2)
        .map(|completion| (completion.issued - completion.request.arrival).0)
        .collect();
    assert_eq!(waited[0], READ - 10_000 + 8_000_000);
    assert_eq!(waited[4..], [READ - 10_000; 2], "three think times are known: {waited:?}");
}

#[test]
fn anticipation_keeps_the_disk_for_the_next_read_of_a_process() {
    let requests = [read(0, 1, 0), read(10_000, 2, 3000), read(1_000_000, 1, 1)];
    assert_eq!(order(&single("deadline", &[]), &requests), [0, 3000, 1]);
    let config = single("anticipatory", &[]);
    assert_eq!(order(&config, &requests), [0, 1, 3000]);
    assert_eq!(issued(&config, &requests)[2].issued, Ns(1_000_000 + READ + 6_000_000), "then in vain");
    assert_eq!(order(&single("anticipatory", &[("antic_expire", 0)]), &requests), [0, 3000, 1]);
}

#[test]
fn anticipation_ends_with_its_time_and_is_not_tried_on_slow_thinkers() {
    let late = [read(0, 1, 0), read(10_000, 2, 3000), read(READ + 6_000_001, 1, 1)];
    let config = single("anticipatory", &[]);
    assert_eq!(issued(&config, &late)[1].issued, Ns(READ + 6_000_000));
    let requests: Vec<Request> = (0..4)
        .flat_map(|n| [read(n * 30_000_000, 1, n), read(n * 30_000_000 + 10_000, 2, 3000 + n)])
        .collect();
    let completions = issued(&config, &requests);
    let waited = |index: usize| (completions[index].issued - completions[index].request.arrival).0;
    assert_eq!(waited(1), READ - 10_000 + 6_000_000);
    assert_eq!([waited(3), waited(5)], [READ - 10_000; 2], "its mean think time is beyond the wait");
}

#[test]
fn anticipation_takes_a_close_read_of_another_process_at_once() {
    let requests = [read(0, 1, 0), read(10_000, 2, 100), read(1_000_000, 1, 1)];
    assert_eq!(order(&single("anticipatory", &[]), &requests), [0, 100, 1]);
}

#[test]
fn anticipatory_batches_last_their_time_and_writes_adapt_to_theirs() {
    let config = single("anticipatory", &[("read_batch_expire", 1), ("antic_expire", 0)]);
    let requests: Vec<Request> =
        (0..40).map(|n| read(0, 1, n)).chain((0..60).map(|n| write(0, 1, 2000 + n))).collect();
    // Reads for a millisecond; 12 writes, which take a sixteenth of what they may, so that the next batch has 24; the
    // second batch of reads counts from the end of its first.
    let runs = runs(&config, &requests, |request| request.direction);
    let expected =
        [(Direction::Read, 15), (Direction::Write, 12), (Direction::Read, 16), (Direction::Write, 24)];
    assert_eq!(runs[..4], expected);
}

#[test]
fn a_turn_of_bfq_is_its_budget_and_that_grows_when_it_is_exhausted() {
    // On a disk that rotates each process has its own queue, also when they begin together.
    let mut config =
        single("bfq", &[("max_budget", 1024), ("low_latency", 0), ("rotational", 1), ("slice_idle", 0)]);
    config.queue_length = 1024;
    let runs = runs(&config, &two_readers(300), |request| request.process);
    // Two thirds of the most at first: 682 sectors are 85 pages.
    assert_eq!(runs[..4], [(1, 85), (2, 85), (1, 128), (2, 128)]);
}

#[test]
fn bfq_shares_bytes_and_not_requests() {
    let long = |number| Request { sectors: 64, ..read(0, 2, number) };
    let requests: Vec<Request> =
        (0..400).map(|n| read(0, 1, n)).chain((0..50).map(|n| long(1000 + 8 * n))).collect();
    let mut config =
        single("bfq", &[("max_budget", 256), ("low_latency", 0), ("rotational", 1), ("slice_idle", 0)]);
    config.queue_length = 512;
    let mut sectors = [0u64; 2];
    for completion in issued(&config, &requests) {
        sectors[completion.request.process as usize - 1] += u64::from(completion.request.sectors);
        assert!(sectors[0].abs_diff(sectors[1]) <= 2 * 256, "{sectors:?}");
    }
    assert_eq!(sectors, [3200; 2]);
}

#[test]
fn asynchronous_sectors_count_three_times_under_bfq() {
    // As Linux has it where users gave no weights (`bfq_serv_to_charge`): of a budget of 170 sectors, then 256, 7 and 10 writes of 8 sectors.
    let reads = (0..100).map(|n| read(0, 1, n));
    let requests: Vec<Request> = reads.chain((0..30).map(|n| write(0, 2, 1000 + n))).collect();
    let config = single("bfq", &[("max_budget", 256), ("low_latency", 0)]);
    let runs = runs(&config, &requests, |request| request.direction);
    let expected =
        [(Direction::Write, 7), (Direction::Read, 21), (Direction::Write, 10), (Direction::Read, 32)];
    assert_eq!(runs[..4], expected);
}

#[test]
fn bfq_idles_on_a_rotating_disk_and_never_on_one_that_queues_without_rotating() {
    let requests = [read(0, 1, 0), read(10_000, 2, 3000), read(READ + 1_000_000, 1, 1)];
    let config = single("bfq", &[("rotational", 1), ("low_latency", 0)]);
    assert_eq!(order(&config, &requests), [0, 1, 3000]);
    assert_eq!(issued(&config, &requests)[2].issued, Ns(2 * READ + 1_000_000 + 8_000_000));
    let config = single("bfq", &[("low_latency", 0)]);
    assert_eq!(order(&config, &requests), [0, 3000, 1]);
    assert_eq!(issued(&config, &requests)[1].issued, Ns(READ));
}

#[test]
fn a_process_that_begins_has_thirty_times_the_weight_under_bfq() {
    // One process wants the disk all the time; the other begins when the precedence of the first is over.
    let late = 50_000_000;
    let requests: Vec<Request> =
        (0..2000).map(|n| read(0, 1, n)).chain((0..400).map(|n| read(late, 2, 2500 + n))).collect();
    let share = |low_latency| {
        let tunables = [("max_budget", 512), ("wr_max_time", 40), ("low_latency", low_latency)];
        let config = RunConfig { queue_length: 4096, ..single("bfq", &tunables) };
        let completions = issued(&config, &requests);
        let first = completions.iter().filter(|completion| completion.issued >= Ns(late)).take(400);
        first.filter(|completion| completion.request.process == 2).count()
    };
    assert!((330..=400).contains(&share(1)), "{}", share(1));
    assert!((150..=250).contains(&share(0)), "{}", share(0));
}

#[test]
fn bfq_with_strict_guarantees_has_one_request_at_the_device() {
    let mut config = single("bfq", &[("strict_guarantees", 1)]);
    config.profile = device(4, 1, 1, 1);
    config.profile.interface.command_queue = "ncq:32".into();
    let requests: Vec<Request> = (0..20).map(|n| read(0, (n % 2) as u32, n)).collect();
    let completions = issued(&config, &requests);
    assert!(completions.windows(2).all(|pair| pair[0].completed <= pair[1].issued));
}

#[test]
fn kyber_alternates_batches_of_sixteen_reads_and_eight_writes() {
    let requests: Vec<Request> =
        (0..20).map(|n| read(0, 1, n)).chain((0..20).map(|n| write(0, 1, 1000 + n))).collect();
    let runs = runs(&single("kyber", &[]), &requests, |request| request.direction);
    let expected =
        [(Direction::Read, 16), (Direction::Write, 8), (Direction::Read, 4), (Direction::Write, 12)];
    assert_eq!(runs, expected);
}

/// Most writes at the device at once among those issued after a time.
fn most_writes_outstanding(completions: &[Completion], after: u64) -> usize {
    let writes = || {
        let late = completions.iter().filter(|completion| completion.issued > Ns(after));
        late.filter(|completion| completion.request.direction == Direction::Write)
    };
    let outstanding = |at: Ns| writes().filter(|write| write.issued <= at && at < write.completed).count();
    writes().map(|write| outstanding(write.issued)).max().unwrap()
}

#[test]
fn kyber_takes_tokens_from_writes_that_meet_their_target_while_reads_miss_theirs() {
    let mut config = single("kyber", &[("write_lat_nsec", 1_000_000_000)]);
    config.profile.interface.command_queue = "ncq:256".into();
    let jobs = "[job.r]\nrw='randread'\niodepth=2\nnumber_ios=12000\nloops=9\nsize='8m'\n\
                [job.w]\nrw='write'\niodepth=32\nnumber_ios=12000\nloops=19\noffset='8m'\nsize='4m'";
    // The usual time of a read at the device while writes come.
    let median = |completions: &[Completion], after: u64| {
        let is_write = |completion: &&Completion| completion.request.direction == Direction::Write;
        let last = completions.iter().filter(is_write).map(|completion| completion.issued).max().unwrap();
        let among = completions.iter().filter(|c| c.issued > Ns(after) && c.issued < last && !is_write(c));
        let mut reads: Vec<u64> = among.map(|read| (read.completed - read.issued).0).collect();
        reads.sort_unstable();
        reads[reads.len() / 2]
    };
    let completions = closed(&config, jobs);
    assert_eq!(most_writes_outstanding(&completions, 0), 32, "at first all of them");
    assert_eq!(most_writes_outstanding(&completions, 6_000_000_000), 2, "128, 32, 8, 2 tokens are enough");
    let without = closed(&RunConfig { scheduler: "noop".into(), tunables: Vec::new(), ..config }, jobs);
    let (with, without) = (median(&completions, 6_000_000_000), median(&without, 0));
    assert!(with < 2_000_000 && without > 5 * with, "{with} ns, without {without} ns");
}

/// A single request alone on the device, of a size.
fn alone(config: &RunConfig, direction: Direction, bytes: u64) -> u64 {
    makespan(config, &[Request::new(Ns::ZERO, Lsn(0), (bytes / 512) as u32, direction)]).0
}

#[test]
fn fios_flashfq_and_k2_are_calibrated_on_the_first_device() {
    ["fios", "flashfq", "k2"].into_iter().for_each(is_calibrated_on_the_first_device);
}

fn is_calibrated_on_the_first_device(scheduler: &str) {
    let mut config = RunConfig::new(Profile::embedded("piq-128g").unwrap());
    config.profile.interface.command_queue = "ncq:1".into();
    let entry = SCHEDULERS.iter().find(|entry| entry.name == scheduler).unwrap();
    let default = |name: &str| {
        let tunable = entry.tunables.iter().find(|tunable| tunable.name == name).unwrap();
        match tunable.kind {
            TunableKind::Number { default, .. } => default,
            _ => unreachable!("a number"),
        }
    };
    for (direction, name) in [(Direction::Read, "read"), (Direction::Write, "write")] {
        assert_eq!(default(&format!("{name}_4k_ns")), alone(&config, direction, 4 << 10));
        assert_eq!(default(&format!("{name}_128k_ns")), alone(&config, direction, 128 << 10));
    }
}

#[test]
fn fios_does_not_mix_writes_with_reads_and_waits_for_the_next_read() {
    let mut profile = device(2, 1, 1, 1);
    profile.interface.command_queue = "ncq:32".into();
    let mut config = RunConfig { scheduler: "fios".into(), ..RunConfig::new(profile) };
    // A read on one unit, a write for the other.
    let requests = [read(0, 1, 0), write(0, 2, 1)];
    let write_issued = |config: &RunConfig| issued(config, &requests)[1].issued;
    assert_eq!(write_issued(&config), Ns(2 * READ), "the reader may come back for as long as its read took");
    config.tunables.push(("antic_percent".into(), "0".into()));
    assert_eq!(write_issued(&config), Ns(READ));
    let reads = [read(0, 1, 0), read(0, 2, 1)];
    assert_eq!(issued(&config, &reads)[1].issued, Ns::ZERO, "reads go side by side");
}

#[test]
fn fios_does_not_count_a_request_that_comes_too_late_as_one_that_it_waited_for() {
    let hits = |gap: u64| {
        let mut simulator = Simulator::new(&single("fios", &[]), ()).unwrap();
        for arrival in [Ns::ZERO, Ns(READ + gap)] {
            simulator.advance(arrival).unwrap();
            simulator.submit(&Request { arrival, ..read(0, 1, 0) }).unwrap();
        }
        simulator.finish_requests().unwrap();
        let counters = simulator.scheduler_counters();
        assert_eq!(counters.get("anticipations"), 2);
        counters.get("anticipation_hits")
    };
    // It is waited for as long as the read took.
    assert_eq!([READ / 2, READ, READ + 1, 100 * READ].map(hits), [1, 1, 0, 0]);
}

#[test]
fn fios_shares_the_time_of_the_device_and_not_the_number_of_requests() {
    // Reads of one page against reads of four, which take four times as long on a single plane.
    let long = |number| Request { sectors: 32, ..read(0, 2, number) };
    let requests: Vec<Request> = (0..80).flat_map(|n| [read(0, 1, n), long(1000 + 4 * n)]).collect();
    let mut config = single("fios", &[("timeslice", 2)]);
    config.tunables.push(("read_128k_ns".into(), alone(&config, Direction::Read, 128 << 10).to_string()));
    assert_eq!(alone(&config, Direction::Read, 16 << 10), 4 * READ);
    // 2 ms each: 28.2 short reads, 7.05 long ones; the last of each overdraws.
    let first_epoch = &issued(&config, &requests)[..29 + 8];
    assert_eq!(first_epoch.iter().filter(|completion| completion.request.process == 1).count(), 29);
    assert_eq!(
        first_epoch[0].request.process + first_epoch[1].request.process,
        3,
        "they take turns by arrival"
    );
}

#[test]
fn fios_lets_writes_through_when_the_readers_have_spent_their_time() {
    let mut requests: Vec<Request> = (0..200).map(|n| read(0, 1, n)).collect();
    requests.extend((0..10).map(|n| write(0, 2, 1000 + n)));
    let runs = runs(&single("fios", &[("timeslice", 2)]), &requests, |request| request.process);
    // 2 ms are 29 reads (28 and the one that overdraws), and 4 writes.
    assert_eq!(runs[..2], [(1, 29), (2, 4)]);
    assert!(runs.len() > 5, "they alternate: {runs:?}");
}

/// Bytes that a process with 32 requests in flight and one with 4 had in two seconds. The second begins after 200 ms: under bfq those that
/// begin together share a queue.
fn shares(scheduler: &str, tunables: &[(&str, u64)], interface: &str, pattern: &str) -> [u64; 2] {
    let mut config = single(scheduler, tunables);
    config.profile = device(4, 1, 1, 1);
    config.profile.interface.command_queue = interface.into();
    let job = |name: &str, depth: u32, delay: &str| {
        format!(
            "[job.{name}]\nrw='{pattern}'\niodepth={depth}\nruntime='2s'\ntime_based=1\nsize='16m'\n\
             startdelay='{delay}'\n"
        )
    };
    let mut bytes = [0; 2];
    for completion in closed(&config, &(job("aggressive", 32, "0s") + &job("modest", 4, "200ms"))) {
        if (Ns::from_millis(200)..Ns::from_millis(2_000)).contains(&completion.completed) {
            bytes[completion.request.process as usize - 1] += completion.request.bytes().0;
        }
    }
    bytes
}

/// Jain's index over two.
fn jain([one, other]: [u64; 2]) -> f64 {
    let [one, other] = [one as f64, other as f64];
    (one + other).powi(2) / (2.0 * (one * one + other * other))
}

#[test]
fn fair_schedulers_share_between_an_aggressive_and_a_modest_process() {
    let both = ["ncq:1", "ncq:32"];
    let budgets = [("low_latency", 0)];
    let strict = [("low_latency", 0), ("strict_guarantees", 1)];
    type Case<'a> = (&'a str, &'a [(&'a str, u64)], &'a [&'a str]);
    let cases: [Case<'_>; 5] = [
        ("cfq", &[], &both),
        ("fios", &[], &both),
        ("flashfq", &[], &both),
        ("bfq", &budgets, &["ncq:1"]),
        // What a queueing device holds it serves as it likes, and BFQ does not wait on one that does not rotate.
        ("bfq", &strict, &["ncq:32"]),
    ];
    for pattern in ["randread", "randwrite"] {
        for (scheduler, tunables, interfaces) in cases {
            for interface in interfaces {
                let shares = shares(scheduler, tunables, interface, pattern);
                assert!(jain(shares) > 0.9, "{scheduler} {interface} {pattern}: {shares:?}");
            }
        }
        for scheduler in ["noop", "deadline", "mq-deadline", "kyber", "anticipatory", "k2"] {
            // Eight to one, as their depths: (8 + 1)^2 / (2 (64 + 1)) = 0.623.
            let shares = shares(scheduler, &[], "ncq:32", pattern);
            assert!((jain(shares) - 0.623).abs() < 0.02, "{scheduler} {pattern}: {shares:?}");
        }
    }
}

/// A queue of 64 for all, so that every completion lets a request in: the policy alone. With two pools of 2.6.32 a batch that has half as
/// many slots again lets nobody in until they are free, and CFQ's asynchronous queue keeps its slice meanwhile.
fn one_pool(config: RunConfig) -> RunConfig {
    RunConfig { queue_length: 64, request_pools: RequestPools::One, ..config }
}

/// Longest wait in the queue of a write among reads of four processes that want more than the device has, over a second.
fn longest_write_wait(config: &RunConfig, seed: u64, synchronous: bool) -> u64 {
    let mut random = generator(seed, "flood of reads");
    let mut next_write = 10_000_000;
    let requests: Vec<Request> = (0..20_000u64)
        .map(|number| {
            let at = number * 50_000;
            let place = random.random_range(0..800);
            if at < next_write {
                return read(at, random.random_range(1..5), place);
            }
            next_write = at + random.random_range(8_000_000..30_000_000u64);
            Request { synchronous, ..write(at, 5, place) }
        })
        .collect();
    let writes = run(config, &requests).unwrap().into_iter();
    let writes = writes.filter(|completion| completion.request.direction == Direction::Write);
    writes.map(|completion| (completion.issued - completion.released).0).max().unwrap()
}

#[test]
fn under_a_flood_of_reads_writes_wait_no_longer_than_each_scheduler_lets_them() {
    let ms = |ms: u64| ms * 1_000_000;
    let (any, synchronous): (&[bool], &[bool]) = (&[false, true], &[true]);
    // A batch of reads, two that starve the write, one taken ahead and one on the way; a batch of sixteen, and one taken ahead; a batch of reads by time, with an
    // anticipation; twenty slices (CFQ has no bound: who comes when a slice is over goes to the front); one budget of each
    // process, of 128 pages; one timeslice of each reader.
    type Case<'a> = (&'a str, &'a [(&'a str, u64)], &'a [bool], u64);
    let cases: [Case<'_>; 7] = [
        ("mq-deadline", &[], any, 49 * READ + WRITE),
        ("kyber", &[], any, 17 * READ + WRITE),
        ("anticipatory", &[("read_batch_expire", 20)], any, ms(20 + 6) + READ + WRITE),
        ("cfq", &[("slice_sync", 5)], synchronous, ms(20 * 5)),
        ("bfq", &[("max_budget", 1024), ("low_latency", 0)], any, 5 * 128 * READ),
        ("bfq", &[("max_budget", 1024)], synchronous, 5 * 128 * READ),
        ("fios", &[("timeslice", 5)], any, 4 * (ms(5) + READ) + WRITE),
    ];
    for (scheduler, tunables, kinds, bound) in cases {
        for interface in ["ncq:1", "ncq:8"] {
            for (seed, synchronous) in (0..5).flat_map(|seed| kinds.iter().map(move |kind| (seed, *kind))) {
                let mut config = one_pool(single(scheduler, tunables));
                config.profile.interface.command_queue = interface.into();
                // A write that waits for a read of the same page can come to the scheduler with the next one: the one at the lower address
                // waits for another round then.
                config.overlap = Overlap::Ignore;
                let wait = longest_write_wait(&config, seed, synchronous);
                assert!(
                    wait <= bound,
                    "{scheduler} on {interface}, seed {seed}: {wait} ns, at most {bound} ns"
                );
            }
        }
    }
}

#[test]
fn cfq_holds_asynchronous_writes_back_for_as_long_as_synchronous_requests_are_out() {
    // What the test above leaves out, and what Linux 2.6.32 does as well.
    let mut config = one_pool(single("cfq", &[("slice_sync", 5)]));
    config.profile.interface.command_queue = "ncq:8".into();
    assert!(longest_write_wait(&config, 0, false) > 200_000_000);
}

/// Requests of a few processes on a random device: bursts and pauses, runs of neighbours, every kind of write.
fn random_requests(random: &mut Generator, sectors: u64) -> Vec<Request> {
    let (processes, count) = (random.random_range(1..6u32), random.random_range(1..250));
    let (mut at, mut end) = (0, 0);
    (0..count)
        .map(|_| {
            at += [0, 0, 20_000, 700_000, 9_000_000][random.random_range(0..5usize)];
            let length = random.random_range(1..50);
            let near = random.random::<f64>() < 0.4 && end + length <= sectors;
            let start = if near { end } else { random.random_range(0..sectors - length) };
            end = start + length;
            let direction = Direction::ALL[random.random_range(0..2usize)];
            Request {
                process: random.random_range(0..processes),
                synchronous: direction == Direction::Read || random.random(),
                ..Request::new(Ns(at), Lsn(start), length as u32, direction)
            }
        })
        .collect()
}

/// Every invariant, and the same result twice, whatever the interface and the merging; `run` checks both that and that all
/// requests complete.
#[test]
fn every_request_completes_whoever_issues_it_and_however_they_merge() {
    for seed in 0..30 {
        let mut random = generator(seed, "elevators");
        for scheduler in SCHEDULERS {
            for (merging, interface) in [
                (Merging::None, "blocking"),
                (Merging::Back, "ncq:1"),
                (Merging::Full, "ncq:32"),
                (Merging::Full, "blocking"),
            ] {
                let mut profile = device(random.random_range(1..4), random.random_range(1..4), 1, 2);
                profile.interface.command_queue = interface.into();
                // PASS's regions are larger than these devices by default.
                let choices = [("rotational", random.random_range(0..2)), ("region_size", 1 << 20)];
                let has = |name| scheduler.tunables.iter().any(|tunable| tunable.name == name);
                let tunables = choices.into_iter().filter(|(name, _)| has(*name));
                let config = RunConfig {
                    scheduler: scheduler.name.into(),
                    tunables: tunables.map(|(name, value)| (name.into(), value.to_string())).collect(),
                    merging,
                    queue_length: random.random_range(1..100),
                    ..RunConfig::new(profile)
                };
                let sectors = Simulator::new(&config, ()).unwrap().user_sectors();
                let requests = random_requests(&mut random, sectors);
                let check = || run(&config, &requests).unwrap();
                let completions = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check))
                    .unwrap_or_else(|_| panic!("seed {seed}: {} {merging} {interface}", scheduler.name));
                assert_eq!(completions, check(), "seed {seed}: {} {merging} {interface}", scheduler.name);
            }
        }
    }
}
