//! Garbage collection schemes: what each promises, on devices small enough to see it.

mod common;

use common::{aged, device, measure, measure_until, pages, run, watch};
use planewise_model::profile::{PageLatency, Profile, ReadAhead, StreamRule, WriteBuffer};
use planewise_model::rng::generator;
use planewise_model::{Direction, Geometry, Lpn, Lsn, Ns, Ppn, Request};
use planewise_sim::drivers::replay::PowerCut;
use planewise_sim::gc::SCHEMES;
use planewise_sim::host::{Overlap, QueuedRequest, Slot};
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::{
    ArrayOperation, Cause, Collected, Completion, Meeting, Observer, Origin, Work,
};
use planewise_sim::results::{GcMetrics, RunResult};
use planewise_sim::{Condition, RunConfig, SimError, Simulator};
use rand::RngExt;

/// Bursts of requests of 1 to 4 pages on the first half of the device, with pauses between them.
fn bursts(config: &RunConfig, count: u64, read_share: f64, gap_us: u64) -> Vec<Request> {
    let mut random = generator(config.seed, "bursts of the collection tests");
    let pages = config.profile.user_capacity().0 / 4096 / 2;
    let mut now = 0;
    (0..count)
        .map(|number| {
            now +=
                if number % 16 == 0 { 20 * gap_us * 1000 } else { random.random_range(0..2 * gap_us * 1000) };
            let length = random.random_range(1..=4u64);
            let start = random.random_range(0..pages - length);
            let direction =
                if random.random::<f64>() < read_share { Direction::Read } else { Direction::Write };
            Request::new(Ns(now), Lsn(start * 8), (length * 8) as u32, direction)
        })
        .collect()
}

fn gc(config: &RunConfig, requests: &[Request]) -> GcMetrics {
    measure(config, requests).metrics.gc
}

/// Everything that happens, in words.
#[derive(Default)]
struct Log(Vec<String>);

macro_rules! log {
    ($self:ident, $($argument:expr),*) => { $self.0.push(format!("{:?}", ($($argument),*))) };
}

impl Observer for Log {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        log!(self, "start", geometry, executors);
    }
    fn enter(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        log!(self, "enter", now, slot, request.sequence);
    }
    fn issue(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        log!(self, "issue", now, slot, request.sequence, request.overtakes);
    }
    fn complete(&mut self, slot: Slot, completion: &Completion) {
        log!(self, "complete", slot, completion);
    }
    fn page_read(&mut self, now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, modify: bool) {
        log!(self, "read", now, slot, lpn, ppn, modify);
    }
    fn page_program(&mut self, now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn) {
        log!(self, "program", now, origin, lpn, ppn);
    }
    fn block_erase(&mut self, now: Ns, block: u32) {
        log!(self, "erase", now, block);
    }
    fn channel_busy(&mut self, channel: u32, executor: u32, from: Ns, to: Ns, work: Work) {
        log!(self, "channel", channel, executor, from, to, work);
    }
    fn array_busy(&mut self, executor: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, work: Work) {
        log!(self, "array", executor, from, to, what, planes, work);
    }
    fn operation_start(&mut self, now: Ns, executor: u32, planes: u32) {
        log!(self, "operation", now, executor, planes);
    }
    fn operation_end(&mut self, now: Ns, executor: u32, planes: u32) {
        log!(self, "end", now, executor, planes);
    }
    fn collection_start(&mut self, now: Ns, executor: u32, cause: Cause) {
        log!(self, "collection", now, executor, cause);
    }
    fn collection_end(&mut self, now: Ns, executor: u32, what: &Collected) {
        log!(self, "collected", now, executor, what);
    }
    fn meets(&mut self, now: Ns, slot: Slot, meeting: Meeting) {
        log!(self, "meets", now, slot, meeting);
    }
}

fn events(config: &RunConfig, requests: &[Request]) -> Vec<String> {
    watch(config, requests, Log::default()).0
}

#[test]
fn idle_chip_with_a_buffer_of_no_pages_is_traditional_event_for_event() {
    for (queue, allocation) in
        [("blocking", "dynamic"), ("ncq:32", "dynamic"), ("blocking", "cwdp"), ("ncq:8", "cwdp")]
    {
        for streams in [StreamRule::Conflict, StreamRule::All] {
            let mut config = aged("traditional");
            config.profile.interface.command_queue = queue.into();
            config.profile.translation.allocation = allocation.into();
            let requests = bursts(&config, 3_000, 0.4, 150);
            let traditional = events(&config, &requests);
            config.profile.collection.scheme = "idle_chip".into();
            config.profile.collection.buffer_pages = 0;
            config.profile.collection.streams = streams;
            let found = events(&config, &requests);
            let collections = traditional.iter().filter(|event| event.starts_with("(\"collected\"")).count();
            assert!(collections > 100, "{queue} {allocation}: {collections} collections");
            let differing = traditional.iter().zip(&found).position(|(a, b)| a != b);
            assert_eq!(differing, None, "{queue} {allocation}");
            assert_eq!(traditional.len(), found.len());
        }
    }
}

