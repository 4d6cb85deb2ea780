//! Rival explanations of a relation between chunks, put to the test on pairs that it was not found with.
//!
//! That chunks wait for one another may come of a unit that both are on, which is what is looked for. It may also come of a relation that is
//! too coarse (some of them share, others do not), of a bus between several units, or of a controller in front of many: that of one drive of an
//! array. Each predicts something else of the same pairs of reads.

use super::error::ProbeError;
use super::instrument::Instrument;
use super::pairs::{Chunks, STAGGER, draw_pair};
use super::queue::Queue;
use super::relation::Relation;
use super::statistics::{median, quantile};
use crate::target::Operation;
use planewise_model::Ns;

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
