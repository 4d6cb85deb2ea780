//! Options of `bench`.

use super::CommonArguments;
use crate::axes::Given;
use clap::{Arg, ArgMatches, Args, Command, Error};
use planewise_workload::jobs::{OPTIONS, Support};

/// `planewise bench`
///
/// Jobs come from a file (TOML with fio's options as keys, or fio's own format in a file named .fio or .ini), from the command
/// line, or both: what the command line says holds for all jobs of the file. Options that take a list (`<NAME,..>`) are combined,
/// each value with each, as for `compare`; `--vary` does the same with an option of the jobs or the model.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// A job file, the file of an application model, or the name of a model (see `planewise workload list`)
    #[arg(value_name = "WORKLOAD")]
    pub file: Option<String>,
    /// The same as the argument without a name
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "file", help_heading = "Workload")]
    pub workload: Option<String>,
    /// What to run on: sim:PROFILE, with a profile by name (see `planewise device list`) or TOML file
    #[arg(long, value_name = "sim:PROFILE|FILE", help_heading = "Device")]
    pub target: Option<String>,
    /// Gives an option of the jobs or the model a value; several are separated by semicolons
    #[arg(long, value_name = "KEY=VALUE;..", value_delimiter = ';', help_heading = "Workload")]
    pub set: Vec<String>,
    /// Runs with each of several values of an option; several options are separated by semicolons
    #[arg(long, value_name = "KEY=VALUE,..;..", value_delimiter = ';', help_heading = "Workload")]
    pub vary: Vec<String>,
    /// Options of the jobs.
    #[command(flatten)]
    pub job_options: JobOptions,
    /// What runs differ in.
    #[command(flatten)]
    pub axes: Given<true>,
    /// What all commands that simulate have.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Options of jobs as given, by their first names.
#[derive(Clone, Debug)]
pub struct JobOptions(pub Vec<(&'static str, String)>);

impl Args for JobOptions {
    fn augment_args(command: Command) -> Command {
        let used = OPTIONS.iter().filter(|entry| matches!(entry.support, Support::Used(_)));
        command.args(used.enumerate().map(|(index, entry)| {
            Arg::new(entry.name)
                .long(entry.name)
                .aliases(entry.aliases)
                .help(entry.help)
                .help_heading("Job options, as fio's")
                .value_name(entry.value)
                .allow_negative_numbers(true)
                .display_order(1000 + index)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for JobOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let used = OPTIONS.iter().filter(|entry| matches!(entry.support, Support::Used(_)));
        let given =
            used.filter_map(|entry| Some((entry.name, matches.get_one::<String>(entry.name)?.clone())));
        Ok(JobOptions(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
