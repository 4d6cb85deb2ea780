//! Blocks of each plane: which are free, which are being written, how many valid pages each holds.
//!
//! A block is free, *open* (being written) or *closed* (all pages programmed: it may be collected).

use crate::gc::victims::{self, FREE, PlaneBlocks, PlaneShape, Victims};
use crate::wear::{self, ColdBlocks, FreeBlocks};
use planewise_model::{Geometry, Ppn};
use std::collections::VecDeque;

/// No block.
const NO_BLOCK: u32 = u32::MAX;

/// Whose data a block takes, where hot and cold data are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// What the host writes.
    Host,
    /// What collection moves.
    Collection,
}

/// What decides about the blocks of a plane.
pub(crate) struct PlanePolicies {
    pub(crate) victims: victims::Selection,
    pub(crate) wear: wear::Selection,
    /// Host and collection write to blocks of their own.
    pub(crate) hot_cold_separation: bool,
    /// Pages that one program writes.
    pub(crate) program_pages: u32,
    /// Blocks with one bit a cell, if there are any.
    pub(crate) cache: Option<CacheBlocks>,
    pub(crate) seed: u64,
}

/// Blocks of a plane that hold one bit a cell while they are in use as a cache, and take host writes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheBlocks {
    /// Pages of such a block; the others that it had otherwise are neither free nor valid.
    pub(crate) pages_per_block: u32,
    /// Pages that one program writes there.
    pub(crate) program_pages: u32,
    /// How many there are always, and at most when free space allows.
    pub(crate) always: u32,
    pub(crate) most: u32,
    /// Free pages of the plane that those beyond the first kind leave.
    pub(crate) reserve: u32,
}

/// The cache of one plane.
#[derive(Clone, Debug, Default)]
struct PlaneCache {
    /// Blocks in use, open or closed.
    blocks: u32,
    /// Those that are closed, by age.
    closed: VecDeque<u32>,
}

/// A block that a plane is programming, or none.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    /// Offset in the plane; [`NO_BLOCK`] when none is open.
    block: u32,
    /// Next page to program; `pages_per_block` when no block is open.
    page: u32,
}

/// Open blocks of a plane, by who writes to them.
const HOST: usize = 0;
/// Only where hot and cold data are kept apart; collection writes with the host otherwise.
const COLLECTION: usize = 1;
/// Only where wear levelling moves cold data.
const COLD: usize = 2;
/// Only where some blocks are a cache with one bit a cell: what the host writes, while there is room.
const CACHE: usize = 3;
/// How many there can be.
const OPEN_BLOCKS: usize = 4;

/// Counts of one plane, side by side: an overwrite needs several.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Valid pages.
    valid: u32,
    /// Pages that can be programmed without an erase.
    free_pages: u32,
    /// Blocks erased.
    erases: u32,
    /// Valid counts below this are told to the policy of victim selection.
    bar: u16,
    /// What collection writes is cold data on the move.
    moving_cold: bool,
}

