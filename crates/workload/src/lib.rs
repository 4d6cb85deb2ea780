//! Closed-loop workloads: processes that decide their next request when one completes.
//!
//! A [`Workload`] knows nothing of what serves it. Who drives it asks each process what it does [`next`](Workload::next),
//! carries it out, and tells it what completed: a simulator in model time, or a real device against a clock.
//!
//! * [`jobs`]: jobs with the options of fio, from a file or a command line.
//! * [`models`]: what applications and their file systems ask of the device.
//! * [`error`]: what can be wrong with a description.
//! * [`values`]: sizes, times and shares as fio writes them.

mod definition;
pub mod error;
pub mod jobs;
pub mod models;
pub mod values;

pub use definition::{Definition, Needs};
pub use error::WorkloadError;

use planewise_model::{Direction, Durability, Lsn, Ns, Operation, Request};

/// Several processes that issue requests, and what each does when.
pub trait Workload: Send {
    /// The groups that its processes form, in the order of their numbers: a job and its clones, the threads of a database.
    fn groups(&self) -> &[Group];

    /// What a process does at `now`. It is asked when it starts, when a time it waited for comes, when one of its requests
    /// completes, and when another process wakes it; after a [`Step::Submit`] it is asked again at once.
    fn next(&mut self, process: u32, now: Ns) -> Step;

    /// A request of a process completed. The process is asked for its next step after this.
    fn completed(&mut self, process: u32, request: &Request, now: Ns);

    /// The next process that the last call woke; none when there are no more.
    fn take_woken(&mut self) -> Option<u32> {
        None
    }

    /// Time at the beginning that is not measured.
    fn ramp_time(&self) -> Ns {
        Ns::ZERO
    }

    /// Requests that it will issue in all, when that is known beforehand.
    fn total_requests(&self) -> Option<u64> {
        None
    }

    /// What its own benchmark counts (transactions, for one), and how many are done.
    fn operations(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// Processes that belong together, numbered one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the job, or of the kind of thread.
    pub name: String,
    /// How many processes, 1 or more.
    pub processes: u32,
    /// Whether they serve the others, such as the threads of a database that flush pages: nobody asks whether they got
    /// their fair share.
    pub background: bool,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Issues a request now.
    Submit(Io),
    /// Does nothing until then, unless one of its requests completes or it is woken before.
    WaitUntil(Ns),
    /// Does nothing until one of its requests completes or another process wakes it.
    Wait,
    /// Has nothing more to do; its last requests may still be under way.
    Done,
}

/// A request as a process issues it: who drives the workload adds when and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
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
    /// Whether someone waits for it, as [`Request::synchronous`].
    pub synchronous: bool,
}

impl Io {
    /// A read or a write whose acknowledgement promises nothing about a loss of power.
    pub const fn transfer(start: Lsn, sectors: u32, direction: Direction, synchronous: bool) -> Io {
        let (operation, durability) = (Operation::Transfer, Durability::Volatile);
        Io { start, sectors, direction, operation, durability, synchronous }
    }

    /// A flush that its process waits for: [`Operation::Flush`] or [`Operation::FlushWithMetadata`].
    pub const fn flush(operation: Operation) -> Io {
        Io { operation, ..Io::transfer(Lsn(0), 0, Direction::Write, true) }
    }

    /// The request of process number `process` (from 0) that arrives at `now`. Requests number processes from 1, as 0 is nobody.
    pub fn request(self, now: Ns, process: u32) -> Request {
        let Io { start, sectors, direction, operation, durability, synchronous } = self;
        Request {
            operation,
            durability,
            synchronous,
            process: process + 1,
            ..Request::new(now, start, sectors, direction)
        }
    }
}
