//! The read buffer: pages read ahead, and the host requests that wait for those still coming.
//!
//! Pages take the places of others in the order in which they came in, whether those were asked for or not; a page that is still
//! coming keeps its place. A page that the host writes is forgotten at once; when it is still coming, those that asked for it before
//! the write get it, and nobody after.

use super::{NIL, PageIndex};
use crate::host;
use planewise_model::Lpn;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Coming,
    Ready,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    lpn: Lpn,
    state: State,
    /// Nobody may find it any more.
    stale: bool,
    /// A request asked for it, or nobody is expected to any more: it has been counted.
    counted: bool,
    /// Requests that wait for it, linked.
    first_waiter: u32,
}

/// What the buffer has of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All of it.
    Ready(u32),
    /// It is being read.
    Coming(u32),
}

#[derive(Debug)]
pub(crate) struct ReadBuffer {
    slots: Vec<Slot>,
    index: PageIndex,
    /// The slot that is taken next, if it can be.
    hand: u32,
    /// `(request, next)`; the list of free ones is linked through `next` as well.
    waiters: Vec<(host::Slot, u32)>,
    free_waiter: u32,
    /// Pages that were asked for, and pages that were read in vain, since somebody last looked.
    outcome: (u32, u32),
}

impl ReadBuffer {
    pub(crate) fn new(pages: u32) -> ReadBuffer {
        let free = Slot { lpn: Lpn(0), state: State::Free, stale: false, counted: false, first_waiter: NIL };
        ReadBuffer {
            slots: vec![free; pages as usize],
            index: PageIndex::new(pages),
            hand: 0,
            waiters: Vec::new(),
            free_waiter: NIL,
            outcome: (0, 0),
        }
    }

    /// Pages that were asked for, and pages that were given up or discarded before anybody did, since the last call.
    pub(crate) fn take_outcome(&mut self) -> (u32, u32) {
        std::mem::take(&mut self.outcome)
    }

    /// What the buffer has of a page that a request asks for.
    #[inline]
    pub(crate) fn ask(&mut self, lpn: Lpn) -> Option<Found> {
        let found = self.find(lpn)?;
        let (Found::Ready(slot) | Found::Coming(slot)) = found;
        if !std::mem::replace(&mut self.slots[slot as usize].counted, true) {
            self.outcome.0 += 1;
        }
        Some(found)
    }

    #[inline]
    pub(crate) fn find(&self, lpn: Lpn) -> Option<Found> {
        let slot = self.index.get(lpn)?;
        Some(match self.slots[slot as usize].state {
            State::Ready => Found::Ready(slot),
            _ => Found::Coming(slot),
        })
    }

    /// The stream that a page was read ahead of has ended: if nobody asked for it so far, it was read in vain.
    pub(crate) fn give_up(&mut self, lpn: Lpn) {
        if let Some(slot) = self.index.get(lpn)
            && !std::mem::replace(&mut self.slots[slot as usize].counted, true)
        {
            self.outcome.1 += 1;
        }
    }

    /// A slot for a page that is about to be read; none while all are taken by pages that are coming.
    pub(crate) fn take(&mut self, lpn: Lpn) -> Option<u32> {
        let slots = self.slots.len() as u32;
        let slot = (0..slots)
            .map(|step| (self.hand + step) % slots)
            .find(|&slot| self.slots[slot as usize].state != State::Coming)?;
        self.hand = (slot + 1) % slots;
        self.forget(slot);
        self.slots[slot as usize] =
            Slot { lpn, state: State::Coming, stale: false, counted: false, first_waiter: NIL };
        self.index.set(lpn, slot);
        Some(slot)
    }

    /// A request waits for a page that is coming.
    pub(crate) fn wait(&mut self, slot: u32, request: host::Slot) {
        let next = self.slots[slot as usize].first_waiter;
        let waiter = if self.free_waiter == NIL {
            self.waiters.push((request, next));
            self.waiters.len() as u32 - 1
        } else {
            let waiter = self.free_waiter;
            self.free_waiter = self.waiters[waiter as usize].1;
            self.waiters[waiter as usize] = (request, next);
            waiter
        };
        self.slots[slot as usize].first_waiter = waiter;
    }

