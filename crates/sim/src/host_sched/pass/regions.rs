//! The regions of PASS (section 3.2): how the address space is divided.

use super::super::tunables::TunableKind;
use super::super::{HostKnowledge, Tunable};
use crate::error::SimError;
use planewise_model::units::SECTOR_BYTES;
use planewise_model::{Bytes, Lsn};

/// Shared with schedulers that know PASS's regions.
pub(in super::super) const REGION_SIZE: Tunable = Tunable {
    name: "region_size",
    unit: "bytes",
    summary: "bytes of a region, a multiple of the flash page: about what one package holds; smaller separates what can run in parallel, larger keeps batches full",
    kind: TunableKind::Size { default: "4g" },
};

/// Regions at most: each costs memory of its own.
const REGIONS_MAX: u64 = 65_536;

/// How the address space is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Regions {
    sectors: u64,
    count: u32,
    /// Bytes of the device, where a region was to be larger.
    larger_than: Option<Bytes>,
}

impl Regions {
    /// Regions of so many bytes; one, where that is more than the device has.
    ///
    /// # Errors
    /// A size of 0, not a multiple of the page, or one that makes more regions than there may be.
    pub(in super::super) fn new(
        host: &HostKnowledge,
        scheduler: &str,
        bytes: u64,
    ) -> Result<Regions, SimError> {
        let capacity = host.capacity_sectors * SECTOR_BYTES;
        let page = u64::from(host.page_bytes);
        let refused = |allowed| refused(scheduler, bytes, allowed);
        if bytes == 0 || !bytes.is_multiple_of(page) {
            return Err(refused(format!("a multiple of the page, {page} bytes, above 0")));
        }
        let sectors = bytes / SECTOR_BYTES;
        let count = host.capacity_sectors.div_ceil(sectors);
        if count > REGIONS_MAX {
            let least = capacity.div_ceil(REGIONS_MAX).next_multiple_of(page);
            return Err(refused(format!("{least} or more, so that there are at most {REGIONS_MAX} regions")));
        }
        let larger_than = (bytes > capacity).then_some(Bytes(capacity));
        Ok(Regions { sectors, count: count as u32, larger_than })
    }

    /// What has to be said of them beside the results.
    pub(in super::super) fn note(&self) -> Option<String> {
        let size = Bytes(self.sectors * SECTOR_BYTES);
        self.larger_than.map(|device| {
            format!(
                "region_size of {} bytes ({size}) is more than the device's {} ({device}): all of it is one region",
                size.0, device.0
            )
        })
    }

    pub(in super::super) fn count(&self) -> usize {
        self.count as usize
    }

    /// The region that a request belongs to: that of its first sector.
    #[inline]
    pub(in super::super) fn of(&self, start: Lsn) -> usize {
        (start.0 / self.sectors) as usize
    }
}

fn refused(scheduler: &str, bytes: u64, allowed: String) -> SimError {
    SimError::Option {
        key: format!("{scheduler}.region_size"),
        found: format!("{bytes} ({})", Bytes(bytes)),
        allowed,
    }
}