#[test]
fn parallel_collection_without_multi_plane_commands_or_planes_is_traditional_event_for_event() {
    for (multi_plane, planes) in [(false, 2), (true, 1)] {
        for die_interleave in [true, false] {
            let mut config = aged("traditional");
            config.profile.geometry.planes_per_die = planes;
            config.profile.advanced_commands.multi_plane = multi_plane;
            config.profile.advanced_commands.die_interleave = die_interleave;
            let requests = bursts(&config, 3_000, 0.4, 150);
            let traditional = events(&config, &requests);
            config.profile.collection.scheme = "parallel".into();
            let found = events(&config, &requests);
            assert!(traditional.iter().filter(|event| event.starts_with("(\"collected\"")).count() > 100);
            assert!(traditional == found, "multi-plane {multi_plane}, {planes} planes");
        }
    }
}

#[test]
fn with_a_buffer_that_never_fills_no_page_moves_the_traditional_way() {
    for allocation in ["dynamic", "cwdp"] {
        let mut config = aged("idle_chip");
        config.profile.translation.allocation = allocation.into();
        config.profile.collection.streams = StreamRule::All;
        config.profile.collection.buffer_pages = u32::try_from(config.profile.most_buffer_pages()).unwrap();
        let gc = gc(&config, &bursts(&config, 4_000, 0.6, 2_000));
        assert!(gc.buffer.occupancy_max < config.profile.collection.buffer_pages, "it never filled");
        assert!(gc.pages_moved > 1_000, "{}", gc.pages_moved);
        assert_eq!(gc.pages_buffered, gc.pages_moved, "{allocation}");
        assert_eq!(gc.buffered_share, 1.0);
        assert_eq!(gc.cost.program_ns, 0.0, "the collected chip programs nothing");
    }
}

/// Under rule 1 a stream needs somebody who waits.
#[test]
fn a_collection_opens_a_stream_only_if_it_is_in_the_way_of_a_request() {
    let config = aged("idle_chip");
    let every = |gap: Ns, together: u64| {
        let requests: Vec<Request> = bursts(&config, 2_000, 0.0, 100)
            .iter()
            .enumerate()
            .map(|(number, request)| Request {
                arrival: Ns(gap.0 * (number as u64 / together)),
                sectors: 8,
                ..*request
            })
            .collect();
        gc(&config, &requests)
    };
    let quiet = every(Ns::from_millis(60), 1);
    assert!(quiet.collections > 50, "{}", quiet.collections);
    assert_eq!(quiet.pages_buffered, 0, "nobody waits, nobody streams");
    assert_eq!(quiet.idle_share, 1.0);
    // Sixteen at once on eight dies: some wait, and find the dies collecting.
    let busy = every(Ns::from_millis(60), 16);
    assert!(busy.buffered_share > 0.05 && busy.buffered_share < 1.0, "{}", busy.buffered_share);
}

#[test]
fn a_buffered_page_serves_reads_and_absorbs_writes() {
    let mut config = aged("idle_chip");
    config.profile.collection.streams = StreamRule::All;
    // A small working set meets its own pages on their way through the buffer.
    let requests: Vec<Request> = bursts(&config, 20_000, 0.5, 500)
        .iter()
        .map(|request| Request { start: Lsn(request.start.0 % 40_000 / 8 * 8), ..*request })
        .collect();
    let gc = gc(&config, &requests);
    assert!(gc.buffer.reads_served > 10, "{:?}", gc.buffer);
    assert!(gc.buffer.writes_absorbed > 10, "{:?}", gc.buffer);
    assert!(gc.buffer.written_back > 100 && gc.buffer.residency_ns_mean > 600_000.0, "{:?}", gc.buffer);
    assert!(gc.buffer.occupancy_max <= 128);
}

