//! The options that tell runs apart, as one table: `run` takes one value of each, `compare` a list of most of them.
//!
//! Help, parsing, defaults, the product of the lists and the `options` of `results.json` all follow from a line of [`AXES`].

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use planewise_model::profile::StreamRule;
use planewise_sim::gc::victims;
use planewise_sim::{RunConfig, SimError, flash_sched, gc, host_sched, wear};
use std::str::FromStr;

/// Schedulers that `compare` runs when neither schedulers nor lists of device options are given.
pub const SCHEDULERS_DEFAULT: [&str; 8] =
    ["noop", "mq-deadline", "kyber", "bfq", "piq", "piq+", "pass", "weave"];

/// What varies along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The host and its interface, the device staying the same.
    Host,
    /// The device: a comparison of devices needs one scheduler, not all of them.
    Device,
    /// One value for all runs.
    Single,
}

/// An option that tells runs apart.
pub struct Axis {
    /// Name on the command line.
    pub name: &'static str,
    kind: Kind,
    heading: &'static str,
    /// What a value is called in help.
    value: &'static str,
    help: &'static str,
    /// What runs have when the option is not given; the device's own when empty.
    default: &'static str,
    /// Key of the profile, in which checks of the profile speak of it; empty when it is no part of the profile.
    key: &'static str,
    get: fn(&RunConfig) -> String,
    set: fn(&mut RunConfig, &str) -> Result<(), SimError>,
}

