//! The run directory: `config.toml`, `results.json`, `report.html`, and what a command adds, all or nothing.

use crate::error::ReportError;
use planewise_sim::results::{Results, Setup};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Whether an earlier run in the same place may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse: the default.
    Never,
    /// Replace a run directory, and nothing else (`--force`). All that is in it goes.
    EarlierRun,
}

/// Files every run directory has.
const OWN_FILES: [&str; 3] = ["config.toml", "results.json", "report.html"];

/// Writes a run directory: the expanded setup, the results, the report and `extra` files by plain file name.
///
/// An empty directory may be there already; an earlier run only with [`Overwrite::EarlierRun`].
///
/// # Errors
/// A place that is taken, a name that is none, or the operating system's refusal (no space, no permission, no such parent).
/// Nothing partial is left then.
pub fn write_run_directory(
    dir: &Path,
    results: &Results,
    extra: &[(&str, &[u8])],
    overwrite: Overwrite,
) -> Result<(), ReportError> {
    check_extra_names(extra)?;
    RunDirectory::create(dir, overwrite)?.finish(results, extra).map(|_| ())
}

/// A run directory being filled: large files go into [`RunDirectory::path`] while the runs go on.
///
/// Everything is written to `.<name>.partial` beside the directory and renamed when it is on the disk, so that a directory
/// under its own name is always whole. Dropped unfinished, it leaves nothing.
pub struct RunDirectory {
    place: Place,
    replaces: bool,
    settled: bool,
}

impl RunDirectory {
    /// Claims the place before the work that fills it: what would refuse the result refuses it now.
    ///
    /// # Errors
    /// As [`write_run_directory`].
    pub fn create(dir: &Path, overwrite: Overwrite) -> Result<RunDirectory, ReportError> {
        let place = Place::of(dir)?;
        let replaces = check_free(&place.whole, overwrite)?;
        create_partial(&place.partial)?;
        Ok(RunDirectory { place, replaces, settled: false })
    }

    /// Where files are until [`RunDirectory::finish`] moves them all to their place.
    pub fn path(&self) -> &Path {
        &self.place.partial
    }

    /// Writes setup, results, report and `extra` files, and gives the directory its name. Returns whether it replaced an earlier run.
    ///
    /// # Errors
    /// As [`write_run_directory`].
    pub fn finish(mut self, results: &Results, extra: &[(&str, &[u8])]) -> Result<bool, ReportError> {
        check_extra_names(extra)?;
        let (config, json, html) = (config_toml(&results.setup), crate::json(results), crate::html(results));
        let own = [config.as_bytes(), json.as_bytes(), html.as_bytes()];
        for (name, bytes) in OWN_FILES.into_iter().zip(own).chain(extra.iter().copied()) {
            write_file(&self.place.partial.join(name), bytes)?;
        }
        settle(&self.place, self.replaces)?;
        self.settled = true;
        Ok(self.replaces)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if !self.settled {
            // The cause that matters was reported; a partial directory that cannot be removed still carries its telling name.
            let _ = fs::remove_dir_all(&self.place.partial);
        }
    }
}

/// The setup as TOML: `[trace]`, `[options]` and the device profile under `[device]`.
///
/// A profile that is no TOML stands as text under `device_profile` instead.
pub fn config_toml(setup: &Setup) -> String {
    use toml::{Table, Value};
    let text = |text: &String| Value::String(text.clone());
    let trace = &setup.trace;
    let mut root = Table::new();
    root.insert("condition".to_owned(), text(&setup.condition));
    root.insert("random_generator".to_owned(), text(&setup.random_generator));
    let fields =
        [("name", &trace.name), ("source", &trace.source), ("format", &trace.format), ("hash", &trace.hash)];
    root.insert(
        "trace".to_owned(),
        Value::Table(fields.map(|(key, value)| (key.to_owned(), text(value))).into_iter().collect()),
    );
    root.insert(
        "options".to_owned(),
        Value::Table(setup.options.iter().map(|(key, value)| (key.clone(), text(value))).collect()),
    );
    match setup.device_profile.parse::<Table>() {
        Ok(profile) => root.insert("device".to_owned(), Value::Table(profile)),
        Err(_) => root.insert("device_profile".to_owned(), text(&setup.device_profile)),
    };
    toml::to_string_pretty(&root).expect("tables of strings and a parsed profile are TOML")
}

