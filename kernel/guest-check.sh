#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest, of `planewise linux` or of tests/kernels.sh (DISK is its drive), that is shown the modules as /run/share: everything is asserted, and the last line says so.
#   planewise linux --root / --file-system none --share target/kernel -- sh /run/share/guest-check.sh planewise-piq
set -eu
name=$1
module=/run/share/$name.ko
drive=${DISK:-vda}
requests=${REQUESTS:-4000}
queue=/sys/block/$drive/queue
counters=/sys/kernel/debug/block/$drive/sched/counters
loaded=$(echo "$name" | tr - _)
worries='WARNING|BUG|Oops|Call Trace|INFO: task|blocked for'
fail() { echo "guest-check: $*" >&2; dmesg | tail -n 20 >&2; exit 1; }
mounted() { grep -q " $1 " /proc/mounts; }
mounted /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
work() { fio --name=work --filename=/dev/$drive --direct=1 --ioengine=libaio --clocksource=clock_gettime --minimal "$@" >/tmp/fio.out 2>&1 || { cat /tmp/fio.out >&2; fail "fio $*"; }; }
# said TEXT COMMAND...: it fails, and the log, emptied before, holds the text.
said() {
    text=$1; shift
    if dmesg | grep -E "$worries"; then fail "the log is not clean"; fi
    dmesg -c >/dev/null
    if "$@" 2>/dev/null; then fail "$* was accepted"; fi
    dmesg | grep -qF "$text" || fail "'$text' is not said of: $*"
}
set_to() { echo "$2" >"$queue/$1"; }

# Wrong geometry is refused by the parameter's name.
said 'channels: allowed' insmod "$module" channels=0
said 'chips_per_channel: allowed' insmod "$module" channels=65536 chips_per_channel=65536
said 'planes_per_die: allowed' insmod "$module" channels=1024 planes_per_die=65536
said 'chunk_bytes: allowed' insmod "$module" chunk_bytes=1000
said 'order: allowed' insmod "$module" order=cwwp
said 'level: allowed' insmod "$module" level=die
said 'chip_region_bytes: allowed' insmod "$module" chip_region_bytes=1000
said "drive: channels of $drive: allowed" insmod "$module" "drive=\"$drive channels=0\""
said "drive: found 'chanels=8' for $drive" insmod "$module" "drive=\"$drive chanels=8\""

# A module that nobody uses comes and goes.
for _ in $(seq 20); do insmod "$module" channels=4; rmmod "$loaded"; done
insmod "$module" channels=4 chips_per_channel=2
set_to scheduler "$name"
grep -qF "[$name]" "$queue/scheduler" || fail "not the scheduler"
if rmmod "$loaded" 2>/dev/null; then fail "removed while in use"; fi

# A drive of its own counts from the next time that its scheduler is set.
tell_drive() { printf '%s' "$1" >/sys/module/$loaded/parameters/drive; }
said "drive: order of $drive: allowed" tell_drive "$drive order=cwwp"
said "drive: found 'channels=eight' for $drive" tell_drive "$drive channels=eight"
said "drive: found 'channels=8'; allowed: DISK" tell_drive 'channels=8'
said 'order of sdb: allowed' tell_drive "$drive channels=9; sdb order=xxxx"
tell_drive "$drive  channels=16 chunk_bytes=16384 level=plane; vdz chip_region_bytes=1048576 writes_stay=n"
grep -q '^channels=4 chips_per_channel=2 ' $queue/iosched/drive || fail "the drive changed under its scheduler"
set_to scheduler none
set_to scheduler "$name"
[ "$(cat $queue/iosched/drive)" = 'channels=16 chips_per_channel=2 dies_per_chip=1 planes_per_die=1 chunk_bytes=16384 level=plane order=cwdp chip_region_bytes=0 writes_stay=y' ] ||
    fail "$drive is not what it was told to be: $(cat $queue/iosched/drive)"
[ "$(grep -c . /sys/module/$loaded/parameters/drive)" = 2 ] || fail "two drives were named"

# Writes get no more requests than async_depth; reads get all.
submits() { work --rw="$1" --bs=4k --iodepth=32 --number_ios=$((requests / 4)) --size=256m; cut -d';' -f"$2" /tmp/fio.out; }
said 'async_depth: found' set_to iosched/async_depth 0
said 'async_depth: found' set_to iosched/async_depth 65537
free_reads=$(submits randread 12) free_writes=$(submits randwrite 53)
set_to iosched/async_depth 1
one_read=$(submits randread 12) one_write=$(submits randwrite 53)
# Times say something only where they are simulated.
if [ -z "${REAL_TIME:-}" ]; then
    awk "BEGIN { exit !($one_read < 2 * $free_reads) }" || fail "reads wait for a place: $one_read us, not $free_reads us"
    awk "BEGIN { exit !($one_write > 3 * $free_writes) }" || fail "writes do not wait for a place: $one_write us, $free_writes us without a limit"
fi
# A longer queue has other tags, which are limited too.
set_to iosched/async_depth 4
depth=$(cat $queue/nr_requests)
set_to nr_requests 256
submits randwrite 53 >/dev/null
set_to nr_requests "$depth"
set_to iosched/async_depth 65536

