//! Job files: TOML with fio's options as keys, or fio's own format.

use super::check::{Job, Settings};
use super::options::{Support, find};
use super::process::Jobs;
use super::section::{Given, Level, Section, check_names, named, place};
use super::{classic, tables};
use crate::error::WorkloadError;

/// Requests in flight of all jobs together at most: each holds memory of the host, on a real machine as here.
pub const IN_FLIGHT_MAX: u64 = 1 << 20;

/// Options of jobs, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// The profile that the file names as its target.
    pub profile: Option<String>,
    /// The file's name; nothing for jobs of a command line.
    origin: Option<String>,
    /// Jobs in the order of the file, each with what is said of all.
    jobs: Vec<Section>,
}

impl JobFile {
    /// One job of options from a command line.
    pub fn single(name: &str) -> JobFile {
        let job = Section { name: name.to_owned(), line: None, options: Vec::new() };
        JobFile { profile: None, origin: None, jobs: vec![job] }
    }

    /// Reads a file: fio's own format when its name ends in `.fio` or `.ini`, TOML when it ends in `.toml`, and otherwise what
    /// it looks like.
    ///
    /// # Errors
    /// Syntax, with the line; unknown sections; no job; a job or an option twice.
    pub fn parse(text: &str, origin: &str) -> Result<JobFile, WorkloadError> {
        let is_classic = origin.ends_with(".fio")
            || origin.ends_with(".ini")
            || !origin.ends_with(".toml") && !tables::is_likely(text) && classic::is_likely(text);
        let (profile, jobs) =
            if is_classic { (None, classic::parse(text, origin)?) } else { tables::parse(text, origin)? };
        if jobs.is_empty() {
            let section = if is_classic { "[NAME]" } else { "[job.NAME]" };
            return Err(WorkloadError::File(format!("{origin}: no job; allowed: one or more of {section}")));
        }
        check_names(&jobs, origin)?;
        Ok(JobFile { profile, origin: Some(origin.to_owned()), jobs })
    }

    /// Gives all jobs an option, over what the file says.
    ///
    /// # Errors
    /// The option is unknown, or has no meaning here.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        let unknown = |name| WorkloadError::Unknown { place: None, job: None, name: Box::new(name) };
        let entry = find(key).map_err(unknown)?;
        if let Support::Refused(allowed) = entry.support {
            let (key, found) = (key.to_owned(), format!("'{value}'"));
            return Err(WorkloadError::Option {
                place: None,
                job: None,
                key,
                found,
                allowed: allowed.to_owned(),
            });
        }
        for job in &mut self.jobs {
            // What is said last wins; what is left unsaid need not be contradicted.
            job.options.retain(|other| named(&other.key) != entry.name);
            let (key, value) = (entry.name.to_owned(), value.to_owned());
            job.options.push(Given { key, value, level: Level::Command, line: None });
        }
        Ok(())
    }

    /// The jobs, checked against a device of so many bytes.
    ///
    /// # Errors
    /// Unknown options, values that are not allowed, options that contradict one another, more in flight than
    /// [`IN_FLIGHT_MAX`].
    pub fn resolve(&self, device_bytes: u64) -> Result<Vec<Job>, WorkloadError> {
        let mut in_flight = 0;
        let one = |section: &Section| {
            let located = |error| self.located(error, section);
            let job = job(section, device_bytes).map_err(located)?;
            let own = u64::from(job.depth) * u64::from(job.processes);
            in_flight += own;
            if in_flight > IN_FLIGHT_MAX {
                let found = format!(
                    "{} for each of {} processes, {in_flight} of all jobs so far",
                    job.depth, job.processes
                );
                let allowed = format!("up to {IN_FLIGHT_MAX} requests in flight of all jobs together");
                return Err(located(WorkloadError::option(&section.name, "iodepth", found, allowed)));
            }
            Ok(job)
        };
        self.jobs.iter().map(one).collect()
    }

    /// Says where in the file the option stands that an error is about, or else its job.
    fn located(&self, error: WorkloadError, section: &Section) -> WorkloadError {
        let Some(origin) = &self.origin else { return error };
        let key = match &error {
            WorkloadError::Option { key, .. } => key,
            WorkloadError::Unknown { name, .. } => &name.found,
            WorkloadError::File(_) => return error,
        };
        let given = section.options.iter().find(|given| named(&given.key) == named(key));
        match given {
            Some(given) if given.level == Level::Command => error,
            Some(given) => error.at(place(origin, given.line)),
            None => error.at(place(origin, section.line)),
        }
    }

    /// What to tell the user about options that were accepted and change nothing.
    pub fn notes(&self) -> Vec<String> {
        let mut idle: Vec<&str> = Vec::new();
        for given in self.jobs.iter().flat_map(|job| &job.options) {
            if let Ok(entry) = find(&given.key)
                && matches!(entry.support, Support::Noted)
                && !idle.contains(&entry.name)
            {
                idle.push(entry.name);
            }
        }
        if idle.is_empty() {
            return Vec::new();
        }
        let idle = idle.join(", ");
        vec![format!(
            "without effect here: {idle}; jobs work on areas of the simulated device, which offset and size choose"
        )]
    }

    /// The processes of the jobs.
    ///
    /// # Errors
    /// As [`JobFile::resolve`].
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Jobs, WorkloadError> {
        Ok(Jobs::new(self.resolve(device_bytes)?, seed))
    }

    /// The whole as TOML, with nothing left to be looked up elsewhere.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for job in &self.jobs {
            text += &format!("[job.{}]\n", toml::Value::from(job.name.as_str()));
            for given in &job.options {
                text += &format!("{} = {}\n", given.key, toml::Value::from(given.value.as_str()));
            }
        }
        text
    }
}

