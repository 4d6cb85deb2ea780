//! Devices with changes of their keys behind their names, and arrays of devices, wherever a device is named.

mod support;

use planewise_sim::results::Results;
use support::Place;

fn results(place: &Place, arguments: &str) -> Results {
    serde_json::from_str(&place.ok(arguments).out).unwrap()
}

/// Lines of `device show` that are no comments.
fn shown(place: &Place, device: &str) -> Vec<String> {
    let text = place.ok(&format!("device show {device}")).out;
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn a_changed_device_differs_in_what_was_changed_and_in_its_name() {
    let place = Place::new();
    let before = shown(&place, "ssd-s");
    let after = shown(&place, "ssd-s:processor.operation_ns=0,interface.command_queue=ncq:8");
    let differing: Vec<_> = before.iter().zip(&after).filter(|(one, other)| one != other).collect();
    assert_eq!(differing.len(), 3, "{differing:?}");
    assert!(after.contains(&"command_queue = \"ncq:8\"".to_owned()));
    assert!(!shown(&place, "ssd-s:write_buffer=none").contains(&"[write_buffer]".to_owned()));
    // The same file under a name with a colon and an equals sign is taken whole, and can be changed as well.
    place.file("a:b=c.toml", before.join("\n"));
    assert_eq!(shown(&place, "a:b=c.toml"), before);
    assert_eq!(shown(&place, "a:b=c.toml:processor.operation_ns=0,interface.command_queue=ncq:8"), after);
}

#[test]
fn every_command_takes_changes_and_tells_variants_apart() {
    let place = Place::new();
    let run = |device: &str| {
        results(
            &place,
            &format!("run --device {device} --trace piq-hm_0 --requests 1000 --wrap --quiet --json"),
        )
    };
    let (plain, fast) = (run("piq-128g"), run("piq-128g:timing.read_ns=0"));
    assert_eq!(plain.runs[0].labels.device, "piq-128g");
    assert_eq!(fast.runs[0].labels.device, "piq-128g:timing.read_ns=0");
    assert!(fast.runs[0].metrics.read.latency_ns.mean < plain.runs[0].metrics.read.latency_ns.mean);
    let job = "--rw randread --bs 4k --number_ios 50 --size 64m --quiet --json";
    let bench = results(&place, &format!("bench --target sim:ssd-s:geometry.channels=4 {job}"));
    assert_eq!(bench.runs[0].labels.device, "ssd-s:geometry.channels=4");
    let replay = "replay pgbench sim:piq-128g:timing.read_ns=0 --requests 50 --wrap --quiet --json";
    let replayed = results(&place, replay).runs.remove(0);
    assert_eq!(replayed.target.unwrap().name, "sim:piq-128g:timing.read_ns=0");
    results(&place, "compare --device piq-128g:timing.erase_ns=1 --requests 50 --quiet --json");
    let directories = std::fs::read_dir(place.path().join("planewise-out")).unwrap().count();
    assert_eq!(directories, 5, "{:?}", place.everything());
    let probe = "probe sim:ssd-s:geometry.channels=4 --quick --area 64m --quiet --json";
    let found: serde_json::Value = serde_json::from_str(&place.ok(probe).out).unwrap();
    assert_eq!(found["findings"]["subject"]["target"], "sim:ssd-s:geometry.channels=4");
}

#[test]
fn what_cannot_be_changed_is_one_line_and_leaves_nothing() {
    let place = Place::new();
    for (device, words) in [
        ("gc-128g:geometry.chanels=8", &["'geometry.chanels'", "did you mean 'geometry.channels'"][..]),
        ("gc-128g:write_buffer.pages=8", &["no section 'write_buffer'", "write_buffer={"]),
        ("gc-128g:geometry.channels=x", &["found string", "a whole number"]),
        ("gc-128g:geometry.channels=1,geometry.channels=2", &["each key once"]),
        ("gc-128g:geometry.channels", &["SECTION.KEY=VALUE"]),
        ("gc-128:geometry.channels=8", &["unknown device profile 'gc-128'", "did you mean 'gc-128g'"]),
        ("gc-128g:collection.scheme=traditonal", &["did you mean 'traditional'"]),
        ("nowhere.toml:geometry.channels=8", &["nowhere.toml", "No such file"]),
    ] {
        for command in [
            "run --device ",
            "device show ",
            "bench --rw read --target sim:",
            "replay pgbench sim:",
            "probe sim:",
        ] {
            place.fails(2, &format!("{command}{device}"), words);
        }
    }
    place.fails(2, "replay pgbench ssd-s:write_buffer=none", &["did you mean 'sim:ssd-s'"]);
    assert_eq!(place.everything(), Vec::<String>::new());
}

#[test]
fn the_job_files_of_applications_fit_the_devices_they_are_for() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/jobs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let said = place.ok(&format!("workload check {} --target sim:ssd-s", file.display()));
        assert!(said.out.contains("a valid workload"), "{}", said.out);
    }
}

