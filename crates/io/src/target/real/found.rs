//! What there is at a path: facts from the file system, /proc and /sys. Opens for reading only.

use super::holes::first_hole;
use super::identity::{Identity, behind_loop};
use super::signatures::{HEAD_BYTES, TAIL_BYTES, signatures};
use planewise_model::Bytes;
use rustix::fs::{AtFlags, CWD, SeekFrom, StatxFlags};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What is at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// As the user named it.
    pub name: String,
    /// The same without links.
    pub canonical: String,
    /// What it is.
    pub kind: Kind,
    /// What tells it from all others, whatever path leads to it.
    pub identity: Option<Identity>,
    /// Its size.
    pub capacity: Bytes,
    /// Unit of direct I/O, bytes.
    pub block_bytes: u32,
    /// Whether a disk turns in it, where the system says so.
    pub rotational: Option<bool>,
    /// What its maker calls it.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// What tells a file from another one of its name: device, inode and, where the file system keeps it, time of birth.
    pub inode: Option<String>,
    /// File systems mounted from it or its partitions: what, and where.
    pub mounts: Vec<String>,
    /// It or its partitions, as far as they are swap space in use.
    pub swaps: Vec<String>,
    /// What is built on it: device mapper, LVM, RAID.
    pub holders: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<String>,
    /// Loop devices that it is behind.
    pub loops: Vec<String>,
    /// What its first and last bytes say.
    pub signatures: Vec<&'static str>,
    /// Why these could not be read.
    pub unread: Option<String>,
    /// Whether the system protects it against writing.
    pub is_read_only: bool,
    /// Where the first hole of a file is that has less space than its size says.
    pub hole_that_writing_fills: Option<u64>,
    /// Where the first part is that reads as zeros without a look at any device.
    pub unwritten: Option<u64>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block device.
    BlockDevice {
        /// Or a whole one.
        is_partition: bool,
    },
    /// A regular file.
    File,
    /// Something that cannot be measured.
    Other(&'static str),
}

impl Default for Kind {
    fn default() -> Kind {
        Kind::Other("nothing")
    }
}

impl Found {
    /// Its name without directories.
    pub fn base_name(&self) -> String {
        let name = Path::new(&self.canonical).file_name();
        name.map_or(self.canonical.clone(), |name| name.to_string_lossy().into_owned())
    }

