//! Location vectors: which parallel units a request touches, one bit per unit (TCAD paper, section IV-A).
//!
//! Formula (1) of the paper prints a ceiling for the first page and its slides print floors for both pages; both are
//! wrong for requests that do not start and end on page boundaries. Here a request covers bytes `[start, end)`, so that
//! its first page is `floor(start / page)` and its last page `ceil(end / page) - 1` (docs/architecture.md, "What the words mean").

use crate::request::Request;
use crate::units::SECTOR_BYTES;

/// The pages a request touches: `first` and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// First page.
    pub first: u64,
    /// Number of pages, at least 1 for a request of at least one sector.
    pub count: u32,
}

impl PageRange {
    /// The pages of `page_bytes` bytes that `request` touches, in part or whole.
    #[inline]
    pub fn of(request: &Request, page_bytes: u32) -> PageRange {
        let sectors_per_page = u64::from(page_bytes) / SECTOR_BYTES;
        let (start, end) = (request.start.0, request.end().0);
        // Page sizes are powers of two on nearly every device: a shift, not a division, in the usual case.
        let (first, past) = if sectors_per_page.is_power_of_two() {
            let shift = sectors_per_page.trailing_zeros();
            (start >> shift, (end + sectors_per_page - 1) >> shift)
        } else {
            (start / sectors_per_page, end.div_ceil(sectors_per_page))
        };
        PageRange { first, count: (past - first) as u32 }
    }
}

/// Contiguous regions of the logical space, each on one gang: a group of neighbouring planes that share nothing with others but the
/// channel (Agrawal et al., USENIX ATC 2008). Gangs take regions in turn; inside, pages go round the gang's planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gangs {
    /// Pages of a region: a multiple of the planes of a gang.
    pub region_pages: u32,
    /// Number of gangs.
    pub gangs: u32,
    /// Planes of each.
    pub planes_per_gang: u32,
}

impl Gangs {
    /// Plane of a page, and which of the plane's pages it is, from 0.
    #[inline]
    pub fn place(&self, page: u32) -> (u32, u32) {
        let (region, offset) = (page / self.region_pages, page % self.region_pages);
        let plane = region % self.gangs * self.planes_per_gang + offset % self.planes_per_gang;
        let before = region / self.gangs * (self.region_pages / self.planes_per_gang);
        (plane, before + offset / self.planes_per_gang)
    }

    /// The page that [`Gangs::place`] puts there.
    pub fn page(&self, plane: u32, ordinal: u32) -> u64 {
        let per_region = self.region_pages / self.planes_per_gang;
        let (round, row) = (ordinal / per_region, ordinal % per_region);
        let region = u64::from(round) * u64::from(self.gangs) + u64::from(plane / self.planes_per_gang);
        region * u64::from(self.region_pages)
            + u64::from(row) * u64::from(self.planes_per_gang)
            + u64::from(plane % self.planes_per_gang)
    }

    /// How many of the first `pages` pages are on a plane.
    pub fn pages_on(&self, plane: u32, pages: u32) -> u32 {
        let all = u64::from(self.region_pages) * u64::from(self.gangs);
        let rounds = (u64::from(pages) / all) as u32;
        let rest = (u64::from(pages) % all) as u32;
        let (gang, position) = (plane / self.planes_per_gang, plane % self.planes_per_gang);
        let in_gang = rest.saturating_sub(gang * self.region_pages).min(self.region_pages);
        let rows = in_gang.saturating_sub(position).div_ceil(self.planes_per_gang);
        rounds * (self.region_pages / self.planes_per_gang) + rows
    }
}

/// Consecutive pages dealt out in chunks, one on each of so many positions in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Pages of a chunk, at least 1.
    pub pages: u32,
    /// Positions that take turns, at least 1.
    pub positions: u32,
}

impl Chunks {
    /// Position of a page.
    #[inline]
    pub fn position(&self, page: u32) -> u32 {
        if self.pages == 1 { page % self.positions } else { page / self.pages % self.positions }
    }

    /// Which of the position's pages a page is, from 0.
    #[inline]
    pub fn ordinal(&self, page: u32) -> u32 {
        if self.pages == 1 {
            return page / self.positions;
        }
        let chunk = page / self.pages;
        chunk / self.positions * self.pages + page % self.pages
    }

