//! The write buffer: pages that the host wrote, until they are in flash.
//!
//! A page waits in the order in which it came in, is overwritten in place while it waits, and may hold only some of its sectors. Write-back
//! takes the oldest page and with it all that wait of the aligned group of consecutive pages that it is in, so that what was written in
//! sequence is programmed together; or the oldest pages as they came, where the device maps by the order of writes. While a page is being programmed it still serves reads; a write of it then takes a slot of its
//! own, which is not written back before the older one is through: the order of the writes is the order in flash.
//!
//! A request may wait until pages are in flash ([`WriteBuffer::await_all`], [`WriteBuffer::await_slots`]): those go back at once, whatever the
//! watermark.

use super::{NIL, PageIndex};
use crate::host;
use planewise_model::{Lpn, profile};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Waits to be written back; absorbs writes.
    Waiting,
    /// On its way back.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    lpn: Lpn,
    state: State,
    /// An older version of the page is on its way back.
    blocked: bool,
    /// A request waits for this page alone to be in flash.
    urgent: bool,
    /// Rises with every page that enters.
    entered: u64,
    /// Of a leaving page: the slot that was taken by a newer version, or [`NIL`].
    newer: u32,
    /// Neighbours in the order of entry, while it waits; the next of its run, while it leaves.
    previous: u32,
    next: u32,
}

/// A request that waits until pages are in flash.
#[derive(Debug)]
struct Waiter {
    request: host::Slot,
    /// Pages that are not yet.
    remaining: u32,
    what: Awaited,
}

#[derive(Debug)]
enum Awaited {
    /// All that entered before this one.
    Before(u64),
    /// Those in these slots.
    In(Vec<u32>),
}

#[derive(Debug)]
pub(crate) struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: PageIndex,
    /// A bit for each sector of each slot: written by the host.
    written: Vec<u64>,
    words: usize,
    sectors_per_page: u32,
    oldest: u32,
    youngest: u32,
    waiting: u32,
    leaving: u32,
    watermark: u32,
    run_pages: u32,
    entry_order: bool,
    leaving_most: u32,
    is_protected: bool,
    entered: u64,
    /// All that entered before this one goes back now, and how many of those wait.
    flush_before: u64,
    flushing: u32,
    /// Slots of waiting pages that somebody waits for.
    urgent: Vec<u32>,
    waiters: Vec<Waiter>,
    /// Requests whose pages are all in flash, until they are taken.
    kept: VecDeque<host::Slot>,
}

impl WriteBuffer {
    pub(crate) fn new(settings: &profile::WriteBuffer, sectors_per_page: u32) -> WriteBuffer {
        let free = Slot {
            lpn: Lpn(0),
            state: State::Free,
            blocked: false,
            urgent: false,
            entered: 0,
            newer: NIL,
            previous: NIL,
            next: NIL,
        };
        let words = sectors_per_page.div_ceil(64) as usize;
        WriteBuffer {
            slots: vec![free; settings.pages as usize],
            free: (0..settings.pages).rev().collect(),
            index: PageIndex::new(settings.pages),
            written: vec![0; words * settings.pages as usize],
            words,
            sectors_per_page,
            oldest: NIL,
            youngest: NIL,
            waiting: 0,
            leaving: 0,
            watermark: (f64::from(settings.pages) * settings.watermark) as u32,
            run_pages: settings.run_pages,
            entry_order: settings.entry_order,
            leaving_most: settings.in_flight_pages,
            is_protected: settings.power_loss_protection,
            entered: 0,
            flush_before: 0,
            flushing: 0,
            urgent: Vec::new(),
            waiters: Vec::new(),
            kept: VecDeque::new(),
        }
    }

