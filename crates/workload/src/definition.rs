//! What a user names as a workload, with its options still as text, so that one of them can be varied.

use crate::Workload;
use crate::error::WorkloadError;
use crate::jobs::JobFile;

/// A workload before it meets a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// Jobs with fio's options.
    Jobs(JobFile),
}

impl Definition {
    /// Gives an option of all jobs another value.
    ///
    /// # Errors
    /// The option is unknown, or has no meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match self {
            Definition::Jobs(jobs) => jobs.set(key, value),
        }
    }

    /// The workload on a device of so many bytes.
    ///
    /// # Errors
    /// Values that are not allowed, that contradict one another, or that the device is too small for.
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        match self {
            Definition::Jobs(jobs) => Ok(Box::new(jobs.build(device_bytes, seed)?)),
        }
    }

    /// The profile that it names as its target.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Definition::Jobs(jobs) => jobs.profile.as_deref(),
        }
    }

    /// The whole as TOML.
    pub fn to_toml(&self) -> String {
        match self {
            Definition::Jobs(jobs) => jobs.to_toml(),
        }
    }
}
