//! A kernel that runs in simulated time, on a simulated drive.
//!
//! User-Mode Linux can leave its clock to somebody else (`time-travel=ext:`), and its disk, too (`virtio_uml`). This crate is both: the
//! controller of time and the vhost-user device whose requests the engine of `planewise-sim` serves. The kernel, its file systems and its programs are
//! unmodified; when all of them wait, time goes on to whatever comes first, a timer of theirs or a completion of the drive.
//!
//! | file | what |
//! |---|---|
//! | `session.rs` | one run: whose turn it is, and what time it is |
//! | `time.rs` | the messages by which a kernel asks for time |
//! | `schedule.rs` | the memory that both share, which spares most of them |
//! | `vhost_user.rs` | the messages by which it sets up its disk |
//! | `socket.rs` | how either comes, with descriptors of files |
//! | `block.rs` | requests of a virtio disk |
//! | `contents.rs` | what is on it |
//! | `drive.rs` | the engine as a drive |
//! | `error.rs` | what can go wrong |

pub mod block;
pub mod contents;
pub mod drive;
pub mod error;
pub mod schedule;
pub mod session;
pub mod socket;
pub mod time;
pub mod vhost_user;

pub use error::GuestError;
pub use session::{Counts, Session};
