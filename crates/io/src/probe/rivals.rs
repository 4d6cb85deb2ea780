//! Rival explanations of a relation between chunks, put to the test on pairs that it was not found with.
//!
//! That chunks wait for one another may come of a unit that both are on, which is what is looked for. It may also come of a relation that is
//! too coarse (some of them share, others do not), of a bus between several units, or of a controller in front of many: that of one drive of an
//! array. Each predicts something else of the same pairs of reads.

use super::error::ProbeError;
use super::instrument::{Area, Instrument};
use super::pairs::{Chunks, STAGGER, draw_pair};
use super::queue::{BUSY, Queue};
use super::relation::Relation;
use super::statistics::{Moments, median, quantile};
use crate::target::Operation;
use planewise_model::{Ns, SECTOR_BYTES};
use rand::RngExt;

/// Pairs of each class.
const PAIRS: usize = 192;
/// Share of the pairs that may be of the other class.
const MISSED: f64 = 0.15;

/// What pairs showed that a relation says share, and those that it says do not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    /// How much longer one of two staggered blocks takes beyond its own time where the two share, less the same where they do not: medians, ns.
    pub contrast: f64,
    /// Of the pairs that share, the part that waits no longer than others do.
    pub missed: f64,
    /// How much longer the second takes when the first is a whole chunk, where they share: the lower and the upper quartile, ns.
    pub growth: [f64; 2],
    /// Noise of that, ns.
    pub noise: f64,
}

/// Draws pairs and tests a relation on them.
///
/// # Errors
/// The target fails; the user wants it to end.
pub(super) fn test(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
) -> Result<Tested, ProbeError> {
    let block = instrument.block_sectors();
    let mut delays = [Vec::new(), Vec::new()];
    let mut growth = Vec::new();
    for number in 0..2 * PAIRS {
        let shares = number % 2 == 1;
        let wanted = |one, other| relation.holds(one, other) == shares;
        let Some((one, other)) = draw_pair(instrument, chunks, wanted) else { continue };
        let (from, to) = (chunks.at(one.max(other)).0, chunks.at(one.min(other)).0);
        let own = [from, to].map(|place| instrument.single(Operation::read(place, block)));
        let [own_first, own_second] = own;
        let (own_first, own_second) = (own_first?.0 as f64, own_second?.0 as f64);
        let mut behind = |sectors: u32| -> Result<[f64; 2], ProbeError> {
            let group = [(Operation::read(from, sectors), Ns::ZERO), (Operation::read(to, block), STAGGER)];
            let [first, second] = instrument.group(group)?.map(|end| end.0 as f64);
            Ok([first - own_first, second - STAGGER.0 as f64 - own_second])
        };
        let [first, second] = behind(block)?;
        // A page that is read faster is the first on a bus that both want, even if it was the second to be asked for.
        delays[usize::from(shares)].push(first.max(second));
        if shares && second > first {
            growth.push(behind(chunks.sectors as u32)?[1] - second);
        }
    }
    let [apart, shared] = &mut delays;
    let (low, high) = (median(&mut apart.clone()), median(&mut shared.clone()));
    let bar = (low + high) / 2.0;
    let missed = shared.iter().filter(|&&delay| delay <= bar).count() as f64 / shared.len().max(1) as f64;
    // Those apart do the same but for waiting.
    let noise = quantile(apart, 0.75) - quantile(apart, 0.25);
    let quartiles = [quantile(&mut growth, 0.25), quantile(&mut growth, 0.75)];
    Ok(Tested { contrast: high - low, missed, growth: quartiles, noise })
}

impl Tested {
    /// Whether all pairs that are said to share wait.
    pub(super) fn is_whole(&self) -> bool {
        self.missed < MISSED && self.contrast > 0.0
    }

    /// Whether some pairs wait for the transfer of the first and others do not: they share something in front of several buses. `whole` is what a
    /// chunk takes longer than a block on an idle device, ns.
    pub(super) fn is_several_buses(&self, whole: f64) -> bool {
        let [low, high] = self.growth;
        let least = (0.1 * whole).max(3.0 * self.noise);
        high > least && low < 0.3 * high
    }

    /// Whether they wait for all of the time for which one place is held by a read, and not for a part of it, such as its transfer.
    pub(super) fn is_all_that_is_held(&self, queue: &Queue) -> bool {
        queue.held().is_some_and(|held| self.contrast > 0.95 * (held - STAGGER.0 as f64))
    }

    /// Whether the pairs wait as long as one place is held by a read, as far as that is known.
    pub(super) fn is_as_long_as_held(&self, queue: &Queue) -> bool {
        let Some(held) = queue.held() else { return true };
        let late = (1.2 * queue.intervals[1]).max(STAGGER.0 as f64).min(0.6 * held);
        self.contrast > 0.75 * (held - late)
    }
}

/// Places that are kept busy.
const PLACES: usize = 12;
/// Reads that keep one busy.
const KEPT: u64 = 96;

