//! `planewise replay`: what it replays, what it says of lateness, and what it refuses before anything is issued.

mod support;

use planewise_sim::results::{Results, Status};
use std::path::PathBuf;
use support::{Place, small_device};

/// Lines of the MSR format: 100 ns ticks, host, disk, direction, byte offset, bytes, response.
fn line(micros: u64, direction: &str, offset: u64, bytes: u64) -> String {
    format!("{},t,0,{direction},{offset},{bytes},0\n", 133_000_000_000_000_000 + micros * 10)
}

fn place() -> Place {
    let place = Place::new();
    place.file("small.toml", small_device());
    let reads: String = (0..300).map(|n| line(n * 500, "Read", n * 4096, 4096)).collect();
    let mixed: String =
        (0..300).map(|n| line(n * 500, if n % 3 == 0 { "Write" } else { "Read" }, n * 4096, 4096)).collect();
    place.file("reads.csv", reads);
    place.file("mixed.csv", mixed);
    place
}

fn results(place: &Place, directory: &str) -> Results {
    let path = place.path().join(directory).join("results.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A file to replay on, where this machine's folder for such files has direct I/O.
fn file(place: &Place) -> Option<PathBuf> {
    let path = place.file("drive.bin", vec![7u8; 4 << 20]);
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let said = place.run("replay reads.csv ./drive.bin --requests 3 --out probe");
    if said.code == Some(0) {
        return Some(path);
    }
    eprintln!("skipped: {}", said.err.trim());
    None
}

#[test]
fn a_trace_on_a_simulated_target_is_on_time_and_its_results_are_the_same_each_time() {
    let place = place();
    let said = place.ok("replay mixed.csv sim:small.toml --schedulers noop,piq+ --units 4 --out a");
    assert!(said.out.contains("lateness") && said.out.contains("faithful"), "{}", said.out);
    assert!(said.err.contains("pages are taken to be 4096 bytes"), "{}", said.err);
    let all = results(&place, "a");
    assert_eq!(all.runs.len(), 2);
    for run in &all.runs {
        let replay = run.replay.as_ref().unwrap();
        assert!(replay.faithful == Some(true) && replay.lateness_ns.max == 0);
        assert_eq!(run.labels.pace, "recorded");
        assert_eq!(run.metrics.requests.completed, 300);
        let target = run.target.as_ref().unwrap();
        assert_eq!((target.kind.as_str(), target.units), ("simulated device", Some(4)));
    }
    place.ok("replay mixed.csv sim:small.toml --schedulers noop,piq+ --units 4 --out b");
    assert_eq!(results(&place, "b"), all);
    let report = std::fs::read_to_string(place.path().join("a/report.html")).unwrap();
    assert!(report.contains("planewise replay mixed.csv sim:small.toml") && report.contains("Lateness"));
    assert!(!report.contains("How busy the device was"));
}

#[test]
fn a_trace_too_fast_is_late_and_marked_and_a_wide_bound_lets_it_pass() {
    let place = place();
    let fast = "replay mixed.csv sim:small.toml --scale-time 0.0001 --queue 4";
    let said = place.ok(&format!("{fast} --out a"));
    assert!(said.out.contains("not faithful") && said.err.contains("slower than the trace"), "{}", said.err);
    let replay = results(&place, "a").runs[0].replay.clone().unwrap();
    assert!(
        replay.faithful == Some(false) && replay.late_for_room > 250 && replay.lateness_ns.p99 > 1_000_000
    );
    let said = place.ok(&format!("{fast} --lateness-bound 100s --out b"));
    assert!(!said.out.contains("not faithful"), "{}", said.out);
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let place = place();
    let said = place.ok("replay mixed.csv sim:small.toml --pace closed:4 --out a");
    assert!(said.out.contains("nothing is due at the pace closed:4"), "{}", said.out);
    let run = results(&place, "a").runs.remove(0);
    assert_eq!((run.labels.pace.as_str(), run.labels.command_queue.as_str()), ("closed:4", "ncq:4"));
    let replay = run.replay.unwrap();
    assert_eq!((replay.faithful, replay.lateness_ns.max), (None, 0));
    let depth = run.metrics.mean_queue_depth;
    assert!(depth > 3.8 && depth <= 4.0, "{depth}");
    let short = "replay mixed.csv sim:small.toml --pace closed:9 --queue 8";
    place.fails(2, short, &["--pace", "closed:9", "queue of 8"]);
}

#[test]
fn a_drive_that_blocks_inside_says_so_and_one_that_takes_commands_does_not() {
    let place = place();
    let said = place.ok("replay mixed.csv sim:small.toml --command-queue ncq:8 --out a");
    assert!(said.err.contains("sim:small.toml has a blocking interface inside"), "{}", said.err);
    let takes = "sim:small.toml:interface.command_queue=ncq:32";
    assert!(said.err.contains(takes), "{}", said.err);
    let said = place.ok(&format!("replay mixed.csv {takes} --command-queue ncq:8 --out b"));
    assert!(!said.err.contains("blocking"), "{}", said.err);
    let said = place.ok("replay mixed.csv sim:small.toml:geometry.channels=4 --out c");
    assert!(said.err.contains("small.toml:geometry.channels=4,interface.command_queue"), "{}", said.err);
}

#[test]
fn what_was_replayed_is_recorded_and_replays_again() {
    let place = place();
    place.ok("replay mixed.csv sim:small.toml --record at.parquet --record-at queue --out a");
    place.ok("replay at.parquet sim:small.toml --out b");
    let (a, b) = (results(&place, "a").runs.remove(0), results(&place, "b").runs.remove(0));
    assert_eq!(a.metrics.all, b.metrics.all);
}

#[test]
fn folding_and_leaving_writes_out_are_asked_for_and_counted() {
    let place = place();
    let far: String = (0..10).map(|n| line(n * 100, "Read", (1 << 40) + n * 4096, 4096)).collect();
    place.file("far.csv", far);
    let end = ["request 1 ", "past the end of the device", "--wrap", "far.csv"];
    place.fails(1, "replay far.csv sim:small.toml --out a", &end);
    assert!(!place.path().join("a").exists(), "refused before anything was made");
    let said = place.ok("replay far.csv sim:small.toml --wrap --out a");
    assert!(said.err.contains("10 of 10 requests were folded"), "{}", said.err);
    assert_eq!(results(&place, "a").runs[0].replay.as_ref().unwrap().folded, 10);
    let said = place.ok("replay mixed.csv sim:small.toml --reads-only --out b");
    assert!(said.err.contains("100 of 300 requests were left out"), "{}", said.err);
    let run = results(&place, "b").runs.remove(0);
    assert_eq!((run.metrics.requests.completed, run.replay.unwrap().writes_left_out), (200, 100));
    place.file("writes.csv", line(0, "Write", 0, 4096));
    place.fails(
        2,
        "replay writes.csv sim:small.toml --reads-only",
        &["writes.csv", "all its requests write"],
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let place = place();
    let target = "sim:small.toml";
    let fails = |arguments: &str, words: &[&str]| place.fails(2, &format!("replay {arguments}"), words);
    fails("mixed.csv missing", &["missing: there is no such device or file; allowed: sim:PROFILE"]);
    fails(&format!("mixed.csv {target} --scheduler pig+"), &["pig+", "did you mean 'piq+'"]);
    fails(
        &format!("mixed.csv {target} --scheduler piq+"),
        &["units: found none", "--units N", "--device PROFILE"],
    );
    fails(&format!("mixed.csv {target} --scheduler piq+ --units 0"), &["units", "0", "1 to 65536"]);
    fails(&format!("mixed.csv {target} --page-bytes 1000"), &["page-bytes: found 1000", "multiples of 512"]);
    fails(&format!("mixed.csv {target} --lateness-bound 5"), &["--lateness-bound", "1ms"]);
    fails(&format!("mixed.csv {target} --gc dpr"), &["--gc: found 'dpr'", "planewise run"]);
    fails(&format!("mixed.csv {target} --check"), &["--check", "planewise run"]);
    fails(
        &format!("mixed.csv {target} --command-queue blocking"),
        &["--command-queue: found blocking", "ncq:D"],
    );
    fails(
        &format!("mixed.csv {target} --warmup 300"),
        &["--warmup: found 300", "fewer than the 300 requests"],
    );
    fails("mixed.csv sim:smal", &["smal"]);
    fails("mixed.csv ssd-s", &["did you mean 'sim:ssd-s'"]);
    fails("nothing.csv sim:small.toml", &["nothing.csv"]);
    fails("mixed.csv ./none.bin --reads-only", &["none.bin"]);
    // A profile tells the units: that of the device itself, or one that was probed.
    place
        .ok("replay mixed.csv sim:small.toml --scheduler piq+ --device small.toml --level plane --out known");
    let target = results(&place, "known").runs[0].target.clone().unwrap();
    assert!(target.units.is_some());
}

#[test]
fn a_file_is_read_at_the_recorded_times_and_never_written_without_its_name() {
    let place = place();
    let Some(path) = file(&place) else { return };
    let before = std::fs::read(&path).unwrap();
    place.ok("replay reads.csv ./drive.bin --out a");
    let run = results(&place, "a").runs.remove(0);
    assert_eq!((run.status, run.metrics.requests.completed), (Status::Complete, 300));
    // 300 requests, one every 500 us.
    assert!(run.metrics.duration_ns >= 299 * 500_000, "{}", run.metrics.duration_ns);
    assert_eq!(run.target.unwrap().kind, "file");
    let words = ["100 of its 300 requests write", "--destroy-data", "--reads-only"];
    place.fails(2, "replay mixed.csv ./drive.bin --out b", &words);
    place.fails(2, "replay mixed.csv ./drive.bin --destroy-data other.bin --out b", &["drive.bin"]);
    place.ok("replay mixed.csv ./drive.bin --reads-only --out c");
    assert!(std::fs::read(&path).unwrap() == before, "nothing was written");
    let said = place.ok("replay mixed.csv ./drive.bin --destroy-data drive.bin --out d");
    assert!(said.err.contains("writes to ./drive.bin"), "{}", said.err);
    assert!(std::fs::read(&path).unwrap() != before);
}

/// Volume, first and last byte of what is announced to be written.
fn announced(said: &str) -> (u64, u64, u64) {
    let line = said.lines().find(|line| line.starts_with("writes to")).unwrap_or_else(|| panic!("{said}"));
    let number = |before: &str, after: &str| {
        let rest = &line[line.find(before).unwrap() + before.len()..];
        rest[..rest.find(after).unwrap()].parse::<f64>().unwrap() as u64
    };
    let volume = &line[..line.find(" KiB in all").unwrap()];
    let volume = volume.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64;
    (volume, number("from byte ", " "), number("to byte ", " "))
}

#[test]
fn what_every_seed_writes_is_announced_before_the_first_does() {
    let place = place();
    if file(&place).is_none() {
        return;
    }
    let said = |seeds: &str, schedulers: &str, out: &str| {
        let said = place.ok(&format!(
            "replay gc-hm_0 ./drive.bin --requests 12 --wrap --pace closed:4 --units 4 --seed {seeds} \
             --schedulers {schedulers} --destroy-data drive.bin --out {out}"
        ));
        announced(&said.err)
    };
    let (first, second) = (said("7", "noop", "a"), said("8", "noop", "b"));
    assert_ne!(first, second);
    let both = (first.0 + second.0, first.1.min(second.1), first.2.max(second.2));
    assert_eq!(said("7,8", "noop", "c"), both);
    assert_eq!(said("8,7", "noop,piq+", "d"), (2 * both.0, both.1, both.2));
}
