//! Options of `linux`.

use super::OutputArguments;
use clap::Args;
use planewise_guest::recipe::FileSystem;
use planewise_guest::session::Sharing;
use planewise_model::Ns;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What a system call takes where nothing is said, ns: about what one that reads 4 KiB costs a processor of today, without the drive (docs/linux.md).
pub const SYSTEM_CALL_NS: u64 = 500;

/// `planewise linux`
///
/// The kernel (Linux 6.12 as User-Mode Linux, `make linux`) runs in the model's time: it is as fast as the model says, however long that takes here, and
/// does the same to the bit in every run. Programs are those of the root (`make linux-root`), unmodified; what they write in it stays in the guest's
/// memory. The drive is /dev/vda; unless --file-system none is given there is a new file system on it, at /drive, where the command runs.
#[derive(Debug, Args)]
pub struct LinuxArguments {
    /// The command and its arguments, behind --
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["recipe", "recipes"], conflicts_with = "recipe")]
    pub command: Vec<String>,
    /// What to run in place of a command: a recipe by name (see --recipes), or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Program")]
    pub recipe: Option<String>,
    /// A parameter of the recipe
    #[arg(long, value_name = "NAME=VALUE", requires = "recipe", help_heading = "Program")]
    pub set: Vec<String>,
    /// List the recipes with their parameters
    #[arg(long, help_heading = "Program")]
    pub recipes: bool,
    /// Device profile by name (see `planewise device list`) or TOML file; behind it changes of its keys
    #[arg(long, value_name = "PROFILE|FILE", default_value = "ssd1", help_heading = "Device")]
    pub device: String,
    /// What the device has been through: fresh, primed, filled, aged, aged:VALID/INVALID/FREE
    #[arg(long, value_name = "CONDITION", default_value = "filled", help_heading = "Device")]
    pub condition: String,
    /// Drives, all alike: /dev/vda, /dev/vdb, … (1 to 8)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8), help_heading = "Device")]
    pub drives: u8,
    /// Requests that the kernel gives a drive at a time, 1 to 1024 [default: the depth of the device's command queue, of a blocking one the number of
    /// its planes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Device")]
    pub tags: Option<u32>,
    /// Schedulers of the kernel's, a run for each: none, mq-deadline, kyber, bfq; and the modules planewise-pass, planewise-piq, planewise-weave, which
    /// are told of the drive what the simulator's schedulers are told
    #[arg(
        long,
        alias = "scheduler",
        value_name = "NAME,..",
        value_delimiter = ',',
        default_value = "none",
        help_heading = "Kernel"
    )]
    pub schedulers: Vec<String>,
    /// A file of /sys/block/vda/queue and what is written to it, such as iosched/read_expire=100 or nr_requests=256
    #[arg(long, value_name = "FILE=VALUE", help_heading = "Kernel")]
    pub attribute: Vec<String>,
    /// Where `make kernel` has put the modules [default: target/kernel, here or beside the program]
    #[arg(long, value_name = "DIR", help_heading = "Kernel")]
    pub modules: Option<PathBuf>,
    /// A parameter of the modules, such as channels=1 for a drive that is told wrong, or region_size=1g of planewise-pass
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Kernel")]
    pub module_parameter: Vec<String>,
    /// File system on the drive: ext4, xfs, f2fs, none [default: the recipe's, or ext4]
    #[arg(long, value_name = "NAME", help_heading = "Kernel")]
    pub file_system: Option<FileSystem>,
    /// Its size, at most the drive's [default: the recipe's, or 8g]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Kernel")]
    pub size: Option<u64>,
    /// Memory of the guest [default: the recipe's, or 512m]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Kernel")]
    pub memory: Option<u64>,
    /// What a system call takes before its work begins, ns: the processor is infinitely fast otherwise
    #[arg(long, value_name = "NS", default_value_t = SYSTEM_CALL_NS, help_heading = "Kernel")]
    pub syscall_ns: u64,
    /// Seeds of all that the kernel and its programs draw at random, a run for each
    #[arg(long, value_name = "SEED,..", value_delimiter = ',', value_parser = super::seed, default_value = "0", help_heading = "Kernel")]
    pub seed: Vec<u64>,
    /// The tree that programs see as their root. With / the host's own: at hand, but results move with its files [default: target/linux-root]
    #[arg(long, value_name = "DIR", help_heading = "Kernel")]
    pub root: Option<PathBuf>,
    /// A directory of this machine's that programs see as /run/share, read-only: their own, and their data
    #[arg(long, value_name = "DIR", help_heading = "Program")]
    pub share: Option<PathBuf>,
    /// Where `make linux` has put the kernel [default: target/linux, here or beside the program]
    #[arg(long, value_name = "DIR", help_heading = "Kernel")]
    pub kernel: Option<PathBuf>,
    /// How the kernel learns how long it may go on: memory (shared), messages (with the same results), none (it asks every time: the same requests, while
    /// a program's own times can differ by some microseconds)
    #[arg(long, value_name = "HOW", default_value = "memory", value_parser = sharing, help_heading = "Kernel")]
    pub time_sharing: Sharing,
    /// Longest time of the guest: a run past it is ended
    #[arg(long, value_name = "TIME", default_value = "3600s", value_parser = super::time, help_heading = "Kernel")]
    pub limit: Ns,
    /// Wall time, in seconds, in which a guest's time may stand still before it is ended, and the program that runs in it named
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Kernel")]
    pub patience: u64,
    /// Check the invariants of the model, and that every read returns the last write (slower): exit code 3 when not
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Write what the drive was asked while the command ran as a trace, Parquet, that --trace reads; of several runs each to a file of its own
    #[arg(long, value_name = "FILE.parquet", value_parser = crate::record::parquet_path, help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// Keep the events of the kernel's block layer while the command ran (insert, issue, complete; as trace-cmd prints them) in the run directory,
    /// and what a scheduler that is a module was told and answered (scheduler-events.txt)
    #[arg(long, help_heading = "Output")]
    pub tracepoints: bool,
    /// Where the output goes.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Guests at the same time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = super::at_least_one, allow_negative_numbers = true, help_heading = "Output")]
    pub jobs: Option<NonZeroUsize>,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = planewise_workload::values::bytes(text).map_err(|problem| format!("allowed: {problem}"))?;
    if bytes >= 1 << 20 { Ok(bytes) } else { Err(format!("allowed: 1m or more; found '{text}'")) }
}

fn sharing(text: &str) -> Result<Sharing, String> {
    match text {
        "memory" => Ok(Sharing::Memory),
        "messages" => Ok(Sharing::Messages),
        "none" => Ok(Sharing::None),
        _ => Err("allowed: memory, messages, none".to_owned()),
    }
}
