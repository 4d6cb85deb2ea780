//! Wear levelling: which free block a plane writes next.
//!
//! | policy | next free block |
//! |---|---|
//! | `none` | the one erased longest ago (first in, first out) |
//! | `dynamic` | the one with the fewest erases |
//! | `static:N` | likewise; and cold data move into the most worn one when erase counts differ by more than N |

mod dynamic;
mod none;
mod static_levelling;

use crate::error::SimError;
use crate::parameter::{self, Parameter};
use std::fmt;

pub(crate) use static_levelling::ColdBlocks;

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
    /// The block for data that will stay; only policies that move cold data tell it from others.
    fn take_most_worn(&mut self) -> Option<u32> {
        self.take()
    }
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

    /// Takes so many blocks of those that were never used.
    pub(crate) fn take_unused(&mut self, count: u32) {
        debug_assert!(self.unused_from + count <= self.blocks);
        self.unused_from += count;
    }

    /// Takes the most worn block, for data that will stay.
    pub(crate) fn take_most_worn(&mut self) -> Option<u32> {
        self.erased.take_most_worn().or_else(|| self.take())
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
    /// Cold data move; the parameter is the spread of erase counts that is tolerated.
    moves_cold_data: bool,
    build: fn() -> Box<dyn ErasedBlocks>,
}

/// All policies.
pub static POLICIES: &[Policy] = &[none::POLICY, dynamic::POLICY, static_levelling::POLICY];

/// A policy with its parameter.
#[derive(Clone, Copy)]
pub struct Selection {
    policy: &'static Policy,
    number: u32,
}

/// Looks a policy up as profiles write it, e.g. `dynamic` or `static:10`.
///
/// # Errors
/// The name is unknown; its number is missing, out of range, or not taken.
pub fn find(text: &str) -> Result<Selection, SimError> {
    let table = POLICIES.iter().map(|policy| (policy.name, policy.parameter.as_ref()));
    let (position, number) = parameter::parse("wear_levelling", "wear levelling policy", text, table)?;
    Ok(Selection { policy: &POLICIES[position], number })
}

impl Policy {
    /// The name as profiles write it, its parameter included: `static:N`.
    pub fn form(&self) -> String {
        parameter::form(self.name, self.parameter.as_ref())
    }
}

impl Selection {
    pub(crate) fn free_blocks(&self, blocks: u32) -> FreeBlocks {
        FreeBlocks { unused_from: 0, blocks, erased: (self.policy.build)() }
    }

    /// What finds the cold blocks of a plane, where the policy moves them.
    pub(crate) fn cold_blocks(&self, blocks: u32) -> Option<ColdBlocks> {
        self.policy.moves_cold_data.then(|| ColdBlocks::new(blocks, self.number))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike_and_mistakes_are_answered_with_what_is_allowed() {
        for name in ["none", "dynamic", "static:1", "static:1000000"] {
            assert_eq!(find(name).unwrap().to_string(), name);
        }
        let error = |text: &str| find(text).err().unwrap().to_string();
        for text in ["static", "static:", "static:0", "static:1000001", "static:-3"] {
            let allowed = "static:N with a spread of erase counts N of 1 to 1000000, e.g. static:10";
            assert_eq!(error(text), format!("wear_levelling: found '{text}'; allowed: {allowed}"));
        }
        assert!(error("statik:5").contains("did you mean 'static:N'"), "{}", error("statik:5"));
        assert!(error("dynamic:5").contains("takes no number"), "{}", error("dynamic:5"));
    }

    #[test]
    fn every_policy_gives_out_unused_blocks_first_and_each_block_once() {
        for (name, order) in [("none", [3, 1, 2, 0]), ("dynamic", [1, 3, 0, 2]), ("static:5", [1, 3, 0, 2])] {
            let mut free = find(name).unwrap().free_blocks(4);
            assert_eq!(
                [free.take(), free.take(), free.take(), free.take(), free.take()],
                [Some(0), Some(1), Some(2), Some(3), None]
            );
            for (block, erases) in [(3, 1), (1, 1), (2, 7), (0, 2)] {
                free.put(block, erases);
            }
            assert_eq!(free.len(), 4);
            assert_eq!(order.map(|_| free.take().unwrap()), order, "{name}");
            assert_eq!(free.len(), 0);
        }
        let mut free = find("static:5").unwrap().free_blocks(3);
        assert_eq!(free.take_most_worn(), Some(0), "none but unused blocks");
        [(0, 1), (1, 4)].into_iter().for_each(|(block, erases)| free.put(block, erases));
        assert_eq!(free.take_most_worn(), Some(1));
    }
}