pub(crate) struct Planes {
    geometry: Geometry,
    /// By block, plane-major.
    valid: Vec<u16>,
    /// By block, plane-major.
    erases: Vec<u32>,
    open: Vec<[OpenBlock; OPEN_BLOCKS]>,
    free: Vec<FreeBlocks>,
    counts: Vec<Counts>,
    victims: Vec<Box<dyn Victims>>,
    /// Empty where wear levelling moves no cold data.
    cold: Vec<ColdBlocks>,
    hot_cold_separation: bool,
    program_pages: u32,
    has_cache: bool,
    /// Pages of its blocks.
    cache_pages: u32,
    cache_blocks: Option<CacheBlocks>,
    /// By plane; empty where there is no cache.
    caches: Vec<PlaneCache>,
    /// By block: it is one of the cache. Empty where there is none.
    is_cache: Vec<bool>,
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
    pub(crate) fn fresh(geometry: &Geometry, policies: &PlanePolicies) -> Planes {
        let none = OpenBlock { block: NO_BLOCK, page: geometry.pages_per_block };
        let planes = 0..geometry.planes();
        let victims = |plane| {
            // What lacks less than a program of being full gives nothing back: its moves use up as much.
            let pages_per_block = (geometry.pages_per_block - (policies.program_pages - 1)) as u16;
            let blocks = geometry.blocks_per_plane;
            policies.victims.victims(&PlaneShape { blocks, pages_per_block, plane, seed: policies.seed })
        };
        let mut fresh = Planes {
            geometry: *geometry,
            valid: vec![FREE; geometry.blocks() as usize],
            erases: vec![0; geometry.blocks() as usize],
            open: vec![[none; OPEN_BLOCKS]; planes.len()],
            free: planes.clone().map(|_| policies.wear.free_blocks(geometry.blocks_per_plane)).collect(),
            counts: vec![
                Counts {
                    valid: 0,
                    free_pages: geometry.pages_per_plane(),
                    erases: 0,
                    bar: 0,
                    moving_cold: false
                };
                planes.len()
            ],
            victims: planes.clone().map(victims).collect(),
            cold: planes
                .clone()
                .filter_map(|_| policies.wear.cold_blocks(geometry.blocks_per_plane))
                .collect(),
            hot_cold_separation: policies.hot_cold_separation,
            program_pages: policies.program_pages,
            has_cache: policies.cache.is_some(),
            cache_pages: policies.cache.map_or(geometry.pages_per_block, |cache| cache.pages_per_block),
            cache_blocks: policies.cache,
            caches: vec![PlaneCache::default(); policies.cache.map_or(0, |_| planes.len())],
            is_cache: vec![false; policies.cache.map_or(0, |_| geometry.blocks() as usize)],
            pages_per_block: Divisor::new(geometry.pages_per_block),
            blocks_per_plane: Divisor::new(geometry.blocks_per_plane),
        };
        for plane in planes {
            fresh.counts[plane as usize].bar = fresh.victims[plane as usize].bar();
            fresh.open_block(plane, HOST);
        }
        fresh
    }

    /// Declares the first `pages` pages of a plane as programmed and valid, in block order, on a fresh plane.
    pub(crate) fn fill(&mut self, plane: u32, pages: u32) {
        self.fill_blocks(plane, pages / self.geometry.pages_per_block);
        let rest = pages % self.geometry.pages_per_block;
        if rest > 0 {
            self.fill_open(plane, rest, rest);
        }
    }

    /// The same of whole blocks: all at once, as large devices have hundreds of thousands.
    fn fill_blocks(&mut self, plane: u32, blocks: u32) {
        let Geometry { pages_per_block, .. } = self.geometry;
        debug_assert_eq!(self.counts[plane as usize].free_pages, self.geometry.pages_per_plane());
        if blocks == 0 {
            return;
        }
        let first = self.open[plane as usize][HOST].block;
        self.free[plane as usize].take_unused(blocks - 1);
        let index = self.block_index(plane, first);
        self.valid[index..index + blocks as usize].fill(pages_per_block as u16);
        let counts = &mut self.counts[plane as usize];
        counts.valid += blocks * pages_per_block;
        counts.free_pages -= blocks * pages_per_block;
        let victims = &mut self.victims[plane as usize];
        victims.filled(first..first + blocks, pages_per_block);
        counts.bar = victims.bar();
        if let Some(cold) = self.cold.get_mut(plane as usize) {
            (first..first + blocks).for_each(|block| cold.closed(block));
        }
        self.open[plane as usize][HOST] = OpenBlock { block: NO_BLOCK, page: pages_per_block };
        self.open_block(plane, HOST);
    }

    /// Declares the plane's open block, untouched so far, as fully programmed with `valid` valid pages.
    pub(crate) fn fill_block(&mut self, plane: u32, valid: u16) {
        self.fill_open(plane, self.geometry.pages_per_block, u32::from(valid));
    }

