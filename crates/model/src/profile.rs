//! Device profiles: everything that makes one SSD differ from another, as TOML.
//!
//! A profile is data: the same file describes a published device, a probed drive or a what-if. Policies are named here
//! and looked up by the simulator, so that this crate stays free of behaviour.

pub mod changes;
mod controller;
mod layout;

pub use controller::{Link, Processor, ReadAhead, Regions, WriteBuffer};
pub use layout::{Layout, Mapped, SlcCache};

use crate::config::{self, ConfigError};
use crate::geometry::{Geometry, MAX_PAGES};
use crate::names;
use crate::units::{Bytes, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A complete device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name results carry.
    pub name: String,
    /// One line: what the device is.
    pub description: String,
    /// Where each number comes from, and what had to be assumed.
    pub source: String,
    /// Channels, chips, dies, planes, blocks, pages.
    pub geometry: Geometry,
    /// Latencies and bus speed.
    pub timing: Timing,
    /// Which commands beyond one operation per chip the flash offers.
    pub advanced_commands: AdvancedCommands,
    /// Translation layer: spare space and policies.
    pub translation: Translation,
    /// Garbage collection.
    pub collection: Collection,
    /// The device's interface to the host.
    pub interface: Interface,
    /// The link to the host; none: commands and data cross in no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// The controller's processor; none: it takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Processor>,
    /// Regions of the logical space with a limit of their own; none: there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
    /// The write buffer; none: a write waits for its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_buffer: Option<WriteBuffer>,
    /// Read-ahead; none: every read waits for its array reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAhead>,
    /// A part of the flash with one bit a cell; none: all blocks are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
}

/// What is wrong with a profile: the key, and what was found and is allowed.
type Problem = (&'static str, String);

/// A latency that may depend on the page type inside a block: one number, or one per type (LSB, MSB for MLC;
/// LSB, CSB, MSB for TLC). Page `i` of a block is of type `i % types`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected nanoseconds as a whole number, or a list of them by page type")]
pub enum PageLatency {
    /// The same for all pages, ns.
    Uniform(u64),
    /// One per page type, ns, in page order.
    PerType(Vec<u64>),
}

impl PageLatency {
    /// The latency of a page by its index inside the block.
    #[inline]
    pub fn of_page(&self, page_in_block: u32) -> Ns {
        match self {
            PageLatency::Uniform(ns) => Ns(*ns),
            PageLatency::PerType(types) => Ns(types[page_in_block as usize % types.len()]),
        }
    }

    /// The mean over a block's page types, rounded to the nearest nanosecond.
    pub fn mean(&self) -> Ns {
        let values = self.values();
        let (sum, types) = (values.iter().sum::<u64>(), values.len().max(1) as u64);
        Ns((sum + types / 2) / types)
    }

    fn values(&self) -> &[u64] {
        match self {
            PageLatency::Uniform(ns) => std::slice::from_ref(ns),
            PageLatency::PerType(types) => types,
        }
    }
}

/// Latencies of the flash and speed of its bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Command and address cycles on the channel before each operation, ns (tCMD).
    pub command_ns: u64,
    /// Array read, cell to register, ns (tR).
    pub read_ns: PageLatency,
    /// Array program, register to cell, ns (tPROG).
    pub program_ns: PageLatency,
    /// Pages of a plane that one program writes, 1 to 16: the pages of a word line of cells with several bits, where those are programmed in one
    /// pass. `program_ns` is the time of all of them then. 1 where a profile does not name it.
    #[serde(default = "one_page", skip_serializing_if = "is_one_page")]
    #[schemars(range(min = 1, max = 16))]
    pub program_pages: u32,
    /// Block erase, ns (tBERS).
    pub erase_ns: u64,
    /// Channel time to move one byte, **pico**seconds: 10000 is the 10 ns a byte of the GC paper, 833 an ONFI 1200 MT/s bus.
    pub transfer_ps_per_byte: u64,
    /// A read moves the whole page over the channel, whatever part of it was asked for: error correction covers the page as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_page_reads: bool,
    /// Standard deviation of array times (read, program, erase) as a share of the nominal ones, 0 to 0.5: each operation takes its latency
    /// times 1 + variation x N(0, 1), cut off at three deviations and never below 0. 0, the default: latencies are constants.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0.0, max = 0.5))]
    pub variation: f64,
}

