//! What the commands print, write and promise.

mod support;

use planewise_sim::results::{Results, Status};
use std::path::Path;
use support::Place;

fn results(path: &Path) -> Results {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn compare_without_arguments_runs_eight_schedulers_over_the_embedded_trace_and_overloads_none() {
    let place = Place::new();
    let said = place.ok("compare");
    for name in ["156,403 requests", "piq-128g", "command queue ncq:32", "pace dependent", "report.html"] {
        assert!(said.out.contains(name), "no {name}: {}", said.out);
    }
    let line = said.out.lines().find(|line| line.starts_with("Report: ")).unwrap();
    let report = place.path().join(line.strip_prefix("Report: ").unwrap());
    let all = results(&report.with_file_name("results.json"));
    let names: Vec<&str> = all.runs.iter().map(|run| run.labels.scheduler.as_str()).collect();
    assert_eq!(names, ["noop", "mq-deadline", "kyber", "bfq", "piq", "piq+", "pass", "weave"]);
    assert_eq!((all.baseline, all.status), (0, Status::Complete));
    assert!(all.runs.iter().all(|run| run.overload.is_none()));
    assert!(all.runs.iter().all(|run| run.metrics.requests.completed == 156_403));
    assert!(std::fs::read_to_string(report).unwrap().contains("</html>"));
    let again = place.ok("compare");
    assert!(again.out.contains("replaced the earlier run"), "{}", again.out);
}

#[test]
fn json_is_one_document_the_same_as_in_the_run_directory_and_nothing_else() {
    let place = Place::new();
    let said = place.ok("compare --json --quiet --requests 3000 --out a");
    assert_eq!(said.err, "");
    let printed: Results = serde_json::from_str(&said.out).unwrap();
    assert_eq!(printed.runs.len(), 8);
    assert_eq!(said.out.as_bytes(), std::fs::read(place.path().join("a/results.json")).unwrap());
    let run = place.ok("run --json --requests 3000 --out b");
    serde_json::from_str::<Results>(&run.out).unwrap();
    let info = place.ok("trace info pgbench --json");
    serde_json::from_str::<serde_json::Value>(&info.out).unwrap();
}

#[test]
fn runs_side_by_side_give_the_bytes_of_runs_one_after_the_other() {
    let place = Place::new();
    let command =
        "compare --trace piq-prxy_0 --requests 20000 --warmup 2000 --level chip,plane --request-log --check";
    place.ok(&format!("{command} --jobs 1 --out serial"));
    place.ok(&format!("{command} --jobs 5 --out parallel"));
    place.ok(&format!("{command} --jobs 5 --seed 8 --out other"));
    for file in ["results.json", "report.html", "config.toml", "requests.parquet"] {
        let read = |directory: &str| std::fs::read(place.path().join(directory).join(file)).unwrap();
        assert!(read("serial") == read("parallel"), "{file} differs");
        assert!(read("serial") != read("other"), "{file} does not depend on the seed");
    }
    assert_eq!(results(&place.path().join("serial/results.json")).runs.len(), 16);
}

#[test]
fn lists_are_combined_and_the_first_run_is_the_baseline() {
    let place = Place::new();
    place.ok("compare --requests 500 --schedulers piq,noop --allocation cwdp,pdwc --command-queue blocking,ncq:8 --queue 32,64 --out x");
    let all = results(&place.path().join("x/results.json"));
    assert_eq!(all.runs.len(), 16);
    let first = &all.runs[0].labels;
    assert_eq!(
        (first.scheduler.as_str(), first.allocation.as_str(), first.queue_length),
        ("piq", "cwdp", 32)
    );
    assert_eq!(all.runs[1].labels.scheduler, "noop");
    assert_eq!(all.runs[2].labels.allocation, "pdwc");
    assert_eq!(all.runs[4].labels.command_queue, "ncq:8");
    assert_eq!(all.runs[8].labels.queue_length, 64);
}

#[test]
fn lists_of_device_options_run_one_scheduler_and_every_value_shows_in_labels_and_options() {
    let place = Place::new();
    let said = place.ok(
        "compare --requests 300 --gc traditional,gc_free --buffer-pages 0,64 --gc-threshold 3%,0.05 --separate off,on \
         --wear none,dynamic --flash-scheduler fcfs,read-first --gc-floor 1% --gc-ahead 0.07 --replica-pages 100 --out x",
    );
    let all = results(&place.path().join("x/results.json"));
    assert_eq!(all.runs.len(), 64);
    assert!(all.runs.iter().all(|run| run.labels.scheduler == "noop"));
    let labels = |index: usize| all.runs[index].labels.clone();
    assert_eq!((labels(0).gc.as_str(), labels(1).gc.as_str()), ("traditional", "gc_free"));
    assert_eq!((labels(0).buffer_pages, labels(2).buffer_pages), (0, 64));
    assert_eq!((labels(0).gc_threshold, labels(4).gc_threshold), (0.03, 0.05));
    assert_eq!((labels(0).hot_cold_separation, labels(8).hot_cold_separation), (false, true));
    assert_eq!((labels(0).wear, labels(16).wear), ("none".to_owned(), "dynamic".to_owned()));
    assert_eq!(labels(32).flash_scheduler, "read-first");
    let option = |name: &str| all.setup.options[name].as_str();
    assert_eq!((option("schedulers"), option("gc")), ("noop", "traditional,gc_free"));
    assert_eq!((option("gc-threshold"), option("separate")), ("0.03,0.05", "off,on"));
    assert_eq!((option("gc-floor"), option("gc-ahead"), option("replica-pages")), ("0.01", "0.07", "100"));
    assert_eq!((option("victims"), option("condition"), option("units")), ("greedy", "filled", ""));
    let device = planewise_model::Profile::parse(&all.setup.device_profile, "device").unwrap();
    assert_eq!((device.collection.floor, device.collection.buffer_pages), (0.01, 128));
    assert!(said.out.contains("gc_free"), "{}", said.out);
}

#[test]
fn schemes_that_collect_have_a_second_table_and_a_section_in_the_report() {
    let place = Place::new();
    place.file("small.toml", support::small_device());
    let said = place.ok(
        "compare --device small.toml --trace gc-prxy_0 --requests 20000 --wrap --condition aged:84/6/10 \
         --gc traditional,idle_chip,gc_free --out x",
    );
    let all = results(&place.path().join("x/results.json"));
    assert!(all.runs.iter().all(|run| run.metrics.gc.collections > 10), "{}", said.out);
    assert!(
        said.out.contains("\ngarbage collection\n") && said.out.contains("scheduler noop"),
        "{}",
        said.out
    );
    assert!(said.out.contains("bound, no device does it: gc_free"), "{}", said.out);
    assert_eq!(said.out.lines().filter(|line| line.starts_with("idle_chip")).count(), 2, "{}", said.out);
    let report = std::fs::read_to_string(place.path().join("x/report.html")).unwrap();
    assert!(report.contains("<h2>Garbage collection</h2>") && !report.contains("gc_free was fastest"));
}

#[test]
fn a_power_cut_ends_the_run_and_tells_what_it_found() {
    let place = Place::new();
    place.file("small.toml", support::small_device());
    let run = "run --device small.toml --trace gc-prxy_0 --requests 20000 --wrap --condition aged:84/6/10 --gc idle_chip";
    for (cut, out, option) in [("after:12000", "count", "after:12000"), ("250.5ms", "time", "250500000ns")] {
        let said = place.ok(&format!("{run} --power-cut {cut} --out {out}"));
        let all = results(&place.path().join(out).join("results.json"));
        assert_eq!(all.setup.options["power-cut"], option);
        assert_eq!(all.runs[0].invariants.len(), 1);
        let loss = all.runs[0].metrics.gc.power_loss.expect("a power cut was asked for");
        assert_eq!(loss.lost_pages, 0);
        assert!(loss.recovered_pages > 0 && all.runs[0].metrics.requests.completed < 20_000, "{}", said.out);
        assert!(said.out.contains("acknowledged pages lost 0"), "{}", said.out);
        if out == "time" {
            assert_eq!(loss.at_ns, 250_500_000);
        }
    }
    assert!(results(&place.path().join("count/results.json")).runs[0].metrics.requests.submitted <= 12_000);
}

#[test]
fn schedulers_are_the_six_unless_the_device_has_a_list() {
    let place = Place::new();
    for (arguments, runs) in [
        ("--gc gc_free", 8),
        ("--queue 32,64", 16),
        ("--command-queue blocking,ncq:8", 16),
        ("--gc traditional,gc_free", 2),
        ("--condition fresh,filled", 2),
        ("--gc traditional,gc_free --schedulers noop,piq+", 4),
    ] {
        let said = place.ok(&format!("compare --requests 200 --json --quiet {arguments}"));
        let all: Results = serde_json::from_str(&said.out).unwrap();
        assert_eq!(all.runs.len(), runs, "{arguments}");
    }
}

#[test]
fn every_seed_makes_a_synthetic_trace_of_its_own_and_gives_what_it_gives_alone() {
    let place = Place::new();
    place.ok("compare --trace gc-hm_0 --requests 2000 --wrap --schedulers noop --seed 7,8 --out both");
    let both = results(&place.path().join("both/results.json"));
    assert_eq!([0, 1].map(|run| both.runs[run].labels.seed), [7, 8]);
    for (index, seed) in [7, 8].into_iter().enumerate() {
        let said =
            place.ok(&format!("run --trace gc-hm_0 --requests 2000 --wrap --seed {seed} --json --quiet"));
        let alone: Results = serde_json::from_str(&said.out).unwrap();
        assert_eq!(alone.runs[0].metrics, both.runs[index].metrics, "{seed}");
    }
    assert_ne!(both.runs[0].metrics, both.runs[1].metrics);
}

#[test]
fn options_of_a_result_make_the_same_result_again() {
    let place = Place::new();
    place.ok("run --requests 300 --gc preemptive --gc-threshold 4% --wear none --seed 0x7 --units 9 --out a");
    let first = results(&place.path().join("a/results.json"));
    let mut again = "run".to_owned();
    for (name, value) in &first.setup.options {
        match value.as_str() {
            "" | "false" => {}
            "true" => again += &format!(" --{name}"),
            value => again += &format!(" --{name} {value}"),
        }
    }
    place.ok(&format!("{again} --out b"));
    let read = |directory: &str| std::fs::read(place.path().join(directory).join("results.json")).unwrap();
    assert!(read("a") == read("b"), "{again}");
}

#[test]
fn tunables_reach_the_schedulers_that_have_them() {
    let place = Place::new();
    place.ok("compare --requests 500 --schedulers noop,kyber,rws,weave,piq,piq+ --tunable barrier=complete --tunable piq+.write_wait_max_ns=5 --out x");
    let all = results(&place.path().join("x/results.json"));
    assert_eq!(all.runs[4].tunables["barrier"], "complete");
    assert_eq!(all.runs[5].tunables["write_wait_max_ns"], "5");
    assert!(!all.runs[0].tunables.contains_key("barrier"), "noop has none: {:?}", all.runs[0].tunables);
    assert_eq!(all.setup.options["tunable"], "barrier=complete,piq+.write_wait_max_ns=5");
}

#[test]
fn the_timeline_is_json_and_the_request_log_is_parquet() {
    let place = Place::new();
    place.ok("run --requests 300 --scheduler piq+ --timeline t.json --request-log --check --out x");
    let timeline: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path().join("t.json")).unwrap()).unwrap();
    assert!(timeline["traceEvents"].as_array().unwrap().len() > 300);
    let log = std::fs::File::open(place.path().join("x/requests.parquet")).unwrap();
    let log = parquet::file::reader::SerializedFileReader::new(log).unwrap();
    let metadata = parquet::file::reader::FileReader::metadata(&log);
    assert_eq!(metadata.file_metadata().num_rows(), 300);
    assert_eq!(metadata.file_metadata().schema_descr().num_columns(), 15);
    assert!(!results(&place.path().join("x/results.json")).runs[0].invariants.is_empty());
}

