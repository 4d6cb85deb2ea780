//! Drives of all kinds, drawn from a seed: what `common::draw` draws and much that it does not.
//!
//! Between 1 and 16 channels of every number of dies and planes, all allocation policies, chunks of 1 to 64 pages, buffers from one page to a tenth of the
//! area, command queues of 1 to 256 and blocking interfaces, processors and links from none to very slow, noise up to a tenth, aged
//! drives, RAID-0 of two to four, units of 4 KiB in pages of 16 KiB with word lines, superblocks and parity, and SLC caches.

use planewise_io::probe::mapping::Mapping;
use planewise_io::target::raid0::Layout;
use planewise_io::target::{Raid0Target, SimTarget, Target};
use planewise_model::profile::{Link, PageLatency, Processor, ReadAhead, SlcCache, WriteBuffer};
use planewise_model::rng::{Generator, generator};
use planewise_model::{Bytes, Profile};
use planewise_sim::Condition;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// A drive with what is inside it.
pub struct Drive {
    pub seed: u64,
    /// Of one member, where it is an array.
    pub profile: Profile,
    pub condition: Condition,
    /// How members of an array are striped.
    pub layout: Option<Layout>,
    /// Operations at a time that the probe may use.
    pub depth: u32,
}

impl Drive {
    /// Drives that serve as a member.
    pub fn members(&self) -> u64 {
        self.layout.map_or(1, |layout| u64::from(layout.members()))
    }

    /// Bytes of a page.
    pub fn page(&self) -> u64 {
        u64::from(self.profile.geometry.page_bytes)
    }

    /// What may be called a page: with superblocks a row of pages is read, and was programmed, as one.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages = vec![self.page(), self.page() * u64::from(self.profile.layout().planes)];
        pages.dedup();
        pages
    }

    /// Bytes of a chunk, where more than one answer is true each of them.
    pub fn chunks(&self) -> Vec<u64> {
        let interleaves = self.profile.advanced_commands.die_interleave && self.commands().is_some();
        let mut profile = self.profile.clone();
        let mut chunks: Vec<u64> = super::chunk(&profile, interleaves).into_iter().collect();
        if profile.translation.superblocks {
            chunks.push(
                self.page() * u64::from(profile.translation.chunk_pages * profile.geometry.planes_per_die),
            );
        }
        if self.condition != Condition::Filled || self.commands().is_some_and(|depth| depth < 3) {
            // Planes whose pages do not lie alike never work together, nor do two for which no two commands can wait.
            profile.advanced_commands.multi_plane = false;
            chunks.extend(super::chunk(&profile, interleaves));
        }
        let Some(layout) = self.layout else { return chunks };
        let stripe = layout.chunk().0;
        if chunks.iter().all(|chunk| chunk.is_multiple_of(stripe)) {
            return vec![stripe];
        }
        chunks.retain(|chunk| stripe.is_multiple_of(*chunk));
        chunks
    }

    /// Buses.
    pub fn degree(&self) -> u64 {
        self.members() * u64::from(self.profile.geometry.channels)
    }

    /// Units on one bus.
    pub fn sub_domains(&self) -> u64 {
        let geometry = &self.profile.geometry;
        // An interface that stops at the first busy chip knows of no dies.
        let interleaves = self.profile.advanced_commands.die_interleave && self.commands().is_some();
        let dies = if interleaves { u64::from(geometry.dies_per_chip) } else { 1 };
        u64::from(geometry.chips_per_channel) * dies
    }

    /// What decides where a chunk goes.
    pub fn mapping(&self) -> Mapping {
        match self.profile.translation.allocation.as_str() {
            "dynamic" => Mapping::Dynamic,
            "write-order" => Mapping::WriteOrder,
            _ => Mapping::Static,
        }
    }

    /// Commands that it takes at a time; none where there is no limit but idle units.
    pub fn commands(&self) -> Option<u32> {
        self.profile.interface.command_queue.strip_prefix("ncq:").map(|depth| depth.parse().unwrap())
    }

    /// The drive, ready to be probed; none where a profile cannot be in this condition.
    pub fn target(&self) -> Option<Box<dyn Target>> {
        let (profile, condition) = (&self.profile, self.condition);
        Some(match self.layout {
            None => Box::new(SimTarget::new(profile, condition, self.depth, self.seed).ok()?),
            Some(layout) => {
                Box::new(Raid0Target::new("raid0", layout, profile, condition, self.depth, self.seed).ok()?)
            }
        })
    }

    /// What matters of it, in a line.
    pub fn described(&self) -> String {
        let Profile { geometry, timing, translation, advanced_commands, interface, .. } = &self.profile;
        let of = advanced_commands;
        format!(
            "{} c{} w{} d{} p{}, {} pages of {}, {} {}, interleave {} multi-plane {} cache {}, {timing:?}, {:?}, {:?}, {:?}, {:?}, {}, {:?}",
            translation.allocation,
            geometry.channels,
            geometry.chips_per_channel,
            geometry.dies_per_chip,
            geometry.planes_per_die,
            translation.chunk_pages,
            geometry.page_bytes,
            interface.command_queue,
            interface.flash_scheduler,
            of.die_interleave,
            of.multi_plane,
            of.cache_read,
            self.profile.link,
            self.profile.processor,
            self.profile.write_buffer,
            self.profile.read_ahead,
            self.condition,
            (self.layout, self.profile.layout(), self.profile.slc_cache),
        )
    }
}

