//! Wrong traces, wrong configuration, wrong places: one clear line, the right exit code, nothing left that looks whole.

mod support;

use planewise_model::Profile;
use support::{Place, msr, small_device};

#[test]
fn wrong_traces_are_refused_with_file_line_and_what_is_allowed() {
    let good = msr(100);
    let row = |fields: &str| format!("{}133000000000200000,{fields}\n", msr(100));
    let cut_short = good[..good.len() - 20].to_owned();
    let cases: [(&str, Vec<u8>, &[&str]); 8] = [
        ("empty.csv", Vec::new(), &["empty"]),
        (
            "garbage.csv",
            (0..4000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
            &["allowed"],
        ),
        ("truncated.csv", cut_short.into_bytes(), &["truncated.csv:100", "allowed"]),
        ("mixed.csv", format!("{good}0,1001,16,r,0.5\n").into_bytes(), &["mixed.csv:101", "allowed"]),
        (
            "negative.csv",
            row("x,0,Read,-4096,4096,0").into_bytes(),
            &["negative.csv:101", "-4096", "allowed"],
        ),
        (
            "early.csv",
            format!("{good}-5,x,0,Read,4096,4096,0\n").into_bytes(),
            &["early.csv:101", "-5", "allowed"],
        ),
        (
            "nan.csv",
            format!("{good}NaN,x,0,Read,4096,4096,0\n").into_bytes(),
            &["nan.csv:101", "NaN", "allowed"],
        ),
        ("zero.csv", row("x,0,Read,4096,0,0").into_bytes(), &["zero.csv:101", "0", "allowed"]),
    ];
    for (name, content, words) in cases {
        let place = Place::new();
        place.file(name, content);
        let words = [&[name], words].concat();
        for command in ["compare --trace", "run --trace", "trace info"] {
            place.fails(1, &format!("{command} {name}"), &words);
            let left = place.everything();
            assert!(
                !left.iter().any(|file| file.contains("results") || file.contains("partial")),
                "{name}: {left:?}"
            );
        }
    }
}

#[test]
fn a_packed_trace_that_is_cut_short_is_refused() {
    let place = Place::new();
    place.ok("trace synth piq-hm_0 --requests 2000 -o whole.csv.zst");
    let whole = std::fs::read(place.path().join("whole.csv.zst")).unwrap();
    place.file("cut.csv.zst", &whole[..whole.len() / 2]);
    let words = ["cut.csv.zst", "zstd data", "cut short", "allowed: a whole zstd file"];
    place.fails(1, "run --trace cut.csv.zst", &words);
    place.ok("trace synth piq-hm_0 --requests 2000 -o whole.csv.gz");
    let whole = std::fs::read(place.path().join("whole.csv.gz")).unwrap();
    place.file("cut.csv.gz", &whole[..whole.len() / 2]);
    place.fails(1, "trace info cut.csv.gz", &["cut.csv.gz", "gzip data", "allowed: a whole gzip file"]);
}

#[test]
fn a_wrong_line_near_the_beginning_is_named_as_one_further_down_is() {
    let place = Place::new();
    let cases = [
        ("133000000000200000,x,0,Read,-4096,4096,0", "-4096"),
        ("NaN,x,0,Read,4096,4096,0", "NaN"),
        ("133000000000200000,x,0,Raed,4096,4096,0", "Raed"),
        ("133000000000200000,x,0,Read,4096,0,0", "0 bytes"),
        ("0,1001,16,r,0.5", "0.5"),
    ];
    for line in [2, 3, 5] {
        for (wrong, word) in cases {
            let good = msr(10);
            let mut lines: Vec<&str> = good.lines().collect();
            lines.insert(line - 1, wrong);
            place.file("early.csv", lines.join("\n") + "\n");
            let place_of_it = format!("early.csv:{line}:");
            place.fails(1, "run --trace early.csv", &[&place_of_it, word, "allowed"]);
        }
    }
    place.file("prose.txt", "hello world\nthis is no trace\n");
    place.fails(1, "trace info prose.txt", &["no known format", "hello world"]);
}

#[test]
fn requests_past_the_end_are_an_error_and_wrap_folds_them() {
    let place = Place::new();
    place.file("small.toml", small_device());
    place.file("far.csv", format!("{}133000000001000000,host,0,Read,99999997952,4096,0\n", msr(10)));
    place.fails(
        1,
        "run --trace far.csv --device small.toml",
        &["far.csv", "request 11", "past the end", "--wrap"],
    );
    let wrapped = place.ok("run --trace far.csv --device small.toml --wrap");
    assert!(wrapped.out.contains("11 requests"), "{}", wrapped.out);
}

#[test]
fn wrong_profiles_name_the_line_the_key_and_what_is_allowed() {
    let place = Place::new();
    let mut profile = Profile::embedded("piq-128g").unwrap();
    profile.collection.ahead = 0.06;
    let good = profile.to_toml();
    let cases: [(&str, &str, &[&str]); 12] = [
        ("channels = 8", "chanels = 8", &["wrong.toml:", "chanels", "did you mean 'channels'"]),
        ("blocks_per_plane = 2048", "blocks_per_plane = 16777216", &["geometry", "overflow", "allowed"]),
        (
            "over_provisioning = 0.1",
            "over_provisioning = 0.0005",
            &["over_provisioning", "no room for garbage collection"],
        ),
        ("page_bytes = 4096", "page_bytes = 4000", &["page_bytes", "4000", "multiple of 512"]),
        (
            "scheme = \"traditional\"",
            "scheme = \"traditionel\"",
            &["traditionel", "did you mean 'traditional'"],
        ),
        ("floor = 0.02", "floor = 0.06", &["wrong.toml:", "key 'floor'", "0.06", "its own floor"]),
        ("ahead = 0.06", "ahead = 0.04", &["wrong.toml:", "key 'ahead'", "0.04", "from the threshold"]),
        (
            "buffer_pages = 128",
            "buffer_pages = 99999999",
            &["wrong.toml:", "key 'buffer_pages'", "MiB of memory"],
        ),
        ("allocation = \"cwdp\"", "allocation = \"cwdd\"", &["wrong.toml", "cwdd", "did you mean"]),
        ("channels = 8", "channels = \"8\"", &["wrong.toml:", "key 'channels'", "\"8\"", "a whole number"]),
        ("channels = 8", "channels = -8", &["wrong.toml:", "key 'channels'", "-8", "a whole number"]),
        ("read_ns = 30000", "read_ns = 3e4", &["wrong.toml:", "key 'read_ns'", "3e4", "nanoseconds"]),
    ];
    for (from, to, words) in cases {
        assert!(good.contains(from), "{from}");
        place.file("wrong.toml", good.replace(from, to));
        place.fails(2, "compare --device wrong.toml", words);
        place.fails(2, "device check wrong.toml", words);
    }
    assert_eq!(place.everything(), ["wrong.toml"]);
}

#[test]
fn unknown_names_and_values_out_of_range_offer_what_is_allowed() {
    let place = Place::new();
    let cases: [(&str, &[&str]); 32] = [
        ("compare --schedulers nop", &["nop", "did you mean 'noop'"]),
        ("compare --device piq-128", &["piq-128", "did you mean 'piq-128g'"]),
        ("compare --trace pgbnch", &["pgbnch", "did you mean 'pgbench'"]),
        ("compare --trace piq-hm_9", &["piq-hm_9", "did you mean 'piq-hm_"]),
        ("run --trace piq-hm_0:shape.streems=2", &["shape.streems", "did you mean 'shape.streams'"]),
        ("run --trace piq-hm_0:shape.streams=40", &["piq-hm_0:shape.streams=40", "40; allowed: 1 to 12"]),
        ("run --trace piq-hm0:shape.streams=2", &["did you mean 'piq-hm_0'"]),
        ("run --queue-counts tags", &["--queue-counts: found 'tags'; allowed: outstanding, waiting"]),
        ("compare --queue 0", &["0", "--queue", "1 to 4096"]),
        ("compare --queue 64,4097", &["4097", "1 to 4096"]),
        ("run --units 0", &["--units", "found '0'", "1 to 65536"]),
        ("run --level chips", &["level", "chips", "chip, plane"]),
        ("run --command-queue ncq:0", &["ncq:0", "ncq:D"]),
        ("run --condition aged:90/20/5", &["aged:90/20/5", "add up to 100"]),
        ("run --condition aged:99/0/1", &["99 % of the raw pages", "more than the user space"]),
        ("run --scheduler piq+ --tunable barier=issue", &["barier", "did you mean 'barrier'"]),
        ("run --scheduler piq+ --tunable barrier=x", &["piq+.barrier", "issue, complete"]),
        ("run --warmup 200000 --trace piq-hm_0 --requests 1000", &["warmup", "1000"]),
        ("run --warmup 156403", &["warmup", "156403"]),
        ("run --scale-time nan", &["nan", "greater than 0"]),
        ("run --trace pgbench --format ssdsin", &["ssdsin", "did you mean 'ssdsim'"]),
        ("trace cut pgbench x.csv --from 10 --until 5", &["arrivals to keep", "ends after it starts"]),
        ("run --no-such-option", &["--no-such-option", "--help"]),
        ("run --queue -1", &["'-1'", "--queue", "1 to 4096"]),
        ("run --scale-time -1", &["'-1'", "--scale-time", "greater than 0"]),
        ("run --seed -1", &["'-1'", "--seed", "whole number"]),
        ("run --warmup -1", &["'-1'", "--warmup", "allowed: a whole number"]),
        ("run --jobs 0", &["'0'", "--jobs", "1 or more"]),
        ("trace cut pgbench x.csv --from -1", &["'-1'", "--from", "seconds from 0"]),
        ("trace scale-time -1 pgbench x.csv", &["'-1'", "greater than 0"]),
        ("run --trace hm_0", &["hm_0", "did you mean 'piq-hm_0'"]),
        ("run --trace pgbench --event Q", &["--event", "format msr", "blktrace"]),
    ];
    for (arguments, words) in cases {
        place.fails(2, arguments, words);
    }
    assert!(!place.everything().iter().any(|file| file.contains("results")), "{:?}", place.everything());
}

#[test]
fn wrong_collection_options_name_the_option_and_what_is_allowed_before_anything_is_simulated() {
    let place = Place::new();
    let cases: [(&str, &[&str]); 25] = [
        ("compare --gc traditional,preemptiv", &["preemptiv", "did you mean 'preemptive'", "idle_chip"]),
        ("run --gc traditional,dpr", &["--gc", "one value", "compare"]),
        ("compare --gc dpr,idle_chip,dpr", &["--gc", "'dpr'", "second time", "each value once"]),
        ("compare --gc-threshold 0.05,5%", &["--gc-threshold", "'5%'", "second time"]),
        ("compare --condition aged,aged:84/10/6", &["--condition", "second time"]),
        ("compare --seed 7,0x7", &["--seed", "'0x7'", "second time"]),
        ("compare --schedulers noop,piq,noop", &["--schedulers", "'noop'", "second time"]),
        (
            "compare --buffer-pages 128,99999999",
            &["--buffer-pages", "found 99999999", "MiB of memory", "0 to 32768"],
        ),
        ("run --buffer-pages 1e3", &["--buffer-pages", "'1e3'", "whole number of pages"]),
        ("run --buffer-pages -1", &["--buffer-pages", "'-1'", "whole number of pages"]),
        (
            "run --gc-floor 6%",
            &["--gc-floor:", "found 0.06", "0 to the threshold of collection, 0.05", "own floor"],
        ),
        (
            "run --gc-threshold 1%",
            &["--gc-floor (the device's)", "found 0.02", "the threshold of collection, 0.01"],
        ),
        ("run --gc-ahead 0.01", &["--gc-ahead:", "found 0.01", "from the threshold of collection, 0.05"]),
        ("run --gc-threshold 0.6", &["--gc-threshold:", "found 0.6", "0 to 0.5"]),
        ("run --gc-threshold nan", &["--gc-threshold", "'nan'", "0.05 or 5%"]),
        ("run --gc-threshold -5", &["--gc-threshold", "'-5'", "0.05 or 5%"]),
        ("compare --replica-pages 4000000000", &["--replica-pages:", "4000000000", "spare pages"]),
        ("compare --separate on,yes", &["--separate", "'yes'", "on, off"]),
        ("compare --wear dynamic,statik", &["statik", "none, dynamic"]),
        ("compare --flash-scheduler fcfs,read-frist", &["read-frist", "did you mean 'read-first'"]),
        ("compare --condition filled,aged:99/0/1", &["99 % of the raw pages", "more than the user space"]),
        ("run --power-cut 5", &["--power-cut", "'5'", "12.5s", "after:N"]),
        ("run --power-cut after:0", &["--power-cut", "'after:0'", "1 or more"]),
        ("run --power-cut 1s --gc gc_free", &["--power-cut", "gc_free", "bound"]),
        ("compare --power-cut 1s", &["--power-cut"]),
    ];
    for (arguments, words) in cases {
        place.fails(2, arguments, words);
    }
    assert!(place.everything().is_empty(), "{:?}", place.everything());
}

#[test]
fn what_only_the_user_can_know_is_asked_for() {
    let place = Place::new();
    place.file("t.ascii", "0 0 100 8 0\n1000 0 200 8 1\n");
    let said = place.run("run --trace t.ascii");
    said.failed(2, "ambiguous", &["t.ascii", "--format"]);
    place.fails(2, "run --trace t.ascii --format ssdsim", &["t.ascii", "--time-unit"]);
    place.ok("run --trace t.ascii --format ssdsim --time-unit us");
}

#[test]
fn places_that_are_taken_or_cannot_be_written_cost_no_simulation_and_keep_their_content() {
    let place = Place::new();
    let small = "run --requests 500";
    place.ok(&format!("{small} --out mine"));
    place.fails(4, &format!("{small} --out mine"), &["mine", "earlier run", "--force"]);
    place.ok(&format!("{small} --out mine --force"));
    place.file("file", "precious");
    place.fails(4, &format!("{small} --out file"), &["file", "is a file"]);
    place.fails(4, &format!("{small} --out file/below"), &["file"]);
    std::fs::create_dir(place.path().join("others")).unwrap();
    place.file("others/precious", "x");
    place.fails(4, &format!("{small} --out others --force"), &["others", "not a run directory"]);
    place.fails(4, &format!("{small} --out /proc/nowhere/run"), &["/proc/nowhere"]);
    assert_eq!(std::fs::read(place.path().join("file")).unwrap(), b"precious");
    assert!(!place.everything().iter().any(|file| file.contains("partial")), "{:?}", place.everything());
}

#[test]
fn traces_are_written_whole_or_not_at_all() {
    let place = Place::new();
    let synth = "trace synth piq-hm_0 --requests 2000";
    place.ok(&format!("{synth} -o a.csv"));
    place.fails(4, &format!("{synth} -o a.csv"), &["a.csv", "exists", "--force"]);
    place.ok(&format!("{synth} -o a.csv --force"));
    place.fails(4, &format!("{synth} -o nowhere/a.csv"), &["nowhere/a.csv"]);
    place.fails(4, &format!("{synth} -o /dev/full"), &["/dev/full", "No space"]);
    place.fails(2, "trace convert a.csv b.csv", &["b.csv", "--to"]);
    place.fails(2, "trace convert a.csv b.txt --to ftrace", &["ftrace", "not written"]);
    place.file("broken.csv", format!("{}oops\n", msr(5000)));
    place.fails(1, "trace convert broken.csv c.parquet", &["broken.csv:5001"]);
    assert_eq!(place.everything(), ["a.csv", "broken.csv"]);
}

#[test]
fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let place = Place::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = place.command("scheduler list").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = place.command("trace volumes").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_device_that_runs_out_of_space_says_so() {
    let place = Place::new();
    // No spare space is left: every page of the device is valid, and three of four blocks are the least it can do with.
    let profile = small_device().replace("over_provisioning = 0.1", "over_provisioning = 0.05");
    place.file("tight.toml", profile);
    let said = place.run("run --device tight.toml --wrap --requests 20000 --check");
    // Either it lives (collection keeps up, and the invariants hold) or it says what is exhausted; nothing is lost in silence.
    match said.code {
        Some(0) => assert!(said.out.contains("20,000"), "{}", said.out),
        _ => said.failed(1, "tight", &["free space exhausted"]),
    }
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing() {
    for (output, command) in [
        ("full", "run --requests 2000 --request-log --out full/x"),
        ("full", "trace synth piq-hm_0 --requests 20000 -o full/x.csv"),
        ("full", "run --requests 20000 --out y --timeline full/t.json"),
        ("full", "man full"),
    ] {
        let place = Place::new();
        std::fs::create_dir(place.path().join(output)).unwrap();
        // A tiny file system in a namespace of its own, where the system lets us make one.
        let script = format!(
            "mount -t tmpfs -o size=64k none full || exit 99; {} {command}; code=$?; ls -A full; exit $code",
            env!("CARGO_BIN_EXE_planewise")
        );
        let shell = std::process::Command::new("unshare")
            .args(["-rm", "sh", "-c", &script])
            .current_dir(place.path())
            .output();
        match shell {
            Ok(output)
                if output.status.code() == Some(99)
                    || String::from_utf8_lossy(&output.stderr).contains("unshare") =>
            {
                println!("skipped: no private mounts here: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(output) => {
                // Whole pages of the manual stay; a page that did not fit does not.
                let said = support::Said::from(output);
                assert_eq!((said.code, said.err.lines().count()), (Some(4), 1), "{command}: {}", said.err);
                assert!(said.err.contains("full/") && said.err.contains("No space left"), "{}", said.err);
                let named = said.err.split(':').nth(1).unwrap().trim().trim_start_matches("full/").to_owned();
                assert!(
                    !said.out.lines().any(|left| left == named),
                    "{command}: {named} is left: {}",
                    said.out
                );
            }
            Err(error) => println!("skipped: no unshare here: {error}"),
        }
        assert!(!place.everything().iter().any(|name| name.contains("partial")), "{:?}", place.everything());
    }
}
