//! Standard output, and files that appear whole or not at all.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Prints to standard output. A pipe that closed early (`| head`) has had what it wanted and is no error.
///
/// # Errors
/// Standard output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::output(format!("standard output: cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

/// How tables are written to standard output.
pub fn style() -> planewise_report::Style {
    let terminal = io::stdout().is_terminal();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty());
    planewise_report::Style {
        color: terminal && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb",
        ascii: terminal && locale.is_none_or(|locale| !locale.to_ascii_uppercase().contains("UTF")),
        width: terminal.then(terminal_size::terminal_size).flatten().map(|(width, _)| usize::from(width.0)),
    }
}

/// A file that is written under a hidden temporary name beside its place and renamed when it is whole.
///
/// Dropped unfinished, it leaves nothing. Something that is no regular file (a device, a pipe) is written directly.
pub struct WholeFile {
    path: PathBuf,
    partial: Option<PathBuf>,
    settled: bool,
}

impl WholeFile {
    /// Claims the place and opens the file.
    ///
    /// # Errors
    /// The file exists and may not be replaced, or it cannot be created.
    pub fn create(path: &Path, replace: bool) -> Result<(WholeFile, BufWriter<File>), Failure> {
        let refused =
            |error: io::Error| Failure::output(format!("{}: cannot create: {error}", path.display()));
        let existing = std::fs::metadata(path);
        if existing.as_ref().is_ok_and(|found| found.is_dir()) {
            return Err(Failure::output(format!("{}: is a directory; name a file", path.display())));
        }
        let special = existing.as_ref().is_ok_and(|found| !found.is_file());
        if special {
            let file = File::options().write(true).open(path).map_err(refused)?;
            let whole = WholeFile { path: path.to_owned(), partial: None, settled: true };
            return Ok((whole, BufWriter::with_capacity(1 << 18, file)));
        }
        if existing.is_ok() && !replace {
            return Err(Failure::output(format!(
                "{}: exists; choose another file, or replace it with --force",
                path.display()
            )));
        }
        let name =
            path.file_name().ok_or_else(|| Failure::output(format!("{}: names no file", path.display())))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".partial");
        let partial = path.with_file_name(hidden);
        let file = File::create(&partial).map_err(refused)?;
        let whole = WholeFile { path: path.to_owned(), partial: Some(partial), settled: false };
        Ok((whole, BufWriter::with_capacity(1 << 18, file)))
    }

    /// Gives the file its name. Everything must have been written and flushed.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be renamed.
    pub fn settle(mut self) -> Result<(), Failure> {
        let refused =
            |error: io::Error| Failure::output(format!("{}: cannot write: {error}", self.path.display()));
        if let Some(partial) = &self.partial {
            // File systems that allocate late report a full disk only now.
            File::options().write(true).open(partial).and_then(|file| file.sync_all()).map_err(refused)?;
            std::fs::rename(partial, &self.path).map_err(refused)?;
        }
        self.settled = true;
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.as_ref().filter(|_| !self.settled) {
            // The cause that matters was reported; a partial file that cannot be removed still carries its telling name.
            let _ = std::fs::remove_file(partial);
        }
    }
}
