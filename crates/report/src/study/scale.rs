//! Axes of figures: where a value stands and which values get a tick, for any numbers at all.

use super::text;
use crate::plot::scale::tail_stretched;
use std::f64::consts::LOG10_2;

/// Numbers beyond this are drawn as this: spans of them must not overflow.
const LARGEST: f64 = 1e300;

/// A tick with its text.
pub(super) type Tick = (f64, String);

/// Where values stand along an axis, from 0 at its start to 1 at its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    /// Evenly between two round numbers.
    Linear {
        /// Start.
        low: f64,
        /// End, above the start.
        high: f64,
        /// Between ticks.
        step: f64,
    },
    /// Evenly in the logarithm.
    Log {
        /// Decimal logarithm of the start.
        low: f64,
        /// Of the end, above the start.
        high: f64,
    },
    /// Shares from 0 to 1, stretched towards the tail.
    Tail,
}

impl Scale {
    /// A linear axis over the values; with the zero in it where `zero` is set.
    pub(super) fn linear(values: impl Iterator<Item = f64>, zero: bool) -> Scale {
        let start = if zero { Some((0.0, 0.0)) } else { None };
        let (low, high) =
            span(start, values.map(|value| value.clamp(-LARGEST, LARGEST))).unwrap_or((0.0, 1.0));
        let near = low >= 0.0 && low < 0.3 * high;
        let (low, high) = widened(if near { 0.0 } else { low }, high);
        let step = round_step((high - low) / 5.0);
        Scale::Linear { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// A logarithmic axis over the values above zero.
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Scale {
        let positive =
            values.filter(|value| *value > 0.0).map(|value| value.clamp(1.0 / LARGEST, LARGEST).log10());
        let (low, high) = span(None, positive).unwrap_or((0.0, 1.0));
        let (low, high) = (step_down(low), step_up(high));
        Scale::Log { low, high: if high - low < 0.3 { low + 1.0 } else { high } }
    }

    /// Where a value stands, held inside the axis. None for what is not a number, and for zero and below on a logarithmic axis.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let place = match *self {
            Scale::Linear { low, high, .. } => (value.clamp(low, high) - low) / (high - low),
            Scale::Log { low, high } => {
                if value <= 0.0 {
                    return None;
                }
                (value.log10() - low) / (high - low)
            }
            Scale::Tail => tail_stretched(value),
        };
        Some(place.clamp(0.0, 1.0))
    }

    /// Where bars stand on: zero, the start of the axis when zero is not on it.
    pub(super) fn ground(&self) -> f64 {
        self.at(0.0).unwrap_or(0.0)
    }

    /// Round values along the axis.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match *self {
            Scale::Linear { low, high, step } => {
                let count = ((high - low) / step).round().clamp(1.0, 12.0) as usize;
                let value = |i: usize| low + (high - low) * i as f64 / count as f64;
                // Rounding errors around zero are zero.
                let value = |i| if value(i).abs() < step * 1e-6 { 0.0 } else { value(i) };
                (0..=count).map(|i| (value(i), in_steps(value(i), step, low.abs().max(high.abs())))).collect()
            }
            Scale::Log { low, high } => {
                let (from, to) = (low.floor() as i32, high.ceil() as i32);
                let decades = high - low;
                let steps: &[f64] = if decades > 3.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let every = (decades / 8.0).ceil().max(1.0) as usize;
                (from..=to)
                    .step_by(every)
                    .flat_map(|decade| steps.iter().map(move |step| (decade, *step)))
                    .map(|(decade, step)| (f64::from(decade) + step.log10(), step * 10f64.powi(decade)))
                    .filter(|(place, _)| (low - 1e-6..=high + 1e-6).contains(place))
                    .map(|(_, value)| (value, plain(value)))
                    .collect()
            }
            Scale::Tail => [
                (0.0, "0"),
                (0.5, "0.5"),
                (0.9, "0.9"),
                (0.99, "0.99"),
                (0.999, "0.999"),
                (0.9999, "0.9999"),
                (1.0, "1"),
            ]
            .map(|(value, text)| (value, text.to_owned()))
            .into(),
        }
    }
}

/// An axis from the first to the last of some rising values with ticks at the values themselves, when these are few and short: powers
/// of two, numbers of members.
pub(super) fn own_ticks(values: &[f64], log: bool) -> Option<(Scale, Vec<Tick>)> {
    let short = |value: &f64| format!("{value}").len() <= 6 && value.abs() < 1e6;
    if !(2..=12).contains(&values.len()) || !values.iter().all(short) || (log && values[0] <= 0.0) {
        return None;
    }
    let (low, high) = (values[0], values[values.len() - 1]);
    let scale = match log {
        true => Scale::Log { low: low.log10(), high: high.log10() },
        false => Scale::Linear { low, high, step: high - low },
    };
    Some((scale, values.iter().map(|value| (*value, plain(*value))).collect()))
}

/// The ticks whose texts stand clear of one another along an axis of so many pixels.
pub(super) fn clear(ticks: Vec<Tick>, scale: &Scale, pixels: f64) -> Vec<Tick> {
    let mut free_from = f64::MIN;
    ticks
        .into_iter()
        .filter(|(value, words)| {
            let Some(place) = scale.at(*value).map(|place| place * pixels) else { return false };
            let half = text::width(words) / 2.0;
            let free = place - half >= free_from;
            if free {
                free_from = place + half + 6.0;
            }
            free
        })
        .collect()
}

