#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What a request costs under each module, beside the kernel's own schedulers, in instructions of a machine that QEMU emulates one by one: kernel/tests/speed.sh.
# The whole of it counts, from the system call to the completion, on a drive of null_blk's that moves no data. Fails where a module takes more than 1.5
# times what mq-deadline takes. UNITS (8 64): of the drives; ROUNDS (3), of which the median counts; REQUESTS (20000) each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
"$here/debug-kernel.sh" x86-plain
built=$root/target/kernels/x86-plain/planewise
kernel/build.sh target/kernels/x86-plain "$built" >/dev/null
"$here/root.sh" x86-plain "$built"
bad=0
for units in ${UNITS:-8 64}; do
    log=target/kernels/x86-plain/speed-$units
    QEMU='-icount shift=0,sleep=off' "$here/boot.sh" x86-plain "$log" guest-speed.sh UNITS="$units" ROUNDS="${ROUNDS:-3}" REQUESTS="${REQUESTS:-20000}" \
        clocksource=tsc tsc=reliable || { tail -n 20 "$log" >&2; echo "kernel/tests: speed: the guest failed" >&2; exit 1; }
    echo "instructions a request, drive of $units units (of mq-deadline's in brackets):"
    tr -d '\r' <"$log" | awk -v units="$units" '
        $1 == "speed:" { key = $2 " " $3 " " $4; if (!(key in seen)) { seen[key] = 1; keys[++count] = key }
            n[key, $5]++; value[key, $5, n[key, $5]] = $6 + 0; schedulers[$5] = 1 }
        function median(key, scheduler,    total, i, j, sorted, x) {
            total = n[key, scheduler]
            for (i = 1; i <= total; i++) sorted[i] = value[key, scheduler, i]
            for (i = 2; i <= total; i++) for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) { x = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = x }
            return sorted[int((total + 1) / 2)]
        }
        END {
            list = "none mq-deadline kyber bfq planewise-pass planewise-piq planewise-weave"
            split(list, order, " ")
            printf "| drive | depth | pattern |"
            for (i = 1; i <= 7; i++) printf " %s |", order[i]
            printf "\n|---|---|---|---|---|---|---|---|---|---|\n"
            for (k = 1; k <= count; k++) {
                split(keys[k], part, " ")
                printf "| %s | %s | %s |", part[1], part[2], part[3]
                base = median(keys[k], "mq-deadline")
                for (i = 1; i <= 7; i++) {
                    cost = median(keys[k], order[i])
                    printf " %d (%.2f) |", cost, cost / base
                    if (order[i] ~ /planewise/ && cost > 1.5 * base) { over = over "kernel/tests: speed: " order[i] " takes " sprintf("%.2f", cost / base) " times what mq-deadline takes: " keys[k] ", " units " units\n" }
                }
                printf "\n"
            }
            if (over != "") { printf "%s", over; exit 1 }
        }' || bad=1
done
exit $bad
