#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The modules in simulated time: what they decided in fio, in the embedded trace of a database (`planewise replay` in the guest) and under ext4 is told to
# the simulator's policies, which must decide the same; then latencies beside the simulator's: kernel/tests/simulated.sh
# PROGRAM is the planewise that is used, TRACEPOINTS the planewise-tracepoints.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
program=${PROGRAM:-target/release/planewise}
tracepoints=${TRACEPOINTS:-target/release/planewise-tracepoints}
out=target/kernel/simulated
[ -x "$program" ] || { echo "simulated.sh: $program is missing (make build)" >&2; exit 1; }
[ -x "$tracepoints" ] || { echo "simulated.sh: $tracepoints is missing (cargo build --release -p planewise-kernel-core)" >&2; exit 1; }
[ -f target/linux/kernel ] || { echo "simulated.sh: target/linux/kernel is missing (make linux)" >&2; exit 1; }
for tool in fio python3; do
    command -v $tool >/dev/null || { echo "simulated.sh: $tool is missing (apt install $tool)" >&2; exit 1; }
done
mkdir -p "$out/share"
# The guest sees the program by its directory.
cp "$program" "$out/share/planewise"

# compare NAME DEVICE FILE-SYSTEM COMMAND...: for each module, or those that $modules names; with the barrier that $barrier names.
compare() {
    name=$1 device=$2 files=$3
    shift 3
    for module in ${modules:-planewise-piq planewise-pass planewise-weave}; do
        "$program" linux --root / --device "$device" --schedulers $module --file-system "$files" --share "$out/share" --tracepoints --quiet --force \
            --out "$out/$name-$module" ${barrier:+--attribute iosched/barrier=$barrier} -- "$@" >"$out/log" 2>&1 || { tail -n 5 "$out/log" >&2; echo "simulated.sh: $name under $module failed" >&2; exit 1; }
        "$tracepoints" "$out/$name-$module/guest-0/scheduler-events.txt"
    done
}
fio="fio --thread --clocksource=clock_gettime --bs=4k --minimal --name=work"
# shellcheck disable=SC2086 # words
compare random piq-128g:interface.command_queue=ncq:8 none $fio --filename=/dev/vda --direct=1 --ioengine=libaio --rw=randrw --iodepth=64 --size=1g --number_ios=6000
# shellcheck disable=SC2086
compare neighbours ssd3:interface.command_queue=ncq:4 none $fio --filename=/dev/vda --direct=1 --ioengine=io_uring --rw=randwrite --norandommap --size=1m --io_size=16m --iodepth=64
# shellcheck disable=SC2086
compare files ssd1 ext4 $fio --directory=. --rw=randwrite --size=32m --fsync=32 --number_ios=3000 --name=reads --rw=randread --size=32m --direct=1 --ioengine=libaio --iodepth=8
compare database ssd1:interface.command_queue=ncq:4 none /run/share/planewise replay pgbench /dev/vda --destroy-data vda --requests 4000 --quiet --out /run/out/replay
# Policies that make requests wait on purpose.
for wait in planewise-piq:complete planewise-pass:region planewise-pass:device; do
    modules=${wait%:*} barrier=${wait#*:}
    # shellcheck disable=SC2086
    compare "waits-$barrier" piq-128g:interface.command_queue=ncq:16 none $fio --filename=/dev/vda --direct=1 --ioengine=libaio --rw=randrw --iodepth=64 --size=64m --number_ios=4000
done
grep -h "planewise_hold" "$out"/*/guest-0/scheduler-events.txt >/dev/null || { echo "simulated.sh: no policy ever held requests back: that is not compared" >&2; exit 1; }
kernel/tests/latency.py --program "$program" --events
for events in target/kernel/latency/*/guest-0/scheduler-events.txt; do "$tracepoints" "$events"; done
echo "simulated.sh: ok"
