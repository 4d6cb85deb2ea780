//! `planewise completions`: a completion script.

use crate::arguments::{Arguments, CompletionsArguments};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn execute(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "planewise", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