/// All of them; in a product of lists, the first varies fastest.
pub static AXES: &[Axis] = &[
    Axis {
        name: "scheduler",
        kind: Kind::Host,
        heading: "Schemes",
        value: "NAME",
        help: "Host scheduler (see `planewise scheduler list`)",
        default: "noop",
        key: "",
        get: |config| config.scheduler.clone(),
        set: |config, text| {
            put(&mut config.scheduler, host_sched::find(text).map(|entry| entry.name.to_owned()))
        },
    },
    Axis {
        name: "level",
        kind: Kind::Host,
        heading: "Schemes",
        value: "LEVEL",
        help: "Granularity of the parallel units that schedulers reckon with: chip, plane",
        default: "chip",
        key: "",
        get: |config| config.level.to_string(),
        set: |config, text| put(&mut config.level, text.parse()),
    },
    Axis {
        name: "allocation",
        kind: Kind::Device,
        heading: "Schemes",
        value: "NAME",
        help: "Page allocation: cwdp or another order of c, w, d, p; dynamic; write-order; region:MIB; concatenated (see `planewise device policies`)",
        default: "",
        key: "allocation",
        get: |config| config.profile.translation.allocation.clone(),
        set: |config, text| {
            crate::plan::check_allocation(text)?;
            put(&mut config.profile.translation.allocation, Ok(text.to_owned()))
        },
    },
    Axis {
        name: "gc",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "NAME",
        help: "Garbage collection scheme: traditional, preemptive, paced, parallel, dpr, idle_chip, yielding, or the bound gc_free",
        default: "",
        key: "scheme",
        get: |config| config.profile.collection.scheme.clone(),
        set: |config, text| {
            put(&mut config.profile.collection.scheme, gc::find(text).map(|scheme| scheme.name.to_owned()))
        },
    },
    Axis {
        name: "victims",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "NAME",
        help: "Which block is collected: greedy, cost-benefit, d-choices:D with D of 1 to 64, fifo",
        default: "",
        key: "victims",
        get: |config| config.profile.collection.victims.clone(),
        set: |config, text| {
            victims::find(text)?;
            put(&mut config.profile.collection.victims, Ok(text.to_owned()))
        },
    },
    Axis {
        name: "buffer-pages",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "N",
        help: "Pages of the controller's valid page buffer, for schemes that have one, from 0 to about a thousandth of the device",
        default: "",
        key: "buffer_pages",
        get: |config| config.profile.collection.buffer_pages.to_string(),
        set: |config, text| put(&mut config.profile.collection.buffer_pages, pages(text)),
    },
    Axis {
        name: "streams",
        kind: Kind::Single,
        heading: "Garbage collection",
        value: "RULE",
        help: "Which collections of idle_chip use the valid page buffer: conflict (those that a host request waits for), all",
        default: "",
        key: "streams",
        get: |config| config.profile.collection.streams.name().to_owned(),
        set: |config, text| {
            let rule = [StreamRule::Conflict, StreamRule::All].into_iter().find(|rule| rule.name() == text);
            put(&mut config.profile.collection.streams, rule.ok_or_else(|| refused(text, "conflict, all")))
        },
    },
    Axis {
        name: "gc-threshold",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "SHARE",
        help: "Share of free pages below which a plane is collected, such as 0.05 or 5%; 0 to 0.5",
        default: "",
        key: "threshold",
        get: |config| config.profile.collection.threshold.to_string(),
        set: |config, text| put(&mut config.profile.collection.threshold, share(text)),
    },
    Axis {
        name: "gc-floor",
        kind: Kind::Single,
        heading: "Garbage collection",
        value: "SHARE",
        help: "Share of free pages below which no scheme lets the host in between two steps of a collection; 0 to the threshold",
        default: "",
        key: "floor",
        get: |config| config.profile.collection.floor.to_string(),
        set: |config, text| put(&mut config.profile.collection.floor, share(text)),
    },
    Axis {
        name: "gc-ahead",
        kind: Kind::Single,
        heading: "Garbage collection",
        value: "SHARE",
        help: "Share of free pages up to which idle time is used to collect ahead (yielding), or planes are beside others (parallel); from the threshold to 0.5",
        default: "",
        key: "ahead",
        get: |config| config.profile.collection.ahead.to_string(),
        set: |config, text| put(&mut config.profile.collection.ahead, share(text)),
    },
    Axis {
        name: "replica-pages",
        kind: Kind::Single,
        heading: "Garbage collection",
        value: "N",
        help: "Replicas of pages that dpr keeps at a time, from 0 to the spare pages of the device",
        default: "",
        key: "replica_pages",
        get: |config| config.profile.collection.replica_pages.to_string(),
        set: |config, text| put(&mut config.profile.collection.replica_pages, pages(text)),
    },
    Axis {
        name: "separate",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "WHEN",
        help: "Whether host and collection write to blocks of their own (hot/cold separation): on, off",
        default: "",
        key: "hot_cold_separation",
        get: |config| if config.profile.collection.hot_cold_separation { "on" } else { "off" }.to_owned(),
        set: |config, text| put(&mut config.profile.collection.hot_cold_separation, switch(text)),
    },
    Axis {
        name: "wear",
        kind: Kind::Device,
        heading: "Garbage collection",
        value: "NAME",
        help: "Wear levelling: none, dynamic, static:N with a spread of erase counts N",
        default: "",
        key: "wear_levelling",
        get: |config| config.profile.translation.wear_levelling.clone(),
        set: |config, text| {
            wear::find(text)?;
            put(&mut config.profile.translation.wear_levelling, Ok(text.to_owned()))
        },
    },
    Axis {
        name: "flash-scheduler",
        kind: Kind::Device,
        heading: "Device",
        value: "NAME",
        help: "Which waiting transaction a free die takes: fcfs, read-first, out-of-order",
        default: "",
        key: "flash_scheduler",
        get: |config| config.profile.interface.flash_scheduler.clone(),
        set: |config, text| {
            let found = flash_sched::find(text).map(|policy| policy.name.to_owned());
            put(&mut config.profile.interface.flash_scheduler, found)
        },
    },
    Axis {
        name: "merging",
        kind: Kind::Host,
        heading: "Schemes",
        value: "WHICH",
        help: "Adjacent waiting requests that become one: none, back (behind a waiting one), full (in front too)",
        default: "none",
        key: "merging",
        get: |config| config.merging.to_string(),
        set: |config, text| put(&mut config.merging, text.parse()),
    },
    Axis {
        name: "max-sectors-kb",
        kind: Kind::Single,
        heading: "Schemes",
        value: "KIB",
        help: "Largest request that merging makes, KiB, 1 to 1048576 (as Linux's max_sectors_kb)",
        default: "512",
        key: "max-sectors-kb",
        get: |config| config.max_sectors_kb.to_string(),
        set: |config, text| put(&mut config.max_sectors_kb, within(text, 1, 1 << 20)),
    },
    Axis {
        name: "overlap",
        kind: Kind::Host,
        heading: "Schemes",
        value: "WHAT",
        help: "A request that overlaps an earlier unfinished one, of which one writes: keep (it waits for that one), ignore (the \
               older data may win)",
        default: "keep",
        key: "overlap",
        get: |config| config.overlap.to_string(),
        set: |config, text| put(&mut config.overlap, text.parse()),
    },
    Axis {
        name: "block-layer",
        kind: Kind::Host,
        heading: "Schemes",
        value: "WHICH",
        help: "When a request leaves the scheduler: direct (when the device takes it), blk-mq (as in Linux one is taken before, and goes \
               first: what the kernel modules do)",
        default: "direct",
        key: "block_layer",
        get: |config| config.block_layer.to_string(),
        set: |config, text| put(&mut config.block_layer, text.parse()),
    },
    Axis {
        name: "command-queue",
        kind: Kind::Host,
        heading: "Schemes",
        value: "KIND",
        help: "How the device takes commands: blocking, or ncq:D with a depth D of 1 to 65536",
        default: "",
        key: "command_queue",
        get: |config| config.profile.interface.command_queue.clone(),
        set: |config, text| {
            text.parse::<planewise_sim::host::CommandQueue>()?;
            put(&mut config.profile.interface.command_queue, Ok(text.to_owned()))
        },
    },
    Axis {
        name: "queue",
        kind: Kind::Host,
        heading: "Schemes",
        value: "N",
        help: "Length of the host's I/O queue, 1 to 4096; arrivals beyond it wait outside",
        default: "64",
        key: "queue",
        get: |config| config.queue_length.to_string(),
        set: |config, text| put(&mut config.queue_length, within(text, 1, 4096)),
    },
    Axis {
        name: "request-pools",
        kind: Kind::Host,
        heading: "Schemes",
        value: "WHICH",
        help: "Slots for requests that somebody waits for and for the others: one queue for both, two of --queue slots each (Linux \
               2.6.32), or auto (two for deadline, cfq, anticipatory and pass, one for others)",
        default: "auto",
        key: "",
        get: |config| config.request_pools.to_string(),
        set: |config, text| put(&mut config.request_pools, text.parse()),
    },
    Axis {
        name: "queue-counts",
        kind: Kind::Single,
        heading: "Schemes",
        value: "WHICH",
        help: "Which requests count in the length of the I/O queue: outstanding (and those that wait, as tags do), waiting (only those)",
        default: "outstanding",
        key: "queue-counts",
        get: |config| config.queue_counts.to_string(),
        set: |config, text| put(&mut config.queue_counts, text.parse()),
    },
    Axis {
        name: "units",
        kind: Kind::Single,
        heading: "Schemes",
        value: "N",
        help: "Number of parallel units that schedulers are told, 1 to 65536; may be wrong on purpose",
        default: "the true number",
        key: "units",
        get: |config| config.told_units.map(|units| units.to_string()).unwrap_or_default(),
        set: |config, text| put(&mut config.told_units, within(text, 1, 65_536).map(Some)),
    },
    Axis {
        name: "condition",
        kind: Kind::Device,
        heading: "Device",
        value: "CONDITION",
        help: "What the device has been through: fresh (never written), primed (never written, but what is read is in flash and \
               takes no space), filled (every page written once), aged (84 % valid, 10 % invalid, 6 % free), or \
               aged:VALID/INVALID/FREE in percent",
        default: "filled",
        key: "condition",
        get: |config| config.condition.to_string(),
        set: |config, text| put(&mut config.condition, text.parse()),
    },
    Axis {
        name: "advanced",
        kind: Kind::Single,
        heading: "Device",
        value: "WHEN",
        help: "Multi-plane, die-interleave and copyback commands: on as far as the profile has them, off, or auto (off at chip \
               level on a blocking interface, on otherwise)",
        default: "auto",
        key: "",
        get: |config| config.advanced.to_string(),
        set: |config, text| put(&mut config.advanced, text.parse()),
    },
    Axis {
        name: "pace",
        kind: Kind::Host,
        heading: "Trace",
        value: "PACE",
        help: "When requests leave: recorded (at their recorded times, whatever the device does), dependent (when what had completed \
               before in the recording has completed, and the recorded gap after that: for traces that say when requests completed), \
               closed:N (N at a time), asap (as the queue has room); the trace inside the program is run at the pace dependent by default",
        default: "recorded",
        key: "",
        get: |config| config.pace.to_string(),
        set: |config, text| put(&mut config.pace, text.parse()),
    },
    Axis {
        name: "seed",
        kind: Kind::Host,
        heading: "Trace",
        value: "SEED",
        help: "Seed of all randomness, synthetic traces included: same seed, same bytes",
        // The generator's default, which the test below holds it to.
        default: "5786071425690847571",
        key: "",
        get: |config| config.seed.to_string(),
        set: |config, text| {
            let seed = crate::arguments::seed(text);
            put(
                &mut config.seed,
                seed.map_err(|allowed| refused(text, allowed.trim_start_matches("allowed: "))),
            )
        },
    },
];

