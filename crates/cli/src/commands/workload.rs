//! `planewise workload`: application models, and the options of jobs.

use crate::arguments::WorkloadCommand;
use crate::failure::Failure;
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
    let width = Definition::names().map(str::len).max().unwrap_or(0);
    let mut text = String::new();
    for (name, _) in EMBEDDED {
        text += &format!("{name:<width$}  {}\n", Model::embedded(name)?.description);
    }
    // A job file says in its first line what it is.
    for (name, content) in planewise_workload::jobs::EMBEDDED {
        let first = content.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        text += &format!("{name:<width$}  {first}\n");
    }
    output::print(&text)
}

/// The file as it is: its comments say where its numbers come from.
fn show(name: &str) -> Result<(), Failure> {
    let text = Definition::embedded_text(name).ok_or_else(|| {
        Failure::from(WorkloadError::Unknown {
            place: None,
            job: None,
            name: Box::new(names::unknown("workload", name, Definition::names())),
        })
    })?;
    output::print(text)
}

/// The text of a workload's file.
///
/// # Errors
/// It cannot be read, or is no text.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    const ALLOWED: &str = "a text file of jobs, in TOML or in fio's format, or of a model";
    let refused =
        |found: &str| Failure::usage(format!("{}: found {found}; allowed: {ALLOWED}", file.display()));
    if file.is_dir() {
        return Err(refused("a directory"));
    }
    let bytes =
        std::fs::read(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| refused("bytes that are no UTF-8 text"))
}

fn check(file: &Path, target: &str) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = read(file)?;
    let definition = Definition::parse(&text, &name)?;
    let device = definition.profile().unwrap_or(target);
    let profile = plan::profile(device.strip_prefix("sim:").unwrap_or(device))?;
    let workload =
        definition.build(profile.user_capacity().0, planewise_model::rng::DEFAULT_SEED).map_err(|error| {
            if error.names_a_file() {
                Failure::usage(error)
            } else {
                Failure::usage(format!("{name}: {error}"))
            }
        })?;
    definition.notes().iter().for_each(|note| eprintln!("note: {note}"));
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
    text += &format!(
        "\nAccepted without effect: {}\n",
        names(|support| matches!(support, Support::Harmless | Support::Noted))
    );
    text +=
        &format!("\nRefused, with the reason: {}\n", names(|support| matches!(support, Support::Refused(_))));
    output::print(&text)
}
