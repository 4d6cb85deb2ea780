//! Verdicts on numbers.

use crate::Verdict;

/// Distance within which a number is as published: ten points of a ratio up to 1, ten per cent of what is larger.
pub const WITHIN: f64 = 0.1;

/// Share of the published effect that must be there for its direction to hold.
const EFFECT: f64 = 0.1;

/// The verdict on a measured number beside a published one. `neutral` is what it would be without any effect (1 for a ratio): the
/// number must be on the published side of it; numbers with a unit have none, and only their distance counts, relative to their size.
pub fn verdict(published: f64, measured: f64, neutral: Option<f64>, within: f64) -> Verdict {
    let distance = (measured - published).abs();
    let Some(neutral) = neutral else {
        return if distance <= within * published.abs() { Verdict::Holds } else { Verdict::Fails };
    };
    let near = distance <= within * published.abs().max(1.0);
    // Published as "no effect": there is no direction to be on.
    if published == neutral {
        return if near { Verdict::Holds } else { Verdict::Fails };
    }
    let effect = (measured - neutral) / (published - neutral);
    match (near, effect >= EFFECT) {
        (true, true) => Verdict::Holds,
        (false, true) => Verdict::Direction,
        _ => Verdict::Fails,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_hold_within_ten_points_on_their_side() {
        let of = |published, measured| verdict(published, measured, Some(1.0), WITHIN);
        assert_eq!(of(0.6, 0.68), Verdict::Holds);
        assert_eq!(of(0.6, 0.75), Verdict::Direction);
        assert_eq!(of(0.6, 0.2), Verdict::Direction);
        assert_eq!(of(0.6, 1.02), Verdict::Fails);
        // Near, but on the other side of no effect.
        assert_eq!(of(0.95, 1.02), Verdict::Fails);
        assert_eq!(of(7.1, 6.5), Verdict::Holds);
        assert_eq!(of(7.1, 3.0), Verdict::Direction);
        assert_eq!(of(1.0, 1.05), Verdict::Holds);
    }

    #[test]
    fn numbers_with_a_unit_hold_within_ten_per_cent() {
        let of = |published, measured| verdict(published, measured, None, WITHIN);
        assert_eq!(of(25.85, 27.0), Verdict::Holds);
        assert_eq!(of(0.2, 0.25), Verdict::Fails);
        assert_eq!(of(44.0, 9.0), Verdict::Fails);
    }
}
