#!/usr/bin/env bash
# Times whole runs of `planewise run`, trace file read included: CPU seconds, median of several runs.
#
#   scripts/bench.sh [RUNS]
#
# One million requests of 4 to 16 KB, 60 % writes, exponential arrivals with mean 1 ms over a 2 GB working set, NOOP on a
# 128 GB device; five million of them; the first million 50 times as fast before a queue of 256 (saturated); and the look-alike
# stg_0 on an aged device under every collection scheme; each host scheduler before a saturated queue; and the sweep of six schedulers
# over seven thread counts of sysbench's file test, wall time with all cores.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-5}
planewise=${PLANEWISE:-target/release/planewise}
[ -x "$planewise" ] || { echo "$planewise is missing: make build" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing: it makes the benchmark's trace" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The trace is text of a seeded generator, in the columns of the MSR traces.
trace() { # requests, file
  python3 - "$1" "$2" <<'PYTHON'
import random, sys
requests, path = int(sys.argv[1]), sys.argv[2]
random.seed(1)
clock, pages = 0.0, 2 * 10**9 // 4096
with open(path, "w") as out:
    for _ in range(requests):
        clock += random.expovariate(1.0)
        kind = "Write" if random.random() < 0.6 else "Read"
        size = 4096 * random.randint(1, 4)
        offset = 4096 * random.randrange(pages)
        out.write(f"{133000000000000000 + int(clock * 10000)},bench,0,{kind},{offset},{size},0\n")
PYTHON
}

measure() { # title, requests, arguments...
  local title=$1 requests=$2
  shift 2
  for _ in $(seq "$runs"); do
    rm -rf "$work/out"
    local TIMEFORMAT='%U %S'
    { time "$planewise" run --quiet --out "$work/out" "$@" >/dev/null; } 2>&1
  done | awk '{ print $1 + $2 }' | sort -n | awk -v title="$title" -v requests="$requests" \
    '{ all[NR] = $1 } END { median = all[int((NR + 1) / 2)]; printf "%-28s %7.3f s CPU (median of %d)  %9.0f requests/s  %5.0f ns/request\n", title, median, NR, requests / median, 1e9 * median / requests }'
}

trace 1000000 "$work/one.csv"
trace 5000000 "$work/five.csv"
measure "start-up (1 request)" 1 --trace "$work/one.csv" --requests 1
measure "1 million, idle" 1000000 --trace "$work/one.csv"
measure "5 million, idle" 5000000 --trace "$work/five.csv"
measure "1 million, saturated" 1000000 --trace "$work/one.csv" --scale-time 0.02 --queue 256
# An aged device is built (an 84/10/6 permutation of 128 GB), then collects under each scheme.
aged=(--device gc-128g --condition aged --trace gc-stg_0)
measure "aged, 1 request" 1 "${aged[@]}" --requests 1
for scheme in traditional preemptive dpr idle_chip yielding gc_free; do
  measure "aged, 1 million, $scheme" 1000000 "${aged[@]}" --requests 1000000 --gc "$scheme"
done
for scheduler in $("$planewise" scheduler list | awk '{ print $1 }'); do
  measure "saturated, $scheduler" 200000 --trace "$work/one.csv" --scale-time 0.02 --queue 256 --requests 200000 --scheduler "$scheduler"
done
for _ in $(seq "$runs"); do
  rm -rf "$work/out"
  TIMEFORMAT='%R'
  { time "$planewise" bench --quiet --out "$work/out" --target sim:ssd1 --workload sysbench-file --vary threads=1,2,4,8,16,32,64 \
    --schedulers noop,deadline,cfq,anticipatory,pass,fios >/dev/null; } 2>&1
done | sort -n | awk '{ all[NR] = $1 } END { printf "%-28s %7.3f s wall (median of %d)\n", "sysbench sweep, 42 runs", all[int((NR + 1) / 2)], NR }'
