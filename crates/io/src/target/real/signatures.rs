//! What the first and the last bytes of a device say is on it.

/// Bytes of the beginning that are looked at: as far as ZFS keeps its labels.
pub const HEAD_BYTES: usize = 256 << 10;

/// Bytes of the end that are looked at: the backup of a GPT and the superblocks that RAID once kept there.
pub const TAIL_BYTES: usize = 256 << 10;

/// A mark at a fixed place of the beginning.
struct Mark {
    what: &'static str,
    offset: usize,
    bytes: &'static [u8],
}

/// From the on-disk formats' own documentation; numbers in the byte order that they are stored in.
const MARKS: [Mark; 49] = [
    mark("a GPT partition table", 512, b"EFI PART"),
    mark("a GPT partition table", 4096, b"EFI PART"),
    mark("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    mark("an XFS file system", 0, b"XFSB"),
    mark("a Btrfs file system", 65536 + 64, b"_BHRfS_M"),
    mark("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    mark("an EROFS file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    mark("a SquashFS file system", 0, b"hsqs"),
    mark("an ISO 9660 file system", 32769, b"CD001"),
    mark("a bcache or bcachefs volume", 4096 + 24, BCACHE),
    mark("a bcachefs file system", 4096 + 24, BCACHEFS),
    // The layout of its superblocks lies before the first.
    mark("a bcachefs file system", 3584, BCACHEFS),
    mark("an NTFS file system", 3, b"NTFS    "),
    mark("an exFAT file system", 3, b"EXFAT   "),
    mark("a FAT file system", 54, b"FAT1"),
    mark("a FAT file system", 82, b"FAT32"),
    mark("an LVM physical volume", 0, b"LABELONE"),
    mark("an LVM physical volume", 512, b"LABELONE"),
    mark("an LVM physical volume", 1024, b"LABELONE"),
    mark("an LVM physical volume", 1536, b"LABELONE"),
    mark("a member of a RAID array (md)", 0, MD),
    mark("a member of a RAID array (md)", 4096, MD),
    mark("swap space", 4086, b"SWAPSPACE2"),
    mark("swap space", 4086, b"SWAP-SPACE"),
    mark("swap space", 65526, b"SWAPSPACE2"),
    mark("a LUKS encrypted volume", 0, b"LUKS\xba\xbe"),
    mark("a LUKS encrypted volume", 16384, b"SKUL\xba\xbe"),
    mark("a dm-integrity volume", 0, b"integrt\0"),
    mark("a VDO volume", 0, b"dmvdo001"),
    mark("an Apple partition table", 512, b"PM\0\0"),
    mark("a BitLocker encrypted volume", 3, b"-FVE-FS-"),
    mark("an APFS container", 32, b"NXSB"),
    mark("a ReFS file system", 3, b"ReFS\0"),
    mark("an HFS+ file system", 1024, b"H+"),
    mark("an HFS+ file system", 1024, b"HX"),
    mark("an HFS file system", 1024, b"BD"),
    mark("a JFS file system", 32768, b"JFS1"),
    // Followed by Fs, 2Fs or 3Fs.
    mark("a ReiserFS file system", 65588, b"ReIsEr"),
    mark("a ReiserFS file system", 8244, b"ReIsEr"),
    mark("a ReiserFS file system", 8212, b"ReIsErFs"),
    mark("a Reiser4 file system", 65536, b"ReIsEr4"),
    mark("a NILFS2 file system", 1030, &[0x34, 0x34]),
    mark("an Oracle ASM disk", 32, b"ORCLDISK"),
    mark("a Ceph BlueStore device", 0, b"bluestore block device"),
    mark("an SQLite database", 0, b"SQLite format 3\0"),
    mark("a disk image (qcow2)", 0, b"QFI\xfb"),
    mark("a disk image (VMDK)", 0, b"KDMV"),
    mark("a disk image (VHDX)", 0, b"vhdxfile"),
    mark("a disk image (VDI)", 64, &[0x7f, 0x10, 0xda, 0xbe]),
];

const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const DDF: [u8; 4] = [0xde, 0x11, 0xde, 0x11];
const BCACHE: &[u8] =
    &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];

const BCACHEFS: &[u8] =
    &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef];

const fn mark(what: &'static str, offset: usize, bytes: &'static [u8]) -> Mark {
    Mark { what, offset, bytes }
}

