//! Runs the commands of studies, several at a time, each as a process of this program: one that fails takes nothing with it.

use super::kept::{Entry, Kept};
use crate::failure::{Failure, Kind};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a running command is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// Commands that take `--jobs`: they are told to leave the other cores to the other commands.
const WITH_JOBS: [&str; 3] = ["compare", "run", "bench"];

/// A command to run, once, however many studies want it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Words behind `planewise`.
    pub words: Vec<String>,
    /// Name of what it gives.
    pub key: String,
}

/// What came of a job.
pub type Printed = Result<(), String>;

/// Runs what is not kept yet.
pub struct Runner<'a> {
    /// Where results are kept.
    pub kept: &'a Kept,
    /// For what commands write besides.
    pub scratch: &'a Path,
    /// Commands at a time.
    pub threads: usize,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
}

impl Runner<'_> {
    /// Runs the jobs; `done` hears of each when it is done, with its place.
    ///
    /// # Errors
    /// Results that cannot be kept. A command that fails is in its result.
    pub fn run(
        &self,
        jobs: &[Job],
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<BTreeMap<String, Printed>, Failure> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(BTreeMap::new());
        let failure = Mutex::new(None::<Failure>);
        let worker = |number: usize| {
            while !self.stop.load(Ordering::Relaxed) {
                let place = next.fetch_add(1, Ordering::SeqCst);
                let Some(job) = jobs.get(place) else { break };
                match self.one(job, number) {
                    Ok(None) => break,
                    Ok(Some(printed)) => {
                        results
                            .lock()
                            .expect("nobody panics while holding the lock")
                            .insert(job.key.clone(), printed);
                        done(place);
                    }
                    Err(error) => {
                        *failure.lock().expect("nobody panics while holding the lock") = Some(error);
                        next.store(usize::MAX / 2, Ordering::SeqCst);
                        break;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let worker = &worker;
            for number in 0..self.threads.min(jobs.len()) {
                scope.spawn(move || worker(number));
            }
        });
        match failure.into_inner().expect("nobody panics while holding the lock") {
            Some(failure) => Err(failure),
            None => Ok(results.into_inner().expect("nobody panics while holding the lock")),
        }
    }

    /// One job; nothing when it was stopped.
    fn one(&self, job: &Job, number: usize) -> Result<Option<Printed>, Failure> {
        let place = self.scratch.join(number.to_string());
        let (printed, said) = (place.with_extension("json"), place.with_extension("txt"));
        let failed = |path: &Path, error: std::io::Error| {
            Failure::output(format!("{}: cannot write: {error}", path.display()))
        };
        // What another command wrote is none of this one's business, and none could go on from it.
        let _ = std::fs::remove_dir_all(&place);
        let program = std::env::current_exe().map_err(|error| failed(Path::new("this program"), error))?;
        let mut command = Command::new(program);
        command.args(&job.words).args(["--json", "--quiet", "--force"]).arg("--out").arg(&place);
        if job.words.first().is_some_and(|word| WITH_JOBS.contains(&word.as_str())) {
            command.args(["--jobs", "1"]);
        }
        command.stdin(Stdio::null());
        command.stdout(File::create(&printed).map_err(|error| failed(&printed, error))?);
        command.stderr(File::create(&said).map_err(|error| failed(&said, error))?);
        let Some(status) = self.wait(&mut command)? else { return Ok(None) };
        let words = std::fs::read_to_string(&said).unwrap_or_default();
        let last =
            words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
        if !status.success() {
            // A full disk is not the study's fault, and the next command would fail alike.
            if status.code() == Some(Kind::Output as i32) {
                return Err(Failure::output(last.trim_start_matches("error: ")));
            }
            return Ok(Some(Err(last.trim_start_matches("error: ").to_owned())));
        }
        let bytes = std::fs::read(&printed).map_err(|error| failed(&printed, error))?;
        if serde_json::from_slice::<serde_json::Value>(&bytes).is_err() {
            return Ok(Some(Err("it printed no JSON".to_owned())));
        }
        self.kept.put(&job.key, &bytes)?;
        Ok(Some(Ok(())))
    }

    /// Waits for a command; one that is under way when Ctrl-C comes is ended, and gives nothing.
    fn wait(&self, command: &mut Command) -> Result<Option<ExitStatus>, Failure> {
        let started = |error: std::io::Error| {
            Failure::new(Kind::Run, format!("cannot run this program again: {error}"))
        };
        let mut child = command.spawn().map_err(started)?;
        loop {
            if let Some(status) = child.try_wait().map_err(started)? {
                let is_stopped = self.stop.load(Ordering::Relaxed) && !status.success();
                return Ok((!is_stopped).then_some(status));
            }
            if self.stop.load(Ordering::Relaxed) {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// What is kept of these commands, in their order; none when one is missing.
pub fn outputs(kept: &Kept, keys: &[&str]) -> Option<Vec<serde_json::Value>> {
    let whole = |key: &&str| match kept.find(key) {
        Entry::Whole(value) => Some(value),
        Entry::Absent | Entry::Damaged(_) => None,
    };
    keys.iter().map(whole).collect()
}

/// What such a directory is called, in front of the number of its process.
const RUNNING: &str = ".running-";

/// A directory for what commands write besides, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it inside a directory, where what processes left that were killed is removed.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(directory: &Path) -> Result<Scratch, Failure> {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(RUNNING)?.parse::<u32>().ok());
            if process.is_some_and(|process| {
                Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
            }) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let path = directory.join(format!("{RUNNING}{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::output(format!("{}: cannot create: {error}", path.display())))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
