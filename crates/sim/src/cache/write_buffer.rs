//! The write buffer: pages that the host wrote, until they are in flash.
//!
//! A page waits in the order in which it came in, is overwritten in place while it waits, and may hold only some of its sectors. Write-back
//! takes the oldest page and with it all that wait of the aligned group of consecutive pages that it is in, so that what was written in
//! sequence is programmed together; or the oldest pages as they came, where the device maps by the order of writes. While a page is being programmed it still serves reads; a write of it then takes a slot of its
//! own, which is not written back before the older one is through: the order of the writes is the order in flash.

use super::{NIL, PageIndex};
use planewise_model::{Lpn, profile};

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
    /// Of a leaving page: the slot that was taken by a newer version, or [`NIL`].
    newer: u32,
    /// Neighbours in the order of entry, while it waits; the next of its run, while it leaves.
    previous: u32,
    next: u32,
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
}

impl WriteBuffer {
    pub(crate) fn new(settings: &profile::WriteBuffer, sectors_per_page: u32) -> WriteBuffer {
        let free =
            Slot { lpn: Lpn(0), state: State::Free, blocked: false, newer: NIL, previous: NIL, next: NIL };
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
        }
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
        self.waiting += 1;
        self.written[slot as usize * self.words..(slot as usize + 1) * self.words].fill(0);
        self.index.set(lpn, slot);
        Some(slot)
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
        if self.waiting <= self.watermark || self.leaving >= self.leaving_most {
            return None;
        }
        let mut oldest = self.oldest;
        while oldest != NIL && self.slots[oldest as usize].blocked {
            oldest = self.slots[oldest as usize].next;
        }
        if oldest == NIL {
            return None;
        }
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

    /// The slot after one in its run, or [`NIL`].
    pub(crate) fn next_of_run(&self, slot: u32) -> u32 {
        self.slots[slot as usize].next
    }

    fn leave(&mut self, slot: u32) {
        let Slot { previous, next, .. } = self.slots[slot as usize];
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
        let slot = &mut self.slots[slot as usize];
        (slot.state, slot.previous, slot.next) = (State::Leaving, NIL, NIL);
        self.waiting -= 1;
        self.leaving += 1;
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
        let settings =
            profile::WriteBuffer { pages, watermark, run_pages, entry_order: false, in_flight_pages };
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
