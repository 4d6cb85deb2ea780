//! The valid page buffer of the GC paper (section 4.1): pages on their way from a collected block to an idle chip.
//!
//! * A *stream* is the collection that fills it: it reserves its slots in advance, as many as are left.
//! * A *segment* is what one stream brought. When it is complete it joins the line of segments to write back: first in,
//!   first out, in the order of completion, page by page.
//! * The mapping table of the paper (LPN, BPN, type) is the translation layer's own map: a logical page in the buffer is
//!   mapped to a page number behind the last page of the flash, so that one lookup finds it wherever it is. The type, the
//!   segment it belongs to, is the list that its slot is linked into.

use planewise_model::{Lpn, Ns};

const NIL: u32 = u32::MAX;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// A page that reads are served from and writes are absorbed by.
    Valid,
    /// The same page while it is programmed to flash: reads are served, writes go to flash.
    Writing,
    /// A page that the host is writing to flash: kept until that program is through, as nothing else has it, and then forgotten.
    Replaced,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    lpn: Lpn,
    /// The list that it is in, and its neighbours there.
    list: u32,
    previous: u32,
    next: u32,
    /// Since when it is in line.
    since: Ns,
    state: State,
}

/// First and last slot of a segment, or of the line.
#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

impl Ends {
    const NONE: Ends = Ends { head: NIL, tail: NIL };
}

/// The line of complete segments; the lists behind it are those of streams.
const LINE: u32 = 0;

/// A stream into the buffer: what is left of its reservation, and the list of the pages that it brought so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    reserved: u32,
    list: u32,
}

impl Stream {
    /// Whether the next valid page has a slot.
    pub(crate) fn has_room(&self) -> bool {
        self.reserved > 0
    }
}

pub(crate) struct ValidPageBuffer {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots promised to streams and not filled yet.
    reserved: u32,
    lists: Vec<Ends>,
    free_lists: Vec<u32>,
}

impl ValidPageBuffer {
    pub(crate) fn new(pages: u32) -> ValidPageBuffer {
        let empty =
            Slot { lpn: Lpn(0), list: LINE, previous: NIL, next: NIL, since: Ns::ZERO, state: State::Free };
        ValidPageBuffer {
            slots: vec![empty; pages as usize],
            free: (0..pages).rev().collect(),
            reserved: 0,
            lists: vec![Ends::NONE],
            free_lists: Vec::new(),
        }
    }

    /// Opens a stream for up to `pages` pages; none when no slot is left.
    pub(crate) fn open(&mut self, pages: u32) -> Option<Stream> {
        let reserved = pages.min(self.free.len() as u32 - self.reserved);
        if reserved == 0 {
            return None;
        }
        self.reserved += reserved;
        let list = self.free_lists.pop().unwrap_or_else(|| {
            self.lists.push(Ends::NONE);
            self.lists.len() as u32 - 1
        });
        Some(Stream { reserved, list })
    }

    /// Puts a page in the buffer; returns its slot.
    ///
    /// # Panics
    /// When the stream has no room.
    pub(crate) fn fill(&mut self, stream: &mut Stream, lpn: Lpn) -> u32 {
        stream.reserved -= 1;
        self.reserved -= 1;
        let slot = self.free.pop().expect("a slot was reserved");
        let ends = &mut self.lists[stream.list as usize];
        let previous = ends.tail;
        self.slots[slot as usize] =
            Slot { lpn, list: stream.list, previous, next: NIL, since: Ns::ZERO, state: State::Valid };
        ends.tail = slot;
        if previous == NIL {
            ends.head = slot;
        } else {
            self.slots[previous as usize].next = slot;
        }
        slot
    }

    /// Ends a stream: gives back what it reserved and did not use, and puts its segment in line.
    pub(crate) fn close(&mut self, now: Ns, stream: &Stream) {
        self.reserved -= stream.reserved;
        let segment = std::mem::replace(&mut self.lists[stream.list as usize], Ends::NONE);
        self.free_lists.push(stream.list);
        if segment.head == NIL {
            return;
        }
        let mut slot = segment.head;
        while slot != NIL {
            (self.slots[slot as usize].list, self.slots[slot as usize].since) = (LINE, now);
            slot = self.slots[slot as usize].next;
        }
        let line = &mut self.lists[LINE as usize];
        let last = std::mem::replace(&mut line.tail, segment.tail);
        if last == NIL {
            line.head = segment.head;
        } else {
            self.slots[last as usize].next = segment.head;
            self.slots[segment.head as usize].previous = last;
        }
    }

