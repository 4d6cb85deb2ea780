//! The event queue: integer nanoseconds, ties in the order of scheduling.
//!
//! Each executor, each cache register, each channel, each way of the host link and the processor have at most one event pending, so the queue
//! holds a few hundred entries at most. Time, sequence and payload are packed in one 128-bit key: one comparison orders two events, and nothing is allocated.
//!
//! Delays take few values (a transfer, an array read, a program, an erase), and events of the same delay are scheduled in the
//! order in which they happen. So the queue is a handful of lanes, each in order: an event goes to the first lane whose last
//! event is not later (patience sorting), the next event is the earliest of the lanes' first ones. What fits no lane goes to a heap.

use planewise_model::Ns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens. The resource's own state says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The phase that an executor is in ends.
    Executor(u32),
    /// A channel with waiters becomes free.
    Channel(u32),
    /// A way of the host link, 0 or 1, has carried a command or data.
    Link(u32),
    /// A command has come through the host, and may cross the link.
    Host,
    /// The controller's processor is through with a task.
    Processor,
    /// The host has been at rest for long enough for something, or was at rest when this was scheduled.
    Rest,
}

const CHANNEL_FLAG: u32 = 1 << 31;
const LINK: u32 = 1 << 30;
const LINK_BACK: u32 = LINK | 1;
const PROCESSOR: u32 = LINK | 2;
const HOST: u32 = LINK | 3;
const REST: u32 = LINK | 4;

const LANES: usize = 6;
/// The heap's place behind those of the lanes.
const HEAP: usize = LANES;
/// Places are masked with this where the compiler cannot know that they are in range.
const PLACES: usize = 8;
const NONE: u128 = u128::MAX;

/// Keys in order, in a ring whose length is a power of two.
#[derive(Debug)]
struct Lane {
    keys: Box<[u128]>,
    /// Counts of keys put in and taken out.
    put: usize,
    taken: usize,
    /// The key that was put in last.
    last: u128,
}

impl Lane {
    fn with_capacity(capacity: usize) -> Lane {
        Lane { keys: vec![NONE; capacity.next_power_of_two()].into(), put: 0, taken: 0, last: 0 }
    }

    #[inline(always)]
    fn push(&mut self, key: u128) {
        if self.put - self.taken == self.keys.len() {
            self.grow();
        }
        let mask = self.keys.len() - 1;
        self.keys[self.put & mask] = key;
        self.put += 1;
        self.last = key;
    }

    #[cold]
    fn grow(&mut self) {
        let length = self.keys.len();
        let mut keys = vec![NONE; 2 * length];
        for (key, place) in keys.iter_mut().zip(self.taken..self.put) {
            *key = self.keys[place & (length - 1)];
        }
        (self.keys, self.put, self.taken) = (keys.into(), length, 0);
    }

    /// Takes the first key; the next one is [`NONE`] when there is none.
    #[inline(always)]
    fn pop(&mut self) -> u128 {
        self.taken += 1;
        if self.taken == self.put { NONE } else { self.keys[self.taken & (self.keys.len() - 1)] }
    }
}

/// Events by time, then by the order in which they were scheduled.
#[derive(Debug)]
pub(crate) struct EventQueue {
    lanes: [Lane; LANES],
    /// First key of each lane, and of the heap behind them; [`NONE`] when empty.
    first: [u128; PLACES],
    /// One bit for each of those that is not empty.
    filled: u32,
    rest: BinaryHeap<Reverse<u128>>,
    sequence: u32,
    /// Where the earliest event is: index into `first`.
    earliest: usize,
}

