//! The engine under its drivers: open loop, merging, Little's law, same bytes for the same seed.

mod common;

use common::{device, pages, run};
use planewise_model::profile::WriteBuffer;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::drivers::pace::Pace;
use planewise_sim::drivers::replay::{PowerCut, ReplayOptions, replay};
use planewise_sim::host::{Merging, Slot};
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::results::{RunResult, Status, UnitUtilization};
use planewise_sim::{RunConfig, SimError, Simulator};
use rand::RngExt;
use std::sync::atomic::AtomicBool;

fn open(config: &RunConfig, requests: &[Request], warm_up: u64) -> Result<RunResult, SimError> {
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    replay(config, &mut requests.iter().copied(), (), &mut options).map(|(result, ())| result)
}

#[test]
fn littles_law_holds_on_an_open_loop_run() {
    let config = RunConfig::new(device(2, 2, 1, 1));
    let requests: Vec<Request> = (0..20_000u64)
        .map(|n| {
            Request::new(Ns(n * 4_000_000), Lsn(n * 7919 % 4096 * 8), 8, Direction::ALL[(n % 2) as usize])
        })
        .collect();
    let metrics = open(&config, &requests, 0).unwrap().metrics;
    let expected = metrics.all.iops * metrics.all.latency_ns.mean / 1e9;
    assert!(
        (metrics.mean_queue_depth / expected - 1.0).abs() < 1e-9,
        "{} {expected}",
        metrics.mean_queue_depth
    );
}

/// A run that is recorded, and the record replayed at the dependent pace on the same device: nothing changes.
#[test]
fn a_record_of_a_device_replayed_on_it_at_the_dependent_pace_is_the_same_run() {
    for scheduler in ["noop", "mq-deadline", "piq", "bfq", "kyber"] {
        for (merging, queue, command_queue) in
            [(Merging::None, 64, "blocking"), (Merging::Full, 4, "ncq:2"), (Merging::Full, 64, "ncq:32")]
        {
            for seed in 0..5 {
                let what = format!("{scheduler}, {merging}, queue {queue}, {command_queue}, seed {seed}");
                let mut config =
                    RunConfig { scheduler: scheduler.into(), merging, ..RunConfig::new(device(2, 2, 1, 1)) };
                config.queue_length = queue;
                config.profile.interface.command_queue = command_queue.into();
                let mut random = generator(seed, "requests");
                let mut now = 0;
                let requests: Vec<Request> = (0..1500)
                    .map(|n| {
                        now += if random.random_range(0..8) == 0 {
                            random.random_range(0..4_000_000)
                        } else {
                            0
                        };
                        let place = if n % 3 == 0 { n } else { random.random_range(0..2000) };
                        Request::new(Ns(now), Lsn(place * 8), 8, Direction::ALL[random.random_range(0..2)])
                    })
                    .collect();
                let recorded = completions(&config, &requests, 0);
                let mut record = requests;
                for done in &recorded {
                    record[done.sequence as usize].response = Some(done.completed - done.request.arrival);
                }
                let config = RunConfig { pace: Pace::Dependent, ..config };
                let times = |all: &[Completion]| {
                    all.iter()
                        .map(|one| (one.sequence, one.request.arrival, one.completed))
                        .collect::<Vec<_>>()
                };
                assert!(times(&recorded) == times(&completions(&config, &record, 100)), "{what}");
            }
        }
    }
}

#[derive(Default)]
struct Kept(Vec<Completion>);

impl Observer for Kept {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        self.0.push(*completion);
    }
}

