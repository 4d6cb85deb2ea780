//! The event queue: integer nanoseconds, ties in the order of scheduling.
//!
//! Each executor and each channel has at most one event pending, so the queue holds at most dies + channels entries. Time,
//! sequence and payload are packed in one 128-bit key: one comparison orders two events, and nothing is allocated.

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
}

const CHANNEL_FLAG: u32 = 1 << 31;

/// Events by time, then by the order in which they were scheduled.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    sequence: u32,
    earliest: Ns,
}

impl EventQueue {
    pub(crate) fn with_capacity(capacity: usize) -> EventQueue {
        EventQueue { heap: BinaryHeap::with_capacity(capacity), sequence: 0, earliest: Ns::MAX }
    }

    /// Adds an event.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Ns, event: Event) {
        let payload = match event {
            Event::Executor(index) => index,
            Event::Channel(index) => index | CHANNEL_FLAG,
        };
        // The sequence wraps after 4 billion events; it only has to order the few hundred that are pending together, and a
        // wrap can at worst swap two events of the same nanosecond, the same way on every run.
        self.sequence = self.sequence.wrapping_add(1);
        let key = u128::from(at.0) << 64 | u128::from(self.sequence) << 32 | u128::from(payload);
        self.heap.push(Reverse(key));
        self.earliest = self.earliest.min(at);
    }

    /// When the next event happens; [`Ns::MAX`] when none is pending.
    #[inline]
    pub(crate) fn next_time(&self) -> Ns {
        self.earliest
    }

    /// Takes the next event if it happens at `now`.
    #[inline]
    pub(crate) fn pop_at(&mut self, now: Ns) -> Option<Event> {
        if self.earliest != now {
            return None;
        }
        let Reverse(key) = self.heap.pop()?;
        self.earliest = self.heap.peek().map_or(Ns::MAX, |Reverse(next)| Ns((next >> 64) as u64));
        let payload = key as u32;
        Some(if payload & CHANNEL_FLAG == 0 {
            Event::Executor(payload)
        } else {
            Event::Channel(payload & !CHANNEL_FLAG)
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
}
