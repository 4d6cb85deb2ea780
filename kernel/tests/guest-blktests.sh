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
for module in planewise-pass planewise-piq planewise-weave; do modprobe $module; done
truncate -s 512M /dev/shm/drive
losetup /dev/loop0 /dev/shm/drive
echo "$MODULE" >/sys/block/loop0/queue/scheduler
cat /sys/block/loop0/queue/scheduler
cd /mnt/blktests || exit 1
printf '%s\n' 'TEST_DEVS=(/dev/loop0)' TIMEOUT=20 >config
# shellcheck disable=SC2086 # several
./check $TESTS 2>&1
for file in results/*/block/*.dmesg results/*/*/block/*.dmesg results/*/block/*.out.bad; do
    [ ! -e "$file" ] || { echo "== $file"; tail -n 60 "$file"; }
done
grep -qF "[$MODULE]" /sys/block/loop0/queue/scheduler && echo "still: $MODULE"
if ! ls -d results/*/* >/dev/null 2>&1 || ls -R results | grep -q '\.dmesg$\|\.out\.bad$'; then echo "guest: failed"; else echo "guest: passed"; fi
poweroff -f
