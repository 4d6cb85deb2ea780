//! From the command line to what each kernel is to do: every name looked up, every file found, before anything boots.

use crate::arguments::LinuxArguments;
use crate::failure::Failure;
use crate::plan::profile;
use planewise_guest::kernel::{Build, Job, Settings};
use planewise_guest::recipe::{EMBEDDED, FileSystem, Number, Recipe};
use planewise_model::{Bytes, Ns, Profile, names};
use planewise_report::quoted;
use planewise_sim::host::CommandQueue;
use planewise_sim::kernel_parameters::KernelParameters;
use planewise_sim::{RunConfig, Simulator};
use planewise_workload::values::bytes;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Schedulers that the kernel has, and those of `make kernel`.
const SCHEDULERS: [&str; 7] =
    ["none", "mq-deadline", "kyber", "bfq", "planewise-pass", "planewise-piq", "planewise-weave"];
/// What names of modules begin with.
const MODULE: &str = "planewise-";
/// Requests that a kernel of this kind gives a drive at a time, at most.
const TAGS_MAX: u32 = 1024;
/// Where the drive's file system is.
const MOUNTED: &str = "/drive";
/// Path of programs in the guest.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is to be done.
pub struct Plan {
    /// The kernel's files.
    pub build: Build,
    /// The drive.
    pub device: RunConfig,
    /// How the kernel is set up, but for its seed.
    pub settings: Settings,
    /// The job, but for its scheduler.
    base: Job,
    /// What makes the file system, and what mounts it.
    make: String,
    mount: String,
    /// Of a recipe: what is done once.
    setup: String,
    start: String,
    stop: String,
    attributes: Vec<(String, String)>,
    /// Where schedulers that are modules are, and what they are told.
    modules: Option<(PathBuf, String)>,
    tracepoints: bool,
    /// What counts in the output.
    pub numbers: Vec<Number>,
    /// What it is called in results.
    pub name: String,
    /// Scheduler and seed of each run.
    pub runs: Vec<(String, u64)>,
    /// Every option that decides about results.
    pub options: BTreeMap<String, String>,
    /// Whether the root stays as it is: only then is what was set up on it kept for later.
    is_frozen: bool,
}