    /// The block that [`Planes::fill_block`] declares programmed next.
    pub(crate) fn block_to_fill(&self, plane: u32) -> u32 {
        let block = self.open[plane as usize][HOST].block;
        assert_ne!(block, NO_BLOCK, "the plane has free blocks");
        block
    }

    /// Declares `pages` pages of the plane's open block as programmed, `valid` of them as valid.
    #[inline]
    fn fill_open(&mut self, plane: u32, pages: u32, valid: u32) {
        let open = &mut self.open[plane as usize][HOST];
        debug_assert_eq!(open.page, 0, "block {} of plane {plane} is untouched", open.block);
        open.page = pages;
        let index = self.block_index(plane, self.open[plane as usize][HOST].block);
        self.valid[index] = valid as u16;
        let counts = &mut self.counts[plane as usize];
        counts.valid += valid;
        counts.free_pages -= pages;
        if pages == self.geometry.pages_per_block {
            self.close_block(plane, HOST);
            self.open_block(plane, HOST);
        }
    }

    #[inline]
    fn block_index(&self, plane: u32, block: u32) -> usize {
        (plane * self.geometry.blocks_per_plane + block) as usize
    }

    /// Opens a free block; false when there is none.
    fn open_block(&mut self, plane: u32, slot: usize) -> bool {
        let free = &mut self.free[plane as usize];
        let taken = if slot == COLD { free.take_most_worn() } else { free.take() };
        let Some(block) = taken else { return false };
        let index = self.block_index(plane, block);
        debug_assert_eq!(self.valid[index], FREE, "block {block} of plane {plane} is free");
        self.valid[index] = 0;
        if slot == CACHE {
            self.enters_cache(plane, index);
        }
        self.open[plane as usize][slot] = OpenBlock { block, page: 0 };
        true
    }

    /// The last page of an open block was programmed.
    #[inline(always)]
    fn close_block(&mut self, plane: u32, slot: usize) {
        let open = &mut self.open[plane as usize][slot];
        let block = std::mem::replace(&mut open.block, NO_BLOCK);
        let valid = self.valid[self.block_index(plane, block)];
        let clock = self.clock(plane);
        self.victims[plane as usize].closed(block, valid, clock);
        self.counts[plane as usize].bar = self.victims[plane as usize].bar();
        if slot == CACHE {
            self.close_in_cache(plane, block);
        } else if let Some(cold) = self.cold.get_mut(plane as usize) {
            cold.closed(block);
        }
    }

    #[inline(never)]
    fn enters_cache(&mut self, plane: u32, index: usize) {
        self.is_cache[index] = true;
        self.caches[plane as usize].blocks += 1;
        self.counts[plane as usize].free_pages -= self.geometry.pages_per_block - self.cache_pages;
    }

    #[inline(never)]
    fn close_in_cache(&mut self, plane: u32, block: u32) {
        self.open[plane as usize][CACHE].page = self.geometry.pages_per_block;
        self.caches[plane as usize].closed.push_back(block);
    }

    /// Pages of the block that a slot writes to.
    #[inline]
    fn capacity(&self, slot: usize) -> u32 {
        if slot == CACHE { self.cache_pages } else { self.geometry.pages_per_block }
    }

    /// Pages that one program of a slot writes.
    fn program_pages_of(&self, slot: usize) -> u32 {
        match &self.cache_blocks {
            Some(cache) if slot == CACHE => cache.program_pages,
            _ => self.program_pages,
        }
    }

    /// Whether the cache has a page for the host, or can have another block.
    fn cache_takes(&self, plane: u32) -> bool {
        let Some(cache) = &self.cache_blocks else { return false };
        if self.open[plane as usize][CACHE].page < cache.pages_per_block {
            return true;
        }
        let blocks = self.caches[plane as usize].blocks;
        let spare = self.free_pages(plane) >= cache.reserve + self.geometry.pages_per_block;
        self.free_blocks(plane) > 2 && (blocks < cache.always || blocks < cache.most && spare)
    }

