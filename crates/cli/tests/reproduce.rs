//! `planewise reproduce`: what is kept, what is run again, what is said.

#![cfg(unix)]

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Place, small_device};

/// A study of four short runs and a plot.
const STUDY: &str = r#"
title = "Three schedulers"
paper = "piq"
figure = "Figure 0"
about = "A study of the tests."

[variables]
scheduler = ["noop", "piq", "piq+", "rws"]

[quick]
requests = 3000

[full]
requests = 6000

[[runs]]
name = "main"
command = "run --trace pgbench --wrap --device DEVICE --scheduler {scheduler} --requests {requests}"

[let]
write = "main.write.latency_ns.mean / main.write.latency_ns.mean[scheduler=noop]"

[[check]]
claim = "piq.fig8.piq"
what = "mean write latency of PIQ, us"
published = 750
measured = "main.write.latency_ns.mean[scheduler=piq] / 1e3"

[[check]]
what = "PIQ over NOOP"
measured = "write[scheduler=piq]"

[[plot]]
name = "write"
title = "Write latency over NOOP"
kind = "bars"
x = "scheduler"
value = "write"
y_label = "write latency over NOOP"

[[table]]
name = "latency"
title = "Write latency, ns"
rows = "scheduler"
value = "main.write.latency_ns.mean"
"#;

/// A place with the study `tiny.toml` on `small.toml`.
fn place() -> Place {
    let place = Place::new();
    place.file("small.toml", small_device());
    place.file("tiny.toml", STUDY.replace("DEVICE", "small.toml"));
    place
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap()
}

