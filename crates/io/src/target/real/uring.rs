//! io_uring: operations queue in memory that is shared with the kernel, and one call hands over all of them and waits.

use super::buffers::Buffers;
use super::clock::{Clock, Wait, how_to_wait};
use super::commands::{self, PUNCH_HOLE, write_flags};
use super::failure;
use crate::target::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use planewise_model::{self as model, Direction, Ns, SECTOR_BYTES};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

/// The engine's name, and the one it has where memory cannot be registered (RLIMIT_MEMLOCK): each operation then looks its pages up.
const ENGINE: &str = "io_uring";
const ENGINE_UNREGISTERED: &str = "io_uring, buffers not registered";

/// From linux/io_uring.h, `IORING_ENTER_GETEVENTS`: work on completions.
const GETEVENTS: u32 = 1;

/// Operations that are handed over together while others are under way. On a virtual disk at depth 32, all that one wait makes room for at once
/// gave 0.93 of the operations that fio gets, which hands them over one by one, one by one 0.93, and four 1.14, with fewer system calls.
const GROUP: usize = 4;

/// Marks the flush that goes ahead of a write, under the tag of that write.
const AHEAD: u64 = 1 << 32;

/// A file under io_uring.
pub struct Uring {
    info: TargetInfo,
    ring: ManuallyDrop<IoUring>,
    file: File,
    buffers: ManuallyDrop<Buffers>,
    buffers_registered: bool,
    clock: Clock,
    /// By tag.
    under_way: Vec<Option<UnderWay>>,
    /// Tags in the submission queue that the kernel has not been told of: twice where a flush goes ahead of a write.
    queued: Vec<u32>,
    /// Entries that the kernel has.
    in_flight: u32,
    /// What was done when it was issued.
    done: Vec<Completed>,
}

struct UnderWay {
    operation: Operation,
    issued: Ns,
}

impl Uring {
    /// A ring for a file.
    ///
    /// # Errors
    /// The kernel has no io_uring, refuses it, or has one too old to wait with a timeout (before Linux 5.11).
    pub fn new(
        mut info: TargetInfo,
        file: File,
        buffers: Buffers,
    ) -> Result<Uring, (io::Error, File, Buffers)> {
        let entries = if info.writable { info.depth * 2 } else { info.depth };
        let ring = match ring(entries, &file) {
            Ok(ring) => ring,
            Err(error) => return Err((error, file, buffers)),
        };
        let buffers_registered = register(&ring, &buffers).is_ok();
        info.engine = if buffers_registered { ENGINE } else { ENGINE_UNREGISTERED };
        let depth = info.depth as usize;
        Ok(Uring {
            info,
            ring: ManuallyDrop::new(ring),
            file,
            buffers: ManuallyDrop::new(buffers),
            buffers_registered,
            clock: Clock::start(),
            under_way: std::iter::repeat_with(|| None).take(depth).collect(),
            queued: Vec::with_capacity(entries as usize),
            in_flight: 0,
            done: Vec::new(),
        })
    }

    fn entry(&self, tag: u32, operation: Operation) -> squeue::Entry {
        let Operation { command, direction, durability, start, sectors } = operation;
        let offset = start.0 * SECTOR_BYTES;
        match command {
            model::Operation::Transfer => {}
            model::Operation::Discard => {
                let bytes = u64::from(sectors) * SECTOR_BYTES;
                let entry = opcode::Fallocate::new(Fixed(0), bytes).offset(offset).mode(PUNCH_HOLE);
                return entry.build().user_data(u64::from(tag));
            }
            model::Operation::Flush | model::Operation::FlushWithMetadata => {
                return flush(command).user_data(u64::from(tag));
            }
        }
        let bytes = (u64::from(sectors) * SECTOR_BYTES) as u32;
        let flags = write_flags(durability);
        let entry = match (direction, self.buffers_registered) {
            (Direction::Read, true) => {
                opcode::ReadFixed::new(Fixed(0), self.buffers.for_read(tag), bytes, 0).offset(offset).build()
            }
            (Direction::Read, false) => {
                opcode::Read::new(Fixed(0), self.buffers.for_read(tag), bytes).offset(offset).build()
            }
            (Direction::Write, true) => {
                let from = self.buffers.for_write(tag, start.0, sectors);
                opcode::WriteFixed::new(Fixed(0), from, bytes, 1).offset(offset).rw_flags(flags).build()
            }
            (Direction::Write, false) => {
                let from = self.buffers.for_write(tag, start.0, sectors);
                opcode::Write::new(Fixed(0), from, bytes).offset(offset).rw_flags(flags).build()
            }
        };
        entry.user_data(u64::from(tag))
    }

