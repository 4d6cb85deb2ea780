//! Interleaving degree and sub-domains: which units share a bus (Chen et al. 2016, section 5.3).
//!
//! *Simultaneous* reads of a whole chunk and a block on different units: the block is late when both share a domain (a channel).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::Instrument;
use super::pairs::{Chunks, MARGIN, ROUND, STAGGER, draw_pair};
use super::relation::{Fit, Pair, Relation, fit};
use super::statistics::{Moments, confidence, in_errors, likelier, median, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// As good as at once, but in order: the first is to be first on the bus.
const AT_ONCE: Ns = Ns(300);

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
    pub(super) fn unknown(alone: [f64; 2], statistic: String, reason: &str) -> Domains {
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
pub(super) fn find_domains(
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
                    "{} pairs on different units; the second takes {:.2} us longer when both are in one domain ({}); {}",
                    bus.pairs.len(),
                    (best.means[1] - best.means[0]) / 1e3,
                    in_errors(z),
                    likelier(margin)
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
pub(super) const ARRAY: f64 = 0.75;

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
