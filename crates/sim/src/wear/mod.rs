//! Wear levelling: which free block a plane writes next.
//!
//! | policy | next free block |
//! |---|---|
//! | `none` | the one erased longest ago (first in, first out) |
//! | `dynamic` | the one with the fewest erases |

mod dynamic;
mod none;

use crate::error::SimError;
use planewise_model::names;

/// The free blocks of one plane, in the order that a policy gives them out.
///
/// Blocks that were never used are not stored: they leave first, by number, and cost neither memory nor start-up time.
pub(crate) struct FreeBlocks {
    /// Blocks from here on have never been used.
    unused_from: u32,
    blocks: u32,
    erased: Box<dyn ErasedBlocks>,
}

/// Policy over the blocks that have been erased at least once.
pub(crate) trait ErasedBlocks: Send {
    /// A block was erased.
    fn put(&mut self, block: u32, erases: u32);
    /// The block to write next.
    fn take(&mut self) -> Option<u32>;
    /// Blocks held.
    fn len(&self) -> u32;
}

impl FreeBlocks {
    /// Takes the block to write next. Unused blocks have the fewest erases and were "erased" longest ago: first under every policy.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.unused_from < self.blocks {
            self.unused_from += 1;
            return Some(self.unused_from - 1);
        }
        self.erased.take()
    }

    pub(crate) fn put(&mut self, block: u32, erases: u32) {
        self.erased.put(block, erases);
    }

    pub(crate) fn len(&self) -> u32 {
        self.blocks - self.unused_from + self.erased.len()
    }
}

/// One wear levelling policy.
pub struct Policy {
    /// Name in profiles.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    build: fn() -> Box<dyn ErasedBlocks>,
}

/// All policies.
pub static POLICIES: &[Policy] = &[none::POLICY, dynamic::POLICY];

/// Looks a policy up by name.
///
/// # Errors
/// The name is unknown.
pub fn find(name: &str) -> Result<&'static Policy, SimError> {
    POLICIES
        .iter()
        .find(|policy| policy.name == name)
        .ok_or_else(|| names::unknown("wear levelling policy", name, POLICIES.iter().map(|p| p.name)).into())
}

impl Policy {
    pub(crate) fn free_blocks(&self, blocks: u32) -> FreeBlocks {
        FreeBlocks { unused_from: 0, blocks, erased: (self.build)() }
    }
}
