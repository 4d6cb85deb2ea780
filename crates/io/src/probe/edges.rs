//! Edges between pages: how long reads of both sides take, compared with reads inside a page, and the period by which some edges are faster.

use super::error::ProbeError;
use super::instrument::{Area, Instrument};
use super::page::{Kind, MARGIN, PERCEPTIBLE, SIGNIFICANT, across};
use super::statistics::{Moments, median, quantile};
use crate::target::Operation;
use planewise_model::{Lsn, SECTOR_BYTES};
use rand::RngExt;

/// Longest period that is looked for, bytes and pages; and the least number of them in the area.
pub const LONGEST: u64 = 4 << 20;
const MOST_PAGES: u64 = 1024;
const FEWEST: u64 = 32;
/// Samples in one round: at edges between pages, and inside pages.
const ROUND: [usize; 2] = [2048, 1024];
/// The probes that are two reads.
pub(super) const PAIRS: [Kind; 2] = [Kind::Pair, Kind::BusyPair];
/// Places that are measured in turn, one probe after the other: until a place comes again, no drive takes its blocks for a sequential stream.
const BATCH: usize = 128;
/// What pages of one chunk may be faster than one page by, ns: less than the fastest array reads of any flash take (3 us).
pub(super) const TRIFLE: f64 = 2000.0;
/// The same as a share of what a chunk's edge saves, where noise does not let see less.
const MINOR: f64 = 0.15;
/// Fewest samples that make a class.
const LEAST: f64 = 8.0;

/// Where edges may be: between pages, or between blocks where pages are not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub area: Area,
    /// Sectors of a block.
    pub block: u64,
    /// Sectors from one edge to the next.
    pub step: u64,
}

/// A period of edges: so many pages from one to the next, and the number of the first, counted from the start of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub pages: u64,
    pub phase: u64,
}

impl Period {
    pub(super) fn holds(self, edge: u64) -> bool {
        edge % self.pages == self.phase
    }

    /// Whether an edge is none of the period, but one of a part of it.
    pub(super) fn is_of_part(self, edge: u64, part: u64) -> bool {
        (edge + self.pages - self.phase).is_multiple_of(part) && !self.holds(edge)
    }
}

impl Grid {
    pub(super) fn of(instrument: &Instrument<'_>, area: Area, step: u64) -> Grid {
        Grid { area, block: u64::from(instrument.block_sectors()), step }
    }

    /// Draws an edge: its number, counted from the start of the device.
    pub(super) fn edge(&self, instrument: &mut Instrument<'_>) -> u64 {
        let first = self.area.start.div_ceil(self.step) + 1;
        let end = (self.area.start + self.area.sectors - self.block) / self.step;
        instrument.rng.random_range(first..=end.max(first))
    }

    /// Draws the first edge of a whole chunk: the number of its first page.
    pub(super) fn run(&self, instrument: &mut Instrument<'_>, Period { pages, phase }: Period) -> u64 {
        let first = (self.area.start.div_ceil(self.step) + pages - phase).div_ceil(pages);
        let end = ((self.area.start + self.area.sectors) / self.step - phase) / pages;
        instrument.rng.random_range(first..end.max(first + 1)) * pages + phase
    }

    /// Draws neighbouring blocks inside a page, the upper one first; one block twice where a page may be no more than that.
    fn inside(&self, instrument: &mut Instrument<'_>) -> [Lsn; 2] {
        let edge = self.edge(instrument) * self.step;
        let blocks = self.step / self.block;
        if blocks == 1 {
            return [Lsn(edge); 2];
        }
        let at = edge - instrument.rng.random_range(1..blocks) * self.block;
        [Lsn(at), Lsn(at - self.block)]
    }

    /// Measures these probes at places.
    pub(super) fn measure(
        &self,
        instrument: &mut Instrument<'_>,
        places: &[[Lsn; 2]],
        kinds: &[Kind],
    ) -> Result<Vec<Times>, ProbeError> {
        let block = self.block as u32;
        let mut all = vec![Times::default(); places.len()];
        for (places, all) in places.chunks(BATCH).zip(all.chunks_mut(BATCH)) {
            let mut own = vec![[0.0; 2]; places.len()];
            for side in [0, 1] {
                for (own, place) in own.iter_mut().zip(places) {
                    own[side] = instrument.single(Operation::read(place[side], block))?.0 as f64;
                }
            }
            for &kind in kinds {
                let of_kind = all.iter_mut().zip(places).zip(&own);
                for ((times, &[upper, lower]), [own_upper, own_lower]) in of_kind {
                    let raw = match kind {
                        Kind::Single if upper == lower => {
                            instrument.single(Operation::read(upper, block))?.0 as f64
                        }
                        _ => across(instrument, upper, lower, kind)?,
                    };
                    let twice = if kind == Kind::BusyPair { 2.0 } else { 1.0 };
                    times.raw[kind as usize] = raw;
                    times.own[kind as usize] = twice * own_upper + own_lower;
                }
            }
        }
        Ok(all)
    }
}

