//! A scheduler of the kernel's beside ours: what the block layer of a run of `planewise linux` put into its scheduler goes into ours at the same
//! instants, before the same drive, and the two orders and latencies are compared.

use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_sim::host::{
    BlockLayer, CommandQueue, DeviceWaits, HostStack, Merging, Overlap, QueuedRequest, RequestPools, Slot,
    StackConfig,
};
use planewise_sim::observers::Observer;
use planewise_sim::{RunConfig, Simulator};
use std::collections::{BTreeMap, VecDeque};

/// What the kernel's tracer says of a request.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub request: Request,
    /// It went past the scheduler: it has no insert event. Its arrival is its issue then.
    pub is_past: bool,
    /// Whether the next request went in at once with this one, before anything was dispatched.
    pub with_next: bool,
    pub completed: Option<Ns>,
}

/// What happened to a request.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enter,
    Issue,
    Complete,
}

/// Requests by arrival, and in the order in which they were issued.
#[derive(Debug, Default)]
pub struct Events {
    /// All that happened, with the request and the time.
    steps: Vec<(Step, usize, Ns)>,
    pub requests: Vec<Told>,
    /// Index of the request, and when.
    pub issued: Vec<(usize, Ns)>,
}

/// One event: `comm-pid [cpu] flags seconds: event: device rwbs bytes (command) sector + sectors [comm]`.
struct Line<'a> {
    time: Ns,
    process: u32,
    /// The process that it is a worker of io_uring's for.
    works_for: Option<u32>,
    name: &'a str,
    letters: &'a str,
    sector: u64,
    sectors: u32,
}

fn line(text: &str) -> Option<Line<'_>> {
    let (before, rest) = text.split_once(" [000] ")?;
    let (command, own) = before.rsplit_once('-')?;
    let mut words = rest.split_whitespace().skip(1);
    let (seconds, fraction) = words.next()?.trim_end_matches(':').split_once('.')?;
    assert_eq!(fraction.len(), 9, "the stamps of --tracepoints are in ns: {text}");
    let name = words.next()?.trim_end_matches(':').strip_prefix("block_rq_")?;
    let letters = words.nth(1)?;
    let (_, place) = text.split_once(") ")?;
    let mut place = place.split_whitespace();
    Some(Line {
        time: Ns(seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()),
        process: own.trim().parse().unwrap(),
        works_for: command.trim().strip_prefix("iou-wrk-").map(|process| process.parse().unwrap()),
        name,
        letters,
        sector: place.next()?.parse().unwrap(),
        sectors: place.nth(1)?.parse().unwrap(),
    })
}

impl Events {
    /// Reads block-events.txt; times count from its first event.
    pub fn read(text: &str) -> Events {
        let mut events = Events::default();
        let mut origin = None;
        // What is in the scheduler, and at the drive, by what the events say of it.
        let mut waiting: BTreeMap<(u64, u32, bool), VecDeque<usize>> = BTreeMap::new();
        let mut out = waiting.clone();
        let mut last_was_insert = false;
        // A worker of io_uring's shares the I/O context of the process that it works for, if that one had one when the worker began: then it had asked
        // for something itself.
        let mut contexts: BTreeMap<u32, u32> = BTreeMap::new();
        for told in text.lines().filter(|text| !text.starts_with('#')) {
            let Some(told) = line(told) else { panic!("not an event: {told}") };
            let now = told.time - *origin.get_or_insert(told.time);
            let body = told.letters.trim_start_matches('F');
            let is_flush = told.sectors == 0;
            let direction = if body.starts_with('R') { Direction::Read } else { Direction::Write };
            // A flush ends at no sector, as the kernel prints it.
            let sector = if is_flush { 0 } else { told.sector };
            let key = (sector, told.sectors, direction == Direction::Read);
            let mut enter = |is_past| {
                let mut request = match is_flush {
                    true => Request::flush(now),
                    false => Request::new(now, Lsn(told.sector), told.sectors, direction),
                };
                let shared = told.works_for.and_then(|process| contexts.get(&process).copied());
                request.process = *contexts.entry(told.process).or_insert(shared.unwrap_or(told.process));
                // As the kernel has it: reads, and what bears one of these letters.
                request.synchronous |=
                    is_flush || body[1..].contains(['S', 'F']) || told.letters.starts_with("FW");
                events.requests.push(Told { request, is_past, with_next: false, completed: None });
                events.requests.len() - 1
            };
            match told.name {
                "insert" => {
                    let index = enter(false);
                    events.steps.push((Step::Enter, index, now));
                    waiting.entry(key).or_default().push_back(index);
                    if last_was_insert {
                        events.requests[index - 1].with_next =
                            events.requests[index - 1].request.arrival == now;
                    }
                }
                "issue" => {
                    let known = waiting.get_mut(&key).and_then(VecDeque::pop_front);
                    let index = known.unwrap_or_else(|| enter(true));
                    if known.is_none() {
                        events.steps.push((Step::Enter, index, now));
                    }
                    events.steps.push((Step::Issue, index, now));
                    out.entry(key).or_default().push_back(index);
                    events.issued.push((index, now));
                }
                "complete" => {
                    if let Some(index) = out.get_mut(&key).and_then(VecDeque::pop_front) {
                        events.requests[index].completed = Some(now);
                        events.steps.push((Step::Complete, index, now));
                    }
                }
                other => panic!("no event of ours: {other}"),
            }
            last_was_insert = told.name == "insert";
        }
        events
    }
}

