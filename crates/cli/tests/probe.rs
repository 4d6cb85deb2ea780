//! `planewise probe`: what it finds on a device whose inside is known, what it keeps, and what it refuses.

#![cfg(unix)]

mod support;

use planewise_io::probe::file::{ProbeFile, Status};
use planewise_io::probe::mapping::Mapping;
use planewise_model::{Bytes, Profile};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Place, Said};

fn file(place: &Place, directory: &str) -> ProbeFile {
    ProbeFile::read(&place.path().join(directory).join("probe.json")).unwrap().unwrap()
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap()
}

/// A file of data that no two blocks share.
fn image(place: &Place, name: &str, mib: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut content = Vec::with_capacity(mib << 20);
    while content.len() < mib << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        content.extend_from_slice(&state.to_le_bytes());
    }
    place.file(name, &content);
    content
}

/// Whether the file system under the place can be read past the page cache; if not, says so.
fn reads_directly(place: &Place, name: &str) -> bool {
    let said = place.run(&format!("probe {name} --quick --area 64m --start 1 --out never"));
    let can = said.err.contains("--start");
    if !can {
        eprintln!("skipped: {}", said.err.trim_end());
    }
    can
}

/// Sends a signal once so many stages have been said to begin.
fn signalled(place: &Place, arguments: &str, stages: usize, signal: &str) -> Said {
    let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut err = String::new();
    let mut ended = 0;
    while ended < stages {
        let line = lines.next().expect("it ended too early").unwrap();
        ended += usize::from(line.starts_with("stage "));
        err += &(line + "\n");
    }
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    for line in lines {
        err += &(line.unwrap() + "\n");
    }
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    Said { code: child.wait().unwrap().code(), out, err }
}

