//! Interleaving degree and sub-domains (Chen et al. 2016, section 5.3, Program 1 (II)).
//!
//! The paper reads with a stride, two and four jobs at a time, and takes the period of the dips in bandwidth for the number of domains.
//! That finds the innermost level of the order in which chunks are spread. Here pairs of chunks all over the area are read, and the
//! relation between chunk numbers is looked for that tells the slow pairs from the others, so that any order of levels is found:
//!
//! * *staggered* pairs of single blocks: the second waits when both are on one unit (a package, or a die that works on its own), and
//!   planes cannot serve the two together, as the first has begun;
//! * *simultaneous* reads of a whole chunk and a block on different units: the block is late when both share a domain (a channel).

use super::array::Array;
use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::queue::Queue;
use super::relation::{Fit, Pair, Relation, WIDEST, fit, search};
use super::rivals::{self, Tested};
use super::statistics::{Moments, confidence, in_errors, median, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Most units that are looked for.
const MOST_UNITS: u64 = 512;
/// By how much the second of two reads is later: enough for the first to have begun, and less than any array read, after which a slow
/// transfer would hold up the second's command whatever it is for.
pub(super) const STAGGER: Ns = Ns::from_micros(2);
/// As good as at once, but in order: the first is to be first on the bus.
const AT_ONCE: Ns = Ns(300);
/// Pairs measured in one round.
const ROUND: usize = 4096;
/// By how much the best relation must be likelier than the next, as a logarithm: e^12 is 160,000 to 1.
const MARGIN: f64 = 12.0;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domains {
    /// The relation of chunks that share a unit, as far as it was found.
    pub unit: Option<Relation>,
    /// Radix of what is below the digit of the domain, and the domains: chunk `p` is in domain `p / stride % degree`.
    pub domain: Option<(u64, u64)>,
    /// Units of the device: domains times sub-domains.
    pub units: Finding<u64>,
    /// Interleaving degree: domains.
    pub degree: Finding<u64>,
    /// Units that share a domain.
    pub sub_domains: Finding<u64>,
    /// Latency of one block and of one chunk on an idle device, ns.
    pub alone: [f64; 2],
    /// How much longer the second of two staggered blocks takes on the unit of the first, ns.
    pub unit_contrast: f64,
    /// How much longer two chunks take at once when they share a domain, ns.
    pub domain_contrast: f64,
}

impl Domains {
    /// Nothing was found, and why.
    fn unknown(alone: [f64; 2], statistic: String, reason: &str) -> Domains {
        let undetermined = || Finding::undetermined(statistic.clone(), reason);
        Domains {
            unit: None,
            domain: None,
            units: undetermined(),
            degree: undetermined(),
            sub_domains: undetermined(),
            alone,
            unit_contrast: 0.0,
            domain_contrast: 0.0,
        }
    }
}

/// How the area is addressed: in pieces that are read and written as a whole, pages as a rule, of which so many in turn are a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// Where.
    pub area: Area,
    /// Sectors of a piece.
    pub sectors: u64,
    /// Sectors of a chunk.
    pub run: u64,
    /// By how many sectors addresses have to be moved for chunks to begin at multiples of their size.
    pub shift: u64,
}

impl Chunks {
    /// Chunks of one piece.
    pub fn of(area: Area, sectors: u64) -> Chunks {
        Chunks { area, sectors, run: sectors, shift: 0 }
    }

    /// The same, in pieces of whole chunks.
    #[must_use]
    pub fn whole(self) -> Chunks {
        Chunks { sectors: self.run, ..self }
    }

    /// How many pieces there are.
    pub fn count(&self) -> u64 {
        self.area.pieces(self.sectors)
    }

    /// First sector of piece `index` of the area, and the number of its chunk counted from the start of the device.
    pub fn at(&self, index: u64) -> (Lsn, u64) {
        let start = self.area.piece(self.sectors, index);
        (start, self.number(start))
    }

    /// The number of the chunk that a sector is in.
    pub fn number(&self, at: Lsn) -> u64 {
        (at.0 + self.shift) / self.run
    }
}

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
        "{} pairs; those that share take {:.1} us, others {:.1} us; likelier than the next best by e^{certain:.0}; {:.0} % of the pairs that share are not slow, {:.0} % as many others are",
        pairs.len(),
        best.means[1] / 1e3,
        best.means[0] / 1e3,
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

