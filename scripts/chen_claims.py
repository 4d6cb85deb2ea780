#!/usr/bin/env python3
"""Measures what Chen, Hou and Lee (ACM TOS 2016, "internal parallelism") published, beside the published numbers, as Markdown tables.

    python3 scripts/chen_claims.py [--planewise PATH] [--only claims,causes] > tables.md

Only the standard library is needed. `claims` are the paper's that need neither a database nor a RAID, on the profiles ssd-s, ssd-m and
tlc-nvme-1t-pages; `causes` the experiments that change one thing alone. Verdicts are those of pass_claims.py: "holds" within 10 % of the
published number (10 points of a ratio below 1) and on its side of 1; "holds in direction" with a tenth of the published effect or more on
that side; otherwise "does not hold".
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pass_claims import PROFILES, Claims, Planewise, rate, table

STEADY = ["--time_based", "1", "--ramp_time", "0.2", "--runtime", "1", "--size", "1g"]
# Program 1 of the paper: pages of 4 KiB, an area that the device was filled with in order.
PAGE = 4096


def profile(target):
    named = PROFILES / f"{target}.toml"
    return str(named) if named.exists() else target


def label(run, key):
    return run["labels"]["workload"][key]


def mean_us(run, direction="read"):
    return run["metrics"][direction]["latency_ns"]["mean"] / 1e3


def direction_rate(run, direction):
    return run["metrics"][direction]["bandwidth_bytes_per_s"] / 1e6


class Bench(Planewise):
    """The program, with the paper's workloads. Targets are profiles of this tree by name, or files."""

    def bench(self, target, *arguments, **options):
        return super().bench(profile(target), *arguments, **options)

    def steady(self, target, pattern, size, depth):
        """MB/s of a pattern with a number of requests in flight."""
        (run,) = self.bench(target, *STEADY, "--rw", pattern, "--bs", size, "--iodepth", str(depth))
        return rate(run)

    def grid(self, target, patterns, sizes, depths):
        """MB/s by pattern, size and depth."""
        varied = f"rw={patterns};bs={sizes};iodepth={depths}"
        runs = self.bench(target, *STEADY, "--vary", varied)
        return {(label(run, "rw"), label(run, "bs"), int(label(run, "iodepth"))): rate(run) for run in runs}

    def experiment(self, name, target, options="time=1"):
        return self.runs("bench", "--experiment", name, "--target", f"sim:{profile(target)}", "--set", options)

    def probe(self, target):
        """What the short probe says: chunk in bytes, domains, sub-domains, mapping; None for what it leaves undetermined."""
        call = [self.program, "probe", f"sim:{profile(target)}", "--quick", "--json", "--quiet", "--force", "--out", str(self.directory / "probe")]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(call)}\n{done.stderr}")
        found = json.loads(done.stdout)["findings"]
        domains = found["domains"]
        return [finding["value"] for finding in (found["chunk"], domains["degree"], domains["sub_domains"], found["mapping"])]

    def changed(self, name, base="ssd-s", without=None, **changes):
        """A copy of a profile without a section, or with other values of `section__key`."""
        text = (PROFILES / f"{base}.toml").read_text()
        if without:
            text = re.sub(rf"^\[{without}\]\n(?:[^\[].*\n|\n)*", "", text, flags=re.MULTILINE)
        for place, value in changes.items():
            section, key = place.split("__")
            pattern = rf"(^\[{section}\]\n(?:[^\[].*\n)*?{key} = ).*$"
            text, count = re.subn(pattern, rf"\g<1>{value}", text, flags=re.MULTILINE)
            if count != 1:
                sys.exit(f"profile {base}: {place} is there {count} times")
        path = self.directory / f"{name}.toml"
        path.write_text(text)
        return str(path)


# ------------------------------------------------------------------------------------------------ section 5


