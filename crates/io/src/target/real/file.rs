//! Opening the file behind a target for direct I/O, and what can be said of it then.

use super::buffers::Buffers;
use super::found::{Found, Kind, explain};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

/// Units of direct I/O to try where the system does not tell, bytes.
const BLOCKS: [u32; 2] = [512, 4096];

/// Opens what was found, past the page cache: a block device for writing only when nobody else has it.
///
/// # Errors
/// Whatever the system refuses, in words.
pub fn open(found: &Found, writable: bool) -> Result<File, String> {
    let mut flags = OFlags::DIRECT;
    if writable && matches!(found.kind, Kind::BlockDevice { .. }) {
        flags |= OFlags::EXCL;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(writable).custom_flags(flags.bits() as i32);
    options.open(&found.canonical).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INVAL) => no_direct_io(),
        Some(Errno::BUSY) => "it is in use: mounted in another namespace, held by the kernel, or opened exclusively by a program; allowed: a free device".to_owned(),
        Some(Errno::ROFS) => "it is read-only; allowed: reading".to_owned(),
        _ => explain(&error),
    })
}

fn no_direct_io() -> String {
    "its file system refuses direct I/O (O_DIRECT), and the page cache would be measured instead; allowed: a block device, or a file on ext4, XFS, Btrfs, …".to_owned()
}

/// The unit of direct I/O of an open file: the one found, or the first that a read succeeds with.
///
/// # Errors
/// No read succeeds.
pub fn block_bytes(file: &File, found: &Found, buffers: &Buffers) -> Result<u32, String> {
    let mut last = None;
    for block in BLOCKS.into_iter().filter(|&block| block >= found.block_bytes) {
        let fits = found.capacity.0 >= u64::from(block);
        // SAFETY: slices are pages at least, and nothing is under way.
        let memory = unsafe { std::slice::from_raw_parts_mut(buffers.for_read(0), block as usize) };
        match rustix::io::pread(file.as_fd(), memory, 0) {
            Ok(_) if fits => return Ok(block),
            Ok(_) => {}
            Err(Errno::INVAL) => last = Some(no_direct_io()),
            Err(error) => return Err(format!("its first block cannot be read: {}", explain(&error.into()))),
        }
    }
    match last {
        Some(refused) => Err(refused),
        // Larger units than were tried are the device's own word.
        None => Ok(found.block_bytes),
    }
}