/// A page was read ahead, and then a write of it absorbed: the next read must not have what was read ahead.
#[test]
fn what_was_read_ahead_of_a_page_is_old_once_the_valid_page_buffer_absorbs_a_write_of_it() {
    let mut config = aged("idle_chip");
    config.profile.interface.command_queue = "ncq:32".into();
    config.profile.collection.streams = StreamRule::All;
    config.profile.collection.threshold = 0.079;
    config.profile.collection.ahead = 0.079;
    config.profile.read_ahead = Some(ReadAhead {
        streams: 8,
        trigger: 2,
        window_pages: 32,
        run_pages: 8,
        buffer_pages: 256,
        dropped_by_writes: false,
    });
    // Half of the reads go on where the one before ended.
    let mut end = 0;
    let requests: Vec<Request> = bursts(&config, 30_000, 0.5, 300)
        .iter()
        .enumerate()
        .map(|(number, request)| {
            let goes_on = request.direction == Direction::Read && number % 8 != 0;
            let start = if goes_on { end } else { request.start.0 % 12_000 / 8 * 8 };
            if request.direction == Direction::Read {
                end = (start + u64::from(request.sectors)) % 12_000;
            }
            Request { start: Lsn(start), ..*request }
        })
        .collect();
    // It checks that reads return what was written last.
    let gc = gc(&config, &requests);
    assert!(gc.buffer.writes_absorbed > 10, "{:?}", gc.buffer);
}

/// Behind a write buffer host writes do not pass the valid page buffer: what it holds of their pages is old from then on.
#[test]
fn a_page_that_the_write_buffer_wrote_to_flash_is_not_programmed_again_from_the_valid_page_buffer() {
    let mut config = aged("idle_chip");
    config.profile.interface.command_queue = "ncq:32".into();
    config.profile.collection.streams = StreamRule::All;
    config.profile.write_buffer = Some(WriteBuffer {
        pages: 64,
        watermark: 0.0,
        run_pages: 4,
        entry_order: true,
        in_flight_pages: 32,
        power_loss_protection: true,
    });
    let requests: Vec<Request> = bursts(&config, 20_000, 0.5, 150)
        .iter()
        .map(|request| Request { start: Lsn(request.start.0 % 40_000 / 8 * 8), ..*request })
        .collect();
    let seen = watch(&config, &requests, <(Invariants, Replaced)>::default());
    seen.0.report().unwrap_or_else(|violations| panic!("{violations}"));
    assert!(seen.1.0 > 10, "{} pages were replaced", seen.1.0);
    // Until the new page is in flash or in the write buffer, the old one is there for a power cut.
    let end = requests.last().unwrap().arrival.0;
    let mut random = generator(config.seed, "power cuts behind a write buffer");
    for _ in 0..12 {
        let at = Ns(random.random_range(0..end));
        let result = measure_until(&config, &requests, Some(PowerCut::At(at))).unwrap();
        assert_eq!(result.metrics.gc.power_loss.map(|loss| loss.lost_pages), Some(0), "cut at {at}");
    }
}

/// Pages that left the valid page buffer because the host had written them elsewhere.
#[derive(Default)]
struct Replaced(u64);

impl Observer for Replaced {
    fn page_replaced(&mut self, _now: Ns, _lpn: Lpn, _at: Ppn) {
        self.0 += 1;
    }
}

/// Again and again three hundred milliseconds of reads of one die: pages of others go back meanwhile.
#[test]
fn with_static_allocation_a_busy_chip_keeps_back_its_own_pages_alone() {
    let mut config = aged("idle_chip");
    config.profile.translation.allocation = "cwdp".into();
    config.profile.interface.command_queue = "ncq:4096".into();
    config.profile.collection.streams = StreamRule::All;
    (config.queue_length, config.overlap) = (4096, Overlap::Ignore);
    // Nothing waits in the queue. Pages n x 16 are on plane 0, n x 16 + 8 on the other of its die.
    let mut requests: Vec<Request> = bursts(&config, 6_000, 0.0, 2_000);
    for place in (1_000..6_000).step_by(250).rev() {
        let at = requests[place].arrival;
        let reads = (0..4_000).map(|n| Request::new(at, Lsn((500 + n % 300) * 128), 8, Direction::Read));
        requests.splice(place..place, reads);
    }
    let stay = watch(&config, &requests, <Stay>::default());
    assert!(stay.away.len() > 1_000, "{}", stay.away.len());
    let longest = stay.away.iter().max().unwrap();
    assert!(*longest < Ns::from_millis(40), "a page of another die stayed for {longest}");
    assert!(stay.home > Ns::from_millis(100), "pages of the busy die waited for it: {}", stay.home);
}

/// How long pages stay in the buffer: those of the first die, at most, and all others.
#[derive(Default)]
struct Stay {
    since: std::collections::HashMap<u32, Ns>,
    home: Ns,
    away: Vec<Ns>,
}

impl Observer for Stay {
    fn page_buffered(&mut self, now: Ns, lpn: Lpn, _from: Ppn, _to: Ppn) {
        self.since.insert(lpn.0, now);
    }

