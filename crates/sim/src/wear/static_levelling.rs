//! Static wear levelling: dynamic, and when the erase counts of a plane differ by more than a threshold, the data of the least
//! worn block, which nobody rewrites, move into the most worn free one, which they will keep from being erased.
//!
//! A block that lags by more than the threshold holds cold data, or it would have been erased as often as the others; of blocks
//! worn alike, the one written longest ago moves first. Moves and ordinary collections take turns at most, so that levelling
//! never more than doubles the collections, and a block that was just emptied is used before the next one moves.

use super::{ErasedBlocks, Policy};
use crate::parameter::Parameter;
use std::collections::BTreeSet;

pub(super) const POLICY: Policy = Policy {
    name: "static",
    summary: "dynamic, and cold data move to worn blocks when erase counts differ by more than N",
    parameter: Some(Parameter {
        letter: "N",
        meaning: "a spread of erase counts",
        least: 1,
        most: 1_000_000,
        example: 10,
    }),
    moves_cold_data: true,
    build: || Box::new(ByErases::default()),
};

/// Free blocks by erases.
#[derive(Default)]
struct ByErases(BTreeSet<(u32, u32)>);

impl ErasedBlocks for ByErases {
    fn put(&mut self, block: u32, erases: u32) {
        self.0.insert((erases, block));
    }

    fn take(&mut self) -> Option<u32> {
        self.0.pop_first().map(|(_, block)| block)
    }

    fn take_most_worn(&mut self) -> Option<u32> {
        self.0.pop_last().map(|(_, block)| block)
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }
}

/// A look at all blocks of a plane is taken once in this share of its blocks erased, at most.
const LOOK_SHARE: u32 = 64;

/// Finds the blocks of one plane whose data are cold: those that lag in wear.
pub(crate) struct ColdBlocks {
    /// Spread of erase counts that is tolerated.
    threshold: u32,
    /// Erases of the plane when the block was closed.
    closed_at: Vec<u32>,
    /// Blocks of the plane erased so far.
    erases: u32,
    /// Erases of the most worn block.
    most: u32,
    /// Lagging blocks when last looked, as `(erases, closed at, block)`, the least worn at the end.
    found: Vec<(u32, u32, u32)>,
    /// Erases of the plane before which it is not looked at again.
    look_at: u32,
    moving: bool,
    /// No victim of its own was collected since the last move.
    resting: bool,
}

impl ColdBlocks {
    pub(super) fn new(blocks: u32, threshold: u32) -> ColdBlocks {
        ColdBlocks {
            threshold,
            closed_at: vec![0; blocks as usize],
            erases: 0,
            most: 0,
            found: Vec::new(),
            look_at: 0,
            moving: false,
            resting: true,
        }
    }

    /// The last page of a block was programmed.
    pub(crate) fn closed(&mut self, block: u32) {
        self.closed_at[block as usize] = self.erases;
    }

    /// A block was erased for the `erases`th time. It ends the move under way, if there is one.
    pub(crate) fn erased(&mut self, erases: u32) {
        self.erases += 1;
        self.most = self.most.max(erases);
        self.resting = self.moving;
        self.moving = false;
    }

    /// A cold block is about to move: what collection writes until the next erase is its data.
    pub(crate) fn begin_move(&mut self) {
        self.moving = true;
    }

    /// The least worn of the cold blocks when it is worn less than the most worn block by more than the threshold; after a
    /// move, none until a victim was collected. `erases` by block; `is_closed` tells whether a block is neither free nor written.
    pub(crate) fn pick(&mut self, erases: &[u32], is_closed: impl Fn(u32) -> bool) -> Option<u32> {
        if self.moving || self.resting || self.most <= self.threshold {
            return None;
        }
        // A block was collected or moved since it was found if it was closed again or not yet.
        while let Some(&(_, closed_at, block)) = self.found.last() {
            if is_closed(block) && self.closed_at[block as usize] == closed_at {
                break;
            }
            self.found.pop();
        }
        if self.found.is_empty() && self.erases >= self.look_at {
            self.look(erases, is_closed);
        }
        let &(erases, _, block) = self.found.last()?;
        (self.most - erases > self.threshold).then_some(block)
    }

    fn look(&mut self, erases: &[u32], is_closed: impl Fn(u32) -> bool) {
        self.look_at = self.erases + erases.len() as u32 / LOOK_SHARE + 1;
        for (block, &count) in erases.iter().enumerate() {
            let closed_at = self.closed_at[block];
            if self.most - count > self.threshold && is_closed(block as u32) {
                self.found.push((count, closed_at, block as u32));
            }
        }
        self.found.sort_unstable_by(|a, b| b.cmp(a));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_blocks_move_one_at_a_time_the_least_worn_first_and_only_past_the_threshold() {
        let mut cold = ColdBlocks::new(4, 2);
        (0..4).for_each(|block| cold.closed(block));
        let mut erases = [0; 4];
        // Block 3 wears out; a difference of two erases is tolerated.
        for count in 1..=3 {
            assert_eq!(cold.pick(&erases, |_| true), None, "{count}");
            erases[3] = count;
            cold.erased(count);
            cold.closed(3);
        }
        assert_eq!(cold.pick(&erases, |_| true), Some(0));
        assert_eq!(cold.pick(&erases, |_| true), Some(0), "not taken by asking");
        cold.begin_move();
        assert_eq!(cold.pick(&erases, |_| true), None, "one at a time");
        erases[0] = 1;
        cold.erased(1);
        assert_eq!(cold.pick(&erases, |block| block != 0), None, "a collection in between");
        erases[3] = 4;
        cold.erased(4);
        assert_eq!(cold.pick(&erases, |block| block != 0), Some(1));
        // Rewritten in the meantime: not cold any more.
        cold.closed(1);
        assert_eq!(cold.pick(&erases, |block| block != 0), Some(2));
    }
}