impl Axis {
    /// The option's name: in lists, schedulers are several.
    pub fn option(&self, lists: bool) -> &'static str {
        if lists && self.name == "scheduler" { "schedulers" } else { self.name }
    }

    /// The value that a configuration has, as the command line would write it.
    pub fn value_of(&self, config: &RunConfig) -> String {
        (self.get)(config)
    }

    /// Gives a configuration a value.
    ///
    /// # Errors
    /// The value is not allowed.
    pub fn apply(&self, config: &mut RunConfig, text: &str, lists: bool) -> Result<(), Failure> {
        (self.set)(config, text).map_err(|error| match error {
            SimError::Option { found, allowed, .. } => {
                Failure::usage(format!("--{}: found {found}; allowed: {allowed}", self.option(lists)))
            }
            other => other.into(),
        })
    }

    fn takes_lists(&self, lists: bool) -> bool {
        lists && self.kind != Kind::Single
    }

    fn argument(&self, index: usize, lists: bool) -> Arg {
        let several = self.takes_lists(lists);
        let default = match (self.name, self.default) {
            ("scheduler", _) if several => {
                format!(
                    "{} in compare; {} elsewhere, and when an option of the device has a list",
                    SCHEDULERS_DEFAULT.join(","),
                    self.default
                )
            }
            (_, "") => "the device's".to_owned(),
            (_, default) => default.to_owned(),
        };
        let option = self.option(lists);
        let argument = Arg::new(option)
            .long(option)
            .help(format!("{} [default: {default}]", self.help))
            .help_heading(self.heading)
            .value_name(if several { format!("{},..", self.value) } else { self.value.to_owned() })
            .allow_negative_numbers(true)
            // What the device and the trace are comes before what varies about them.
            .display_order(if ["Device", "Trace"].contains(&self.heading) { 100 + index } else { index });
        let argument = match (self.name, lists) {
            ("scheduler", true) => argument.alias("scheduler"),
            ("scheduler", false) => argument.alias("schedulers"),
            _ => argument,
        };
        if several { argument.action(ArgAction::Append).value_delimiter(',') } else { argument }
    }
}

