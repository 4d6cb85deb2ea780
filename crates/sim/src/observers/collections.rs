//! The metrics of garbage collection (`metrics.gc` of the results), gathered while the run goes on.

use super::metrics::{Times, per, share};
use super::{ArrayOperation, Cause, Collected, Completion, Meeting, Observer, Origin, Work};
use crate::host::{QueuedRequest, Slot};
use crate::results::{BufferMetrics, GcConflicts, GcCost, GcMetrics, ReplicaMetrics};
use planewise_model::{Direction, Geometry, Lpn, Ns, Ppn, Request};

/// A request in the I/O queue.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// What it met so far, by [`Meeting`].
    met: [bool; 3],
    /// The sectors that it covers, with all that joined it.
    start: u64,
    end: u64,
}

impl Pending {
    fn new(request: &Request) -> Pending {
        Pending { met: [false; 3], start: request.start.0, end: request.end().0 }
    }

    fn grow(&mut self, other: &Pending) {
        (self.start, self.end) = (self.start.min(other.start), self.end.max(other.end));
    }
}

/// Sums over the measured window.
#[derive(Default)]
struct Sums {
    requests: u64,
    host_programs: u64,
    /// What the host wrote, and what of it the write buffer held when the window began: sectors.
    host_sectors: u64,
    sectors_held_before: u64,
    programs: u64,
    erases: u64,
    collections: u64,
    folds: u64,
    wear_collections: u64,
    idle_collections: u64,
    moved: u64,
    buffered: u64,
    span: u128,
    read: u128,
    transfer: u128,
    program: u128,
    erase: u128,
    elsewhere: u128,
    reads_met: u64,
    writes_met: u64,
    new: u64,
    avoided: u64,
    read_latency: u128,
    write_latency: u128,
    suspensions: u64,
    reads_served: u64,
    writes_absorbed: u64,
    /// Pages that the write buffer held when the window began.
    held_before: u64,
    written_back: u64,
    residency: u128,
    residency_max: Ns,
    /// Integral of the pages in the buffer over time, and the most.
    occupancy: u128,
    occupancy_max: u32,
    replicas: ReplicaMetrics,
    /// Time in which a collection ran and a request was pending, and the idle chips during it, summed.
    contended: u128,
    idle_chips: u128,
    /// Collections that began while a request was pending, and the idle chips then, summed.
    begun_contended: u64,
    idle_at_start: u64,
}

/// Gathers everything about garbage collection.
pub struct CollectionMetrics {
    warm_up: u64,
    measuring: bool,
    window_start: Ns,
    pages: u32,
    sectors_per_page: u64,
    chips: u32,
    /// Chip of each executor, and its busy executors by chip.
    chip_of: Vec<u32>,
    busy_executors: Vec<u32>,
    busy_chips: u32,
    /// Requests in the I/O queue, waiting or outstanding.
    pending: u32,
    collecting: u32,
    /// Collections that began at the last instant while requests were pending: idle chips are counted once everything that starts then has.
    begun: u32,
    /// Until when the integrals are summed.
    summed: Ns,
    requests: Vec<Pending>,
    /// By slot of the write buffer, counted from the first of the valid page buffer: sectors that the host wrote of the page that it holds and
    /// whose program has not begun.
    cached: Vec<u64>,
    /// How many slots have any, and how many they are.
    held_back: u64,
    sectors_held_back: u64,
    /// By slot of the buffer: since when it holds a page.
    since: Vec<Ns>,
    held: u32,
    live_replicas: u32,
    /// By executor: for whom the last array operation is, which, and whether its time counts in this window.
    running: Vec<(Work, ArrayOperation, bool)>,
    /// By executor: whether its collection began while no request was in the queue.
    began_idle: Vec<bool>,
    latency: Times,
    sums: Sums,
}

impl CollectionMetrics {
    /// Of a run whose first `warm_up` requests are not measured.
    pub fn new(warm_up: u64) -> CollectionMetrics {
        CollectionMetrics {
            warm_up,
            measuring: warm_up == 0,
            window_start: Ns::ZERO,
            pages: 0,
            sectors_per_page: 1,
            chips: 0,
            chip_of: Vec::new(),
            busy_executors: Vec::new(),
            busy_chips: 0,
            pending: 0,
            collecting: 0,
            begun: 0,
            summed: Ns::ZERO,
            requests: Vec::new(),
            cached: Vec::new(),
            held_back: 0,
            sectors_held_back: 0,
            since: Vec::new(),
            held: 0,
            live_replicas: 0,
            running: Vec::new(),
            began_idle: Vec::new(),
            latency: Times::new(),
            sums: Sums::default(),
        }
    }

