//! What a read and a write spend where: in the array, on the bus, on the link, in the controller.
//!
//! On an idle device all of it adds up. What a unit, a bus or the controller is *held* for shows only when something waits for it: so units
//! and buses that the earlier stages found are kept busy, and the time between completions is what each operation holds them for.

use super::array::Array;
use super::bus::{self, Bus, Front, Slope};
use super::controller::{self, Turn};
use super::domains::Domains;
use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::held::{COMMAND_CYCLES, Held, READS, doubt, hold, still_hold};
use super::instrument::Instrument;
use super::page_types::{kinds, page_types, spread};
use super::pairs::Chunks;
use super::program::{self, Reads, UNSURE, Writes};
use super::queue::Queue;
use super::rivals::is_level;
use super::statistics::{Moments, median, quantile};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, SECTOR_BYTES};
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
    /// Longest mean program that reads right after writes, and the rate of writes, leave room for; nothing without a write buffer.
    pub program_most: Option<f64>,
    /// Bus time of a byte, ps.
    pub transfer: Finding<f64>,
    /// Whether a read moves the whole chunk over the bus, whatever is asked for.
    pub whole_chunks: Finding<bool>,
    /// Least time between two commands, whatever their units.
    pub command: Finding<f64>,
    /// What limits commands, ns, when that distance is undetermined: it, or a queue that takes few at a time.
    pub command_about: Option<f64>,
    /// Whether the device takes commands while others wait for their units; without, the first that must wait holds back all.
    pub queues_inside: Finding<bool>,
    /// What it costs to turn from reads to writes; nothing without a write buffer, where programs hide it.
    pub turn: Finding<Turn>,
    /// Least time between two writes of a chunk that the controller takes in; nothing where flash limits them first.
    pub write_command: Option<f64>,
    /// Mean time between completions of random writes of a chunk once buffers are full; nothing without writes.
    pub sustained_write: Option<f64>,
    /// Whether units read their next page while they transfer the last: cache registers.
    pub cache_read: Finding<bool>,
    /// By how much the second of two reads of different domains completes later on an idle device.
    pub behind: f64,
    /// Part of the latency of a block on an idle device that is neither its unit's nor the link's.
    pub overhead: f64,
    /// What the link to the host carries, MB/s; nothing when it does not limit.
    pub link: Finding<f64>,
}

/// Confidence of what a place is held for: buffers that serve other places may make it look slow.
const HELD: f64 = 0.95;
/// Confidence where it may be an array, whose drives have controllers that may be what is held.
const NOT_ONE: f64 = 0.85;
/// Confidence where a read holds all there is for all of its latency: nothing is in front of the flash, or a drive takes one command at a time.
const ALL_HELD: f64 = 0.9;

/// What earlier stages found.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Units and domains.
    pub domains: &'a Domains,
    /// Commands at a time.
    pub queue: &'a Queue,
    /// Drives.
    pub array: Option<Array>,
}

impl Known<'_> {
    /// Whether it is known to be one drive.
    fn is_one(&self) -> bool {
        self.array.is_some_and(|array| array.members == 1)
    }

    /// Whether there are signs of several drives.
    fn is_several(&self) -> bool {
        self.array.map_or(self.queue.is_divided, |array| array.members > 1)
    }
}

