//! ADIOS, the Adaptive Deadline I/O Scheduler of Masahito Suzuki (version 3.1.9 for Linux 6.18): learns how long reads and
//! writes of any size take, sorts requests by deadlines that the predictions are part of, and fills batches up to a window
//! of predicted time.

mod model;

use super::elevator::{Dispatching, Elevator, Pick};
use super::list::{Links, List};
use super::tree::{Nodes, Tree};
use super::tunables::{Tunable, TunableKind, TunableValues};
use super::{Counters, Entry, Growth};
use crate::host::{HostQueue, QueuedRequest, Slot};
use model::{Forgetting, Model};
use planewise_model::{Direction, Ns};

const MINUTE: u64 = 60_000_000_000;

pub(super) const ENTRY: Entry = Entry {
    name: "adios",
    summary: "deadlines from learned latencies, batches within a window of predicted time",
    source: "ADIOS 3.1.9, github.com/firelzrd/adios",
    tunables: &[
        number(
            "global_latency_window",
            "ns",
            16_000_000,
            1,
            MINUTE,
            "predicted time of what is batched or at the device up to which a batch is filled; shorter answers sooner, longer is throughput",
        ),
        number(
            "bq_refill_below_ratio",
            "%",
            20,
            0,
            100,
            "share of the window below which the next batch is filled while the last is not out; lower keeps deadlines open for longer",
        ),
        number(
            "lat_target_read",
            "ns",
            2_000_000,
            0,
            MINUTE,
            "deadline of a read that nobody waits for, less its prediction; shorter puts it before more others",
        ),
        number(
            "lat_target_write",
            "ns",
            2_000_000_000,
            0,
            MINUTE,
            "the same of a write: until then reads go first",
        ),
        number("batch_limit_read", "requests", 36, 1, 65_536, "reads of a batch at most"),
        number(
            "batch_limit_write",
            "requests",
            72,
            1,
            65_536,
            "writes of a batch at most; fewer let reads in sooner",
        ),
        number(
            "read_priority",
            "",
            8,
            0,
            19,
            "how little of a read's predicted time counts against reads when they went before an earlier deadline; 0 as much as a write's",
        ),
        number(
            "lat_model_latency_limit",
            "ns",
            500_000_000,
            1,
            MINUTE,
            "samples beyond it are not learned from: a drive that sleeps is no slower drive",
        ),
        number(
            "small_request_bytes",
            "bytes",
            4_096,
            512,
            1 << 20,
            "requests up to this size teach the base, larger ones the slope; without a small read and a small write nothing is ever known and requests go in order of arrival",
        ),
        number(
            "shrink_at_kreqs",
            "1000 requests",
            5_000,
            1,
            1_000_000,
            "small requests after which a share of what was learned is forgotten; fewer follows a changing drive sooner",
        ),
        number("shrink_at_gbytes", "GiB", 50, 1, 1_000_000, "the same for large ones, in what they moved"),
        number("shrink_resist", "", 2, 0, 3, "the share that is forgotten: 1 of 2 to this power"),
    ],
    uses_units: false,
    build: |host, values| Ok(Box::new(Dispatching::new(Adios::new(host.queue_length, values)))),
};

const fn number(
    name: &'static str,
    unit: &'static str,
    default: u64,
    min: u64,
    max: u64,
    summary: &'static str,
) -> Tunable {
    Tunable { name, unit, summary, kind: TunableKind::Number { default, min, max } }
}

/// Deadlines in the trees are multiples of this: requests closer together keep their order of arrival.
const QUANTUM: u64 = 1 << 20;
/// A completion is learned from so much later at the latest.
const PERIOD: Ns = Ns::from_millis(100);
/// What of its predicted time counts for a request, in 1024ths, by priority 0 to 19: Linux's weights of nice levels.
const WEIGHTS: [i64; 20] =
    [1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15];

