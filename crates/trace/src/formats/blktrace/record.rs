//! One record of the kernel's binary block trace: `struct blk_io_trace`, 48 bytes, then `pdu_len` bytes of payload.

use crate::formats::block_events::{Action, Event, Operation};
use planewise_model::{Direction, Durability, SECTOR_BYTES};

/// Size of the fixed part of a record.
pub(super) const RECORD_BYTES: usize = 48;

/// Upper 24 bits of the magic number; the lowest 8 are the version.
const MAGIC: u32 = 0x6561_7400;
/// The only version in use since 2006.
const VERSION: u32 = 7;

// Category bits: the upper half of the action word (`BLK_TC_*`).
const READ: u32 = 1 << 0;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNCHRONOUS: u32 = 1 << 3;
const PASS_THROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FORCED: u32 = 1 << 15;

/// A record, in the byte order of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Trace clock, ns.
    pub time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    process: u32,
    device: u32,
    /// Bytes of payload that follow.
    pub payload_bytes: u16,
}

/// What is wrong with a record: what was found, what is allowed.
pub(super) type Wrong = (String, &'static str);

/// Whether bytes begin like a record, in either byte order.
pub(super) fn has_magic(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|magic| {
        u32::from_le_bytes(*magic) & !0xff == MAGIC || u32::from_be_bytes(*magic) & !0xff == MAGIC
    })
}

fn array<const N: usize>(record: &[u8; RECORD_BYTES], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

impl Record {
    /// Reads a record; each says by its magic number in which byte order it was written.
    pub fn parse(record: &[u8; RECORD_BYTES]) -> Result<Record, Wrong> {
        let little = u32::from_le_bytes(array(record, 0));
        let big = little.swap_bytes();
        let (magic, is_little) = if little & !0xff == MAGIC {
            (little, true)
        } else if big & !0xff == MAGIC {
            (big, false)
        } else {
            return Err((format!("magic number 0x{little:08x}"), "0x65617407 in either byte order"));
        };
        if magic & 0xff != VERSION {
            return Err((format!("blktrace version {}", magic & 0xff), "version 7"));
        }
        let u16_at = |at| {
            let bytes = array(record, at);
            if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
        };
        let u32_at = |at| {
            let bytes = array(record, at);
            if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
        };
        let u64_at = |at| {
            let bytes = array(record, at);
            if is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
        };
        Ok(Record {
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            process: u32_at(32),
            device: u32_at(36),
            payload_bytes: u16_at(46),
        })
    }

    /// Major and minor number of the device, as the kernel packs them.
    pub fn device(&self) -> (u32, u32) {
        (self.device >> 20, self.device & 0xf_ffff)
    }

    /// The event that the record tells of; `None` for messages and for steps that readers do not use.
    ///
    /// # Errors
    /// The range runs past the last sector that 64 bits can number.
    pub fn event(&self) -> Result<Option<Event>, Wrong> {
        let category = self.action >> 16;
        if category & NOTIFY != 0 {
            return Ok(None);
        }
        // Bit 8 of the action marks a cgroup id at the beginning of the payload.
        let action = match self.action & 0xff {
            1 => Action::Queue,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            12 => Action::Insert,
            _ => return Ok(None),
        };
        let operation = if category & PASS_THROUGH != 0 {
            Operation::Other
        } else if category & DISCARD != 0 {
            Operation::Discard
        } else if self.bytes == 0 {
            Operation::Flush
        } else if category & WRITE != 0 {
            Operation::Data(Direction::Write)
        } else if category & READ != 0 {
            Operation::Data(Direction::Read)
        } else {
            Operation::Other
        };
        let sectors = self.bytes.div_ceil(SECTOR_BYTES as u32);
        if matches!(operation, Operation::Data(_)) && self.sector.checked_add(u64::from(sectors)).is_none() {
            return Err((format!("sector {}", self.sector), "sector + length below 2^64"));
        }
        Ok(Some(Event {
            time: self.time,
            start: self.sector,
            sectors,
            operation,
            durability: match operation {
                Operation::Data(Direction::Write) => {
                    Durability::of(category & FLUSH != 0, category & FORCED != 0)
                }
                _ => Durability::Volatile,
            },
            synchronous: category & SYNCHRONOUS != 0,
            action,
            process: self.process,
            volume: 0,
        }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The bytes of a record; `big` in the other byte order.
    pub fn record(time: u64, action: u32, sector: u64, bytes: u32, payload: u16, big: bool) -> Vec<u8> {
        let mut record = Vec::new();
        let mut put = |value: u64, size: usize| {
            if big {
                record.extend_from_slice(&value.to_be_bytes()[8 - size..]);
            } else {
                record.extend_from_slice(&value.to_le_bytes()[..size]);
            }
        };
        for (value, size) in [
            (u64::from(MAGIC | VERSION), 4),
            (1, 4),
            (time, 8),
            (sector, 8),
            (u64::from(bytes), 4),
            (u64::from(action), 4),
            (77, 4),
            (8 << 20 | 16, 4),
            (0, 4),
            (0, 2),
            (u64::from(payload), 2),
        ] {
            put(value, size);
        }
        record
    }

    /// The action word of a data event.
    pub const fn word(action: u32, write: bool) -> u32 {
        action | (if write { WRITE } else { READ }) << 16
    }

    #[test]
    fn both_byte_orders_tell_the_same() {
        let little = record(5, word(1, true), 80, 4096, 0, false);
        let big = record(5, word(1, true), 80, 4096, 0, true);
        let parse = |bytes: &[u8]| Record::parse(bytes.try_into().unwrap()).unwrap();
        assert_eq!(parse(&little), parse(&big));
        let event = parse(&big).event().unwrap().unwrap();
        assert_eq!((event.start, event.sectors, event.process, event.action), (80, 8, 77, Action::Queue));
        assert_eq!(parse(&big).device(), (8, 16));
        assert!(has_magic(&little) && has_magic(&big) && !has_magic(b"eat"));
    }

    #[test]
    fn a_wrong_magic_or_version_is_named() {
        let mut bytes: [u8; RECORD_BYTES] = record(5, 1, 80, 4096, 0, false).try_into().unwrap();
        bytes[0] = 6;
        assert_eq!(Record::parse(&bytes).unwrap_err().0, "blktrace version 6");
        bytes[2] = 0;
        assert_eq!(Record::parse(&bytes).unwrap_err().0, "magic number 0x65007406");
    }

    #[test]
    fn messages_discards_flushes_and_pass_through_are_no_data() {
        let event = |action: u32, bytes: u32| {
            let bytes = record(5, action, 80, bytes, 0, false);
            Record::parse(bytes.as_slice().try_into().unwrap()).unwrap().event().unwrap()
        };
        assert!(event(NOTIFY << 16, 0).is_none());
        assert!(event(word(2, true), 4096).is_none());
        assert_eq!(event(word(7, true), 0).unwrap().operation, Operation::Flush);
        assert_eq!(event(word(7, true) | DISCARD << 16, 4096).unwrap().operation, Operation::Discard);
        assert_eq!(event(word(7, true) | PASS_THROUGH << 16, 36).unwrap().operation, Operation::Other);
    }
}
