//! Kinds of pages by how long they take: one of SLC, two of MLC, three of TLC.

use super::statistics::Moments;

/// Fewest times of which kinds of pages are told apart.
pub(super) const FEWEST: usize = 24;
/// Most page types.
const MOST_TYPES: usize = 4;
/// Standard deviations by which page types must differ to be told apart.
const APART: f64 = 3.2;

/// Means of the kinds of pages, ascending: as many equal shares of the sorted times as are clearly apart. One mean of few times, 0 of none.
pub(super) fn page_types(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // Stragglers would make a kind of their own.
    let kept = &sorted[..sorted.len() - sorted.len() / 50];
    let most = if kept.len() < FEWEST { 1 } else { MOST_TYPES };
    for types in (2..=most).rev() {
        let shares: Vec<Moments> = (0..types)
            .map(|share| {
                let (from, to) = (kept.len() * share / types, kept.len() * (share + 1) / types);
                // The edges of a share hold its neighbours' pages when shares are not quite equal.
                let trim = (to - from) / 16;
                Moments::of(kept[from + trim..to - trim].iter().copied())
            })
            .collect();
        // Noise split into equal shares has no gaps: between kinds of pages there are few, where one kind has most.
        let gaps_are_empty = (1..types).all(|share| {
            let at = kept.len() * share / types;
            let width = kept.len() / types / 8;
            let (low, high) = (kept[at - width], kept[(at + width).min(kept.len() - 1)]);
            let around = &shares[share - 1..=share];
            high - low > 0.6 * (around[1].mean() - around[0].mean())
        });
        let are_apart = gaps_are_empty
            && shares.windows(2).all(|pair| {
                let deviation = (pair[0].variance().sqrt() + pair[1].variance().sqrt()) / 2.0;
                pair[1].mean() - pair[0].mean() > (APART * deviation).max(0.03 * pair[0].mean())
            });
        if are_apart {
            return shares.iter().map(Moments::mean).collect();
        }
    }
    vec![Moments::of(kept.iter().copied()).mean()]
}

/// How many kinds of pages these are.
pub(super) fn kinds(types: &[f64]) -> String {
    if types.len() == 1 { "1 kind of pages".to_owned() } else { format!("{} kinds of pages", types.len()) }
}

pub(super) fn spread(types: &[f64]) -> String {
    let each: Vec<String> = types.iter().map(|mean| format!("{:.1} us", mean / 1e3)).collect();
    each.join(" / ")
}