/// Draws two different chunks whose numbers are as wanted; none when that seems impossible.
pub(super) fn draw_pair(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    wanted: impl Fn(u64, u64) -> bool,
) -> Option<(u64, u64)> {
    let count = chunks.count();
    let first = instrument.rng.random_range(0..count);
    (0..4096).find_map(|_| {
        let second = instrument.rng.random_range(0..count);
        (first != second && wanted(chunks.at(first).1, chunks.at(second).1)).then_some((first, second))
    })
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

/// A possible digit of the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Digit {
    stride: u64,
    degree: u64,
}

impl Digit {
    fn holds(self, one: u64, other: u64) -> bool {
        one / self.stride % self.degree == other / self.stride % self.degree
    }

    /// The digits that a relation of units is made of.
    fn within(relation: Relation) -> Vec<Digit> {
        let mut digits: Vec<Digit> = Vec::new();
        let parts = [
            (relation.skipped, relation.inner),
            (relation.skipped * relation.inner * relation.gap, relation.outer),
        ];
        for (below, radix) in parts {
            for under in (1..=radix).filter(|under| radix.is_multiple_of(*under)) {
                let rest = radix / under;
                for degree in (2..=rest).filter(|degree| rest.is_multiple_of(*degree)) {
                    let digit = Digit { stride: below * under, degree };
                    if degree < relation.units() && !digits.contains(&digit) {
                        digits.push(digit);
                    }
                }
            }
        }
        digits
    }
}

/// Whether units share domains, and how many domains there are. Returns whether what they share is a bus by the size of the reads, too.
fn find_domains(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    rounds: usize,
    domains: &mut Domains,
    relation: Relation,
) -> Result<bool, ProbeError> {
    let digits = Digit::within(relation);
    let units = relation.units();
    let mut buses = [chunks.sectors as u32, instrument.block_sectors()].map(|first| SharedBus {
        first,
        likely: digits.clone(),
        pairs: Vec::new(),
        behind: Vec::new(),
    });
    let transfer = transfer(instrument, chunks, relation)?;
    let mut statistic = String::new();
    for round in 0..rounds {
        let (mut bound, mut verdict) = (0.0f64, None);
        for bus in &mut buses {
            bus.measure(instrument, chunks, relation, domains.alone[0])?;
            let mut fits: Vec<(Digit, Fit, f64)> = digits
                .iter()
                .filter_map(|&digit| {
                    let fit = fit(&bus.pairs, relation, |one, other| digit.holds(one, other))?;
                    Some((digit, fit, contrast(&bus.pairs, digit)))
                })
                .collect();
            fits.sort_by(|one, other| other.1.evidence.total_cmp(&one.1.evidence));
            let next = fits.get(1).map_or(0.0, |next| next.1.evidence);
            if round > 1 {
                bus.likely = fits.iter().take(4).map(|(digit, ..)| *digit).collect();
            }
            if let Some(&(digit, best, z)) = fits.first() {
                let margin = best.evidence - next;
                statistic = format!(
                    "{} pairs on different units; the second takes {:.2} us longer when both are in one domain ({}); likelier than the next best by e^{margin:.0}",
                    bus.pairs.len(),
                    (best.means[1] - best.means[0]) / 1e3,
                    in_errors(z)
                );
                if z > 6.0 && margin > MARGIN && verdict.is_none() {
                    let sure = (1.0 - (-margin).exp()).min(confidence(z));
                    verdict = Some((digit, best.means[1] - best.means[0], sure, statistic.clone()));
                }
            }
            bound = digits.iter().map(|&digit| upper_bound(&bus.pairs, digit)).fold(bound, f64::max);
        }
        if let Some((digit, contrast, sure, statistic)) = verdict {
            domains.domain = Some((digit.stride, digit.degree));
            domains.domain_contrast = contrast;
            let reason = "chunks of one domain share a bus";
            domains.degree = Finding::of(digit.degree, sure, statistic.clone(), reason);
            let reason = "units of the device over its domains";
            domains.sub_domains = Finding::of(units / digit.degree, sure, statistic, reason);
            // A bus makes blocks wait for blocks, too, where whole chunks are moved; and else for a chunk as long as it is transferred.
            let [chunk, block] = [0, 1].map(|bus: usize| {
                let [apart, together] = classes(&buses[bus].pairs, digit);
                together.mean() - apart.mean()
            });
            return Ok(if transfer > 0.0 { chunk > 0.5 * transfer } else { block > 0.5 * chunk });
        }
        // No two units share anything when even the largest effect that the measurements allow is too small to be a transfer, and
        // the controller does not keep the two so far apart that they cannot meet; nor do all share one.
        let least = transfer.max((chunks.sectors * SECTOR_BYTES) as f64 * FASTEST_BUS);
        let behind = median(&mut buses[1].behind);
        let is_array = domains.unit_contrast > ARRAY * domains.alone[0];
        let [whole, block] =
            [0, 1].map(|bus: usize| Moments::of(buses[bus].pairs.iter().map(|pair| pair.time)));
        let late = whole.mean() + 4.0 * whole.error();
        if bound < SEEN * least
            && behind < 0.5 * least
            && late < SEEN * least
            && relation.outer == 1
            && is_array
        {
            let statistic = format!(
                "{} pairs on different units; no two of them share more than {bound:.0} ns of a transfer",
                buses[0].pairs.len()
            );
            let reason = "no two units share a bus";
            domains.domain = Some((relation.skipped, units));
            domains.degree = Finding::of(units, 0.98, statistic.clone(), reason);
            domains.sub_domains = Finding::of(1, 0.98, statistic, reason);
            return Ok(true);
        }
        // All share one when any second read is late by the transfer of the first, whatever digits are equal.
        let more = whole.mean() - block.mean();
        let error = (whole.error().powi(2) + block.error().powi(2)).sqrt();
        let on_link = domains.alone[1] - domains.alone[0] - transfer;
        // Behind the bus, the block waits for the link as well; but if the two met on the link alone, the block would be there long before the chunk.
        let is_bus = more - 4.0 * error > 0.6 * transfer
            && more + 4.0 * error < 1.2 * (transfer + on_link.max(0.0))
            && on_link < transfer
            && block.mean() < 0.5 * transfer;
        statistic = format!(
            "{} pairs on different units; the second is {:.2} us late behind a chunk and {:.2} us behind a block, by {:.2} us at most depending on which units they are on; a transfer takes {:.2} us, and {:.2} us more lie beyond it",
            buses[0].pairs.len(),
            whole.mean() / 1e3,
            block.mean() / 1e3,
            bound / 1e3,
            transfer / 1e3,
            on_link / 1e3
        );
        if round > 0 && transfer > 0.0 && is_bus && bound < 0.4 * transfer {
            let reason = "all units share one bus";
            domains.domain = Some((1, 1));
            domains.domain_contrast = more;
            domains.degree = Finding::of(1, 0.95, statistic.clone(), reason);
            domains.sub_domains = Finding::of(units, 0.95, statistic, reason);
            return Ok(true);
        }
    }
    let reason = "units are told apart, but not which of them share a domain: something slower, or noise, hides the bus";
    domains.degree = Finding::undetermined(statistic.clone(), reason);
    domains.sub_domains = Finding::undetermined(statistic, reason);
    Ok(true)
}