fn of<T: Clone>(rng: &mut Generator, choices: &[T]) -> T {
    choices.choose(rng).unwrap().clone()
}

fn one_in(rng: &mut Generator, number: u32) -> bool {
    rng.random_range(0..number) == 0
}

/// Draws a drive.
pub fn draw(seed: u64) -> Drive {
    (0..)
        .map(|attempt| candidate(seed, attempt))
        .find(|drive| drive.profile.check().is_ok() && drive.target().is_some())
        .expect("one of them can be")
}

fn candidate(seed: u64, attempt: u32) -> Drive {
    let rng = &mut generator(seed, &format!("drives of all kinds, attempt {attempt}"));
    let mut profile = Profile::embedded("piq-128g").unwrap();
    profile.name = format!("drawn-{seed}");
    let layout = one_in(rng, 10).then(|| {
        let stripe = of(rng, &[16u64, 32, 64, 128, 512]) << 10;
        Layout::new(rng.random_range(2..=4), Bytes(stripe)).unwrap()
    });
    geometry(&mut profile, rng);
    // A stream of its own: what is drawn beside it is as it was before there were such drives.
    let inside = &mut generator(seed, &format!("layouts, attempt {attempt}"));
    let has_units = one_in(inside, 5);
    if has_units {
        profile.geometry.page_bytes = 16_384;
    }
    let aged = one_in(rng, 8);
    space(&mut profile, aged);
    let user = 100.0 * (1.0 - profile.translation.over_provisioning);
    let valid = (user * 0.98).floor();
    let free = (100.0 * profile.collection.threshold).ceil() + 1.0;
    let condition =
        if aged { Condition::Aged { valid, invalid: 100.0 - valid - free, free } } else { Condition::Filled };
    flash(&mut profile, rng);
    front(&mut profile, rng);
    buffers(&mut profile, rng);
    let depth = of(rng, &[32, 64, 64, 128]);
    let has_chunks = profile.translation.allocation != "dynamic";
    if has_chunks && one_in(rng, 2) {
        profile.translation.chunk_pages = of(rng, &[2, 2, 3, 4, 4, 6, 8, 16, 64]);
    }
    if let Some(buffer) = &mut profile.write_buffer {
        buffer.power_loss_protection = one_in(rng, 2);
    }
    if has_units {
        units(&mut profile, inside);
    }
    if one_in(inside, 6) {
        cache(&mut profile, inside);
    }
    Drive { seed, profile, condition, layout, depth }
}

