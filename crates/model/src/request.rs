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

/// One block request: covers bytes `[start * 512, (start + sectors) * 512)` (docs/architecture.md, "What the words mean").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the host receives it. Readers deliver times relative to the first request of the trace.
    pub arrival: Ns,
    /// First sector.
    pub start: Lsn,
    /// Number of sectors, at least 1.
    pub sectors: u32,
    /// Read or write.
    pub direction: Direction,
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
        Request { arrival, start, sectors, direction, synchronous, process: 0, volume: 0, response: None }
    }

    /// One past the last sector. Saturates, so that a request past the end of any device stays recognisable.
    #[inline]
    pub const fn end(&self) -> Lsn {
        Lsn(self.start.0.saturating_add(self.sectors as u64))
    }

    /// Size of the data moved.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.sectors as u64 * SECTOR_BYTES)
    }
}
