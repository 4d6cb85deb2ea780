//! How long programs take: on an idle device that has no write buffer, behind a buffer by what reads wait for and by the rate of writes.

use super::controller::{self, Turn};
use super::error::ProbeError;
use super::finding::Finding;
use super::held::{READS, reads_all_over};
use super::instrument::Instrument;
use super::page_types::{FEWEST, kinds, page_types, spread};
use super::pairs::Chunks;
use super::statistics::{Moments, median};
use crate::target::Operation;
use planewise_model::{Ns, SECTOR_BYTES};
use rand::RngExt;

/// Most array reads that a program takes: 10 to 30 in all flash from SLC to QLC.
const LONGEST_PROGRAM: f64 = 60.0;
/// Share of a time that may be unknown for it to be stated: half of the tenth within which it is said to be.
pub(super) const UNSURE: f64 = 0.05;

/// What reads say before programs are timed. Times in ns.
pub(super) struct Reads<'a> {
    /// Median latency of a block on an idle device.
    pub(super) block: f64,
    /// Median latency of a chunk on an idle device.
    pub(super) chunk: f64,
    /// Mean latency of a chunk on an idle device.
    pub(super) chunk_mean: f64,
    /// Mean array read, least and most.
    pub(super) array: Option<[f64; 2]>,
    /// Array read of the slowest kind of pages; 0: not known.
    pub(super) longest: f64,
    /// What a chunk holds its bus.
    pub(super) on_bus: f64,
    /// Part of the latency of a block that is neither its unit's nor the link's.
    pub(super) overhead: f64,
    /// Least time between two commands.
    pub(super) command: Option<f64>,
    /// How sure it is what a unit is held for.
    pub(super) sure: f64,
    /// Why that is not known, where it is not.
    pub(super) not_held: &'a str,
}

/// What writes say. Times in ns.
pub(super) struct Writes {
    /// Median latency of a chunk on an idle device; nothing without writes.
    pub(super) chunk: Option<f64>,
    /// Array program times by page type.
    pub(super) program: Finding<Vec<f64>>,
    /// Longest mean program that there is room for behind a write buffer.
    pub(super) program_most: Option<f64>,
    /// What it costs to turn from reads to writes.
    pub(super) turn: Finding<Turn>,
    /// Mean time between random writes of a chunk once buffers are full; nothing without writes.
    pub(super) sustained: Option<f64>,
    /// Least time between two writes of a chunk that the controller takes in; nothing where flash limits them first.
    pub(super) command: Option<f64>,
}

/// Times programs. `buffered` is whether a write buffer hides them.
///
/// # Errors
/// The target fails; the user wants it to end.
pub(super) fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    buffered: Option<bool>,
    units: Option<u64>,
    reads: &Reads<'_>,
) -> Result<Writes, ProbeError> {
    let mut found = Writes {
        chunk: None,
        program: Finding::undetermined(String::new(), "nothing may be written"),
        program_most: None,
        turn: Finding::undetermined(String::new(), "programs hide what it costs to turn"),
        sustained: None,
        command: None,
    };
    if !instrument.may_write() {
        return Ok(found);
    }
    let writes = idle_writes(instrument, chunks)?;
    found.chunk = Some(median(&mut writes.clone()));
    found.program = match (buffered, units) {
        // What a write spends outside the array is not known, either.
        (Some(_), None) => {
            Finding::undetermined(String::new(), "units are not known, so that none can be kept busy")
        }
        (Some(false), Some(_)) => by_latency(&writes, reads),
        (Some(true), Some(units)) => behind_a_buffer(instrument, chunks, units, reads, &mut found)?,
        _ => Finding::undetermined(String::new(), "whether a write buffer hides programs is not known"),
    };
    let is_any = |of: &Finding<Vec<f64>>, is: &dyn Fn(f64) -> bool| {
        of.value.as_ref().is_some_and(|values| values.iter().any(|&value| is(value)))
    };
    let longest = reads.longest;
    if longest > 0.0 && is_any(&found.program, &|value| value > LONGEST_PROGRAM * longest) {
        found.program = found.program.not_known("what was seen is longer than a program: collections");
    }
    if is_any(&found.program, &|value| value < longest) {
        found.program =
            found.program.not_known("what was seen is shorter than an array read, and no program is");
    }
    let interval = match found.sustained {
        Some(interval) => interval,
        None => sustained_writes(instrument, chunks)?,
    };
    found.sustained = Some(interval);
    if let (Some(true), Some(units), Some(programs)) = (buffered, units, found.program.value.as_deref()) {
        let cycle = Moments::of(programs.iter().copied()).mean() + reads.on_bus;
        found.command = (interval > 1.05 * cycle / units as f64).then_some(interval);
    }
    Ok(found)
}