#[test]
fn a_quick_probe_finds_what_the_papers_drive_is_made_of() {
    let place = Place::new();
    let said = place.ok("probe sim:ssd-s --quick --out x");
    for words in ["chunk size", "4 KiB", "write-order", "--units 20", "x/report.html", "x/profile.toml"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(said.err.contains("stage 10 of 10, mapping"), "{}", said.err);
    let file = file(&place, "x");
    let (findings, domains) = (&file.findings, file.findings.domains.as_ref().unwrap());
    assert_eq!(file.status, Status::Complete);
    assert_eq!(findings.chunk.as_ref().unwrap().value, Some(Bytes(4096)));
    assert_eq!((domains.degree.value, domains.sub_domains.value), (Some(10), Some(2)));
    assert_eq!(findings.mapping.as_ref().unwrap().value, Some(Mapping::WriteOrder));
    let profile = Profile::parse(&text(&place, "x/profile.toml"), "profile.toml").unwrap();
    assert_eq!((profile.name.as_str(), profile.geometry.page_bytes), ("probed-ssd-s", 4096));
    place.ok("device check x/profile.toml");
    let page = text(&place, "x/report.html");
    for words in
        ["What is inside sim:ssd-s", "<svg viewBox", "planewise probe sim:ssd-s --quick", "channels = 10"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("Incomplete"));
    // A probe is not replaced where the user named the place; where he did not, it is.
    place.fails(4, "probe sim:ssd-s --quick --out x", &["finished probe", "--force"]);
    let again = place.ok("probe sim:ssd-s --quick --out x --force --json --quiet");
    assert_eq!((again.out, again.err.as_str()), (text(&place, "x/probe.json"), ""));
    // What the kernel modules are told: 10 channels of 2 chips, written in the order of the writes.
    let told = text(&place, "x/kernel-parameters");
    for word in ["channels=10 chips_per_channel=2 dies_per_chip=1 ", " chunk_bytes=4096 ", " writes_stay=n\n"]
    {
        assert!(told.contains(word), "{word}: {told}");
    }
    let again = place.ok("probe sim:ssd-s --quick --out x --force --kernel-parameters --quiet");
    assert_eq!((again.out, again.err.as_str()), (told, ""));
}

#[test]
fn a_probe_that_was_stopped_or_killed_ends_as_if_nothing_had_happened() {
    let place = Place::new();
    place.ok("probe sim:ssd-s --quick --area 64m --out whole");
    let arguments = "probe sim:ssd-s --quick --area 64m --out x";
    let killed = signalled(&place, arguments, 2, "-KILL");
    assert_eq!(killed.code, None);
    let left = file(&place, "x");
    assert!(left.status == Status::UnderWay && left.findings.stages.len() >= 2, "{:?}", left.findings.stages);
    let stopped = signalled(&place, arguments, left.findings.stages.len() + 1, "-INT");
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    assert!(
        stopped.err.contains("continues after stage") && stopped.err.contains("the same command continues")
    );
    let left = file(&place, "x");
    assert_eq!(left.status, Status::Interrupted);
    assert!(text(&place, "x/report.html").contains("Incomplete"));
    assert!(!place.path().join("x/profile.toml").exists());
    place.ok(arguments);
    for name in ["probe.json", "report.html", "profile.toml"] {
        let [whole, again] = ["whole", "x"].map(|of| text(&place, &format!("{of}/{name}")));
        assert!(whole == again, "{name}");
    }
}

#[test]
fn what_cannot_be_probed_is_refused_by_option_and_leaves_nothing() {
    let place = Place::new();
    place.file("notes.txt", "a few words\n");
    place.file("small.img", vec![1; 1 << 20]);
    std::fs::create_dir(place.path().join("folder")).unwrap();
    let before = place.everything();
    for (arguments, words) in [
        ("probe", &["sim:PROFILE|PATH"][..]),
        ("probe sim:ssd-x", &["ssd-x", "did you mean"]),
        (
            "probe ssd-s",
            &["ssd-s: there is no such device or file (did you mean 'sim:ssd-s'?)", "sim:PROFILE"],
        ),
        (
            "probe missing",
            &["missing: there is no such device or file; allowed: sim:PROFILE", "block device"],
        ),
        ("probe /dev/none", &["/dev/none"]),
        ("probe notes.txt", &["notes.txt", "12 bytes"]),
        ("probe folder", &["folder", "a directory"]),
        ("probe sim:ssd-s --area 32m", &["--area", "32.0 MiB", "64.0 MiB"]),
        ("probe sim:ssd-s --area 64g", &["--area", "64.0 GiB", "29.8 GiB"]),
        ("probe sim:ssd-s --area 1000001", &["--area", "multiples of 1 MiB"]),
        ("probe sim:ssd-s --area lots", &["--area", "lots"]),
        ("probe sim:ssd-s --start 512", &["--start", "512 B", "multiples of 1 MiB"]),
        ("probe sim:ssd-s --start 40g", &["--start", "40.0 GiB"]),
        ("probe sim:ssd-s --depth 3", &["--depth", "3"]),
        ("probe sim:ssd-s --condition full", &["--condition", "full"]),
        ("probe small.img --condition aged", &["--condition", "small.img", "only with sim:PROFILE"]),
        ("probe small.img --destroy-data large.img", &["--destroy-data", "large.img"]),
        ("probe sim:ssd-s --engine uring", &["--engine", "uring"]),
        (
            "probe sim:ssd-s --engine auto",
            &["--engine: found auto with sim:ssd-s", "only with a block device"],
        ),
        ("probe sim:ssd-s --cpu 0", &["--cpu: found 0 with sim:ssd-s"]),
        ("probe sim:ssd-s --destroy-data ssd-s", &["--destroy-data: found ssd-s with sim:ssd-s"]),
        (
            "probe sim:ssd-s --condition aged --quick",
            &["74.5 % of them; allowed: at most that, such as aged:74/20/6"],
        ),
    ] {
        place.fails(2, arguments, words);
    }
    if reads_directly(&place, "small.img") {
        place.fails(
            2,
            "probe small.img",
            &["small.img: found 1.0 MiB, too little to probe; allowed: 64.0 MiB or more"],
        );
    }
    place.fails(4, "probe sim:ssd-s --quick --out notes.txt", &["notes.txt", "is a file"]);
    assert_eq!(place.everything(), before);
}

#[test]
fn a_directory_of_something_else_or_of_another_probe_is_left_alone() {
    let place = Place::new();
    place.ok("probe sim:ssd-s --quick --area 64m --out x --quiet");
    let whole = text(&place, "x/probe.json");
    place.fails(
        2,
        "probe sim:ssd-s --quick --area 65m --out x",
        &["another probe", "its area is 64.0 MiB and not 65.0 MiB", "--force"],
    );
    place.fails(2, "probe sim:ssd-m --quick --area 64m --out x", &["target is sim:ssd-s and not sim:ssd-m"]);
    place.fails(
        2,
        "probe sim:ssd-s --quick --area 64m --condition primed --out x",
        &["condition is filled and not primed"],
    );
    assert_eq!(text(&place, "x/probe.json"), whole);
    for damaged in
        ["", "{", "{}", "[]", &whole[..whole.len() / 2], &whole.replacen("\"stages\"", "\"steps\"", 1)]
    {
        place.file("x/probe.json", damaged);
        place.fails(2, "probe sim:ssd-s --quick --area 64m --out x", &["damaged", "--force"]);
        assert_eq!(text(&place, "x/probe.json"), damaged);
    }
    place.file("x/probe.json", whole.replacen("\"format\": 3", "\"format\": 2", 1));
    place.fails(2, "probe sim:ssd-s --quick --area 64m --out x", &["found format 2", "allowed: format 3"]);
    // What another version found is no beginning of what this one finds.
    place.file("x/probe.json", &whole);
    let mut altered = file(&place, "x");
    altered.status = Status::Interrupted;
    altered.findings.stages.truncate(3);
    altered.findings.stages[1].reads += 1;
    altered.write(&place.path().join("x/probe.json")).unwrap();
    let said = place.run("probe sim:ssd-s --quick --area 64m --out x --quiet");
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("finds something else"), "{}", said.err);
    place.ok("probe sim:ssd-s --quick --area 64m --out x --force --quiet");
    assert_eq!(text(&place, "x/probe.json"), whole);
    std::fs::create_dir(place.path().join("y")).unwrap();
    place.file("y/mine.txt", "mine");
    place.fails(4, "probe sim:ssd-s --quick --out y --force", &["holds no probe"]);
    assert_eq!(text(&place, "y/mine.txt"), "mine");
}

