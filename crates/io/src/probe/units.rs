//! Units: which chunks are read one behind the other (Chen et al. 2016, section 5.3, Program 1 (II)).
//!
//! The paper reads with a stride, two and four jobs at a time, and takes the period of the dips in bandwidth for the number of domains.
//! That finds the innermost level of the order in which chunks are spread. Here pairs of chunks all over the area are read, and the
//! relation between chunk numbers is looked for that tells the slow pairs from the others, so that any order of levels is found.
//!
//! Pairs of single blocks are *staggered*: the second waits when both are on one unit (a package, or a die that works on its own), and
//! planes cannot serve the two together, as the first has begun. Which units share a domain is a second question (`domains.rs`).

use super::array::Array;
use super::domains::{ARRAY, Domains, find_domains};
use super::error::ProbeError;
use super::finding::Finding;
use super::instrument::Instrument;
use super::pairs::{Chunks, MARGIN, ROUND, STAGGER, draw_pair};
use super::queue::Queue;
use super::relation::{Fit, Pair, Relation, WIDEST, search};
use super::rivals::{self, Tested};
use super::statistics::{likelier, median};
use crate::target::Operation;
use planewise_model::Ns;
use rand::RngExt;

/// Most units that are looked for.
const MOST_UNITS: u64 = 512;
/// Looks for units and domains; `array` is what is known of several drives; `rounds` limits the effort.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    queue: &Queue,
    array: Option<Array>,
    rounds: usize,
) -> Result<Domains, ProbeError> {
    let alone = [
        latency_alone(instrument, chunks, u64::from(instrument.block_sectors()))?,
        latency_alone(instrument, chunks, chunks.sectors)?,
    ];
    let is_one = array.is_some_and(|array| array.members == 1);
    if let Some(array) = array.filter(|array| array.members > 1) {
        let reason = format!(
            "it is an array of {} drives: each has units and domains of its own, and is to be probed by itself",
            array.members
        );
        return Ok(Domains::unknown(alone, String::new(), &reason));
    }
    if queue.is_divided && !is_one {
        let statistic = queue.commands.statistic.clone();
        let reason = "some reads wait behind others and some do not: there may be several drives, each with units and domains of its own";
        return Ok(Domains::unknown(alone, statistic, reason));
    }
    if queue.is_serial() {
        let statistic = queue.commands.statistic.clone();
        return Ok(Domains::unknown(
            alone,
            statistic,
            "commands are taken one at a time: no two of them meet inside",
        ));
    }
    let mut pairs = Vec::new();
    let mut fits = Vec::new();
    for round in 1..=rounds {
        staggered_pairs(instrument, chunks, alone[0], None, &mut pairs)?;
        fits = search(&pairs, MOST_UNITS);
        if fits.first().is_some_and(|best| best.shared >= 32 && margin(&fits) > 4.0 * MARGIN) {
            break;
        }
        if round >= 4 && fits.first().is_none_or(|best| best.evidence < MARGIN) {
            break;
        }
    }
    let Some(best) = fits.first().copied() else {
        let statistic = format!("{} pairs of reads", pairs.len());
        return Ok(Domains::unknown(
            alone,
            statistic,
            "no relation between addresses tells slow pairs from others",
        ));
    };
    let certain = margin(&fits);
    let statistic = format!(
        "{} pairs; those that share take {:.1} us, others {:.1} us; {}; {:.0} % of the pairs that share are not slow, {:.0} % as many others are",
        pairs.len(),
        best.means[1] / 1e3,
        best.means[0] / 1e3,
        likelier(certain),
        best.wrong[0] * 100.0,
        best.wrong[1] * 100.0
    );
    let is_clear = certain > MARGIN && best.shared >= 12 && best.wrong[0] < 0.3 && best.wrong[1] < 0.25;
    if !is_clear {
        return Ok(Domains::unknown(
            alone,
            statistic,
            "the best relation does not explain the slow pairs well enough",
        ));
    }
    let tested = rivals::test(instrument, chunks, best.relation)?;
    let statistic = format!(
        "{statistic}; of others drawn to test it, {:.0} % do not wait, the rest {:.1} us",
        tested.missed * 100.0,
        tested.contrast / 1e3
    );
    if !tested.is_whole() {
        let reason = "some of the chunks that the best relation puts together do not wait for one another: it is too coarse, or none that can be told";
        return Ok(Domains::unknown(alone, statistic, reason));
    }
    if tested.is_several_buses(alone[1] - alone[0]) {
        let reason = "what chunks wait for that the best relation puts together is in front of several buses: a controller, as in an array of drives";
        return Ok(Domains::unknown(alone, statistic, reason));
    }
    if !is_one && rivals::are_more(instrument, chunks, best.relation, alone, queue)? {
        let reason = "large reads are faster than so many units can be: each of them is more than a unit, as a drive of an array that takes one command at a time";
        return Ok(Domains::unknown(alone, statistic, reason));
    }
    if !is_one && rivals::is_level(instrument, chunks)? {
        let reason = "a place is held by two blocks for as long as by one, and longer by more: what a block waits for may be the controller of a drive of an array";
        return Ok(Domains::unknown(alone, statistic, reason));
    }
    let mut domains = Domains {
        unit_contrast: best.means[1] - best.means[0],
        ..Domains::unknown(alone, String::new(), "")
    };
    if let Some(finer) = refine(instrument, chunks, rounds, alone[0], best.relation, &pairs)? {
        // Slow transfers make all of a domain slow; the units in it are slower still.
        let unit = finer.relation;
        let also = format!(
            "{statistic}; of those, the ones on one unit take {:.1} us longer than others",
            (finer.means[1] - finer.means[0]) / 1e3
        );
        let of_units = rivals::test(instrument, chunks, unit)?;
        if !of_units.is_whole() || !of_units.is_as_long_as_held(queue) {
            let reason = "chunks wait for one another on two levels, and neither is clearly a unit";
            return Ok(Domains::unknown(alone, also, reason));
        }
        domains.unit = Some(unit);
        domains.domain = Some((best.relation.skipped, best.relation.units()));
        domains.domain_contrast = domains.unit_contrast;
        domains.unit_contrast += (finer.means[1] - finer.means[0]) / 2.0;
        let reason = "chunks of one domain share a bus";
        domains.degree = Finding::of(best.relation.units(), SURE, statistic, reason);
        domains.units = Finding::of(unit.units(), SURE, also.clone(), described(unit));
        domains.sub_domains = Finding::of(
            unit.units() / best.relation.units(),
            SURE,
            also,
            "units of the device over its domains",
        );
        let sure = if shows_all(chunks, unit) { SURE } else { LESS_SURE };
        return Ok(at_most(domains, if is_one { sure } else { NOT_ONE }));
    }
    let relation = best.relation;
    domains.unit = Some(relation);
    let sure = if shows_all(chunks, relation) { SURE } else { LESS_SURE };
    domains.units = Finding::of(relation.units(), sure, statistic, described(relation));
    let alike = find_domains(instrument, chunks, rounds, &mut domains, relation)?;
    if !alike && !is_one {
        let reason = "units that wait for one another do so behind long reads only: for a bus, or for the link of one of several drives";
        domains.degree = domains.degree.not_known(reason);
        domains.sub_domains = domains.sub_domains.not_known(reason);
        domains.domain = None;
    }
    Ok(at_most(doubted(domains, &tested, queue, chunks), if is_one { SURE } else { NOT_ONE }))
}