    fn page_program(&mut self, now: Ns, origin: Origin, lpn: Lpn, _ppn: Ppn) {
        if !matches!(origin, Origin::Buffer { .. }) {
            return;
        }
        let stayed = now - self.since[&lpn.0];
        if lpn.0.is_multiple_of(8) { self.home = self.home.max(stayed) } else { self.away.push(stayed) }
    }
}

/// A host request waits for one step at most, as long as space allows; under the traditional scheme for the whole collection.
#[test]
fn preemption_lets_reads_in_after_one_step_and_nobody_below_the_hard_floor() {
    let longest_read = |scheme: &str, threshold: f64, floor: f64| {
        let mut config = aged(scheme);
        config.profile.interface.command_queue = "ncq:64".into();
        config.profile.collection.threshold = threshold;
        config.profile.collection.floor = floor;
        config.profile.collection.ahead = threshold;
        // One page at a time and pauses longer than a whole collection: only collections are ever in the way.
        let requests: Vec<Request> = bursts(&config, 6_000, 0.5, 100)
            .iter()
            .enumerate()
            .map(|(number, request)| Request { arrival: Ns(number as u64 * 900_000), sectors: 8, ..*request })
            .collect();
        let result = measure(&config, &requests);
        assert!(result.metrics.gc.collections > 100, "{scheme}");
        Ns(result.metrics.read.latency_ns.max)
    };
    let erase_and_read = Ns(3_000_000 + 3 * 71_000 + 641_000);
    assert!(longest_read("preemptive", 0.08, 0.0) <= erase_and_read);
    assert!(longest_read("traditional", 0.08, 0.0) > Ns::from_millis(6));
    let held = longest_read("preemptive", 0.08, 0.08);
    assert_eq!(
        held,
        longest_read("traditional", 0.08, 0.0),
        "a floor at the threshold leaves no room to preempt"
    );
}

#[test]
fn a_read_suspends_the_erase_that_it_meets() {
    let mut config = aged("yielding");
    config.profile.interface.command_queue = "ncq:64".into();
    let requests: Vec<Request> = bursts(&config, 8_000, 0.5, 100)
        .iter()
        .enumerate()
        .map(|(number, request)| Request { arrival: Ns(number as u64 * 400_000), sectors: 8, ..*request })
        .collect();
    let result = measure(&config, &requests);
    let gc = &result.metrics.gc;
    assert!(gc.suspensions > 50, "{}", gc.suspensions);
    // A host program (641 us) or a transfer may be in front; an erase may not.
    assert!(result.metrics.read.latency_ns.max < 2_000_000, "{}", result.metrics.read.latency_ns.max);
    // Time that an erase is suspended does not count as its cost, what suspension costs does.
    assert!((3_000_000.0..3_400_000.0).contains(&gc.cost.erase_ns), "{}", gc.cost.erase_ns);
}

/// Reads that find the page that is being moved, its program suspended for them: it is there only where it comes from.
#[test]
fn a_read_of_a_page_whose_move_is_suspended_finds_the_page_that_it_is_moved_from() {
    let mut config = aged("yielding");
    config.profile.interface.command_queue = "ncq:64".into();
    // No way into the buffer: every page moves inside its plane.
    config.profile.collection.buffer_pages = 0;
    let mut random = generator(config.seed, "reads of pages on their way");
    let pages = config.profile.user_capacity().0 / 4096;
    let requests: Vec<Request> = (0..60_000)
        .map(|number| {
            let direction = if random.random::<f64>() < 0.25 { Direction::Write } else { Direction::Read };
            Request::new(Ns(number * 70_000), Lsn(random.random_range(0..pages) * 8), 8, direction)
        })
        .collect();
    let old = watch(&config, &requests, <(Invariants, OldCopies)>::default());
    old.0.report().unwrap_or_else(|violations| panic!("{violations}"));
    assert!(old.1.read > 5, "{} reads of pages on their way", old.1.read);
}

/// Counts reads of pages that a collection has mapped elsewhere already.
#[derive(Default)]
struct OldCopies {
    moved: std::collections::HashMap<u32, u32>,
    read: u64,
}

impl Observer for OldCopies {
    fn page_program(&mut self, _now: Ns, origin: Origin, lpn: Lpn, _ppn: Ppn) {
        match origin {
            Origin::Collection { from } => drop(self.moved.insert(lpn.0, from.0)),
            _ => drop(self.moved.remove(&lpn.0)),
        }
    }

    fn page_read(&mut self, _now: Ns, _slot: Slot, lpn: Lpn, ppn: Ppn, _modify: bool) {
        self.read += u64::from(self.moved.get(&lpn.0) == Some(&ppn.0));
    }
}