/// How much longer a unit is held by a read of a whole chunk than by one of a block, ns: a transfer over its bus, unless whole pages are always
/// moved. Seen by a read behind it, which the link to the host does not delay.
fn transfer(instrument: &mut Instrument<'_>, chunks: Chunks, relation: Relation) -> Result<f64, ProbeError> {
    let block = instrument.block_sectors();
    let mut longer = Moments::default();
    for _ in 0..256 {
        let wanted = |one, other| relation.holds(one, other);
        let Some((first, second)) = draw_pair(instrument, chunks, wanted) else { continue };
        let (from, to) = (chunks.at(first.max(second)).0, chunks.at(first.min(second)).0);
        // The same pair twice: pages that take different times to read must not pass for a transfer.
        let behind = [chunks.sectors as u32, block].map(|first| {
            let group = [(Operation::read(from, first), Ns::ZERO), (Operation::read(to, block), STAGGER)];
            instrument.group(group).map(|ends| ends[1].0 as f64)
        });
        let [chunk, short] = behind;
        longer.add(chunk? - short?);
    }
    Ok((longer.mean() - 3.0 * longer.error()).max(0.0))
}

/// Time per byte of the fastest bus to expect, ns: 4 GB/s, more than flash interfaces of the mid-2020s have.
const FASTEST_BUS: f64 = 0.25;
/// Share of a transfer by which a second read is late at least, on the average over pairs, when the two meet on a bus.
const SEEN: f64 = 0.2;

