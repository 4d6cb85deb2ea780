//! Cost-benefit victim selection of log-structured file systems (Rosenblum and Ousterhout, SOSP'91; Kawaguchi et al., USENIX
//! '95): the largest (1 - u) / 2u x age. A share u of valid pages costs its reading and its writing and wins the rest; the
//! longer a block was left alone, the longer what it wins will stay won.
//!
//! Age is counted in pages programmed on the plane since the block's last page was programmed: model time would let idle
//! hours age all blocks alike. Every pick looks at all blocks of the plane, for ages differ from one pick to the next.

use super::{PlaneBlocks, PlaneShape, Policy, Victims};
use std::cmp::Ordering;

pub(super) const POLICY: Policy = Policy {
    name: "cost-benefit",
    summary: "the largest (1 - u) / 2u x age, u the share of valid pages (ties: the lowest number)",
    parameter: None,
    build: |shape, _| Box::new(CostBenefit::new(shape)),
};

struct CostBenefit {
    pages_per_block: u16,
    /// Clock of the plane when the block was closed.
    closed_at: Vec<u64>,
}

impl CostBenefit {
    fn new(shape: &PlaneShape) -> CostBenefit {
        CostBenefit { pages_per_block: shape.pages_per_block, closed_at: vec![0; shape.blocks as usize] }
    }

    /// Which of two `(valid pages, age)` is the better victim. Exact: the fractions are compared by multiplying across.
    fn compare(&self, a: (u16, u64), b: (u16, u64)) -> Ordering {
        let won = |(valid, age): (u16, u64)| u128::from(self.pages_per_block - valid) * u128::from(age);
        match (a.0, b.0) {
            // Nothing to move: free of cost, whatever the age.
            (0, 0) => a.1.cmp(&b.1),
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => (won(a) * u128::from(b.0)).cmp(&(won(b) * u128::from(a.0))).then(b.0.cmp(&a.0)),
        }
    }
}

impl Victims for CostBenefit {
    fn closed(&mut self, block: u32, _valid: u16, clock: u64) {
        self.closed_at[block as usize] = clock;
    }

    fn fell(&mut self, _block: u32, _valid: u16) {}

    fn erased(&mut self, _block: u32) {}

    fn bar(&self) -> u16 {
        0
    }

    fn pick(&mut self, plane: &PlaneBlocks<'_>) -> Option<u32> {
        let mut best: Option<(u32, (u16, u64))> = None;
        for (block, valid) in plane.candidates(self.pages_per_block) {
            let value = (valid, plane.clock - self.closed_at[block as usize]);
            if best.is_none_or(|(_, best)| self.compare(value, best) == Ordering::Greater) {
                best = Some((block, value));
            }
        }
        best.map(|(block, _)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_valid_pages_and_a_long_age_both_count_and_a_block_without_valid_pages_costs_nothing() {
        let mut policy = CostBenefit::new(&PlaneShape { blocks: 5, pages_per_block: 8, plane: 0, seed: 0 });
        for (block, clock) in [10, 60, 20, 30, 0].into_iter().enumerate() {
            policy.closed(block as u32, 8, clock);
        }
        let mut pick = |valid: &[u16]| {
            policy.pick(&PlaneBlocks { valid, open: [4, u32::MAX, u32::MAX, u32::MAX], clock: 100 })
        };
        // At 100: (8-6)/12 x 90 = 15, (8-4)/8 x 40 = 20, (8-5)/10 x 80 = 24, (8-7)/14 x 70 = 5; block 4 is open.
        assert_eq!(pick(&[6, 4, 5, 7, 1]), Some(2));
        // (8-3)/6 x 40 = 33.3
        assert_eq!(pick(&[6, 3, 5, 7, 1]), Some(1));
        assert_eq!(pick(&[6, 0, 1, 0, 0]), Some(3));
        assert_eq!(pick(&[8, 8, super::super::FREE, 8, 0]), None);
    }
}
