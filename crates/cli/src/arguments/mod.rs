//! The command line: one definition for parsing, help, man pages and completions.

mod bench;
mod drive;
mod linux;
mod probe;
mod replay;
mod reproduce;
#[cfg(feature = "serve")]
mod serve;
mod simulate;
mod trace;

pub use bench::BenchArguments;
pub use drive::{DriveArguments, PlaceArgument};
pub use linux::LinuxArguments;
pub use probe::ProbeArguments;
pub use replay::{ReplayArguments, Sends};
pub use reproduce::ReproduceArguments;
#[cfg(feature = "serve")]
pub use serve::ServeArguments;
pub use simulate::{CommonArguments, CompareArguments, OutputArguments, RunArguments, SimulationArguments};
pub use trace::{
    ConvertArguments, CutArguments, InfoArguments, PartArguments, ReadArguments, ScaleTimeArguments,
    SynthArguments, TargetArguments, TraceArguments, TraceCommand, VolumesArguments,
};

use clap::{Args, Parser, Subcommand};
use planewise_sim::drivers::replay::PowerCut;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the run failed: bad trace, free space exhausted
  2    wrong command line or configuration
  3    an invariant was violated (--check)
  4    output cannot be written
  130  interrupted by Ctrl-C: what was done until then is kept and marked";

/// Finds, uses and schedules around the parallelism inside flash SSDs
///
/// Start with `planewise compare`: it replays a real trace of a database under eight host schedulers on a
/// simulated drive of 64 chips and writes a report.
#[derive(Debug, Parser)]
#[command(name = "planewise", version, after_help = EXIT_CODES, max_term_width = 110, subcommand_required = true, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of `planewise`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run schemes side by side over one trace and compare them
    Compare(CompareArguments),
    /// Run one scheme over a trace and summarise it
    Run(RunArguments),
    /// Run closed-loop jobs, or a model of an application, under one scheme or several
    Bench(BenchArguments),
    /// Replay a trace on a simulated or a real device, at the recorded times or as fast as it goes
    Replay(ReplayArguments),
    /// Run programs in a Linux kernel of the model's time, on a simulated drive
    Linux(LinuxArguments),
    /// Run published figures again and put the published numbers beside ours
    Reproduce(ReproduceArguments),
    /// Find out what is inside a drive, simulated or real, by measuring it from outside
    Probe(ProbeArguments),
    /// Serve a simulated drive in wall time, for programs that mount it
    #[cfg(feature = "serve")]
    Serve(ServeArguments),
    /// Look at, convert, cut, stretch and make traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List, show and check device profiles
    #[command(subcommand)]
    Device(DeviceCommand),
    /// List and show application models, check job files
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// List host schedulers and show their tunables
    #[command(subcommand)]
    Scheduler(SchedulerCommand),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Write man pages
    Man(ManArguments),
}

/// `planewise device …`
#[derive(Debug, Subcommand)]
pub enum DeviceCommand {
    /// List the profiles that ship with the program
    List,
    /// Print a profile as TOML, with what follows from it
    Show {
        /// Name of a profile, or a TOML file; behind it changes of its keys: ssd-s:geometry.channels=8,write_buffer=none
        #[arg(value_name = "NAME|FILE")]
        device: String,
    },
    /// Check a profile file; prints nothing but its name when all is well
    Check {
        /// TOML file
        file: PathBuf,
    },
    /// List the policies that a profile or an option can name: garbage collection, victims, wear, allocation, flash scheduling
    Policies,
    /// Print the JSON Schema of profile files, for editors
    Schema,
}

/// `planewise workload …`
#[derive(Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the application models and job files that ship with the program
    List,
    /// Print a model's parameters as TOML, with where they come from
    Show {
        /// Name of a model
        name: String,
    },
    /// Check a job file or the file of a model; prints one line when all is well
    Check {
        /// TOML file, or fio's own format in a file named .fio or .ini
        file: PathBuf,
        /// The device that areas must fit on, when the file names none: sim:PROFILE
        #[arg(long, value_name = "sim:PROFILE|FILE", default_value = "sim:piq-128g")]
        target: String,
    },
    /// List the options of jobs, and which of fio's others are accepted or refused
    Options,
}

/// `planewise scheduler …`
#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    /// List host schedulers
    List,
    /// Show a scheduler's tunables: unit, default, range, and the source it follows
    Show {
        /// Name of a scheduler
        name: String,
    },
}

