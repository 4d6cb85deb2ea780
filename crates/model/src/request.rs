//! A block request as every trace format, generator and driver hands it to the host stack.

use crate::units::{Bytes, Lsn, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// Which way the data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the device to the host.
    Read,
    /// From the host to the device.
    Write,
}

impl Direction {
    /// Both directions, reads first, in the order in which arrays indexed by direction hold them.
    pub const ALL: [Direction; 2] = [Direction::Read, Direction::Write];

    /// The other direction.
    #[inline]
    pub const fn other(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }

    /// 0 for reads, 1 for writes.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// To move data.
    #[default]
    Transfer,
    /// To keep everything that was acknowledged before it from a loss of power (NVMe Flush, ATA FLUSH CACHE; `fdatasync`). Has no sectors.
    Flush,
    /// The same, and what a file system knows of its file (`fsync`). A device has nothing of the kind: there it is a flush.
    FlushWithMetadata,
    /// To forget sectors: they need not be kept, and read as zeros (NVMe Deallocate, ATA TRIM, SCSI UNMAP). Moves no data.
    Discard,
}

impl Operation {
    /// Whether it is a flush, with metadata or without.
    #[inline]
    pub const fn is_flush(self) -> bool {
        matches!(self, Operation::Flush | Operation::FlushWithMetadata)
    }
}

/// What a write's acknowledgement promises about a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing: the data may be in a volatile buffer.
    #[default]
    Volatile,
    /// The data are kept (Force Unit Access; `O_DSYNC`).
    ForceUnitAccess,
    /// The data may be volatile, but all that was acknowledged before is kept: a flush first, then the write (Linux's `REQ_PREFLUSH`).
    FlushFirst,
    /// Both are kept: what file systems ask of a commit record.
    FlushFirstForceUnitAccess,
    /// The data are kept, and what a file system knows of its file (`O_SYNC`). To a device this is forced unit access.
    ForceUnitAccessWithMetadata,
}

impl Durability {
    /// Of the two promises.
    pub const fn of(flush_first: bool, force_unit_access: bool) -> Durability {
        match (flush_first, force_unit_access) {
            (false, false) => Durability::Volatile,
            (false, true) => Durability::ForceUnitAccess,
            (true, false) => Durability::FlushFirst,
            (true, true) => Durability::FlushFirstForceUnitAccess,
        }
    }

    /// Whether a flush goes before the write.
    pub const fn flushes_first(self) -> bool {
        matches!(self, Durability::FlushFirst | Durability::FlushFirstForceUnitAccess)
    }

    /// Whether the write itself is kept once acknowledged.
    pub const fn forces_unit_access(self) -> bool {
        matches!(
            self,
            Durability::ForceUnitAccess
                | Durability::FlushFirstForceUnitAccess
                | Durability::ForceUnitAccessWithMetadata
        )
    }
}

/// One block request: covers bytes `[start * 512, (start + sectors) * 512)` (docs/architecture.md, "What the words mean").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the host receives it. Readers deliver times relative to the first request of the trace.
    pub arrival: Ns,
    /// First sector.
    pub start: Lsn,
    /// Number of sectors: at least 1, but for flushes, which have none.
    pub sectors: u32,
    /// Read or write; flushes and discards count as writes.
    pub direction: Direction,
    /// What it asks for.
    pub operation: Operation,
    /// What the acknowledgement of a write promises.
    pub durability: Durability,
    /// Whether someone waits for it: every read, and writes that bypass or flush the page cache (`O_DIRECT`, `fsync`).
    /// Linux's `REQ_SYNC`, which its schedulers keep apart from write-back.
    pub synchronous: bool,
    /// The process (or job) that issued it, 0 when unknown: what fair schedulers are fair about.
    pub process: u32,
    /// The volume, disk, ASU or LUN of the trace that it belongs to, 0 when the trace has only one.
    pub volume: u32,
    /// The response time the trace recorded, where it did: from arrival to completion. For conversion, comparison, and the dependent
    /// pace of a replay; devices and schedulers never see it.
    pub response: Option<Ns>,
}

impl Request {
    /// A request of process 0 on volume 0 without a recorded response time; reads are synchronous, writes are not.
    pub const fn new(arrival: Ns, start: Lsn, sectors: u32, direction: Direction) -> Request {
        let synchronous = matches!(direction, Direction::Read);
        Request {
            arrival,
            start,
            sectors,
            direction,
            operation: Operation::Transfer,
            durability: Durability::Volatile,
            synchronous,
            process: 0,
            volume: 0,
            response: None,
        }
    }

    /// A flush, which somebody waits for.
    pub const fn flush(arrival: Ns) -> Request {
        Request {
            operation: Operation::Flush,
            synchronous: true,
            ..Request::new(arrival, Lsn(0), 0, Direction::Write)
        }
    }

    /// A discard.
    pub const fn discard(arrival: Ns, start: Lsn, sectors: u32) -> Request {
        Request { operation: Operation::Discard, ..Request::new(arrival, start, sectors, Direction::Write) }
    }

    /// Whether it is a write of data.
    #[inline]
    pub const fn moves_to_device(&self) -> bool {
        self.is_transfer() && matches!(self.direction, Direction::Write)
    }

    /// Whether it moves data.
    #[inline]
    pub const fn is_transfer(&self) -> bool {
        matches!(self.operation, Operation::Transfer)
    }

    /// One past the last sector. Saturates, so that a request past the end of any device stays recognisable.
    #[inline]
    pub const fn end(&self) -> Lsn {
        Lsn(self.start.0.saturating_add(self.sectors as u64))
    }

    /// Size of what it covers: of the data moved, or of what is discarded.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.sectors as u64 * SECTOR_BYTES)
    }
}
