//! Whether what was found may be read, or overwritten. Pure: it decides over [`Found`], and touches nothing.

use super::found::{Found, Kind};
use planewise_model::names;

/// Whether it can be measured at all, without writing.
///
/// # Errors
/// What it is instead of a block device or a file, or what is wrong with the file.
pub fn check_reading(found: &Found) -> Result<(), String> {
    match found.kind {
        Kind::BlockDevice { .. } | Kind::File => {}
        Kind::Other(what) => {
            return Err(format!("found {what}; allowed: a block device or a regular file"));
        }
    }
    let block = u64::from(found.block_bytes);
    if found.capacity.0 == 0 {
        return Err("found a size of 0 bytes; allowed: a device with a medium, a file with data".to_owned());
    }
    if !found.capacity.0.is_multiple_of(block) {
        return Err(format!(
            "found {} bytes, not a multiple of its blocks of {block} bytes; allowed: a block device, or a file made as one (fallocate -l 1G FILE)",
            found.capacity.0
        ));
    }
    Ok(())
}

/// Whether it may be overwritten, given the name that the user typed again.
///
/// # Errors
/// Everything that speaks against it, at once.
pub fn check_writing(found: &Found, confirmed: Option<&str>) -> Result<(), String> {
    check_reading(found)?;
    let mut against = in_use(found);
    if found.is_read_only {
        against.push("it is read-only".to_owned());
    }
    if let Some(why) = &found.unread {
        against.push(format!("what is on it cannot be read ({why})"));
    }
    if let Some(hole) = found.hole_that_writing_fills {
        against.push(format!(
            "it has a hole at byte {hole}, which writing would fill (fallocate -l {} FILE makes one without)",
            found.capacity.0
        ));
    }
    if !against.is_empty() {
        return Err(format!("it will not be overwritten: {}", against.join("; ")));
    }
    confirm(found, confirmed)
}

/// What somebody else has on it or with it.
fn in_use(found: &Found) -> Vec<String> {
    let listed = |what: &str, list: &[String]| {
        if list.is_empty() { None } else { Some(format!("{what} {}", list.join(", "))) }
    };
    let signatures: Vec<String> = found.signatures.iter().map(|what| (*what).to_owned()).collect();
    let all = [
        listed("it is mounted:", &found.mounts),
        listed("it is swap space in use:", &found.swaps),
        listed("it is held by", &found.holders),
        listed("it has partitions:", &found.partitions),
        listed("it is behind", &found.loops),
        listed("there is", &signatures).map(|text| format!("{text} on it (wipefs -a removes that)")),
    ];
    all.into_iter().flatten().collect()
}

/// Compares the name that was typed again.
fn confirm(found: &Found, confirmed: Option<&str>) -> Result<(), String> {
    let mut names = vec![found.base_name(), found.name.clone(), found.canonical.clone()];
    names.dedup();
    let Some(confirmed) = confirmed else {
        return Err(format!(
            "all its data would be lost, and --destroy-data was not given; allowed: --destroy-data {} to overwrite it",
            names[0]
        ));
    };
    if names.iter().any(|name| name == confirmed) {
        return Ok(());
    }
    let nearest = names::nearest(confirmed, names.iter().map(String::as_str));
    let hint = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    Err(format!(
        "--destroy-data: found '{confirmed}'{hint}; allowed: the name of the target typed again, one of {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::Bytes;

    fn drive() -> Found {
        Found {
            name: "/dev/disk/by-id/nvme-X".to_owned(),
            canonical: "/dev/nvme0n1".to_owned(),
            kind: Kind::BlockDevice { is_partition: false },
            capacity: Bytes(1 << 30),
            block_bytes: 512,
            ..Found::default()
        }
    }

    #[test]
    fn a_free_drive_is_overwritten_only_under_its_own_name() {
        let drive = drive();
        for name in ["nvme0n1", "/dev/nvme0n1", "/dev/disk/by-id/nvme-X"] {
            assert_eq!(check_writing(&drive, Some(name)), Ok(()));
        }
        let error = check_writing(&drive, None).unwrap_err();
        assert!(error.contains("--destroy-data nvme0n1"), "{error}");
        let error = check_writing(&drive, Some("nvme1n1")).unwrap_err();
        assert!(error.contains("found 'nvme1n1' (did you mean 'nvme0n1'?)"), "{error}");
        for name in ["", "nvme0n1p1", "NVME0N1", "nvme0n1 ", "yes"] {
            assert!(check_writing(&drive, Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn nothing_that_is_in_use_is_overwritten_whatever_is_typed() {
        let list = |text: &str| vec![text.to_owned()];
        let cases = [
            (
                Found { mounts: list("/dev/nvme0n1p2 at /home"), ..drive() },
                "mounted: /dev/nvme0n1p2 at /home",
            ),
            (Found { swaps: list("/dev/nvme0n1"), ..drive() }, "swap"),
            (Found { holders: list("dm-0 (luks-root)"), ..drive() }, "held by dm-0"),
            (Found { partitions: list("nvme0n1p1"), ..drive() }, "partitions: nvme0n1p1"),
            (Found { loops: list("/dev/loop3"), ..drive() }, "behind /dev/loop3"),
            (Found { signatures: vec!["an XFS file system"], ..drive() }, "an XFS file system on it"),
            (Found { is_read_only: true, ..drive() }, "read-only"),
            (Found { unread: Some("an error".to_owned()), ..drive() }, "cannot be read (an error)"),
            (Found { hole_that_writing_fills: Some(4096), ..drive() }, "hole at byte 4096"),
        ];
        for (found, words) in cases {
            let error = check_writing(&found, Some("nvme0n1")).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert_eq!(check_reading(&found), Ok(()), "reading does no harm");
        }
    }

    #[test]
    fn all_that_speaks_against_it_is_said_at_once() {
        let found = Found {
            mounts: vec!["/".to_owned()],
            signatures: vec!["an MBR partition table", "swap space"],
            ..drive()
        };
        let error = check_writing(&found, Some("nvme0n1")).unwrap_err();
        for words in ["mounted: /;", "an MBR partition table, swap space"] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_is_no_device_is_refused_by_its_name() {
        for what in ["a directory", "a character device", "a FIFO", "a socket"] {
            let error = check_reading(&Found { kind: Kind::Other(what), ..drive() }).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        let text = Found { kind: Kind::File, capacity: Bytes(1234), ..drive() };
        let error = check_reading(&text).unwrap_err();
        assert!(error.contains("1234 bytes, not a multiple"), "{error}");
        let odd = Found { capacity: Bytes(4096 + 512), block_bytes: 4096, ..drive() };
        assert!(check_reading(&odd).is_err());
        assert!(check_reading(&Found { capacity: Bytes(0), ..drive() }).is_err());
    }
}
