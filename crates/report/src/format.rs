//! Numbers as people read them: three significant digits, one unit, no surprises for zero, NaN or infinity.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for a value that does not exist (the mean of no reads).
pub const ABSENT: &str = "–";

/// Differences up to this share are called "no difference" in words and colours: one run over one seed resolves no better.
pub const NEGLIGIBLE: f64 = 0.05;

/// A time in nanoseconds with three significant digits: `640 µs`, `1.28 ms`, `12.8 s`.
pub fn time(ns: f64) -> String {
    if !ns.is_finite() {
        return ABSENT.to_owned();
    }
    let mut value = ns;
    let mut unit = "ns";
    for next in ["µs", "ms", "s"] {
        if value.abs() < 999.5 {
            break;
        }
        value /= 1e3;
        unit = next;
    }
    if unit == "ns" { format!("{value:.0} ns") } else { format!("{} {unit}", three_digits(value)) }
}

/// A value over a baseline as `×0.58`; nothing when the baseline is zero or either is not a number.
///
/// Below 0.1 two digits that count are kept (`×0.049`, `×0.0049`): a gain of two hundred times is not `×0.00`.
pub fn ratio(value: f64, baseline: f64) -> Option<String> {
    let ratio = value / baseline;
    (baseline > 0.0 && ratio.is_finite()).then(|| match ratio {
        r if r >= 9999.5 => "×>9999".to_owned(),
        r if r > 0.0 && r < 0.0001 => "×<0.0001".to_owned(),
        r if r > 0.0 && r < 0.00995 => format!("×{r:.4}"),
        r if r > 0.0 && r < 0.0995 => format!("×{r:.3}"),
        r => format!("×{}", three_digits(r)),
    })
}

/// A share of 0 to 1 as per cent: `61.3%`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { ABSENT.to_owned() }
}

/// A share of 0 to 1 as whole per cent, for sentences; small shares keep a digit.
pub fn percent_in_words(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => ABSENT.to_owned(),
        p if p > 0.0 && p < 0.1 => "less than 0.1%".to_owned(),
        p if p > 99.9 && p < 100.0 => "more than 99.9%".to_owned(),
        p if p > 99.0 && p < 100.0 => format!("{p:.1}%"),
        p if p < 9.95 && (p - p.round()).abs() > 0.05 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// A count with thousands separated: `5,334,987`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate per second: `48,210`, or with digits after the point when it is small.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if !r.is_finite() => ABSENT.to_owned(),
        r if r < 99.5 => three_digits(r),
        r => count(r.round() as u64),
    }
}

/// Bytes per second in decimal units, as drives are sold: `312 MB/s`.
pub fn bandwidth(bytes_per_s: f64) -> String {
    if !bytes_per_s.is_finite() {
        return ABSENT.to_owned();
    }
    let mut value = bytes_per_s;
    let mut unit = "B/s";
    for next in ["kB/s", "MB/s", "GB/s", "TB/s"] {
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        unit = next;
    }
    if unit == "B/s" { format!("{value:.0} B/s") } else { format!("{} {unit}", three_digits(value)) }
}

/// Three significant digits, without an exponent.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A name from outside made fit for one line of a terminal or a label: control characters (escape sequences and
/// direction overrides among them) become `?`, and it is cut to `cells` columns.
pub fn one_line(name: &str, cells: usize) -> String {
    let clean: String = name.chars().map(|c| if is_unprintable(c) { '?' } else { c }).collect();
    if clean.width() <= cells {
        return clean;
    }
    let mut out = String::new();
    let mut used = 1; // the ellipsis
    for c in clean.chars() {
        used += c.width().unwrap_or(0);
        if used > cells {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same text in ASCII: units and signs by their usual replacements, anything else as `?`.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'µ' => out.push('u'),
            '×' => out.push('x'),
            '–' | '·' | '─' => out.push('-'),
            '…' => out.push('~'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_three_digits_and_the_unit_a_reader_expects() {
        let cases = [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (640_000.0, "640 µs"),
            (999_600.0, "1.00 ms"),
            (1.28e6, "1.28 ms"),
            (5e12, "5000 s"),
            (f64::NAN, "–"),
        ];
        for (ns, expected) in cases {
            assert_eq!(time(ns), expected, "{ns}");
        }
    }

    #[test]
    fn a_ratio_to_nothing_does_not_exist() {
        assert_eq!(ratio(58.0, 100.0).as_deref(), Some("×0.58"));
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(f64::NAN, 1.0), None);
        assert_eq!(ratio(0.0, 0.0), None);
    }

    #[test]
    fn a_ratio_far_below_one_and_a_share_next_to_all_are_not_rounded_away() {
        let cases = [
            (0.0994, "×0.099"),
            (0.0999, "×0.10"),
            (0.0527, "×0.053"),
            (0.00494, "×0.0049"),
            (0.00996, "×0.010"),
            (0.00001, "×<0.0001"),
            (0.0, "×0.00"),
        ];
        for (value, expected) in cases {
            assert_eq!(ratio(value, 1.0).as_deref(), Some(expected), "{value}");
        }
        assert_eq!(percent_in_words(0.9951), "99.5%");
        assert_eq!(percent_in_words(0.9996), "more than 99.9%");
        assert_eq!(percent_in_words(1.0), "100%");
    }

    #[test]
    fn counts_and_rates_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(5_334_987), "5,334,987");
        assert_eq!(rate(48_210.4), "48,210");
        assert_eq!(bandwidth(312.4e6), "312 MB/s");
        assert_eq!(percent_in_words(0.042), "4.2%");
    }

    #[test]
    fn escape_sequences_in_names_do_not_reach_a_terminal() {
        assert_eq!(one_line("a\u{1b}[31mb\nc", 80), "a?[31mb?c");
        assert_eq!(one_line("日本語のトレース", 7), "日本語…");
    }

    proptest! {
        #[test]
        fn a_positive_time_never_takes_more_than_seven_cells_below_a_thousand_seconds(ns in 0.0f64..999.4e9) {
            prop_assert!(time(ns).width() <= 7, "{}", time(ns));
        }

        #[test]
        fn a_name_never_exceeds_its_cells(name in ".{0,40}", cells in 1usize..30) {
            prop_assert!(one_line(&name, cells).width() <= cells);
        }
    }
}
