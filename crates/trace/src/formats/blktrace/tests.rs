//! Whole traces: streams, folders, archives, and the shared one.

use super::record::tests::{record, word};
use super::tar::tests::archive;
use super::*;
use crate::formats::testing::*;
use planewise_model::{Direction, Lsn, Ns, Request};
use proptest::prelude::*;
use std::fs;

/// A record whose payload is there.
fn put(bytes: &mut Vec<u8>, time: u64, action: u32, write: bool, sector: u64, payload: u16) {
    bytes.extend(record(time, word(action, write), sector, 4096, payload, false));
    bytes.extend(vec![0xee; usize::from(payload)]);
}

/// Two CPUs: requests on both, completions on the second.
fn two_cpus() -> [Vec<u8>; 2] {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    put(&mut first, 10, 1, false, 0, 0);
    put(&mut first, 11, 7, false, 0, 20);
    put(&mut first, 30, 1, true, 8, 0);
    put(&mut second, 20, 1, true, 16, 3);
    put(&mut second, 50, 8, false, 0, 0);
    put(&mut second, 60, 8, true, 8, 8);
    [first, second]
}

fn expected() -> Vec<Request> {
    [
        (10, 0, Direction::Read, Some(40)),
        (20, 16, Direction::Write, None),
        (30, 8, Direction::Write, Some(30)),
    ]
    .map(|(time, start, direction, response)| {
        let mut request = Request::new(Ns(time), Lsn(start), 8, direction);
        (request.process, request.response) = (77, response.map(Ns));
        request
    })
    .to_vec()
}

#[test]
fn a_stream_a_file_its_folder_and_an_archive_tell_the_same() {
    let [first, second] = two_cpus();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sda.blktrace.0"), &first).unwrap();
    fs::write(folder.path().join("sda.blktrace.2"), &second).unwrap();
    fs::write(folder.path().join("sda.blktrace.3"), b"").unwrap();
    fs::write(folder.path().join("notes.txt"), b"not a trace").unwrap();
    let options = ReadOptions::default();
    let warnings = [
        "sda.blktrace: no file for CPU 1: events are missing",
        "sda.blktrace: the file of CPU 3 is empty: events are missing",
    ];
    for path in [folder.path().join("sda.blktrace.0"), folder.path().to_owned()] {
        let trace = read_input(&FORMAT, Input::open(&path).unwrap(), &options).unwrap();
        assert_eq!(trace.requests, expected(), "{}", path.display());
        assert_eq!(trace.volumes, ["8,16"]);
        assert_eq!(trace.warnings, warnings);
    }
    let files =
        [("d/sda.blktrace.2", second.as_slice()), ("d/sda.blktrace.0", &first), ("d/sda.blktrace.3", b"")];
    let bytes = archive(&files);
    assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
    assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, expected());
    let path = folder.path().join("all.tar");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read_input(&FORMAT, Input::open(&path).unwrap(), &options).unwrap().requests, expected());
    let alone = read_bytes(&FORMAT, &first).unwrap();
    assert_eq!(alone.requests.len(), 2);
    assert_eq!((FORMAT.detect)(&first, true), Certainty::Certain);
}

#[test]
fn other_devices_files_in_the_folder_do_not_mix_in() {
    let [first, second] = two_cpus();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sda.blktrace.0"), &first).unwrap();
    fs::write(folder.path().join("sdb.blktrace.0"), &second).unwrap();
    let input = Input::open(folder.path().join("sda.blktrace.0")).unwrap();
    assert_eq!(read_input(&FORMAT, input, &ReadOptions::default()).unwrap().requests.len(), 2);
}

#[test]
fn an_archive_of_something_else_is_not_a_trace() {
    let bytes = archive(&[("readme.txt", b"hello")]);
    assert_eq!((FORMAT.detect)(&bytes, true), Certainty::No);
    let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
    assert!(error.contains("<device>.blktrace.<cpu>"), "{error}");
}

#[test]
fn a_record_cut_short_is_named_by_its_byte() {
    let [first, _] = two_cpus();
    for (length, byte) in [(40, 0), (48 + 47, 48), (48 + 48 + 19, 48)] {
        let error = read_bytes(&FORMAT, &first[..length]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("test: byte {byte}: a record cut short")), "{error}");
    }
}

#[test]
fn mutilated_traces_never_panic() {
    let [first, second] = two_cpus();
    mutilate(&FORMAT, &first);
    let bytes = archive(&[("sda.blktrace.0", &first), ("sda.blktrace.1", &second)]);
    for length in (0..bytes.len()).step_by(7) {
        let _ = read_bytes(&FORMAT, &bytes[..length]);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = (FORMAT.detect)(&bytes, true);
        let _ = read_bytes(&FORMAT, &bytes);
        let bytes = [0x6561_7407u32.to_le_bytes().as_slice(), &bytes].concat();
        let _ = read_bytes(&FORMAT, &bytes);
    }

    #[test]
    fn merging_any_split_over_cpus_gives_the_order_of_time(
        times in proptest::collection::btree_map(0..1_000_000u64, 0..5usize, 0..60)
    ) {
        let mut cpus = vec![Vec::new(); 5];
        for (time, cpu) in &times {
            put(&mut cpus[*cpu], *time, 1, false, *time, (*time % 50) as u16);
        }
        let names: Vec<String> = (0..5).map(|cpu| format!("x.blktrace.{cpu}")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().zip(&cpus).map(|(n, c)| (n.as_str(), c.as_slice())).collect();
        let trace = read_bytes(&FORMAT, &archive(&files)).unwrap();
        let seen: Vec<u64> = trace.requests.iter().map(|request| request.arrival.0).collect();
        prop_assert_eq!(seen, times.keys().copied().collect::<Vec<_>>());
    }
}

#[test]
fn the_shared_trace_has_the_known_counts() {
    let name = "blktrace-bin/hadoop.eternity8.sdb.blktrace.tar.zst";
    let Some(trace) = read_shared(&FORMAT, name, Some("D")) else { return };
    assert_eq!(trace.requests.len(), 110_246);
    assert!((trace.write_percent() - 1.3).abs() < 0.05, "{}", trace.write_percent());
    assert!((trace.mean_kib(Direction::Read) - 260.0).abs() < 0.5, "{}", trace.mean_kib(Direction::Read));
    assert!((trace.mean_kib(Direction::Write) - 27.0).abs() < 0.5, "{}", trace.mean_kib(Direction::Write));
    assert!((trace.span_seconds() - 177.0).abs() < 1.0, "{}", trace.span_seconds());
    assert_eq!(trace.volumes, ["8,16"]);
    assert!(trace.warnings[0].contains("the file of CPU 2 is empty"), "{:?}", trace.warnings);
    assert_eq!(trace.warnings[1], "58 requests given back by the driver count again when issued again");
    // CPU 2 lost its Q events too: fewer than were sent to the driver, against what merging would make one expect.
    let queued = read_shared(&FORMAT, name, None).unwrap().requests;
    let flushes = queued.iter().filter(|request| !request.is_transfer()).count();
    assert_eq!((queued.len(), flushes), (107_616, 2));
}
