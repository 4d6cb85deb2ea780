//! The page map in both directions: 8 bytes for each physical page, and nothing to build for a fresh or filled device.
//!
//! A table entry of 0 means "as constructed": unmapped on a fresh device, the place that sequential filling gives on a
//! filled one. Zeroed memory comes from the system untouched, so that a 1 TB device starts in no time and only pages
//! that are used cost memory.

use planewise_model::location::{Chunks, Gangs};
use planewise_model::{Geometry, Lpn, Ppn};

/// "No page", in both directions.
pub(crate) const NONE: u32 = u32::MAX;

/// The entry of a logical page that was discarded.
const DISCARDED: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Mapping {
    /// By logical page: physical page + 1; 0 = as constructed.
    logical_to_physical: Vec<u32>,
    /// By physical page: logical page + 1; 0 = as constructed.
    physical_to_logical: Vec<u32>,
    filled: Option<Filled>,
    /// Where pages that nobody wrote are read from, on a primed device.
    primed: Option<Filled>,
}

/// The closed form of a sequentially filled device.
#[derive(Debug)]
struct Filled {
    /// Plane of each position in a stripe, and back.
    plane_of_stripe: Vec<u32>,
    stripe_of_plane: Vec<u32>,
    chunks: Chunks,
    pages_per_plane: u32,
    user_pages_per_plane: u32,
    user_pages: u32,
    /// Where pages are in regions, not in stripes.
    gangs: Option<Gangs>,
}

/// Where static filling puts pages: the plane of each position of a stripe, or regions on gangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread<'a> {
    pub(crate) stripe: &'a [u32],
    /// Consecutive pages of a position.
    pub(crate) chunk_pages: u32,
    pub(crate) gangs: Option<Gangs>,
}

impl Spread<'_> {
    /// How pages are dealt out to the positions of a stripe.
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks { pages: self.chunk_pages, positions: self.stripe.len() as u32 }
    }
}

impl Mapping {
    /// Tables of a device that has never been written.
    pub(crate) fn fresh(geometry: &Geometry, user_pages: u32) -> Mapping {
        Mapping {
            logical_to_physical: vec![0; user_pages as usize],
            physical_to_logical: vec![0; geometry.pages() as usize],
            filled: None,
            primed: None,
        }
    }

    /// Tables of a device whose user space was written once, in order, as it is spread.
    pub(crate) fn filled(geometry: &Geometry, user_pages: u32, spread: Spread<'_>) -> Mapping {
        let filled = Some(Filled::new(geometry, user_pages, spread));
        Mapping { filled, ..Mapping::fresh(geometry, user_pages) }
    }

    /// Tables of a device whose unwritten pages read as if they had been filled, without taking space.
    pub(crate) fn primed(geometry: &Geometry, user_pages: u32, spread: Spread<'_>) -> Mapping {
        let primed = Some(Filled::new(geometry, user_pages, spread));
        Mapping { primed, ..Mapping::fresh(geometry, user_pages) }
    }

    /// Tells that all of the tables will be in use soon, in random order: the system may back them with large pages, which
    /// spares most of the page walks that random access to hundreds of megabytes otherwise costs. Tables of which only
    /// parts are used are better left alone: a large page is memory as a whole.
    pub(crate) fn expect_full_use(&mut self) {
        #[cfg(target_os = "linux")]
        for table in [&mut self.logical_to_physical, &mut self.physical_to_logical] {
            use rustix::mm::{Advice, madvise};
            const PAGE: usize = 4096;
            let first = (table.as_mut_ptr() as usize).next_multiple_of(PAGE);
            let end = (table.as_mut_ptr() as usize + size_of_val(&table[..])) / PAGE * PAGE;
            if first < end {
                // SAFETY: whole pages inside a live allocation, and the advice does not change what they hold. Systems
                // that do not know it refuse, and nothing is lost.
                let _ = unsafe { madvise(first as *mut _, end - first, Advice::LinuxHugepage) };
            }
        }
    }

    /// Where a read of a logical page goes, or [`NONE`] when there is nothing in flash to read.
    #[inline]
    pub(crate) fn readable(&self, lpn: Lpn) -> u32 {
        match (self.physical(lpn), &self.primed) {
            (NONE, Some(primed)) if self.logical_to_physical[lpn.0 as usize] != DISCARDED => {
                primed.physical(lpn)
            }
            (physical, _) => physical,
        }
    }