/// Whether a share is 0, and need not be written.
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Timing {
    /// Channel time of a transfer, rounded to the nearest nanosecond.
    #[inline]
    pub fn transfer(&self, bytes: u32) -> Ns {
        Ns((u64::from(bytes) * self.transfer_ps_per_byte + 500) / 1000)
    }
}

/// Commands that reach below the chip. Hosts cannot see or steer them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdvancedCommands {
    /// Dies of a chip work at the same time; without it a chip runs one operation at a time.
    pub die_interleave: bool,
    /// Planes of a die run the same operation together, at the same page offset.
    pub multi_plane: bool,
    /// Multi-plane operations also need the same block offset in every plane.
    pub multi_plane_same_block: bool,
    /// Garbage collection moves pages inside a plane through its register, without the channel.
    pub copyback: bool,
    /// Copyback only between pages whose offsets have the same parity (an even page stays on an even page).
    pub copyback_same_parity: bool,
    /// Read cache: planes have a cache register beside the data register, and the array reads the next page while the last one is
    /// transferred out (ONFI 31h; Chen et al. 2016, section 6.2). Off where a profile does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_read: bool,
    /// Program cache: the next page is transferred into the cache register while the array programs the last one (ONFI 15h). Off where a
    /// profile does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_program: bool,
}

impl AdvancedCommands {
    /// None of them: the chip is the smallest parallel unit.
    pub const NONE: AdvancedCommands = AdvancedCommands {
        die_interleave: false,
        multi_plane: false,
        multi_plane_same_block: false,
        copyback: false,
        copyback_same_parity: false,
        cache_read: false,
        cache_program: false,
    };
}

/// Flash translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Share of the raw capacity that the host does not see, 0 to 0.9.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub over_provisioning: f64,
    /// `cwdp` or another static order, `dynamic`, or `write-order`.
    pub allocation: String,
    /// Consecutive pages that one plane gets before the next has its turn, 1 to 1024; with a static order or, counted in the order in which they are
    /// written, `write-order`. 1 where a profile does not name it. (What Chen et al. 2016, section 5, call the chunk is this in bytes.)
    #[serde(default = "one_page", skip_serializing_if = "is_one_page")]
    #[schemars(range(min = 1, max = 1024))]
    pub chunk_pages: u32,
    /// Wear levelling policy: `none`, `dynamic`, or `static:N`, which moves cold data when erase counts of a plane differ by more than N.
    pub wear_levelling: String,
    /// Writes of a part of a page (of a mapping unit, where that is smaller) first read the rest of it, as a page-mapped device must.
    pub read_modify_write: bool,
    /// Bytes of the unit of mapping where it is smaller than the page: 4096 in pages of 16 KiB. Units that are written together share a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 512))]
    pub unit_bytes: Option<u32>,
    /// Blocks at the same place in all planes of a die are one: read, programmed, collected and erased by multi-plane commands. Off where a
    /// profile does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superblocks: bool,
    /// One program in so many holds parity over the others (RAIN): space and programs that the host does not see. 0, where a profile does not name
    /// it: none.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub parity_one_in: u32,
}

/// Most pages of a chunk: 4 to 16 MiB of the usual pages.
const MOST_CHUNK_PAGES: u32 = 1024;

fn one_page() -> u32 {
    1
}

/// Whether a count is 0, and need not be written.
fn is_nothing(count: &u32) -> bool {
    *count == 0
}

/// Whether it is single pages, which need not be written.
fn is_one_page(pages: &u32) -> bool {
    *pages == 1
}

