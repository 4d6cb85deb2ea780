//! `planewise bench` on files and, where the tests may make some, on loop devices.

#![cfg(target_os = "linux")]

mod support;

use planewise_sim::results::{Results, Status};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, small_device};

const FILE_BYTES: usize = 8 << 20;

/// A place with a file to measure, or nothing where its file system has no direct I/O.
fn place() -> Option<Place> {
    let place = Place::new();
    place.file("drive.bin", vec![7u8; FILE_BYTES]);
    place.file("small.toml", small_device());
    Command::new("sync").arg(place.path().join("drive.bin")).status().unwrap();
    let said = place.run("bench --target ./drive.bin --rw randread --number_ios 1 --out try");
    if said.err.contains("O_DIRECT") {
        eprintln!("skipped: {}", said.err.trim());
        return None;
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    Some(place)
}

fn results(place: &Place, directory: &str) -> Results {
    let path = place.path().join(directory).join("results.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn content(place: &Place) -> Vec<u8> {
    std::fs::read(place.path().join("drive.bin")).unwrap()
}

#[test]
fn reading_measures_a_file_and_changes_no_byte() {
    let Some(place) = place() else { return };
    let before = content(&place);
    place.ok(
        "bench --target drive.bin --rw randread --bs 4k --number_ios 500 --vary iodepth=1,8 --schedulers noop,deadline --request-log --out x",
    );
    let all = results(&place, "x");
    assert_eq!((all.status, all.runs.len()), (Status::Complete, 4));
    for run in &all.runs {
        let target = run.target.as_ref().unwrap();
        assert_eq!((target.kind.as_str(), target.capacity_bytes), ("file", FILE_BYTES as u64));
        assert!(
            ["io_uring", "io_uring, buffers not registered", "synchronous"].contains(&target.engine.as_str())
        );
        assert_eq!(run.metrics.requests.completed, 500);
        assert!(run.metrics.all.latency_ns.p50 > 0);
        assert_eq!(run.labels.condition, "as found");
    }
    assert!(place.path().join("x/requests.parquet").exists());
    assert!(before == content(&place));
}

#[test]
fn both_engines_serve_the_same_workload() {
    let Some(place) = place() else { return };
    for engine in ["io_uring", "synchronous"] {
        let said = place.run(&format!(
            "bench --target drive.bin --engine {engine} --rw randrw --iodepth 4 --number_ios 300 --destroy-data drive.bin --out {engine}"
        ));
        if said.err.contains("this system refuses") {
            eprintln!("skipped: {}", said.err.trim());
            continue;
        }
        assert_eq!(said.code, Some(0), "{}", said.err);
        let run = &results(&place, engine).runs[0];
        assert!(run.target.as_ref().unwrap().engine.starts_with(engine));
        assert_eq!(run.metrics.requests.completed, 300);
    }
}

#[test]
fn nothing_is_written_without_the_name_typed_again_and_then_it_is_said_first() {
    let Some(place) = place() else { return };
    let before = content(&place);
    let write = "bench --target drive.bin --rw write --bs 64k --size 1m --offset 2m";
    place.fails(2, write, &["drive.bin: all its data would be lost", "--destroy-data drive.bin"]);
    place.fails(
        2,
        &format!("{write} --destroy-data driv.bin"),
        &["found 'driv.bin'", "did you mean 'drive.bin'?"],
    );
    place.fails(2, &format!("{write} --destroy-data"), &["--destroy-data"]);
    place.fails(
        2,
        "bench --target drive.bin --experiment grid",
        &["all its data", "fill=0;patterns=read,randread"],
    );
    place.fails(2, "bench --target drive.bin --experiment layouts --set area=2m", &["all its data"]);
    assert!(before == content(&place));
    let said = place.ok(&format!("{write} --destroy-data drive.bin --out x"));
    assert!(
        said.err.starts_with("writes to drive.bin (file, 8.0 MiB): a workload, 1.0 MiB in all, from byte 2097152 (2.0 MiB) to byte 3145728 (3.0 MiB)"),
        "{}",
        said.err
    );
    let after = content(&place);
    let changed: Vec<usize> = (0..FILE_BYTES / 4096)
        .filter(|block| before[block * 4096..][..4096] != after[block * 4096..][..4096])
        .collect();
    assert_eq!(changed, (512..768).collect::<Vec<_>>());
    // What is about to be lost is said to those who want to hear nothing, too.
    let quiet = place.ok(&format!("{write} --destroy-data drive.bin --out y --quiet"));
    assert!(quiet.err.starts_with("writes to drive.bin") && quiet.err.lines().count() == 1, "{}", quiet.err);
}

#[test]
fn what_is_no_target_and_what_a_real_one_has_no_use_for_is_refused() {
    let Some(place) = place() else { return };
    place.file("notes.txt", "notes\n");
    place.file("holes.bin", "");
    let holes = std::fs::OpenOptions::new().write(true).open(place.path().join("holes.bin")).unwrap();
    holes.set_len(1 << 20).unwrap();
    let read = "--rw randread --number_ios 10";
    for (target, words) in [
        ("notes.txt", &["notes.txt: found 6 bytes, not a multiple"][..]),
        (".", &["found a directory"]),
        ("/dev/null", &["found a character device"]),
        ("./absent", &["there is no such device or file"]),
        ("sim:", &["found sim: without a profile"]),
        ("ssd-s", &["did you mean 'sim:ssd-s'?"]),
    ] {
        place.fails(2, &format!("bench --target {target} {read}"), words);
    }
    place.fails(
        2,
        "bench --target holes.bin --rw randwrite --destroy-data holes.bin",
        &["holes.bin: it will not be overwritten", "hole at byte 0"],
    );
    for (options, words) in [
        ("--gc idle_chip", &["--gc: found 'idle_chip'", "simulated"][..]),
        ("--check", &["--check"]),
        ("--condition aged", &["--condition"]),
        ("--command-queue blocking", &["--command-queue: found blocking", "ncq:D"]),
        ("--schedulers piq", &["units", "--units N"]),
        ("--engine uring", &["'uring'", "did you mean 'io_uring'"]),
        ("--cpu first", &["--cpu", "here"]),
        ("--cpu 1000", &["--cpu: found 1000, and the system says", "here, any"]),
        ("--jobs 2", &["--jobs"]),
        ("--size 1g", &["size"]),
    ] {
        place.fails(2, &format!("bench --target drive.bin {read} {options}"), words);
    }
    let said = place.run(&format!("bench --target holes.bin {read} --out h"));
    assert!(said.err.contains("note: ") && said.err.contains("nothing was ever written"), "{}", said.err);
}

#[test]
fn what_a_profile_says_against_the_domains_of_an_experiment_is_remarked() {
    let place = Place::new();
    let quick = "bench --target sim:ssd-s --experiment layouts --set area=1m;time=1ms;pause=0;depths=1";
    let said = place.ok(&format!("{quick};domains=4 --out four"));
    assert!(said.err.contains("--set domains: 4 is not what ssd-s has, which is 10"), "{}", said.err);
    let said = place.ok(&format!("{quick} --out ten"));
    assert!(!said.err.contains("domains"), "{}", said.err);
}

#[test]
fn options_of_real_targets_are_refused_with_simulated_ones() {
    let place = Place::new();
    for (option, found) in
        [("--engine synchronous", "synchronous"), ("--cpu any", "any"), ("--destroy-data x", "x")]
    {
        let name = option.split(' ').next().unwrap();
        let words =
            format!("{name}: found {found} with sim:ssd-s; allowed: only with a block device or a file");
        place.fails(2, &format!("bench --target sim:ssd-s --rw read --number_ios 10 {option}"), &[&words]);
        place.fails(2, &format!("replay pgbench sim:ssd-s --wrap --requests 10 {option}"), &[&words]);
    }
    assert!(place.everything().is_empty());
}

#[test]
fn experiments_run_on_files_as_on_simulated_devices() {
    let Some(place) = place() else { return };
    let quick = "--set area=2m;time=20ms;pause=0;sizes=4k;depths=1,4";
    place.ok(&format!("bench --target sim:small.toml --experiment grid {quick} --out sim"));
    let said = place.ok(&format!(
        "bench --target drive.bin --experiment grid {quick} --destroy-data drive.bin --out real"
    ));
    assert!(said.err.starts_with("writes to drive.bin"), "{}", said.err);
    let (sim, real) = (results(&place, "sim"), results(&place, "real"));
    let labels =
        |results: &Results| results.runs.iter().map(|run| run.labels.workload.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&sim), labels(&real));
    assert_eq!(sim.runs.len(), 4 * 2);
    assert_eq!(sim.setup.trace.source, "figures 5 and 16");
    place.ok(&format!("bench --target drive.bin --experiment streams {quick};fill=0 --out streams"));
    for (options, words) in [
        ("gird", &["unknown experiment 'gird' (did you mean 'grid'?)"][..]),
        ("grid --set domains=5", &["--set domains: found with experiment grid", "allowed: area, time"]),
        ("layouts --set fill=0", &["--set fill: found with experiment layouts"]),
        ("layouts --set domains=1000;area=2m", &["domains: found 1000", "up to the 512 requests"]),
        ("grid --engine io_uring", &["--engine: found io_uring with sim:small.toml"]),
        ("grid --set aera=1m", &["'aera' (did you mean 'area'?)"]),
        ("grid --set area", &["--set: found 'area'", "KEY=VALUE"]),
        ("grid --set time=0", &["--set time: found '0'"]),
        ("grid --set area=1m;area=2m", &["--set area", "second time"]),
        ("grid --set area=1t", &["area: found 1.0 TiB"]),
        ("grid --rw read", &["found --rw", "--set"]),
        ("grid oltp", &["found a workload"]),
        ("grid --schedulers noop,deadline", &["list"]),
    ] {
        place.fails(2, &format!("bench --target sim:small.toml --experiment {options}"), words);
    }
}

/// Waits until the results have a place and a little was measured.
fn begun(child: &mut Child, place: &Place) {
    let started = Instant::now();
    while !place.everything().iter().any(|name| name.contains(".partial")) {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() && started.elapsed() < Duration::from_secs(60), "never began: {ended:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let Some(place) = place() else { return };
    let arguments =
        "bench --target drive.bin --rw randread --time_based --runtime 300 --vary bs=4k,8k --out x";
    let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    begun(&mut child, &place);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let all = results(&place, "x");
    assert_eq!((all.status, all.runs.len()), (Status::Interrupted, 1));
    assert!(all.runs[0].metrics.requests.completed > 0);
}

#[test]
fn a_device_that_fails_in_the_middle_leaves_results_that_say_so() {
    let Some(place) = place() else { return };
    let backing = place.path().join("drive.bin");
    let made = Command::new("losetup").args(["--find", "--show"]).arg(&backing).output();
    let device = match made {
        Ok(made) if made.status.success() => String::from_utf8(made.stdout).unwrap().trim().to_owned(),
        _ => {
            eprintln!("skipped: this user makes no loop devices");
            return;
        }
    };
    let arguments =
        format!("bench --target {device} --rw randread --iodepth 4 --time_based --runtime 300 --out x");
    let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    begun(&mut child, &place);
    // What is behind the device ends early now.
    std::fs::OpenOptions::new().write(true).open(&backing).unwrap().set_len(1 << 20).unwrap();
    let output = child.wait_with_output().unwrap();
    let _ = Command::new("losetup").args(["--detach", &device]).status();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("failed: Input/output error") && error.contains("0 of 1 runs are complete"),
        "{error}"
    );
    let all = results(&place, "x");
    assert_eq!(all.status, Status::Interrupted);
    let run = &all.runs[0];
    assert!(run.metrics.requests.completed > 0);
    assert!(run.target.as_ref().unwrap().failure.as_ref().unwrap().contains("Input/output error"));
}