# Tunables keep to their ranges.
case $name in
planewise-piq)
    barriers='complete issue complete'
    progress=joined
    said 'barrier: found' set_to iosched/barrier everything
    said 'write_wait_max_ns: found' set_to iosched/write_wait_max_ns 1000000000001
    said 'write_wait_max_ns: found' set_to iosched/write_wait_max_ns soon
    said 'barrier: found' set_to iosched/barrier device
    ;;
planewise-pass)
    barriers='device none region'
    progress=turns
    said 'barrier: found' set_to iosched/barrier everything
    said 'batch: found' set_to iosched/batch 0
    said 'read_expire: found' set_to iosched/read_expire -1
    if set_to iosched/region_size 1048576 2>/dev/null; then fail "the regions were changed under requests"; fi
    set_to scheduler none
    rmmod "$loaded"
    said 'region_size: allowed' insmod "$module" region_size=0
    said 'region_size: allowed' insmod "$module" region_size=1000
    said 'region_size: allowed' insmod "$module" region_size=4x
    for size in 1t 4096; do
        insmod "$module" region_size=$size
        said 'region_size: allowed' set_to scheduler "$name"
        rmmod "$loaded"
    done
    insmod "$module" region_size=16m
    set_to scheduler "$name"
    [ "$(cat $queue/iosched/region_size)" = 16777216 ] || fail "region_size is not what it was set to"
    ;;
planewise-weave)
    barriers=
    progress=dispatched
    said 'look_ahead: found' set_to iosched/look_ahead 0
    said 'turn_requests: found' set_to iosched/turn_requests 65537
    ;;
esac
for barrier in $barriers; do
    set_to iosched/barrier "$barrier"
    [ "$(cat $queue/iosched/barrier)" = "$barrier" ] || fail "barrier does not stay"
done
# Back to what the policy begins with.
set_to scheduler none
set_to scheduler "$name"

# Reads, writes, and neighbours that are merged.
work --rw=randrw --bs=4k --iodepth=64 --number_ios=$requests --size=256m
block=$(cat $queue/logical_block_size)
# Whether neighbours wait at the same time is a matter of time: on a slow machine it takes more of them.
tries=0
while [ $tries -lt 10 ]; do
    work --rw=randwrite --norandommap --bs="$block" --iodepth=64 --io_size=$((requests * block)) --size=$((512 * block)) --randseed=$((tries + 1))
    tries=$((tries + 1))
    if grep -q '^merged [1-9]' "$counters"; then break; fi
done
work --rw=randrw --bs=4k --iodepth=16 --numjobs=4 --group_reporting --number_ios=$((requests / 4)) --size=256m
grep -q '^dispatched [1-9]' "$counters" || fail "nothing was dispatched"
grep -q '^merged [1-9]' "$counters" || fail "nothing was merged"
grep -q "^$progress [1-9]" "$counters" || fail "$progress: none"
sed 's/^/guest-check: /' "$counters"

# Written data are read back, while scheduler, tunables and depth change under them.
(
    while [ ! -e /tmp/done ]; do
        for other in none "$name" mq-deadline "$name"; do
            set_to scheduler "$other"
            if [ "$other" = "$name" ]; then
                for barrier in $barriers; do set_to iosched/barrier $barrier; sleep 0.03; done
                sleep 0.01
                for depth in 8 256 64; do set_to nr_requests $depth; sleep 0.02; done
            else
                sleep 0.1
            fi
            echo switched >>/tmp/switches
        done
    done
) &
# Each block of a round is written once, and read back at its end.
writes=${WRITES:-20000}
if [ "$writes" -gt 32768 ]; then amount="--loops=$(((writes + 32767) / 32768))"; else amount="--number_ios=$writes"; fi
work --rw=randwrite --bs=4k --iodepth=64 "$amount" --size=128m --verify=crc32c --verify_fatal=1 --do_verify=1 --fsync=64
touch /tmp/done
wait
[ "$(wc -l </tmp/switches)" -ge 8 ] || fail "only $(wc -l </tmp/switches) switches under load"

# Discards, flushes, FUA, and a file system.
set_to scheduler "$name"
blkdiscard -o 0 -l 16777216 /dev/$drive || fail "discard"
work --rw=randwrite --bs=4k --iodepth=8 --number_ios=300 --size=64m --sync=1
mkfs.ext4 -q -F /dev/$drive 262144 && mkdir -p /tmp/on && mount /dev/$drive /tmp/on
dd if=/dev/urandom of=/tmp/on/a bs=1M count=16 conv=fsync 2>/dev/null
sum=$(md5sum </tmp/on/a)
umount /tmp/on && mount /dev/$drive /tmp/on
[ "$(md5sum </tmp/on/a)" = "$sum" ] || fail "a file came back different"
umount /tmp/on
# A longer queue has room for all that are in it, from the first change on.
set_to scheduler none
set_to scheduler "$name"
set_to nr_requests 256
work --rw=randrw --bs=4k --iodepth=250 --number_ios=$requests --size=256m
grep -qx 'waited_outside 0' "$counters" || fail "requests found no slot"

set_to scheduler none
rmmod "$loaded" || fail "does not unload"
if dmesg | grep -E "$worries"; then fail "the log is not clean"; fi
echo "guest-check: ok: $name, $(wc -l </tmp/switches) switches under load"
