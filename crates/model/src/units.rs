//! Units in types: no bare integer crosses a module boundary.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Size of a logical sector. Trace formats and location vectors count in these (docs/architecture.md, "What the words mean").
pub const SECTOR_BYTES: u64 = 512;

/// A point in model time, or a span of it, in nanoseconds.
///
/// 64 bits hold 584 years, which also covers the absolute Windows file times of MSR traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// The beginning of model time.
    pub const ZERO: Ns = Ns(0);
    /// The end of model time: "never".
    pub const MAX: Ns = Ns(u64::MAX);

    /// A span of whole microseconds.
    pub const fn from_micros(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// The span as seconds, for reports only: the model itself counts in integers.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero when `other` is later.
    pub const fn saturating_sub(self, other: Ns) -> Ns {
        Ns(self.0.saturating_sub(other.0))
    }
}

impl Add for Ns {
    type Output = Ns;
    #[inline]
    fn add(self, other: Ns) -> Ns {
        Ns(self.0 + other.0)
    }
}

impl AddAssign for Ns {
    #[inline]
    fn add_assign(&mut self, other: Ns) {
        self.0 += other.0;
    }
}

impl Sub for Ns {
    type Output = Ns;
    #[inline]
    fn sub(self, other: Ns) -> Ns {
        Ns(self.0 - other.0)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        match n {
            0..1_000 => write!(f, "{n} ns"),
            1_000..1_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", n as f64 / 1e6),
            _ => write!(f, "{:.2} s", n as f64 / 1e9),
        }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 { write!(f, "{} B", self.0) } else { write!(f, "{value:.1} {}", UNITS[unit]) }
    }
}

/// A logical sector number: counts [`SECTOR_BYTES`] from the start of the device ("LSN" in the papers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lsn(pub u64);

/// A logical page number: counts flash pages from the start of the user space.
///
/// 32 bits reach 16 TiB with 4 KiB pages and keep the mapping tables small (docs/architecture.md, "Why it is fast").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// A physical page number: plane-major, then block, then page inside the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_the_unit_a_reader_expects() {
        assert_eq!(Ns(999).to_string(), "999 ns");
        assert_eq!(Ns::from_micros(640).to_string(), "640.0 us");
        assert_eq!(Ns::from_millis(1282).to_string(), "1.28 s");
        assert_eq!(Bytes(4096).to_string(), "4.0 KiB");
    }
}
