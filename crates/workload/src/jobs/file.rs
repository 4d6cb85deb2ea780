//! Job files: TOML with fio's options as keys, or fio's own format.

use super::check::{Job, Settings};
use super::options::{Support, find};
use super::process::Jobs;
use crate::error::WorkloadError;
use planewise_model::names;

/// Options of jobs, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// The profile that the file names as its target.
    pub profile: Option<String>,
    /// Jobs by name with their options in the order of the file; what is said of all comes first.
    jobs: Vec<(String, Vec<(String, String)>)>,
}

impl JobFile {
    /// One job of options from a command line.
    pub fn single(name: &str) -> JobFile {
        JobFile { profile: None, jobs: vec![(name.to_owned(), Vec::new())] }
    }

    /// Reads a file: fio's own format when its name ends in `.fio` or `.ini`, or else TOML.
    ///
    /// # Errors
    /// Syntax, with the line; unknown sections; no job.
    pub fn parse(text: &str, origin: &str) -> Result<JobFile, WorkloadError> {
        let classic = origin.ends_with(".fio") || origin.ends_with(".ini");
        let file = if classic { from_classic(text, origin)? } else { from_toml(text, origin)? };
        if file.jobs.is_empty() {
            return Err(WorkloadError::File(format!("{origin}: no job; allowed: one or more of [job.NAME]")));
        }
        Ok(file)
    }

    /// Gives all jobs an option, over what the file says.
    ///
    /// # Errors
    /// The option is unknown, or has no meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        let entry = find(key).map_err(|name| WorkloadError::Unknown { job: None, name })?;
        if let Support::Refused(allowed) = entry.support {
            let (key, found) = (key.to_owned(), format!("'{value}'"));
            return Err(WorkloadError::Option { job: None, key, found, allowed: allowed.to_owned() });
        }
        for (_, options) in &mut self.jobs {
            // What is said last wins; what is left unsaid need not be contradicted.
            options.retain(|(other, _)| find(other).map(|other| other.name) != Ok(entry.name));
            options.push((entry.name.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    /// The jobs, checked against a device of so many bytes.
    ///
    /// # Errors
    /// Unknown options, values that are not allowed, options that contradict one another.
    pub fn resolve(&self, device_bytes: u64) -> Result<Vec<Job>, WorkloadError> {
        self.jobs.iter().map(|(name, options)| job(name, options, device_bytes)).collect()
    }

    /// The processes of the jobs.
    ///
    /// # Errors
    /// As [`JobFile::resolve`].
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Jobs, WorkloadError> {
        Ok(Jobs::new(self.resolve(device_bytes)?, seed))
    }

    /// The whole as TOML, with nothing left to be looked up elsewhere.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (name, options) in &self.jobs {
            text += &format!("[job.{}]\n", toml::Value::from(name.as_str()));
            for (key, value) in options {
                text += &format!("{key} = {}\n", toml::Value::from(value.as_str()));
            }
        }
        text
    }
}

fn job(name: &str, options: &[(String, String)], device_bytes: u64) -> Result<Job, WorkloadError> {
    let mut settings = Settings::default();
    for (key, value) in options {
        let unknown = |found| WorkloadError::Unknown { job: Some(name.to_owned()), name: found };
        let refuse = |allowed: String| {
            // What a parser says ends in what it found, so that nested values are told as they are.
            let (allowed, found) = match allowed.rsplit_once("; found ") {
                Some((allowed, found)) => (allowed.to_owned(), found.to_owned()),
                None => (allowed, format!("'{value}'")),
            };
            WorkloadError::option(name, key, found, allowed)
        };
        match find(key).map_err(unknown)?.support {
            Support::Used(set) => set(&mut settings, value).map_err(refuse)?,
            Support::Harmless => {}
            Support::Refused(allowed) => return Err(refuse(allowed.to_owned())),
        }
    }
    settings.resolve(name, device_bytes)
}

/// A TOML document, or what is wrong with it in one line.
pub(crate) fn table(text: &str, origin: &str) -> Result<toml::Table, WorkloadError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        WorkloadError::File(format!("{origin}:{line}: {message}"))
    })
}

