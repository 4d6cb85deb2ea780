//! CFQ's queues, and the order in which they are served.

use super::super::habits::SeekDistance;
use super::super::lineup::Lineup;
use planewise_model::Ns;

/// A mean seek, sectors, above which a queue counts as seeky (`CFQQ_SEEK_THR`).
const SEEKY: u64 = 8 * 1024;

/// The synchronous requests of a process, or the asynchronous ones of all.
pub(super) struct Queue {
    pub(super) synchronous: bool,
    pub(super) waiting: Lineup,
    /// Its place in the service tree, while requests wait.
    pub(super) key: Option<Key>,
    /// Requests at the device.
    pub(super) dispatched: u64,
    pub(super) slice: Slice,
    /// What was left of the last slice, ns; negative when it ran over.
    pub(super) residue: i64,
    /// Whether an empty queue is worth waiting for (`idle_window`).
    pub(super) idles: bool,
    pub(super) seeks: SeekDistance,
    /// Sector behind its last request.
    pub(super) position: u64,
}

/// A turn of a queue.
#[derive(Clone, Copy, Default)]
pub(super) struct Slice {
    /// When it ends; [`None`] until its first request completes (`slice_new`).
    pub(super) end: Option<Ns>,
    pub(super) dispatched: u64,
    /// The FIFO was looked at.
    pub(super) fifo_checked: bool,
    /// The queue is empty and the disk waits for it.
    pub(super) waits: bool,
    /// A request came while the disk waited.
    pub(super) must_dispatch: bool,
}

impl Slice {
    pub(super) fn is_used(&self, now: Ns) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
}

impl Queue {
    pub(super) fn new(synchronous: bool) -> Queue {
        Queue {
            synchronous,
            waiting: Lineup::EMPTY,
            key: None,
            dispatched: 0,
            slice: Slice::default(),
            residue: 0,
            idles: synchronous,
            seeks: SeekDistance::default(),
            position: 0,
        }
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.mean() > SEEKY
    }

    /// Whether a request is as close as the queue's own are (`cfq_rq_close`).
    pub(super) fn is_close(&self, distance: u64) -> bool {
        distance <= if self.seeks.is_valid() { self.seeks.mean() } else { SEEKY }
    }
}

/// When a queue is due, ns, and the order of insertion among equals.
type Key = (i64, u64);

/// Queues with waiting requests in the order of service: a sorted list, as there are at most as many as requests.
pub(super) struct ServiceTree {
    sorted: Vec<(Key, usize)>,
    inserted: u64,
}

impl ServiceTree {
    pub(super) fn new(slots: u32) -> ServiceTree {
        ServiceTree { sorted: Vec::with_capacity(slots as usize), inserted: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The queue to serve next, and when it is due.
    pub(super) fn first(&self) -> Option<(i64, usize)> {
        self.sorted.first().map(|&((due, _), queue)| (due, queue))
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = usize> + '_ {
        self.sorted.iter().map(|&(_, queue)| queue)
    }

    /// Adds a queue that is not there, behind those due at the same time.
    pub(super) fn insert(&mut self, queue: usize, due: i64) -> Key {
        self.inserted += 1;
        let key = (due, self.inserted);
        let at = self.sorted.partition_point(|&(other, _)| other < key);
        self.sorted.insert(at, (key, queue));
        key
    }

    pub(super) fn remove(&mut self, key: Key) {
        let at =
            self.sorted.binary_search_by_key(&key, |&(other, _)| other).expect("the queue is in the tree");
        self.sorted.remove(at);
    }
}
