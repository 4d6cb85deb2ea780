#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest of kernel/tests/speed.sh: what a request costs under each scheduler, a line for each: MODE DEPTH PATTERN SCHEDULER NS.
# UNITS: of the drive that the modules are told of; ROUNDS: how often each is measured.
set -eu
requests=${REQUESTS:-20000}
drives=/sys/kernel/config/nullb
insmod /modules/null_blk.ko nr_devices=0
insmod /modules/planewise-piq.ko channels="${UNITS:-8}"
insmod /modules/planewise-weave.ko channels="${UNITS:-8}"
insmod /modules/planewise-pass.ko region_size=1g
make_drive() {
    mkdir "$drives/$1"
    echo 65536 >"$drives/$1/size"
    echo 0 >"$drives/$1/memory_backed"
    echo "$2" >"$drives/$1/irqmode"
    echo 500000 >"$drives/$1/completion_nsec"
    echo 32 >"$drives/$1/hw_queue_depth"
    echo 1 >"$drives/$1/power"
}
# At once: what it costs at least. In half a millisecond, 32 at a time: requests wait in the scheduler.
make_drive atonce 0
make_drive queued 2
round=0
while [ $round -lt "${ROUNDS:-3}" ]; do
    for mode in atonce queued; do
        for scheduler in none mq-deadline kyber bfq planewise-pass planewise-piq planewise-weave; do
            echo $scheduler >"/sys/block/$mode/queue/scheduler"
            [ $scheduler = none ] || echo 256 >"/sys/block/$mode/queue/nr_requests"
            for depth in 1 32 256; do
                for pattern in random sequential; do
                    # Where one at a time waits for the drive, there is nothing to see.
                    [ "$mode$depth" != queued1 ] || continue
                    echo "speed: $mode $depth $pattern $scheduler $(load "/dev/$mode" "$requests" $depth $pattern)"
                done
            done
        done
    done
    round=$((round + 1))
done
