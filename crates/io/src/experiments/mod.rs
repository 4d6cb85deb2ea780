//! Experiments of the paper "Internal parallelism of flash memory-based solid-state drives" (ACM TOS 12(3), 2016, sections 6 and 9)
//! on any target.
//!
//! Each is a list of [`Step`]s: writes that prepare, rests, and measurements, which are closed-loop jobs with labels. [`run`]
//! takes the steps one after another on one target and returns the results of its measurements.
//!
//! Deviations, of all of them: a measurement takes 2 s instead of 30 s unless told otherwise, and what is written beforehand is the area
//! that the experiment uses instead of the whole device.

mod conditioning;
mod grid;
mod interference;
mod layouts;
mod options;
mod prepare;
mod run;
mod streams;

pub use options::{KEYS, Options};
pub use prepare::{Area, Writes, reading_rate};
pub use run::{Done, run};

use crate::TargetInfo;
use planewise_model::names::{self, UnknownName};
use planewise_model::{Bytes, Ns};
use planewise_workload::jobs::JobFile;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// An experiment.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Figures and tables of the paper.
    pub source: &'static str,
    /// Sizes of requests that it has when none are given, bytes.
    pub sizes: &'static [u32],
    /// Names of the options that it has; the others have no effect on it.
    pub keys: &'static [&'static str],
    /// Whether it writes with these options.
    pub writes: fn(&Options) -> bool,
    /// Its steps on a target.
    pub steps: fn(&Options, &TargetInfo) -> Result<Vec<Step>, String>,
}

/// All of them.
pub static EXPERIMENTS: [&Experiment; 5] = [
    &grid::EXPERIMENT,
    &interference::EXPERIMENT,
    &streams::EXPERIMENT,
    &layouts::EXPERIMENT,
    &conditioning::EXPERIMENT,
];

/// Looks up an experiment.
///
/// # Errors
/// It is unknown.
pub fn find(name: &str) -> Result<&'static Experiment, UnknownName> {
    let known = || EXPERIMENTS.iter().map(|experiment| experiment.name);
    let found = EXPERIMENTS.iter().copied().find(|experiment| experiment.name == name);
    found.ok_or_else(|| names::unknown("experiment", name, known().collect::<Vec<_>>()))
}

/// A step of an experiment.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes that are not measured.
    Write(Writes),
    /// Nothing, for some time.
    Rest(Ns),
    /// Jobs that are measured.
    Measure(Measurement),
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What tells it from the others of the experiment.
    pub labels: BTreeMap<String, String>,
    /// The jobs.
    pub jobs: JobFile,
    /// Requests of all jobs in flight.
    pub in_flight: u32,
    /// How long it takes.
    pub time: Ns,
    /// First byte behind what it writes; 0 when it only reads.
    pub writes_to: u64,
}

/// A pattern of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Reads in order.
    Read,
    /// Reads anywhere.
    RandomRead,
    /// Writes in order.
    Write,
    /// Writes anywhere.
    RandomWrite,
}

impl Pattern {
    /// All, as the paper lists them.
    pub const ALL: [Pattern; 4] = [Pattern::Read, Pattern::RandomRead, Pattern::Write, Pattern::RandomWrite];

    /// As fio calls it.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Read => "read",
            Pattern::RandomRead => "randread",
            Pattern::Write => "write",
            Pattern::RandomWrite => "randwrite",
        }
    }

    /// As the paper calls it.
    pub fn words(self) -> &'static str {
        match self {
            Pattern::Read => "sequential read",
            Pattern::RandomRead => "random read",
            Pattern::Write => "sequential write",
            Pattern::RandomWrite => "random write",
        }
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        matches!(self, Pattern::Write | Pattern::RandomWrite)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == text).ok_or_else(|| {
            let known = Pattern::ALL.map(Pattern::name);
            let hint = names::nearest(text, known).map(|name| format!(" (did you mean '{name}'?)"));
            format!("{}; found '{text}'{}", known.join(", "), hint.unwrap_or_default())
        })
    }
}

/// A job of a measurement.
#[derive(Clone, Copy, Debug)]
struct JobPlan {
    pattern: Pattern,
    size: u32,
    /// Requests in flight of each process.
    depth: u32,
    /// Processes, each on an area of its own behind the one before.
    processes: u32,
    area: Area,
}

impl JobPlan {
    fn new(pattern: Pattern, size: u32, depth: u32, area: Area) -> JobPlan {
        JobPlan { pattern, size, depth, processes: 1, area }
    }
}