fn span(start: Option<(f64, f64)>, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(start, |span, value| match span {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// A span that is wide enough to divide.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if size < 1e-280 {
        (0.0, 1.0)
    } else if high - low > size * 1e-9 {
        (low, high)
    } else {
        (low - size / 2.0, high + size / 2.0)
    }
}

fn round_step(raw: f64) -> f64 {
    let decade = 10f64.powf(raw.log10().floor());
    let digit = raw / decade * 0.999_999;
    decade * [1.0, 2.0, 2.5, 5.0].into_iter().find(|step| digit <= *step).unwrap_or(10.0)
}

/// Decimal logarithms of 1, 2, 5 and 10.
const LOG_STEPS: [f64; 4] = [0.0, LOG10_2, 1.0 - LOG10_2, 1.0];

fn step_down(log: f64) -> f64 {
    let part = log - log.floor() + 1e-6;
    log.floor() + LOG_STEPS.into_iter().rev().find(|step| part >= *step).unwrap_or(0.0)
}

fn step_up(log: f64) -> f64 {
    let part = log - log.floor() - 1e-6;
    log.floor() + LOG_STEPS.into_iter().find(|step| part <= *step).unwrap_or(1.0)
}

/// A tick's value with as many digits as its step needs; powers of ten for what is very large or very small.
fn in_steps(value: f64, step: f64, largest: f64) -> String {
    if largest >= 1e7 || step < 1e-4 {
        return plain(value);
    }
    let digits = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
    // A step of 2.5 needs a digit more than one of 2.
    let quarter = (step / 10f64.powf(step.log10().floor()) - 2.5).abs() < 1e-6 && step < 9.0;
    grouped(&format!("{value:.*}", digits + usize::from(quarter)))
}

/// A number in three digits that count: `0.997`, `12.3`.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || !(1e-4..1e3).contains(&value.abs()) {
        return plain(value);
    }
    let decade = 10f64.powi(2 - value.abs().log10().floor() as i32);
    plain((value * decade).round() / decade)
}

/// A number as short as it goes: `0.25`, `4096`, `65,536`, `2×10⁹`.
pub(super) fn plain(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-4..1e7).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 8) as usize;
        let text = format!("{value:.digits$}");
        grouped(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
    } else {
        let text = format!("{value:.1e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let raised: String = exponent.chars().map(raised).collect();
        grouped(&format!("{}×10{raised}", mantissa.trim_end_matches(".0")))
    }
}

fn raised(c: char) -> char {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])
}

/// Thousands separated from five digits on.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let (whole, part) = rest.split_once('.').map_or((rest, None), |(whole, part)| (whole, Some(part)));
    let whole = match whole.parse::<u64>() {
        Ok(number) if number >= 10_000 => crate::format::count(number),
        _ => whole.to_owned(),
    };
    format!("{sign}{whole}{}", part.map(|part| format!(".{part}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ratios_start_from_zero_and_end_at_a_round_number() {
        let scale = Scale::linear([0.583, 1.09].into_iter(), true);
        assert_eq!(texts(&scale), ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]);
        assert_eq!(scale.ground(), 0.0);
    }

    #[test]
    fn zero_lies_inside_when_there_is_something_below_it() {
        let scale = Scale::linear([-10.0, 30.0].into_iter(), true);
        assert_eq!(texts(&scale), ["−10", "0", "10", "20", "30"]);
        assert!((scale.ground() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn logarithmic_axes_go_below_one_and_have_no_zero() {
        let scale = Scale::log([0.02, 0.4, 0.0, -3.0].into_iter());
        assert_eq!(texts(&scale), ["0.02", "0.05", "0.1", "0.2", "0.5"]);
        assert_eq!((scale.at(0.0), scale.at(-1.0), scale.at(f64::NAN)), (None, None, None));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.25, 4096.0, 65536.0, 2e9, -1.5e-7, 1e300, 12.0].map(plain);
        assert_eq!(shown, ["0.25", "4096", "65,536", "2×10⁹", "−1.5×10⁻⁷", "1×10³⁰⁰", "12"]);
    }

    #[test]
    fn values_on_bars_have_three_digits() {
        let shown = [0.99742, 12.345, 4000.0, -0.4, 999.6, 0.0].map(short);
        assert_eq!(shown, ["0.997", "12.3", "4000", "−0.4", "1000", "0"]);
    }

    #[test]
    fn texts_of_ticks_stand_clear() {
        let values: Vec<f64> = (0..12).map(|i| f64::from(1 << i)).collect();
        let ticks = own_ticks(&values, true).unwrap().1;
        assert!(clear(ticks.clone(), &Scale::linear(values.iter().copied(), false), 600.0).len() < 12);
        assert_eq!(clear(ticks, &Scale::log(values.iter().copied()), 600.0).len(), 12);
    }

    proptest! {
        #[test]
        fn any_values_give_places_inside_and_a_handful_of_ticks(
            values in proptest::collection::vec(proptest::num::f64::ANY, 0..6), zero: bool, log: bool,
        ) {
            let all = values.iter().copied();
            let scale = if log { Scale::log(all) } else { Scale::linear(all, zero) };
            for value in values.iter().chain(&[0.0, 1e308, -1e308, f64::MIN_POSITIVE]) {
                prop_assert!(scale.at(*value).is_none_or(|place| (0.0..=1.0).contains(&place)), "{scale:?} {value}");
            }
            prop_assert!((0.0..=1.0).contains(&scale.ground()));
            let ticks = scale.ticks();
            prop_assert!((2..=13).contains(&ticks.len()), "{scale:?} {ticks:?}");
            for (value, text) in ticks {
                prop_assert!(value.is_finite() && text.len() < 30 && !text.contains("inf"), "{scale:?} {text}");
            }
        }
    }
}
