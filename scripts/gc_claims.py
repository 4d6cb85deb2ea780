#!/usr/bin/env python3
"""Measures what section 5 of the idle-chip garbage collection paper (ACM TODAES) published, on the 8 look-alike volumes, beside it.

    python3 scripts/gc_claims.py [--planewise PATH] [--requests N] [--volumes a,b] [--figures table,6,21,22,23] > table.md

Each volume runs 3,000,000 requests on an aged gc-128g, as the paper does; the sweeps of figures 21 to 23 take 1,000,000. A ratio
is the mean over the volumes of each volume's own ratio. Table III is not run: crates/sim/tests/table3.rs holds it to closed
forms, which are repeated here. Only the standard library is needed.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

VOLUMES = "hm_0 prn_0 prn_1 proj_0 prxy_0 stg_0 usr_0 wdev_0".split()
SCHEMES = "traditional preemptive dpr idle_chip gc_free".split()
BEYOND = "yielding"
FIGURES = "table 6 21 22 23".split()
BUFFERS = [8, 16, 32, 64, 128, 256, 512, 1024]
BLOCKS_A_GIB = 2048 // 128
SIZES_GIB = [8, 16, 32, 64, 128, 256]
# Chips as channels and chips of each; blocks of a plane grow so that the capacity stays 128 GiB.
CHIPS = {4: (4, 1), 8: (8, 1), 16: (16, 1), 32: (16, 2), 64: (16, 4)}
READ, WRITE, ALL = "read.latency_ns.mean", "write.latency_ns.mean", "all.latency_ns.mean"
DIRECTIONS = {"read": READ, "write": WRITE, "overall": ALL}


class Runner:
    """Runs planewise, a number of processes at a time."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)

    def profile(self, name, **keys):
        """A file with gc-128g, some keys changed."""
        shown = subprocess.run([self.options.planewise, "device", "show", "gc-128g"], capture_output=True, text=True)
        if shown.returncode != 0:
            sys.exit(shown.stderr)
        text = shown.stdout
        for key, value in {"name": f'"{name}"', **keys}.items():
            text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
            if count != 1:
                sys.exit(f"planewise device show gc-128g has {count} lines with the key {key}; expected 1")
        path = self.folder / f"{name}.toml"
        path.write_text(text)
        return str(path)

    def run(self, volume, scheme, requests, *arguments, device="gc-128g"):
        """Metrics of one run."""
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            command = [self.options.planewise, "run", "--trace", f"gc-{volume}", "--gc", scheme, "--device", device]
            command += ["--condition", "aged", "--requests", str(requests), "--jobs", "1"]
            command += ["--json", "--quiet", "--out", f"{out}/run", "--force", *arguments]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout)["runs"][0]["metrics"]

    def all(self, what, jobs):
        """Metrics by key of `{key: (arguments, keywords)}`; the wall time of all of them in seconds."""
        begun = time.monotonic()
        futures = {key: self.pool.submit(self.run, *given, **named) for key, (given, named) in jobs.items()}
        found = {}
        for key, future in futures.items():
            try:
                found[key] = future.result()
            except RuntimeError as error:
                self.pool.shutdown(cancel_futures=True)
                sys.exit(str(error))
        wall = time.monotonic() - begun
        print(f"{what}: {len(jobs)} runs in {wall:.0f} s", file=sys.stderr)
        return found, wall


def get(metrics, path):
    for key in path.split("."):
        metrics = metrics[key]
    return metrics


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else math.nan


def over(value, base):
    """A ratio; none where there is nothing to compare with."""
    return value / base if base else None


