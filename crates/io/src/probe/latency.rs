//! What a read and a write spend where: in the array, on the bus, on the link, in the controller.
//!
//! On an idle device all of it adds up. What a unit, a bus or the controller is *held* for shows only when something waits for it: so units
//! and buses that the earlier stages found are kept busy, and the time between completions is what each operation holds them for.

use super::controller::{self, Turn};
use super::domains::{Chunks, Domains, STAGGER};
use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::Instrument;
use super::statistics::{Moments, median, quantile};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Latencies of a device. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Median latency of a read of one block on an idle device.
    pub block_read: f64,
    /// Median latency of a read of one chunk on an idle device.
    pub chunk_read: f64,
    /// Median latency of a write of one chunk on an idle device; nothing without writes.
    pub chunk_write: Option<f64>,
    /// Time for which a unit is held by the read of a block: command, array and what is transferred.
    pub unit_hold: Finding<f64>,
    /// Array read times by page type, ascending: one for SLC, two for MLC, three for TLC.
    pub read: Finding<Vec<f64>>,
    /// Array program times by page type, ascending; one, the mean, where a write buffer hides them.
    pub program: Finding<Vec<f64>>,
    /// Bus time of a byte, ps.
    pub transfer: Finding<f64>,
    /// Whether a read moves the whole chunk over the bus, whatever is asked for.
    pub whole_chunks: Finding<bool>,
    /// Least time between two commands, whatever their units.
    pub command: Finding<f64>,
    /// Whether the device takes commands while others wait for their units; without, the first that must wait holds back all.
    pub queues_inside: Finding<bool>,
    /// What it costs to turn from reads to writes; nothing without a write buffer, where programs hide it.
    pub turn: Finding<Turn>,
    /// Least time between two writes of a chunk that the controller takes in; nothing where flash limits them first.
    pub write_command: Option<f64>,
    /// Mean time between completions of random writes of a chunk once buffers are full; nothing without writes.
    pub sustained_write: Option<f64>,
    /// Whether units read their next page while they transfer the last: cache registers.
    pub cache_read: bool,
    /// By how much the second of two reads of different domains completes later on an idle device.
    pub behind: f64,
    /// Part of the latency of a block on an idle device that is neither its unit's nor the link's.
    pub overhead: f64,
    /// What the link to the host carries, MB/s; nothing when it does not limit.
    pub link: Finding<f64>,
}

/// Reads of one kind that are timed.
pub(super) const READS: usize = 2048;
/// Completions of one loop that keeps something busy.
pub(super) const KEPT: u64 = 512;
/// Anchors whose unit, or domain, is kept busy, one after another.
const ANCHORS: usize = 6;
/// Command and address cycles of any flash: not to be seen from outside, assumed to be the 300 ns that data sheets of today's parts give.
pub const COMMAND_CYCLES: f64 = 300.0;
/// Most page types.
const MOST_TYPES: usize = 4;
/// Standard deviations by which page types must differ to be told apart.
const APART: f64 = 3.2;

