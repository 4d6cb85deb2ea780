//! `--pace`, and what is said of a trace that asks for more than can be served.

mod support;

use planewise_sim::results::{Cause, Results, RunResult};
use std::path::Path;
use support::{Place, small_device};

/// Lines of the MSR format: 100 ns ticks, host, disk, direction, byte offset, bytes, response in ticks.
fn line(micros: u64, offset: u64, response_micros: u64) -> String {
    format!("{},t,0,Read,{offset},4096,{}\n", 133_000_000_000_000_000 + micros * 10, response_micros * 10)
}

fn trace(gap_micros: u64, response_micros: u64) -> String {
    (0..3000).map(|n| line(n * gap_micros, n % 300 * 4096, response_micros)).collect()
}

fn place() -> Place {
    let place = Place::new();
    place.file("small.toml", small_device());
    place.file("fast.csv", trace(1, 0));
    place.file("slow.csv", trace(1000, 0));
    place.file("timed.csv", trace(10, 300));
    place
}

fn runs(place: &Place, command: &str) -> Vec<RunResult> {
    let said = place.ok(&format!("{command} --json --quiet --out x --force"));
    serde_json::from_str::<Results>(&said.out).unwrap().runs
}

#[test]
fn an_overloaded_run_is_marked_everywhere_and_stable_at_the_rate_that_is_told() {
    let place = place();
    let said = place.ok("compare --trace fast.csv --device small.toml --schedulers noop,piq --out a");
    for words in [
        "noop!",
        "piq!",
        "overloaded (!)",
        "the work that fits",
        "What to do: --scale-time",
        "--pace dependent",
    ] {
        assert!(said.out.contains(words), "no {words}: {}", said.out);
    }
    let page = std::fs::read_to_string(place.path().join("a/report.html")).unwrap();
    assert!(page.contains("class=\"overloaded\"") && page.contains("What to do: --scale-time"));
    let single = place.ok("run --trace fast.csv --device small.toml --out b");
    assert!(single.out.contains("overloaded: ") && single.out.contains("--scale-time"), "{}", single.out);
    let overload = runs(&place, "run --trace fast.csv --device small.toml").remove(0).overload.unwrap();
    assert_eq!(overload.cause, Cause::Grows);
    let scale = overload.stable_scale_time;
    let stable = runs(&place, &format!("run --trace fast.csv --device small.toml --scale-time {scale}"));
    assert_eq!(stable[0].overload, None, "{overload:?}");
    for calm in [
        "compare --trace slow.csv --device small.toml --schedulers noop,piq --out c",
        "run --trace slow.csv --device small.toml --out d",
    ] {
        let said = place.ok(calm);
        assert!(!said.out.contains("overload") && !said.out.contains("noop!"), "{}", said.out);
    }
    // A real target, or one that is measured like one.
    let replayed = place.ok("replay fast.csv sim:small.toml --out e");
    assert!(replayed.out.contains("overloaded: "), "{}", replayed.out);
}

#[test]
fn pgbench_at_its_recorded_times_is_too_much_for_the_blocking_interface() {
    let place = Place::new();
    let blocking = "run --device piq-128g --pace recorded";
    let run = runs(&place, blocking).remove(0);
    let overload = run.overload.unwrap();
    assert!(run.metrics.read.latency_ns.mean > 5e7, "{}", run.metrics.read.latency_ns.mean);
    let slower = runs(&place, &format!("{blocking} --scale-time {}", overload.stable_scale_time)).remove(0);
    assert_eq!(slower.overload, None, "{overload:?}");
    assert_eq!(runs(&place, "run --pace recorded").remove(0).overload, None, "a command queue keeps up");
}

