#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes target/planewise-schedulers-dkms_VERSION_all.deb: the modules' source, built by DKMS for every kernel whose headers and source are installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
name=planewise-schedulers
command -v dpkg-deb >/dev/null || { echo "make kernel-deb: dpkg-deb is missing (a Debian system is needed: apt install dpkg)" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
[ -n "$version" ] || { echo "make kernel-deb: Cargo.toml has no version" >&2; exit 1; }
tree=$root/target/kernel-deb
deb=$root/target/${name}-dkms_${version}_all.deb
rm -rf "$tree"
mkdir -p "$tree/DEBIAN" "$tree/usr/src/$name-$version" "$tree/usr/share/doc/$name-dkms"
cp -pr "$here/core" "$here/Kbuild" "$here/build.sh" "$here/block-headers.sh" "$here"/*.c "$here"/*.h "$tree/usr/src/$name-$version/"
sed "s/@VERSION@/$version/" "$here/debian/dkms.conf" >"$tree/usr/src/$name-$version/dkms.conf"
for script in postinst prerm; do
    sed "s/@VERSION@/$version/" "$here/debian/$script" >"$tree/DEBIAN/$script"
    chmod 755 "$tree/DEBIAN/$script"
done
cp "$here/debian/triggers" "$tree/DEBIAN/triggers"
cp "$here/LICENSE" "$tree/usr/share/doc/$name-dkms/copyright"
sed "s/@VERSION@/$version/; s/@SIZE@/$(du -sk "$tree/usr" | cut -f 1)/" "$here/debian/control" >"$tree/DEBIAN/control"
chmod -R u=rwX,go=rX "$tree"
# The same sources are the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}
export SOURCE_DATE_EPOCH
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$deb" >/dev/null
rm -rf "$tree"
echo "make kernel-deb: ${deb#"$root/"}, $(wc -c <"$deb") bytes"