/// Measures the latencies. `buffered` is whether a write buffer hides programs.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    buffered: Option<bool>,
) -> Result<(Latencies, Vec<Curve>), ProbeError> {
    let block = instrument.block_sectors();
    let whole = chunks.sectors as u32;
    let bytes = |sectors: u32| f64::from(sectors) * SECTOR_BYTES as f64;
    let mut blocks = idle(instrument, chunks, block)?;
    let curves = vec![distribution(&blocks)];
    let mut wholes = idle(instrument, chunks, whole)?;
    let (block_read, chunk_read) = (median(&mut blocks), median(&mut wholes));
    let [block_mean, chunk_mean] = [&blocks, &wholes].map(|times| Moments::of(times.iter().copied()).mean());
    // What one block more costs: the bus and the link, one after the other.
    let per_byte = if whole > block {
        ((chunk_mean - block_mean) / (bytes(whole) - bytes(block))).max(0.0)
    } else {
        0.0
    };

    let lost = Domains { unit: None, domain: None, ..domains.clone() };
    let is_lost = !still_hold(instrument, chunks, domains)?;
    let domains = if is_lost { &lost } else { domains };
    let units = domains.units.value;
    let unit_hold = hold(instrument, chunks, domains, block)?;
    let chunk_hold = hold(instrument, chunks, domains, whole)?;
    let held_by_chunk = chunk_hold.map(|held| held.mean());
    let unknown = "units are not known, so that none can be kept busy";
    let (unit_hold, mut transfer, whole_chunks, cache_read) = match (unit_hold, chunk_hold) {
        (Some(blocks), Some(wholes)) => {
            let (short, long) = (blocks.mean(), wholes.mean());
            let error = (blocks.error().powi(2) + wholes.error().powi(2)).sqrt();
            let statistic = format!(
                "reads of one unit follow one another every {:.2} us for {}, {:.2} us for {}",
                short / 1e3,
                Bytes(bytes(block) as u64),
                long / 1e3,
                Bytes(bytes(whole) as u64)
            );
            let span = bytes(whole) - bytes(block);
            let slope = if span > 0.0 { (long - short) / span } else { 0.0 };
            // A unit that reads ahead of its own transfers, into a second register, is held no longer for them either: there, only a long
            // transfer makes others wait for the bus.
            let hides = span > 0.0 && (long - short) < (4.0 * error).max(0.02 * span * FASTEST);
            let meetings = if hides { meetings(instrument, chunks, domains)? } else { None };
            let has_registers = meetings.is_some_and(|[block, chunk]| block < 0.5 * chunk);
            let moves_whole = hides && !has_registers;
            let transfer = if has_registers {
                let held = meetings.map_or(0.0, |[block, chunk]| chunk - block);
                let statistic = format!(
                    "{statistic}; a read that meets a longer one on the bus waits {:.2} us longer",
                    held / 1e3
                );
                Finding::of(
                    held / span * 1e3,
                    0.8,
                    statistic,
                    "a transfer that others wait for, and its unit does not",
                )
            } else if moves_whole {
                shared_bus(instrument, chunks, domains, short)?
            } else {
                Finding::of(slope * 1e3, 0.999, statistic.clone(), "what longer reads hold a unit longer for")
            };
            let whole_chunks = if span > 0.0 {
                Finding::of(
                    moves_whole,
                    0.99,
                    statistic.clone(),
                    "a short read holds a unit as long as a long one, or not",
                )
            } else {
                Finding::undetermined(statistic.clone(), "a chunk is one block")
            };
            (
                Finding::of(short, 0.999, statistic, "units kept busy by reads of blocks"),
                transfer,
                whole_chunks,
                has_registers,
            )
        }
        _ => (
            Finding::undetermined(String::new(), unknown),
            Finding::undetermined(String::new(), unknown),
            Finding::undetermined(String::new(), unknown),
            false,
        ),
    };
    let bus = transfer.value.unwrap_or(0.0) / 1e3;
    let moved = if whole_chunks.value == Some(true) { bytes(whole) } else { bytes(block) };
    // Bus and link carry the same bytes one after the other: what the bus does not explain is the link.
    let link_per_byte = if whole_chunks.value == Some(true) { per_byte } else { per_byte - bus };
    // Of both slopes.
    let span = (bytes(whole) - bytes(block)).max(1.0);
    let idle_error = [&blocks, &wholes].map(|times| Moments::of(times.iter().copied()).error());
    let held_error = chunk_hold.map_or(0.0, |held| held.error());
    let error = (idle_error[0].powi(2) + idle_error[1].powi(2) + 2.0 * held_error.powi(2)).sqrt() / span;
    // Bytes a second that the flash could give, units and buses together, at most.
    let flash = match (units, domains.degree.value, held_by_chunk) {
        (Some(units), Some(degree), Some(held)) if bus > 0.0 => {
            Some((units as f64 * bytes(whole) / held * 1e3).min(degree as f64 / bus * 1e3))
        }
        _ => None,
    };
    let link = match (controller::link(instrument, chunks, link_per_byte, bus, error, flash)?, transfer.value)
    {
        (link, Some(_)) => link,
        (link, None) => Finding::undetermined(
            link.statistic,
            "what longer reads cost may be the bus's, which is not known",
        ),
    };
    if cache_read && let (Some(rate), Some(held)) = (link.value, &mut transfer.value) {
        // The longer read was in the way on the link, too.
        *held = (*held - 1e6 / rate).max(0.0);
    }
    let bus = transfer.value.unwrap_or(0.0) / 1e3;
    let link_block = link.value.map_or(0.0, |rate| bytes(block) * 1e3 / rate);

    let queues_inside = controller::queues_inside(instrument, chunks, domains, block_read)?;
    let (command, behind) = if domains.unit.is_none() {
        let reason = "units are not known, so that what two commands share is not, either";
        (Finding::undetermined(String::new(), reason), 0.0)
    } else if queues_inside.value == Some(false) {
        let reason = "commands wait for those before them, which hides what the controller needs";
        (Finding::undetermined(String::new(), reason), 0.0)
    } else {
        controller::command(instrument, chunks, domains, block_read, unit_hold.value)?
    };
    let held = unit_hold.value;
    let overhead = held.map_or(0.0, |held| (block_mean - held - link_block).max(0.0));
    let types = page_types(&blocks);
    let read = match held {
        Some(held) => {
            // With cache registers, a unit is held by its array alone as long as that takes longer than a transfer.
            let array = if cache_read { held } else { held - COMMAND_CYCLES - moved * bus };
            let values: Vec<f64> = types.iter().map(|mean| (array + mean - block_mean).max(0.0)).collect();
            let statistic = format!(
                "{READS} reads of one block on an idle device: {}, {}",
                kinds(&types),
                spread(&types)
            );
            Finding::of(values, 0.99, statistic, "what a unit is held for, less its transfer")
        }
        None => Finding::undetermined(String::new(), unknown),
    };

    let mut chunk_write = None;
    let mut program = Finding::undetermined(String::new(), "nothing may be written");
    if instrument.may_write() {
        let writes = idle_writes(instrument, chunks)?;
        let outside = chunk_mean - held.map_or(0.0, |held| held + (bytes(whole) - moved) * bus);
        chunk_write = Some(median(&mut writes.clone()));
        let not_program = outside.max(0.0) + COMMAND_CYCLES + bytes(whole) * bus;
        program = match (buffered, units) {
            // What a write spends outside the array is not known, either.
            (Some(_), None) => Finding::undetermined(String::new(), unknown),
            (Some(false), Some(_)) => {
                let types = page_types(&writes);
                let values = types.iter().map(|mean| (mean - not_program).max(0.0)).collect();
                let statistic = format!(
                    "{} writes on an idle device: {}, {}",
                    writes.len(),
                    kinds(&types),
                    spread(&types)
                );
                Finding::of(
                    values,
                    0.99,
                    statistic,
                    "latency of a write, less what a read spends outside the array",
                )
            }
            (Some(true), Some(units)) => {
                let bus_hold = COMMAND_CYCLES + bytes(whole) * bus;
                match behind_programs(instrument, chunks, units, block_read, bus_hold)? {
                    Some((delays, statistic)) => {
                        // The program began when the write was taken, and the read reached the unit later than it was issued.
                        let values =
                            delays.iter().map(|delay| (delay + overhead - bus_hold).max(0.0)).collect();
                        Finding::of(
                            values,
                            0.8,
                            statistic,
                            "how long reads wait for the unit that programs what a write left in the buffer",
                        )
                    }
                    None => {
                        let interval = sustained_writes(instrument, chunks)?;
                        let held = interval * units as f64;
                        let statistic =
                            format!("sustained writes end every {:.2} us over {units} units", interval / 1e3);
                        let reason = "the write buffer hides programs: what all units together sustain, as if each ran one program at a time";
                        Finding::of(vec![(held - bus_hold).max(0.0)], 0.6, statistic, reason)
                    }
                }
            }
            _ => Finding::undetermined(String::new(), "whether a write buffer hides programs is not known"),
        };
    }
    let shortest = read.value.as_ref().map_or(0.0, |values| values.iter().copied().fold(0.0, f64::max));
    if program.value.as_ref().is_some_and(|values| values.iter().any(|&value| value < shortest)) {
        let reason = "what was seen is shorter than an array read, and no program is";
        program = Finding::undetermined(program.statistic, reason);
    }
    let turn = match (buffered, chunk_write) {
        (Some(true), Some(write)) => controller::turn(instrument, chunks, chunk_read, write, command.value)?,
        _ => Finding::undetermined(String::new(), "programs hide what it costs to turn"),
    };
    let sustained_write = match instrument.may_write() {
        true => Some(sustained_writes(instrument, chunks)?),
        false => None,
    };
    let write_command = match (buffered, units, program.value.as_deref()) {
        (Some(true), Some(units), Some(programs)) => {
            let interval = sustained_write.unwrap_or(0.0);
            let cycle = Moments::of(programs.iter().copied()).mean() + COMMAND_CYCLES + bytes(whole) * bus;
            (interval > 1.05 * cycle / units as f64).then_some(interval)
        }
        _ => None,
    };
    if let (Some(units), Some(interval), Some(values)) = (units, sustained_write, &mut program.value) {
        // Where units are what limits writes, their rate says how long a program takes better than how long reads wait for one.
        let mean = Moments::of(values.iter().copied()).mean();
        let sustained = interval * units as f64 - COMMAND_CYCLES - bytes(whole) * bus;
        if buffered == Some(true)
            && write_command.is_none()
            && (0.8..1.1).contains(&(sustained / mean.max(1.0)))
        {
            values.iter_mut().for_each(|value| *value *= sustained / mean);
            program.statistic +=
                &format!("; sustained writes end every {:.2} us over {units} units", interval / 1e3);
        }
    }
    let latencies = Latencies {
        block_read,
        chunk_read,
        chunk_write,
        unit_hold,
        read,
        program,
        transfer,
        whole_chunks,
        command,
        queues_inside,
        turn,
        write_command,
        sustained_write,
        cache_read,
        behind,
        overhead,
        link,
    };
    Ok((latencies, curves))
}

