#!/usr/bin/env python3
"""Measures what section V of the PIQ paper (IEEE TCAD 2017) published, on the 15 look-alike volumes, beside the published numbers.

    python3 scripts/piq_claims.py [--planewise PATH] [--requests N] [--volumes a,b] > table.md

Each volume runs 500,000 requests after 500,000 of warm-up on piq-128g by default, as the paper does. Only the standard library is needed.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile

VOLUMES = "hm_0 hm_1 prn_0 prn_1 proj_1 proj_3 proj_4 prxy_0 rsrch_0 src1_2 src2_0 src2_2 stg_0 wdev_0 usr_0".split()


def runs(options, volume, *arguments):
    """Runs of one invocation, as `results.json` has them."""
    with tempfile.TemporaryDirectory() as out:
        command = [options.planewise, "compare", "--trace", f"piq-{volume}", "--device", "piq-128g", "--json", "--quiet", "--out", f"{out}/run"]
        command += ["--requests", str(options.requests), "--warmup", str(options.requests // 2)]
        # The papers' simulator starts empty and puts what a trace reads before it writes where static allocation would.
        command += ["--condition", "primed", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return [run["metrics"] for run in json.loads(done.stdout)["runs"]]


def measure(options, volume):
    """All metrics of one volume by name."""
    names = ["noop", "rws", "piq_r", "piq_w", "piq", "piq+"]
    found = dict(zip(names, runs(options, volume)))
    found["plane noop"], found["plane"] = runs(options, volume, "--schedulers", "noop,piq+", "--level", "plane")
    (found["ideal utilization"],) = runs(options, volume, "--schedulers", "noop", "--queue", "512", "--scale-time", "0.1")
    (found["conflict-free"],) = runs(options, volume, "--schedulers", "noop", "--allocation", "conflict-free")
    (found["dynamic"],) = runs(options, volume, "--schedulers", "noop", "--allocation", "dynamic")
    for queue in (1, 32, 512):
        (found[f"queue {queue}"],) = runs(options, volume, "--schedulers", "piq+", "--queue", str(queue))
    for units in (32, 128):
        (found[f"units {units}"],) = runs(options, volume, "--schedulers", "piq+", "--units", str(units))
    (found["ncq dynamic"],) = runs(
        options, volume, "--schedulers", "noop", "--allocation", "dynamic", "--command-queue", "ncq:32")
    (found["complete"],) = runs(options, volume, "--schedulers", "piq", "--tunable", "piq.barrier=complete")
    found["ncq noop"], found["ncq"] = runs(options, volume, "--schedulers", "noop,piq+", "--command-queue", "ncq:32")
    return found


def get(metrics, path):
    for key in path.split("."):
        metrics = metrics[key]
    return metrics


def ratios(all_found, path, scheme, base="noop"):
    pairs = [(get(found[scheme], path), get(found[base], path)) for found in all_found.values()]
    return [a / b for a, b in pairs if b > 0]


def mean(values):
    return sum(values) / len(values) if values else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planewise", default="target/release/planewise")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--volumes", default=",".join(VOLUMES))
    options = parser.parse_args()
    every = {}
    for volume in options.volumes.split(","):
        print(f"{volume} ...", file=sys.stderr)
        every[volume] = measure(options, volume)

    read, write = "read.latency_ns.mean", "write.latency_ns.mean"
    read_wait, write_wait = "read.waiting_ns.mean", "write.waiting_ns.mean"
    chip, plane = "utilization.chip.active", "utilization.plane.active"
    rows = []

    def row(claim, what, published, measured):
        rows.append((claim, what, published, measured))

    def ratio(claim, what, published, path, scheme, base="noop"):
        row(claim, what, f"{published:.3f}", f"{mean(ratios(every, path, scheme, base)):.3f}")

    below = lambda path, limit: sum(get(found["noop"], path) < limit for found in every.values())
    above = sum(get(found["ideal utilization"], chip) > get(found["noop"], chip) for found in every.values())
    row("fig. 1", "volumes with chip utilization < 0.20 under NOOP", "most", f"{below(chip, 0.2)} of {len(every)}")
    row("fig. 1", "volumes with plane utilization < 0.10 under NOOP", "most", f"{below(plane, 0.1)} of {len(every)}")
    row("fig. 1", "volumes whose ideal chip utilization is higher", "all", f"{above} of {len(every)}")
    for direction, published in (("read", 0.262), ("write", 0.233)):
        share = mean([get(found["noop"], f"conflict.{direction}_share") for found in every.values()])
        row("fig. 3a", f"share of {direction}s that conflict", f"{published:.3f}", f"{share:.3f}")
    for path, published in ((read, 7.1), (write, 4.8)):
        row("fig. 3b", f"{path.split('.')[0]} latency, NOOP over conflict-free", f"{published:.1f}",
            f"{mean(ratios(every, path, 'noop', 'conflict-free')):.2f}")
    few = sum(get(found["rws"], "prioritized.read_share") < 0.1 for found in every.values())
    row("fig. 10", "volumes with < 10 % of reads prioritized by RWS", "most", f"{few} of {len(every)}")
    if "hm_0" in every:
        hm_0 = every["hm_0"]
        row("fig. 10", "hm_0: share of reads prioritized by RWS", "0.37", f"{get(hm_0['rws'], 'prioritized.read_share'):.3f}")
        row("fig. 8", "hm_0: read latency, RWS over NOOP", "0.29", f"{get(hm_0['rws'], read) / get(hm_0['noop'], read):.3f}")
    for scheme, published in {
        "piq_r": {read: 0.583, read_wait: 0.487, chip: 1.092},
        "piq_w": {write: 0.663, write_wait: 0.539, chip: 1.119},
        "piq": {read: 0.583, write: 0.662, read_wait: 0.487, write_wait: 0.537, chip: 1.22},
        "piq+": {read: 0.589, write: 0.603, write_wait: 0.295, chip: 1.22},
    }.items():
        for path, value in published.items():
            ratio("fig. 8-11", f"{scheme}: {path} over NOOP", value, path, scheme)
    better = sum(value < 0.95 for value in ratios(every, read, "piq_r"))
    row("fig. 8", "volumes whose reads improve clearly (> 5 %) under PIQ_R", "13 of 15", f"{better} of {len(every)}")
    ratio("fig. 8", "piq+: write latency over PIQ", 0.941, write, "piq+", "piq")
    ratio("fig. 8", "piq+: read latency over PIQ", 1.01, read, "piq+", "piq")
    if "hm_0" in every:
        for direction in ("read", "write"):
            for tail in ("p99", "p999"):
                values = [get(hm_0[name], f"{direction}.latency_ns.{tail}") / 1e6 for name in ("noop", "piq", "piq+")]
                row("fig. 13", f"hm_0 {direction} {tail}, ms: NOOP / PIQ / PIQ+", "falls", " / ".join(f"{v:.2f}" for v in values))
    for what, path, published in (("read latency", read, 0.982), ("write latency", write, 0.954)):
        ratio("fig. 14", f"{what}, PIQ+ at plane over chip level", published, path, "plane", "piq+")
    ratio("fig. 15", "chip utilization, PIQ+ at plane over chip level", 1.038, chip, "plane", "piq+")
    ratio("fig. 15", "plane utilization, PIQ+ at plane over chip level", 1.117, plane, "plane", "piq+")
    static = sum(value > 1 for value in ratios(every, read, "dynamic"))
    row("fig. 16", "volumes that read faster with static than with dynamic allocation", "8 of 15", f"{static} of {len(every)}")
    static = sum(value > 1 for value in ratios(every, read, "ncq dynamic", "ncq noop"))
    row("fig. 16", "the same, both on ncq:32", "8 of 15", f"{static} of {len(every)}")
    static = sum(value > 1 for value in ratios(every, "read.processing_ns.mean", "dynamic"))
    row("fig. 16", "the same, processing time alone", "-", f"{static} of {len(every)}")
    best = sum(get(f["piq+"], read) <= min(get(f["noop"], read), get(f["dynamic"], read)) for f in every.values())
    row("fig. 16", "volumes where PIQ+ (static) reads best of the three", "all", f"{best} of {len(every)}")
    best = sum(get(f["dynamic"], write) <= min(get(f["noop"], write), get(f["piq+"], write)) for f in every.values())
    row("fig. 16", "volumes where dynamic NOOP writes best", "all", f"{best} of {len(every)}")
    shares = [get(f["plane"], "flash.multiplane") / max(1, get(f["plane"], "flash.reads") + get(f["plane"], "flash.programs"))
              for f in every.values()]
    row("fig. 17", "pages served by multi-plane operations, PIQ+ at plane level", "few", f"{mean(shares):.3f}")
    ratio("fig. 18", "read latency, queue 512 over 1 (PIQ+)", 0.81, read, "queue 512", "queue 1")
    ratio("fig. 18", "write latency, queue 512 over 1 (PIQ+)", 0.63, write, "queue 512", "queue 1")
    ratio("fig. 18", "read latency, queue 32 over 1 (PIQ+)", 0.82, read, "queue 32", "queue 1")
    for units in (32, 128):
        for path in (read, write):
            row("fig. 19", f"{path.split('.')[0]} latency over NOOP, PIQ+ told {units} chips", "< 1",
                f"{mean(ratios(every, path, f'units {units}')):.3f}")
    for path in (read, write):
        row("beyond", f"{path.split('.')[0]} latency over NOOP, PIQ with barrier = complete", "-", f"{mean(ratios(every, path, 'complete')):.3f}")
    for path in (read, write):
        row("beyond", f"{path.split('.')[0]} latency, PIQ+ over NOOP, both on ncq:32", "-", f"{mean(ratios(every, path, 'ncq', 'ncq noop')):.3f}")

    print("| figure | what | published | measured |\n|---|---|---|---|")
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print("\n| volume | " + " | ".join(["conflicts r / w", "NOOP read us", "NOOP write us", "rws r", "piq_r r", "piq_w w", "piq r", "piq w", "piq+ r", "piq+ w", "chip busy"]) + " |")
    print("|---" * 12 + "|")
    for volume, found in every.items():
        noop = found["noop"]
        over = lambda scheme, path: f"{get(found[scheme], path) / get(noop, path):.2f}"
        print(f"| {volume} | {get(noop, 'conflict.read_share'):.2f} / {get(noop, 'conflict.write_share'):.2f} | {get(noop, read) / 1e3:.0f} | {get(noop, write) / 1e3:.0f} | "
              + " | ".join([over("rws", read), over("piq_r", read), over("piq_w", write), over("piq", read), over("piq", write), over("piq+", read), over("piq+", write)])
              + f" | {get(noop, chip):.2f} |")


if __name__ == "__main__":
    main()
