//! ADIOS, K2 and FlashFQ step by step: what each promises, seen in the order in which requests are issued.

mod common;

use common::{device, pages, run};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host::{Merging, QueuedRequest, Slot};
use planewise_sim::observers::{Completion, Observer};
use planewise_sim::{RunConfig, Simulator};
use rand::RngExt;

/// Service of one page alone: a read, a write.
const READ: u64 = 30_000 + 40_960;
const WRITE: u64 = 600_000 + 40_960;

fn config(scheduler: &str, interface: &str, units: u32, tunables: &[(&str, &str)]) -> RunConfig {
    let mut profile = device(units, 1, 1, 1);
    profile.interface.command_queue = interface.into();
    RunConfig {
        scheduler: scheduler.into(),
        tunables: tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        queue_length: 256,
        ..RunConfig::new(profile)
    }
}

fn at(arrival: u64, direction: Direction, page: u64, pages: u32) -> Request {
    Request::new(Ns(arrival), Lsn(page * 8), pages * 8, direction)
}

/// Pages in the order of issue; reads as they are, writes negative.
fn order(config: &RunConfig, requests: &[Request]) -> Vec<i64> {
    let mut completions = run(config, requests).unwrap();
    completions.sort_by_key(|completion| (completion.issued, completion.sequence));
    let page = |completion: &Completion| {
        let page = (completion.request.start.0 / 8) as i64;
        if completion.request.direction == Direction::Read { page } else { -page }
    };
    completions.iter().map(page).collect()
}

/// One small read and one small write, which ADIOS learns from, and the one that it has learned by.
fn lesson() -> [Request; 3] {
    [
        at(0, Direction::Read, 900, 1),
        at(1_000_000, Direction::Write, 901, 1),
        at(2_000_000, Direction::Read, 902, 1),
    ]
}

#[test]
fn adios_fills_a_batch_up_to_its_window_and_lets_reads_into_the_next() {
    let mut requests = lesson().to_vec();
    requests.extend((1..=30).map(|page| at(5_000_000, Direction::Write, page, 1)));
    requests.extend((101..=105).map(|page| at(5_000_001, Direction::Read, page, 1)));
    // 24 writes of 640,960 ns are within 16 ms; the reads are in the next batch, and of a batch reads go first.
    let expected: Vec<i64> =
        (1..=24).map(|page| -page).chain(101..=105).chain((25..=30).map(|page| -page)).collect();
    assert_eq!(order(&config("adios", "ncq:1", 1, &[]), &requests)[3..], expected);
    // A window of one write.
    let narrow = config("adios", "ncq:1", 1, &[("global_latency_window", "650000")]);
    let expected: Vec<i64> = [-1].into_iter().chain(101..=105).chain((2..=30).map(|page| -page)).collect();
    assert_eq!(order(&narrow, &requests)[3..], expected);
}

#[test]
fn adios_sorts_by_the_deadline_that_the_prediction_is_part_of() {
    let mut requests = lesson().to_vec();
    // One of 32 pages teaches the slope: it takes 20 ms on a single plane.
    requests.push(at(3_000_000, Direction::Write, 300, 32));
    requests.push(at(300_000_000, Direction::Write, 400, 1));
    requests.push(at(300_000_001, Direction::Write, 500, 32));
    requests.push(at(300_000_002, Direction::Write, 600, 1));
    let orders =
        |tunables: &[(&str, &str)]| order(&config("adios", "ncq:1", 1, tunables), &requests)[4..].to_vec();
    assert_eq!(orders(&[]), [-400, -600, -500], "the small one is due 20 ms earlier");
    // Where all are small, all are due in order of arrival.
    assert_eq!(orders(&[("small_request_bytes", "1048576")]), [-400, -500, -600]);
}

