//! Wear levelling: which free block a plane writes next.
//!
//! | policy | next free block |
//! |---|---|
//! | `none` | the one erased longest ago (first in, first out) |
//! | `dynamic` | the one with the fewest erases |

mod dynamic;
mod none;

use crate::error::SimError;
use crate::parameter::{self, Parameter};
use std::fmt;

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
    /// Name in profiles and on the command line, without the parameter.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The number that follows the name, where one does.
    pub parameter: Option<Parameter>,
    build: fn() -> Box<dyn ErasedBlocks>,
}

/// All policies.
pub static POLICIES: &[Policy] = &[none::POLICY, dynamic::POLICY];

/// A policy with its parameter.
#[derive(Clone, Copy)]
pub struct Selection {
    policy: &'static Policy,
    number: u32,
}

/// Looks a policy up as profiles write it, e.g. `dynamic`.
///
/// # Errors
/// The name is unknown; its number is missing, out of range, or not taken.
pub fn find(text: &str) -> Result<Selection, SimError> {
    let table = POLICIES.iter().map(|policy| (policy.name, policy.parameter.as_ref()));
    let (position, number) = parameter::parse("wear_levelling", "wear levelling policy", text, table)?;
    Ok(Selection { policy: &POLICIES[position], number })
}

impl Policy {
    /// The name as profiles write it, its parameter included.
    pub fn form(&self) -> String {
        parameter::form(self.name, self.parameter.as_ref())
    }
}

impl Selection {
    pub(crate) fn free_blocks(&self, blocks: u32) -> FreeBlocks {
        FreeBlocks { unused_from: 0, blocks, erased: (self.policy.build)() }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy.parameter {
            Some(_) => write!(f, "{}:{}", self.policy.name, self.number),
            None => f.write_str(self.policy.name),
        }
    }
}