#[test]
fn replicas_serve_reads_of_chips_that_collect_and_die_with_the_next_write() {
    let mut config = aged("dpr");
    config.profile.collection.replica_pages = 500;
    // Half of the reads go to a hundred pages; writes go everywhere.
    let requests: Vec<Request> = bursts(&config, 30_000, 0.5, 1_000)
        .iter()
        .map(|request| match request.direction {
            Direction::Read => Request { start: Lsn(request.start.0 % 800 / 8 * 8), sectors: 8, ..*request },
            Direction::Write => *request,
        })
        .collect();
    let with = measure(&config, &requests);
    let replicas = with.metrics.gc.replicas;
    assert!(replicas.created > 50 && replicas.reads_redirected > 20, "{replicas:?}");
    assert!(replicas.dropped_on_write > 0 && replicas.dropped_for_space > 0, "{replicas:?}");
    assert!(replicas.most <= 500);
    // Their programs are paid for: they count as writes that the host did not ask for.
    config.profile.collection.replica_pages = 0;
    let without = measure(&config, &requests);
    assert_eq!(without.metrics.gc.replicas.created, 0);
    assert!(with.metrics.gc.write_amplification > without.metrics.gc.write_amplification);
    assert!(with.metrics.read.latency_ns.mean < without.metrics.read.latency_ns.mean);
}

#[test]
fn free_collections_move_and_erase_as_many_pages_but_take_no_time() {
    let mut config = aged("gc_free");
    config.profile.translation.allocation = "cwdp".into();
    config.profile.interface.command_queue = "ncq:32".into();
    let requests = bursts(&config, 6_000, 0.3, 200);
    let free = measure(&config, &requests);
    assert!(free.metrics.gc.collections > 200 && free.metrics.gc.pages_moved > 1_000);
    assert_eq!(free.metrics.gc.cost.total_ns, 0.0);
    assert_eq!(free.metrics.gc.conflicts.reads + free.metrics.gc.conflicts.writes, 0);
    // A device that never has to collect is as fast: same requests, all space free.
    let mut never = config.clone();
    never.profile.geometry.blocks_per_plane = 1024;
    never.condition = Condition::Primed;
    let never = measure(&never, &requests);
    assert_eq!(never.metrics.gc.collections, 0);
    let ratio = free.metrics.all.latency_ns.mean / never.metrics.all.latency_ns.mean;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    config.profile.collection.scheme = "traditional".into();
    let traditional = measure(&config, &requests);
    assert!(traditional.metrics.all.latency_ns.mean > 1.5 * free.metrics.all.latency_ns.mean);
    let (a, b) = (free.metrics.gc.write_amplification, traditional.metrics.gc.write_amplification);
    assert!((a / b - 1.0).abs() < 0.05, "write amplification {a} against {b}");
}

/// What figure 6 counts, by hand: a request for another chip is under way when a collection begins on one of four.
#[test]
fn idle_chips_are_counted_when_collections_begin_and_while_they_run_wherever_requests_are_pending() {
    let mut profile = device(4, 1, 1, 1);
    profile.geometry.pages_per_block = 4;
    profile.interface.command_queue = "ncq:32".into();
    profile.translation.over_provisioning = 0.25;
    (profile.collection.threshold, profile.collection.ahead) = (0.24, 0.25);
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Filled;
    // Plane 0 has 64 free pages of 256; below 61.44 it is collected. Each write leaves an invalid page in block 0: the third takes it below,
    // and the fourth page, written at the same time as page 1 of another chip, finds the collection begun.
    let write = |at: u64, page: u64| Request::new(Ns(at), Lsn(page * 8), 8, Direction::Write);
    let at = [(0, 0), (2_000_000, 4), (4_000_000, 8), (4_300_000, 1), (4_300_000, 2), (20_000_000, 3)];
    let requests = at.map(|(at, page)| write(at, page));
    let gc = gc(&config, &requests);
    assert_eq!(gc.collections, 1);
    // It begins at 4.64 ms, when the third write is through: its own chip is busy with it, two others with writes.
    assert!((gc.idle_chip_share_at_start - 0.25).abs() < 1e-9, "{}", gc.idle_chip_share_at_start);
    // The same while it runs and those two are pending.
    assert!((gc.idle_chip_share - 0.25).abs() < 0.02, "{}", gc.idle_chip_share);
}

