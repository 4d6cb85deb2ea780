//! Where random requests start.

use planewise_model::rng::Generator;
use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Zipf};

/// How random offsets are spread over an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All places alike.
    Uniform,
    /// The k-th most wanted place with a probability in proportion to k to the power of minus this, above 0.
    Zipf(f64),
    /// A share of (1 - this) of the requests goes to a share of this of the places, and so again inside of each: self-similar,
    /// as in Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994). 0 to 1, exclusive.
    Pareto(f64),
}

impl Distribution {
    /// As fio writes it.
    pub(super) fn parse(text: &str) -> Result<Distribution, String> {
        let refused = || {
            format!(
                "random, zipf:THETA with THETA from 0.01 to 10 but 1, pareto:H with H between 0 and 1; found '{text}'"
            )
        };
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let number = |default: f64| {
            if argument.is_empty() { Some(default) } else { argument.parse::<f64>().ok() }
        };
        match name {
            "random" if argument.is_empty() => Ok(Distribution::Uniform),
            // The defaults are fio's.
            "zipf" => {
                let theta = number(1.1).filter(|theta| (0.01..=10.0).contains(theta) && *theta != 1.0);
                theta.map(Distribution::Zipf).ok_or_else(refused)
            }
            "pareto" => {
                number(0.2).filter(|h| *h > 0.0 && *h < 1.0).map(Distribution::Pareto).ok_or_else(refused)
            }
            _ => Err(refused()),
        }
    }
}

/// Draws places of an area.
pub(super) struct Places {
    count: u64,
    draw: Draw,
}

enum Draw {
    Uniform,
    Zipf(Zipf<f64>, u64),
    Pareto(f64, u64),
    EachOnce(Permutation),
}

impl Places {
    /// Places `0..count`, at least one. `spread` moves the most wanted places apart, the same way for all processes of a job.
    pub(super) fn new(
        count: u64,
        distribution: Distribution,
        each_once: bool,
        spread: u64,
        random: &mut Generator,
    ) -> Places {
        let draw = match distribution {
            Distribution::Uniform if each_once => Draw::EachOnce(Permutation::new(count, random.next_u64())),
            Distribution::Uniform => Draw::Uniform,
            Distribution::Zipf(theta) => {
                Draw::Zipf(Zipf::new(count as f64, theta).expect("the exponent was checked"), spread)
            }
            Distribution::Pareto(h) => Draw::Pareto(h.ln() / (1.0 - h).ln(), spread),
        };
        Places { count, draw }
    }

    pub(super) fn next(&mut self, random: &mut Generator) -> u64 {
        match &mut self.draw {
            Draw::Uniform => random.random_range(0..self.count),
            Draw::EachOnce(permutation) => permutation.next(),
            Draw::Zipf(zipf, spread) => scattered(zipf.sample(random) as u64 - 1, *spread, self.count),
            Draw::Pareto(power, spread) => {
                let place = (self.count as f64 * random.random::<f64>().powf(*power)) as u64;
                scattered(place.min(self.count - 1), *spread, self.count)
            }
        }
    }
}

/// Puts the place of rank `rank` somewhere: neighbours in rank need not be neighbours on the device. Two ranks may share a place.
fn scattered(rank: u64, spread: u64, count: u64) -> u64 {
    mixed(rank ^ spread) % count
}

/// A bijection of 64-bit numbers that leaves no trace of their order (the finalizer of SplitMix64).
fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Deals each of `0..count` once in an order without pattern, then all again in another: a Feistel network over the next even
/// number of bits, walked until it lands inside. It takes no memory, where a map of the area would take one bit a place.
struct Permutation {
    count: u64,
    half_bits: u32,
    key: u64,
    next: u64,
}

impl Permutation {
    fn new(count: u64, key: u64) -> Permutation {
        let bits = u64::BITS - (count.max(2) - 1).leading_zeros();
        Permutation { count, half_bits: bits.div_ceil(2), key, next: 0 }
    }

    fn next(&mut self) -> u64 {
        if self.next == self.count {
            self.next = 0;
            self.key = mixed(self.key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
        let mut place = self.next;
        self.next += 1;
        loop {
            place = self.scramble(place);
            if place < self.count {
                return place;
            }
        }
    }

    fn scramble(&self, place: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (place >> self.half_bits, place & mask);
        for round in 0..4u64 {
            let turned = mixed(right ^ self.key.rotate_left(round as u32 * 16)) & mask;
            (left, right) = (right, left ^ turned);
        }
        left << self.half_bits | right
    }
}

/// Whether a request is random, of so many per cent.
pub(super) fn happens(share: f64, random: &mut Generator) -> bool {
    share >= 100.0 || (share > 0.0 && random.random::<f64>() * 100.0 < share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_permutation_deals_every_place_once_and_then_all_again(count in 1u64..3000, key: u64) {
            let mut permutation = Permutation::new(count, key);
            for _ in 0..2 {
                let mut dealt: Vec<u64> = (0..count).map(|_| permutation.next()).collect();
                dealt.sort_unstable();
                prop_assert!(dealt.iter().copied().eq(0..count));
            }
        }

        #[test]
        fn every_distribution_stays_inside(count in 1u64..5000, seed: u64, theta in 0.02f64..3.0, h in 0.01f64..0.99) {
            prop_assume!((theta - 1.0).abs() > 1e-6);
            let mut random = generator(seed, "test");
            for distribution in [Distribution::Uniform, Distribution::Zipf(theta), Distribution::Pareto(h)] {
                let mut places = Places::new(count, distribution, false, seed, &mut random);
                for _ in 0..200 {
                    prop_assert!(places.next(&mut random) < count);
                }
            }
        }
    }

    #[test]
    fn pareto_gives_a_share_of_the_places_the_rest_of_the_requests() {
        let mut random = generator(3, "test");
        let power = 0.2f64.ln() / 0.8f64.ln();
        let inside = (0..100_000).filter(|_| random.random::<f64>().powf(power) < 0.2).count();
        assert!((79_000..81_000).contains(&inside), "{inside}");
        assert!(happens(100.0, &mut random) && !happens(0.0, &mut random));
    }
}