/// Where the directory goes, and its temporary siblings.
struct Place {
    whole: PathBuf,
    partial: PathBuf,
    replaced: PathBuf,
}

impl Place {
    fn of(dir: &Path) -> Result<Place, ReportError> {
        let no_name = || ReportError::NoName(dir.to_owned());
        if dir.file_name().is_none() || dir.as_os_str().as_encoded_bytes().ends_with(b"/.") {
            return Err(no_name());
        }
        // Through a symbolic link, the directory it means is written, not the link.
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = whole.file_name().ok_or_else(no_name)?.to_owned();
        let sibling = |suffix: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(&name);
            hidden.push(suffix);
            whole.with_file_name(hidden)
        };
        Ok(Place { partial: sibling(".partial"), replaced: sibling(".replaced"), whole })
    }
}

fn check_extra_names(extra: &[(&str, &[u8])]) -> Result<(), ReportError> {
    for (index, (name, _)) in extra.iter().enumerate() {
        let plain = !name.is_empty() && *name != "." && *name != ".." && !name.contains(['/', '\\', '\0']);
        let taken = OWN_FILES.contains(name) || extra[..index].iter().any(|(other, _)| other == name);
        if !plain || taken {
            return Err(ReportError::ExtraName((*name).to_owned()));
        }
    }
    Ok(())
}

/// Whether there is an earlier run to replace; an error when the place is taken.
fn check_free(whole: &Path, overwrite: Overwrite) -> Result<bool, ReportError> {
    match fs::metadata(whole) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(ReportError::Io { action: "look at it", path: whole.to_owned(), source }),
        Ok(found) if !found.is_dir() => return Err(ReportError::IsAFile(whole.to_owned())),
        Ok(_) => {}
    }
    let mut entries = fs::read_dir(whole).map_err(|source| ReportError::Io {
        action: "list it",
        path: whole.to_owned(),
        source,
    })?;
    match (entries.next().is_some(), is_run_directory(whole), overwrite) {
        (false, ..) => Ok(false),
        (true, false, _) => Err(ReportError::NotARunDirectory(whole.to_owned())),
        (true, true, Overwrite::Never) => Err(ReportError::EarlierRun(whole.to_owned())),
        (true, true, Overwrite::EarlierRun) => Ok(true),
    }
}

/// A run directory holds a `results.json` that names us as its generator.
fn is_run_directory(whole: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Signature {
        generator: String,
    }
    let text = fs::read(whole.join("results.json")).unwrap_or_default();
    serde_json::from_slice::<Signature>(&text)
        .is_ok_and(|signature| signature.generator.split_whitespace().next() == Some("planewise"))
}

/// Creates the partial directory.
fn create_partial(partial: &Path) -> Result<(), ReportError> {
    let refused = |action| move |source| ReportError::Io { action, path: partial.to_owned(), source };
    if let Some(parent) = partial.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|source| ReportError::Io {
            action: "create the directory",
            path: parent.to_owned(),
            source,
        })?;
    }
    match fs::remove_dir_all(partial) {
        // Left by a run that was killed: nobody takes a partial directory for a result.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(refused("remove what an earlier run left")(source)),
    }
    fs::create_dir(partial).map_err(refused("create the directory"))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let write = || {
        let mut file = fs::File::create(path)?;
        file.write_all(bytes)?;
        // File systems that allocate late report a full disk only now.
        file.sync_all()
    };
    write().map_err(|source| ReportError::Io { action: "write", path: path.to_owned(), source })
}

/// Moves the finished directory to its name; an earlier run is kept until that has worked.
fn settle(place: &Place, replaces: bool) -> Result<(), ReportError> {
    let rename = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|source| ReportError::Io {
            action: "move the finished run to",
            path: to.to_owned(),
            source,
        })
    };
    if !replaces {
        return rename(&place.partial, &place.whole);
    }
    // A replaced run whose removal was cut short may be in the way.
    let _ = fs::remove_dir_all(&place.replaced);
    rename(&place.whole, &place.replaced)?;
    if let Err(error) = rename(&place.partial, &place.whole) {
        rename(&place.replaced, &place.whole)?;
        return Err(error);
    }
    fs::remove_dir_all(&place.replaced).map_err(|source| ReportError::Io {
        action: "remove the replaced run",
        path: place.replaced.clone(),
        source,
    })
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
