//! PASS's interference avoidance (Li et al., JZUS-C 2014, section 3.3): a turn waits for the other direction, in its region or
//! everywhere; the ring passes over what waits, and nothing starves.

mod common;

use common::device;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host_sched::Counters;
use planewise_sim::observers::Completion;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::{Condition, RunConfig, Simulator};
use rand::RngExt;

const PAGE: u64 = 4096;
/// Pages of a region in these tests.
const REGION: u64 = 100;

/// PASS in front of a device of four chips that takes several commands.
fn config(interface: &str, tunables: &[(&str, &str)]) -> RunConfig {
    let mut profile = device(4, 1, 1, 1);
    profile.interface.command_queue = interface.into();
    // Primed: no collection gets in between.
    let condition = Condition::Primed;
    let mut config =
        RunConfig { scheduler: "pass".into(), queue_length: 256, condition, ..RunConfig::new(profile) };
    config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    config.tunables.push(("region_size".into(), (REGION * PAGE).to_string()));
    config
}

fn request(at: u64, page: u64, direction: Direction) -> Request {
    Request::new(Ns(at), Lsn(page * 8), 8, direction)
}

/// Completions in the order of issue, and the scheduler's counters.
fn run(config: &RunConfig, requests: &[Request]) -> (Vec<Completion>, Counters) {
    let mut simulator = Simulator::new(config, Invariants::new()).unwrap();
    simulator.keep_completions();
    for request in requests {
        while !simulator.has_room(request)
            || simulator.now() < request.arrival && simulator.next_event() <= request.arrival
        {
            let next = simulator.next_event();
            simulator.advance(next).unwrap();
        }
        simulator.submit(request).unwrap();
    }
    simulator.drain().unwrap();
    simulator.observer().report().unwrap();
    let (mut completions, counters) = (Vec::new(), simulator.scheduler_counters());
    simulator.take_completions(&mut completions);
    assert_eq!(completions.len(), requests.len());
    // The observer is told of issues in their order; at one instant that of completions need not be it.
    completions.sort_by_key(|completion| (completion.issued, completion.sequence));
    (completions, counters)
}

fn page(completion: &Completion) -> i64 {
    let page = (completion.request.start.0 / 8) as i64;
    if completion.request.direction == Direction::Read { page } else { -page }
}

/// Reads 1 to 4 and a write of region 0, reads 101 to 108 of region 1, all at once, in turns of two.
fn mixed() -> Vec<Request> {
    let mut requests: Vec<Request> = (1..=4).map(|page| request(0, page, Direction::Read)).collect();
    requests.push(request(0, 5, Direction::Write));
    requests.extend((101..=108).map(|page| request(0, page, Direction::Read)));
    requests
}

/// How many of the mixed requests were issued before the write; whether it had to wait for completions of all reads that went
/// before it, in its region and elsewhere; counters.
fn write_of_mixed(tunables: &[(&str, &str)]) -> (usize, [bool; 2], Counters) {
    let tunables: Vec<(&str, &str)> = [("batch", "2")].iter().chain(tunables).copied().collect();
    let (completions, counters) = run(&config("ncq:32", &tunables), &mixed());
    let write = completions.iter().find(|completion| page(completion) == -5).unwrap();
    let before = |completion: &&Completion| completion.issued < write.issued || completion.sequence < 2;
    let earlier: Vec<&Completion> = completions.iter().filter(before).collect();
    let is_clear = |own: bool| {
        let mut of = earlier.iter().filter(|completion| (page(completion).unsigned_abs() < REGION) == own);
        of.all(|completion| completion.completed <= write.issued)
    };
    (earlier.len(), [is_clear(true), is_clear(false)], counters)
}

#[test]
fn without_a_barrier_the_write_goes_while_reads_are_under_way() {
    let (_, [own, _], counters) = write_of_mixed(&[("barrier", "none")]);
    assert!(!own);
    assert_eq!((counters.get("barrier_waits"), counters.get("passed_over")), (0, 0));
}

