//! What is on the drive: bytes in a sparse file, of which only those written cost any.

use crate::error::GuestError;
use planewise_model::SECTOR_BYTES;
use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom, fallocate, memfd_create, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use vm_memory::{Bytes, GuestAddress, GuestMemory, GuestMemoryMmap, Permissions};

/// The bytes of a drive, at the beginning of a file: one in memory without a name, or one on a disk.
///
/// They are moved by system calls, never by a mapping: a file system without room is an error of a request, not a signal.
#[derive(Debug)]
pub struct Contents {
    file: File,
    sectors: u64,
}

/// Bytes copied at a time.
const PIECE: usize = 1 << 16;

impl Contents {
    /// Zeros, in memory; pages come with the first write.
    ///
    /// # Errors
    /// The system's.
    pub fn new(sectors: u64) -> Result<Contents, GuestError> {
        let file = memfd_create("planewise-contents", MemfdFlags::CLOEXEC)
            .map_err(|error| GuestError::system("making room for what is on the drive", error))?;
        Contents::in_file(file.into(), sectors)
    }

    /// What is in a file, which is made longer where it is too short, and keeps what it has behind them.
    ///
    /// # Errors
    /// The system's.
    pub fn in_file(file: File, sectors: u64) -> Result<Contents, GuestError> {
        let bytes = sectors.checked_mul(SECTOR_BYTES).filter(|&bytes| bytes <= i64::MAX as u64);
        let made_room = match bytes {
            None => Err(Errno::FBIG.into()),
            Some(bytes) => file.metadata().and_then(|found| match found.len() < bytes {
                true => file.set_len(bytes),
                false => Ok(()),
            }),
        };
        made_room.map_err(|error| GuestError::system("making room for what is on the drive", error))?;
        Ok(Contents { file, sectors })
    }

    /// Sectors of the drive.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether so many sectors from `start` on are on the drive.
    pub fn holds(&self, start: u64, sectors: u64) -> bool {
        start.checked_add(sectors).is_some_and(|end| end <= self.sectors)
    }

    /// Copies from the guest's memory; false where an address is none, or the file takes no more: then any part may have been written.
    pub fn write(&self, sector: u64, pieces: &[(GuestAddress, u32)], guest: &GuestMemoryMmap) -> bool {
        self.copy(sector, pieces, |at, address, buffer| {
            guest.read_slice(buffer, address).is_ok() && self.write_bytes(at, buffer).is_ok()
        })
    }

    /// Copies to the guest's memory; false where an address is none, or the file cannot be read.
    pub fn read(&self, sector: u64, pieces: &[(GuestAddress, u32)], guest: &GuestMemoryMmap) -> bool {
        self.copy(sector, pieces, |at, address, buffer| {
            self.read_bytes(at, buffer).is_ok() && guest.write_slice(buffer, address).is_ok()
        })
    }

    fn copy(
        &self,
        sector: u64,
        pieces: &[(GuestAddress, u32)],
        mut copy: impl FnMut(u64, GuestAddress, &mut [u8]) -> bool,
    ) -> bool {
        let longest = pieces.iter().map(|piece| piece.1 as usize).max().unwrap_or(0);
        let mut buffer = vec![0; longest.min(PIECE)];
        let Some(mut at) = sector.checked_mul(SECTOR_BYTES) else { return false };
        for &(address, length) in pieces {
            let mut done = 0;
            while done < length as usize {
                let count = PIECE.min(length as usize - done);
                let Some(address) = address.0.checked_add(done as u64) else { return false };
                if !copy(at, GuestAddress(address), &mut buffer[..count]) {
                    return false;
                }
                (done, at) = (done + count, at + count as u64);
            }
        }
        true
    }

    /// Writes from byte `at` on.
    ///
    /// # Errors
    /// What is past the end of the drive; the system's, as of a full disk: then any part may have been written.
    pub fn write_bytes(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.inside(at, bytes.len() as u64)?;
        self.file.write_all_at(bytes, at)
    }

    /// Reads from byte `at` on.
    ///
    /// # Errors
    /// What is past the end of the drive; the system's; the end of a file that somebody has cut.
    pub fn read_bytes(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inside(at, buffer.len() as u64)?;
        self.file.read_exact_at(buffer, at)
    }

    /// Forgets sectors: they read as zeros, and take no room where the file system can do that.
    ///
    /// # Errors
    /// What is past the end of the drive; the system's, where zeros have to be written.
    pub fn forget(&self, start: u64, sectors: u64) -> io::Result<()> {
        let scaled = |sectors: u64| sectors.checked_mul(SECTOR_BYTES).ok_or_else(past_the_end);
        self.forget_bytes(scaled(start)?, scaled(sectors)?)
    }