impl Plan {
    /// Looks everything up.
    ///
    /// # Errors
    /// A name that is unknown, a file that is missing, a value that is not allowed.
    pub fn new(arguments: &LinuxArguments) -> Result<Plan, Failure> {
        for (number, name) in arguments.schedulers.iter().enumerate() {
            if !SCHEDULERS.contains(&name.as_str()) {
                return Err(names::unknown("scheduler of the kernel", name, SCHEDULERS).into());
            }
            once("schedulers", name, &arguments.schedulers[..number])?;
        }
        for (number, seed) in arguments.seed.iter().enumerate() {
            once("seed", seed, &arguments.seed[..number])?;
        }
        let recipe = recipe(arguments)?;
        if let Some(recipe) =
            recipe.as_ref().filter(|recipe| arguments.drives > 1 && !recipe.setup.trim().is_empty())
        {
            return Err(Failure::usage(format!(
                "--drives: found {} with a recipe that sets something up ({}); allowed: 1, as the first drive alone is kept",
                arguments.drives, recipe.summary
            )));
        }
        let device = device(arguments)?;
        let tags = tags(arguments, &device.profile)?;
        let device = RunConfig { queue_length: tags.max(64), ..device };
        let build = build(arguments)?;
        let (root, is_frozen) = root(arguments)?;
        let file_system =
            arguments.file_system.or(recipe.as_ref().map(|recipe| recipe.file_system)).unwrap_or_default();
        let size = size(arguments, recipe.as_ref(), file_system, &device.profile)?;
        let memory = match (&recipe, arguments.memory) {
            (_, Some(memory)) => memory,
            (Some(recipe), None) => bytes(&recipe.memory).map_err(Failure::usage)?,
            (None, None) => 512 << 20,
        };
        check_memory(memory)?;
        let given = arguments.set.iter().map(|text| pair("set", text)).collect::<Result<Vec<_>, _>>()?;
        let parameters = match &recipe {
            Some(recipe) => {
                recipe.environment(&given).map_err(|problem| Failure::usage(format!("--set: {problem}")))?
            }
            None => Vec::new(),
        };
        let needs = recipe.iter().flat_map(|recipe| recipe.needs.iter().cloned());
        let maker = file_system.maker().map(|maker| format!("usr/sbin/{maker}"));
        for need in needs.chain(maker) {
            if !root.join(&need).exists() {
                return Err(Failure::usage(format!(
                    "{}: is missing in the root; allowed: a root that has it, such as that of `make linux-root`",
                    root.join(&need).display()
                )));
            }
        }
        let command = match &recipe {
            Some(recipe) => ["/bin/sh", "-ec", recipe.run.as_str()].map(str::to_owned).into(),
            None => arguments.command.clone(),
        };
        let has_files = file_system != FileSystem::None;
        let mut environment = vec![
            ("PATH".to_owned(), PATH.to_owned()),
            ("HOME".to_owned(), "/root".to_owned()),
            ("LANG".to_owned(), "C".to_owned()),
            ("DRIVE".to_owned(), "/dev/vda".to_owned()),
        ];
        environment.extend(parameters);
        let share = arguments.share.as_ref().map(|share| {
            let found = share.canonicalize().map_err(|error| error.to_string());
            let directory =
                found.and_then(|path| if path.is_dir() { Ok(path) } else { Err("is no directory".into()) });
            directory.map_err(|problem| Failure::usage(format!("--share {}: {problem}", share.display())))
        });
        let base = Job {
            root,
            share: share.transpose()?,
            directory: if has_files { MOUNTED } else { "/" }.to_owned(),
            command,
            environment,
            ..Job::default()
        };
        let runs = arguments
            .seed
            .iter()
            .flat_map(|seed| arguments.schedulers.iter().map(move |scheduler| (scheduler.clone(), *seed)));
        Ok(Plan {
            build,
            make: file_system.make("/dev/vda", Bytes(size)),
            mount: match has_files {
                true => format!("mount -t {} /dev/vda {MOUNTED}", file_system.name()),
                false => String::new(),
            },
            setup: recipe.as_ref().map(|recipe| recipe.setup.clone()).unwrap_or_default(),
            start: recipe.as_ref().map(|recipe| recipe.start.clone()).unwrap_or_default(),
            stop: recipe.as_ref().map(|recipe| recipe.stop.clone()).unwrap_or_default(),
            attributes: arguments.attribute.iter().map(|text| attribute(text)).collect::<Result<_, _>>()?,
            modules: modules(arguments, &device)?,
            tracepoints: arguments.tracepoints,
            numbers: recipe.as_ref().map(|recipe| recipe.numbers.clone()).unwrap_or_default(),
            name: name(arguments),
            runs: runs.collect(),
            options: options(arguments, tags, memory, file_system, size),
            settings: Settings {
                memory: Bytes(memory),
                tags,
                seed: 0,
                system_call: Ns(arguments.syscall_ns),
            },
            device,
            base,
            is_frozen,
        })
    }

    /// Whether the root stays as it is.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Whether something is set up once, for all runs.
    pub fn is_set_up(&self) -> bool {
        !self.setup.trim().is_empty()
    }

    /// What sets it up.
    pub fn setup_job(&self) -> Job {
        Job {
            prepare: script(&[FIRST, &self.make, &self.mount]),
            command: ["/bin/sh", "-ec", self.setup.as_str()].map(str::to_owned).into(),
            ..self.base.clone()
        }
    }

    /// Where what was set up is kept, by all that decides about it; none where the root may change.
    pub fn snapshot(&self) -> Option<PathBuf> {
        // What is shared may be other than it was.
        let directory = self.build.kernel.parent().filter(|_| self.is_frozen && self.base.share.is_none())?;
        let mut hash = blake3::Hasher::new();
        let stamp = |path: PathBuf| fs::read(path).unwrap_or_default();
        hash.update(&stamp(directory.join("stamp")));
        hash.update(&stamp(self.base.root.join(STAMP)));
        let job = self.setup_job();
        // Names of types and fields with their values: what is added to any of them counts.
        hash.update(format!("{job:?} {:?} {:?}", self.settings, self.device).as_bytes());
        Some(directory.join("snapshots").join(&hash.finalize().to_hex()[..16]))
    }

