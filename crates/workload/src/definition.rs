//! What a user names as a workload, with its options still as text, so that one of them can be varied.

use crate::Workload;
use crate::error::WorkloadError;
use crate::jobs::{self, Job, JobFile, Kind};
use crate::models::{self, Model};
use planewise_model::Ns;

/// A workload before it meets a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// Jobs with fio's options.
    Jobs(JobFile),
    /// A model of an application.
    Model(Model),
}

impl Definition {
    /// Reads the file of a model, which has a key `model`, or of jobs.
    ///
    /// # Errors
    /// As [`Model::parse`] and [`JobFile::parse`].
    pub fn parse(text: &str, origin: &str) -> Result<Definition, WorkloadError> {
        // Some editors begin a file with a byte order mark, which no syntax here knows.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if models::is_model(text) {
            Ok(Definition::Model(Model::parse(text, origin)?))
        } else {
            Ok(Definition::Jobs(JobFile::parse(text, origin)?))
        }
    }

    /// Names of all workloads in the program: application models, then job files.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        models::EMBEDDED.iter().chain(jobs::EMBEDDED).map(|(name, _)| *name)
    }

    /// The text of a workload in the program.
    pub fn embedded_text(name: &str) -> Option<&'static str> {
        models::EMBEDDED.iter().chain(jobs::EMBEDDED).find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    /// Gives an option of all jobs another value.
    ///
    /// # Errors
    /// The option is unknown, or has no meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match self {
            Definition::Jobs(jobs) => jobs.set(key, value),
            Definition::Model(model) => model.set(key, value),
        }
    }

    /// The workload on a device of so many bytes.
    ///
    /// # Errors
    /// Values that are not allowed, that contradict one another, or that the device is too small for.
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        match self {
            Definition::Jobs(jobs) => Ok(Box::new(jobs.build(device_bytes, seed)?)),
            Definition::Model(model) => model.build(device_bytes, seed),
        }
    }

    /// What it asks of a device of so many bytes, so that a real one can be opened for it.
    ///
    /// # Errors
    /// As [`Definition::build`].
    pub fn needs(&self, device_bytes: u64) -> Result<Needs, WorkloadError> {
        match self {
            Definition::Jobs(jobs) => Ok(Needs::of_jobs(&jobs.resolve(device_bytes)?)),
            // Models lay their files out over the device, and all of them write.
            Definition::Model(_) => Ok(Needs {
                writes_to: Some((0, device_bytes)),
                trims: false,
                in_flight: None,
                largest: None,
                written: None,
                time: None,
            }),
        }
    }

    /// What to tell the user about options that were accepted and change nothing.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Definition::Jobs(jobs) => jobs.notes(),
            Definition::Model(_) => Vec::new(),
        }
    }

    /// Whether another asks for the same on a device of so many bytes, whatever words it has for it (4k, 4096).
    pub fn means_the_same(&self, other: &Definition, device_bytes: u64) -> bool {
        match (self, other) {
            (Definition::Jobs(one), Definition::Jobs(other)) => {
                let other = other.resolve(device_bytes);
                one.resolve(device_bytes).is_ok_and(|one| other.is_ok_and(|other| one == other))
            }
            (Definition::Model(one), Definition::Model(other)) => one.means_the_same(other),
            _ => false,
        }
    }

    /// The name of an option as results have it, whichever of its names was given.
    pub fn first_name<'a>(&self, key: &'a str) -> &'a str {
        match self {
            Definition::Jobs(_) => jobs::find(key).map_or(key, |entry| entry.name),
            Definition::Model(_) => key,
        }
    }

    /// The profile that it names as its target.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Definition::Jobs(jobs) => jobs.profile.as_deref(),
            Definition::Model(model) => model.profile.as_deref(),
        }
    }

    /// The whole as TOML.
    pub fn to_toml(&self) -> String {
        match self {
            Definition::Jobs(jobs) => jobs.to_toml(),
            Definition::Model(model) => model.to_toml(),
        }
    }
}

/// What a workload asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// First byte that it may write or trim, and the first behind the last; none when it only reads.
    pub writes_to: Option<(u64, u64)>,
    /// Whether it trims.
    pub trims: bool,
    /// Requests in flight at most, where that is known beforehand.
    pub in_flight: Option<u64>,
    /// Bytes of its largest request, where that is known beforehand.
    pub largest: Option<u32>,
    /// Bytes that it writes or trims at most, where that is known beforehand.
    pub written: Option<u64>,
    /// How long it takes, where that is known beforehand.
    pub time: Option<Ns>,
}

impl Needs {
    fn of_jobs(jobs: &[Job]) -> Needs {
        let writers = || jobs.iter().filter(|job| job.changes());
        let behind = |job: &Job| job.offset + u64::from(job.processes - 1) * job.offset_increment + job.size;
        let bounds = writers().map(|job| (job.offset, behind(job)));
        let written = |job: &Job| match job.bytes {
            u64::MAX => None,
            bytes => bytes.checked_mul(u64::from(job.processes)),
        };
        // Behind a stonewall jobs follow one another; all others run side by side.
        let (mut before, mut stage) = (Some(Ns::ZERO), Some(Ns::ZERO));
        for job in jobs {
            if job.stonewall {
                before = before.zip(stage.replace(Ns::ZERO)).map(|(before, stage)| before + stage);
            }
            let time = job.runtime.map(|runtime| job.delay + job.ramp_time + runtime);
            stage = stage.zip(time).map(|(stage, time)| stage.max(time));
        }
        Needs {
            writes_to: bounds.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))),
            trims: jobs.iter().any(|job| job.share.uses(Kind::Trim)),
            in_flight: Some(jobs.iter().map(|job| u64::from(job.depth) * u64::from(job.processes)).sum()),
            largest: jobs.iter().map(Job::largest).max(),
            written: writers().map(written).try_fold(0u64, |sum, bytes| sum.checked_add(bytes?)),
            time: before.zip(stage).map(|(before, stage)| before + stage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Needs {
        Definition::parse(text, "x.fio").unwrap().needs(1 << 30).unwrap()
    }

    #[test]
    fn a_device_is_opened_for_what_its_jobs_ask_of_it() {
        let readers = needs(
            "[a]\nrw=randread\niodepth=8\nruntime=3\ntime_based\n[b]\nrw=read\nnumjobs=4\nruntime=5\ntime_based\n",
        );
        assert_eq!((readers.writes_to, readers.in_flight), (None, Some(12)));
        assert_eq!((readers.time, readers.written), (Some(Ns(5_000_000_000)), Some(0)));
        assert_eq!(readers.largest, Some(4096));
        assert_eq!(needs("[a]\nrw=randrw\nbs=4k,64k\n").largest, Some(65_536));
        let writers = needs(
            "[a]\nrw=randrw\noffset=64m\nsize=16m\nruntime=3\n[b]\nstonewall\nrw=write\nnumjobs=2\noffset=1m\nsize=4m\noffset_increment=8m\nruntime=4\nramp_time=1\n",
        );
        assert_eq!(writers.writes_to, Some((1 << 20, 80 << 20)));
        assert_eq!(writers.written, Some((16 << 20) + 2 * (4 << 20)));
        assert_eq!(writers.time, Some(Ns(8_000_000_000)));
        assert_eq!(needs("[a]\nrw=write\n").time, None);
        assert_eq!(needs("[a]\nrw=write\ntime_based\nruntime=1\n").written, None);
    }
}
