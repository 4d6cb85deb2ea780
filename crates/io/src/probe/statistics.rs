//! Statistics of the probe: moments, and how sure a contrast is.

/// Sum, sum of squares and number of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// Of values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Moments {
        let mut moments = Moments::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }

    /// One more value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// Mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        if self.count == 0.0 { 0.0 } else { self.sum / self.count }
    }

    /// Variance of the sample; 0 of fewer than two.
    pub fn variance(&self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        ((self.squares - self.sum * self.sum / self.count) / (self.count - 1.0)).max(0.0)
    }

    /// Standard error of the mean.
    pub fn error(&self) -> f64 {
        if self.count == 0.0 { 0.0 } else { (self.variance() / self.count).sqrt() }
    }

    /// Both samples together.
    pub fn and(&self, other: &Moments) -> Moments {
        Moments {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }
}

/// Welch's statistic for the difference of two means, positive when `one` is larger; limited to a million, where it means "never the
/// same" (samples of a model without noise).
pub fn welch(one: &Moments, other: &Moments) -> f64 {
    let difference = one.mean() - other.mean();
    let error = (one.error().powi(2) + other.error().powi(2)).sqrt();
    // A thousandth of a nanosecond keeps exact samples from dividing by zero.
    (difference / error.max(1e-3)).clamp(-1e6, 1e6)
}

/// How much likelier an explanation is than the next, from the logarithm of that. Beyond a million to one no number says more.
pub fn likelier(margin: f64) -> String {
    match margin {
        margin if margin > 1e6f64.ln() => "likelier than any other by more than 1,000,000 to 1".to_owned(),
        margin => format!("likelier than the next by {:.0} to 1", margin.exp()),
    }
}

/// A contrast of so many standard errors, in words: without noise it has no bound, and its figures say nothing.
pub fn in_errors(z: f64) -> String {
    if z > 1000.0 { ">1000 standard errors".to_owned() } else { format!("{z:.0} standard errors") }
}

/// Probability that a normal deviate stays below `z`: how sure a contrast of `z` standard errors is.
pub fn confidence(z: f64) -> f64 {
    1.0 - 0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// The value that a share `quantile` of the sample is at or below; sorts the sample.
pub fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    let rank = (quantile * values.len() as f64).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

/// The median; sorts the sample.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_quantiles_and_the_normal_distribution_are_those_of_the_textbook() {
        let moments = Moments::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(moments.mean(), 5.0);
        assert!((moments.variance() - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!(median(&mut [3.0, 1.0, 2.0, 10.0]), 2.0);
        assert_eq!(quantile(&mut [3.0, 1.0, 2.0, 10.0], 0.99), 10.0);
        for (z, p) in [(0.0, 0.5), (1.0, 0.841_344_7), (1.959_964, 0.975), (-3.0, 0.001_349_9)] {
            assert!((confidence(z) - p).abs() < 1e-6, "{z}: {}", confidence(z));
        }
    }

    #[test]
    fn a_contrast_of_exact_samples_is_finite() {
        let (one, other) = (Moments::of([5.0; 4]), Moments::of([7.0; 4]));
        assert_eq!(welch(&other, &one), 2000.0);
        assert_eq!(welch(&one, &one), 0.0);
        assert_eq!(
            (in_errors(12.4).as_str(), in_errors(1e6).as_str()),
            ("12 standard errors", ">1000 standard errors")
        );
    }
}