/// The files of what was run.
fn kept(place: &Place, out: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path().join(out).join("runs")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_study_is_run_once_and_its_pages_come_out_the_same() {
    let place = place();
    let said = place.ok("reproduce tiny.toml --out x");
    assert!(said.err.contains("4 to run"), "{}", said.err);
    assert!(said.out.contains("tiny") && said.out.contains("x/tiny.html"), "{}", said.out);
    let names = [
        "tiny.html",
        "index.html",
        "fidelity.md",
        "tiny-write.svg",
        "tiny-write.png",
        "tiny-write.csv",
        "tiny-latency.csv",
    ];
    let first: Vec<Vec<u8>> =
        names.iter().map(|name| std::fs::read(place.path().join("x").join(name)).unwrap()).collect();
    let said = place.ok("reproduce tiny.toml --out x --jobs 1");
    assert!(said.err.contains("4 of 4 commands are kept already; 0 to run"), "{}", said.err);
    // Another number of runs at a time, another directory: the same bytes.
    place.ok("reproduce tiny.toml --out y --jobs 3");
    for directory in ["x", "y"] {
        for (name, bytes) in names.iter().zip(&first) {
            let again = std::fs::read(place.path().join(directory).join(name)).unwrap();
            assert!(again == *bytes, "{directory}/{name}");
        }
    }
    let page = read(&place, "x/tiny.html");
    assert!(
        page.contains("<svg")
            && page.contains("piq.fig8.piq")
            && page.contains("planewise run --trace pgbench"),
        "{page}"
    );
    assert!(read(&place, "x/tiny-write.csv").lines().count() == 5);
    assert!(!place.everything().iter().any(|name| name.contains("running") || name.contains("partial")));
}

#[test]
fn what_was_changed_is_run_again_and_nothing_else() {
    let place = place();
    place.ok("reproduce tiny.toml --out x");
    // Another size has other runs; those of the first stay.
    assert!(place.ok("reproduce tiny.toml --out x --full").err.contains("4 to run, size full"));
    assert!(place.ok("reproduce tiny.toml --out x").err.contains("0 to run"));
    // Another device of the same name is another device.
    place.file(
        "small.toml",
        small_device()
            .replace("program_ns = 600_000", "program_ns = 500_000")
            .replace("program_ns = 600000", "program_ns = 500000"),
    );
    assert!(place.ok("reproduce tiny.toml --out x").err.contains("4 to run"));
    // A study with a run more runs that one.
    place.file("tiny.toml", STUDY.replace("DEVICE", "small.toml").replace("\"rws\"]", "\"rws\", \"piq_r\"]"));
    assert!(place.ok("reproduce tiny.toml --out x").err.contains("1 to run"));
}

#[test]
fn a_damaged_result_is_run_again_and_said() {
    let place = place();
    place.ok("reproduce tiny.toml --out x");
    let page = read(&place, "x/tiny.html");
    let files = kept(&place, "x");
    assert_eq!(files.len(), 4);
    let whole = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    std::fs::write(&files[1], "").unwrap();
    let mut flipped = std::fs::read(&files[2]).unwrap();
    flipped[100] ^= 0x20;
    std::fs::write(&files[2], flipped).unwrap();
    let said = place.ok("reproduce tiny.toml --out x");
    assert_eq!(said.err.matches("is damaged: it is run again").count(), 3, "{}", said.err);
    assert!(said.err.contains("3 to run"), "{}", said.err);
    assert_eq!(std::fs::read(&files[0]).unwrap(), whole);
    assert_eq!(read(&place, "x/tiny.html"), page);
}

#[test]
fn killed_at_any_time_it_goes_on_and_ends_with_the_same_pages() {
    let place = place();
    place.ok("reproduce tiny.toml --out whole --full");
    let mut most = 0;
    for milliseconds in [0, 20, 40, 60, 80, 100, 130, 160, 200, 260, 320, 400] {
        let mut child = place.command("reproduce tiny.toml --out x --full --jobs 1");
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        if place.path().join("x/runs").exists() {
            let count = kept(&place, "x")
                .iter()
                .filter(|path| path.extension().is_some_and(|end| end == "run"))
                .count();
            assert!(count >= most, "{count} results after {most}");
            most = count;
        }
    }
    let said = place.ok("reproduce tiny.toml --out x --full");
    assert!(said.err.contains(&format!("{} to run", 4 - most)), "{most} were there: {}", said.err);
    assert!(!said.err.contains("damaged"), "{}", said.err);
    assert_eq!(read(&place, "x/tiny.html"), read(&place, "whole/tiny.html"));
}

#[test]
fn ctrl_c_keeps_what_is_done() {
    let place = place();
    place.file(
        "tiny.toml",
        STUDY.replace("DEVICE", "small.toml").replace("requests = 3000", "requests = 150000"),
    );
    let mut child = place.command("reproduce tiny.toml --out x --jobs 1");
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !place.path().join("x/runs").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let said: support::Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.err.contains("the same command goes on from there"), "{}", said.err);
    place.ok("reproduce tiny.toml --out x");
}

/// The verdict is the model's: on a device whose programs take longer, the same study comes out otherwise.
#[test]
fn verdicts_follow_the_model() {
    let place = place();
    let verdict = |name: &str, device: &str| {
        place.file(&format!("{name}.toml"), STUDY.replace("DEVICE", device));
        let said = place.ok(&format!("reproduce {name}.toml --out x"));
        counts(&said.out, name)
    };
    let usual = verdict("usual", "small.toml");
    let slow = verdict("slow", "small.toml:timing.program_ns=6000000");
    assert_ne!(usual, slow);
    assert_eq!((usual.iter().sum::<u32>(), slow.iter().sum::<u32>()), (1, 1));
}

/// The counts of a study in the summary: holds, in direction, fails.
fn counts(out: &str, study: &str) -> Vec<u32> {
    let line = out.lines().find(|line| line.split_whitespace().next() == Some(study));
    let line = line.unwrap_or_else(|| panic!("no {study} in {out}"));
    line.split_whitespace().skip(1).map(|count| count.parse().unwrap()).collect()
}

