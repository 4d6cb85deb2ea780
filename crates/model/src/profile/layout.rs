//! How the translation layer sees the flash: units of mapping, and what one operation of the flash reads or programs of them.
//!
//! The page of the flash is the unit of mapping, of reads and of programs unless a profile says otherwise. Where it does, the simulator works on
//! the *mapped* device: its "pages" are units of mapping, its blocks as many units as they hold data, its planes whole dies where
//! superblocks are in use. [`Layout`] says what an operation of the flash is in that device.

use super::{Problem, Profile};
use crate::geometry::{Geometry, MAX_PAGES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one operation of the flash reads and programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Units of mapping in a page of the flash.
    pub units_per_page: u32,
    /// Planes that are read, programmed and erased as one: those of a die with superblocks, else 1.
    pub planes: u32,
    /// Pages of a plane that one program writes.
    pub program_pages: u32,
    /// One program in so many is parity; 0: none.
    pub parity_one_in: u32,
}

impl Layout {
    /// The page is the unit of everything.
    pub const PLAIN: Layout = Layout { units_per_page: 1, planes: 1, program_pages: 1, parity_one_in: 0 };

    /// Units that one array read can return: those of a page, or of the pages of all planes of a superblock at one place.
    #[inline]
    pub const fn read_units(&self) -> u32 {
        self.units_per_page * self.planes
    }

    /// Units that one program writes.
    #[inline]
    pub const fn program_units(&self) -> u32 {
        self.read_units() * self.program_pages
    }

    /// Programs of data for each program of parity; 0: there is no parity.
    pub const fn data_programs(&self) -> u32 {
        self.parity_one_in.saturating_sub(1)
    }

    /// The page of its block that a unit of a block is in. Programs of parity come behind those whose parity they hold.
    #[inline]
    pub const fn page_of(&self, unit: u32) -> u32 {
        let page = unit / self.read_units();
        match self.data_programs() {
            0 => page,
            programs => page + page / (programs * self.program_pages) * self.program_pages,
        }
    }
}

/// A profile as the translation layer sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// With units for pages: geometry, chunks and buffers count them, and nothing in it is apart any more.
    pub profile: Profile,
    /// What operations of the flash are.
    pub layout: Layout,
    /// Pages that the host can address: units.
    pub user_pages: u32,
}

/// A part of the flash used with one bit a cell: programs and reads are short, a block holds the fraction of its pages. Host writes go there
/// while there is room, else to where they would go without it. What is valid is *folded*, that is moved to blocks of the usual kind, in idle
/// time or, block by block, when a plane runs out of free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Bits that a cell of the usual kind holds, 2 to 5: a block of the cache has the pages of a block over this.
    #[schemars(range(min = 2, max = 5))]
    pub bits_per_cell: u32,
    /// Array read of a page of the cache, ns.
    pub read_ns: u64,
    /// Program of a page of the cache, ns.
    pub program_ns: u64,
    /// Blocks of each plane that are always the cache's; they are spare space of the device.
    pub static_blocks: u32,
    /// Free blocks of each plane that it may have beside those, as long as so many are left that nothing has to be collected.
    pub dynamic_blocks: u32,
    /// Blocks are folded when no command was outstanding for so long, ns.
    pub idle_ns: u64,
}

impl SlcCache {
    fn check(&self, geometry: &Geometry) -> Result<(), Problem> {
        let longest = crate::units::Ns::from_millis(10_000).0;
        if !(2..=5).contains(&self.bits_per_cell) {
            let found = self.bits_per_cell;
            return Err(("slc_cache.bits_per_cell", format!("found {found}; allowed: 2 to 5")));
        }
        for (key, value) in [
            ("slc_cache.read_ns", self.read_ns),
            ("slc_cache.program_ns", self.program_ns),
            ("slc_cache.idle_ns", self.idle_ns),
        ] {
            if value > longest {
                return Err((key, format!("found {value}; allowed: 0 to {longest} ns")));
            }
        }
        if self.static_blocks == 0 && self.dynamic_blocks == 0 {
            return Err((
                "slc_cache.static_blocks",
                "found 0 beside dynamic_blocks = 0; allowed: 1 or more of either, or no section 'slc_cache'"
                    .into(),
            ));
        }
        let most = geometry.blocks_per_plane;
        for (key, blocks) in [
            ("slc_cache.static_blocks", self.static_blocks),
            ("slc_cache.dynamic_blocks", self.dynamic_blocks),
        ] {
            if blocks > most {
                return Err((key, format!("found {blocks}; allowed: 0 to {most}, the blocks of a plane")));
            }
        }
        if geometry.pages_per_block < self.bits_per_cell {
            return Err((
                "slc_cache.bits_per_cell",
                format!(
                    "found {}; a block of {} pages has none left",
                    self.bits_per_cell, geometry.pages_per_block
                ),
            ));
        }
        Ok(())
    }
}