/// Where a waiting request is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In order of arrival: it came before anything was known.
    Arrival,
    /// In the tree of its direction.
    Tree,
    /// In a batch, and merged with nothing any more.
    Batch,
}

#[derive(Clone, Copy)]
struct Waiting {
    place: Place,
    deadline: Ns,
    predicted: Ns,
}

struct Adios {
    window: u64,
    refill_below: u64,
    targets: [Ns; 2],
    batch_limits: [u32; 2],
    /// What of the predicted time counts when a direction goes before an earlier deadline, in 1024ths.
    weights: [i64; 2],
    sample_max: Ns,
    models: [Model; 2],
    /// Both models know something: from then on requests are sorted.
    has_models: bool,
    links: Links,
    arrivals: List,
    nodes: Nodes<u64>,
    by_deadline: [Tree; 2],
    queued: [u32; 2],
    waiting: Vec<Waiting>,
    /// The batch that is going out, and the one that is filled meanwhile; by direction.
    batches: [[List; 2]; 2],
    front: usize,
    /// Below 0 it is the turn of writes.
    bias: i64,
    /// Requests in batches or at the device, and their predicted time, ns.
    in_flight: u64,
    in_flight_time: u64,
    last_completion: Option<Ns>,
    /// When the models learn next.
    timer: Option<Ns>,
    batched: u64,
    batches_filled: u64,
    unsorted: u64,
}

impl Adios {
    fn new(slots: u32, values: &TunableValues) -> Adios {
        let window = values.number("global_latency_window");
        let forgetting = Forgetting {
            requests: values.number("shrink_at_kreqs") * 1_000,
            bytes: values.number("shrink_at_gbytes") << 30,
            resist: values.number("shrink_resist") as u32,
        };
        let idle = Waiting { place: Place::Arrival, deadline: Ns::ZERO, predicted: Ns::ZERO };
        Adios {
            window,
            refill_below: window * values.number("bq_refill_below_ratio") / 100,
            targets: ["lat_target_read", "lat_target_write"].map(|name| Ns(values.number(name))),
            batch_limits: ["batch_limit_read", "batch_limit_write"].map(|name| values.number(name) as u32),
            weights: [WEIGHTS[values.number("read_priority") as usize], WEIGHTS[0]],
            sample_max: Ns(values.number("lat_model_latency_limit")),
            models: [(); 2].map(|()| Model::new(values.number("small_request_bytes"), forgetting)),
            has_models: false,
            links: Links::new(slots),
            arrivals: List::EMPTY,
            nodes: Nodes::new(slots),
            by_deadline: [Tree::EMPTY; 2],
            queued: [0; 2],
            waiting: vec![idle; slots as usize],
            batches: [[List::EMPTY; 2]; 2],
            front: 0,
            bias: 0,
            in_flight: 0,
            in_flight_time: 0,
            last_completion: None,
            timer: None,
            batched: 0,
            batches_filled: 0,
            unsorted: 0,
        }
    }

    /// Where a request is to wait, by what is known now.
    fn waiting(&self, request: &QueuedRequest) -> Waiting {
        let direction = request.request.direction.index();
        let predicted = self.models[direction].predict(request.request.bytes().0);
        // What somebody waits for goes in order of arrival, the rest by when it should be done.
        let slack = if request.request.synchronous { Ns::ZERO } else { self.targets[direction] + predicted };
        let deadline = request.entered + slack;
        let place = if self.has_models { Place::Tree } else { Place::Arrival };
        Waiting { place, deadline, predicted }
    }

    fn enter_tree(&mut self, slot: Slot, direction: Direction) {
        let key = self.waiting[slot.index()].deadline.0 / QUANTUM;
        self.by_deadline[direction.index()].insert(&mut self.nodes, slot, key);
        self.queued[direction.index()] += 1;
    }

    fn leave_tree(&mut self, slot: Slot, direction: Direction) {
        self.by_deadline[direction.index()].remove(&mut self.nodes, slot);
        self.queued[direction.index()] -= 1;
    }