/// Notes in which order requests are issued.
#[derive(Default)]
struct Order(Vec<(usize, Ns)>);

impl Observer for Order {
    fn issue(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.0.push((request.sequence as usize, now));
    }
}

/// What ours does with the same arrivals.
pub struct Ours {
    pub issued: Vec<(usize, Ns)>,
    pub completed: Vec<Ns>,
}

fn config(profile: &Profile, scheduler: &str, tunables: &[(&str, &str)], tags: u32) -> RunConfig {
    let mut profile = profile.clone();
    profile.interface.command_queue = CommandQueue::Ncq(tags).to_string();
    RunConfig {
        scheduler: scheduler.into(),
        tunables: tunables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        queue_length: 4096,
        overlap: Overlap::Ignore,
        ..RunConfig::new(profile)
    }
}

/// Feeds the arrivals to one of our schedulers before a drive of `tags` commands.
///
/// `discarded`: making the file system has discarded its sectors before.
pub fn ours(
    events: &Events,
    profile: &Profile,
    scheduler: &str,
    tunables: &[(&str, &str)],
    tags: u32,
    discarded: u64,
) -> Ours {
    let config = config(profile, scheduler, tunables, tags);
    let mut simulator = Simulator::new(&config, Order::default()).unwrap();
    simulator.keep_completions();
    // What was before the run is over by then.
    const BEGIN: Ns = Ns::from_millis(100_000);
    let before = u64::from(discarded > 0);
    if before > 0 {
        simulator.submit(&Request::discard(Ns::ZERO, Lsn(0), discarded as u32)).unwrap();
    }
    for told in &events.requests {
        let arrival = told.request.arrival + BEGIN;
        while simulator.next_event() < arrival {
            simulator.advance(simulator.next_event().min(arrival)).unwrap();
        }
        simulator.submit(&Request { arrival, ..told.request }).unwrap();
        if !told.with_next {
            // It is in the scheduler alone, before the next one is.
            simulator.advance(arrival).unwrap();
        }
    }
    simulator.finish_requests().unwrap();
    let mut completions = Vec::new();
    simulator.take_completions(&mut completions);
    let mut completed = vec![Ns::ZERO; events.requests.len()];
    for completion in completions.iter().filter(|completion| completion.sequence >= before) {
        completed[(completion.sequence - before) as usize] = completion.completed - BEGIN;
    }
    let issued = simulator.into_observer().0.into_iter().filter(|(sequence, _)| *sequence >= before as usize);
    let issued = issued.map(|(sequence, at)| (sequence - before as usize, at - BEGIN)).collect();
    Ours { issued, completed }
}

/// What our scheduler decides when everything else is the kernel's: each time that the kernel issued a request it is asked for one, and what it
/// issued n-th completes when the kernel's n-th did. A drive that answers otherwise, or a processor that is busy, has no part in that.
pub fn decisions(
    events: &Events,
    profile: &Profile,
    scheduler: &str,
    tunables: &[(&str, &str)],
    tags: u32,
) -> Vec<(usize, Ns)> {
    let config = config(profile, scheduler, tunables, tags);
    let knowledge = config.host_knowledge().unwrap();
    let mut stack = HostStack::new(&StackConfig {
        scheduler: config.scheduler.clone(),
        tunables: config.tunables.clone(),
        conflict_units: knowledge.units.clone(),
        knowledge,
        merging: Merging::None,
        max_sectors_kb: config.max_sectors_kb,
        block_layer: BlockLayer::Direct,
        overlap: Overlap::Ignore,
        command_queue: CommandQueue::Ncq(tags),
        request_pools: RequestPools::One,
        slots_apart: 0,
    })
    .unwrap();
    let takes_any = |_: &QueuedRequest| true;
    let mut issued: Vec<(usize, Ns)> = Vec::new();
    let mut slots = Vec::new();
    // Position of a request in the kernel's order, and completions that came before our request of that position was issued.
    let mut position = vec![usize::MAX; events.requests.len()];
    let mut asked = 0;
    let mut early = Vec::new();
    for &(step, index, now) in &events.steps {
        if stack.queue().pending() >= config.queue_length {
            // It holds back what the kernel does not: no decision from here on is the kernel's.
            break;
        }
        match step {
            Step::Enter => stack.enter(now, &events.requests[index].request, &mut (), |(), _, _| {}),
            Step::Issue => {
                position[index] = asked;
                asked += 1;
            }
            Step::Complete => early.push(position[index]),
        }
        let mut held = Vec::new();
        for place in early.drain(..) {
            match slots.get(place) {
                Some(&slot) => stack.complete(now, slot, DeviceWaits::default(), &mut ()),
                None => held.push(place),
            }
        }
        early = held;
        while issued.len() < asked {
            let Some(slot) = stack.next_issue(now, &takes_any, &mut ()) else { break };
            issued.push((stack.queue().get(slot).sequence as usize, now));
            slots.push(slot);
        }
        if stack.queue().outstanding() >= tags {
            assert_eq!(stack.next_issue(now, &takes_any, &mut ()), None);
        }
    }
    issued
}