#[test]
fn the_cost_of_a_traditional_collection_is_the_sum_of_its_operations() {
    let mut config = aged("traditional");
    config.profile.interface.command_queue = "ncq:32".into();
    let gc = gc(&config, &bursts(&config, 4_000, 0.3, 300));
    let moved = gc.moved_per_collection;
    assert!((gc.cost.read_ns - moved * 30_000.0).abs() < 0.02 * gc.cost.read_ns, "{:?}", gc.cost);
    assert!((gc.cost.program_ns - moved * 600_000.0).abs() < 0.02 * gc.cost.program_ns, "{:?}", gc.cost);
    assert!((gc.cost.transfer_ns - moved * 81_920.0).abs() < 0.03 * gc.cost.transfer_ns, "{:?}", gc.cost);
    assert!((gc.cost.erase_ns - 3_000_000.0).abs() < 0.02 * 3_000_000.0, "{:?}", gc.cost);
    // Figure 4 of the paper: programs dominate, reads are negligible.
    assert!(gc.cost.program_ns > gc.cost.read_ns * 10.0);
    assert!(gc.cost.span_ns >= gc.cost.total_ns * 0.99);
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_power_goes() {
    for scheme in SCHEMES.iter().filter(|scheme| !scheme.bound) {
        for (queue, allocation) in [("blocking", "dynamic"), ("ncq:32", "dynamic"), ("ncq:32", "cwdp")] {
            let mut config = aged(scheme.name);
            config.profile.interface.command_queue = queue.into();
            config.profile.translation.allocation = allocation.into();
            config.profile.collection.streams = StreamRule::All;
            // Partial pages and a small working set: absorbed writes, pages overwritten on their way.
            let requests: Vec<Request> = bursts(&config, 3_000, 0.3, 60)
                .iter()
                .map(|request| Request {
                    start: Lsn(request.start.0 % 12_000 + request.start.0 % 3),
                    ..*request
                })
                .collect();
            let end = requests.last().unwrap().arrival.0;
            let mut random = generator(config.seed, &format!("power cuts {} {queue}", scheme.name));
            let (mut torn, mut buffered) = (0, 0);
            for _ in 0..24 {
                let at = Ns(random.random_range(0..end));
                let case = format!("{} {queue} {allocation}, cut at {at}", scheme.name);
                let result = measure_until(&config, &requests, Some(PowerCut::At(at))).unwrap();
                let loss = result.metrics.gc.power_loss.expect("the power was cut");
                assert_eq!(loss.lost_pages, 0, "{case}: {loss:?}");
                assert!(loss.recovered_pages > 10_000, "{case}: {loss:?}");
                assert!(loss.flush_ns >= loss.flush_formula_ns, "{case}: {loss:?}");
                torn += loss.torn_pages + loss.torn_blocks;
                buffered += loss.buffered_pages;
            }
            assert!(torn > 0, "{}: some cuts must hit a program or an erase", scheme.name);
            assert!(buffered > 0 || !["idle_chip", "yielding"].contains(&scheme.name), "{}", scheme.name);
        }
    }
}

/// When erases start, and programs of pages from the buffer.
#[derive(Default)]
struct Starts {
    erases: Vec<Ns>,
    write_backs: Vec<Ns>,
}

impl Observer for Starts {
    fn erase_start(&mut self, now: Ns, _block: u32) {
        self.erases.push(now);
    }

    fn page_program(&mut self, now: Ns, origin: Origin, _lpn: Lpn, _ppn: Ppn) {
        if matches!(origin, Origin::Buffer { .. }) {
            self.write_backs.push(now);
        }
    }
}

/// Cuts the power a nanosecond after each of up to 120 moments.
fn cut_after(config: &RunConfig, requests: &[Request], moments: &[Ns], case: &str) {
    let last = requests.last().unwrap().arrival;
    assert!(moments.len() > 50, "{case}: {} moments", moments.len());
    for &moment in moments.iter().filter(|&&moment| moment < last).take(120) {
        let at = moment + Ns(1);
        let result = measure_until(config, requests, Some(PowerCut::At(at))).unwrap();
        let loss = result.metrics.gc.power_loss.expect("the power was cut");
        assert_eq!(loss.lost_pages, 0, "{case}, cut at {at}: {loss:?}");
        assert!(loss.torn_blocks + loss.torn_pages > 0, "{case}, cut at {at}: something was under way");
    }
}

/// The moment that is hard: an erase has just begun in a block whose last page a program elsewhere is still replacing. With a
/// small set of hot pages such blocks are the cheapest victims there are.
#[test]
fn an_erase_never_takes_a_page_whose_replacement_is_still_being_programmed() {
    for scheme in ["traditional", "idle_chip", "yielding"] {
        let mut config = aged(scheme);
        config.profile.interface.command_queue = "ncq:32".into();
        config.profile.collection.threshold = 0.079;
        config.profile.collection.ahead = 0.079;
        let requests: Vec<Request> = bursts(&config, 3_000, 0.0, 40)
            .iter()
            .map(|request| Request { start: Lsn(request.start.0 % 4_000 / 8 * 8), sectors: 8, ..*request })
            .collect();
        cut_after(&config, &requests, &watch(&config, &requests, <Starts>::default()).erases, scheme);
    }
}

/// Another: a page has left the buffer's line and is being programmed, while the block it came from is under erase.
#[test]
fn a_page_is_safe_while_it_is_written_back() {
    for scheme in ["idle_chip", "yielding"] {
        let mut config = aged(scheme);
        config.profile.collection.streams = StreamRule::All;
        let requests = bursts(&config, 2_000, 0.3, 1_500);
        cut_after(&config, &requests, &watch(&config, &requests, <Starts>::default()).write_backs, scheme);
    }
}

/// Formula (1) of section 5.2.2, by hand: 50 pages on 64 chips need one round, which the printed formula rounds away.
#[test]
fn the_flush_takes_what_formula_one_says_with_its_rounding_set_right() {
    let profile = Profile::embedded("gc-128g").unwrap();
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Fresh;
    let simulator = Simulator::new(&config, ()).unwrap();
    let round = 600_000 + 40_960;
    assert_eq!(simulator.flush_time(50), (Ns(50 * 50), Ns(50 * 50 + round)));
    assert_eq!(simulator.flush_time(128), (Ns(128 * 50 + 2 * round), Ns(128 * 50 + 2 * round)));
    assert_eq!(simulator.flush_time(0), (Ns::ZERO, Ns::ZERO));
}

/// A chip programs fast and slow pages in turn: the flush takes the mean, not the first type's time.
#[test]
fn the_flush_of_flash_with_several_latencies_takes_their_mean() {
    let mut config = RunConfig::new(Profile::embedded("gc-128g").unwrap());
    config.profile.timing.program_ns = PageLatency::PerType(vec![500_000, 1_000_000, 2_100_000]);
    config.condition = Condition::Fresh;
    let simulator = Simulator::new(&config, ()).unwrap();
    let round = 1_200_000 + 40_960;
    assert_eq!(simulator.flush_time(128), (Ns(128 * 50 + 2 * round), Ns(128 * 50 + 2 * round)));
}

/// What the chips are at work on when the power goes has to end before they take a page.
#[test]
fn the_flush_begins_behind_the_erases_and_programs_under_way() {
    let mut config = aged("idle_chip");
    config.profile.collection.streams = StreamRule::All;
    let requests = bursts(&config, 3_000, 0.3, 150);
    let mut simulator = Simulator::new(&config, Starts::default()).unwrap();
    let mut seen = 0;
    for request in &requests {
        while simulator.next_event() < request.arrival || !simulator.has_room(request) {
            let next = simulator.next_event();
            simulator.advance(next).unwrap();
            if simulator.observer().erases.last() == Some(&simulator.now()) {
                let cut = simulator.cut_power();
                // Four chips: each takes a page, that under erase too.
                let least = Ns(3_000_000 + 40_960 + 600_000);
                assert!(cut.buffered_pages < 4 || cut.flush >= least, "{} at {}", cut.flush, cut.at);
                seen += u64::from(cut.buffered_pages >= 4);
            }
        }
        simulator.submit(request).unwrap();
    }
    assert!(seen > 10, "{seen} cuts with an erase under way");
}

#[test]
fn a_power_cut_is_refused_for_a_bound() {
    let config = aged("gc_free");
    let error = measure_until(&config, &[], Some(PowerCut::At(Ns(5)))).unwrap_err().to_string();
    assert!(error.contains("gc_free") && error.contains("bound"), "{error}");
}

#[test]
fn shares_and_sizes_out_of_range_are_refused_with_what_is_allowed() {
    let refused = |change: &dyn Fn(&mut Profile)| {
        let mut config = aged("idle_chip");
        change(&mut config.profile);
        Simulator::new(&config, ()).err().expect("it is refused").to_string()
    };
    let error = refused(&|profile| profile.collection.floor = 0.06);
    assert!(
        error.contains("floor") && error.contains("0.05") && error.contains("below its own floor"),
        "{error}"
    );
    let error = refused(&|profile| profile.collection.ahead = 0.01);
    assert!(error.contains("ahead"), "{error}");
    let error = refused(&|profile| profile.collection.buffer_pages = 1_000_000);
    assert!(error.contains("buffer_pages") && error.contains("128"), "{error}");
    let error = refused(&|profile| profile.collection.threshold = f64::NAN);
    assert!(error.contains("threshold"), "{error}");
    let error = refused(&|profile| profile.collection.scheme = "idle-chip".into());
    assert!(error.contains("did you mean 'idle_chip'"), "{error}");
}

/// More valid data than a plane can hold ends in an error that tells the state, under every scheme, never in a hang.
#[test]
fn exhausted_space_is_an_error_that_says_how_things_stood() {
    for scheme in SCHEMES {
        let mut config = aged(scheme.name);
        // The least spare space that is allowed, all of it in use.
        config.profile.translation.allocation = "dynamic".into();
        config.profile.translation.over_provisioning = 2.0 / 64.0;
        config.profile.collection.buffer_pages = 8;
        config.profile.collection.replica_pages = 8;
        config.profile.collection.threshold = 0.0;
        config.profile.collection.floor = 0.0;
        config.condition = Condition::Filled;
        let all = config.profile.user_capacity().0 / 4096;
        let mut random = generator(config.seed, "exhaustion");
        let writes =
            pages(Direction::Write, (0..20_000).map(|_| random.random_range(0..all)).collect::<Vec<_>>());
        // It must do; if a scheme cannot, it must say why.
        match run(&config, &writes) {
            Ok(_) => {}
            Err(error @ SimError::SpaceExhausted { .. }) => {
                assert!(error.to_string().contains("free blocks"), "{}: {error}", scheme.name);
            }
            Err(error) => panic!("{}: {error}", scheme.name),
        }
    }
}

/// Who has channels and arrays when.
#[derive(Default)]
struct Spans {
    executors_per_channel: u32,
    /// By executor.
    transfers: Vec<(u32, Ns, Ns)>,
    moves: Vec<(u32, Ns, Ns)>,
}

impl Observer for Spans {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.executors_per_channel = executors / geometry.channels;
    }
    fn channel_busy(&mut self, _channel: u32, executor: u32, from: Ns, to: Ns, _work: Work) {
        self.transfers.push((executor, from, to));
    }
    fn array_busy(
        &mut self,
        executor: u32,
        from: Ns,
        to: Ns,
        what: ArrayOperation,
        _planes: u32,
        work: Work,
    ) {
        if work == Work::Collection && what != ArrayOperation::Erase {
            self.moves.push((executor, from, to));
        }
    }
}

