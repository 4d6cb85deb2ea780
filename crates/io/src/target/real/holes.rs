//! Where a file has no space behind its bytes. The number of its blocks does not tell: space past its end and blocks of the
//! file system's own bookkeeping count as well.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// From linux/fs.h: asks for [`Map`].
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;

/// Extents that are asked for at a time.
const EXTENTS: usize = 128;

/// From linux/fiemap.h, `fiemap` and `fiemap_extent`.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// The first byte before `length` that no extent is behind. What is preallocated and was never written has an extent.
///
/// # Errors
/// The file system keeps no map of extents.
pub fn first_hole(file: &File, length: u64) -> io::Result<Option<u64>> {
    let mut covered = 0;
    while covered < length {
        let extents = extents(file, covered, length - covered)?;
        let before = covered;
        for (start, bytes) in extents {
            if start > covered {
                return Ok(Some(covered));
            }
            covered = covered.max(start.saturating_add(bytes));
        }
        if covered == before {
            return Ok(Some(covered));
        }
    }
    Ok(None)
}

/// Start and length of the extents in a part of a file, as far as they fit one answer.
fn extents(file: &File, start: u64, length: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut map = Map {
        start,
        length,
        flags: 0,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [Extent::default(); EXTENTS],
    };
    // SAFETY: the structure has room for as many extents as it says, and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, std::ptr::from_mut(&mut map)) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = map.extents.iter().take(map.mapped_extents as usize);
    Ok(mapped.map(|extent| (extent.logical, extent.length)).collect())
}
