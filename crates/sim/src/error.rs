//! What can go wrong in a simulation, as opposed to broken invariants, which panic.

use planewise_model::names::UnknownName;
use planewise_model::{Lsn, Ns};

/// An error of a run or of its configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A policy, scheduler or tunable by an unknown name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// An option whose value cannot be used.
    #[error("{key}: found {found}; allowed: {allowed}")]
    Option {
        /// Option or profile key.
        key: String,
        /// Value given.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// A request that ends past the user capacity.
    #[error(
        "request {number} covers sectors {start}..{end}, past the end of the device at sector {capacity}; use --wrap to fold addresses, or a larger device", start = .start.0
    )]
    PastEnd {
        /// Number of the request in the run, from 1.
        number: u64,
        /// First sector.
        start: Lsn,
        /// One past the last sector.
        end: u64,
        /// First sector that does not exist.
        capacity: u64,
    },
    /// A request of no sectors.
    #[error("request {number} at sector {start} has length 0; allowed: 1 sector or more", start = .start.0)]
    Empty {
        /// Number of the request in the run, from 1.
        number: u64,
        /// First sector.
        start: Lsn,
    },
    /// A request that arrives before one already submitted.
    #[error(
        "request {number} arrives at {arrival}, before its predecessor at {previous}; allowed: times that never fall"
    )]
    OutOfOrder {
        /// Number of the request in the run, from 1.
        number: u64,
        /// Its arrival.
        arrival: Ns,
        /// Arrival of the request before it.
        previous: Ns,
    },
    /// A request that arrives after the end of model time.
    #[error("request {number} arrives at {arrival} after the first; allowed: up to {latest}")]
    TooLate {
        /// Number of the request in the run, from 1.
        number: u64,
        /// Its arrival.
        arrival: Ns,
        /// Latest allowed.
        latest: Ns,
    },
    /// No plane can take another page.
    #[error(
        "free space exhausted at {now} after {host_pages} pages written: plane {plane} has {free_blocks} free blocks and no block with an invalid page ({valid_pages} of {pages} pages valid, {user_pages} user pages in the device); more over-provisioning or a smaller working set is needed"
    )]
    SpaceExhausted {
        /// When.
        now: Ns,
        /// Host pages programmed until then.
        host_pages: u64,
        /// The plane that was asked last.
        plane: u32,
        /// Its free blocks.
        free_blocks: u32,
        /// Its valid pages.
        valid_pages: u64,
        /// Its pages.
        pages: u64,
        /// User pages of the device.
        user_pages: u64,
    },
    /// A device condition that the device cannot hold.
    #[error("condition {condition}: {problem}")]
    Condition {
        /// As given.
        condition: String,
        /// What does not fit.
        problem: String,
    },
    /// Nothing can happen any more while requests are pending: a policy withholds them for ever.
    #[error(
        "{pending} requests are pending at {now} and neither device nor scheduler '{scheduler}' will ever act: the scheduler withholds them"
    )]
    Stalled {
        /// Requests in the queue.
        pending: usize,
        /// When.
        now: Ns,
        /// The scheduler.
        scheduler: String,
    },
    /// The source of requests failed.
    #[error("{0}")]
    Source(String),
}
