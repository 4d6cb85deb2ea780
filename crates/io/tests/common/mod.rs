//! Devices with known insides, drawn at random.

// Each test takes what it needs of it.
#![allow(dead_code)]

pub mod verdicts;
pub mod wide;

use planewise_io::target::{Completed, Operation, SimTarget, Target, TargetError, TargetInfo};
use planewise_model::profile::{Link, PageLatency, Processor, ReadAhead, WriteBuffer};
use planewise_model::rng::generator;
use planewise_model::{Ns, Profile};
use rand::RngExt;
use rand::seq::IndexedRandom;

/// A device and what a probe should say of it.
pub struct Known {
    pub seed: u64,
    pub profile: Profile,
    pub page: u64,
    /// None: all of it is in one place.
    pub chunk: Option<u64>,
    pub degree: u64,
    pub sub_domains: u64,
    pub is_write_order: bool,
}

impl Known {
    /// Whether a link or a processor may hide the flash, or registers the array behind a slow bus.
    pub fn is_hidden(&self) -> bool {
        self.profile.link.is_some() || self.profile.advanced_commands.cache_read
    }

    /// What matters of it, in a line.
    pub fn described(&self) -> String {
        let Profile { geometry, timing, translation, advanced_commands, .. } = &self.profile;
        format!(
            "{} c{} w{} d{} p{}, {} pages of {}, {advanced_commands:?}, {timing:?}, link {:?}, buffer {}, read-ahead {}",
            translation.allocation,
            geometry.channels,
            geometry.chips_per_channel,
            geometry.dies_per_chip,
            geometry.planes_per_die,
            translation.chunk_pages,
            geometry.page_bytes,
            self.profile.link,
            self.profile.write_buffer.is_some(),
            self.profile.read_ahead.is_some(),
        )
    }
}

/// The largest run of consecutive data of which no two pages are read at once: a chunk of the layout, or as many as its fastest levels put on planes that do
/// not work together and on dies that do not work on their own. None where that is all of the device.
pub fn chunk(profile: &Profile, dies_interleave: bool) -> Option<u64> {
    let Profile { geometry, translation, advanced_commands, .. } = profile;
    let order = match translation.allocation.as_str() {
        "write-order" | "dynamic" => "cwdp",
        order => order,
    };
    let mut run = u64::from(translation.chunk_pages) * u64::from(geometry.page_bytes);
    for level in order.chars() {
        let (places, are_apart) = match level {
            'c' => (geometry.channels, true),
            'w' => (geometry.chips_per_channel, true),
            'd' => (geometry.dies_per_chip, dies_interleave),
            _ => (geometry.planes_per_die, advanced_commands.multi_plane),
        };
        if places > 1 && are_apart {
            return Some(run);
        }
        run *= u64::from(places);
    }
    None
}

