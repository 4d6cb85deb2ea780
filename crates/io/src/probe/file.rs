//! `probe.json`: what a probe found, and how far it got, as a file that is whole after every stage.

use super::findings::{FORMAT, Findings, Subject};
use planewise_model::{Bytes, Ns};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the file in the directory of a probe.
pub const NAME: &str = "probe.json";

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeFile {
    /// [`FORMAT`].
    pub format: u32,
    /// The program and its version.
    pub generator: String,
    /// How far it got.
    pub status: Status,
    /// Why it failed; empty when it did not.
    pub problem: String,
    /// What a simulated device is; nothing of a real one.
    pub simulated: Option<Simulated>,
    /// The command that measures it.
    pub command: String,
    /// What was found.
    pub findings: Findings,
}

/// How far a probe got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It goes on, or was ended without a chance to say so.
    UnderWay,
    /// All stages are done.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// The target failed.
    Failed,
}

/// A simulated device: what decides what its probe finds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Its profile, as TOML.
    pub profile: String,
    /// What it went through before.
    pub condition: String,
}

/// Why the file of a probe cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It is no JSON, or not that of a probe.
    #[error("{}: is damaged or no file of a probe: {problem}", .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        problem: String,
    },
    /// Another version's.
    #[error("{}: found format {found}; allowed: format {FORMAT}, which this version reads and writes", .path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// Of something else.
    #[error("{}: is of another probe: {differences}", .path.display())]
    Other {
        /// Which.
        path: PathBuf,
        /// In what they differ.
        differences: String,
    },
}

