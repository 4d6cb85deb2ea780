use super::*;
use crate::target::{Completed, Operation};
use planewise_model::{self as model, Durability, Lsn};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

const FILE_BYTES: u64 = 4 << 20;

/// A file without holes, or nothing where this machine's directory for such files has no direct I/O.
fn file(directory: &Path) -> Option<PathBuf> {
    let path = directory.join("target.bin");
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![7u8; FILE_BYTES as usize]).unwrap();
    file.sync_all().unwrap();
    match open(path.to_str().unwrap(), &RealOptions::default()) {
        Err(error) if error.to_string().contains("O_DIRECT") => {
            eprintln!("skipped: {error}");
            None
        }
        _ => Some(path),
    }
}

/// The engines of this machine; io_uring is refused in some containers.
fn engines(path: &Path) -> Vec<Engine> {
    let with = |engine| RealOptions { engine, ..RealOptions::default() };
    let name = path.to_str().unwrap();
    [Engine::IoUring, Engine::Synchronous]
        .into_iter()
        .filter(|&engine| match open(name, &with(engine)) {
            Ok(_) => true,
            Err(error) => {
                eprintln!("skipped for {engine:?}: {error}");
                false
            }
        })
        .collect()
}

fn error_of(name: &Path, options: &RealOptions) -> String {
    match open(name.to_str().unwrap(), options) {
        Ok(_) => panic!("{} was opened", name.display()),
        Err(error) => error.to_string(),
    }
}

fn writing(name: &str) -> RealOptions {
    RealOptions { writes: true, destroy_data: Some(name.to_owned()), ..RealOptions::default() }
}

#[test]
fn every_operation_completes_once_with_its_tag() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        let options = RealOptions { engine, depth: 8, ..writing("target.bin") };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        let mut completed: Vec<Completed> = Vec::new();
        let mut begun = 0u64;
        let mut free: Vec<u32> = (0..8).collect();
        while begun < 400 || free.len() < 8 {
            while begun < 400
                && let Some(tag) = free.pop()
            {
                let start = Lsn(begun * 37 % (FILE_BYTES / 4096) * 8);
                let operation = if begun.is_multiple_of(3) {
                    Operation::write(start, 8)
                } else {
                    Operation::read(start, 8)
                };
                target.submit(tag, operation).unwrap();
                begun += 1;
            }
            let before = completed.len();
            let now = target.wait(Ns::MAX, &mut completed).unwrap();
            assert!(completed.len() > before, "{engine:?}: a wait for ever ended without a completion");
            for one in &completed[before..] {
                assert!(one.issued > Ns::ZERO && one.issued <= one.completed && one.completed <= now);
                assert!(!free.contains(&one.tag));
                free.push(one.tag);
            }
        }
        assert_eq!(completed.len(), 400);
        target.flush().unwrap();
    }
}

#[test]
fn a_wait_ends_in_time_and_a_wait_for_nothing_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        let options = RealOptions { engine, ..RealOptions::default() };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        let mut none = Vec::new();
        for micros in [0, 20, 150, 3_000] {
            let until = target.now() + Ns::from_micros(micros);
            let now = target.wait(until, &mut none).unwrap();
            // How late is for the experiment, not for a machine that also compiles; but a second is no wait of microseconds.
            assert!(now >= until && now < until + Ns::from_millis(1_000), "{engine:?}: {micros} us");
        }
        assert!(none.is_empty());
        let error = target.wait(Ns::MAX, &mut none).unwrap_err();
        assert!(error.to_string().contains("nothing is under way"), "{error}");
    }
}

#[test]
fn reading_changes_no_byte_and_cannot() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    let before = std::fs::read(&path).unwrap();
    for engine in engines(&path) {
        let options = RealOptions { engine, ..RealOptions::default() };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        assert!(!target.info().writable);
        let refused = target.submit(0, Operation::write(Lsn(0), 8)).unwrap_err();
        assert!(refused.to_string().contains("opened for reading"), "{refused}");
        let mut completed = Vec::new();
        target.submit(0, Operation::read(Lsn(0), 2048)).unwrap();
        target.wait(Ns::MAX, &mut completed).unwrap();
    }
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn what_is_written_has_its_sector_and_never_comes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        let options = RealOptions { engine, depth: 4, ..writing(path.to_str().unwrap()) };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        let mut completed = Vec::new();
        for number in 0..64 {
            target.submit(number % 4, Operation::write(Lsn(u64::from(number) * 64), 64)).unwrap();
            while completed.len() <= number as usize {
                target.wait(Ns::MAX, &mut completed).unwrap();
            }
        }
        target.flush().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let blocks: BTreeSet<&[u8]> = bytes[..64 * 64 * 512].chunks_exact(4096).collect();
        assert_eq!(blocks.len(), 64 * 8, "{engine:?}");
        for (number, block) in bytes[..64 * 64 * 512].chunks_exact(4096).enumerate() {
            assert_eq!(u64::from_le_bytes(block[..8].try_into().unwrap()), number as u64 * 8);
        }
        assert!(bytes[64 * 64 * 512..].iter().all(|byte| *byte == 7), "past the area");
    }
}

#[test]
fn a_file_that_shrinks_is_said_to() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(FILE_BYTES).unwrap();
        let options = RealOptions { engine, ..RealOptions::default() };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(FILE_BYTES / 2).unwrap();
        target.submit(3, Operation::read(Lsn(FILE_BYTES / 512 - 8), 8)).unwrap();
        let error = target.wait(Ns::MAX, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("a read of 4096 bytes at sector 8184 failed: only 0 of 4096"), "{error}");
    }
}

