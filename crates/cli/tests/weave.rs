//! Weave on real traces, against NOOP: on these an earlier one was up to 504 times behind (docs/schedulers/weave.md).

mod support;

use planewise_sim::results::{DirectionMetrics, RunResult};
use support::Place;

/// Traces that are not in the tree, and how to read them.
const REAL: [&str; 8] = [
    "mqsim/tpcc-small.trace.zst --format mqsim --time-unit ns",
    "cloudphysics/cloudPhysicsIO.vscsi.zst",
    "derived/financial1.first10k.spc.zst",
    "disksim/pcmark.trace.zst",
    "self-captured/fio-3.33.randrw.v3.iolog.zst",
    "systor17/systor17-traces-sample.csv.zst",
    "msr/hm_0.excerpt1k.csv.zst",
    "tencent/tencent-cbs-2018-10-01.50k.csv.zst",
];

const DEVICES: [&str; 4] = [
    "piq-128g --command-queue blocking",
    "piq-128g --command-queue ncq:32",
    "ssd-s --command-queue ncq:32",
    "ssd-m --command-queue ncq:32",
];

/// Mean and 99th percentile, ns; none where there is no such request.
fn latencies(metrics: &DirectionMetrics) -> Option<[f64; 2]> {
    let latency = &metrics.latency_ns;
    (latency.max > 0).then_some([latency.mean, latency.p99 as f64])
}

fn is_never_worse_than_noop(trace: &str) {
    let place = Place::new();
    for device in DEVICES {
        for scale in [1.0, 0.1] {
            let command = format!(
                "compare --trace {trace} --device {device} --wrap --requests 4000 --scale-time {scale} --schedulers noop,weave --json --quiet"
            );
            let results: serde_json::Value = serde_json::from_str(&place.ok(&command).out).unwrap();
            let runs: Vec<RunResult> = serde_json::from_value(results["runs"].clone()).unwrap();
            let [noop, weave] = [0, 1].map(|run| {
                let metrics = &runs[run].metrics;
                [&metrics.read, &metrics.write].map(latencies)
            });
            for (direction, most) in [(0, [1.02, 1.1]), (1, [1.05, 1.1])] {
                let Some((noop, weave)) = noop[direction].zip(weave[direction]) else { continue };
                for which in 0..2 {
                    assert!(
                        weave[which] <= most[which] * noop[which],
                        "{command}: direction {direction}, mean and 99th percentile {weave:?}, NOOP {noop:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn it_is_never_worse_than_noop_on_the_trace_in_the_program() {
    is_never_worse_than_noop("pgbench");
}

#[test]
fn it_is_never_worse_than_noop_on_real_traces() {
    let Some(folder) = support::traces() else { return };
    for trace in REAL {
        is_never_worse_than_noop(&format!("{}/{trace}", folder.display()));
    }
}