def show(value, digits=3):
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def header(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")
    print("|---" * len(cells) + "|")


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def active_seconds(metrics):
    """Time with a request pending: utilization over the window and over that time differ by just this factor."""
    chip = metrics["utilization"]["chip"]
    return metrics["duration_ns"] / 1e9 * over(chip["wall"], chip["active"]) if chip["active"] else None


def bandwidth(metrics, direction):
    """Completed bytes of a direction over the time in which any request is pending."""
    of = metrics["all" if direction == "overall" else direction]
    active = active_seconds(metrics)
    return of["bandwidth_bytes_per_s"] * metrics["duration_ns"] / 1e9 / active if active else None


def rate(metrics, direction):
    """Mean of 1 / latency: the mean over requests of their own bandwidth, if all had one size. From the distribution's points."""
    points = metrics["all" if direction == "overall" else direction]["cdf"]
    total, before = 0.0, 0.0
    for latency, share in points:
        total += (share - before) / max(latency, 1)
        before = share
    return total or None


def conflicts(metrics):
    found = metrics["gc"]["conflicts"]
    return found["reads"] + found["writes"] + found["new"]


def formula_1(pages, chips):
    """Flush time of section 5.2.2 as printed, ms: 50 ns a page from the buffer, a page transferred and programmed by each chip at a time."""
    return (pages * 50 + pages // chips * (40_960 + 600_000)) / 1e6


def published_table(every, figure_6):
    """The rows with one published number and one measured."""
    header("figure", "what", "published", "measured")

    def ratio(figure, what, published, of, scheme="idle_chip", base="traditional"):
        values = [over(of(found[scheme]), of(found[base])) for found in every.values()]
        line(figure, what, show(published), show(mean(values)))

    def plain(figure, what, published, value, digits=3):
        line(figure, what, published, show(value, digits))

    by = lambda path: lambda metrics: get(metrics, path)
    average = lambda path, scheme="traditional": mean([get(found[scheme], path) for found in every.values()])
    if every:
        ratio("1", "read latency, traditional over gc_free", 4.7, by(READ), "traditional", "gc_free")
        ratio("1", "write latency, traditional over gc_free", 2.9, by(WRITE), "traditional", "gc_free")
    for what, found in figure_6.items():
        plain("6", f"share of collections begun while the device is idle, {what}", "0.177", mean([get(m, "gc.idle_share") for m in found]))
        plain("6", f"share of idle chips while a collection runs and requests wait, {what}", "> 0.21", mean([get(m, "gc.idle_chip_share") for m in found]))
    if not every:
        return
    for scheme in ("traditional", "idle_chip"):
        cost = {part: average(f"gc.cost.{part}_ns", scheme) / 1e6 for part in ("read", "transfer", "program", "erase", "total")}
        measured = " / ".join(show(cost[part], 2) for part in ("read", "transfer", "program", "erase"))
        published = "programs most, reads least" if scheme == "traditional" else "much lower"
        line("4" if scheme == "traditional" else "18", f"cost on the collected chip, {scheme}, ms: read / transfer / program / erase", published, measured)
    ratio("18", "cost of a collection on its chip, idle_chip over traditional", math.nan, by("gc.cost.total_ns"))
    plain("13", "host pages written for each collection", "43.5", average("gc.host_pages_per_collection"), 1)
    plain("13", "valid pages moved for each collection", "22.1", average("gc.moved_per_collection"), 1)
    latencies = {
        "14": ("read", {"traditional": 0.595, "preemptive": 0.673, "dpr": 0.854}),
        "15": ("write", {"traditional": 0.784, "preemptive": 0.857, "dpr": 0.796}),
        "16": ("overall", {"traditional": 0.758}),
    }
    for figure, (direction, published) in latencies.items():
        for base, value in published.items():
            ratio(figure, f"{direction} latency, idle_chip over {base}", value, by(DIRECTIONS[direction]), "idle_chip", base)
    ratio("15", "write latency, preemptive over traditional", 0.914, by(WRITE), "preemptive")
    ratio("15", "write latency, dpr over traditional", 1.0, by(WRITE), "dpr")
    ratio("16", "overall latency, preemptive over traditional", 0.910, by(ALL), "preemptive")
    ratio("16", "overall latency, dpr over traditional", 0.946, by(ALL), "dpr")
    for figure, direction, published in (("14b", "read", 0.853), ("15b", "write", 0.963)):
        path = by(f"gc.conflicts.{direction}_latency_ns_mean")
        ratio(figure, f"latency of {direction}s in conflict, preemptive over traditional", published, path, "preemptive")
        for scheme in ("dpr", "idle_chip"):
            ratio(figure, f"latency of {direction}s in conflict, {scheme} over traditional", math.nan, path, scheme)
    plain("17", "share of valid pages through the buffer", "0.486", average("gc.buffered_share", "idle_chip"))
    if "stg_0" in every:
        plain("17", "the same, stg_0", "0.986", get(every["stg_0"]["idle_chip"], "gc.buffered_share"))
    ratio("17", "conflicts, new ones included, idle_chip over traditional", math.nan, conflicts)
    bandwidths = {
        "read": {"traditional": 1.11, "preemptive": 1.09, "dpr": 1.04},
        "write": {"traditional": 1.14, "preemptive": 1.05, "dpr": 1.06},
        "overall": {"traditional": 1.14, "preemptive": 1.07, "dpr": 1.06},
    }
    for direction, published in bandwidths.items():
        for base, value in published.items():
            ratio("19", f"{direction} bandwidth (mean of 1 / latency), idle_chip over {base}", value, lambda m, d=direction: rate(m, d), "idle_chip", base)
    for base, value in bandwidths["overall"].items():
        ratio("19", f"bytes over the time with requests pending, idle_chip over {base}", value, lambda m: bandwidth(m, "overall"), "idle_chip", base)
    mb = mean([bandwidth(found["idle_chip"], "overall") for found in every.values()]) / 1e6
    plain("19", "bytes over the time with requests pending, idle_chip, MB/s", "near 150", mb, 1)
    plain("20", "mean wait of a buffered page, ms", "44", average("gc.buffer.residency_ns_mean", "idle_chip") / 1e6, 2)
    plain("20", "pages in the buffer, mean over time", "–", average("gc.buffer.occupancy_mean", "idle_chip"), 2)
    plain("20", "flush of the fullest buffer by formula (1), ms", "1.84 (mean)", average("gc.buffer.flush_formula_ns", "idle_chip") / 1e6, 2)
    if BEYOND in next(iter(every.values())):
        for direction, path in DIRECTIONS.items():
            ratio("beyond", f"{direction} latency, {BEYOND} over idle_chip", math.nan, by(path), BEYOND, "idle_chip")
            ratio("beyond", f"{direction} latency, {BEYOND} over gc_free", math.nan, by(path), BEYOND, "gc_free")


def volume_tables(every):
    """The same by volume."""
    schemes = [scheme for scheme in [*SCHEMES, BEYOND] if scheme in next(iter(every.values()))]
    for direction, path in DIRECTIONS.items():
        print(f"\nMean {direction} latency by volume: traditional in us, the others over it.\n")
        header("volume", "traditional", *schemes[1:])
        for volume, found in every.items():
            base = get(found["traditional"], path)
            line(volume, f"{base / 1e3:.0f}", *(show(over(get(found[s], path), base)) for s in schemes[1:]))
        line("mean", "", *(show(mean([over(get(f[s], path), get(f["traditional"], path)) for f in every.values()])) for s in schemes[1:]))
    print("\nCollections by volume (traditional; what the buffer does: idle_chip).\n")
    header("volume", "collections", "pages written each", "moved each", "write amplification", "begun idle", "idle chips",
           "requests in conflict", "buffered", "conflicts over traditional", "wait in buffer ms", "most in buffer")
    for volume, found in every.items():
        gc, buffered = found["traditional"]["gc"], found["idle_chip"]["gc"]
        line(volume, gc["collections"], show(gc["host_pages_per_collection"], 1), show(gc["moved_per_collection"], 1),
             show(gc["write_amplification"], 2), show(gc["idle_share"]), show(gc["idle_chip_share"]), show(gc["conflicts"]["share"]),
             show(buffered["buffered_share"]), show(over(conflicts(found["idle_chip"]), conflicts(found["traditional"]))),
             show(buffered["buffer"]["residency_ns_mean"] / 1e6, 2), buffered["buffer"]["occupancy_max"])
    parts = ["read", "transfer", "program", "erase", "total", "elsewhere", "span"]
    for scheme in ("traditional", "idle_chip"):
        print(f"\nCost of a collection by volume, {scheme}, ms: parts on its chip, their sum, work on other chips, and from begin to end.\n")
        header("volume", *parts)
        for volume, found in every.items():
            line(volume, *(show(found[scheme]["gc"]["cost"][f"{part}_ns"] / 1e6, 2) for part in parts))


def table_3():
    """Closed forms of Table I beside Table III, MB/s; crates/sim/tests/table3.rs holds the simulator to them to the nanosecond."""
    pages = lambda count, microseconds: count * 4096 / microseconds
    write, read = 40.96 + 600, 40.96 + 30
    print("\nTable III (MB/s), and what Table I gives on 64 chips with dynamic allocation. Chip level; no depth gives the reads.\n")
    header("pattern", "published", "depth 1", "depth 2", "depth 16", "depth 64")
    line("sequential write 64 KB", 192.5, *(show(pages(min(16 * depth, 64), write), 1) for depth in (1, 2, 16, 64)))
    line("sequential read 64 KB", 202.5, show(pages(16, read), 1), *(show(pages(16, 40.96), 1) for _ in range(3)))
    line("random write 4 KB", 102.8, *(show(pages(depth, write), 1) for depth in (1, 2, 16, 64)))
    line("random read 4 KB", 92.1, show(pages(1, read), 1), *(f"< {min(pages(depth, read), pages(16, 40.96)):.1f}" for depth in (2, 16, 64)))
    print("\nFormula (1) by pages in the buffer, ms (published: 1.84 on average):\n")
    header("chips", *(f"{count} pages" for count in (16, 32, 48, 63, 64, 96, 128)))
    for chips in (16, 32, 64):
        line(chips, *(show(formula_1(count, chips), 2) for count in (16, 32, 48, 63, 64, 96, 128)))


def figure_21(runner, volumes, requests):
    jobs = {(v, "traditional"): ((v, "traditional", requests), {}) for v in volumes}
    jobs |= {(v, n): ((v, "idle_chip", requests, "--buffer-pages", str(n)), {}) for v in volumes for n in BUFFERS}
    found, _ = runner.all("figure 21", jobs)
    print(f"\nFigure 21: pages of the buffer, {requests} requests. Mean over volumes; latencies over those with 8 pages (32 KB).\n")
    print("Published: steep from 32 to 512 KB; from 512 to 4096 KB 11.1 % (reads) and 10.3 % (writes) less.\n")
    header("pages", "KB", "read over 8 pages", "write over 8 pages", "read over traditional", "write over traditional", "buffered")
    latency = lambda v, key, path: get(found[v, key], path)
    ratio = lambda n, path, base: show(mean([over(latency(v, n, path), latency(v, base, path)) for v in volumes]))
    for n in BUFFERS:
        buffered = mean([get(found[v, n], "gc.buffered_share") for v in volumes])
        line(n, 4 * n, ratio(n, READ, 8), ratio(n, WRITE, 8), ratio(n, READ, "traditional"), ratio(n, WRITE, "traditional"), show(buffered))
    last = [mean([over(latency(v, 1024, path), latency(v, 128, path)) for v in volumes]) for path in (READ, WRITE)]
    print(f"\nFrom 512 to 4096 KB: reads {1 - last[0]:.1%} less, writes {1 - last[1]:.1%} less.")


def figure_22(runner, requests):
    devices = {size: runner.profile(f"gc-{size}g-figure-22", blocks_per_plane=size * BLOCKS_A_GIB) for size in SIZES_GIB}
    jobs = {(size, scheme): (("wdev_0", scheme, requests, "--wrap"), {"device": device})
            for size, device in devices.items() for scheme in ("traditional", "idle_chip")}
    found, _ = runner.all("figure 22", jobs)
    print(f"\nFigure 22: size of the device by blocks of a plane, wdev_0, addresses folded, {requests} requests.\n")
    print("Published: idle_chip at or below traditional everywhere, about equal at 256 GB.\n")
    header("GiB", "read us, traditional", "read us, idle_chip", "ratio", "write us, traditional", "write us, idle_chip", "ratio", "collections")
    for size in SIZES_GIB:
        cells = []
        for path in (READ, WRITE):
            old, new = (get(found[size, scheme], path) for scheme in ("traditional", "idle_chip"))
            cells += [f"{old / 1e3:.0f}", f"{new / 1e3:.0f}", show(over(new, old))]
        line(size, *cells, found[size, "traditional"]["gc"]["collections"])


def with_chips(runner, chips, label):
    channels, each = CHIPS[chips]
    return runner.profile(label, channels=channels, chips_per_channel=each, blocks_per_plane=2048 * 64 // chips)


def figure_23(runner, volumes, requests):
    devices = {chips: with_chips(runner, chips, f"gc-{chips}-chips-figure-23") for chips in CHIPS}
    jobs = {(chips, v, scheme): ((v, scheme, requests), {"device": device})
            for chips, device in devices.items() for v in volumes for scheme in ("traditional", "idle_chip")}
    found, _ = runner.all("figure 23", jobs)
    print(f"\nFigure 23: latency of idle_chip over traditional by number of chips (capacity unchanged), {requests} requests.\n")
    print("Published: below 1 everywhere, prn_1 excepted.\n")
    header("chips", *(f"{v} r / w" for v in volumes), "mean r / w")
    for chips in CHIPS:
        ratio = lambda v, path: over(get(found[chips, v, "idle_chip"], path), get(found[chips, v, "traditional"], path))
        pairs = [[ratio(v, path) for v in volumes] for path in (READ, WRITE)]
        line(chips, *(f"{show(r, 2)} / {show(w, 2)}" for r, w in zip(*pairs)), " / ".join(show(mean(side), 2) for side in pairs))


def chosen(text, known, what):
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        sys.exit(f"{what}: found {', '.join(unknown) or 'nothing'}; allowed: {', '.join(known)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planewise", default="target/release/planewise")
    parser.add_argument("--requests", type=int, default=3_000_000, help="of the table and figure 6")
    parser.add_argument("--sweep-requests", type=int, default=1_000_000, help="of figures 21, 22 and 23")
    parser.add_argument("--volumes", default=",".join(VOLUMES))
    parser.add_argument("--figures", default=",".join(FIGURES), help="table (all that the eight runs tell), 6, 21, 22, 23")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    options = parser.parse_args()
    volumes = chosen(options.volumes, VOLUMES, "--volumes")
    figures = chosen(options.figures, FIGURES, "--figures")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, folder)
        every, figure_6 = {}, {}
        if "table" in figures:
            job = lambda v, scheme: ((v, scheme, options.requests), {})
            found, wall = runner.all("five schemes", {(v, s): job(v, s) for v in volumes for s in SCHEMES})
            more, _ = runner.all(BEYOND, {(v, BEYOND): job(v, BEYOND) for v in volumes})
            found |= more
            every = {v: {s: found[v, s] for s in [*SCHEMES, BEYOND]} for v in volumes}
            figure_6["64 chips"] = [every[v]["traditional"] for v in volumes]
            print(f"{len(volumes)} volumes, 5 schemes, {options.requests} requests each: {wall:.0f} s.\n")
        if "6" in figures:
            device = with_chips(runner, 16, "gc-16-chips-figure-6")
            found, _ = runner.all("figure 6", {v: ((v, "traditional", options.requests), {"device": device}) for v in volumes})
            figure_6 = {"16 channels x 1 chip": list(found.values()), **figure_6}
        published_table(every, figure_6)
        table_3()
        if every:
            volume_tables(every)
        if "21" in figures:
            figure_21(runner, volumes, options.sweep_requests)
        if "22" in figures:
            figure_22(runner, options.sweep_requests)
        if "23" in figures:
            figure_23(runner, volumes, options.sweep_requests)


if __name__ == "__main__":
    main()
