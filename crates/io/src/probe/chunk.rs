//! Chunk size: the largest run of consecutive data that is in one place (Chen et al. 2016, section 5.2, Program 1 (I)).
//!
//! The paper reads `n` sectors at all offsets and looks for the period of the dips: a read that crosses from one chunk to the next is
//! served by two domains. How that looks depends on the drive: two domains halve a slow transfer (a dip), two planes of one die that do
//! not work together double the array read (a bump), page latencies that differ hide both. So three probes are made at random
//! positions, each looks for the size whose multiples differ most from all other positions, and what they say is put together:
//!
//! * *single*: a read of two blocks, one on each side of the position: the paper's;
//! * *pair*: the same two blocks as two reads at once: inside a chunk one waits for the other, across its edge they may not;
//! * *busy pair*: the same behind a third read of the same place, so that both wait together and planes of one die can serve them
//!   together even if commands do not reach them at one instant.

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::queue::Queue;
use super::statistics::{Moments, confidence, in_errors, median, quantile, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;

/// Longest period that is looked for, bytes.
const LONGEST: u64 = 256 << 10;
/// Samples of each probe in one round, and rounds at most.
const ROUND: usize = 4096;
/// Standard errors by which edges must differ from other positions.
const SIGNIFICANT: f64 = 7.0;
/// Standard errors by which positions inside a chunk may not differ.
const HINT: f64 = 4.5;
/// Share of the usual time by which they must differ: what is less is no array read and no transfer, but a trifle that many samples show.
const PERCEPTIBLE: f64 = 0.04;
/// Share of the usual time by which positions inside a chunk may not differ: an array read behind a slow controller is no more.
const HARDLY: f64 = 0.004;
/// By how much the best size must be likelier than the next, as a logarithm.
const MARGIN: f64 = 8.0;

/// How the blocks on both sides of a position are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Single,
    Pair,
    BusyPair,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Single, Kind::Pair, Kind::BusyPair];

    fn name(self) -> &'static str {
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

/// Looks for the chunk size; `rounds` limits the effort.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    queue: &Queue,
    rounds: usize,
) -> Result<Finding<Bytes>, ProbeError> {
    let block = u64::from(instrument.block_sectors());
    let block_bytes = block * SECTOR_BYTES;
    let longest = (LONGEST / block_bytes).max(2);
    let mut samples: [Samples; 3] = Default::default();
    let mut before: Option<u64> = None;
    let mut said: Vec<String>;
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
        said = folded
            .iter()
            .map(|(kind, Folded { size, contrast, z, margin })| {
                let size = Bytes(size * block_bytes);
                format!(
                    "{}: {size}, by {:.0} % ({}), likelier than the next by e^{margin:.0}",
                    kind.name(),
                    contrast * 100.0,
                    in_errors(*z)
                )
            })
            .collect();
        // What no probe found by itself is no chunk: then they contradict one another.
        let sizes: Vec<u64> = folded.iter().map(|(_, folded)| folded.size).collect();
        let chunk = sizes.iter().copied().reduce(gcd).filter(|common| sizes.contains(common));
        // Two rounds have to agree: more data may show edges that fewer did not, above all where they hint at some.
        let is_divided =
            chunk.is_some_and(|chunk| samples.iter().any(|samples| samples.differ_inside(chunk)));
        if chunk.is_some() && chunk == before && !is_divided || round == rounds {
            if block > 1 {
                return coarse(instrument, area, &samples, chunk, is_divided, said);
            }
            let by_single = folded.iter().any(|(kind, _)| *kind == Kind::Single);
            if let Some(chunk) = chunk.filter(|_| !is_divided) {
                let z = folded.iter().map(|(_, folded)| folded.z).fold(0.0, f64::max);
                let size = Bytes(chunk * block_bytes);
                // What is in one place may be in a drive of an array that takes one command at a time.
                // And parts of a long read that are in several places of one bus take as long as if they were in one.
                let by_pairs = folded.iter().any(|(kind, _)| *kind != Kind::Single);
                let most = match (by_single, by_pairs) {
                    (true, false) => 0.8,
                    (false, _) if queue.holds_all() => 0.9,
                    _ => 1.0,
                };
                let sure = if chunk == before.unwrap_or(chunk) { confidence(z).min(most) } else { 0.5 };
                let reason = "positions at multiples of it differ from those between";
                return Ok(Finding::of(size, sure, said.join("; "), reason));
            }
            break;
        }
        before = chunk;
    }
    let mut pair: Vec<f64> = samples[1].0.iter().map(|&(_, time)| time).collect();
    let mut alone: Vec<f64> = samples[0].0.iter().map(|&(_, time)| time).collect();
    let ratio = median(&mut pair) / median(&mut alone).max(1.0);
    let statistic =
        format!("two neighbouring blocks at once take {ratio:.2} times one read of both, at any position");
    Ok(Finding::undetermined(
        statistic,
        "no position differs from the others: a component in front of the flash, or a cache, hides the chunks, or they are longer than 256 KiB",
    ))
}

