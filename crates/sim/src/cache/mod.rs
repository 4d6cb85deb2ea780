//! What the controller keeps in its memory besides tables: host writes on their way to flash, pages read ahead.
//!
//! | file | what |
//! |---|---|
//! | `write_buffer.rs` | pages that the host wrote, until they are in flash |
//! | `read_buffer.rs` | pages that were read ahead, and who waits for them |
//! | `page_index.rs` | which slot holds a page |
//! | `streams.rs` | which reads are sequential, and what to read ahead of them |
//! | `allowance.rs` | how much may be read ahead in vain |
//!
//! These are tables and rules; `device/write_back.rs` and `device/read_ahead.rs` do the work. (The valid page buffer of collection is
//! another thing: `gc/buffer.rs`.)

mod allowance;
mod page_index;
mod read_buffer;
mod streams;
mod write_buffer;

pub(crate) use allowance::Allowance;
use page_index::PageIndex;
pub(crate) use read_buffer::{Found, ReadBuffer};
pub(crate) use streams::{Run, Streams};
pub(crate) use write_buffer::WriteBuffer;

/// No slot.
pub(crate) const NIL: u32 = u32::MAX;