/// Units of 4 KiB that share pages of 16 KiB, and what goes with that.
fn units(profile: &mut Profile, rng: &mut Generator) {
    profile.translation.unit_bytes = Some(4096);
    profile.translation.allocation = "write-order".into();
    profile.timing.program_pages = of(rng, &[1, 1, 3]);
    if profile.timing.program_pages > 1 {
        profile.timing.program_ns = PageLatency::Uniform(of(rng, &[700_000, 1_200_000, 2_400_000]));
    }
    profile.translation.chunk_pages = of(rng, &[1, profile.timing.program_pages]);
    if one_in(rng, 2) {
        (profile.translation.superblocks, profile.advanced_commands.multi_plane) = (true, true);
    }
    if one_in(rng, 4) {
        profile.translation.parity_one_in = 16;
        profile.translation.over_provisioning =
            1.0 - (1.0 - profile.translation.over_provisioning) * 15.0 / 16.0;
    }
    let least = profile.geometry.planes() * profile.timing.program_pages;
    let buffer = profile.write_buffer.get_or_insert(WriteBuffer {
        pages: 1024,
        watermark: 0.25,
        run_pages: 16,
        entry_order: true,
        in_flight_pages: 64,
        power_loss_protection: true,
    });
    buffer.pages = buffer.pages.max(2 * least);
    buffer.in_flight_pages = buffer.in_flight_pages.max(least);
    buffer.entry_order = true;
}

/// Some blocks with one bit a cell.
fn cache(profile: &mut Profile, rng: &mut Generator) {
    let (always, more) = of(rng, &[(2, 0), (2, 4), (4, 4)]);
    let blocks = f64::from(profile.geometry.blocks_per_plane);
    profile.geometry.blocks_per_plane += always;
    let data = (1.0 - profile.translation.over_provisioning) * blocks;
    profile.translation.over_provisioning = 1.0 - data / (blocks + f64::from(always));
    profile.slc_cache = Some(SlcCache {
        bits_per_cell: 3,
        read_ns: of(rng, &[15_000, 30_000]),
        program_ns: of(rng, &[100_000, 200_000]),
        static_blocks: always,
        dynamic_blocks: more,
        idle_ns: of(rng, &[50_000_000, 500_000_000]),
    });
}

fn geometry(profile: &mut Profile, rng: &mut Generator) {
    let geometry = &mut profile.geometry;
    geometry.channels = of(rng, &[1, 1, 2, 3, 4, 4, 5, 6, 8, 8, 10, 12, 16]);
    geometry.chips_per_channel = of(rng, &[1, 1, 2, 2, 3, 4, 8]);
    geometry.dies_per_chip = of(rng, &[1, 1, 2, 2, 4]);
    geometry.planes_per_die = of(rng, &[1, 1, 2, 2, 3, 4, 6, 8]);
    geometry.page_bytes = of(rng, &[4096, 8192, 16_384]);
    profile.advanced_commands.die_interleave = one_in(rng, 2);
    profile.advanced_commands.multi_plane = one_in(rng, 2);
    profile.advanced_commands.cache_read = one_in(rng, 4);
    let orders = planewise_model::AllocationOrder::all();
    profile.translation.allocation = match rng.random_range(0..6) {
        0 => "dynamic".into(),
        1 => "write-order".into(),
        _ => orders.choose(rng).unwrap().to_string(),
    };
}

/// Blocks enough for 2 GiB of data and what collection needs.
fn space(profile: &mut Profile, aged: bool) {
    let geometry = &mut profile.geometry;
    let pages = (2u64 << 30) / u64::from(geometry.page_bytes) / u64::from(geometry.planes());
    geometry.pages_per_block = 48;
    geometry.blocks_per_plane = pages.div_ceil(48) as u32 + if aged { 16 } else { 8 };
    let blocks = f64::from(geometry.blocks_per_plane);
    profile.translation.over_provisioning = (6.0 / blocks).max(0.12);
    if aged {
        profile.translation.over_provisioning = (8.0 / blocks).max(0.2);
    }
}

