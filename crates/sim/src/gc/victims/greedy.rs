//! Greedy victim selection: the block with the fewest valid pages.
//!
//! Exact, in O(1) amortised, and without work at most overwrites. Only blocks with fewer valid pages than a bar are
//! *candidates* and are kept in lists by valid count; an overwrite elsewhere costs one comparison. The bar moves:
//!
//! * when no candidate is left, one look at the plane puts it so high that a sixteenth of the blocks are below: the look is
//!   paid for by the picks that it serves;
//! * when more than a quarter of the blocks have fallen below, the fullest candidates are let go, list by list.
//!
//! The block picked last stays in its list while its pages move away one by one, and is put where it belongs when asked again.

use super::lists::{Links, List};
use super::{PlaneBlocks, PlaneShape, Policy, Victims};
use std::ops::Range;

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
    picked: Option<Picked>,
}

/// The block picked last.
#[derive(Clone, Copy)]
struct Picked {
    block: u32,
    /// The list that it is in.
    list: u16,
    /// What it holds by now.
    valid: u16,
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
            picked: None,
        }
    }

    fn remove(&mut self, block: u32, list: u16) {
        self.lists[usize::from(list)].remove(&mut self.links, block);
        self.candidates -= 1;
    }

    /// Puts the block picked last into the list of what it holds.
    fn settle(&mut self) {
        if let Some(Picked { block, list, valid }) = self.picked.take()
            && list != valid
        {
            self.remove(block, list);
            self.insert(block, valid);
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
        if self.picked.is_some_and(|picked| picked.list == self.bar - 1) {
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

    fn filled(&mut self, _blocks: Range<u32>, _pages_per_block: u32) {
        // Without an invalid page none is a candidate.
    }

    fn fell(&mut self, block: u32, valid: u16) {
        if let Some(picked) = &mut self.picked
            && picked.block == block
        {
            picked.valid = valid;
            return;
        }
        if valid + 1 < self.bar {
            self.remove(block, valid + 1);
        }
        self.insert(block, valid);
        self.let_go();
    }

    fn erased(&mut self, block: u32) {
        match self.picked {
            Some(picked) if picked.block == block => {
                self.remove(block, picked.list);
                self.picked = None;
            }
            _ if self.bar > 0 => self.remove(block, 0),
            _ => {}
        }
    }

    fn bar(&self) -> u16 {
        self.bar
    }

    fn pick(&mut self, plane: &PlaneBlocks<'_>) -> Option<u32> {
        self.settle();
        let mut found = self.first();
        // With the bar at the top, every block that holds an invalid page is a candidate: there is none.
        if found.is_none() && self.bar != self.pages_per_block {
            self.refill(plane);
            found = self.first();
        }
        self.picked = found.map(|block| Picked { block, list: self.lowest, valid: self.lowest });
        found
    }
}
