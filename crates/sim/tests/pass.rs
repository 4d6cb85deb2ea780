//! PASS step by step (Li et al., JZUS-C 2014, section 3): regions in turn, batches of one direction by address, deadlines.

mod common;

use common::{device, run};
use planewise_model::profile::Regions;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::drivers::replay;
use planewise_sim::host::Merging;
use planewise_sim::{RunConfig, SimError, Simulator};

const PAGE: u64 = 4096;
/// Pages of a region in these tests.
const REGION: u64 = 100;

/// PASS in front of one plane that takes one command at a time: the order of issue is the scheduler's.
fn one_at_a_time(tunables: &[(&str, u64)]) -> RunConfig {
    let mut profile = device(1, 1, 1, 1);
    profile.interface.command_queue = "ncq:1".into();
    let mut config = RunConfig { scheduler: "pass".into(), ..RunConfig::new(profile) };
    config.tunables.push(("region_size".into(), (REGION * PAGE).to_string()));
    config.tunables.extend(tunables.iter().map(|(name, value)| ((*name).into(), value.to_string())));
    config
}

fn request(at: Ns, page: u64, direction: Direction) -> Request {
    Request::new(at, Lsn(page * 8), 8, direction)
}

/// Pages in the order in which they are issued, writes negative. The first request is there before all others.
fn order(config: &RunConfig, requests: &[Request]) -> Vec<i64> {
    let mut completions = run(config, requests).unwrap();
    completions.sort_by_key(|completion| completion.issued);
    completions
        .iter()
        .map(|completion| {
            let page = (completion.request.start.0 / 8) as i64;
            if completion.request.direction == Direction::Read { page } else { -page }
        })
        .collect()
}

fn reads(pages: &[u64]) -> Vec<Request> {
    pages.iter().map(|&page| request(Ns::ZERO, page, Direction::Read)).collect()
}

#[test]
fn regions_take_turns_and_each_turn_goes_up_by_address_to_the_batch_threshold() {
    let requests = reads(&[5, 3, 1, 4, 2, 105, 101, 104, 102, 205]);
    // All are there when the first is chosen. Region 0 begins at its lowest address; 205 is region 2's only one.
    let two = order(&one_at_a_time(&[("batch", 2)]), &requests);
    assert_eq!(two, [1, 2, 101, 102, 205, 3, 4, 104, 105, 5]);
    let three = order(&one_at_a_time(&[("batch", 3)]), &requests);
    assert_eq!(three, [1, 2, 3, 101, 102, 104, 205, 4, 5, 105]);
    let whole = order(&one_at_a_time(&[]), &requests);
    assert_eq!(whole, [1, 2, 3, 4, 5, 101, 102, 104, 105, 205]);
}

#[test]
fn a_turn_is_of_one_direction_and_the_next_of_the_other() {
    let mut requests = reads(&[1, 2, 3, 4]);
    requests.extend([5, 6, 7].map(|page| request(Ns::ZERO, page, Direction::Write)));
    requests.extend([101, 102].map(|page| request(Ns::ZERO, page, Direction::Write)));
    requests.extend(reads(&[103]));
    let order = order(&one_at_a_time(&[("batch", 2)]), &requests);
    // Region 0 reads, region 1 reads (one: its turn ends early), then both write, and so on.
    assert_eq!(order, [1, 2, 103, -5, -6, -101, -102, 3, 4, -7]);
}

#[test]
fn regions_without_requests_have_their_turns_too_and_those_alternate() {
    // The ring stands behind region 0 after its read: region 1 has its first turn, of reads. When region 0 writes as well, the ring
    // has gone round once, region 1 has had that turn with nothing in it, and its next is of writes.
    let cases: [(&[Direction], [i64; 2]); 2] =
        [(&[Direction::Read], [101, -102]), (&[Direction::Read, Direction::Write], [-102, 101])];
    for (before, expected) in cases {
        let mut requests: Vec<Request> = Vec::new();
        for (n, &direction) in before.iter().enumerate() {
            requests.push(request(Ns(1_000_000 * n as u64), 10 + n as u64, direction));
        }
        // While the last of those is served, one of each direction comes for region 1.
        let late = requests[before.len() - 1].arrival + Ns(1);
        requests.push(request(late, 102, Direction::Write));
        requests.push(request(late, 101, Direction::Read));
        let order = order(&one_at_a_time(&[("batch", 1)]), &requests);
        assert_eq!(order[before.len()..], expected, "after {before:?}");
    }
}