/// Whether the area shows all levels of units: one that is no larger than what may be between two does not show the upper one.
fn shows_all(chunks: Chunks, unit: Relation) -> bool {
    unit.outer > 1 || chunks.area.sectors / chunks.run >= 2 * unit.period() * WIDEST
}

/// Confidence of what every test bears out.
const SURE: f64 = 0.99;
/// Confidence of what a test could not be made of.
const LESS_SURE: f64 = 0.9;

/// Confidence where it may be an array: what is found may be of its drives.
const NOT_ONE: f64 = 0.85;
/// What else they may be then.
const ONE_OF_SEVERAL: &str = "; or several units on each bus, which moves whole pages more slowly than they read: reads alone do not tell";
/// Confidence where units may be as many more on buses that are slower than they are.
const ONE_BUS: f64 = 0.85;

/// The same, no surer than that.
fn at_most(domains: Domains, confidence: f64) -> Domains {
    Domains {
        units: domains.units.at_most(confidence),
        degree: domains.degree.at_most(confidence),
        sub_domains: domains.sub_domains.at_most(confidence),
        ..domains
    }
}

/// What is left of the findings when the rivals of a unit have been looked at: a bus, or a controller.
fn doubted(mut domains: Domains, tested: &Tested, queue: &Queue, chunks: Chunks) -> Domains {
    let unknown = |domains: &Domains, reason: &str| {
        Domains::unknown(domains.alone, domains.units.statistic.clone(), reason)
    };
    if !tested.is_as_long_as_held(queue) {
        let reason = "chunks that wait for one another do so for less time than one place is held by a read: for something else than a unit";
        return unknown(&domains, reason);
    }
    // A bus is held by a block for no longer than a block is the dearer for its bytes, unless whole chunks are moved.
    let [block, chunk] = domains.alone;
    let blocks = chunks.sectors.max(2) as f64;
    let of_block = (chunk - block) / (blocks - 1.0);
    let moves_parts = tested.growth[0] > 3.0 * tested.noise && tested.growth[0] > 0.1 * (chunk - block);
    let is_coarser = domains.domain.is_some_and(|(_, degree)| degree < domains.units.value.unwrap_or(0));
    let is_array = domains.unit_contrast > ARRAY * block;
    let is_bus = match moves_parts {
        true => tested.contrast < 1.5 * of_block,
        false => !is_coarser && !is_array && !tested.is_all_that_is_held(queue),
    };
    if is_bus {
        let reason =
            "chunks wait for one another no longer than a transfer may take: for a unit or for a bus";
        return unknown(&domains, reason);
    }
    // A read that holds as much as it takes: nothing is in front of the unit, or it is a drive of an array that takes one command at a time.
    let is_all = queue.holds_all() && !is_coarser;
    if queue.held().is_none() || !moves_parts || is_all {
        domains = at_most(domains, LESS_SURE);
    }
    // Units on a bus that moves whole pages more slowly than they read wait for it, and for nothing else: behind registers, and where arrays take next to no time.
    if !moves_parts && !is_coarser {
        domains = at_most(domains, ONE_BUS);
        for found in
            [&mut domains.units, &mut domains.sub_domains].into_iter().filter(|found| found.value.is_some())
        {
            found.reason += ONE_OF_SEVERAL;
        }
    }
    domains
}

