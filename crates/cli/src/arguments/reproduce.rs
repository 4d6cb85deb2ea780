//! Options of `reproduce`.

use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// `planewise reproduce`
///
/// Runs what a figure or table of the five source documents was made of and writes a page for it: the plot in the paper's form, the
/// published numbers beside ours, a verdict on each. Results are kept: what was run once with the same program and inputs is not run
/// again, and a command that was stopped goes on where it was.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// Studies by name (see --list), or TOML files of studies
    #[arg(value_name = "STUDY|FILE")]
    pub studies: Vec<String>,
    /// All studies in the program
    #[arg(long, conflicts_with = "studies")]
    pub all: bool,
    /// List the studies in the program, and run nothing
    #[arg(long, conflicts_with_all = ["studies", "all"])]
    pub list: bool,
    /// A small size: the shape of each figure, all of them in minutes (the default)
    #[arg(long)]
    pub quick: bool,
    /// The size of the papers: all of them in an hour or so
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,
    /// Directory with real volumes as VOLUME.csv, .csv.gz or .csv.zst (hm_0.csv.gz): used instead of the look-alikes of that name
    #[arg(long, value_name = "DIR")]
    pub trace_dir: Option<PathBuf>,
    /// Another value for a variable of the studies, written as in their files: requests=4000, scheduler=["noop","weave"],
    /// 'trace=[{name="mine",options="--trace mine.csv"}]'. May be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "all")]
    pub set: Vec<String>,
    /// Where the pages go, and what is kept of the runs
    #[arg(long, value_name = "DIR", default_value = "planewise-out/reproduce")]
    pub out: PathBuf,
    /// Runs at the same time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = super::at_least_one, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,
    /// Nothing on standard error but errors
    #[arg(long, short)]
    pub quiet: bool,
}