/// Most units of a page, and pages of a program.
const MOST_UNITS: u32 = 64;
const MOST_PROGRAM_PAGES: u32 = 16;

impl Profile {
    /// What operations of the flash are.
    pub fn layout(&self) -> Layout {
        let translation = &self.translation;
        Layout {
            units_per_page: self.geometry.page_bytes
                / translation.unit_bytes.unwrap_or(self.geometry.page_bytes).max(1),
            planes: if translation.superblocks { self.geometry.planes_per_die } else { 1 },
            program_pages: self.timing.program_pages,
            parity_one_in: translation.parity_one_in,
        }
    }

    /// Whether host writes have to be gathered for a program, or some of the flash is not for data.
    pub fn is_plain(&self) -> bool {
        self.layout() == Layout::PLAIN
    }

    /// The device as the translation layer sees it.
    pub fn mapped(&self) -> Mapped {
        let layout = self.layout();
        if layout == Layout::PLAIN {
            return Mapped { user_pages: self.user_pages(), profile: self.clone(), layout };
        }
        let Layout { units_per_page, planes, .. } = layout;
        let mut profile = self.clone();
        profile.translation.unit_bytes = None;
        profile.translation.superblocks = false;
        profile.translation.parity_one_in = 0;
        profile.timing.program_pages = 1;
        profile.geometry.planes_per_die /= planes;
        profile.geometry.page_bytes /= units_per_page;
        profile.geometry.pages_per_block = self.units_per_block(layout) as u32;
        profile.translation.chunk_pages *= units_per_page * planes;
        if let Some(buffer) = &mut profile.write_buffer {
            for pages in [&mut buffer.pages, &mut buffer.run_pages, &mut buffer.in_flight_pages] {
                *pages = pages.saturating_mul(units_per_page);
            }
        }
        if let Some(ahead) = &mut profile.read_ahead {
            for pages in [&mut ahead.window_pages, &mut ahead.run_pages, &mut ahead.buffer_pages] {
                *pages = pages.saturating_mul(units_per_page);
            }
        }
        Mapped { user_pages: self.user_pages() * units_per_page, profile, layout }
    }

    /// Pages of which every plane has a whole number of chunks and of programs.
    pub(super) fn pages_in_turn(&self) -> u32 {
        // One of them is a multiple of the other.
        self.translation.chunk_pages.max(self.timing.program_pages).max(1)
    }

    /// Units of a block that hold data.
    fn units_per_block(&self, layout: Layout) -> u64 {
        let programs = u64::from(self.geometry.pages_per_block / layout.program_pages.max(1));
        let data = match u64::from(layout.parity_one_in) {
            0 => programs,
            one_in => programs / one_in * (one_in - 1),
        };
        data * u64::from(layout.program_units())
    }