#[test]
fn the_ring_stands_still_until_the_other_direction_is_complete_in_the_region_or_everywhere() {
    // 1, 2, then 101, 102, then the write's turn.
    let (before, clear, counters) = write_of_mixed(&[("barrier", "device"), ("pass_over", "0")]);
    assert_eq!((before, clear), (4, [true, true]));
    assert_eq!(
        (counters.get("barrier_waits"), counters.get("passed_over")),
        (2, 0),
        "before the write, and behind it"
    );
    let (before, clear, _) = write_of_mixed(&[("barrier", "region"), ("pass_over", "0")]);
    assert_eq!((before, clear[0]), (4, true));
}

#[test]
fn the_ring_passes_over_a_turn_that_waits_as_often_as_it_may() {
    // The turns of region 1 that go before the write, two reads each.
    for (pass_over, before) in [("1", 6), ("2", 8), ("3", 10), ("1000", 10)] {
        let (found, clear, counters) = write_of_mixed(&[("barrier", "device"), ("pass_over", pass_over)]);
        assert_eq!((found, clear), (before, [true, true]), "pass_over {pass_over}");
        assert!(counters.get("passed_over") >= (before as u64 - 4) / 2, "{counters:?}");
    }
    let (found, clear, _) = write_of_mixed(&[("barrier", "region"), ("pass_over", "1000")]);
    assert_eq!((found, clear[0]), (10, true));
}

#[test]
fn an_overdue_request_is_not_passed_over_and_does_not_pass_the_barrier() {
    // The write is overdue from the beginning: it is first, and reads wait for it.
    let tunables = [("batch", "2"), ("barrier", "device"), ("pass_over", "1000"), ("write_expire", "0")];
    let (completions, counters) = run(&config("ncq:32", &tunables), &mixed());
    let write = completions.iter().find(|completion| page(completion) == -5).unwrap();
    assert_eq!(write.issued, Ns::ZERO);
    assert!(
        completions.iter().all(|other| other.sequence == write.sequence || other.issued >= write.completed)
    );
    assert_eq!(counters.get("expired"), 1);
}

/// A stream meant to starve: one direction steadily, at a rate around what the device takes, over all regions or few, and lone
/// requests of the other direction.
fn adversarial(seed: u64) -> (Vec<Request>, Direction, u64) {
    let mut random = generator(seed, "adversarial");
    let regions = random.random_range(2..=12u64);
    let flood = Direction::ALL[random.random_range(0..2)];
    // Four chips take a read each 18 us, a write each 160 us.
    let saturation = if flood == Direction::Read { 18_000 } else { 160_000 };
    let gap = saturation * random.random_range(40..160u64) / 100;
    let lone_gap = gap * random.random_range(60..400u64);
    let (few, mut used) = (random.random_range(1..=regions), [0u64; 12]);
    let mut requests = Vec::new();
    let mut next_lone = lone_gap;
    for number in 0..1500u64 {
        let (at, is_lone) = (number * gap, number * gap >= next_lone);
        if is_lone {
            next_lone += lone_gap;
        }
        let region = if is_lone { random.random_range(0..regions) } else { random.random_range(0..few) };
        let place = used[region as usize];
        used[region as usize] = (place + 1) % REGION;
        let direction = if is_lone { flood.other() } else { flood };
        requests.push(request(at, region * REGION + place, direction));
    }
    (requests, flood, regions)
}

/// Whether two requests were at the device at once.
fn overlap(one: &Completion, other: &Completion) -> bool {
    one.issued < other.completed && other.issued < one.completed
}

fn region(completion: &Completion) -> u64 {
    completion.request.start.0 / 8 / REGION
}

