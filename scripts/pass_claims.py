#!/usr/bin/env python3
"""Measures what the PASS paper (J. Zhejiang Univ. Sci. C 2014) published, beside the published numbers, as Markdown tables.

    python3 scripts/pass_claims.py [--planewise PATH] [--only claims,erases,causes] > tables.md

Only the standard library is needed. `claims` are the paper's (all but 4.5), `erases` those of section 4.5 and `causes` the experiments that
change one thing alone. Two runs go on at a time. The verdicts are
computed: "holds" within 10 % of the published number (10 points of a ratio below 1) and on its side of 1; "holds in direction" with a
tenth of the published effect or more on that side; otherwise "does not hold".
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROFILES = Path(__file__).resolve().parent.parent / "profiles"
LINUX = ["noop", "cfq", "deadline", "anticipatory"]
FIVE = [*LINUX, "pass"]
# Elevator merging and queues of 128 requests, those that somebody waits for apart, are what Linux 2.6.32 has.
ELEVATOR = ["--merging", "full", "--queue", "128", "--request-pools", "two"]
HIGH_END = ["--tunable", "pass.region_size=16g"]
# 87 % valid: as full as the drive gets; 5 % free: collection begins with the first writes.
FULL = ["--wrap", "--condition", "aged:87/8/5"]

HOLDS, DIRECTION, FAILS = "holds", "holds in direction", "does not hold"


class Planewise:
    """The program, and a directory for what it writes."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = Path(directory)

    def runs(self, command, *arguments):
        call = [self.program, command, "--json", "--quiet", "--force", "--out", str(self.directory / "run"), *arguments]
        if command != "run":
            call += ["--jobs", "2"]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(call)}\n{done.stderr}")
        return json.loads(done.stdout)["runs"]

    def bench(self, target, *arguments, schedulers=("noop",)):
        return self.runs("bench", "--target", f"sim:{target}", "--schedulers", ",".join(schedulers), *arguments)

    def throughput(self, target, *arguments, schedulers=("noop",), key="threads"):
        """MB/s by the varied option `key` (None when it was not) and scheduler."""
        found = {}
        for run in self.bench(target, *arguments, schedulers=schedulers):
            value = (run["labels"].get("workload") or {}).get(key)
            found.setdefault(value, {})[run["labels"]["scheduler"]] = rate(run)
        return found

    def variant(self, name, base="ssd1", without=None, **changes):
        """A copy of a profile without a section, or with other values: each key must be there exactly once."""
        text = (PROFILES / f"{base}.toml").read_text()
        if without:
            text = re.sub(rf"^\[{without}\]\n(?:[^\[].*\n|\n)*", "", text, flags=re.MULTILINE)
        for key, value in changes.items():
            text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
            if count != 1:
                sys.exit(f"profile {base}: {key} is there {count} times")
        path = self.directory / f"{name}.toml"
        path.write_text(text)
        return str(path)


def rate(run):
    return run["metrics"]["all"]["bandwidth_bytes_per_s"] / 1e6


def verdict(published, measured, neutral=1.0):
    """Of a number that differs from `neutral` in a direction; None: an absolute number without one."""
    near = abs(measured - published) <= 0.1 * max(1.0, abs(published))
    if neutral is None:
        return HOLDS if near else FAILS
    effect = (measured - neutral) / (published - neutral)
    if near and effect >= 0.1:
        return HOLDS
    return DIRECTION if effect >= 0.1 else FAILS


def whether(holds):
    return HOLDS if holds else FAILS


def over_best(by_scheduler):
    return by_scheduler["pass"] / max(by_scheduler[name] for name in LINUX)


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")



def mean(values):
    return sum(values) / len(values)


class Claims:
    """Rows of the table of claims."""

    def __init__(self):
        self.rows = []

    def ratio(self, claim, what, published, measured):
        self.rows.append((claim, what, f"{published:.3g}", f"{measured:.3f}", verdict(published, measured)))

    def number(self, claim, what, published, measured, unit=""):
        self.rows.append((claim, what, f"{published}{unit}", f"{measured:.2f}{unit}", verdict(published, measured, None)))

    def fact(self, claim, what, published, measured, holds):
        self.rows.append((claim, what, published, measured, whether(holds)))


# ------------------------------------------------------------------------------------------------ section 2.2

def steady(*varied):
    """The benchmark's defaults, but for what is varied."""
    options = {"time_based": "1", "ramp_time": "1", "runtime": "2", "size": "30g", "bs": "4k", "iodepth": "8"}
    return [word for name, value in options.items() if name not in varied for word in (f"--{name}", value)]