fn from_toml(text: &str, origin: &str) -> Result<JobFile, WorkloadError> {
    let wrong = |message: String| WorkloadError::File(format!("{origin}: {message}"));
    let table = table(text, origin)?;
    let mut profile = None;
    let mut global = Vec::new();
    let mut jobs = Vec::new();
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("target", toml::Value::Table(target)) => profile = target_profile(target).map_err(wrong)?,
            ("global", toml::Value::Table(table)) => global = options(table).map_err(wrong)?,
            ("job", toml::Value::Table(table)) => {
                for (name, value) in table {
                    let toml::Value::Table(table) = value else {
                        let found = format!("job.{name}: found {value}; allowed: a table [job.{name}]");
                        return Err(wrong(found));
                    };
                    jobs.push((name.clone(), options(table).map_err(wrong)?));
                }
            }
            ("job", toml::Value::Array(array)) => {
                for (index, value) in array.iter().enumerate() {
                    let toml::Value::Table(table) = value else {
                        return Err(wrong(format!("job: found {value}; allowed: tables [[job]]")));
                    };
                    let name = table.get("name").and_then(toml::Value::as_str);
                    let name = name.map_or_else(|| format!("job{}", index + 1), str::to_owned);
                    jobs.push((name, options(table).map_err(wrong)?));
                }
            }
            ("target" | "global", other) => {
                return Err(wrong(format!("{key}: found {other}; allowed: a table [{key}]")));
            }
            ("job", other) => return Err(wrong(format!("job: found {other}; allowed: tables [job.NAME]"))),
            _ => return Err(wrong(names::unknown("section", key, ["target", "global", "job"]).to_string())),
        }
    }
    Ok(JobFile { profile, jobs: with_global(&global, jobs) })
}

/// Jobs that say nothing of an option have what is said of all.
fn with_global(
    global: &[(String, String)],
    jobs: Vec<(String, Vec<(String, String)>)>,
) -> Vec<(String, Vec<(String, String)>)> {
    let named = |key: &str| find(key).map_or_else(|_| key.to_owned(), |entry| entry.name.to_owned());
    let one = |(name, own): (String, Vec<(String, String)>)| {
        let says = |key: &str| own.iter().any(|(other, _)| named(other) == named(key));
        let mut options: Vec<(String, String)> =
            global.iter().filter(|(key, _)| !says(key)).cloned().collect();
        options.extend(own);
        (name, options)
    };
    jobs.into_iter().map(one).collect()
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

fn options(table: &toml::Table) -> Result<Vec<(String, String)>, String> {
    table.iter().map(|(key, value)| Ok((key.clone(), value_text(key, value)?))).collect()
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

/// fio's own format: sections in brackets, `key=value` or a bare key, comments behind `;` and `#`.
fn from_classic(text: &str, origin: &str) -> Result<JobFile, WorkloadError> {
    let mut global: Vec<(String, String)> = Vec::new();
    let mut jobs: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut section: Option<Option<usize>> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if name == "global" {
                section = Some(None);
            } else {
                // What is said of all up to here; a later [global] is for the jobs behind it.
                jobs.push((name.to_owned(), global.clone()));
                section = Some(Some(jobs.len() - 1));
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let option = (key.trim().to_owned(), value.trim().to_owned());
        let place = match section {
            None => {
                let message = format!("{origin}:{}: found '{line}' before any section", number + 1);
                return Err(WorkloadError::File(format!("{message}; allowed: [global] or [NAME] first")));
            }
            Some(None) => &mut global,
            Some(Some(job)) => &mut jobs[job].1,
        };
        let named = |key: &str| find(key).map_or_else(|_| key.to_owned(), |entry| entry.name.to_owned());
        place.retain(|(other, _)| named(other) != named(&option.0));
        place.push(option);
    }
    Ok(JobFile { profile: None, jobs })
}
