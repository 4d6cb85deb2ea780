#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The modules in kernels that look for errors, under all that a drive, its user and its administrator may do: kernel/tests/safety.sh [KERNEL...].
# Kernels are um-debug, x86-debug and x86-kcsan (debug-kernel.sh); without any it is the first two. Each is built once. A line for each part of guest.sh;
# what each guest said is in target/kernels/KERNEL/safety. BRIEF=1: of x86-debug and x86-kcsan only what needs several processors, in fewer rounds.
#   MODULES   of the modules (planewise-pass planewise-piq planewise-weave)
#   PARTS     of guest.sh
#   WRITES    writes that are read back under changes (um-debug 1000000, others 50000)
#   TIMES     loaded and unloaded, set and unset so often (um-debug 1000, others 50)
#   JOBS      guests at a time (2)
#   PROCESSORS of QEMU's (as many as there are here, 2 to 4)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
modules=${MODULES:-planewise-pass planewise-piq planewise-weave}
all='refuse unfit limit order remove errors passthrough memory queues hotplug cycle verify leaks'
several='limit remove queues hotplug leaks'
[ $# -gt 0 ] || set -- um-debug x86-debug
processors=$(nproc)
[ "$processors" -gt 1 ] || processors=2
[ "$processors" -lt 5 ] || processors=4
for kernel; do
    case $kernel in
    um-debug) settings="WRITES=${WRITES:-1000000} TIMES=${TIMES:-1000}" parts=${PARTS:-$all} ;;
    # An emulated machine is ten times as slow: what needs no second processor is left to the other.
    x86-debug)
        settings="WRITES=${WRITES:-50000} TIMES=${TIMES:-50} SHARE=4m BRIEF=${BRIEF:-0}"
        parts=${PARTS:-$([ "${BRIEF:-0}" = 0 ] && echo limit cycle remove errors passthrough memory queues hotplug verify leaks || echo "$several")}
        ;;
    x86-kcsan)
        settings="WRITES=${WRITES:-50000} TIMES=${TIMES:-50} SHARE=4m BRIEF=${BRIEF:-0}"
        parts=${PARTS:-$([ "${BRIEF:-0}" = 0 ] && echo limit cycle remove errors queues hotplug verify || echo "$several")}
        ;;
    *) echo "kernel/tests/safety.sh: no kernel $kernel: um-debug, x86-debug or x86-kcsan" >&2; exit 1 ;;
    esac
    "$here/debug-kernel.sh" "$kernel"
    built=$root/target/kernels/$kernel/planewise
    kernel/build.sh "target/kernels/$kernel" "$built" >/dev/null
    "$here/root.sh" "$kernel" "$built"
    logs=target/kernels/$kernel/safety
    rm -rf "$logs"
    mkdir -p "$logs"
    export PROCESSORS="${PROCESSORS:-$processors}"
    for module in $modules; do
        # shellcheck disable=SC2086 # several words
        echo "$module guest.sh,$module,$(echo $parts | tr ' ' ',') $settings"
    done | xargs -P "${JOBS:-2}" -L 1 sh -c '
        boot=$1 kernel=$2 logs=$3 module=$4
        shift 4
        "$boot" "$kernel" "$logs/$module" "$@" || : >"$logs/$module.failed"
        sed -n "s/^guest: \($module: .*: .*\)/kernel\/tests: $kernel: \1/p" "$logs/$module" | tr -d "\r"
    ' - "$here/boot.sh" "$kernel" "$logs"
    for module in $modules; do
        if [ -e "$logs/$module.failed" ]; then
            tail -n 40 "$logs/$module" >&2
            echo "kernel/tests: $kernel: $module: failed, all that was said is in $logs/$module" >&2
            exit 1
        fi
    done
done
