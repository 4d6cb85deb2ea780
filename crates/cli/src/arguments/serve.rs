//! Options of `serve`.

use super::OutputArguments;
use crate::axes::Given;
use clap::{Args, Command, Error, FromArgMatches};
use planewise_model::Bytes;
use planewise_serve::fronts::Front;
use std::net::SocketAddr;
use std::path::PathBuf;

/// `planewise serve`
///
/// Gives a simulated drive to a running system: what is written is kept in a file, and every answer leaves when the drive would have given it, by the
/// wall clock. It ends with Ctrl-C, and then prints what the drive did and how late its answers were.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Device profile by name (see `planewise device list`) or TOML file; behind it changes of its keys: ssd1:write_buffer=none
    #[arg(long, value_name = "PROFILE|FILE", help_heading = "Device")]
    pub device: String,
    /// How much of the drive is served, from its beginning on: 512m, 20g [default: all of it]
    #[arg(long, value_name = "SIZE", value_parser = size, allow_negative_numbers = true, help_heading = "Serve")]
    pub size: Option<Bytes>,
    /// The file that keeps what is written; made sparse where there is none [default: memory, and gone at the end]
    #[arg(long, value_name = "FILE", help_heading = "Serve")]
    pub backing: Option<PathBuf>,
    /// Lets the drive's time pass so many times more slowly, where this host is too slow for it: what programs measure is so much longer
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = dilation, allow_negative_numbers = true, help_heading = "Serve")]
    pub dilate: f64,
    /// How programs get at it: nbd, vhost-user, ublk, fuse (which of them this host has is told at start)
    #[arg(long, value_name = "NAME", default_value = "nbd", help_heading = "Serve")]
    pub front: Front,
    /// Where the local socket of nbd or vhost-user is made [default: planewise.sock]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "listen"], help_heading = "Serve")]
    pub socket: Option<PathBuf>,
    /// Serves nbd at a port of the loopback address instead, 0 for any that is free
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "listen",
        allow_negative_numbers = true,
        help_heading = "Serve"
    )]
    pub port: Option<u16>,
    /// Serves nbd at any address: needs --export, as there is no TLS. Everybody on the way sees and can change what goes by
    #[arg(long, value_name = "ADDRESS:PORT", requires = "export", help_heading = "Serve")]
    pub listen: Option<SocketAddr>,
    /// Name of the export; with --listen, who does not know it gets nothing, and no list [default: planewise, and the empty name]
    #[arg(long, value_name = "NAME", value_parser = export, help_heading = "Serve")]
    pub export: Option<String>,
    /// An empty directory where fuse shows the file `drive`
    #[arg(long, value_name = "DIR", help_heading = "Serve")]
    pub mount: Option<PathBuf>,
    /// Serves counters for Prometheus at a port of the loopback address, 0 for any that is free
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, help_heading = "Serve")]
    pub metrics: Option<u16>,
    /// Processor that the drive's thread stays on, by its number [default: any]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Serve")]
    pub cpu: Option<usize>,
    /// The device and the host in front of it.
    #[command(flatten)]
    pub axes: ServedAxes,
    /// A tunable of the scheduler (see `planewise scheduler show`)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', help_heading = "Schemes")]
    pub tunable: Vec<String>,
    /// Check the invariants of the model as it runs (slower): exit code 3 when one is violated
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Where the output goes.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// What `run` has, but for the pace: requests come when programs send them.
#[derive(Debug)]
pub struct ServedAxes(pub Vec<Vec<String>>);

impl Args for ServedAxes {
    fn augment_args(command: Command) -> Command {
        let command = Given::<false>::augment_args(command);
        // It is there to say so.
        let command = command.mut_arg("pace", |argument| argument.hide(true));
        command.mut_arg("queue", |argument| {
            argument.help("Length of the I/O queue in front of the drive, 1 to 4096 [default: 4096, as the host outside has a queue of its own]")
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServedAxes {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, Error> {
        Given::<false>::from_arg_matches(matches).map(|given| ServedAxes(given.0))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A size as jobs have it, in whole sectors.
fn size(text: &str) -> Result<Bytes, String> {
    let bytes = planewise_workload::values::bytes(text).map_err(|allowed| format!("allowed: {allowed}"))?;
    match bytes > 0 && bytes.is_multiple_of(planewise_model::SECTOR_BYTES) {
        true => Ok(Bytes(bytes)),
        false => Err("allowed: a multiple of 512 bytes, 512 or more".to_owned()),
    }
}

fn dilation(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| (0.001..=1e6).contains(factor));
    factor.ok_or_else(|| "allowed: a number from 0.001 to 1000000, e.g. 10".to_owned())
}

fn export(text: &str) -> Result<String, String> {
    match text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
        true => Err("allowed: 1 to 256 bytes without control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}