    /// Measures from the request with this number on.
    pub fn start_after(&mut self, first: u64) {
        self.warm_up = first;
    }

    /// Sums the integrals up to now: before anything that they depend on changes.
    #[inline]
    fn pass_time(&mut self, now: Ns) {
        if self.begun > 0 && now > self.summed {
            self.sums.begun_contended += u64::from(self.begun);
            self.sums.idle_at_start += u64::from(self.begun) * u64::from(self.chips - self.busy_chips);
            self.begun = 0;
        }
        if self.collecting > 0 || self.held > 0 {
            let passed = u128::from((now - self.summed).0);
            self.sums.occupancy += passed * u128::from(self.held);
            if self.collecting > 0 && self.pending > 0 {
                self.sums.contended += passed;
                self.sums.idle_chips += passed * u128::from(self.chips - self.busy_chips);
            }
        }
        self.summed = now;
    }

    fn arrives(&mut self, now: Ns, sequence: u64) {
        self.pass_time(now);
        if !self.measuring && sequence >= self.warm_up {
            self.measuring = true;
            self.window_start = now;
            self.sums = Sums {
                occupancy_max: self.held,
                held_before: self.held_back,
                sectors_held_before: self.sectors_held_back,
                ..Sums::default()
            };
            self.sums.replicas.most = self.live_replicas;
            self.latency = Times::new();
            for running in &mut self.running {
                running.2 = false;
            }
        }
        self.sums.requests += 1;
        self.pending += 1;
    }

    /// The sectors of a page that the request in a slot covers.
    #[inline]
    fn covered(&self, slot: Slot, lpn: Lpn) -> u64 {
        let Pending { start, end, .. } = self.requests[slot.index()];
        let first = u64::from(lpn.0) * self.sectors_per_page;
        end.min(first + self.sectors_per_page).saturating_sub(start.max(first))
    }

    /// Where the array time of an operation is summed.
    fn array_time(&mut self, what: ArrayOperation, work: Work) -> &mut u128 {
        match (work, what) {
            (Work::Background, _) => &mut self.sums.elsewhere,
            (_, ArrayOperation::Read) => &mut self.sums.read,
            (_, ArrayOperation::Erase) => &mut self.sums.erase,
            // A copyback reads and programs in one: the program is by far the longer.
            (_, ArrayOperation::Program | ArrayOperation::Copyback) => &mut self.sums.program,
        }
    }

    /// The results. `flush` gives the time to flush a number of pages: as printed, and rounding up.
    pub fn metrics(&self, now: Ns, wear: (u32, u32), flush: impl Fn(u32) -> (Ns, Ns)) -> GcMetrics {
        let sums = &self.sums;
        let mean = |sum: u128, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let cost = |sum: u128| mean(sum, sums.collections);
        let pages_moved = sums.moved + sums.buffered;
        let total = sums.read + sums.transfer + sums.program + sums.erase;
        // What the buffer absorbed the host wrote, too.
        let host_pages = sums.host_programs + sums.writes_absorbed;
        // What the write buffer still holds no program stands for yet.
        let host_pages = host_pages + sums.held_before - self.held_back;
        let host_sectors = sums.host_sectors + sums.sectors_held_before - self.sectors_held_back;
        let met = sums.reads_met + sums.writes_met;
        let (flush_formula, flush) = flush(sums.occupancy_max);
        let window = now.saturating_sub(self.window_start);
        GcMetrics {
            collections: sums.collections,
            wear_collections: sums.wear_collections,
            folds: sums.folds,
            erases: sums.erases,
            idle_share: share(sums.idle_collections, sums.collections),
            idle_chip_share: if sums.contended == 0 {
                0.0
            } else {
                sums.idle_chips as f64 / (sums.contended as f64 * f64::from(self.chips))
            },
            idle_chip_share_at_start: mean(u128::from(sums.idle_at_start), sums.begun_contended)
                / f64::from(self.chips.max(1)),
            host_pages_per_collection: per(host_pages, sums.collections),
            moved_per_collection: per(pages_moved, sums.collections),
            pages_moved,
            pages_buffered: sums.buffered,
            buffered_share: share(sums.buffered, pages_moved),
            write_amplification: per(sums.programs * self.sectors_per_page, host_sectors),
            wear_spread: u64::from(wear.1 - wear.0),
            cost: GcCost {
                read_ns: cost(sums.read),
                transfer_ns: cost(sums.transfer),
                program_ns: cost(sums.program),
                erase_ns: cost(sums.erase),
                total_ns: cost(total),
                elsewhere_ns: cost(sums.elsewhere),
                span_ns: cost(sums.span),
            },
            conflicts: GcConflicts {
                reads: sums.reads_met,
                writes: sums.writes_met,
                new: sums.new,
                avoided: sums.avoided,
                share: share(met, sums.requests),
                read_latency_ns_mean: mean(sums.read_latency, sums.reads_met),
                write_latency_ns_mean: mean(sums.write_latency, sums.writes_met),
                latency_ns: self.latency.distribution(),
            },
            buffer: BufferMetrics {
                reads_served: sums.reads_served,
                writes_absorbed: sums.writes_absorbed,
                written_back: sums.written_back,
                residency_ns_mean: mean(sums.residency, sums.written_back),
                residency_ns_max: sums.residency_max.0,
                occupancy_mean: if window == Ns::ZERO {
                    0.0
                } else {
                    sums.occupancy as f64 / window.0 as f64
                },
                occupancy_max: sums.occupancy_max,
                flush_formula_ns: flush_formula.0,
                flush_ns: flush.0,
            },
            replicas: sums.replicas,
            suspensions: sums.suspensions,
            power_loss: None,
        }
    }
}