    /// What a run does.
    pub fn job(&self, scheduler: &str, out: &Path) -> Job {
        let choose =
            format!("for queue in /sys/block/vd?/queue; do echo {scheduler} >$queue/scheduler; done");
        let attributes = self
            .attributes
            .iter()
            .map(|(file, value)| format!("echo {} >/sys/block/vda/queue/{}", quoted(value), quoted(file)));
        let attributes: Vec<String> = attributes.collect();
        let make = if self.is_set_up() { "" } else { &self.make };
        let file = |(directory, parameters): &(PathBuf, String)| {
            (directory.join(format!("{scheduler}.ko")), parameters.clone())
        };
        let module = self.modules.as_ref().filter(|_| scheduler.starts_with(MODULE)).map(file);
        let [listen, keep] = match self.tracepoints && module.is_some() {
            true => [DECISIONS_ON.replace("SYSTEM", &scheduler.replace('-', "_")), DECISIONS_OFF.to_owned()],
            false => [String::new(), String::new()],
        };
        let first = [FIRST, make, &self.mount, &self.start, "sync", &listen, &choose];
        let last = if self.tracepoints { TRACEPOINTS_ON } else { "" };
        let all: Vec<&str> =
            first.into_iter().chain(attributes.iter().map(String::as_str)).chain([last]).collect();
        Job {
            out: Some(out.to_owned()),
            prepare: script(&all),
            finish: script(&[&keep, if self.tracepoints { TRACEPOINTS_OFF } else { "" }, &self.stop]),
            module,
            ..self.base.clone()
        }
    }
}

/// What a drive is known to be before anything is done with it: the driver takes all disks for ones that turn.
const FIRST: &str = "for queue in /sys/block/vd?/queue; do echo 0 >$queue/rotational; echo 0 >$queue/add_random; echo none >$queue/scheduler; done";

/// Events of the block layer, kept in the guest until the command has ended.
const TRACEPOINTS_ON: &str = "cd /sys/kernel/debug/tracing
echo mono >trace_clock
echo 16384 >buffer_size_kb
for event in block_rq_insert block_rq_issue block_rq_complete; do echo 1 >events/block/$event/enable; done
cd /";
/// The text has microseconds only, and a request may come and go within one: the times of the same events, in ns, are in the raw listing.
const TRACEPOINTS_OFF: &str = r#"cd /sys/kernel/debug/tracing
echo 0 >tracing_on
cat trace >/run/block-events
echo raw >trace_options
grep -v '^#' trace | awk 'FNR == NR { stamp[++events] = $3; next }
/^#/ { print; next }
{ ns = "000000000" stamp[++line]; digits = length(ns)
  sub(/[0-9]+\.[0-9][0-9][0-9][0-9][0-9][0-9]:/, substr(ns, 10, digits - 18) + 0 "." substr(ns, digits - 8) ":"); print }' - /run/block-events >/run/out/block-events.txt
echo noraw >trace_options
cd /"#;

/// What a module is told and answers, from before it has the drive on, apart from the block layer's events.
const DECISIONS_ON: &str = "mkdir /sys/kernel/debug/tracing/instances/planewise
cd /sys/kernel/debug/tracing/instances/planewise
echo counter >trace_clock
echo 65536 >buffer_size_kb
echo 1 >events/SYSTEM/enable
cd /";
const DECISIONS_OFF: &str = "cd /sys/kernel/debug/tracing/instances/planewise
echo 0 >tracing_on
cat trace >/run/out/scheduler-events.txt
cd /";

/// In a root that does not change.
const STAMP: &str = ".planewise";

fn script(parts: &[&str]) -> String {
    parts
        .iter()
        .filter(|part| !part.trim().is_empty())
        .fold(String::new(), |all, part| all + part.trim() + "\n")
}

fn once<T: PartialEq + std::fmt::Display>(option: &str, value: &T, before: &[T]) -> Result<(), Failure> {
    match before.contains(value) {
        true => Err(Failure::usage(format!(
            "--{option}: found '{value}' a second time; allowed: each value once"
        ))),
        false => Ok(()),
    }
}

fn pair(option: &str, text: &str) -> Result<(String, String), Failure> {
    let pair = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
    pair.ok_or_else(|| Failure::usage(format!("--{option}: found '{text}'; allowed: NAME=VALUE")))
}

fn attribute(text: &str) -> Result<(String, String), Failure> {
    let (file, value) = pair("attribute", text)?;
    let is_inside = !file.split('/').any(|part| ["", ".", ".."].contains(&part));
    match (file.as_str(), is_inside) {
        ("scheduler", _) => Err(Failure::usage("--attribute: found scheduler; allowed: --schedulers for it")),
        (_, false) => Err(Failure::usage(format!(
            "--attribute: found '{file}'; allowed: a file of /sys/block/vda/queue, such as nr_requests or iosched/read_expire"
        ))),
        _ => Ok((file, value)),
    }
}