#[test]
fn a_trace_survives_conversion_and_gives_the_same_measurements() {
    let place = Place::new();
    place.ok("trace synth gc-hm_0 --requests 5000 --seed 0x7 -o a.csv.zst");
    place.ok("trace convert a.csv.zst b.parquet");
    place.ok("trace convert b.parquet c.csv.gz --to msr");
    let stats = |trace: &str| {
        let info = place.ok(&format!("trace info {trace} --json"));
        serde_json::from_str::<serde_json::Value>(&info.out).unwrap()["stats"].clone()
    };
    assert_eq!(stats("a.csv.zst"), stats("b.parquet"));
    assert_eq!(stats("a.csv.zst"), stats("c.csv.gz"));
    place.ok("trace scale-time 2 a.csv.zst slow.csv");
    let ratio =
        stats("slow.csv")["duration"].as_f64().unwrap() / stats("a.csv.zst")["duration"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn a_cut_keeps_the_part_asked_for() {
    let place = Place::new();
    place.ok("trace cut pgbench a.csv --skip 1000 --take 500");
    assert_eq!(std::fs::read_to_string(place.path().join("a.csv")).unwrap().lines().count(), 500);
    place.ok("trace cut pgbench b.csv.zst --from 1.5 --until 2.5 --end-sector 4000000");
    let info = place.ok("trace info b.csv.zst --json");
    let stats = serde_json::from_str::<serde_json::Value>(&info.out).unwrap()["stats"].clone();
    assert!(stats["duration"].as_u64().unwrap() <= 1_000_000_000 && stats["requests"].as_u64().unwrap() > 10);
    assert!(stats["end_sector"].as_u64().unwrap() <= 4_000_000);
    place.fails(2, "trace cut pgbench c.csv --from 1000", &["pgbench", "nothing of it"]);
    assert!(!place.path().join("c.csv").exists());
}

#[test]
fn volumes_of_a_directory_are_found_by_name() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("msr")).unwrap();
    place.ok("trace synth piq-hm_0 --requests 1000 -o msr/hm_7.csv.gz --to msr");
    let said = place.ok("run --trace hm_7 --trace-dir msr");
    assert!(said.out.contains("trace hm_7") && said.out.contains("1,000 requests"), "{}", said.out);
    place.fails(2, "run --trace hm_8 --trace-dir msr", &["hm_8", "did you mean"]);
    place.fails(2, "run --trace hm_7 --trace-dir nowhere", &["nowhere", "directory"]);
}