/// The values given for each of [`AXES`], in their order, as written; none where the option was not given.
#[derive(Clone, Debug)]
pub struct Given<const LISTS: bool>(pub Vec<Vec<String>>);

impl<const LISTS: bool> clap::Args for Given<LISTS> {
    fn augment_args(command: Command) -> Command {
        command.args(AXES.iter().enumerate().map(|(index, axis)| axis.argument(index, LISTS)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const LISTS: bool> clap::FromArgMatches for Given<LISTS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let values = |axis: &Axis| {
            let given = matches.get_many::<String>(axis.option(LISTS));
            given.map(|values| values.cloned().collect()).unwrap_or_default()
        };
        Ok(Given(AXES.iter().map(values).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Whether a list of several values of a device's option was given.
pub fn compares_devices(given: &[Vec<String>]) -> bool {
    AXES.iter().zip(given).any(|(axis, values)| axis.kind == Kind::Device && values.len() > 1)
}

/// The option for what a check of a profile calls by its key.
pub fn by_key(key: &str) -> Option<(usize, &'static Axis)> {
    AXES.iter().enumerate().find(|(_, axis)| !axis.key.is_empty() && axis.key == key)
}

fn put<T>(place: &mut T, value: Result<T, SimError>) -> Result<(), SimError> {
    *place = value?;
    Ok(())
}

fn refused(text: &str, allowed: &str) -> SimError {
    // The key is the option's, which only the axis knows.
    SimError::Option { key: String::new(), found: format!("'{text}'"), allowed: allowed.to_owned() }
}

fn within(text: &str, least: u32, most: u32) -> Result<u32, SimError> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| refused(text, &format!("{least} to {most}")))
}

fn pages(text: &str) -> Result<u32, SimError> {
    text.parse().map_err(|_| refused(text, "a whole number of pages, 0 to 4294967295"))
}

fn switch(text: &str) -> Result<bool, SimError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(refused(text, "on, off")),
    }
}

/// A share as 0.05 or 5%. Per cents move the point in the text, so that both give the same number to the last bit.
fn share(text: &str) -> Result<f64, SimError> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) if !percent.contains(['e', 'E']) => f64::from_str(&format!("{percent}e-2")),
        _ => f64::from_str(text),
    };
    let share = parsed.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| refused(text, "a share such as 0.05 or 5%"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Profile, rng};

    #[test]
    fn every_axis_reads_back_what_it_writes_and_tells_its_true_default() {
        let base = RunConfig::new(Profile::embedded("gc-128g").unwrap());
        for axis in AXES {
            let own = axis.value_of(&base);
            if !["", "the true number"].contains(&axis.default) {
                assert_eq!(own, axis.default, "{}", axis.name);
            }
            if axis.name != "units" {
                let mut same = base.clone();
                axis.apply(&mut same, &own, true).unwrap();
                assert_eq!(axis.value_of(&same), own, "{}", axis.name);
                assert_eq!(same.profile, base.profile, "{}", axis.name);
            }
        }
        assert_eq!(axes_default("seed"), rng::DEFAULT_SEED.to_string());
    }

    fn axes_default(name: &str) -> &'static str {
        AXES.iter().find(|axis| axis.name == name).unwrap().default
    }

    #[test]
    fn shares_in_percent_are_the_same_numbers_to_the_last_bit() {
        for (percent, decimal) in
            [("5%", 0.05), ("0.3%", 0.003), ("7%", 0.07), ("12.5%", 0.125), ("50%", 0.5)]
        {
            assert_eq!(share(percent).unwrap().to_bits(), f64::to_bits(decimal), "{percent}");
        }
        for wrong in ["", "%", "5 %", "-0.1", "nan", "inf", "101%", "1e-2%", "five"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