fn recipe(arguments: &LinuxArguments) -> Result<Option<Recipe>, Failure> {
    let Some(name) = &arguments.recipe else { return Ok(None) };
    let is_file = name.ends_with(".toml") || name.contains('/');
    if !is_file {
        return Recipe::embedded(name)
            .map(Some)
            .map_err(|error| Failure::usage(format!("{error}, or a TOML file")));
    }
    let text = fs::read_to_string(name).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    Recipe::parse(&text, name).map(Some).map_err(Failure::usage)
}

fn device(arguments: &LinuxArguments) -> Result<RunConfig, Failure> {
    let mut config = RunConfig::new(profile(&arguments.device)?);
    config.condition = arguments.condition.parse()?;
    // Whether it can be in that condition is found out here, and not when the kernel waits for it.
    Simulator::new(&config, ())?;
    Ok(config)
}

fn tags(arguments: &LinuxArguments, profile: &Profile) -> Result<u32, Failure> {
    let own = match profile.interface.command_queue.parse::<CommandQueue>()? {
        CommandQueue::Ncq(depth) => depth,
        CommandQueue::Blocking => profile.geometry.planes(),
    };
    Ok(arguments.tags.unwrap_or(own.clamp(1, TAGS_MAX)))
}

/// The first of some places that has what is looked for.
fn first_of(places: Vec<PathBuf>, has: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    places.into_iter().find(|place| has(place))
}

/// A folder of `target`, here or beside the program.
fn built(name: &str) -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok();
    let beside =
        beside.as_deref().and_then(Path::parent).and_then(Path::parent).map(|target| target.join(name));
    [Path::new("target").join(name)].into_iter().chain(beside).collect()
}

fn build(arguments: &LinuxArguments) -> Result<Build, Failure> {
    let directory = match &arguments.kernel {
        Some(directory) => directory.clone(),
        None => first_of(built("linux"), |place| place.join("kernel").is_file()).ok_or_else(|| {
            Failure::usage(
                "--kernel: target/linux has no kernel; `make linux` builds it (about 9 minutes of processor time)",
            )
        })?,
    };
    Build::in_directory(&directory).map_err(|error| Failure::usage(format!("--kernel: {error}")))
}

/// Where the modules are, and their parameters: what the simulator's schedulers are told of the drive, and what was given.
fn modules(arguments: &LinuxArguments, device: &RunConfig) -> Result<Option<(PathBuf, String)>, Failure> {
    let wanted: Vec<&String> =
        arguments.schedulers.iter().filter(|scheduler| scheduler.starts_with(MODULE)).collect();
    let Some(first) = wanted.first() else {
        return match arguments.module_parameter.first() {
            Some(given) => Err(Failure::usage(format!(
                "--module-parameter: found '{given}' and no scheduler that is a module; allowed: with one of those that begin with {MODULE}"
            ))),
            None => Ok(None),
        };
    };
    let directory = match &arguments.modules {
        Some(directory) => directory.clone(),
        None => {
            first_of(built("kernel"), |place| place.join(format!("{first}.ko")).is_file()).ok_or_else(|| {
                Failure::usage(format!(
                    "--modules: target/kernel has no {first}.ko; `make kernel KERNEL=target/linux/source` builds it"
                ))
            })?
        }
    };
    for scheduler in wanted {
        let file = directory.join(format!("{scheduler}.ko"));
        if !file.is_file() {
            return Err(Failure::usage(format!(
                "--modules: {} is not there; `make kernel KERNEL=target/linux/source` builds it",
                file.display()
            )));
        }
    }
    let mut parameters = KernelParameters::of(device)?.to_string();
    for given in &arguments.module_parameter {
        let (name, value) = pair("module-parameter", given)?;
        if !PARAMETERS.contains(&name.as_str()) {
            return Err(names::unknown("parameter of a scheduler's module", &name, PARAMETERS).into());
        }
        let is_taken = name == REGION_SIZE
            && arguments.schedulers.iter().any(|other| other.starts_with(MODULE) && other != PASS);
        if is_taken {
            return Err(Failure::usage(format!(
                "--module-parameter: found {REGION_SIZE}, which only {PASS} has; allowed: where no other module runs"
            )));
        }
        if value.contains(char::is_whitespace) || value.is_empty() {
            return Err(Failure::usage(format!(
                "--module-parameter: found '{given}'; allowed: NAME=VALUE without blanks"
            )));
        }
        // The kernel takes the last of equal ones.
        parameters = format!("{parameters} {name}={value}");
    }
    Ok(Some((directory, parameters)))
}