/// One study or two of each document, and what of them holds.
#[test]
fn studies_of_each_paper_come_out_as_they_should() {
    let place = Place::new();
    let said = place
        .ok("reproduce piq-examples gc-table3 pass-fig3 pass-fig6 chen-fig2 chen-fig7 analysis-idle --out x");
    let expected: [(&str, &[u32]); 7] = [
        ("piq-examples", &[16, 0, 0]),
        ("gc-table3", &[8, 0, 2]),
        ("pass-fig3", &[2, 1, 0]),
        ("pass-fig6", &[3, 0, 0]),
        ("chen-fig2", &[5, 0, 0]),
        ("chen-fig7", &[3, 0, 2]),
        ("analysis-idle", &[10, 0, 0]),
    ];
    for (study, expected) in expected {
        assert_eq!(counts(&said.out, study), expected, "{study}");
        let page = read(&place, &format!("x/{study}.html"));
        assert!(page.contains("<svg") && !page.contains("no data"), "{study}");
    }
    // What does not hold is explained.
    assert!(read(&place, "x/gc-table3.html").contains("Why not as published"));
    let fidelity = read(&place, "x/fidelity.md");
    assert!(fidelity.contains("pass.fig3.interference") && fidelity.contains("Divergence from real SSDs"));
}

/// A drive without the processor that makes reads and writes wait for one another does not do what the paper saw.
#[test]
fn verdicts_of_a_published_figure_follow_the_model() {
    let place = Place::new();
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/pass-fig3.toml"))
        .unwrap();
    let changed = text.replace("sim:ssd1 ", "sim:ssd1:processor=none ");
    assert_ne!(text, changed);
    place.file("without-processor.toml", changed);
    let said = place.ok("reproduce pass-fig3 without-processor.toml --out x");
    let (with, without) = (counts(&said.out, "pass-fig3"), counts(&said.out, "without-processor"));
    assert!(without[0] < with[0] && without[2] > with[2], "{with:?} {without:?}");
}

#[test]
fn bad_input_is_named() {
    let place = place();
    place.fails(2, "reproduce piq-fig88", &["piq-fig8", "did you mean"]);
    place.fails(2, "reproduce", &["--all"]);
    place.fails(2, "reproduce piq-fig8 piq-fig8", &["twice"]);
    place.fails(2, "reproduce missing.toml", &["missing.toml"]);
    place.fails(2, "reproduce tiny.toml --quick --full", &["--full"]);
    for (what, from, to) in [
        ("key", "title =", "titel ="),
        ("claim", "piq.fig8.piq\"", "piq.fig8.pig\""),
        ("formula", "write[scheduler=piq]", "write[scheduler=piq"),
        ("name", "write[scheduler=piq]", "wriet[scheduler=piq]"),
        ("variable", "{requests}", "{request}"),
        ("paper", "paper = \"piq\"", "paper = \"pig\""),
    ] {
        place.file("wrong.toml", STUDY.replace("DEVICE", "small.toml").replacen(from, to, 1));
        let said = place.run("reproduce wrong.toml --out y");
        said.failed(2, what, &["wrong.toml"]);
    }
    // Labels are known only when something was run.
    place.file(
        "late.toml",
        STUDY.replace("DEVICE", "small.toml").replace("\"write[scheduler=piq]\"", "\"write[scheduler=pig]\""),
    );
    let said = place.run("reproduce late.toml --out y --quiet");
    said.failed(1, "late", &["late", "piq"]);
    // A command that fails fails its study, with its words.
    place.file("fails.toml", STUDY.replace("DEVICE", "small.toml").replace("--wrap", ""));
    let said = place.run("reproduce fails.toml tiny.toml --out y --quiet");
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("1 of 2 studies") && said.err.contains("past the end"), "{}", said.err);
    assert!(place.path().join("y/tiny.html").exists() && read(&place, "y/index.html").contains("fails"));
}

