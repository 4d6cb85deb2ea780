//! Whether the probe is as sure as it has reason to be: all it says of drives of all kinds, against the truth.
//!
//! A finding is right within the tolerance that docs/probe.md states, or undetermined; of those stated with confidence c, no more than a share of
//! 1 - c may be wrong but for chance: of each property, and in each band of confidence.

mod common;

use common::verdicts::{at_least, score};
use common::wide;

#[test]
fn what_is_said_of_drawn_drives_is_as_often_true_as_it_is_said_to_be() {
    score(0..6, 2, wide::draw).judge();
}

/// The table of docs/probe.md, and that of any other drives:
/// `PLANEWISE_SEEDS=10000..10500 cargo test --profile edit -p planewise-io --test probe_confidence -- --ignored --nocapture`.
#[test]
#[ignore = "for other seeds than those of the test above: 500 drives take some minutes"]
fn what_is_said_of_other_drawn_drives() {
    let seeds = std::env::var("PLANEWISE_SEEDS").unwrap_or_else(|_| "1000..1100".into());
    let (from, to) = seeds.split_once("..").expect("a range of seeds, such as 1000..1100");
    let seeds = from.parse().expect("the first seed")..to.parse().expect("the seed after the last");
    let workers = std::env::var("PLANEWISE_WORKERS").map_or(1, |workers| workers.parse().expect("a number"));
    score(seeds, workers, wide::draw).judge();
}

/// A drive on which a byte costs less than the noise: whether whole pages are moved was stated at 62 %, and wrong.
#[test]
fn noise_that_hides_what_a_byte_costs_leaves_it_open() {
    score(90349..90350, 1, wide::draw).judge();
}

/// A drive whose page was one thing by fewer reads and another by more: it was stated at 50 %.
#[test]
fn a_page_that_more_reads_change_is_open() {
    score(140199..140200, 1, wide::draw).judge();
}

#[test]
fn chance_is_what_the_binomial_distribution_says() {
    assert!((at_least(0, &[0.9; 4]) - 1.0).abs() < 1e-12);
    assert!((at_least(1, &[0.9; 4]) - (1.0 - 0.9f64.powi(4))).abs() < 1e-12);
    assert!((at_least(2, &[0.5, 0.5]) - 0.25).abs() < 1e-12);
}
