//! `planewise linux` on a real kernel, where `make linux` has built one: what runs, that it does so again to the bit, and how it ends when it should not go on.

#![cfg(target_os = "linux")]

mod support;

use planewise_sim::results::Results;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::Place;

fn built(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")).join(name)
}

/// Where a kernel is, and a root for it.
struct Linux {
    place: Place,
    root: PathBuf,
}

impl Linux {
    /// None where no kernel was built, or a program is missing in the root.
    fn find(programs: &[&str]) -> Option<Linux> {
        if !built("linux/kernel").is_file() {
            eprintln!("skipped: target/linux/kernel is not there (make linux)");
            return None;
        }
        let own = built("linux-root");
        let root = if own.join(".planewise").is_file() { own } else { "/".into() };
        if let Some(missing) = programs.iter().find(|program| !root.join(program).exists()) {
            eprintln!("skipped: {} has no {missing} (make linux-root)", root.display());
            return None;
        }
        Some(Linux { place: Place::new(), root })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planewise"));
        command.current_dir(self.place.path()).arg("linux");
        command.arg("--kernel").arg(built("linux")).arg("--root").arg(&self.root).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs into a directory; what came of it.
    fn results(&self, out: &str, words: &[&str]) -> Results {
        let all: Vec<&str> = ["--quiet", "--out", out].into_iter().chain(words.iter().copied()).collect();
        let output = self.run(&all);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&std::fs::read(self.place.path().join(out).join("results.json")).unwrap())
            .unwrap()
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.place.path().join(path)).unwrap()
    }

    /// The same twice, to the last bit.
    fn twice(&self, words: &[&str]) -> Results {
        let first = self.results("a", words);
        let second = self.results("b", words);
        assert_eq!(first, second);
        for file in ["results.json", "guest-0/output", "guest-0/errors", "guest-0/log"] {
            assert!(self.bytes(&format!("a/{file}")) == self.bytes(&format!("b/{file}")), "{file}");
        }
        first
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads the drive one block after the other.
const READS: &str = "dd if=/dev/vda of=/dev/null bs=4k count=200 iflag=direct 2>/dev/null";

#[test]
fn a_program_runs_and_what_it_says_is_passed_on() {
    let Some(linux) = Linux::find(&["bin/sh"]) else { return };
    let script = "cat /sys/block/vda/queue/scheduler; cat /sys/block/vda/queue/iosched/read_expire; cat /sys/block/vda/queue/rotational; cat /sys/block/vda/serial; sleep 100; echo wrong >&2; exit 3";
    let output = linux.run(&[
        "--scheduler",
        "mq-deadline",
        "--attribute",
        "iosched/read_expire=70",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("none [mq-deadline] kyber bfq \n70\n0\nplanewise0"), "{out}");
    assert!(errors.contains("wrong\n") && errors.contains("the command ended with status 3"), "{errors}");
    assert!(errors.contains("ran 100."), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn depth_one_is_what_the_drive_takes_and_its_system_calls() {
    let Some(linux) = Linux::find(&["bin/sh", "bin/dd"]) else { return };
    let words =
        ["--device", "gc-128g", "--file-system", "none", "--syscall-ns", "1000", "--", "sh", "-c", READS];
    let results = linux.results("a", &words);
    let read = &results.runs[0].metrics.read;
    assert_eq!(results.runs[0].metrics.requests.reads, 200);
    // A page of 4 KiB on gc-128g: 30 us out of the cells, 10 ns a byte, and nothing else that waits.
    assert_eq!((read.latency_ns.p50 / 1000, read.latency_ns.max), (70, 70_960));
    let per_request = results.runs[0].guest.as_ref().unwrap().ran_ns as f64 / 200.0;
    // A read and a write of dd's each.
    assert!((72_960.0..76_000.0).contains(&per_request), "{per_request}");
}

#[test]
fn a_program_of_ones_own_is_shared_and_leaves_its_files() {
    let Some(linux) = Linux::find(&["bin/sh"]) else { return };
    let own = linux.place.path().join("own, with a comma");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(
        own.join("program"),
        "cat /run/share/data; echo kept >/run/out/file; touch /run/share/no\n",
    )
    .unwrap();
    std::fs::write(own.join("data"), "shared\n").unwrap();
    let words = ["--share", "own, with a comma", "--out", "a", "--", "sh", "/run/share/program"];
    let output = linux.run(&words);
    assert!(text(&output.stdout).starts_with("shared\n"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("Read-only") && !own.join("no").exists());
    assert_eq!(linux.bytes("a/guest-0/file"), b"kept\n");
}

#[test]
fn fio_does_the_same_to_the_bit() {
    let Some(linux) = Linux::find(&["usr/bin/fio"]) else { return };
    for scheduler in ["none", "bfq"] {
        let words = [
            "--recipe",
            "fio",
            "--set",
            "time=20ms",
            "--set",
            "depth=8",
            "--scheduler",
            scheduler,
            "--force",
        ];
        let results = linux.twice(&words);
        assert!(
            results.runs[0].guest.as_ref().unwrap().numbers.iter().all(|number| number.value.unwrap() > 0.0)
        );
        assert_eq!(results.runs[0].labels.scheduler, scheduler);
    }
}

#[test]
fn sysbench_on_ext4_does_the_same_to_the_bit_and_reads_what_it_wrote() {
    let Some(linux) = Linux::find(&["usr/bin/sysbench", "usr/sbin/mkfs.ext4"]) else { return };
    let words = [
        "--recipe",
        "sysbench-fileio",
        "--set",
        "total=16M",
        "--set",
        "files=4",
        "--set",
        "time=1",
        "--device",
        "ssd1",
        "--check",
        "--force",
    ];
    let results = linux.twice(&words);
    let run = &results.runs[0];
    assert!(run.invariants["a read returns the last write"] > 100, "{:?}", run.invariants);
    assert!(run.invariants.len() > 3 && run.metrics.flushes.as_ref().unwrap().count > 10);
}

#[test]
fn postgres_does_the_same_to_the_bit() {
    let Some(linux) = Linux::find(&["usr/lib/postgresql/15/bin/pgbench"]) else { return };
    let words = [
        "--recipe",
        "pgbench",
        "--set",
        "scale=1",
        "--set",
        "clients=2",
        "--set",
        "time=1",
        "--device",
        "ssd1",
        "--size",
        "1g",
        "--force",
    ];
    let results = linux.twice(&words);
    let numbers = &results.runs[0].guest.as_ref().unwrap().numbers;
    assert!(numbers[0].value.unwrap() > 10.0, "{numbers:?}");
}

#[test]
fn however_time_is_shared_the_trace_is_the_same_and_a_seed_makes_another() {
    let Some(linux) = Linux::find(&["bin/sh", "usr/sbin/mkfs.ext4"]) else { return };
    let script = "for i in 1 2 3 4 5; do head -c 100000 /dev/urandom >f$i; sync; sleep 0.01; done; cat f* | cksum; rm f1; sync";
    let hash = |out: &str, words: &[&str]| {
        let all = [words, &["--size", "256m", "--", "sh", "-c", script]].concat();
        let guest = linux.results(out, &all).runs.remove(0).guest.unwrap();
        (guest.trace_hash, guest.output_hash)
    };
    let memory = hash("a", &[]);
    assert_eq!(memory.0, hash("b", &["--time-sharing", "messages"]).0);
    assert_eq!(memory.0, hash("c", &["--time-sharing", "none"]).0);
    assert_ne!(memory.1, hash("d", &["--seed", "1"]).1, "random bytes are of the seed");
}

#[test]
fn several_guests_side_by_side_are_those_that_run_alone() {
    let Some(linux) = Linux::find(&["bin/sh", "bin/dd"]) else { return };
    let words = |schedulers| ["--file-system", "none", "--schedulers", schedulers, "--", "sh", "-c", READS];
    let together = linux.results("a", &words("none,mq-deadline,kyber,bfq"));
    for (run, scheduler) in together.runs.iter().zip(["none", "mq-deadline", "kyber", "bfq"]) {
        let alone = linux.results(scheduler, &words(scheduler));
        assert_eq!(
            alone.runs[0].guest.as_ref().unwrap().trace_hash,
            run.guest.as_ref().unwrap().trace_hash,
            "{scheduler}"
        );
    }
}

#[test]
fn a_recorded_trace_has_what_the_drive_was_asked_while_the_command_ran() {
    let Some(linux) = Linux::find(&["bin/sh", "usr/sbin/mkfs.ext4"]) else { return };
    let script = "for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=16k count=4 conv=fsync 2>/dev/null; done; fstrim . || true";
    let words = ["--record", "t.parquet", "--size", "256m", "--", "sh", "-c", script];
    let recorded = linux.results("a", &words).runs.remove(0).metrics;
    let output = Command::new(env!("CARGO_BIN_EXE_planewise"))
        .current_dir(linux.place.path())
        .args(["run", "--trace", "t.parquet", "--device", "ssd1", "--out", "again", "--quiet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let again: Results = serde_json::from_slice(&linux.bytes("again/results.json")).unwrap();
    let again = &again.runs[0].metrics;
    assert_eq!(
        (again.requests.reads, again.requests.writes),
        (recorded.requests.reads, recorded.requests.writes)
    );
    let count = |metrics: &planewise_sim::results::Metrics| metrics.flushes.as_ref().map(|of| of.count);
    assert_eq!(count(again), count(&recorded));
    assert!(count(again) >= Some(4) && again.requests.writes >= 4);
}

#[test]
fn a_program_that_spins_a_panic_and_a_limit_end_the_run_and_are_named() {
    let Some(linux) = Linux::find(&["bin/sh"]) else { return };
    let failed = |words: &[&str]| {
        let output = linux.run(&[&["--force", "--file-system", "none"], words].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let spins = failed(&["--patience", "2", "--", "sh", "-c", "while :; do :; done"]);
    assert!(spins.contains("time has stood still") && spins.contains("the program 'sh'"), "{spins}");
    let panics = failed(&["--", "sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1"]);
    assert!(panics.contains("sysrq triggered crash"), "{panics}");
    let sleeps = failed(&["--limit", "50s", "--", "sleep", "100000"]);
    assert!(sleeps.contains("past the limit of"), "{sleeps}");
    let unknown = failed(&["--", "no-such-program"]);
    assert!(unknown.contains("status 127") && unknown.contains("no-such-program"), "{unknown}");
    let unprepared = failed(&["--attribute", "nonsense=1", "--", "true"]);
    assert!(
        unprepared.contains("before the command failed") && unprepared.contains("nonsense"),
        "{unprepared}"
    );
}

#[test]
fn a_drive_that_is_discarded_as_a_whole_is_checked_in_little_room_and_programs_of_sbin_are_found() {
    let Some(linux) = Linux::find(&["usr/sbin/mkfs.xfs", "usr/sbin/fstrim"]) else { return };
    let mut command = linux.command(&[
        "--check",
        "--device",
        "ssd1:geometry.blocks_per_plane=32",
        "--file-system",
        "xfs",
        "--size",
        "512m",
        "--out",
        "a",
        "--",
        "fstrim",
        "-v",
        "/drive",
    ]);
    let began = Instant::now();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("trimmed"), "{}", text(&output.stdout));
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[test]
fn ctrl_c_ends_guest_and_drive_and_keeps_what_was_measured() {
    let Some(linux) = Linux::find(&["bin/sh", "bin/dd"]) else { return };
    let script =
        "echo begun; while :; do dd if=/dev/vda of=/dev/null bs=4k count=100 iflag=direct 2>/dev/null; done";
    let mut child = linux
        .command(&["--file-system", "none", "--out", "a", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    let began = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(20));
    let results: Results = serde_json::from_slice(&linux.bytes("a/results.json")).unwrap();
    assert!(results.runs[0].metrics.requests.reads > 0);
    assert_eq!(linux.bytes("a/guest-0/output"), b"begun\n");
}

#[test]
fn what_is_wrong_is_said_before_anything_boots() {
    let Some(linux) = Linux::find(&["bin/sh"]) else { return };
    for (words, said) in [
        (&["--scheduler", "mq-deadlin", "--", "true"][..], "mq-deadline"),
        (&["--schedulers", "none,none", "--", "true"], "each value once"),
        (&["--recipe", "pgbenhc"], "pgbench"),
        (&["--recipe", "fio", "--set", "depht=4"], "depth"),
        (&["--recipe", "fio", "--set", "depth"], "NAME=VALUE"),
        (&["--device", "ssd9", "--", "true"], "ssd"),
        (&["--file-system", "ext5", "--", "true"], "ext4"),
        (&["--attribute", "../../x=1", "--", "true"], "a file of /sys/block/vda/queue"),
        (&["--attribute", "scheduler=bfq", "--", "true"], "--schedulers"),
        (&["--attribute", "./scheduler=bfq", "--", "true"], "a file of /sys/block/vda/queue"),
        (&["--patience", "0", "--", "true"], "patience"),
        (&["--size", "900t", "--", "true"], "those of ssd1"),
        (&["--memory", "1m", "--", "true"], "134217728 bytes or more"),
        (&["--tags", "0", "--", "true"], "1..=1024"),
        (&["--drives", "9", "--", "true"], "1..=8"),
        (&["--condition", "new", "--", "true"], "fresh"),
        (&["--share", "nowhere", "--", "true"], "--share nowhere"),
        (&["--time-sharing", "x", "--", "true"], "memory, messages, none"),
        (&[], "COMMAND"),
    ] {
        let output = linux.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{words:?}: {}", text(&output.stderr));
    }
    let missing = Command::new(env!("CARGO_BIN_EXE_planewise"))
        .args(["linux", "--kernel", "/nowhere", "--root", "/", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("make linux"), "{}", text(&missing.stderr));
}

/// The blocks of indented lines of the page.
fn examples() -> Vec<String> {
    let page = include_str!("../../../docs/linux.md");
    let (mut blocks, mut block) = (Vec::new(), String::new());
    for line in page.lines().chain([""]) {
        match line.trim_start() {
            trimmed if line.starts_with("    ") => block += &format!("{trimmed}\n"),
            // A block may have an empty line in it.
            "" if block.contains("summary =") => block.push('\n'),
            _ if !block.is_empty() => blocks.push(std::mem::take(&mut block)),
            _ => {}
        }
    }
    blocks
}

#[test]
fn the_examples_of_the_page_do_what_it_says() {
    let examples = examples();
    let first = examples.iter().find(|block| block.starts_with("planewise linux")).unwrap();
    let recipe = examples.iter().find(|block| block.starts_with("summary")).unwrap();
    planewise_guest::recipe::Recipe::parse(recipe, "docs/linux.md").unwrap();
    if !Path::new("/usr/sbin/mkfs.ext4").exists() && !Path::new("/sbin/mkfs.ext4").exists() {
        eprintln!("skipped: this machine has no mkfs.ext4");
        return;
    }
    let Some(linux) = Linux::find(&["bin/dd"]) else { return };
    let words: Vec<&str> = first.split_whitespace().skip(2).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_planewise"));
    command.current_dir(linux.place.path()).arg("linux").arg("--kernel").arg(built("linux")).args(&words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("67108864 bytes"), "{}", text(&output.stderr));
    linux.place.file("copy.toml", recipe);
    let output = linux.run(&["--recipe", "copy.toml", "--set", "mib=4", "--size", "256m"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("rate, MB/s"), "{}", text(&output.stdout));
}

/// A program of the guest's serves a simulated drive as a block device of the guest's kernel: the one of this machine may have no ublk.
#[test]
fn a_drive_that_is_served_by_ublk_is_one_that_a_file_system_lives_on() {
    if !["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"].iter().any(|path| Path::new(path).exists()) {
        eprintln!("skipped: this machine has no mkfs.ext4");
        return;
    }
    let Some(linux) = Linux::find(&["bin/sh"]) else { return };
    // This machine's own root: the program was linked with its libraries.
    let linux = Linux { root: "/".into(), ..linux };
    std::fs::copy(env!("CARGO_BIN_EXE_planewise"), linux.place.path().join("planewise")).unwrap();
    let script = "cd /tmp
/run/share/planewise serve --device ssd1 --size 64m --front ublk --out o >served.txt 2>errors.txt & server=$!
for i in $(seq 200); do [ -b /dev/ublkb0 ] && break; sleep 0.05; done
[ -b /dev/ublkb0 ] || { cat errors.txt; exit 1; }
mkfs.ext4 -q -F /dev/ublkb0; mkdir -p m; mount /dev/ublkb0 m
dd if=/dev/urandom of=m/f bs=64k count=50 conv=fsync 2>/dev/null
sum=$(cksum <m/f); umount m; mount /dev/ublkb0 m; [ \"$sum\" = \"$(cksum <m/f)\" ] && echo same; umount m
kill -INT $server; wait $server; echo status $?; cat served.txt";
    linux.place.file("script", script);
    let words = ["--file-system", "none", "--share", ".", "--limit", "600s", "--", "sh", "/run/share/script"];
    let output = linux.run(&words);
    let said = text(&output.stdout);
    assert!(
        said.starts_with("same\nstatus 0\n") && said.contains("lateness"),
        "{said}{}",
        text(&output.stderr)
    );
}
