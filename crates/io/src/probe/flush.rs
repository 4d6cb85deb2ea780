//! What a flush costs, and with that whether what was written waits in a buffer that loses it with the power.
//!
//! A flush is complete when all that was acknowledged before it survives a loss of power. Where writes are programmed before they are acknowledged, or where capacitors
//! keep the buffer, there is nothing to do: it takes what any command takes. Else it takes as long as what waits in the buffer takes to be programmed.
//!
//! A flush that is dear right behind a write may also have met a controller that is busy with that write. So it is compared with a flush behind a write and a rest, in which
//! any controller has come to its end, and with a read of what was just written, which meets the same controller. A flush that is cheap may have come when all was in flash
//! already. So it is only put down to capacitors where something shows that pages were waiting: they are read from the buffer, or all is over before any flash can have been programmed.

use super::error::ProbeError;
use super::finding::Finding;
use super::instrument::{Area, Instrument};
use super::statistics::{median, quantile};
use super::write_buffer::WriteBuffer;
use crate::target::{Operation, TargetKind};
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// What flushes cost: medians, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flush {
    /// With nothing to write back: right behind another flush.
    pub alone: f64,
    /// Behind a write of a page, as soon as that is acknowledged.
    pub behind_write: f64,
    /// Behind a write of a page and a rest.
    pub behind_rest: f64,
    /// Writes of a page, all acknowledged, behind which the next was measured.
    pub writes: u64,
    /// Behind so many.
    pub behind_writes: f64,
    /// Whether what was written waits where a loss of power takes it: a flush has something to do.
    pub volatile: Finding<bool>,
}

impl Flush {
    /// What each of many writes adds to a flush behind them, ns.
    pub fn by_page(&self) -> f64 {
        (self.behind_writes - self.alone).max(0.0) / self.writes.max(1) as f64
    }
}

/// Flushes of a kind.
pub(super) const FLUSHES: usize = 48;
/// Writes that rest, of each kind.
pub(super) const RESTS: usize = 24;
/// How long a controller and its flash get to do what they do by themselves.
pub(super) const REST: Ns = Ns::from_millis(20);
/// Bursts of writes.
pub(super) const BURSTS: u64 = 4;
/// Data of a burst at most, unless that is fewer writes than the least.
pub(super) const BURST: u64 = 32 << 20;
/// Fewest and most writes of a burst.
pub(super) const WRITES: [u64; 2] = [64, 4096];
/// No flash is programmed in less, ns: 75 to 100 us are what data sheets give for the fastest (one bit a cell, short lines).
const SHORTEST_PROGRAM: f64 = 75_000.0;
/// Least that a flush takes longer behind a write that it has to wait for, ns.
const SEEN: f64 = 25_000.0;

/// Measures flushes behind writes of `sectors` in an area; `buffer` is what is known of the write buffer.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    buffer: Option<&WriteBuffer>,
) -> Result<Flush, ProbeError> {
    let pages = |size: Bytes| size.0 / (sectors * SECTOR_BYTES);
    let about = buffer.and_then(|buffer| buffer.size.value.or(buffer.size_about)).map(pages);
    let one = one_write(instrument, area, sectors)?;
    let rested = rested(instrument, area, sectors)?;
    let many = many_writes(instrument, area, sectors, about)?;
    let volatile = verdict(&one, &rested, &many, buffer.and_then(|buffer| buffer.present.value));
    // What stands between the program and a drive decides whether it gets a flush at all.
    let volatile = match instrument.target().info().kind {
        TargetKind::Simulated => volatile,
        _ if volatile.value == Some(false) => {
            let sent = format!("{}; or the system sends it no flush", volatile.reason);
            Finding { reason: sent, ..volatile }.at_most(NOT_SENT)
        }
        TargetKind::File if volatile.value == Some(true) => {
            let own = format!("{}; or its file system has something of its own to write", volatile.reason);
            Finding { reason: own, ..volatile }.at_most(NOT_SENT)
        }
        _ => volatile,
    };
    Ok(Flush {
        alone: one.alone,
        behind_write: one.behind,
        behind_rest: rested.behind[1],
        writes: many.writes,
        behind_writes: many.behind,
        volatile,
    })
}

/// Confidence where a drive's system may have kept the flushes to itself, or a file system added to them.
const NOT_SENT: f64 = 0.8;

/// Around one write, medians, ns.
struct One {
    /// A flush behind a flush.
    alone: f64,
    /// A flush behind a write.
    behind: f64,
    /// A read of the block that was just written, instead of the flush.
    read: f64,
    /// The write.
    write: f64,
}

fn one_write(instrument: &mut Instrument<'_>, area: Area, sectors: u64) -> Result<One, ProbeError> {
    let block = instrument.block_sectors();
    let [mut alone, mut behind, mut reads, mut writes] = [const { Vec::new() }; 4];
    for _ in 0..FLUSHES {
        let places = [(); 2].map(|()| area.random_piece(sectors, &mut instrument.rng));
        let [flushed, read] = places;
        instrument.single(Operation::flush())?;
        alone.push(instrument.single(Operation::flush())?.0 as f64);
        writes.push(instrument.single(Operation::write(flushed, sectors as u32))?.0 as f64);
        behind.push(instrument.single(Operation::flush())?.0 as f64);
        // What one write leaves behind must not meet the next.
        instrument.pause(REST)?;
        instrument.single(Operation::write(read, sectors as u32))?;
        reads.push(instrument.single(Operation::read(read, block))?.0 as f64);
        instrument.pause(REST)?;
    }
    let [alone, behind, read, write] = [alone, behind, reads, writes].map(|mut times| median(&mut times));
    Ok(One { alone, behind, read, write })
}

