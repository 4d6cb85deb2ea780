//! What one place, or one unit, is held for: it is kept busy, and the time between completions is what each read holds it for.

use super::domains::Domains;
use super::error::ProbeError;
use super::instrument::Instrument;
use super::pairs::{Chunks, STAGGER};
use super::queue::{BUSY, LIMITS, Queue};
use super::statistics::Moments;
use crate::target::Operation;
use planewise_model::{Lsn, Ns};
use rand::RngExt;

/// Reads of one kind that are timed.
pub(super) const READS: usize = 2048;
/// Completions of one loop that keeps something busy.
pub(super) const KEPT: u64 = 512;
/// Anchors whose unit, or domain, is kept busy, one after another.
pub(super) const ANCHORS: usize = 6;

/// Command and address cycles of any flash: not to be seen from outside, assumed to be the 300 ns that data sheets of today's parts give.
pub(super) const COMMAND_CYCLES: f64 = 300.0;

/// Time for which a unit is held by the read of a block, and how much longer by that of a chunk, over anchors.
pub(super) struct Held {
    pub(super) short: Moments,
    pub(super) longer: Moments,
}

/// Times between completions of reads of one place that is kept busy, of a block and of a chunk; `alone` is the mean latency of a block on an idle
/// device. Where what was just read comes from a buffer, reads of one unit instead. None when they are not clearly slower than reads all over.
pub(super) fn hold(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    queue: &Queue,
    [block, whole]: [u32; 2],
    alone: f64,
) -> Result<Option<Held>, ProbeError> {
    let unit = match domains.unit {
        _ if queue.keeps_busy() => None,
        None => return Ok(None),
        unit => unit,
    };
    let mut held = Held { short: Moments::default(), longer: Moments::default() };
    for _ in 0..2 * ANCHORS {
        let places = match unit {
            Some(unit) => companions(instrument, chunks, 48, |one, other| unit.holds(one, other)),
            None => vec![chunks.at(instrument.rng.random_range(0..chunks.count())).0],
        };
        let mut kept = Vec::new();
        let mut own = Moments::default();
        for place in places {
            let time = instrument.single(Operation::read(place, block))?.0 as f64;
            // What a buffer serves says nothing of the unit.
            if time > 0.5 * alone {
                kept.push(place);
                own.add(time);
            }
        }
        if kept.len() < if unit.is_some() { 8 } else { 1 } {
            continue;
        }
        let short = busy(instrument, &kept, BUSY, block)?;
        // Pages that take different times to read are not drawn equally often.
        held.short.add(short + alone - own.mean());
        held.longer.add(busy(instrument, &kept, BUSY, whole)? - short);
    }
    let is_slower = held.short.mean() > LIMITS * queue.intervals[1];
    Ok((held.short.count >= 2.0 && is_slower).then_some(held))
}

/// Why what one place is held for may be no unit's where nobody knows whether it is one drive: it may be a drive's of an array, or its controller's. `longer` is what a
/// chunk takes longer than a block on an idle device.
pub(super) fn doubt(
    held: &Held,
    longer: &Moments,
    queue: &Queue,
    units: Option<u64>,
) -> Option<&'static str> {
    if queue.holds_all() {
        return units.is_none().then_some(
            "a place is held for all of a read, by a unit or by a drive of an array that takes one command at a time",
        );
    }
    (held.longer.mean() < 0.1 * longer.mean()).then_some(
        "a place is held no longer by longer reads: by a unit or by the controller of one of several drives",
    )
}

/// Mean time between completions of reads of blocks all over, with as many under way as can be, ns.
pub(super) fn reads_all_over(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<f64, ProbeError> {
    let (depth, block) = (instrument.depth(), instrument.block_sectors());
    let result = instrument.keep(depth, Ns::MAX, |rng, number| {
        let start = chunks.at(rng.random_range(0..chunks.count())).0;
        (number < 4 * KEPT).then(|| Operation::read(start, block))
    })?;
    Ok(result.steady_interval(depth))
}

/// Mean time between completions while `depth` reads of these places, in turn, are under way.
pub(super) fn busy(
    instrument: &mut Instrument<'_>,
    places: &[Lsn],
    depth: u32,
    sectors: u32,
) -> Result<f64, ProbeError> {
    let result = instrument.keep(depth, Ns::MAX, |_, number| {
        let place = places[number as usize % places.len()];
        (number < KEPT).then(|| Operation::read(place, sectors))
    })?;
    Ok(result.interval())
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
        if wanted(number, other) && !found.contains(&start) {
            found.push(start);
        }
    }
    found
}

/// Whether chunks still share units as they did when the units were found: a device that sends writes to idle units has moved them.
pub(super) fn still_hold(
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
