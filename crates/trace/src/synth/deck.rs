//! Sampling without replacement from a deck of equally likely values.
//!
//! A stream drawn at random has the right mean only on average, and with heavy tails not even a million draws bring it
//! within a few per cent. A deck holds the distribution as exact counts and deals every card once before it is shuffled
//! again: the mean is right by construction at every multiple of the deck's size, and the order stays random.

use planewise_model::rng::Generator;
use rand::Rng;

/// Cards in a deck: fine enough for the 99.9th percentile, small enough for the cache.
pub const CARDS: usize = 4096;

/// A uniform number in `0..bound` (bound at most 2^32) by multiplication: the bias is below 2^-32.
#[inline]
pub fn below(generator: &mut Generator, bound: u64) -> u64 {
    ((generator.next_u64() >> 32) * bound) >> 32
}

/// A uniform number in [0, 1).
#[inline]
pub fn unit(generator: &mut Generator) -> f64 {
    (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A deck of values.
#[derive(Clone, Debug)]
pub struct Deck {
    cards: Vec<u64>,
    next: usize,
}

impl Deck {
    /// A deck of these cards; at least one.
    pub fn new(cards: Vec<u64>) -> Deck {
        assert!(!cards.is_empty(), "an empty deck cannot be dealt");
        Deck { cards, next: 0 }
    }

    /// A deck in which the weights' shares are kept to the nearest card, by largest remainder.
    pub fn from_weights(values: &[(u64, f64)]) -> Deck {
        let total: f64 = values.iter().map(|&(_, weight)| weight).sum();
        let exact: Vec<f64> = values.iter().map(|&(_, weight)| weight / total * CARDS as f64).collect();
        let mut counts: Vec<usize> = exact.iter().map(|count| count.floor() as usize).collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
        let missing = CARDS.saturating_sub(counts.iter().sum());
        for &index in order.iter().cycle().take(missing) {
            counts[index] += 1;
        }
        let cards =
            values.iter().zip(&counts).flat_map(|(&(value, _), &count)| std::iter::repeat_n(value, count));
        Deck::new(cards.collect())
    }

    /// The next card. Shuffles while it deals (Fisher and Yates), so that no draw costs more than another.
    #[inline]
    pub fn draw(&mut self, generator: &mut Generator) -> u64 {
        let left = self.cards.len() - self.next;
        let chosen = self.next + below(generator, left as u64) as usize;
        self.cards.swap(self.next, chosen);
        let card = self.cards[self.next];
        self.next += 1;
        if self.next == self.cards.len() {
            self.next = 0;
        }
        card
    }

    /// Mean of the cards.
    pub fn mean(&self) -> f64 {
        self.cards.iter().map(|&card| card as f64).sum::<f64>() / self.cards.len() as f64
    }
}

/// The parameter in `low..=high` at which the increasing function reaches `target`, by bisection; the nearer end if none does.
pub fn solve(low: f64, high: f64, target: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if value(middle) < target { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Sizes in sectors whose mean is `mean_kib`: the weights times exp(θ · size), with θ solved for the mean. Of all
/// distributions with that mean it is the one nearest to the weights given (in relative entropy).
pub fn size_deck(sizes: &[(f64, f64)], mean_kib: f64) -> Deck {
    let tilted = |theta: f64| -> Vec<(u64, f64)> {
        sizes
            .iter()
            .map(|&(kib, weight)| ((kib * 2.0) as u64, weight * (theta * (kib - mean_kib)).exp()))
            .collect()
    };
    let mean = |theta: f64| {
        let weights = tilted(theta);
        let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        weights.iter().map(|&(sectors, weight)| sectors as f64 / 2.0 * weight).sum::<f64>() / total
    };
    let largest = sizes.iter().map(|&(kib, _)| (kib - mean_kib).abs()).fold(1.0, f64::max);
    // exp() stays finite within these bounds, and beyond them only one size is left anyway.
    let theta = solve(-300.0 / largest, 300.0 / largest, mean_kib, mean);
    Deck::from_weights(&tilted(theta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;

    #[test]
    fn a_deck_deals_every_card_once_a_round_and_in_another_order_each_round() {
        let mut deck = Deck::new((0..100).collect());
        let mut random = generator(1, "deck");
        let rounds: Vec<Vec<u64>> =
            (0..2).map(|_| (0..100).map(|_| deck.draw(&mut random)).collect()).collect();
        assert_ne!(rounds[0], rounds[1]);
        for mut round in rounds {
            round.sort_unstable();
            assert_eq!(round, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sizes_are_tilted_to_any_mean_between_the_smallest_and_the_largest() {
        let sizes = [(4.0, 50.0), (8.0, 20.0), (16.0, 10.0), (64.0, 15.0), (256.0, 0.1)];
        for mean in [4.3, 7.5, 12.4, 33.6, 90.0, 240.0] {
            let deck = size_deck(&sizes, mean);
            assert!(
                (deck.mean() / 2.0 / mean - 1.0).abs() < 0.01,
                "mean {mean} became {}",
                deck.mean() / 2.0
            );
        }
    }
}
