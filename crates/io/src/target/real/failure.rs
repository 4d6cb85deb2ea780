//! What the system's error numbers mean for a device under measurement.

use rustix::io::Errno;

/// An error number in words: the system's own, and what it means here.
pub fn meaning(errno: i32) -> String {
    let system = std::io::Error::from_raw_os_error(errno);
    let known = MEANINGS.iter().find(|(known, _)| known.raw_os_error() == errno);
    match known {
        Some((_, meaning)) => format!("{system}: {meaning}"),
        None => system.to_string(),
    }
}

/// The block layer's status codes come back as these.
const MEANINGS: [(Errno, &str); 15] = [
    (Errno::IO, "the device could not do it; the kernel's log (dmesg) says more"),
    (Errno::NODEV, "the device is gone or offline"),
    (Errno::NXIO, "the device is gone, or ends before this"),
    (Errno::NOSPC, "the file system is full, or the pool behind a thin device is"),
    (Errno::REMOTEIO, "the device itself reports an error"),
    (Errno::NODATA, "the device cannot read back what was stored here (medium error)"),
    (Errno::NOLINK, "the connection to the device is lost"),
    (Errno::TIMEDOUT, "the device did not answer in time"),
    (Errno::ILSEQ, "the data fail the device's own integrity check"),
    (Errno::BADE, "another host has reserved the device"),
    (Errno::OPNOTSUPP, "the device does not support it"),
    (Errno::INVAL, "the system refuses its alignment or length for direct I/O"),
    (Errno::PERM, "the device or the file is protected against writing"),
    (Errno::NOMEM, "not enough memory for operations of this length and depth"),
    (Errno::STALE, "the file is gone from its server"),
];

/// What it means that fewer bytes moved than were asked for.
pub fn short(moved: u64, asked: u64) -> String {
    format!("only {moved} of {asked} bytes moved: it ends here, so it has become smaller since it was opened")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_vanishes_is_told_from_one_that_fails() {
        assert!(meaning(Errno::NODEV.raw_os_error()).contains("is gone"));
        assert!(meaning(Errno::IO.raw_os_error()).contains("dmesg"));
        assert!(meaning(Errno::NOSPC.raw_os_error()).contains("full"));
        // Unknown ones are at least named.
        assert!(meaning(Errno::XDEV.raw_os_error()).contains("18"));
    }
}
