//! What is kept of a drive's requests: a hash of all of them, and a trace of those that a command made.

use crate::failure::Failure;
use crate::record::{RecordAt, Recorder};
use planewise_guest::run::Windowed;
use planewise_model::Ns;
use planewise_sim::host::{QueuedRequest, Slot};
use planewise_sim::observers::{Completion, Observer};
use std::path::Path;

/// Watches a drive.
pub struct Watch {
    hash: blake3::Hasher,
    recorder: Option<Recorder>,
    /// Numbers of the requests that are recorded.
    window: std::ops::Range<u64>,
    /// When the first of them came.
    start: Option<Ns>,
}

impl Watch {
    /// Keeps a hash, and a trace where it is to go to a file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn new(record: Option<(&Path, bool)>) -> Result<Watch, Failure> {
        // As they enter the drive's queue: what the kernel has dispatched, when it did.
        let recorder = record.map(|(path, replace)| Recorder::create(path, RecordAt::Queue, replace));
        Ok(Watch {
            hash: blake3::Hasher::new(),
            recorder: recorder.transpose()?,
            window: u64::MAX..u64::MAX,
            start: None,
        })
    }

    /// The hash of all requests and of when they were done; the trace is whole now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self, is_whole: bool) -> Result<String, Failure> {
        if let Some(recorder) = self.recorder.filter(|_| is_whole) {
            recorder.finish()?;
        }
        Ok(self.hash.finalize().to_hex().to_string())
    }
}

impl Windowed for Watch {
    fn begin(&mut self, first: u64) {
        self.window = first..u64::MAX;
    }

    fn end(&mut self, first: u64) {
        self.window.end = first;
    }
}

impl Observer for Watch {
    fn enter(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        if let Some(recorder) = self.recorder.as_mut().filter(|_| self.window.contains(&request.sequence)) {
            let start = *self.start.get_or_insert(now);
            recorder.enter(now - start, slot, request);
        }
    }

    fn complete(&mut self, slot: Slot, completion: &Completion) {
        let request = &completion.request;
        for word in [
            request.arrival.0,
            completion.completed.0,
            request.start.0,
            u64::from(request.sectors),
            u64::from(request.moves_to_device()) | u64::from(request.is_transfer()) << 1,
        ] {
            self.hash.update(&word.to_le_bytes());
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|_| self.window.contains(&completion.sequence))
        {
            // A recorder counts from the first that it has seen.
            let start = self.start.unwrap_or_default();
            let sequence = completion.sequence - self.window.start;
            let seen = Completion { sequence, completed: completion.completed - start, ..*completion };
            recorder.complete(slot, &seen);
        }
    }
}
