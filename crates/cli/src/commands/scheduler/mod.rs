//! `planewise scheduler`: what host schedulers there are, what can be tuned and what they cost the host.

mod cost;

use crate::arguments::SchedulerCommand;
use crate::failure::Failure;
use crate::output;
use planewise_sim::host_sched::{self, SCHEDULERS, TunableKind};
use std::fmt::Write;

/// Lists schedulers or shows one.
///
/// # Errors
/// An unknown name.
pub fn execute(command: &SchedulerCommand) -> Result<(), Failure> {
    match command {
        SchedulerCommand::List => list(),
        SchedulerCommand::Show { name } => show(name),
    }
}

fn list() -> Result<(), Failure> {
    let width = SCHEDULERS.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = SCHEDULERS.iter().map(|entry| format!("{:<width$}  {}\n", entry.name, entry.summary));
    output::print(&lines.collect::<String>())
}

fn show(name: &str) -> Result<(), Failure> {
    let entry = host_sched::find(name)?;
    let mut text = format!("{}: {}\nsource: {}\n", entry.name, entry.summary, entry.source);
    if entry.tunables.is_empty() {
        text += "tunables: none\n";
    }
    for tunable in entry.tunables {
        let (default, allowed) = match &tunable.kind {
            TunableKind::Number { default, min, max } => {
                let unit = if tunable.unit.is_empty() { String::new() } else { format!(" {}", tunable.unit) };
                (format!("{default}{unit}"), format!("{min} to {max}{unit}"))
            }
            TunableKind::Size { default } => {
                ((*default).to_owned(), "bytes, with k, m, g or t for powers of 1024".to_owned())
            }
            TunableKind::Choice(choices) => (choices[0].to_owned(), choices.join(", ")),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{} (--tunable {}.{}=VALUE)\n  {}\n  default: {default}\n  allowed: {allowed}\n",
            tunable.name, entry.name, tunable.name, tunable.summary
        );
    }
    text += &cost::text(entry)?;
    output::print(&text)
}