const PASS: &str = "planewise-pass";
const REGION_SIZE: &str = "region_size";
/// Parameters that modules have (kernel/README.md): the kernel would pass over others in silence.
const PARAMETERS: [&str; 10] = [
    "channels",
    "chips_per_channel",
    "dies_per_chip",
    "planes_per_die",
    "chunk_bytes",
    "level",
    "order",
    "chip_region_bytes",
    "writes_stay",
    REGION_SIZE,
];

fn root(arguments: &LinuxArguments) -> Result<(PathBuf, bool), Failure> {
    let directory = match &arguments.root {
        Some(directory) => directory.clone(),
        None => first_of(built("linux-root"), |place| place.join(STAMP).is_file()).ok_or_else(|| {
            Failure::usage(
                "--root: target/linux-root is not there; `make linux-root` makes it, or --root / takes this machine's own (results then move with its files)",
            )
        })?,
    };
    let failed = |problem: String| Failure::usage(format!("--root {}: {problem}", directory.display()));
    let root = directory.canonicalize().map_err(|error| failed(error.to_string()))?;
    if !root.join("bin/sh").exists() {
        return Err(failed("has no bin/sh; allowed: a tree of a Linux system".into()));
    }
    let is_frozen = root.join(STAMP).is_file();
    Ok((root, is_frozen))
}

fn size(
    arguments: &LinuxArguments,
    recipe: Option<&Recipe>,
    file_system: FileSystem,
    profile: &Profile,
) -> Result<u64, Failure> {
    let capacity = profile.user_capacity().0;
    let own = match recipe {
        Some(recipe) => bytes(&recipe.size).map_err(Failure::usage)?,
        None => 8 << 30,
    };
    match arguments.size {
        Some(size) if file_system == FileSystem::None => Err(Failure::usage(format!(
            "--size: found {size} with no file system; allowed: with --file-system ext4, xfs or f2fs"
        ))),
        Some(size) if size > capacity => Err(Failure::usage(format!(
            "--size: found {size}; allowed: up to {capacity} bytes, those of {}",
            profile.name
        ))),
        Some(size) => Ok(size),
        None => Ok(own.min(capacity)),
    }
}

fn check_memory(memory: u64) -> Result<(), Failure> {
    const LEAST: u64 = 128 << 20;
    match memory < LEAST {
        true => Err(Failure::usage(format!("--memory: found {memory}; allowed: {LEAST} bytes or more"))),
        false => Ok(()),
    }
}

/// A word for titles and directories.
fn name(arguments: &LinuxArguments) -> String {
    let word = match &arguments.recipe {
        Some(recipe) => recipe.trim_end_matches(".toml"),
        None => arguments.command.first().map_or("", String::as_str),
    };
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

fn options(
    arguments: &LinuxArguments,
    tags: u32,
    memory: u64,
    file_system: FileSystem,
    size: u64,
) -> BTreeMap<String, String> {
    let list = |values: &[String]| values.join(",");
    let path =
        |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let words: Vec<String> = arguments.command.iter().map(|word| quoted(word)).collect();
    let seeds: Vec<String> = arguments.seed.iter().map(u64::to_string).collect();
    let size = if file_system == FileSystem::None { String::new() } else { size.to_string() };
    let options = [
        (planewise_report::GUEST_COMMAND, words.join(" ")),
        ("recipe", arguments.recipe.clone().unwrap_or_default()),
        ("set", list(&arguments.set)),
        ("device", arguments.device.clone()),
        ("condition", arguments.condition.clone()),
        ("drives", arguments.drives.to_string()),
        ("tags", tags.to_string()),
        ("schedulers", list(&arguments.schedulers)),
        ("attribute", list(&arguments.attribute)),
        ("modules", path(&arguments.modules)),
        ("module-parameter", list(&arguments.module_parameter)),
        ("file-system", file_system.name().to_owned()),
        ("size", size),
        ("memory", memory.to_string()),
        ("syscall-ns", arguments.syscall_ns.to_string()),
        ("seed", list(&seeds)),
        ("root", path(&arguments.root)),
        ("kernel", path(&arguments.kernel)),
        ("share", path(&arguments.share)),
        ("check", arguments.check.to_string()),
    ];
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The recipes, as `--recipes` lists them.
pub fn list() -> Result<String, Failure> {
    let mut text = String::new();
    for (name, _) in EMBEDDED {
        let recipe = Recipe::embedded(name).map_err(Failure::usage)?;
        text += &format!("{name:16} {}\n", recipe.summary);
        for (parameter, of) in &recipe.parameters {
            text += &format!("{:16}   {parameter}={}: {}\n", "", of.default, of.meaning);
        }
    }
    Ok(text)
}
