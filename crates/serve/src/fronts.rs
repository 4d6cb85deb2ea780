//! Which ways there are on this host to get at a drive.

use crate::ublk::CONTROL;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A way to get at a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Network Block Device over a local socket or a port.
    Nbd,
    /// A local socket for QEMU and Cloud Hypervisor.
    VhostUser,
    /// The kernel's own driver for block devices in user space.
    Ublk,
    /// A file system of one file, for a loop device.
    Fuse,
}

impl Front {
    /// All, the best first.
    pub const ALL: [Front; 4] = [Front::Ublk, Front::VhostUser, Front::Nbd, Front::Fuse];
    /// Their names.
    pub const NAMES: &'static str = "nbd, vhost-user, ublk, fuse";

    /// Whether it can be had here: why, or why not.
    pub fn available(self) -> Result<String, String> {
        match self {
            Front::Nbd => Ok(match Path::new("/dev/nbd0").exists() {
                true => "for programs of libnbd, QEMU, fio, and the kernel's client (/dev/nbd0 is here)".into(),
                false => "for programs of libnbd, QEMU and fio; for the kernel's client load the module first: modprobe nbd".into(),
            }),
            Front::VhostUser => Ok("for QEMU and Cloud Hypervisor".into()),
            Front::Ublk => match std::fs::File::options().read(true).write(true).open(CONTROL) {
                Ok(_) => Ok("a block device of the kernel's, /dev/ublkbN".into()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    Err(format!("there is no {CONTROL}: modprobe ublk_drv, from Linux 6.5 on"))
                }
                Err(error) => Err(format!("{CONTROL}: {error}")),
            },
            Front::Fuse => match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
                Ok(_) if Path::new("/dev/loop-control").exists() => {
                    Ok("a file to put a loop device on, where nothing else goes".into())
                }
                Ok(_) => Ok("a file; there are no loop devices: modprobe loop".into()),
                Err(error) => Err(format!("/dev/fuse: {error}")),
            },
        }
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Front::Nbd => "nbd",
            Front::VhostUser => "vhost-user",
            Front::Ublk => "ublk",
            Front::Fuse => "fuse",
        })
    }
}

impl FromStr for Front {
    type Err = String;

    fn from_str(text: &str) -> Result<Front, String> {
        Front::ALL
            .into_iter()
            .find(|front| front.to_string() == text)
            .ok_or_else(|| format!("allowed: {}", Front::NAMES))
    }
}
