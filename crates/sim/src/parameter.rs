//! Policies with a number in their name, as a person types them: `d-choices:10`, `static:8`.

use crate::error::SimError;
use planewise_model::names;

/// The number that a policy takes after its name and a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// How texts write it: `D` in `d-choices:D`.
    pub letter: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// Least value allowed.
    pub least: u32,
    /// Greatest value allowed.
    pub most: u32,
    /// A value to show in examples; no default.
    pub example: u32,
}

/// A policy's name as texts write it, its parameter included.
pub(crate) fn form(name: &str, parameter: Option<&Parameter>) -> String {
    parameter.map_or_else(|| name.to_owned(), |parameter| format!("{name}:{}", parameter.letter))
}

/// Finds `text` in a table of names and parameters; returns the position in the table and the number, 0 where none is taken.
///
/// # Errors
/// The name is unknown; the number is missing, out of range, or not taken. `key` and `kind` are what the texts call it.
pub(crate) fn parse<'a>(
    key: &str,
    kind: &'static str,
    text: &str,
    table: impl Iterator<Item = (&'a str, Option<&'a Parameter>)> + Clone,
) -> Result<(usize, u32), SimError> {
    let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
    let Some((position, (name, parameter))) =
        table.clone().enumerate().find(|(_, (known, _))| *known == name)
    else {
        let forms: Vec<String> = table.map(|(name, parameter)| form(name, parameter)).collect();
        return Err(names::unknown(kind, text, forms.iter().map(String::as_str)).into());
    };
    let refused = |allowed: String| SimError::Option { key: key.into(), found: format!("'{text}'"), allowed };
    let Some(parameter) = parameter else {
        return match number {
            None => Ok((position, 0)),
            Some(_) => Err(refused(format!("'{name}', which takes no number"))),
        };
    };
    number
        .and_then(|number| number.parse().ok())
        .filter(|number| (parameter.least..=parameter.most).contains(number))
        .map(|number| (position, number))
        .ok_or_else(|| {
            let Parameter { letter, meaning, least, most, example } = parameter;
            refused(format!(
                "{name}:{letter} with {meaning} {letter} of {least} to {most}, e.g. {name}:{example}"
            ))
        })
}
