//! The table: a clustered B-tree of pages, and which rows queries ask for.

use super::pool::Page;
use planewise_model::rng::Generator;
use rand::RngExt;
use rand_distr::{Distribution as _, Zipf};

/// A clustered index: leaves first, then the levels above, the root last.
pub(super) struct Tree {
    rows_per_page: u64,
    /// First page and number of pages of each level, from the leaves up.
    levels: Vec<(u64, u64)>,
    fanout: u64,
}

impl Tree {
    pub(super) fn new(leaves: u64, rows_per_page: u64, fanout: u64) -> Tree {
        let mut levels = vec![(0, leaves)];
        while let Some(&(first, count)) = levels.last()
            && count > 1
        {
            levels.push((first + count, count.div_ceil(fanout)));
        }
        Tree { rows_per_page, levels, fanout }
    }

    pub(super) fn rows(&self) -> u64 {
        self.levels[0].1 * self.rows_per_page
    }

    pub(super) fn pages(&self) -> u64 {
        self.levels.last().map_or(0, |(first, count)| first + count)
    }

    /// The pages from the root to the leaf of a row.
    pub(super) fn descend(&self, row: u64, into: &mut Vec<(Page, bool)>) {
        let leaf = row / self.rows_per_page;
        for (level, (first, _)) in self.levels.iter().enumerate().rev() {
            let place = leaf / self.fanout.pow(level as u32);
            into.push(((first + place) as Page, false));
        }
    }

    /// The leaves of `count` rows from one on, behind that of the first.
    pub(super) fn further_leaves(&self, row: u64, count: u64, into: &mut Vec<(Page, bool)>) {
        let last = (row + count.max(1) - 1).min(self.rows() - 1) / self.rows_per_page;
        into.extend((row / self.rows_per_page + 1..=last).map(|leaf| (leaf as Page, false)));
    }
}

/// Which rows queries ask for: sysbench's `oltp-dist-type`.
pub(super) enum Rows {
    Uniform,
    /// The mean of so many uniform numbers.
    Gaussian(u32),
    /// A share of the queries goes to a share of the rows, in the middle; the others as [`Rows::Gaussian`]. Both in per cent.
    Special {
        iterations: u32,
        rows: f64,
        queries: f64,
    },
    /// Not of sysbench 0.4.
    Zipf(Zipf<f64>),
}

impl Rows {
    pub(super) fn next(&self, count: u64, random: &mut Generator) -> u64 {
        match self {
            Rows::Uniform => random.random_range(0..count),
            Rows::Gaussian(iterations) => gaussian(count, *iterations, random),
            Rows::Special { iterations, rows, queries } => {
                if random.random::<f64>() * 100.0 >= *queries {
                    return gaussian(count, *iterations, random);
                }
                let special = ((count as f64 * rows / 100.0) as u64).clamp(1, count);
                (count - special) / 2 + random.random_range(0..special)
            }
            // Multiplying by a prime puts rows that are wanted equally often on different pages.
            Rows::Zipf(zipf) => (zipf.sample(random) as u64).wrapping_mul(0x9e37_79b1) % count,
        }
    }
}

fn gaussian(count: u64, iterations: u32, random: &mut Generator) -> u64 {
    let sum: f64 = (0..iterations).map(|_| random.random::<f64>()).sum();
    ((sum / f64::from(iterations) * count as f64) as u64).min(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;

    #[test]
    fn a_row_is_found_through_every_level_and_ranges_go_on_along_the_leaves() {
        let tree = Tree::new(2_000, 70, 100);
        assert_eq!((tree.rows(), tree.pages()), (140_000, 2_021));
        let mut path = Vec::new();
        tree.descend(70 * 1_234 + 5, &mut path);
        assert_eq!(path.iter().map(|(page, _)| *page).collect::<Vec<_>>(), [2_020, 2_012, 1_234]);
        path.clear();
        tree.further_leaves(69, 100, &mut path);
        assert_eq!(path.iter().map(|(page, _)| *page).collect::<Vec<_>>(), [1, 2]);
        path.clear();
        tree.further_leaves(139_999, 100, &mut path);
        assert!(path.is_empty());
    }

    #[test]
    fn special_rows_get_the_share_of_queries_that_sysbench_says() {
        let mut random = generator(1, "test");
        let rows = Rows::Special { iterations: 12, rows: 1.0, queries: 75.0 };
        let inside =
            (0..20_000).filter(|_| (49_500..50_500).contains(&rows.next(100_000, &mut random))).count();
        // The Gaussian part adds a few in the middle.
        assert!((15_000..15_900).contains(&inside), "{inside}");
    }
}
