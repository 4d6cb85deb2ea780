#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# The first program of a guest of kernels.sh: guest-check.sh for each module, on a virtio drive and on a null_blk with two queues.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
# What is refused is said often, and asserted by guest-check.sh.
dmesg -n 3
while read -r module; do
    case $module in
        # No drive but the one that is made below.
        null_blk.ko) options=nr_devices=0 ;;
        *) options= ;;
    esac
    insmod "/modules/$module" $options || echo "guest: $module does not load"
done </modules/list
echo "guest: $(nproc) processors, $(uname -r)"
mount -t configfs none /sys/kernel/config
drive=/sys/kernel/config/nullb/nullb0
mkdir $drive
while read -r key value; do echo "$value" >"$drive/$key" || echo "guest: null_blk has no $key"; done <<SETTINGS
size 8192
memory_backed 1
discard 1
submit_queues 2
hw_queue_depth 8
irqmode 2
completion_nsec 100000
power 1
SETTINGS
for drive in $(echo "$DISKS" | tr , " "); do
    for name in planewise-pass planewise-piq planewise-weave; do
        rm -f /tmp/done /tmp/switches
        REAL_TIME=yes DISK=$drive sh /run/share/guest-check.sh $name 2>&1 | sed "s/^/$drive: /"
        # Memory of the drive is memory of the guest.
        blkdiscard -f /dev/$drive 2>/dev/null || blkdiscard /dev/$drive
        for module in pass piq weave; do
            if [ -d /sys/module/planewise_$module ]; then echo none >/sys/block/$drive/queue/scheduler; rmmod planewise_$module; fi
        done
    done
done
echo "guest: end"
poweroff -f
