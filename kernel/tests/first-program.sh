#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The first program of a test's guest: runs the script that the kernel's command line names behind "test=", words parted by commas, and ends the guest.
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
mount -t tmpfs none /tmp
mount -t debugfs none /sys/kernel/debug
mount -t configfs none /sys/kernel/config
test=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^test=//p' | tr ',' ' ')
# shellcheck disable=SC2086 # a script and its arguments
if sh /tests/$test; then echo "guest: passed"; else echo "guest: failed"; fi
sync
# QEMU is told not to start again: its machine has no power to switch off. User-Mode Linux would.
if grep -q 'User Mode Linux' /proc/cpuinfo; then poweroff -f; else reboot -f; fi
