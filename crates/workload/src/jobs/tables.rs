//! Job files in TOML, with fio's options as keys.

use super::section::{Given, Level, Section};
use crate::error::WorkloadError;
use planewise_model::names;
use toml::de::{DeTable, DeValue};

/// A TOML document, or what is wrong with it in one line.
pub(crate) fn table(text: &str, origin: &str) -> Result<toml::Table, WorkloadError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        WorkloadError::File(format!("{origin}:{line}: {message}"))
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Where keys stand in the text. The same table twice: one parse has the values, the other their places.
struct Places<'a> {
    text: &'a str,
    root: Option<DeTable<'a>>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Places<'a> {
        Places { text, root: DeTable::parse(text).ok().map(toml::Spanned::into_inner) }
    }

    /// Line of a key of a table.
    fn line(&self, of: Option<&DeTable<'_>>, key: &str) -> Option<usize> {
        let (place, _) = of?.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(line_of(self.text, place.span().start))
    }

    fn section(
        &self,
        name: &str,
        line: Option<usize>,
        table: &toml::Table,
        of: Option<&DeTable<'_>>,
        level: Level,
        origin: &str,
    ) -> Result<Section, WorkloadError> {
        let mut options = Vec::with_capacity(table.len());
        for (key, value) in table {
            let line = self.line(of, key);
            let value = value_text(key, value).map_err(|message| {
                WorkloadError::File(format!("{}: {message}", super::section::place(origin, line)))
            })?;
            options.push(Given { key: key.clone(), value, level, line });
        }
        options.sort_by_key(|given| given.line);
        let mut section = Section { name: name.to_owned(), line, options: Vec::new() };
        options.into_iter().try_for_each(|option| section.add(option, origin))?;
        Ok(section)
    }
}

fn inner<'a, 'b>(of: Option<&'a DeTable<'b>>, key: &str) -> Option<&'a DeValue<'b>> {
    of?.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value.get_ref())
}

/// The profile of the target, and the jobs.
///
/// # Errors
/// Syntax, with the line; unknown sections; the same option twice under two names.
pub(super) fn parse(text: &str, origin: &str) -> Result<(Option<String>, Vec<Section>), WorkloadError> {
    let table = table(text, origin)?;
    let places = Places::new(text);
    let root = places.root.as_ref();
    let mut profile = None;
    let mut global = None;
    let mut jobs = Vec::new();
    for (key, value) in &table {
        let wrong = |message: String| {
            WorkloadError::File(format!(
                "{}: {message}",
                super::section::place(origin, places.line(root, key))
            ))
        };
        let of = inner(root, key);
        match (key.as_str(), value) {
            ("target", toml::Value::Table(target)) => profile = target_profile(target).map_err(wrong)?,
            ("global", toml::Value::Table(table)) => {
                let of = of.and_then(DeValue::as_table);
                global = Some(places.section("global", None, table, of, Level::Global, origin)?);
            }
            ("job", toml::Value::Table(table)) => {
                let of = of.and_then(DeValue::as_table);
                for (name, value) in table {
                    let toml::Value::Table(table) = value else {
                        let found = format!("job.{name}: found {value}; allowed: a table [job.{name}]");
                        return Err(wrong(found));
                    };
                    let own = inner(of, name).and_then(DeValue::as_table);
                    jobs.push(places.section(name, places.line(of, name), table, own, Level::Own, origin)?);
                }
                // A table is sorted by name; stonewalls go by the order of the file.
                jobs.sort_by_key(|job| job.line);
            }
            ("job", toml::Value::Array(array)) => {
                for (index, value) in array.iter().enumerate() {
                    let toml::Value::Table(table) = value else {
                        return Err(wrong(format!("job: found {value}; allowed: tables [[job]]")));
                    };
                    let name = table.get("name").and_then(toml::Value::as_str);
                    let name = name.map_or_else(|| format!("job{}", index + 1), str::to_owned);
                    let own = of.and_then(DeValue::as_array).and_then(|array| array.get(index));
                    let line = own.map(|own| line_of(text, own.span().start));
                    let own = own.and_then(|own| own.get_ref().as_table());
                    jobs.push(places.section(&name, line, table, own, Level::Own, origin)?);
                }
            }
            ("target" | "global", other) => {
                return Err(wrong(format!("{key}: found {other}; allowed: a table [{key}]")));
            }
            ("job", other) => return Err(wrong(format!("job: found {other}; allowed: tables [job.NAME]"))),
            _ => return Err(wrong(names::unknown("section", key, ["target", "global", "job"]).to_string())),
        }
    }
    if let Some(global) = global {
        jobs.iter_mut().for_each(|job| job.inherit(&global.options));
    }
    Ok((profile, jobs))
}

/// Whether a text is TOML with the sections of a job file.
pub(super) fn is_likely(text: &str) -> bool {
    let known = |key: &String| ["target", "global", "job"].contains(&key.as_str());
    text.parse::<toml::Table>()
        .is_ok_and(|table| table.is_empty() || table.keys().any(known) && !table.contains_key("model"))
}

pub(crate) fn target_profile(target: &toml::Table) -> Result<Option<String>, String> {
    let mut profile = None;
    for (key, value) in target {
        match (key.as_str(), value) {
            ("profile", toml::Value::String(name)) => profile = Some(name.clone()),
            ("profile", other) => {
                return Err(format!("target.profile: found {other}; allowed: a name in quotes"));
            }
            _ => return Err(names::unknown("key of target", key, ["profile"]).to_string()),
        }
    }
    Ok(profile)
}

/// A value as fio's own format has it.
pub(crate) fn value_text(key: &str, value: &toml::Value) -> Result<String, String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(value) => u8::from(*value).to_string(),
        other => {
            return Err(format!("{key}: found {other}; allowed: a number, true, false, or text in quotes"));
        }
    })
}
