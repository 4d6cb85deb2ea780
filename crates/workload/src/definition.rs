//! What a user names as a workload, with its options still as text, so that one of them can be varied.

use crate::Workload;
use crate::error::WorkloadError;
use crate::jobs::JobFile;
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
