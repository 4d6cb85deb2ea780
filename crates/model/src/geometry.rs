//! How many of everything a device has, and in which order static allocation walks through it.

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The shape of a flash array.
///
/// Planes are numbered channel-major: `((channel * chips + chip) * dies + die) * planes + plane`, so that the planes of
/// a die, the dies of a chip and the chips of a channel are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Independent buses between controller and flash, at least 1.
    #[schemars(range(min = 1))]
    pub channels: u32,
    /// Chips (packages, "ways") on each channel, at least 1.
    #[schemars(range(min = 1))]
    pub chips_per_channel: u32,
    /// Dies in each chip, at least 1.
    #[schemars(range(min = 1))]
    pub dies_per_chip: u32,
    /// Planes in each die, at least 1.
    #[schemars(range(min = 1))]
    pub planes_per_die: u32,
    /// Erase blocks in each plane, at least 3 (one being written, one to collect into, one to collect).
    #[schemars(range(min = 3))]
    pub blocks_per_plane: u32,
    /// Pages in each block, 1 to 65534. Need not be a power of two (TLC blocks are not).
    #[schemars(range(min = 1, max = 65534))]
    pub pages_per_block: u32,
    /// Data bytes of a page: a multiple of 512.
    #[schemars(range(min = 512))]
    pub page_bytes: u32,
}

impl Geometry {
    /// Chips in the device.
    pub const fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// Dies in the device.
    pub const fn dies(&self) -> u32 {
        self.chips() * self.dies_per_chip
    }

    /// Planes in the device.
    pub const fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Blocks in the device.
    pub const fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane
    }

    /// Pages of one plane.
    pub const fn pages_per_plane(&self) -> u32 {
        self.blocks_per_plane * self.pages_per_block
    }

    /// Pages in the device.
    pub const fn pages(&self) -> u32 {
        self.planes() * self.pages_per_plane()
    }

    /// Raw capacity, over-provisioned space included.
    pub const fn capacity(&self) -> Bytes {
        Bytes(self.pages() as u64 * self.page_bytes as u64)
    }

    /// Sectors of 512 bytes in one page.
    pub const fn sectors_per_page(&self) -> u32 {
        self.page_bytes / 512
    }

    /// Checks every count on its own and their product.
    ///
    /// # Errors
    /// The key at fault as `(key, what is wrong with it)`.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let counts = [
            ("channels", self.channels, 1, 4096),
            ("chips_per_channel", self.chips_per_channel, 1, 4096),
            ("dies_per_chip", self.dies_per_chip, 1, 4096),
            ("planes_per_die", self.planes_per_die, 1, 4096),
            ("blocks_per_plane", self.blocks_per_plane, 3, 1 << 24),
            ("pages_per_block", self.pages_per_block, 1, 65_534),
            ("page_bytes", self.page_bytes, 512, 1 << 20),
        ];
        for (key, value, min, max) in counts {
            if value < min || value > max {
                return Err((key, format!("found {value}; allowed: {min} to {max}")));
            }
        }
        if !self.page_bytes.is_multiple_of(512) {
            return Err(("page_bytes", format!("found {}; allowed: a multiple of 512", self.page_bytes)));
        }
        let planes = [self.channels, self.chips_per_channel, self.dies_per_chip, self.planes_per_die]
            .iter()
            .try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
        match planes {
            Some(n) if n <= MAX_PLANES => {}
            _ => {
                return Err((
                    "geometry",
                    format!(
                        "channels x chips x dies x planes is too large; allowed: up to {MAX_PLANES} planes"
                    ),
                ));
            }
        }
        let pages = planes
            .unwrap_or(u64::MAX)
            .checked_mul(u64::from(self.blocks_per_plane) * u64::from(self.pages_per_block));
        match pages {
            Some(n) if n <= MAX_PAGES => Ok(()),
            _ => Err((
                "geometry",
                format!(
                    "channels x chips x dies x planes x blocks x pages overflows the 32-bit page number; allowed: up to {MAX_PAGES} pages"
                ),
            )),
        }
    }
}

/// Most planes a device may have: the flash array keeps one small record each.
const MAX_PLANES: u64 = 1 << 16;
/// Most pages a device may have: page numbers are 32 bits and two values are kept for "none" and "initial".
pub(crate) const MAX_PAGES: u64 = u32::MAX as u64 - 2;

/// One of the four levels of parallelism inside a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// `c`
    Channel,
    /// `w`, as "way"
    Chip,
    /// `d`
    Die,
    /// `p`
    Plane,
}

impl Level {
    /// All levels, from the controller inwards.
    pub const ALL: [Level; 4] = [Level::Channel, Level::Chip, Level::Die, Level::Plane];

