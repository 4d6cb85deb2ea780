#!/bin/sh
# Builds the kernel for `planewise linux`: Debian's source of 6.12 as User-Mode Linux. Once; about ten minutes of processor time.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
source=${LINUX_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
build=$root/target/linux
missing() { echo "make linux: $1 is missing (apt install $2)" >&2; exit 1; }
[ -f "$source" ] || missing "$source" linux-source-6.12
for tool in flex bison bc gcc make patch xz; do
    command -v "$tool" >/dev/null || missing "$tool" "$([ "$tool" = xz ] && echo xz-utils || echo "$tool")"
done
for header in libelf.h; do
    [ -f "/usr/include/$header" ] || missing "$header" libelf-dev
done
# The script itself does not count: a changed message is no other kernel.
stamp=$(cat "$root/linux/kernel.config" "$root/linux/fixed-random.c" "$root/linux/init.c" "$root"/linux/patches/*.patch "$source" | cksum | tr ' ' -)
if [ -f "$build/kernel" ] && [ "$(cat "$build/stamp" 2>/dev/null)" = "$stamp" ]; then
    echo "make linux: target/linux/kernel is up to date"
    exit 0
fi
mkdir -p "$build"
patches=$(cat "$root"/linux/patches/*.patch "$source" | cksum | tr ' ' -)
if [ "$(cat "$build/source/.patches" 2>/dev/null)" != "$patches" ]; then
    echo "make linux: unpacking $(basename "$source")"
    rm -rf "$build/source" "$build/source.new"
    mkdir "$build/source.new"
    tar -xf "$source" -C "$build/source.new" --strip-components=1
    for patch in "$root"/linux/patches/*.patch; do
        patch -s -p1 -d "$build/source.new" <"$patch"
    done
    echo "$patches" >"$build/source.new/.patches"
    mv "$build/source.new" "$build/source"
fi
cd "$build/source"
make -s ARCH=um defconfig
./scripts/kconfig/merge_config.sh -m .config "$root/linux/kernel.config" >/dev/null
make -s ARCH=um olddefconfig
# What was asked for and is not there would show only later.
grep -v '^#' "$root/linux/kernel.config" | while read -r line; do
    case $line in
        "" | *=n) ;;
        *) grep -qx "$line" .config || { echo "make linux: the kernel has no $line" >&2; exit 1; } ;;
    esac
done
echo "make linux: building with $(nproc) processes (about 9 minutes of processor time), log in target/linux/log"
# The same sources are the same kernel.
export KBUILD_BUILD_TIMESTAMP='2023-11-14 22:13:20' KBUILD_BUILD_USER=planewise KBUILD_BUILD_HOST=planewise KBUILD_BUILD_VERSION=1
make ARCH=um -j"$(nproc)" linux modules >"$build/log" 2>&1 &
compiler=$!
trap 'kill $compiler 2>/dev/null' INT TERM
seconds=0
while kill -0 $compiler 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    [ $((seconds % 15)) -eq 0 ] || continue
    echo "make linux: $(grep -c '^  *\(CC\|AS\|LD\|AR\)' "$build/log" || true) files of about 2300"
done
wait $compiler || { tail -n 20 "$build/log" >&2; exit 1; }
# Names of functions stay: they are what says where a kernel hangs.
objcopy --strip-debug linux "$build/kernel"
cc -O2 -static -o "$build/init" "$root/linux/init.c"
cc -O2 -shared -fPIC -o "$build/fixed-random.so" "$root/linux/fixed-random.c"
echo "$stamp" >"$build/stamp"
echo "make linux: target/linux/kernel, $(wc -c <"$build/kernel") bytes"
