//! From findings to a device profile that every other command takes as it is.
//!
//! What was found is entered; what was not is assumed, and the profile's `source` says which is which. A profile of a device whose units
//! could not be told apart still has the throughput that was measured, as that many independent units.

use super::controller::Turn;
use super::findings::Findings;
use super::held::COMMAND_CYCLES;
use super::mapping::Mapping;
use super::queue::Commands;
use super::relation::Relation;
use planewise_model::profile::{
    AdvancedCommands, Arbitration, Collection, Interface, Link, PageLatency, Processor, Profile, ReadAhead,
    Regions, StreamRule, Timing, Translation, WriteBuffer,
};
use planewise_model::words::counted;
use planewise_model::{Bytes, Geometry};
use std::fmt::Write as _;

/// Pages of a block where nothing tells: of the size that flash of the 2010s had.
const PAGES_PER_BLOCK: u32 = 256;
/// Share of spare space where nothing tells: what the difference between decimal and binary units gives away.
const SPARE: f64 = 0.07;
/// Size of a write buffer that never fills, bytes: memory that a controller has of its own. A larger one would let bursts outrun the flash, and show.
const BUFFER: u64 = 1 << 20;

/// One level of striping: its letter in the names of allocation orders, and how many there are.
type Level = (char, u64);

/// A profile, and how much of it is known.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The profile; its `source` says what was found and what was assumed.
    pub profile: Profile,
    /// Properties that were found.
    pub found: usize,
    /// Properties that had to be assumed.
    pub assumed: usize,
}

