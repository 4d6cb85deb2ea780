#!/usr/bin/env bash
# Builds the program guided by a profile of its own runs: target/pgo/planewise. Twice the time of a release build; needs rustup's llvm-tools.
#
#   scripts/pgo.sh
#
# The runs that the profile is taken of are small ones of each kind: idle, saturated, collecting, closed loops, several schedulers.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | awk '/^host:/ { print $2 }')
merge=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$merge" ] || { echo "llvm-profdata is missing: rustup component add llvm-tools" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is missing: it makes the trace that the profile is taken of" >&2; exit 1; }
root=$PWD
build=$root/target/pgo/build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With a target named, flags are for the program and not for build scripts.
RUSTFLAGS="-Cprofile-generate=$work/profile" CARGO_TARGET_DIR=$build cargo build --release --target "$host"
python3 - "$work/trace.csv" <<'PYTHON'
import random, sys
random.seed(1)
clock, pages = 0.0, 2 * 10**9 // 4096
with open(sys.argv[1], "w") as out:
    for _ in range(20000):
        clock += random.expovariate(1.0)
        kind = "Write" if random.random() < 0.6 else "Read"
        out.write(f"{133000000000000000 + int(clock * 10000)},bench,0,{kind},{4096 * random.randrange(pages)},{4096 * random.randint(1, 4)},0\n")
PYTHON
program=$build/$host/release/planewise
measured() { (cd "$work" && "$program" "$@" --quiet --force --out out >/dev/null); }
measured run --trace trace.csv
for scheduler in noop piq weave mq-deadline; do
    measured run --trace trace.csv --scale-time 0.02 --queue 256 --scheduler $scheduler
done
measured run
for scheme in traditional idle_chip; do
    measured run --trace gc-stg_0 --requests 10000 --wrap --device gc-128g:geometry.blocks_per_plane=64 --condition aged:84/11/5 --gc $scheme
done
measured bench --target sim:ssd1 --workload sysbench-file --set max_requests=5000
measured bench --target sim:tlc-nvme-1t --rw randrw --bs 4k --iodepth 32 --number_ios 20000
"$merge" merge -o "$work/profile.profdata" "$work/profile"
RUSTFLAGS="-Cprofile-use=$work/profile.profdata" CARGO_TARGET_DIR=$build cargo build --release --target "$host"
cp "$program" target/pgo/planewise
echo "target/pgo/planewise"
