#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What one lock for all hardware queues costs, in a machine of as many processors as this one (at most four) that QEMU emulates, each on a thread of its own: kernel/tests/locks.sh. Requests a
# second of as many programs together in a kernel without aids (x86-plain), and how often and how long processors waited for the scheduler's lock in one that counts it
# (x86-lockstat, which is slower by itself). Medians of ROUNDS (3). Times are of an emulated machine whose processors may wait for this machine's: they compare schedulers,
# and nothing is asserted of them. PROCESSORS, REQUESTS (20000) of each program, KERNELS (x86-plain x86-lockstat).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
for kernel in ${KERNELS:-x86-plain x86-lockstat}; do
    "$here/debug-kernel.sh" "$kernel"
    built=$root/target/kernels/$kernel/planewise
    kernel/build.sh "target/kernels/$kernel" "$built" >/dev/null
    "$here/root.sh" "$kernel" "$built"
    log=target/kernels/$kernel/locks
    PROCESSORS=${PROCESSORS:-$(nproc | awk '{ print $1 > 4 ? 4 : $1 }')} QEMU='-accel tcg,thread=multi' "$here/boot.sh" "$kernel" "$log" guest-locks.sh ROUNDS="${ROUNDS:-3}" REQUESTS="${REQUESTS:-20000}" UNITS="${UNITS:-64}" ||
        { tail -n 20 "$log" >&2; echo "kernel/tests: locks: the guest failed" >&2; exit 1; }
    echo "$kernel: thousands of requests a second (of mq-deadline's in brackets), and, where they are counted, for each thousand requests: acquisitions, contentions, us waited"
    tr -d '\r' <"$log" | awk '
        $1 == "locks:" { key = $2 " " $3; if (!(key in seen)) { seen[key] = 1; keys[++count] = key }; n[key, $4]++; rate[key, $4, n[key, $4]] = $5 }
        # Locks of one scheduler that is divided count together; those of the block layer do not.
        $1 == "lock:" && $5 !~ /&h?ctx->/ { key = $2 " " $3; c[key, $4] += $6; w[key, $4] += $7; a[key, $4] += $8; total[key, $4] += $10 / (($5 == "&kcq->lock") ? 1e9 : 1) }
        function median(key, scheduler,    all, i, j, sorted, x) {
            all = n[key, scheduler]
            for (i = 1; i <= all; i++) sorted[i] = rate[key, scheduler, i]
            for (i = 2; i <= all; i++) for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) { x = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = x }
            return sorted[int((all + 1) / 2)]
        }
        END {
            split("none mq-deadline kyber bfq planewise-pass planewise-piq planewise-weave", order, " ")
            printf "| drive | queues |"
            for (i = 1; i <= 7; i++) printf " %s |", order[i]
            printf "\n|---|---|---|---|---|---|---|---|---|\n"
            for (k = 1; k <= count; k++) {
                split(keys[k], part, " ")
                printf "| %s | %s |", part[1] == "atonce" ? "at once" : "32 in 0.1 ms", part[2]
                base = median(keys[k], "mq-deadline")
                for (i = 1; i <= 7; i++) {
                    x = keys[k] SUBSEP order[i]
                    printf " %.1f (%.2f)", median(keys[k], order[i]) / 1000, median(keys[k], order[i]) / base
                    if (x in total) printf "; %d, %.1f, %.0f", 1000 * a[x] / total[x], 1000 * c[x] / total[x], 1000 * w[x] / total[x]
                    printf " |"
                }
                printf "\n"
            }
        }'
done
