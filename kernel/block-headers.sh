#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The block layer's own headers for a kernel of Debian's: kernel/block-headers.sh KERNEL OUTPUT. A package of headers (KERNEL, as /lib/modules/*/build) has
# none of them, the package of the source has: OUTPUT gets its block/*.h, when it is the source of the same version.
# Without OUTPUT it only says what is missing, as far as that is known without unpacking the source.
# BLOCK_SOURCE names an archive or an unpacked source to use in place of those in /usr/src.
set -eu
kernel=$1
output=${2:-}
fail() { echo "planewise: $*" >&2; exit 1; }
# Packages name the ABI, not the version; the version stands in the makefile that the headers' own includes.
makefile=$kernel/Makefile
common=$(sed -n 's/^include \(.*\)\/Makefile$/\1/p' "$makefile")
[ -z "$common" ] || makefile=$common/Makefile
version_of() { awk '/^(VERSION|PATCHLEVEL|SUBLEVEL) = / { all = all dot $3; dot = "." } /^EXTRAVERSION =/ { print all $3; exit }'; }
version=$(version_of <"$makefile")
[ -n "$version" ] || fail "$makefile does not say which version it is of"
series=$(echo "$version" | cut -d . -f 1,2)
source=${BLOCK_SOURCE:-}
if [ -z "$source" ]; then
    for source in /usr/src/linux-source-"$series".tar.xz /usr/src/linux-source-"$series" ""; do
        [ ! -e "$source" ] || break
    done
    [ -n "$source" ] || fail "the block layer's headers of $version are in no package of headers: the kernel's source is needed (apt install linux-source-$series)"
fi
[ -e "$source" ] || fail "$source is not there"
if [ -z "$output" ]; then
    installed=$(dpkg-query -W -f '${Version}' "linux-source-$series" 2>/dev/null || true)
    # The archive's own makefile has the last word. Backports and the like have more behind the first - or ~.
    case $installed in
        "" | "$version"[-~+]* | "${version%.0}"[-~+]*) exit 0 ;;
        *) fail "linux-source-$series is of $installed, the kernel's headers are of $version: both have to be of one version" ;;
    esac
fi
rm -rf "$output"
mkdir -p "$output/all"
# What both packages have shows that they are of one source: the same file, not a version that somebody wrote.
public='include/linux/blk-mq.h include/linux/blkdev.h include/linux/blk_types.h'
if [ -d "$source" ]; then
    # shellcheck disable=SC2086 # several names
    (cd "$source" && tar -cf - Makefile block/*.h $public) | tar -xf - -C "$output/all"
else
    command -v xz >/dev/null || fail "xz is missing (apt install xz-utils)"
    tar -xf "$source" -C "$output/all" --strip-components=1 --anchored --wildcards --no-wildcards-match-slash \
        '*/Makefile' '*/block/*.h' '*/include/linux/blk-mq.h' '*/include/linux/blkdev.h' '*/include/linux/blk_types.h'
fi
found=$(version_of <"$output/all/Makefile")
[ "$found" = "$version" ] || fail "$source is of $found, the kernel's headers are of $version: both have to be of one version (apt install linux-source-$series)"
for header in $public; do
    cmp -s "$output/all/$header" "${makefile%/Makefile}/$header" || fail "$header of $source is another than that of $kernel: both have to be of one version"
done
mv "$output"/all/block/*.h "$output/"
rm -r "$output/all"