#[test]
fn an_array_is_a_target_of_every_command_that_measures_from_outside() {
    let place = Place::new();
    let job = "--rw randread --bs 64k --iodepth 8 --number_ios 400 --size 256m --quiet --json";
    let bench = |target: &str| results(&place, &format!("bench --target {target} {job}"));
    let (one, four) = (bench("raid0:1x32k:ssd-s"), bench("raid0:4x32k:ssd-s:read_ahead=none"));
    assert_eq!(four.runs[0].labels.device, "raid0:4x32k:ssd-s:read_ahead=none");
    assert_eq!(four.runs[0].target.as_ref().unwrap().kind, "simulated device");
    let rate = |results: &Results| results.runs[0].metrics.read.bandwidth_bytes_per_s;
    assert!(rate(&four) > 2.0 * rate(&one), "{} and {}", rate(&four), rate(&one));
    assert!(four.setup.device_profile.starts_with("# raid0:4x32k:ssd-s:read_ahead=none: a RAID-0 of 4"));
    let again = bench("raid0:4x32k:ssd-s:read_ahead=none");
    assert_eq!((again.runs, again.setup), (four.runs, four.setup));
    let conditions = results(&place, &format!("bench --target raid0:2x4k:ssd-s --condition fresh {job}"));
    assert_eq!(
        (conditions.runs[0].labels.condition.as_str(), conditions.setup.options["condition"].as_str()),
        ("fresh", "fresh")
    );
    let replay = |target: &str| {
        results(&place, &format!("replay piq-hm_0 {target} --requests 500 --wrap --quiet --json"))
            .runs
            .remove(0)
    };
    assert_eq!(replay("raid0:1x4k:piq-128g").metrics, replay("sim:piq-128g").metrics);
    let experiment =
        "bench --experiment grid --set area=16m;time=10ms;pause=1ms;sizes=4k;depths=1,8;patterns=randread";
    let grid = results(&place, &format!("{experiment} --target raid0:2x64k:ssd-s --quiet --json"));
    assert_eq!(grid.runs.len(), 2);
    let probe = "probe raid0:2x64k:piq-128g --quick --area 64m --quiet --json";
    let found: serde_json::Value = serde_json::from_str(&place.ok(probe).out).unwrap();
    assert_eq!(found["findings"]["subject"]["target"], "raid0:2x64k:piq-128g");
    let mut directories: Vec<_> = std::fs::read_dir(place.path().join("planewise-out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    directories.sort();
    assert_eq!(directories.len(), 7, "{directories:?}");
    assert!(
        directories.iter().any(|name| name.contains("raid0_4x32k_ssd-s_read_ahead_none")),
        "{directories:?}"
    );
}

#[test]
fn an_array_that_cannot_be_is_one_line_and_leaves_nothing() {
    let place = Place::new();
    for (target, words) in [
        ("raid0:0x4k:ssd-s", &["raid0:0x4k:ssd-s: found 0 members", "1 to 8"][..]),
        ("raid0:9x4k:ssd-s", &["found 9 members", "1 to 8"]),
        ("raid0:4x0:ssd-s", &["a chunk of 0 bytes", "512"]),
        ("raid0:4x1000:ssd-s", &["1000 bytes", "512"]),
        ("raid0:4x1t:ssd-s", &["a chunk of", "what a member holds"]),
        ("raid0:4:ssd-s", &["'4'", "MEMBERSxCHUNK", "4x32k"]),
        ("raid0:4x32k", &["raid0:MEMBERSxCHUNK:PROFILE"]),
        ("raid0:4x32k:", &["raid0:MEMBERSxCHUNK:PROFILE"]),
        ("raid0:4x32k:sds-s", &["unknown device profile 'sds-s'", "did you mean 'ssd-s'"]),
        ("raid0:4x32k:ssd-s:links=none", &["did you mean 'link'"]),
        ("raid:4x32k:ssd-s", &["did you mean 'raid0:4x32k:ssd-s'"]),
    ] {
        for command in [
            "bench --rw read --number_ios 1 --target ",
            "bench --experiment grid --target ",
            "replay pgbench ",
            "probe ",
        ] {
            place.fails(2, &format!("{command}{target}"), words);
        }
    }
    place.fails(2, "run --device raid0:4x32k:ssd-s", &["an array in the place of a device", "bench"]);
    let bench = "bench --rw read --number_ios 1 --target raid0:4x32k:ssd-s";
    for (option, words) in [
        ("--gc idle_chip", &["--gc", "seen from outside", "PROFILE:KEY=VALUE"][..]),
        ("--check", &["--check", "seen from outside"]),
        ("--condition fresh,filled", &["--condition", "2 values", "one"]),
        ("--condition worn", &["condition", "worn"]),
    ] {
        place.fails(2, &format!("{bench} {option}"), words);
    }
    assert_eq!(place.everything(), Vec::<String>::new());
}