impl Spans {
    fn channel(&self, executor: u32) -> u32 {
        executor / self.executors_per_channel
    }

    /// Transfers while an array of another executor on the same channel moves a page.
    fn beside_moves(&self) -> usize {
        let is_beside = |&&(executor, from, to): &&(u32, Ns, Ns)| {
            self.moves.iter().any(|&(of, begin, end)| {
                of != executor && self.channel(of) == self.channel(executor) && begin < to && from < end
            })
        };
        self.transfers.iter().filter(is_beside).count()
    }

    /// Two at a time on one channel.
    fn overlapping_transfers(&self) -> usize {
        let mut transfers = self.transfers.clone();
        transfers.sort_by_key(|&(executor, from, _)| (self.channel(executor), from));
        let meet = |pair: &&[(u32, Ns, Ns)]| {
            self.channel(pair[0].0) == self.channel(pair[1].0) && pair[1].1 < pair[0].2
        };
        transfers.windows(2).filter(meet).count()
    }
}

/// Commands without cycles and copyback are there, too: a step that transfers nothing waits for the channel all the same.
#[test]
fn moves_that_hold_the_channel_leave_it_to_nobody_while_the_array_works() {
    use planewise_model::profile::Holds;
    for scheme in ["traditional", "preemptive", "paced", "idle_chip"] {
        for (copyback, command_ns) in [(false, 0), (false, 300), (true, 0), (true, 300)] {
            let mut config = aged(scheme);
            config.profile.advanced_commands.copyback = copyback;
            config.profile.timing.command_ns = command_ns;
            let requests = bursts(&config, 700, 0.4, 300);
            let of = |holds: Holds| {
                let mut config = config.clone();
                config.profile.collection.holds = holds;
                (watch(&config, &requests, <Spans>::default()), measure(&config, &requests))
            };
            let case = format!("{scheme}, copyback {copyback}, command cycles of {command_ns} ns");
            let (chip, of_chip) = of(Holds::Chip);
            let (channel, of_channel) = of(Holds::Channel);
            assert!(of_chip.metrics.gc.collections > 5, "{case}");
            assert!(chip.beside_moves() > 10, "{case}: {}", chip.beside_moves());
            assert_eq!(channel.beside_moves(), 0, "{case}");
            assert_eq!((chip.overlapping_transfers(), channel.overlapping_transfers()), (0, 0), "{case}");
            let mean = |result: &RunResult| result.metrics.read.latency_ns.mean;
            assert!(mean(&of_channel) > mean(&of_chip), "{case}: reads wait longer");
        }
    }
}