/// What is on a device of `capacity` bytes with this beginning and this end, each thing once.
pub fn signatures(head: &[u8], tail: &[u8], capacity: u64) -> Vec<&'static str> {
    let has = |mark: &&Mark| {
        head.get(mark.offset..mark.offset + mark.bytes.len()).is_some_and(|found| found == mark.bytes)
    };
    let mut found: Vec<&'static str> = MARKS.iter().filter(has).map(|mark| mark.what).collect();
    if has_boot_record(head) {
        found.push("an MBR partition table");
    }
    let ends_with = |from_end: u64, bytes: &[u8]| {
        let start = (tail.len() as u64).checked_sub(from_end).map(|start| start as usize);
        start.and_then(|start| tail.get(start..start + bytes.len())).is_some_and(|found| found == bytes)
    };
    if ends_with(512, b"EFI PART") || ends_with(4096, b"EFI PART") {
        found.push("the backup of a GPT partition table");
    }
    // Superblocks 1.0 lie at least 8 KiB before the end at a multiple of 4 KiB, 0.90 at the last multiple of 64 KiB but one.
    let md_1_0 = capacity.saturating_sub(8192) & !4095;
    let md_0_90 = (capacity & !65535).saturating_sub(65536);
    if [md_1_0, md_0_90].iter().any(|&at| capacity >= 131_072 && ends_with(capacity - at, MD)) {
        found.push("a member of a RAID array (md)");
    }
    // Firmware RAID keeps its own in the last sectors: the last but one, and the last or its copy 256 before.
    if [512, 4096].iter().any(|sector| ends_with(2 * sector, b"Intel Raid ISM Cfg Sig")) {
        found.push("a member of a RAID array (Intel)");
    }
    if [512, 4096, 257 * 512].iter().any(|&at| ends_with(at, &DDF)) {
        found.push("a member of a RAID array (DDF)");
    }
    if has_udf(head) {
        found.push("a UDF file system");
    }
    if head.get(128 << 10..).is_some_and(has_uberblock) {
        found.push("a ZFS pool");
    }
    let mut once = Vec::new();
    found.into_iter().for_each(|what| {
        if !once.contains(&what) {
            once.push(what);
        }
    });
    once
}

/// An MBR has four entries of 16 bytes whose first byte is 0 or 0x80; the boot sector of a file system has code there.
fn has_boot_record(head: &[u8]) -> bool {
    let Some(sector) = head.get(..512) else { return false };
    let mut entries = sector[446..510].chunks_exact(16);
    sector[510..] == [0x55, 0xaa]
        && entries.clone().all(|entry| entry[0] & 0x7f == 0)
        && entries.any(|entry| entry[4] != 0)
}

/// UDF has descriptors from 32 KiB on, 2 KiB or a block apart, each with its name after one byte.
fn has_udf(head: &[u8]) -> bool {
    let descriptors = head.get(32768..).unwrap_or_default().chunks(2048);
    descriptors.take(64).any(|descriptor| descriptor.get(1..5).is_some_and(|name| name == b"NSR0"))
}

/// ZFS keeps a ring of uberblocks in each label, every 1 KiB or more apart.
fn has_uberblock(ring: &[u8]) -> bool {
    let magic = 0x00ba_b10c_u64.to_le_bytes();
    ring.chunks(1024).any(|block| block.starts_with(&magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1 << 20;

    fn with(offset: usize, bytes: &[u8]) -> Vec<&'static str> {
        let mut device = vec![0u8; CAPACITY as usize];
        device[offset..offset + bytes.len()].copy_from_slice(bytes);
        signatures(&device[..HEAD_BYTES], &device[CAPACITY as usize - TAIL_BYTES..], CAPACITY)
    }

    #[test]
    fn each_mark_is_found_where_it_belongs_and_only_there() {
        for mark in &MARKS {
            assert_eq!(with(mark.offset, mark.bytes), [mark.what]);
            assert_eq!(with(mark.offset + 16, mark.bytes), Vec::<&str>::new(), "{}", mark.what);
        }
        assert_eq!(with(0, &[0]), Vec::<&str>::new());
    }

    #[test]
    fn partition_tables_are_told_from_boot_sectors() {
        let mut sector = [0u8; 512];
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(with(0, &sector), Vec::<&str>::new(), "no entry is in use");
        sector[446 + 4] = 0x83;
        assert_eq!(with(0, &sector), ["an MBR partition table"]);
        sector[446] = 0x33;
        assert_eq!(with(0, &sector), Vec::<&str>::new(), "code of a boot sector");
    }

    #[test]
    fn what_lies_at_the_end_is_found() {
        assert_eq!(with(CAPACITY as usize - 512, b"EFI PART"), ["the backup of a GPT partition table"]);
        assert_eq!(with(CAPACITY as usize - 4096, b"EFI PART"), ["the backup of a GPT partition table"]);
        assert_eq!(with(CAPACITY as usize - 8192, MD), ["a member of a RAID array (md)"]);
        assert_eq!(with(CAPACITY as usize - 65536, MD), ["a member of a RAID array (md)"]);
        for from_end in [1024, 8192] {
            let found = with(CAPACITY as usize - from_end, b"Intel Raid ISM Cfg Sig. 1.0.00");
            assert_eq!(found, ["a member of a RAID array (Intel)"]);
        }
        for from_end in [512, 4096, 257 * 512] {
            assert_eq!(with(CAPACITY as usize - from_end, &DDF), ["a member of a RAID array (DDF)"]);
        }
        for descriptor in [0, 1, 2, 17] {
            assert_eq!(with(32769 + descriptor * 2048, b"NSR03"), ["a UDF file system"]);
            assert!(with(32770 + descriptor * 2048, b"NSR03").is_empty());
        }
        assert_eq!(with((128 << 10) + 4096, &0x00ba_b10c_u64.to_le_bytes()), ["a ZFS pool"]);
    }

    #[test]
    fn a_device_smaller_than_what_is_looked_at_is_no_trouble() {
        assert!(signatures(&[], &[], 0).is_empty());
        assert!(signatures(&[0x55; 600], &[0xaa; 600], 600).is_empty());
    }
}
