#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest of kernel/tests/locks.sh: as many programs as there are processors, each on one, 32 requests of 4 KiB at a time, on a drive of null_blk's with 1,
# 2 and 4 hardware queues. A line for each scheduler: locks: MODE QUEUES SCHEDULER REQUESTS-A-SECOND, and, where the kernel counts them, of each lock of the
# schedulers': lock: MODE QUEUES SCHEDULER LOCK CONTENTIONS TOTAL-WAIT-US ACQUISITIONS TOTAL-HOLD-US REQUESTS.
set -eu
requests=${REQUESTS:-20000}
drives=/sys/kernel/config/nullb
processors=$(grep -c '^processor' /proc/cpuinfo)
insmod /modules/null_blk.ko nr_devices=0
insmod /modules/planewise-piq.ko channels="${UNITS:-64}"
insmod /modules/planewise-weave.ko channels="${UNITS:-64}"
insmod /modules/planewise-pass.ko region_size=1g
make_drive() {
    mkdir "$drives/$1"
    echo 65536 >"$drives/$1/size"
    echo 0 >"$drives/$1/memory_backed"
    echo "$2" >"$drives/$1/irqmode"
    echo 100000 >"$drives/$1/completion_nsec"
    echo 32 >"$drives/$1/hw_queue_depth"
    echo "$3" >"$drives/$1/submit_queues"
    echo 1 >"$drives/$1/power"
}
for queues in 1 2 4; do
    [ $queues -le "$processors" ] || continue
    # At once: the processor that dispatches a request completes it. In 0.1 ms: requests wait in the scheduler, and completions come between.
    make_drive "atonce$queues" 0 $queues
    make_drive "later$queues" 2 $queues
done
round=0
while [ $round -lt "${ROUNDS:-3}" ]; do
    for mode in atonce later; do
        for queues in 1 2 4; do
            drive=$mode$queues
            [ -e "/sys/block/$drive" ] || continue
            for scheduler in none mq-deadline kyber bfq planewise-pass planewise-piq planewise-weave; do
                echo $scheduler >"/sys/block/$drive/queue/scheduler"
                [ $scheduler = none ] || echo 256 >"/sys/block/$drive/queue/nr_requests"
                [ ! -e /proc/lock_stat ] || echo 0 >/proc/lock_stat
                read -r began rest </proc/uptime
                number=0
                programs=
                while [ $number -lt "$processors" ]; do
                    taskset "$(printf %x $((1 << number)))" load "/dev/$drive" "$requests" 32 random >/tmp/load.$number 2>&1 &
                    programs="$programs $!"
                    number=$((number + 1))
                done
                for program in $programs; do
                    wait "$program" || { cat /tmp/load.*; echo "locks: the load failed"; exit 1; }
                done
                read -r ended rest </proc/uptime
                total=$((requests * processors))
                echo "locks: $mode $queues $scheduler $(awk -v n=$total -v a="$began" -v b="$ended" 'BEGIN { printf "%.0f", n / (b - a) }')"
                [ ! -e /proc/lock_stat ] || sed -n 's/^ *\(&\(planewise->lock\|dd->lock\|bfqd->lock\|khd->lock\|kcq->lock\|ctx->lock\|hctx->lock\)\)\(#[0-9]*\)\{0,1\}: *\([0-9].*\)/\1 \4/p' /proc/lock_stat |
                    awk -v what="$mode $queues $scheduler" -v n=$total '{ print "lock: " what " " $1 " " $3 " " $6 " " $9 " " $12 " " n }'
            done
        done
    done
    round=$((round + 1))
done