impl EventQueue {
    pub(crate) fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue {
            lanes: std::array::from_fn(|_| Lane::with_capacity(capacity.max(1))),
            first: [NONE; PLACES],
            filled: 0,
            rest: BinaryHeap::new(),
            sequence: 0,
            earliest: HEAP,
        }
    }

    /// Adds an event, not earlier than the last one taken.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Ns, event: Event) {
        let payload = match event {
            Event::Executor(index) => index,
            Event::Channel(index) => index | CHANNEL_FLAG,
            Event::Link(way) => LINK | way,
            Event::Host => HOST,
            Event::Processor => PROCESSOR,
            Event::Rest => REST,
        };
        // The sequence wraps after 4 billion events; it only has to order the few hundred that are pending together, and a
        // wrap can at worst swap two events of the same nanosecond, the same way on every run.
        self.sequence = self.sequence.wrapping_add(1);
        let key = u128::from(at.0) << 64 | u128::from(self.sequence) << 32 | u128::from(payload);
        let place = match self.lanes.iter_mut().enumerate().find(|(_, lane)| lane.last <= key) {
            Some((place, lane)) => {
                lane.push(key);
                place
            }
            None => {
                self.rest.push(Reverse(key));
                HEAP
            }
        };
        if key < self.first[place] {
            self.first[place] = key;
            self.filled |= 1 << place;
            if key < self.first[self.earliest % PLACES] {
                self.earliest = place;
            }
        }
    }

    /// When the next event happens; [`Ns::MAX`] when none is pending.
    #[inline]
    pub(crate) fn next_time(&self) -> Ns {
        Ns((self.first[self.earliest % PLACES] >> 64) as u64)
    }

    /// Takes the next event if it happens at `now`.
    #[inline]
    pub(crate) fn pop_at(&mut self, now: Ns) -> Option<Event> {
        let place = self.earliest % PLACES;
        let key = self.first[place];
        // Of nothing the time is never now.
        if (key >> 64) as u64 != now.0 || key == NONE {
            return None;
        }
        let next = match self.lanes.get_mut(place) {
            Some(lane) => lane.pop(),
            None => {
                self.rest.pop();
                self.rest.peek().map_or(NONE, |Reverse(next)| *next)
            }
        };
        self.first[place] = next;
        self.filled &= !(u32::from(next == NONE) << place);
        let (mut left, mut earliest) = (self.filled, NONE);
        self.earliest = HEAP;
        while left != 0 {
            let place = left.trailing_zeros() as usize % PLACES;
            left &= left - 1;
            if self.first[place] < earliest {
                (earliest, self.earliest) = (self.first[place], place);
            }
        }
        let payload = key as u32;
        Some(match payload {
            0..LINK => Event::Executor(payload),
            LINK..=LINK_BACK => Event::Link(payload & 1),
            HOST => Event::Host,
            PROCESSOR => Event::Processor,
            REST => Event::Rest,
            _ => Event::Channel(payload & !CHANNEL_FLAG),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_by_time_and_ties_in_the_order_scheduled() {
        let mut queue = EventQueue::with_capacity(4);
        queue.schedule(Ns(20), Event::Executor(1));
        queue.schedule(Ns(10), Event::Channel(2));
        queue.schedule(Ns(20), Event::Channel(0));
        assert_eq!(queue.next_time(), Ns(10));
        assert_eq!(queue.pop_at(Ns(10)), Some(Event::Channel(2)));
        assert_eq!(queue.pop_at(Ns(10)), None);
        assert_eq!(queue.pop_at(Ns(20)), Some(Event::Executor(1)));
        assert_eq!(queue.pop_at(Ns(20)), Some(Event::Channel(0)));
        assert_eq!(queue.next_time(), Ns::MAX);
    }
    proptest::proptest! {
        #[test]
        fn any_schedule_leaves_in_the_order_of_a_sorted_list(delays in proptest::collection::vec((0u64..50, 0u32..3), 1..400)) {
            // Each step schedules an event some time after the last one taken, and now and then takes the next.
            let mut queue = EventQueue::with_capacity(4);
            let (mut pending, mut now) = (Vec::new(), 0);
            for (number, &(delay, takes)) in delays.iter().enumerate() {
                queue.schedule(Ns(now + delay), Event::Executor(number as u32));
                pending.push((now + delay, number as u32));
                for _ in 0..takes {
                    pending.sort_unstable();
                    let time = queue.next_time();
                    proptest::prop_assert_eq!(time.0, pending.first().map_or(u64::MAX, |&(at, _)| at));
                    if !pending.is_empty() {
                        let (at, number) = pending.remove(0);
                        proptest::prop_assert_eq!(queue.pop_at(time), Some(Event::Executor(number)));
                        now = at;
                    }
                }
            }
        }
    }
}
