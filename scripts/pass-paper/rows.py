#!/usr/bin/env python3
"""The runs of a part of scripts/pass-paper.sh as a table: PART.tsv, a line for each run of the program.

    rows.py DIRECTORY PART
"""
import json
import sys
from pathlib import Path

COLUMNS = ["what", "device", "mode", "threads", "seed", "scheduler", "barrier", "reads/s", "writes/s", "fsyncs/s", "transactions/s", "queries/s", "2^20 bytes/s",
           "MB/s", "p95 ms", "requests of the drive", "turns/request", "mean depth", "mean response ms", "deviation ms", "allocation", "trace of", "pages written",
           "erases", "write amplification"]


def row(labels, run):
    found = dict(labels)
    metrics = run["metrics"]
    if "guest" not in run:
        pages = metrics["write"]["bandwidth_bytes_per_s"] * metrics["duration_ns"] / 1e9 / 4096
        return found | {"pages written": f"{pages:.0f}", "erases": metrics["gc"]["erases"], "write amplification": f"{metrics['gc']['write_amplification']:.3f}"}
    found["scheduler"] = run["labels"]["scheduler"]
    numbers = {number["name"]: number["value"] for number in run["guest"]["numbers"]}
    if numbers.get("reads") is not None:
        small = labels["part"] in ("table2", "figure8") or labels.get("what", "").startswith("table 2")
        rate = (numbers["reads"] + numbers["writes"]) * (4096 if small else 16384)
        found |= {"reads/s": numbers["reads"], "writes/s": numbers["writes"], "fsyncs/s": numbers["fsyncs"], "2^20 bytes/s": f"{rate / 2**20:.2f}", "MB/s": f"{rate / 1e6:.2f}"}
    else:
        found |= {"transactions/s": numbers["transactions"], "queries/s": numbers["queries"]}
    latency = metrics["all"]["latency_ns"]
    return found | {
        "p95 ms": numbers["p95 latency"],
        "requests of the drive": metrics["requests"]["completed"],
        "turns/request": f"{metrics['direction_switches'] / max(metrics['requests']['completed'], 1):.3f}",
        "mean depth": f"{metrics['mean_queue_depth']:.2f}",
        "mean response ms": f"{latency['mean'] / 1e6:.3f}",
        "deviation ms": f"{latency['deviation'] / 1e6:.3f}",
    }


def rows(directory, part):
    for path in sorted((directory / "runs").glob(f"{part},*.json")):
        words = path.stem.split(",")
        labels = {"part": part} | dict(word.split("=", 1) for word in words[1:] if "=" in word)
        barrier = words[-1] if words[-1] in ("region", "device") else "none"
        for run in json.loads(path.read_text())["runs"]:
            found = row(labels, run)
            if found.get("scheduler") == "planewise-pass":
                found["barrier"] = barrier
            yield found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    directory, part = Path(sys.argv[1]), sys.argv[2]
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(str(found.get(column, "")) for column in COLUMNS) for found in rows(directory, part)]
    (directory / f"{part}.tsv").write_text("\n".join(lines) + "\n")


main()