#[test]
fn lists_help_pages_and_completions_are_there() {
    let place = Place::new();
    assert_eq!(place.ok("device list").out.lines().count(), planewise_model::profile::EMBEDDED.len());
    let shown = place.ok("scheduler show piq+").out;
    assert!(shown.contains("default: 1000000 ns"));
    // What it costs the host is measured: some bytes and some time, for each length of queue.
    let costs: Vec<&str> =
        shown.lines().filter(|line| line.contains(" B ") && line.ends_with(" ns")).collect();
    assert!(costs.len() == 3 && costs.iter().all(|line| !line.contains(" 0 ")), "{shown}");
    let policies = place.ok("device policies").out;
    for name in ["idle_chip", "dynamic", "cwdp", "read-first", "--flash-scheduler"] {
        assert!(policies.contains(name), "{name}: {policies}");
    }
    assert!(place.ok("trace formats").out.contains("parquet"));
    assert!(place.ok("completions bash").out.contains("planewise"));
    assert!(place.ok("--help").out.contains("130  interrupted"));
    let shown = place.ok("device show piq-128g").out;
    place.file("copy.toml", &shown);
    assert!(place.ok("device check copy.toml").out.contains("valid"));
    let schema = place.ok("device schema").out;
    serde_json::from_str::<serde_json::Value>(&schema).unwrap();
    std::fs::create_dir(place.path().join("man")).unwrap();
    place.ok("man man");
    let pages = std::fs::read_dir(place.path().join("man")).unwrap().count();
    assert!(pages >= 18, "{pages}");
    assert!(
        std::fs::read_to_string(place.path().join("man/planewise-trace-synth.1"))
            .unwrap()
            .contains("requests")
    );
}