/// `planewise completions`
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// Which shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `planewise man`
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Existing directory for one page per command; without it the main page goes to standard output
    pub directory: Option<PathBuf>,
}

/// A power cut: a time with its unit, or `after:N`.
fn power_cut(text: &str) -> Result<PowerCut, String> {
    let refused = || {
        "allowed: a time with its unit (d, h, min or m, s, ms, us, ns) such as 12.5s, or after:N with a number of requests N of 1 or more"
            .to_owned()
    };
    if let Some(requests) = text.strip_prefix("after:") {
        return requests.parse().ok().filter(|n| *n > 0).map(PowerCut::After).ok_or_else(refused);
    }
    time(text).map(PowerCut::At).map_err(|_| refused())
}

/// A time with its unit, exactly.
fn time(text: &str) -> Result<planewise_model::Ns, String> {
    // Units that end as others do first. A unit is so many times a power of ten of nanoseconds.
    let units = [
        ("ms", 1, 6),
        ("us", 1, 3),
        ("ns", 1, 0),
        ("min", 60, 9),
        ("s", 1, 9),
        ("m", 60, 9),
        ("h", 3600, 9),
        ("d", 86_400, 9),
    ];
    let with_unit =
        units.iter().find_map(|(unit, times, digits)| Some((text.strip_suffix(unit)?, *times, *digits)));
    with_unit
        .and_then(|(number, times, digits)| trace::decimal(number, digits)?.checked_mul(times))
        .map(planewise_model::Ns)
        .ok_or_else(|| {
            "allowed: a time with its unit (d, h, min or m, s, ms, us, ns), such as 1ms or 10min".to_owned()
        })
}

/// From when to when; either may be left out.
fn window(text: &str) -> Result<(planewise_model::Ns, planewise_model::Ns), String> {
    let allowed = || {
        "allowed: FROM..TO, times with their units of which the first is earlier, such as 10s..10.5s, 2min.. or ..300ms".to_owned()
    };
    let (from, to) = text.split_once("..").ok_or_else(allowed)?;
    let or =
        |text: &str, absent| if text.is_empty() { Ok(absent) } else { time(text).map_err(|_| allowed()) };
    let (from, to) = (or(from, planewise_model::Ns::ZERO)?, or(to, planewise_model::Ns::MAX)?);
    if from < to { Ok((from, to)) } else { Err(allowed()) }
}

/// A number of requests: 20k are 20,000.
fn requests(text: &str) -> Result<u64, String> {
    let times = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    let lower = text.to_ascii_lowercase();
    let (digits, times) = times
        .iter()
        .find_map(|(unit, times)| Some((lower.strip_suffix(unit)?, *times)))
        .unwrap_or((&lower, 1));
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| plain).and_then(|number| number.checked_mul(times));
    number.filter(|number| *number > 0).ok_or_else(|| {
        "allowed: a whole number, 1 or more, such as 20000 or 20k, 5m (thousands, millions)".to_owned()
    })
}

/// A seed in decimal or, after 0x, hexadecimal.
pub fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| {
        "allowed: a whole number from 0 to 18446744073709551615, or 0x and hexadecimal digits".to_owned()
    })
}

/// A count that is not 0.
fn at_least_one(text: &str) -> Result<std::num::NonZeroUsize, String> {
    text.parse().map_err(|_| "allowed: a whole number, 1 or more".to_owned())
}

/// A factor greater than 0.
fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
        .ok_or_else(|| "allowed: a number greater than 0, e.g. 0.5".to_owned())
}

/// A time unit by its usual abbreviation.
fn time_unit(text: &str) -> Result<planewise_trace::formats::TimeUnit, String> {
    use planewise_trace::formats::TimeUnit;
    match text {
        "ns" => Ok(TimeUnit::Nanoseconds),
        "us" => Ok(TimeUnit::Microseconds),
        "ms" => Ok(TimeUnit::Milliseconds),
        "s" => Ok(TimeUnit::Seconds),
        _ => Err("allowed: ns, us, ms, s".to_owned()),
    }
}

