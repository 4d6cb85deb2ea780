//! What can be measured: a simulated device in model time, a block device or a file against the clock.

mod error;
pub mod raid0;
pub mod real;
mod sim;

pub use error::TargetError;
pub use raid0::Raid0Target;
pub use sim::SimTarget;

use planewise_model::{self as model, Bytes, Direction, Durability, Lsn, Ns};

/// A device under measurement.
///
/// Up to [`TargetInfo::depth`] operations are under way at a time, each with a tag that its user picks: tags are what real
/// interfaces and their buffers have. Data are of no interest: a target reads into buffers of its own and writes what it likes,
/// but never the same block twice, so that no drive can compress or share it.
pub trait Target {
    /// What it is.
    fn info(&self) -> &TargetInfo;

    /// The time since it was opened: of the model, or of a monotonic clock.
    fn now(&mut self) -> Ns;

    /// Issues an operation, at the latest with the next call of [`Target::wait`]; operations issued before one call of it go to
    /// the device together when nothing else is under way.
    ///
    /// # Errors
    /// An operation that the device cannot take: empty, past its end, longer than [`TargetInfo::longest`], not aligned to its
    /// blocks, a write or a discard to a target opened for reading. The device as such is gone.
    ///
    /// # Panics
    /// When the tag is not below the depth, or its last operation is still under way.
    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError>;

    /// Lets time pass until an operation completes or `until` has come, whichever is first; appends what completed and returns the
    /// time then. Returns at once what has completed already. With `until` in the past it only looks.
    ///
    /// # Errors
    /// An operation failed, the device is gone; nothing is under way and `until` is [`Ns::MAX`].
    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError>;

    /// Makes sure that what was written is where it survives a power cut, and returns the time when it is: `fsync` and the device's
    /// flush command. Nothing may be under way.
    ///
    /// # Errors
    /// It failed, the device is gone.
    fn flush(&mut self) -> Result<Ns, TargetError>;
}

/// What is known of a target without measuring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetInfo {
    /// As the user names it: `sim:ssd-s`, `/dev/nvme0n1`.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// What serves it: `model`, `io_uring`, `synchronous`.
    pub engine: &'static str,
    /// Bytes that can be addressed.
    pub capacity: Bytes,
    /// Unit of addresses and lengths, bytes: 512 or 4096, as a rule.
    pub block_bytes: u32,
    /// Longest operation, bytes.
    pub longest: Bytes,
    /// Operations that can be under way at a time.
    pub depth: u32,
    /// Whether writes are allowed.
    pub writable: bool,
    /// What tells it from another under the same name: model and serial number of a drive, number and birth of a file. None where the
    /// system knows nothing of the kind, and of what is simulated.
    pub identity: Option<String>,
}

/// Kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Simulated: time is the model's, so that a minute may pass in a millisecond and every run is the same.
    Simulated,
    /// A block device.
    BlockDevice,
    /// A file of a file system.
    File,
}

impl TargetKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            TargetKind::Simulated => "simulated device",
            TargetKind::BlockDevice => "block device",
            TargetKind::File => "file",
        }
    }
}

impl TargetInfo {
    /// First sector that does not exist.
    pub fn sectors(&self) -> u64 {
        self.capacity.0 / model::SECTOR_BYTES
    }

    /// Whether an operation can be asked for.
    ///
    /// # Errors
    /// As [`Target::submit`].
    pub fn check(&self, operation: &Operation) -> Result<(), TargetError> {
        let block = u64::from(self.block_bytes) / model::SECTOR_BYTES;
        let (start, sectors) = (operation.start.0, u64::from(operation.sectors));
        // Nothing of it can be out of bounds, and it changes nothing.
        if operation.command.is_flush() {
            return Ok(());
        }
        let discards = operation.command == model::Operation::Discard;
        let problem = if sectors == 0 {
            "it is empty; allowed: 1 block or more".to_owned()
        } else if !start.is_multiple_of(block) || !sectors.is_multiple_of(block) {
            format!("allowed: multiples of the device's blocks of {} bytes", self.block_bytes)
        } else if start.checked_add(sectors).is_none_or(|end| end > self.sectors()) {
            format!("it ends past the end of the device at sector {}", self.sectors())
        } else if sectors * model::SECTOR_BYTES > self.longest.0 && !discards {
            format!("allowed: up to {} at a time", self.longest)
        } else if operation.direction == Direction::Write && !self.writable {
            "the target was opened for reading".to_owned()
        } else {
            return Ok(());
        };
        Err(TargetError::Refused { target: self.name.clone(), operation: *operation, problem })
    }
}

/// A read, a write, a flush or a discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it asks for.
    pub command: model::Operation,
    /// Which way the data move; flushes and discards count as writes.
    pub direction: Direction,
    /// What the acknowledgement of a write promises.
    pub durability: Durability,
    /// First sector (of 512 bytes, whatever the device's blocks are).
    pub start: Lsn,
    /// Number of sectors; flushes have none. Discards may be longer than [`TargetInfo::longest`].
    pub sectors: u32,
}

impl Operation {
    /// A read or a write that promises nothing about a loss of power.
    pub const fn transfer(direction: Direction, start: Lsn, sectors: u32) -> Operation {
        let (command, durability) = (model::Operation::Transfer, Durability::Volatile);
        Operation { command, direction, durability, start, sectors }
    }

    /// A read.
    pub const fn read(start: Lsn, sectors: u32) -> Operation {
        Operation::transfer(Direction::Read, start, sectors)
    }

    /// A write.
    pub const fn write(start: Lsn, sectors: u32) -> Operation {
        Operation::transfer(Direction::Write, start, sectors)
    }

    /// A flush: `fdatasync` of a file.
    pub const fn flush() -> Operation {
        Operation { command: model::Operation::Flush, ..Operation::write(Lsn(0), 0) }
    }

    /// A discard.
    pub const fn discard(start: Lsn, sectors: u32) -> Operation {
        Operation { command: model::Operation::Discard, ..Operation::write(start, sectors) }
    }
}

/// An operation that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its tag, free from now on.
    pub tag: u32,
    /// When it was issued.
    pub issued: Ns,
    /// When it was seen to be complete.
    pub completed: Ns,
}

impl Completed {
    /// From issue to completion.
    pub fn latency(&self) -> Ns {
        self.completed.saturating_sub(self.issued)
    }
}
