//! Which chunks are served by the same unit: a relation between chunk numbers, found from how long pairs of reads take.
//!
//! Striping counts chunks through the levels of the device like digits of a number with several radices: the order of the levels says
//! which digit changes fastest. Two chunks share a unit when the digits of the levels that make up a unit are equal; other levels (the
//! planes of a die that serves one operation at a time) do not matter, but stretch the digits above them. So a relation is a list of
//! digits, some compared and some not.

use super::statistics::{median, quantile};

/// Two chunks and the time that reading both took, ns.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Number of a chunk.
    pub one: u64,
    /// Number of another.
    pub other: u64,
    /// How long both took.
    pub time: f64,
}

/// Digits of a chunk number, fastest first: `skipped` not compared, `inner` compared, `gap` not compared, `outer` compared. A radix
/// of 1 is no digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Relation {
    /// Radix of what is below the compared digits.
    pub skipped: u64,
    /// Radix of the lower compared digit.
    pub inner: u64,
    /// Radix of what is between.
    pub gap: u64,
    /// Radix of the upper compared digit.
    pub outer: u64,
}

impl Relation {
    /// Whether the two chunks share a unit.
    #[inline]
    pub fn holds(&self, one: u64, other: u64) -> bool {
        let (one, other) = (one / self.skipped, other / self.skipped);
        if one % self.inner != other % self.inner {
            return false;
        }
        let above = self.inner * self.gap;
        self.outer == 1 || one / above % self.outer == other / above % self.outer
    }

    /// Units that it tells apart.
    pub fn units(&self) -> u64 {
        self.inner * self.outer
    }

    /// Chunks after which it repeats.
    pub fn period(&self) -> u64 {
        self.skipped * self.inner * if self.outer == 1 { 1 } else { self.gap * self.outer }
    }

    /// All with 2 to `most` units.
    pub fn all(most: u64) -> Vec<Relation> {
        let mut all = Vec::new();
        for skipped in BETWEEN {
            for inner in 1..=most {
                if inner >= 2 {
                    all.push(Relation { skipped, inner, gap: 1, outer: 1 });
                }
                for gap in BETWEEN.into_iter().filter(|&gap| gap > 1 && inner > 1) {
                    let outer = 2..=most / inner;
                    all.extend(outer.map(|outer| Relation { skipped, inner, gap, outer }));
                }
            }
        }
        all
    }
}

/// Radices of levels that do not make units: dies that do not interleave times planes.
const BETWEEN: [u64; 14] = [1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 48, 64];
/// The largest of them.
pub(super) const WIDEST: u64 = 64;

/// How well a relation explains the times.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The relation.
    pub relation: Relation,
    /// Logarithm of how much likelier the times are under it than under no relation at all.
    pub evidence: f64,
    /// Mean time of pairs that do not share a unit, and of those that do, ns.
    pub means: [f64; 2],
    /// Of the pairs that share a unit, the share that is no slower than three quarters of the others; and how many of the others are slower than
    /// half of those that share one, over the number of those.
    pub wrong: [f64; 2],
    /// Pairs that share a unit.
    pub shared: u64,
}