    /// The direction whose first request is next, and whether it goes before an earlier deadline of the other, or while the
    /// other has none.
    fn next_direction(&self) -> Option<(Direction, bool)> {
        let turn = if self.bias < 0 { Direction::Write } else { Direction::Read };
        let firsts = Direction::ALL.map(|direction| self.by_deadline[direction.index()].first(&self.nodes));
        match firsts {
            [None, None] => None,
            [Some(read), Some(write)] => {
                let [read, write] = [read, write].map(|slot| self.waiting[slot.index()].deadline);
                let jumps = if turn == Direction::Read { read > write } else { write > read };
                Some((turn, jumps))
            }
            [Some(_), None] => Some((Direction::Read, turn == Direction::Read)),
            [None, Some(_)] => Some((Direction::Write, turn == Direction::Write)),
        }
    }

    /// Fills the batch behind the one that is going out: with one request, and with more within the window and the limits.
    fn fill(&mut self) {
        let back = 1 - self.front;
        let mut counts = [0; 2];
        while let Some((direction, jumps)) = self.next_direction() {
            let index = direction.index();
            let slot = self.by_deadline[index].first(&self.nodes).expect("a direction that has one");
            let predicted = self.waiting[slot.index()].predicted.0;
            let is_full = counts[index] >= self.batch_limits[index]
                || self.in_flight_time.saturating_add(predicted) > self.window
                || !self.models[index].is_known();
            if counts != [0; 2] && is_full {
                break;
            }
            if jumps {
                // At least 1: what is for free would never be the other's turn.
                let counted = ((i128::from(predicted) * i128::from(self.weights[index])) >> 10).max(1);
                let counted = counted.min(1 << 60) as i64;
                self.bias += if direction == Direction::Read { -counted } else { counted };
            }
            self.leave_tree(slot, direction);
            self.waiting[slot.index()].place = Place::Batch;
            self.batches[back][index].push(&mut self.links, slot);
            counts[index] += 1;
            self.take_off(predicted);
        }
        self.batches_filled += u64::from(counts != [0; 2]);
        self.batched += u64::from(counts[0] + counts[1]);
    }

    /// A request is on its way to the device.
    fn take_off(&mut self, predicted: u64) {
        self.in_flight += 1;
        self.in_flight_time += predicted;
    }

    fn is_empty(&self, batch: usize) -> bool {
        self.batches[batch].iter().all(List::is_empty)
    }

    /// Lets the models learn, if it is time.
    fn ring(&mut self, now: Ns) {
        if let Some(at) = self.timer.filter(|at| *at <= now) {
            self.timer = None;
            self.models.iter_mut().for_each(|model| model.update(at));
        }
    }
}

impl Elevator for Adios {
    fn add(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        let waiting = self.waiting(request);
        self.waiting[slot.index()] = waiting;
        if waiting.place == Place::Tree {
            self.enter_tree(slot, request.request.direction);
        } else {
            self.arrivals.push(&mut self.links, slot);
            self.take_off(waiting.predicted.0);
            self.unsorted += 1;
            self.has_models = self.models.iter().all(Model::is_known);
        }
    }

    fn allow_merge(&self, growth: &Growth<'_>) -> bool {
        let is_sorted = |slot: Slot| self.waiting[slot.index()].place == Place::Tree;
        is_sorted(growth.slot) && growth.joining_slot.is_none_or(is_sorted)
    }

    fn merged(&mut self, slot: Slot, _before: &QueuedRequest, after: &QueuedRequest) {
        self.leave_tree(slot, after.request.direction);
        self.waiting[slot.index()] = self.waiting(after);
        self.enter_tree(slot, after.request.direction);
    }

    fn removed(&mut self, slot: Slot, request: &QueuedRequest, _into: Slot) {
        self.leave_tree(slot, request.request.direction);
    }

