//! What a profile may say about the controller beyond the flash: host link, processor, regions, write buffer, read-ahead. Each
//! section is optional; without it the part takes no time, or is not there.

use super::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest time that any one step of the controller may take: a second.
const LONGEST_NS: u64 = 1_000_000_000;

/// The link between host and device: one command or one request's data at a time, first come, first served; in either way at a time where
/// it is full duplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Payload rate in 10^6 bytes a second, 1 to 1000000: what is left of the line rate after coding and frames.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub mb_per_s: u32,
    /// Link time of each command with its set-up and status frames, ns, 0 to a second.
    pub command_ns: u64,
    /// The ways to and from the device are apart, as on PCIe: data of reads do not wait for commands and data of writes, nor these for
    /// them. SATA is half duplex, the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full_duplex: bool,
    /// Time that each command spends in the host's driver and adapter, and its completion in interrupt and wake-up, while it occupies
    /// neither link nor processor, ns, 0 to a second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub latency_ns: u64,
}

/// Whether a time is 0, and need not be written.
fn is_zero(time: &u64) -> bool {
    *time == 0
}

/// The controller's processor: one, working off its tasks first come, first served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Time for each command of the host: decoding, tags, host buffers, ns, 0 to a second.
    pub command_ns: u64,
    /// Time to put one flash operation together and start it: map look-up, buffer, error correction and descriptor, ns, 0 to a second.
    pub operation_ns: u64,
    /// The same for each further page of a run of consecutive pages, which share look-up and descriptor, ns, 0 to a second.
    pub run_page_ns: u64,
    /// Time to enter where a page, or a run of consecutive pages, is written in the map and its log, ns, 0 to a second.
    pub update_ns: u64,
    /// Time to turn from commands of one direction to one of the other, ns, 0 to a second: a data path that carries one direction at a
    /// time has its transfers ended and its buffer segments and descriptors set up anew.
    pub turn_ns: u64,
    /// A command is not taken in before all those of the other direction that were taken in are complete: the data path carries one
    /// direction at a time, and is emptied before it turns. Off where a profile does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drains_to_turn: bool,
    /// Time to look at one entry of the list of outstanding operations that the next one is chosen from, ns, 0 to a second.
    pub scan_ns: u64,
    /// Entries of that list that are looked at, at most; the list is the region's where there are regions, else the chip's or die's.
    pub scan_entries: u32,
}

/// Parts of the logical space that the firmware works on separately: each has one context (its segment of the map, its buffers),
/// and only so many flash operations of the host under way at a time. Runs of read-ahead and write-back have buffers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    /// Size of a region, MiB, at least 1.
    #[schemars(range(min = 1))]
    pub mib: u32,
    /// Operations of host requests under way in a region at a time, at least 1.
    #[schemars(range(min = 1))]
    pub operations: u32,
}

/// The buffer that host writes go to: a write is complete when its pages are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Pages that it holds, at least 1.
    #[schemars(range(min = 1))]
    pub pages: u32,
    /// Share of its pages that wait to be written back above which write-back begins, 0 to below 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub watermark: f64,
    /// Pages that are written back together, at least 1: those of the aligned group of so many consecutive pages that the oldest is in or,
    /// with `entry_order`, the oldest so many.
    #[schemars(range(min = 1))]
    pub run_pages: u32,
    /// Pages go back in the order in which they came in, whatever their addresses: firmware that maps by the order of writes (Chen et
    /// al. 2016, section 5.4). Off where a profile does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub entry_order: bool,
    /// Pages on their way back to flash below which the next run begins, at least 1. A run goes as a whole: up to a run less one page more
    /// can be on their way.
    #[schemars(range(min = 1))]
    pub in_flight_pages: u32,
    /// A capacitor keeps what the buffer holds from a loss of power: a flush has nothing to do, nor has forced unit access. Without, both
    /// wait until the pages are in flash. On where a profile does not name it.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub power_loss_protection: bool,
}

fn yes() -> bool {
    true
}

