//! A simulated drive in wall time, that programs can mount.
//!
//! Data are moved at once, to a sparse file; time is held apart: an answer leaves when the engine's clock says so, by a dilation. One core knows the drive
//! and the time, and thin fronts know protocols.
//!
//! | file | what |
//! |---|---|
//! | `core.rs` | the drive in wall time: sleeps, spins, answers |
//! | `clock.rs` | wall time and simulated time; what this host adds |
//! | `clerk.rs` | lateness added up beside the drive's thread |
//! | `lateness.rs` | how late answers were, and the verdict |
//! | `order.rs` | what fronts ask for |
//! | `store.rs` | the bytes, and when the host's disk has them |
//! | `backing.rs` | the file that keeps them: superblocks, lock, size |
//! | `nbd/` | Network Block Device, newstyle |
//! | `vhost.rs` | a virtio disk for QEMU and Cloud Hypervisor |
//! | `ublk.rs` | a block device of the kernel's |
//! | `fuse.rs` | a file system of one file |
//! | `fronts.rs` | which fronts there are on a host |
//! | `page.rs` | counters for Prometheus |
//! | `error.rs` | why a drive cannot be served |

pub mod backing;
pub mod clerk;
pub mod clock;
pub mod core;
pub mod error;
pub mod fronts;
pub mod fuse;
pub mod lateness;
pub mod nbd;
pub mod order;
pub mod page;
pub mod store;
pub mod ublk;
pub mod vhost;

pub use error::ServeError;