/// A measurement of jobs that run side by side for the time of the options.
fn measure(labels: &[(&str, String)], jobs: &[JobPlan], options: &Options) -> Result<Measurement, String> {
    let mut text = String::new();
    for (number, job) in jobs.iter().enumerate() {
        let JobPlan { pattern, size, depth, processes, area } = job;
        let name =
            if jobs.len() == 1 { pattern.name().to_owned() } else { format!("{pattern}-{}", number + 1) };
        text += &format!(
            "[job.{name}]\nrw = \"{pattern}\"\nbs = \"{size}\"\niodepth = \"{depth}\"\nnumjobs = \"{processes}\"\n\
             offset = \"{}\"\nsize = \"{}\"\noffset_increment = \"{}\"\nruntime = \"{}ns\"\ntime_based = \"1\"\n\
             norandommap = \"1\"\nrandseed = \"{}\"\n",
            area.start,
            area.length,
            area.length,
            options.time.0,
            number + 1
        );
    }
    let writers = jobs.iter().filter(|job| job.pattern.writes());
    let last = |job: &JobPlan| job.area.start + job.area.length * u64::from(job.processes);
    Ok(Measurement {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        jobs: JobFile::parse(&text, "experiment.toml").map_err(|error| error.to_string())?,
        in_flight: jobs.iter().map(|job| job.depth * job.processes).sum(),
        time: options.time,
        writes_to: writers.map(last).max().unwrap_or(0),
    })
}

/// Steps in the making: areas are written again before they are read when somebody wrote to them since.
struct Steps<'a> {
    options: &'a Options,
    steps: Vec<Step>,
    /// The part that was filled and not written to since.
    clean: Option<Area>,
}

/// Bytes of a request that fills (section 4.2).
const FILL_BYTES: u32 = 256 << 10;

impl<'a> Steps<'a> {
    fn new(options: &'a Options) -> Steps<'a> {
        Steps { options, steps: Vec::new(), clean: None }
    }

    /// Writes an area in order and rests, unless that was the last that happened to it.
    fn fill(&mut self, area: Area) {
        if self.options.fill && self.clean != Some(area) {
            self.steps.push(Step::Write(Writes::Fill { area, size: FILL_BYTES }));
            self.rest();
            self.clean = Some(area);
        }
    }

    fn write(&mut self, writes: Writes) {
        self.steps.push(Step::Write(writes));
        self.clean = None;
    }

    fn rest(&mut self) {
        if self.options.pause > Ns::ZERO {
            self.steps.push(Step::Rest(self.options.pause));
        }
    }

    fn measure(&mut self, labels: &[(&str, String)], jobs: &[JobPlan]) -> Result<(), String> {
        let measurement = measure(labels, jobs, self.options)?;
        if measurement.writes_to > 0 {
            self.clean = None;
        }
        self.steps.push(Step::Measure(measurement));
        Ok(())
    }
}

/// The area of the options, if it has room on the target `times` over.
fn area(options: &Options, target: &TargetInfo, times: u64) -> Result<Area, String> {
    let length = options.area.0;
    if length.checked_mul(times).is_none_or(|all| all > target.capacity.0) {
        let share = Bytes(target.capacity.0 / times);
        let parts = if times == 1 { String::new() } else { format!(" {times} times over") };
        return Err(format!(
            "area: found {}; allowed: up to {share} (set area to that, or less), so that it has room{parts} on {} of {}",
            options.area, target.name, target.capacity
        ));
    }
    Ok(Area { start: 0, length })
}

/// The values of a list, or those of the experiment.
fn or<T: Clone>(given: &[T], own: &[T]) -> Vec<T> {
    if given.is_empty() { own.to_vec() } else { given.to_vec() }
}

/// Sizes that the target can take.
fn sizes(options: &Options, own: &[u32], target: &TargetInfo) -> Result<Vec<u32>, String> {
    let allowed = |size: &u32| {
        size.is_multiple_of(target.block_bytes) && u64::from(*size) <= target.longest.0.min(options.area.0)
    };
    if let Some(wrong) = options.sizes.iter().find(|size| !allowed(size)) {
        return Err(format!(
            "sizes: found {wrong}; allowed: multiples of the target's blocks of {} bytes up to {}",
            target.block_bytes,
            target.longest.min(options.area)
        ));
    }
    // Sizes of the experiment's own that this target cannot take are left out.
    let sizes: Vec<u32> = or(&options.sizes, own).into_iter().filter(|size| allowed(size)).collect();
    if sizes.is_empty() {
        return Err(format!(
            "sizes: found none left of the experiment's own ({}); allowed: multiples of the target's blocks of {} bytes up to {} \
             (the target's longest operation, or area)",
            own.iter().map(|&size| short(size)).collect::<Vec<_>>().join(", "),
            target.block_bytes,
            target.longest.min(options.area)
        ));
    }
    Ok(sizes)
}

/// Sizes of an experiment's own that are left out with these options on this target, as fio writes them.
pub fn left_out(experiment: &Experiment, options: &Options, target: &TargetInfo) -> Vec<String> {
    if !options.sizes.is_empty() {
        return Vec::new();
    }
    let kept = sizes(options, experiment.sizes, target).unwrap_or_default();
    experiment.sizes.iter().filter(|size| !kept.contains(size)).map(|&size| short(size)).collect()
}

/// A number of bytes as fio writes it: 4k.
fn short(bytes: u32) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests;
