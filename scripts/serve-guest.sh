#!/usr/bin/env bash
# Boots a Linux guest on a served drive, under QEMU without hardware support: ext4 on vhost-user, then the kernel's own NBD client inside the guest.
#
#   scripts/serve-guest.sh KERNEL_PACKAGE_TREE [PLANEWISE]
#
# KERNEL_PACKAGE_TREE is what a package of a Debian kernel holds, for instance
#   apt-get download linux-image-cloud-amd64's package && dpkg-deb -x linux-image-*.deb tree
# PLANEWISE is the program (default: target/release/planewise). Takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(realpath "${1:?the tree of a kernel package: see the head of this script}")
planewise=$(realpath "${2:-target/release/planewise}")
for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio nbd-client:nbd-client mkfs.ext4:e2fsprogs; do
  command -v "${tool%:*}" >/dev/null || { echo "${tool%:*} is missing: apt install ${tool#*:}" >&2; exit 1; }
done
kernel=$(echo "$tree"/boot/vmlinuz-*)
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill -INT "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

# An initial file system: busybox, mke2fs, the program, the NBD client, their libraries, the modules, and what to do.
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,mnt,tmp,modules}
cp "$(command -v busybox)" "$root/bin/busybox"
programs=("$planewise" "$(command -v nbd-client)" "$(command -v mkfs.ext4)")
cp -L "${programs[@]}" "$root/bin/"
for library in $(ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
  mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
done
modules=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk nbd)
for module in "${modules[@]}"; do
  found=$(find "$tree/lib/modules" -name "$module.ko" | head -n 1)
  # Those that are none are in the kernel itself.
  test -z "$found" || cp "$found" "$root/modules/"
done
cat > "$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox mkdir -p /usr/bin /usr/sbin /sbin
/bin/busybox --install -s
export PATH=/bin:/usr/bin:/usr/sbin:/sbin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
ip link set lo up
for module in ${modules[*]}; do test ! -f /modules/\$module.ko || insmod /modules/\$module.ko; done
try() {
  dd if=/dev/urandom of=/tmp/data bs=1M count=2 2>/dev/null
  /bin/mkfs.ext4 -F -q \$1 && mount -t ext4 \$1 /mnt && cp /tmp/data /mnt/data && sync && umount /mnt &&
    mount -t ext4 \$1 /mnt && cmp /tmp/data /mnt/data && umount /mnt && echo "GUEST \$2: kept"
}
try /dev/vda vhost-user
cd /tmp
/bin/planewise serve --device ssd1 --size 64m --backing /tmp/disk.img --socket /tmp/s --dilate 10 --quiet > /tmp/said &
server=\$!
until /bin/nbd-client -unix /tmp/s -name planewise /dev/nbd0 2>/dev/null; do sleep 1; done
try /dev/nbd0 nbd
/bin/nbd-client -d /dev/nbd0
kill -INT \$server; wait \$server
grep lateness /tmp/said
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$work/initrd"

"$planewise" serve --device ssd1 --size 64m --front vhost-user --socket "$work/socket" --out "$work/out" --quiet > "$work/said" &
server=$!
until test -S "$work/socket"; do sleep 0.1; done
timeout 300 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 2 -nographic -no-reboot \
  -object memory-backend-memfd,id=mem,size=1024m,share=on -machine q35,memory-backend=mem \
  -chardev "socket,id=drive,path=$work/socket" -device vhost-user-blk-pci,chardev=drive \
  -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" < /dev/null > "$work/console" 2>&1 || true
kill -INT "$server"
wait "$server"
server=
grep -a lateness "$work/said" "$work/console" | sed 's/^[^:]*://'
for front in vhost-user nbd; do
  grep -aq "GUEST $front: kept" "$work/console" || { cat "$work/console" >&2; echo "$front: failed" >&2; exit 1; }
  echo "$front: an ext4 was made, filled, mounted again and compared"
done
