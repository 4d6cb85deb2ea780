//! The loop that the project is about: a simulated drive is probed from outside, and a trace on the profile that comes of it takes as long as on
//! the drive itself.

#![cfg(unix)]

mod support;

use support::Place;

/// Mean latencies of the OLTP sample (pgbench) at its recorded times, ns: reads, writes, all. Held for one another, requests of a
/// drive that cannot keep up would magnify every error.
fn latencies(place: &Place, device: &str) -> [f64; 3] {
    let said = place.run(&format!(
        "run --trace pgbench --pace recorded --overlap ignore --device {device} --json --quiet --out run --force"
    ));
    let results: planewise_sim::results::Results =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let metrics = &results.runs[0].metrics;
    [&metrics.read, &metrics.write, &metrics.all].map(|direction| direction.latency_ns.mean)
}

/// Within ten per cent of the true profile's, all and each direction.
fn check(name: &str) {
    let place = Place::new();
    let said = place.run(&format!("probe sim:{name} --quiet --out probed"));
    assert!(place.path().join("probed/profile.toml").exists(), "{name}: {}", said.err);
    let (truth, probed) = (latencies(&place, name), latencies(&place, "probed/profile.toml"));
    for (what, (truth, probed)) in ["reads", "writes", "all"].into_iter().zip(truth.into_iter().zip(probed)) {
        let off = probed / truth - 1.0;
        // What docs/probe.md has in its table.
        println!(
            "{name}, {what}: {:.1} us, probed {:.1} us, {:+.1} %",
            truth / 1e3,
            probed / 1e3,
            off * 100.0
        );
        assert!(off.abs() < 0.1, "{name}, {what}: {probed:.0} ns for {truth:.0} ns, {:+.1} %", off * 100.0);
    }
}

#[test]
fn the_drive_of_the_study_with_its_controller_and_buffers() {
    check("ssd-s");
}

#[test]
fn its_sibling_with_slower_flash_that_the_trace_overloads() {
    check("ssd-m");
}

#[test]
fn the_drive_of_the_piq_paper_that_takes_one_command_after_the_other() {
    check("piq-128g");
}

#[test]
fn the_drive_of_the_gc_paper_that_writes_to_idle_chips() {
    check("gc-128g");
}

#[test]
fn the_drive_of_the_pass_paper() {
    check("pass-60g");
}