    /// The page that is there.
    #[inline]
    pub fn page(&self, position: u32, ordinal: u32) -> u32 {
        if self.pages == 1 {
            return ordinal * self.positions + position;
        }
        (ordinal / self.pages * self.positions + position) * self.pages + ordinal % self.pages
    }

    /// First position that a range of pages touches, and how many in turn, each at most once.
    #[inline]
    pub fn touched(&self, first: u64, count: u32) -> (u32, u32) {
        let PageRange { first, count } = in_chunks(PageRange { first, count }, self.pages);
        ((first % u64::from(self.positions)) as u32, count.min(self.positions))
    }
}

/// The chunks of so many pages that a range of pages touches.
#[inline]
fn in_chunks(pages: PageRange, chunk: u32) -> PageRange {
    if chunk == 1 {
        return pages;
    }
    let (chunk, end) = (u64::from(chunk), pages.first + u64::from(pages.count));
    let first = pages.first / chunk;
    PageRange { first, count: (end.div_ceil(chunk) - first) as u32 }
}

/// How a host believes that pages are spread over parallel units. It may be wrong on purpose (TCAD paper, figure 19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitMap {
    units: u32,
    /// Pages of a chunk, which are on one unit. What follows is of chunks where it says pages.
    chunk: u32,
    /// Unit of each page of one stripe; empty when page `p` is simply on unit `p % units`.
    stripe: Vec<u32>,
    /// For each page of the stripe, how many pages back the same unit came before; empty when no unit comes twice.
    since_same: Vec<u32>,
    /// Regions on gangs, with the units of a gang, one for all its planes or one each; none where pages are striped over all units.
    gangs: Option<(Gangs, u32)>,
}

impl UnitMap {
    /// Page `p` is on unit `p % units`: Channel-Chip-Die-Plane striping at chip or plane level.
    ///
    /// # Panics
    /// When `units` is 0.
    pub fn modulo(units: u32) -> UnitMap {
        assert!(units > 0, "a device has at least one parallel unit");
        UnitMap { units, chunk: 1, stripe: Vec::new(), since_same: Vec::new(), gangs: None }
    }

    /// Page `p` is on unit `stripe[p % stripe.len()]`.
    ///
    /// # Panics
    /// When the stripe is empty.
    pub fn striped(stripe: Vec<u32>) -> UnitMap {
        let units = stripe.iter().max().expect("a stripe has at least one page") + 1;
        let identity = stripe.iter().enumerate().all(|(page, &unit)| page as u32 == unit);
        if identity {
            return UnitMap::modulo(units);
        }
        let since_same = if units as usize == stripe.len() { Vec::new() } else { distances(&stripe, units) };
        UnitMap { units, chunk: 1, stripe, since_same, gangs: None }
    }

    /// The same pattern of chunks of so many consecutive pages, instead of pages.
    ///
    /// # Panics
    /// When a chunk has no page, or pages are in regions.
    pub fn of_chunks(self, pages: u32) -> UnitMap {
        assert!(pages > 0 && self.gangs.is_none(), "chunks of at least a page, striped over all units");
        UnitMap { chunk: pages, ..self }
    }

    /// Pages are in regions on gangs; the units are the gangs, or their planes where `planes` says so.
    pub fn gangs(gangs: Gangs, planes: bool) -> UnitMap {
        let units_per_gang = if planes { gangs.planes_per_gang } else { 1 };
        let units = gangs.gangs * units_per_gang;
        UnitMap {
            units,
            chunk: 1,
            stripe: Vec::new(),
            since_same: Vec::new(),
            gangs: Some((gangs, units_per_gang)),
        }
    }

    /// Pages after which the pattern of units begins again: a range of that many touches every unit.
    #[inline]
    pub fn period(&self) -> u32 {
        match self.gangs {
            Some((gangs, _)) => gangs.region_pages.saturating_mul(gangs.gangs),
            None if self.stripe.is_empty() => self.units.saturating_mul(self.chunk),
            None => (self.stripe.len() as u32).saturating_mul(self.chunk),
        }
    }

    /// Number of units.
    #[inline]
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Calls `visit` once for each unit that the pages touch. Ranges wrap around; a range of a whole stripe or more touches all units.
    #[inline]
    pub fn for_each_unit(&self, pages: PageRange, mut visit: impl FnMut(u32)) {
        let pages = in_chunks(pages, self.chunk);
        if let Some((gangs, units_per_gang)) = self.gangs {
            for_each_of_gangs(&gangs, units_per_gang, pages, &mut visit);
        } else if self.stripe.is_empty() {
            if pages.count >= self.units {
                (0..self.units).for_each(visit);
                return;
            }
            let mut unit = (pages.first % u64::from(self.units)) as u32;
            for _ in 0..pages.count {
                visit(unit);
                unit += 1;
                if unit == self.units {
                    unit = 0;
                }
            }
        } else {
            self.for_each_striped(pages, &mut visit);
        }
    }