/// The verdict on a device whose blocks are several sectors: a chunk may be one block, and what then differs is a level of striping above it.
/// So two reads of neighbouring blocks inside a chunk must wait for one another as two of the same block do, and one read of both must be
/// faster than that: it is one array read.
fn coarse(
    instrument: &mut Instrument<'_>,
    area: Area,
    samples: &[Samples; 3],
    chunk: Option<u64>,
    is_divided: bool,
    said: Vec<String>,
) -> Result<Finding<Bytes>, ProbeError> {
    let block = instrument.block_sectors();
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    for _ in 0..512 {
        let read = Operation::read(area.random_piece(u64::from(block), &mut instrument.rng), block);
        once.push(instrument.single(read)?.0 as f64);
        let ends = instrument.group([(read, Ns::ZERO), (read, Ns::ZERO)])?;
        twice.push(ends[0].max(ends[1]).0 as f64);
    }
    let (once, twice) = (median(&mut once), median(&mut twice));
    let inside = |samples: &Samples, chunk: u64| {
        let mut times: Vec<f64> =
            samples.0.iter().filter(|(at, _)| !at.is_multiple_of(chunk)).map(|&(_, time)| time).collect();
        median(&mut times)
    };
    let mut pairs: Vec<f64> = samples[1].0.iter().map(|&(_, time)| time).collect();
    let fast = quantile(&mut pairs, 0.25);
    let mut statistic = format!(
        "{}; a block takes {:.1} us, twice at once {:.1} us, a quarter of neighbours at once less than {:.1} us",
        said.join("; "),
        once / 1e3,
        twice / 1e3,
        fast / 1e3
    );
    let block_bytes = u64::from(block) * SECTOR_BYTES;
    if let Some(chunk) = chunk {
        let [single, pair] = [inside(&samples[0], chunk), inside(&samples[1], chunk)];
        statistic +=
            &format!("; inside, both in one read {:.1} us, in two {:.1} us", single / 1e3, pair / 1e3);
        // Across an edge some pairs do not wait, or two arrays read for what is one read inside: both differ by a good part of an array read.
        let step = |samples: &Samples| {
            let mut classes = [Moments::default(); 2];
            let times = samples.0.iter().map(|&(at, time)| (at, time.min(4.0 * twice)));
            times.for_each(|(at, time)| classes[usize::from(at.is_multiple_of(chunk))].add(time));
            (classes[1].mean() - classes[0].mean()).abs()
        };
        let edge = samples.iter().map(step).fold(0.0, f64::max);
        if pair > 0.9 * twice && single < 0.93 * twice && edge > 0.25 * (twice - once) && !is_divided {
            let reason = "positions at multiples of it differ from those between, where both blocks are one array read";
            return Ok(Finding::of(Bytes(chunk * block_bytes), 0.99, statistic, reason));
        }
    }
    // Where some positions differ, it may as well be several blocks.
    if chunk.is_none() && twice > 1.25 * once && fast < 0.85 * twice {
        let reason = "blocks next to one another do not wait as two reads of one block do: a chunk is one block, or less";
        return Ok(Finding::of(Bytes(block_bytes), 0.9, statistic, reason));
    }
    let reason = "neighbouring blocks cannot be told from one block: chunks may be of one block or more";
    Ok(Finding::undetermined(statistic, reason))
}

