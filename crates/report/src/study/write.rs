//! Files of studies on the disk, each whole or not there.

use super::{Reproduction, csv, fidelity, index, names, page, svg, table_csv};
use crate::error::ReportError;
use planewise_study::Outcome;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes everything: the pages of the studies with all that lies beside them, `index.html` and `fidelity.md`. The directory is
/// made when it is not there; what else is in it stays.
///
/// # Errors
/// The operating system's refusal, with the path. Files written before it stay, each of them whole.
pub fn write(directory: &Path, of: &Reproduction<'_>) -> Result<(), ReportError> {
    for outcome in of.outcomes {
        write_study(directory, outcome)?;
    }
    create(directory)?;
    write_file(&directory.join("fidelity.md"), fidelity(of).as_bytes())?;
    // Last: an index that is there has its pages.
    write_file(&directory.join("index.html"), index(of).as_bytes())
}

/// Writes the page of a study, its figures as SVG, PNG and CSV, its tables as CSV.
///
/// # Errors
/// As [`write()`].
pub fn write_study(directory: &Path, outcome: &Outcome) -> Result<(), ReportError> {
    create(directory)?;
    let stems = names::stems(outcome);
    let file = |stem: &str, ending: &str| directory.join(format!("{stem}.{ending}"));
    for (figure, stem) in outcome.figures.iter().zip(&stems) {
        let drawn = svg(figure);
        #[cfg(feature = "png")]
        write_file(&file(stem, "png"), &super::png(&drawn)?)?;
        write_file(&file(stem, "svg"), drawn.as_bytes())?;
        write_file(&file(stem, "csv"), csv(figure).as_bytes())?;
    }
    for (table, stem) in outcome.tables.iter().zip(&stems[outcome.figures.len()..]) {
        write_file(&file(stem, "csv"), table_csv(table).as_bytes())?;
    }
    write_file(&directory.join(names::page(&outcome.id)), page(outcome).as_bytes())
}

/// Writes a file under its name when all of it is on the disk: to `.NAME.partial` first, which is removed when that fails.
///
/// # Errors
/// The operating system's refusal, with the path.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let name = path.file_name().ok_or_else(|| ReportError::NoName(path.to_owned()))?;
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(".partial");
    let partial = path.with_file_name(partial);
    let write = || {
        let mut file = fs::File::create(&partial)?;
        file.write_all(bytes)?;
        // File systems that allocate late report a full disk only now.
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| {
        // The cause that matters is reported; what cannot be removed still carries its telling name.
        let _ = fs::remove_file(&partial);
        ReportError::Io { action: "write", path: path.to_owned(), source }
    })
}

fn create(directory: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(directory).map_err(|source| ReportError::Io {
        action: "create the directory",
        path: directory.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Missing, samples};
    use planewise_study::outcome::Paper;

    /// With `PLANEWISE_PAGES` set, the made-up pages are left in that directory to be looked at.
    #[test]
    fn all_files_are_there_whole_and_linked() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = std::env::var_os("PLANEWISE_PAGES").map_or(temporary.path().join("a/b"), Into::into);
        let outcomes = samples::outcomes();
        let missing = [Missing {
            id: "gc-table3".to_owned(),
            title: "Cost of collections by volume".to_owned(),
            paper: Paper::Gc,
            figure: "Table III".to_owned(),
            why: "not asked for".to_owned(),
        }];
        let divergence =
            [("One kind of page".to_owned(), "All pages of a word line take the same time.".to_owned())];
        let of = Reproduction {
            unasked: 0,
            outcomes: &outcomes,
            missing: &missing,
            command: "planewise reproduce --all --quick",
            divergence: &divergence,
        };
        write(&directory, &of).unwrap();
        let mut found: Vec<String> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert!(found.iter().all(|name| !name.ends_with(".partial")), "{found:?}");
        for page in found.iter().filter(|name| name.ends_with(".html")) {
            let text = fs::read_to_string(directory.join(page)).unwrap();
            for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                assert!(
                    link.starts_with('#') || found.iter().any(|name| name == link),
                    "{page} links to {link}"
                );
            }
        }
        assert_eq!(found.iter().filter(|name| name.ends_with(".png")).count(), 5);
        write(&directory, &of).unwrap();
    }

    #[test]
    fn a_refusal_names_the_path_and_leaves_no_part() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("index.html");
        fs::create_dir(&taken).unwrap();
        let error = write_file(&taken, b"x").unwrap_err().to_string();
        assert!(error.contains("index.html") && error.contains("cannot write"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let file = directory.path().join("file");
        write_file(&file, b"old").unwrap();
        let outcomes = samples::outcomes();
        let error = write_study(&file, &outcomes[0]).unwrap_err().to_string();
        assert!(error.contains("file: cannot create the directory"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn a_full_disk_leaves_no_half_file() {
        // The name leads to a device that is always full, where the system has one.
        if !Path::new("/dev/full").exists() {
            eprintln!("skipped: no /dev/full here");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("piq.svg");
        write_file(&path, b"whole").unwrap();
        std::os::unix::fs::symlink("/dev/full", directory.path().join(".piq.svg.partial")).unwrap();
        let error = write_file(&path, b"another").unwrap_err().to_string();
        assert!(error.contains("piq.svg: cannot write"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(!directory.path().join(".piq.svg.partial").exists());
    }
}
