//! When requests arrive: bursts of power-law length, short gaps inside, long gaps between.

use super::deck::{CARDS, Deck, solve, unit};
use super::description::VolumeDescription;
use crate::stats::BURST_GAP_DEFAULT;
use planewise_model::rng::{self, Generator};
use planewise_model::units::Ns;

/// How many requests a surplus of burst requests takes to be worked off.
const FEEDBACK_REQUESTS: f64 = 500.0;

/// The arrival times of a stream.
pub struct Arrivals {
    random: Generator,
    lengths: Deck,
    burst_gaps: Deck,
    idle_gaps: Deck,
    /// Probability that an arrival after an idle gap opens a burst.
    burst_probability: f64,
    burst_share: f64,
    mean_extra: f64,
    /// Requests still to come in the burst going on.
    burst_left: u64,
    /// Burst requests promised so far, beyond the share of all requests that they should be.
    surplus: f64,
    now: u64,
    started: bool,
}

impl Arrivals {
    /// The arrivals of a volume, which must have passed its check.
    pub fn new(description: &VolumeDescription, seed: u64) -> Arrivals {
        let shape = &description.shape;
        let share = description.burst_share;
        let lengths = burst_lengths(shape.burst_length_mean, shape.burst_length_max);
        let mean_extra = lengths.mean() - 1.0;
        let limit = BURST_GAP_DEFAULT.0 as f64;
        let burst_mean = shape.burst_gap_mean_us * 1e3;
        let burst_gaps = log_normal(shape.burst_gap_sigma, burst_mean, 0.0, limit);
        let idle_mean = (description.inter_arrival_ms * 1e6 - share * burst_gaps.mean())
            / (1.0 - share).max(f64::MIN_POSITIVE);
        let idle_gaps = log_normal(shape.idle_gap_sigma, idle_mean, limit + 1.0, f64::INFINITY);
        Arrivals {
            random: rng::generator(seed, "synth.arrivals"),
            // Mean burst requests per idle gap are b / (1 - b); a burst brings `mean_extra` of them.
            burst_probability: share / (1.0 - share) / mean_extra,
            lengths,
            burst_gaps,
            idle_gaps,
            burst_share: share,
            mean_extra,
            burst_left: 0,
            surplus: 0.0,
            now: 0,
            started: false,
        }
    }

    /// The next arrival, and whether it is inside a burst. The first is at 0.
    #[inline]
    pub fn draw(&mut self) -> (Ns, bool) {
        self.surplus -= self.burst_share;
        if self.burst_left > 0 {
            self.burst_left -= 1;
            self.now += self.burst_gaps.draw(&mut self.random);
            return (Ns(self.now), true);
        }
        if self.started {
            self.now += self.idle_gaps.draw(&mut self.random);
        }
        self.started = true;
        let correction = self.surplus / (FEEDBACK_REQUESTS * self.mean_extra);
        if unit(&mut self.random) < self.burst_probability - correction {
            self.burst_left = self.lengths.draw(&mut self.random) - 1;
            self.surplus += self.burst_left as f64;
        }
        (Ns(self.now), false)
    }
}

/// Lengths from 2 to `longest` with P(n) ∝ n^−a, a solved for the mean: measured bursts have medians of 2 to 4 and a
/// hundredth of them is longer than 30 (docs/traces.md).
fn burst_lengths(mean: f64, longest: u32) -> Deck {
    // Card by card the quantiles of the distribution, so that the tail is as long as the deck can show.
    let cards = |exponent: f64| -> Vec<u64> {
        let weights: Vec<f64> = (2..=longest).map(|length| f64::from(length).powf(exponent)).collect();
        let total: f64 = weights.iter().sum();
        let (mut length, mut below) = (0, weights[0] / total);
        let quantile = |card: usize| {
            while below < (card as f64 + 0.5) / CARDS as f64 && length + 1 < weights.len() {
                length += 1;
                below += weights[length] / total;
            }
            length as u64 + 2
        };
        (0..CARDS).map(quantile).collect()
    };
    let mean_of = |exponent: f64| cards(exponent).iter().sum::<u64>() as f64 / CARDS as f64;
    Deck::new(cards(solve(-40.0, 0.0, mean, mean_of)))
}

/// Equally likely log-normal gaps, clipped to `low..=high`, whose mean after clipping is `mean`: whole nanoseconds.
fn log_normal(sigma: f64, mean: f64, low: f64, high: f64) -> Deck {
    let deviations: Vec<f64> =
        (0..CARDS).map(|card| (sigma * normal_quantile((card as f64 + 0.5) / CARDS as f64)).exp()).collect();
    let clipped = |log_scale: f64| {
        let scale = log_scale.exp();
        deviations.iter().map(move |deviation| (scale * deviation).clamp(low, high))
    };
    let log_scale = solve(-40.0, 60.0, mean, |log_scale| clipped(log_scale).sum::<f64>() / CARDS as f64);
    Deck::new(clipped(log_scale).map(|gap| gap.round() as u64).collect())
}

/// The quantile of the standard normal distribution, by bisection of the error function's complement.
fn normal_quantile(probability: f64) -> f64 {
    // Abramowitz and Stegun 26.2.17: |error| < 7.5e-8, far below what 4096 cards can show.
    let cumulative = |z: f64| {
        let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
        let polynomial = t
            * (0.319_381_530
                + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
        let tail = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
        if z >= 0.0 { 1.0 - tail } else { tail }
    };
    solve(-8.0, 8.0, probability, cumulative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (probability, expected) in [(0.5, 0.0), (0.975, 1.959_964), (0.01, -2.326_348)] {
            assert!((normal_quantile(probability) - expected).abs() < 1e-5);
        }
    }

    #[test]
    fn clipped_gaps_keep_their_mean_and_their_side_of_the_limit() {
        let inside = log_normal(1.6, 22_000.0, 0.0, 200_000.0);
        assert!((inside.mean() / 22_000.0 - 1.0).abs() < 1e-3);
        let mut random = rng::generator(1, "test");
        let mut outside = log_normal(1.8, 5e6, 200_001.0, f64::INFINITY);
        assert!((outside.mean() / 5e6 - 1.0).abs() < 1e-3);
        assert!((0..CARDS).all(|_| outside.draw(&mut random) > 200_000));
    }

    #[test]
    fn burst_lengths_have_the_mean_asked_for_and_a_tail() {
        let mut deck = burst_lengths(7.0, 256);
        assert!((deck.mean() / 7.0 - 1.0).abs() < 0.01, "{}", deck.mean());
        let mut random = rng::generator(1, "test");
        let mut lengths: Vec<u64> = (0..CARDS).map(|_| deck.draw(&mut random)).collect();
        lengths.sort_unstable();
        assert!(lengths[CARDS / 2] <= 4 && lengths[CARDS * 99 / 100] >= 30, "{lengths:?}");
    }
}