/// Scores how a division of pairs into two classes explains their times; none when a class is empty or the shared one is not slower.
pub fn fit(pairs: &[Pair], relation: Relation, holds: impl Fn(u64, u64) -> bool + Copy) -> Option<Fit> {
    let (mut counts, mut sums, mut squares) = ([0.0f64; 2], [0.0f64; 2], 0.0f64);
    for pair in pairs {
        let class = usize::from(holds(pair.one, pair.other));
        counts[class] += 1.0;
        sums[class] += pair.time;
        squares += pair.time * pair.time;
    }
    let count = counts[0] + counts[1];
    if counts[0] < 4.0 || counts[1] < 4.0 {
        return None;
    }
    let means = [sums[0] / counts[0], sums[1] / counts[1]];
    if means[1] <= means[0] {
        return None;
    }
    // A nanosecond of spread is always there: exact times must not make the evidence infinite.
    let floor = count;
    let total = (squares - (sums[0] + sums[1]).powi(2) / count).max(0.0) + floor;
    let within = (squares - counts[0] * means[0].powi(2) - counts[1] * means[1].powi(2)).max(0.0) + floor;
    let times = |class: bool| {
        let of_class = pairs.iter().filter(move |pair| holds(pair.one, pair.other) == class);
        of_class.map(|pair| pair.time).collect::<Vec<f64>>()
    };
    let (apart, together) = (times(false), times(true));
    let high = quantile(&mut apart.clone(), 0.75);
    let typical = median(&mut together.clone());
    let wrong = [
        // Exact times tie: what takes as long as those apart does not wait.
        together.iter().filter(|&&time| time <= high).count() as f64 / counts[1],
        apart.iter().filter(|&&time| time > typical).count() as f64 / counts[1],
    ];
    let evidence = count / 2.0 * (total / within).ln();
    Some(Fit { relation, evidence, means, wrong, shared: counts[1] as u64 })
}

/// The relations that explain the times best, best first; the first is the verdict, the margin to the next the confidence.
pub fn search(pairs: &[Pair], most: u64) -> Vec<Fit> {
    // Fully scored at most: those that tell most units apart among the ones that fit the slow pairs.
    const SCORED: usize = 300;
    let mut times: Vec<f64> = pairs.iter().map(|pair| pair.time).collect();
    times.sort_unstable_by(f64::total_cmp);
    if times.len() < 64 {
        return Vec::new();
    }
    // Half of the pairs may share, so the median can be slow.
    let usual = times[times.len() / 10];
    let top = &times[times.len() - times.len() / 1000 - 4..];
    let top = top.iter().sum::<f64>() / top.len() as f64;
    // A digit that is the same for all numbers, or for nearly all, says nothing.
    let numbers = || pairs.iter().flat_map(|pair| [pair.one, pair.other]);
    let ends = [numbers().min().unwrap_or(0), numbers().max().unwrap_or(0)];
    let mut all = Relation::all(most);
    all.retain(|relation| {
        let base = relation.skipped * relation.inner * relation.gap;
        let [first, last] = ends.map(|number| number / base);
        let edge = last * base;
        let least = (edge.saturating_sub(ends[0])).min(ends[1] - edge);
        relation.outer == 1 || first + 1 < last || first < last && 16 * least > ends[1] - ends[0]
    });
    let mut candidates: Vec<Relation> = Vec::new();
    // Where the slow ones begin is not known: a share of the way from the usual to the top.
    for share in [0.3, 0.5, 0.7, 0.85] {
        let bar = usual + share * (top - usual);
        let slow: Vec<&Pair> = pairs.iter().filter(|pair| pair.time > bar).take(96).collect();
        if slow.len() < 4 {
            continue;
        }
        let allowed = slow.len() / 6;
        let mut fitting: Vec<Relation> = all
            .iter()
            .filter(|relation| {
                let mut missed = 0;
                slow.iter().all(|pair| {
                    missed += usize::from(!relation.holds(pair.one, pair.other));
                    missed <= allowed
                })
            })
            .copied()
            .collect();
        fitting.sort_by_key(|relation| std::cmp::Reverse(relation.units()));
        candidates.extend(fitting.into_iter().take(SCORED));
    }
    candidates.sort_by_key(|one| (one.skipped, one.inner, one.gap, one.outer));
    candidates.dedup();
    let mut fits: Vec<Fit> = candidates
        .into_iter()
        .filter_map(|relation| fit(pairs, relation, |one, other| relation.holds(one, other)))
        .collect();
    fits.sort_by(|one, other| other.evidence.total_cmp(&one.evidence));
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_compares_digits_and_repeats_after_its_period() {
        let relation = Relation { skipped: 2, inner: 3, gap: 2, outer: 4 };
        assert_eq!((relation.units(), relation.period()), (12, 48));
        assert!(relation.holds(0, 1) && !relation.holds(1, 2));
        assert!(relation.holds(0, 6) && !relation.holds(0, 12) && relation.holds(5, 5 + 48));
    }
}