    /// Where a logical page is, or [`NONE`].
    #[inline]
    pub(crate) fn physical(&self, lpn: Lpn) -> u32 {
        match self.logical_to_physical[lpn.0 as usize] {
            0 => self.filled.as_ref().map_or(NONE, |filled| filled.physical(lpn)),
            DISCARDED => NONE,
            entry => entry - 1,
        }
    }

    /// Forgets where a logical page is; returns where it was, or [`NONE`].
    pub(crate) fn unmap(&mut self, lpn: Lpn) -> u32 {
        let old = self.physical(lpn);
        self.logical_to_physical[lpn.0 as usize] = DISCARDED;
        old
    }

    /// Asks the processor to bring the entry of a page that will be looked up soon: the table is larger than its caches.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        #[cfg(target_arch = "x86_64")]
        if let Some(entry) = self.logical_to_physical.get(lpn.0 as usize) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch of a valid reference changes no state that a program can see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = lpn;
    }

    /// Which logical page was last put at a physical page, or [`NONE`]. It is valid only if the logical page still is there.
    #[inline]
    pub(crate) fn logical(&self, ppn: Ppn) -> u32 {
        match self.physical_to_logical[ppn.0 as usize] {
            0 => self.filled.as_ref().map_or(NONE, |filled| filled.logical(ppn)),
            entry => entry - 1,
        }
    }

    /// The logical page whose valid data a physical page holds, if any.
    #[inline]
    pub(crate) fn valid_owner(&self, ppn: Ppn) -> Option<Lpn> {
        let lpn = self.logical(ppn);
        (lpn != NONE && self.physical(Lpn(lpn)) == ppn.0).then_some(Lpn(lpn))
    }

    /// Maps a logical page to a physical one; returns where it was, or [`NONE`].
    #[inline]
    pub(crate) fn map(&mut self, lpn: Lpn, ppn: Ppn) -> u32 {
        let old = self.physical(lpn);
        self.logical_to_physical[lpn.0 as usize] = ppn.0 + 1;
        self.physical_to_logical[ppn.0 as usize] = lpn.0 + 1;
        old
    }

    /// Maps a logical page to a place that is no page of the flash: numbers behind the last one are slots of a buffer.
    #[inline]
    pub(crate) fn relocate(&mut self, lpn: Lpn, place: u32) {
        self.logical_to_physical[lpn.0 as usize] = place + 1;
    }

    /// Enters the places of neighbouring pages of all stripes: `places[k][n]` is the physical page plus one, or 0 for none, of page
    /// `first + k` of stripe `n`.
    pub(crate) fn enter_stripes(&mut self, planes: u32, first: u32, places: &[Vec<u32>]) {
        let stripes = self.logical_to_physical.chunks_exact_mut(planes as usize);
        for (number, stripe) in stripes.enumerate() {
            for (entry, places) in stripe[first as usize..].iter_mut().zip(places) {
                *entry = places[number];
            }
        }
    }

    /// Enters where the page at a position and of an ordinal is: the physical page plus one, or 0 for none.
    pub(crate) fn enter_place(&mut self, lpn: Lpn, place: u32) {
        self.logical_to_physical[lpn.0 as usize] = place;
    }

    /// Enters a page of an aged device.
    pub(crate) fn enter(&mut self, lpn: Lpn, ppn: Ppn) {
        self.logical_to_physical[lpn.0 as usize] = ppn.0 + 1;
        self.physical_to_logical[ppn.0 as usize] = lpn.0 + 1;
    }

    /// Notes that a physical page holds a copy of a logical page that is mapped elsewhere: nobody's valid data.
    pub(crate) fn note_copy(&mut self, lpn: Lpn, ppn: Ppn) {
        self.physical_to_logical[ppn.0 as usize] = lpn.0 + 1;
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        4 * (self.logical_to_physical.len() + self.physical_to_logical.len()) as u64
    }
}

impl Filled {
    fn new(geometry: &Geometry, user_pages: u32, spread: Spread<'_>) -> Filled {
        let Spread { stripe, gangs, .. } = spread;
        let mut stripe_of_plane = vec![0; stripe.len()];
        for (position, &plane) in stripe.iter().enumerate() {
            stripe_of_plane[plane as usize] = position as u32;
        }
        Filled {
            plane_of_stripe: stripe.to_vec(),
            stripe_of_plane,
            chunks: spread.chunks(),
            pages_per_plane: geometry.pages_per_plane(),
            user_pages_per_plane: user_pages / geometry.planes(),
            user_pages,
            gangs,
        }
    }

