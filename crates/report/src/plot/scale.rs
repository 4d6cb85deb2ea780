//! Axes: where a value stands, and which values get a tick.

/// A logarithmic axis between two positive values.
#[derive(Clone, Debug, PartialEq)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// From `low` to `high` (widened to the next 1, 2 or 5) over the pixels `from` to `to`. Values below 1 count as 1, so that a
    /// time of zero nanoseconds has a place.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> LogScale {
        let low = step_down(low.max(1.0));
        let high = step_up(high.max(low * 2.0));
        LogScale { low, high, from, to }
    }

    /// The pixel of a value, held inside the axis.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        self.from + (self.to - self.from) * (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Ticks: all of 1, 2, 5 over few decades, decades only over many.
    pub fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let mut ticks = Vec::new();
        let mut decade = 10f64.powf(self.low.log10().floor());
        while decade <= self.high * 1.001 {
            let steps: &[f64] = if decades > 3.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            ticks.extend(
                steps
                    .iter()
                    .map(|step| decade * step)
                    .filter(|v| (self.low * 0.999..=self.high * 1.001).contains(v)),
            );
            decade *= 10.0;
        }
        ticks
    }
}

fn decade_and_digit(value: f64) -> (f64, f64) {
    let decade = 10f64.powf(value.log10().floor());
    (decade, value / decade)
}

fn step_down(value: f64) -> f64 {
    let (decade, digit) = decade_and_digit(value * 1.000_001);
    decade * [5.0, 2.0, 1.0].into_iter().find(|step| digit >= *step).unwrap_or(1.0)
}

fn step_up(value: f64) -> f64 {
    let (decade, digit) = decade_and_digit(value * 0.999_999);
    decade * [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| digit <= *step).unwrap_or(10.0)
}

/// The top of a linear axis from zero: the next 1, 1.5, 2, 3, 4, 5, 6, 8 or 10 times a power of ten; 1 when there is nothing to show.
pub fn linear_top(largest: f64) -> f64 {
    if !largest.is_finite() || largest <= 0.0 {
        return 1.0;
    }
    let (decade, digit) = decade_and_digit(largest * 0.999_999);
    decade
        * [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
            .into_iter()
            .find(|step| digit <= *step)
            .unwrap_or(10.0)
}

/// The height of a cumulative share on an axis stretched towards the tail, 0 to 1.
///
/// Linear in the share plus linear in the number of nines: the median keeps a fifth of the height, and each further nine about
/// a sixth, so that p50, p95, p99, p99.9 and p99.99 stand clear of one another.
pub fn tail_stretched(share: f64) -> f64 {
    let stretched = |share: f64| 1.5 * share - (1.0 - share).log10();
    (stretched(share.clamp(0.0, MOST_SHARE)) / stretched(MOST_SHARE)).clamp(0.0, 1.0)
}

/// Where the axis ends: the largest of 30,000 requests. Higher shares stand at the top.
const MOST_SHARE: f64 = 1.0 - 1.0 / 30_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_marked_percentiles_stand_apart() {
        let heights = [0.0, 0.5, 0.95, 0.99, 0.999, 0.9999, 1.0].map(tail_stretched);
        assert_eq!((heights[0], heights[6]), (0.0, 1.0));
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] > 0.07), "{heights:?}");
    }

    #[test]
    fn ends_are_widened_to_round_values() {
        let scale = LogScale::new(37_000.0, 8.1e6, 0.0, 100.0);
        assert!(scale.at(20_001.0) < 0.01 && scale.at(20_001.0) > 0.0 && scale.at(9.99e6) < 100.0);
        assert!((scale.at(1e7) - 100.0).abs() < 1e-9);
        let ticks = scale.ticks();
        assert_eq!(ticks.len(), 9, "{ticks:?}");
    }

    proptest! {
        #[test]
        fn any_pair_gives_finite_places_inside_and_a_handful_of_ticks(low in 0.0f64..1e15, factor in 0.0f64..1e12) {
            let scale = LogScale::new(low, low * factor, 10.0, 500.0);
            for value in [0.0, low, low * factor, f64::MAX] {
                prop_assert!((9.99..=500.01).contains(&scale.at(value)));
            }
            let ticks = scale.ticks();
            prop_assert!((2..=28).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn the_top_of_a_linear_axis_is_above_all_but_not_far(largest in 1e-9f64..1e15) {
            let top = linear_top(largest);
            prop_assert!(top >= largest * 0.999_99 && top <= largest * 2.0, "{top}");
        }
    }
}
