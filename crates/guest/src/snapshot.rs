//! A drive as a set-up left it: what is on it, and the requests that it served, in a directory.
//!
//! A drive that serves the same requests at the same times is in the same state, its mapping, its free blocks and its buffers among it: that is kept in
//! place of the state, and served again when a run begins (a million requests a second), at the end of which the run's time begins.

use crate::contents::Contents;
use crate::drive::Drive;
use crate::error::GuestError;
use planewise_model::{Ns, Request, SECTOR_BYTES};
use planewise_sim::observers::Observer;
use planewise_trace::formats;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of a snapshot. The last one is written last.
const CONTENTS: &str = "contents";
const REQUESTS: &str = "requests.parquet";
const END: &str = "end";

/// A snapshot.
#[derive(Debug)]
pub struct Snapshot {
    directory: PathBuf,
    requests: Vec<Request>,
    end: Ns,
}

impl Snapshot {
    /// Keeps what is on a drive, and the requests that it served until `end`, in a directory that is not there yet: a run that is cut short leaves none.
    ///
    /// # Errors
    /// The system's.
    pub fn keep(
        directory: &Path,
        contents: &Contents,
        requests: Vec<Request>,
        end: Ns,
    ) -> Result<Snapshot, GuestError> {
        // Two of the same at the same time do not write into each other's, and the first is as good as the second.
        let partial = directory.with_extension(format!("partial-{}", std::process::id()));
        let kept = Snapshot::keep_in(directory, &partial, contents, requests, end);
        if kept.is_err() {
            // A full disk is not to stay full of what is of no use; the cause that matters is the error.
            let _ = fs::remove_dir_all(&partial);
        }
        kept
    }

