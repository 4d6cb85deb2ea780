//! Tunables of schedulers: named numbers and choices with unit, default and range.

use crate::error::SimError;
use planewise_model::names;
use std::collections::BTreeMap;

/// One tunable.
#[derive(Debug)]
pub struct Tunable {
    /// Name, unit last.
    pub name: &'static str,
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
    /// One of several words; the first is the default.
    Choice(&'static [&'static str]),
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