/// The step of a trace's clock.
fn step(text: &str) -> Result<planewise_model::Ns, String> {
    planewise_workload::values::time(text)
        .ok()
        .filter(|step| step.0 > 0)
        .ok_or_else(|| "allowed: a time such as 1s, 100ms or 1us".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_tells_the_sort_window_that_is_used() {
        let default = planewise_trace::pipeline::SORT_WINDOW_DEFAULT;
        let mut command = Arguments::command();
        let run = command.find_subcommand_mut("run").unwrap();
        let window = run.get_arguments().find(|argument| argument.get_id() == "sort_window").unwrap();
        let help = window.get_help().unwrap().to_string();
        assert!(help.ends_with(&format!("[default: {default}]")), "{help}");
    }

    #[test]
    fn times_have_any_unit_and_are_exact() {
        for (text, ns) in [
            ("1ns", 1),
            ("2.5us", 2_500),
            ("0.000001ms", 1),
            ("7s", 7_000_000_000),
            ("10min", 600_000_000_000),
            ("10m", 600_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(time(text).map(|time| time.0), Ok(ns), "{text}");
        }
        for text in ["", "5", "min", "-1s", "1e3s", "5 s", "1.s", "99999999999d", "0.0000000001s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_has_two_times_in_order_or_one() {
        let ns = |text| window(text).map(|(from, to)| (from.0, to.0));
        assert_eq!(ns("1s..1500ms"), Ok((1_000_000_000, 1_500_000_000)));
        assert_eq!((ns("2us.."), ns("..2us")), (Ok((2_000, u64::MAX)), Ok((0, 2_000))));
        for text in ["", "1s", "2s..1s", "1s..1s", "1..2", "a..b"] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_requests_may_have_thousands_and_millions() {
        assert_eq!(
            ["1", "20k", "5M", "2g"].map(requests),
            [Ok(1), Ok(20_000), Ok(5_000_000), Ok(2_000_000_000)]
        );
        for text in
            ["", "0", "k", "-1", "1.5k", "20kk", "20 k", "+5", "99999999999999999999", "99999999999999999g"]
        {
            assert!(requests(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_power_cut_is_a_time_with_its_unit_or_a_number_of_requests() {
        let at = |ns| Ok(PowerCut::At(planewise_model::Ns(ns)));
        assert_eq!(power_cut("12.5s"), at(12_500_000_000));
        assert_eq!(power_cut("300ms"), at(300_000_000));
        assert_eq!(power_cut("0.25us"), at(250));
        assert_eq!(power_cut("7ns"), at(7));
        assert_eq!(power_cut("after:100000"), Ok(PowerCut::After(100_000)));
        for wrong in
            ["", "5", "s", "-1s", "1e3s", "0.5ns", "1.2345ms1", "1 s", "after:0", "after:x", "99999999999s"]
        {
            assert!(power_cut(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_are_read_in_decimal_and_hexadecimal() {
        assert_eq!(seed("7"), Ok(7));
        assert_eq!(seed("0x504c414e45574953"), Ok(planewise_model::rng::DEFAULT_SEED));
        assert!(seed("-1").is_err());
        assert!(factor("nan").is_err() && factor("0").is_err() && factor("1e400").is_err());
    }

    /// Every command that README, CONTRIBUTING or `docs/` shows is one that the program understands: options, values and all
    /// that is known before anything is read.
    #[test]
    fn the_commands_of_the_documentation_are_understood() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let folder = |path: &str| {
            let files = std::fs::read_dir(root.join(path)).expect("the folder is there");
            files
                .map(|file| file.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "md"))
        };
        let mut pages: Vec<_> = folder("docs").chain(folder("docs/schedulers")).collect();
        pages.extend([root.join("README.md"), root.join("CONTRIBUTING.md")]);
        let mut commands = 0;
        for page in pages {
            let text = std::fs::read_to_string(&page).unwrap();
            for (line, command) in text.lines().enumerate().filter(|(_, line)| line.starts_with("   ")) {
                let command = command.trim().trim_start_matches("target/edit/");
                if !command.starts_with("planewise ") {
                    continue;
                }
                let words = words(command.split(['#', '>']).next().unwrap());
                commands += 1;
                if let Err(error) = Arguments::try_parse_from(&words) {
                    panic!("{}:{}: {command}\n{error}", page.display(), line + 1);
                }
            }
        }
        assert!(commands > 40, "{commands}");
    }

    /// As a shell splits them, with single quotes only.
    fn words(command: &str) -> Vec<String> {
        let quoted = command.split('\'').enumerate().flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        quoted.collect()
    }
}