/// The profile of a probed device, under a name. None before latencies and units have been looked at.
///
/// # Errors
/// Findings that make no profile: the key that does not go, and why.
pub fn profile(findings: &Findings, name: &str) -> Result<Probed, String> {
    let (Some(domains), Some(latencies)) = (&findings.domains, &findings.latencies) else {
        return Err("the probe has not looked at domains and latencies yet".into());
    };
    let mut source = Source::default();
    let least = findings.page_bytes().0.max(u64::from(findings.subject.block_bytes));
    let page_bytes = match findings.page.as_ref().and_then(|page| page.value) {
        Some(size) => source.found(size.0, format!("pages of {size}")),
        None => source.assumed(least, &format!("pages of {}", Bytes(least))),
    };
    let chunk = findings.chunk.as_ref().and_then(|chunk| chunk.value);
    // Pages that take turns on one unit, by its relation: a chunk, or as many planes.
    let turns = domains.unit.map_or(1, |unit| unit.skipped);
    let (unit, domain, chunk_pages) = match chunk.filter(|chunk| chunk.0.is_multiple_of(page_bytes)) {
        Some(size) => {
            let pages = source.found(size.0 / page_bytes, format!("chunks of {size}"));
            (domains.unit, domains.domain, pages)
        }
        None if turns > 1 && domains.domain.is_none_or(|(stride, _)| stride.is_multiple_of(turns)) => {
            source.note_assumed(&format!("chunks of {turns} pages, as a unit has so many in turn"));
            let unit = domains.unit.map(|unit| Relation { skipped: 1, ..unit });
            (unit, domains.domain.map(|(stride, degree)| (stride / turns, degree)), turns)
        }
        None => (domains.unit, domains.domain, source.assumed(1, "chunks of a page")),
    };
    let (page_bytes, chunk_pages) = (page_bytes as u32, chunk_pages as u32);

    let (levels, order) = match (unit, domain) {
        (Some(unit), domain) => {
            let mut levels = levels(unit, domain);
            if interleaves(&levels, unit.units()).is_none() {
                // Levels that no geometry has: as many units and domains, in the order of most drives.
                let degree = domain.map_or(unit.units(), |(_, degree)| degree);
                levels = vec![('c', degree), ('w', unit.units() / degree)];
                source.note_assumed("the order of the levels");
            }
            match domain {
                Some((_, degree)) => source.note_found(format!(
                    "{} of {}",
                    counted(degree, "domain"),
                    counted(unit.units() / degree, "unit")
                )),
                None => {
                    source.note_found(counted(unit.units(), "unit"));
                    source.note_assumed("a bus of its own for each unit");
                }
            }
            let order = order(&levels);
            (levels, order)
        }
        (None, _) => {
            let parallel = findings.parallelism.as_ref().and_then(|found| found.reads.value).unwrap_or(8);
            source.note_assumed(&format!(
                "{}, as that many reads at a time help",
                counted(parallel.into(), "independent unit")
            ));
            (vec![('c', u64::from(parallel))], "cwdp".to_owned())
        }
    };
    let die_interleave = unit.and_then(|unit| interleaves(&levels, unit.units())).unwrap_or(false);
    let radix = |letter| levels.iter().find(|level| level.0 == letter).map_or(1, |level| level.1) as u32;
    let (channels, chips, dies, mut planes) = (radix('c'), radix('w'), radix('d'), radix('p'));
    let allocation = match findings.mapping.as_ref().and_then(|mapping| mapping.value) {
        Some(Mapping::WriteOrder) => source.found("write-order".to_owned(), "write-order mapping".into()),
        Some(Mapping::Dynamic) => source.found("dynamic".to_owned(), "dynamic mapping".into()),
        Some(Mapping::Static) => source.found(order, "static mapping".into()),
        None => source.assumed(order, "static mapping"),
    };
    // Data that go to idle units do so page by page.
    let chunk_pages = if allocation == "dynamic" { 1 } else { chunk_pages };

    let user_pages = findings.subject.capacity.0.div_ceil(u64::from(page_bytes));
    let onset = findings.collection.as_ref().and_then(|found| found.volume.value);
    let capacity = findings.subject.capacity.0 as f64;
    let spare = match onset {
        // Collection begins when as much as was spare has been written, but for the threshold.
        Some(volume) => {
            let spare = volume.0 as f64 / (capacity + volume.0 as f64) + THRESHOLD;
            source.found(spare.clamp(0.02, 0.5), format!("collection after {volume} of random writes"))
        }
        None => source.assumed(SPARE, "7 % spare space"),
    };
    // More programs at a time than there are units: planes that work together.
    let working = u64::from(channels) * u64::from(chips) * if die_interleave { u64::from(dies) } else { 1 };
    let together = together(findings, working);
    if together > 1 {
        planes = planes.max(together);
        source.note_found(format!("{together} programs at a time in a unit, as so many planes"));
    }
    let all_planes = u64::from(channels) * u64::from(chips) * u64::from(dies) * u64::from(planes);
    let per_plane = user_pages.div_ceil(all_planes).next_multiple_of(chunk_pages.into()) as f64;
    // Small devices need small blocks, or there is no block to spare.
    let mut pages_per_block = PAGES_PER_BLOCK;
    while pages_per_block > 16 && per_plane * spare / f64::from(pages_per_block) < 8.0 {
        pages_per_block /= 2;
    }
    source.note_assumed(&format!("blocks of {pages_per_block} pages"));
    let user_blocks = (per_plane / f64::from(pages_per_block)).ceil();
    let blocks_per_plane = (user_blocks / (1.0 - spare)).ceil().max(user_blocks + 4.0) as u32;
    let raw = f64::from(blocks_per_plane) * f64::from(pages_per_block);
    // A little less than it is, so that rounding never loses a page of the host's.
    let over_provisioning = ((1.0 - per_plane / raw) * 1e6).floor() / 1e6;

    let latency = |values: &[f64]| match values {
        [one] => PageLatency::Uniform(one.round() as u64),
        many => PageLatency::PerType(many.iter().map(|value| value.round() as u64).collect()),
    };
    // What a longer read costs is all the bus's where nothing tells, and what is left of a read its array's.
    let block_bytes = f64::from(findings.subject.block_bytes);
    let longer = (latencies.chunk_read - latencies.block_read).max(0.0);
    let on_bus = if f64::from(page_bytes) > block_bytes {
        longer / (f64::from(page_bytes) - block_bytes)
    } else {
        0.0
    };
    let read_ns = match &latencies.read.value {
        Some(values) => source.found(latency(values), "read times".into()),
        None => source.assumed(
            PageLatency::Uniform((latencies.block_read - on_bus * block_bytes).max(0.0) as u64),
            "all of a block's latency in the array",
        ),
    };
    let transfer_ps_per_byte = match latencies.transfer.value {
        Some(ps) => source.found(ps.round() as u64, "bus speed".into()),
        None => source
            .assumed((on_bus * 1e3).round() as u64, "what a chunk takes longer than a block, on the bus"),
    };
    let program_ns = match (&latencies.program.value, latencies.program_most) {
        (Some(values), _) => source.found(latency(values), "program times".into()),
        (None, Some(most)) => source
            .assumed(PageLatency::Uniform(most as u64), "programs as long as they can be behind the buffer"),
        (None, _) => {
            let value = latencies.chunk_write.unwrap_or(10.0 * latencies.block_read);
            source.assumed(PageLatency::Uniform(value as u64), "program times")
        }
    };
    let queue = queue(findings, &mut source);
    source.note_assumed("erase time");
    source.note_assumed("threshold of collection");
    // A queue of two commands looks like none behind two of one unit.
    let is_shallow = findings
        .queue
        .as_ref()
        .and_then(|queue| queue.commands.value)
        .is_some_and(|commands| commands.number() < 3);
    let blocking = latencies.queues_inside.value == Some(false) && !is_shallow;
    let mut profile = Profile {
        name: name.to_owned(),
        description: format!(
            "probed: {} ({}, {})",
            findings.subject.target, findings.subject.kind, findings.subject.capacity
        ),
        source: String::new(),
        geometry: Geometry {
            channels,
            chips_per_channel: chips,
            dies_per_chip: dies,
            planes_per_die: planes,
            blocks_per_plane,
            pages_per_block,
            page_bytes,
        },
        timing: Timing {
            command_ns: COMMAND_CYCLES as u64,
            read_ns,
            program_ns,
            program_pages: 1,
            erase_ns: 2_500_000,
            transfer_ps_per_byte,
            whole_page_reads: latencies.whole_chunks.value == Some(true),
            variation: 0.0,
        },
        advanced_commands: AdvancedCommands {
            die_interleave,
            multi_plane: together > 1,
            cache_read: latencies.cache_read.value == Some(true),
            ..AdvancedCommands::NONE
        },
        translation: Translation {
            over_provisioning,
            allocation,
            chunk_pages,
            wear_levelling: "dynamic".into(),
            read_modify_write: true,
            unit_bytes: None,
            superblocks: false,
            parity_one_in: 0,
        },
        collection: Collection {
            scheme: "traditional".into(),
            victims: "greedy".into(),
            threshold: THRESHOLD,
            floor: THRESHOLD / 2.0,
            ahead: THRESHOLD + 0.01,
            hot_cold_separation: false,
            streams: StreamRule::All,
            buffer_pages: 128,
            buffer_read_ns: 50,
            // Small devices have fewer pages to spare.
            replica_pages: (((raw - per_plane) * all_planes as f64 * 0.9) as u32).min(4096),
            suspend_ns: 20_000,
            holds: planewise_model::profile::Holds::Chip,
            ..Collection::default()
        },
        interface: Interface {
            command_queue: if blocking { "blocking".into() } else { format!("ncq:{queue}") },
            flash_scheduler: "fcfs".into(),
            arbitration: Arbitration::Fifo,
        },
        link: None,
        processor: None,
        regions: None,
        write_buffer: None,
        read_ahead: None,
        slc_cache: None,
    };
    if !blocking {
        controller(&mut profile, findings, &mut source);
    }
    profile.source = source.text(findings);
    profile.check().map_err(|(key, problem)| format!("{key}: {problem}"))?;
    Ok(Probed { profile, found: source.found.len(), assumed: source.assumed.len() })
}

