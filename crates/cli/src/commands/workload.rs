//! `planewise workload`: application models, and the options of jobs.

use crate::arguments::WorkloadCommand;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::plan;
use planewise_model::names;
use planewise_workload::jobs::{OPTIONS, Support};
use planewise_workload::models::{EMBEDDED, Model};
use planewise_workload::{Definition, WorkloadError};
use std::path::Path;

/// Lists, shows or checks workloads.
///
/// # Errors
/// An unknown name, or a file that is wrong.
pub fn execute(command: &WorkloadCommand) -> Result<(), Failure> {
    match command {
        WorkloadCommand::List => list(),
        WorkloadCommand::Show { name } => show(name),
        WorkloadCommand::Check { file, target } => check(file, target),
        WorkloadCommand::Options => options(),
    }
}

fn list() -> Result<(), Failure> {
    let width = EMBEDDED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, _) in EMBEDDED {
        text += &format!("{name:<width$}  {}\n", Model::embedded(name)?.description);
    }
    output::print(&text)
}

/// The file as it is: its comments say where its numbers come from.
fn show(name: &str) -> Result<(), Failure> {
    let known = EMBEDDED.iter().map(|(name, _)| *name);
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        Failure::from(WorkloadError::Unknown { job: None, name: names::unknown("workload", name, known) })
    })?;
    output::print(text)
}

fn check(file: &Path, target: &str) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(Kind::Usage, format!("{name}: {error}")))?;
    let definition = Definition::parse(&text, &name)?;
    let device = definition.profile().unwrap_or(target);
    let profile = plan::profile(device.strip_prefix("sim:").unwrap_or(device))?;
    let workload = definition
        .build(profile.user_capacity().0, planewise_model::rng::DEFAULT_SEED)
        .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    let processes: u32 = workload.groups().iter().map(|group| group.processes).sum();
    output::print(&format!("{name}: a valid workload of {processes} processes on {}\n", profile.name))
}

/// Options of jobs, and what becomes of the others that fio has.
fn options() -> Result<(), Failure> {
    let width = OPTIONS.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in OPTIONS {
        if let Support::Used(_) = entry.support {
            let others = match entry.aliases {
                [] => String::new(),
                aliases => format!(" (also {})", aliases.join(", ")),
            };
            text += &format!("{:<width$}  {}{others}\n", entry.name, entry.help);
        }
    }
    let names = |wanted: fn(&Support) -> bool| {
        let names: Vec<&str> =
            OPTIONS.iter().filter(|entry| wanted(&entry.support)).map(|entry| entry.name).collect();
        names.join(", ")
    };
    text +=
        &format!("\nAccepted without effect: {}\n", names(|support| matches!(support, Support::Harmless)));
    text +=
        &format!("\nRefused, with the reason: {}\n", names(|support| matches!(support, Support::Refused(_))));
    output::print(&text)
}