    fn for_each_striped(&self, pages: PageRange, visit: &mut dyn FnMut(u32)) {
        let period = self.stripe.len();
        let first = (pages.first % period as u64) as usize;
        let count = (pages.count as usize).min(period);
        for i in 0..count {
            let position = (first + i) % period;
            // Orders that fill a chip before moving on repeat a unit: report it at its first page only.
            if self.since_same.get(position).is_none_or(|&distance| distance as usize > i) {
                visit(self.stripe[position]);
            }
        }
    }

    /// The location vector of the pages.
    pub fn vector(&self, pages: PageRange) -> LocationVector {
        let mut vector = LocationVector::empty(self.units);
        self.for_each_unit(pages, |unit| vector.insert(unit));
        vector
    }
}

/// The units of a range of pages in regions on gangs: region by region, those of its gang that the range touches.
fn for_each_of_gangs(gangs: &Gangs, units_per_gang: u32, pages: PageRange, visit: &mut dyn FnMut(u32)) {
    let region_pages = u64::from(gangs.region_pages);
    let end = pages.first + u64::from(pages.count);
    let (first, last) = (pages.first / region_pages, (end - 1) / region_pages);
    // After a whole round the first gang comes again: what the range touches of it is the end of one region and the start of another.
    let rounds = last - first + 1;
    let touches = |region: u64, unit: u32| {
        let (from, to) = (pages.first.max(region * region_pages), end.min((region + 1) * region_pages));
        let places = u64::from(units_per_gang);
        from < to
            && (to - from >= places || (from..to).any(|page| page % region_pages % places == u64::from(unit)))
    };
    for step in 0..rounds.min(u64::from(gangs.gangs)) {
        let region = first + step;
        let base = (region % u64::from(gangs.gangs)) as u32 * units_per_gang;
        for unit in 0..units_per_gang {
            let mut regions = (region..=last).step_by(gangs.gangs as usize);
            if regions.any(|region| touches(region, unit)) {
                visit(base + unit);
            }
        }
    }
}

/// For each page of a cyclic stripe, the distance back to the page before it on the same unit.
fn distances(stripe: &[u32], units: u32) -> Vec<u32> {
    let mut last = vec![None; units as usize];
    let mut distances = vec![0; stripe.len()];
    // Twice around: the first round finds what comes before the beginning.
    for position in 0..2 * stripe.len() {
        let unit = stripe[position % stripe.len()] as usize;
        if let Some(before) = last[unit] {
            distances[position % stripe.len()] = (position - before) as u32;
        }
        last[unit] = Some(position);
    }
    distances
}

/// One bit per parallel unit. Unit 0 is the most significant bit, as the papers print it: with 8 units,
/// units 6 and 7 are `0b0000_0011` = 3.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocationVector {
    units: u32,
    /// Unit `u` is bit `63 - u % 64` of word `u / 64`.
    words: Vec<u64>,
}

impl LocationVector {
    /// No unit.
    pub fn empty(units: u32) -> LocationVector {
        LocationVector { units, words: vec![0; units.div_ceil(64) as usize] }
    }

    /// Adds a unit.
    ///
    /// # Panics
    /// When the unit is not one of the device's.
    pub fn insert(&mut self, unit: u32) {
        assert!(unit < self.units, "unit {unit} of {}", self.units);
        self.words[unit as usize / 64] |= 1 << (63 - unit % 64);
    }

    /// Whether the unit is set.
    pub fn contains(&self, unit: u32) -> bool {
        unit < self.units && self.words[unit as usize / 64] & (1 << (63 - unit % 64)) != 0
    }