/// Whether one place is held by two blocks for as long as by one, though longer reads hold it longer: then a block is held up by something that does not depend
/// on its length, such as the controller of a drive of an array, and only longer reads by a unit or a bus.
///
/// # Errors
/// The target fails; the user wants it to end.
pub(super) fn is_level(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<bool, ProbeError> {
    let (block, page) = (instrument.block_sectors(), chunks.sectors as u32);
    if page < 4 * block {
        return Ok(false);
    }
    let (mut step, mut rest) = (Moments::default(), Moments::default());
    for _ in 0..PLACES {
        let place = chunks.at(instrument.rng.random_range(0..chunks.count())).0;
        let [one, two, all] = [block, 2 * block, page].map(|sectors| {
            let read = Operation::read(place, sectors);
            instrument
                .keep(BUSY, Ns::MAX, |_, number| (number < KEPT).then_some(read))
                .map(|of| of.interval())
        });
        let (one, two) = (one?, two?);
        step.add(two - one);
        rest.add((all? - one) / f64::from(page / block - 1));
    }
    let grows = rest.mean() > PERCEIVED.max(4.0 * rest.error());
    Ok(grows && step.mean() + 2.0 * step.error() < 0.5 * rest.mean())
}

/// Most planes that a unit reads at once.
const PLANES: f64 = 8.0;
/// Large reads that are timed.
const LARGE: usize = 16;
/// Share of the least time for large reads that speaks against so many units: what a page costs may be counted on its bus and on the link.
const FASTER: f64 = 0.6;

/// Whether large reads are faster than so many units can be, each for a page at a time (of as many planes as any flash has): then each of them is more, such
/// as a drive of an array that takes one command at a time. `alone` is the latency of a block and of a page, `held` for how long a block holds a place, ns.
///
/// # Errors
/// The target fails; the user wants it to end.
pub(super) fn are_more(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    alone: [f64; 2],
    queue: &Queue,
) -> Result<bool, ProbeError> {
    let Some(held) = queue.held() else { return Ok(false) };
    let units = relation.units();
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let pages = longest.min(chunks.area.sectors) / chunks.sectors;
    if pages < 2 * units {
        return Ok(false);
    }
    let sectors = pages * chunks.sectors;
    let mut times = Vec::with_capacity(LARGE);
    for _ in 0..LARGE {
        let first = instrument.rng.random_range(0..=chunks.count() - pages);
        times.push(instrument.single(Operation::read(chunks.at(first).0, sectors as u32))?.0 as f64);
    }
    let page = (alone[1] - alone[0]).max(0.0);
    let each = median(&mut times) / (pages / units) as f64;
    if each < FASTER * (page + held / PLANES) {
        return Ok(true);
    }
    // Faster than one plane at a time: of planes that work together, which commands that wait show as well, or of a drive that takes one of these at a time.
    Ok(queue.holds_all() && each < FASTER * (page + held) && !join(instrument, chunks, relation, held)?)
}

/// Bursts of three reads.
const BURSTS: usize = 96;

/// Whether reads of neighbours on one unit that wait for it are done together.
fn join(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    held: f64,
) -> Result<bool, ProbeError> {
    let block = instrument.block_sectors();
    let (mut together, mut tried) = (0, 0);
    for _ in 0..BURSTS {
        let Some((first, other)) = draw_pair(instrument, chunks, |one, other| relation.holds(one, other))
        else {
            continue;
        };
        let number = chunks.at(first).1;
        let next = (first + 1..chunks.count())
            .take((2 * relation.period() * chunks.run / chunks.sectors) as usize)
            .find(|&next| chunks.at(next).1 != number && relation.holds(number, chunks.at(next).1));
        let (Some(next), Some((one, _))) =
            (next, draw_pair(instrument, chunks, |one, _| relation.holds(one, number)))
        else {
            continue;
        };
        let mut last = |places: [u64; 3]| -> Result<f64, ProbeError> {
            let reads = places.map(|place| Operation::read(chunks.at(place).0, block));
            Ok(instrument.burst(&reads)?.iter().map(|end| end.0 as f64).fold(0.0, f64::max))
        };
        tried += 1;
        together += usize::from(last([one, first, next])? < last([one, first, other])? - 0.5 * held);
    }
    Ok(4 * together > tried)
}

/// Whether a block waits longer behind a whole page (of `sectors`) of its place than behind a block of it: what is not asked for is not moved.
///
/// # Errors
/// The target fails; the user wants it to end.
pub(super) fn moves_parts(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
) -> Result<bool, ProbeError> {
    const TRIED: usize = 192;
    let (block, page) = (instrument.block_sectors(), sectors as u32);
    let (mut longer, mut alone) = (Moments::default(), Moments::default());
    for _ in 0..TRIED {
        let place = area.random_piece(sectors, &mut instrument.rng);
        let read = |sectors| Operation::read(place, sectors);
        let [short, long] = [block, page].map(|sectors| {
            let group = [(read(sectors), Ns::ZERO), (read(block), STAGGER)];
            instrument.group(group).map(|ends| ends[1].0 as f64)
        });
        longer.add(long? - short?);
        alone.add(instrument.single(read(page))?.0 as f64 - instrument.single(read(block))?.0 as f64);
    }
    Ok(longer.mean() > (0.1 * alone.mean()).max(4.0 * longer.error()).max(PERCEIVED))
}

/// What a page more takes on a bus at least to be told from none, ns.
const PERCEIVED: f64 = 50.0;
