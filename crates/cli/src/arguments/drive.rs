//! Options of the commands that measure a target, simulated or real.

use crate::failure::Failure;
use clap::Args;
use planewise_io::target::real::{Engine, Processor};

/// What a command measures.
#[derive(Clone, Debug, Args)]
pub struct PlaceArgument {
    /// What to measure: sim:PROFILE (see `planewise device list`, or a TOML file; behind it changes of its keys, as in
    /// sim:ssd-s:geometry.channels=8), raid0:MEMBERSxCHUNK:PROFILE, an array of them, or the path of a block device or a file
    #[arg(value_name = "sim:PROFILE|PATH")]
    pub target: String,
}

/// How to use a real device or file; nothing for simulated ones.
#[derive(Clone, Debug, Default, Args)]
pub struct DriveArguments {
    /// Allows to overwrite the target: its name typed again. Everything on it is lost
    #[arg(long, value_name = "NAME", help_heading = "Device")]
    pub destroy_data: Option<String>,
    /// What serves a real target: auto (io_uring where the system has it), io_uring, synchronous (threads) [default: auto]
    #[arg(long, value_name = "ENGINE", help_heading = "Device")]
    pub engine: Option<Engine>,
    /// Processor that measures a real target: its number, here (where it happens to run), or any [default: here]
    #[arg(long, value_name = "N|here|any", help_heading = "Device")]
    pub cpu: Option<Processor>,
}

impl DriveArguments {
    /// Refuses all of it for a simulated target, on which none of it has an effect.
    ///
    /// # Errors
    /// One of the options was given.
    pub fn check_simulated(&self, target: &str) -> Result<(), Failure> {
        let given = [
            ("destroy-data", self.destroy_data.clone()),
            ("engine", self.engine.map(|engine| engine.to_string())),
            ("cpu", self.cpu.map(|processor| processor.to_string())),
        ];
        match given.into_iter().find_map(|(option, value)| Some((option, value?))) {
            Some((option, value)) => Err(Failure::usage(format!(
                "--{option}: found {value} with {target}; allowed: only with a block device or a file, a simulated target has nothing of it"
            ))),
            None => Ok(()),
        }
    }
}
