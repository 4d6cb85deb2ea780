//! The bounds that ADIOS, K2 and FlashFQ claim, against streams made to break them: one direction, one unit or all of them, at
//! rates around what the device can serve, and bursts of the other kind, of the same process or another, among them.

mod common;

use common::{device, run};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::RunConfig;
use planewise_sim::observers::Completion;

const UNITS: u64 = 8;
const READ: u64 = 30_000 + 40_960;
const WRITE: u64 = 600_000 + 40_960;
/// Streams begin here, after one small request of each kind.
const BEGIN: u64 = 3_000_000;

/// A stream and the lone requests in it, three at a time.
#[derive(Clone, Copy, Debug)]
struct Attack {
    direction: Direction,
    /// On one unit, or on all in turn.
    one_unit: bool,
    /// Percent of what the device serves of this stream.
    rate: u64,
    /// Pages of a lone request: 1, or as many as there are units.
    lone_pages: u32,
    /// Whether somebody waits for writes.
    synchronous: bool,
    /// Whether the lone requests are of another process.
    other_process: bool,
}

impl Attack {
    fn all() -> Vec<Attack> {
        let mut all = Vec::new();
        for direction in Direction::ALL {
            for one_unit in [false, true] {
                for rate in [60, 100, 105, 200] {
                    for lone_pages in [1, UNITS as u32] {
                        for synchronous in [false, true] {
                            for other_process in [false, true] {
                                all.push(Attack {
                                    direction,
                                    one_unit,
                                    rate,
                                    lone_pages,
                                    synchronous,
                                    other_process,
                                });
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// The requests; lone ones are at pages from 20,000 on.
    fn requests(&self, milliseconds: u64) -> Vec<Request> {
        let service = if self.direction == Direction::Read { READ } else { WRITE };
        let gap = service * 100 / self.rate / if self.one_unit { 1 } else { UNITS };
        let end = BEGIN + milliseconds * 1_000_000;
        let page = |at: u64, number: u64, pages: u32, direction| Request {
            synchronous: direction == Direction::Read || self.synchronous,
            process: 1,
            ..Request::new(Ns(at), Lsn(number * 8), pages * 8, direction)
        };
        let mut requests =
            vec![page(0, 19_000, 1, Direction::Read), page(1_000_000, 19_001, 1, Direction::Write)];
        for (number, at) in (BEGIN..end).step_by(gap as usize).enumerate() {
            let number = number as u64 * if self.one_unit { UNITS } else { 1 };
            requests.push(page(at, number % 18_000, 1, self.direction));
        }
        let lone = if self.direction == Direction::Read { Direction::Write } else { Direction::Read };
        for number in 0..9 {
            // Three at a time: what is forgiven one is not forgiven the next.
            let at = BEGIN + (number / 3 + 1) * milliseconds * 250_000;
            let process = if self.other_process { 2 } else { 1 };
            requests.push(Request { process, ..page(at, 20_000 + 64 * number, self.lone_pages, lone) });
        }
        requests.sort_by_key(|request| request.arrival);
        requests
    }
}

fn is_lone(completion: &Completion) -> bool {
    completion.request.start.0 >= 20_000 * 8
}

/// Requests that were issued after a time and before another request was.
fn between<'a>(
    all: &'a [Completion],
    from: Ns,
    lone: &'a Completion,
) -> impl Iterator<Item = &'a Completion> {
    all.iter().filter(move |other| other.issued > from && other.issued < lone.issued)
}

/// Runs every attack on every interface and queue length, and hands over each lone request with all completions.
fn against_all(
    scheduler: &str,
    tunables: &[(&str, &str)],
    attacks: impl Fn(&Attack) -> bool,
    check: impl Fn(&Attack, &RunConfig, &[Completion], &Completion) -> Result<(), String>,
) {
    let mut seen = 0;
    for interface in ["blocking", "ncq:1", "ncq:8", "ncq:32"] {
        for queue_length in [1, 64, 4096] {
            let mut profile = device(UNITS as u32, 1, 1, 1);
            // So large that nothing is collected.
            profile.geometry.blocks_per_plane = 512;
            profile.interface.command_queue = interface.into();
            let mut config =
                RunConfig { scheduler: scheduler.into(), queue_length, ..RunConfig::new(profile) };
            config.tunables =
                tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            for attack in Attack::all().into_iter().filter(&attacks) {
                let completions = run(&config, &attack.requests(40)).unwrap();
                for lone in completions.iter().filter(|completion| is_lone(completion)) {
                    seen += 1;
                    if let Err(problem) = check(&attack, &config, &completions, lone) {
                        panic!("{scheduler} on {interface}, queue {queue_length}, {attack:?}: {problem}");
                    }
                }
            }
        }
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn under_adios_no_request_is_overtaken_by_more_than_a_queue_and_two_batches_once_it_is_due() {
    const TARGET: u64 = 5_000_000;
    against_all(
        "adios",
        &[("lat_target_write", "5000000")],
        |_| true,
        |attack, config, all, lone| {
            let is_due_later = lone.request.direction == Direction::Write && !attack.synchronous;
            // Of eight pages on one plane each; learned side by side, it is never predicted to take longer than so.
            let predicted = 8 * WRITE;
            let due = lone.entered + Ns(if is_due_later { TARGET + predicted } else { 0 });
            // Those with earlier deadlines, a batch going out and one behind it, and what bias lets reads run ahead: six times
            // the cost of a write over that of a read.
            let allowed = config.queue_length as usize + 2 * (36 + 72) + 6 * 10;
            let overtaken = between(all, due, lone).count();
            if overtaken <= allowed {
                Ok(())
            } else {
                Err(format!("overtaken by {overtaken}, at most {allowed}"))
            }
        },
    );
}

#[test]
fn under_k2_nothing_overtakes_a_real_time_request_and_little_is_before_it() {
    const BOUND: u64 = 2_000_000;
    let tunables = [
        ("max_inflight_latency", "2000000"),
        // As on this device: a page after another on the same plane in the worst case.
        ("read_4k_ns", "70960"),
        ("read_128k_ns", "2270720"),
        ("write_4k_ns", "640960"),
        ("write_128k_ns", "20510720"),
    ];
    let reads_are_lone = |attack: &Attack| attack.direction == Direction::Write;
    against_all("k2", &tunables, reads_are_lone, |_, _, all, lone| {
        let overtaken = between(all, lone.entered, lone).filter(|other| !is_lone(other)).count();
        if overtaken > 0 {
            return Err(format!("overtaken by {overtaken}"));
        }
        // What is at the device ends within what it is reckoned to take, one after the other; then the two before this one.
        let (waited, processing) = (lone.issued - lone.entered, lone.completed - lone.issued);
        let allowed = Ns(BOUND + 2 * 8 * READ);
        if waited > allowed {
            return Err(format!("waited {waited}, at most {allowed}"));
        }
        let allowed = Ns(BOUND);
        if processing <= allowed {
            Ok(())
        } else {
            Err(format!("{processing} at the device, at most {allowed}"))
        }
    });
}

#[test]
fn under_flashfq_a_process_that_is_behind_goes_next_or_is_overtaken_by_the_throttle_at_most() {
    const THROTTLE: u64 = 5_000_000;
    against_all(
        "flashfq",
        &[("throttle", "5")],
        |attack| attack.other_process,
        |_, config, all, lone| {
            let cost = |other: &Completion| match other.request.direction {
                Direction::Read => 70_960,
                Direction::Write => 640_960,
            };
            let others = between(all, lone.entered, lone)
                .filter(|other| other.request.process != lone.request.process);
            let overtaken: u64 = others.map(cost).sum();
            // Those with lower start tags while the two before this one are served, and one with the same that came first.
            let allowed = 2 * 700_000 + WRITE;
            let is_blocking = config.profile.interface.command_queue == "blocking";
            let allowed = if is_blocking { allowed + THROTTLE } else { allowed };
            if overtaken <= allowed {
                Ok(())
            } else {
                Err(format!("overtaken by {overtaken} ns, at most {allowed} ns"))
            }
        },
    );
}

#[test]
fn under_flashfq_requests_of_one_process_keep_their_order() {
    against_all(
        "flashfq",
        &[],
        |attack| !attack.other_process,
        |_, _, all, lone| {
            let overtaken =
                between(all, lone.entered, lone).filter(|other| other.sequence > lone.sequence).count();
            if overtaken == 0 { Ok(()) } else { Err(format!("overtaken by {overtaken}")) }
        },
    );
}

#[test]
fn without_those_bounds_the_lone_request_waits_for_as_long_as_the_stream_lasts() {
    // What the tests above would not see if the streams were harmless: each without what it claims its bound by.
    let cases: [(&str, &[(&str, &str)], bool); 3] = [
        ("adios", &[("lat_target_write", "60000000000")], false),
        // K2 claims nothing for what is not real-time.
        ("k2", &[], false),
        ("flashfq", &[("throttle", "86400000")], true),
    ];
    for (scheduler, tunables, blocking) in cases {
        let mut profile = device(UNITS as u32, 1, 1, 1);
        profile.geometry.blocks_per_plane = 512;
        profile.interface.command_queue = if blocking { "blocking" } else { "ncq:8" }.into();
        let mut config =
            RunConfig { scheduler: scheduler.into(), queue_length: 4096, ..RunConfig::new(profile) };
        config.tunables = tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let attack = Attack {
            direction: Direction::Read,
            one_unit: false,
            rate: 200,
            lone_pages: UNITS as u32,
            synchronous: false,
            other_process: true,
        };
        let completions = run(&config, &attack.requests(200)).unwrap();
        let waits = completions
            .iter()
            .filter(|completion| is_lone(completion))
            .map(|lone| lone.issued - lone.entered);
        let longest = waits.max().unwrap();
        assert!(longest > Ns::from_millis(100), "{scheduler}: {longest}");
    }
}
