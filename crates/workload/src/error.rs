//! What can be wrong with the description of a workload.

use planewise_model::names::UnknownName;

/// An error in a job file, an option or a parameter, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A job, an option or a model by an unknown name.
    #[error("{}{name}", .job.as_ref().map(|job| format!("job '{job}': ")).unwrap_or_default())]
    Unknown {
        /// The job that has the option.
        job: Option<String>,
        /// What was found and what is known.
        name: UnknownName,
    },
    /// A value that cannot be used.
    #[error("{}{key}: found {found}; allowed: {allowed}", .job.as_ref().map(|job| format!("job '{job}': ")).unwrap_or_default())]
    Option {
        /// The job, or nothing when there are no jobs.
        job: Option<String>,
        /// Option or parameter.
        key: String,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// A file that cannot be read as one.
    #[error("{0}")]
    File(String),
}

impl WorkloadError {
    /// A value of a job's option that cannot be used.
    pub(crate) fn option(
        job: &str,
        key: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> WorkloadError {
        let job = Some(job.to_owned());
        WorkloadError::Option { job, key: key.to_owned(), found: found.into(), allowed: allowed.into() }
    }
}