#[test]
fn a_trace_out_of_a_pipe_gives_what_the_file_gives() {
    let place = Place::new();
    place.ok("trace synth piq-hm_0 --requests 3000 -o a.msr.zst");
    for command in ["run --json --trace", "compare --json --schedulers noop,piq --trace"] {
        let of_file = place.ok(&format!("{command} a.msr.zst --out file --force"));
        let pipe = std::fs::File::open(place.path().join("a.msr.zst")).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let feeder = std::thread::spawn(move || std::io::copy(&mut { pipe }, &mut writer));
        let output = place
            .command(&format!("{command} /dev/stdin --out pipe --force"))
            .stdin(reader)
            .output()
            .unwrap();
        feeder.join().unwrap().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let of_pipe: Results = serde_json::from_slice(&output.stdout).unwrap();
        let of_file: Results = serde_json::from_str(&of_file.out).unwrap();
        assert_eq!(of_pipe.setup.trace.hash, of_file.setup.trace.hash);
        for (pipe, file) in of_pipe.runs.iter().zip(&of_file.runs) {
            assert_eq!(format!("{:?}", pipe.metrics), format!("{:?}", file.metrics), "{command}");
        }
    }
}

/// Each block behind such a line is what the command in it prints, up to where the report is.
const README_MARK: &str = "<!-- printed by: planewise ";

#[test]
fn readme_shows_what_the_program_prints() {
    let readme = include_str!("../../../README.md");
    let place = Place::new();
    let mut blocks = 0;
    for block in readme.split(README_MARK).skip(1) {
        let (command, rest) = block.split_once(" -->\n").expect("a mark ends its line");
        let shown: Vec<&str> = rest
            .lines()
            .skip(1)
            .take_while(|line| line.is_empty() || line.starts_with("    "))
            .map(str::trim)
            .collect();
        let printed = place.ok(&format!("{command} --quiet"));
        let printed = printed.out.split("\nReport: ").next().unwrap_or_default();
        let printed: Vec<&str> = printed.lines().map(str::trim).collect();
        let trimmed = |lines: &[&str]| lines.join("\n").trim().to_owned();
        assert_eq!(
            trimmed(&shown),
            trimmed(&printed),
            "README differs from {command}; scripts/readme_tables.py makes it again"
        );
        blocks += 1;
    }
    assert!(blocks >= 2, "{blocks} blocks");
}
