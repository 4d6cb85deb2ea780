#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The first program of a guest of blktests.sh: its root is this machine's, to read.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
# The checkout may be where only this machine's files are.
mount -t tmpfs none /mnt
cp -r "$BLKTESTS" /mnt/blktests
for directory in /tmp /run /var/tmp; do mount -t tmpfs none $directory; done
mount -t debugfs none /sys/kernel/debug
mount -t configfs none /sys/kernel/config
mkdir -p /dev/shm
# What udev makes where there is one.
for name in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -sf "/proc/self/${name#*:}" "/dev/${name%%:*}"; done
mount -t tmpfs none /dev/shm
mount --bind "$INSTALLED/lib/modules" /lib/modules
# Regions that fit on small drives, and not too many on those of 250 GB that null_blk makes.
modprobe planewise-pass region_size=4m
for module in planewise-piq planewise-weave; do modprobe $module; done
mkdir -p /sys/fs/cgroup /run/udev/rules.d
mount -t cgroup2 none /sys/fs/cgroup
# Each drive that a test makes gets the scheduler before the test goes on: it waits for udev.
echo "ACTION==\"add\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", TEST==\"queue/scheduler\", ATTR{queue/zoned}==\"none\", ATTR{queue/scheduler}=\"$MODULE\"" >/run/udev/rules.d/99-scheduler.rules
/lib/systemd/systemd-udevd --daemon
truncate -s 512M /dev/shm/drive
losetup /dev/loop0 /dev/shm/drive
echo "$MODULE" >/sys/block/loop0/queue/scheduler
cat /sys/block/loop0/queue/scheduler
# The rule does what it says.
modprobe null_blk nr_devices=1
udevadm settle
grep -qF "[$MODULE]" /sys/block/nullb0/queue/scheduler || { echo "guest: udev set no scheduler: $(cat /sys/block/nullb0/queue/scheduler)"; poweroff -f; }
rmmod null_blk
cd /mnt/blktests || exit 1
printf '%s\n' 'TEST_DEVS=(/dev/loop0)' "TIMEOUT=$SECONDS_EACH" >config
# A list comes with commas: the kernel's command line ends words at blanks.
# shellcheck disable=SC2046 # several words
./check $(for test in $(echo "$EXCLUDE" | tr , " "); do echo "-x $test"; done) $(echo "$TESTS" | tr , " ") 2>&1
for file in results/*/block/*.dmesg results/*/*/block/*.dmesg results/*/block/*.out.bad; do
    [ ! -e "$file" ] || { echo "== $file"; tail -n 60 "$file"; }
done
echo "guest: end"
poweroff -f