#[test]
fn a_turn_goes_on_from_where_the_last_one_ended_and_then_with_the_oldest() {
    // While 50 is served, 40, 60, 55 and 45 arrive: up from 50, then the oldest below, and up from there.
    let mut requests = reads(&[50]);
    requests.extend([40, 60, 55, 45].map(|page| request(Ns(1), page, Direction::Read)));
    assert_eq!(order(&one_at_a_time(&[("batch", 8)]), &requests), [50, 55, 60, 40, 45]);
}

#[test]
fn an_expired_request_has_the_next_turn_but_breaks_none_off() {
    // Six regions with reads; a write in the last of them expires after 1 ms.
    let pages: Vec<u64> = (0..6).flat_map(|region| (0..4).map(move |page| region * REGION + page)).collect();
    let mut requests = reads(&pages);
    requests.push(request(Ns::ZERO, 550, Direction::Write));
    let place = |config: &RunConfig| order(config, &requests).iter().position(|&page| page == -550);
    // A read takes 71 us: the deadline comes during the fourth turn of 4 reads, after 14 of them.
    assert_eq!(place(&one_at_a_time(&[("batch", 4), ("write_expire", 1)])), Some(16));
    // Without the deadline it has the turn after its region's reads.
    assert_eq!(place(&one_at_a_time(&[("batch", 4)])), Some(24));
}

#[test]
fn requests_merge_inside_their_region_only() {
    let config = RunConfig { merging: Merging::Full, ..one_at_a_time(&[]) };
    // 98 and 99 become one; 100 is adjacent to them, but of the next region.
    let requests = reads(&[0, 98, 100, 99, 101]);
    let completions = run(&config, &requests).unwrap();
    let done = |sequence| completions.iter().find(|c| c.sequence == sequence).unwrap().completed;
    assert_eq!(done(1), done(3));
    assert_eq!(done(2), done(4));
    assert_ne!(done(1), done(2));
}

#[test]
fn a_region_size_that_cannot_be_is_refused_before_anything_runs() {
    let error = |size: &str, batch: &str| {
        let mut config = one_at_a_time(&[]);
        config.tunables = vec![("region_size".into(), size.into()), ("batch".into(), batch.into())];
        match Simulator::new(&config, ()) {
            Err(error @ SimError::Option { .. }) => error.to_string(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{size}, {batch} was taken"),
        }
    };
    assert!(error("0", "16").contains("multiple of the page, 4096 bytes"));
    assert!(error("6000", "16").contains("multiple of the page, 4096 bytes"));
    assert!(error("four", "16").contains("such as 4294967296, 512m or 4g"));
    assert!(error("4096", "0").contains("from 1 to"));
    assert!(error("8k", "x").contains("pass.batch"));
    // Weave has the same regions, and checks the size even where no depth limits them.
    let weave = |size: &str| {
        let mut config = RunConfig { scheduler: "weave".into(), ..one_at_a_time(&[]) };
        config.tunables = vec![("region_size".into(), size.into())];
        Simulator::new(&config, ()).err().map(|error| error.to_string())
    };
    assert!(weave("0").unwrap().contains("weave.region_size"));
    assert!(weave("4g").is_none(), "not used");
}

#[test]
fn a_region_larger_than_the_device_is_one_region_and_the_results_say_so() {
    for (scheduler, depth) in [("pass", None), ("weave", Some("1"))] {
        let mut config = RunConfig { scheduler: scheduler.into(), ..one_at_a_time(&[]) };
        config.tunables = vec![("region_size".into(), "4g".into())];
        config.tunables.extend(depth.map(|depth| ("region_depth".to_owned(), depth.to_owned())));
        let notes = Simulator::new(&config, ()).unwrap().scheduler_notes();
        assert!(notes.len() == 1 && notes[0].contains("4294967296 bytes"), "{scheduler}: {notes:?}");
        assert!(notes[0].contains("one region"), "{notes:?}");
        let run =
            replay::replay(&config, &mut reads(&[1, 300, 2]).into_iter(), (), &mut options()).unwrap().0;
        assert_eq!(run.notes, notes);
    }
    // All of the device is one ring of one region: up by address, as one sub-queue does.
    let mut config = one_at_a_time(&[]);
    config.tunables[0].1 = "1t".into();
    assert_eq!(order(&config, &reads(&[5, 2000, 3, 1000])), [3, 5, 1000, 2000]);
    let notes = Simulator::new(&one_at_a_time(&[]), ()).unwrap().scheduler_notes();
    assert!(notes.is_empty(), "{notes:?}");
}

fn options() -> replay::ReplayOptions<'static> {
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let progress = Box::leak(Box::new(|_| {}));
    replay::ReplayOptions { warm_up: 0, stop: &STOP, progress, trace: "test", power_cut: None }
}

