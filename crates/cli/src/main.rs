//! `planewise`: finds, uses and schedules around the parallelism inside flash SSDs.
//!
//! The definitions of [`arguments`] are the one source of parsing, help, man pages and completions; each command is a file of
//! [`commands`]. Errors are one line on standard error; exit codes are those of [`failure::Kind`].

mod arguments;
mod axes;
mod commands;
mod execute;
mod failure;
mod host;
mod memory;
mod output;
mod packed;
mod plan;
mod progress;
mod record;
mod request_log;
mod source;
mod target;

use arguments::{Arguments, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misunderstood(&error),
    };
    let stop = match stop_on_signal() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("error: cannot listen for signals: {error}");
            return ExitCode::from(failure::Kind::Run as u8);
        }
    };
    let done = match arguments.command {
        Command::Compare(arguments) => commands::compare::execute(&arguments, &stop),
        Command::Run(arguments) => commands::run::execute(&arguments, &stop),
        Command::Bench(arguments) => commands::bench::execute(&arguments, &stop),
        Command::Replay(arguments) => commands::replay::execute(&arguments, &stop),
        Command::Probe(arguments) => commands::probe::execute(&arguments, &stop),
        Command::Linux(arguments) => commands::linux::execute(&arguments, &stop),
        Command::Reproduce(arguments) => commands::reproduce::execute(&arguments, &stop),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => commands::serve::execute(arguments, &stop),
        Command::Trace(command) => commands::trace::execute(&command, &stop),
        Command::Device(command) => commands::device::execute(&command),
        Command::Workload(command) => commands::workload::execute(&command),
        Command::Scheduler(command) => commands::scheduler::execute(&command),
        Command::Completions(arguments) => commands::completions::execute(&arguments),
        Command::Man(arguments) => commands::man::execute(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.kind as u8)
        }
    }
}

/// Signals this close together are one: `timeout` sends its own to the process and again to the group that it is in.
const ONE_SIGNAL: Duration = Duration::from_millis(200);

/// The flag that the first Ctrl-C sets; the second ends the process at once.
fn stop_on_signal() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        flag.store(true, Ordering::SeqCst);
        if first.get_or_insert_with(Instant::now).elapsed() > ONE_SIGNAL {
            eprintln!("error: interrupted twice: ended at once, without what was under way");
            std::process::exit(failure::Kind::Interrupted as i32);
        }
    })?;
    Ok(stop)
}

/// Help and version as they are; errors of the command line as one line.
fn misunderstood(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A pipe that closed early (`| head`) has had what it wanted.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(failure::Kind::Usage as u8)
        }
        _ => {
            let text = error.render().to_string();
            let message: Vec<&str> = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
                .filter(|line| !line.is_empty())
                .collect();
            let message = message.join("; ").replace(":; ", ": ");
            // What the standard library says of numbers, in the words of all other messages.
            let message = message
                .replace("invalid digit found in string", "allowed: a whole number, 0 or more")
                .replace("number too large to fit in target type", "allowed: a whole number below 2^64");
            let failure = Failure::usage(message);
            eprintln!("{failure}; see --help");
            ExitCode::from(failure.kind as u8)
        }
    }
}
