//! fio's own format: sections in brackets, `key=value` or a bare key, comments behind `;` and `#`.

use super::section::{Given, Level, Section};
use crate::error::WorkloadError;

/// The jobs of a file.
///
/// # Errors
/// A line that is neither, an option before any section, the same option twice in a section.
pub(super) fn parse(text: &str, origin: &str) -> Result<Vec<Section>, WorkloadError> {
    let wrong =
        |line: usize, message: String| Err(WorkloadError::File(format!("{origin}:{line}: {message}")));
    let mut global = Section { name: "global".to_owned(), line: None, options: Vec::new() };
    let mut jobs: Vec<Section> = Vec::new();
    // The section that options belong to, once there is one: a job, or else what is said of all.
    let mut in_job = None;
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) else {
                return wrong(
                    number,
                    format!("found '{line}'; allowed: a section in brackets, [global] or [NAME]"),
                );
            };
            in_job = Some(name != "global");
            if name == "global" {
                // What is said of all from here on: for the jobs behind it.
                continue;
            }
            let mut job = Section { name: name.to_owned(), line: Some(number), options: Vec::new() };
            job.options.clone_from(&global.options);
            jobs.push(job);
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let option = |level| Given {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
            level,
            line: Some(number),
        };
        match (in_job, jobs.last_mut()) {
            (None, _) => {
                let message = format!("found '{line}' before any section; allowed: [global] or [NAME] first");
                return wrong(number, message);
            }
            (Some(true), Some(job)) => {
                // What was said of all so far gives way.
                let global: Vec<Given> =
                    job.options.extract_if(.., |given| given.level == Level::Global).collect();
                job.add(option(Level::Own), origin)?;
                job.inherit(&global);
            }
            _ => global.add(option(Level::Global), origin)?,
        }
    }
    Ok(jobs)
}

/// Whether a text that is no TOML looks like this format: its first line that says anything is a section.
pub(super) fn is_likely(text: &str) -> bool {
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    lines.next().is_some_and(|line| line.starts_with('['))
}
