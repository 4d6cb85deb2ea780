#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest of kernel/tests/safety.sh: guest.sh MODULE PART...; each part asserts what it is about, and that the kernel's log is clean.
# WRITES: how many writes are read back under changes (1000000); TIMES: how often is loaded and switched (1000); SHARE: what each of several writers writes (16m);
# BRIEF=1: fewer rounds of the same, where starting a program takes seconds.
set -eu
name=$1
shift
module=/modules/$name.ko
loaded=$(echo "$name" | tr - _)
writes=${WRITES:-1000000}
times=${TIMES:-1000}
share=${SHARE:-16m}
brief=${BRIEF:-0}
# rounds MANY FEW: the numbers of rounds, from 1.
rounds() { seq "$([ "$brief" = 0 ] && echo "$1" || echo "$2")"; }
tests=/tests
drives=/sys/kernel/config/nullb
# Any of these says that the kernel is not content. Lines of fault injection are not among them, and are not printed (verbose=0).
worries='WARNING|BUG|Oops|Call Trace|KASAN|KCSAN|DEBUG_LOCKS|INFO: |blocked for|possible (recursive|circular)|suspicious RCU|inconsistent lock|refcount_t|corruption|ODEBUG|general protection|new suspected memory leaks|stalls? on|soft lockup|hung|page allocation failure|nobody cared'
case $name in
planewise-pass)
    parameters='region_size=4m'
    tunables='barrier=device batch=1 pass_over=0 barrier=region read_expire=0 batch=1000000 barrier=none pass_over=8 write_expire=0 batch=16 read_expire=500 write_expire=5000'
    ;;
planewise-piq)
    parameters='channels=8 chips_per_channel=4'
    tunables='barrier=complete write_wait_max_ns=0 barrier=issue write_wait_max_ns=1000000000000 barrier=complete write_wait_max_ns=1000000'
    ;;
planewise-weave)
    parameters='channels=8 chips_per_channel=4 chunk_bytes=16384'
    tunables='look_ahead=1 passes_per_slot=0 turn_requests=1 look_ahead=4096 reads_first_per_slot=0 passes_per_slot=65536 turn_bytes=0 reads_first_longest=0 turn_bytes=524288 turn_requests=64 passes_per_slot=8 look_ahead=1024 reads_first_per_slot=65536 reads_first_longest=16384'
    ;;
