//! The file that keeps what is on a served drive.
//!
//! First the drive's bytes, so that other tools can read them; behind them two superblocks of 4096 bytes, written in turn, each with a checksum. They
//! stand at the end because that is what a file that was cut or half copied lacks. The file is locked while it is served.
//!
//! A superblock is, little-endian: a magic of 16 bytes, version and state (u32 each), generation and bytes of the drive (u64 each), the name of the
//! device that it was made for (64 bytes), zeros; and the BLAKE3 hash of all of that in the last 32 bytes.

use crate::error::ServeError;
use planewise_guest::contents::Contents;
use planewise_model::SECTOR_BYTES;
use rustix::fs::{FlockOperation, flock, fstatvfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a superblock, of which there are two.
pub const SUPERBLOCK_BYTES: u64 = 4096;
const MAGIC: [u8; 16] = *b"planewise drive\0";
const VERSION: u32 = 1;
const NAME_BYTES: usize = 64;
const HASH_BYTES: usize = 32;
const CLOSED: u32 = 0;
const IN_USE: u32 = 1;

/// What a superblock says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Superblock {
    is_in_use: bool,
    generation: u64,
    bytes: u64,
    device: String,
}

impl Superblock {
    fn to_bytes(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(SUPERBLOCK_BYTES as usize);
        block.extend(MAGIC);
        block.extend(VERSION.to_le_bytes());
        block.extend(if self.is_in_use { IN_USE } else { CLOSED }.to_le_bytes());
        block.extend(self.generation.to_le_bytes());
        block.extend(self.bytes.to_le_bytes());
        let name = self.device.as_bytes();
        block.extend(&name[..name.len().min(NAME_BYTES)]);
        block.resize(SUPERBLOCK_BYTES as usize - HASH_BYTES, 0);
        let hash = blake3::hash(&block);
        block.extend(hash.as_bytes());
        block
    }