    fn pick(&mut self, now: Ns, _queue: &HostQueue) -> Pick {
        self.ring(now);
        if let Some(slot) = self.arrivals.pop(&mut self.links) {
            return Pick::Request(slot);
        }
        let is_due = self.is_empty(self.front) || self.in_flight_time < self.refill_below;
        if is_due && self.is_empty(1 - self.front) {
            self.fill();
        }
        if self.is_empty(self.front) {
            self.front = 1 - self.front;
        }
        let [reads, writes] = &mut self.batches[self.front];
        let next = reads.pop(&mut self.links).or_else(|| writes.pop(&mut self.links));
        next.map_or(Pick::Nothing, Pick::Request)
    }

    fn completed(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.ring(now);
        let predicted = self.waiting[slot.index()].predicted;
        self.in_flight -= 1;
        self.in_flight_time -= predicted.0;
        // One of many at the device took the time since the one before it ended: a batch takes what its requests add up to.
        let since = self.last_completion.unwrap_or(request.issued);
        self.last_completion = (self.in_flight > 0).then_some(now);
        let time = now - since;
        if time <= self.sample_max {
            let model = &mut self.models[request.request.direction.index()];
            model.add(now, request.request.bytes().0, time, predicted);
            self.timer.get_or_insert(now + PERIOD);
        }
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("batches", self.batches_filled),
            ("batched", self.batched),
            ("unsorted", self.unsorted),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::location::PageRange;
    use planewise_model::{Lsn, Request};

    #[test]
    fn the_models_converge_to_what_requests_take_alone_and_side_by_side() {
        let mut queue = HostQueue::new(64);
        let mut adios = Adios::new(64, &TunableValues::defaults(ENTRY.tunables));
        let time = |direction, sectors: u32| match direction {
            Direction::Read => 66_996 + 991 * u64::from(sectors) / 2,
            Direction::Write => 636_996 + 991 * u64::from(sectors) / 2,
        };
        let mut now = Ns::ZERO;
        let mut serve = |adios: &mut Adios, kinds: &[(Direction, u32)], shared: u64| {
            let mut slots = Vec::new();
            for &(direction, sectors) in kinds {
                let request = Request::new(now, Lsn(0), sectors, direction);
                let queued = QueuedRequest::new(now, 0, request, PageRange::of(&request, 4096), false);
                let slot = queue.enter(queued);
                adios.add(now, slot, &queued);
                slots.push(slot);
            }
            while let Pick::Request(slot) = adios.pick(now, &queue) {
                queue.issue(slot, now, false);
            }
            for slot in slots {
                let request = queue.get(slot).request;
                now = now + Ns(time(request.direction, request.sectors) / shared);
                let queued = queue.leave(slot);
                adios.completed(now, slot, &queued);
            }
        };
        for _ in 0..3_000 {
            for kind in
                [(Direction::Read, 8), (Direction::Write, 8), (Direction::Read, 256), (Direction::Write, 64)]
            {
                serve(&mut adios, &[kind], 1);
            }
        }
        for (direction, sectors) in [(Direction::Read, 8), (Direction::Read, 128), (Direction::Write, 256)] {
            let predicted = adios.models[direction.index()].predict(u64::from(sectors) * 512).0;
            let truth = time(direction, sectors);
            assert!(
                predicted.abs_diff(truth) <= truth / 100,
                "{direction:?}, {sectors} sectors: {predicted}, {truth}"
            );
        }
        // Of 32 side by side, one ends every 32nd of the time: so much is each reckoned to take.
        let mut fresh = Adios::new(64, &TunableValues::defaults(ENTRY.tunables));
        for _ in 0..2_000 {
            serve(&mut fresh, &[(Direction::Read, 8); 32], 32);
            serve(&mut fresh, &[(Direction::Write, 8)], 1);
        }
        let (predicted, truth) = (fresh.models[0].predict(4096).0, time(Direction::Read, 8) / 32);
        assert!(predicted.abs_diff(truth) <= truth / 20, "{predicted}, {truth}");
    }
}
