//! Lists of the blocks of a plane that are in one list each at most: linked through two arrays, so that a block leaves in O(1).

/// No block.
const NIL: u32 = u32::MAX;

/// The links of all blocks of a plane.
#[derive(Default)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Copy, Default)]
struct Link {
    previous: u32,
    next: u32,
}

/// One list, first in, first out.
#[derive(Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Links {
    /// Links of `blocks` blocks. The memory is touched where blocks are listed, and not before.
    pub(super) fn new(blocks: u32) -> Links {
        Links(vec![Link::default(); blocks as usize])
    }
}

impl List {
    pub(super) const EMPTY: List = List { head: NIL, tail: NIL, len: 0 };

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    /// Appends a block that is in no list.
    pub(super) fn push_back(&mut self, links: &mut Links, block: u32) {
        links.0[block as usize] = Link { previous: self.tail, next: NIL };
        match self.tail {
            NIL => self.head = block,
            tail => links.0[tail as usize].next = block,
        }
        self.tail = block;
        self.len += 1;
    }

    /// Takes out a block of this list.
    pub(super) fn remove(&mut self, links: &mut Links, block: u32) {
        let Link { previous, next } = links.0[block as usize];
        match previous {
            NIL => self.head = next,
            previous => links.0[previous as usize].next = next,
        }
        match next {
            NIL => self.tail = previous,
            next => links.0[next as usize].previous = previous,
        }
        self.len -= 1;
    }
}