def patterns(planewise, claims):
    found = {}
    for run in planewise.bench("ssd1", *steady("bs"), "--vary", "rw=read,randread,write,randwrite;bs=4k,16k,64k"):
        labels = run["labels"]["workload"]
        found[labels["rw"], labels["bs"]] = rate(run)
    claims.ratio("fig. 1", "16 KB, sequential read over random read", 4.7, found["read", "16k"] / found["randread", "16k"])
    claims.ratio("fig. 1", "16 KB, sequential write over random write", 3.5, found["write", "16k"] / found["randwrite", "16k"])
    faster = all(found[d, size] > found[f"rand{d}", size] for d in ("read", "write") for size in ("4k", "16k", "64k"))
    claims.fact("fig. 1", "sequential faster than random at 4, 16, 64 KB", "yes", "yes" if faster else "no", faster)


def working_sets(planewise, claims):
    found = {}
    varied = "size=1g,2g,4g,8g,16g,32g;iodepth=1,2,4,8,16,32"
    for run in planewise.bench("ssd1", *steady("size", "iodepth"), "--rw", "randread", "--vary", varied):
        labels = run["labels"]["workload"]
        found.setdefault(labels["size"], {})[int(labels["iodepth"])] = rate(run)
    flat = max(max(found[size].values()) / min(found[size].values()) for size in ("1g", "2g"))
    claims.fact("fig. 2", "1 and 2 GB: most over least MB/s of all depths", "nearly 1", f"{flat:.2f}", flat < 1.2)
    for size, depth in (("4g", 8), ("8g", 16)):
        best = max(found[size], key=found[size].get)
        claims.fact("fig. 2", f"{size[:-1]} GB: best at depth", str(depth), str(best), best == depth)
        falls = found[size][32] / found[size][best]
        claims.fact("fig. 2", f"{size[:-1]} GB: depth 32 over the best", "< 1", f"{falls:.2f}", falls < 1)
    claims.number("fig. 2", "16 GB at depth 16", 25.85, found["16g"][16], " MB/s")
    claims.number("fig. 2", "32 GB at depth 16", 27.78, found["32g"][16], " MB/s")


def mixed_with(planewise, target):
    def mixed(reads, random):
        (run,) = planewise.bench(target, *steady(), "--rw", "randrw", "--rwmixread", str(reads), "--percentage_random", random)
        return rate(run)

    return mixed


def interference(planewise, claims):
    mixed = mixed_with(planewise, "ssd1")
    read, write = mixed(100, "0,0"), mixed(0, "0,0")
    claims.ratio("fig. 3", "sequential reads with 10 % random writes, over reads alone", 0.38, mixed(90, "0,100") / read)
    claims.ratio("fig. 3", "sequential writes with 10 % random reads, over writes alone", 0.34, mixed(10, "100,0") / write)
    claims.ratio("fig. 3", "sequential reads with 10 % sequential writes, over reads alone", 0.39, mixed(90, "0,0") / read)


def example(claims):
    claims.rows.append(("fig. 6", "two regions, requests R1..R4 then Q1..Q4: PASS done first", "yes", "`figure_6_…` in `crates/sim/tests/pass.rs`", "a test"))


# ------------------------------------------------------------------------------------------------ sections 4.1 to 4.4


def file_benchmark(planewise, claims):
    published = {"noop": 12.01, "cfq": 11.71, "deadline": 12.12, "anticipatory": 11.84, "pass": 14.07}
    rows, found = [], {}
    for run in planewise.bench("ssd1", "file-benchmark", *ELEVATOR, schedulers=[*FIVE, "fios"]):
        name, metrics = run["labels"]["scheduler"], run["metrics"]
        # Published throughput over published IOPS is 4096 for 2^20 bytes to the MB.
        found[name] = metrics["all"]["bandwidth_bytes_per_s"] / 2**20
        latency = metrics["all"]["latency_ns"]
        switches = metrics["direction_switches"] / metrics["requests"]["completed"]
        rows.append((name, published.get(name, "–"), f"{found[name]:.2f}", f"{metrics['all']['iops']:.0f}", f"{metrics['mean_queue_depth']:.2f}",
                     f"{latency['mean'] / 1e6:.3f}", f"{latency['deviation'] / 1e6:.3f}", f"{switches:.2f}"))
    for name in FIVE:
        claims.number("table 2", f"{name}, 2^20 bytes/s", published[name], found[name])
    claims.ratio("table 2", "PASS over the best other", 14.07 / 12.12, over_best(found))
    return rows