/// Bus time of a byte that is too little for any flash, ns.
const FASTEST: f64 = 0.25;

fn idle(instrument: &mut Instrument<'_>, chunks: Chunks, sectors: u32) -> Result<Vec<f64>, ProbeError> {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = chunks.at(instrument.rng.random_range(0..chunks.count())).0;
        times.push(instrument.single(Operation::read(start, sectors))?.0 as f64);
    }
    // A few that something else delayed must not move the mean.
    let limit = 3.0 * median(&mut times.clone());
    times.retain(|&time| time < limit);
    Ok(times)
}

fn idle_writes(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<Vec<f64>, ProbeError> {
    let mut times = Vec::new();
    for _ in 0..READS / 2 {
        let start = chunks.at(instrument.rng.random_range(0..chunks.count())).0;
        times.push(instrument.single(Operation::write(start, chunks.sectors as u32))?.0 as f64);
    }
    let limit = 4.0 * median(&mut times.clone());
    times.retain(|&time| time < limit);
    Ok(times)
}

/// Means of the kinds of pages, ascending: as many equal shares of the sorted times as are clearly apart.
fn page_types(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // Stragglers would make a kind of their own.
    let kept = &sorted[..sorted.len() - sorted.len() / 50];
    for types in (2..=MOST_TYPES).rev() {
        let shares: Vec<Moments> = (0..types)
            .map(|share| {
                let (from, to) = (kept.len() * share / types, kept.len() * (share + 1) / types);
                // The edges of a share hold its neighbours' pages when shares are not quite equal.
                let trim = (to - from) / 16;
                Moments::of(kept[from + trim..to - trim].iter().copied())
            })
            .collect();
        // Noise split into equal shares has no gaps: between kinds of pages there are few, where one kind has most.
        let gaps_are_empty = (1..types).all(|share| {
            let at = kept.len() * share / types;
            let width = kept.len() / types / 8;
            let (low, high) = (kept[at - width], kept[(at + width).min(kept.len() - 1)]);
            let around = &shares[share - 1..=share];
            high - low > 0.6 * (around[1].mean() - around[0].mean())
        });
        let are_apart = gaps_are_empty
            && shares.windows(2).all(|pair| {
                let deviation = (pair[0].variance().sqrt() + pair[1].variance().sqrt()) / 2.0;
                pair[1].mean() - pair[0].mean() > (APART * deviation).max(0.03 * pair[0].mean())
            });
        if are_apart {
            return shares.iter().map(Moments::mean).collect();
        }
    }
    vec![Moments::of(kept.iter().copied()).mean()]
}

/// How many kinds of pages these are.
fn kinds(types: &[f64]) -> String {
    if types.len() == 1 { "1 kind of pages".to_owned() } else { format!("{} kinds of pages", types.len()) }
}

fn spread(types: &[f64]) -> String {
    let each: Vec<String> = types.iter().map(|mean| format!("{:.1} us", mean / 1e3)).collect();
    each.join(" / ")
}

fn distribution(times: &[f64]) -> Curve {
    let mut sorted = times.to_vec();
    let points = (0..=100)
        .map(|percent| (quantile(&mut sorted, f64::from(percent) / 100.0) / 1e3, f64::from(percent)))
        .collect();
    Curve {
        title: "Reads of one block on an idle device".into(),
        x: "latency, us".into(),
        y: "share of reads at or below it, %".into(),
        lines: vec![("reads".into(), points)],
    }
}

/// Chunks that satisfy a condition together with an anchor.
pub(super) fn companions(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    most: usize,
    wanted: impl Fn(u64, u64) -> bool,
) -> Vec<Lsn> {
    let anchor = instrument.rng.random_range(0..chunks.count());
    let number = chunks.at(anchor).1;
    let mut found = vec![chunks.at(anchor).0];
    for _ in 0..400 * most {
        if found.len() >= most {
            break;
        }
        let (start, other) = chunks.at(instrument.rng.random_range(0..chunks.count()));
        if wanted(number, other) {
            found.push(start);
        }
    }
    found
}

/// How long a block waits, at most, that meets the read of another block, or of a chunk, on the bus of both, ns; none where no two units share
/// one.
fn meetings(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
) -> Result<Option<[f64; 2]>, ProbeError> {
    let (Some((stride, degree)), Some(unit)) = (domains.domain, domains.unit) else { return Ok(None) };
    if unit.units() == degree {
        return Ok(None);
    }
    let block = instrument.block_sectors();
    let together =
        |one: u64, other: u64| one / stride % degree == other / stride % degree && !unit.holds(one, other);
    let mut waits = [Vec::new(), Vec::new()];
    for _ in 0..READS / 4 {
        let pair = companions(instrument, chunks, 2, together);
        let &[first, second] = pair.as_slice() else { continue };
        let own = instrument.single(Operation::read(second, block))?.0 as f64;
        for (sectors, waits) in [block, chunks.sectors as u32].into_iter().zip(&mut waits) {
            let group =
                [(Operation::read(first, sectors), Ns::ZERO), (Operation::read(second, block), Ns(300))];
            waits.push(instrument.group(group)?[1].0 as f64 - 300.0 - own);
        }
    }
    Ok(Some(waits.map(|mut waits| quantile(&mut waits, 0.9).max(0.0))))
}

/// Whether chunks still share units as they did when the units were found: a device that sends writes to idle units has moved them.
fn still_hold(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
) -> Result<bool, ProbeError> {
    let Some(unit) = domains.unit else { return Ok(true) };
    let block = instrument.block_sectors();
    let mut classes = [Moments::default(); 2];
    for number in 0..512 {
        let shares = number % 2 == 1;
        let pair = companions(instrument, chunks, 2, |one, other| unit.holds(one, other) == shares);
        let &[first, second] = pair.as_slice() else { continue };
        let (first, second) = (first.max(second), first.min(second));
        let group = [(Operation::read(first, block), Ns::ZERO), (Operation::read(second, block), STAGGER)];
        classes[usize::from(shares)].add(instrument.group(group)?[1].0 as f64);
    }
    let contrast = classes[1].mean() - classes[0].mean();
    Ok(contrast > 0.75 * domains.unit_contrast)
}

/// Time between completions of reads on one unit that is kept busy; none when units are not known.
fn hold(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    sectors: u32,
) -> Result<Option<Moments>, ProbeError> {
    let Some(unit) = domains.unit else { return Ok(None) };
    let mut intervals = Moments::default();
    for _ in 0..ANCHORS {
        let places = companions(instrument, chunks, 48, |one, other| unit.holds(one, other));
        intervals.add(busy(instrument, &places, 4, sectors)?);
    }
    Ok(Some(intervals))
}

/// Mean time between completions while `depth` reads of these places are under way.
fn busy(
    instrument: &mut Instrument<'_>,
    places: &[Lsn],
    depth: u32,
    sectors: u32,
) -> Result<f64, ProbeError> {
    let result = instrument.keep(depth, Ns::MAX, |rng, number| {
        let place = places[rng.random_range(0..places.len())];
        (number < KEPT).then(|| Operation::read(place, sectors))
    })?;
    Ok(result.interval())
}

/// Bus time of a byte where whole chunks are always moved: from a domain whose units are all kept busy, if its bus is what limits them.
fn shared_bus(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    unit_hold: f64,
) -> Result<Finding<f64>, ProbeError> {
    let (Some((stride, degree)), Some(sub_domains)) = (domains.domain, domains.sub_domains.value) else {
        return Ok(Finding::undetermined(
            String::new(),
            "domains are not known, so that no bus can be kept busy",
        ));
    };
    let bytes = (chunks.sectors * SECTOR_BYTES) as f64;
    let block = instrument.block_sectors();
    let mut intervals = Moments::default();
    for _ in 0..ANCHORS {
        let places =
            companions(instrument, chunks, 96, |one, other| one / stride % degree == other / stride % degree);
        let depth = (8 * sub_domains as u32).min(instrument.depth());
        intervals.add(busy(instrument, &places, depth, block)?);
    }
    let interval = intervals.mean();
    let statistic = format!(
        "reads of one domain follow one another every {:.2} us, its {sub_domains} units could do one every {:.2} us",
        interval / 1e3,
        unit_hold / sub_domains as f64 / 1e3
    );
    if sub_domains > 1 && interval > 1.3 * unit_hold / sub_domains as f64 {
        let held = (interval - COMMAND_CYCLES).max(0.0);
        return Ok(Finding::of(
            held / bytes * 1e3,
            0.95,
            statistic,
            "the bus of a domain kept busy; whole chunks are moved",
        ));
    }
    // The longest that one read waits for another on the bus is a transfer.
    let held = 2.0 * domains.domain_contrast;
    if sub_domains > 1 && held > 0.0 {
        return Ok(Finding::of(
            held / bytes * 1e3,
            0.6,
            statistic,
            "twice the mean wait of two reads that meet on a bus",
        ));
    }
    Ok(Finding::of(
        0.0,
        0.9,
        statistic,
        "one unit a domain: its transfers cannot be told from its array reads",
    ))
}

/// How long reads wait behind a program that a write just started from the buffer: kinds of delays, and the statistic; none when too few
/// reads meet one.
fn behind_programs(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    units: u64,
    alone: f64,
    bus_hold: f64,
) -> Result<Option<(Vec<f64>, String)>, ProbeError> {
    const WANTED: usize = 192;
    let block = instrument.block_sectors();
    let (mut delays, mut reads) = (Vec::new(), 0u64);
    let most = (units * 64).clamp(600, 2500);
    // A read that only waits for a transfer on its bus is no measure of a program.
    let least = (0.4 * alone).max(1.3 * bus_hold);
    while delays.len() < WANTED && reads < most {
        let places = [(); 2].map(|()| chunks.at(instrument.rng.random_range(0..chunks.count())).0);
        instrument.single(Operation::write(places[0], chunks.sectors as u32))?;
        let delay = instrument.single(Operation::read(places[1], block))?.0 as f64 - alone;
        // The flash has to be idle again, and nothing of this write on its way.
        instrument.pause(Ns::from_millis(4))?;
        reads += 1;
        if delay > least {
            delays.push(delay);
        }
        if reads == most / 2 && delays.len() < 6 {
            return Ok(None);
        }
    }
    if delays.len() < 24 {
        return Ok(None);
    }
    let limit = 3.0 * median(&mut delays.clone());
    delays.retain(|&delay| delay < limit);
    let types = page_types(&delays);
    let statistic =
        format!("{} of {reads} reads right after a write waited, {}", delays.len(), spread(&types));
    Ok(Some((types, statistic)))
}

/// Mean time between completions of writes of chunks, all over the area, once every buffer is full.
fn sustained_writes(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<f64, ProbeError> {
    let depth = instrument.depth().min(64);
    let bytes = (chunks.sectors * SECTOR_BYTES).max(1);
    let writes = ((128 << 20) / bytes).max(4096);
    let result = instrument.keep(depth, Ns::MAX, |rng, number| {
        (number < writes).then(|| {
            Operation::write(chunks.at(rng.random_range(0..chunks.count())).0, chunks.sectors as u32)
        })
    })?;
    // Completions are in order of time; the second half has no free buffer left.
    let half = result.latencies.len() / 2;
    let interval = result.second_half_interval();
    Ok(if half > 0 { interval } else { result.interval() })
}