def chunk_curve(bench, target, sectors, align, most):
    """Mean latency in us of random reads of so many sectors by their offset, in sectors, from an aligned position."""
    offsets = ",".join(str(512 * offset) for offset in range(most + 1))
    runs = bench.bench(target, "--rw", "randread", "--bs", str(512 * sectors), "--blockalign", str(512 * align), "--size", "1g",
                       "--number_ios", "2000", "--vary", f"offset={offsets}")
    return {int(label(run, "offset")) // 512: mean_us(run) for run in runs}


def valleys(curve):
    """Where a curve is at its least."""
    least = min(curve.values())
    return [place for place, value in curve.items() if value < least * 1.001]


def stride_rate(bench, target, jobs, stride, chunk=PAGE):
    """MB/s of reads of a chunk by so many jobs of one sequence, each `stride` chunks behind the end of the one before."""
    (run,) = bench.bench(target, "--rw", f"read:{stride * chunk}", "--bs", str(chunk), "--iodepth", str(jobs), "--size", "1g", "--number_ios", "3000")
    return rate(run)


def scattered_rate(bench, target, jobs, stride):
    """The same, after every page of the area has been overwritten once in random order."""
    path = bench.directory / "scattered.toml"
    path.write_text(f"""
        global = {{ bs = "4k", size = "256m" }}
        job.scatter = {{ rw = "randwrite", iodepth = 32 }}
        job.reads = {{ rw = "read:{stride * PAGE}", iodepth = {jobs}, number_ios = 3000, stonewall = true }}
    """)
    (run,) = bench.bench(target, str(path))
    reads = run["metrics"]["processes"][1]
    return jobs * PAGE / reads["latency_ns_mean"] * 1e3


def internals(bench, claims):
    for target in ("ssd-s", "ssd-m"):
        verdicts = bench.probe(target)
        claims.fact("fig. 2-4", f"`planewise probe` on {target}: chunk, domains, sub-domains, mapping", "4096, 10, 2, write order", ", ".join(map(str, verdicts)),
                    verdicts == [4096, 10, 2, "write-order"])
    curve = chunk_curve(bench, "ssd-s", 8, 64, 24)
    found = valleys(curve)
    distance = found[1] - found[0] if len(found) > 1 else 0
    claims.fact("fig. 2", "4 KB reads by offset: sectors from valley to valley", "8", str(distance), distance == 8 and found[0] == 4)
    flat = chunk_curve(bench, "ssd-s", 1, 64, 24)
    claims.fact("fig. 2", "512-byte reads by offset: most over least", "flat", f"{max(flat.values()) / min(flat.values()):.3f}",
                max(flat.values()) < 1.01 * min(flat.values()))
    strides = range(1, 41)
    two, four, random = ({stride: measure(bench, "ssd-s", jobs, stride) for stride in strides}
                         for measure, jobs in ((stride_rate, 2), (stride_rate, 4), (scattered_rate, 4)))
    deep = [stride for stride in strides if two[stride] < 1.05 * min(two.values())]
    claims.fact("fig. 3", "two jobs: dips at strides of", "9, 19, 29, 39", ", ".join(map(str, deep)), deep == [9, 19, 29, 39])
    claims.number("fig. 3", "two jobs, one domain", 33, two[9], " MB/s")
    claims.number("fig. 3", "two jobs, two domains", 40, max(two.values()), " MB/s")
    deep = [stride for stride in strides if four[stride] < 1.05 * min(four.values())]
    claims.fact("fig. 3", "four jobs: deepest dips at strides of", "19, 39", ", ".join(map(str, deep)), deep == [19, 39])
    claims.number("fig. 3", "four jobs, one sub-domain", 33, four[19], " MB/s")
    claims.number("fig. 3", "four jobs, one domain", 40, four[9], " MB/s")
    claims.number("fig. 3", "four jobs, two domains", 64, four[4], " MB/s")
    spread = max(random.values()) / min(random.values())
    claims.fact("fig. 4", "after random overwrites: most over least MB/s of all strides", "dips are gone", f"{spread:.2f} (before: {max(four.values()) / min(four.values()):.2f})", spread < 1.15)
    return [(stride, f"{two[stride]:.1f}", f"{four[stride]:.1f}", f"{random[stride]:.1f}") for stride in range(1, 22)]


# ------------------------------------------------------------------------------------------------ section 6


def parallelism(bench, claims):
    depths = "1,2,4,8,10,16,32"
    small, large = bench.grid("ssd-s", "read,randread,write,randwrite", "4k,16k,64k,256k", depths), bench.grid("ssd-m", "randread,write", "4k,16k,64k", depths)
    reads = {depth: small["randread", "4k", depth] for depth in map(int, depths.split(","))}
    claims.number("fig. 5", "4 KB random reads, depth 1", 21.3, reads[1], " MB/s")
    claims.number("fig. 5", "4 KB random reads, depth 32", 145, reads[32], " MB/s")
    claims.ratio("fig. 5", "4 KB random reads, depth 32 over depth 1", 7.2, reads[32] / reads[1])
    claims.number("fig. 5", "16 KB random reads, depth 1", 65.5, small["randread", "16k", 1], " MB/s")
    claims.number("fig. 5", "16 KB random reads, depth 32", 225.5, small["randread", "16k", 32], " MB/s")
    claims.number("fig. 5", "64 KB sequential reads, depth 1", 221.3, small["read", "64k", 1], " MB/s")
    claims.number("fig. 5", "4 KB writes, depth 32", 186.1, small["write", "4k", 32], " MB/s")
    claims.ratio("fig. 5", "4 KB at depth 32, writes over random reads", 1.283, small["write", "4k", 32] / reads[32])
    gain = {size: small["randread", size, 32] / small["randread", size, 1] for size in ("4k", "16k", "64k", "256k")}
    falls = all(a > b for a, b in zip(gain.values(), list(gain.values())[1:]))
    claims.fact("fig. 5", "random reads of 4, 16, 64, 256 KB: depth 32 over depth 1", "falls with the size", ", ".join(f"{g:.2f}" for g in gain.values()), falls)
    claims.fact("fig. 5", "4 KB random reads: depth 8 over 1, and 32 over 10", "little past 8 to 10", f"{reads[8] / reads[1]:.2f}, {reads[32] / reads[10]:.2f}",
                reads[32] / reads[10] < 1.15 and reads[8] / reads[1] > 4)
    apart = max(abs(small["randwrite", size, depth] / small["write", size, depth] - 1) for size in ("4k", "16k") for depth in reads)
    claims.fact("fig. 5", "random writes off sequential ones, 4 and 16 KB, at most", "similar", f"{apart:.3f}", apart < 0.1)
    peak = max(rate for (pattern, _, _), rate in large.items() if pattern == "write")
    claims.number("fig. 5", "SSD-M, peak of writes", 80, peak, " MB/s")
    claims.number("fig. 5", "SSD-S, peak of writes", 200, max(v for (pattern, _, _), v in small.items() if "write" in pattern), " MB/s")
    few = large["write", "4k", 4] / peak
    claims.fact("fig. 5", "SSD-M: 4 KB writes at depth 4 over the peak", "quickly there", f"{few:.2f}", few > 0.9)
    less = large["randread", "4k", 32] / reads[32], large["write", "4k", 32] / small["write", "4k", 32]
    claims.fact("fig. 5", "SSD-M over SSD-S at depth 32: 4 KB random reads, writes", "less of a difference in reads", f"{less[0]:.2f}, {less[1]:.2f}", less[0] > less[1])
    dip = small["read", "4k", 4] / small["read", "4k", 1]
    claims.fact("fig. 5", "4 KB sequential reads: depth 4 over depth 1", "a slight dip", f"{dip:.2f}", dip < 1)
    return [(pattern, size, *(f"{small[pattern, size, depth]:.1f}" for depth in reads))
            for pattern in ("read", "randread", "write", "randwrite") for size in ("4k", "16k", "64k", "256k")]


def co_run(bench, claims):
    published = {
        ("read", "write"): 109.2, ("read", "randwrite"): 103.5, ("read", "nothing"): 72.6,
        ("randread", "write"): 32.8, ("randread", "randwrite"): 33.2, ("randread", "nothing"): 21.3,
        ("write", "nothing"): 61.4, ("randwrite", "nothing"): 59.4,
    }
    runs = {(label(run, "pattern"), label(run, "beside")): run for run in bench.experiment("interference", "ssd-s")}
    names = {"read": "sequential reads", "randread": "random reads", "write": "sequential writes", "randwrite": "random writes", "nothing": "nothing"}
    for (pattern, beside), number in published.items():
        claims.number("table II", f"{names[pattern]} beside {names[beside]}", number, rate(runs[pattern, beside]), " MB/s")
    together = runs["randread", "write"]
    reads, writes = direction_rate(together, "read"), direction_rate(together, "write")
    claims.number("table II", "of random reads beside sequential writes, the reads", 19.4, reads, " MB/s")
    claims.ratio("table II", "sequential writes alone over beside random reads", 4.5, rate(runs["write", "nothing"]) / writes)
    below = all(rate(runs[p, b]) < rate(runs[p, "nothing"]) + rate(runs[b, "nothing"]) for p, b in published if b != "nothing")
    claims.fact("table II", "every pair moves less than the sum of both alone", "yes", "yes" if below else "no", below)


def streams(bench, claims):
    found = {}
    for run in bench.experiment("streams", "ssd-s"):
        found.setdefault(label(run, "size"), {})[int(label(run, "streams"))] = rate(run)
    claims.ratio("fig. 6", "4 KB: two streams over one", 0.57, found["4k"][2] / found["4k"][1])
    dips = sum(by[2] < by[1] for by in found.values())
    claims.fact("fig. 6", "sizes with a dip at two streams", "nearly all", f"{dips} of {len(found)}", dips >= len(found) - 1)
    back = sum(by[32] >= by[1] for by in found.values())
    claims.fact("fig. 6", "sizes for which 32 streams win it back", "all", f"{back} of {len(found)}", back == len(found))
    counts = list(next(iter(found.values())))
    return counts, [(size, *(f"{by[count]:.1f}" for count in counts)) for size, by in found.items()]


def layouts(bench, claims):
    found = {}
    for run in bench.experiment("layouts", "ssd-s"):
        found[label(run, "pattern"), int(label(run, "domains")), int(label(run, "iodepth"))] = run
    depths = (1, 2, 4, 8, 16, 32)
    # As in the paper: of data that were written in order, every tenth chunk is in the same domain.
    random = {}
    for domains, align in ((1, 10 * PAGE), (10, PAGE)):
        for run in bench.bench("ssd-s", *STEADY, "--rw", "randread", "--bs", "4k", "--blockalign", str(align), "--vary", f"iodepth={','.join(map(str, depths))}"):
            random[domains, int(label(run, "iodepth"))] = mean_us(run)
    claims.number("fig. 7", "4 KB random reads, depth 32, one domain: latency", 3, random[1, 32] / 1e3, " ms")
    claims.number("fig. 7", "the same over ten domains", 0.7, random[10, 32] / 1e3, " ms")
    claims.ratio("fig. 7", "one domain over ten at depth 32", 4.2, random[1, 32] / random[10, 32])
    equal = random[1, 1] / random[10, 1]
    claims.fact("fig. 7", "one domain over ten at depth 1", "1", f"{equal:.3f}", abs(equal - 1) < 0.05)
    falls = {depth: rate(found["read", 10, depth]) / rate(found["read", 1, depth]) for depth in (1, 8)}
    claims.ratio("fig. 8", "sequential reads, depth 8: ten domains over one", 2.9, falls[8])
    claims.fact("fig. 8", "ten domains over one at depth 1, and at depth 8", "depth 8 is hit harder", f"{falls[1]:.2f}, {falls[8]:.2f}", falls[8] > falls[1] > 1)
    order = [rate(found["read", domains, 8]) for domains in (1, 2, 5, 10)]
    claims.fact("fig. 8", "1, 2, 5, 10 domains at depth 8, MB/s", "rises", ", ".join(f"{value:.0f}" for value in order), order == sorted(order))
    median = found["read", 1, 8]["metrics"]["read"]["latency_ns"]["p50"] / 1e3
    claims.fact("fig. 9", "sequential reads, depth 8, one domain: median latency", "> 700 us at worst", f"{median:.0f} us", median > 700)
    by_depth = [(domains, *(f"{random[domains, depth]:.0f}" for depth in depths)) for domains in (1, 10)]
    return depths, by_depth, [(domains, *(f"{rate(found['read', domains, depth]):.1f}" for depth in (1, 8))) for domains in (1, 2, 5, 10)]


# ------------------------------------------------------------------------------------------------ section 9


def new_generation(bench, claims):
    """On a drive of today: which of the patterns of section 5 are still there."""
    verdicts = bench.probe("tlc-nvme-1t-pages")
    claims.fact("fig. 17", "`planewise probe` on tlc-nvme-1t-pages (16 KiB pages, 8 channels of 8 dies)", "some drives clear, some not", ", ".join(map(str, verdicts)),
                verdicts == [16384, 8, 8, "static"])
    curve = chunk_curve(bench, "tlc-nvme-1t-pages", 8, 128, 64)
    spread = max(curve.values()) / min(curve.values())
    claims.fact("fig. 17", "tlc-nvme-1t-pages, 4 KB reads by offset: most over least", "weak on V-NAND drives", f"{spread:.3f}", spread < 1.05)
    four = {stride: stride_rate(bench, "tlc-nvme-1t-pages", 4, stride, 16384) for stride in range(1, 65)}
    deep = [stride for stride in four if four[stride] < 0.85 * max(four.values())]
    claims.fact("fig. 17", "tlc-nvme-1t-pages, four jobs: dips at strides of", "regular on three of five", ", ".join(map(str, deep)), deep == list(range(7, 64, 8)))
    before, after = (bench.steady("tlc-nvme-1t-pages", "randread", "4k", depth) for depth in (1, 32))
    claims.fact("fig. 16", "tlc-nvme-1t-pages: 4 KB random reads, depth 32 over depth 1", "several times", f"{after / before:.1f}", after > 3 * before)
    peak = {pattern: bench.steady("tlc-nvme-1t-pages", pattern, "128k", 32) for pattern in ("read", "write")}
    claims.fact("fig. 16", "tlc-nvme-1t-pages: peaks of reads and writes (the paper's drives: SATA)", "> 450, > 400 MB/s", ", ".join(f"{v:.0f}" for v in peak.values()),
                peak["read"] > 450 and peak["write"] > 400)


def collected(bench, claims):
    rows = []
    quarter = bench.changed("quarter", "tlc-nvme-1t-pages", translation__over_provisioning=0.25)
    for what, target in (("9 % spare", "tlc-nvme-1t-pages"), ("25 % spare", quarter)):
        found = {(label(run, "pattern"), label(run, "when")): rate(run) for run in bench.experiment("conditioning", target)}
        kept = {pattern: found[pattern, "after"] / found[pattern, "before"] for pattern in ("read", "randread", "write", "randwrite")}
        rows.append((what, *(f"{found[pattern, 'before']:.0f} → {found[pattern, 'after']:.0f}" for pattern in kept)))
        if what == "9 % spare":
            claims.fact("fig. 18", "random writes after 60 s of them over before", "< 0.5 on three of five", f"{kept['randwrite']:.3f}", kept["randwrite"] < 0.5)
            claims.fact("fig. 18", "reads suffer less than writes: sequential and random reads after over before", "yes", f"{kept['read']:.2f}, {kept['randread']:.2f}",
                        min(kept["read"], kept["randread"]) > max(kept["write"], kept["randwrite"]))
        else:
            claims.fact("fig. 18", "with 25 % of the flash spare: random writes after over before", "hidden", f"{kept['randwrite']:.3f}", kept["randwrite"] > 0.8)
    return rows


def measure_claims(bench):
    claims = Claims()
    strides = internals(bench, claims)
    grid = parallelism(bench, claims)
    co_run(bench, claims)
    counts, by_streams = streams(bench, claims)
    depths, by_depth, by_domains = layouts(bench, claims)
    new_generation(bench, claims)
    spare = collected(bench, claims)
    table(("figure", "what", "published", "measured", "verdict"), claims.rows)
    print("\nFigures 3 and 4, MB/s of 4 KB reads by the chunks left out between two.")
    table(("stride", "two jobs", "four jobs", "four, after random overwrites"), strides)
    print("\nFigure 5, SSD-S, MB/s by requests in flight.")
    table(("pattern", "size", "1", "2", "4", "8", "10", "16", "32"), grid)
    print("\nFigure 6, MB/s by sequential streams.")
    table(("size", *map(str, counts)), by_streams)
    print("\nFigure 7: latency in us of 4 KB random reads by requests in flight.")
    table(("domains", *map(str, depths)), by_depth)
    print("\nFigure 8: MB/s of 4 KB sequential reads by requests in flight.")
    table(("domains", "1", "8"), by_domains)
    print("\nFigure 18, tlc-nvme-1t-pages: MB/s of 32 requests of 16 KB before and after 60 s of random writes of 4 KB.")
    table(("spare", "reads", "random reads", "writes", "random writes"), spare)


# ------------------------------------------------------------------------------------------------ causes


def measure_causes(bench):
    def two_jobs(target, *patterns):
        path = bench.directory / "pair.toml"
        jobs = "\n".join(f'job.j{n} = {{ rw = "{p}", offset = "{n}g" }}' for n, p in enumerate(patterns))
        path.write_text(f'global = {{ bs = "4k", size = "1g", time_based = 1, runtime = 1, ramp_time = 0.2 }}\n{jobs}')
        (run,) = bench.bench(target, str(path))
        return run

    def pair(target, *patterns):
        run = two_jobs(target, *patterns)
        return f"{direction_rate(run, 'read'):.1f} + {direction_rate(run, 'write'):.1f}"

    def sequential(target, depth):
        return bench.steady(target, "read", "4k", depth)

    as_is = "ssd-s"
    rows = []
    for what, target in (("as it is", as_is), ("the path turns without being emptied", bench.changed("turns", processor__drains_to_turn="false")),
                         ("no write buffer", bench.changed("unbuffered", without="write_buffer"))):
        rows.append((what, pair(target, "read", "write"), pair(target, "randread", "write"), f"{bench.steady(target, 'write', '4k', 1):.1f}"))
    rows.append(("published", "109.2", "19.4 + 13.4", "61.4"))
    print("\nTable II: MB/s of reads + writes.")
    table(("ssd-s", "sequential reads beside writes", "random reads beside writes", "writes alone"), rows)

    rows = []
    for what, target in (("as it is", as_is), ("two streams are followed", bench.changed("two", read_ahead__streams=2)), ("no read-ahead", bench.changed("none", without="read_ahead"))):
        single, double = sequential(target, 1), rate(two_jobs(target, "read", "read"))
        rows.append((what, f"{single:.1f}", f"{double:.1f}", f"{double / single:.2f}"))
    rows.append(("published", "72.6", "–", "0.57"))
    print("\nFigure 6: MB/s of one and two sequential streams of 4 KB.")
    table(("ssd-s", "one", "two", "ratio"), rows)

    rows = []
    for what, target in (("as it is", as_is), ("commands pass transfers", "ssd-s:interface.arbitration=commands-first"),
                         ("the array reads in no time", bench.changed("array", timing__read_ns=0)),
                         ("cache registers", cached(bench)), ("the bus carries a page in 94 us", bench.changed("bus", timing__transfer_ps_per_byte=22_900))):
        rows.append((what, *(f"{stride_rate(bench, target, jobs, stride):.1f}" for jobs, stride in ((2, 19), (4, 19), (4, 9), (4, 4)))))
    rows.append(("published", 33, 33, 40, 64))
    print("\nFigure 3: MB/s of 4 KB reads.")
    table(("ssd-s", "two jobs, one package", "four, one package", "four, one channel", "four, two channels"), rows)

    rows = []
    for what, target in (("as it is", as_is), ("no read-ahead", bench.changed("none", without="read_ahead"))):
        found = {(int(label(run, "domains")), int(label(run, "iodepth"))): rate(run)
                 for run in bench.experiment("layouts", target, "time=1;depths=1") if label(run, "pattern") == "read"}
        rows.append((what, *(f"{found[domains, 8]:.1f}" for domains in (1, 10)), f"{found[10, 8] / found[1, 8]:.2f}"))
    rows.append(("published", "–", "–", "2.9"))
    print("\nFigure 8: MB/s of sequential reads of 4 KB, depth 8.")
    table(("ssd-s", "one domain", "ten", "ratio"), rows)

    rows = []
    for what, target in (("as it is", as_is), ("a page takes the processor no time", bench.changed("page", processor__operation_ns=0)),
                         ("a command takes the processor no time", bench.changed("command", processor__command_ns=0)),
                         ("a link of 10 GB/s", bench.changed("link", link__mb_per_s=10_000)), ("no time in the host", bench.changed("host", link__latency_ns=0)),
                         ("12 us more in the host", bench.changed("slow", link__latency_ns=27_000))):
        rows.append((what, *(f"{bench.steady(target, pattern, size, depth):.1f}" for pattern, size, depth in POINTS)))
    rows.append(("published", *PUBLISHED))
    print("\nFigure 5: what each constant decides (MB/s).")
    table(("ssd-s", *(f"{pattern} {size}, {depth}" for pattern, size, depth in POINTS)), rows)


POINTS = (("randread", "4k", 1), ("randread", "4k", 32), ("randread", "16k", 1), ("randread", "16k", 32), ("read", "4k", 1), ("read", "64k", 1), ("write", "4k", 1), ("write", "4k", 32))
PUBLISHED = (21.3, 145, 65.5, 225.5, 72.6, 221.3, 61.4, 186.1)


def cached(bench):
    """ssd-s with cache registers."""
    path = bench.directory / "cached.toml"
    text = (PROFILES / "ssd-s.toml").read_text()
    path.write_text(text.replace("copyback_same_parity = false\n", "copyback_same_parity = false\ncache_read = true\ncache_program = true\n"))
    return str(path)


PARTS = {"claims": measure_claims, "causes": measure_causes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planewise", default="target/release/planewise", help="the program [target/release/planewise]")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to measure [all]")
    given = parser.parse_args()
    for part in given.only.split(","):
        if part not in PARTS:
            parser.error(f"--only: found '{part}'; allowed: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(given.planewise, directory)
        for part in given.only.split(","):
            begin = time.monotonic()
            PARTS[part](bench)
            print(f"{part}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