/// Garbage collection: which scheme, which victims, and what they have to work with. Shares are of the pages of a plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Scheme: `traditional`, `preemptive`, `paced`, `dpr`, `idle_chip`, `yielding`, or the bound `gc_free`.
    pub scheme: String,
    /// Victim selection: `greedy`, `cost-benefit`, `d-choices:D` or `fifo`.
    pub victims: String,
    /// A plane is collected when its share of free pages falls below this, 0 to 0.5.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub threshold: f64,
    /// Share of free pages below which no scheme lets the host in between two steps of a collection, 0 to the threshold.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub floor: f64,
    /// Share of free pages up to which `yielding` collects ahead, in idle time; from the threshold to 0.5.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub ahead: f64,
    /// Host and collection write to blocks of their own instead of sharing a plane's active block.
    pub hot_cold_separation: bool,
    /// Which collections of `idle_chip` send their pages through the valid page buffer.
    pub streams: StreamRule,
    /// Pages of the controller's valid page buffer, for schemes that have one (`idle_chip`, `yielding`).
    pub buffer_pages: u32,
    /// Time to read one page from that buffer, ns: for the flush after a power loss (formula (1) of the GC paper).
    pub buffer_read_ns: u64,
    /// Replicas of pages that `dpr` keeps at a time.
    pub replica_pages: u32,
    /// Time that a die needs to suspend a program or an erase for a read, and again to resume it, ns; for `yielding`.
    pub suspend_ns: u64,
    /// What the steps of a move hold: the `chip` alone, where a profile does not name it, or its `channel` too, while the array works.
    #[serde(default, skip_serializing_if = "Holds::is_chip")]
    pub holds: Holds,
    /// When pages leave the valid page buffer for flash: `between` two issues too, to chips that no waiting request needs (GC paper, section 4.2.2 and
    /// figure 5), or `empty`: only while no request waits in the I/O queue (algorithm 1).
    #[serde(default)]
    pub write_backs: WriteBackRule,
    /// Share of the chips (dies, where they interleave) that take pages from that buffer at a time, 0 to 1; one may always.
    #[serde(default = "write_back_chips")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub write_back_chips: f64,
    /// Share of the buffer, 0 to 1: while it holds more pages, they go to idle chips whoever waits.
    #[serde(default = "write_back_watermark")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub write_back_watermark: f64,
    /// A page that has been in line for so long goes before the host to the next chip that ends an operation, ns.
    #[serde(default = "write_back_within_ns")]
    pub write_back_within_ns: u64,
}

fn write_back_chips() -> f64 {
    0.25
}

fn write_back_watermark() -> f64 {
    0.5
}

fn write_back_within_ns() -> u64 {
    100_000_000
}

impl Default for Collection {
    /// The traditional scheme as the GC paper has it (Table I and section 5.1), with the buffer of its own scheme.
    fn default() -> Collection {
        Collection {
            scheme: "traditional".into(),
            victims: "greedy".into(),
            threshold: 0.05,
            floor: 0.0,
            ahead: 0.06,
            hot_cold_separation: false,
            streams: StreamRule::All,
            buffer_pages: 128,
            buffer_read_ns: 50,
            replica_pages: 128,
            suspend_ns: 20_000,
            holds: Holds::Chip,
            write_backs: WriteBackRule::default(),
            write_back_chips: write_back_chips(),
            write_back_watermark: write_back_watermark(),
            write_back_within_ns: write_back_within_ns(),
        }
    }
}

/// What a step of a move holds: an array read, a transfer, a program or a copyback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Its die, or its chip where dies do not interleave; the channel only for what is transferred: the chips of a channel work side by
    /// side.
    #[default]
    Chip,
    /// The channel as well, from the command to the end of the array's work: nobody else on the channel transfers meanwhile. So do
    /// simulators that move pages in one step (SSDsim, on which the papers' own rests).
    Channel,
}

impl Holds {
    fn is_chip(&self) -> bool {
        *self == Holds::Chip
    }
}

/// When pages leave the valid page buffer. The GC paper says both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteBackRule {
    /// While no request waits in the I/O queue (algorithm 1).
    Empty,
    /// Then, and between two issues to chips that no waiting request needs (section 4.2.2, figure 5).
    #[default]
    Between,
}

/// Which collections open a stream into the valid page buffer. The GC paper says both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamRule {
    /// Those that a host request waits for (section 4.1.1, rule 1), from the time on at which one does.
    Conflict,
    /// All (algorithm 1).
    All,
}

impl StreamRule {
    /// The name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            StreamRule::Conflict => "conflict",
            StreamRule::All => "all",
        }
    }
}

/// What lies between host and flash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// `blocking`: a request is issued when all units it touches are free (the papers); `ncq:D`: D commands queue inside.
    pub command_queue: String,
    /// Which waiting transaction a free die takes: `fcfs`, `read-first` or `out-of-order`.
    pub flash_scheduler: String,
    /// Who has a channel next that several wait for: `fifo`, where a profile does not name it, or `commands-first`.
    #[serde(default, skip_serializing_if = "Arbitration::is_fifo")]
    pub arbitration: Arbitration,
}