    /// The slot that is first in line to be written back.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        let head = self.lists[LINE as usize].head;
        (head != NIL).then_some(head)
    }

    /// The slot behind one in line.
    pub(crate) fn after(&self, slot: u32) -> Option<u32> {
        let next = self.slots[slot as usize].next;
        (next != NIL).then_some(next)
    }

    /// Since when a slot is in line.
    pub(crate) fn since(&self, slot: u32) -> Ns {
        self.slots[slot as usize].since
    }

    /// The page in a slot.
    pub(crate) fn page(&self, slot: u32) -> Lpn {
        self.slots[slot as usize].lpn
    }

    /// Takes a slot out of the line: its page is being programmed from now on.
    pub(crate) fn begin_write_back(&mut self, slot: u32) {
        debug_assert_eq!(self.slots[slot as usize].state, State::Valid);
        self.unlink(slot);
        self.slots[slot as usize].state = State::Writing;
    }

    /// Frees a slot whose page is in flash.
    pub(crate) fn end_write_back(&mut self, slot: u32) {
        debug_assert_eq!(self.slots[slot as usize].state, State::Writing);
        self.slots[slot as usize].state = State::Free;
        self.free.push(slot);
    }

    /// The host is writing the page in a slot to flash: nobody writes it back any more. One that is being written back frees itself
    /// when that is through.
    pub(crate) fn replace(&mut self, slot: u32) {
        if self.slots[slot as usize].state == State::Valid {
            self.unlink(slot);
            self.slots[slot as usize].state = State::Replaced;
        }
    }

    /// The program that replaces the page in a slot is through; whether the slot is free now.
    pub(crate) fn release(&mut self, slot: u32) -> bool {
        let replaced = self.slots[slot as usize].state == State::Replaced;
        if replaced {
            self.slots[slot as usize].state = State::Free;
            self.free.push(slot);
        }
        replaced
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { list, previous, next, .. } = self.slots[slot as usize];
        match previous {
            NIL => self.lists[list as usize].head = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NIL => self.lists[list as usize].tail = previous,
            next => self.slots[next as usize].previous = previous,
        }
    }

    /// Whether a host write of the page in this slot is absorbed.
    #[inline]
    pub(crate) fn absorbs(&self, slot: u32) -> bool {
        self.slots[slot as usize].state == State::Valid
    }

    /// Pages held.
    pub(crate) fn held(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
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

    /// Figure 9 of the paper: six slots, three collections of 3, 2 and 2 valid pages.
    #[test]
    fn the_published_example_of_three_streams_reserves_three_two_and_one() {
        let mut buffer = ValidPageBuffer::new(6);
        let streams = [3, 2, 2].map(|pages| buffer.open(pages).expect("a slot is left"));
        assert_eq!(streams.map(|stream| stream.reserved), [3, 2, 1]);
        assert!(buffer.open(1).is_none());
    }

    #[test]
    fn segments_leave_in_the_order_of_completion_and_whole() {
        let mut buffer = ValidPageBuffer::new(8);
        let (mut first, mut second) = (buffer.open(3).unwrap(), buffer.open(2).unwrap());
        for (stream, lpn) in [(0, 10), (1, 20), (0, 11), (1, 21)] {
            let stream = if stream == 0 { &mut first } else { &mut second };
            buffer.fill(stream, Lpn(lpn));
        }
        assert_eq!(buffer.first(), None, "no segment is complete");
        buffer.close(Ns(5), &second);
        buffer.close(Ns(6), &first);
        assert_eq!(buffer.reserved, 0, "what was not used is given back");
        let mut left = Vec::new();
        while let Some(slot) = buffer.first() {
            assert!(buffer.absorbs(slot));
            buffer.begin_write_back(slot);
            assert!(!buffer.absorbs(slot));
            buffer.end_write_back(slot);
            left.push(buffer.page(slot).0);
        }
        assert_eq!(left, [20, 21, 10, 11]);
        assert_eq!(buffer.held(), 0);
        assert_eq!(buffer.open(9).unwrap().reserved, 8);
    }

    #[test]
    fn a_page_that_the_host_writes_to_flash_leaves_its_segment_or_the_line_and_frees_its_slot_once() {
        let mut buffer = ValidPageBuffer::new(4);
        let mut stream = buffer.open(4).unwrap();
        let slots = [10, 11, 12, 13].map(|lpn| buffer.fill(&mut stream, Lpn(lpn)));
        buffer.replace(slots[3]);
        buffer.close(Ns(5), &stream);
        buffer.replace(slots[1]);
        assert_eq!(buffer.held(), 4, "kept until the new page is in flash");
        assert!(buffer.open(1).is_none());
        let line: Vec<u32> = std::iter::successors(buffer.first(), |&slot| buffer.after(slot)).collect();
        assert_eq!(line, [slots[0], slots[2]], "it is not written back");
        assert!(buffer.release(slots[3]) && buffer.release(slots[1]) && !buffer.release(slots[1]));
        assert_eq!(buffer.held(), 2);
        // One that is on its way back to flash frees itself.
        buffer.begin_write_back(slots[2]);
        buffer.replace(slots[2]);
        assert!(!buffer.release(slots[2]));
        buffer.end_write_back(slots[2]);
        assert_eq!((buffer.first(), buffer.after(slots[0]), buffer.held()), (Some(slots[0]), None, 1));
    }

    #[test]
    fn a_buffer_of_no_pages_opens_no_stream() {
        assert!(ValidPageBuffer::new(0).open(64).is_none());
    }
}
