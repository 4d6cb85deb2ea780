#!/bin/sh
# Builds the kernel for `planewise linux`: Debian's source of 6.12 as User-Mode Linux. Once; about ten minutes of processor time.
# Another kernel: LINUX_SOURCE names its archive, LINUX_BUILD the folder for it, LINUX_CONFIG a file of settings to add. What it has not, it does without.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
source=${LINUX_SOURCE:-/usr/src/linux-source-6.12.tar.xz}
build=${LINUX_BUILD:-$root/target/linux}
more=${LINUX_CONFIG:-}
said=${build#"$root/"}
# Only the kernel that all results come from has to be exactly what was asked for.
lacks() { echo "make linux: $1" >&2; [ -n "${LINUX_BUILD:-}" ] || exit 1; }
missing() { echo "make linux: $1 is missing (apt install $2)" >&2; exit 1; }
[ -f "$source" ] || missing "$source" "$(basename "$source" .tar.xz)"
for tool in flex bison bc gcc make patch xz; do
    command -v "$tool" >/dev/null || missing "$tool" "$([ "$tool" = xz ] && echo xz-utils || echo "$tool")"
done
for header in libelf.h; do
    [ -f "/usr/include/$header" ] || missing "$header" libelf-dev
done
# The script itself does not count: a changed message is no other kernel.
# shellcheck disable=SC2086 # one file or none
stamp=$(cat "$root/linux/kernel.config" $more "$root/linux/fixed-random.c" "$root/linux/init.c" "$root"/linux/patches/*.patch "$source" | cksum | tr ' ' -)
if [ -f "$build/kernel" ] && [ "$(cat "$build/stamp" 2>/dev/null)" = "$stamp" ]; then
    echo "make linux: $said/kernel is up to date"
    exit 0
fi
mkdir -p "$build"
patches=$(cat "$root"/linux/patches/*.patch "$source" | cksum | tr ' ' -)
if [ "$(cat "$build/source/.patches" 2>/dev/null)" != "$patches" ]; then
    echo "make linux: unpacking $(basename "$source")"
    rm -rf "$build/source" "$build/source.new"
    mkdir "$build/source.new"
    # A quarter of all that is unpacked, and read by no build for this machine.
    tar -xf "$source" -C "$build/source.new" --strip-components=1 --exclude='*/drivers/gpu/drm/amd/include'
    for patch in "$root"/linux/patches/*.patch; do
        if patch -s -p1 --dry-run -d "$build/source.new" <"$patch" >/dev/null; then
            patch -s -p1 -d "$build/source.new" <"$patch"
        else
            lacks "$(basename "$patch") does not apply to $(basename "$source")"
        fi
    done
    echo "$patches" >"$build/source.new/.patches"
    mv "$build/source.new" "$build/source"
fi
cd "$build/source"
make -s ARCH=um defconfig
# shellcheck disable=SC2086 # one file or none
./scripts/kconfig/merge_config.sh -m .config "$root/linux/kernel.config" $more >/dev/null
make -s ARCH=um olddefconfig
# What was asked for and is not there would show only later.
# shellcheck disable=SC2086 # one file or none
cat "$root/linux/kernel.config" $more | grep -v '^#' | while read -r line; do
    case $line in
        "" | *=n) ;;
        *) grep -qx "$line" .config || lacks "the kernel has no $line" ;;
    esac
done
echo "make linux: building with $(nproc) processes (about 9 minutes of processor time), log in $said/log"
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
echo "make linux: $said/kernel, $(wc -c <"$build/kernel") bytes"