    /// Whether a capacitor keeps what it holds from a loss of power.
    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected
    }

    /// The slot with the newest version of a page.
    #[inline]
    pub(crate) fn find(&self, lpn: Lpn) -> Option<u32> {
        self.index.get(lpn)
    }

    /// The page in a slot.
    pub(crate) fn page(&self, slot: u32) -> Lpn {
        self.slots[slot as usize].lpn
    }

    /// Takes sectors of a page, into the slot where the page waits or into a free one; none when there is none.
    pub(crate) fn put(&mut self, lpn: Lpn, sectors: std::ops::Range<u32>) -> Option<u32> {
        let slot = match self.index.get(lpn) {
            Some(slot) if self.slots[slot as usize].state == State::Waiting => slot,
            before => self.enter(lpn, before)?,
        };
        for sector in sectors {
            self.written[slot as usize * self.words + sector as usize / 64] |= 1 << (sector % 64);
        }
        Some(slot)
    }

    fn enter(&mut self, lpn: Lpn, leaving: Option<u32>) -> Option<u32> {
        let slot = self.free.pop()?;
        if let Some(older) = leaving {
            self.slots[older as usize].newer = slot;
        }
        self.slots[slot as usize] = Slot {
            lpn,
            state: State::Waiting,
            blocked: leaving.is_some(),
            urgent: false,
            entered: self.entered,
            newer: NIL,
            previous: self.youngest,
            next: NIL,
        };
        if self.youngest == NIL {
            self.oldest = slot;
        } else {
            self.slots[self.youngest as usize].next = slot;
        }
        self.youngest = slot;
        self.entered += 1;
        self.waiting += 1;
        self.written[slot as usize * self.words..(slot as usize + 1) * self.words].fill(0);
        self.index.set(lpn, slot);
        Some(slot)
    }

    /// Pages on their way back.
    pub(crate) fn leaving(&self) -> u32 {
        self.leaving
    }

    /// Whether a request waits for pages to be in flash.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether a request waits for the page in a slot to be in flash.
    pub(crate) fn awaits(&self, slot: u32) -> bool {
        let entered = self.slots[slot as usize].entered;
        self.waiters.iter().any(|waiter| match &waiter.what {
            Awaited::Before(before) => entered < *before,
            Awaited::In(slots) => slots.contains(&slot),
        })
    }

    /// Whether a slot has all of these sectors of its page.
    pub(crate) fn has(&self, slot: u32, mut sectors: std::ops::Range<u32>) -> bool {
        sectors.all(|sector| {
            self.written[slot as usize * self.words + sector as usize / 64] >> (sector % 64) & 1 == 1
        })
    }

    /// Sectors of the page that a slot does not have.
    pub(crate) fn missing(&self, slot: u32) -> u32 {
        let words = &self.written[slot as usize * self.words..(slot as usize + 1) * self.words];
        self.sectors_per_page - words.iter().map(|word| word.count_ones()).sum::<u32>()
    }

    /// Takes the next run to write back, if it is time for one: its first slot, and how many pages it has.
    pub(crate) fn take_run(&mut self) -> Option<(u32, u32)> {
        if self.waiting <= self.watermark && self.flushing == 0 && self.urgent.is_empty()
            || self.leaving >= self.leaving_most
        {
            return None;
        }
        let oldest = self.first_to_leave()?;
        let (mut head, mut last, mut count) = (NIL, NIL, 0);
        let mut join = |buffer: &mut WriteBuffer, slot: u32| {
            buffer.leave(slot);
            if head == NIL {
                head = slot;
            } else {
                buffer.slots[last as usize].next = slot;
            }
            last = slot;
            count += 1;
        };
        if self.entry_order {
            let mut slot = oldest;
            for _ in 0..self.run_pages {
                let next = self.slots[slot as usize].next;
                if !self.slots[slot as usize].blocked {
                    join(self, slot);
                }
                if next == NIL {
                    break;
                }
                slot = next;
            }
        } else {
            let first = self.slots[oldest as usize].lpn.0 / self.run_pages * self.run_pages;
            for lpn in first..first.saturating_add(self.run_pages) {
                let Some(slot) = self.index.get(Lpn(lpn)) else { continue };
                let Slot { state, blocked, .. } = self.slots[slot as usize];
                if state == State::Waiting && !blocked {
                    join(self, slot);
                }
            }
        }
        Some((head, count))
    }

    /// The slot that a run begins with: one that a request waits for, or the oldest.
    fn first_to_leave(&self) -> Option<u32> {
        let is_free = |slot: u32| !self.slots[slot as usize].blocked;
        if let Some(&urgent) = self.urgent.iter().find(|&&slot| is_free(slot)) {
            return Some(urgent);
        }
        let mut oldest = self.oldest;
        while oldest != NIL && !is_free(oldest) {
            oldest = self.slots[oldest as usize].next;
        }
        let goes = oldest != NIL
            && (self.waiting > self.watermark
                || self.flushing > 0 && self.slots[oldest as usize].entered < self.flush_before);
        goes.then_some(oldest)
    }

    /// A request waits until all that the buffer holds now is in flash; false when it need not.
    pub(crate) fn await_all(&mut self, request: host::Slot) -> bool {
        let remaining = self.waiting + self.leaving;
        if remaining > 0 {
            (self.flush_before, self.flushing) = (self.entered, self.waiting);
            self.waiters.push(Waiter { request, remaining, what: Awaited::Before(self.entered) });
        }
        remaining > 0
    }

    /// A request waits until the page in a slot is in flash, one of the `pages` that it waits for in all.
    pub(crate) fn await_slot(&mut self, request: host::Slot, slot: u32, pages: u32) {
        let waits = &mut self.slots[slot as usize];
        if waits.state == State::Waiting && !waits.urgent {
            waits.urgent = true;
            self.urgent.push(slot);
        }
        for waiter in &mut self.waiters {
            if let Awaited::In(slots) = &mut waiter.what
                && waiter.request == request
            {
                slots.push(slot);
                return;
            }
        }
        self.waiters.push(Waiter { request, remaining: pages, what: Awaited::In(vec![slot]) });
    }

    /// Takes a request that waits no longer.
    pub(crate) fn take_kept(&mut self) -> Option<host::Slot> {
        self.kept.pop_front()
    }

    /// Forgets a page, unless a version of it is on its way back: then that one's slot.
    pub(crate) fn discard(&mut self, lpn: Lpn) -> Option<u32> {
        let slot = self.index.get(lpn)?;
        if self.slots[slot as usize].state == State::Leaving {
            return Some(slot);
        }
        if self.slots[slot as usize].blocked {
            let is_older = |older: &Slot| older.newer == slot && older.state == State::Leaving;
            return self.slots.iter().position(is_older).map(|older| older as u32);
        }
        self.unlink(slot);
        self.slots[slot as usize].state = State::Free;
        self.index.clear(lpn);
        self.free.push(slot);
        self.no_longer_awaited(slot);
        None
    }

    /// Tells those who wait for the page in a slot.
    fn no_longer_awaited(&mut self, slot: u32) {
        if self.waiters.is_empty() {
            return;
        }
        let entered = self.slots[slot as usize].entered;
        for waiter in &mut self.waiters {
            let is_awaited = match &mut waiter.what {
                Awaited::Before(before) => entered < *before,
                // The slot may be another page's soon.
                Awaited::In(slots) => {
                    slots.iter().position(|&other| other == slot).map(|at| slots.swap_remove(at)).is_some()
                }
            };
            waiter.remaining -= u32::from(is_awaited);
        }
        let kept = &mut self.kept;
        self.waiters.retain(|waiter| {
            if waiter.remaining == 0 {
                kept.push_back(waiter.request);
            }
            waiter.remaining > 0
        });
    }

    /// The slot after one in its run, or [`NIL`].
    pub(crate) fn next_of_run(&self, slot: u32) -> u32 {
        self.slots[slot as usize].next
    }

    fn leave(&mut self, slot: u32) {
        self.unlink(slot);
        let slot = &mut self.slots[slot as usize];
        (slot.state, slot.previous, slot.next) = (State::Leaving, NIL, NIL);
        self.leaving += 1;
    }

    /// Takes a waiting page out of the line.
    fn unlink(&mut self, slot: u32) {
        let Slot { previous, next, urgent, entered, .. } = self.slots[slot as usize];
        if urgent {
            self.urgent.retain(|&other| other != slot);
        }
        if entered < self.flush_before {
            self.flushing -= 1;
        }
        if previous == NIL {
            self.oldest = next;
        } else {
            self.slots[previous as usize].next = next;
        }
        if next == NIL {
            self.youngest = previous;
        } else {
            self.slots[next as usize].previous = previous;
        }
        self.waiting -= 1;
    }

    /// A page is in flash: its slot is free.
    pub(crate) fn left(&mut self, slot: u32) {
        let Slot { lpn, state, newer, .. } = self.slots[slot as usize];
        debug_assert_eq!(state, State::Leaving);
        self.slots[slot as usize].state = State::Free;
        if newer == NIL {
            self.index.clear(lpn);
        } else {
            self.slots[newer as usize].blocked = false;
        }
        self.leaving -= 1;
        self.free.push(slot);
        self.no_longer_awaited(slot);
    }

    /// Slots that hold a page, with it.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u32, Lpn)> {
        let held =
            |(index, slot): (usize, &Slot)| (slot.state != State::Free).then_some((index as u32, slot.lpn));
        self.slots.iter().enumerate().filter_map(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(pages: u32, watermark: f64, run_pages: u32, in_flight_pages: u32) -> WriteBuffer {
        let settings = profile::WriteBuffer {
            pages,
            watermark,
            run_pages,
            entry_order: false,
            in_flight_pages,
            power_loss_protection: true,
        };
        WriteBuffer::new(&settings, 8)
    }

    fn run(buffer: &mut WriteBuffer) -> Vec<u32> {
        let mut pages = Vec::new();
        let mut slot = buffer.take_run().map_or(NIL, |(first, _)| first);
        while slot != NIL {
            pages.push(buffer.page(slot).0);
            slot = buffer.next_of_run(slot);
        }
        pages
    }

    #[test]
    fn runs_leave_oldest_first_with_their_neighbours_and_only_above_the_watermark() {
        let mut buffer = buffer(8, 0.25, 4, 100);
        for lpn in [9, 40, 8, 11] {
            buffer.put(Lpn(lpn), 0..8).unwrap();
        }
        assert_eq!(run(&mut buffer), [8, 9, 11], "the aligned group of the oldest, in order");
        assert_eq!(run(&mut buffer), [] as [u32; 0], "one page waits, two may");
    }

    #[test]
    fn in_the_order_of_entry_the_oldest_leave_whatever_their_addresses() {
        let mut buffer = buffer(8, 0.0, 3, 100);
        buffer.entry_order = true;
        for lpn in [9, 40, 8, 11, 40] {
            buffer.put(Lpn(lpn), 0..8).unwrap();
        }
        assert_eq!(run(&mut buffer), [9, 40, 8], "a page that is overwritten keeps its place");
        let leaving = buffer.find(Lpn(40)).unwrap();
        buffer.put(Lpn(40), 0..8).unwrap();
        buffer.put(Lpn(12), 0..8).unwrap();
        assert_eq!(run(&mut buffer), [11, 12], "the newer version of a page on its way waits");
        buffer.left(leaving);
        assert_eq!(run(&mut buffer), [40]);
    }

    #[test]
    fn a_run_begins_only_while_fewer_pages_are_on_their_way_than_may_be() {
        let mut buffer = buffer(8, 0.0, 2, 2);
        (0..6).for_each(|lpn| assert!(buffer.put(Lpn(lpn), 0..8).is_some()));
        let (slot, count) = buffer.take_run().unwrap();
        assert_eq!(count, 2);
        assert_eq!(buffer.take_run(), None);
        buffer.left(slot);
        assert_eq!(buffer.take_run().map(|(_, count)| count), Some(2));
    }

    #[test]
    fn a_run_that_begins_goes_as_a_whole() {
        let mut buffer = buffer(8, 0.0, 4, 2);
        (0..4).for_each(|lpn| assert!(buffer.put(Lpn(lpn), 0..8).is_some()));
        assert_eq!(run(&mut buffer), [0, 1, 2, 3], "all four, although two are as many as it begins at");
    }

    #[test]
    fn sectors_of_a_page_come_together_and_a_full_buffer_takes_only_what_it_holds() {
        let mut buffer = buffer(1, 0.0, 1, 1);
        let slot = buffer.put(Lpn(5), 1..3).unwrap();
        assert!(buffer.has(slot, 1..3) && !buffer.has(slot, 0..3));
        assert_eq!(buffer.missing(slot), 6);
        assert_eq!(buffer.put(Lpn(6), 0..8), None);
        assert_eq!(buffer.put(Lpn(5), 0..8), Some(slot));
        assert_eq!(buffer.missing(slot), 0);
    }

    #[test]
    fn a_page_written_again_on_its_way_waits_for_the_older_version() {
        let mut buffer = buffer(4, 0.0, 1, 4);
        let older = buffer.put(Lpn(5), 0..8).unwrap();
        assert_eq!(buffer.take_run(), Some((older, 1)));
        let newer = buffer.put(Lpn(5), 0..1).unwrap();
        assert_ne!(older, newer);
        assert_eq!(buffer.find(Lpn(5)), Some(newer));
        assert_eq!(buffer.take_run(), None, "not before the older one is in flash");
        buffer.left(older);
        assert_eq!(buffer.find(Lpn(5)), Some(newer));
        assert_eq!(buffer.take_run(), Some((newer, 1)));
        buffer.left(newer);
        assert_eq!(buffer.find(Lpn(5)), None);
        assert_eq!(buffer.pages().count(), 0);
    }
}