    /// Whether the host's next page goes to the cache; has a block of it open then.
    #[inline(never)]
    fn opens_cache(&mut self, plane: u32) -> bool {
        self.cache_takes(plane)
            && (self.open[plane as usize][CACHE].page < self.capacity(CACHE) || self.open_block(plane, CACHE))
    }

    /// Pages that the next program of the host writes on a plane.
    pub(crate) fn next_program_pages(&self, plane: u32) -> u32 {
        if self.cache_takes(plane) { self.program_pages_of(CACHE) } else { self.program_pages }
    }

    /// Whether a block is one of the cache.
    #[inline]
    pub(crate) fn is_in_cache(&self, plane: u32, block: u32) -> bool {
        !self.is_cache.is_empty() && self.is_cache[self.block_index(plane, block)]
    }

    /// The block of the cache that has been full for longest.
    pub(crate) fn oldest_of_cache(&self, plane: u32) -> Option<u32> {
        self.caches.get(plane as usize)?.closed.front().copied()
    }

    /// Leaves the rest of a program's pages without data, if the last one did not fill it: a program writes all of its pages. Returns the
    /// first and how many.
    pub(crate) fn pad(&mut self, plane: u32) -> Option<(Ppn, u32)> {
        let open = &self.open[plane as usize];
        let is_begun = |&slot: &usize| {
            open[slot].block != NO_BLOCK && !open[slot].page.is_multiple_of(self.program_pages_of(slot))
        };
        let slot = (0..OPEN_BLOCKS).find(is_begun)?;
        let OpenBlock { block, page } = open[slot];
        let padded = page.next_multiple_of(self.program_pages_of(slot)) - page;
        self.open[plane as usize][slot].page += padded;
        self.counts[plane as usize].free_pages -= padded;
        let first = Ppn(self.first_page(plane, block).0 + page);
        if page + padded == self.capacity(slot) {
            self.close_block(plane, slot);
        }
        Some((first, padded))
    }

    /// Pages programmed on a plane since it was new: blocks are erased when all their pages have been programmed.
    fn clock(&self, plane: u32) -> u64 {
        let counts = &self.counts[plane as usize];
        u64::from(counts.erases) * u64::from(self.geometry.pages_per_block)
            + u64::from(self.geometry.pages_per_plane() - counts.free_pages)
    }

    /// The slot whose open block a stream writes to while it has room.
    #[inline]
    fn slot(&self, plane: u32, stream: Stream) -> usize {
        match stream {
            Stream::Collection if self.counts[plane as usize].moving_cold => COLD,
            Stream::Collection if self.hot_cold_separation => COLLECTION,
            Stream::Collection | Stream::Host => HOST,
        }
    }

    #[inline]
    fn is_full(&self, plane: u32, slot: usize) -> bool {
        self.open[plane as usize][slot].page == self.geometry.pages_per_block
    }

    /// The slot that the next page of a stream is programmed in; opens a block where needed. None only when the plane has no
    /// free page at all: a stream without a block to open writes to another's, so that free pages are what they promise.
    #[inline]
    fn slot_with_room(&mut self, plane: u32, stream: Stream) -> Option<usize> {
        if self.has_cache && stream == Stream::Host && self.opens_cache(plane) {
            return Some(CACHE);
        }
        let slot = self.slot(plane, stream);
        if !self.is_full(plane, slot) { Some(slot) } else { self.other_slot_with_room(plane, stream, slot) }
    }

