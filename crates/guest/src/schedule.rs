//! The memory that a kernel and its controller share (version 2 of the protocol): the time, and until when the kernel may go on without asking. With it only
//! `Wait` and `Run` remain of the messages.
//!
//! Both ends write it, never at the same time: the kernel while it runs, the controller while the kernel waits for it or for an answer.

use crate::error::GuestError;
use planewise_model::Ns;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Version of the layout; 0 says that there is none.
const VERSION: u32 = 2;
/// Where the entries of those who share the time begin, and how long each is.
const ENTRIES: usize = 4096;
const ENTRY_BYTES: usize = 128;
/// Entries, of which the first is the controller's, the second the kernel's.
const MOST_CLIENTS: usize = 8;
const CONTROLLER: usize = 0;
/// The kernel's number.
pub const KERNEL: u16 = 1;

/// Offsets in the header.
const FREE_UNTIL: usize = 8;
const CURRENT_TIME: usize = 16;
const RUNNING: usize = 24;
const MOST: usize = 26;
/// Offsets in an entry.
const CAPABILITIES: usize = 0;
const FLAGS: usize = 4;
const REQUESTED: usize = 8;
/// It shares the time; it asked for a time to run at.
const SHARES_TIME: u32 = 1;
const ASKS_TO_RUN: u32 = 1;

/// The shared schedule.
#[derive(Debug)]
pub struct Schedule {
    file: OwnedFd,
    memory: MmapRegion,
    /// The kernel keeps to it.
    is_shared: bool,
}

impl Schedule {
    /// A new one at time `now`; or, where it is not to be shared, one that says so: a kernel reads it without asking whether it came.
    ///
    /// # Errors
    /// The system's.
    pub fn new(now: Ns, is_shared: bool) -> Result<Schedule, GuestError> {
        let failed = |error: rustix::io::Errno| GuestError::system("making the shared schedule", error);
        let bytes = ENTRIES + ENTRY_BYTES * MOST_CLIENTS;
        let file = memfd_create("planewise-schedule", MemfdFlags::CLOEXEC).map_err(failed)?;
        ftruncate(&file, bytes as u64).map_err(failed)?;
        let shared =
            file.try_clone().map_err(|error| GuestError::system("making the shared schedule", error))?;
        let memory = MmapRegion::from_file(FileOffset::new(shared.into(), 0), bytes).map_err(|error| {
            GuestError::system("mapping the shared schedule", std::io::Error::other(error))
        })?;
        let schedule = Schedule { file, memory, is_shared };
        if is_shared {
            schedule.put(0, VERSION);
            schedule.put(4, bytes as u32);
            schedule.put(MOST, MOST_CLIENTS as u16);
            schedule.put(entry(CONTROLLER) + CAPABILITIES, SHARES_TIME);
            schedule.set_now(now);
            schedule.set_running(KERNEL);
        }
        Ok(schedule)
    }

    /// The file behind it, for the kernel.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the kernel keeps to it.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn put<T: vm_memory::ByteValued>(&self, at: usize, value: T) {
        self.memory.as_volatile_slice().write_obj(value, at).expect("inside the schedule");
    }

    fn get<T: vm_memory::ByteValued>(&self, at: usize) -> T {
        self.memory.as_volatile_slice().read_obj(at).expect("inside the schedule")
    }

    /// The time.
    pub fn now(&self) -> Ns {
        Ns(self.get(CURRENT_TIME))
    }

    /// Sets the time.
    pub fn set_now(&self, now: Ns) {
        self.put(CURRENT_TIME, now.0);
    }

    /// Until when the kernel may go on without asking.
    pub fn free_until(&self) -> Ns {
        Ns(self.get(FREE_UNTIL))
    }

    /// Sets that.
    pub fn set_free_until(&self, until: Ns) {
        self.put(FREE_UNTIL, until.0);
    }

    /// Sets whose turn it is.
    pub fn set_running(&self, who: u16) {
        self.put(RUNNING, who);
    }

    /// When the kernel wants to run, if it asked.
    pub fn requested(&self) -> Option<Ns> {
        let kernel = entry(KERNEL.into());
        let asks = self.get::<u32>(kernel + FLAGS) & ASKS_TO_RUN != 0;
        asks.then(|| Ns(self.get(kernel + REQUESTED)))
    }

    /// Takes note that it runs.
    pub fn clear_request(&self) {
        let flags = entry(KERNEL.into()) + FLAGS;
        self.put(flags, self.get::<u32>(flags) & !ASKS_TO_RUN);
    }
}

fn entry(client: usize) -> usize {
    ENTRIES + ENTRY_BYTES * client
}
