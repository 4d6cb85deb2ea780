//! A scheduler alone under load: what it costs the host, without a device or an engine. For benchmarks and `planewise scheduler show`.

use super::{Decision, Entry, HostKnowledge, HostScheduler, TunableValues};
use crate::error::SimError;
use crate::host::{Gate, HostQueue, QueuedRequest};
use planewise_model::location::{PageRange, UnitMap};
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn, Ns, Request};
use rand::RngExt;

const PAGE_BYTES: u32 = 4096;
/// Requests that are drawn once and used again and again.
const DRAWN: usize = 65_536;
/// Scheduler's time that passes with each request: many are late in a long queue, as under load.
const STEP: Ns = Ns(10_000);

/// A scheduler with a full queue of random reads and writes of 1 to 4 pages.
pub struct Exercise {
    scheduler: Box<dyn HostScheduler>,
    queue: HostQueue,
    requests: Vec<Request>,
    now: Ns,
    sequence: u64,
}

/// What a host of `queue` slots, 1 to 4096, before a device of `units` parallel units, 1 to 65,536, knows: pages of 4 KiB, 128 GiB.
pub fn knowledge(units: u32, queue: u32) -> HostKnowledge {
    HostKnowledge {
        queue_length: queue,
        units: UnitMap::modulo(units),
        writes_stay: true,
        page_bytes: PAGE_BYTES,
        capacity_sectors: 1 << 28,
    }
}

impl Exercise {
    /// A scheduler with its defaults before which `queued` requests wait, 1 to 4095, on a device of so many units.
    ///
    /// # Errors
    /// Defaults that do not go with that.
    pub fn new(entry: &Entry, units: u32, queued: u32) -> Result<Exercise, SimError> {
        let scheduler =
            (entry.build)(&knowledge(units, queued + 1), &TunableValues::defaults(entry.tunables))?;
        let mut random = generator(1, "scheduler bench");
        let requests = (0..DRAWN)
            .map(|_| {
                let direction = if random.random::<bool>() { Direction::Read } else { Direction::Write };
                let pages = random.random_range(1..=4u32);
                Request::new(Ns::ZERO, Lsn(random.random_range(0..1u64 << 20) * 8), pages * 8, direction)
            })
            .collect();
        let queue = HostQueue::new(queued + 1);
        let mut exercise = Exercise { scheduler, queue, requests, now: Ns::ZERO, sequence: 0 };
        (0..queued).for_each(|_| exercise.insert());
        Ok(exercise)
    }

    fn insert(&mut self) {
        let request = self.requests[self.sequence as usize % DRAWN];
        let pages = PageRange::of(&request, PAGE_BYTES);
        let queued = QueuedRequest::new(self.now, self.sequence, request, pages, false);
        self.sequence += 1;
        let slot = self.queue.enter(queued);
        self.scheduler.insert(self.now, slot, &queued);
    }

    /// One more request enters, and one is issued and completes at once.
    ///
    /// # Panics
    /// When the scheduler issues nothing for a second though requests wait and the device would take any.
    pub fn step(&mut self) {
        self.insert();
        let patience = self.now + Ns::from_millis(1_000);
        loop {
            match self.scheduler.dispatch(self.now, &Gate::new(&self.queue, &|_: &QueuedRequest| true)) {
                Decision::Issue(slot) => {
                    self.queue.issue(slot, self.now, false);
                    let queued = self.queue.leave(slot);
                    self.now += STEP;
                    self.scheduler.completed(self.now, slot, &queued);
                    return;
                }
                Decision::WakeAt(time) if time > self.now && time <= patience => self.now = time,
                other => panic!("{other:?} at {}, though requests wait", self.now),
            }
        }
    }
}