#[test]
fn directions_never_meet_across_the_barrier_and_the_device_never_rests_while_requests_wait() {
    let mut met_without = 0;
    for seed in 0..24 {
        let (requests, ..) = adversarial(seed);
        for (barrier, pass_over) in
            [("none", "0"), ("region", "0"), ("region", "8"), ("device", "0"), ("device", "8")]
        {
            let interface = ["blocking", "ncq:1", "ncq:8", "ncq:32"][seed as usize % 4];
            let tunables = [("barrier", barrier), ("pass_over", pass_over)];
            let (completions, _) = run(&config(interface, &tunables), &requests);
            let what = format!("seed {seed}, {interface}, barrier {barrier}, pass_over {pass_over}");
            let lone: Vec<&Completion> = completions
                .iter()
                .filter(|completion| completion.request.direction != completions[0].request.direction)
                .collect();
            let meets = |own_region: bool| {
                lone.iter().any(|lone| {
                    completions.iter().any(|other| {
                        other.request.direction != lone.request.direction
                            && overlap(lone, other)
                            && (!own_region || region(lone) == region(other))
                    })
                })
            };
            match barrier {
                "none" => met_without += u64::from(meets(false)),
                _ => assert!(!meets(barrier == "region"), "{what}"),
            }
            // From one issue to the next, something is out whenever anything waits.
            let mut busy_until = Ns::ZERO;
            for completion in &completions {
                assert!(completion.issued <= completion.released.max(busy_until), "{what}: {completion:?}");
                busy_until = busy_until.max(completion.completed);
            }
        }
    }
    assert!(met_without > 12, "the streams would show it: {met_without}");
}

#[test]
fn no_request_waits_longer_than_the_bound_on_any_stream_and_interface() {
    for seed in 0..60u64 {
        let (requests, flood, regions) = adversarial(seed);
        let mut random = generator(seed, "tunables");
        let barrier = ["none", "region", "device"][random.random_range(0..3)];
        let pass_over = [0u64, 1, 4, 64][random.random_range(0..4)];
        let batch = [1u64, 4, 16][random.random_range(0..3)];
        let interface = ["blocking", "ncq:1", "ncq:8", "ncq:32"][random.random_range(0..4)];
        let (pass_over_text, batch_text) = (pass_over.to_string(), batch.to_string());
        let tunables = [("barrier", barrier), ("pass_over", &pass_over_text), ("batch", &batch_text)];
        let what = format!("seed {seed}: {interface}, {tunables:?}");

        // By turns: a lone request's own comes within two rounds; the barrier lets `pass_over` others go before it, then those
        // that were owed one before it. The floods of the other direction in its own region are turns like all others.
        let never = [("read_expire", "86400000"), ("write_expire", "86400000")];
        let tunables_without: Vec<(&str, &str)> = tunables.iter().chain(&never).copied().collect();
        let (completions, _) = run(&config(interface, &tunables_without), &requests);
        let bound = (3 * regions + pass_over + 2) * batch;
        for lone in completions.iter().filter(|completion| completion.request.direction != flood) {
            let others = completions.iter().filter(|other| {
                other.request.direction == flood && other.issued > lone.released && other.issued < lone.issued
            });
            // Of its own kind, what arrived before goes first.
            let waited_before = completions.iter().filter(|other| {
                other.request.direction != flood
                    && other.released < lone.released
                    && other.issued > lone.released
            });
            let bound = bound * (waited_before.count() as u64 + 1);
            assert!(others.count() as u64 <= bound, "{what}: {lone:?}, at most {bound}");
        }

        // By time: behind its deadline, the turn under way, and one for each request whose deadline came before.
        let expire = 2_000_000;
        let soon = [("read_expire", "2"), ("write_expire", "2")];
        let tunables_with: Vec<(&str, &str)> = tunables.iter().chain(&soon).copied().collect();
        let (completions, _) = run(&config(interface, &tunables_with), &requests);
        for late in
            completions.iter().filter(|completion| completion.issued > completion.released + Ns(expire))
        {
            let deadline = late.released + Ns(expire);
            let earlier = completions
                .iter()
                .filter(|other| other.released <= late.released && other.issued >= deadline);
            let between =
                completions.iter().filter(|other| other.issued > deadline && other.issued < late.issued);
            // It is one of them, and there is the turn under way.
            let bound = (earlier.count() as u64 + 1) * batch;
            assert!(between.count() as u64 <= bound, "{what}: {late:?}, at most {bound}");
        }
    }
}
