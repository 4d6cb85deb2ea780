//! Files on a file system with extents, as ext4 lays them out: contiguous up to the size of a block group, in the order in
//! which they were written, around a journal in the middle of the device.

use planewise_model::Bytes;

/// A file: pieces of equal length, the last one shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    extent: u64,
    starts: Vec<u64>,
    /// Bytes.
    pub(super) size: u64,
}

impl File {
    /// The byte of the device that holds a byte of the file.
    #[inline]
    pub(super) fn at(&self, offset: u64) -> u64 {
        debug_assert!(offset < self.size);
        self.starts[(offset / self.extent) as usize] + offset % self.extent
    }
}

/// What a device holds.
pub(super) struct Files {
    /// In the order asked for.
    pub(super) files: Vec<File>,
    /// First byte of the journal.
    pub(super) journal_start: u64,
}

/// Bytes of a file system block: extents begin at one.
pub(super) const BLOCK: u64 = 4096;

/// Lays files of the given sizes out. `spread` is the share of the free space that is left between their extents: with 0 they lie
/// one behind the other from the beginning of the device, with 1 evenly over all of it.
///
/// # Errors
/// The device is too small; what it has room for.
pub(super) fn lay_out(
    device_bytes: u64,
    sizes: &[u64],
    extent: u64,
    spread: f64,
    journal_bytes: u64,
) -> Result<Files, String> {
    let up = |bytes: u64| bytes.div_ceil(BLOCK) * BLOCK;
    let extent = up(extent);
    let pieces: u64 = sizes.iter().map(|size| size.div_ceil(extent)).sum();
    let used: u64 = sizes.iter().map(|size| up(*size)).sum::<u64>() + journal_bytes;
    if used > device_bytes {
        return Err(format!(
            "a device of at least {} with the journal, or less on this one of {}",
            Bytes(used),
            Bytes(device_bytes)
        ));
    }
    let journal_start = (device_bytes / 2) & !(BLOCK - 1);
    let journal_end = journal_start + journal_bytes;
    // Half an extent may be lost in front of the journal.
    let free = (device_bytes - used).saturating_sub(extent);
    let gap = ((free as f64 * spread / pieces.max(1) as f64) as u64) & !(BLOCK - 1);
    let mut cursor = 0;
    let mut files = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut starts = Vec::with_capacity(size.div_ceil(extent) as usize);
        let mut left = *size;
        while left > 0 {
            let piece = left.min(extent);
            if cursor < journal_end && cursor + up(piece) > journal_start {
                cursor = journal_end;
            }
            starts.push(cursor);
            cursor += up(piece) + gap;
            left -= piece;
        }
        files.push(File { extent, starts, size: *size });
    }
    if cursor - gap.min(cursor) > device_bytes {
        return Err(format!(
            "less, as extents cannot cross the journal in the middle of the device of {}",
            Bytes(device_bytes)
        ));
    }
    Ok(Files { files, journal_start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn files_never_overlap_one_another_the_journal_or_the_end(
            sizes in prop::collection::vec(1u64..(200 << 20), 1..20), spread in 0.0f64..=1.0, extent in 1u64..(64 << 20)
        ) {
            let (device, journal) = (8u64 << 30, 64u64 << 20);
            let Ok(laid) = lay_out(device, &sizes, extent, spread, journal) else { return Ok(()) };
            let mut pieces = vec![(laid.journal_start, journal)];
            for (file, size) in laid.files.iter().zip(&sizes) {
                for (index, start) in file.starts.iter().enumerate() {
                    pieces.push((*start, file.extent.min(size - index as u64 * file.extent)));
                }
                prop_assert_eq!(file.at(0), file.starts[0]);
                prop_assert_eq!(file.at(size - 1), file.starts.last().unwrap() + (size - 1) % file.extent);
            }
            pieces.sort_unstable();
            prop_assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            let (start, length) = pieces.last().unwrap();
            prop_assert!(start + length <= device);
        }
    }

    #[test]
    fn spread_files_reach_over_the_device_and_packed_ones_do_not() {
        let sizes = [1u64 << 30; 4];
        let last = |spread| {
            lay_out(60 << 30, &sizes, 128 << 20, spread, 128 << 20).unwrap().files[3].at((1 << 30) - 1)
        };
        assert_eq!(last(0.0), (4 << 30) - 1);
        assert!(last(1.0) > 57 << 30);
        assert!(lay_out(3 << 30, &sizes, 128 << 20, 0.0, 0).is_err());
    }
}
