//! The words of Planewise: units, requests, geometry, timing, device profiles, location vectors, and the generator of random numbers.
//!
//! Everything here is a plain value. The crate knows nothing of events, queues or files, so that the simulator,
//! the trace readers, the probes and the kernel-side tests can share one meaning of "page", "unit" and "conflict".

pub mod config;
pub mod geometry;
pub mod location;
pub mod names;
pub mod profile;
pub mod request;
pub mod rng;
pub mod units;
pub mod words;

pub use geometry::{AllocationOrder, Geometry};
pub use profile::Profile;
pub use request::{Direction, Durability, Operation, Request};
pub use units::{Bytes, Lpn, Lsn, Ns, Ppn, SECTOR_BYTES};