/// Times of the probes at one place, by kind, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// As measured.
    pub raw: [f64; 3],
    /// What reads of the same blocks take one after the other on an idle device.
    pub own: [f64; 3],
}

/// What was measured inside pages, and at edges between them by number.
#[derive(Default)]
pub(super) struct Samples {
    pub inside: Vec<Times>,
    pub edges: Vec<(u64, Times)>,
}

impl Samples {
    /// One more round.
    pub(super) fn take(&mut self, instrument: &mut Instrument<'_>, grid: Grid) -> Result<(), ProbeError> {
        let edges: Vec<u64> = (0..ROUND[0]).map(|_| grid.edge(instrument)).collect();
        self.take_at(instrument, grid, &edges, &Kind::ALL)?;
        let places: Vec<[Lsn; 2]> = (0..ROUND[1]).map(|_| grid.inside(instrument)).collect();
        self.inside.extend(grid.measure(instrument, &places, &Kind::ALL)?);
        Ok(())
    }

    /// More at these edges.
    pub(super) fn take_at(
        &mut self,
        instrument: &mut Instrument<'_>,
        grid: Grid,
        edges: &[u64],
        kinds: &[Kind],
    ) -> Result<(), ProbeError> {
        let places: Vec<[Lsn; 2]> =
            edges.iter().map(|edge| [Lsn(edge * grid.step), Lsn(edge * grid.step - grid.block)]).collect();
        let times = grid.measure(instrument, &places, kinds)?;
        self.edges.extend(edges.iter().copied().zip(times));
        Ok(())
    }

    /// Those of one probe.
    pub(super) fn of(&self, kind: Kind) -> OfKind<'_> {
        let kind = kind as usize;
        let mut raw: Vec<f64> = self.inside.iter().map(|times| times.raw[kind]).collect();
        let edges = self.edges.iter().map(|(_, times)| times.raw[kind]);
        let most = 1.3 * quantile(&mut raw.iter().copied().chain(edges).collect::<Vec<f64>>(), 0.9);
        let mut of = OfKind { samples: self, kind, usual: median(&mut raw), most, weight: 0.0 };
        // As much of what the blocks take alone as leaves the least spread: pages of several kinds differ in it, noise does not stay.
        let (with, without) = (of.inside_at(1.0).variance(), of.inside_at(0.0).variance());
        let own = Moments::of(self.inside.iter().map(|times| times.own[kind])).variance();
        of.weight = ((without + own - with) / (2.0 * own).max(1.0)).clamp(0.0, 1.0);
        of
    }
}

/// How edges compare with what is inside pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// As long as inside pages.
    Waits,
    /// As long, as far as noise lets see.
    About,
    /// Less.
    Passes,
    /// Neither is clear.
    Unclear,
}

/// A period whose edges are clearly faster than the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folded {
    pub period: Period,
    /// By how much, ns, and in standard errors.
    pub saved: f64,
    pub z: f64,
}

/// Samples of one probe.
pub(super) struct OfKind<'a> {
    samples: &'a Samples,
    kind: usize,
    /// How long the probe takes inside a page, ns.
    pub usual: f64,
    /// What no more than a few take longer than, ns.
    most: f64,
    /// How much of what blocks take alone is taken off.
    weight: f64,
}

