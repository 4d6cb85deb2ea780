//! No wear levelling: erased blocks are reused first in, first out.

use super::{ErasedBlocks, Policy};
use std::collections::VecDeque;

pub(super) const POLICY: Policy = Policy {
    name: "none",
    summary: "the block erased longest ago, whatever its wear",
    parameter: None,
    moves_cold_data: false,
    build: || Box::new(OldestFirst::default()),
};

#[derive(Default)]
struct OldestFirst(VecDeque<u32>);

impl ErasedBlocks for OldestFirst {
    fn put(&mut self, block: u32, _erases: u32) {
        self.0.push_back(block);
    }

    fn take(&mut self) -> Option<u32> {
        self.0.pop_front()
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }
}
