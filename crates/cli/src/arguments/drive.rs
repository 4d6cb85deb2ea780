//! Options of the commands that measure a target, simulated or real.

use clap::Args;
use planewise_io::target::real::{Engine, Processor};

/// How to use a real device or file; nothing for simulated ones.
#[derive(Clone, Debug, Default, Args)]
pub struct DriveArguments {
    /// Allows to overwrite the target: its name typed again. Everything on it is lost
    #[arg(long, value_name = "NAME", help_heading = "Device")]
    pub destroy_data: Option<String>,
    /// What serves a real target: auto (io_uring where the system has it), io_uring, synchronous (threads) [default: auto]
    #[arg(
        long,
        value_name = "ENGINE",
        hide_default_value = true,
        default_value = "auto",
        help_heading = "Device"
    )]
    pub engine: Engine,
    /// Processor that measures a real target: its number, here (where it happens to run), or any [default: here]
    #[arg(
        long,
        value_name = "N|here|any",
        hide_default_value = true,
        default_value = "here",
        help_heading = "Device"
    )]
    pub cpu: Processor,
}
