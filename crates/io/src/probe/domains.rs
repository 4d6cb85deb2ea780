//! Interleaving degree and sub-domains (Chen et al. 2016, section 5.3, Program 1 (II)).
//!
//! The paper reads with a stride, two and four jobs at a time, and takes the period of the dips in bandwidth for the number of domains.
//! That finds the innermost level of the order in which chunks are spread. Here pairs of chunks all over the area are read, and the
//! relation between chunk numbers is looked for that tells the slow pairs from the others, so that any order of levels is found:
//!
//! * *staggered* pairs of single blocks: the second waits when both are on one unit (a package, or a die that works on its own), and
//!   planes cannot serve the two together, as the first has begun;
//! * *simultaneous* pairs of whole chunks on different units: the second is late when both share a domain (a channel).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::relation::{Fit, Pair, Relation, fit, search};
use super::statistics::{Moments, confidence, median, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Most units that are looked for.
const MOST_UNITS: u64 = 512;
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

/// How chunks are addressed.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// Where.
    pub area: Area,
    /// Sectors of a chunk.
    pub sectors: u64,
}

impl Chunks {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.area.pieces(self.sectors)
    }

    /// First sector of chunk `index` of the area, and its number counted from the start of the device.
    pub fn at(&self, index: u64) -> (Lsn, u64) {
        let start = self.area.piece(self.sectors, index);
        (start, start.0 / self.sectors)
    }
}

/// Looks for units and domains; `rounds` limits the effort.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(instrument: &mut Instrument<'_>, chunks: Chunks, rounds: usize) -> Result<Domains, ProbeError> {
    let alone = [
        latency_alone(instrument, chunks, u64::from(instrument.block_sectors()))?,
        latency_alone(instrument, chunks, chunks.sectors)?,
    ];
    let mut pairs = Vec::new();
    let mut fits = Vec::new();
    for round in 1..=rounds {
        staggered_pairs(instrument, chunks, alone[0], &mut pairs)?;
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
        "{} pairs; those on one unit take {:.1} us, others {:.1} us; likelier than the next best by e^{certain:.0}; {:.0} % of the pairs on one unit are not slow, {:.0} % as many others are",
        pairs.len(),
        best.means[1] / 1e3,
        best.means[0] / 1e3,
        best.wrong[0] * 100.0,
        best.wrong[1] * 100.0
    );
    let is_clear = certain > MARGIN && best.shared >= 12 && best.wrong[0] < 0.15 && best.wrong[1] < 0.25;
    if !is_clear {
        return Ok(Domains::unknown(
            alone,
            statistic,
            "the best relation does not explain the slow pairs well enough",
        ));
    }
    let relation = best.relation;
    let units = Finding::of(
        relation.units(),
        1.0 - (-certain).exp(),
        statistic,
        format!("chunks share a unit when they are {} apart", described(relation)),
    );
    let mut domains = Domains {
        unit: Some(relation),
        units,
        unit_contrast: best.means[1] - best.means[0],
        ..Domains::unknown(alone, String::new(), "")
    };
    find_domains(instrument, chunks, rounds, &mut domains, relation)?;
    Ok(domains)
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

