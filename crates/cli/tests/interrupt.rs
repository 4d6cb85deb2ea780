//! Ctrl-C in mid-run: what was done is kept and marked.

#![cfg(unix)]

mod support;

use planewise_sim::results::{Results, Status};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, Said};

/// Starts a command that takes long, and sends it SIGINT once it is under way.
fn interrupted(place: &Place, arguments: &str) -> Said {
    let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    // It is under way when its hidden partial output is there.
    while !place.everything().iter().any(|name| name.contains(".partial")) {
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none() && started.elapsed() < Duration::from_secs(60),
            "{arguments}: never began: {ended:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    signal(&child);
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{arguments}: did not stop");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap().into()
}

fn signal(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn an_interrupted_run_keeps_what_it_measured_and_says_so() {
    let place = Place::new();
    let said = interrupted(&place, "run --trace piq-prxy_0 --requests 20000000 --out x --request-log");
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.err.contains("interrupted: 0 of 1 runs"), "{}", said.err);
    let text = std::fs::read_to_string(place.path().join("x/results.json")).unwrap();
    let results: Results = serde_json::from_str(&text).unwrap();
    assert_eq!((results.status, results.runs[0].status), (Status::Interrupted, Status::Interrupted));
    let counts = results.runs[0].metrics.requests;
    assert!(counts.completed > 0 && counts.completed == counts.submitted && counts.completed < 20_000_000);
    assert!(std::fs::read_to_string(place.path().join("x/report.html")).unwrap().contains("nterrupted"));
    assert!(!place.everything().iter().any(|name| name.contains("partial") || name.contains(".part")));
}

#[test]
fn an_interrupted_sweep_labels_each_run_with_its_own_option_and_leaves_no_half_trace() {
    let place = Place::new();
    let said = interrupted(
        &place,
        "bench --target sim:piq-128g --rw randread --time_based --runtime 300 --vary bs=4k,8k,16k,32k,64k,128k --jobs 2 --record t.parquet --out x",
    );
    assert_eq!(said.code, Some(130), "{}", said.err);
    let text = std::fs::read_to_string(place.path().join("x/results.json")).unwrap();
    let results: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(results.runs.len(), 2);
    for (run, (bs, bytes)) in results.runs.iter().zip([("4k", 4096), ("8k", 8192)]) {
        let job = &run.closed_loop.as_ref().unwrap().jobs[0];
        assert_eq!(run.labels.workload["bs"], bs);
        assert_eq!(job.all.bytes, job.all.requests * bytes);
    }
    assert!(!place.everything().iter().any(|name| name.contains("parquet")), "{:?}", place.everything());
}

#[test]
fn huge_requests_are_interrupted_as_soon_as_small_ones() {
    let place = Place::new();
    let begun = Instant::now();
    let said = interrupted(
        &place,
        "bench --target sim:piq-128g --rw read --bs 1g --iodepth 8 --size 16g --loops 100 --out x",
    );
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn an_interrupted_trace_command_leaves_nothing() {
    let place = Place::new();
    let said = interrupted(&place, "trace synth piq-prxy_0 --requests 20000000 -o x.csv");
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(place.everything(), [""; 0]);
}

#[test]
fn an_interrupted_replay_against_the_clock_keeps_what_it_measured() {
    let place = Place::new();
    place.file("drive.bin", vec![7u8; 1 << 20]);
    // A request every 20 ms, for a minute; and one that is due in an hour.
    let ticks = (0..3000u64).map(|n| n * 200_000).chain([36_000_000_000]);
    let lines: String =
        ticks.map(|ticks| format!("{},t,0,Read,0,4096,0\n", 133_000_000_000_000_000 + ticks)).collect();
    place.file("slow.csv", lines);
    let tried = place.run("replay slow.csv ./drive.bin --requests 1 --out tried");
    if tried.code != Some(0) {
        eprintln!("skipped: {}", tried.err.trim());
        return;
    }
    let begun = Instant::now();
    let said = interrupted(&place, "replay slow.csv ./drive.bin --record t.parquet --out x");
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let text = std::fs::read_to_string(place.path().join("x/results.json")).unwrap();
    let results: Results = serde_json::from_str(&text).unwrap();
    let run = &results.runs[0];
    assert_eq!((results.status, run.status), (Status::Interrupted, Status::Interrupted));
    let counts = run.metrics.requests;
    assert!(counts.completed > 0 && counts.completed == counts.submitted && counts.completed < 3000);
    assert!(!place.everything().iter().any(|name| name.contains("parquet")), "{:?}", place.everything());
}
