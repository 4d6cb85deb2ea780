//! What the controller keeps in its memory besides tables: host writes on their way to flash, pages read ahead.
//!
//! | file | what |
//! |---|---|
//! | `write_buffer.rs` | pages that the host wrote, until they are in flash |
//! | `read_buffer.rs` | pages that were read ahead, and who waits for them |
//! | `streams.rs` | which reads are sequential, and what to read ahead of them |
//!
//! These are tables and rules; `device/write_back.rs` and `device/read_ahead.rs` do the work. (The valid page buffer of collection is
//! another thing: `gc/buffer.rs`.)

mod read_buffer;
mod streams;
mod write_buffer;

pub(crate) use read_buffer::{Found, ReadBuffer};
pub(crate) use streams::{Run, Streams};
pub(crate) use write_buffer::WriteBuffer;

use planewise_model::Lpn;

/// No slot.
pub(crate) const NIL: u32 = u32::MAX;

/// Which slot of a buffer holds a logical page: an array, so that a look-up neither hashes nor allocates. Zeroed memory that nobody
/// touches costs nothing.
#[derive(Debug)]
struct PageIndex {
    /// Slot + 1; 0 for none.
    entries: Vec<u32>,
}

impl PageIndex {
    fn new(pages: u32) -> PageIndex {
        PageIndex { entries: vec![0; pages as usize] }
    }

    #[inline]
    fn get(&self, lpn: Lpn) -> Option<u32> {
        self.entries.get(lpn.0 as usize).and_then(|entry| entry.checked_sub(1))
    }

    fn set(&mut self, lpn: Lpn, slot: u32) {
        self.entries[lpn.0 as usize] = slot + 1;
    }

    fn clear(&mut self, lpn: Lpn) {
        self.entries[lpn.0 as usize] = 0;
    }
}
