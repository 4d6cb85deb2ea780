//! First in, first out: the block that was filled longest ago, as a log that is cleaned round and round. Blocks whose pages are
//! all valid are passed over, and keep their place.

use super::{PlaneBlocks, PlaneShape, Policy, Victims};
use std::collections::BTreeSet;

pub(super) const POLICY: Policy = Policy {
    name: "fifo",
    summary: "the block that was filled longest ago",
    parameter: None,
    build: |shape, _| Box::new(Fifo::new(shape)),
};

struct Fifo {
    pages_per_block: u16,
    /// Blocks closed so far.
    closed: u64,
    /// By block: how many were closed before it.
    place: Vec<u64>,
    /// Closed blocks with an invalid page, by place. Those without are left out, for there may be many of them in front.
    candidates: BTreeSet<(u64, u32)>,
}

impl Fifo {
    fn new(shape: &PlaneShape) -> Fifo {
        Fifo {
            pages_per_block: shape.pages_per_block,
            closed: 0,
            place: vec![0; shape.blocks as usize],
            candidates: BTreeSet::new(),
        }
    }
}

impl Victims for Fifo {
    fn closed(&mut self, block: u32, valid: u16, _clock: u64) {
        self.place[block as usize] = self.closed;
        if valid < self.pages_per_block {
            self.candidates.insert((self.closed, block));
        }
        self.closed += 1;
    }

    fn fell(&mut self, block: u32, valid: u16) {
        if valid + 1 == self.pages_per_block {
            self.candidates.insert((self.place[block as usize], block));
        }
    }

    fn erased(&mut self, block: u32) {
        self.candidates.remove(&(self.place[block as usize], block));
    }

    fn bar(&self) -> u16 {
        self.pages_per_block
    }

    fn pick(&mut self, _plane: &PlaneBlocks<'_>) -> Option<u32> {
        self.candidates.first().map(|&(_, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_filled_first_goes_first_once_it_holds_an_invalid_page() {
        let mut policy = Fifo::new(&PlaneShape { blocks: 4, pages_per_block: 8, plane: 0, seed: 0 });
        let pick =
            |policy: &mut Fifo| policy.pick(&PlaneBlocks { valid: &[], open: [u32::MAX; 4], clock: 0 });
        policy.closed(2, 8, 8);
        policy.closed(1, 7, 16);
        policy.closed(3, 3, 24);
        assert_eq!(pick(&mut policy), Some(1));
        policy.fell(2, 7);
        assert_eq!(pick(&mut policy), Some(2));
        policy.erased(2);
        policy.closed(2, 0, 32);
        assert_eq!(pick(&mut policy), Some(1));
        policy.erased(1);
        policy.erased(3);
        assert_eq!(pick(&mut policy), Some(2));
    }
}