/// Read-ahead: the following pages of sequential reads are read into a buffer before they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAhead {
    /// Sequential streams that are told apart, at least 1. A read that begins farther than the window from where each of them ended
    /// takes the place of the one idle longest.
    #[schemars(range(min = 1))]
    pub streams: u32,
    /// Reads in sequence, in order or nearly, that make a stream, at least 2.
    #[schemars(range(min = 2))]
    pub trigger: u32,
    /// Pages that are read ahead of a stream, at most, as long as they are used; at least 1.
    #[schemars(range(min = 1))]
    pub window_pages: u32,
    /// Pages that are asked for together, 1 to the window.
    #[schemars(range(min = 1))]
    pub run_pages: u32,
    /// Pages of the buffer, at least the window.
    #[schemars(range(min = 1))]
    pub buffer_pages: u32,
    /// A write of the host ends all streams and discards what was read ahead: firmware that has one data buffer, and uses it in one
    /// direction at a time.
    pub dropped_by_writes: bool,
}

/// Refuses a count that is not in the range.
fn count(key: &'static str, found: u32, least: u32, most: u32) -> Result<(), Problem> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err((key, format!("found {found}; allowed: {least} to {most}")))
}

/// Refuses a time longer than the longest.
fn time(key: &'static str, found: u64) -> Result<(), Problem> {
    if found <= LONGEST_NS {
        return Ok(());
    }
    Err((key, format!("found {found}; allowed: 0 to {LONGEST_NS} ns")))
}

/// Pages that a buffer of the controller may have, at most.
const MOST_BUFFER_PAGES: u32 = 1 << 24;

impl Link {
    pub(super) fn check(&self) -> Result<(), Problem> {
        count("link.mb_per_s", self.mb_per_s, 1, 1_000_000)?;
        time("link.command_ns", self.command_ns)?;
        time("link.latency_ns", self.latency_ns)
    }

    /// Link time of a number of bytes, rounded to the nearest nanosecond.
    #[inline]
    pub fn transfer(&self, bytes: u64) -> crate::Ns {
        let rate = u64::from(self.mb_per_s);
        crate::Ns((bytes * 1000 + rate / 2) / rate)
    }
}

impl Processor {
    pub(super) fn check(&self) -> Result<(), Problem> {
        time("processor.command_ns", self.command_ns)?;
        time("processor.operation_ns", self.operation_ns)?;
        time("processor.run_page_ns", self.run_page_ns)?;
        time("processor.update_ns", self.update_ns)?;
        time("processor.turn_ns", self.turn_ns)?;
        time("processor.scan_ns", self.scan_ns)
    }
}

impl Regions {
    pub(super) fn check(&self) -> Result<(), Problem> {
        count("regions.mib", self.mib, 1, u32::MAX)?;
        count("regions.operations", self.operations, 1, u32::MAX)
    }
}

impl WriteBuffer {
    pub(super) fn check(&self) -> Result<(), Problem> {
        count("write_buffer.pages", self.pages, 1, MOST_BUFFER_PAGES)?;
        if !(0.0..1.0).contains(&self.watermark) {
            return Err((
                "write_buffer.watermark",
                format!("found {}; allowed: 0 to below 1", self.watermark),
            ));
        }
        count("write_buffer.run_pages", self.run_pages, 1, MOST_BUFFER_PAGES)?;
        count("write_buffer.in_flight_pages", self.in_flight_pages, 1, MOST_BUFFER_PAGES)
    }
}

impl ReadAhead {
    pub(super) fn check(&self) -> Result<(), Problem> {
        count("read_ahead.streams", self.streams, 1, 4096)?;
        count("read_ahead.trigger", self.trigger, 2, 4096)?;
        count("read_ahead.buffer_pages", self.buffer_pages, 1, MOST_BUFFER_PAGES)?;
        count("read_ahead.window_pages", self.window_pages, 1, self.buffer_pages)?;
        count("read_ahead.run_pages", self.run_pages, 1, self.window_pages)
    }
}