    /// The same for `count` bytes from `at` on.
    ///
    /// # Errors
    /// As [`Contents::forget`].
    pub fn forget_bytes(&self, mut at: u64, count: u64) -> io::Result<()> {
        self.inside(at, count)?;
        if count == 0 {
            return Ok(());
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match fallocate(&self.file, hole, at, count) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let (zeros, end) = (vec![0; PIECE], at + count);
        while at < end {
            let count = (end - at).min(PIECE as u64);
            self.file.write_all_at(&zeros[..count as usize], at)?;
            at += count;
        }
        Ok(())
    }

    /// Copies what was written to the contents of a drive of the same size, on which nothing was written yet; what was not takes no room there, either.
    ///
    /// # Errors
    /// The system's.
    pub fn copy_to(&self, other: &Contents) -> io::Result<()> {
        let (mut at, end) = (0, self.sectors * SECTOR_BYTES);
        let mut buffer = vec![0; 1 << 20];
        while at < end {
            let (data, hole) = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(data) => (data, seek(&self.file, SeekFrom::Hole(data))?),
                // Nothing but a hole is left.
                Err(Errno::NXIO) => return Ok(()),
                // The file system knows of no holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => (at, end),
                Err(error) => return Err(error.into()),
            };
            at = data;
            while at < hole.min(end) {
                let count = (hole.min(end) - at).min(buffer.len() as u64) as usize;
                self.read_bytes(at, &mut buffer[..count])?;
                other.write_bytes(at, &buffer[..count])?;
                at += count as u64;
            }
        }
        Ok(())
    }

    /// Waits until the file's disk has what was written.
    ///
    /// # Errors
    /// The system's: what was written since the last time may be lost then, and a later call that succeeds does not say otherwise.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn inside(&self, at: u64, bytes: u64) -> io::Result<()> {
        let end = at.checked_add(bytes).ok_or_else(past_the_end)?;
        if end <= self.sectors * SECTOR_BYTES { Ok(()) } else { Err(past_the_end()) }
    }
}

fn past_the_end() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "past the end of the drive")
}

/// Bytes of pieces of memory.
pub fn length(pieces: &[(GuestAddress, u32)]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.1)).sum()
}

/// Whether all of it is the guest's.
pub fn is_memory(pieces: &[(GuestAddress, u32)], guest: &GuestMemoryMmap) -> bool {
    pieces
        .iter()
        .all(|&(address, length)| guest.check_range(address, length as usize, Permissions::ReadWrite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_forgotten_reads_as_zeros_and_takes_no_room() {
        let contents = Contents::new(1 << 16).unwrap();
        contents.write_bytes(0, &[7; 1 << 20]).unwrap();
        let before = contents.file.metadata().unwrap().blocks();
        assert!(before >= 2048, "{before}");
        contents.forget(8, 1024).unwrap();
        let mut buffer = [1; 8192];
        contents.read_bytes(0, &mut buffer).unwrap();
        assert!(buffer[..4096] == [7; 4096] && buffer[4096..] == [0; 4096]);
        assert!(contents.file.metadata().unwrap().blocks() <= before - 1000);
        assert_eq!(contents.file.metadata().unwrap().len(), 1 << 25, "as long as before");
    }

    #[test]
    fn nothing_reaches_past_the_end_and_a_drive_of_any_size_is_refused_or_sparse() {
        let contents = Contents::new(8).unwrap();
        let end = 8 * SECTOR_BYTES;
        for (at, bytes) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX - 3, 8)] {
            assert!(contents.write_bytes(at, &vec![1; bytes]).is_err(), "{at}");
            assert!(contents.read_bytes(at, &mut vec![1; bytes]).is_err(), "{at}");
            assert!(contents.forget_bytes(at, bytes as u64).is_err(), "{at}");
        }
        assert!(contents.forget(u64::MAX / 2, 2).is_err() && contents.forget(7, 2).is_err());
        assert!(contents.forget(8, 0).is_ok());
        Contents::new(1 << 40 >> 9).unwrap();
        for sectors in [u64::MAX, u64::MAX >> 9, i64::MAX as u64] {
            let words = Contents::new(sectors).unwrap_err().to_string();
            assert!(words.contains("making room"), "{words}");
        }
    }

    #[test]
    fn a_file_that_takes_no_more_is_an_error_of_the_request() {
        // To a write, a sealed file is what a full disk is: a system call that fails.
        let file = memfd_create("sealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let contents = Contents::in_file(file.into(), 64).unwrap();
        rustix::fs::fcntl_add_seals(&contents.file, rustix::fs::SealFlags::WRITE).unwrap();
        assert!(contents.write_bytes(0, &[1; 512]).is_err());
        assert!(contents.forget(0, 8).is_err());
        let mut buffer = [1; 512];
        contents.read_bytes(0, &mut buffer).unwrap();
        assert_eq!(buffer, [0; 512]);
    }

    #[test]
    fn a_file_that_somebody_has_cut_is_an_error_of_the_request() {
        let file = tempfile::tempfile().unwrap();
        let contents = Contents::in_file(file.try_clone().unwrap(), 64).unwrap();
        file.set_len(1000).unwrap();
        assert!(contents.read_bytes(512, &mut [0; 512]).is_err());
        contents.write_bytes(512, &[3; 512]).unwrap();
        contents.read_bytes(512, &mut [0; 512]).unwrap();
    }
}