/// Commands at a time: as found, or as many as the probe had under way.
fn queue(findings: &Findings, source: &mut Source) -> u32 {
    match findings.queue.as_ref().and_then(|queue| queue.commands.value) {
        Some(Commands::Exactly(number)) => {
            source.found(number, counted(number.into(), "command").to_string() + " at a time")
        }
        Some(Commands::AtLeast(number)) => {
            source.found(number, format!("{number} commands at a time, or more"))
        }
        // What SATA has; more could wait inside only where they were tried.
        None => source.assumed(findings.subject.depth.min(32), "up to 32 commands at a time"),
    }
}

/// Share of free pages at which a plane is collected, assumed.
const THRESHOLD: f64 = 0.02;

/// Pages that are written back together, assumed: a stripe over the domains.
fn stripe(profile: &Profile) -> u32 {
    profile.geometry.channels.clamp(2, 64)
}

/// Programs that a unit runs at a time, by what random writes sustain; 1 where that cannot be told.
fn together(findings: &Findings, units: u64) -> u32 {
    let Some(latencies) = &findings.latencies else { return 1 };
    let (Some(programs), Some(interval)) = (&latencies.program.value, latencies.sustained_write) else {
        return 1;
    };
    let program = programs.iter().sum::<f64>() / programs.len().max(1) as f64;
    let at_a_time = program / (interval * units as f64).max(1.0);
    // Powers of two, as planes are; half more than one is noise, or cache registers.
    if at_a_time < 1.6 { 1 } else { (at_a_time.log2().round().exp2() as u32).clamp(2, 8) }
}

