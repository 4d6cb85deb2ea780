#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds the modules against a kernel's configured and built source: kernel/build.sh KERNEL [OUTPUT]. What the kernel has is found by compiling it, never by
# its version: distributions move interfaces between versions.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernel=${1:-/lib/modules/$(uname -r)/build}
root=$(dirname "$here")
output=${2:-$root/target/kernel}
mkdir -p "$output"
output=$(cd "$output" && pwd)
[ -d "$kernel" ] || { echo "make kernel: no kernel at $kernel (make kernel KERNEL=path of a built source)" >&2; exit 1; }
kernel=$(cd "$kernel" && pwd)
[ -f "$kernel/Module.symvers" ] || { echo "make kernel: $kernel is not built (no Module.symvers)" >&2; exit 1; }
# What modules carry: packages of headers have another word for it in include/config/kernel.release.
release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' "$kernel/include/generated/utsrelease.h")
# User-Mode Linux calls itself a machine of its own.
arch=${ARCH:-$(grep -q '^CONFIG_UML=y' "$kernel/include/config/auto.conf" && echo ARCH=um || true)}
case $arch in ?*=*) ;; ?*) arch=ARCH=$arch ;; esac
rm -rf "$output/probes"
mkdir -p "$output/probes" "$output/modules"
# Where the kernel's own are not, as in packages of headers, they are those of Debian's package of the source.
block=$kernel/block
if [ ! -f "$block/elevator.h" ]; then
    block=$output/block
    "$here/block-headers.sh" "$kernel" "$block"
fi

# probe NAME 'what compiles where the kernel has it'
names=
probe() {
    names="$names $1"
    printf '%s\n' '#include <linux/blkdev.h>' '#include <linux/blk-mq.h>' '#include <linux/hrtimer.h>' '#include "elevator.h"' '#include "blk-mq.h"' \
        '#include "blk-mq-sched.h"' "$2" >"$output/probes/$1.c"
}
probe BASE 'int planewise_probe(struct request_queue *q, struct bio *bio, struct request **rq);
int planewise_probe(struct request_queue *q, struct bio *bio, struct request **rq) { return blk_mq_sched_try_merge(q, bio, 1, rq); }'
probe INSERT_TAKES_FLAGS 'static void f(struct blk_mq_hw_ctx *h, struct list_head *l, blk_insert_t b) { }
struct elevator_mq_ops planewise_probe = { .insert_requests = f };'
probe INIT_SCHED_TAKES_QUEUE 'static int f(struct request_queue *q, struct elevator_queue *e) { return 0; }
struct elevator_mq_ops planewise_probe = { .init_sched = f };'
probe DEPTH_UPDATED_TAKES_QUEUE 'static void f(struct request_queue *q) { }
struct elevator_mq_ops planewise_probe = { .depth_updated = f };'
probe HAS_HRTIMER_SETUP 'void *planewise_probe = hrtimer_setup;'
{
    for name in $names; do echo "obj-m += $name.o"; done
    echo "ccflags-y := -I$block -Werror=incompatible-pointer-types"
} >"$output/probes/Kbuild"
# shellcheck disable=SC2086 # one word or none
make -k -s -C "$kernel" $arch M="$output/probes" $(for name in $names; do echo "$name.o"; done) >"$output/probes/log" 2>&1 || true
[ -f "$output/probes/BASE.o" ] || {
    grep -v "^make" "$output/probes/log" | head -n 20 >&2
    echo "make kernel: nothing compiles against $kernel: the log is $output/probes/log" >&2
    exit 1
}
{
    echo "/* Made by kernel/build.sh for $release. */"
    for name in $names; do
        if [ -f "$output/probes/$name.o" ]; then echo "#define PLANEWISE_$name 1"; fi
    done
} >"$output/planewise-config.h"
cp -pr "$here/core" "$here/Kbuild" "$here"/*.c "$here"/*.h "$output/modules/"
cmp -s "$output/planewise-config.h" "$output/modules/planewise-config.h" || cp "$output/planewise-config.h" "$output/modules/"
# shellcheck disable=SC2086
make -s -C "$kernel" $arch M="$output/modules" PLANEWISE_BLOCK="$block" modules
for module in "$output"/modules/planewise-*.ko; do
    cp "$module" "$output/"
    echo "make kernel: ${output#"$root/"}/$(basename "$module") for $release"
done