    /// Checks what makes the mapped device: each key on its own, then together.
    pub(super) fn check_layout(&self) -> Result<(), Problem> {
        let (geometry, translation) = (&self.geometry, &self.translation);
        if let Some(unit) = translation.unit_bytes {
            let page = geometry.page_bytes;
            let fits = unit >= 512
                && unit.is_multiple_of(512)
                && page.is_multiple_of(unit)
                && page / unit <= MOST_UNITS;
            if !fits {
                return Err((
                    "unit_bytes",
                    format!(
                        "found {unit}; allowed: a multiple of 512 that divides the page of {page} bytes into at most {MOST_UNITS}"
                    ),
                ));
            }
        }
        let program_pages = self.timing.program_pages;
        if !(1..=MOST_PROGRAM_PAGES).contains(&program_pages)
            || !geometry.pages_per_block.is_multiple_of(program_pages)
        {
            return Err((
                "program_pages",
                format!(
                    "found {program_pages}; allowed: 1 to {MOST_PROGRAM_PAGES}, a divisor of the {} pages of a block",
                    geometry.pages_per_block
                ),
            ));
        }
        if program_pages > 1 && self.timing.program_ns.values().len() > 1 {
            return Err((
                "program_ns",
                format!(
                    "found {:?}; allowed with program_pages = {program_pages}: one latency, which programs that many pages",
                    self.timing.program_ns.values()
                ),
            ));
        }
        let chunk = translation.chunk_pages;
        if !chunk.is_multiple_of(program_pages) && !program_pages.is_multiple_of(chunk.max(1)) {
            return Err((
                "chunk_pages",
                format!(
                    "found {chunk}; allowed: divisors and multiples of {program_pages}, the pages that one program writes (program_pages)"
                ),
            ));
        }
        let one_in = translation.parity_one_in;
        let programs = geometry.pages_per_block / program_pages;
        if one_in == 1 || one_in != 0 && (one_in > programs || !programs.is_multiple_of(one_in)) {
            return Err((
                "parity_one_in",
                format!(
                    "found {one_in}; allowed: 0 for none, or a divisor from 2 of the {programs} programs of a block"
                ),
            ));
        }
        if translation.superblocks && !self.advanced_commands.multi_plane && geometry.planes_per_die > 1 {
            return Err((
                "superblocks",
                "found true; allowed with multi_plane = true: the planes of a die work as one".into(),
            ));
        }
        if let Some(cache) = &self.slc_cache {
            cache.check(geometry)?;
        }
        let layout = self.layout();
        if layout == Layout::PLAIN {
            return Ok(());
        }
        self.check_gathering(layout)?;
        let per_block = self.units_per_block(layout);
        if per_block > 65_534 {
            return Err((
                "pages_per_block",
                format!(
                    "found {}, {per_block} units of mapping with all that is programmed together; allowed: up to 65534",
                    geometry.pages_per_block
                ),
            ));
        }
        let planes = u64::from(geometry.planes() / layout.planes.max(1));
        let units = planes * u64::from(geometry.blocks_per_plane) * per_block;
        if units > MAX_PAGES {
            return Err((
                "unit_bytes",
                format!("found {} units of mapping in the device; allowed: up to {MAX_PAGES}", units),
            ));
        }
        Ok(())
    }

    /// Who programs more than one unit at a time needs a place to gather writes in, and a way to put them that does not go by their addresses.
    fn check_gathering(&self, layout: Layout) -> Result<(), Problem> {
        let of = "unit_bytes, program_pages, superblocks or parity_one_in";
        let Some(buffer) = &self.write_buffer else {
            return Err((
                "write_buffer",
                format!(
                    "found none; allowed with {of}: a write buffer, in which writes wait for a program's worth"
                ),
            ));
        };
        // Planes that have their turn before a program of the first is full.
        let open = match self.translation.chunk_pages >= layout.program_pages {
            true => layout.planes,
            false => self.geometry.planes(),
        };
        let least = open.saturating_mul(layout.program_pages);
        for (key, pages) in
            [("write_buffer.pages", buffer.pages), ("write_buffer.in_flight_pages", buffer.in_flight_pages)]
        {
            if pages < least {
                return Err((
                    key,
                    format!(
                        "found {pages}; allowed: from {least}, the pages of the programs that are gathered at a time (chunk_pages = {} of program_pages = {})",
                        self.translation.chunk_pages, layout.program_pages
                    ),
                ));
            }
        }
        if self.translation.allocation != "write-order" {
            return Err((
                "allocation",
                format!(
                    "found '{}'; allowed with {of}: write-order, as a page takes what is written together",
                    self.translation.allocation
                ),
            ));
        }
        if !matches!(self.collection.scheme.as_str(), "traditional" | "preemptive" | "paced" | "gc_free") {
            return Err((
                "scheme",
                format!(
                    "found '{}'; allowed with {of}: traditional, preemptive, paced or gc_free, which move a program's worth at a time",
                    self.collection.scheme
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_units_leave_out_those_of_parity() {
        let layout = Layout { units_per_page: 4, planes: 2, program_pages: 3, parity_one_in: 4 };
        assert_eq!((layout.read_units(), layout.program_units()), (8, 24));
        // Three programs of three pages, then three pages of parity.
        let pages: Vec<u32> = (0..20).map(|row| layout.page_of(row * 8)).collect();
        assert_eq!(pages[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 12]);
        assert_eq!(pages[17..], [20, 24, 25]);
        assert_eq!(Layout::PLAIN.page_of(17), 17);
    }
}
