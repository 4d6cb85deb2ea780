//! Guards and errors of block devices, on loop devices: skipped, each with a line, where the tests may not make any.

use planewise_io::target::real::{RealOptions, RealTarget, open};
use planewise_io::{Operation, Target, TargetError};
use planewise_model::{Lsn, Ns};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const BYTES: u64 = 32 << 20;

/// A loop device over a file of its own, until it is dropped.
struct Loop {
    device: String,
    backing: PathBuf,
    _directory: TempDir,
}

impl Loop {
    fn new(options: &[&str]) -> Option<Loop> {
        let directory = tempfile::tempdir().unwrap();
        let backing = directory.path().join("backing");
        let mut file = File::create(&backing).unwrap();
        file.write_all(&vec![0; BYTES as usize]).unwrap();
        file.sync_all().unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).args(options).arg(&backing).output();
        let device = match made {
            Ok(made) if made.status.success() => String::from_utf8(made.stdout).unwrap().trim().to_owned(),
            Ok(made) => {
                eprintln!("skipped: losetup: {}", String::from_utf8_lossy(&made.stderr).trim());
                return None;
            }
            Err(error) => {
                eprintln!("skipped: losetup: {error}");
                return None;
            }
        };
        Some(Loop { device, backing, _directory: directory })
    }

    fn base(&self) -> &str {
        self.device.rsplit('/').next().unwrap()
    }

    fn open_for_writing(&self) -> Result<RealTarget, TargetError> {
        let options = RealOptions {
            writes: true,
            destroy_data: Some(self.base().to_owned()),
            ..RealOptions::default()
        };
        open(&self.device, &options)
    }

    fn refusal(&self) -> String {
        match self.open_for_writing() {
            Ok(_) => panic!("{} was opened for writing", self.device),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Whether a program did what it was for; says why the rest is skipped if not.
fn done(program: &str, arguments: &[&str]) -> bool {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            false
        }
    }
}

fn one(target: &mut RealTarget, operation: Operation) -> Result<(), TargetError> {
    target.submit(0, operation)?;
    target.wait(Ns::MAX, &mut Vec::new()).map(|_| ())
}

#[test]
fn a_free_device_is_written_under_its_name_and_held_exclusively() {
    let Some(device) = Loop::new(&[]) else { return };
    let mut target = device.open_for_writing().unwrap();
    assert_eq!(target.info().capacity.0, BYTES);
    one(&mut target, Operation::write(Lsn(64), 8)).unwrap();
    target.flush().unwrap();
    let second = device.refusal();
    assert!(second.contains("in use"), "{second}");
    drop(target);
    let exclusive = OpenOptions::new().read(true).custom_flags(0o200).open(&device.device).unwrap();
    let refused = device.refusal();
    assert!(refused.contains("in use"), "{refused}");
    drop(exclusive);
    // Nothing but the 4 KiB.
    let bytes = std::fs::read(&device.backing).unwrap();
    let changed = bytes.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
    assert_eq!(changed.map(|(number, _)| number).collect::<Vec<_>>(), [8]);
}

#[test]
fn blocks_of_4_kib_are_addressed_as_such() {
    let Some(device) = Loop::new(&["--sector-size", "4096"]) else { return };
    let mut target = open(&device.device, &RealOptions::default()).unwrap();
    assert_eq!(target.info().block_bytes, 4096);
    let refused = target.submit(0, Operation::read(Lsn(1), 8)).unwrap_err().to_string();
    assert!(refused.contains("blocks of 4096 bytes"), "{refused}");
    one(&mut target, Operation::read(Lsn(8), 8)).unwrap();
}

#[test]
fn a_file_system_is_never_overwritten_mounted_or_not_nor_the_file_behind_it() {
    let Some(device) = Loop::new(&[]) else { return };
    if !done("mkfs.ext4", &["-q", &device.device]) {
        return;
    }
    let error = device.refusal();
    assert!(error.contains("there is an ext2, ext3 or ext4 file system on it"), "{error}");
    let behind = device.backing.to_str().unwrap();
    let options =
        RealOptions { writes: true, destroy_data: Some("backing".to_owned()), ..RealOptions::default() };
    let error = open(behind, &options).err().expect("it is behind a device").to_string();
    assert!(error.contains(&format!("it is behind {}", device.device)), "{error}");
    let at = tempfile::tempdir().unwrap();
    if !done("mount", &[&device.device, at.path().to_str().unwrap()]) {
        return;
    }
    let error = device.refusal();
    assert!(done("umount", &[at.path().to_str().unwrap()]));
    assert!(
        error.contains(&format!("it is mounted: {} at {}", device.device, at.path().display())),
        "{error}"
    );
}