/// Share of the latency of a block that its unit must account for, to be sure that those who wait for one another do so for an array, and not for
/// a slow bus in front of several units with registers of their own.
const ARRAY: f64 = 0.75;

/// Pairs of reads on different units, to see who shares a bus: a first one of some size, and a block at the same time. The block waits while
/// the first is on the bus of both, but not for the link to the host, which the first reaches later.
///
/// The first is a whole chunk, as its transfer is the longest; or a block, as there are drives that move whole pages over the bus whatever is
/// asked for, and then a chunk would only occupy the link longer.
struct SharedBus {
    first: u32,
    /// Digits that may be the domain's.
    likely: Vec<Digit>,
    /// How much longer the block took than alone.
    pairs: Vec<Pair>,
    /// By how much the second completed later than the first.
    behind: Vec<f64>,
}

impl SharedBus {
    fn measure(
        &mut self,
        instrument: &mut Instrument<'_>,
        chunks: Chunks,
        relation: Relation,
        alone: f64,
    ) -> Result<(), ProbeError> {
        let block = instrument.block_sectors();
        for round in 0..ROUND / 2 {
            // Every second pair is drawn so that one of the likely digits is equal.
            let digit = if self.likely.is_empty() || round.is_multiple_of(2) {
                None
            } else {
                Some(self.likely[round / 2 % self.likely.len()])
            };
            let wanted = |one, other| {
                !relation.holds(one, other) && digit.is_none_or(|digit: Digit| digit.holds(one, other))
            };
            let Some((first, second)) = draw_pair(instrument, chunks, wanted) else { continue };
            let ((from, one), (to, other)) = (chunks.at(first.max(second)), chunks.at(first.min(second)));
            // Pages of one die differ in how long they take to read: only two of a kind meet on the bus.
            let own_first = instrument.single(Operation::read(from, block))?.0 as f64;
            let own_second = instrument.single(Operation::read(to, block))?.0 as f64;
            if (own_first - own_second).abs() > 0.08 * alone {
                continue;
            }
            let group =
                [(Operation::read(from, self.first), Ns::ZERO), (Operation::read(to, block), AT_ONCE)];
            let ends = instrument.group(group)?;
            let time = ends[1].saturating_sub(AT_ONCE).0 as f64;
            if time > 0.5 * alone {
                self.pairs.push(Pair { one, other, time: (time - own_second).min(3.0 * alone) });
                self.behind.push(ends[1].0 as f64 - ends[0].0 as f64 - (own_second - own_first));
            }
        }
        Ok(())
    }
}

fn classes(pairs: &[Pair], digit: Digit) -> [Moments; 2] {
    let mut classes = [Moments::default(); 2];
    for pair in pairs {
        classes[usize::from(digit.holds(pair.one, pair.other))].add(pair.time);
    }
    classes
}

fn contrast(pairs: &[Pair], digit: Digit) -> f64 {
    let [apart, together] = classes(pairs, digit);
    welch(&together, &apart)
}

/// The largest effect of a digit that the measurements allow, at four standard errors, ns.
fn upper_bound(pairs: &[Pair], digit: Digit) -> f64 {
    let [apart, together] = classes(pairs, digit);
    let error = (apart.error().powi(2) + together.error().powi(2)).sqrt();
    together.mean() - apart.mean() + 4.0 * error
}

/// The curves of figure 3 of the paper: bandwidth of reads of a chunk against the stride between them, two and four at a time.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn curve(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    strides: u64,
    reads: u64,
    order: Option<&[u64]>,
) -> Result<Curve, ProbeError> {
    let mut curve = Curve {
        title: "Interleaving: bandwidth of strided reads (figure 3 of the paper)".into(),
        x: format!("stride: chunks of {} skipped between two reads", Bytes(chunks.sectors * SECTOR_BYTES)),
        y: "MB/s".into(),
        lines: Vec::new(),
    };
    let count = order.map_or(chunks.count(), |order| order.len() as u64);
    for jobs in [2, 4] {
        let mut points = Vec::new();
        for stride in 1..=strides {
            let measured = instrument.keep(jobs, Ns::MAX, |_, number| {
                let index = number * (stride + 1) % count.max(1);
                let index = order.map_or(index, |order| order[index as usize]);
                (number < reads).then(|| Operation::read(chunks.at(index).0, chunks.sectors as u32))
            })?;
            points.push((stride as f64, measured.bandwidth() / 1e6));
        }
        curve.lines.push((format!("{jobs} jobs"), points));
    }
    Ok(curve)
}
