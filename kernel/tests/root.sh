#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes the root of a test's guest: kernel/tests/root.sh KERNEL MODULES. KERNEL is a name of debug-kernel.sh, MODULES the directory of planewise-*.ko for it.
# What a guest has is an archive that its kernel unpacks into memory: busybox, fio, dmsetup, sg_raw, the modules, and the tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
kernel=$root/target/kernels/$1
modules=$2
tree=$kernel/root
missing() { echo "kernel/tests: $1 is missing (apt install $2)" >&2; exit 1; }
# found NAME PACKAGE: where the program is; those of administrators are not in everybody's path.
found() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" || missing "$1" "$2"; }
busybox=$(found busybox busybox-static)
found cpio cpio >/dev/null
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/modules" "$tree/tests" "$tree/proc" "$tree/sys" "$tree/dev" "$tree/tmp" "$tree/run" "$tree/etc" "$tree/mnt"
# take PROGRAM: it and the libraries that it loads.
take() {
    cp -L "$1" "$tree/bin/"
    # A program without libraries has none to list.
    { ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
        [ -f "$tree$library" ] || { mkdir -p "$tree$(dirname "$library")"; cp -L "$library" "$tree$library"; }
    done
}
take "$busybox"
for applet in $("$busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"; done
for program in "fio fio" "dmsetup dmsetup" "sg_raw sg3-utils" "mkfs.ext4 e2fsprogs"; do
    # shellcheck disable=SC2086 # a name and a package
    set -- $program
    path=$(found "$1" "$2")
    rm -f "$tree/bin/$1"
    take "$path"
done
cc -O2 -static -o "$tree/bin/load" "$here/load.c"
cc -O2 -static -o "$tree/bin/load-module" "$here/load-module.c"
cp "$kernel/drivers/block/null_blk/null_blk.ko" "$kernel/drivers/scsi/scsi_debug.ko" "$modules"/planewise-*.ko "$tree/modules/"
cp "$here"/guest*.sh "$tree/tests/"
cp "$here/first-program.sh" "$tree/init"
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc -R 0:0 --quiet) >"$kernel/root.cpio.new"
mv "$kernel/root.cpio.new" "$kernel/root.cpio"
rm -rf "$tree"
