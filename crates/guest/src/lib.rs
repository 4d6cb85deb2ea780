//! A kernel that runs in simulated time, on a simulated drive.
//!
//! User-Mode Linux can leave its clock to somebody else (`time-travel=ext:`), and its disk, too (`virtio_uml`). This crate is both: the
//! controller of time and the vhost-user device whose requests the engine of `planewise-sim` serves. The kernel, its file systems and its programs are
//! unmodified; when all of them wait, time goes on to whatever comes first, a timer of theirs or a completion of the drive.
//!
//! | file | what |
//! |---|---|
//! | `recipe.rs` | what to set up, what to run, which numbers count |
//! | `snapshot.rs` | a drive as a set-up left it |
//! | `run.rs` | a run from what is wanted to what came of it |
//! | `session.rs` | one run: whose turn it is, and what time it is |
//! | `kernel.rs` | the process of a kernel |
//! | `spin.rs` | which program it runs, when it never ends a turn |
//! | `initramfs.rs` | the file system that it begins with |
//! | `time.rs` | the messages by which a kernel asks for time |
//! | `schedule.rs` | the memory that both share, which spares most of them |
//! | `disk.rs` | one of its disks: rings, requests, completions |
//! | `vhost_user.rs` | the messages by which it sets up its disk |
//! | `socket.rs` | how either comes, with descriptors of files |
//! | `block.rs` | requests of a virtio disk |
//! | `contents.rs` | what is on it, in a sparse file |
//! | `written.rs` | a check that a read returns the last write |
//! | `drive.rs` | the engine as a drive |
//! | `error.rs` | what can go wrong |

pub mod block;
pub mod contents;
pub mod disk;
pub mod drive;
pub mod error;
pub mod initramfs;
pub mod kernel;
pub mod recipe;
pub mod run;
pub mod schedule;
pub mod session;
pub mod snapshot;
pub mod socket;
mod spin;
pub mod time;
pub mod vhost_user;
mod written;

pub use disk::{Disk, DiskCounts};
pub use error::GuestError;
pub use session::{Attendant, Session, Unattended};
