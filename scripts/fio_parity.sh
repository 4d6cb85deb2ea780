#!/bin/sh
# How much of fio's IOPS `planewise bench` reaches on the same target with the same engine, depth and size: paired runs, medians.
#   scripts/fio_parity.sh [--destroy-data NAME] TARGET ...
# Reads only; writes as well with --destroy-data and the name of the (one) target. Environment: SECONDS_EACH (3), PAIRS (5),
# DEPTHS ("1 8 32"), CPU (0), PLANEWISE (target/release/planewise).
set -eu
seconds=${SECONDS_EACH:-3}
pairs=${PAIRS:-5}
depths=${DEPTHS:-1 8 32}
cpu=${CPU:-0}
planewise=${PLANEWISE:-target/release/planewise}
patterns=randread
destroy=
if [ "${1:-}" = --destroy-data ]; then
  [ $# -eq 3 ] || { echo "usage: $0 --destroy-data NAME TARGET" >&2; exit 2; }
  destroy="--destroy-data=$2"
  patterns="randread randwrite"
  shift 2
fi
[ $# -ge 1 ] || { echo "usage: $0 [--destroy-data NAME] TARGET ..." >&2; exit 2; }
command -v fio >/dev/null || { echo "fio is missing: install fio" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 1; }
[ -x "$planewise" ] || { echo "$planewise is missing: make build" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

with_fio() {
  fio --name=parity --filename="$1" --rw="$2" --iodepth="$3" --bs=4k --direct=1 --ioengine=io_uring --fixedbufs \
    --registerfiles --nonvectored=1 --norandommap --runtime="$seconds" --time_based --cpus_allowed="$cpu" --output-format=json |
    python3 -c 'import json, sys; job = json.load(sys.stdin)["jobs"][0]; print(job["read"]["iops"] + job["write"]["iops"])'
}

with_planewise() {
  "$planewise" bench --target "$1" $destroy --engine io_uring --cpu "$cpu" --rw "$2" --iodepth "$3" --bs 4k --norandommap 1 \
    --runtime "$seconds" --time_based --json --quiet --out "$out/$4" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["metrics"]["all"]["iops"])'
}

printf '%-20s %-10s %5s %12s %12s %8s  %s\n' target rw depth fio planewise ratio "pairs' ratios"
number=0
for target in "$@"; do
  for rw in $patterns; do
    for depth in $depths; do
      : >"$out/pairs"
      pair=0
      while [ $pair -lt "$pairs" ]; do
        number=$((number + 1))
        # In turns, so that neither always runs on the warmer machine.
        if [ $((pair % 2)) -eq 0 ]; then
          a=$(with_fio "$target" "$rw" "$depth")
          b=$(with_planewise "$target" "$rw" "$depth" "$number")
        else
          b=$(with_planewise "$target" "$rw" "$depth" "$number")
          a=$(with_fio "$target" "$rw" "$depth")
        fi
        echo "$a $b" >>"$out/pairs"
        pair=$((pair + 1))
      done
      python3 - "$out/pairs" "$target" "$rw" "$depth" <<'PYTHON'
import statistics, sys
path, target, rw, depth = sys.argv[1:]
pairs = [tuple(map(float, line.split())) for line in open(path)]
fio, ours = (statistics.median(column) for column in zip(*pairs))
ratios = sorted(b / a for a, b in pairs)
print(f"{target:<20} {rw:<10} {depth:>5} {fio:>12,.0f} {ours:>12,.0f} {statistics.median(ratios):>8.3f}  "
      + " ".join(f"{ratio:.2f}" for ratio in ratios))
PYTHON
    done
  done
done