/// Enters what the controller does.
fn controller(profile: &mut Profile, findings: &Findings, source: &mut Source) {
    let Some(latencies) = &findings.latencies else { return };
    let interval = latencies.command.value.or(latencies.command_about).unwrap_or(0.0);
    if interval > 0.0 {
        // Two reads on an idle device are as far apart as the last step of each takes; under load, so are all steps together.
        let operation = latencies.behind.min(interval);
        let command = interval - operation;
        let run = f64::from(stripe(profile));
        // What a page written back costs where runs of them share the work of an operation.
        let run_page = latencies.write_command.map_or(operation / 4.0, |write| {
            let share = operation / run;
            ((write - command - share).max(0.0) * run / (run - 1.0)).min(operation)
        });
        let distance = format!("a command every {:.1} us at best", interval / 1e3);
        match latencies.command.value {
            Some(_) => source.note_found(distance),
            None => source.note_assumed(&distance),
        }
        profile.processor = Some(Processor {
            command_ns: command.round() as u64,
            operation_ns: operation.round() as u64,
            run_page_ns: run_page.round() as u64,
            ..Processor::default()
        });
    }
    if let (Some(turn), Some(processor)) = (latencies.turn.value, &mut profile.processor) {
        match turn {
            Turn::Costs(costs) => processor.turn_ns = costs.round() as u64,
            Turn::Drains => processor.drains_to_turn = true,
        }
        source.note_found("what it costs to turn from reads to writes".into());
    }
    let rest = (latencies.overhead - interval).max(0.0);
    if let Some(rate) = latencies.link.value {
        source.note_found(format!("a link of {rate:.0} MB/s"));
    }
    if latencies.link.value.is_some() || rest > 0.0 {
        profile.link = Some(Link {
            mb_per_s: latencies.link.value.map_or(1_000_000, |rate| rate.round().clamp(1.0, 1e6) as u32),
            latency_ns: rest.round() as u64,
            ..Link::default()
        });
    }
    let page = u64::from(profile.geometry.page_bytes);
    let planes = profile.geometry.planes();
    if let Some(buffer) = findings.write_buffer.as_ref().filter(|buffer| buffer.present.value == Some(true)) {
        let bytes = match buffer.size.value {
            Some(size) => source.found(size.0, format!("a write buffer of {size}")),
            None => match buffer.size_about {
                Some(size) => source.assumed(size.0, &format!("a write buffer of about {size}")),
                None => source.assumed(BUFFER, "a write buffer of 1 MiB"),
            },
        };
        let pages = (bytes / page).clamp(1, 1 << 22) as u32;
        // What waits below a stripe is not written back: a stripe goes as a whole.
        let kept = buffer.kept.value.unwrap_or(0.0).max(f64::from(stripe(profile)) / f64::from(pages));
        profile.write_buffer = Some(WriteBuffer {
            pages,
            watermark: (kept * 1e4).ceil().clamp(0.0, 9900.0) / 1e4,
            run_pages: stripe(profile),
            entry_order: true,
            in_flight_pages: 2 * planes,
            power_loss_protection: protection(findings, source),
        });
    }
    if let Some(ahead) = findings.read_ahead.as_ref().filter(|ahead| ahead.present.value == Some(true)) {
        let window = ahead.window.value.map_or(32, |size| (size.0 / page).clamp(1, 1 << 16) as u32);
        let streams = ahead.streams.value.unwrap_or(1);
        source.note_found(format!(
            "read-ahead of {} for {}",
            counted(window.into(), "page"),
            counted(streams.into(), "stream")
        ));
        profile.read_ahead = Some(ReadAhead {
            streams,
            trigger: ahead.trigger.value.unwrap_or(2).max(2),
            window_pages: window,
            run_pages: (window / 4).max(1),
            buffer_pages: window.saturating_mul(streams.max(2)),
            dropped_by_writes: false,
        });
    }
    let region = findings.regions.as_ref().and_then(|regions| regions.size.value);
    if let Some(region) = region {
        source.note_found(format!("regions of {region}, one operation at a time in each"));
        profile.regions = Some(Regions { mib: (region.0 >> 20).max(1) as u32, operations: 1 });
    }
}