    /// What tells it from another under the same name: numbers of device nodes change with every start of the system.
    pub fn identity(&self) -> Option<String> {
        let words = [
            self.model.as_ref().map(|model| format!("model {model}")),
            self.serial.as_ref().map(|serial| format!("serial {serial}")),
            self.inode.clone(),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// What it is, in a line: model, size and blocks.
    pub fn description(&self) -> String {
        let words = [
            self.model.clone(),
            self.serial.as_ref().map(|serial| format!("serial {serial}")),
            Some(self.capacity.to_string()),
            Some(format!("blocks of {} bytes", self.block_bytes)),
            self.rotational.filter(|turns| *turns).map(|_| "rotational".to_owned()),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Looks at what is at a path.
///
/// # Errors
/// There is nothing, or it must not be looked at.
pub fn find(name: &str) -> Result<Found, String> {
    let path = fs::canonicalize(name).map_err(|error| explain(&error))?;
    let meta = fs::metadata(&path).map_err(|error| explain(&error))?;
    let mut found = Found {
        name: name.to_owned(),
        canonical: path.to_string_lossy().into_owned(),
        kind: kind(&meta),
        identity: Some(Identity::new(&meta)),
        block_bytes: 512,
        ..Found::default()
    };
    match found.kind {
        Kind::Other(_) => return Ok(found),
        Kind::BlockDevice { .. } => look_at_device(&mut found, meta.rdev()),
        Kind::File => look_at_file(&mut found, &path, &meta),
    }
    let system = Tables::read();
    let names = found.parts().into_iter().map(|part| format!("/dev/{part}")).collect::<Vec<_>>();
    let is_it = |source: &str| source == found.canonical || names.iter().any(|name| name == source);
    let related = related(&meta);
    found.swaps = system.swaps.into_iter().filter(|swap| is_used(swap, &related, is_it)).collect();
    let behind = system.loops.into_iter().filter(|(node, behind)| is_behind(node, behind, &related, is_it));
    found.loops = behind.map(|(node, _)| node).collect();
    if let Kind::BlockDevice { .. } = found.kind {
        let numbers = numbers_of(meta.rdev());
        let mounted = system.mounts.into_iter().filter(|mount| {
            // Btrfs mounts have numbers of their own, and so only their source tells.
            numbers.contains(&mount.numbers) || is_it(&mount.source)
        });
        found.mounts = mounted.map(|mount| format!("{} at {}", mount.source, mount.at)).collect();
    }
    let file = File::open(&path).map_err(|error| explain(&error))?;
    if let Kind::BlockDevice { .. } = found.kind {
        let end = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(|error| explain(&error.into()))?;
        found.capacity = Bytes(end);
        if let Ok(bytes) = rustix::fs::ioctl_blksszget(&file) {
            found.block_bytes = bytes;
        }
    }
    found.check_same(&file)?;
    match read_signatures(&file, found.capacity.0) {
        Ok(signatures) => found.signatures = signatures,
        Err(error) => found.unread = Some(explain(&error)),
    }
    Ok(found)
}

/// All that overlaps with it: itself, and the partitions and the whole of a block device.
fn related(meta: &fs::Metadata) -> Vec<Identity> {
    let own = Identity::new(meta);
    match own {
        Identity::Device(device) => {
            let others = numbers_of(device).into_iter();
            others.map(|(major, minor)| Identity::Device(rustix::fs::makedev(major, minor))).collect()
        }
        Identity::File(..) => vec![own],
    }
}

/// Whether a path that the system has in use leads to any of these; one that cannot be looked at is compared by its name.
fn is_used(path: &str, related: &[Identity], is_it: impl Fn(&str) -> bool) -> bool {
    // The kernel marks what was deleted since, and may go on under another link.
    let plain = path.strip_suffix(" (deleted)").unwrap_or(path);
    let identity = Identity::of(Path::new(path));
    identity.is_some_and(|identity| related.contains(&identity)) || is_it(path) || is_it(plain)
}

/// Whether any of these is behind a loop device.
fn is_behind(node: &str, behind: &str, related: &[Identity], is_it: impl Fn(&str) -> bool) -> bool {
    // Of a file, the second is the device that it is on: one that has files in use is in use itself.
    let known = behind_loop(Path::new(node)).unwrap_or_default();
    known.iter().any(|identity| related.contains(identity)) || is_used(behind, related, is_it)
}

impl Found {
    /// Compares what was opened with what was found: the path may lead elsewhere by now.
    ///
    /// # Errors
    /// It is another device or file, or another size.
    pub fn check_same(&self, file: &File) -> Result<(), String> {
        let meta = file.metadata().map_err(|error| explain(&error))?;
        if self.identity != Some(Identity::new(&meta)) {
            return Err("its path led to something else when it was opened than when it was looked at; allowed: a path that stays".to_owned());
        }
        let capacity = match self.kind {
            Kind::BlockDevice { .. } => {
                rustix::fs::seek(file, SeekFrom::End(0)).map_err(|error| explain(&error.into()))?
            }
            _ => meta.len(),
        };
        if capacity != self.capacity.0 {
            return Err(format!(
                "found {capacity} bytes when it was opened, and {} when it was looked at; allowed: a size that stays",
                self.capacity.0
            ));
        }
        Ok(())
    }

    /// Names in /dev of a block device and its partitions.
    fn parts(&self) -> Vec<String> {
        [vec![self.base_name()], self.partitions.clone()].concat()
    }
}

fn kind(meta: &fs::Metadata) -> Kind {
    let kind = meta.file_type();
    if kind.is_file() {
        Kind::File
    } else if kind.is_block_device() {
        Kind::BlockDevice { is_partition: sys_block(meta.rdev()).join("partition").exists() }
    } else if kind.is_char_device() {
        Kind::Other("a character device")
    } else if kind.is_dir() {
        Kind::Other("a directory")
    } else if kind.is_fifo() {
        Kind::Other("a FIFO")
    } else if kind.is_socket() {
        Kind::Other("a socket")
    } else {
        Kind::Other("something of another kind")
    }
}

/// What the system says of a path that cannot be opened, and what to do.
pub fn explain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such device or file".to_owned(),
        ErrorKind::PermissionDenied => {
            "no permission; allowed: to members of its group (often disk), or to root (sudo)".to_owned()
        }
        _ => match error.raw_os_error() {
            Some(number) => super::failure::meaning(number),
            None => error.to_string(),
        },
    }
}

fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

fn sys_block(device: u64) -> PathBuf {
    let (major, minor) = numbers(device);
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

fn word(path: PathBuf) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    entries.sort();
    entries
}

fn base(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn look_at_device(found: &mut Found, device: u64) {
    let own = fs::canonicalize(sys_block(device)).unwrap_or_else(|_| sys_block(device));
    let is_partition = own.join("partition").exists();
    // Queue and maker are of the whole.
    let whole = if is_partition { own.parent().unwrap_or(&own).to_owned() } else { own.clone() };
    let partitions: Vec<PathBuf> =
        entries(&own).into_iter().filter(|entry| entry.join("partition").exists()).collect();
    found.rotational = word(whole.join("queue/rotational")).map(|text| text == "1");
    found.model = word(whole.join("device/model"));
    found.serial = word(whole.join("device/serial"));
    found.is_read_only = word(own.join("ro")).is_some_and(|text| text == "1");
    for part in std::iter::once(&own).chain(&partitions) {
        for holder in entries(&part.join("holders")) {
            let name = word(holder.join("dm/name")).map(|name| format!(" ({name})"));
            found.holders.push(base(&holder) + &name.unwrap_or_default());
        }
    }
    found.partitions = partitions.iter().map(|part| base(part)).collect();
}

/// The numbers of a block device, of its partitions and, for a partition, of the whole: what is mounted from any of them overlaps.
fn numbers_of(device: u64) -> Vec<(u32, u32)> {
    let own = fs::canonicalize(sys_block(device)).unwrap_or_else(|_| sys_block(device));
    let mut related: Vec<PathBuf> =
        entries(&own).into_iter().filter(|entry| entry.join("partition").exists()).collect();
    if own.join("partition").exists() {
        related.extend(own.parent().map(Path::to_owned));
    }
    let parse = |text: String| {
        let (major, minor) = text.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let others = related.into_iter().filter_map(|path| word(path.join("dev")).and_then(parse));
    std::iter::once(numbers(device)).chain(others).collect()
}

fn look_at_file(found: &mut Found, path: &Path, meta: &fs::Metadata) {
    found.capacity = Bytes(meta.len());
    found.is_read_only = meta.permissions().readonly();
    // Numbers of removed files are given again, often at once.
    let birth = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let birth = birth.map(|time| format!(" of {}.{:09}", time.as_secs(), time.subsec_nanos()));
    found.inode = Some(format!("inode {}:{}{}", meta.dev(), meta.ino(), birth.unwrap_or_default()));
    if let Ok(stat) = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN)
        && stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0
        && stat.stx_dio_offset_align > 0
    {
        found.block_bytes = stat.stx_dio_offset_align.max(512);
    }
    let Ok(file) = File::open(path) else { return };
    // File systems without holes say that the first is at the end; some say nothing.
    found.unwritten = rustix::fs::seek(&file, SeekFrom::Hole(0)).ok().filter(|&hole| hole < found.capacity.0);
    // What has its space and was only never written (fallocate) fills nothing up; without a map of extents, the two look alike.
    found.hole_that_writing_fills = first_hole(&file, meta.len()).unwrap_or(found.unwritten);
}

fn read_signatures(file: &File, capacity: u64) -> io::Result<Vec<&'static str>> {
    let read = |offset: u64, length: usize| {
        let length = (length as u64).min(capacity - offset) as usize;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset)?;
        io::Result::Ok(bytes)
    };
    let head = read(0, HEAD_BYTES)?;
    let tail = read(capacity.saturating_sub(TAIL_BYTES as u64), TAIL_BYTES)?;
    Ok(signatures(&head, &tail, capacity))
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    numbers: (u32, u32),
    source: String,
    at: String,
}

/// What the system has in use.
struct Tables {
    mounts: Vec<Mount>,
    swaps: Vec<String>,
    /// Loop devices, and the files or devices behind them.
    loops: Vec<(String, String)>,
}

impl Tables {
    fn read() -> Tables {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let behind = |path: PathBuf| {
            let file = word(path.join("loop/backing_file"))?;
            Some((format!("/dev/{}", base(&path)), file))
        };
        Tables {
            mounts: parse_mounts(&mounts),
            swaps: parse_swaps(&swaps),
            loops: entries(Path::new("/sys/block")).into_iter().filter_map(behind).collect(),
        }
    }
}

/// proc(5): number, parent, major:minor, root, mount point, options, optional fields, a dash, type, source, options.
fn parse_mounts(text: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let at = fields.nth(1)?;
        let source = unescape(right.split(' ').nth(1)?);
        // Links such as /dev/mapper/x are mounted under their own name.
        let source = match fs::canonicalize(&source) {
            Ok(path) if source.starts_with('/') => path.to_string_lossy().into_owned(),
            _ => source,
        };
        Some(Mount { numbers: (major.parse().ok()?, minor.parse().ok()?), source, at: unescape(at) })
    };
    text.lines().filter_map(parse).collect()
}

/// A heading, then a line for each: the file or device first.
fn parse_swaps(text: &str) -> Vec<String> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape).collect()
}