def six_drives(planewise, claims):
    gains = {}
    for drive in range(1, 7):
        # 40 GB do not fit on the drives of 32 GB.
        size = [] if drive % 2 else ["--set", "file_size=7g"]
        (found,) = planewise.throughput(f"ssd{drive}", "file-benchmark", *size, *ELEVATOR, schedulers=FIVE).values()
        gains[f"ssd{drive}"] = over_best(found)
    claims.ratio("fig. 8", "PASS over the best other, mean of ssd1 to ssd6", 1.25, mean(gains.values()))
    claims.fact("fig. 8", "drives on which PASS is better by 1 % or more", "6", str(sum(g >= 1.01 for g in gains.values())),
                all(g >= 1.01 for g in gains.values()))


def sysbench_file(planewise, claims):
    begin = time.monotonic()
    found = planewise.throughput("ssd1", "sysbench-file", "--vary", "threads=1,2,4,8,16,32,64", *ELEVATOR, schedulers=FIVE)
    wall = time.monotonic() - begin
    few = max(abs(over_best(found[n]) - 1) for n in ("1", "2"))
    claims.fact("fig. 9", "1 and 2 threads: PASS off the best other by", "little", f"{few:.3f}", few < 0.05)
    for threads, published in (("16", 1.366), ("32", 1.416)):
        claims.ratio("fig. 9", f"{threads} threads: PASS over the best other", published, over_best(found[threads]))
    claims.rows.append(("fig. 9", "64 threads: PASS over the best other", "–", f"{over_best(found['64']):.3f}", "–"))
    for threads in ("16", "32", "64"):
        claims.rows.append(("fig. 9", f"{threads} threads: PASS over NOOP", "–", f"{found[threads]['pass'] / found[threads]['noop']:.3f}", "–"))
    best = sum(max(LINUX, key=by.get) == "noop" for by in found.values())
    claims.fact("fig. 9", "NOOP the best of the other four", "most of the time", f"{best} of {len(found)}", 2 * best > len(found))
    worst = sum(min(FIVE, key=by.get) == "cfq" for by in found.values())
    claims.fact("fig. 9", "CFQ the worst", "with several threads", f"{worst} of {len(found)}", worst >= 5)
    claims.fact("–", "five schedulers x seven thread counts, wall time", "< 120 s", f"{wall:.1f} s", wall < 120)
    return [(threads, *(f"{value:.1f}" for value in by.values())) for threads, by in found.items()]


def oltp(planewise, claims):
    rows = []
    for mode in ("simple", "complex"):
        found = planewise.throughput("ssd1", f"sysbench-oltp-{mode}", "--vary", "threads=1,4,16,32,64", *ELEVATOR, schedulers=FIVE)
        gain = over_best(found["64"])
        claims.fact("fig. 10", f"{mode}, 64 threads: PASS over the best other", "> 1", f"{gain:.3f}", gain > 1.01)
        rows += [(mode, threads, *(f"{value:.1f}" for value in by.values())) for threads, by in found.items()]
        if mode == "complex":
            worst = sum(min(FIVE, key=by.get) == "anticipatory" for by in found.values())
            claims.fact("fig. 10", "complex: anticipatory the worst", "yes", f"{worst} of {len(found)} thread counts", 2 * worst > len(found))
    return rows


def high_end(planewise, claims):
    for what, published, jobs in (
        ("multithreaded file", 1.52, [("file-benchmark", "4,16,64")]),
        ("sysbench file", 1.47, [("sysbench-file", "16,32,64")]),
        ("OLTP", 1.45, [("sysbench-oltp-simple", "16,64"), ("sysbench-oltp-complex", "16,64")]),
    ):
        gains, worst = [], []
        for drive in ("ssd-b", "ssd-c"):
            for workload, threads in jobs:
                # 64 files of 10 GB do not fit.
                smaller = ["--set", "file_size=5g;requests=2000"] if workload == "file-benchmark" else []
                found = planewise.throughput(drive, workload, "--vary", f"threads={threads}", *smaller, *ELEVATOR, *HIGH_END, schedulers=FIVE)
                gains += [over_best(by) for by in found.values()]
                if workload == "sysbench-oltp-complex":
                    worst += [min(FIVE, key=by.get) == "anticipatory" for by in found.values()]
        claims.ratio("sec. 4.4", f"{what}: PASS over the best other at most, two drives", published, max(gains))
    # The last of the loop is OLTP.
    claims.fact("fig. 10", "complex, on ssd-b and ssd-c with 16 and 64 threads: anticipatory the worst", "yes", f"{sum(worst)} of {len(worst)}", 2 * sum(worst) > len(worst))