    /// A page is here; its waiting requests are taken with [`ReadBuffer::next_waiter`].
    pub(crate) fn arrived(&mut self, slot: u32) -> Lpn {
        let arrived = &mut self.slots[slot as usize];
        arrived.state = if arrived.stale { State::Free } else { State::Ready };
        arrived.lpn
    }

    /// Takes one of the requests that wait for a page.
    pub(crate) fn next_waiter(&mut self, slot: u32) -> Option<host::Slot> {
        let waiter = self.slots[slot as usize].first_waiter;
        if waiter == NIL {
            return None;
        }
        let (request, next) = self.waiters[waiter as usize];
        self.slots[slot as usize].first_waiter = next;
        self.waiters[waiter as usize].1 = self.free_waiter;
        self.free_waiter = waiter;
        Some(request)
    }

    /// The host writes a page: what the buffer has of it is old.
    pub(crate) fn discard(&mut self, lpn: Lpn) {
        if let Some(slot) = self.index.get(lpn) {
            self.forget(slot);
        }
    }

    /// Discards everything.
    pub(crate) fn discard_all(&mut self) {
        (0..self.slots.len() as u32).for_each(|slot| self.forget(slot));
    }

    fn forget(&mut self, slot: u32) {
        let Slot { lpn, state, stale, counted, .. } = self.slots[slot as usize];
        if state == State::Free || stale {
            return;
        }
        self.outcome.1 += u32::from(!counted);
        self.index.clear(lpn);
        match state {
            State::Coming => self.slots[slot as usize].stale = true,
            _ => self.slots[slot as usize].state = State::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_take_each_others_places_in_the_order_they_came_and_never_of_one_that_is_coming() {
        let mut buffer = ReadBuffer::new(2);
        let (first, second) = (buffer.take(Lpn(1)).unwrap(), buffer.take(Lpn(2)).unwrap());
        assert_eq!(buffer.take(Lpn(3)), None);
        buffer.arrived(second);
        assert_eq!(buffer.take(Lpn(3)), Some(second));
        assert_eq!(buffer.find(Lpn(2)), None);
        assert_eq!(buffer.find(Lpn(1)), Some(Found::Coming(first)));
        buffer.arrived(first);
        assert_eq!(buffer.find(Lpn(1)), Some(Found::Ready(first)));
    }

    #[test]
    fn a_page_counts_once_as_used_or_as_discarded_unread() {
        let mut buffer = ReadBuffer::new(2);
        for page in 0..6 {
            let slot = buffer.take(Lpn(page)).unwrap();
            if page % 3 == 0 {
                buffer.ask(Lpn(page));
            }
            buffer.arrived(slot);
            if page % 3 < 2 {
                buffer.ask(Lpn(page));
            }
        }
        assert_eq!(buffer.take_outcome(), (4, 1), "pages 0, 1, 3 and 4; page 2 gave its place to 4");
        buffer.discard(Lpn(5));
        buffer.discard(Lpn(5));
        buffer.discard_all();
        assert_eq!(buffer.take_outcome(), (0, 1), "page 5; page 4 was used");
        buffer.take(Lpn(6)).unwrap();
        buffer.give_up(Lpn(6));
        buffer.give_up(Lpn(6));
        buffer.give_up(Lpn(7));
        buffer.discard(Lpn(6));
        assert_eq!(buffer.take_outcome(), (0, 1));
    }

    #[test]
    fn those_that_asked_before_a_write_are_served_and_nobody_after_finds_the_page() {
        let mut buffer = ReadBuffer::new(1);
        let slot = buffer.take(Lpn(7)).unwrap();
        buffer.wait(slot, host::Slot(3));
        buffer.wait(slot, host::Slot(4));
        buffer.discard(Lpn(7));
        assert_eq!(buffer.find(Lpn(7)), None);
        assert_eq!(buffer.arrived(slot), Lpn(7));
        let mut served = Vec::new();
        while let Some(request) = buffer.next_waiter(slot) {
            served.push(request.0);
        }
        served.sort_unstable();
        assert_eq!(served, [3, 4]);
        assert_eq!(buffer.take(Lpn(8)), Some(slot), "the slot is free");
    }
}