fn completions(config: &RunConfig, requests: &[Request], warm_up: u64) -> Vec<Completion> {
    let stop = AtomicBool::new(false);
    let mut options =
        ReplayOptions { warm_up, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    replay(config, &mut requests.iter().copied(), Kept::default(), &mut options).expect("the run ends").1.0
}

#[test]
fn other_paces_end_with_full_queues_merging_and_a_power_cut() {
    let requests: Vec<Request> = (0..400u64)
        .map(|n| Request {
            response: (n % 5 > 0).then_some(Ns(50_000)),
            ..Request::new(Ns(n * 1000), Lsn(n * 8), 8, Direction::Write)
        })
        .collect();
    for pace in [Pace::Dependent, Pace::Closed(1), Pace::Closed(700), Pace::Asap] {
        for queue in [1, 3, 64] {
            let mut config = RunConfig {
                pace,
                queue_length: queue,
                merging: Merging::Full,
                ..RunConfig::new(device(1, 2, 1, 1))
            };
            config.profile.interface.command_queue = "ncq:1".into();
            assert_eq!(completions(&config, &requests, 10).len(), 400, "{pace}, {queue}");
            for cut in [PowerCut::At(Ns(1_500_000)), PowerCut::After(30)] {
                let stop = AtomicBool::new(false);
                let mut options = ReplayOptions {
                    warm_up: 0,
                    stop: &stop,
                    progress: &mut |_| {},
                    trace: "test",
                    power_cut: Some(cut),
                };
                let (result, ()) = replay(&config, &mut requests.iter().copied(), (), &mut options).unwrap();
                let found = result.metrics.gc.power_loss.unwrap();
                assert!(
                    found.lost_pages == 0 && result.metrics.requests.completed < 400,
                    "{pace}, {queue}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_full_queue_keeps_arrivals_outside_and_their_wait_counts() {
    let mut config = RunConfig::new(device(1, 1, 1, 1));
    config.queue_length = 1;
    let metrics = open(&config, &pages(Direction::Read, 0..3), 0).unwrap().metrics;
    let service = 30_000 + 40_960;
    assert_eq!(metrics.read.waiting_ns.max, 2 * service);
    assert_eq!(metrics.read.latency_ns.max, 3 * service);
    assert_eq!(metrics.read.processing_ns.max, service);
}

#[test]
fn utilization_tells_the_whole_run_from_the_time_with_requests_pending() {
    // One page at a time on one of two chips, half of the time nothing at all.
    let service = 30_000 + 40_960;
    let config = RunConfig::new(device(1, 2, 1, 2));
    let requests: Vec<Request> =
        (0..1000u64).map(|n| Request::new(Ns(n * 2 * service), Lsn(0), 8, Direction::Read)).collect();
    let utilization = open(&config, &requests, 0).unwrap().metrics.utilization;
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    close(utilization.chip.active, 0.5);
    close(utilization.chip.wall, 0.25);
    close(utilization.plane.active, 0.25);
    close(utilization.channel.active, 40_960.0 / service as f64);
}

#[test]
fn a_power_cut_behind_the_end_says_so() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let requests = pages(Direction::Write, 0..3);
    let stop = AtomicBool::new(false);
    for (cut, is_behind) in [
        (PowerCut::At(Ns(10_000_000_000)), true),
        (PowerCut::At(Ns(50_000)), false),
        (PowerCut::After(100), true),
        (PowerCut::After(2), false),
    ] {
        let mut options = ReplayOptions {
            warm_up: 0,
            stop: &stop,
            progress: &mut |_| {},
            trace: "test",
            power_cut: Some(cut),
        };
        let (result, ()) = replay(&config, &mut requests.iter().copied(), (), &mut options).unwrap();
        let said =
            result.notes.iter().any(|note| note.contains("behind the end: the 3 requests were served"));
        assert_eq!(said, is_behind, "{cut:?}: {:?}", result.notes);
    }
}

#[test]
fn what_is_under_way_when_the_window_begins_counts_for_the_part_that_lies_in_it() {
    // A program from 0 to 640,960 ns; the window begins at 300,000 with a read, which waits for it.
    let config = RunConfig::new(device(1, 1, 1, 1));
    let requests = [
        Request::new(Ns(0), Lsn(0), 8, Direction::Write),
        Request::new(Ns(300_000), Lsn(8), 8, Direction::Read),
    ];
    let metrics = open(&config, &requests, 1).unwrap().metrics;
    let length = 340_960 + 30_000 + 40_960;
    assert_eq!(metrics.duration_ns, length);
    let utilization = metrics.utilization;
    assert_eq!(
        [utilization.chip, utilization.die, utilization.plane].map(|busy| (busy.wall, busy.active)),
        [(1.0, 1.0); 3]
    );
    assert_eq!(utilization.channel.wall, 40_960.0 / length as f64);
    // A transfer that has begun counts from there, too.
    let requests = [requests[0], Request { arrival: Ns(10_960), ..requests[1] }];
    let metrics = open(&config, &requests, 1).unwrap().metrics;
    assert_eq!(metrics.utilization.channel.wall, (30_000.0 + 40_960.0) / metrics.duration_ns as f64);
}

#[test]
fn a_chip_is_busy_while_any_of_its_dies_is_and_a_die_while_any_of_its_planes_is() {
    for seed in 0..60u64 {
        let mut random = generator(seed, "requests");
        let mut config = RunConfig::new(device(2, 2, 2, 2));
        config.profile.write_buffer = (seed % 2 == 0).then_some(WriteBuffer {
            pages: 32,
            watermark: 0.5,
            run_pages: 4,
            entry_order: false,
            in_flight_pages: 8,
            power_loss_protection: true,
        });
        config.queue_length = [1, 64][(seed / 2 % 2) as usize];
        let mut now = 0;
        let requests: Vec<Request> = (0..300)
            .map(|_| {
                now += random.random_range(0..200_000);
                let direction = Direction::ALL[random.random_range(0..2)];
                Request::new(
                    Ns(now),
                    Lsn(random.random_range(0..4000)),
                    random.random_range(1..80),
                    direction,
                )
            })
            .collect();
        let utilization = open(&config, &requests, random.random_range(0..100)).unwrap().metrics.utilization;
        let [chip, die, plane, channel] =
            [utilization.chip, utilization.die, utilization.plane, utilization.channel];
        for of in [|busy: UnitUtilization| busy.wall, |busy: UnitUtilization| busy.active] {
            let (chip, die, plane, channel) = (of(chip), of(die), of(plane), of(channel));
            let ordered = 1.0 + 1e-9 >= chip && chip + 1e-9 >= die && die + 1e-9 >= plane && plane > 0.0;
            assert!(ordered && (0.0..=1.0 + 1e-9).contains(&channel), "seed {seed}: {utilization:?}");
        }
    }
}

#[test]
fn warm_up_requests_are_simulated_and_not_measured() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let requests: Vec<Request> = (0..100u64)
        .map(|n| {
            Request::new(
                Ns(n * 1_000_000),
                Lsn(n * 8),
                8,
                if n < 60 { Direction::Write } else { Direction::Read },
            )
        })
        .collect();
    let metrics = open(&config, &requests, 60).unwrap().metrics;
    assert_eq!((metrics.requests.completed, metrics.requests.writes, metrics.flash.programs), (40, 0, 0));
    assert_eq!(metrics.flash.reads, 40);
    assert_eq!(metrics.read.latency_ns.max, 30_000 + 40_960);
}

#[test]
fn conflict_requests_are_those_that_share_a_unit_with_one_in_the_queue_on_arrival() {
    let config = RunConfig::new(device(4, 1, 1, 1));
    // Units 0; 0 (conflicts); 1; and, after all is over, 0 again.
    let mut requests = pages(Direction::Read, [0, 4, 1]);
    requests.push(Request::new(Ns(1_000_000), Lsn(0), 8, Direction::Read));
    let metrics = open(&config, &requests, 0).unwrap().metrics;
    assert_eq!(metrics.conflict.read_share, 0.25);
}

/// One request at a time on one plane, merging in full, under each scheduler.
fn merging(scheduler: &str) -> RunConfig {
    let mut profile = device(1, 1, 1, 1);
    profile.interface.command_queue = "ncq:1".into();
    RunConfig { merging: Merging::Full, scheduler: scheduler.into(), ..RunConfig::new(profile) }
}

#[test]
fn adjacent_requests_merge_when_asked_and_each_completes_under_its_own_number() {
    // The first occupies the device; 10 and 11 merge behind, 9 in front, 20 stays alone, the write to 12 is another direction.
    let mut requests = pages(Direction::Read, [0, 10, 11, 20, 9]);
    requests.extend(pages(Direction::Write, [12]));
    for scheduler in ["noop", "deadline", "rws"] {
        let config = merging(scheduler);
        let completions = run(&config, &requests).unwrap();
        let done = |sequence| completions.iter().find(|c| c.sequence == sequence).unwrap().completed;
        assert_eq!(done(1), done(2));
        assert_eq!(done(1), done(4));
        assert!(done(3) > done(1) && done(5) > done(3));
        let result = open(&config, &requests, 0).unwrap();
        assert_eq!((result.metrics.requests.merged, result.metrics.requests.completed), (2, 6));
        let behind_only = RunConfig { merging: Merging::Back, ..merging(scheduler) };
        assert_eq!(open(&behind_only, &requests, 0).unwrap().metrics.requests.merged, 1);
        let none = RunConfig { merging: Merging::None, ..merging(scheduler) };
        assert_eq!(open(&none, &requests, 0).unwrap().metrics.requests.merged, 0);
    }
}

#[test]
fn a_request_that_fills_a_gap_makes_three_one_in_the_place_of_the_oldest() {
    // 20 waits before 12; 11 joins 10, and with 12 they are one, which goes before 20.
    let requests = pages(Direction::Write, [0, 10, 20, 12, 11]);
    for scheduler in ["noop", "deadline", "rws"] {
        let completions = run(&merging(scheduler), &requests).unwrap();
        let done = |sequence| completions.iter().find(|c| c.sequence == sequence).unwrap().completed;
        assert!(done(1) == done(3) && done(1) == done(4), "{scheduler}");
        assert!(done(2) > done(1), "{scheduler}");
        assert_eq!(open(&merging(scheduler), &requests, 0).unwrap().metrics.requests.merged, 2);
    }
}

#[test]
fn a_merged_request_keeps_its_own_conflict_and_counts_as_overtaking_when_its_union_does() {
    // Four units; page p is on unit p % 4. A read of unit 0 is out; the write of unit 1 waits, as do reads of units 2 and 3,
    // which become one and go before it.
    let mut profile = device(4, 1, 1, 1);
    profile.interface.command_queue = "ncq:1".into();
    let config = RunConfig { merging: Merging::Full, scheduler: "rws".into(), ..RunConfig::new(profile) };
    let mut requests = pages(Direction::Read, [0]);
    requests.extend(pages(Direction::Write, [1]));
    requests.extend(pages(Direction::Read, [2, 3, 4]));
    let completions = run(&config, &requests).unwrap();
    let conflicts: Vec<u64> = completions.iter().filter(|c| c.conflict).map(|c| c.sequence).collect();
    // Page 4 is on unit 0, with the read that is out; page 3 joined page 2 without touching anything.
    assert_eq!(conflicts, [4]);
    let metrics = open(&config, &requests, 0).unwrap().metrics;
    assert_eq!((metrics.requests.merged, metrics.prioritized.read_share), (2, 0.75));
}

#[test]
fn merging_keeps_the_limits_of_the_queue() {
    // 4 KiB a page: three fit in 12 KiB, the fourth begins a request of its own.
    let requests = pages(Direction::Read, [0, 10, 11, 12, 13]);
    let config = RunConfig { max_sectors_kb: 12, ..merging("noop") };
    assert_eq!(open(&config, &requests, 0).unwrap().metrics.requests.merged, 2);
    // 128 segments at most.
    let long = pages(Direction::Read, [0].into_iter().chain(100..300));
    let config = RunConfig { max_sectors_kb: 1 << 20, queue_length: 256, ..merging("noop") };
    assert_eq!(open(&config, &long, 0).unwrap().metrics.requests.merged, 127 + 71);
}

#[test]
fn a_stopped_run_keeps_what_it_has_and_says_so() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let stop = AtomicBool::new(true);
    let mut options =
        ReplayOptions { warm_up: 0, stop: &stop, progress: &mut |_| {}, trace: "test", power_cut: None };
    let mut source = pages(Direction::Read, (0..1000).cycle().take(100_000)).into_iter();
    let (result, ()) = replay(&config, &mut source, (), &mut options).unwrap();
    assert_eq!(result.status, Status::Interrupted);
    assert!(result.metrics.requests.completed > 0);
    assert_eq!(result.metrics.requests.completed, result.metrics.requests.submitted);
}

#[test]
fn requests_that_cannot_be_are_refused_by_number() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    let refused = |request: Request| {
        open(&config, &[pages(Direction::Read, [0])[0], request], 0).unwrap_err().to_string()
    };
    let past = refused(Request::new(Ns(1), Lsn(1 << 40), 8, Direction::Read));
    assert!(past.contains("request 2") && past.contains("--wrap"), "{past}");
    assert!(refused(Request::new(Ns(1), Lsn(u64::MAX), 8, Direction::Read)).contains("past the end"));
    assert!(refused(Request::new(Ns(1), Lsn(0), 0, Direction::Read)).contains("length 0"));
    let order =
        open(&config, &[Request::new(Ns(5), Lsn(0), 8, Direction::Read), pages(Direction::Read, [0])[0]], 0);
    assert!(order.unwrap_err().to_string().contains("before its predecessor"));
}

#[test]
fn names_and_numbers_that_cannot_be_are_refused_with_what_is_allowed() {
    let error = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = RunConfig::new(device(1, 1, 1, 1));
        change(&mut config);
        Simulator::new(&config, ()).err().expect("refused").to_string()
    };
    assert!(error(&|config| config.scheduler = "piqq".into()).contains("did you mean 'piq'"));
    assert!(error(&|config| config.queue_length = 0).contains("1 to 4096"));
    assert!(error(&|config| config.queue_length = 4097).contains("1 to 4096"));
    assert!(error(&|config| config.told_units = Some(0)).contains("units"));
    assert!(error(&|config| config.profile.translation.allocation = "cwdd".into()).contains("did you mean"));
    assert!(
        error(&|config| config.profile.collection.scheme = "tradtional".into()).contains("'traditional'")
    );
    assert!(error(&|config| config.profile.interface.command_queue = "ncq:0".into()).contains("ncq:D"));
    assert!(error(&|config| config.profile.interface.flash_scheduler = "lifo".into()).contains("fcfs"));
    assert!(error(&|config| config.profile.translation.wear_levelling = "statics".into()).contains("static"));
    let tunable = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        error(&move |config| {
            config.scheduler = "piq".into();
            config.tunables.push((name.clone(), value.clone()));
        })
    };
    assert!(tunable("barier", "issue").contains("did you mean 'barrier'"));
    assert!(tunable("barrier", "yes").contains("issue, complete"));
    assert!(error(&|config| config.max_sectors_kb = 0).contains("1 to 1048576"));
    assert!(error(&|config| config.profile.geometry.channels = 0).contains("channels"));
}

#[test]
fn a_tunable_out_of_range_names_scheduler_and_range() {
    let mut config = RunConfig::new(device(1, 1, 1, 1));
    config.scheduler = "piq+".into();
    config.tunables.push(("write_wait_max_ns".into(), "-1".into()));
    let error = Simulator::new(&config, ()).err().unwrap().to_string();
    assert!(error.contains("piq+.write_wait_max_ns") && error.contains("whole number"), "{error}");
}

#[test]
fn a_device_costs_at_most_ten_bytes_a_page() {
    let profile = planewise_model::Profile::embedded("piq-128g").unwrap();
    let pages = u64::from(profile.geometry.pages());
    let simulator = Simulator::new(&RunConfig::new(profile), ()).unwrap();
    assert!(simulator.table_bytes() <= 10 * pages, "{} bytes for {pages} pages", simulator.table_bytes());
}