    /// Where a stream goes on whose open block is full.
    fn other_slot_with_room(&mut self, plane: u32, stream: Stream, slot: usize) -> Option<usize> {
        // The last free block is for collections, which may need all of it: pages that come from elsewhere, the host's or those
        // that return from a buffer, take what other streams left. The host stays out of collection's own block while it can.
        let others: &[usize] = match stream {
            _ if self.free_blocks(plane) > 1 || slot == COLD => &[],
            Stream::Host => &[COLD],
            Stream::Collection => &[COLD, HOST],
        };
        if let Some(&other) = others.iter().find(|&&other| !self.is_full(plane, other)) {
            return Some(other);
        }
        if self.open_block(plane, slot) {
            return Some(slot);
        }
        [COLD, COLLECTION, HOST, CACHE].into_iter().find(|&slot| !self.is_full(plane, slot))
    }

    /// Block offset and page that the next program of the plane goes to, if it has one.
    #[inline]
    pub(crate) fn write_pointer(&mut self, plane: u32, stream: Stream) -> Option<(u32, u32)> {
        let slot = self.slot_with_room(plane, stream)?;
        let open = self.open[plane as usize][slot];
        Some((open.block, open.page))
    }

    /// Takes the page at the write pointer for valid data.
    #[inline]
    pub(crate) fn program(&mut self, plane: u32, stream: Stream) -> Option<Ppn> {
        let slot = self.slot_with_room(plane, stream)?;
        let open = &mut self.open[plane as usize][slot];
        let (block, page) = (open.block, open.page);
        open.page += 1;
        let index = self.block_index(plane, block);
        self.valid[index] += 1;
        let counts = &mut self.counts[plane as usize];
        counts.free_pages -= 1;
        counts.valid += 1;
        if self.open[plane as usize][slot].page == self.capacity(slot) {
            self.close_block(plane, slot);
        }
        Some(Ppn(index as u32 * self.geometry.pages_per_block + page))
    }

