//! What the kernel modules are told of a drive, as their parameters (kernel/README.md): so that a host scheduler in the kernel believes of a
//! drive what the simulator's believes.

use crate::alloc::region;
use crate::config::{RunConfig, UnitLevel};
use crate::error::SimError;
use planewise_model::Geometry;
use planewise_model::geometry::AllocationOrder;
use std::fmt;

/// Parallel units that a module takes at most (`PLANEWISE_UNITS_MAX` of `kernel/core/core.h`).
pub const UNITS_MAX: u32 = 1024;
/// Planes that it takes at most, where it goes by their order.
pub const PLANES_MAX: u32 = 65_536;

/// Parameters of a module, written as `channels=8 chips_per_channel=4 …`: on the command line of `modprobe`, in `/etc/modprobe.d`, or behind the
/// name of a disk in `/sys/module/planewise_piq/parameters/drive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParameters {
    channels: u32,
    chips_per_channel: u32,
    dies_per_chip: u32,
    planes_per_die: u32,
    chunk_bytes: u32,
    level: UnitLevel,
    order: AllocationOrder,
    /// Bytes of the regions that chips take in turn; 0 where data are striped.
    chip_region_bytes: u64,
    writes_stay: bool,
}

impl KernelParameters {
    /// A drive of so many units that consecutive chunks visit in turn: all that is known of one from outside.
    ///
    /// # Errors
    /// More units than a module takes, or none; a chunk that is no whole sectors, or larger than 1 GiB.
    pub fn units(units: u32, chunk_bytes: u32, writes_stay: bool) -> Result<KernelParameters, SimError> {
        KernelParameters {
            channels: units,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            chunk_bytes,
            level: UnitLevel::Chip,
            order: AllocationOrder::CWDP,
            chip_region_bytes: 0,
            writes_stay,
        }
        .checked()
    }

    /// What the simulator's host schedulers are told in a run.
    ///
    /// # Errors
    /// A drive that no module can be told of: too many units or planes; an allocation that the device cannot have.
    pub fn of(config: &RunConfig) -> Result<KernelParameters, SimError> {
        let mapped = &config.profile.mapped();
        let (profile, user_pages) = (&mapped.profile, mapped.user_pages);
        let Geometry { channels, chips_per_channel, dies_per_chip, planes_per_die, page_bytes, .. } =
            profile.geometry;
        let allocation = profile.translation.allocation.as_str();
        let order = allocation.parse::<AllocationOrder>();
        let writes_stay = order.is_ok();
        let chunk_bytes = page_bytes.saturating_mul(profile.translation.chunk_pages);
        if let Some(units) = config.told_units {
            return KernelParameters::units(units, chunk_bytes, writes_stay);
        }
        let gangs = region::gangs(allocation, &profile.geometry, user_pages)?;
        KernelParameters {
            channels,
            chips_per_channel,
            dies_per_chip,
            planes_per_die,
            // Regions go round their planes page by page.
            chunk_bytes: if gangs.is_some() { page_bytes } else { chunk_bytes },
            level: config.level,
            order: order.unwrap_or_default(),
            chip_region_bytes: gangs.map_or(0, |gangs| u64::from(gangs.region_pages) * u64::from(page_bytes)),
            writes_stay,
        }
        .checked()
    }

    fn checked(self) -> Result<KernelParameters, SimError> {
        let refuse = |key: &str, found: u64, allowed: String| SimError::Option {
            key: format!("kernel parameters: {key}"),
            found: found.to_string(),
            allowed,
        };
        let sizes = [self.channels, self.chips_per_channel, self.dies_per_chip, self.planes_per_die];
        let planes = sizes.iter().fold(1u64, |all, &size| all.saturating_mul(size.into()));
        let units = match self.level {
            UnitLevel::Chip => u64::from(self.channels).saturating_mul(self.chips_per_channel.into()),
            UnitLevel::Plane => planes,
        };
        if units == 0 || units > u64::from(UNITS_MAX) {
            return Err(refuse("units", units, format!("1 to {UNITS_MAX}")));
        }
        if planes > u64::from(PLANES_MAX) {
            return Err(refuse("planes", planes, format!("1 to {PLANES_MAX}")));
        }
        if self.chunk_bytes == 0 || !self.chunk_bytes.is_multiple_of(512) || self.chunk_bytes > 1 << 30 {
            return Err(refuse(
                "chunk_bytes",
                self.chunk_bytes.into(),
                "a multiple of 512 up to 1 GiB".into(),
            ));
        }
        Ok(self)
    }
}

impl fmt::Display for KernelParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "channels={} chips_per_channel={} dies_per_chip={} planes_per_die={} chunk_bytes={} level={} order={} chip_region_bytes={} writes_stay={}",
            self.channels,
            self.chips_per_channel,
            self.dies_per_chip,
            self.planes_per_die,
            self.chunk_bytes,
            self.level,
            self.order,
            self.chip_region_bytes,
            if self.writes_stay { "y" } else { "n" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::Profile;

    #[test]
    fn every_embedded_profile_is_told_with_the_units_that_the_simulator_counts() {
        for name in ["ssd1", "piq-128g", "tlc-nvme-1t"] {
            for level in [UnitLevel::Chip, UnitLevel::Plane] {
                let config = RunConfig { level, ..RunConfig::new(Profile::embedded(name).unwrap()) };
                let told = KernelParameters::of(&config).unwrap();
                let units = config.host_knowledge().unwrap().units.units();
                let chips = told.channels * told.chips_per_channel;
                let planes = chips * told.dies_per_chip * told.planes_per_die;
                assert_eq!(if level == UnitLevel::Chip { chips } else { planes }, units, "{name}");
            }
        }
    }

    #[test]
    fn what_no_module_takes_is_refused() {
        assert!(KernelParameters::units(0, 4096, true).is_err());
        assert!(KernelParameters::units(1025, 4096, true).is_err());
        assert!(KernelParameters::units(8, 4095, true).is_err());
        assert!(KernelParameters::units(8, 1 << 31, true).is_err());
        let good = KernelParameters::units(8, 16_384, false).unwrap().to_string();
        assert_eq!(
            good,
            "channels=8 chips_per_channel=1 dies_per_chip=1 planes_per_die=1 chunk_bytes=16384 level=chip order=cwdp chip_region_bytes=0 writes_stay=n"
        );
    }
}