impl OfKind<'_> {
    /// A few that something else delayed say nothing.
    fn kept(&self, times: &Times, weight: f64) -> f64 {
        times.raw[self.kind].min(self.most) - weight * times.own[self.kind].min(4.0 * self.usual)
    }

    fn inside_at(&self, weight: f64) -> Moments {
        Moments::of(self.samples.inside.iter().map(|times| self.kept(times, weight)))
    }

    fn class_at(&self, weight: f64, wanted: impl Fn(u64) -> bool) -> Moments {
        let edges = self.samples.edges.iter().filter(|(edge, _)| wanted(*edge));
        Moments::of(edges.map(|(_, times)| self.kept(times, weight)))
    }

    /// The edges that are wanted.
    pub(super) fn class(&self, wanted: impl Fn(u64) -> bool) -> Moments {
        self.class_at(self.weight, wanted)
    }

    /// By how much edges are faster than the inside of pages, ns, with the standard error: where their pages differ, that is taken off.
    pub(super) fn less(&self, wanted: impl Fn(u64) -> bool) -> (f64, f64) {
        let own = |times: &Times| times.own[self.kind].min(4.0 * self.usual);
        let inside = Moments::of(self.samples.inside.iter().map(own));
        let edges = self.samples.edges.iter().filter(|(edge, _)| wanted(*edge));
        let edges = Moments::of(edges.map(|(_, times)| own(times)));
        let are_alike = (inside.mean() - edges.mean()).abs() < 3.0 * error(&inside, &edges);
        let weight = if are_alike { self.weight } else { 1.0 };
        let (inside, class) = (self.inside_at(weight), self.class_at(weight, wanted));
        (inside.mean() - class.mean(), error(&inside, &class))
    }

    /// How a class of edges compares with what is inside pages, where the edges of chunks save so much, ns.
    pub(super) fn compared(&self, wanted: impl Fn(u64) -> bool, saved: f64) -> Compared {
        let (less, error) = self.less(wanted);
        if less > PERCEPTIBLE * self.usual && less > SIGNIFICANT * error {
            Compared::Passes
        } else if less + 3.0 * error < TRIFLE {
            Compared::Waits
        } else if less < 2.0 * error && less + 3.0 * error < MINOR * saved {
            Compared::About
        } else {
            Compared::Unclear
        }
    }

    /// Whether most of these edges are faster than the inside of pages, which their mean does not tell: so that at least three of four are so by this
    /// share of what the mean saves.
    pub(super) fn are_alike(&self, wanted: impl Fn(u64) -> bool, share: f64) -> bool {
        let (less, _) = self.less(&wanted);
        let inside = self.samples.inside.iter();
        let mut inside: Vec<f64> = inside.map(|times| self.kept(times, self.weight)).collect();
        let edges = self.samples.edges.iter().filter(|(edge, _)| wanted(*edge));
        let mut edges: Vec<f64> = edges.map(|(_, times)| self.kept(times, self.weight)).collect();
        quantile(&mut inside, 0.75) - quantile(&mut edges, 0.75) > share * less
    }

    /// The period whose edges are the fastest, if it is clear: of edges that save anything to speak of, however much, or else by how much they do.
    pub(super) fn fold(&self, grid: Grid) -> Option<Folded> {
        let inside = self.inside_at(self.weight);
        let perceptible = (PERCEPTIBLE * self.usual).max(3.0 * inside.variance().sqrt());
        let of_some = self.fold_from(grid, inside.mean() - 1.5 * perceptible);
        of_some.or_else(|| self.fold_from(grid, f64::NEG_INFINITY))
    }

    /// The same, with times that are no shorter than `shortest`.
    fn fold_from(&self, grid: Grid, shortest: f64) -> Option<Folded> {
        let kept = |times: &Times| self.kept(times, self.weight).max(shortest);
        let edges: Vec<(u64, f64)> =
            self.samples.edges.iter().map(|(edge, times)| (*edge, kept(times))).collect();
        let all = Moments::of(edges.iter().map(|(_, time)| *time));
        // Times of a model without noise have no spread of their own, but a thousandth of their size is as good as none.
        let least = (1e-3 * self.usual).powi(2);
        let longest = (LONGEST / SECTOR_BYTES).min(grid.area.sectors / FEWEST) / grid.step;
        let mut scored: Vec<(f64, Folded)> = Vec::new();
        let mut sums = Vec::new();
        for pages in 2..=longest.min(MOST_PAGES) {
            sums.clear();
            sums.resize(pages as usize, (0.0, 0.0));
            for &(edge, time) in &edges {
                let (count, sum) = &mut sums[(edge % pages) as usize];
                *count += 1.0;
                *sum += time;
            }
            let total: f64 = sums.iter().map(|(_, sum)| sum).sum();
            let means = sums.iter().enumerate().filter(|(_, (count, _))| *count >= LEAST);
            let fastest = means.min_by(|one, other| (one.1.1 / one.1.0).total_cmp(&(other.1.1 / other.1.0)));
            let Some((phase, &(count, sum))) = fastest else { continue };
            let rest = all.count - count;
            if rest < LEAST {
                continue;
            }
            let saved = (total - sum) / rest - sum / count;
            let between = count * rest / all.count * saved * saved;
            let within = (all.variance() - between / all.count).max(least);
            let z = saved / (within * (1.0 / count + 1.0 / rest)).sqrt();
            scored.push((between, Folded { period: Period { pages, phase: phase as u64 }, saved, z }));
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let &(best, folded) = scored.first()?;
        let variance = (all.variance() - best / all.count).max(least);
        let margin = (best - scored.get(1).map_or(0.0, |next| next.0)) / variance / 2.0;
        let is_clear = folded.z > SIGNIFICANT && margin > MARGIN && folded.saved > PERCEPTIBLE * self.usual;
        // Pages of several kinds may take turns, too: the same has to show when what they take alone is all taken off.
        let period = folded.period;
        let [faster, rest] = [true, false].map(|is| self.class_at(1.0, |edge| period.holds(edge) == is));
        let own = rest.mean() - faster.mean();
        let is_of_edges = own > 0.5 * folded.saved && own > 3.0 * error(&faster, &rest);
        let [faster, rest] = [true, false].map(|is| self.class(|edge| period.holds(edge) == is));
        let saved = rest.mean() - faster.mean();
        (is_clear && is_of_edges).then_some(Folded { saved, ..folded })
    }
}

/// Standard error of the difference of two means; a thousandth of a nanosecond at least, so that exact samples divide by no zero.
pub(super) fn error(one: &Moments, other: &Moments) -> f64 {
    (one.error().powi(2) + other.error().powi(2)).sqrt().max(1e-3)
}