/// Mean and 99th percentile, ms, and how many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub count: usize,
    pub mean: f64,
    pub p99: f64,
}

impl Latency {
    fn of(mut latencies: Vec<u64>) -> Latency {
        latencies.sort_unstable();
        let Some(last) = latencies.len().checked_sub(1) else { return Latency::default() };
        let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
        let p99 = latencies[(latencies.len() * 99).div_ceil(100).saturating_sub(1).min(last)];
        Latency { count: latencies.len(), mean: mean / 1e6, p99: p99 as f64 / 1e6 }
    }
}

/// Where two orders part: the position, and for each the request that is there and when it was issued.
#[derive(Clone, Copy, Debug)]
pub struct Parting {
    pub at: usize,
    pub kernel: (usize, Ns),
    pub ours: (usize, Ns),
}

/// Where two orders first differ.
fn parting(kernel: &[(usize, Ns)], ours: &[(usize, Ns)]) -> Option<Parting> {
    let mut pairs = kernel.iter().zip(ours).enumerate();
    let (at, (kernel, ours)) = pairs.find(|(_, (one, other))| one.0 != other.0)?;
    Some(Parting { at, kernel: *kernel, ours: *ours })
}

/// How the two compare.
#[derive(Debug)]
pub struct Beside {
    pub requests: usize,
    pub past: usize,
    /// Share of positions in the order of dispatch that hold the same request.
    pub same_position: f64,
    /// The same where everything but the decision is the kernel's.
    pub same_decision: f64,
    /// Share of positions that hold a request of the same direction.
    pub same_direction: f64,
    /// Spearman's, of positions.
    pub rank: f64,
    /// Longest way between a request's two positions.
    pub displaced_max: usize,
    /// Latency by direction: the kernel's, ours.
    pub latency: [[Latency; 2]; 2],
    /// First position that differs.
    pub parts: Option<Parting>,
    /// The same where everything but the decision is the kernel's.
    pub first_other_decision: Option<Parting>,
}

impl Beside {
    /// Compares them over the requests that the kernel has seen end.
    pub fn of(events: &Events, ours: &Ours, decisions: &[(usize, Ns)]) -> Beside {
        let ended = |index: &usize| events.requests[*index].completed.is_some();
        let keep = |issued: &[(usize, Ns)]| -> Vec<(usize, Ns)> {
            issued.iter().copied().filter(|(index, _)| ended(index)).collect()
        };
        let (kernel, own) = (keep(&events.issued), keep(&ours.issued));
        assert_eq!(kernel.len(), own.len());
        let count = kernel.len();
        let mut position = vec![0; events.requests.len()];
        own.iter().enumerate().for_each(|(at, (index, _))| position[*index] = at);
        let reads = |index: usize| events.requests[index].request.direction == Direction::Read;
        let pairs = || kernel.iter().zip(&own);
        let ways = || kernel.iter().enumerate().map(|(at, (index, _))| position[*index].abs_diff(at));
        let squares: f64 = ways().map(|way| (way as f64).powi(2)).sum();
        let n = count as f64;
        let share = |same: usize| same as f64 / n;
        let latency = |direction, of: &dyn Fn(usize) -> Ns| {
            let all = kernel.iter().map(|(index, _)| *index);
            let mine = all.filter(|index| {
                let request = &events.requests[*index].request;
                request.direction == direction && request.is_transfer()
            });
            Latency::of(mine.map(|index| (of(index) - events.requests[index].request.arrival).0).collect())
        };
        let both = |direction| {
            [
                latency(direction, &|index| events.requests[index].completed.unwrap()),
                latency(direction, &|index| ours.completed[index]),
            ]
        };
        Beside {
            requests: count,
            past: events.requests.iter().filter(|told| told.is_past).count(),
            same_position: share(pairs().filter(|(one, other)| one.0 == other.0).count()),
            same_decision: {
                let pairs = events.issued.iter().zip(decisions);
                let same = pairs.filter(|(one, other)| one.0 == other.0).count();
                same as f64 / events.issued.len() as f64
            },
            same_direction: share(pairs().filter(|(one, other)| reads(one.0) == reads(other.0)).count()),
            rank: 1.0 - 6.0 * squares / (n * (n * n - 1.0)).max(1.0),
            displaced_max: ways().max().unwrap_or(0),
            latency: Direction::ALL.map(both),
            parts: parting(&kernel, &own),
            first_other_decision: parting(&events.issued, decisions),
        }
    }
}