    /// `V(a) & V(b) != 0`: formula (2), an access conflict.
    pub fn conflicts_with(&self, other: &LocationVector) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// `V(a) | V(b)`: formula (4), what a batch covers once the request joined.
    pub fn join(&mut self, other: &LocationVector) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Number of units set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether no unit is set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The number the papers print for the vector, where it fits in 128 bits.
    pub fn value(&self) -> Option<u128> {
        (self.units <= 128)
            .then(|| (0..self.units).fold(0, |value, unit| value << 1 | u128::from(self.contains(unit))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Direction;
    use crate::units::{Lsn, Ns};

    fn pages(lsn: u64, sectors: u32) -> PageRange {
        PageRange::of(&Request::new(Ns(23_320_000), Lsn(lsn), sectors, Direction::Read), 4096)
    }

    fn from_value(units: u32, value: u128) -> LocationVector {
        let mut vector = LocationVector::empty(units);
        (0..units).filter(|unit| value >> (units - 1 - unit) & 1 == 1).for_each(|unit| vector.insert(unit));
        vector
    }

    #[test]
    fn the_papers_location_vectors_are_3_on_8_chips_and_768_on_16_planes() {
        let request = pages(14_896, 16);
        assert_eq!(UnitMap::modulo(8).vector(request).value(), Some(3));
        assert_eq!(UnitMap::modulo(16).vector(request).value(), Some(768));
    }

    #[test]
    fn the_slides_unaligned_request_touches_one_page_and_so_one_chip() {
        // The slides print chips 0 and 1 (192) for LSN 14854 + 2 sectors; its 1024 bytes lie inside page 1856.
        let request = pages(14_854, 2);
        assert_eq!(request, PageRange { first: 1856, count: 1 });
        assert_eq!(UnitMap::modulo(8).vector(request).value(), Some(128));
    }

    #[test]
    fn figure_5_has_three_conflicts() {
        let vectors = [12u128, 64, 6, 96, 3].map(|value| from_value(8, value));
        let mut conflicts = Vec::new();
        for a in 0..vectors.len() {
            for b in a + 1..vectors.len() {
                if vectors[a].conflicts_with(&vectors[b]) {
                    conflicts.push((a + 1, b + 1));
                }
            }
        }
        assert_eq!(conflicts, [(1, 3), (2, 4), (3, 5)]);
    }

    #[test]
    fn joining_r0_and_r2_of_figure_7_makes_15() {
        let mut batch = from_value(4, 3);
        let r2 = from_value(4, 12);
        assert!(!batch.conflicts_with(&r2));
        assert!(batch.conflicts_with(&from_value(4, 6)));
        batch.join(&r2);
        assert_eq!(batch.value(), Some(15));
    }

    #[test]
    fn ranges_wrap_around_and_long_requests_touch_every_unit() {
        let map = UnitMap::modulo(8);
        assert_eq!(map.vector(PageRange { first: 7, count: 2 }).value(), Some(0b1000_0001));
        assert_eq!(map.vector(PageRange { first: 5, count: 8 }).value(), Some(255));
        assert_eq!(map.vector(PageRange { first: 5, count: 800 }).len(), 8);
    }

    #[test]
    fn a_stripe_that_stays_on_a_chip_reports_the_chip_once() {
        let map = UnitMap::striped(vec![0, 0, 1, 1]);
        assert_eq!(map.units(), 2);
        assert_eq!(map.vector(PageRange { first: 4, count: 2 }).value(), Some(0b10));
        assert_eq!(map.vector(PageRange { first: 1, count: 2 }).value(), Some(0b11));
    }

    #[test]
    fn every_order_reports_each_unit_of_a_range_once() {
        for stripe in [vec![0, 0, 1, 1, 2, 2], vec![0, 1, 0, 1, 2, 2], vec![2, 0, 1]] {
            let map = UnitMap::striped(stripe.clone());
            for first in 0..stripe.len() as u64 {
                for count in 1..=stripe.len() as u32 + 2 {
                    let mut found = Vec::new();
                    map.for_each_unit(PageRange { first, count }, |unit| found.push(unit));
                    let mut expected: Vec<u32> = (0..u64::from(count).min(stripe.len() as u64))
                        .map(|page| stripe[((first + page) % stripe.len() as u64) as usize])
                        .collect();
                    expected.sort_unstable();
                    expected.dedup();
                    found.sort_unstable();
                    assert_eq!(found, expected, "{stripe:?} from {first}, {count} pages");
                }
            }
            assert_eq!(map.vector(PageRange { first: 1, count: map.period() }).len(), map.units());
        }
    }

    #[test]
    fn chunks_take_turns_and_every_page_has_a_place_of_its_own() {
        for pages in [1, 2, 3, 4, 8] {
            let chunks = Chunks { pages, positions: 3 };
            let mut on = [0; 3];
            for page in 0..100 {
                let position = chunks.position(page);
                assert_eq!(position, page / pages % 3);
                assert_eq!(chunks.ordinal(page), on[position as usize], "places are filled in order");
                assert_eq!(chunks.page(position, chunks.ordinal(page)), page);
                on[position as usize] += 1;
            }
        }
    }

    #[test]
    fn a_range_of_chunks_reports_each_unit_once_and_the_positions_that_it_touches() {
        for stripe in [vec![0, 1, 2], vec![0, 0, 1, 1, 2, 2], vec![2, 0, 1]] {
            for chunk in [1, 2, 3, 4, 8] {
                let map = UnitMap::striped(stripe.clone()).of_chunks(chunk);
                let chunks = Chunks { pages: chunk, positions: stripe.len() as u32 };
                for first in 0..2 * u64::from(map.period()) {
                    for count in 1..=map.period() + 2 {
                        let mut positions: Vec<u32> = (first..first + u64::from(count))
                            .map(|page| chunks.position(page as u32))
                            .collect();
                        positions.sort_unstable();
                        positions.dedup();
                        let (from, touched) = chunks.touched(first, count);
                        let mut found: Vec<u32> =
                            (from..from + touched).map(|at| at % chunks.positions).collect();
                        found.sort_unstable();
                        assert_eq!(found, positions, "chunks of {chunk}, {count} pages from {first}");
                        let mut units: Vec<u32> = positions.iter().map(|&at| stripe[at as usize]).collect();
                        units.sort_unstable();
                        units.dedup();
                        let mut found = Vec::new();
                        map.for_each_unit(PageRange { first, count }, |unit| found.push(unit));
                        found.sort_unstable();
                        assert_eq!(found, units, "{stripe:?}, chunks of {chunk}, {count} pages from {first}");
                    }
                }
                assert_eq!(map.vector(PageRange { first: 1, count: map.period() }).len(), map.units());
            }
        }
    }

    #[test]
    fn a_region_is_on_its_gang_and_every_page_has_a_place_of_its_own() {
        let gangs = Gangs { region_pages: 6, gangs: 3, planes_per_gang: 2 };
        let places: Vec<(u32, u32)> = [0, 1, 2, 5, 6, 12, 18, 19].map(|page| gangs.place(page)).to_vec();
        assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 2), (2, 0), (4, 0), (0, 3), (1, 3)]);
        for pages in 0..80 {
            let mut on = [0; 6];
            for page in 0..pages {
                let (plane, ordinal) = gangs.place(page);
                assert_eq!(gangs.page(plane, ordinal), u64::from(page));
                assert_eq!(ordinal, on[plane as usize], "places of a plane are filled in order");
                on[plane as usize] += 1;
            }
            for plane in 0..6 {
                assert_eq!(gangs.pages_on(plane, pages), on[plane as usize], "{pages} pages, plane {plane}");
            }
        }
    }

