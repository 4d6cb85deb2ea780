//! The valid page buffer of the GC paper (section 4.1): pages on their way from a collected block to an idle chip.
//!
//! * A *stream* is the collection that fills it: it reserves its slots in advance, as many as are left.
//! * A *segment* is what one stream brought. When it is complete it joins the line of segments to write back: first in,
//!   first out, in the order of completion, page by page.
//! * The mapping table of the paper (LPN, BPN, type) is the translation layer's own map: a logical page in the buffer is
//!   mapped to a page number behind the last page of the flash, so that one lookup finds it wherever it is. The type, the
//!   segment it belongs to, is the list that its slot is linked into.

use planewise_model::Lpn;

const NIL: u32 = u32::MAX;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// A page that reads are served from and writes are absorbed by.
    Valid,
    /// The same page while it is programmed to flash: reads are served, writes go to flash.
    Writing,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    lpn: Lpn,
    /// The next of its segment, or of the line.
    next: u32,
    state: State,
}

/// A stream into the buffer: what is left of its reservation, and the pages it brought so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    reserved: u32,
    head: u32,
    tail: u32,
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
    /// The line of complete segments, linked through the slots.
    head: u32,
    tail: u32,
}

impl ValidPageBuffer {
    pub(crate) fn new(pages: u32) -> ValidPageBuffer {
        let empty = Slot { lpn: Lpn(0), next: NIL, state: State::Free };
        ValidPageBuffer {
            slots: vec![empty; pages as usize],
            free: (0..pages).rev().collect(),
            reserved: 0,
            head: NIL,
            tail: NIL,
        }
    }

    /// Opens a stream for up to `pages` pages; none when no slot is left.
    pub(crate) fn open(&mut self, pages: u32) -> Option<Stream> {
        let reserved = pages.min(self.free.len() as u32 - self.reserved);
        self.reserved += reserved;
        (reserved > 0).then_some(Stream { reserved, head: NIL, tail: NIL })
    }

    /// Puts a page in the buffer; returns its slot.
    ///
    /// # Panics
    /// When the stream has no room.
    pub(crate) fn fill(&mut self, stream: &mut Stream, lpn: Lpn) -> u32 {
        stream.reserved -= 1;
        self.reserved -= 1;
        let slot = self.free.pop().expect("a slot was reserved");
        self.slots[slot as usize] = Slot { lpn, next: NIL, state: State::Valid };
        if stream.head == NIL {
            stream.head = slot;
        } else {
            self.slots[stream.tail as usize].next = slot;
        }
        stream.tail = slot;
        slot
    }

    /// Ends a stream: gives back what it reserved and did not use, and puts its segment in line.
    pub(crate) fn close(&mut self, stream: &Stream) {
        self.reserved -= stream.reserved;
        if stream.head == NIL {
            return;
        }
        if self.head == NIL {
            self.head = stream.head;
        } else {
            self.slots[self.tail as usize].next = stream.head;
        }
        self.tail = stream.tail;
    }

    /// The slot that is next in line to be written back, and its page.
    #[inline]
    pub(crate) fn next(&self) -> Option<(u32, Lpn)> {
        (self.head != NIL).then(|| (self.head, self.slots[self.head as usize].lpn))
    }

    /// Takes the next in line: its page is being programmed from now on.
    pub(crate) fn begin_write_back(&mut self) {
        let slot = self.head as usize;
        self.slots[slot].state = State::Writing;
        self.head = self.slots[slot].next;
        if self.head == NIL {
            self.tail = NIL;
        }
    }

    /// Frees a slot whose page is in flash.
    pub(crate) fn end_write_back(&mut self, slot: u32) {
        debug_assert_eq!(self.slots[slot as usize].state, State::Writing);
        self.slots[slot as usize].state = State::Free;
        self.free.push(slot);
    }

    /// Whether a host write of the page in this slot is absorbed.
    #[inline]
    pub(crate) fn absorbs(&self, slot: u32) -> bool {
        self.slots[slot as usize].state == State::Valid
    }

    /// Pages held.
    #[cfg(test)]
    fn held(&self) -> u32 {
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
        assert_eq!(buffer.next(), None, "no segment is complete");
        buffer.close(&second);
        buffer.close(&first);
        assert_eq!(buffer.reserved, 0, "what was not used is given back");
        let mut left = Vec::new();
        while let Some((slot, lpn)) = buffer.next() {
            assert!(buffer.absorbs(slot));
            buffer.begin_write_back();
            assert!(!buffer.absorbs(slot));
            buffer.end_write_back(slot);
            left.push(lpn.0);
        }
        assert_eq!(left, [20, 21, 10, 11]);
        assert_eq!(buffer.held(), 0);
        assert_eq!(buffer.open(9).unwrap().reserved, 8);
    }

    #[test]
    fn a_buffer_of_no_pages_opens_no_stream() {
        assert!(ValidPageBuffer::new(0).open(64).is_none());
    }
}
