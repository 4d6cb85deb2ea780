//! What fronts ask of a served drive, in bytes, whatever they speak.

use planewise_model::{Direction, Durability, Lsn, Ns, Request, SECTOR_BYTES};
use std::time::Instant;

/// What is asked for. The data have been moved by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Bytes were read.
    Read {
        /// From where on.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes were written.
    Write {
        /// From where on.
        at: u64,
        /// How many.
        bytes: u64,
        /// Whether they have to be on the host's disk when it is answered (Force Unit Access).
        is_forced: bool,
    },
    /// Everything has to be on the host's disk.
    Flush,
    /// Bytes were forgotten.
    Discard {
        /// From where on.
        at: u64,
        /// How many.
        bytes: u64,
        /// Whether that has to be on the host's disk.
        is_forced: bool,
    },
}

impl Order {
    /// Whether the host's disk has to have what was written.
    pub fn needs_sync(&self) -> bool {
        match self {
            Order::Read { .. } => false,
            Order::Write { is_forced, .. } | Order::Discard { is_forced, .. } => *is_forced,
            Order::Flush => true,
        }
    }

    /// What it is to the drive: sectors that have any of the bytes; for a discard, those that have nothing else. Nothing where that is none.
    pub fn request(&self, arrival: Ns) -> Option<Request> {
        let covered = |at: u64, bytes: u64| {
            let first = at / SECTOR_BYTES;
            let end = at.checked_add(bytes)?.div_ceil(SECTOR_BYTES);
            Some((Lsn(first), u32::try_from(end - first).ok().filter(|sectors| *sectors > 0)?))
        };
        match *self {
            Order::Read { at, bytes } => {
                let (start, sectors) = covered(at, bytes)?;
                Some(Request::new(arrival, start, sectors, Direction::Read))
            }
            Order::Write { at, bytes, is_forced } => {
                let (start, sectors) = covered(at, bytes)?;
                let durability = Durability::of(false, is_forced);
                Some(Request { durability, ..Request::new(arrival, start, sectors, Direction::Write) })
            }
            Order::Flush => Some(Request::flush(arrival)),
            Order::Discard { at, bytes, .. } => {
                let (first, end) = (at.div_ceil(SECTOR_BYTES), at.checked_add(bytes)? / SECTOR_BYTES);
                let sectors = u32::try_from(end.checked_sub(first)?).ok().filter(|sectors| *sectors > 0)?;
                Some(Request::discard(arrival, Lsn(first), sectors))
            }
        }
    }
}

/// How an order ends: whether it was done.
pub type Done = Box<dyn FnOnce(bool) + Send>;

/// Who takes orders: the drive's core, or in tests something that answers at once.
pub trait Orders: Send + Sync {
    /// Takes one that arrived at an instant, and calls back when it is to be answered.
    fn submit(&self, arrival: Instant, order: Order, done: Done);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_sectors_that_have_them_and_a_discard_those_that_have_nothing_else() {
        let sectors = |order: Order| order.request(Ns(5)).map(|request| (request.start.0, request.sectors));
        assert_eq!(sectors(Order::Read { at: 0, bytes: 512 }), Some((0, 1)));
        assert_eq!(sectors(Order::Read { at: 511, bytes: 2 }), Some((0, 2)));
        assert_eq!(sectors(Order::Write { at: 1024, bytes: 1, is_forced: true }), Some((2, 1)));
        let discard = |at, bytes| sectors(Order::Discard { at, bytes, is_forced: false });
        assert_eq!(discard(511, 514), Some((1, 1)));
        assert_eq!(discard(1, 1023), Some((1, 1)));
        for (at, bytes) in [(1, 511), (512, 511), (1, 10), (600, 0)] {
            assert_eq!(discard(at, bytes), None, "{at} {bytes}");
        }
        for order in [Order::Read { at: u64::MAX, bytes: 2 }, Order::Read { at: 0, bytes: u64::MAX }] {
            assert_eq!(sectors(order), None);
        }
        assert!(Order::Flush.needs_sync() && !Order::Read { at: 0, bytes: 1 }.needs_sync());
    }
}