*) parameters=; tunables= ;;
esac
tunables="$tunables async_depth=1 async_depth=65536 async_depth=8"
forgiven=0
fail() {
    echo "guest: $name: $part: $*"; tail -n 5 /tmp/fio.out /tmp/fio.errors 2>/dev/null | cut -c 1-300 || true
    dmesg | tail -n 60
    exit 1
}
# Whatever is not in order since the last look.
look() {
    if dmesg | grep -E "$worries" >/tmp/worries; then
        dmesg | grep -E -B 2 -A 40 "$worries" | head -n 80
        fail "the log is not clean"
    fi
    # D (an oops), W (a warning), B (a bad page, or KASAN).
    [ $(($(cat /proc/sys/kernel/tainted) & (32 + 128 + 512) & ~forgiven)) -eq 0 ] || fail "the kernel is tainted: $(cat /proc/sys/kernel/tainted)"
    dmesg -c >/dev/null
}
# said TEXT COMMAND...: it fails with EINVAL, and the log has one line of the module's, with the text.
said() {
    text=$1
    shift
    look
    if "$@" 2>/tmp/error; then fail "accepted: $*"; fi
    grep -qi 'invalid argument' /tmp/error || fail "$*: $(cat /tmp/error)"
    dmesg | sed 's/^\[[^]]*\] *//' | grep "^$name: " >/tmp/said || true
    [ "$(wc -l </tmp/said)" -eq 1 ] || fail "$(wc -l </tmp/said) lines of: $*: $(cat /tmp/said)"
    grep -qF "$text" /tmp/said || fail "'$text' is not said of $*: $(cat /tmp/said)"
    dmesg -c >/dev/null
}
insert() { load-module 0 "$module" "$*" >&2; }
load_module() {
    # shellcheck disable=SC2086 # several words
    insert $parameters
    # Tracepoints, where the kernel has them, but not where the time is spent.
    case $part in
    verify | cycle) ;;
    *)
        for file in /sys/kernel/debug/tracing/events/planewise*/enable; do
            [ ! -e "$file" ] || echo 1 >"$file"
        done
        ;;
    esac
}
set_to() { sh -c 'echo "$2" >"$1"' - "/sys/block/$drive/queue/$1" "$2"; }
is_set() { grep -qF "[$1]" "/sys/block/$drive/queue/scheduler"; }
# make_drive NAME KEY=VALUE...
make_drive() {
    drive=$1
    shift
    mkdir "$drives/$drive"
    for setting in "$@"; do echo "${setting#*=}" >"$drives/$drive/${setting%%=*}"; done
    echo 1 >"$drives/$drive/power"
}
drop_drive() {
    [ ! -e "/sys/block/$drive" ] || echo 0 >"$drives/$drive/power"
    rmdir "$drives/$drive"
}
counter() { sed -n "s/^$1 //p" "/sys/kernel/debug/block/$drive/sched/counters"; }
# completed: of all drives, what the block layer counts whenever a request ends: reads, writes, discards, flushes, and merged ones.
completed() { cat /sys/block/*/stat 2>/dev/null | awk '{ sum += $1 + $2 + $5 + $6 + $12 + $13 + $16 } END { print sum + 0 }'; }
# Who waits: requests that have a tag of a drive's or of a scheduler's, and programs that sleep in the kernel where nothing but an end wakes them.
unanswered() {
    for directory in /sys/kernel/debug/block/*/hctx*; do
        for file in sched_tags tags; do
            sed -n "s,^busy=[1-9],$directory $file: &,p" "$directory/$file" 2>/dev/null
        done
    done
    for file in /proc/[0-9]*/task/*/stat; do
        # Its name, in brackets, may have spaces; kernel threads have nothing to do with it.
        sed -n 's/^\([0-9]*\) (\(fio\|sh\|mount\|umount\|dd\|blkdiscard\)) D .*/task \1 \2 sleeps/p' "$file" 2>/dev/null
    done
}
# What a queue is in, of each drive that has one.
describe_drives() {
    for directory in /sys/kernel/debug/block/*; do
        [ -e "$directory/state" ] || continue
        for file in "$directory"/state "$directory"/requeue_list "$directory"/sched/counters "$directory"/hctx*/state "$directory"/hctx*/dispatch "$directory"/hctx*/busy \
            "$directory"/hctx*/tags "$directory"/hctx*/sched_tags; do
            [ ! -s "$file" ] && ! [ -r "$file" ] || { echo "== $file"; head -n 12 "$file"; }
        done
    done 2>/dev/null
    for file in /proc/[0-9]*/task/*/stack; do
        if grep -q 'blk\|aio\|bio' "$file" 2>/dev/null; then echo "== $file"; cat "$file"; fi
    done
}
# In the background, for the whole of the guest: a slow machine completes requests slowly, but it completes some. Where requests or programs wait and, as often as
# this was asked for, 24 times with 5 seconds between, no drive has completed anything, they are lost: all is said, and the guest ends as failed.
watch_drives() {
    last= still=0
    while sleep 5; do
        now=$(completed)
        unanswered >/tmp/unanswered
        if [ "$now" = "$last" ] && [ -s /tmp/unanswered ]; then still=$((still + 1)); else still=0; fi
        last=$now
        [ $still -ge 24 ] || continue
        echo "guest: $name: requests do not come back: nothing was completed in $still looks"
        head -n 40 /tmp/unanswered
        describe_drives | head -n 400
        dmesg | tail -n 60
        echo "guest: failed"
        sleep 1
        if grep -q 'User Mode Linux' /proc/cpuinfo; then poweroff -f; else reboot -f; fi
    done
}
# work OPTIONS...: it ends by itself, with all that was asked for.
work() {
    if ! timeout "${LIMIT:-1500}" fio --name=work --filename="/dev/$drive" --direct=1 --ioengine=libaio --minimal --thread "$@" >/tmp/fio.out 2>&1; then
        tail -n 20 /tmp/fio.out
        fail "fio $*"
    fi
}
# tolerate OPTIONS...: as work, while the drive fails; errors but timeouts are counted in $failed, and all that was asked for comes back, one way or the other.
tolerate() {
    code=0
    timeout "${LIMIT:-1500}" fio --name=work --filename="/dev/$drive" --direct=1 --ioengine=libaio --thread --output-format=json --continue_on_error=all \
        --ignore_error=110:61:121,110:61:121 "$@" >/tmp/fio.out 2>/tmp/fio.errors || code=$?
    case $code in 124 | 137) fail "it took too long: fio $*" ;; esac
    failed=$(grep -c 'io_u error' /tmp/fio.errors || true)
}
# In the background, until /tmp/stop is there: a signal could come where fio cannot bear one. It has begun when the drive has completed something.
begin_load() {
    rm -f /tmp/stop
    began_at=$(completed)
    timeout "${LIMIT:-1500}" fio --name=load --filename="/dev/$drive" --direct=1 --ioengine=libaio --minimal --thread --time_based --runtime=100000 --rw=randrw --bsrange=4k-32k --iodepth=64 \
        --trigger-file=/tmp/stop --trigger=true --verify_state_save=0 "$@" >/tmp/load.out 2>&1 &
    loader=$!
    while [ "$(completed)" = "$began_at" ]; do
        kill -0 $loader 2>/dev/null || fail "the load ended: $(tail -n 3 /tmp/load.out | cut -c 1-300)"
        sleep 0.1
    done
    sleep 0.5
}
# end_load [gone]: the drive may have gone, which ends the load with its first request that fails.
end_load() {
    touch /tmp/stop
    code=0
    wait $loader || code=$?
    # fio says 128, or nothing, of a load that it was told to end, and names each job's error in the fifth field.
    case $code,${1:-} in
    124,* | 137,*) fail "the load does not end, of which nothing is out: $(unanswered | head -n 5)" ;;
    0, | 128,) awk -F ';' '/^3;fio/ && $5 != 0 { exit 1 }' /tmp/load.out || fail "the load failed: $(tail -n 3 /tmp/load.out | cut -c 1-300)" ;;
    *,gone) ;;
    *) fail "the load ended with $code: $(tail -n 3 /tmp/load.out | cut -c 1-300)" ;;
    esac
}
# Schedulers, tunables and nr_requests change under what runs, each 100 ms, until /tmp/done is there.
change() {
    rm -f /tmp/done
    : >/tmp/changes
    (
        depth=8
        while [ ! -e /tmp/done ]; do
            for other in none "$name" mq-deadline "$name" bfq "$name" kyber "$name"; do
                set_to scheduler "$other"
                if [ "$other" = "$name" ]; then
                    # shellcheck disable=SC2086 # several words
                    set -- $tunables
                    tunables="$(echo "$tunables" | cut -d ' ' -f 2-) $1"
                    set_to "iosched/${1%%=*}" "${1#*=}"
                    sleep 0.05
                fi
                case $depth in 8) depth=256 ;; 256) depth=64 ;; 64) depth=1023 ;; *) depth=8 ;; esac
                [ "$other" = none ] || set_to nr_requests $depth
                sleep 0.05
                echo "$other" >>/tmp/changes
            done
        done
    ) &
    changer=$!
}
# end_change LEAST: so many switches at least.
end_change() {
    touch /tmp/done
    wait $changer || fail "a change was refused"
    [ "$(wc -l </tmp/changes)" -ge "$1" ] || fail "only $(wc -l </tmp/changes) switches"
}

# Wrong descriptions of a drive, and wrong tunables: refused by name, with what is allowed.
part_refuse() {
    said 'channels: allowed: 1 to 65536' insert channels=0
    said 'channels: allowed: 1 to 65536' insert channels=65537
    said 'channels: allowed: 1 to 65536' insert channels=-1
    said 'channels: allowed: 1 to 65536' insert channels=many
    said 'channels: allowed: 1 to 65536' insert channels=4294967297
    said 'channels: allowed: 1 to 65536' insert channels=18446744073709551617
    said 'chips_per_channel: allowed' insert channels=65536 chips_per_channel=65536
    said 'chips_per_channel: allowed' insert channels=32768 chips_per_channel=4
    said 'dies_per_chip: allowed' insert channels=1024 dies_per_chip=65536
    said 'planes_per_die: allowed' insert channels=1024 planes_per_die=65536
    # 2^64 in all.
    said 'allowed' insert channels=65536 chips_per_channel=65536 dies_per_chip=65536 planes_per_die=65536
    said 'chips_per_channel: allowed: so many that there are at most 1024 units' insert channels=1025
    said 'planes_per_die: allowed' insert channels=256 planes_per_die=8 level=plane
    said 'chunk_bytes: allowed: a multiple of 512' insert chunk_bytes=0
    said 'chunk_bytes: allowed' insert chunk_bytes=1000
    said 'chunk_bytes: allowed' insert chunk_bytes=2147483648
    said 'order: allowed: the letters c, w, d and p' insert order=cwwp
    said 'order: allowed' insert order=cwd
    said 'order: allowed' insert order=cwdpc
    said 'order: allowed' insert order=
    said 'order: allowed' insert order=CWDP
    said 'level: allowed: chip or plane' insert level=die
    # Drives of their own.
    for text in 'channels=8' 'other channels' 'other channels=0' 'other channels=many' 'other order=ccpp' 'other colour=red' 'other chunk_bytes=7; more channels=2' 'one channels=2; two channels=0'; do
        said 'drive: ' insert "drive=\"$text\""
    done
    # What was said of a drive is forgotten where another parameter is wrong, before the module sees it or when it does.
    if insert 'drive="other channels=8" writes_stay=maybe' 2>/dev/null; then fail "writes_stay may be maybe"; fi
    dmesg -c >/dev/null
    said 'channels: allowed' insert 'drive="other channels=8" channels=0'
    insert 'drive="other channels=8"'
    for text in 'channels=8' '' 'other channels=0' 'averyveryverylongnameofadiskthatnobodyhas channels=1' ';;; = ;'; do
        case $text in '') continue ;; esac
        said 'drive: ' sh -c 'echo "$1" >"$2"' - "$text" "/sys/module/$loaded/parameters/drive"
    done
    rmmod "$loaded"
    make_drive small size=64 memory_backed=1
    case $name in
    planewise-pass)
        for size in 0 1000 4095 4097 4x -4096 '' 0x 18446744073709555712 16777217t 99999999999999999999g; do
            said 'region_size: allowed: a multiple of 4096' insert region_size="$size" 'drive="other channels=8"'
        done
        insert region_size=128m
        said 'region_size: allowed: the size of the drive at most' set_to scheduler "$name"
        is_set none || fail "a scheduler that was refused is set"
        rmmod "$loaded"
        insert region_size=64m
        set_to scheduler "$name"
        is_set "$name" || fail "a region as large as the drive was refused"
        [ ! -w "/sys/block/$drive/queue/iosched/region_size" ] || sh -c "echo 4096 >/sys/block/$drive/queue/iosched/region_size" 2>/dev/null && fail "region_size can be changed"
        limits='batch:1:1000000 pass_over:0:1000000 read_expire:0:86400000 write_expire:0:86400000'
        words='barrier:none,region,device'
        ;;
    planewise-piq)
        insert
        set_to scheduler "$name"
        limits='write_wait_max_ns:0:1000000000000'
        words='barrier:issue,complete'
        ;;
    planewise-weave)
        insert
        set_to scheduler "$name"
        limits='passes_per_slot:0:65536 reads_first_per_slot:0:1099511627776 reads_first_longest:0:1099511627776 turn_requests:1:65536 turn_bytes:0:1099511627776 look_ahead:1:4096'
        words=
        ;;
    esac
    for limit in $limits async_depth:1:65536; do
        tunable=${limit%%:*}
        least=${limit#*:}
        most=${least#*:}
        least=${least%:*}
        said="$tunable: found"
        range="allowed: a whole number from $least to $most"
        for value in $((least - 1)) $((most + 1)) 18446744073709551616 18446744073709551615 soon 1.5 '1 2' ''; do
            said "$said '$value'; $range" set_to "iosched/$tunable" "$value"
        done
        for value in "$least" "$most"; do
            set_to "iosched/$tunable" "$value"
            [ "$(cat "/sys/block/$drive/queue/iosched/$tunable")" = "$value" ] || fail "$tunable: $value does not stay"
        done
    done
    for limit in $words; do
        tunable=${limit%%:*}
        list=$(echo "${limit#*:}" | sed 's/,/, /g')
        for value in everything '' 0 "$(printf '%05000d' 1 | cut -c 1-4000)"; do
            said "$tunable: found '$(echo "$value" | cut -c 1-32)'; allowed: $list" set_to "iosched/$tunable" "$value"
        done
    done
    if rmmod "$loaded" 2>/dev/null; then fail "removed while in use"; fi
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Drives on which there is no such scheduler.
part_unfit() {
    load_module
    make_drive zones size=64 memory_backed=1 zoned=1 zone_size=4
    said 'zoned drive' set_to scheduler "$name"
    is_set none || fail "a scheduler that was refused is set"
    drop_drive
    # A stacked drive has no queue of requests: the kernel offers no scheduler for it, or none but none.
    make_drive below size=64 memory_backed=1
    dmsetup create above --noudevsync --table "0 131072 linear /dev/below 0"
    above=$(basename /sys/block/dm-*)
    [ -e "/sys/block/$above" ] || fail "no stacked drive"
    if [ -e "/sys/block/$above/queue/scheduler" ]; then
        sh -c "echo $name >/sys/block/$above/queue/scheduler" 2>/dev/null || true
        if grep -qF "[$name]" "/sys/block/$above/queue/scheduler"; then fail "it is set on a stacked drive"; fi
    fi
    # What is below it has one.
    set_to scheduler "$name"
    mknod /tmp/above b $(tr ':' ' ' <"/sys/block/$above/dev")
    fio --name=stacked --filename=/tmp/above --direct=1 --ioengine=libaio --minimal --thread --rw=randwrite --bs=4k --iodepth=32 --size=32m --verify=crc32c --verify_fatal=1 >/tmp/fio.out 2>&1 || fail "verify through a stacked drive: $(tail -n 3 /tmp/fio.out)"
    [ "$(counter dispatched)" -gt 8000 ] || fail "the drive below dispatched $(counter dispatched)"
    dmsetup remove --noudevsync above
    rm /tmp/above
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Loaded and unloaded, set and unset.
part_cycle() {
    count=0
    while [ $count -lt "$times" ]; do
        load_module
        rmmod "$loaded"
        count=$((count + 1))
    done
    load_module
    make_drive cycled size=64 memory_backed=1
    count=0
    while [ $count -lt "$times" ]; do
        set_to scheduler "$name"
        is_set "$name" || fail "not set"
        set_to scheduler none
        count=$((count + 1))
    done
    drop_drive
    rmmod "$loaded"
}

# Written data are read back while schedulers, tunables and the queue's length change.
part_verify() {
    load_module
    make_drive kept size=256 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=32 discard=1
    change
    # 65,536 writes a round.
    work --rw=randwrite --bs=4k --iodepth=64 --gtod_reduce=1 --iodepth_batch_submit=16 --iodepth_batch_complete_min=8 --verify=crc32c --verify_fatal=1 --do_verify=1 --loops=$(((writes + 65535) / 65536)) --randrepeat=0
    end_change 20
    written=$(awk '{ print $5 + $6 }' "/sys/block/$drive/stat")
    [ "$written" -ge "$writes" ] || fail "$written writes"
    # Long ones and neighbours, which are merged.
    set_to scheduler "$name"
    change
    work --rw=write --bsrange=4k-256k --iodepth=64 --numjobs=4 --size=64m --offset_increment=64m --verify=crc32c --verify_fatal=1 --do_verify=1 --loops=3
    end_change 1
    echo "guest: $name: verify: $written writes"
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Flushes, FUA, discards, and a file system.
part_order() {
    load_module
    make_drive cached size=256 memory_backed=1 irqmode=2 completion_nsec=10000 cache_size=16 fua=1 discard=1
    set_to scheduler "$name"
    work --rw=randwrite --bs=4k --iodepth=16 --size=32m --fsync=7 --verify=crc32c --verify_fatal=1
    work --rw=randwrite --bs=4k --iodepth=16 --size=16m --sync=1 --verify=crc32c --verify_fatal=1
    work --rw=randtrim --bs=64k --iodepth=32 --size=64m
    change
    work --rw=trimwrite --bs=16k --iodepth=16 --size=128m
    end_change 1
    set_to scheduler "$name"
    blkdiscard -o 0 -l 16777216 "/dev/$drive" || fail "discard"
    mkfs.ext4 -q -F "/dev/$drive"
    mount -t ext4 "/dev/$drive" /mnt
    dd if=/dev/urandom of=/mnt/a bs=64k count=512 2>/dev/null
    sum=$(md5sum </mnt/a)
    fio --name=files --directory=/mnt --ioengine=psync --minimal --thread --rw=randwrite --bs=4k --size=16m --numjobs=4 --fsync=16 --verify=crc32c --verify_fatal=1 >/tmp/fio.out 2>&1 || fail "files: $(tail -n 3 /tmp/fio.out)"
    umount /mnt
    mount -t ext4 "/dev/$drive" /mnt
    [ "$(md5sum </mnt/a)" = "$sum" ] || fail "a file came back different"
    umount /mnt
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Drives that go away under load, and drivers.
part_remove() {
    load_module
    for round in $(rounds 8 2); do
        make_drive leaving size=64 memory_backed=$((round % 2)) irqmode=2 completion_nsec=100000 hw_queue_depth=16
        set_to scheduler "$name"
        begin_load --numjobs=2
        echo 0 >"$drives/$drive/power"
        end_load gone
        drop_drive
    done
    rmmod null_blk
    insmod /modules/null_blk.ko nr_devices=0
    for round in $(rounds 3 1); do
        scsi_drive delay=1
        begin_load --numjobs=2
        echo 1 >"/sys/block/$drive/device/delete"
        end_load gone
        rmmod scsi_debug
    done
    rmmod "$loaded"
}

# scsi_drive PARAMETER...: a drive of scsi_debug's with this scheduler.
scsi_drive() {
    insmod /modules/scsi_debug.ko dev_size_mb=64 "$@"
    tries=0
    while ! drive=$(basename "$(ls -d /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/* 2>/dev/null | head -n 1)") || [ -z "$drive" ] || [ ! -e "/dev/$drive" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "no drive of scsi_debug's"
        sleep 0.1
    done
    set_to scheduler "$name"
}

# Requests that the drive gives back, loses, or fails.
part_errors() {
    load_module
    make_drive broken size=64 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=32
    set_to scheduler "$name"
    inject() {
        echo 0 >"$drives/$drive/$1/verbose"
        echo "$2" >"$drives/$drive/$1/probability"
        echo -1 >"$drives/$drive/$1/times"
    }
    inject requeue_inject 5
    work --rw=randwrite --bs=4k --iodepth=64 --verify=crc32c --verify_fatal=1
    [ "$(counter requeued)" -gt 100 ] || fail "requeued: $(counter requeued)"
    change
    work --rw=randwrite --bs=4k --iodepth=64 --verify=crc32c --verify_fatal=1
    end_change 1
    inject requeue_inject 0
    set_to scheduler "$name"
    # Lost ones time out.
    set_to io_timeout 100
    inject timeout_inject 1
    tolerate --rw=randrw --bs=4k --iodepth=64 --size=8m
    dmesg | grep -q 'timed out' || fail "nothing timed out"
    inject timeout_inject 0
    set_to io_timeout 30000
    echo +1024-4096 >"$drives/$drive/badblocks"
    if fio --name=bad --filename="/dev/$drive" --direct=1 --ioengine=libaio --minimal --thread --rw=read --bs=4k --iodepth=32 >/tmp/fio.out 2>&1; then fail "bad blocks were read"; fi
    tolerate --rw=randrw --bsrange=4k-64k --iodepth=64
    echo -1024-4096 >"$drives/$drive/badblocks"
    # Refused before the scheduler has them.
    echo 1 >"/sys/block/$drive/make-it-fail"
    faults=/sys/kernel/debug/fail_make_request
    if [ -d $faults ]; then
        echo 0 >$faults/verbose
        echo 10 >$faults/probability
        echo -1 >$faults/times
        tolerate --rw=randrw --bsrange=4k-64k --iodepth=64
        [ "$failed" -gt 0 ] || fail "fail_make_request failed nothing"
        echo 0 >$faults/probability
    fi
    echo 0 >"/sys/block/$drive/make-it-fail"
    # All is well again.
    work --rw=randwrite --bs=4k --iodepth=64 --verify=crc32c --verify_fatal=1
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Commands that go past the scheduler, beside those that do not; a drive that is busy, and one that aborts.
part_passthrough() {
    load_module
    scsi_drive lbpu=1 delay=1
    begin_load
    work --ioengine=sg --rw=randread --bs=4k --number_ios=300 --size=64m
    sg_raw -r 96 "/dev/$drive" 12 00 00 00 60 00 >/dev/null 2>&1 || fail "INQUIRY"
    sg_raw "/dev/$drive" 35 00 00 00 00 00 00 00 00 00 >/dev/null 2>&1 || fail "SYNCHRONIZE CACHE"
    end_load
    work --rw=randwrite --bs=4k --iodepth=16 --size=16m --sync=1 --verify=crc32c --verify_fatal=1
    work --rw=randwrite --bs=4k --iodepth=16 --size=16m --fsync=5 --verify=crc32c --verify_fatal=1
    work --rw=randtrim --bs=64k --iodepth=16 --size=32m
    set_to scheduler none
    rmmod scsi_debug
    # SDEBUG_OPT_HOST_BUSY: every 20th command is not taken.
    scsi_drive every_nth=20 opts=0x8000 delay=1
    work --rw=randwrite --bs=4k --iodepth=32 --size=32m --verify=crc32c --verify_fatal=1
    set_to scheduler none
    rmmod scsi_debug
    # SDEBUG_OPT_TRANSPORT_ERR: some are tried again.
    scsi_drive every_nth=50 opts=16 delay=1
    tolerate --rw=randwrite --bs=4k --iodepth=32 --size=32m
    set_to scheduler none
    rmmod scsi_debug
    rmmod "$loaded"
}

# Each allocation fails once: of a switch, of a longer queue, of loading.
part_memory() {
    for attribute in failslab fail_page_alloc; do
        echo 0 >/sys/kernel/debug/$attribute/verbose
        for setting in ignore-gfp-wait ignore-gfp-highmem; do
            [ ! -e "/sys/kernel/debug/$attribute/$setting" ] || echo N >"/sys/kernel/debug/$attribute/$setting"
        done
    done
    [ ! -e /sys/kernel/debug/fail_page_alloc/min-order ] || echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
    # Loading. It goes on until no allocation is left that could fail: some fail and nobody minds.
    refusals=0
    nth=1
    code=0
    while [ $code -ne 3 ]; do
        code=0
        # shellcheck disable=SC2086 # several words
        load-module $nth "$module" "$parameters drive=\"other channels=2\"" >/tmp/refusal || code=$?
        case $code in
        0 | 3) rmmod "$loaded" ;;
        1) refusals=$((refusals + 1)) ;;
        *) fail "load-module: $code" ;;
        esac
        nth=$((nth + 1))
        [ $nth -lt 4000 ] || fail "after $nth allocations there is no end"
    done
    [ $refusals -gt 5 ] || fail "loading was refused only $refusals times"
    echo "guest: $name: memory: $refusals of $nth loadings refused"
    # The kernel itself complains where it has no memory for a module's code or for its tracepoints.
    if dmesg | grep -E "$(echo "$worries" | sed 's/|Call Trace//; s/|page allocation failure//')" | grep -v 'WARNING: .* at kernel/trace/'; then fail "the log is not clean"; fi
    ! dmesg | grep -q 'WARNING: .* at kernel/trace/' || forgiven=512
    dmesg -c >/dev/null
    look
    load_module
    make_drive starved size=64 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=32
    begin_load
    # Switching, and a longer queue. The file of the count is opened before: opening allocates.
    for file in scheduler nr_requests; do
        through=0
        refusals=0
        nth=1
        while [ $through -lt 20 ] && [ $nth -lt 4000 ]; do
            if [ $file = scheduler ]; then
                set_to scheduler none
                value=$name
            else
                set_to scheduler "$name"
                set_to nr_requests 8
                value=$((256 + nth % 700))
            fi
            sh -c 'exec 3>/proc/self/fail-nth 4>"$1" 5</proc/self/fail-nth; echo "$2" >&3; if echo "$3" >&4; then said=0; else said=1; fi; read left <&5; echo 0 >&3; echo "$said $left" >/tmp/nth' - "/sys/block/$drive/queue/$file" "$nth" "$value" 2>/dev/null || true
            read -r said left </tmp/nth || fail "fail-nth $nth of $file"
            [ "$said" = 0 ] || refusals=$((refusals + 1))
            # Not used up: nothing failed.
            if [ "${left:-0}" != 0 ]; then through=$((through + 1)); else through=0; fi
            nth=$((nth + 1))
        done
        [ $through -ge 20 ] || fail "$file: after $nth allocations there is no end"
        [ $refusals -gt 0 ] || fail "$file: nothing was refused in $nth"
        echo "guest: $name: memory: $refusals of $nth changes of $file refused"
        look
    done
    end_load
    set_to scheduler "$name"
    work --rw=randwrite --bs=4k --iodepth=64 --verify=crc32c --verify_fatal=1
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# A limit on depth, and a queue that gets longer or shorter under it: whoever waits is woken.
part_limit() {
    load_module
    for shared in 0 1; do
        make_drive narrow size=64 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=16 shared_tag_bitmap=$shared
        for limit in 1 $([ "$brief" = 0 ] && echo 3 65536) 16; do
            set_to scheduler none
            set_to scheduler "$name"
            set_to iosched/async_depth $limit
            for depth in 1023 8 $([ "$brief" = 0 ] && echo 256); do
                set_to nr_requests $depth
                work --rw=randrw --bs=4k --iodepth=64 --numjobs=2 --number_ios=300
            done
        done
        set_to scheduler none
        drop_drive
    done
    rmmod "$loaded"
}

# Several hardware queues, with tags of their own and with shared ones; from all processors.
part_queues() {
    load_module
    processors=$(grep -c '^processor' /proc/cpuinfo)
    for shared in 0 1; do
        make_drive wide size=64 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=16 submit_queues="$processors" shared_tag_bitmap=$shared
        set_to scheduler "$name"
        work --rw=randwrite --bs=4k --iodepth=32 --numjobs=4 --size=$share --offset_increment=16m --verify=crc32c --verify_fatal=1
        change
        work --rw=randwrite --bsrange=4k-16k --iodepth=32 --numjobs=4 --size=$share --offset_increment=16m --verify=crc32c --verify_fatal=1 --loops="$(rounds 4 1 | tail -n 1)"
        end_change 1
        # A longer queue has room for all that are in it, from the first change on.
        set_to scheduler none
        set_to scheduler "$name"
        set_to nr_requests 512
        work --rw=randrw --bs=4k --iodepth=256 --numjobs=2 --number_ios=4000
        [ "$(counter waited_outside)" -eq 0 ] || fail "$(counter waited_outside) requests found no slot (shared tags: $shared)"
        # The drive gets another number of hardware queues.
        begin_load
        for queues in 1 "$processors" 1 "$processors"; do
            echo "$queues" >"$drives/$drive/submit_queues"
            sleep 0.2
        done
        end_load
        is_set "$name" || fail "another number of hardware queues took the scheduler away"
        work --rw=randwrite --bs=4k --iodepth=32 --numjobs=4 --size=$share --offset_increment=16m --verify=crc32c --verify_fatal=1
        set_to scheduler none
        drop_drive
    done
    rmmod "$loaded"
}

# Processors that come and go under load.
part_hotplug() {
    if [ ! -e /sys/devices/system/cpu/cpu1/online ]; then
        echo "guest: $name: hotplug: one processor: skipped"
        return
    fi
    load_module
    processors=$(grep -c '^processor' /proc/cpuinfo)
    make_drive wide size=64 memory_backed=1 irqmode=2 completion_nsec=20000 hw_queue_depth=16 submit_queues="$processors"
    set_to scheduler "$name"
    (
        count=0
        while [ $count -lt "$(rounds 12 4 | tail -n 1)" ]; do
            for file in /sys/devices/system/cpu/cpu[1-9]/online; do
                echo $((count % 2)) >$file
                sleep 0.1
            done
            count=$((count + 1))
        done
        touch /tmp/plugged
    ) &
    plugger=$!
    rm -f /tmp/plugged
    while [ ! -e /tmp/plugged ]; do
        work --rw=randwrite --bs=4k --iodepth=32 --numjobs=4 --size=$share --offset_increment=16m --verify=crc32c --verify_fatal=1
    done
    wait $plugger || fail "a processor did not change"
    set_to scheduler none
    drop_drive
    rmmod "$loaded"
}

# Nothing is left in memory that nobody knows of, and locks were watched to the end.
part_leaks() {
    if [ -e /proc/lockdep_stats ]; then
        ! grep -q 'debug_locks: *0' /proc/lockdep_stats || fail "lockdep has stopped"
    fi
    [ -e /sys/kernel/debug/kmemleak ] || return 0
    # What is younger than 5 s does not count, nor what changes between two looks.
    for round in 1 2 3; do
        sleep 6
        echo scan >/sys/kernel/debug/kmemleak
    done
    cat /sys/kernel/debug/kmemleak >/tmp/leaks
    if [ -s /tmp/leaks ]; then
        head -n 60 /tmp/leaks
        fail "memory was lost"
    fi
}

part=start
dmesg -c >/dev/null
insmod /modules/null_blk.ko nr_devices=0
watch_drives &
for part in "$@"; do
    began=$(date +%s)
    "part_$part"
    look
    echo "guest: $name: $part: ok, $(($(date +%s) - began)) s"
done