    fn physical(&self, lpn: Lpn) -> u32 {
        if let Some(gangs) = &self.gangs {
            let (plane, ordinal) = gangs.place(lpn.0);
            return plane * self.pages_per_plane + ordinal;
        }
        let plane = self.plane_of_stripe[self.chunks.position(lpn.0) as usize];
        plane * self.pages_per_plane + self.chunks.ordinal(lpn.0)
    }

    fn logical(&self, ppn: Ppn) -> u32 {
        let (plane, page) = (ppn.0 / self.pages_per_plane, ppn.0 % self.pages_per_plane);
        if let Some(gangs) = &self.gangs {
            let lpn = gangs.page(plane, page);
            return if lpn < u64::from(self.user_pages) { lpn as u32 } else { NONE };
        }
        if page >= self.user_pages_per_plane {
            return NONE;
        }
        self.chunks.page(self.stripe_of_plane[plane as usize], page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::AllocationOrder;

    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 5,
        page_bytes: 4096,
    };

    fn striped(stripe: &[u32]) -> Spread<'_> {
        Spread { stripe, chunk_pages: 1, gangs: None }
    }

    #[test]
    fn a_device_filled_in_regions_maps_every_user_page_to_its_own_place_and_back() {
        let stripe = AllocationOrder::CWDP.stripe(&GEOMETRY);
        for region_pages in [2, 6, 24, 30] {
            let gangs = Gangs { region_pages, gangs: 4, planes_per_gang: 2 };
            let spread = Spread { gangs: Some(gangs), ..striped(&stripe) };
            let mapping = Mapping::filled(&GEOMETRY, 96, spread);
            for lpn in (0..96).map(Lpn) {
                let ppn = Ppn(mapping.physical(lpn));
                assert_eq!(ppn.0 / 20 / 2, lpn.0 / region_pages % 4, "its region's gang");
                assert_eq!(mapping.valid_owner(ppn), Some(lpn));
            }
            assert_eq!((0..160).filter(|&ppn| mapping.valid_owner(Ppn(ppn)).is_some()).count(), 96);
        }
    }

    #[test]
    fn a_filled_device_maps_every_user_page_to_its_own_place_and_back() {
        for (order, chunk_pages) in
            AllocationOrder::all().into_iter().flat_map(|order| [1, 2, 3, 4, 6].map(|chunk| (order, chunk)))
        {
            let stripe = order.stripe(&GEOMETRY);
            let mapping = Mapping::filled(&GEOMETRY, 8 * 12, Spread { chunk_pages, ..striped(&stripe) });
            let mut seen = vec![false; GEOMETRY.pages() as usize];
            for lpn in 0..8 * 12 {
                let ppn = mapping.physical(Lpn(lpn));
                assert!(!std::mem::replace(&mut seen[ppn as usize], true));
                assert_eq!(mapping.valid_owner(Ppn(ppn)), Some(Lpn(lpn)));
                assert_eq!(
                    ppn / 20,
                    stripe[(lpn / chunk_pages % 8) as usize],
                    "{order}, chunks of {chunk_pages}"
                );
            }
            let unused = (0..GEOMETRY.pages()).filter(|&ppn| mapping.valid_owner(Ppn(ppn)).is_none()).count();
            assert_eq!(unused, GEOMETRY.pages() as usize - 8 * 12);
        }
    }

    #[test]
    fn a_primed_device_reads_unwritten_pages_and_maps_none() {
        let stripe = AllocationOrder::CWDP.stripe(&GEOMETRY);
        let (mut primed, filled) = (
            Mapping::primed(&GEOMETRY, 96, striped(&stripe)),
            Mapping::filled(&GEOMETRY, 96, striped(&stripe)),
        );
        for lpn in (0..96).map(Lpn) {
            assert_eq!(primed.physical(lpn), NONE);
            assert_eq!(primed.readable(lpn), filled.physical(lpn));
        }
        primed.map(Lpn(3), Ppn(7));
        assert_eq!(primed.readable(Lpn(3)), 7);
        assert_eq!(Mapping::fresh(&GEOMETRY, 96).readable(Lpn(3)), NONE);
    }

    #[test]
    fn a_rewritten_page_is_valid_only_where_it_was_written_last() {
        let mut mapping = Mapping::fresh(&GEOMETRY, 96);
        assert_eq!(mapping.physical(Lpn(3)), NONE);
        assert_eq!(mapping.map(Lpn(3), Ppn(7)), NONE);
        assert_eq!(mapping.map(Lpn(3), Ppn(9)), 7);
        assert_eq!(mapping.valid_owner(Ppn(7)), None);
        assert_eq!(mapping.valid_owner(Ppn(9)), Some(Lpn(3)));
    }
}