/// Draws a device: 2 to 16 channels of 1 to 4 packages, dies and planes, pages of 4 to 32 KiB, every static order and write-order,
/// chunks of 1 to 16 pages, SLC, MLC and TLC, slow and fast buses, with and without write buffer, read-ahead, link and processor.
pub fn draw(seed: u64) -> Known {
    let rng = &mut generator(seed, "geometries");
    let mut profile = Profile::embedded("ssd-s").unwrap();
    let plain = Profile::embedded("piq-128g").unwrap();
    profile.name = format!("drawn-{seed}");
    (profile.link, profile.processor, profile.regions) = (plain.link, plain.processor, plain.regions);
    (profile.write_buffer, profile.read_ahead) = (plain.write_buffer, plain.read_ahead);
    profile.geometry.channels = rng.random_range(2..=16);
    profile.geometry.chips_per_channel = rng.random_range(1..=4);
    profile.geometry.dies_per_chip = *[1, 1, 1, 2].choose(rng).unwrap();
    profile.geometry.planes_per_die = *[1, 1, 2, 4].choose(rng).unwrap();
    profile.geometry.page_bytes = *[4096, 8192, 16_384, 32_768].choose(rng).unwrap();
    let pages = (2u64 << 30) / u64::from(profile.geometry.page_bytes) / u64::from(profile.geometry.planes());
    profile.geometry.pages_per_block = 48;
    profile.geometry.blocks_per_plane = (pages / 48) as u32 + 8;
    let blocks = f64::from(profile.geometry.blocks_per_plane);
    profile.translation.over_provisioning = (6.0 / blocks).max(0.12);
    let orders = planewise_model::AllocationOrder::all();
    let is_write_order = rng.random_range(0..3) == 0;
    profile.translation.allocation =
        if is_write_order { "write-order".into() } else { orders.choose(rng).unwrap().to_string() };
    profile.advanced_commands.die_interleave = rng.random_range(0..2) == 0;
    profile.advanced_commands.multi_plane = rng.random_range(0..2) == 0;
    profile.advanced_commands.cache_read = rng.random_range(0..4) == 0;
    let (read, program) = [
        (PageLatency::Uniform(25_000), PageLatency::Uniform(250_000)),
        (PageLatency::Uniform(60_000), PageLatency::PerType(vec![400_000, 1_300_000])),
        (
            PageLatency::PerType(vec![45_000, 55_000, 65_000]),
            PageLatency::PerType(vec![250_000, 600_000, 900_000]),
        ),
        (PageLatency::PerType(vec![40_000, 70_000]), PageLatency::PerType(vec![300_000, 1_100_000])),
    ]
    .choose(rng)
    .unwrap()
    .clone();
    (profile.timing.read_ns, profile.timing.program_ns) = (read, program);
    profile.timing.transfer_ps_per_byte = *[833, 1_250, 2_500, 10_000, 25_000].choose(rng).unwrap();
    profile.timing.variation = *[0.0, 0.05].choose(rng).unwrap();
    profile.timing.whole_page_reads = rng.random_range(0..4) == 0;
    if rng.random_range(0..2) == 0 {
        profile.write_buffer = Some(WriteBuffer {
            pages: *[64, 1024].choose(rng).unwrap(),
            watermark: 0.5,
            run_pages: 16,
            in_flight_pages: 64,
            entry_order: is_write_order,
            power_loss_protection: true,
        });
    }
    if rng.random_range(0..2) == 0 {
        profile.read_ahead = Some(ReadAhead {
            streams: rng.random_range(1..5),
            trigger: 2,
            window_pages: 32,
            run_pages: 8,
            buffer_pages: 128,
            dropped_by_writes: false,
        });
    }
    if rng.random_range(0..2) == 0 {
        profile.link = serde_link(*[260, 550, 3200].choose(rng).unwrap());
        profile.processor = Some(Processor {
            command_ns: 3_000,
            operation_ns: 4_000,
            run_page_ns: 500,
            update_ns: 500,
            turn_ns: 0,
            scan_ns: 0,
            scan_entries: 0,
            ..Processor::default()
        });
    }
    profile.translation.chunk_pages = *[1, 1, 1, 2, 3, 4, 8, 16].choose(rng).unwrap();
    let chips = u64::from(profile.geometry.chips_per_channel);
    let dies =
        if profile.advanced_commands.die_interleave { u64::from(profile.geometry.dies_per_chip) } else { 1 };
    Known {
        seed,
        page: u64::from(profile.geometry.page_bytes),
        chunk: chunk(&profile, profile.advanced_commands.die_interleave),
        degree: u64::from(profile.geometry.channels),
        sub_domains: chips * dies,
        is_write_order,
        profile,
    }
}

fn serde_link(mb_per_s: u32) -> Option<Link> {
    Some(Link { mb_per_s, command_ns: 2_000, ..Link::default() })
}

/// A simulated device that takes and gives whole blocks of 4 KiB, as drives without sectors of 512 bytes do.
pub struct Blocks4K {
    inner: SimTarget,
    info: TargetInfo,
}

impl Blocks4K {
    /// Around a device.
    pub fn new(inner: SimTarget) -> Blocks4K {
        let info = TargetInfo { block_bytes: 4096, ..inner.info().clone() };
        Blocks4K { inner, info }
    }
}

impl Target for Blocks4K {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.inner.now()
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        self.inner.submit(tag, operation)
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        self.inner.wait(until, completed)
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        self.inner.flush()
    }
}
