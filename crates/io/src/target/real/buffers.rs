//! Memory that operations move data from and to: aligned, one slice for each tag, and never the same block written twice.

use planewise_model::{Bytes, SECTOR_BYTES, rng};
use rand::Rng;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// What every drive and file system is content with: a page of memory.
const ALIGNMENT: u64 = 4096;

/// Memory for reads at most. Nobody looks at what was read, so deep queues of long reads may share it.
const READ_BYTES_MAX: u64 = 64 << 20;

/// Distance of the stamps in written data, bytes: what drives and file systems that share equal blocks compare.
const STAMP_DISTANCE: u64 = 4096;

/// The memory of a target.
pub struct Buffers {
    base: *mut u8,
    /// Of one operation, a multiple of [`ALIGNMENT`].
    slice: usize,
    read_slices: usize,
    write_slices: usize,
    /// Makes each stamp another, on this run and the next.
    counter: AtomicU64,
}

// SAFETY: the memory is a mapping of its own, and each slice for writing is only touched by the owner of its tag. Slices for reading
// are only ever written, by the kernel.
unsafe impl Send for Buffers {}
// SAFETY: as above; only the owner of a tag asks for its slice to be stamped.
unsafe impl Sync for Buffers {}

impl Buffers {
    /// Memory for `depth` operations of up to `longest` bytes.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(depth: u32, longest: Bytes, writable: bool) -> io::Result<Buffers> {
        let slice = longest.0.next_multiple_of(ALIGNMENT);
        let read_slices = (READ_BYTES_MAX / slice).clamp(1, u64::from(depth));
        let write_slices = if writable { u64::from(depth) } else { 0 };
        let bytes = slice
            .checked_mul(read_slices + write_slices)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let since_epoch = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut buffers = Buffers {
            base: base.cast(),
            slice: slice as usize,
            read_slices: read_slices as usize,
            write_slices: write_slices as usize,
            counter: AtomicU64::new(since_epoch.as_nanos() as u64),
        };
        buffers.fill();
        Ok(buffers)
    }

    /// Puts the same random bytes into all slices for writing: what compresses nothing. Stamps make them differ.
    fn fill(&mut self) {
        if self.write_slices == 0 {
            return;
        }
        let first = self.read_slices * self.slice;
        // SAFETY: inside the mapping, and nobody else has it yet.
        let all =
            unsafe { std::slice::from_raw_parts_mut(self.base.add(first), self.write_slices * self.slice) };
        let (pattern, copies) = all.split_at_mut(self.slice);
        rng::generator(self.counter.load(Ordering::Relaxed), "written data").fill_bytes(pattern);
        copies.chunks_exact_mut(self.slice).for_each(|copy| copy.copy_from_slice(pattern));
    }

    /// Where a read with this tag goes.
    pub fn for_read(&self, tag: u32) -> *mut u8 {
        // SAFETY: inside the mapping.
        unsafe { self.base.add(tag as usize % self.read_slices * self.slice) }
    }

    /// Where a write with this tag comes from, stamped for these sectors. The tag's last operation is over.
    pub fn for_write(&self, tag: u32, start: u64, sectors: u32) -> *mut u8 {
        // SAFETY: inside the mapping.
        let slice = unsafe { self.base.add((self.read_slices + tag as usize) * self.slice) };
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let first = self.counter.fetch_add(bytes.div_ceil(STAMP_DISTANCE), Ordering::Relaxed);
        for (number, offset) in (0..bytes).step_by(STAMP_DISTANCE as usize).enumerate() {
            let stamp = [start + offset / SECTOR_BYTES, first.wrapping_add(number as u64)];
            // SAFETY: a block of 512 bytes or more begins here, aligned; the tag is free, so that nobody reads it.
            unsafe { slice.add(offset as usize).cast::<[u64; 2]>().write(stamp) };
        }
        slice
    }

    /// The two regions, for registration: reads, then writes.
    pub fn regions(&self) -> [(*mut u8, usize); 2] {
        let reads = self.read_slices * self.slice;
        // SAFETY: inside the mapping, or one past its end when there are no writes.
        [(self.base, reads), (unsafe { self.base.add(reads) }, self.write_slices * self.slice)]
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let bytes = (self.read_slices + self.write_slices) * self.slice;
        // SAFETY: the mapping of `new`. Whoever has operations under way keeps it from being dropped.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_block_is_ever_written_twice() {
        let buffers = Buffers::new(4, Bytes(16384), true).unwrap();
        let mut seen = BTreeSet::new();
        for round in 0..8u32 {
            let slice = buffers.for_write(round % 4, 64, 32);
            assert_eq!(slice as usize % 4096, 0);
            // SAFETY: 32 sectors of the slice.
            let bytes = unsafe { std::slice::from_raw_parts(slice, 16384) };
            for block in bytes.chunks_exact(4096) {
                assert!(seen.insert(block.to_vec()), "a block came twice in round {round}");
                // About as many ones as zeros: nothing to compress.
                let ones: u32 = block.iter().map(|byte| byte.count_ones()).sum();
                assert!((15_000..18_000).contains(&ones), "{ones}");
            }
        }
    }

    #[test]
    fn deep_queues_of_long_reads_share_memory_and_writes_do_not() {
        let buffers = Buffers::new(1024, Bytes(1 << 20), false).unwrap();
        assert_eq!(buffers.regions()[0].1, 64 << 20);
        assert_eq!(buffers.regions()[1].1, 0);
        assert_eq!(buffers.for_read(64), buffers.for_read(0));
        let buffers = Buffers::new(3, Bytes(4096), true).unwrap();
        assert_eq!(buffers.regions()[1].1, 3 * 4096);
        assert_ne!(buffers.for_write(0, 0, 1), buffers.for_write(2, 0, 1));
    }
}
