//! Ordinary reads and writes, each on a thread of its own so that several are under way: where io_uring is refused.

use super::buffers::Buffers;
use super::clock::{Clock, Wait, how_to_wait};
use super::commands::{self, write_flags};
use super::failure;
use crate::target::{Completed, Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::{self as model, Direction, Ns, SECTOR_BYTES};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads at most, and so the deepest queue.
pub const DEPTH_MAX: u32 = 1024;

/// Stack of a thread, bytes: it makes one call.
const STACK_BYTES: usize = 64 << 10;

/// A file under threads.
pub struct Synchronous {
    info: TargetInfo,
    shared: Arc<Shared>,
    clock: Clock,
    buffers: Arc<Buffers>,
    /// By tag: whether an operation is under way.
    under_way: Vec<bool>,
    queued: Vec<Job>,
    in_flight: u32,
}

struct Shared {
    file: File,
    is_block_device: bool,
    clock: Clock,
    /// Keeps the memory for as long as a thread may touch it.
    _buffers: Arc<Buffers>,
    jobs: Mutex<VecDeque<Job>>,
    work: Condvar,
    done: Mutex<Vec<Done>>,
    done_count: AtomicUsize,
    progress: Condvar,
    closing: AtomicBool,
}

/// An operation, and its memory.
struct Job {
    tag: u32,
    operation: Operation,
    issued: Ns,
    memory: *mut u8,
}

// SAFETY: the memory is the tag's, and the tag has one operation at a time.
unsafe impl Send for Job {}

struct Done {
    tag: u32,
    operation: Operation,
    issued: Ns,
    completed: Ns,
    problem: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Synchronous {
    /// Threads for a file.
    ///
    /// # Errors
    /// The system refuses to start them.
    pub fn new(info: TargetInfo, file: File, buffers: Buffers) -> std::io::Result<Synchronous> {
        let buffers = Arc::new(buffers);
        let clock = Clock::start();
        let shared = Arc::new(Shared {
            file,
            is_block_device: info.kind == TargetKind::BlockDevice,
            clock,
            _buffers: Arc::clone(&buffers),
            jobs: Mutex::default(),
            work: Condvar::new(),
            done: Mutex::default(),
            done_count: AtomicUsize::new(0),
            progress: Condvar::new(),
            closing: AtomicBool::new(false),
        });
        let depth = info.depth as usize;
        let target = Synchronous {
            info,
            shared,
            clock,
            buffers,
            under_way: vec![false; depth],
            queued: Vec::with_capacity(depth),
            in_flight: 0,
        };
        for number in 0..depth {
            let shared = Arc::clone(&target.shared);
            std::thread::Builder::new()
                .name(format!("operation {number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || shared.serve())?;
        }
        Ok(target)
    }

    fn hand_over(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let now = self.clock.now();
        self.in_flight += self.queued.len() as u32;
        let many = self.queued.len() > 1;
        lock(&self.shared.jobs).extend(self.queued.drain(..).map(|job| Job { issued: now, ..job }));
        if many { self.shared.work.notify_all() } else { self.shared.work.notify_one() }
    }

    fn has_completions(&self) -> bool {
        self.shared.done_count.load(Ordering::Acquire) > 0
    }

    fn sleep(&self, time: Option<Duration>) {
        let done = lock(&self.shared.done);
        if done.is_empty() {
            // A wake-up for nothing is as good as one for something: the caller looks again.
            match time {
                Some(time) => drop(self.shared.progress.wait_timeout(done, time)),
                None => drop(self.shared.progress.wait(done)),
            }
        }
    }

    fn take(&mut self, completed: &mut Vec<Completed>) -> Result<(), TargetError> {
        if !self.has_completions() {
            return Ok(());
        }
        let mut failed = None;
        let mut done = lock(&self.shared.done);
        self.shared.done_count.store(0, Ordering::Release);
        for Done { tag, operation, issued, completed: at, problem } in done.drain(..) {
            self.under_way[tag as usize] = false;
            self.in_flight -= 1;
            match problem {
                None => completed.push(Completed { tag, issued, completed: at }),
                Some(problem) => failed = failed.or(Some((operation, problem))),
            }
        }
        match failed {
            None => Ok(()),
            Some((operation, problem)) => {
                Err(TargetError::Failed { target: self.info.name.clone(), operation, problem })
            }
        }
    }
}

impl Shared {
    /// A thread's life.
    fn serve(&self) {
        loop {
            let mut jobs = lock(&self.jobs);
            let job = loop {
                if self.closing.load(Ordering::Acquire) {
                    return;
                }
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => jobs = self.work.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            let problem = self.carry_out(&job);
            let Job { tag, operation, issued, .. } = job;
            let completed = self.clock.now();
            let mut done = lock(&self.done);
            done.push(Done { tag, operation, issued, completed, problem });
            self.done_count.store(done.len(), Ordering::Release);
            drop(done);
            self.progress.notify_one();
        }
    }

    fn carry_out(&self, job: &Job) -> Option<String> {
        let asked = u64::from(job.operation.sectors) * SECTOR_BYTES;
        let offset = job.operation.start.0 * SECTOR_BYTES;
        let (descriptor, memory) = (self.file.as_raw_fd(), job.memory.cast::<libc::c_void>());
        let Operation { command, durability, .. } = job.operation;
        let said = |done: std::io::Result<()>| {
            done.err().map(|error| failure::meaning(error.raw_os_error().unwrap_or(0)))
        };
        match command {
            model::Operation::Transfer => {}
            model::Operation::Discard => {
                return said(commands::discard(&self.file, self.is_block_device, offset, asked));
            }
            flush => return said(commands::flush(&self.file, flush)),
        }
        if durability.flushes_first()
            && let Some(problem) = said(commands::flush(&self.file, model::Operation::Flush))
        {
            return Some(problem);
        }
        // Reads may share their memory, and so no slice is ever made of it.
        // SAFETY: at least as long as the longest operation, and mapped for as long as this thread has a part of it. Of reads, nobody
        // ever looks at what came; of writes, it is the tag's alone.
        let moved = unsafe {
            match job.operation.direction {
                Direction::Read => libc::pread64(descriptor, memory, asked as usize, offset as libc::off64_t),
                Direction::Write => {
                    let from = libc::iovec { iov_base: memory, iov_len: asked as usize };
                    match write_flags(durability) {
                        0 => libc::pwrite64(descriptor, memory, asked as usize, offset as libc::off64_t),
                        flags => libc::pwritev2(descriptor, &raw const from, 1, offset as libc::off_t, flags),
                    }
                }
            }
        };
        match u64::try_from(moved) {
            Ok(moved) if moved == asked => None,
            Ok(moved) => Some(failure::short(moved, asked)),
            Err(_) => Some(failure::meaning(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))),
        }
    }
}

impl Target for Synchronous {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn now(&mut self) -> Ns {
        self.clock.now()
    }

    fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
        self.info.check(&operation)?;
        assert!(!self.under_way[tag as usize], "tag {tag} has an operation under way");
        let memory = match operation.direction {
            // Without data, any memory does.
            _ if operation.command != model::Operation::Transfer => self.buffers.for_read(tag),
            Direction::Read => self.buffers.for_read(tag),
            Direction::Write => self.buffers.for_write(tag, operation.start.0, operation.sectors),
        };
        self.under_way[tag as usize] = true;
        self.queued.push(Job { tag, operation, issued: Ns::ZERO, memory });
        Ok(())
    }

    fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
        let before = completed.len();
        self.hand_over();
        loop {
            if until == Ns::MAX && self.in_flight == 0 {
                let problem = "nothing is under way to wait for".to_owned();
                return Err(TargetError::Unusable { target: self.info.name.clone(), problem });
            }
            if !self.has_completions() {
                match how_to_wait(self.clock.now(), until) {
                    Wait::Look => {}
                    Wait::Spin => {
                        while !self.has_completions() && self.clock.now() < until {
                            std::hint::spin_loop();
                        }
                    }
                    Wait::Sleep(time) => self.sleep(Some(time)),
                    Wait::Forever => self.sleep(None),
                }
            }
            self.take(completed)?;
            let now = self.clock.now();
            if completed.len() > before || now >= until {
                return Ok(now);
            }
        }
    }

    fn flush(&mut self) -> Result<Ns, TargetError> {
        self.shared.file.sync_all().map_err(|error| {
            let meaning = failure::meaning(error.raw_os_error().unwrap_or(0));
            let problem = format!("flushing failed: {meaning}");
            TargetError::Unusable { target: self.info.name.clone(), problem }
        })?;
        Ok(self.clock.now())
    }
}

impl Drop for Synchronous {
    /// Threads end by themselves, each when its operation does: a device that hangs must not hang the program.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        // Under the lock, so that no thread goes to sleep between its look and this.
        let _jobs = lock(&self.shared.jobs);
        self.shared.work.notify_all();
    }
}
