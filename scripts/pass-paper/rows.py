#!/usr/bin/env python3
"""The runs of a part of scripts/pass-paper.sh as a table: PART.tsv, a line for each run of the program.

    rows.py DIRECTORY PART
"""
import json
import sys
from pathlib import Path

COLUMNS = ["what", "device", "mode", "threads", "seed", "scheduler", "barrier", "reads/s", "writes/s", "fsyncs/s", "transactions/s", "2^20 bytes/s",
           "MB/s", "p95 ms", "requests of the drive", "turns/request", "mean depth", "mean response ms", "deviation ms", "allocation", "trace of", "pages written",
           "erases", "write amplification"]


def row(labels, run):
    found = dict(labels)
    metrics = run["metrics"]
    if labels["part"] == "models":
        name = run["labels"]["scheduler"]
        operations = run["closed_loop"].get("operations") or {}
        return found | {
            "scheduler": {"noop": "none", "pass": "planewise-pass"}.get(name, name),
            "threads": (run["labels"].get("workload") or {}).get("threads", 4),
            "2^20 bytes/s": f"{metrics['all']['bandwidth_bytes_per_s'] / 2**20:.2f}",
            "MB/s": f"{metrics['all']['bandwidth_bytes_per_s'] / 1e6:.2f}",
            "transactions/s": f"{operations['per_s']:.2f}" if operations else "",
            "turns/request": f"{metrics['direction_switches'] / metrics['requests']['completed']:.3f}",
            "mean response ms": f"{metrics['all']['latency_ns']['mean'] / 1e6:.3f}",
        }
    if "guest" not in run:
        pages = metrics["write"]["bandwidth_bytes_per_s"] * metrics["duration_ns"] / 1e9 / 4096
        return found | {"pages written": f"{pages:.0f}", "erases": metrics["gc"]["erases"], "write amplification": f"{metrics['gc']['write_amplification']:.3f}"}
    found["scheduler"] = run["labels"]["scheduler"]
    numbers = {number["name"]: number["value"] for number in run["guest"]["numbers"]}
    if numbers.get("reads") is not None:
        small = labels["part"] in ("table2", "figure8") or labels.get("what", "").startswith(("table 2", "figure 8"))
        rate = (numbers["reads"] + numbers["writes"]) * (4096 if small else 16384)
        found |= {"reads/s": numbers["reads"], "writes/s": numbers["writes"], "fsyncs/s": numbers["fsyncs"], "2^20 bytes/s": f"{rate / 2**20:.2f}", "MB/s": f"{rate / 1e6:.2f}"}
    latency = metrics["all"]["latency_ns"]
    return found | {
        "p95 ms": numbers.get("p95 latency"),
        "requests of the drive": metrics["requests"]["completed"],
        "turns/request": f"{metrics['direction_switches'] / max(metrics['requests']['completed'], 1):.3f}",
        "mean depth": f"{metrics['mean_queue_depth']:.2f}",
        "mean response ms": f"{latency['mean'] / 1e6:.3f}",
        "deviation ms": f"{latency['deviation'] / 1e6:.3f}",
    }


def steps(found, run):
    """A line for each step of the databases' runs; what the drive did is that of all steps together."""
    numbers = {number["name"]: number["value"] for number in run["guest"]["numbers"]}
    for name, value in numbers.items():
        if not name.endswith(" p95"):
            what, threads = name.split()
            yield found | {"what": what, "threads": threads, "transactions/s": value, "p95 ms": numbers[f"{name} p95"]}


def rows(directory, part):
    for path in sorted((directory / "runs").glob(f"{part},*.json")):
        words = path.stem.split(",")
        labels = {"part": part} | dict(word.split("=", 1) for word in words[1:] if "=" in word)
        barrier = words[-1] if words[-1] in ("region", "device") else "none"
        for run in json.loads(path.read_text())["runs"]:
            found = row(labels, run)
            if found.get("scheduler") == "planewise-pass":
                found["barrier"] = barrier
            yield from steps(found, run) if part.startswith("figure10") else [found]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    directory, part = Path(sys.argv[1]), sys.argv[2]
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(str(found.get(column, "")) for column in COLUMNS) for found in rows(directory, part)]
    (directory / f"{part}.tsv").write_text("\n".join(lines) + "\n")


main()