    /// The data of a physical page became stale.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        let index = self.pages_per_block.quotient(ppn.0);
        let valid = &mut self.valid[index as usize];
        debug_assert!(*valid != FREE && *valid > 0, "block {index} holds a valid page");
        *valid -= 1;
        let valid = *valid;
        let plane = self.blocks_per_plane.quotient(index);
        let counts = &mut self.counts[plane as usize];
        counts.valid -= 1;
        if valid < counts.bar {
            self.fell(plane, self.blocks_per_plane.remainder(index), valid);
        }
    }

    /// The valid pages of a block fell below what the policy of victim selection asked for.
    fn fell(&mut self, plane: u32, block: u32, valid: u16) {
        if self.is_open(plane, block) {
            return;
        }
        self.victims[plane as usize].fell(block, valid);
        self.counts[plane as usize].bar = self.victims[plane as usize].bar();
    }

    fn is_open(&self, plane: u32, block: u32) -> bool {
        self.open[plane as usize].iter().any(|open| open.block == block)
    }

    /// Erases a closed block without valid pages and puts it on the free list.
    pub(crate) fn erase(&mut self, plane: u32, block: u32) {
        let index = self.block_index(plane, block);
        assert_eq!(self.valid[index], 0, "block {block} of plane {plane} is erased with valid pages in it");
        debug_assert!(!self.is_open(plane, block), "block {block} of plane {plane} is erased while written");
        self.victims[plane as usize].erased(block);
        self.valid[index] = FREE;
        self.erases[index] += 1;
        let counts = &mut self.counts[plane as usize];
        counts.free_pages += self.geometry.pages_per_block;
        counts.erases += 1;
        counts.bar = self.victims[plane as usize].bar();
        counts.moving_cold = false;
        self.free[plane as usize].put(block, self.erases[index]);
        if self.is_in_cache(plane, block) {
            self.is_cache[index] = false;
            let cache = &mut self.caches[plane as usize];
            cache.blocks -= 1;
            cache.closed.retain(|&other| other != block);
        }
        if let Some(cold) = self.cold.get_mut(plane as usize) {
            cold.erased(self.erases[index]);
        }
    }

    /// Pages of the plane that can be programmed before anything must be erased.
    #[inline]
    pub(crate) fn free_pages(&self, plane: u32) -> u32 {
        self.counts[plane as usize].free_pages
    }

    /// Valid pages that a plane may hold such that a block with an invalid page is always found when space runs out: all but
    /// those of the block kept free, of a host's, and of collection's own where it has one.
    pub(crate) fn most_valid(&self) -> u32 {
        let spare = 2
            + u32::from(self.hot_cold_separation)
            + self.cache_blocks.map_or(0, |cache| cache.always.max(1));
        let worth = self.geometry.pages_per_block - (self.program_pages - 1);
        (self.geometry.blocks_per_plane - spare) * worth
    }

    /// Blocks on the plane's free list.
    pub(crate) fn free_blocks(&self, plane: u32) -> u32 {
        self.free[plane as usize].len()
    }

    /// The block to collect next, by the policy of victim selection; none when no block would give back a page. It is not taken:
    /// asked again, the same block is the answer until it is erased or, where the policy says so, another is worth more.
    pub(crate) fn pick_victim(&mut self, plane: u32) -> Option<u32> {
        let first = self.block_index(plane, 0);
        let blocks = PlaneBlocks {
            valid: &self.valid[first..first + self.geometry.blocks_per_plane as usize],
            open: self.open[plane as usize].map(|open| open.block),
            clock: self.clock(plane),
        };
        let victim = self.victims[plane as usize].pick(&blocks);
        self.counts[plane as usize].bar = self.victims[plane as usize].bar();
        victim
    }

    /// Valid pages of the block that [`Planes::pick_victim`] would give.
    pub(crate) fn cheapest_victim_valid(&mut self, plane: u32) -> Option<u32> {
        self.pick_victim(plane).map(|victim| self.valid_in(plane, victim))
    }

    /// The block whose cold data should move for wear levelling, if the policy wants one to. It may be full of valid pages. To
    /// ask costs next to nothing; to be asked when a collection of the plane has ended, and no other is under way there.
    pub(crate) fn pick_cold_block(&mut self, plane: u32) -> Option<u32> {
        let first = self.block_index(plane, 0);
        let blocks = first..first + self.geometry.blocks_per_plane as usize;
        let (valid, open) = (&self.valid[blocks.clone()], &self.open[plane as usize]);
        let is_closed =
            |block: u32| valid[block as usize] != FREE && open.iter().all(|open| open.block != block);
        self.cold.get_mut(plane as usize)?.pick(&self.erases[blocks], is_closed)
    }

    /// The next collection on the plane is that of its cold block: until its erase, what collection writes goes to the most worn
    /// free block. As in any collection, the pages move inside the plane and fit in its free pages: a block's worth at most.
    pub(crate) fn begin_cold_move(&mut self, plane: u32) {
        if let Some(cold) = self.cold.get_mut(plane as usize) {
            cold.begin_move();
            self.counts[plane as usize].moving_cold = true;
        }
    }

    /// Whether the host has no page left on the plane but those of free blocks, and those open for collection alone.
    pub(crate) fn active_is_full(&self, plane: u32) -> bool {
        self.is_full(plane, HOST) && self.is_full(plane, COLD)
    }

    /// Valid pages of a block in use.
    pub(crate) fn valid_in(&self, plane: u32, block: u32) -> u32 {
        u32::from(self.valid[self.block_index(plane, block)])
    }

    /// Valid pages of a plane.
    #[inline]
    pub(crate) fn valid_total(&self, plane: u32) -> u32 {
        self.counts[plane as usize].valid
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
            let open = &self.open[plane as usize];
            let left = |slot: usize| self.capacity(slot).saturating_sub(open[slot].page);
            let free_pages = free_blocks * pages + (0..OPEN_BLOCKS).map(left).sum::<u32>();
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
        let cold = self.cold.len() as u64 * u64::from(self.geometry.blocks_per_plane) * 4;
        (self.valid.len() * 2 + self.erases.len() * 4 + self.is_cache.len()) as u64 + cold
    }
}

#[cfg(test)]
#[path = "planes_tests.rs"]
mod tests;
