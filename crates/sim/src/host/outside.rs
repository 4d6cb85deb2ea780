//! Requests that wait for a slot of the I/O queue, and who is next.

use super::HostQueue;
use super::pools::pool_of;
use super::threads::Threads;
use planewise_model::{Direction, Request};
use std::collections::{BTreeMap, VecDeque};

/// Requests of one pool or process that a replay reads ahead while they wait, to get at those of others.
const OUTSIDE_MAX: usize = 65_536;

/// Requests that wait outside for a slot: those of a pool or, before today's block layer, of a process in their order, and those that
/// overlap another in theirs.
pub struct Outside {
    /// With the number of each.
    waiting: [VecDeque<(u64, Request)>; 2],
    two: bool,
    /// Instead, where a queue has tags.
    threads: Option<Threads>,
    pushed: u64,
    /// Where there is more than one line: the requests by first sector and number.
    by_sector: BTreeMap<(u64, u64), Request>,
    /// Sectors of the longest that ever waited.
    longest: u64,
}

impl Outside {
    /// In front of a queue.
    pub fn new(queue: &HostQueue) -> Outside {
        let threads = queue.has_tags().then(Threads::default);
        Outside { two: queue.has_two_pools(), threads, ..Outside::in_order() }
    }

    /// In front of any queue, for a replay that must submit in the order of its trace.
    pub fn in_order() -> Outside {
        Outside {
            waiting: Default::default(),
            two: false,
            threads: None,
            pushed: 0,
            by_sector: BTreeMap::new(),
            longest: 0,
        }
    }

    /// How many wait.
    #[inline]
    pub fn count(&self) -> usize {
        let threads = self.threads.as_ref().map_or(0, Threads::count);
        self.waiting[0].len() + self.waiting[1].len() + threads
    }

    /// Whether one may overtake another.
    fn has_lines(&self) -> bool {
        self.two || self.threads.is_some()
    }

    fn pool(&self, request: &Request) -> usize {
        if self.two { pool_of(request) } else { 0 }
    }

    /// Whether one waits that goes before: one of the same pool, or one that it overlaps, of which one writes.
    #[inline]
    pub fn is_before(&self, request: &Request) -> bool {
        let in_line = || match &self.threads {
            None => !self.waiting[self.pool(request)].is_empty(),
            Some(threads) => threads.waits(request.process),
        };
        self.count() > 0 && (in_line() || self.overlaps_earlier(self.pushed, request))
    }

    /// Whether a replay may let a request wait here and read on: others may have room where it has none.
    pub fn reads_on(&self) -> bool {
        self.has_lines() && self.count() < OUTSIDE_MAX
    }

    /// A request waits.
    pub fn push(&mut self, request: Request) {
        match &mut self.threads {
            None => self.waiting[self.pool(&request)].push_back((self.pushed, request)),
            Some(threads) => threads.push(self.pushed, request),
        }
        if self.has_lines() {
            self.by_sector.insert((request.start.0, self.pushed), request);
            self.longest = self.longest.max(request.sectors.into());
        }
        self.pushed += 1;
    }

    /// The next that has room: of two pools the one that arrived first.
    #[inline]
    pub fn next(&mut self, mut has_room: impl FnMut(&Request) -> bool) -> Option<Request> {
        if self.threads.is_some() {
            return self.next_of_threads(has_room);
        }
        let mut goes = |pool: usize| {
            let &(number, request) = self.waiting[pool].front()?;
            (has_room(&request) && !self.overlaps_earlier(number, &request)).then_some((number, pool))
        };
        let (_, pool) = [goes(0), goes(1)].into_iter().flatten().min()?;
        let (number, request) = self.waiting[pool].pop_front()?;
        self.by_sector.remove(&(request.start.0, number));
        Some(request)
    }

    #[cold]
    fn next_of_threads(&mut self, mut has_room: impl FnMut(&Request) -> bool) -> Option<Request> {
        let mut threads = self.threads.take()?;
        let goes = |number, request: &Request| has_room(request) && !self.overlaps_earlier(number, request);
        let found = threads.next(goes);
        self.threads = Some(threads);
        let (number, request) = found?;
        self.by_sector.remove(&(request.start.0, number));
        Some(request)
    }

    /// Whether a request overlaps one that waits with a lower number, and one of them writes.
    fn overlaps_earlier(&self, number: u64, request: &Request) -> bool {
        let (start, end) = (request.start.0, request.end().0);
        let near = self.by_sector.range((start.saturating_sub(self.longest), 0)..(end, 0));
        near.into_iter().any(|(&(_, other), earlier)| {
            let one_writes = [request, earlier].iter().any(|one| one.direction == Direction::Write);
            other < number && earlier.end().0 > start && one_writes
        })
    }
}
