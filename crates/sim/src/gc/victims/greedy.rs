//! Greedy victim selection: the block with the fewest valid pages.
//!
//! Exact, in O(1) amortised, and without work at most overwrites. Only blocks with fewer valid pages than a bar are
//! *candidates* and are kept in lists by valid count; an overwrite elsewhere costs one comparison. The bar moves:
//!
//! * when no candidate is left, one look at the plane puts it so high that a sixteenth of the blocks are below: the look is
//!   paid for by the picks that it serves;
//! * when more than a quarter of the blocks have fallen below, the fullest candidates are let go, list by list.

use super::lists::{Links, List};
use super::{PlaneBlocks, PlaneShape, Policy, Victims};

pub(super) const POLICY: Policy = Policy {
    name: "greedy",
    summary: "the block with the fewest valid pages (ties: the one that has had so few longest)",
    parameter: None,
    build: |shape, _| Box::new(Greedy::new(shape)),
};

/// Candidates after a look at the plane: one block in this many, at least.
const REFILL_SHARE: u32 = 16;
/// Candidates are let go when they are more than one block in this many.
const MOST_SHARE: u32 = 4;

struct Greedy {
    blocks: u32,
    pages_per_block: u16,
    /// Every closed block with fewer valid pages is a candidate, and no other.
    bar: u16,
    /// No candidate has fewer valid pages.
    lowest: u16,
    candidates: u32,
    /// Candidates by valid count. Empty until the first pick: a plane that is never collected needs no memory.
    lists: Vec<List>,
    links: Links,
}

impl Greedy {
    fn new(shape: &PlaneShape) -> Greedy {
        Greedy {
            blocks: shape.blocks,
            pages_per_block: shape.pages_per_block,
            bar: 0,
            lowest: 0,
            candidates: 0,
            lists: Vec::new(),
            links: Links::default(),
        }
    }

    fn insert(&mut self, block: u32, valid: u16) {
        self.lists[usize::from(valid)].push_back(&mut self.links, block);
        self.candidates += 1;
        self.lowest = self.lowest.min(valid);
    }

    /// Lowers the bar by one where enough candidates stay.
    fn let_go(&mut self) {
        if self.candidates <= self.blocks / MOST_SHARE {
            return;
        }
        let fullest = &mut self.lists[usize::from(self.bar - 1)];
        if self.candidates - fullest.len() > self.blocks / REFILL_SHARE {
            self.candidates -= fullest.len();
            *fullest = List::EMPTY;
            self.bar -= 1;
        }
    }

    /// Looks at all blocks of the plane and makes the emptiest candidates.
    fn refill(&mut self, plane: &PlaneBlocks<'_>) {
        if self.lists.is_empty() {
            self.lists = vec![List::EMPTY; usize::from(self.pages_per_block)];
            self.links = Links::new(self.blocks);
        }
        let mut blocks_with = vec![0u32; usize::from(self.pages_per_block)];
        for (_, valid) in plane.candidates(self.pages_per_block) {
            blocks_with[usize::from(valid)] += 1;
        }
        let wanted = (self.blocks / REFILL_SHARE).max(1);
        let mut found = 0;
        self.bar = 0;
        while self.bar < self.pages_per_block && found < wanted {
            found += blocks_with[usize::from(self.bar)];
            self.bar += 1;
        }
        self.lowest = self.bar;
        for (block, valid) in plane.candidates(self.bar) {
            self.insert(block, valid);
        }
    }

    fn first(&mut self) -> Option<u32> {
        // Every step up was paid for by a page that was programmed or became stale: nothing else moves `lowest` down.
        while self.lowest < self.bar {
            if let Some(block) = self.lists[usize::from(self.lowest)].first() {
                return Some(block);
            }
            self.lowest += 1;
        }
        None
    }
}

impl Victims for Greedy {
    fn closed(&mut self, block: u32, valid: u16, _clock: u64) {
        if valid < self.bar {
            self.insert(block, valid);
        }
    }

    fn fell(&mut self, block: u32, valid: u16) {
        if valid + 1 < self.bar {
            self.lists[usize::from(valid) + 1].remove(&mut self.links, block);
            self.candidates -= 1;
        }
        self.insert(block, valid);
        self.let_go();
    }

    fn erased(&mut self, block: u32) {
        if self.bar > 0 {
            self.lists[0].remove(&mut self.links, block);
            self.candidates -= 1;
        }
    }

    fn bar(&self) -> u16 {
        self.bar
    }

    fn pick(&mut self, plane: &PlaneBlocks<'_>) -> Option<u32> {
        let found = self.first();
        // With the bar at the top, every block that holds an invalid page is a candidate: there is none.
        if found.is_some() || self.lists.len() == usize::from(self.bar) && self.bar > 0 {
            return found;
        }
        self.refill(plane);
        self.first()
    }
}
