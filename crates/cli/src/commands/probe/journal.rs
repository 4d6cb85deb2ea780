//! The directory of a probe: what is found there, and what is kept after every stage.

use crate::failure::{Failure, Kind};
use planewise_io::probe::Findings;
use planewise_io::probe::file::{self, FileError, ProbeFile, Status};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a finished probe adds: gone as soon as another begins, so that nothing stale looks whole.
const OF_A_FINISHED_ONE: [&str; 2] = ["profile.toml", "report.html"];

/// A probe's directory, with what its file holds.
pub struct Journal {
    directory: PathBuf,
    kept: ProbeFile,
}

/// What the directory held before.
pub enum Before {
    /// No probe.
    Nothing,
    /// A finished one of the same, which is replaced.
    Finished,
    /// An unfinished one of the same, which goes on.
    Unfinished(Box<ProbeFile>),
}

/// Whether the directory was named by the user, and whether he wants to begin anew.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// By `--out`.
    pub named: bool,
    /// By `--force`.
    pub force: bool,
}

impl Journal {
    /// Claims the directory for a probe that begins as `new`.
    ///
    /// # Errors
    /// It holds something else, another probe, a damaged file, or, named by the user, a finished one, and he does not want to begin anew;
    /// it cannot be written.
    pub fn open(directory: &Path, new: ProbeFile, wish: Wish) -> Result<(Journal, Before), Failure> {
        let path = directory.join(file::NAME);
        create(directory)?;
        let found = match ProbeFile::read(&path) {
            _ if wish.force => path.exists().then_some(Before::Finished),
            Err(error) => return Err(refused(error)),
            Ok(None) => None,
            Ok(Some(found)) => Some(before(found, &new, &path, wish)?),
        };
        let Some(before) = found else {
            check_empty(directory)?;
            let journal = Journal { directory: directory.to_owned(), kept: new };
            journal.save()?;
            return Ok((journal, Before::Nothing));
        };
        let mut journal = Journal { directory: directory.to_owned(), kept: new };
        if let Before::Unfinished(file) = &before {
            journal.kept.findings = file.findings.clone();
        } else {
            journal.remove_what_finished()?;
        }
        journal.save()?;
        Ok((journal, before))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What its file holds.
    pub fn kept(&self) -> &ProbeFile {
        &self.kept
    }

    /// Keeps what was found up to the end of a stage.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, findings: &Findings) -> Result<(), Failure> {
        self.kept.findings = findings.clone();
        self.save()
    }

    /// Notes how it ended; the file says so once it is saved.
    pub fn mark(&mut self, status: Status, problem: String) {
        self.kept.status = status;
        self.kept.problem = problem;
    }

    /// Writes a file beside the probe's, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, name: &str, content: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        let (whole, mut file) = crate::output::WholeFile::create(&path, true)?;
        io::Write::write_all(&mut file, content.as_bytes())
            .and_then(|()| io::Write::flush(&mut file))
            .map_err(|error| Failure::output(format!("{}: cannot write: {error}", path.display())))?;
        whole.settle()
    }

    /// Writes the probe's file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self) -> Result<(), Failure> {
        self.kept.write(&self.directory.join(file::NAME)).map_err(Failure::output)
    }

    fn remove_what_finished(&self) -> Result<(), Failure> {
        for name in OF_A_FINISHED_ONE {
            let path = self.directory.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::output(format!("{}: cannot remove: {error}", path.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn before(found: ProbeFile, new: &ProbeFile, path: &Path, wish: Wish) -> Result<Before, Failure> {
    found.check_same(new, path).map_err(refused)?;
    match found.status {
        Status::Complete if wish.named => Err(Failure::output(format!(
            "{}: is of a finished probe; choose another directory, or begin anew with --force",
            path.display()
        ))),
        Status::Complete => Ok(Before::Finished),
        _ => Ok(Before::Unfinished(Box::new(found))),
    }
}

fn refused(error: FileError) -> Failure {
    let kind = if matches!(error, FileError::Io { .. }) { Kind::Output } else { Kind::Usage };
    Failure::new(kind, format!("{error}; choose another directory with --out, or begin anew with --force"))
}

fn create(directory: &Path) -> Result<(), Failure> {
    if directory.is_file() {
        return Err(Failure::output(format!("{}: is a file; name a directory", directory.display())));
    }
    fs::create_dir_all(directory).map_err(|error| {
        Failure::output(format!("{}: cannot create the directory: {error}", directory.display()))
    })
}

/// Refuses a directory that holds something else.
fn check_empty(directory: &Path) -> Result<(), Failure> {
    let refused =
        |error: io::Error| Failure::output(format!("{}: cannot list it: {error}", directory.display()));
    for entry in fs::read_dir(directory).map_err(refused)? {
        // A probe that was killed while it wrote its first file leaves this.
        if entry.map_err(refused)?.file_name() != format!(".{}.partial", file::NAME).as_str() {
            return Err(Failure::output(format!(
                "{}: is not empty and holds no probe (no {} in it); choose another directory",
                directory.display(),
                file::NAME
            )));
        }
    }
    Ok(())
}