/// Figure 6: two regions that serve two requests at a time each, a device that takes four, and R1 to R4 of region 1, then Q1
/// to Q4 of region 2, all at once.
fn figure_6(scheduler: &str) -> Vec<(char, u32, u64, u64)> {
    const READ: u64 = 30_000 + 40_960;
    let mut profile = device(8, 1, 1, 1);
    profile.interface.command_queue = "ncq:4".into();
    profile.regions = Some(Regions { mib: 1, operations: 2 });
    let mut config = RunConfig { scheduler: scheduler.into(), ..RunConfig::new(profile) };
    if scheduler == "pass" {
        config.tunables = vec![("region_size".into(), "1m".into()), ("batch".into(), "2".into())];
    }
    // Eight chips and channels, one for each request: nothing but the regions is in the way.
    let pages = (0..4).chain(256 + 4..256 + 8);
    let requests: Vec<Request> = pages.map(|page| request(Ns::ZERO, page, Direction::Read)).collect();
    run(&config, &requests)
        .unwrap()
        .iter()
        .map(|completion| {
            let page = completion.request.start.0 / 8;
            let region = if page < 256 { 'R' } else { 'Q' };
            let (issued, completed) = (completion.issued.0, completion.completed.0);
            assert!(issued % READ == 0 && completed % READ == 0, "whole services: {issued}, {completed}");
            (region, (page % 4 + 1) as u32, issued / READ, completed / READ)
        })
        .collect()
}

#[test]
fn figure_6_pass_serves_both_regions_at_once_and_the_others_one_after_the_other() {
    // Request, when it is issued and when it is complete, in services.
    for scheduler in ["noop", "deadline"] {
        let found = figure_6(scheduler);
        let expected = [
            ('R', 1, 0, 1),
            ('R', 2, 0, 1),
            // They crowd their region: region 2 serves nobody until T1, when the device takes Q1 and Q2.
            ('R', 3, 0, 2),
            ('R', 4, 0, 2),
            ('Q', 1, 1, 2),
            ('Q', 2, 1, 2),
            ('Q', 3, 2, 3),
            ('Q', 4, 2, 3),
        ];
        assert!(expected.iter().all(|step| found.contains(step)), "{scheduler}: {found:?}");
    }
    let found = figure_6("pass");
    let expected = [
        ('R', 1, 0, 1),
        ('R', 2, 0, 1),
        ('Q', 1, 0, 1),
        ('Q', 2, 0, 1),
        ('R', 3, 1, 2),
        ('R', 4, 1, 2),
        ('Q', 3, 1, 2),
        ('Q', 4, 1, 2),
    ];
    assert!(expected.iter().all(|step| found.contains(step)), "{found:?}");
}