/// The kernel writes spaces, tabs, newlines and backslashes in paths as backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let octal = others.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &others[3..];
            }
            _ => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn mounts_and_swaps_are_read_as_the_kernel_writes_them() {
        let mounts = "29 1 254:1 / /my\\040disk rw,relatime shared:1 master:2 - ext4 /dev/none1 rw\n\
                      30 29 0:45 /sub /home rw - btrfs /dev/none2 rw,subvol=/sub\nnonsense\n";
        let parsed = parse_mounts(mounts);
        assert_eq!(
            parsed[0],
            Mount { numbers: (254, 1), source: "/dev/none1".into(), at: "/my disk".into() }
        );
        assert_eq!((parsed[1].source.as_str(), parsed.len()), ("/dev/none2", 2));
        let swaps =
            "Filename\tType\tSize\tUsed\tPriority\n/dev/none3 partition 8 0 -2\n/a\\134b file 8 0 -3\n";
        assert_eq!(parse_swaps(swaps), ["/dev/none3", "/a\\b"]);
        assert_eq!(unescape("a\\04"), "a\\04");
    }

    #[test]
    fn what_is_at_a_path_is_found_without_touching_it() {
        let directory = tempfile::tempdir().unwrap();
        let found = find(directory.path().to_str().unwrap()).unwrap();
        assert_eq!(found.kind, Kind::Other("a directory"));
        assert_eq!(find("/dev/null").unwrap().kind, Kind::Other("a character device"));
        let path = directory.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&[1u8; 8192]).unwrap();
        file.sync_all().unwrap();
        let found = find(path.to_str().unwrap()).unwrap();
        assert_eq!((found.kind, found.capacity), (Kind::File, Bytes(8192)));
        assert_eq!(found.hole_that_writing_fills, None);
        assert_eq!(found.base_name(), "file");
        file.set_len(1 << 20).unwrap();
        let found = find(path.to_str().unwrap()).unwrap();
        assert!(found.hole_that_writing_fills.is_some_and(|hole| (8192..=65536).contains(&hole)));
        assert!(find("/nowhere/at/all").unwrap_err().contains("no such"));
    }

    #[test]
    fn space_past_the_end_makes_up_for_no_hole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&[1u8; 65536]).unwrap();
        file.set_len(1 << 20).unwrap();
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 1 << 20, 2 << 20).is_err() {
            eprintln!("skipped: this file system preallocates nothing");
            return;
        }
        file.sync_all().unwrap();
        let meta = file.metadata().unwrap();
        assert!(meta.blocks() * 512 >= meta.len(), "its blocks alone say that it is whole");
        assert_eq!(find(path.to_str().unwrap()).unwrap().hole_that_writing_fills, Some(65536));
        // A hole in the middle of many extents, then none.
        for block in (0..128u64).filter(|block| block % 2 == 1 && *block != 77) {
            file.write_all_at(&[1u8; 4096], block * 8192).unwrap();
            file.write_all_at(&[1u8; 4096], block * 8192 + 4096).unwrap();
        }
        file.write_all_at(&[1u8; 1 << 19], 0).unwrap();
        file.sync_all().unwrap();
        let hole = find(path.to_str().unwrap()).unwrap().hole_that_writing_fills;
        assert_eq!(hole, Some(1 << 19));
        if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).is_ok()
            && first_hole(&file, 1 << 20).is_ok()
        {
            let found = find(path.to_str().unwrap()).unwrap();
            assert_eq!(found.hole_that_writing_fills, None, "preallocated");
            assert!(found.unwritten.is_some(), "and never written");
        }
    }

    #[test]
    fn what_was_opened_is_what_was_found() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["file", "other"].map(|name| directory.path().join(name));
        std::fs::write(&path, [1u8; 4096]).unwrap();
        std::fs::write(&other, [1u8; 4096]).unwrap();
        let found = find(path.to_str().unwrap()).unwrap();
        assert_eq!(found.check_same(&File::open(&path).unwrap()), Ok(()));
        let error = found.check_same(&File::open(&other).unwrap()).unwrap_err();
        assert!(error.contains("something else"), "{error}");
        std::fs::write(&path, [1u8; 8192]).unwrap();
        let error = found.check_same(&File::open(&path).unwrap()).unwrap_err();
        assert!(error.contains("found 8192 bytes when it was opened, and 4096"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [0u8; 4096]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(read_signatures(&file, 4096).unwrap(), Vec::<&str>::new());
        assert!(read_signatures(&file, 8192).is_err());
    }

    #[test]
    fn a_swap_file_is_known_by_any_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::fs::write(&path, "x").unwrap();
        std::fs::hard_link(&path, &link).unwrap();
        let related = related(&fs::metadata(&path).unwrap());
        assert!(is_used(link.to_str().unwrap(), &related, |_| false));
        assert!(!is_used("/nowhere", &related, |_| false));
        assert!(is_used("/nowhere (deleted)", &related, |name| name == "/nowhere"));
    }

    #[test]
    fn a_file_behind_a_loop_device_is_known_by_any_of_its_names() {
        struct Loop(String);
        impl Drop for Loop {
            fn drop(&mut self) {
                let _ = std::process::Command::new("losetup").args(["-d", &self.0]).status();
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::fs::write(&path, vec![0u8; 1 << 20]).unwrap();
        std::fs::hard_link(&path, &link).unwrap();
        let made = std::process::Command::new("losetup").args(["-r", "-f", "--show"]).arg(&path).output();
        let made = match made {
            Ok(output) if output.status.success() => {
                Loop(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            _ => {
                eprintln!("skipped: no loop device can be set up here");
                return;
            }
        };
        let link = link.to_str().unwrap();
        let behind = || find(link).unwrap().loops.contains(&made.0);
        assert!(behind());
        std::fs::remove_file(&path).unwrap();
        assert!(behind(), "deleted under its first name");
    }

    #[test]
    fn the_disk_under_the_root_is_never_free() {
        let root = fs::metadata("/").unwrap().dev();
        let Some(name) = fs::canonicalize(sys_block(root)).ok().map(|path| base(&path)) else {
            eprintln!("skipped: the root of this system is on no block device");
            return;
        };
        match find(&format!("/dev/{name}")) {
            Ok(found) => {
                let error = super::super::guard::check_writing(&found, Some(&name)).unwrap_err();
                assert!(error.contains("mounted"), "{error}");
            }
            Err(why) => eprintln!("skipped: /dev/{name}: {why}"),
        }
    }
}
