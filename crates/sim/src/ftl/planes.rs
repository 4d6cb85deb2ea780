//! Blocks of each plane: which are free, which is being written, how many valid pages each holds.

use crate::gc::victims;
use crate::wear::FreeBlocks;
use planewise_model::{Geometry, Ppn};

/// Valid count of a block on the free list: larger than any real count, so that a scan for the fewest valid pages skips it.
const FREE: u16 = u16::MAX;

/// Whose data a block takes, where hot and cold data are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// What the host writes.
    Host,
    /// What collection moves.
    Collection,
}

/// The block a plane is programming.
#[derive(Clone, Copy, Debug)]
struct ActiveBlock {
    /// Offset in the plane.
    block: u32,
    /// Next page to program; `pages_per_block` when the block is full.
    page: u32,
}

pub(crate) struct Planes {
    geometry: Geometry,
    /// By block, plane-major.
    valid: Vec<u16>,
    /// By block, plane-major.
    erases: Vec<u32>,
    active: Vec<ActiveBlock>,
    free: Vec<FreeBlocks>,
    /// Pages of the plane that can be programmed without an erase.
    free_pages: Vec<u32>,
    /// Valid pages by plane.
    valid_total: Vec<u32>,
    pages_per_block: Divisor,
    blocks_per_plane: Divisor,
}

/// Division by a number fixed at run time: a shift where it is a power of two, as most block sizes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u32,
    /// The shift, or 32 when the value is no power of two.
    shift: u32,
}

impl Divisor {
    pub(crate) fn new(value: u32) -> Divisor {
        Divisor { value, shift: if value.is_power_of_two() { value.trailing_zeros() } else { 32 } }
    }

    #[inline]
    pub(crate) fn quotient(self, n: u32) -> u32 {
        if self.shift < 32 { n >> self.shift } else { n / self.value }
    }

    #[inline]
    pub(crate) fn remainder(self, n: u32) -> u32 {
        if self.shift < 32 { n & (self.value - 1) } else { n % self.value }
    }
}

impl Planes {
    /// All blocks free.
    pub(crate) fn fresh(geometry: &Geometry, free: impl Fn(u32) -> FreeBlocks) -> Planes {
        let full = ActiveBlock { block: 0, page: geometry.pages_per_block };
        let mut planes = Planes {
            geometry: *geometry,
            valid: vec![FREE; geometry.blocks() as usize],
            erases: vec![0; geometry.blocks() as usize],
            active: vec![full; geometry.planes() as usize],
            free: (0..geometry.planes()).map(|_| free(geometry.blocks_per_plane)).collect(),
            free_pages: vec![geometry.pages_per_plane(); geometry.planes() as usize],
            valid_total: vec![0; geometry.planes() as usize],
            pages_per_block: Divisor::new(geometry.pages_per_block),
            blocks_per_plane: Divisor::new(geometry.blocks_per_plane),
        };
        for plane in 0..geometry.planes() {
            planes.open_block(plane);
        }
        planes
    }

    /// Declares the first `pages` pages of a plane as programmed and valid, in block order, on a fresh plane.
    pub(crate) fn fill(&mut self, plane: u32, pages: u32) {
        let mut left = pages;
        while left > 0 {
            let take = left.min(self.geometry.pages_per_block);
            let block = self.active[plane as usize].block;
            let index = self.block_index(plane, block);
            self.valid[index] = take as u16;
            self.valid_total[plane as usize] += take;
            self.active[plane as usize].page = take;
            self.free_pages[plane as usize] -= take;
            left -= take;
            if take == self.geometry.pages_per_block {
                self.open_block(plane);
            }
        }
    }

    /// Declares the plane's next free block as fully programmed with `valid` valid pages; returns the block's offset in the plane.
    pub(crate) fn fill_block(&mut self, plane: u32, valid: u16) -> u32 {
        let block = self.active[plane as usize].block;
        let index = self.block_index(plane, block);
        self.valid[index] = valid;
        self.valid_total[plane as usize] += u32::from(valid);
        self.active[plane as usize].page = self.geometry.pages_per_block;
        self.free_pages[plane as usize] -= self.geometry.pages_per_block;
        self.open_block(plane);
        block
    }

    /// Corrects the valid count of a block that [`Planes::fill_block`] filled.
    pub(crate) fn set_valid(&mut self, plane: u32, block: u32, valid: u16) {
        let index = self.block_index(plane, block);
        self.valid_total[plane as usize] =
            self.valid_total[plane as usize] - u32::from(self.valid[index]) + u32::from(valid);
        self.valid[index] = valid;
    }

    #[inline]
    fn block_index(&self, plane: u32, block: u32) -> usize {
        (plane * self.geometry.blocks_per_plane + block) as usize
    }

    fn open_block(&mut self, plane: u32) {
        if let Some(block) = self.free[plane as usize].take() {
            let index = self.block_index(plane, block);
            debug_assert_eq!(self.valid[index], FREE, "block {block} of plane {plane} is free");
            self.valid[index] = 0;
            self.active[plane as usize] = ActiveBlock { block, page: 0 };
        }
    }

    /// Block offset and page that the next program of the plane goes to, if it has one.
    #[inline]
    pub(crate) fn write_pointer(&mut self, plane: u32, _stream: Stream) -> Option<(u32, u32)> {
        if self.active[plane as usize].page == self.geometry.pages_per_block {
            self.open_block(plane);
        }
        let active = self.active[plane as usize];
        (active.page < self.geometry.pages_per_block).then_some((active.block, active.page))
    }

