//! Victim selection: which block of a plane is collected.
//!
//! | policy | victim |
//! |---|---|
//! | `greedy` | the block with the fewest valid pages |
//! | `cost-benefit` | the block with the best ratio of space won to pages moved, weighted by its age |
//! | `d-choices:D` | of D blocks drawn at random, the one with the fewest valid pages |
//! | `fifo` | the block that was filled longest ago |
//!
//! Victims are *closed*: all their pages are programmed. Free blocks and blocks being written are never picked, nor are blocks
//! whose pages are all valid: erasing those would win nothing. Every policy finds a victim whenever there is one, so that a
//! device is out of space only when no block holds an invalid page.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod lists;

use crate::error::SimError;
use crate::parameter::{self, Parameter};
use std::fmt;
use std::ops::Range;

/// Valid count of a free block in [`PlaneBlocks::valid`]: larger than any real count.
pub(crate) const FREE: u16 = u16::MAX;

/// What a policy is made for: one plane.
pub(crate) struct PlaneShape {
    /// Blocks of the plane.
    pub(crate) blocks: u32,
    /// Valid pages from which on a block is no victim: those of a block, where each page is programmed alone.
    pub(crate) pages_per_block: u16,
    /// Number of the plane in the device.
    pub(crate) plane: u32,
    /// Seed of the run.
    pub(crate) seed: u64,
}

/// What a policy may look at when it picks a victim.
pub(crate) struct PlaneBlocks<'a> {
    /// Valid pages by block; [`FREE`] for free blocks.
    pub(crate) valid: &'a [u16],
    /// Blocks being written; `u32::MAX` where there is none.
    pub(crate) open: [u32; 4],
    /// Pages programmed on the plane since it was new.
    pub(crate) clock: u64,
}

impl PlaneBlocks<'_> {
    /// Blocks that hold at least one invalid page and are not being written, with their valid pages, by number.
    fn candidates(&self, pages_per_block: u16) -> impl Iterator<Item = (u32, u16)> + '_ {
        let blocks = self.valid.iter().enumerate().map(|(block, &valid)| (block as u32, valid));
        blocks.filter(move |(block, valid)| *valid < pages_per_block && !self.open.contains(block))
    }
}

/// Picks the victims of one plane. It is told what happens to blocks, and keeps of that what it needs.
pub(crate) trait Victims: Send {
    /// The last page of a block was programmed: from now on it may be picked. `clock` is the number of pages programmed on
    /// the plane since it was new.
    fn closed(&mut self, block: u32, valid: u16, clock: u64);

    /// On a new plane these blocks were programmed one after the other, and all their pages are valid.
    fn filled(&mut self, blocks: Range<u32>, pages_per_block: u32) {
        let clocks = (1..).map(|block| block * u64::from(pages_per_block));
        blocks.zip(clocks).for_each(|(block, clock)| self.closed(block, pages_per_block as u16, clock));
    }

    /// A page of a closed block became stale, and the block's valid pages are now fewer than [`Victims::bar`].
    fn fell(&mut self, block: u32, valid: u16);

    /// A closed block without valid pages was erased.
    fn erased(&mut self, block: u32);

    /// [`Victims::fell`] is called for valid counts below this only: what a policy need not know costs nothing at an overwrite.
    fn bar(&self) -> u16;

    /// The block to collect next, or none when no closed block holds an invalid page. Asked again before anything changed, it
    /// gives the same answer.
    fn pick(&mut self, plane: &PlaneBlocks<'_>) -> Option<u32>;
}

/// One line of the table of policies.
pub struct Policy {
    /// Name in profiles and on the command line, without the parameter.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The number that follows the name, where one does.
    pub parameter: Option<Parameter>,
    build: fn(&PlaneShape, u32) -> Box<dyn Victims>,
}

/// All policies.
pub static POLICIES: &[Policy] = &[greedy::POLICY, cost_benefit::POLICY, d_choices::POLICY, fifo::POLICY];

/// A policy with its parameter.
#[derive(Clone, Copy)]
pub struct Selection {
    policy: &'static Policy,
    number: u32,
}

/// Looks a policy up as profiles write it, e.g. `greedy` or `d-choices:10`.
///
/// # Errors
/// The name is unknown; its number is missing, out of range, or not taken.
pub fn find(text: &str) -> Result<Selection, SimError> {
    let table = POLICIES.iter().map(|policy| (policy.name, policy.parameter.as_ref()));
    let (position, number) = parameter::parse("victims", "policy of victim selection", text, table)?;
    Ok(Selection { policy: &POLICIES[position], number })
}

impl Policy {
    /// The name as profiles write it, its parameter included: `d-choices:D`.
    pub fn form(&self) -> String {
        parameter::form(self.name, self.parameter.as_ref())
    }
}

impl Selection {
    pub(crate) fn victims(&self, shape: &PlaneShape) -> Box<dyn Victims> {
        (self.policy.build)(shape, self.number)
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
mod tests;