    const fn letter(self) -> char {
        match self {
            Level::Channel => 'c',
            Level::Chip => 'w',
            Level::Die => 'd',
            Level::Plane => 'p',
        }
    }
}

/// The order in which consecutive pages are spread over the levels: the first level varies fastest.
///
/// All 24 permutations are allowed. Written as four letters; the default `cwdp` is Channel-Chip-Die-Plane, the order of
/// both PIQ papers (Hu et al., ICS'11, study all of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocationOrder([Level; 4]);

impl AllocationOrder {
    /// Channel-Chip-Die-Plane.
    pub const CWDP: AllocationOrder = AllocationOrder(Level::ALL);

    /// All 24 orders, sorted by name.
    pub fn all() -> Vec<AllocationOrder> {
        let mut orders = Vec::with_capacity(24);
        for a in Level::ALL {
            for b in Level::ALL {
                for c in Level::ALL {
                    for d in Level::ALL {
                        if a != b && a != c && a != d && b != c && b != d && c != d {
                            orders.push(AllocationOrder([a, b, c, d]));
                        }
                    }
                }
            }
        }
        orders.sort_by_key(AllocationOrder::to_string);
        orders
    }

    /// The levels, fastest-varying first.
    pub const fn levels(&self) -> [Level; 4] {
        self.0
    }

    /// The plane of each page of one stripe: element `i` is the plane number of every page `p` with `p % planes == i`.
    pub fn stripe(&self, geometry: &Geometry) -> Vec<u32> {
        (0..geometry.planes()).map(|index| self.plane_of(index, geometry)).collect()
    }

    fn plane_of(&self, mut index: u32, geometry: &Geometry) -> u32 {
        let mut digit = [0u32; 4];
        for level in self.0 {
            let radix = match level {
                Level::Channel => geometry.channels,
                Level::Chip => geometry.chips_per_channel,
                Level::Die => geometry.dies_per_chip,
                Level::Plane => geometry.planes_per_die,
            };
            digit[level as usize] = index % radix;
            index /= radix;
        }
        let [channel, chip, die, plane] = digit;
        ((channel * geometry.chips_per_channel + chip) * geometry.dies_per_chip + die)
            * geometry.planes_per_die
            + plane
    }
}

impl Default for AllocationOrder {
    fn default() -> Self {
        AllocationOrder::CWDP
    }
}

impl fmt::Display for AllocationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|level| write!(f, "{}", level.letter()))
    }
}

impl FromStr for AllocationOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        AllocationOrder::all().into_iter().find(|order| order.to_string() == text).ok_or_else(|| {
            format!("found '{text}'; allowed: the letters c (channel), w (chip), d (die), p (plane) in any order, e.g. cwdp")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry {
        channels: 2,
        chips_per_channel: 3,
        dies_per_chip: 2,
        planes_per_die: 2,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 4096,
    };

    #[test]
    fn there_are_24_orders_and_each_reads_back_from_its_name() {
        let all = AllocationOrder::all();
        assert_eq!(all.len(), 24);
        for order in all {
            assert_eq!(order.to_string().parse::<AllocationOrder>(), Ok(order));
        }
        assert!("cwdd".parse::<AllocationOrder>().is_err());
    }

    #[test]
    fn every_order_visits_every_plane_once_per_stripe() {
        for order in AllocationOrder::all() {
            let mut stripe = order.stripe(&SMALL);
            stripe.sort_unstable();
            assert_eq!(stripe, (0..SMALL.planes()).collect::<Vec<_>>(), "{order}");
        }
    }

    #[test]
    fn cwdp_follows_the_formula_of_the_design() {
        let stripe = AllocationOrder::CWDP.stripe(&SMALL);
        for (p, &plane) in stripe.iter().enumerate() {
            let p = p as u32;
            let (channel, chip, die, inner) = (p % 2, p / 2 % 3, p / 6 % 2, p / 12 % 2);
            assert_eq!(plane, ((channel * 3 + chip) * 2 + die) * 2 + inner);
        }
    }

    #[test]
    fn a_geometry_whose_product_overflows_is_refused_by_name() {
        let huge = Geometry { blocks_per_plane: 1 << 24, pages_per_block: 65_534, ..SMALL };
        assert_eq!(huge.check().unwrap_err().0, "geometry");
        assert_eq!(Geometry { page_bytes: 1000, ..SMALL }.check().unwrap_err().0, "page_bytes");
        assert_eq!(Geometry { channels: 0, ..SMALL }.check().unwrap_err().0, "channels");
        assert!(SMALL.check().is_ok());
    }
}
