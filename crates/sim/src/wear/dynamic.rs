//! Dynamic wear levelling: the free block with the fewest erases is written next; cold data stay where they are.

use super::{ErasedBlocks, Policy};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) const POLICY: Policy = Policy {
    name: "dynamic",
    summary: "the free block with the fewest erases (ties: the lowest number)",
    parameter: None,
    moves_cold_data: false,
    build: || Box::new(FewestErases::default()),
};

#[derive(Default)]
struct FewestErases(BinaryHeap<Reverse<(u32, u32)>>);

impl ErasedBlocks for FewestErases {
    fn put(&mut self, block: u32, erases: u32) {
        self.0.push(Reverse((erases, block)));
    }

    fn take(&mut self) -> Option<u32> {
        self.0.pop().map(|Reverse((_, block))| block)
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }
}
