//! What is on the drive: bytes in memory of which only those written cost any.

use crate::error::GuestError;
use planewise_model::SECTOR_BYTES;
use vm_memory::{Bytes, GuestAddress, GuestMemory, GuestMemoryMmap, MmapRegion, Permissions, VolatileMemory};

/// The bytes of a drive.
#[derive(Debug)]
pub struct Contents {
    memory: MmapRegion,
    sectors: u64,
}

/// Bytes copied at a time.
const PIECE: usize = 1 << 16;

impl Contents {
    /// Zeros.
    ///
    /// # Errors
    /// The system's.
    pub fn new(sectors: u64) -> Result<Contents, GuestError> {
        // Private and without reservation: pages come with the first write.
        let memory = MmapRegion::new((sectors * SECTOR_BYTES) as usize).map_err(|error| {
            GuestError::system("making room for what is on the drive", std::io::Error::other(error))
        })?;
        Ok(Contents { memory, sectors })
    }

    /// Sectors of the drive.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether so many sectors from `start` on are on the drive.
    pub fn holds(&self, start: u64, sectors: u64) -> bool {
        start.checked_add(sectors).is_some_and(|end| end <= self.sectors)
    }

    /// Copies from the guest's memory; false where an address is none.
    pub fn write(&self, sector: u64, pieces: &[(GuestAddress, u32)], guest: &GuestMemoryMmap) -> bool {
        self.copy(sector, pieces, |at, address, buffer| {
            guest.read_slice(buffer, address).is_ok()
                && self.memory.as_volatile_slice().write_slice(buffer, at).is_ok()
        })
    }

    /// Copies to the guest's memory; false where an address is none.
    pub fn read(&self, sector: u64, pieces: &[(GuestAddress, u32)], guest: &GuestMemoryMmap) -> bool {
        self.copy(sector, pieces, |at, address, buffer| {
            self.memory.as_volatile_slice().read_slice(buffer, at).is_ok()
                && guest.write_slice(buffer, address).is_ok()
        })
    }

    fn copy(
        &self,
        sector: u64,
        pieces: &[(GuestAddress, u32)],
        mut copy: impl FnMut(usize, GuestAddress, &mut [u8]) -> bool,
    ) -> bool {
        let mut buffer = vec![0; PIECE];
        let mut at = (sector * SECTOR_BYTES) as usize;
        for &(address, length) in pieces {
            let mut done = 0;
            while done < length as usize {
                let count = PIECE.min(length as usize - done);
                let Some(address) = address.0.checked_add(done as u64) else { return false };
                if !copy(at, GuestAddress(address), &mut buffer[..count]) {
                    return false;
                }
                (done, at) = (done + count, at + count);
            }
        }
        true
    }

    /// Forgets sectors: they read as zeros.
    pub fn forget(&self, start: u64, sectors: u64) {
        let zeros = vec![0; PIECE];
        let (mut at, end) = ((start * SECTOR_BYTES) as usize, ((start + sectors) * SECTOR_BYTES) as usize);
        while at < end {
            let count = PIECE.min(end - at);
            self.memory.as_volatile_slice().write_slice(&zeros[..count], at).expect("on the drive");
            at += count;
        }
    }
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
