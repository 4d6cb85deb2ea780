#!/bin/sh
# Makes the tree that programs of `planewise linux` see as their root: Debian 12 with what recipes need, in target/linux-root. It does not change
# afterwards, and so results do not either; what programs write in it stays in the guest's memory.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tree=$root/target/linux-root
packages=sysbench,fio,postgresql,postgresql-contrib,mariadb-server,sqlite3,e2fsprogs,xfsprogs,f2fs-tools,git,mdadm,util-linux,procps
stamp=$(echo "$packages" | cat - "$root/linux/root.sh" | cksum | tr ' ' -)
if [ "$(cat "$tree/.planewise" 2>/dev/null)" = "$stamp" ]; then
    echo "make linux-root: target/linux-root is up to date"
    exit 0
fi
command -v mmdebstrap >/dev/null || { echo "make linux-root: mmdebstrap is missing (apt install mmdebstrap)" >&2; exit 1; }
mkdir -p "$root/target"
rm -rf "$tree.new"
echo "make linux-root: installing $(echo $packages | tr ',' ' ') into target/linux-root (about 1 GB), log in target/linux-root.log"
# Nobody starts servers in a tree that is being made, and what packages leave in caches and logs is different every time.
mmdebstrap --variant=minbase --include="$packages" --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --essential-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"' \
    --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/* "$1"/var/lib/mysql/* "$1"/var/lib/postgresql/*/main' \
    bookworm "$tree.new" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$root/target/linux-root.log" 2>&1 || {
    tail -n 5 "$root/target/linux-root.log" >&2
    exit 1
}
echo "$stamp" >"$tree.new/.planewise"
rm -rf "$tree"
mv "$tree.new" "$tree"
echo "make linux-root: target/linux-root, $(du -sh "$tree" | cut -f 1)"