/// Measures a round of pairs of blocks, the second a little after the first: what is kept is how long the second took.
fn staggered_pairs(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    alone: f64,
    pairs: &mut Vec<Pair>,
) -> Result<(), ProbeError> {
    let block = instrument.block_sectors();
    let stagger = Ns((alone / 8.0) as u64);
    for _ in 0..ROUND {
        let [first, second] = [(); 2].map(|()| instrument.rng.random_range(0..chunks.count()));
        if first == second {
            continue;
        }
        // The one at the higher address first: no drive takes that for a sequential stream.
        let ((from, one), (to, other)) = (chunks.at(first.max(second)), chunks.at(first.min(second)));
        let group = [(Operation::read(from, block), Ns::ZERO), (Operation::read(to, block), stagger)];
        let ends = instrument.group(group)?;
        let time = ends[1].saturating_sub(stagger).0 as f64;
        // What a cache served says nothing of the flash.
        if time > 0.5 * alone {
            pairs.push(Pair { one, other, time: time.min(4.0 * alone) });
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

/// Whether units share domains, and how many domains there are.
fn find_domains(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    rounds: usize,
    domains: &mut Domains,
    relation: Relation,
) -> Result<(), ProbeError> {
    let digits = Digit::within(relation);
    let units = relation.units();
    let transfer = domains.alone[1] - domains.alone[0];
    let mut pairs: Vec<Pair> = Vec::new();
    let mut statistic = String::new();
    for _ in 0..rounds {
        for round in 0..ROUND {
            simultaneous_pair(instrument, chunks, relation, &digits, round, domains.alone[1], &mut pairs)?;
        }
        let mut fits: Vec<(Digit, Fit, f64)> = digits
            .iter()
            .filter_map(|&digit| {
                let fit = fit(&pairs, relation, |one, other| digit.holds(one, other))?;
                Some((digit, fit, contrast(&pairs, digit)))
            })
            .collect();
        fits.sort_by(|one, other| other.1.evidence.total_cmp(&one.1.evidence));
        let next = fits.get(1).map_or(0.0, |next| next.1.evidence);
        if let Some(&(digit, best, z)) = fits.first() {
            let margin = best.evidence - next;
            statistic = format!(
                "{} pairs of chunks on different units; those of one domain take {:.2} us longer than others ({z:.0} standard errors); likelier than the next best by e^{margin:.0}",
                pairs.len(),
                (best.means[1] - best.means[0]) / 1e3
            );
            if z > 7.0 && margin > MARGIN {
                let sure = (1.0 - (-margin).exp()).min(confidence(z));
                domains.domain = Some((digit.stride, digit.degree));
                domains.domain_contrast = best.means[1] - best.means[0];
                domains.degree =
                    Finding::of(digit.degree, sure, statistic.clone(), "chunks of one domain share a bus");
                domains.sub_domains = Finding::of(
                    units / digit.degree,
                    sure,
                    statistic,
                    "units of the device over its domains",
                );
                return Ok(());
            }
        }
        // No two units share anything when even the largest effect that the measurements allow is too small to be a transfer.
        let bound = digits.iter().map(|&digit| upper_bound(&pairs, digit)).fold(0.0, f64::max);
        let least =
            if transfer > 0.01 * domains.alone[0] { 0.08 * transfer } else { 0.002 * domains.alone[1] };
        if bound < least {
            let statistic = format!(
                "{} pairs of chunks on different units; no two of them share more than {bound:.0} ns of {:.1} us",
                pairs.len(),
                domains.alone[1] / 1e3
            );
            domains.domain = Some((relation.skipped, units));
            domains.degree = Finding::of(units, 0.999, statistic.clone(), "no two units share a bus");
            domains.sub_domains = Finding::of(1, 0.999, statistic, "no two units share a bus");
            if relation.outer > 1 {
                // Digits of one level are not torn apart by others.
                domains.domain = None;
                let reason = "units make two digits of the address, but none of them shares a bus";
                domains.degree = Finding::undetermined(domains.degree.statistic.clone(), reason);
                domains.sub_domains = Finding::undetermined(domains.degree.statistic.clone(), reason);
            }
            return Ok(());
        }
    }
    let reason = "units are told apart, but not which of them share a domain: something slower, or noise, hides the bus";
    domains.degree = Finding::undetermined(statistic.clone(), reason);
    domains.sub_domains = Finding::undetermined(statistic, reason);
    Ok(())
}

/// Reads two chunks of different units at once; every second pair is drawn so that one of the possible digits is equal.
fn simultaneous_pair(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    digits: &[Digit],
    round: usize,
    alone: f64,
    pairs: &mut Vec<Pair>,
) -> Result<(), ProbeError> {
    let count = chunks.count();
    let wanted = if digits.is_empty() || round.is_multiple_of(2) {
        None
    } else {
        Some(digits[round / 2 % digits.len()])
    };
    let first = instrument.rng.random_range(0..count);
    let mut second = first;
    for _ in 0..256 {
        second = instrument.rng.random_range(0..count);
        let (one, other) = (chunks.at(first).1, chunks.at(second).1);
        if !relation.holds(one, other) && wanted.is_none_or(|digit| digit.holds(one, other)) {
            break;
        }
    }
    let ((from, one), (to, other)) = (chunks.at(first.max(second)), chunks.at(first.min(second)));
    if relation.holds(one, other) {
        return Ok(());
    }
    let sectors = chunks.sectors as u32;
    let ends = instrument
        .group([(Operation::read(from, sectors), Ns::ZERO), (Operation::read(to, sectors), Ns::ZERO)])?;
    let time = ends[0].max(ends[1]).0 as f64;
    if time > 0.5 * alone {
        pairs.push(Pair { one, other, time: time.min(3.0 * alone) });
    }
    Ok(())
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