impl ProbeFile {
    /// Reads the file; none when there is none.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or of another version.
    pub fn read(path: &Path) -> Result<Option<ProbeFile>, FileError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(FileError::Io { action: "read", path: path.to_owned(), source }),
        };
        let damaged = |error: serde_json::Error| FileError::Damaged {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        // The format first: in another one, nothing else needs to be as it is here.
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => {
                Err(FileError::Format { path: path.to_owned(), found })
            }
            _ => serde_json::from_slice(&text).map(Some).map_err(damaged),
        }
    }

    /// The file's content.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data under names are JSON") + "\n"
    }

    /// Writes it under a hidden name beside its place and renames it, so that there is always a whole one.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let partial = path.with_file_name(format!(".{NAME}.partial"));
        let write = || {
            let mut file = fs::File::create(&partial)?;
            file.write_all(self.to_json().as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, path)
        };
        write().map_err(|source| FileError::Io { action: "write", path: path.to_owned(), source })
    }

    /// Whether `self` can go on as `other`.
    ///
    /// # Errors
    /// In what they differ.
    pub fn check_same(&self, other: &ProbeFile, path: &Path) -> Result<(), FileError> {
        let differences = self.differences(other);
        if differences.is_empty() {
            return Ok(());
        }
        Err(FileError::Other { path: path.to_owned(), differences: differences.join(", ") })
    }

    fn differences(&self, other: &ProbeFile) -> Vec<String> {
        let (there, here) = (&self.findings.subject, &other.findings.subject);
        let bytes = |bytes: Bytes| bytes.to_string();
        let identity = |of: &Subject| of.identity.clone().unwrap_or_else(|| "unknown".to_owned());
        let simulated = |file: &ProbeFile, get: fn(&Simulated) -> &String| {
            file.simulated.as_ref().map_or_else(String::new, |simulated| get(simulated).clone())
        };
        let pairs = [
            ("target", there.target.clone(), here.target.clone()),
            ("kind", there.kind.clone(), here.kind.clone()),
            ("engine", there.engine.clone(), here.engine.clone()),
            ("identity", identity(there), identity(here)),
            ("program", there.version.clone(), here.version.clone()),
            ("capacity", bytes(there.capacity), bytes(here.capacity)),
            ("block size", there.block_bytes.to_string(), here.block_bytes.to_string()),
            ("depth", there.depth.to_string(), here.depth.to_string()),
            ("writes", there.writes.to_string(), here.writes.to_string()),
            ("quick", there.quick.to_string(), here.quick.to_string()),
            ("start", bytes(there.area_start), bytes(here.area_start)),
            ("area", bytes(there.area), bytes(here.area)),
            ("seed", there.seed.to_string(), here.seed.to_string()),
            ("condition", simulated(self, |of| &of.condition), simulated(other, |of| &of.condition)),
        ];
        let mut differences: Vec<String> = pairs
            .into_iter()
            .filter(|(_, there, here)| there != here)
            .map(|(what, there, here)| format!("its {what} is {there} and not {here}"))
            .collect();
        if differences.is_empty() && there != here {
            differences.push("its sizes differ by some bytes".to_owned());
        }
        if differences.is_empty() && self.simulated != other.simulated {
            differences.push("its device has another profile of the same name".to_owned());
        }
        differences
    }

    /// How long it took on the target's clock.
    pub fn time(&self) -> Ns {
        let seconds: f64 = self.findings.stages.iter().map(|stage| stage.seconds).sum();
        Ns((seconds * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Finding;

    fn file() -> ProbeFile {
        let subject = Subject { target: "sim:a".into(), area: Bytes(1 << 30), seed: 7, ..Subject::default() };
        let chunk = Finding::of(Bytes(4096), 0.123_456_789_012_345_6, "a \"z\"".into(), "why");
        let findings = Findings { format: FORMAT, subject, chunk: Some(chunk), ..Findings::default() };
        ProbeFile {
            format: FORMAT,
            generator: "planewise".into(),
            status: Status::UnderWay,
            problem: String::new(),
            simulated: Some(Simulated { profile: String::new(), condition: "filled".into() }),
            command: String::new(),
            findings,
        }
    }

    #[test]
    fn a_file_reads_back_as_it_was_written_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(ProbeFile::read(&path).unwrap(), None);
        file().write(&path).unwrap();
        assert_eq!(ProbeFile::read(&path).unwrap(), Some(file()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn damage_and_other_versions_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let whole = file().to_json();
        let said = |text: &str| {
            fs::write(&path, text).unwrap();
            ProbeFile::read(&path).unwrap_err().to_string()
        };
        for cut in [0, 1, whole.len() / 2, whole.len() - 3] {
            assert!(said(&whole[..cut]).contains("is damaged"), "{cut}");
        }
        assert!(said("{}").contains("missing field"), "{}", said("{}"));
        assert!(said("[1]").contains("is damaged"));
        assert!(said(&whole.replacen("\"format\": 3", "\"format\": 99", 1)).contains("found format 99"));
    }

    #[test]
    fn another_probe_is_named_by_what_differs() {
        let path = Path::new(NAME);
        file().check_same(&file(), path).unwrap();
        let mut other = file();
        other.findings.subject.area = Bytes(1 << 28);
        other.findings.subject.quick = true;
        let said = file().check_same(&other, path).unwrap_err().to_string();
        assert!(
            said.contains("quick is false and not true, its area is 1.0 GiB and not 256.0 MiB"),
            "{said}"
        );
        let mut other = file();
        other.simulated.as_mut().unwrap().profile = "name = 1".into();
        let said = file().check_same(&other, path).unwrap_err().to_string();
        assert!(said.contains("another profile"), "{said}");
        let mut other = file();
        other.findings.subject.identity = Some("serial 2".to_owned());
        other.findings.subject.version = "9.9".to_owned();
        let said = file().check_same(&other, path).unwrap_err().to_string();
        assert!(
            said.contains("its identity is unknown and not serial 2, its program is  and not 9.9"),
            "{said}"
        );
        // What was found decides nothing.
        let mut other = file();
        other.findings.chunk = None;
        file().check_same(&other, path).unwrap();
    }
}