/// After a rest.
struct Rested {
    /// A flush without a write before the rest, and with one: medians, ns.
    behind: [f64; 2],
    /// Whether those with one are clearly longer.
    is_longer: bool,
    /// Whether what was written before the rest is read faster than what was written long ago: it is still in the buffer.
    is_resident: bool,
}

fn rested(instrument: &mut Instrument<'_>, area: Area, sectors: u64) -> Result<Rested, ProbeError> {
    let block = instrument.block_sectors();
    let mut flushes = [const { Vec::new() }; 2];
    let mut reads = [const { Vec::new() }; 2];
    for _ in 0..RESTS {
        let places = [(); 3].map(|()| area.random_piece(sectors, &mut instrument.rng));
        instrument.single(Operation::flush())?;
        // The rest itself may make a drive slow to wake up.
        for (times, write) in flushes.iter_mut().zip([None, Some(places[0])]) {
            if let Some(place) = write {
                instrument.single(Operation::write(place, sectors as u32))?;
            }
            instrument.pause(REST)?;
            times.push(instrument.single(Operation::flush())?.0 as f64);
        }
        instrument.single(Operation::write(places[1], sectors as u32))?;
        instrument.pause(REST)?;
        for (times, place) in reads.iter_mut().zip([places[1], places[2]]) {
            times.push(instrument.single(Operation::read(place, block))?.0 as f64);
        }
    }
    let [without, with] = &mut flushes;
    let is_longer = quantile(with, 0.25) > quantile(without, 0.75);
    let behind = flushes.map(|mut times| median(&mut times));
    let [written, others] = &mut reads;
    // Without noise times are the same to the nanosecond: a little is no other place.
    let is_resident = quantile(written, 0.9) < 0.97 * quantile(others, 0.1);
    Ok(Rested { behind, is_longer, is_resident })
}

/// Behind many writes.
struct Many {
    writes: u64,
    /// The flush: median, ns.
    behind: f64,
}

fn many_writes(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    held: Option<u64>,
) -> Result<Many, ProbeError> {
    let most = (BURST / (sectors * SECTOR_BYTES)).clamp(WRITES[0], WRITES[1]);
    // Twice what the buffer holds fills it, whatever leaves meanwhile.
    let writes = held.map_or(WRITES[0], |held| 2 * held).clamp(WRITES[0], most).min(area.pieces(sectors));
    let depth = instrument.depth().min(64);
    let mut times = Vec::new();
    for _ in 0..BURSTS {
        instrument.keep(depth, Ns::MAX, |rng, number| {
            (number < writes).then(|| Operation::write(area.random_piece(sectors, rng), sectors as u32))
        })?;
        times.push(instrument.single(Operation::flush())?.0 as f64);
        instrument.pause(REST)?;
    }
    Ok(Many { writes, behind: median(&mut times) })
}

/// Confidence where writes wait though nothing else is under way.
const WAITS: f64 = 0.95;
/// Confidence of what rests on one comparison.
const COMPARED: f64 = 0.9;

/// Whether a flush has something to do. `present` is whether there is a buffer.
fn verdict(one: &One, rested: &Rested, many: &Many, present: Option<bool>) -> Finding<bool> {
    let [without, with] = rested.behind;
    let statistic = format!(
        "a flush takes {:.1} us, {:.1} us behind a write, {:.1} us behind a write and a rest of {} ms, {:.1} us behind {} writes; a read of what was just written {:.1} us",
        one.alone / 1e3,
        one.behind / 1e3,
        with / 1e3,
        REST.0 / 1_000_000,
        many.behind / 1e3,
        many.writes,
        one.read / 1e3
    );
    let waits = with - without;
    let by_one = one.behind - one.alone;
    // What waits after a rest waits before it, too.
    if rested.is_longer && waits > SEEN.max(0.3 * without) && by_one > 0.5 * waits {
        let reason = "what was written still waits for a flush when all else has come to its end";
        return Finding::of(true, WAITS, statistic, reason);
    }
    if by_one > SHORTEST_PROGRAM && one.read < 0.5 * one.behind {
        let reason = "a flush waits for what was just written as long as a program takes, and a read, which meets the same controller, does not";
        return Finding::of(true, COMPARED, statistic, reason);
    }
    if by_one > SEEN || waits > SEEN {
        let reason =
            "a flush behind a write is slower, for a program or for a controller that is busy with the write";
        return Finding::undetermined(statistic, reason);
    }
    if present == Some(false) {
        let reason = "a flush takes what a command takes: writes are programmed before they are acknowledged";
        return Finding::of(false, WAITS, statistic, reason);
    }
    if present.is_none() {
        let reason = "a flush takes what a command takes, and whether there is a buffer is not known";
        return Finding::undetermined(statistic, reason);
    }
    if rested.is_resident {
        let reason =
            "what was written is still in the buffer, and a flush has nothing to do: capacitors keep it";
        return Finding::of(false, COMPARED, statistic, reason);
    }
    if one.write + one.behind < SHORTEST_PROGRAM {
        let reason = "a write and a flush behind it are over before any flash can be programmed: capacitors keep what waits";
        return Finding::of(false, COMPARED, statistic, reason);
    }
    let reason = "a flush takes what a command takes: for capacitors, or because what was written is in flash before it comes";
    Finding::undetermined(statistic, reason)
}