/// Measures the latencies. `buffered` is whether a write buffer hides programs.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    known: Known<'_>,
    buffered: Option<bool>,
) -> Result<(Latencies, Vec<Curve>), ProbeError> {
    let Known { domains, queue, .. } = known;
    let block = instrument.block_sectors();
    let whole = chunks.sectors as u32;
    let bytes = |sectors: u32| f64::from(sectors) * SECTOR_BYTES as f64;
    let places: Vec<Lsn> =
        (0..READS).map(|_| chunks.at(instrument.rng.random_range(0..chunks.count())).0).collect();
    // The same places for both: pages that take different times to read must not pass for the cost of a byte.
    let [blocks, wholes] = [idle(instrument, &places, block)?, idle(instrument, &places, whole)?];
    let longer =
        Moments::of(blocks.iter().zip(&wholes).filter_map(|(block, whole)| Some((*whole)? - (*block)?)));
    let [blocks, wholes] = [blocks, wholes].map(|times| times.into_iter().flatten().collect::<Vec<f64>>());
    let curves = vec![distribution(&blocks)];
    let (block_read, chunk_read) = (median(&mut blocks.clone()), median(&mut wholes.clone()));
    let [block_mean, chunk_mean] = [&blocks, &wholes].map(|times| Moments::of(times.iter().copied()).mean());
    let span = bytes(whole) - bytes(block);

    let lost = Domains { unit: None, domain: None, ..domains.clone() };
    let is_lost = !still_hold(instrument, chunks, domains)?;
    let domains = if is_lost { &lost } else { domains };
    let units = domains.units.value;
    // In an array, what holds up reads of one place may be the controller of its drive.
    let held = match known.is_several() {
        true => None,
        false => hold(instrument, chunks, domains, queue, [block, whole], block_mean)?,
    };
    let doubt = match &held {
        Some(_) if !known.is_one() && is_level(instrument, chunks)? => Some(
            "a place is held by two blocks for as long as by one: by the controller of one of several drives, perhaps",
        ),
        Some(held) if !known.is_one() => doubt(held, &longer, queue, units),
        _ => None,
    };
    let held = held.filter(|_| doubt.is_none());
    let sure_of_held = match (queue.holds_all(), known.is_one()) {
        (_, false) => NOT_ONE,
        (true, true) => ALL_HELD,
        (false, true) => HELD,
    };
    let not_held = doubt
        .or(queue.joins.then_some(
            "reads of one place that wait are done together, and no other places are known to share a unit",
        ))
        .unwrap_or("reads of one place are as fast as reads of all places, so that no unit can be kept busy");
    let unit_hold = match &held {
        Some(Held { short, longer }) => {
            let statistic = format!(
                "reads of one unit follow one another every {:.2} us for {}, {:.2} us for {}",
                short.mean() / 1e3,
                Bytes(bytes(block) as u64),
                (short.mean() + longer.mean()) / 1e3,
                Bytes(bytes(whole) as u64)
            );
            let reason = "one place kept busy by reads of blocks, which are slower than those of others";
            Finding::of(short.mean(), sure_of_held, statistic, reason)
        }
        None => Finding::undetermined(queue.commands.statistic.clone(), not_held),
    };
    let idle_slope = Slope::of(&longer, span);
    let held_slope = held.as_ref().map(|held| Slope::of(&held.longer, span));
    let Bus { mut transfer, range, may_overlap, mut whole_chunks, cache_read, link } = bus::find(
        instrument,
        chunks,
        domains,
        idle_slope,
        held_slope,
        unit_hold.value.unwrap_or(0.0),
        Front { is_one: known.is_one(), holds_all: queue.holds_all() },
    )?;
    if sure_of_held < HELD {
        transfer = transfer.at_most(sure_of_held);
        whole_chunks = whole_chunks.at_most(sure_of_held);
    }
    let bus = (range[0] + range[1]) / 2.0;
    let moved = if whole_chunks.value == Some(false) { bytes(block) } else { bytes(whole) };
    let link_block = link.value.map_or(0.0, |rate| bytes(block) * 1e3 / rate);

    let queues_inside = controller::queues_inside(instrument, chunks, domains, block_read)?;
    let queues_inside = if known.is_several() {
        queues_inside.not_known("there may be several drives, each with a queue of its own")
    } else {
        queues_inside
    };
    let controller::Command { distance: command, behind, about: command_about } = if known.is_several() {
        let reason = "there may be several drives, each with a controller of its own";
        controller::Command::unknown(String::new(), reason)
    } else if domains.unit.is_none() {
        let reason = "units are not known, so that what two commands share is not, either";
        controller::Command::unknown(String::new(), reason)
    } else if queues_inside.value == Some(false) {
        let reason = "commands wait for those before them, which hides what the controller needs";
        controller::Command::unknown(String::new(), reason)
    } else {
        controller::command(
            instrument,
            chunks,
            domains,
            queue,
            [block_read, unit_hold.value.unwrap_or(block_read), moved * range[1]],
        )?
    };
    // What rests on units is no surer than they are.
    let rests = if domains.unit.is_some() { domains.units.confidence } else { 1.0 };
    let (queues_inside, command) = (queues_inside.at_most(rests), command.at_most(rests));
    let held = unit_hold.value;
    let overhead = held.map_or(0.0, |held| (block_mean - held - link_block).max(0.0));
    let types = page_types(&blocks);
    // With cache registers, a unit is held by its array alone as long as that takes longer than a transfer.
    let registers = cache_read.value == Some(true);
    // Mean array read of what the bus may take, least and most.
    let array = held.map(|held| {
        let array = held - COMMAND_CYCLES;
        let transfers = match registers {
            true => [0.0; 2],
            false if may_overlap => [0.0, moved * range[1]],
            false => range.map(|bus| moved * bus),
        };
        let [most, least] = transfers.map(|transfer| (array - transfer).max(0.0));
        // What is held for no longer than twice a transfer may be the bus alone, with the array at work behind registers.
        if array < 2.0 * moved * bus { [0.0, array.max(0.0)] } else { [least, most] }
    });
    let read = match array {
        Some([least, most]) => {
            let middle = (least + most) / 2.0;
            let statistic = format!(
                "{READS} reads of one block on an idle device: {}, {}; their arrays take {:.1} to {:.1} us on the average",
                kinds(&types),
                spread(&types),
                least / 1e3,
                most / 1e3
            );
            if most - middle < UNSURE * middle && middle > 0.0 {
                let values: Vec<f64> =
                    types.iter().map(|mean| (middle + mean - block_mean).max(0.0)).collect();
                // Where a unit does not account for most of a read's latency, what takes turns there may be a bus.
                let sure = if overhead < 0.25 * block_mean { HELD } else { 0.9 }.min(sure_of_held);
                Finding::of(values, sure, statistic, "what a unit is held for, less its transfer")
            } else {
                let reason =
                    "a unit is held for array and transfer, and what the transfer takes is not known";
                Finding::undetermined(statistic, reason)
            }
        }
        None => Finding::undetermined(String::new(), not_held),
    };

    let reads = Reads {
        block: block_read,
        chunk: chunk_read,
        chunk_mean,
        array,
        longest: read.value.as_ref().map_or(0.0, |values| values.iter().copied().fold(0.0, f64::max)),
        on_bus: COMMAND_CYCLES + bytes(whole) * bus,
        overhead,
        command: command.value,
        sure: sure_of_held,
        not_held,
    };
    let Writes { chunk: chunk_write, program, program_most, turn, sustained, command: write_command } =
        program::find(instrument, chunks, buffered, units, &reads)?;
    let latencies = Latencies {
        block_read,
        chunk_read,
        chunk_write,
        unit_hold,
        read,
        program,
        program_most,
        transfer,
        whole_chunks,
        command,
        queues_inside,
        turn,
        write_command,
        sustained_write: sustained,
        cache_read,
        behind,
        command_about,
        overhead,
        link,
    };
    Ok((latencies, curves))
}

/// Latencies of reads at these places on an idle device; none where something else delayed
/// one, or a buffer served it: neither must move the mean.
fn idle(
    instrument: &mut Instrument<'_>,
    places: &[Lsn],
    sectors: u32,
) -> Result<Vec<Option<f64>>, ProbeError> {
    let mut times = Vec::with_capacity(places.len());
    for &start in places {
        times.push(instrument.single(Operation::read(start, sectors))?.0 as f64);
    }
    let usual = median(&mut times.clone());
    // A buffer in front of no link and no controller serves in no time at all.
    let is_usual = |time: f64| time >= 0.5 * usual && time <= 3.0 * usual;
    Ok(times.into_iter().map(|time| is_usual(time).then_some(time)).collect())
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