/// Who has a channel next that several units wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// Who waits longest.
    #[default]
    Fifo,
    /// Commands pass data that wait, so that an array does not rest behind another's transfer. What holds the channel keeps it; commands
    /// go in the order in which they asked, and so do data.
    CommandsFirst,
}

impl Arbitration {
    fn is_fifo(&self) -> bool {
        *self == Arbitration::Fifo
    }
}

impl Profile {
    /// Pages of the flash that the host can address: the raw pages less the spare share, rounded down to whole stripes of one chunk, or
    /// one program, on each plane.
    pub fn user_pages(&self) -> u32 {
        let stripe = u64::from(self.geometry.planes()) * u64::from(self.pages_in_turn());
        let raw = u64::from(self.geometry.pages());
        let user = (raw as f64 * (1.0 - self.translation.over_provisioning)).floor() as u64;
        (user / stripe * stripe) as u32
    }

    /// Bytes the host can address.
    pub fn user_capacity(&self) -> Bytes {
        Bytes(u64::from(self.user_pages()) * u64::from(self.geometry.page_bytes))
    }

    /// Reads and checks a profile.
    ///
    /// # Errors
    /// Unknown or missing keys, impossible geometry, latencies or spare space; one line with key and what is allowed.
    pub fn parse(text: &str, origin: &str) -> Result<Profile, ConfigError> {
        let profile: Profile = config::parse_toml(text, origin)?;
        profile.check().map_err(|(key, problem)| ConfigError::at_key(origin, text, key, &problem))?;
        Ok(profile)
    }

