//! What a device has been through before the first request: constructed, not simulated.

use super::{Mapping, Planes, Spread};
use crate::error::SimError;
use planewise_model::rng::{Generator, generator};
use planewise_model::{Geometry, Lpn, Ppn};
use rand::RngExt;
use std::fmt;
use std::str::FromStr;

/// A device condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// Never written. Reads of pages that nobody wrote return at once: there is nothing in flash to read.
    Fresh,
    /// Never written by this host, but pages that it reads before it writes them are in flash, where sequential filling puts
    /// them, and take no space: how the papers' simulator prepares a device for a trace.
    Primed,
    /// Every user page written once, in order: all spare blocks are free.
    Filled,
    /// In use for long: the given percentages of the raw pages are valid, invalid and free, scattered by a seeded permutation.
    Aged {
        /// Percent valid.
        valid: f64,
        /// Percent invalid.
        invalid: f64,
        /// Percent free, in whole blocks.
        free: f64,
    },
}

impl Condition {
    /// The aged device of the GC paper, section 5.1: 84 % valid, 10 % invalid, 6 % free.
    pub const AGED: Condition = Condition::Aged { valid: 84.0, invalid: 10.0, free: 6.0 };
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Fresh => write!(f, "fresh"),
            Condition::Primed => write!(f, "primed"),
            Condition::Filled => write!(f, "filled"),
            Condition::Aged { valid, invalid, free } => write!(f, "aged:{valid}/{invalid}/{free}"),
        }
    }
}

impl FromStr for Condition {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Condition, SimError> {
        let refused = |found: &str| {
            SimError::Option {
            key: "condition".into(),
            found: format!("'{found}'"),
            allowed: "fresh, primed, filled, aged, or aged:VALID/INVALID/FREE in percent that add up to 100, e.g. aged:84/10/6".into(),
        }
        };
        match text {
            "fresh" => return Ok(Condition::Fresh),
            "primed" => return Ok(Condition::Primed),
            "filled" => return Ok(Condition::Filled),
            "aged" => return Ok(Condition::AGED),
            _ => {}
        }
        let shares = text.strip_prefix("aged:").ok_or_else(|| refused(text))?;
        let shares: Vec<f64> = shares.split('/').filter_map(|share| share.trim().parse().ok()).collect();
        match shares[..] {
            [valid, invalid, free]
                if [valid, invalid, free].iter().all(|share| (0.0..=100.0).contains(share))
                    && ((valid + invalid + free) - 100.0).abs() < 1e-6 =>
            {
                Ok(Condition::Aged { valid, invalid, free })
            }
            _ => Err(refused(text)),
        }
    }
}

/// Puts a fresh flash array into a condition.
pub(crate) fn construct(
    condition: Condition,
    geometry: &Geometry,
    user_pages: u32,
    spread: Spread<'_>,
    planes: &mut Planes,
    seed: u64,
) -> Result<Mapping, SimError> {
    let stripe = spread.stripe;
    match condition {
        Condition::Fresh => Ok(Mapping::fresh(geometry, user_pages)),
        Condition::Primed => Ok(Mapping::primed(geometry, user_pages, spread)),
        Condition::Filled => {
            for plane in 0..geometry.planes() {
                let pages = match &spread.gangs {
                    Some(gangs) => gangs.pages_on(plane, user_pages),
                    None => user_pages / geometry.planes(),
                };
                planes.fill(plane, pages);
            }
            Ok(Mapping::filled(geometry, user_pages, spread))
        }
        Condition::Aged { valid, invalid, free } => {
            let shape = AgedPlane::new(condition, geometry, user_pages, [valid, invalid, free])?;
            let mut mapping = Mapping::fresh(geometry, user_pages);
            mapping.expect_full_use();
            let mut random = generator(seed, "aged device");
            if let Some(gangs) = &spread.gangs {
                let mut places = Vec::new();
                for plane in 0..geometry.planes() {
                    let shape = shape.on_plane_with(gangs.pages_on(plane, user_pages));
                    places.resize(shape.user_pages as usize, 0);
                    shape.deal(geometry, planes, plane, &mut random, &mut places, |ordinal, ppn| {
                        mapping.enter(Lpn(gangs.page(plane, ordinal) as u32), ppn);
                    });
                }
                return Ok(mapping);
            }
            let planes_in_all = stripe.len() as u32;
            let chunks = spread.chunks();
            // Pages of a stripe are neighbours in the map. Planes are dealt out a cache line of them at a time, each to an
            // array of its own, and then entered line by line: page by page, nearly every entry would miss the cache.
            let mut dealt = vec![vec![0u32; shape.user_pages as usize]; ENTRIES_PER_CACHE_LINE];
            for first in (0..stripe.len()).step_by(ENTRIES_PER_CACHE_LINE) {
                let group = &stripe[first..stripe.len().min(first + ENTRIES_PER_CACHE_LINE)];
                for (offset, (&plane, places)) in group.iter().zip(&mut dealt).enumerate() {
                    let position = (first + offset) as u32;
                    shape.deal(geometry, planes, plane, &mut random, places, |ordinal, ppn| {
                        mapping.note_copy(Lpn(chunks.page(position, ordinal)), ppn);
                    });
                    if chunks.pages > 1 {
                        for (ordinal, &place) in places.iter().enumerate() {
                            mapping.enter_place(Lpn(chunks.page(position, ordinal as u32)), place);
                        }
                    }
                }
                if chunks.pages == 1 {
                    mapping.enter_stripes(planes_in_all, first as u32, &dealt[..group.len()]);
                }
            }
            Ok(mapping)
        }
    }
}