    /// Tells the kernel of what is queued, and waits for `want` completions (0 or 1) as long as `wait` says.
    fn enter(&mut self, wait: Wait) -> Result<(), TargetError> {
        let (want, timeout) = match wait {
            Wait::Look | Wait::Spin => (0, None),
            Wait::Forever => (1, None),
            Wait::Sleep(time) => (1, Some(Timespec::from(time))),
        };
        let mut args = SubmitArgs::new();
        if let Some(timeout) = &timeout {
            args = args.timespec(timeout);
        }
        loop {
            let now = self.clock.now();
            let entered = self.ring.submitter().submit_with_args(want, &args);
            self.count_taken(now);
            match after(entered.err(), self.queued.is_empty(), self.in_flight) {
                After::Done => return Ok(()),
                After::Again => {}
                After::Reap => {
                    if self.has_completions() {
                        return Ok(());
                    }
                    // What is refused does not get as far as to work on completions.
                    // SAFETY: no argument is passed.
                    let _ = unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, GETEVENTS, None) };
                    std::thread::yield_now();
                }
                After::Failed(error) => return Err(self.unusable(format!("io_uring failed: {error}"))),
            }
        }
    }

    /// Counts what the kernel took from the queue, which it does in order, as under way since `now`. What it left is still to hand over.
    fn count_taken(&mut self, now: Ns) {
        let left = self.ring.submission().len();
        for tag in self.queued.drain(..self.queued.len() - left) {
            self.in_flight += 1;
            if let Some(one) = &mut self.under_way[tag as usize] {
                one.issued = now;
            }
        }
    }

    /// Whether there is something to take, or to ask the kernel for.
    fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Looks until something completed or `until` has come.
    fn spin(&mut self, until: Ns) -> Result<(), TargetError> {
        self.enter(Wait::Look)?;
        while !self.has_completions() && self.clock.now() < until {
            // Completions may wait for this thread to enter the kernel.
            if self.ring.submission().taskrun() {
                self.enter(Wait::Look)?;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Takes all completions there are, and returns when it did.
    fn take(&mut self, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let now = self.clock.now();
        let mut failed = None;
        for entry in self.ring.completion() {
            let tag = entry.user_data() as u32;
            if entry.user_data() & AHEAD != 0 {
                self.in_flight -= 1;
                let of = self.under_way[tag as usize].as_ref().map_or(Operation::flush(), |of| of.operation);
                if let Some(problem) = problem(&entry, &Operation::flush()) {
                    failed = failed.or(Some((of, problem)));
                }
                continue;
            }
            let Some(UnderWay { operation, issued }) = self.under_way[tag as usize].take() else { continue };
            self.in_flight -= 1;
            match problem(&entry, &operation) {
                None => completed.push(Completed { tag, issued, completed: now }),
                Some(problem) => failed = failed.or(Some((operation, problem))),
            }
        }
        match failed {
            None => Ok(now),
            Some((operation, problem)) => {
                Err(TargetError::Failed { target: self.info.name.clone(), operation, problem })
            }
        }
    }

    /// Discards bytes of a block device. The call returns when they are: io_uring has had no other way to ask for it but for the newest kernels.
    fn discard_now(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        // What was issued before is not to wait for it.
        self.enter(Wait::Look)?;
        let (offset, bytes) = (operation.start.0 * SECTOR_BYTES, u64::from(operation.sectors) * SECTOR_BYTES);
        let issued = self.clock.now();
        commands::discard(&self.file, true, offset, bytes).map_err(|error| TargetError::Failed {
            target: self.info.name.clone(),
            operation,
            problem: failure::meaning(error.raw_os_error().unwrap_or(0)),
        })?;
        self.under_way[tag as usize] = Some(UnderWay { operation, issued });
        self.done.push(Completed { tag, issued, completed: self.clock.now() });
        Ok(())
    }

    fn unusable(&self, problem: String) -> TargetError {
        TargetError::Unusable { target: self.info.name.clone(), problem }
    }
}

fn flush(command: model::Operation) -> squeue::Entry {
    let with_metadata = command == model::Operation::FlushWithMetadata;
    let flags = if with_metadata { FsyncFlags::empty() } else { FsyncFlags::DATASYNC };
    opcode::Fsync::new(Fixed(0)).flags(flags).build()
}

/// What to do after the kernel was told.
#[derive(Debug)]
enum After {
    Done,
    /// Tell it again.
    Again,
    /// Tell it again when something completed.
    Reap,
    Failed(io::Error),
}

/// Decides that from what the kernel refused, whether it took all entries, and how many operations it has.
fn after(refused: Option<io::Error>, took_all: bool, in_flight: u32) -> After {
    let Some(error) = refused else {
        // The kernel may stop at an entry that fails at once.
        return if took_all { After::Done } else { After::Again };
    };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::TIME) => After::Done,
        // A signal: whoever waits decides whether to go on.
        Some(Errno::INTR) if took_all => After::Done,
        Some(Errno::INTR) => After::Again,
        // Short of memory while others are under way: their completions free it.
        Some(Errno::AGAIN | Errno::BUSY) if in_flight > 0 => After::Reap,
        _ => After::Failed(error),
    }
}

