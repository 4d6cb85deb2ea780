//! How many instructions six fixed runs take, under callgrind, beside the stored values: what costs more is seen before it is in.
//!
//! Noise of the machine does not touch them. They are those of the program that tests are run with (`profile.test`) and of one version of the
//! compiler; docs/performance.md has those of a release. A new value is accepted with a reason:
//!
//! ```text
//! PLANEWISE_ACCEPT="why it costs more, or less" cargo test -p planewise-cli --test instructions
//! ```

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// What a run may take more than what is stored.
const ALLOWED: f64 = 1.02;

/// Runs by name; `TRACE` stands for a file of [`trace`].
const RUNS: [(&str, &[&str]); 6] = [
    ("idle", &["run", "--trace", "TRACE"]),
    ("saturated", &["run", "--trace", "TRACE", "--scale-time", "0.02", "--queue", "256"]),
    ("aged, traditional", &AGED),
    ("aged, idle_chip", &AGED_IDLE_CHIP),
    (
        "closed loop",
        &["bench", "--target", "sim:ssd1", "--workload", "sysbench-file", "--set", "max_requests=20000"],
    ),
    ("probe", &["probe", "sim:piq-128g", "--quick", "--area", "64m", "--depth", "8"]),
];

const AGED: [&str; 11] = [
    "run",
    "--trace",
    "gc-stg_0",
    "--requests",
    "10000",
    "--wrap",
    "--device",
    "gc-128g:geometry.blocks_per_plane=64",
    "--condition",
    "aged:84/11/5",
    "--gc=traditional",
];
const AGED_IDLE_CHIP: [&str; 11] = [
    AGED[0],
    AGED[1],
    AGED[2],
    AGED[3],
    AGED[4],
    AGED[5],
    AGED[6],
    AGED[7],
    AGED[8],
    AGED[9],
    "--gc=idle_chip",
];

/// 20,000 requests of 4 to 16 KiB, 60 % of them writes, about 1 ms apart, in the columns of the MSR traces.
fn trace() -> String {
    let mut state = 1u64;
    // Knuth's constants: any sequence does that is the same for ever.
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut text, mut clock) = (String::new(), 133_000_000_000_000_000u64);
    for _ in 0..20_000 {
        clock += next(20_000);
        let kind = if next(10) < 6 { "Write" } else { "Read" };
        let (size, offset) = (4096 * (1 + next(4)), 4096 * next(488_281));
        writeln!(text, "{clock},bench,0,{kind},{offset},{size},0").unwrap();
    }
    text
}

/// Instructions of a run.
fn count(arguments: &[&str], place: &Path) -> u64 {
    let trace = place.join("trace.csv");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(env!("CARGO_BIN_EXE_planewise"));
    for argument in arguments {
        match *argument {
            "TRACE" => command.arg(&trace),
            other => command.arg(other),
        };
    }
    let out = arguments[0];
    command.args(["--out", out, "--force"]).current_dir(place);
    if arguments[0] != "probe" {
        command.args(["--jobs", "1"]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    collected.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or_else(|| panic!("no count: {text}"))
}

fn version_of_the_compiler() -> String {
    let output = Command::new(option_env!("RUSTC").unwrap_or("rustc")).arg("--version").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[test]
fn six_runs_take_no_more_instructions_than_they_did() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: instructions are not counted: valgrind is not installed");
        return;
    }
    let stored_at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.toml");
    let reason = std::env::var("PLANEWISE_ACCEPT").ok().filter(|reason| !reason.trim().is_empty());
    let stored: toml::Table = std::fs::read_to_string(&stored_at).unwrap_or_default().parse().unwrap();
    let compiler = version_of_the_compiler();
    let of = stored.get("compiler").and_then(|of| of.as_str()).unwrap_or_default();
    if reason.is_none() && of != compiler {
        eprintln!("skipped: the stored counts are of {of}, this is {compiler}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("trace.csv"), trace()).unwrap();
    let counted: BTreeMap<&str, u64> =
        RUNS.iter().map(|(name, arguments)| (*name, count(arguments, place.path()))).collect();
    let mut worse = String::new();
    for (name, count) in &counted {
        let before = stored.get("instructions").and_then(|of| of.get(*name)).and_then(|of| of.as_integer());
        let ratio = before.map_or(f64::INFINITY, |before| *count as f64 / before as f64);
        println!("{name}: {count} instructions, {ratio:.4} times the stored ones");
        if ratio > ALLOWED {
            writeln!(
                worse,
                "{name}: {count}, stored {}",
                before.map_or("none".into(), |before| before.to_string())
            )
            .unwrap();
        }
    }
    if let Some(reason) = reason {
        let counts: String = counted.iter().map(|(name, count)| format!("\"{name}\" = {count}\n")).collect();
        let text = format!(
            "# Made by crates/cli/tests/instructions.rs, which says how.\ncompiler = {}\nreason = {}\n\n[instructions]\n{counts}",
            toml::Value::from(compiler),
            toml::Value::from(reason)
        );
        std::fs::write(&stored_at, text).unwrap();
        return;
    }
    assert!(
        worse.is_empty(),
        "more than {:.0} % more instructions than stored:\n{worse}accept them with PLANEWISE_ACCEPT=\"why\" cargo test -p planewise-cli --test instructions",
        (ALLOWED - 1.0) * 100.0
    );
}
