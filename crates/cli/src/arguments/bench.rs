//! Options of `bench`.

use super::{CommonArguments, DriveArguments};
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
    /// What to run on: sim:PROFILE, with a profile by name (see `planewise device list`) or TOML file, behind it changes of its keys
    /// (sim:ssd-s:write_buffer=none,geometry.channels=8); raid0:MEMBERSxCHUNK:PROFILE, an array of them (raid0:4x32k:ssd-s); or a block device or a file, which must be given again with --destroy-data when the workload writes
    #[arg(long, value_name = "sim:PROFILE|PATH", help_heading = "Device")]
    pub target: Option<String>,
    /// How to use a real target.
    #[command(flatten)]
    pub drive: DriveArguments,
    /// A published experiment instead of a workload: grid, interference, streams, layouts, conditioning; its options are
    /// given by --set: area, time, fill, pause, patterns, sizes, depths, domains, condition
    #[arg(long, value_name = "NAME", help_heading = "Workload")]
    pub experiment: Option<String>,
    /// Gives an option of the jobs or the model a value; several are separated by semicolons
    #[arg(long, value_name = "KEY=VALUE;..", value_delimiter = ';', help_heading = "Workload")]
    pub set: Vec<String>,
    /// Runs with each of several values of an option; several options are separated by semicolons
    #[arg(long, value_name = "KEY=VALUE,..;..", value_delimiter = ';', help_heading = "Workload")]
    pub vary: Vec<String>,
    /// What runs differ in.
    #[command(flatten)]
    pub axes: Given<true>,
    /// Options of the jobs.
    #[command(flatten)]
    pub job_options: JobOptions,
    /// What all commands that simulate have.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Options of jobs as given, by their first names.
#[derive(Clone, Debug)]
pub struct JobOptions(pub Vec<(&'static str, String)>);

impl Args for JobOptions {
    fn augment_args(command: Command) -> Command {
        // `compare` runs several when none is named; a workload runs under one.
        let command = command.mut_arg("schedulers", |argument| {
            argument.help("Host scheduler (see `planewise scheduler list`) [default: noop]")
        });
        // A workload has a pace of its own: the option is there to say so.
        let command = command.mut_arg("pace", |argument| argument.hide(true));
        command.args(OPTIONS.iter().enumerate().map(|(index, entry)| {
            let argument = Arg::new(entry.name)
                .long(entry.name)
                .aliases(entry.aliases)
                .help_heading("Job options, as fio's")
                .display_order(1000 + index);
            let argument = match entry.support {
                Support::Used(_) => argument.help(entry.help).value_name(entry.value),
                // Known, so that it is accepted, or refused with the reason; not in help.
                Support::Harmless | Support::Noted | Support::Refused(_) => argument.hide(true),
            };
            if entry.value.starts_with("0|1") || entry.value.is_empty() {
                argument.num_args(0..=1).default_missing_value("1")
            } else {
                argument.allow_hyphen_values(true)
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for JobOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = OPTIONS
            .iter()
            .filter_map(|entry| Some((entry.name, matches.get_one::<String>(entry.name)?.clone())));
        Ok(JobOptions(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
