//! What is on the drive, moved at once, and how it gets to the host's disk.
//!
//! A flush is answered when the host's disk has everything: `fdatasync`, on a thread of its own, one for all flushes that wait. After one that failed, all
//! fail: the host's kernel forgets what it could not write, and a later success would be a lie.

use planewise_guest::contents::Contents;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What a flush waits for.
type Waiter = Box<dyn FnOnce(bool) + Send>;

/// The bytes, and the thread that writes them to the disk.
pub struct Store {
    contents: Contents,
    has_failed: AtomicBool,
    /// Whether there is a disk to write to at all.
    is_kept: bool,
}

impl Store {
    /// Of contents that are on a disk, or only in memory.
    pub fn new(contents: Contents, is_kept: bool) -> Store {
        Store { contents, has_failed: AtomicBool::new(false), is_kept }
    }

    /// The bytes.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes everything to the disk.
    ///
    /// # Errors
    /// This or an earlier call could not.
    pub fn sync(&self) -> io::Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("an earlier flush failed: what was written before it may be lost"));
        }
        if !self.is_kept {
            return Ok(());
        }
        self.contents.sync().inspect_err(|_| self.has_failed.store(true, Ordering::SeqCst))
    }
}

/// The thread that flushes.
pub struct Syncer {
    waiters: Option<Sender<Waiter>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts it.
    pub fn new(store: std::sync::Arc<Store>) -> io::Result<Syncer> {
        let (waiters, queue) = channel();
        let thread =
            std::thread::Builder::new().name("flush".into()).spawn(move || sync_for_all(&store, &queue))?;
        Ok(Syncer { waiters: Some(waiters), thread: Some(thread) })
    }

    /// Calls back when everything that was written before this call is on the disk, or could not be written.
    pub fn sync(&self, waiter: Waiter) {
        let Some(waiters) = &self.waiters else { return waiter(false) };
        if let Err(error) = waiters.send(waiter) {
            error.0(false);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.waiters = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn sync_for_all(store: &Store, queue: &Receiver<Waiter>) {
    while let Ok(first) = queue.recv() {
        // Whoever waits by now wrote before now.
        let all: Vec<Waiter> = std::iter::once(first).chain(queue.try_iter()).collect();
        let is_done = store.sync().is_ok();
        all.into_iter().for_each(|waiter| waiter(is_done));
    }
}
