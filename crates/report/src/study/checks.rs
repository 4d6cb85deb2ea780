//! Published and measured numbers in words.

use crate::format::ABSENT;
use planewise_study::outcome::{Check, Verdict};
use planewise_study::{Outcome, Tally};

/// A ratio up to this is compared in points, as the documents state gains of up to a hundred per cent; above it in per cent.
const RATIO_MAX: f64 = 2.0;

/// A sign beside the word, so that a verdict is seen without colour.
pub(super) fn sign(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::SelfTest) => "○",
        Some(Verdict::Holds) => "✓",
        Some(Verdict::Direction) => "≈",
        Some(Verdict::Fails) => "✗",
        None => ABSENT,
    }
}

/// A verdict in words.
pub(super) fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("not published", Verdict::name)
}

/// Class of the style sheet.
pub(super) fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::SelfTest) => "open",
        Some(Verdict::Holds) => "holds",
        Some(Verdict::Direction) => "direction",
        Some(Verdict::Fails) => "fails",
        None => "open",
    }
}

/// How the numbers of a study come out.
pub(super) fn tally(outcome: &Outcome) -> Tally {
    Tally::of(outcome.checks.iter().map(|check| check.verdict))
}

/// `7 of 9`, or `3 self-tests` where nothing published is judged.
pub(super) fn holding(tally: Tally) -> String {
    match (tally.judged(), tally.self_tests) {
        (0, 1) => "1 self-test".to_owned(),
        (0, more) if more > 0 => format!("{more} self-tests"),
        (judged, _) => format!("{} of {judged}", tally.holds),
    }
}

/// `7 of 9 numbers hold, 1 in direction, 1 does not`; `what` is the plural of what is counted.
pub(super) fn sentence(tally: Tally, what: &str) -> String {
    let judged = tally.judged();
    if judged == 0 && tally.self_tests > 0 {
        return match tally.self_tests {
            1 => "The one self-test of the method passes".to_owned(),
            more => format!("All {more} self-tests of the method pass"),
        };
    }
    if judged == 0 {
        return format!("No {what} to compare with were published");
    }
    let mut text = match (tally.holds, judged) {
        (1, 1) => format!("The one {} holds", what.trim_end_matches('s')),
        (0, 1) => format!("The one {} does not hold as published", what.trim_end_matches('s')),
        (all, judged) if all == judged => format!("All {all} {what} hold"),
        (0, judged) => format!("None of {judged} {what} holds as published"),
        (1, judged) => format!("1 of {judged} {what} holds"),
        (some, judged) => format!("{some} of {judged} {what} hold"),
    };
    if tally.direction > 0 {
        text += &format!(", {} in direction", tally.direction);
    }
    match tally.fails {
        0 => {}
        1 => text += ", 1 does not",
        fails => text += &format!(", {fails} do not"),
    }
    text
}

/// How far off the measured number is: `+2.9 points` for shares and ratios, `−14 %` for what has a unit; none when either is no number.
pub(super) fn deviation(check: &Check) -> Option<String> {
    let (published, measured) = (check.published_value?, check.measured_value?);
    if !published.is_finite() || !measured.is_finite() {
        return None;
    }
    let text = check.published.trim();
    if text.contains(" of ") {
        return Some(signed_count(measured - published));
    }
    let stated: f64 = leading_number(text)?;
    let points = if text.ends_with('%') {
        // The value behind `26.2 %` may be 0.262 or 26.2.
        let scale = if (published * 100.0 - stated).abs() < (published - stated).abs() { 100.0 } else { 1.0 };
        Some((measured - published) * scale)
    } else if text.parse::<f64>().is_ok() && published.abs() <= RATIO_MAX {
        Some((measured - published) * 100.0)
    } else {
        None
    };
    match points {
        Some(points) => Some(format!("{} points", signed(points))),
        None if published == 0.0 => None,
        None => match measured / published {
            ratio if ratio.abs() >= 10.0 => Some(format!("× {}", super::scale::plain(ratio))),
            ratio => Some(format!("{} %", signed((ratio - 1.0) * 100.0))),
        },
    }
}

fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(['<', '>', '≤', '≥', '~', '≈', '×', '−', '-', '+', ' ']);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    text[..end].replace(',', "").trim_end_matches('.').parse().ok()
}

/// A difference of counts: `13 of 15` and `14 of 15` are one apart.
fn signed_count(value: f64) -> String {
    match value.round() {
        0.0 => "±0".to_owned(),
        less if less < 0.0 => format!("−{}", super::scale::plain(-less)),
        more => format!("+{}", super::scale::plain(more)),
    }
}

fn signed(value: f64) -> String {
    let text = if value.abs() < 9.95 { format!("{:.1}", value.abs()) } else { format!("{:.0}", value.abs()) };
    match text.as_str() {
        "0.0" => "±0".to_owned(),
        _ if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(published: &str, values: (f64, f64)) -> Option<String> {
        deviation(&Check {
            claim: None,
            what: String::new(),
            published: published.to_owned(),
            measured: String::new(),
            published_value: Some(values.0),
            measured_value: Some(values.1),
            verdict: None,
            in_linux: None,
            why: Vec::new(),
        })
    }

    #[test]
    fn shares_and_ratios_differ_by_points_and_the_rest_by_per_cent() {
        assert_eq!(of("0.583", (0.583, 0.612)).unwrap(), "+2.9 points");
        assert_eq!(of("26.2 %", (0.262, 0.15)).unwrap(), "−11 points");
        assert_eq!(of("26.2 %", (26.2, 15.0)).unwrap(), "−11 points");
        assert_eq!(of("25.9 MB/s", (25.9, 20.0)).unwrap(), "−23 %");
        assert_eq!(of("7.1", (7.1, 7.1)).unwrap(), "±0 %");
        assert_eq!(of("2 ms", (2.0, 50.0)).unwrap(), "× 25");
        assert_eq!(of("13 of 15", (13.0, 11.0)).unwrap(), "−2");
        assert_eq!(of("0.5", (0.5, f64::NAN)), None);
        assert_eq!(of("many", (5.0, 6.0)), None);
        assert_eq!(of("0 MB/s", (0.0, 6.0)), None);
    }

    #[test]
    fn counts_are_sentences() {
        let tally = |holds, direction, fails| Tally { holds, direction, fails, self_tests: 0, open: 3 };
        let cases = [
            (tally(7, 1, 1), "7 of 9 numbers hold, 1 in direction, 1 does not"),
            (tally(9, 0, 0), "All 9 numbers hold"),
            (tally(0, 2, 0), "None of 2 numbers holds as published, 2 in direction"),
            (tally(1, 0, 2), "1 of 3 numbers holds, 2 do not"),
            (tally(1, 0, 0), "The one number holds"),
            (tally(0, 1, 0), "The one number does not hold as published, 1 in direction"),
            (tally(0, 0, 0), "No numbers to compare with were published"),
        ];
        for (tally, expected) in cases {
            assert_eq!(sentence(tally, "numbers"), expected);
        }
    }
}