/// A ring with the file registered. Each set of flags is what newer kernels have over older ones: completions are then
/// worked on when this thread asks for them instead of interrupting it.
fn ring(entries: u32, file: &File) -> io::Result<IoUring> {
    let entries = entries.next_power_of_two();
    let mut builder = IoUring::builder();
    let newest =
        builder.dontfork().setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().build(entries);
    let ring = newest
        .or_else(|_| IoUring::builder().dontfork().setup_coop_taskrun().setup_taskrun_flag().build(entries))
        .or_else(|_| IoUring::builder().dontfork().build(entries))?;
    if !ring.params().is_feature_ext_arg() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    Ok(ring)
}

fn register(ring: &IoUring, buffers: &Buffers) -> io::Result<()> {
    let regions =
        buffers.regions().map(|(base, bytes)| libc::iovec { iov_base: base.cast(), iov_len: bytes });
    let used = if regions[1].iov_len == 0 { &regions[..1] } else { &regions[..] };
    // SAFETY: the memory is a mapping that outlives the ring: both are dropped together, or neither.
    unsafe { ring.submitter().register_buffers(used) }
}

/// What is wrong with a completion.
fn problem(entry: &cqueue::Entry, operation: &Operation) -> Option<String> {
    let moves = operation.command == model::Operation::Transfer;
    let asked = if moves { u64::from(operation.sectors) * SECTOR_BYTES } else { 0 };
    match entry.result() {
        error if error < 0 => Some(failure::meaning(-error)),
        moved if (moved as u64) < asked => Some(failure::short(moved as u64, asked)),
        _ => None,
    }
}

impl Target for Uring {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.clock.now()
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        assert!(self.under_way[tag as usize].is_none(), "tag {tag} has an operation under way");
        if operation.command == model::Operation::Discard && self.info.kind == TargetKind::BlockDevice {
            return self.discard_now(tag, operation);
        }
        let entry = self.entry(tag, operation);
        if operation.durability.flushes_first() {
            // The kernel begins with the write when the flush is complete, and does not when that failed.
            let ahead = flush(model::Operation::Flush).flags(squeue::Flags::IO_LINK);
            // SAFETY: no memory is passed.
            let pushed = unsafe { self.ring.submission().push(&ahead.user_data(AHEAD | u64::from(tag))) };
            pushed.expect("the queue has two entries for each tag of a target that is written");
            self.queued.push(tag);
        }
        // SAFETY: file and buffers live as long as the ring, and the slice of the tag is free.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has an entry for each tag");
        self.under_way[tag as usize] = Some(UnderWay { operation, issued: Ns::ZERO });
        self.queued.push(tag);
        // What is issued to an idle device goes there together. One that works is kept working: it would wait for the last of them.
        if self.in_flight > 0 && self.queued.len() >= GROUP { self.enter(Wait::Look) } else { Ok(()) }
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let before = completed.len();
        if !self.done.is_empty() {
            self.done.iter().for_each(|done| self.under_way[done.tag as usize] = None);
            completed.append(&mut self.done);
            if !self.queued.is_empty() {
                self.enter(Wait::Look)?;
            }
            return self.take(completed);
        }
        loop {
            if until == Ns::MAX && self.in_flight == 0 && self.queued.is_empty() {
                return Err(self.unusable("nothing is under way to wait for".to_owned()));
            }
            // Each look at the clock counts where an operation takes a few microseconds.
            let wait = match until {
                _ if self.has_completions() => Wait::Look,
                Ns::MAX => Wait::Forever,
                until => how_to_wait(self.clock.now(), until),
            };
            match wait {
                Wait::Spin => self.spin(until)?,
                Wait::Look if self.queued.is_empty() && !self.ring.submission().taskrun() => {}
                wait => self.enter(wait)?,
            }
            let now = self.take(completed)?;
            if completed.len() > before || now >= until {
                return Ok(now);
            }
        }
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        self.file.sync_all().map_err(|error| {
            self.unusable(format!("flushing failed: {}", failure::meaning(error.raw_os_error().unwrap_or(0))))
        })?;
        Ok(self.clock.now())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel may still move data for what is under way: such memory is never given back.
        if self.in_flight == 0 {
            // A ring is taken apart later, in the background: what it holds would keep the device from being opened again until then.
            let _ = self.ring.submitter().unregister_files();
            let _ = self.ring.submitter().unregister_buffers();
            // SAFETY: dropped once, here, the ring first.
            unsafe {
                ManuallyDrop::drop(&mut self.ring);
                ManuallyDrop::drop(&mut self.buffers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_tried_again_only_while_something_is_under_way() {
        let error = |errno: Errno| Some(io::Error::from(errno));
        for errno in [Errno::AGAIN, Errno::BUSY] {
            assert!(matches!(after(error(errno), false, 1), After::Reap));
            assert!(matches!(after(error(errno), false, 0), After::Failed(_)), "{errno:?}");
        }
        assert!(matches!(after(error(Errno::BADF), true, 5), After::Failed(_)));
        assert!(matches!(after(None, true, 1), After::Done));
        assert!(matches!(after(None, false, 1), After::Again));
        assert!(matches!(after(error(Errno::INTR), true, 1), After::Done));
        assert!(matches!(after(error(Errno::INTR), false, 0), After::Again));
        assert!(matches!(after(error(Errno::TIME), true, 1), After::Done));
    }
}