fn flash(profile: &mut Profile, rng: &mut Generator) {
    let (read, program) = of(
        rng,
        &[
            (PageLatency::Uniform(25_000), PageLatency::Uniform(250_000)),
            (PageLatency::Uniform(60_000), PageLatency::PerType(vec![400_000, 1_300_000])),
            (
                PageLatency::PerType(vec![45_000, 55_000, 65_000]),
                PageLatency::PerType(vec![250_000, 600_000, 900_000]),
            ),
            (PageLatency::PerType(vec![40_000, 70_000]), PageLatency::PerType(vec![300_000, 1_100_000])),
            (PageLatency::Uniform(3_000), PageLatency::Uniform(100_000)),
            (PageLatency::Uniform(90_000), PageLatency::Uniform(2_000_000)),
        ],
    );
    (profile.timing.read_ns, profile.timing.program_ns) = (read, program);
    profile.timing.command_ns = of(rng, &[0, 200, 300]);
    profile.timing.transfer_ps_per_byte = of(rng, &[417, 833, 1_250, 2_500, 10_000, 25_000]);
    profile.timing.variation = of(rng, &[0.0, 0.0, 0.02, 0.05, 0.1]);
    profile.timing.whole_page_reads = one_in(rng, 4);
}

fn front(profile: &mut Profile, rng: &mut Generator) {
    profile.interface.command_queue = match rng.random_range(0..14) {
        0 => "blocking".into(),
        depth @ 1..=6 => format!("ncq:{}", [1, 2, 3, 4, 8, 16][depth as usize - 1]),
        _ => format!("ncq:{}", of(rng, &[32, 32, 64, 256])),
    };
    profile.interface.flash_scheduler = of(rng, &["fcfs", "fcfs", "read-first"]).into();
    profile.link = (!one_in(rng, 3)).then(|| Link {
        mb_per_s: of(rng, &[150, 260, 550, 3200]),
        command_ns: of(rng, &[0, 500, 2_000]),
        full_duplex: one_in(rng, 2),
        latency_ns: of(rng, &[0, 0, 8_000, 15_000]),
    });
    profile.processor = (!one_in(rng, 3)).then(|| {
        let turn_ns = of(rng, &[0, 0, 20_000, 60_000]);
        Processor {
            command_ns: of(rng, &[500, 2_000, 3_000, 18_000, 80_000]),
            operation_ns: of(rng, &[500, 4_000, 10_000]),
            run_page_ns: of(rng, &[100, 500, 3_000]),
            update_ns: of(rng, &[200, 500]),
            turn_ns,
            drains_to_turn: turn_ns == 0 && one_in(rng, 4),
            ..Processor::default()
        }
    });
}

fn buffers(profile: &mut Profile, rng: &mut Generator) {
    let is_write_order = profile.translation.allocation == "write-order";
    profile.write_buffer = (!one_in(rng, 3)).then(|| WriteBuffer {
        pages: of(rng, &[4, 16, 64, 256, 1024, 1024, 4096, 16_384]),
        watermark: of(rng, &[0.04, 0.25, 0.5, 0.9]),
        run_pages: of(rng, &[4, 16]),
        in_flight_pages: of(rng, &[16, 64]),
        entry_order: is_write_order || one_in(rng, 3),
        power_loss_protection: true,
    });
    profile.read_ahead = one_in(rng, 2).then(|| ReadAhead {
        streams: rng.random_range(1..9),
        trigger: of(rng, &[2, 2, 3]),
        window_pages: of(rng, &[16, 32, 128]),
        run_pages: 8,
        buffer_pages: of(rng, &[128, 1024]),
        dropped_by_writes: one_in(rng, 4),
    });
}