#[test]
fn a_file_is_only_read_unless_its_name_is_typed_again() {
    let place = Place::new();
    let content = image(&place, "drive.img", 64);
    if !reads_directly(&place, "drive.img") {
        return;
    }
    let said = place.ok("probe drive.img --quick --out x");
    assert!(
        said.err.contains("drive.img is only read") && said.err.contains("--destroy-data drive.img"),
        "{}",
        said.err
    );
    assert!(said.out.contains("what writes needs"), "{}", said.out);
    assert!(std::fs::read(place.path().join("drive.img")).unwrap() == content, "it was written");
    let found = file(&place, "x");
    assert!(found.findings.mapping.is_none() && found.findings.write_buffer.is_none());
    assert!(found.findings.stages.iter().all(|stage| stage.written == Bytes(0)));
    let said = place.ok("probe drive.img --quick --out y --destroy-data drive.img");
    let plan = said.err.lines().find(|line| line.contains("writes to drive.img")).expect("no plan");
    assert!(plan.contains("what is there now is lost") && plan.contains("over all of it"), "{plan}");
    assert!(std::fs::read(place.path().join("drive.img")).unwrap() != content, "it was not written");
    assert!(file(&place, "y").findings.stages.iter().any(|stage| stage.written > Bytes(0)));
}

#[test]
fn a_probe_goes_on_only_on_the_same_drive_and_lays_it_out_again() {
    let place = Place::new();
    let content = image(&place, "drive.img", 64);
    if !reads_directly(&place, "drive.img") {
        return;
    }
    let arguments = "probe drive.img --quick --area 64m --out x --destroy-data drive.img";
    let stopped = signalled(&place, arguments, 2, "-INT");
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    // A link stands for its target.
    std::os::unix::fs::symlink("drive.img", place.path().join("by-id")).unwrap();
    let said = place.ok("probe by-id --quick --area 64m --out z");
    assert!(said.err.contains("--destroy-data drive.img allows"), "{}", said.err);
    std::fs::rename(place.path().join("drive.img"), place.path().join("first.img")).unwrap();
    place.file("drive.img", &content);
    place.fails(2, arguments, &["another probe", "its identity is inode"]);
    assert!(std::fs::read(place.path().join("drive.img")).unwrap() == content, "it was written");
    std::fs::rename(place.path().join("first.img"), place.path().join("drive.img")).unwrap();
    let done = file(&place, "x").findings.stages.len();
    let said = place.ok(&format!("{arguments} --quiet"));
    assert!(said.err.starts_with("writes to drive.img") && said.err.lines().count() == 1, "{}", said.err);
    let file = file(&place, "x");
    let next = &file.findings.stages[done];
    assert!(next.written >= Bytes(64 << 20), "{next:?}");
    assert_eq!(file.status, Status::Complete);
}

#[test]
fn a_target_that_fails_leaves_what_was_found_and_no_profile() {
    let place = Place::new();
    image(&place, "drive.img", 65);
    if !reads_directly(&place, "drive.img") {
        return;
    }
    let arguments = "probe drive.img --quick --area 65m --out x";
    let mut child = place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("stage 1"));
    assert!(begun.is_some());
    // As a drive that loses a part of itself.
    let drive = std::fs::File::options().write(true).open(place.path().join("drive.img")).unwrap();
    drive.set_len(1 << 20).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    let error = rest.last().unwrap();
    assert!(error.contains("drive.img") && error.contains("without a profile"), "{error}");
    let left = file(&place, "x");
    assert!(left.status == Status::Failed && !left.problem.is_empty() && left.findings.stages.len() < 5);
    assert!(!Path::new(&place.path().join("x/profile.toml")).exists());
    assert!(text(&place, "x/report.html").contains("Incomplete"));
}

/// Its buffer holds the whole area, and nothing is in front of it: reads of what was written take 0 ns.
#[test]
fn a_drive_that_answers_in_no_time_is_measured_and_nothing_is_claimed_of_it() {
    let place = Place::new();
    let drive = "sim:ssd-s:link=none,processor=none,write_buffer.pages=100000,write_buffer.watermark=0.9";
    let said = place.ok(&format!("probe {drive} --quick --quiet"));
    assert!(said.out.contains("0 properties found"), "{}", said.out);
}