#[test]
fn a_directory_of_traces_is_used_by_name_and_a_wrong_one_is_named() {
    let place = place();
    let text = STUDY
        .replace("DEVICE", "small.toml")
        .replace("--trace pgbench --wrap", "--trace {trace}")
        .replace("name = \"main\"", "name = \"main\"\nvolumes = \"piq\"")
        .replace("[variables]", "[variables]\nvolume = [\"hm_0\"]")
        .replace("= \"write\"\ny", "= \"mean(write over volume)\"\ny")
        .replace(
            "\"main.write.latency_ns.mean[scheduler=piq] / 1e3\"",
            "\"mean(main.write.latency_ns.mean[scheduler=piq]) / 1e3\"",
        )
        .replace("\"write[scheduler=piq]\"", "\"mean(write[scheduler=piq])\"")
        .replace(
            "value = \"main.write.latency_ns.mean\"",
            "value = \"mean(main.write.latency_ns.mean over volume)\"",
        );
    place.file("volumes.toml", text);
    std::fs::create_dir(place.path().join("msr")).unwrap();
    place.file("msr/readme.txt", "no trace");
    place.fails(2, "reproduce volumes.toml --trace-dir msr", &["readme.txt", "hm_0.csv"]);
    place.fails(2, "reproduce volumes.toml --trace-dir nowhere", &["nowhere"]);
    place.file("msr/hm_0.csv", "this is no trace\n");
    let said = place.run("reproduce volumes.toml --trace-dir msr --out x --quiet");
    said.failed(1, "volumes", &["hm_0.csv"]);
    place.file("msr/hm_0.csv", support::msr(4000));
    place.ok("reproduce volumes.toml --trace-dir msr --out x");
    assert!(read(&place, "x/volumes.html").contains("real volumes in msr"));
}

#[test]
fn variables_may_have_other_values_and_wrong_ones_run_nothing() {
    let place = place();
    place.file("mine.toml", STUDY.replace("DEVICE", "small.toml"));
    let wrong = ["--set", "study mine", "'request'", "did you mean 'requests'"];
    place.fails(2, "reproduce mine.toml --set request=100", &wrong);
    place.fails(2, "reproduce mine.toml --set requests", &["--set requests", "NAME=VALUE"]);
    place.fails(2, "reproduce --all --set requests=5", &["--all", "--set"]);
    assert!(!place.path().join("planewise-out").exists());
    place.ok("reproduce mine.toml --set requests=321 --out x --quiet");
    assert!(read(&place, "x/mine.html").contains("--requests 321"));
    assert!(read(&place, "x/index.html").contains("--set"));
}

/// Directories of programs, in which browsers are looked for.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    found.into_iter().find(|path| path.is_file())
}

#[test]
fn index_and_page_open_offline_in_a_browser_with_their_plots_drawn() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium or chrome to open the pages in");
        return;
    };
    let place = place();
    place.ok("reproduce tiny.toml --out x");
    for (name, plots) in [("index.html", 1), ("tiny.html", 1)] {
        // A copy that says of itself how large its plots came out.
        let script = "<script>addEventListener('load', () => { let drawn = 0; for (const svg of document.querySelectorAll('svg, img')) { \
                      const box = svg.getBoundingClientRect(); if (box.width > 100 && box.height > 50) drawn++; } \
                      document.body.setAttribute('data-drawn', drawn); document.body.setAttribute('data-shapes', \
                      document.querySelectorAll('svg rect, svg path').length); });</script></body>";
        let page = read(&place, &format!("x/{name}"));
        assert!(!page.contains("http://") || page.contains("www.w3.org"), "{name} refers to the network");
        place.file(
            &format!("x/seen-{name}"),
            page.replace("</body>", script)
                .replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';"),
        );
        let url = format!("file://{}", place.path().join(format!("x/seen-{name}")).display());
        let profile = place.path().join("profile");
        let output = Command::new(&browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
                "--virtual-time-budget=2000",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", &url])
            .output()
            .unwrap();
        let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // Without the script's mark the browser did not get that far.
        if dom.is_empty() {
            eprintln!("skipped: {} does not run here: {log}", browser.display());
            return;
        }
        let attribute = |name: &str| {
            let found = dom
                .split_once(&format!("{name}=\""))
                .and_then(|(_, rest)| rest.split('"').next()?.parse::<usize>().ok());
            found.unwrap_or_else(|| panic!("no {name} in {dom}"))
        };
        assert!(attribute("data-drawn") >= plots, "{name}: {} plots drawn", attribute("data-drawn"));
        assert!(attribute("data-shapes") >= 4, "{name}");
        let errors: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}
