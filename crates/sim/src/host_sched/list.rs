//! Doubly linked lists of slots. The links lie in one array by slot, which any number of lists share.

use crate::host::Slot;

const NIL: u32 = u32::MAX;

/// The links of any number of lists over the same slots; a slot is in one of them at a time.
pub(super) struct Links(Vec<[u32; 2]>);

impl Links {
    /// For a number of slots.
    pub(super) fn new(slots: u32) -> Links {
        Links(vec![[NIL; 2]; slots as usize])
    }

    /// The slot behind `slot` in its list.
    #[inline]
    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        let next = self.0[slot.index()][1];
        (next != NIL).then_some(Slot(next))
    }
}

/// One list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    count: u32,
}

impl List {
    pub(super) const EMPTY: List = List { first: NIL, last: NIL, count: 0 };

    #[inline]
    pub(super) fn first(&self) -> Option<Slot> {
        (self.first != NIL).then_some(Slot(self.first))
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NIL
    }

    #[inline]
    pub(super) fn push(&mut self, links: &mut Links, slot: Slot) {
        links.0[slot.index()] = [self.last, NIL];
        match self.last {
            NIL => self.first = slot.0,
            last => links.0[last as usize][1] = slot.0,
        }
        self.last = slot.0;
        self.count += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, links: &mut Links, slot: Slot) {
        let [previous, next] = links.0[slot.index()];
        match previous {
            NIL => self.first = next,
            previous => links.0[previous as usize][1] = next,
        }
        match next {
            NIL => self.last = previous,
            next => links.0[next as usize][0] = previous,
        }
        self.count -= 1;
    }

    /// Removes and returns the first.
    pub(super) fn pop(&mut self, links: &mut Links) -> Option<Slot> {
        let slot = self.first()?;
        self.remove(links, slot);
        Some(slot)
    }
}
