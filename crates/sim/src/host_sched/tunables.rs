//! Tunables of schedulers: named numbers and choices with unit, default and range.

use crate::error::SimError;
use planewise_model::names;
use std::collections::BTreeMap;

/// One tunable.
#[derive(Debug)]
pub struct Tunable {
    /// Name: Linux's own where it comes from there.
    pub name: &'static str,
    /// Unit of a number, such as `ms` or `requests`; empty for choices and switches.
    pub unit: &'static str,
    /// What it does and what it trades.
    pub summary: &'static str,
    /// Default and what is allowed.
    pub kind: TunableKind,
}

/// Kind of a tunable with its default.
#[derive(Debug)]
pub enum TunableKind {
    /// A whole number within limits.
    Number {
        /// Default.
        default: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// An amount of bytes, with a suffix `k`, `m`, `g` or `t` for powers of 1024 or without.
    Size {
        /// Default, as it would be typed.
        default: &'static str,
    },
    /// One of several words; the first is the default.
    Choice(&'static [&'static str]),
}

/// Longest deadlines: a day.
pub(super) const EXPIRE_MAX_MS: u64 = 86_400_000;

/// Bytes, with an optional binary suffix.
fn parse_size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, shift) = match number.strip_suffix(['k', 'm', 'g', 't']) {
        Some(digits) => (
            digits,
            [('k', 10), ('m', 20), ('g', 30), ('t', 40)]
                .iter()
                .find(|(suffix, _)| number.ends_with(*suffix))
                .map_or(0, |(_, shift)| *shift),
        ),
        None => (number, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Values of one scheduler's tunables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunableValues(BTreeMap<&'static str, Value>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Choice(&'static str),
}

impl TunableValues {
    /// The defaults.
    pub fn defaults(tunables: &'static [Tunable]) -> TunableValues {
        TunableValues(
            tunables
                .iter()
                .map(|tunable| {
                    let value = match tunable.kind {
                        TunableKind::Number { default, .. } => Value::Number(default),
                        TunableKind::Size { default } => {
                            Value::Number(parse_size(default).expect("the table's own sizes are sizes"))
                        }
                        TunableKind::Choice(choices) => Value::Choice(choices[0]),
                    };
                    (tunable.name, value)
                })
                .collect(),
        )
    }

    /// Sets one tunable from text.
    ///
    /// # Errors
    /// The scheduler has no such tunable, or the value is not allowed.
    pub fn set(
        &mut self,
        scheduler: &str,
        tunables: &'static [Tunable],
        name: &str,
        text: &str,
    ) -> Result<(), SimError> {
        let tunable = tunables
            .iter()
            .find(|tunable| tunable.name == name)
            .ok_or_else(|| names::unknown("tunable", name, tunables.iter().map(|tunable| tunable.name)))?;
        let refused = |allowed: String| SimError::Option {
            key: format!("{scheduler}.{name}"),
            found: format!("'{text}'"),
            allowed,
        };
        let value = match tunable.kind {
            TunableKind::Number { min, max, .. } => text
                .parse()
                .ok()
                .filter(|value| (min..=max).contains(value))
                .map(Value::Number)
                .ok_or_else(|| refused(format!("a whole number from {min} to {max}")))?,
            TunableKind::Size { .. } => parse_size(text)
                .map(Value::Number)
                .ok_or_else(|| refused("a number of bytes such as 4294967296, 512m or 4g".into()))?,
            TunableKind::Choice(choices) => choices
                .iter()
                .find(|choice| **choice == text)
                .map(|choice| Value::Choice(choice))
                .ok_or_else(|| refused(choices.join(", ")))?,
        };
        self.0.insert(tunable.name, value);
        Ok(())
    }

    /// A number.
    ///
    /// # Panics
    /// When the scheduler did not declare it.
    pub fn number(&self, name: &str) -> u64 {
        match self.0.get(name) {
            Some(Value::Number(value)) => *value,
            other => panic!("number '{name}' is declared in the scheduler's table, found {other:?}"),
        }
    }

    /// A choice.
    ///
    /// # Panics
    /// When the scheduler did not declare it.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(Value::Choice(value)) => value,
            other => panic!("choice '{name}' is declared in the scheduler's table, found {other:?}"),
        }
    }

    /// All values as text, by name.
    pub fn to_text(&self) -> BTreeMap<String, String> {
        self.0
            .iter()
            .map(|(name, value)| {
                let text = match value {
                    Value::Number(number) => number.to_string(),
                    Value::Choice(choice) => (*choice).to_owned(),
                };
                ((*name).to_owned(), text)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_binary_suffixes() {
        assert_eq!(parse_size("4g"), Some(4 << 30));
        assert_eq!(parse_size("512M"), Some(512 << 20));
        assert_eq!(parse_size("4 GiB"), None);
        assert_eq!(parse_size("4GiB"), Some(4 << 30));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("17179869184g"), None);
        assert_eq!(parse_size("-1"), None);
        assert_eq!(parse_size(""), None);
    }
}
