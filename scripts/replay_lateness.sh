#!/bin/sh
# How late `planewise replay` issues requests on this machine: reads of a synthetic trace at a given rate, several times.
#   scripts/replay_lateness.sh TARGET ...
# Reads only. Environment: RATE (20000 requests/s), SECONDS_EACH (10), RUNS (5), SCHEDULER (noop), PLANEWISE (target/release/planewise).
set -eu
rate=${RATE:-20000}
seconds=${SECONDS_EACH:-10}
runs=${RUNS:-5}
scheduler=${SCHEDULER:-noop}
planewise=${PLANEWISE:-target/release/planewise}
[ $# -ge 1 ] || { echo "usage: $0 TARGET ..." >&2; exit 2; }
[ -x "$planewise" ] || { echo "$planewise is missing: make build" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Exponential gaps around the rate's mean, 4 KiB at random places of 64 MiB.
python3 - "$rate" "$seconds" "$out/trace.csv" <<'PYTHON'
import random, sys
rate, seconds, path = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
random.seed(1)
clock = 0.0
with open(path, "w") as trace:
    while clock < seconds:
        ticks = int(clock * 1e7)
        trace.write(f"{133000000000000000 + ticks},late,0,Read,{4096 * random.randrange(16384)},4096,0\n")
        clock += random.expovariate(rate)
PYTHON

printf '%-20s %10s %10s %10s %10s %10s  %s\n' target requests 'p50, us' 'p99, us' 'p99.9, us' 'max, us' verdict
for target in "$@"; do
  for run in $(seq "$runs"); do
    "$planewise" replay "$out/trace.csv" "$target" --scheduler "$scheduler" --json --quiet --out "$out/$run" --force |
      python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
late = run["replay"]["lateness_ns"]
times = [late[key] / 1000 for key in ("p50", "p99", "p999", "max")]
verdict = "faithful" if run["replay"]["faithful"] else "not faithful"
print("%-20s %10d %10.2f %10.2f %10.2f %10.2f  %s" % (sys.argv[1], run["metrics"]["requests"]["completed"], *times, verdict))' "$target"
  done
done
