//! d-choices victim selection: of D blocks drawn at random, the one with the fewest valid pages (Van Houdt, SIGMETRICS'13; Li et
//! al., SIGMETRICS'13). D = 1 is random selection; about ten draws come close to greedy without any order being kept.
//!
//! Blocks are drawn with replacement, among those that hold an invalid page: a draw is never wasted. The choice stands until the
//! block is erased, so that asking often does not amount to drawing more.

use super::{PlaneBlocks, PlaneShape, Policy, Victims};
use crate::parameter::Parameter;
use planewise_model::rng::{Generator, generator};
use rand::RngExt;

pub(super) const POLICY: Policy = Policy {
    name: "d-choices",
    summary: "of D blocks drawn at random, the one with the fewest valid pages (ties: drawn first)",
    parameter: Some(Parameter { letter: "D", meaning: "a number of draws", least: 1, most: 64, example: 10 }),
    build: |shape, draws| Box::new(Choices::new(shape, draws)),
};

struct Choices {
    draws: u32,
    pages_per_block: u16,
    random: Generator,
    /// Closed blocks with an invalid page, in no particular order.
    candidates: Vec<u32>,
    /// Where a block is in `candidates`.
    position: Vec<u32>,
    chosen: Option<u32>,
}

impl Choices {
    fn new(shape: &PlaneShape, draws: u32) -> Choices {
        Choices {
            draws,
            pages_per_block: shape.pages_per_block,
            random: generator(shape.seed, &format!("d-choices victims of plane {}", shape.plane)),
            candidates: Vec::new(),
            position: vec![0; shape.blocks as usize],
            chosen: None,
        }
    }

    fn insert(&mut self, block: u32) {
        self.position[block as usize] = self.candidates.len() as u32;
        self.candidates.push(block);
    }
}

impl Victims for Choices {
    fn closed(&mut self, block: u32, valid: u16, _clock: u64) {
        if valid < self.pages_per_block {
            self.insert(block);
        }
    }

    fn fell(&mut self, block: u32, valid: u16) {
        if valid + 1 == self.pages_per_block {
            self.insert(block);
        }
    }

    fn erased(&mut self, block: u32) {
        let position = self.position[block as usize];
        self.candidates.swap_remove(position as usize);
        if let Some(&moved) = self.candidates.get(position as usize) {
            self.position[moved as usize] = position;
        }
        if self.chosen == Some(block) {
            self.chosen = None;
        }
    }

    fn bar(&self) -> u16 {
        self.pages_per_block
    }

    fn pick(&mut self, plane: &PlaneBlocks<'_>) -> Option<u32> {
        if self.chosen.is_none() && !self.candidates.is_empty() {
            let draw = |_| self.candidates[self.random.random_range(0..self.candidates.len())];
            self.chosen = (0..self.draws).map(draw).min_by_key(|&block| plane.valid[block as usize]);
        }
        self.chosen
    }
}
