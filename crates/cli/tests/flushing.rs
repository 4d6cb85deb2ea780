//! Flushes, trims and forced writes of `bench` and `replay`: what is run, said and refused, and that nothing is trimmed unasked.

#![cfg(target_os = "linux")]

mod support;

use planewise_sim::results::{CommandMetrics, Results, RunResult};
use std::process::Command;
use support::{Place, small_device};

const FILE_BYTES: usize = 8 << 20;

/// A place with a device whose write buffer a loss of power empties, and the same behind a capacitor.
fn place() -> Place {
    let place = Place::new();
    let buffer = "[write_buffer]\npages = 64\nwatermark = 0.9\nrun_pages = 4\nin_flight_pages = 8\n";
    let device = small_device().replace("command_queue = \"blocking\"", "command_queue = \"ncq:32\"");
    let volatile = format!("{device}\n{buffer}power_loss_protection = false\n");
    place.file("volatile.toml", volatile);
    place.file("kept.toml", format!("{device}\n{buffer}"));
    place
}

fn results(place: &Place, directory: &str) -> Results {
    let path = place.path().join(directory).join("results.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn count(metrics: Option<&CommandMetrics>) -> u64 {
    metrics.map_or(0, |metrics| metrics.count)
}

fn counts(run: &RunResult) -> [u64; 3] {
    let metrics = &run.metrics;
    [metrics.requests.writes, count(metrics.discards.as_ref()), count(metrics.flushes.as_ref())]
}

/// Whether the folder's file system has direct I/O, and makes holes in files.
fn file(place: &Place) -> bool {
    place.file("drive.bin", vec![7u8; FILE_BYTES]);
    Command::new("sync").arg(place.path().join("drive.bin")).status().unwrap();
    let said = place.run("bench --target ./drive.bin --rw randread --number_ios 1 --out try");
    if said.code != Some(0) {
        eprintln!("skipped: {}", said.err.trim());
    }
    said.code == Some(0)
}

fn content(place: &Place) -> Vec<u8> {
    std::fs::read(place.path().join("drive.bin")).unwrap()
}

#[test]
fn flushes_and_trims_have_numbers_of_their_own_in_tables_results_and_report() {
    let place = place();
    let said = place.ok("bench --target sim:volatile.toml --rw randwrite --bs 4k --number_ios 400 --fdatasync 4 --check --out a");
    for word in ["flushes", "100, mean"] {
        assert!(said.out.contains(word), "no {word}: {}", said.out);
    }
    let run = &results(&place, "a").runs[0];
    assert_eq!((counts(run), run.metrics.requests.completed), ([400, 0, 100], 400));
    let flush = run.metrics.flushes.as_ref().unwrap().latency_ns.mean;
    place.ok("bench --target sim:kept.toml --rw randwrite --bs 4k --number_ios 400 --fdatasync 4 --out b");
    let kept = results(&place, "b").runs[0].metrics.flushes.as_ref().unwrap().latency_ns.mean;
    assert!(flush > 100_000.0 && kept < 1_000.0, "{flush} and {kept}");
    assert!(
        std::fs::read_to_string(place.path().join("a/report.html")).unwrap().contains("Flushes and discards")
    );

    place.file(
        "jobs.fio",
        "[global]\nsize=4m\nnumber_ios=40\n[log]\nrw=write\nfsync=1\n[fstrim]\nrw=trim\nbs=64k\noffset=4m\n\
         [both]\nrw=randtrimwrite\nend_fsync=1\nsync=dsync\noffset=8m\n",
    );
    let said = place.ok("bench --target sim:volatile.toml jobs.fio --out c");
    let titles = said.out.lines().skip_while(|line| !line.starts_with("jobs")).nth(1).unwrap_or_default();
    assert!(titles.contains("flushes") && titles.contains("discards"), "{}", said.out);
    let run = results(&place, "c").runs.remove(0);
    assert_eq!(counts(&run), [80, 80, 41]);
    let of_job: Vec<[u64; 3]> = run
        .closed_loop
        .as_ref()
        .unwrap()
        .jobs
        .iter()
        .map(|job| [job.write.requests, count(job.discards.as_ref()), count(job.flushes.as_ref())])
        .collect();
    assert_eq!(of_job, [[40, 0, 40], [0, 40, 0], [40, 40, 1]]);

    let said =
        place.ok("bench --target sim:volatile.toml --rw write --number_ios 50 --vary fdatasync=0,1 --out d");
    assert!(said.out.contains("latency of flushes, mean"), "{}", said.out);
    place.ok("bench --target raid0:2x4k:volatile.toml --rw write --number_ios 50 --fsync 10 --out e");
    let array = results(&place, "e").runs[0].metrics.flushes.as_ref().unwrap().latency_ns.mean;
    assert!(array > 100_000.0, "a flush goes to the members: {array}");
}

#[test]
fn what_cannot_be_is_refused_by_key_value_and_what_is_allowed() {
    let place = place();
    for (options, words) in [
        ("--fsync often", &["fsync: found 'often'", "0 or more"][..]),
        ("--sync maybe", &["sync: found 'maybe'", "none, 0, sync, 1, dsync"]),
        ("--rw trimread", &["rw: found 'trimread'", "trimwrite"]),
        ("--rw trimwrite --bs 4k,4k,8k", &["bs: found other sizes", "one for both"]),
        ("--rw trim --size 3000", &["size"]),
    ] {
        place.fails(2, &format!("bench --target sim:volatile.toml {options}"), words);
    }
    place.file("trace.log", "fio version 3 iolog\n0 f add\n10 f read 0 4096\n");
    for (options, words) in [
        ("--flushes maybe", &["maybe"][..]),
        ("--discards send --reads-only", &["--discards", "--reads-only"]),
    ] {
        let said = place.run(&format!("replay trace.log sim:volatile.toml {options}"));
        assert_eq!(said.code, Some(2), "{options}: {}", said.err);
        assert!(words.iter().all(|word| said.err.contains(word)), "{options}: {}", said.err);
    }
}

#[test]
fn a_file_is_trimmed_only_under_its_name_typed_again_and_that_is_said_first() {
    let place = place();
    if !file(&place) {
        return;
    }
    let trim = "bench --target ./drive.bin --bs 64k --size 1m --offset 2m --rw";
    place.fails(
        2,
        &format!("{trim} trim"),
        &["drive.bin: all its data would be lost", "--destroy-data drive.bin"],
    );
    assert!(content(&place).iter().all(|byte| *byte == 7));
    for engine in ["io_uring", "synchronous"] {
        let said = place
            .run(&format!("{trim} trim --engine {engine} --destroy-data drive.bin --out {engine} --force"));
        if said.err.contains("this system refuses") {
            eprintln!("skipped: {}", said.err.trim());
            continue;
        }
        if said.err.contains("does not support") {
            eprintln!("skipped: {}", said.err.trim());
            return;
        }
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(
            said.err.contains("a workload that trims, 1.0 MiB in all, from byte 2097152"),
            "{}",
            said.err
        );
        assert_eq!(counts(&results(&place, engine).runs[0]), [0, 16, 0]);
        let bytes = content(&place);
        let (before, trimmed, after) = (&bytes[..2 << 20], &bytes[2 << 20..3 << 20], &bytes[3 << 20..]);
        assert!(trimmed.iter().all(|byte| *byte == 0), "{engine}");
        assert!(before.iter().chain(after).all(|byte| *byte == 7), "{engine}");
        let mixed = format!(
            "{trim} randtrimwrite --engine {engine} --destroy-data drive.bin --fdatasync 3 --end_fsync --sync=dsync --iodepth 4 --out {engine}-2"
        );
        place.ok(&mixed);
        assert_eq!(counts(&results(&place, &format!("{engine}-2")).runs[0]), [16, 16, 6]);
    }
}

#[test]
fn what_is_recorded_has_its_flushes_discards_and_forced_writes_and_a_comparison_runs_them() {
    let place = place();
    place.file(
        "jobs.fio",
        "[global]\nsize=4m\nbs=16k\nnumber_ios=60\n[log]\nrw=write\nfsync=2\nsync=dsync\n[data]\nrw=randwrite\niodepth=4\nfdatasync=5\n\
         offset=4m\n[trim]\nrw=randtrim\noffset=8m\n",
    );
    let stats = |trace: &str| {
        let info = place.ok(&format!("trace info {trace} --json")).out;
        serde_json::from_str::<serde_json::Value>(&info).unwrap()["stats"].clone()
    };
    for at in ["device", "queue"] {
        let bench = format!("bench --target sim:volatile.toml jobs.fio --record-at {at} --out {at}");
        let said = place.ok(&format!("{bench} --record {at}.parquet"));
        assert!(!said.err.contains("--record"), "nothing is left out: {}", said.err);
        let recorded = results(&place, at).runs.remove(0);
        assert_eq!(counts(&recorded), [120, 60, 42]);
        let options = "--device volatile.toml --schedulers noop,piq,kyber --check";
        place.ok(&format!("compare --trace {at}.parquet {options} --out {at}-again"));
        let again = results(&place, &format!("{at}-again"));
        assert_eq!(again.runs.len(), 3);
        for run in &again.runs {
            assert_eq!(counts(run), counts(&recorded), "{}", run.labels.scheduler);
        }
        let of_trace = stats(&format!("{at}.parquet"));
        let count = |name: &str| of_trace[name].as_u64().unwrap();
        assert_eq!([count("flushes"), count("discards"), count("forced_writes")], [42, 60, 60]);

        // From Parquet to Parquet nothing is lost; a format without promises says that it has none, and its writes are done sooner.
        let said = place.ok(&format!("trace convert {at}.parquet {at}-copy.parquet"));
        assert!(!said.err.contains("note:"), "{}", said.err);
        let bytes = |name: String| std::fs::read(place.path().join(name)).unwrap();
        assert!(bytes(format!("{at}.parquet")) == bytes(format!("{at}-copy.parquet")));
        let said = place.ok(&format!("trace convert {at}.parquet {at}.log --to iolog"));
        assert!(said.err.contains("iolog has no forced writes: 60 that were"), "{}", said.err);
        assert!(!said.err.contains("left out"), "{}", said.err);
        let writes = |trace: &str, directory: String| {
            place
                .ok(&format!("run --trace {trace} --device volatile.toml --pace recorded --out {directory}"));
            let run = results(&place, &directory).runs.remove(0);
            assert_eq!(counts(&run), counts(&recorded));
            run.metrics.write.latency_ns.mean
        };
        let kept = writes(&format!("{at}.parquet"), format!("{at}-kept"));
        let plain = writes(&format!("{at}.log"), format!("{at}-plain"));
        assert!(kept > 2.0 * plain, "{at}: {kept} and {plain}");
    }
}

/// What was recorded: a write, a flush, a discard that is no whole block of 4 KiB, and reads.
const LOG: &str = "fio version 3 iolog\n0 f add\n10 f write 0 4096\n200 f sync 0 0\n2000 f trim 8192 65536\n4000 f read 8192 4096\n\
                   6000 f read 1048576 4096\n";

#[test]
fn a_replay_sends_flushes_and_discards_as_it_is_told_and_counts_what_it_leaves_out() {
    let place = place();
    place.file("trace.log", LOG);
    let run = |options: &str, directory: &str| {
        let said = place
            .ok(&format!("replay trace.log sim:volatile.toml --format iolog {options} --out {directory}"));
        let run = results(&place, directory).runs.remove(0);
        let replay = run.replay.clone().unwrap();
        (counts(&run), [replay.flushes_left_out, replay.discards_left_out], said, run)
    };
    let (sent, left_out, said, by_default) = run("", "a");
    assert_eq!((sent, left_out), ([1, 1, 1], [0, 0]), "{}", said.err);
    let (sent, left_out, said, skipped) = run("--flushes skip --discards skip", "b");
    assert_eq!((sent, left_out), ([1, 0, 0], [1, 1]));
    assert!(
        said.err.contains("1 of 5 requests were left out because they are flushes (--flushes skip)"),
        "{}",
        said.err
    );
    assert!(said.err.contains("because they are discards (--discards skip)"), "{}", said.err);
    // What was trimmed is read without flash.
    let p50 = |run: &RunResult| run.metrics.read.latency_ns.mean;
    assert!(p50(&by_default) < p50(&skipped));
    let (sent, left_out, ..) = run("--reads-only", "c");
    assert_eq!((sent, left_out), ([0, 0, 0], [1, 1]));
    if !file(&place) {
        return;
    }
    let real = "replay trace.log ./drive.bin --format iolog --scale-time 0.1";
    place.fails(2, real, &["1 of its 5 requests write;", "--destroy-data"]);
    place.fails(
        2,
        &format!("{real} --discards send"),
        &["2 of its 5 requests write or discard", "--destroy-data"],
    );
    let said = place.ok(&format!("{real} --destroy-data drive.bin --out d"));
    assert!(said.err.contains("because they are discards (--discards skip)"), "{}", said.err);
    assert_eq!(counts(&results(&place, "d").runs[0]), [1, 0, 1]);
    assert!(content(&place)[8192..73_728].iter().all(|byte| *byte == 7), "nobody asked for the discard");
    let said = place.run(&format!("{real} --discards send --destroy-data drive.bin --out e"));
    if said.err.contains("does not support") {
        eprintln!("skipped: {}", said.err.trim());
        return;
    }
    assert!(said.err.contains("the writes and the discards of a trace"), "{}", said.err);
    assert_eq!(counts(&results(&place, "e").runs[0]), [1, 1, 1]);
    let bytes = content(&place);
    assert!(
        bytes[8192..73_728].iter().all(|byte| *byte == 0) && bytes[73_728..].iter().all(|byte| *byte == 7)
    );
}

/// fio counts the syncs whose latency it has; it sends none behind the last write of a job, and none for `end_fsync` that it counts.
#[test]
fn as_many_writes_and_flushes_as_fio_issues() {
    let place = place();
    let fio = std::env::var("FIO").unwrap_or_else(|_| "fio".to_owned());
    if !Command::new(&fio).arg("--version").output().is_ok_and(|said| said.status.success()) {
        eprintln!("skipped: fio is not installed (FIO names it)");
        return;
    }
    if !file(&place) {
        return;
    }
    for (rw, ios, every) in [("write", 20, 4), ("randwrite", 50, 7), ("write", 10, 1), ("randwrite", 9, 10)] {
        for key in ["fsync", "fdatasync"] {
            let job = format!("--rw={rw} --bs=4k --number_ios={ios} --{key}={every}");
            let said = Command::new(&fio)
                .current_dir(place.path())
                .args(["--name=a", "--filename=drive.bin", "--size=8m", "--direct=1", "--output-format=json"])
                .args(job.split_whitespace())
                .output()
                .unwrap();
            let text = String::from_utf8(said.stdout).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
            let of = |path: &str| json.pointer(&format!("/jobs/0/{path}")).unwrap().as_u64().unwrap();
            place.ok(&format!("bench --target ./drive.bin --destroy-data drive.bin {job} --force --out o"));
            let [writes, _, flushes] = counts(&results(&place, "o").runs[0]);
            assert_eq!((writes, flushes), (ios, ios / every), "{job}");
            assert_eq!((of("write/total_ios"), of("sync/lat_ns/N")), (ios, (ios - 1) / every), "{job}");
        }
    }
}
