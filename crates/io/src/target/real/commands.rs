//! What beside reads and writes the system is asked for: flushes, discards, and writes that are kept once acknowledged.

use planewise_model::{Durability, Operation};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// From linux/fs.h, `_IO(0x12, 119)`: discards the bytes of a block device from the first number on, as many as the second says.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// How `fallocate` takes the space of a part of a file away, which then reads as zeros.
pub const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// `fdatasync`, or `fsync` for [`Operation::FlushWithMetadata`].
///
/// # Errors
/// The system's.
pub fn flush(file: &File, operation: Operation) -> io::Result<()> {
    if operation == Operation::FlushWithMetadata { file.sync_all() } else { file.sync_data() }
}

/// Discards bytes: of a block device as TRIM does, of a file by a hole in the place of its data.
///
/// # Errors
/// The system's; a file system that has no holes.
pub fn discard(file: &File, is_block_device: bool, offset: u64, bytes: u64) -> io::Result<()> {
    let descriptor = file.as_raw_fd();
    let range = [offset, bytes];
    let done = if is_block_device {
        // SAFETY: the request reads two numbers from where it is told.
        unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()) }
    } else {
        // SAFETY: no memory is passed.
        unsafe { libc::fallocate64(descriptor, PUNCH_HOLE, offset as libc::off64_t, bytes as libc::off64_t) }
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The flag of a write (`pwritev2`) that makes it kept once acknowledged; 0 for none.
pub fn write_flags(durability: Durability) -> i32 {
    match durability {
        Durability::ForceUnitAccessWithMetadata => libc::RWF_SYNC,
        durability if durability.forces_unit_access() => libc::RWF_DSYNC,
        _ => 0,
    }
}