/// Whether capacitors keep the write buffer: a flush that has nothing to do says so.
fn protection(findings: &Findings, source: &mut Source) -> bool {
    match findings.flush.as_ref().and_then(|flush| flush.volatile.value) {
        Some(true) => source.found(false, "a write buffer that is lost with the power".into()),
        Some(false) => source.found(true, "capacitors that keep the write buffer".into()),
        None => source.assumed(true, "capacitors that keep the write buffer"),
    }
}

/// The levels of striping, fastest first: digits that make units are channels and what is below or above them, others planes.
fn levels(unit: Relation, domain: Option<(u64, u64)>) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut stride = 1;
    // Letters for units inside a domain, and for what makes none.
    let mut inside = ['w', 'd'].into_iter();
    let mut neither = ['p'].into_iter();
    for (radix, makes_units) in
        [(unit.skipped, false), (unit.inner, true), (unit.gap, false), (unit.outer, true)]
    {
        let end = stride * radix;
        match domain {
            Some((at, degree)) if makes_units && at >= stride && at < end => {
                for (letter, radix) in [('w', at / stride), ('c', degree), ('d', end / at / degree)] {
                    let letter = if letter == 'c' {
                        'c'
                    } else if radix > 1 {
                        inside.next().unwrap_or('w')
                    } else {
                        letter
                    };
                    levels.push((letter, radix));
                }
            }
            None if makes_units && !levels.iter().any(|level| level.0 == 'c') => levels.push(('c', radix)),
            _ if radix > 1 && makes_units => levels.push((inside.next().unwrap_or('w'), radix)),
            _ if radix > 1 => levels.push((neither.next().unwrap_or('d'), radix)),
            _ => {}
        }
        stride = end;
    }
    levels.retain(|level| level.1 > 1 || level.0 == 'c');
    levels
}

