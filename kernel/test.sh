#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# All that is checked of the modules, in stages, each with a line of how it ended and how long it took: kernel/test.sh [STAGE...], without any all of them.
# Two stages run at a time: what is in simulated time and what counts instructions do not mind, and neither do tests that wait for requests and not for the clock.
#   decisions   the C beside the simulator's policies, 10,000,000 steps each
#   build       the modules for the kernel of `planewise linux`
#   guest       guest-check.sh in that kernel, under the simulator's --check
#   simulated   tests/simulated.sh: decisions in fio, a database's trace and ext4, told to the simulator's policies
#   safety      tests/safety.sh: kernels that look for errors, all that a user, an administrator and a drive may do
#   speed       tests/speed.sh: what a request costs beside mq-deadline
#   kernels     tests/kernels.sh: other versions of Linux
#   blktests    tests/blktests.sh, with the checkout that BLKTESTS names
# BRIEF=0: all rounds and parts of safety.sh in the emulated machine too; WRITES and REQUESTS: of kernels.sh. PROGRAM is the planewise that is used (target/release/planewise). What a stage said is in target/kernel/test-STAGE.log.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
program=${PROGRAM:-target/release/planewise}
[ $# -gt 0 ] || set -- decisions build guest simulated safety speed kernels blktests

stage_decisions() {
    PLANEWISE_STEPS=${PLANEWISE_STEPS:-10000000} "${CARGO:-cargo}" test --release -p planewise-kernel-core
}
stage_build() { kernel/build.sh target/linux/source; }
stage_guest() {
    command -v fio >/dev/null || { echo "make test-kernel: fio is missing (apt install fio)" >&2; return 1; }
    [ -f target/linux/kernel ] || { echo "make test-kernel: target/linux/kernel is missing (make linux)" >&2; return 1; }
    cp kernel/guest-check.sh target/kernel/
    for module in target/kernel/planewise-*.ko; do
        "$program" linux --quiet --root / --file-system none --share target/kernel --kernel target/linux --out target/kernel/run --force --check -- \
            sh /run/share/guest-check.sh "$(basename "$module" .ko)" || return 1
    done
}
stage_simulated() {
    "${CARGO:-cargo}" build --release -p planewise-kernel-core && PROGRAM=$program kernel/tests/simulated.sh
}
# In the emulation what needs several processors, in few rounds: all of it is an hour for the three.
stage_safety() { BRIEF=${BRIEF:-1} kernel/tests/safety.sh; }
# One round on the drive of most units: counts of instructions differ by less than a hundredth.
stage_speed() { ROUNDS=${ROUNDS:-1} UNITS=${UNITS:-64} kernel/tests/speed.sh; }
stage_kernels() { WRITES=${WRITES:-3000} REQUESTS=${REQUESTS:-1000} kernel/tests/kernels.sh; }
stage_blktests() { kernel/tests/blktests.sh; }

# run STAGE...: one after the other.
run() {
    for stage; do
        log=target/kernel/test-$stage.log
        began=$(date +%s)
        if "stage_$stage" >"$log" 2>&1; then outcome=ok; else outcome=FAILED; fi
        if [ $outcome = ok ] && grep -q skipped "$log"; then outcome="ok, but $(grep skipped "$log" | sed 's/^[^:]*: //' | sort -u | paste -s -d ';')"; fi
        echo "make test-kernel: $stage: $outcome, $(($(date +%s) - began)) s"
        if [ "$outcome" = FAILED ]; then
            tail -n 20 "$log" >&2
            : >target/kernel/test-failed
        fi
    done
}

first= second=
for stage; do
    case $stage in
    decisions | build | guest | simulated | speed | kernels) first="$first $stage" ;;
    # As long as all others together.
    safety | blktests) second="$second $stage" ;;
    *) echo "kernel/test.sh: no stage '$stage': decisions, build, guest, simulated, safety, speed, kernels or blktests" >&2; exit 1 ;;
    esac
done
mkdir -p target/kernel
rm -f target/kernel/test-failed
began_all=$(date +%s)
# shellcheck disable=SC2086 # several words
run $second &
# A job in the background does not hear the interrupt that ends the others.
trap 'trap "" TERM; kill 0; wait; exit 130' INT
# shellcheck disable=SC2086
run $first
wait
echo "make test-kernel: $(($(date +%s) - began_all)) s in all"
[ ! -e target/kernel/test-failed ]