fn job(section: &Section, device_bytes: u64) -> Result<Job, WorkloadError> {
    let name = section.name.as_str();
    let mut settings = Settings::default();
    for Given { key, value, level, .. } in &section.options {
        let unknown =
            |found| WorkloadError::Unknown { place: None, job: Some(name.to_owned()), name: Box::new(found) };
        let refuse = |allowed: String| {
            // What a parser says ends in what it found, so that nested values are told as they are.
            let (allowed, found) = match allowed.rsplit_once("; found ") {
                Some((allowed, found)) => (allowed.to_owned(), found.to_owned()),
                None => (allowed, format!("'{value}'")),
            };
            WorkloadError::option(name, key, found, allowed)
        };
        let entry = find(key).map_err(unknown)?;
        match entry.support {
            Support::Used(set) => set(&mut settings, value).map_err(refuse)?,
            Support::Harmless | Support::Noted => {}
            Support::Refused(allowed) => return Err(refuse(allowed.to_owned())),
        }
        settings.levels.push((entry.name, *level));
    }
    settings.give_way();
    settings.resolve(name, device_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 1 << 30;

    fn jobs(text: &str, origin: &str) -> Vec<Job> {
        JobFile::parse(text, origin).unwrap().resolve(DEVICE).unwrap()
    }

    fn refused(text: &str, origin: &str) -> String {
        let jobs = JobFile::parse(text, origin).and_then(|file| file.resolve(DEVICE));
        jobs.err().unwrap_or_else(|| panic!("accepted: {text}")).to_string()
    }

    #[test]
    fn what_is_said_of_all_gives_way_to_what_a_job_says_of_itself() {
        let text = "[global]\nrw=randrw\nrwmixread=30\nbs=8k\niodepth=32\nthinktime_blocks=4\nrandom_distribution=zipf:1.2\n\
                    [reader]\nrw=randread\nbsrange=4k-64k\n[one]\nioengine=psync\n[plain]\nrw=read\n";
        let all = jobs(text, "a.fio");
        assert_eq!(all[0].share, crate::jobs::Share::Only(crate::jobs::Kind::Read));
        assert_eq!(all[0].sizes[0], crate::jobs::Sizes::Range(4096, 65_536));
        assert_eq!((all[0].depth, all[1].depth, all[2].depth), (32, 1, 32));
        assert_eq!(all[1].share, crate::jobs::Share::Reads(30.0));
        assert!(!all[2].random);
        for (text, words) in [
            ("[global]\nrw=read\nrwmixread=30\n[a]\n", "a.fio:3: job 'a': rwmixread"),
            ("[a]\nrw=read\n\nrwmixread=30\n", "a.fio:4: job 'a': rwmixread"),
            ("[a]\nbs=4k\nbsrange=4k-8k\n", "a.fio:3: job 'a': bsrange"),
            ("[a]\nioengine=sync\niodepth=8\n", "a.fio:3: job 'a': iodepth"),
        ] {
            let error = refused(text, "a.fio");
            assert!(error.starts_with(words), "{error}");
        }
        let mut file = JobFile::parse("[a]\nbsrange=4k-8k\n", "a.fio").unwrap();
        file.set("bs", "16k").unwrap();
        assert_eq!(file.resolve(DEVICE).unwrap()[0].sizes[0], crate::jobs::Sizes::Fixed(16_384));
    }

    #[test]
    fn files_of_fio_have_comments_behind_values_a_byte_order_mark_and_any_name() {
        let text = "\u{feff}; jobs\n[global] # all\nrw=randread ; random\nbs=8k#eight\n[a]\nnumjobs=2\n";
        let file = crate::Definition::parse(text, "jobs.txt").unwrap();
        let crate::Definition::Jobs(file) = file else { panic!() };
        let all = file.resolve(DEVICE).unwrap();
        assert_eq!((all[0].processes, all[0].random, all[0].smallest()), (2, true, 8192));
        assert_eq!(jobs("[job.a]\nbs = 512 # a sector\n", "jobs.txt")[0].smallest(), 512);
        assert_eq!(jobs("[a]\niodepth=4\n", "jobs.txt")[0].depth, 4);
    }

    #[test]
    fn errors_name_the_line_and_what_this_syntax_allows() {
        for (text, origin, words) in [
            ("[global\nrw=read\n", "a.fio", &["a.fio:1", "[global", "in brackets"][..]),
            ("", "a.fio", &["a.fio", "no job", "[NAME]"]),
            ("", "a.toml", &["a.toml", "no job", "[job.NAME]"]),
            ("[a]\nrw=randraed\n", "a.fio", &["a.fio:2: job 'a'", "'randraed'", "did you mean 'randread'"]),
            ("[a]\nioengine=libio\n", "a.fio", &["a.fio:2", "did you mean 'libaio'"]),
            ("[job.b]\n[job.a]\n\niodpeth = 4\n", "a.toml", &["a.toml:4: job 'a'", "did you mean 'iodepth'"]),
            (
                "[a]\nbs=4k\nblocksize=8k\n",
                "a.fio",
                &["a.fio:3", "blocksize", "second time", "after bs at line 2"],
            ),
            (
                "[job.a]\nbs='4k'\nblocksize='8k'\n",
                "a.toml",
                &["a.toml:3", "blocksize", "second time", "line 2"],
            ),
            ("[a]\n[b]\n[a]\n", "a.fio", &["a.fio:3", "'a' a second time", "line 1"]),
            ("[a]\niodepth=4096\nnumjobs=257\n", "a.fio", &["a.fio:2: job 'a': iodepth", "1048576"]),
            ("[global]\niodepth=4096\nnumjobs=200\n[a]\n[b]\n", "a.fio", &["job 'b': iodepth", "1048576"]),
            ("[a]\nthinktime=10000d\n", "a.fio", &["a.fio:2", "thinktime", "365d"]),
            ("[a]\nfsnyc=1\n", "a.fio", &["a.fio:2", "'fsnyc'", "did you mean 'fsync'"]),
            ("[a]\nverfiy=1\n", "a.fio", &["a.fio:2", "'verfiy'"]),
            ("[a]\nfsync=-1\n", "a.fio", &["a.fio:2: job 'a': fsync: found '-1'", "0 or more"]),
            ("[a]\nsync=often\n", "a.fio", &["sync: found 'often'", "none, 0, sync, 1, dsync"]),
            ("[a]\nrw=rantrim\n", "a.fio", &["'rantrim'", "did you mean 'randtrim'"]),
            (
                "[a]\nrw=trimwrite\nbs=4k,8k,16k\n",
                "a.fio",
                &["a.fio:3: job 'a': bs: found other sizes of writes than of trims", "one for both"],
            ),
            ("[a]\nrw=trim\nrwmixread=20\n", "a.fio", &["a.fio:3", "rwmixread", "rw=rw or rw=randrw"]),
            ("[a]\ntrim_percentage=20\n", "a.fio", &["a.fio:2", "trim_percentage", "randtrim"]),
        ] {
            let error = refused(text, origin);
            for word in words {
                assert!(error.contains(word), "no {word}: {error}");
            }
            assert!(!error.contains("mean 'verify'"), "what is refused is not suggested: {error}");
        }
    }

    #[test]
    fn options_of_files_are_accepted_with_a_note() {
        let file =
            JobFile::parse("[a]\nfilename=/dev/nvme0n1\nlockmem=1g\niodepth_batch_complete_max=8\n", "a.fio")
                .unwrap();
        assert!(file.resolve(DEVICE).is_ok());
        let notes = file.notes();
        assert!(notes.len() == 1 && notes[0].contains("filename, lockmem; "), "{notes:?}");
    }

    #[test]
    fn jobs_of_toml_keep_the_order_of_the_file() {
        let names: Vec<String> =
            jobs("[job.b]\n[job.a]\nstonewall=1\n", "x.toml").into_iter().map(|job| job.name).collect();
        assert_eq!(names, ["b", "a"]);
    }
}
