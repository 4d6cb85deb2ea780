//! Page size: the data of one array read, which is what reads across positions show first.
//!
//! The paper (Chen et al. 2016, section 5.2, Program 1 (I)) reads `n` sectors at all offsets and takes the period of the dips for the chunk: a read that
//! crosses from one chunk to the next is served by two domains. How that looks depends on the drive: two domains halve a slow transfer (a dip), two
//! pages of one place take two array reads (a bump), page latencies that differ hide both. And not all that differs is an edge between places:
//! pages of one chunk differ from one another, too. So this stage looks for the finest period of any difference, which is that of pages, and the next
//! ([`super::chunk`]) asks at which of their edges one place ends.
//!
//! Three probes are made at random positions, each looks for the size whose multiples differ most from all other positions, and what they say is put together:
//!
//! * *single*: a read of two blocks, one on each side of the position: the paper's;
//! * *pair*: the same two blocks as two reads at once: inside a chunk one waits for the other, across its edge they may not;
//! * *busy pair*: the same behind a third read of the same place, so that both wait together and planes of one die can serve them
//!   together even if commands do not reach them at one instant.

use super::error::ProbeError;
use super::finding::Finding;
use super::findings::LONGEST_PAGE;
use super::instrument::{Area, Instrument};
use super::statistics::{Moments, confidence, in_errors, likelier, median, quantile, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;

/// Longest period that is looked for, bytes.
const LONGEST: u64 = 256 << 10;
/// Samples of each probe in one round, and rounds at most.
const ROUND: usize = 4096;
/// Standard errors by which edges must differ from other positions.
pub(super) const SIGNIFICANT: f64 = 7.0;
/// Standard errors by which positions inside a page may not differ.
pub(super) const HINT: f64 = 4.5;
/// Share of the usual time by which they must differ: what is less is no array read and no transfer, but a trifle that many samples show.
pub(super) const PERCEPTIBLE: f64 = 0.04;
/// Share of the usual time by which positions inside a page may not differ: an array read behind a slow controller is no more.
const HARDLY: f64 = 0.004;
/// Share of the reads below one that surely comes from flash: more than half may come from a buffer.
const FLASH: f64 = 0.75;
/// By how much the best size must be likelier than the next, as a logarithm.
pub(super) const MARGIN: f64 = 8.0;

/// How the blocks on both sides of a position are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Pair,
    BusyPair,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Single, Kind::Pair, Kind::BusyPair];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Single => "single reads across",
            Kind::Pair => "two reads at once",
            Kind::BusyPair => "two reads behind a third",
        }
    }
}

/// Times of one probe at positions, in blocks.
#[derive(Default)]
struct Samples(Vec<(u64, f64)>);

/// What one probe found: the size, in blocks, its contrast as a share of the usual time and in standard errors, and by how much it is likelier than the next best size, as a
/// logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Folded {
    size: u64,
    contrast: f64,
    z: f64,
    margin: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Data of one array read.
    pub size: Finding<Bytes>,
    /// Blocks from one position that may be a chunk's edge to the next: those of a page, or one where pages are not known but blocks are large; none
    /// where no position differs from the others.
    pub(super) step: Option<u64>,
}