    /// Takes the page at the write pointer for valid data.
    #[inline]
    pub(crate) fn program(&mut self, plane: u32, stream: Stream) -> Option<Ppn> {
        let (block, page) = self.write_pointer(plane, stream)?;
        self.active[plane as usize].page += 1;
        self.free_pages[plane as usize] -= 1;
        let index = self.block_index(plane, block);
        self.valid[index] += 1;
        self.valid_total[plane as usize] += 1;
        Some(Ppn(index as u32 * self.geometry.pages_per_block + page))
    }

    /// The data of a physical page became stale.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        let index = self.pages_per_block.quotient(ppn.0) as usize;
        debug_assert!(self.valid[index] != FREE && self.valid[index] > 0, "block {index} holds a valid page");
        self.valid[index] -= 1;
        self.valid_total[self.blocks_per_plane.quotient(index as u32) as usize] -= 1;
    }

    /// Erases a block without valid pages and puts it on the free list.
    pub(crate) fn erase(&mut self, plane: u32, block: u32) {
        let index = self.block_index(plane, block);
        assert_eq!(self.valid[index], 0, "block {block} of plane {plane} is erased with valid pages in it");
        self.valid[index] = FREE;
        self.erases[index] += 1;
        self.free_pages[plane as usize] += self.geometry.pages_per_block;
        self.free[plane as usize].put(block, self.erases[index]);
    }

    /// Pages of the plane that can be programmed before anything must be erased.
    #[inline]
    pub(crate) fn free_pages(&self, plane: u32) -> u32 {
        self.free_pages[plane as usize]
    }

    /// Blocks on the plane's free list.
    pub(crate) fn free_blocks(&self, plane: u32) -> u32 {
        self.free[plane as usize].len()
    }

    /// The block to collect next, by the policy of victim selection; none when no block would give back a page.
    pub(crate) fn pick_victim(&mut self, plane: u32) -> Option<u32> {
        let first = self.block_index(plane, 0);
        let valid = &self.valid[first..first + self.geometry.blocks_per_plane as usize];
        let active = self.active[plane as usize].block;
        victims::greedy::fewest_valid(valid, active, self.active_is_full(plane), self.geometry.pages_per_block)
    }

    /// The block whose cold data should move for wear levelling, if the policy wants one to.
    pub(crate) fn pick_cold_block(&mut self, _plane: u32) -> Option<u32> {
        None
    }

    /// Whether the plane's active block has no page left.
    pub(crate) fn active_is_full(&self, plane: u32) -> bool {
        self.active[plane as usize].page == self.geometry.pages_per_block
    }

    /// Valid pages of a block in use.
    pub(crate) fn valid_in(&self, plane: u32, block: u32) -> u32 {
        u32::from(self.valid[self.block_index(plane, block)])
    }

    /// Valid pages of a plane.
    #[inline]
    pub(crate) fn valid_total(&self, plane: u32) -> u32 {
        self.valid_total[plane as usize]
    }

    /// Compares valid counts and free space with the valid pages of each block as the map has them.
    pub(crate) fn audit(&self, valid_pages: &[u32]) -> Result<(), String> {
        let (blocks, pages) = (self.geometry.blocks_per_plane, self.geometry.pages_per_block);
        for plane in 0..self.geometry.planes() {
            let (mut free_blocks, mut valid_total) = (0, 0);
            for block in 0..blocks {
                let index = self.block_index(plane, block);
                let counted = valid_pages[index];
                let is_free = self.valid[index] == FREE;
                free_blocks += u32::from(is_free);
                valid_total += counted;
                if (is_free && counted != 0) || (!is_free && u32::from(self.valid[index]) != counted) {
                    let kept =
                        if is_free { "free".to_owned() } else { format!("{} valid", self.valid[index]) };
                    return Err(format!(
                        "block {block} of plane {plane} is kept as {kept}, the map has {counted} valid pages"
                    ));
                }
            }
            let active = self.active[plane as usize];
            let free_pages = free_blocks * pages + (pages - active.page);
            if free_blocks != self.free_blocks(plane)
                || free_pages != self.free_pages(plane)
                || valid_total != self.valid_total(plane)
            {
                return Err(format!(
                    "plane {plane}: {free_blocks} free blocks, {free_pages} free and {valid_total} valid pages counted; {}, {} and {} kept",
                    self.free_blocks(plane),
                    self.free_pages(plane),
                    self.valid_total(plane)
                ));
            }
        }
        Ok(())
    }

    /// Smallest and largest erase count of a block.
    pub(crate) fn wear(&self) -> (u32, u32) {
        let min = self.erases.iter().copied().min().unwrap_or(0);
        (min, self.erases.iter().copied().max().unwrap_or(0))
    }

    /// First physical page of a block.
    pub(crate) fn first_page(&self, plane: u32, block: u32) -> Ppn {
        Ppn(self.block_index(plane, block) as u32 * self.geometry.pages_per_block)
    }

    #[inline]
    pub(crate) fn plane_of(&self, ppn: Ppn) -> u32 {
        self.blocks_per_plane.quotient(self.pages_per_block.quotient(ppn.0))
    }

    /// `(block offset in the plane, page in the block)`.
    #[inline]
    pub(crate) fn offset_of(&self, ppn: Ppn) -> (u32, u32) {
        (
            self.blocks_per_plane.remainder(self.pages_per_block.quotient(ppn.0)),
            self.pages_per_block.remainder(ppn.0),
        )
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        (self.valid.len() * 2 + self.erases.len() * 4) as u64
    }
}