#[test]
fn adios_keeps_the_order_of_arrival_of_what_somebody_waits_for_and_until_it_has_learned_both_kinds() {
    let synchronous = |arrival, page| Request { synchronous: true, ..at(arrival, Direction::Write, page, 1) };
    let mut requests = lesson().to_vec();
    requests.push(synchronous(5_000_000, 1));
    requests.extend((0..6).map(|n| match n % 2 {
        0 => synchronous(5_000_001 + 2_000_000 * n, 10 + n),
        _ => at(5_000_001 + 2_000_000 * n, Direction::Read, 10 + n, 1),
    }));
    let slow = config("adios", "ncq:1", 1, &[("global_latency_window", "1")]);
    assert_eq!(order(&slow, &requests)[3..], [-1, -10, 11, -12, 13, -14, 15]);
    // No small write: arrival order for ever.
    let mut requests: Vec<Request> = (0..20).map(|page| at(0, Direction::Write, 8 * page, 2)).collect();
    requests.extend(pages(Direction::Read, 500..520));
    let unsorted: Vec<i64> = (0..20).map(|page| -8 * page).chain(500..520).collect();
    assert_eq!(order(&slow, &requests), unsorted);
}

#[test]
fn k2_serves_its_real_time_class_first_and_the_rest_in_order_of_arrival() {
    let mut requests: Vec<Request> = (1..=3).map(|page| at(0, Direction::Write, page, 1)).collect();
    requests.extend((11..=13).map(|page| at(0, Direction::Read, page, 1)));
    requests[1].synchronous = true;
    requests[2].process = 7;
    let orders = |class: &str| {
        order(&config("k2", "ncq:1", 1, &[("real_time", class), ("real_time_process", "7")]), &requests)
    };
    assert_eq!(orders("reads"), [11, 12, 13, -1, -2, -3]);
    assert_eq!(orders("synchronous"), [-2, 11, 12, 13, -1, -3]);
    assert_eq!(orders("process"), [-3, -1, -2, 11, 12, 13]);
    assert_eq!(orders("none"), [-1, -2, -3, 11, 12, 13]);
}

/// What K2 reckons a request to cost, by the calibrations that the test sets: 1000 ns and 10 ns for each KiB.
fn estimate(request: &Request) -> u64 {
    let write = if request.direction == Direction::Write { 5_000 } else { 0 };
    1_000 + write + 10 * (request.bytes().0 / 1024)
}

const CALIBRATIONS: [(&str, &str); 4] =
    [("read_4k_ns", "1040"), ("read_128k_ns", "2280"), ("write_4k_ns", "6040"), ("write_128k_ns", "7280")];

/// Keeps the books of what is at the device, from outside.
struct InFlight {
    costs: Vec<u64>,
    count: u64,
    sum: u64,
    max: (u64, u64),
    alone_max: u64,
    together: bool,
    bound: (u64, u64),
}

impl Observer for InFlight {
    fn issue(&mut self, _now: Ns, slot: Slot, queued: &QueuedRequest) {
        self.costs[slot.index()] = estimate(&queued.request);
        self.count += 1;
        self.sum += self.costs[slot.index()];
        if self.count == 1 {
            self.alone_max = self.alone_max.max(self.sum);
            return;
        }
        self.together = true;
        self.max = (self.max.0.max(self.count), self.max.1.max(self.sum));
        assert!(
            self.count <= self.bound.0 && self.sum <= self.bound.1,
            "{} requests, {} ns",
            self.count,
            self.sum
        );
    }

    fn complete(&mut self, slot: Slot, _completion: &Completion) {
        // Merged requests complete together; the slot counts once.
        let cost = std::mem::take(&mut self.costs[slot.index()]);
        self.sum -= cost;
        self.count -= u64::from(cost > 0);
    }
}

#[test]
fn what_k2_has_at_the_device_is_never_more_than_its_bounds() {
    let mut together = 0;
    for seed in 0..60u64 {
        let mut random = generator(seed, "k2 in flight");
        let interface = ["blocking", "ncq:1", "ncq:8", "ncq:32"][(seed % 4) as usize];
        let bound = (random.random_range(1..40u64), random.random_range(1..60_000u64));
        let (count, sum) = (bound.0.to_string(), bound.1.to_string());
        let mut tunables = CALIBRATIONS.to_vec();
        tunables.extend([("max_inflight", &*count), ("max_inflight_latency", &*sum)]);
        let mut config = config("k2", interface, 8, &tunables);
        config.queue_length = [1, 64, 4096][(seed / 4 % 3) as usize];
        config.merging = if seed % 2 == 0 { Merging::Full } else { Merging::None };
        let observer = InFlight {
            costs: vec![0; 4096],
            count: 0,
            sum: 0,
            max: (0, 0),
            alone_max: 0,
            together: false,
            bound,
        };
        let mut simulator = Simulator::new(&config, observer).unwrap();
        let mut now = 0;
        for _ in 0..600 {
            now += random.random_range(0..60_000);
            let direction = if random.random::<bool>() { Direction::Read } else { Direction::Write };
            let request = at(now, direction, random.random_range(0..800), random.random_range(1..9));
            while !simulator.has_room()
                || simulator.now() < request.arrival && simulator.next_event() <= request.arrival
            {
                let next = simulator.next_event();
                assert_ne!(next, Ns::MAX, "seed {seed}: a full queue makes progress");
                simulator.advance(next).unwrap();
            }
            simulator.submit(&request).unwrap();
        }
        simulator.drain().unwrap();
        together += u64::from(simulator.observer().together);
        assert!(simulator.observer().alone_max > 0);
    }
    assert!(together > 20, "{together} runs had requests side by side");
}