/// Whether pairs that share by `relation` fall into two classes themselves: then it was the domains, and the finer relation is that of units.
fn refine(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    rounds: usize,
    alone: f64,
    relation: Relation,
    random: &[Pair],
) -> Result<Option<Fit>, ProbeError> {
    if relation.outer > 1 {
        // A domain is one digit.
        return Ok(None);
    }
    let mut pairs = Vec::new();
    for _ in 0..rounds.min(3) {
        staggered_pairs(instrument, chunks, alone, Some(relation), &mut pairs)?;
        // On these pairs, what compares only the further digits says the same as what compares all.
        let implies = |finer: Relation| {
            random
                .iter()
                .all(|pair| !finer.holds(pair.one, pair.other) || relation.holds(pair.one, pair.other))
        };
        let fits: Vec<Fit> = search(&pairs, MOST_UNITS)
            .into_iter()
            .filter(|fit| {
                let units = fit.relation.units();
                units > relation.units() && units.is_multiple_of(relation.units()) && implies(fit.relation)
            })
            .collect();
        if let Some(best) = fits.first()
            && margin(&fits) > 2.0 * MARGIN
            && best.shared >= 12
            && best.wrong[0] < 0.3
            && best.wrong[1] < 0.25
        {
            return Ok(Some(*best));
        }
    }
    Ok(None)
}

fn described(relation: Relation) -> String {
    match relation {
        Relation { skipped: 1, inner, outer: 1, .. } => format!("a multiple of {inner} chunks"),
        _ => format!(
            "equal in the digits of radix {} and {} of their numbers (skipping {}, then {})",
            relation.inner, relation.outer, relation.skipped, relation.gap
        ),
    }
}

/// By how much the best is likelier than the best that means something else.
fn margin(fits: &[Fit]) -> f64 {
    let Some(best) = fits.first() else { return 0.0 };
    fits.get(1).map_or(best.evidence, |next| best.evidence - next.evidence)
}

fn latency_alone(instrument: &mut Instrument<'_>, chunks: Chunks, sectors: u64) -> Result<f64, ProbeError> {
    let mut latencies = Vec::with_capacity(256);
    for _ in 0..256 {
        let (start, _) = chunks.at(instrument.rng.random_range(0..chunks.count()));
        latencies.push(instrument.single(Operation::read(start, sectors as u32))?.0 as f64);
    }
    Ok(median(&mut latencies))
}

/// Measures a round of pairs of blocks, the second a little after the first: what is kept is how long the second took. Only pairs that
/// share by `within`, if there is one.
fn staggered_pairs(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    alone: f64,
    within: Option<Relation>,
    pairs: &mut Vec<Pair>,
) -> Result<(), ProbeError> {
    let block = instrument.block_sectors();
    for _ in 0..ROUND {
        let wanted = |one, other| within.is_none_or(|relation| relation.holds(one, other));
        let Some((first, second)) = draw_pair(instrument, chunks, wanted) else { continue };
        // The one at the higher address first: no drive takes that for a sequential stream.
        let ((from, one), (to, other)) = (chunks.at(first.max(second)), chunks.at(first.min(second)));
        let mut own_first = 0.0;
        if within.is_some() {
            // Among slow pairs, what differs is an array read; pages that take different times to read would hide that.
            own_first = instrument.single(Operation::read(from, block))?.0 as f64;
        }
        let group = [(Operation::read(from, block), Ns::ZERO), (Operation::read(to, block), STAGGER)];
        let ends = instrument.group(group)?;
        let time = ends[1].saturating_sub(STAGGER).0 as f64;
        // What a cache served says nothing of the flash, and a second read that overtook the first nothing of who waits.
        let is_behind = within.is_none() || ends[1] > ends[0];
        if time > 0.5 * alone && is_behind {
            pairs.push(Pair { one, other, time: time.min(4.0 * alone) - own_first });
        }
    }
    Ok(())
}