/// Map entries of 4 bytes in a cache line of 64.
const ENTRIES_PER_CACHE_LINE: usize = 16;

/// The fullest aged condition in whole percent that a device with so many user pages on a plane can be in, with at least this much free.
fn such_as(geometry: &Geometry, user: u32, free: f64) -> String {
    let valid = (100.0 * f64::from(user) / f64::from(geometry.pages_per_plane())).floor();
    let least = (200.0 / f64::from(geometry.blocks_per_plane)).ceil();
    let free = free.max(least).ceil();
    let invalid = 100.0 - valid - free;
    if invalid < 0.0 { String::new() } else { format!(", such as aged:{valid}/{invalid}/{free}") }
}

/// Counts of one plane of an aged device.
struct AgedPlane {
    user_pages: u32,
    valid_pages: u32,
    used_blocks: u32,
}

impl AgedPlane {
    fn new(
        condition: Condition,
        geometry: &Geometry,
        user_pages: u32,
        [valid, invalid, free]: [f64; 3],
    ) -> Result<AgedPlane, SimError> {
        let problem = |problem: String| SimError::Condition { condition: condition.to_string(), problem };
        let shares = [valid, invalid, free];
        if !shares.iter().all(|share| (0.0..=100.0).contains(share))
            || (shares.iter().sum::<f64>() - 100.0).abs() > 1e-6
        {
            return Err(problem("the shares must be 0 to 100 percent and add up to 100".into()));
        }
        let pages = f64::from(geometry.pages_per_plane());
        let user = user_pages / geometry.planes();
        let valid_pages = (pages * valid / 100.0).round() as u32;
        if valid_pages > user {
            return Err(problem(format!(
                "{valid} % of the raw pages valid is more than the user space, {:.1} % of them; allowed: at most that{}",
                100.0 * f64::from(user) / pages,
                such_as(geometry, user, free)
            )));
        }
        let free_blocks = (f64::from(geometry.blocks_per_plane) * free / 100.0).round() as u32;
        if free_blocks < 2 {
            return Err(problem(format!(
                "{free} % free is {free_blocks} of the {} blocks of a plane; allowed: 2 or more, one to write to and one to collect into",
                geometry.blocks_per_plane
            )));
        }
        let used_blocks = geometry.blocks_per_plane.saturating_sub(free_blocks);
        if used_blocks * geometry.pages_per_block < valid_pages {
            return Err(problem(format!(
                "valid pages do not fit in the {used_blocks} of {} blocks of a plane that are not free",
                geometry.blocks_per_plane
            )));
        }
        Ok(AgedPlane { user_pages: user, valid_pages, used_blocks })
    }

    /// The same on a plane with other than the mean number of user pages: as many of them as there are can be valid.
    fn on_plane_with(&self, user_pages: u32) -> AgedPlane {
        AgedPlane { user_pages, valid_pages: self.valid_pages.min(user_pages), used_blocks: self.used_blocks }
    }

    /// Fills the used blocks of a plane. Tells `places`, by the ordinal of the plane's logical page, the physical page plus one
    /// (0 for pages not in flash), and `holds` both, in physical order.
    fn deal(
        &self,
        geometry: &Geometry,
        planes: &mut Planes,
        plane: u32,
        random: &mut Generator,
        places: &mut [u32],
        mut holds: impl FnMut(u32, Ppn),
    ) {
        // A seeded permutation of the plane's logical pages; the first `valid` of them are in flash.
        let mut ordinals: Vec<u32> = (0..self.user_pages).collect();
        for i in 0..self.valid_pages as usize {
            let other = random.random_range(i as u32..self.user_pages);
            ordinals.swap(i, other as usize);
        }
        places.fill(0);
        let mut owners = ordinals[..self.valid_pages as usize].iter();
        let mut slots_left = self.used_blocks * geometry.pages_per_block;
        for _ in 0..self.used_blocks {
            // Selection sampling (Knuth, algorithm S): exactly `valid_pages` of the slots, each subset equally likely.
            let before = owners.len();
            let block = planes.block_to_fill(plane);
            let first = planes.first_page(plane, block).0;
            for page in 0..geometry.pages_per_block {
                if random.random_range(0..slots_left) < owners.len() as u32
                    && let Some(&ordinal) = owners.next()
                {
                    places[ordinal as usize] = first + page + 1;
                    holds(ordinal, Ppn(first + page));
                }
                slots_left -= 1;
            }
            planes.fill_block(plane, (before - owners.len()) as u16);
        }
    }
}