impl Observer for CollectionMetrics {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.pages = geometry.pages();
        self.sectors_per_page = u64::from(geometry.sectors_per_page());
        self.chips = geometry.chips();
        let executors_per_chip = executors / geometry.chips();
        self.chip_of = (0..executors).map(|executor| executor / executors_per_chip).collect();
        self.busy_executors = vec![0; geometry.chips() as usize];
        self.running = vec![(Work::Host, ArrayOperation::Read, false); executors as usize];
        self.began_idle = vec![false; executors as usize];
    }

    #[inline]
    fn enter(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.arrives(now, request.sequence);
        if self.requests.len() <= slot.index() {
            self.requests.resize(slot.index() + 1, Pending::default());
        }
        self.requests[slot.index()] = Pending::new(&request.request);
    }

    fn merge(&mut self, now: Ns, slot: Slot, sequence: u64, request: &Request) {
        self.arrives(now, sequence);
        self.requests[slot.index()].grow(&Pending::new(request));
    }

    fn join(&mut self, _now: Ns, into: Slot, other: Slot) {
        let other = self.requests[other.index()];
        let into = &mut self.requests[into.index()];
        into.grow(&other);
        into.met.iter_mut().zip(other.met).for_each(|(met, other)| *met |= other);
    }

    #[inline]
    fn complete(&mut self, slot: Slot, completion: &Completion) {
        self.pass_time(completion.completed);
        self.pending -= 1;
        if completion.sequence < self.warm_up {
            return;
        }
        let [collection, background, released] = self.requests[slot.index()].met;
        self.sums.new += u64::from(background && !collection);
        self.sums.avoided += u64::from(released && !collection);
        if collection {
            let latency = completion.completed - completion.request.arrival;
            self.latency.record(latency);
            let (count, sum) = match completion.request.direction {
                Direction::Read => (&mut self.sums.reads_met, &mut self.sums.read_latency),
                Direction::Write => (&mut self.sums.writes_met, &mut self.sums.write_latency),
            };
            *count += 1;
            *sum += u128::from(latency.0);
        }
    }

    #[inline]
    fn page_read(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, ppn: Ppn, _modify: bool) {
        // Numbers behind those of the valid page buffer are other buffers'.
        let slot = ppn.0.checked_sub(self.pages);
        self.sums.reads_served += u64::from(slot.is_some_and(|slot| (slot as usize) < self.since.len()));
    }

    #[inline]
    fn page_program(&mut self, _now: Ns, origin: Origin, lpn: Lpn, _ppn: Ppn) {
        self.sums.programs += 1;
        if let Origin::Host(slot) = origin {
            self.sums.host_programs += 1;
            self.sums.host_sectors += self.covered(slot, lpn);
        }
        if let Origin::WriteBuffer { from } = origin {
            let sectors = std::mem::take(&mut self.cached[(from.0 - self.pages) as usize]);
            self.sectors_held_back -= sectors;
            self.held_back -= 1;
        }
        if matches!(origin, Origin::Replica { .. }) {
            self.sums.replicas.created += 1;
            self.live_replicas += 1;
            self.sums.replicas.most = self.sums.replicas.most.max(self.live_replicas);
        }
    }

    fn pages_padded(&mut self, _now: Ns, _first: Ppn, count: u32) {
        self.sums.programs += u64::from(count);
    }

    fn parity_programmed(&mut self, _now: Ns, pages: u32) {
        self.sums.programs += u64::from(pages);
    }

    fn page_buffered(&mut self, now: Ns, _lpn: Lpn, _from: Ppn, to: Ppn) {
        self.pass_time(now);
        let slot = (to.0 - self.pages) as usize;
        if self.since.len() <= slot {
            self.since.resize(slot + 1, Ns::ZERO);
        }
        self.since[slot] = now;
        self.held += 1;
        self.sums.occupancy_max = self.sums.occupancy_max.max(self.held);
    }

    fn page_cached(&mut self, _now: Ns, slot: Slot, lpn: Lpn, at: Ppn) {
        let sectors = self.covered(slot, lpn);
        self.sums.host_programs += 1;
        self.sums.host_sectors += sectors;
        let place = (at.0 - self.pages) as usize;
        if self.cached.len() <= place {
            self.cached.resize(place + 1, 0);
        }
        self.held_back += u64::from(self.cached[place] == 0);
        self.cached[place] += sectors;
        self.sectors_held_back += sectors;
    }

    fn page_absorbed(&mut self, _now: Ns, slot: Slot, lpn: Lpn, _at: Ppn) {
        self.sums.writes_absorbed += 1;
        self.sums.host_sectors += self.covered(slot, lpn);
    }

    fn page_replaced(&mut self, now: Ns, _lpn: Lpn, _at: Ppn) {
        self.pass_time(now);
        self.held -= 1;
    }

    fn write_back_end(&mut self, now: Ns, _lpn: Lpn, from: Ppn, _to: Ppn, _current: bool) {
        self.pass_time(now);
        self.held -= 1;
        let stayed = now - self.since[(from.0 - self.pages) as usize];
        self.sums.written_back += 1;
        self.sums.residency += u128::from(stayed.0);
        self.sums.residency_max = self.sums.residency_max.max(stayed);
    }

    fn replica_read(&mut self, _now: Ns, _lpn: Lpn) {
        self.sums.replicas.reads_redirected += 1;
    }

    fn replica_dropped(&mut self, _now: Ns, _lpn: Lpn, written: bool) {
        self.live_replicas -= 1;
        self.sums.replicas.dropped_on_write += u64::from(written);
        self.sums.replicas.dropped_for_space += u64::from(!written);
    }

    fn block_erase(&mut self, _now: Ns, _block: u32) {
        self.sums.erases += 1;
    }

    #[inline]
    fn channel_busy(&mut self, _channel: u32, _executor: u32, from: Ns, to: Ns, work: Work) {
        match work {
            Work::Host => {}
            Work::Collection => self.sums.transfer += u128::from((to - from).0),
            Work::Background => self.sums.elsewhere += u128::from((to - from).0),
        }
    }

    #[inline]
    fn array_busy(
        &mut self,
        executor: u32,
        from: Ns,
        to: Ns,
        what: ArrayOperation,
        _planes: u32,
        work: Work,
    ) {
        if work != Work::Host {
            self.running[executor as usize] = (work, what, true);
            *self.array_time(what, work) += u128::from((to - from).0);
        }
    }

    fn array_suspended(&mut self, _now: Ns, executor: u32, rest: Ns) {
        let (work, what, counts) = self.running[executor as usize];
        if counts {
            *self.array_time(what, work) -= u128::from(rest.0);
        }
        self.sums.suspensions += 1;
    }

    #[inline]
    fn operation_start(&mut self, now: Ns, executor: u32, _planes: u32) {
        self.pass_time(now);
        let busy = &mut self.busy_executors[self.chip_of[executor as usize] as usize];
        *busy += 1;
        self.busy_chips += u32::from(*busy == 1);
    }

    #[inline]
    fn operation_end(&mut self, now: Ns, executor: u32, _planes: u32) {
        self.pass_time(now);
        let busy = &mut self.busy_executors[self.chip_of[executor as usize] as usize];
        *busy -= 1;
        self.busy_chips -= u32::from(*busy == 0);
    }

    fn collection_start(&mut self, now: Ns, executor: u32, _cause: Cause) {
        self.pass_time(now);
        self.collecting += 1;
        self.began_idle[executor as usize] = self.pending == 0;
        self.begun += u32::from(self.pending > 0);
    }

    fn collection_end(&mut self, now: Ns, executor: u32, what: &Collected) {
        self.pass_time(now);
        self.collecting -= 1;
        self.sums.collections += 1;
        self.sums.idle_collections += u64::from(self.began_idle[executor as usize]);
        self.sums.wear_collections += u64::from(what.cause == Cause::Wear);
        self.sums.folds += u64::from(what.cause == Cause::Fold);
        self.sums.moved += u64::from(what.moved);
        self.sums.buffered += u64::from(what.buffered);
        self.sums.span += u128::from((now - what.began).0);
    }

    fn meets(&mut self, _now: Ns, slot: Slot, meeting: Meeting) {
        let which = match meeting {
            Meeting::Collection => 0,
            Meeting::Background => 1,
            Meeting::Released => 2,
        };
        self.requests[slot.index()].met[which] = true;
    }
}
