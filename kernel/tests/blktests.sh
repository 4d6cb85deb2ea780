#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The block group of blktests, with the modules among the schedulers and one of them on the drive under test, in the kernel um-debug:
# BLKTESTS=CHECKOUT kernel/tests/blktests.sh. It is in no Debian archive: a checkout that has been built (make) is needed. Its tests read this machine's
# programs and write nothing on it. MODULES (planewise-pass planewise-piq planewise-weave), TESTS (block), LIMIT (3000) seconds for each module.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
if [ -z "${BLKTESTS:-}" ]; then
    echo "kernel/tests: blktests: BLKTESTS names no checkout: skipped"
    exit 0
fi
blktests=$(cd "$BLKTESTS" && pwd)
[ -x "$blktests/src/openclose" ] || { echo "kernel/tests: $BLKTESTS has not been built (make -C $BLKTESTS)" >&2; exit 1; }
[ -d /lib/modules ] || { echo "kernel/tests: /lib/modules is missing: make it (mkdir), the guest shows its modules there" >&2; exit 1; }
command -v gawk >/dev/null || { echo "kernel/tests: gawk is missing (apt install gawk)" >&2; exit 1; }
"$here/debug-kernel.sh" um-debug
kernel=$root/target/kernels/um-debug
kernel/build.sh "$kernel" "$kernel/planewise" >/dev/null
installed=$kernel/installed
rm -rf "$installed"
make -s -C "$kernel" ARCH=um INSTALL_MOD_PATH="$installed" modules_install >/dev/null
cp "$kernel"/planewise/planewise-*.ko "$(echo "$installed"/lib/modules/*)/"
PATH=$PATH:/sbin:/usr/sbin depmod -b "$installed" "$(ls "$installed/lib/modules")"
mkdir -p "$kernel/blktests"
bad=0
for module in ${MODULES:-planewise-pass planewise-piq planewise-weave}; do
    log=$kernel/blktests/$module
    timeout --kill-after=10 "${LIMIT:-3000}" "$kernel/image" mem=1500M root=/dev/root rootfstype=hostfs rootflags=/ ro con=null con0=fd:0,fd:1 loglevel=4 \
        kasan_multi_shot panic=-1 oops=panic init="$here/guest-blktests.sh" BLKTESTS="$blktests" MODULE="$module" INSTALLED="$installed" TESTS="${TESTS:-block}" \
        <&- >"$log" 2>&1 || true
    passed=$(grep -c '\[.*passed' "$log" || true)
    failed=$(grep -c '\[.*failed' "$log" || true)
    skipped=$(grep -c '\[.*not run' "$log" || true)
    echo "kernel/tests: blktests: $module: $passed passed, $failed failed, $skipped not run"
    grep '\[.*failed' "$log" || true
    { [ "$passed" -gt 0 ] && grep -q '^guest: passed' "$log"; } || { echo "kernel/tests: blktests: $module: the log is $log" >&2; bad=1; }
done
exit $bad