#[test]
fn every_pace_is_in_labels_options_config_and_report() {
    let place = place();
    let said = place.ok(
        "compare --trace timed.csv --device small.toml --schedulers noop --pace recorded,dependent,closed:4,asap --out a",
    );
    assert!(said.out.contains("pace several") && said.out.contains("closed:4"), "{}", said.out);
    let read = |name: &str| std::fs::read_to_string(place.path().join("a").join(name)).unwrap();
    let all: Results = serde_json::from_str(&read("results.json")).unwrap();
    let paces: Vec<&str> = all.runs.iter().map(|run| run.labels.pace.as_str()).collect();
    assert_eq!(paces, ["recorded", "dependent", "closed:4", "asap"]);
    assert_eq!(all.setup.options["pace"], "recorded,dependent,closed:4,asap");
    assert!(
        read("config.toml").contains("dependent")
            && read("report.html").contains("--pace recorded,dependent")
    );
    // Thirty were under way where they were recorded; one at a time takes as long as each takes.
    let dependent = all.runs[1].dependent.unwrap();
    assert_eq!((dependent.recorded_depth_max, dependent.without_completion), (30, 0));
    assert!(dependent.replayed_depth_max <= 30, "{dependent:?}");
    let depths: Vec<f64> = all.runs.iter().map(|run| run.metrics.mean_queue_depth).collect();
    assert!(depths[1] < 31.0 && depths[2] > 3.9 && depths[2] <= 4.0 && depths[3] > 60.0, "{depths:?}");
    assert!(all.runs[1..].iter().all(|run| run.overload.is_none()));
    let one = place.ok("run --trace timed.csv --device small.toml --pace dependent --out b");
    assert!(one.out.contains("under way at an arrival") && one.out.contains("pace dependent"), "{}", one.out);
}

#[test]
fn gaps_scale_and_dependencies_stay() {
    let place = place();
    let of = |scale: &str| {
        let command =
            format!("run --trace timed.csv --device small.toml --pace dependent --scale-time {scale}");
        runs(&place, &command).remove(0).dependent.unwrap()
    };
    let (one, ten) = (of("1"), of("0.1"));
    assert_eq!((one.recorded_depth, one.recorded_ns), (ten.recorded_depth, ten.recorded_ns * 10));
    assert!(ten.replayed_ns <= one.replayed_ns);
}

#[test]
fn a_pace_that_the_trace_or_the_command_does_not_have_is_refused_by_name() {
    let place = place();
    let formats = ["--pace", "dependent", "blktrace", "ftrace", "msr", "parquet", "systor", "closed:N"];
    place.fails(2, "run --trace fast.csv --device small.toml --pace dependent", &formats);
    place.fails(2, "compare --trace piq-hm_0 --pace recorded,dependent", &formats);
    place.fails(2, "replay fast.csv sim:small.toml --pace dependent", &formats);
    for wrong in ["open", "closed", "closed:0", "closed:x", "Recorded"] {
        let words = ["--pace", wrong, "recorded, dependent, closed:N", "asap"];
        place.fails(2, &format!("run --pace {wrong}"), &words);
        place.fails(2, &format!("replay fast.csv sim:small.toml --pace {wrong}"), &words);
    }
    place.fails(
        2,
        "run --pace closed:4 --scale-time 2",
        &["--scale-time", "closed:4", "recorded or dependent"],
    );
    place.fails(2, "replay fast.csv sim:small.toml --pace asap --scale-time 2", &["--scale-time", "asap"]);
    place.fails(2, "run --pace recorded,asap", &["--pace", "one value"]);
    place.fails(2, "compare --pace asap,asap", &["--pace", "second time"]);
    let bench = "bench --target sim:small.toml --rw randread --bs 4k --number_ios 10 --pace asap";
    place.fails(2, bench, &["--pace", "asap", "workload"]);
    assert!(!place.ok("bench --help").out.contains("--pace"));
}

/// Traces that this project captured, where they are: what was under way at an arrival is what was under way where it was recorded.
#[test]
fn captured_traces_keep_their_concurrency_on_any_drive() {
    let Some(folder) = support::traces() else { return };
    let place = Place::new();
    for name in [
        "self-captured/pgbench_tpcb.loop-ext4.first400k.ftrace.txt.zst",
        "self-captured/sqlite_wal.loop-ext4.first300k.ftrace.txt.zst",
        "derived/pgbench_tpcb.msrfmt.csv.zst",
        "derived/sqlite_wal.msrfmt.csv.zst",
        "msr/prxy_0.first20k.csv.zst",
        "systor17/systor17-traces-sample.csv.zst",
    ] {
        let path = Path::new(&folder).join(name);
        for device in ["piq-128g", "ssd-s", "tlc-nvme-1t"] {
            let command = format!(
                "run --trace {} --device {device} --command-queue ncq:32 --requests 30000 --wrap --pace dependent",
                path.display()
            );
            let run = runs(&place, &command).remove(0);
            let kept = run.dependent.unwrap();
            println!("{name} {device}: {kept:?}");
            let unknown = kept.without_completion;
            assert!(unknown * 20 < run.metrics.requests.completed, "{name}: {kept:?}");
            assert!(
                kept.replayed_depth_max <= kept.recorded_depth_max + unknown,
                "{name} {device}: {kept:?}"
            );
            assert!(run.overload.is_none());
        }
    }
}