/// Looks for the page size; `rounds` limits the effort.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(instrument: &mut Instrument<'_>, area: Area, rounds: usize) -> Result<Page, ProbeError> {
    let block = u64::from(instrument.block_sectors());
    let block_bytes = block * SECTOR_BYTES;
    let longest = (LONGEST / block_bytes).max(2);
    let mut samples: [Samples; 3] = Default::default();
    let mut before: Option<u64> = None;
    for round in 1..=rounds {
        for (kind, samples) in Kind::ALL.into_iter().zip(&mut samples) {
            for _ in 0..ROUND {
                samples.0.push(sample(instrument, area, kind)?);
            }
        }
        let folded: Vec<(Kind, Folded)> = Kind::ALL
            .into_iter()
            .zip(&samples)
            .filter_map(|(kind, samples)| Some((kind, samples.fold(kind, longest)?)))
            .collect();
        // What no probe found by itself is no page: then they contradict one another.
        let sizes: Vec<u64> = folded.iter().map(|(_, folded)| folded.size).collect();
        let page = sizes.iter().copied().reduce(gcd).filter(|common| sizes.contains(common));
        // Two rounds have to agree: more data may show edges that fewer did not, above all where they hint at some.
        let is_divided = page.is_some_and(|page| samples.iter().any(|samples| samples.differ_inside(page)));
        if (page.is_none() || page != before || is_divided) && round < rounds {
            before = page;
            continue;
        }
        let said = said(&folded, block_bytes);
        if block > 1 {
            return coarse(instrument, area, &samples, page.filter(|_| !is_divided), said);
        }
        let Some(page) = page.filter(|_| !is_divided) else { break };
        if page * block_bytes > LONGEST_PAGE.0 {
            let reason = "no page is as long, and what is inside shows none: a stripe of several drives, with what is smaller hidden";
            return Ok(Page { size: Finding::undetermined(said.join("; "), reason), step: None });
        }
        if before.is_some_and(|before| before != page) {
            let reason = "what more reads showed was not what fewer did";
            return Ok(Page { size: Finding::undetermined(said.join("; "), reason), step: None });
        }
        let z = folded.iter().map(|(_, folded)| folded.z).fold(0.0, f64::max);
        let by_single = folded.iter().any(|(kind, _)| *kind == Kind::Single);
        let most = if by_single { SURE } else { BY_PAIRS };
        let sure = confidence(z).min(most);
        let reason =
            "positions at multiples of it differ from those between, and those do not from one another";
        let size = Finding::of(Bytes(page * block_bytes), sure, said.join("; "), reason);
        return Ok(Page { size, step: Some(page) });
    }
    let mut pair: Vec<f64> = samples[1].0.iter().map(|&(_, time)| time).collect();
    let mut alone: Vec<f64> = samples[0].0.iter().map(|&(_, time)| time).collect();
    let ratio = median(&mut pair) / median(&mut alone).max(1.0);
    let statistic =
        format!("two neighbouring blocks at once take {ratio:.2} times one read of both, at any position");
    let reason =
        "no position differs from the others: a component in front of the flash, or a cache, hides the pages";
    Ok(Page { size: Finding::undetermined(statistic, reason), step: None })
}

/// Confidence of a page that single reads show, and of one that only pairs do.
const SURE: f64 = 0.95;
const BY_PAIRS: f64 = 0.9;

fn said(folded: &[(Kind, Folded)], block_bytes: u64) -> Vec<String> {
    let of = |(kind, Folded { size, contrast, z, margin }): &(Kind, Folded)| {
        let size = Bytes(size * block_bytes);
        format!(
            "{}: {size}, by {:.0} % ({}), {}",
            kind.name(),
            contrast * 100.0,
            in_errors(*z),
            likelier(*margin)
        )
    };
    folded.iter().map(of).collect()
}

/// The verdict on a device whose blocks are several sectors: a page may be one block, and what then differs is a level of striping above it.
/// So one read of two neighbouring blocks inside a page must be clearly faster than two reads of one block: it is one array read.
fn coarse(
    instrument: &mut Instrument<'_>,
    area: Area,
    samples: &[Samples; 3],
    page: Option<u64>,
    said: Vec<String>,
) -> Result<Page, ProbeError> {
    let block = instrument.block_sectors();
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    for _ in 0..512 {
        let read = Operation::read(area.random_piece(u64::from(block), &mut instrument.rng), block);
        once.push(instrument.single(read)?.0 as f64);
        let ends = instrument.group([(read, Ns::ZERO), (read, Ns::ZERO)])?;
        twice.push(ends[0].max(ends[1]).0 as f64);
    }
    let (once, twice) = (median(&mut once), median(&mut twice));
    let mut statistic = said.join("; ");
    let separator = if statistic.is_empty() { "" } else { "; " };
    statistic +=
        &format!("{separator}a block takes {:.1} us, twice at once {:.1} us", once / 1e3, twice / 1e3);
    if let Some(page) = page {
        let inside = |kind: Kind| {
            let samples = samples[kind as usize].0.iter().filter(|(at, _)| !at.is_multiple_of(page));
            median(&mut samples.map(|&(_, time)| time).collect::<Vec<f64>>())
        };
        let [single, pair] = [Kind::Single, Kind::Pair].map(inside);
        statistic +=
            &format!("; inside, both in one read {:.1} us, in two {:.1} us", single / 1e3, pair / 1e3);
        if single < 0.93 * twice && pair > 0.9 * twice {
            let size = Bytes(page * u64::from(block) * SECTOR_BYTES);
            let reason = "positions at multiples of it differ from those between, where both blocks are one array read";
            let size = Finding::of(size, BY_PAIRS, statistic, reason);
            return Ok(Page { size, step: Some(page) });
        }
    }
    let reason = "neighbouring blocks cannot be told from pages of one block each";
    Ok(Page { size: Finding::undetermined(statistic, reason), step: Some(1) })
}

