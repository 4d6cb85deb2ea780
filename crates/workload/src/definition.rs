//! What a user names as a workload, with its options still as text, so that one of them can be varied.

use crate::Workload;
use crate::error::WorkloadError;
use crate::jobs::{self, JobFile};
use crate::models::{self, Model};

/// A workload before it meets a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// Jobs with fio's options.
    Jobs(JobFile),
    /// A model of an application.
    Model(Model),
}

impl Definition {
    /// Reads the file of a model, which has a key `model`, or of jobs.
    ///
    /// # Errors
    /// As [`Model::parse`] and [`JobFile::parse`].
    pub fn parse(text: &str, origin: &str) -> Result<Definition, WorkloadError> {
        // Some editors begin a file with a byte order mark, which no syntax here knows.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if models::is_model(text) {
            Ok(Definition::Model(Model::parse(text, origin)?))
        } else {
            Ok(Definition::Jobs(JobFile::parse(text, origin)?))
        }
    }

    /// Gives an option of all jobs another value.
    ///
    /// # Errors
    /// The option is unknown, or has no meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match self {
            Definition::Jobs(jobs) => jobs.set(key, value),
            Definition::Model(model) => model.set(key, value),
        }
    }

    /// The workload on a device of so many bytes.
    ///
    /// # Errors
    /// Values that are not allowed, that contradict one another, or that the device is too small for.
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        match self {
            Definition::Jobs(jobs) => Ok(Box::new(jobs.build(device_bytes, seed)?)),
            Definition::Model(model) => model.build(device_bytes, seed),
        }
    }

    /// What to tell the user about options that were accepted and change nothing.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Definition::Jobs(jobs) => jobs.notes(),
            Definition::Model(_) => Vec::new(),
        }
    }

    /// Whether another asks for the same on a device of so many bytes, whatever words it has for it (4k, 4096).
    pub fn means_the_same(&self, other: &Definition, device_bytes: u64) -> bool {
        match (self, other) {
            (Definition::Jobs(one), Definition::Jobs(other)) => {
                let other = other.resolve(device_bytes);
                one.resolve(device_bytes).is_ok_and(|one| other.is_ok_and(|other| one == other))
            }
            (Definition::Model(one), Definition::Model(other)) => one.means_the_same(other),
            _ => false,
        }
    }

    /// The name of an option as results have it, whichever of its names was given.
    pub fn first_name<'a>(&self, key: &'a str) -> &'a str {
        match self {
            Definition::Jobs(_) => jobs::find(key).map_or(key, |entry| entry.name),
            Definition::Model(_) => key,
        }
    }

    /// The profile that it names as its target.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Definition::Jobs(jobs) => jobs.profile.as_deref(),
            Definition::Model(model) => model.profile.as_deref(),
        }
    }

    /// The whole as TOML.
    pub fn to_toml(&self) -> String {
        match self {
            Definition::Jobs(jobs) => jobs.to_toml(),
            Definition::Model(model) => model.to_toml(),
        }
    }
}
