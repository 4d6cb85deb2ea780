#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds a small kernel to test the modules in, once: kernel/tests/debug-kernel.sh NAME. Its objects are target/kernels/NAME, the program to boot
# is target/kernels/NAME/image. NAME is one of
#   um-debug    User-Mode Linux with KASAN, lockdep, kmemleak and fault injection
#   um-blktests the same with what blktests asks for
#   x86-debug   the same for QEMU, with several processors
#   x86-kcsan   for QEMU, with KCSAN
#   x86-plain   for QEMU, to measure
#   x86-lockstat for QEMU, which counts how processors wait for each other
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
name=$1
archive=${LINUX_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
source=$root/target/kernels/source-6.12
output=$root/target/kernels/$name
say() { echo "kernel/tests: $*"; }
missing() { echo "kernel/tests: $1 is missing (apt install $2)" >&2; exit 1; }
case $name in
um-debug) arch=um parts='base um debug' image=linux ;;
um-blktests) arch=um parts='base um debug blktests' image=linux ;;
x86-debug) arch=x86_64 parts='base x86 debug' image=arch/x86/boot/bzImage ;;
x86-kcsan) arch=x86_64 parts='base x86 kcsan' image=arch/x86/boot/bzImage ;;
x86-plain) arch=x86_64 parts='base x86' image=arch/x86/boot/bzImage ;;
x86-lockstat) arch=x86_64 parts='base x86 lockstat' image=arch/x86/boot/bzImage ;;
*) echo "kernel/tests: no kernel $name: um-debug, um-blktests, x86-debug, x86-kcsan, x86-plain or x86-lockstat" >&2; exit 1 ;;
esac
[ -f "$archive" ] || missing "$archive" linux-source-6.12
for tool in flex bison bc gcc make xz; do
    command -v "$tool" >/dev/null || missing "$tool" "$([ "$tool" = xz ] && echo xz-utils || echo "$tool")"
done
[ -f /usr/include/libelf.h ] || missing libelf.h libelf-dev
configs=
for part in $parts; do configs="$configs $here/$part.config"; done
# shellcheck disable=SC2086 # several files
stamp=$(cat $configs "$archive" | cksum | tr ' ' -)
[ "$(cat "$output/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
# Pristine, for builds elsewhere: one source for all, which two may want at a time.
mkdir -p "$root/target/kernels"
(
    flock 9
    if [ ! -d "$source" ]; then
        rm -rf "$source.new"
        mkdir -p "$source.new"
        tar -xf "$archive" -C "$source.new" --strip-components=1
        mv "$source.new" "$source"
    fi
) 9>"$source.lock"
mkdir -p "$output"
began=$(date +%s)
# shellcheck disable=SC2086
cat $configs >"$output/wanted"
make -s -C "$source" O="$output" ARCH=$arch KCONFIG_ALLCONFIG="$output/wanted" allnoconfig >"$output/log" 2>&1 || { tail -n 20 "$output/log" >&2; exit 1; }
# What was asked for and is not there would show only later.
grep -v '^#' "$output/wanted" | while read -r line; do
    case $line in
    "") ;;
    *=n) ! grep -qx "${line%n}[ym]" "$output/.config" || { echo "kernel/tests: $name: $line does not hold" >&2; exit 1; } ;;
    *) grep -qx "$line" "$output/.config" || { echo "kernel/tests: $name: the kernel has no $line" >&2; exit 1; } ;;
    esac
done
say "$name: building with $(nproc) processes, log in target/kernels/$name/log"
make -C "$source" O="$output" ARCH=$arch -j"$(nproc)" "$(basename "$image")" modules >>"$output/log" 2>&1 || { grep -B 2 -A 5 'error\|Error' "$output/log" | tail -n 20 >&2; exit 1; }
cp "$output/$image" "$output/image"
# Modules are built against it as against a source, with the block layer's own declarations beside its objects.
ln -sf "$source"/block/*.h "$output/block/"
echo "$stamp" >"$output/stamp"
say "$name: built in $(($(date +%s) - began)) s"
