#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The block group of blktests in the kernel um-blktests: BLKTESTS=CHECKOUT kernel/tests/blktests.sh. The modules are among the schedulers that its tests
# switch between, and one of them is set on the drive under test and, by udev, on each drive that a test makes. It is in no Debian archive: a checkout that has
# been built (make) is needed. Its tests read this machine's programs and write nothing on it. MODULES (planewise-pass planewise-piq planewise-weave; a
# scheduler of the kernel's too, to compare), TESTS (block), LIMIT (3000) seconds for each module, SECONDS_EACH (20) for a test that takes as long as it is told.
# EXCLUDE (block/028): not run; that one did not end within minutes, under mq-deadline neither. Tests that fail with mq-deadline as well are no fault of the modules: KNOWN names them.
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
for program in gawk fio blktrace; do
    command -v $program >/dev/null || { echo "kernel/tests: $program is missing (apt install $program)" >&2; exit 1; }
done
for program in "/lib/systemd/systemd-udevd udev" "/usr/sbin/mkfs.xfs xfsprogs" "/usr/sbin/xfs_io xfsprogs"; do
    [ -x "${program% *}" ] || { echo "kernel/tests: ${program% *} is missing (apt install ${program#* })" >&2; exit 1; }
done
"$here/debug-kernel.sh" um-blktests
kernel=$root/target/kernels/um-blktests
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
        kasan_multi_shot panic=-1 oops=panic init="$here/guest-blktests.sh" BLKTESTS="$blktests" MODULE="$module" INSTALLED="$installed" TESTS="$(echo "${TESTS:-block}" | tr " " ",")" \
        SECONDS_EACH="${SECONDS_EACH:-20}" EXCLUDE="$(echo "${EXCLUDE-block/028}" | tr " " ",")" \
        <&- >"$log" 2>&1 || true
    # A test that is run on a drive and without one has a line for each, and one more when it begins where nothing is known of it.
    tests() { sed 's/\x1b\[[0-9;]*[A-Za-z]//g' "$log" | tr -d '\r' | sed -n "s,^block/\([0-9]*\).*\[$1.*,\1,p" | sort -u; }
    failed=
    for test in $(tests failed); do
        case " ${KNOWN:-} " in *" $test "*) ;; *) failed="$failed $test" ;; esac
    done
    echo "kernel/tests: blktests: $module: $(tests passed | wc -l) passed, $(tests failed | wc -l) failed ($(echo $(tests failed))), $(tests 'not run' | wc -l) not run ($(echo $(tests 'not run')))"
    if [ -n "$failed" ] || [ -z "$(tests passed)" ] || ! grep -q '^guest: end' "$log"; then
        echo "kernel/tests: blktests: $module: failed:$failed; the log is $log"
        bad=1
    fi
done
exit $bad
