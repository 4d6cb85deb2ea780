//! Values as fio writes them: sizes with binary suffixes, times in seconds, shares in percent.

use planewise_model::{Ns, names};

/// A size, or a share of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Per cent, 0 to 100.
    Percent(f64),
}

impl Amount {
    /// Bytes of a whole; shares are rounded down to sectors.
    pub fn of(self, whole_bytes: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => ((whole_bytes as f64 * percent / 100.0) as u64) & !511,
        }
    }
}

/// Sizes: a whole number of bytes, or with a suffix k, m, g, t, p (also K, Ki, KiB, KB, …): powers of 1024, as fio has them.
///
/// # Errors
/// What is allowed, and what was found.
pub fn bytes(text: &str) -> Result<u64, String> {
    let refused = || format!("a size in bytes such as 4096, 4k, 16m or 1g; found '{text}'");
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, suffix) = lower.split_at(split);
    let power = match suffix {
        "" | "b" => 0,
        "k" | "ki" | "kib" | "kb" => 1,
        "m" | "mi" | "mib" | "mb" => 2,
        "g" | "gi" | "gib" | "gb" => 3,
        "t" | "ti" | "tib" | "tb" => 4,
        "p" | "pi" | "pib" | "pb" => 5,
        _ => return Err(refused()),
    };
    let number: u64 = digits.parse().map_err(|_| refused())?;
    number.checked_mul(1 << (10 * power)).ok_or_else(refused)
}

/// A size, or per cent of the device such as 25%.
///
/// # Errors
/// What is allowed, and what was found.
pub fn amount(text: &str) -> Result<Amount, String> {
    match text.trim().strip_suffix('%') {
        Some(number) => percent(number).map(Amount::Percent),
        None => bytes(text).map(Amount::Bytes),
    }
}

/// A share in per cent, 0 to 100, with or without the sign.
///
/// # Errors
/// What is allowed, and what was found.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>().ok();
    number
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| format!("0 to 100 per cent; found '{text}'"))
}

/// The longest time of an option, ns: a run adds up many of them.
const TIME_MAX_NS: f64 = 365.0 * 86_400e9;

/// A time: seconds, or with a unit d, h, m, s, ms, us, ns; up to a year.
///
/// # Errors
/// What is allowed, and what was found.
pub fn time(text: &str) -> Result<Ns, String> {
    let refused = || format!("a time such as 10 (seconds), 500ms, 20us or 2m, up to 365d; found '{text}'");
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(split);
    let scale: f64 = match unit {
        "ns" | "nsec" => 1.0,
        "us" | "usec" => 1e3,
        "ms" | "msec" => 1e6,
        "" | "s" | "sec" => 1e9,
        "m" | "min" => 60e9,
        "h" | "hr" => 3_600e9,
        "d" => 86_400e9,
        _ => return Err(refused()),
    };
    let number = digits.trim().parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
    let ns = number.ok_or_else(refused)? * scale;
    if ns > TIME_MAX_NS { Err(refused()) } else { Ok(Ns(ns.round() as u64)) }
}

/// A time whose number alone means microseconds, as fio has it for think times.
///
/// # Errors
/// What is allowed, and what was found.
pub fn time_us(text: &str) -> Result<Ns, String> {
    let bare = text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    time(&if bare { format!("{}us", text.trim()) } else { text.to_owned() })
}

/// The complaint about a word that is none of those known.
pub fn unknown(text: &str, known: &[&str]) -> String {
    let nearest = names::nearest(text, known.iter().copied());
    let hint = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    format!("{}; found '{text}'{hint}", known.join(", "))
}

/// A whole number of at least `least`.
///
/// # Errors
/// What is allowed, and what was found.
pub fn count(text: &str, least: u64) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("a whole number, {least} or more; found '{text}'"))
}

/// Yes or no: 1, 0, true, false; a bare flag is yes.
///
/// # Errors
/// What is allowed, and what was found.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "" | "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        _ => Err(format!("1 or 0; found '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_times_are_seconds_as_in_fio() {
        assert_eq!(bytes("4k"), Ok(4096));
        assert_eq!(bytes("4KiB"), Ok(4096));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(time("10"), Ok(Ns(10_000_000_000)));
        assert_eq!(time("1.5ms"), Ok(Ns(1_500_000)));
        assert_eq!(time("2m"), Ok(Ns(120_000_000_000)));
        assert_eq!(time_us("250"), Ok(Ns(250_000)));
        assert_eq!(time_us("3ms"), Ok(Ns(3_000_000)));
        assert_eq!(amount("25%").map(|amount| amount.of(4096)), Ok(1024));
        for wrong in ["", "k", "4x", "-4k", "4.5k", "99999999999p"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time("365d"), Ok(Ns(31_536_000_000_000_000)));
        for wrong in ["", "s", "-1", "1y", "nan", "inf", "1e300", "366d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(percent("101").is_err() && percent("-1").is_err() && percent("nan").is_err());
    }
}