    /// Checks what types cannot: ranges and room for garbage collection. Names of policies are checked where they are looked up.
    ///
    /// # Errors
    /// `(key, problem)`.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.geometry.check()?;
        let longest = Ns::from_millis(10_000).0;
        let latencies =
            [("read_ns", self.timing.read_ns.values()), ("program_ns", self.timing.program_ns.values())];
        for (key, values) in latencies {
            if values.is_empty() || values.iter().any(|&ns| ns > longest) {
                return Err((
                    key,
                    format!("found {values:?}; allowed: 1 or more latencies of 0 to {longest} ns"),
                ));
            }
        }
        for (key, value) in [("command_ns", self.timing.command_ns), ("erase_ns", self.timing.erase_ns)] {
            if value > longest {
                return Err((key, format!("found {value}; allowed: 0 to {longest} ns")));
            }
        }
        if self.timing.transfer_ps_per_byte > 1_000_000 {
            let found = self.timing.transfer_ps_per_byte;
            return Err((
                "transfer_ps_per_byte",
                format!("found {found}; allowed: 0 to 1000000 ps (1 us a byte)"),
            ));
        }
        let variation = self.timing.variation;
        if !(0.0..=0.5).contains(&variation) {
            return Err(("variation", format!("found {variation}; allowed: 0 to 0.5")));
        }
        let spare = self.translation.over_provisioning;
        if !(0.0..=0.9).contains(&spare) {
            return Err(("over_provisioning", format!("found {spare}; allowed: 0 to 0.9")));
        }
        let chunk = self.translation.chunk_pages;
        if !(1..=MOST_CHUNK_PAGES).contains(&chunk) {
            return Err(("chunk_pages", format!("found {chunk}; allowed: 1 to {MOST_CHUNK_PAGES}")));
        }
        if self.user_pages() == 0 {
            if chunk > 1 {
                let most = (f64::from(self.geometry.pages_per_plane()) * (1.0 - spare)).floor();
                return Err((
                    "chunk_pages",
                    format!(
                        "found {chunk}; allowed: 1 to {most:.0}, the pages of a plane that are not spare"
                    ),
                ));
            }
            return Err((
                "over_provisioning",
                format!("found {spare}; it leaves the host not one page of each plane"),
            ));
        }
        self.check_layout()?;
        self.check_spare()?;
        self.check_collection()?;
        self.check_controller()
    }

    /// Checks that every plane has room for garbage collection.
    fn check_spare(&self) -> Result<(), Problem> {
        let Mapped { profile, layout, user_pages } = self.mapped();
        let geometry = profile.geometry;
        // A block that lacks less than one program of being full of valid data is not worth its collection.
        let worth = geometry.pages_per_block - (layout.program_units() - 1).min(geometry.pages_per_block - 1);
        let user_blocks = (user_pages / geometry.planes()).div_ceil(worth);
        let spare_blocks = MIN_SPARE_BLOCKS
            + u32::from(self.collection.hot_cold_separation)
            + self.slc_cache.map_or(0, |cache| cache.static_blocks.max(1));
        let blocks = geometry.blocks_per_plane;
        if user_blocks.saturating_add(spare_blocks) <= blocks {
            return Ok(());
        }
        let spare = self.translation.over_provisioning;
        let data = f64::from(worth) * f64::from(geometry.planes()) / f64::from(layout.units_per_page);
        let most = f64::from(blocks.saturating_sub(spare_blocks)) * data / f64::from(self.geometry.pages());
        Err((
            "over_provisioning",
            format!(
                "found {spare}; it leaves no room for garbage collection: each plane needs {spare_blocks} spare blocks of {blocks}; allowed: from about {:.4}",
                1.0 - most
            ),
        ))
    }

    fn check_controller(&self) -> Result<(), Problem> {
        self.link.map_or(Ok(()), |link| link.check())?;
        self.processor.map_or(Ok(()), |processor| processor.check())?;
        self.regions.map_or(Ok(()), |regions| regions.check())?;
        self.write_buffer.map_or(Ok(()), |buffer| buffer.check())?;
        self.read_ahead.map_or(Ok(()), |read_ahead| read_ahead.check())?;
        self.check_page_numbers()?;
        if self.has_controller() && self.interface.command_queue == "blocking" {
            let found = "found 'blocking'; allowed with a link, processor, regions, write_buffer or read_ahead: ncq:D, as a command is on its way before any unit is taken";
            return Err(("command_queue", found.to_owned()));
        }
        Ok(())
    }

    /// Slots of buffers are numbered behind the pages of the flash.
    fn check_page_numbers(&self) -> Result<(), Problem> {
        let buffers = [
            ("buffer_pages", self.collection.buffer_pages),
            ("write_buffer.pages", self.write_buffer.map_or(0, |buffer| buffer.pages)),
            ("read_ahead.buffer_pages", self.read_ahead.map_or(0, |read_ahead| read_ahead.buffer_pages)),
        ];
        let mapped = self.mapped();
        let units = u64::from(mapped.layout.units_per_page);
        let mut left = MAX_PAGES.saturating_sub(u64::from(mapped.profile.geometry.pages())) / units;
        for (key, pages) in buffers {
            left = left.checked_sub(u64::from(pages)).ok_or_else(|| {
                let problem = format!(
                    "found {pages}; allowed: 0 to {left}, what the {MAX_PAGES} page numbers of 32 bits leave of the geometry's pages and other buffers"
                );
                (key, problem)
            })?;
        }
        Ok(())
    }

    /// Whether anything but the flash takes time, or holds data.
    pub fn has_controller(&self) -> bool {
        self.link.is_some()
            || self.processor.is_some()
            || self.regions.is_some()
            || self.write_buffer.is_some()
            || self.read_ahead.is_some()
    }

    fn check_collection(&self) -> Result<(), (&'static str, String)> {
        let Collection { threshold, floor, ahead, buffer_pages, replica_pages, .. } = self.collection;
        if !(0.0..=0.5).contains(&threshold) {
            return Err(("threshold", format!("found {threshold}; allowed: 0 to 0.5")));
        }
        if !(0.0..=threshold).contains(&floor) {
            return Err((
                "floor",
                format!(
                    "found {floor}; allowed: 0 to the threshold of collection, {threshold}: a collection must not start below its own floor"
                ),
            ));
        }
        if !(threshold..=0.5).contains(&ahead) {
            return Err((
                "ahead",
                format!("found {ahead}; allowed: from the threshold of collection, {threshold}, to 0.5"),
            ));
        }
        let most = self.most_buffer_pages();
        if u64::from(buffer_pages) > most {
            let mib = |pages: u64| (pages * u64::from(self.geometry.page_bytes)) as f64 / f64::from(1 << 20);
            return Err((
                "buffer_pages",
                format!(
                    "found {buffer_pages} ({:.1} MiB); allowed: 0 to {most}, the {:.1} MiB of memory that a controller of this capacity has (a thousandth of it, and no more than the spare pages)",
                    mib(u64::from(buffer_pages)),
                    mib(most)
                ),
            ));
        }
        let spare = self.geometry.pages() - self.user_pages();
        if replica_pages > spare {
            return Err((
                "replica_pages",
                format!("found {replica_pages}; allowed: 0 to {spare}, the spare pages of the device"),
            ));
        }
        let Collection { write_back_chips, write_back_watermark, .. } = self.collection;
        for (key, share) in
            [("write_back_chips", write_back_chips), ("write_back_watermark", write_back_watermark)]
        {
            if !(0.0..=1.0).contains(&share) {
                return Err((key, format!("found {share}; allowed: 0 to 1")));
            }
        }
        let longest = Ns::from_millis(10_000).0;
        for (key, value) in [
            ("buffer_read_ns", self.collection.buffer_read_ns),
            ("suspend_ns", self.collection.suspend_ns),
            ("write_back_within_ns", self.collection.write_back_within_ns),
        ] {
            if value > longest {
                return Err((key, format!("found {value}; allowed: 0 to {longest} ns")));
            }
        }
        Ok(())
    }

    /// Pages that a buffer in the controller's memory can have: drives carry about a thousandth of their capacity as memory,
    /// and what is buffered must fit in the spare space when power is lost. Small devices may have 128 all the same.
    pub fn most_buffer_pages(&self) -> u64 {
        let spare = u64::from(self.geometry.pages() - self.user_pages());
        (u64::from(self.geometry.pages()) / 1024).max(128).min(spare)
    }

    /// The profile as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a profile is plain data")
    }

    /// The JSON Schema of profile files, for editors.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Profile)
    }

    /// An embedded profile by name.
    ///
    /// # Errors
    /// The name is unknown: the error offers the nearest.
    pub fn embedded(name: &str) -> Result<Profile, names::UnknownName> {
        EMBEDDED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(known, text)| Profile::parse(text, known).expect("embedded profiles are tested"))
            .ok_or_else(|| names::unknown("device profile", name, EMBEDDED.iter().map(|(known, _)| *known)))
    }
}

