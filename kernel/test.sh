#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds the modules for the kernel of `planewise linux` and runs guest-check.sh in it: kernel/test.sh [PROGRAM].
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
program=${1:-target/edit/planewise}
command -v fio >/dev/null || { echo "make test-kernel: fio is missing (apt install fio)" >&2; exit 1; }
kernel/build.sh target/linux/source
cp kernel/guest-check.sh target/kernel/
for module in target/kernel/planewise-*.ko; do
    "$program" linux --quiet --root / --file-system none --share target/kernel --kernel target/linux --out target/kernel/run --force --check -- \
        sh /run/share/guest-check.sh "$(basename "$module" .ko)"
done