fn sample(instrument: &mut Instrument<'_>, area: Area, kind: Kind) -> Result<(u64, f64), ProbeError> {
    let block = u64::from(instrument.block_sectors());
    let at = instrument.rng.random_range(1..area.pieces(block));
    let here = area.piece(block, at);
    Ok((here.0 / block, across(instrument, here, Lsn(here.0 - block), kind)?))
}

/// Time of a probe on the blocks at `upper` and at `lower`, which for a single read are next to one another, ns.
pub(super) fn across(
    instrument: &mut Instrument<'_>,
    upper: Lsn,
    lower: Lsn,
    kind: Kind,
) -> Result<f64, ProbeError> {
    let block = instrument.block_sectors();
    // The upper block first: a drive must not take the two for a sequential stream.
    let [one, other] = [upper, lower].map(|at| (Operation::read(at, block), Ns::ZERO));
    let time = match kind {
        Kind::Single => instrument.single(Operation::read(lower, 2 * block))?,
        Kind::Pair => instrument.group([one, other])?.into_iter().max().unwrap_or(Ns::ZERO),
        Kind::BusyPair => instrument.group([one, one, other])?.into_iter().max().unwrap_or(Ns::ZERO),
    };
    Ok(time.0 as f64)
}

impl Samples {
    /// Whether positions inside pages of this size differ from one another, at the multiples of a part of it: then it is several pages.
    fn differ_inside(&self, page: u64) -> bool {
        let mut sorted: Vec<f64> = self.0.iter().map(|&(_, time)| time).collect();
        let most = 4.0 * quantile(&mut sorted, FLASH);
        (2..page).filter(|part| page.is_multiple_of(*part)).any(|part| {
            let mut classes = [Moments::default(); 2];
            let inside = self.0.iter().filter(|(at, _)| !at.is_multiple_of(page));
            inside.for_each(|&(at, time)| classes[usize::from(at.is_multiple_of(part))].add(time.min(most)));
            let usual = classes[0].mean();
            let is_perceptible = (classes[1].mean() - usual).abs() > HARDLY * usual;
            classes[1].count >= 8.0 && is_perceptible && welch(&classes[1], &classes[0]).abs() > HINT
        })
    }

    /// The size whose multiples differ most from the other positions, when that is clear.
    fn fold(&self, kind: Kind, longest: u64) -> Option<Folded> {
        let mut sorted: Vec<f64> = self.0.iter().map(|&(_, time)| time).collect();
        let middle = median(&mut sorted);
        let most = 4.0 * quantile(&mut sorted, FLASH);
        let times = self.0.iter().map(|&(at, time)| (at, time.min(most)));
        let found = fold(&times.clone().collect::<Vec<_>>(), middle, kind, longest);
        if kind != Kind::Single {
            return found;
        }
        // Where some edges are dips and others bumps, they differ from the inside together, but their mean may not.
        let deviations: Vec<(u64, f64)> = times.map(|(at, time)| (at, (time - middle).abs())).collect();
        let deviating = fold(&deviations, middle, kind, longest);
        found.into_iter().chain(deviating).max_by(|one, other| one.margin.total_cmp(&other.margin))
    }
}

fn fold(times: &[(u64, f64)], usual: f64, kind: Kind, longest: u64) -> Option<Folded> {
    let all = Moments::of(times.iter().map(|&(_, time)| time));
    let mut scored: Vec<(f64, u64, [f64; 2])> = Vec::new();
    for size in 2..=longest {
        let mut classes = [Moments::default(); 2];
        times.iter().for_each(|&(at, time)| classes[usize::from(at.is_multiple_of(size))].add(time));
        let [inside, edge] = classes;
        // Inside a page two reads always wait for one another.
        let is_possible = kind == Kind::Single || edge.mean() < inside.mean();
        if edge.count < 8.0 || inside.count < 8.0 || !is_possible {
            continue;
        }
        let between = edge.count * inside.count / all.count * (edge.mean() - inside.mean()).powi(2);
        let contrast = (edge.mean() - inside.mean()).abs() / usual.max(1.0);
        scored.push((between, size, [contrast, welch(&edge, &inside).abs()]));
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    let &(best, size, [contrast, z]) = scored.first()?;
    // Times of a model without noise have no spread of their own, but a thousandth of their size is as good as none.
    let variance = (all.variance() - best / all.count).max((1e-3 * all.mean()).powi(2));
    let margin = (best - scored.get(1).map_or(0.0, |next| next.0)) / variance / 2.0;
    let is_clear = z > SIGNIFICANT && margin > MARGIN && contrast > PERCEPTIBLE;
    is_clear.then_some(Folded { size, contrast, z, margin })
}

pub(super) fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