#[test]
fn flashfq_gives_two_processes_the_same_time_and_not_the_same_number_of_requests() {
    // Reads of one page against reads of four, which take four times as long on a single plane.
    let tunables = [("read_4k_ns", "70960"), ("read_128k_ns", "2270720")];
    let mut requests = Vec::new();
    for number in 0..80 {
        requests.push(Request { process: 1, ..at(0, Direction::Read, number, 1) });
        requests.push(Request { process: 2, ..at(0, Direction::Read, 1000 + 4 * number, 4) });
    }
    let order = order(&config("flashfq", "ncq:1", 1, &tunables), &requests);
    for end in [20, 50, 100] {
        let small = order[..end].iter().filter(|page| **page < 1000).count();
        assert!(small.abs_diff(end * 4 / 5) <= 2, "{small} of {end}");
    }
}

#[test]
fn flashfq_holds_back_a_process_that_is_ahead_by_more_than_the_throttle() {
    // Process 1 has one slow write on unit 0; process 2 reads on the others, ten at a time.
    let mut requests = vec![Request { process: 1, ..at(0, Direction::Write, 0, 1) }];
    requests.extend((0..200).map(|n| Request { process: 2, ..at(0, Direction::Read, 8 * n + 1 + n % 7, 1) }));
    let before_the_write_ends = |throttle: &str| {
        let config = config("flashfq", "ncq:32", 8, &[("throttle", throttle), ("antic_percent", "0")]);
        let completions = run(&config, &requests).unwrap();
        completions.iter().filter(|completion| completion.issued < Ns(WRITE)).count() - 1
    };
    // 1 ms is 14.1 reads of 70,960 ns: the 15th starts at 993,440 ns and is the last.
    assert_eq!(before_the_write_ends("1"), 15);
    assert_eq!(before_the_write_ends("0"), 1);
    assert!(before_the_write_ends("100") > 60);
}

#[test]
fn flashfq_keeps_the_claim_of_a_process_that_issues_one_by_one() {
    // Process 1 reads again as soon as it can; process 2 has 100 reads waiting. Both on one plane.
    let reads_of_one = |percent: &str| {
        let config = config("flashfq", "ncq:1", 1, &[("antic_percent", percent), ("throttle", "0")]);
        let mut simulator = Simulator::new(&config, ()).unwrap();
        simulator.keep_completions();
        for number in 0..100 {
            simulator.submit(&Request { process: 2, ..at(0, Direction::Read, number, 1) }).unwrap();
        }
        let mut done = Vec::new();
        let (mut next, mut own) = (Some(Ns::ZERO), 0);
        while simulator.now() < Ns(60 * READ) {
            if let Some(arrival) = next.filter(|arrival| *arrival <= simulator.next_event()) {
                simulator.advance(arrival).unwrap();
                simulator
                    .submit(&Request { process: 1, ..at(arrival.0, Direction::Read, 500 + own, 1) })
                    .unwrap();
                next = None;
                continue;
            }
            let event = simulator.next_event();
            simulator.advance(event).unwrap();
            simulator.take_completions(&mut done);
            for completion in done.drain(..).filter(|completion| completion.request.process == 1) {
                own += 1;
                next = Some(completion.completed + Ns(10_000));
            }
        }
        own
    };
    let (with, without) = (reads_of_one("50"), reads_of_one("0"));
    assert!(with >= 26 && without <= with, "{with} of 60, without anticipation {without}");
}