    /// What is none, or was torn, is nothing.
    fn from_bytes(block: &[u8]) -> Option<Superblock> {
        let (said, hash) = block.split_at_checked(SUPERBLOCK_BYTES as usize - HASH_BYTES)?;
        if said[..16] != MAGIC || blake3::hash(said).as_bytes() != hash {
            return None;
        }
        let word = |at: usize| u32::from_le_bytes(said[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(said[at..at + 8].try_into().expect("eight bytes"));
        if word(16) != VERSION {
            return None;
        }
        let name = &said[40..40 + NAME_BYTES];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        Some(Superblock {
            is_in_use: word(20) == IN_USE,
            generation: long(24),
            bytes: long(32),
            device: String::from_utf8_lossy(&name[..end]).into_owned(),
        })
    }
}

/// An open backing file, locked.
#[derive(Debug)]
pub struct Backing {
    file: File,
    path: PathBuf,
    superblock: Superblock,
    /// What a user should know of it: one sentence each.
    pub notes: Vec<String>,
}

const MADE_BY_SERVE: &str = "a file that planewise serve made, or a name that no file has";

impl Backing {
    /// Opens a file for a drive of so many bytes, or makes it.
    ///
    /// # Errors
    /// A file that is in use, was not made by this program, was cut or torn, or is for a drive of another size; the system's.
    pub fn open(path: &Path, bytes: u64, device: &str) -> Result<Backing, ServeError> {
        let failed = |error: io::Error| ServeError::system(format!("{}: cannot open", path.display()), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, is_new) = match options.open(path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (options.create_new(true).open(path).map_err(failed)?, true)
            }
            Err(error) => return Err(failed(error)),
        };
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(ServeError::backing(path, "what is no plain file", MADE_BY_SERVE));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(ServeError::backing(
                    path,
                    "a file in use by another process",
                    "one that is not; or end the server that has it",
                ));
            }
            Err(error) => {
                return Err(ServeError::system(format!("{}: cannot lock", path.display()), error));
            }
        }
        let mut backing = Backing {
            file,
            path: path.to_owned(),
            superblock: Superblock { is_in_use: true, generation: 0, bytes, device: device.to_owned() },
            notes: Vec::new(),
        };
        if is_new || found.len() == 0 {
            backing.make(bytes).inspect_err(|_| {
                // Nothing of what could not be made.
                let _ = std::fs::remove_file(path);
            })?;
        } else {
            backing.superblock = backing.check(found.len(), bytes)?;
            if backing.superblock.device != device {
                let before = &backing.superblock.device;
                backing.notes.push(format!("{}: was served as {before} before", path.display()));
            }
        }
        backing.superblock.device = device.to_owned();
        backing.mark(true)?;
        backing.note_room();
        Ok(backing)
    }

    fn make(&mut self, bytes: u64) -> Result<(), ServeError> {
        let failed =
            |error: io::Error| ServeError::system(format!("{}: cannot make", self.path.display()), error);
        self.file.set_len(bytes + 2 * SUPERBLOCK_BYTES).map_err(failed)?;
        // The name, too, is to be there after a power cut.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// The valid superblock of a file of so many bytes.
    fn check(&mut self, length: u64, bytes: u64) -> Result<Superblock, ServeError> {
        let wrong = |found: String, allowed: &str| Err(ServeError::backing(&self.path, found, allowed));
        let Some(data) = length.checked_sub(2 * SUPERBLOCK_BYTES) else {
            return wrong(format!("{length} bytes, too few for what ends such a file"), MADE_BY_SERVE);
        };
        let mut both = Vec::new();
        for at in [data, data + SUPERBLOCK_BYTES] {
            let mut block = vec![0; SUPERBLOCK_BYTES as usize];
            self.file.read_exact_at(&mut block, at).map_err(|error| {
                ServeError::system(format!("{}: cannot read", self.path.display()), error)
            })?;
            both.extend(Superblock::from_bytes(&block));
        }
        let Some(latest) = both.iter().max_by_key(|block| block.generation).cloned() else {
            return wrong(
                format!(
                    "{length} bytes without a valid superblock at their end: cut, torn, or nothing of this program"
                ),
                MADE_BY_SERVE,
            );
        };
        if latest.bytes != data {
            return wrong(
                format!(
                    "{length} bytes where a drive of {} and its superblocks need {}: cut or torn",
                    latest.bytes,
                    latest.bytes.saturating_add(2 * SUPERBLOCK_BYTES)
                ),
                "the whole of such a file",
            );
        }
        if data != bytes {
            return wrong(
                format!("a drive of {data} bytes, asked for as one of {bytes}"),
                &format!("--size {data}, or another file"),
            );
        }
        if both.len() == 1 {
            self.notes.push(format!(
                "{}: one of its superblocks is torn, and the other is used: the last server ended while it wrote it",
                self.path.display()
            ));
        }
        if latest.is_in_use {
            self.notes.push(format!(
                "{}: its last server did not end by itself; what was flushed is there, and what was only written may be",
                self.path.display()
            ));
        }
        Ok(latest)
    }

    /// Writes the superblock anew, in the place of the older one.
    fn mark(&mut self, is_in_use: bool) -> Result<(), ServeError> {
        self.superblock.is_in_use = is_in_use;
        self.superblock.generation += 1;
        let at = self.superblock.bytes + SUPERBLOCK_BYTES * (self.superblock.generation % 2);
        self.file
            .write_all_at(&self.superblock.to_bytes(), at)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| ServeError::system(format!("{}: cannot write", self.path.display()), error))
    }

    fn note_room(&mut self) {
        use std::os::unix::fs::MetadataExt;
        let (Ok(found), Ok(disk)) = (self.file.metadata(), fstatvfs(&self.file)) else { return };
        let room = disk.f_bavail.saturating_mul(disk.f_frsize);
        let wanted = self.superblock.bytes.saturating_sub(found.blocks() * SECTOR_BYTES);
        if room < wanted {
            self.notes.push(format!(
                "{}: may need {wanted} bytes more, and its disk has {room}: writes that find no room fail with an I/O error",
                self.path.display()
            ));
        }
    }

    /// The drive's bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn contents(&self) -> Result<Contents, ServeError> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| ServeError::system(format!("{}: cannot open", self.path.display()), error))?;
        Ok(Contents::in_file(file, self.superblock.bytes / SECTOR_BYTES)?)
    }

    /// Writes what is not on the disk yet, and says in the file that it was closed.
    ///
    /// # Errors
    /// The system's: then the file says that it is in use.
    pub fn close(mut self) -> Result<(), ServeError> {
        self.file
            .sync_all()
            .map_err(|error| ServeError::system(format!("{}: cannot write", self.path.display()), error))?;
        self.mark(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    fn error(path: &Path, bytes: u64) -> String {
        Backing::open(path, bytes, "ssd1").unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_there_again_and_the_file_knows_how_it_was_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        let backing = Backing::open(&path, BYTES, "ssd1").unwrap();
        assert!(backing.notes.is_empty(), "{:?}", backing.notes);
        backing.contents().unwrap().write_bytes(BYTES - 512, &[7; 512]).unwrap();
        backing.close().unwrap();
        for round in 0..5 {
            let backing = Backing::open(&path, BYTES, "ssd1").unwrap();
            let was_left = backing.notes.iter().any(|note| note.contains("did not end by itself"));
            assert_eq!(was_left, round > 0, "{:?}", backing.notes);
            let mut buffer = [0; 512];
            backing.contents().unwrap().read_bytes(BYTES - 512, &mut buffer).unwrap();
            assert_eq!(buffer, [7; 512]);
            // Dropped, not closed: as after kill -9.
        }
        let notes = Backing::open(&path, BYTES, "ssd-s").unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("served as ssd1 before")), "{notes:?}");
    }

    #[test]
    fn a_file_in_use_of_another_size_or_of_another_origin_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        let backing = Backing::open(&path, BYTES, "ssd1").unwrap();
        assert!(error(&path, BYTES).contains("in use by another process"));
        drop(backing);
        let words = error(&path, 2 * BYTES);
        assert!(words.contains("a drive of 1048576 bytes") && words.contains("--size 1048576"), "{words}");
        let mine = directory.path().join("letters.txt");
        for text in ["dear mother".to_owned(), "dear mother ".repeat(1000)] {
            std::fs::write(&mine, &text).unwrap();
            assert!(error(&mine, BYTES).contains("a file that planewise serve made"), "{text}");
            assert_eq!(std::fs::read_to_string(&mine).unwrap(), text);
        }
        assert!(error(directory.path(), BYTES).contains("directory"));
        assert!(error(Path::new("/dev/null"), BYTES).contains("no plain file"));
        let nowhere = directory.path().join("no/disk.img");
        assert!(error(&nowhere, BYTES).contains("cannot open"));
    }

    #[test]
    fn a_file_that_was_cut_or_made_longer_anywhere_is_found_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        drop(Backing::open(&path, BYTES, "ssd1").unwrap());
        let whole = std::fs::read(&path).unwrap();
        let length = whole.len() as u64;
        for found in [1, 512, 4096, 8191, 8192, BYTES / 2, BYTES, length - 4096, length - 512, length - 1] {
            std::fs::write(&path, &whole[..found as usize]).unwrap();
            let words = error(&path, BYTES);
            assert!(words.contains("cut") || words.contains("too few"), "{found}: {words}");
            assert_eq!(std::fs::metadata(&path).unwrap().len(), found, "left alone");
        }
        for more in [1, 512, 4096] {
            let mut longer = whole.clone();
            longer.resize(whole.len() + more, 0);
            std::fs::write(&path, longer).unwrap();
            assert!(error(&path, BYTES).contains("cut"), "{more}");
        }
    }

    #[test]
    fn one_superblock_may_be_torn_and_two_may_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.img");
        Backing::open(&path, BYTES, "ssd1").unwrap().close().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for at in [0, 17, 33, 100, 4095] {
            let mut torn = whole.clone();
            torn[BYTES as usize + at] ^= 0x40;
            std::fs::write(&path, &torn).unwrap();
            let notes = Backing::open(&path, BYTES, "ssd1").unwrap().notes;
            assert!(notes.iter().any(|note| note.contains("torn")), "{notes:?}");
            torn[BYTES as usize + 4096 + at] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            let both_torn = error(&path, BYTES);
            assert!(both_torn.contains("without a valid superblock"), "{at}: {both_torn}");
        }
    }
}
