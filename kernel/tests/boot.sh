#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Boots a kernel of debug-kernel.sh with the root of root.sh: kernel/tests/boot.sh KERNEL LOG TEST [NAME=VALUE...]. TEST is a script of kernel/tests and its
# arguments, parted by commas; the rest is its environment. The exit code says whether it passed; what the console said is in LOG.
# MEMORY (1024) is in MiB, PROCESSORS (1) of QEMU, LIMIT (3600) the seconds that it may take, STALL (120) after how many its kernel says that a processor of
# QEMU's stalls, QEMU further options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
kernel=$root/target/kernels/$1
log=$2
test=$3
shift 3
line="test=$test panic=-1 oops=panic kasan_multi_shot kmemleak=on printk.time=1 loglevel=4 $*"
case $kernel in
*/um-*)
    # The memory of the guest is a file that it makes there.
    TMPDIR=${TMPDIR:-$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)} timeout --kill-after=10 "${LIMIT:-3600}" "$kernel/image" mem="${MEMORY:-1024}M" initrd="$kernel/root.cpio" \
        con=null con0=fd:0,fd:1 root=/dev/ram0 $line <&- >"$log" 2>&1 || true
    ;;
*)
    command -v qemu-system-x86_64 >/dev/null || { echo "kernel/tests: qemu-system-x86_64 is missing (apt install qemu-system-x86)" >&2; exit 1; }
    # Its processors wait for this machine's, which is no fault of its kernel: a stall is said later than after 21 s, and said nevertheless.
    # shellcheck disable=SC2086 # several words
    timeout --kill-after=10 "${LIMIT:-3600}" qemu-system-x86_64 -accel tcg -cpu max -m "${MEMORY:-1024}" -smp "${PROCESSORS:-1}" -nographic -no-reboot -nodefaults \
        -serial stdio -monitor none ${QEMU:-} -kernel "$kernel/image" -initrd "$kernel/root.cpio" \
        -append "console=ttyS0 rcupdate.rcu_cpu_stall_timeout=${STALL:-120} $line" </dev/null >"$log" 2>&1 || true
    ;;
esac
grep -q "^guest: passed" "$log"
