//! What makes two paths the same device or file: links, bind mounts and nodes made by hand have other paths, not other numbers.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What the kernel tells devices and files apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The number of a block device.
    Device(u64),
    /// The device that a file is on, and its inode there.
    File(u64, u64),
}

impl Identity {
    /// Of what was looked at.
    pub fn new(meta: &Metadata) -> Identity {
        if meta.file_type().is_block_device() {
            Identity::Device(meta.rdev())
        } else {
            Identity::File(meta.dev(), meta.ino())
        }
    }

    /// Of what is at a path, if it can be looked at.
    pub fn of(path: &Path) -> Option<Identity> {
        fs::metadata(path).ok().map(|meta| Identity::new(&meta))
    }
}

/// From linux/loop.h: asks for [`LoopStatus`].
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;

/// The beginning of what the kernel says of a loop device (linux/loop.h, `loop_info64`), and room for the rest.
#[repr(C)]
struct LoopStatus {
    device: u64,
    inode: u64,
    device_itself: u64,
    rest: [u64; 26],
}

/// What is behind a loop device, from the kernel itself: this also knows files that were deleted or lie in another mount namespace.
///
/// # Errors
/// The device may not be opened, or nothing is behind it.
pub fn behind_loop(node: &Path) -> io::Result<Vec<Identity>> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(node)?;
    let mut status = LoopStatus { device: 0, inode: 0, device_itself: 0, rest: [0; 26] };
    status_of(&file, &mut status)?;
    Ok(vec![Identity::File(status.device, status.inode), Identity::Device(status.device_itself)])
}

fn status_of(file: &File, status: &mut LoopStatus) -> io::Result<()> {
    // SAFETY: the structure is as long as the kernel's, and outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, std::ptr::from_mut(status)) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_the_same_and_copies_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, copy] = ["file", "link", "copy"].map(|name| directory.path().join(name));
        fs::write(&file, "x").unwrap();
        fs::hard_link(&file, &link).unwrap();
        fs::copy(&file, &copy).unwrap();
        assert_eq!(Identity::of(&file), Identity::of(&link));
        assert_ne!(Identity::of(&file), Identity::of(&copy));
        assert_eq!(Identity::of(&directory.path().join("none")), None);
        assert_eq!(std::mem::size_of::<LoopStatus>(), 232, "as long as loop_info64");
    }
}