/// Program times by the latency of writes on an idle device without a write buffer: a write does all that a read of a chunk does, with a program for the array read.
fn by_latency(writes: &[f64], reads: &Reads<'_>) -> Finding<Vec<f64>> {
    let types = page_types(writes);
    // Writes that wait for collection are slower, and their share is no kind of pages.
    let middle = median(&mut writes.to_vec());
    let is_even = types.len() > 1 || (types[0] / middle - 1.0).abs() < 0.02;
    let statistic = |outside: String| {
        format!("{} writes on an idle device: {}, {}{outside}", writes.len(), kinds(&types), spread(&types))
    };
    let Some([least, most]) = reads.array else {
        return Finding::undetermined(statistic(String::new()), reads.not_held);
    };
    if !is_even || types.last() > types.first().map(|first| 8.0 * first).as_ref() {
        let reason = "some writes take longer than others: for collections";
        let half = format!("; half of them no more than {:.1} us", middle / 1e3);
        return Finding::undetermined(statistic(half), reason);
    }
    let centre = (least + most) / 2.0;
    let each = if types.len() == 1 { vec![middle] } else { types.clone() };
    let values: Vec<f64> = each.iter().map(|mean| (mean - reads.chunk_mean + centre).max(0.0)).collect();
    let statistic = statistic(format!(
        "; a read takes {:.1} us, {:.1} to {:.1} us of it in the array",
        reads.chunk_mean / 1e3,
        least / 1e3,
        most / 1e3
    ));
    if (most - least) / 2.0 < UNSURE * values[0] {
        let reason = "latency of a write, less what a read spends outside the array";
        Finding::of(values, reads.sure.min(0.9), statistic, reason)
    } else {
        Finding::undetermined(statistic, "what a read spends outside the array is not known")
    }
}

/// Program times behind a write buffer; `found` gets what it costs to turn, and what writes sustain.
fn behind_a_buffer(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    units: u64,
    reads: &Reads<'_>,
    found: &mut Writes,
) -> Result<Finding<Vec<f64>>, ProbeError> {
    let waits = behind_programs(instrument, chunks, units, reads.block, reads.on_bus)?;
    // Before buffers are full.
    let write = found.chunk.unwrap_or(0.0);
    let all_over = reads_all_over(instrument, chunks)?;
    found.turn = controller::turn(instrument, chunks, [reads.chunk, write], reads.command, all_over)?;
    let interval = sustained_writes(instrument, chunks)?;
    found.sustained = Some(interval);
    let sustained = interval * units as f64 - reads.on_bus;
    let (program, most) = behind_buffer(waits, reads.overhead - reads.on_bus, sustained);
    found.program_most = Some(most);
    Ok(if interval < 1.5 * all_over {
        program.not_known("writes are about as fast as reads: something in front of the flash may limit both")
    } else {
        program
    })
}

fn idle_writes(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<Vec<f64>, ProbeError> {
    let mut times = Vec::new();
    for _ in 0..READS / 2 {
        let start = chunks.at(instrument.rng.random_range(0..chunks.count())).0;
        times.push(instrument.single(Operation::write(start, chunks.sectors as u32))?.0 as f64);
        // A collection that one of them began is over.
        instrument.pause(Ns::from_millis(2))?;
    }
    let limit = 4.0 * median(&mut times.clone());
    times.retain(|&time| time < limit);
    Ok(times)
}

/// Program times behind a write buffer: how long reads wait for a unit that programs, less what else they wait for (`delay_to_program` is what to add),
/// if random writes sustain what units do that run one such program at a time. Otherwise reads may have waited for several, or something else may
/// limit writes.
fn behind_buffer(
    waits: Option<(Vec<f64>, String)>,
    delay_to_program: f64,
    sustained: f64,
) -> (Finding<Vec<f64>>, f64) {
    let by_rate = format!(
        "what random writes sustain is a program of {:.1} us at a time in each unit",
        sustained / 1e3
    );
    let Some((delays, statistic)) = waits else {
        let reason = "the write buffer hides programs, and no reads wait for them";
        return (Finding::undetermined(by_rate, reason), sustained.max(0.0));
    };
    let statistic = format!("{statistic}; {by_rate}");
    let values: Vec<f64> = delays.iter().map(|delay| (delay + delay_to_program).max(0.0)).collect();
    let mean = Moments::of(values.iter().copied()).mean();
    let most = mean.min(sustained.max(0.0));
    if (sustained - mean).abs() > 2.0 * UNSURE * mean {
        let reason = "reads wait for another time than a program takes by the rate of writes: for several programs, or something else limits writes";
        return (Finding::undetermined(statistic, reason), most);
    }
    let reason = "how long reads wait for the unit that programs what a write left in the buffer, and as long as writes sustain";
    // The rate has less noise.
    let values = values.into_iter().map(|value| value * sustained / mean).collect();
    (Finding::of(values, 0.8, statistic, reason), most)
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
    // A write starts one program at least: fewer reads that meet one wait for something rarer.
    if delays.len() < FEWEST || (delays.len() as f64) < 0.5 * reads as f64 / units as f64 {
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