/// Whether dies have to work on their own for a geometry of these levels to have so many units; none where it has them in no way.
fn interleaves(levels: &[Level], units: u64) -> Option<bool> {
    let of = |letters: &str| {
        levels.iter().filter(|level| letters.contains(level.0)).map(|level| level.1).product::<u64>()
    };
    let twice = |letter| levels.iter().filter(|level| level.0 == letter).count() > 1;
    if ['c', 'w', 'd', 'p'].into_iter().any(twice) {
        return None;
    }
    [("cw", false), ("cwd", true)].into_iter().find(|(letters, _)| of(letters) == units).map(|found| found.1)
}

/// The name of the allocation order: the levels found, then those of which there is one.
fn order(levels: &[Level]) -> String {
    let mut order: String = levels.iter().map(|level| level.0).collect();
    for letter in ['c', 'w', 'd', 'p'] {
        if !order.contains(letter) {
            order.push(letter);
        }
    }
    order
}

/// What the profile's source says: what was found, and what had to be assumed.
#[derive(Default)]
struct Source {
    found: Vec<String>,
    assumed: Vec<String>,
}

impl Source {
    fn found<T>(&mut self, value: T, what: String) -> T {
        self.found.push(what);
        value
    }

    fn assumed<T>(&mut self, value: T, what: &str) -> T {
        self.assumed.push(what.to_owned());
        value
    }

    fn note_found(&mut self, what: String) {
        self.found.push(what);
    }

    fn note_assumed(&mut self, what: &str) {
        self.assumed.push(what.to_owned());
    }

    fn text(&self, findings: &Findings) -> String {
        let mut text = String::new();
        let _ =
            writeln!(text, "Probed from outside: {} ({}).", findings.subject.target, findings.subject.engine);
        let _ = writeln!(text, "Found: {}.", self.found.join("; "));
        let _ = writeln!(text, "Assumed: {}.", self.assumed.join("; "));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_order_in_which_chunks_visit_them() {
        let cases = [
            ((1, 20, 1, 1), Some((1, 10)), "cwdp", vec![('c', 10), ('w', 2)]),
            ((1, 12, 1, 1), Some((3, 4)), "wcdp", vec![('w', 3), ('c', 4)]),
            ((2, 12, 1, 1), Some((2, 4)), "pcwd", vec![('p', 2), ('c', 4), ('w', 3)]),
            ((1, 8, 4, 2), Some((1, 8)), "cpwd", vec![('c', 8), ('p', 4), ('w', 2)]),
            ((1, 2, 4, 15), Some((8, 15)), "wpcd", vec![('w', 2), ('p', 4), ('c', 15)]),
            ((1, 24, 1, 1), Some((2, 4)), "wcdp", vec![('w', 2), ('c', 4), ('d', 3)]),
            ((1, 7, 1, 1), None, "cwdp", vec![('c', 7)]),
        ];
        for ((skipped, inner, gap, outer), domain, name, expected) in cases {
            let found = levels(Relation { skipped, inner, gap, outer }, domain);
            assert_eq!((order(&found).as_str(), &found), (name, &expected));
            assert!(interleaves(&found, inner * outer).is_some(), "{found:?}");
        }
    }

    #[test]
    fn a_geometry_has_as_many_units_as_were_found() {
        // Planes and dies that make none, between channels and packages.
        let found = levels(Relation { skipped: 2, inner: 8, gap: 2, outer: 4 }, Some((2, 8)));
        assert_eq!((order(&found).as_str(), interleaves(&found, 32)), ("pcdw", Some(false)));
        assert_eq!(interleaves(&[('c', 8), ('w', 2), ('d', 2)], 32), Some(true));
        assert_eq!(interleaves(&[('c', 8), ('w', 2)], 32), None);
        assert_eq!(interleaves(&[('c', 8), ('d', 2), ('d', 2)], 32), None);
    }
}