#[test]
fn what_is_no_target_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "these are notes, no device\n").unwrap();
    let empty = directory.path().join("empty");
    File::create(&empty).unwrap();
    let options = RealOptions::default();
    for (path, words) in [
        (directory.path(), "found a directory"),
        (Path::new("/dev/null"), "found a character device"),
        (Path::new("/nowhere"), "there is no such device or file"),
        (&text, "found 27 bytes, not a multiple"),
        (&empty, "0 bytes"),
    ] {
        let error = error_of(path, &options);
        assert!(error.starts_with(&path.display().to_string()) && error.contains(words), "{error}");
    }
}

#[test]
fn a_file_with_holes_is_read_with_a_word_and_never_filled() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    let sparse = directory.path().join("sparse");
    File::create(&sparse).unwrap().set_len(FILE_BYTES).unwrap();
    let error = error_of(&sparse, &writing("sparse"));
    assert!(error.contains("hole at byte 0"), "{error}");
    let read = open(sparse.to_str().unwrap(), &RealOptions::default()).unwrap();
    assert!(read.notes()[0].contains("nothing was ever written from byte 0"), "{:?}", read.notes());
    assert_eq!(std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&sparse).unwrap()), 0);
    // A file without holes, but under another's name.
    let error = error_of(&path, &writing("sparse"));
    assert!(error.contains("--destroy-data: found 'sparse'") && error.contains("target.bin"), "{error}");
}

#[test]
fn options_out_of_range_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    let options = RealOptions::default();
    for (options, words) in [
        (RealOptions { depth: 0, ..options.clone() }, "depth: found 0"),
        (RealOptions { depth: 5000, ..options.clone() }, "1 to 4096"),
        (RealOptions { longest: Bytes(0), ..options.clone() }, "longest"),
        (RealOptions { processor: Processor::Number(1023), ..options.clone() }, "--cpu"),
    ] {
        let error = error_of(&path, &options);
        assert!(error.contains(words), "{error}");
    }
    let error = "iouring".parse::<Engine>().unwrap_err();
    assert!(error.to_string().contains("did you mean 'io_uring'"), "{error}");
}

/// Durabilities of a write.
const PROMISES: [Durability; 4] = [
    Durability::ForceUnitAccess,
    Durability::ForceUnitAccessWithMetadata,
    Durability::FlushFirst,
    Durability::FlushFirstForceUnitAccess,
];

#[test]
fn a_file_is_flushed_trimmed_and_written_with_every_promise() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        std::fs::write(&path, vec![7u8; FILE_BYTES as usize]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let options = RealOptions { engine, depth: 8, discards: true, ..writing("target.bin") };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        // All at once, writes with a flush ahead on every tag among them.
        let mut operations = vec![
            Operation::flush(),
            Operation { command: model::Operation::FlushWithMetadata, ..Operation::flush() },
            Operation::discard(Lsn(64), 16),
            // Longer than it moves at once.
            Operation::discard(Lsn(4096), 4096),
        ];
        operations.extend((0..8).map(|n| Operation {
            durability: PROMISES[n % 4],
            ..Operation::write(Lsn(1024 + n as u64 * 8), 8)
        }));
        for _ in 0..20 {
            for group in operations.chunks(4).chain([&[operations[6]; 8][..]]) {
                for (tag, operation) in group.iter().enumerate() {
                    target.submit(tag as u32, *operation).unwrap();
                }
                let mut completed = Vec::new();
                while completed.len() < group.len() {
                    target.wait(Ns::MAX, &mut completed).unwrap();
                }
                let tags: BTreeSet<u32> = completed.iter().map(|one| one.tag).collect();
                assert_eq!(tags.len(), group.len(), "{engine:?}");
                assert!(completed.iter().all(|one| one.completed > one.issued), "{engine:?}: {completed:?}");
            }
        }
        drop(target);
        let bytes = std::fs::read(&path).unwrap();
        let is = |from: usize, to: usize, byte: u8| bytes[from * 512..to * 512].iter().all(|of| *of == byte);
        assert!(
            is(0, 64, 7) && is(64, 80, 0) && is(80, 1024, 7),
            "{engine:?}: the discard, and nothing beside it"
        );
        assert!(!is(1024, 1088, 7) && is(1088, 4096, 7) && is(4096, 8192, 0), "{engine:?}");
        assert_eq!(bytes.len() as u64, FILE_BYTES, "{engine:?}");
    }
}

#[test]
fn opened_for_reading_a_file_is_flushed_and_never_trimmed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    for engine in engines(&path) {
        let options = RealOptions { engine, ..RealOptions::default() };
        let mut target = open(path.to_str().unwrap(), &options).unwrap();
        let error = target.submit(0, Operation::discard(Lsn(0), 8)).unwrap_err().to_string();
        assert!(
            error.contains("discard of 4096 bytes at sector 0") && error.contains("for reading"),
            "{error}"
        );
        target.submit(0, Operation::flush()).unwrap();
        target.wait(Ns::MAX, &mut Vec::new()).unwrap();
    }
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
    // A name typed again is needed for trims as it is for writes.
    let options = RealOptions { writes: true, discards: true, ..RealOptions::default() };
    assert!(error_of(&path, &options).contains("--destroy-data"));
}

#[test]
fn holes_that_trims_made_do_not_keep_a_file_from_being_trimmed_again() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = file(directory.path()) else { return };
    let trims = RealOptions { discards: true, ..writing("target.bin") };
    let mut target = open(path.to_str().unwrap(), &trims).unwrap();
    target.submit(0, Operation::discard(Lsn(0), 2048)).unwrap();
    if let Err(error) = target.wait(Ns::MAX, &mut Vec::new()) {
        eprintln!("skipped: {error}");
        return;
    }
    drop(target);
    assert!(error_of(&path, &writing("target.bin")).contains("hole at byte 0"));
    open(path.to_str().unwrap(), &trims).unwrap();
}
