//! What a job file says, before it means anything: sections of options as text, and where each stands.

use super::options::find;
use crate::error::WorkloadError;

/// Who said it: what is said of one job goes over what is said of all, and the command line over both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Global,
    Own,
    Command,
}

/// An option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) level: Level,
    /// Line of the file, from 1.
    pub(super) line: Option<usize>,
}

/// A job, or what is said of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    /// Line of its heading, from 1.
    pub(super) line: Option<usize>,
    pub(super) options: Vec<Given>,
}

/// The first name of an option, or what was written when there is none of that name.
pub(super) fn named(key: &str) -> &str {
    find(key).map_or(key, |entry| entry.name)
}

impl Section {
    /// Adds an option that is not there yet, under none of its names.
    ///
    /// # Errors
    /// It is there: both places are named.
    pub(super) fn add(&mut self, option: Given, origin: &str) -> Result<(), WorkloadError> {
        let Some(first) = self.options.iter().find(|other| named(&other.key) == named(&option.key)) else {
            self.options.push(option);
            return Ok(());
        };
        Err(WorkloadError::File(format!(
            "{}: [{}]: {} is given a second time, after {} at line {}; allowed: each option once in a section",
            place(origin, option.line),
            self.name,
            option.key,
            first.key,
            first.line.unwrap_or(0),
        )))
    }

    /// What is said of all, where this job says nothing of the same option.
    pub(super) fn inherit(&mut self, global: &[Given]) {
        let mut options: Vec<Given> = global
            .iter()
            .filter(|given| !self.options.iter().any(|own| named(&own.key) == named(&given.key)))
            .cloned()
            .collect();
        options.append(&mut self.options);
        self.options = options;
    }
}

/// Refuses two jobs of one name.
///
/// # Errors
/// There are two: both places are named.
pub(super) fn check_names(jobs: &[Section], origin: &str) -> Result<(), WorkloadError> {
    for (index, job) in jobs.iter().enumerate() {
        if let Some(first) = jobs[..index].iter().find(|other| other.name == job.name) {
            return Err(WorkloadError::File(format!(
                "{}: job '{}' a second time, after line {}; allowed: each name once (numjobs makes several processes of a job)",
                place(origin, job.line),
                job.name,
                first.line.unwrap_or(0)
            )));
        }
    }
    Ok(())
}

/// `FILE:LINE`.
pub(super) fn place(origin: &str, line: Option<usize>) -> String {
    line.map_or_else(|| origin.to_owned(), |line| format!("{origin}:{line}"))
}