fn sample(instrument: &mut Instrument<'_>, area: Area, kind: Kind) -> Result<(u64, f64), ProbeError> {
    let block = instrument.block_sectors();
    let blocks = area.pieces(u64::from(block));
    let at = instrument.rng.random_range(1..blocks);
    let here = area.piece(u64::from(block), at);
    let below = Lsn(here.0 - u64::from(block));
    let (upper, lower) = (Operation::read(here, block), Operation::read(below, block));
    // The upper block first: a drive must not take the two for a sequential stream.
    let time = match kind {
        Kind::Single => instrument.single(Operation::read(below, 2 * block))?,
        Kind::Pair => {
            let ends = instrument.group([(upper, Ns::ZERO), (lower, Ns::ZERO)])?;
            ends[0].max(ends[1])
        }
        Kind::BusyPair => {
            let ends = instrument.group([(upper, Ns::ZERO), (upper, Ns::ZERO), (lower, Ns::ZERO)])?;
            ends[0].max(ends[1]).max(ends[2])
        }
    };
    Ok((here.0 / u64::from(block), time.0 as f64))
}

impl Samples {
    /// Whether positions inside chunks of this size differ from one another, at the multiples of a part of it: then it is several chunks.
    fn differ_inside(&self, chunk: u64) -> bool {
        let mut sorted: Vec<f64> = self.0.iter().map(|&(_, time)| time).collect();
        let most = 4.0 * median(&mut sorted);
        (2..chunk).filter(|part| chunk.is_multiple_of(*part)).any(|part| {
            let mut classes = [Moments::default(); 2];
            let inside = self.0.iter().filter(|(at, _)| !at.is_multiple_of(chunk));
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
        let times = self.0.iter().map(|&(at, time)| (at, time.min(4.0 * middle)));
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
        // Inside a chunk two reads always wait for one another.
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

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// The curves of figure 2 of the paper: mean latency of reads of 1, 2, 4 and 8 blocks against their offset from a position aligned to
/// 128 KiB, in blocks.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn curve(instrument: &mut Instrument<'_>, area: Area, reads: usize) -> Result<Curve, ProbeError> {
    const OFFSETS: u64 = 64;
    const ALIGNED: u64 = (128 << 10) / SECTOR_BYTES;
    let block = u64::from(instrument.block_sectors());
    let mut curve = Curve {
        title: "Chunk size: latency of reads against their offset (figure 2 of the paper)".into(),
        x: format!("offset from a position aligned to 128 KiB, in blocks of {} bytes", block * SECTOR_BYTES),
        y: "mean latency, us".into(),
        lines: Vec::new(),
    };
    // The last aligned position would end past the area.
    let places = area.pieces(ALIGNED).saturating_sub(1).max(1);
    for blocks in [1, 2, 4, 8] {
        let mut points = Vec::new();
        for offset in 0..=OFFSETS.min(ALIGNED / block) {
            let mut latency = Moments::default();
            for _ in 0..reads {
                let base = area.piece(ALIGNED, instrument.rng.random_range(0..places)).0;
                let read = Operation::read(Lsn(base + offset * block), (blocks * block) as u32);
                latency.add(instrument.single(read)?.0 as f64);
            }
            points.push((offset as f64, latency.mean() / 1e3));
        }
        curve.lines.push((format!("{}", Bytes(blocks * block * SECTOR_BYTES)), points));
    }
    Ok(curve)
}
