//! How long an array operation takes: its nominal latency, or one scattered around it.

use planewise_model::Ns;
use planewise_model::rng::{Generator, generator};
use rand_distr::{Distribution, StandardNormal};

/// Deviations from the mean at which a draw is cut off: die data sheets give a typical and a longest time, not an open tail.
const MOST_DEVIATIONS: f64 = 3.0;

/// The scatter of array times.
pub(super) struct Variation {
    share: f64,
    random: Generator,
}

impl Variation {
    pub(super) fn new(share: f64, seed: u64) -> Variation {
        Variation { share, random: generator(seed, "timing variation") }
    }

    /// The time that an operation with this latency takes now.
    #[inline]
    pub(super) fn of(&mut self, nominal: Ns) -> Ns {
        if self.share == 0.0 { nominal } else { self.draw(nominal) }
    }

    #[cold]
    fn draw(&mut self, nominal: Ns) -> Ns {
        let deviations: f64 = StandardNormal.sample(&mut self.random);
        let factor = 1.0 + self.share * deviations.clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS);
        Ns((nominal.0 as f64 * factor.max(0.0)).round() as u64)
    }
}
