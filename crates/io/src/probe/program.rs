//! How long programs take: on an idle device that has no write buffer, behind a buffer by what reads wait for and by the rate of writes.

use super::error::ProbeError;
use super::finding::Finding;
use super::held::READS;
use super::instrument::Instrument;
use super::page_types::{FEWEST, page_types, spread};
use super::pairs::Chunks;
use super::statistics::{Moments, median};
use crate::target::Operation;
use planewise_model::{Ns, SECTOR_BYTES};
use rand::RngExt;

/// Most array reads that a program takes: 10 to 30 in all flash from SLC to QLC.
pub(super) const LONGEST_PROGRAM: f64 = 60.0;
/// Share of a time that may be unknown for it to be stated: half of the tenth within which it is said to be.
pub(super) const UNSURE: f64 = 0.05;

pub(super) fn idle_writes(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<Vec<f64>, ProbeError> {
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
pub(super) fn behind_buffer(
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
pub(super) fn behind_programs(
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
pub(super) fn sustained_writes(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<f64, ProbeError> {
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