def measure_claims(planewise):
    claims = Claims()
    patterns(planewise, claims)
    working_sets(planewise, claims)
    interference(planewise, claims)
    example(claims)
    benchmark = file_benchmark(planewise, claims)
    six_drives(planewise, claims)
    sweep = sysbench_file(planewise, claims)
    database = oltp(planewise, claims)
    high_end(planewise, claims)
    table(("figure", "what", "published", "measured", "verdict"), claims.rows)
    print("\nTable 2, file benchmark on ssd1.")
    table(("scheduler", "published MB/s", "2^20 bytes/s", "IOPS", "pending, mean", "response, ms", "deviation, ms", "changes of direction a request"), benchmark)
    print("\nFigure 9, MB/s by threads.")
    table(("threads", *FIVE), sweep)
    print("\nFigure 10, MB/s by threads.")
    table(("mode", "threads", *FIVE), database)


# ------------------------------------------------------------------------------------------------ section 4.5


def coarse(planewise):
    """pass-60g mapping 32 KiB instead of 4: a request that merging made may fill a page that its parts do not."""
    return planewise.variant("coarse", "pass-60g", page_bytes=32768, blocks_per_plane=256)


def record(planewise, workload, *options):
    """The block traces of the five schedulers' runs, as issued."""
    path = planewise.directory / f"{workload}.parquet"
    planewise.bench("ssd1", workload, *options, *ELEVATOR, "--record", str(path), schedulers=FIVE)
    return {name: str(path.with_name(f"{path.stem}-scheduler-{name}.parquet")) for name in FIVE}


def replay(planewise, trace, device, *options):
    (run,) = planewise.runs("run", "--trace", trace, "--device", device, *FULL, *options)
    metrics = run["metrics"]
    pages = metrics["write"]["bandwidth_bytes_per_s"] * metrics["duration_ns"] / 1e9 / 4096
    return metrics["gc"]["erases"], metrics["gc"]["write_amplification"], metrics["requests"]["writes"], pages


def measure_erases(planewise):
    claims = Claims()
    over = {"noop": 0.65, "deadline": 0.58, "cfq": 0.58, "anticipatory": 0.55}
    amplification = {
        "sysbench-file": {"deadline": 2.51, "cfq": 3.12, "anticipatory": 2.78, "pass": 1.37},
        "sysbench-oltp-complex": {"deadline": 2.34, "cfq": 3.21, "anticipatory": 2.96, "pass": 1.52},
    }
    rows = []
    for workload, options in (("sysbench-file", ["--set", "threads=64;max_requests=100000"]), ("sysbench-oltp-complex", ["--set", "threads=64"])):
        traces = record(planewise, workload, *options)
        for allocation in ("cwdp", "dynamic", "concatenated", "cwdp, 32 KiB"):
            device = coarse(planewise) if "KiB" in allocation else "pass-60g"
            found = {name: replay(planewise, trace, device, "--allocation", allocation.split(",")[0]) for name, trace in traces.items()}
            for name, (erases, wa, writes, pages) in found.items():
                rows.append((workload, allocation, name, writes, f"{pages:.0f}", erases, f"{erases / found['noop'][0]:.3f}", f"{wa:.3f}",
                             f"{wa / found['noop'][1]:.3f}", f"{1000 * erases / pages:.2f}"))
            if allocation not in ("cwdp", "concatenated"):
                continue
            where = "page-mapped" if allocation == "cwdp" else "pages stay in their package"
            if workload == "sysbench-oltp-complex":
                for name, published in over.items():
                    claims.ratio("fig. 11", f"complex, {where}: erases of PASS over {name}", published, found["pass"][0] / found[name][0])
            for name, published in amplification[workload].items():
                claims.ratio("table 3", f"{workload}, {where}: write amplification of {name} over NOOP", published, found[name][1] / found["noop"][1])
    table(("figure", "what", "published", "measured", "verdict"), claims.rows)
    print("\nErases and write amplification (WA) of the recorded traces.")
    table(("trace of", "allocation", "scheduler", "writes", "4 KiB pages", "erases", "over NOOP", "WA", "over NOOP", "erases a 1000 pages"), rows)


# ------------------------------------------------------------------------------------------------ causes