/// An MBR with one partition of 8 MiB at 1 MiB.
fn partition(backing: &Path) {
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0x83;
    sector[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&16384u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut file = OpenOptions::new().write(true).open(backing).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&sector).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_partitioned_device_is_refused_and_a_free_partition_is_not() {
    let Some(device) = Loop::new(&["--partscan"]) else { return };
    partition(&device.backing);
    let error = device.refusal();
    assert!(error.contains("an MBR partition table"), "{error}");
    // Told to the kernel by hand: not every kernel reads partition tables.
    if !done("addpart", &[&device.device, "1", "2048", "16384"]) {
        return;
    }
    let name = format!("{}p1", device.device);
    if !Path::new(&name).exists() {
        eprintln!("skipped: {name} does not appear");
        return;
    }
    let error = device.refusal();
    assert!(error.contains(&format!("it has partitions: {}p1", device.base())), "{error}");
    let options = RealOptions {
        writes: true,
        destroy_data: Some(format!("{}p1", device.base())),
        ..RealOptions::default()
    };
    let target = open(&name, &options).unwrap();
    assert_eq!(target.info().capacity.0, 8 << 20);
}

#[test]
fn a_device_that_fails_is_said_to_fail_and_where() {
    let Some(device) = Loop::new(&[]) else { return };
    let mut target = open(&device.device, &RealOptions::default()).unwrap();
    one(&mut target, Operation::read(Lsn(0), 8)).unwrap();
    // The device has its size from when it was set up: what is behind it now ends before.
    OpenOptions::new().write(true).open(&device.backing).unwrap().set_len(1 << 20).unwrap();
    let end = BYTES / 512 - 8;
    let error = one(&mut target, Operation::read(Lsn(end), 8)).unwrap_err().to_string();
    assert!(error.contains(&format!("a read of 4096 bytes at sector {end} failed:")), "{error}");
    assert!(error.contains("dmesg"), "{error}");
}

#[test]
fn a_block_device_is_trimmed_where_it_is_told_to_by_either_engine() {
    use planewise_io::target::real::Engine;
    for engine in [Engine::IoUring, Engine::Synchronous] {
        let Some(device) = Loop::new(&[]) else { return };
        std::fs::write(&device.device, vec![7u8; BYTES as usize]).unwrap();
        let options = RealOptions {
            writes: true,
            discards: true,
            destroy_data: Some(device.base().to_owned()),
            engine,
            depth: 4,
            ..RealOptions::default()
        };
        let mut target = match open(&device.device, &options) {
            Ok(target) => target,
            Err(error) => {
                eprintln!("skipped: {error}");
                continue;
            }
        };
        // Reads and a flush are under way beside it, and one discard is longer than what is moved at once.
        let operations = [
            Operation::read(Lsn(0), 8),
            Operation::discard(Lsn(64), 64),
            Operation::flush(),
            Operation::discard(Lsn(8192), 8192),
        ];
        for (tag, operation) in operations.into_iter().enumerate() {
            target.submit(tag as u32, operation).unwrap();
        }
        let mut completed = Vec::new();
        while completed.len() < 4 {
            if let Err(error) = target.wait(Ns::MAX, &mut completed) {
                panic!("{engine}: {error}");
            }
        }
        let mut tags: Vec<u32> = completed.iter().map(|one| one.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3], "{engine}");
        target.flush().unwrap();
        drop(target);
        let bytes = std::fs::read(&device.backing).unwrap();
        let is = |from: usize, to: usize, byte: u8| bytes[from * 512..to * 512].iter().all(|of| *of == byte);
        assert!(is(0, 64, 7) && is(64, 128, 0) && is(128, 8192, 7) && is(8192, 16384, 0), "{engine}");
        assert!(is(16384, BYTES as usize / 512, 7), "{engine}");
    }
}
