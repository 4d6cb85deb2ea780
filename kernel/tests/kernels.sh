#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The modules in kernels of Debian's own: kernel/tests/kernels.sh [SUITE:SERIES...], such as bookworm:6.1 trixie:7.3 (with backports and security updates).
#
# Makes a Debian of each suite with the kernels' headers and sources, installs the package of `make kernel-deb` in it, which builds the modules, starts
# each kernel on two emulated processors with guest-check.sh on a virtio and on a null_blk drive, and asserts that the package leaves nothing when it goes.
# Needs root (chroot). WRITES and REQUESTS are how much work there is, DISKS on which of vda and nullb0, ACCEL=kvm emulates nothing where that is to be had. What comes from the archive is kept in target/kernels: remove that to see newer kernels.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
all=$root/target/kernels
name=planewise-schedulers
disks=${DISKS:-vda nullb0}
fail() { echo "kernels.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing (apt install $2)"; }
need mmdebstrap mmdebstrap
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need fio fio
need mkfs.ext4 e2fsprogs
need modprobe kmod
need cpio cpio
need xz xz-utils
[ "$(id -u)" = 0 ] || fail "root is needed: the package is installed in a chroot"
ldd "$(command -v busybox)" >/dev/null 2>&1 && fail "busybox is not static (apt install busybox-static)"
[ $# -gt 0 ] || set -- bookworm:6.1 trixie:6.12 trixie:7.2 trixie:7.3

# inside TREE COMMAND...: with its own /proc and /dev, which end with it.
inside() {
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m sh -eu -c 'tree=$1; shift
        mount -t proc proc "$tree/proc"
        mount -t tmpfs tmpfs "$tree/dev"
        for device in null zero urandom; do touch "$tree/dev/$device"; mount --bind "/dev/$device" "$tree/dev/$device"; done
        ln -s /proc/self/fd "$tree/dev/fd"
        exec chroot "$tree" env LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"' - "$@"
}
# What the archive calls the kernel of a series: that of the same version as the source.
kernel_of() {
    inside "$1" sh -eu -c '
        version=$(apt-cache policy "linux-source-$1" | sed -n "s/^  Candidate: //p")
        apt-cache search --names-only "^linux-headers-$1[.0-9a-z+~-]*-amd64\$" | cut -d " " -f 1 | grep -v -e -rt- -e -cloud- | while read -r package; do
            if apt-cache show "$package" | grep -qxF "Version: $version"; then echo "${package#linux-headers-}"; break; fi
        done' - "$2"
}
# A Debian of a suite, with headers and sources, and the kernels themselves beside it, where nothing is run that they bring.
prepare() {
    suite=$1; shift
    tree=$all/$suite
    [ -f "$tree/.planewise" ] || {
        echo "kernels.sh: installing $suite into target/kernels/$suite"
        rm -rf "$tree"
        mkdir -p "$all"
        mmdebstrap --mode=root --variant=minbase "$suite" "$tree" - >"$all/log" 2>&1 <<SOURCES || fail "mmdebstrap: the log is target/kernels/log"
deb http://deb.debian.org/debian $suite main
deb http://deb.debian.org/debian $suite-updates main
deb http://deb.debian.org/debian $suite-backports main
deb http://deb.debian.org/debian-security $suite-security main
SOURCES
        inside "$tree" apt-get -q update >>"$all/log" 2>&1 || fail "apt-get update: the log is target/kernels/log"
        touch "$tree/.planewise"
    }
    for series in "$@"; do
        grep -q "^$series " "$tree/.planewise" && continue
        kernel=$(kernel_of "$tree" "$series")
        [ -n "$kernel" ] || fail "$suite has no linux-source-$series with headers of its version"
        echo "kernels.sh: headers, source and image of $kernel"
        inside "$tree" apt-get -q install -y --no-install-recommends "linux-headers-$kernel" "linux-source-$series" >>"$all/log" 2>&1 ||
            fail "apt-get install: the log is target/kernels/log"
        # From 7.x on the image is several packages.
        packages=$(inside "$tree" apt-cache search --names-only "^linux-(base|image|modules|binary)-$(echo "$kernel" | sed 's/[.+]/\\&/g')\$" | cut -d ' ' -f 1)
        # shellcheck disable=SC2086 # several names
        inside "$tree" sh -c 'cd /tmp && apt-get -q -o APT::Sandbox::User=root download "$@"' - $packages >>"$all/log" 2>&1 ||
            fail "apt-get download: the log is target/kernels/log"
        mkdir -p "$tree/image"
        for package in "$tree"/tmp/*.deb; do dpkg-deb -x "$package" "$tree/image"; rm "$package"; done
        echo "$series $kernel" >>"$tree/.planewise"
    done
}
# The first file system of a guest: what guest-check.sh calls, and the modules.
initramfs() {
    tree=$1 kernel=$2
    files=$all/$kernel.files
    rm -rf "$files"
    mkdir -p "$files/bin" "$files/run/share" "$files/modules" "$files/proc" "$files/sys" "$files/dev" "$files/tmp" "$files/etc"
    cp "$(command -v busybox)" "$files/bin/"
    for program in fio mkfs.ext4; do
        path=$(command -v $program)
        cp -L "$path" "$files/bin/"
        for library in $(ldd "$path" | grep -o '/[^ ]*'); do
            [ -e "$files$library" ] || { mkdir -p "$files$(dirname "$library")"; cp -L "$library" "$files$library"; }
        done
    done
    [ -d "$tree/image/lib/modules" ] || ln -sfn usr/lib "$tree/image/lib"
    depmod -b "$tree/image" "$kernel" || fail "$kernel: depmod"
    for module in virtio_pci virtio_blk null_blk ext4 crc32c_generic mq-deadline; do
        # A module that the kernel has in itself, or no more.
        modprobe -d "$tree/image" -S "$kernel" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p' | while read -r file; do
            base=$(basename "$file" .xz)
            [ -e "$files/modules/$base" ] || {
                case $file in *.xz) xz -dc "$file" ;; *) cat "$file" ;; esac >"$files/modules/$base"
                echo "$base" >>"$files/modules/list"
            }
        done
    done
    for module in pass piq weave; do
        file=$(find "$tree/lib/modules/$kernel/updates/dkms/" -name "planewise-$module.ko*")
        [ -n "$file" ] || fail "$kernel: DKMS has installed no planewise-$module"
        case $file in *.xz) xz -dc "$file" ;; *) cat "$file" ;; esac >"$files/run/share/planewise-$module.ko"
        magic=$(modinfo -F vermagic "$files/run/share/planewise-$module.ko")
        case $magic in "$kernel "*) ;; *) fail "planewise-$module for $kernel is of '$magic'" ;; esac
    done
    cp "$root/kernel/guest-check.sh" "$files/run/share/"
    cp "$root/kernel/tests/guest-init.sh" "$files/init"
    chmod 755 "$files/init"
    (cd "$files" && find . | cpio -o -H newc --quiet | gzip -1) >"$all/$kernel.initramfs"
    rm -rf "$files"
}
run() {
    tree=$1 kernel=$2
    initramfs "$tree" "$kernel"
    log=$all/$kernel.log
    drive=$all/$kernel.drive
    # Where it is depends on the packages.
    for program in "$tree/image/boot/vmlinuz-$kernel" "$tree/image/lib/modules/$kernel/vmlinuz"; do
        [ ! -f "$program" ] || break
    done
    rm -f "$drive"
    truncate -s 8G "$drive"
    # Short queues: requests have to wait in the scheduler. -cpu max: what the emulation has. The watchdogs allow for a slow emulation on a busy machine.
    timeout "${SECONDS_MAX:-1500}" qemu-system-x86_64 -M q35 -accel "${ACCEL:-tcg,thread=multi}" -cpu max -smp 2 -m 1536 -nographic -no-reboot -nic none \
        -kernel "$program" -initrd "$all/$kernel.initramfs" \
        -append "console=ttyS0 loglevel=5 panic=-1 oops=panic watchdog_thresh=60 WRITES=${WRITES:-8000} REQUESTS=${REQUESTS:-4000} DISKS=$(echo "$disks" | tr " " ,)" \
        -drive "if=none,id=drive,file=$drive,format=raw,cache=unsafe,discard=unmap" -device virtio-blk-pci,drive=drive,num-queues=2,queue-size=16 \
        >"$log" 2>&1 </dev/null || true
    rm -f "$drive" "$all/$kernel.initramfs"
    for drive in $disks; do
        for module in pass piq weave; do
            grep -q "^$drive: guest-check: ok: planewise-$module," "$log" || {
                tail -n 30 "$log" >&2
                fail "$kernel: planewise-$module on $drive did not end well: the log is target/kernels/$kernel.log"
            }
        done
    done
    if grep -E 'WARNING|BUG|Oops|Call Trace|INFO: task|blocked for|detected stall' "$log"; then fail "$kernel: the log is not clean"; fi
    echo "kernels.sh: $kernel: ok: $(grep -c 'guest-check: ok' "$log") checks on $(sed -n 's/^guest: \([0-9]*\) processors.*/\1/p' "$log") processors"
}

"$root/kernel/package.sh"
for suite in $(printf '%s\n' "$@" | cut -d : -f 1 | sort -u); do
    tree=$all/$suite
    # shellcheck disable=SC2046 # several names
    prepare "$suite" $(printf '%s\n' "$@" | sed -n "s/^$suite://p")
    cp "$root"/target/$name-dkms_*_all.deb "$tree/tmp/package.deb"
    # What a run that did not end has left would count as built.
    inside "$tree" apt-get -q purge -y $name-dkms >"$all/$suite.purge.log" 2>&1 || true
    echo "kernels.sh: installing the package in $suite"
    inside "$tree" apt-get -q install -y --no-install-recommends /tmp/package.deb >"$all/$suite.install.log" 2>&1 || {
        tail -n 20 "$all/$suite.install.log" >&2
        fail "the package does not install: the log is target/kernels/$suite.install.log"
    }
    for series in $(printf '%s\n' "$@" | sed -n "s/^$suite://p"); do
        run "$tree" "$(sed -n "s/^$series //p" "$tree/.planewise")"
    done
    # It goes as it came.
    inside "$tree" apt-get -q purge -y $name-dkms >"$all/$suite.purge.log" 2>&1 || fail "the package does not go: the log is target/kernels/$suite.purge.log"
    left=$(find "$tree/lib/modules" "$tree/usr/src" "$tree/usr/share/doc" "$tree/var/lib/dkms" -name '*planewise*' || true)
    [ -z "$left" ] || fail "the package has left: $left"
    echo "kernels.sh: $suite: the package came and went"
done