/// A plane must keep one block to write to and one to collect into; another one where collection has its own active block.
const MIN_SPARE_BLOCKS: u32 = 2;

/// The profiles that ship with the program, by name.
pub static EMBEDDED: &[(&str, &str)] = &[
    ("piq-128g", include_str!("../../../profiles/piq-128g.toml")),
    ("piq-128g-ssdsim", include_str!("../../../profiles/piq-128g-ssdsim.toml")),
    ("gc-128g", include_str!("../../../profiles/gc-128g.toml")),
    ("gc-64g", include_str!("../../../profiles/gc-64g.toml")),
    ("pass-60g", include_str!("../../../profiles/pass-60g.toml")),
    ("ssd1", include_str!("../../../profiles/ssd1.toml")),
    ("ssd2", include_str!("../../../profiles/ssd2.toml")),
    ("ssd3", include_str!("../../../profiles/ssd3.toml")),
    ("ssd4", include_str!("../../../profiles/ssd4.toml")),
    ("ssd5", include_str!("../../../profiles/ssd5.toml")),
    ("ssd6", include_str!("../../../profiles/ssd6.toml")),
    ("ssd-b", include_str!("../../../profiles/ssd-b.toml")),
    ("ssd-c", include_str!("../../../profiles/ssd-c.toml")),
    ("ssd-s", include_str!("../../../profiles/ssd-s.toml")),
    ("ssd-m", include_str!("../../../profiles/ssd-m.toml")),
    ("tlc-nvme-1t", include_str!("../../../profiles/tlc-nvme-1t.toml")),
    ("qlc-nvme-2t", include_str!("../../../profiles/qlc-nvme-2t.toml")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_profile_reads_under_its_own_name_and_back_from_its_own_toml() {
        for (name, text) in EMBEDDED {
            let profile = Profile::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, *name);
            assert_eq!(Profile::parse(&profile.to_toml(), name).unwrap(), profile);
        }
    }

    #[test]
    fn capacities_are_what_the_documents_say() {
        let gib =
            |name: &str| Profile::embedded(name).unwrap().geometry.capacity().0 as f64 / f64::from(1 << 30);
        assert_eq!(gib("piq-128g"), 128.0);
        assert_eq!(gib("gc-128g"), 128.0);
        assert_eq!(gib("gc-64g"), 64.0);
        let user = |name: &str| Profile::embedded(name).unwrap().user_capacity().0 as f64 / 1e9;
        assert!((user("ssd-s") - 32.0).abs() < 0.1, "{}", user("ssd-s"));
        assert!((user("ssd-m") - 80.0).abs() < 0.1, "{}", user("ssd-m"));
        assert!((user("pass-60g") - 60.0).abs() < 0.1, "{}", user("pass-60g"));
        for (name, capacity) in [
            ("ssd1", 64.0),
            ("ssd2", 32.0),
            ("ssd3", 80.0),
            ("ssd4", 32.0),
            ("ssd5", 64.0),
            ("ssd6", 32.0),
            ("ssd-b", 400.0),
            ("ssd-c", 400.0),
        ] {
            assert!((user(name) / capacity - 1.0).abs() < 0.005, "{name}: {}", user(name));
        }
        assert!((user("tlc-nvme-1t") - 1000.0).abs() < 1.0, "{}", user("tlc-nvme-1t"));
    }

    #[test]
    fn mistakes_are_answered_with_key_line_and_what_is_allowed() {
        let text = EMBEDDED[0].1;
        let broken = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Profile::parse(&text.replace(from, to), "my.toml").unwrap_err().to_string()
        };
        let error = broken("channels = 8", "chanels = 8");
        assert!(error.starts_with("my.toml:") && error.contains("did you mean 'channels'"), "{error}");
        let error = broken("blocks_per_plane = 2048", "blocks_per_plane = 16777216");
        assert!(error.contains("overflow"), "{error}");
        let error = broken("over_provisioning = 0.10", "over_provisioning = 0.0");
        assert!(error.contains("no room for garbage collection"), "{error}");
        let error = broken("over_provisioning = 0.10", "over_provisioning = nan");
        assert!(error.contains("over_provisioning") && error.contains("allowed"), "{error}");
        // Several tables have a key command_ns: the line is the one of the table at fault.
        let (_, ssd1) = EMBEDDED.iter().find(|(name, _)| *name == "ssd1").unwrap();
        let wrong = ssd1.replace("command_ns = 10_000", "command_ns = 10_000_000_000");
        let error = Profile::parse(&wrong, "my.toml").unwrap_err();
        let line = wrong.lines().position(|line| line.starts_with("command_ns = 10_000")).unwrap() + 1;
        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.message.contains("processor.command_ns"), "{error}");
        assert!(Profile::embedded("piq-128").unwrap_err().to_string().contains("did you mean 'piq-128g'"));
    }

    #[test]
    fn flash_and_buffers_have_page_numbers_for_all_they_hold() {
        let mut profile = Profile::embedded("ssd1").unwrap();
        profile.interface.command_queue = "ncq:32".into();
        (profile.geometry.channels, profile.geometry.chips_per_channel) = (1, 1);
        (profile.geometry.dies_per_chip, profile.geometry.planes_per_die) = (1, 1);
        (profile.geometry.blocks_per_plane, profile.geometry.pages_per_block) = ((1 << 22) - 1, 1 << 10);
        assert_eq!(u64::from(profile.geometry.pages()) + 1_021, MAX_PAGES);
        let mut check = |valid, write, read| {
            profile.collection.buffer_pages = valid;
            profile.write_buffer.as_mut().unwrap().pages = write;
            profile.read_ahead.as_mut().unwrap().buffer_pages = read;
            profile.check().map_err(|(key, _)| key)
        };
        assert_eq!(check(21, 488, 512), Ok(()));
        assert_eq!(check(21, 488, 513), Err("read_ahead.buffer_pages"));
        assert_eq!(check(21, 1_001, 512), Err("write_buffer.pages"));
        assert_eq!(check(1_022, 488, 512), Err("buffer_pages"));
    }

    #[test]
    fn the_schema_file_is_what_the_types_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/profile.schema.json");
        let schema = format!("{:#}\n", Profile::json_schema().to_value());
        let on_disk = std::fs::read_to_string(path).unwrap_or_default();
        // Not `assert_eq`: its message would be both of them.
        assert!(
            on_disk == schema,
            "profiles/profile.schema.json is old; write it with: planewise device schema > profiles/profile.schema.json"
        );
    }
}