    fn keep_in(
        directory: &Path,
        partial: &Path,
        contents: &Contents,
        requests: Vec<Request>,
        end: Ns,
    ) -> Result<Snapshot, GuestError> {
        let failed = |error: io::Error| GuestError::system(format!("keeping {}", directory.display()), error);
        match fs::remove_dir_all(partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => fs::create_dir_all(partial).map_err(failed)?,
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(partial.join(CONTENTS))
            .map_err(failed)?;
        contents.copy_to(&Contents::in_file(file, contents.sectors())?).map_err(failed)?;
        let format = formats::by_name("parquet").expect("a format of ours");
        let path = partial.join(REQUESTS);
        let sink = BufWriter::new(File::create(&path).map_err(failed)?);
        let traced = |error: planewise_trace::error::TraceError| failed(io::Error::other(error.to_string()));
        let mut writer = format.create.expect("it can be written")(Box::new(sink), &path).map_err(traced)?;
        requests.iter().try_for_each(|request| writer.write(request)).map_err(traced)?;
        writer.finish().map_err(traced)?;
        let length = contents.sectors() * SECTOR_BYTES;
        fs::write(partial.join(END), format!("{} {length}", end.0)).map_err(failed)?;
        if Snapshot::find(directory).is_some() {
            fs::remove_dir_all(partial).map_err(failed)?;
        } else {
            match fs::remove_dir_all(directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => fs::rename(partial, directory).map_err(failed)?,
            }
        }
        Ok(Snapshot { directory: directory.to_owned(), requests, end })
    }

    /// One that was kept; none where there is none, or what is there is not whole.
    pub fn find(directory: &Path) -> Option<Snapshot> {
        let end = fs::read_to_string(directory.join(END)).ok()?;
        let (end, length) = end.split_once(' ')?;
        let (end, length): (u64, u64) = (end.parse().ok()?, length.parse().ok()?);
        let bytes = fs::read(directory.join(REQUESTS)).ok()?;
        let requests = formats::parse_all(formats::by_name("parquet").ok()?, &bytes).ok()?;
        (fs::metadata(directory.join(CONTENTS)).ok()?.len() == length).then_some(())?;
        // Used now: where that cannot be said, it goes as the oldest.
        let _ = File::options()
            .append(true)
            .open(directory.join(END))
            .and_then(|end| end.set_modified(SystemTime::now()));
        Some(Snapshot { directory: directory.to_owned(), requests, end: Ns(end) })
    }

    /// Removes those in a directory that were used longest ago, until all others take up `room` bytes at most; `kept` stays.
    ///
    /// # Errors
    /// The system's.
    pub fn make_room(directory: &Path, kept: &Path, room: u64) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            // One in the making belongs to somebody else, and has no end yet.
            let Ok(end) = fs::metadata(path.join(END)) else { continue };
            let taken = fs::metadata(path.join(CONTENTS)).map_or(0, |contents| contents.blocks() * 512);
            found.push((end.modified()?, taken, path));
        }
        found.sort();
        let mut all: u64 = found.iter().map(|(_, taken, _)| taken).sum();
        for (_, taken, path) in found.iter().filter(|(.., path)| path != kept) {
            if all <= room {
                break;
            }
            fs::remove_dir_all(path)?;
            all -= taken;
        }
        Ok(())
    }

    /// When the set-up ended.
    pub fn end(&self) -> Ns {
        self.end
    }

    /// A copy of what is on the drive.
    ///
    /// # Errors
    /// The system's; it is of a drive of another size.
    pub fn contents(&self, sectors: u64) -> Result<Contents, GuestError> {
        let path = self.directory.join(CONTENTS);
        let failed = |error: io::Error| GuestError::system(format!("reading {}", path.display()), error);
        let file = File::options().read(true).write(true).open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found != sectors * SECTOR_BYTES {
            let problem =
                format!("found {found} bytes; allowed: {}, those of the drive", sectors * SECTOR_BYTES);
            return Err(failed(io::Error::other(problem)));
        }
        let copy = Contents::new(sectors)?;
        Contents::in_file(file, sectors)?.copy_to(&copy).map_err(failed)?;
        Ok(copy)
    }

    /// Brings a drive that has served nothing to where the set-up left it; its time begins there.
    ///
    /// # Errors
    /// The engine's.
    pub fn serve<O: Observer>(&self, drive: &mut Drive<O>) -> Result<(), GuestError> {
        for request in &self.requests {
            drive.advance(request.arrival)?;
            drive.submit(request, 0)?;
        }
        // What could start at that instant does, now that nothing else is submitted at it.
        drive.advance(self.end)?;
        drive.advance(self.end)?;
        drive.forget_completions();
        drive.begin_time(self.end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Direction, Lsn, Profile};
    use planewise_sim::RunConfig;

    fn drive() -> Drive<()> {
        let mut profile = Profile::embedded("ssd1").unwrap();
        profile.geometry.blocks_per_plane = 64;
        Drive::new(&RunConfig::new(profile), true, ()).unwrap()
    }

    #[test]
    fn room_is_made_by_removing_what_was_used_longest_ago() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let contents = Contents::new(4096).unwrap();
        contents.write_bytes(0, &[7; 1 << 20]).unwrap();
        for (age, name) in ["oldest", "used", "newest"].into_iter().enumerate() {
            Snapshot::keep(&place(name), &contents, Vec::new(), Ns(1)).unwrap();
            let end = File::options().append(true).open(place(name).join(END)).unwrap();
            end.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64)).unwrap();
        }
        Snapshot::find(&place("used")).unwrap();
        Snapshot::make_room(directory.path(), &place("newest"), 5 << 19).unwrap();
        let is_there = |name: &str| place(name).exists();
        assert!(!is_there("oldest") && is_there("used") && is_there("newest"));
        Snapshot::make_room(directory.path(), &place("newest"), 0).unwrap();
        assert!(!is_there("used") && is_there("newest"));
    }

    #[test]
    fn a_drive_that_is_brought_back_goes_on_as_one_that_never_stopped() {
        let mut first = drive();
        first.keep_requests();
        let contents = Contents::new(first.sectors()).unwrap();
        for number in 0..2000u64 {
            let at = Ns(number * 30_000);
            first.advance(at).unwrap();
            let start = Lsn(number * 7919 % (first.sectors() / 8) * 8);
            let request = match number % 40 {
                7 => Request::flush(at),
                19 => Request::discard(at, start, 8),
                _ => Request::new(at, start, 8, Direction::Write),
            };
            first.submit(&request, number).unwrap();
            contents.write_bytes(start.0 * SECTOR_BYTES, &number.to_le_bytes()).unwrap();
        }
        let end = Ns(100_000_000);
        first.advance(end).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a");
        assert!(Snapshot::find(&place).is_none());
        Snapshot::keep(&place, &contents, first.take_requests(), end).unwrap();
        let snapshot = Snapshot::find(&place).unwrap();
        assert!(snapshot.requests.len() > 300, "{}", snapshot.requests.len());
        let copy = snapshot.contents(first.sectors()).unwrap();
        let mut bytes = [0; 8];
        copy.read_bytes(1999 * 7919 % (first.sectors() / 8) * 4096, &mut bytes).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), 1999);
        let mut second = drive();
        snapshot.serve(&mut second).unwrap();
        first.forget_completions();
        first.begin_time(end);
        for number in 0..500u64 {
            let at = Ns(number * 11_000);
            let start = Lsn(number * 104_729 % (first.sectors() / 8) * 8);
            for drive in [&mut first, &mut second] {
                drive.advance(at).unwrap();
                let request = Request::new(at, start, 8, Direction::Read);
                drive.submit(&request, number).unwrap();
            }
            assert_eq!(first.next(), second.next(), "request {number}");
            while let Some(tag) = first.take() {
                assert_eq!(Some(tag), second.take());
            }
        }
        assert!(Snapshot::find(&place).unwrap().contents(8).is_err(), "a drive of another size");
        File::options().write(true).open(place.join(CONTENTS)).unwrap().set_len(1000).unwrap();
        assert!(Snapshot::find(&place).is_none(), "a file that was cut");
        Snapshot::keep(&place, &contents, Vec::new(), end).unwrap();
        assert!(Snapshot::find(&place).is_some(), "made again");
        fs::write(place.join(REQUESTS), b"PAR1 nonsense").unwrap();
        assert!(Snapshot::find(&place).is_none());
    }
}
