//! What can be wrong with the description of a workload.

use planewise_model::names::UnknownName;

/// An error in a job file, an option or a parameter, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A job, an option or a model by an unknown name.
    #[error("{}{}{name}", before(.place), .job.as_ref().map(|job| format!("job '{job}': ")).unwrap_or_default())]
    Unknown {
        /// File and line, when it stands in one.
        place: Option<String>,
        /// The job that has the option.
        job: Option<String>,
        /// What was found and what is known.
        name: Box<UnknownName>,
    },
    /// A value that cannot be used.
    #[error("{}{}{key}: found {found}; allowed: {allowed}", before(.place), .job.as_ref().map(|job| format!("job '{job}': ")).unwrap_or_default())]
    Option {
        /// File and line, when it stands in one.
        place: Option<String>,
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
        let (key, found, allowed) = (key.to_owned(), found.into(), allowed.into());
        WorkloadError::Option { place: None, job, key, found, allowed }
    }

    /// The same error, with its file and line.
    pub(crate) fn at(mut self, where_it_stands: String) -> WorkloadError {
        if let WorkloadError::Unknown { place, .. } | WorkloadError::Option { place, .. } = &mut self {
            *place = Some(where_it_stands);
        }
        self
    }

    /// Whether the message begins with a file.
    pub fn names_a_file(&self) -> bool {
        match self {
            WorkloadError::Unknown { place, .. } | WorkloadError::Option { place, .. } => place.is_some(),
            WorkloadError::File(_) => true,
        }
    }
}

fn before(place: &Option<String>) -> String {
    place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default()
}