def measure_causes(planewise):
    three = ("noop", "deadline", "pass")

    def cells(found, key):
        by = found[key]
        return [*(f"{by[name]:.1f}" for name in three), f"{by['pass'] / by['noop']:.3f}", f"{by['pass'] / max(by['noop'], by['deadline']):.3f}"]

    gains = ("PASS over NOOP", "over the better")
    # What decides whether sysbench's next request reads or writes.
    orders = ("completed", "issued")
    rows = []
    jobs = [("file-benchmark", "–", 4, (1, 2, 32)), *(("sysbench-file", order, n, (1, 4, 8, 16, 32)) for order in orders for n in (16, 32, 64))]
    for workload, order, threads, depths in jobs:
        counts = f";ratio_counts={order}" if order in orders else ""
        for depth in depths:
            found = planewise.throughput("ssd1", workload, "--set", f"threads={threads}{counts}", "--command-queue", f"ncq:{depth}", *ELEVATOR, schedulers=three)
            rows.append((workload, order, threads, depth, *cells(found, None)))
    print("\nThe device's command queue (MB/s).")
    table(("workload", "counts", "threads", "commands", *three, *gains), rows)

    rows = []
    variants = {
        "all as they are": {},
        "no turns": {"turn_ns": 0},
        "no look at the list": {"scan_ns": 0},
        "no map updates": {"update_ns": 0},
        "no processor time for an operation": {"operation_ns": 0},
        "32 operations at a time in a region": {"operations": 32},
        "no processor": {"without": "processor"},
        "no write buffer": {"without": "write_buffer"},
    }
    for what, changes in variants.items():
        target = planewise.variant("variant", **changes)
        for order in orders:
            for threads, depth in ((32, 8), (64, 32)):
                found = planewise.throughput(target, "sysbench-file", "--set", f"threads={threads};ratio_counts={order}", "--command-queue", f"ncq:{depth}", *ELEVATOR, schedulers=three)
                rows.append((what, order, f"{threads} / {depth}", *cells(found, None)))
    for what, changes in (("ssd-b, all as it is", {}), ("ssd-b, no turns", {"turn_ns": 0}), ("ssd-b, a link of 10 GB/s", {"mb_per_s": 10_000})):
        target = planewise.variant("variant", "ssd-b", **changes)
        for order in orders:
            found = planewise.throughput(target, "sysbench-file", "--set", f"threads=64;ratio_counts={order}", *ELEVATOR, *HIGH_END, schedulers=three)
            rows.append((what, order, "64 / 32", *cells(found, None)))
    print("\nOne part at a time, of ssd1 if nothing else is said (sysbench-file, MB/s).")
    table(("part", "counts", "threads / commands", *three, *gains), rows)

    rows = []
    for what, target in (("as it is", "ssd1"), ("a write of part of a page reads nothing", planewise.variant("variant", read_modify_write="false"))):
        mixed = mixed_with(planewise, target)
        rows.append((what, f"{mixed(90, '0,100') / mixed(100, '0,0'):.3f}"))
    print("\nFigure 3, sequential reads with 10 % random writes.")
    table(("ssd1", "over reads alone"), rows)

    flood = planewise.directory / "flood.toml"
    flood.write_text("""
        global = { bs = "16k" }
        job.readers = { rw = "randread", numjobs = 16, number_ios = 375 }
        job.flusher = { rw = "randwrite", iodepth = 128, direct = 0, number_ios = 4000 }
    """)
    rows = []
    for area in ("10g", "20g", "100%"):
        for batch in (2, 16):
            found = planewise.throughput("ssd1", str(flood), "--set", f"size={area}", "--merging", "full", "--queue", "512", "--tunable", f"pass.batch={batch}", schedulers=FIVE)[None]
            rows.append((area, batch, *(f"{found[name]:.1f}" for name in FIVE), f"{over_best(found):.3f}"))
    print("\n16 synchronous readers beside 128 asynchronous writes in flight (MB/s until all is done).")
    table(("area", "batch", *FIVE, "PASS over the best"), rows)

    rows = []
    for tunable, values in (("batch", (1, 2, 4, 16, 64)), ("region_size", ("1g", "2g", "4g", "8g", "16g", "32g"))):
        for value in values:
            found = [planewise.throughput("ssd1", "sysbench-file", "--set", f"threads={threads}", "--command-queue", f"ncq:{depth}", *ELEVATOR,
                                          "--tunable", f"pass.{tunable}={value}", schedulers=["pass"])[None]["pass"] for threads, depth in ((32, 8), (64, 32))]
            rows.append((f"{tunable} = {value}", *(f"{value:.1f}" for value in found)))
    print("\nPASS's tunables (sysbench-file, MB/s).")
    table(("tunable", "32 threads, 8 commands", "64 threads, 32 commands"), rows)

    rows = []
    for name, tunables in (("cfq", ("slice_idle=8", "slice_idle=0")), ("anticipatory", ("antic_expire=6", "antic_expire=0"))):
        for tunable in tunables:
            options = ["--tunable", f"{name}.{tunable}", *ELEVATOR]
            file = planewise.throughput("ssd1", "file-benchmark", *options, schedulers=[name])[None][name]
            random = planewise.throughput("ssd1", "sysbench-file", *options, schedulers=[name])[None][name]
            rows.append((name, tunable, f"{file:.2f}", f"{random:.1f}"))
    print("\nWhat waiting costs (MB/s).")
    table(("scheduler", "tunable", "file-benchmark", "sysbench-file, 16 threads"), rows)

    rows = []
    requests = {"simple": 30_000, "complex": 3_000}
    for mode, distribution, batch, operations, turn in (
        ("simple", "special", 16, 1, 170), ("simple", "special", 16, 32, 170), ("simple", "uniform", 16, 1, 170), ("simple", "uniform", 1, 1, 170),
        ("complex", "special", 16, 1, 170), ("complex", "special", 16, 32, 170), ("complex", "uniform", 16, 1, 170), ("complex", "uniform", 1, 1, 170),
        ("complex", "uniform", 1, 1, 0),
    ):
        target = planewise.variant("variant", operations=operations, turn_ns=1000 * turn)
        runs = planewise.bench(target, f"sysbench-oltp-{mode}", "--set", f"threads=64;dist_type={distribution};max_requests={requests[mode]}", *ELEVATOR,
                               "--tunable", f"pass.batch={batch}", "--command-queue", "ncq:8", schedulers=three)
        by = {run["labels"]["scheduler"]: run for run in runs}
        turns = " / ".join(str(by[name]["metrics"]["direction_switches"]) for name in ("noop", "pass"))
        rows.append((mode, distribution, batch, operations, turn, *cells({None: {name: rate(run) for name, run in by.items()}}, None)[:-1], turns))
    print("\nOLTP, 64 threads, 8 commands (MB/s).")
    table(("mode", "rows drawn", "batch", "operations in a region", "turn us", *three, "PASS over NOOP", "turns, noop / pass"), rows)

    rows = []
    jobs = ["--rw", "randrw", "--bs", "4k", "--number_ios", "20000", "--queue", "512", "--merging", "full"]
    # Processor and turn in us, area, % reads, requests in flight, batch: what comes first is ssd1's.
    for processor, turn, area, reads, depth, batch in (
        (135, 170, "100%", 50, 64, 16), (135, 170, "100%", 80, 256, 16), (135, 170, "20g", 80, 256, 16),
        (25, 170, "100%", 80, 32, 2), (25, 170, "100%", 80, 64, 16), (25, 170, "100%", 80, 256, 2), (25, 170, "100%", 80, 256, 16),
        (25, 170, "20g", 80, 256, 2), (25, 170, "100%", 50, 256, 2), (25, 0, "100%", 80, 256, 2), (25, 0, "100%", 80, 256, 16),
    ):
        target = planewise.variant("variant", operation_ns=1000 * processor, update_ns=80_000 * processor // 135, turn_ns=1000 * turn)
        found = planewise.throughput(target, *jobs, "--size", area, "--rwmixread", str(reads), "--iodepth", str(depth), "--tunable", f"pass.batch={batch}",
                                     schedulers=FIVE)[None]
        rows.append((processor, turn, area, reads, depth, batch, *(f"{found[name]:.1f}" for name in FIVE), f"{over_best(found):.3f}"))
    print("\nWhere a lead would come from: 4 KB requests, 32 commands (MB/s).")
    table(("processor us", "turn us", "area", "% reads", "requests in flight", "batch", *FIVE, "PASS over the best"), rows)


PARTS = {"claims": measure_claims, "erases": measure_erases, "causes": measure_causes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planewise", default="target/release/planewise")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    options = parser.parse_args()
    unknown = [part for part in options.only.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"--only: found {', '.join(unknown)}; allowed: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as directory:
        planewise = Planewise(options.planewise, directory)
        for part in options.only.split(","):
            begin = time.monotonic()
            PARTS[part](planewise)
            print(f"{part}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
