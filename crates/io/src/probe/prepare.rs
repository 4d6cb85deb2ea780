//! Writes that bring a device into a known state, as the paper does before each experiment (Chen et al. 2016, section 4.2).

use super::error::ProbeError;
use super::instrument::{Area, Instrument};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Size of the writes that fill an area: 256 KB, as in the paper.
const FILL: u64 = (256 << 10) / SECTOR_BYTES;

/// Overwrites an area once, in order, with one write of 256 KiB at a time, and pauses.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn fill(instrument: &mut Instrument<'_>, area: Area, pause: Ns) -> Result<(), ProbeError> {
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let step = FILL.min(longest);
    let mut at = area.start;
    instrument.keep(1, Ns::MAX, |_, _| {
        let left = area.start + area.sectors - at;
        let write = Operation::write(Lsn(at), step.min(left) as u32);
        at += u64::from(write.sectors);
        (left > 0).then_some(write)
    })?;
    instrument.flush()?;
    instrument.pause(pause)
}

/// Overwrites chunks of an area in random order, one at a time and each at most once, and returns them in that order (as numbers of the
/// area's chunks). Chunks are as far apart as the area allows, so that no write buffer finds neighbours to write together, and with them
/// out of order. Meanwhile blocks at `busy` are read as many at a time as can be, to keep their units busy.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn scatter(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    chunks: u64,
    busy: &[Lsn],
) -> Result<Vec<u64>, ProbeError> {
    let every = (area.pieces(sectors) / chunks.max(1)).max(1);
    let count = area.pieces(sectors) / every;
    let mut order: Vec<u64> =
        (0..count).map(|index| index * every + instrument.rng.random_range(0..every)).collect();
    order.shuffle(&mut instrument.rng);
    if !busy.is_empty() {
        write_among_reads(instrument, area, sectors, &order, busy)?;
        instrument.flush()?;
        return Ok(order);
    }
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let parts = sectors.div_ceil(longest);
    let writes = &order;
    instrument.keep(1, Ns::MAX, |_, number| {
        let chunk = writes.get((number / parts) as usize)?;
        Some(part(area.piece(sectors, *chunk), sectors, number % parts, longest))
    })?;
    instrument.flush()?;
    Ok(order)
}

/// The write of one part of a chunk that is longer than an operation may be.
fn part(chunk: Lsn, sectors: u64, part: u64, longest: u64) -> Operation {
    let from = part * longest;
    Operation::write(Lsn(chunk.0 + from), (sectors - from).min(longest) as u32)
}

/// Writes so much to an area, in order and again from its beginning if need be, so that what was written before leaves the write
/// buffer for the flash.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn push_out(instrument: &mut Instrument<'_>, area: Area, bytes: Bytes) -> Result<(), ProbeError> {
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let step = FILL.min(longest).min(area.sectors);
    let writes = bytes.0 / (step * SECTOR_BYTES);
    let places = area.sectors / step;
    instrument.keep(1, Ns::MAX, |_, number| {
        let at = Lsn(area.start + number % places * step);
        (number < writes).then(|| Operation::write(at, step as u32))
    })?;
    instrument.flush()?;
    Ok(())
}

/// Most reads at a time that keep units busy.
const READERS: u32 = 32;

/// Writes chunks of an area one after the other, while others read blocks at these places.
fn write_among_reads(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    order: &[u64],
    busy: &[Lsn],
) -> Result<(), ProbeError> {
    let block = instrument.block_sectors();
    let jobs = (READERS + 1).min(instrument.depth());
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let parts = sectors.div_ceil(longest);
    let (mut next, mut done) = (0, 0);
    while next < order.len() {
        instrument.jobs(jobs, 1, Ns::from_millis(20), |rng, job| {
            if job == 0
                && let Some(&chunk) = order.get(next)
            {
                let write = part(area.piece(sectors, chunk), sectors, done, longest);
                done += 1;
                if done == parts {
                    (next, done) = (next + 1, 0);
                }
                return write;
            }
            Operation::read(busy[rng.random_range(0..busy.len())], block)
        })?;
    }
    Ok(())
}