    #[test]
    fn gangs_report_each_unit_of_a_range_once() {
        let gangs = Gangs { region_pages: 6, gangs: 3, planes_per_gang: 2 };
        for planes in [false, true] {
            let map = UnitMap::gangs(gangs, planes);
            for first in 0..40u64 {
                for count in 1..45u32 {
                    let mut found = Vec::new();
                    map.for_each_unit(PageRange { first, count }, |unit| found.push(unit));
                    let mut expected: Vec<u32> = (first..first + u64::from(count))
                        .map(|page| gangs.place(page as u32).0 / if planes { 1 } else { 2 })
                        .collect();
                    expected.sort_unstable();
                    expected.dedup();
                    found.sort_unstable();
                    assert_eq!(found, expected, "from {first}, {count} pages, planes {planes}");
                }
            }
            assert_eq!(map.vector(PageRange { first: 3, count: map.period() }).len(), map.units());
        }
    }

    #[test]
    fn unaligned_requests_touch_the_pages_their_bytes_lie_in() {
        assert_eq!(pages(7, 2), PageRange { first: 0, count: 2 });
        assert_eq!(pages(8, 8), PageRange { first: 1, count: 1 });
        assert_eq!(pages(0, 9), PageRange { first: 0, count: 2 });
        // A page that is no power of two.
        let request = Request::new(Ns::ZERO, Lsn(11), 2, Direction::Write);
        assert_eq!(PageRange::of(&request, 12 * 512), PageRange { first: 0, count: 2 });
    }
}
