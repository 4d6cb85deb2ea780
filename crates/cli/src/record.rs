//! `--record`: the block trace of a run, as the device or the I/O queue saw it, for replay elsewhere.

use crate::commands::trace::Target;
use crate::failure::Failure;
use planewise_model::{Ns, Request};
use planewise_sim::host::{QueuedRequest, Slot};
use planewise_sim::observers::{Completion, Observer};
use planewise_trace::formats::by_name;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Requests written at a time.
const BATCH: usize = 4096;
/// A slot of the I/O queue that holds no issued request.
const NONE: u64 = u64::MAX;

/// Where requests are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RecordAt {
    /// As they leave the host scheduler for the device, merged ones as one: the issue events of blktrace
    Device,
    /// As they enter the I/O queue, before any is merged: its queue events
    Queue,
}

/// Writes the requests of one run, in the order in which they were seen, each with its response time.
pub struct Recorder {
    at: RecordAt,
    target: Target,
    /// Seen and not written, the oldest in front; whether its response is known.
    rows: VecDeque<(Request, bool)>,
    /// Number of the row in front.
    written: u64,
    /// By slot: the row of the request in it.
    row_of: Vec<u64>,
    batch: Vec<Request>,
    /// The first error; nothing is written after it.
    error: Option<Failure>,
}

impl Recorder {
    /// A recorder to a file.
    ///
    /// # Errors
    /// The file exists and may not be replaced, or cannot be created.
    pub fn create(path: &Path, at: RecordAt, replace: bool) -> Result<Recorder, Failure> {
        let target = Target::create(path, by_name("parquet")?, replace)?;
        Ok(Recorder {
            at,
            target,
            rows: VecDeque::new(),
            written: 0,
            row_of: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            error: None,
        })
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// The first failure of writing.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.batch.extend(self.rows.drain(..).map(|(request, _)| request));
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.target.finish().map(|_| ()),
        }
    }

    fn see(&mut self, now: Ns, request: &Request) -> u64 {
        self.rows.push_back((Request { arrival: now, response: None, ..*request }, false));
        self.written + self.rows.len() as u64 - 1
    }

    /// The request of a row took so long.
    fn settle(&mut self, row: u64, completed: Ns) {
        let Some((request, settled)) =
            row.checked_sub(self.written).and_then(|place| self.rows.get_mut(place as usize))
        else {
            return;
        };
        request.response = Some(completed - request.arrival);
        *settled = true;
        while self.rows.front().is_some_and(|(_, settled)| *settled)
            && let Some((request, _)) = self.rows.pop_front()
        {
            self.batch.push(request);
            self.written += 1;
            if self.batch.len() == BATCH {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        if self.error.is_none()
            && let Err(error) = self.target.write(&self.batch)
        {
            self.error = Some(error);
        }
        self.batch.clear();
    }
}

impl Observer for Recorder {
    fn enter(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        if self.at == RecordAt::Queue {
            self.see(now, &request.request);
        }
    }

    fn merge(&mut self, now: Ns, _slot: Slot, _sequence: u64, request: &Request) {
        if self.at == RecordAt::Queue {
            self.see(now, request);
        }
    }

    fn issue(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        if self.at == RecordAt::Device {
            let row = self.see(now, &request.request);
            if self.row_of.len() <= slot.index() {
                self.row_of.resize(slot.index() + 1, NONE);
            }
            self.row_of[slot.index()] = row;
        }
    }

    fn complete(&mut self, slot: Slot, completion: &Completion) {
        match self.at {
            // Requests are seen in the order of their numbers.
            RecordAt::Queue => self.settle(completion.sequence, completion.completed),
            // Merged ones complete together, in one slot: the first settles the row, the others find none.
            RecordAt::Device => {
                let row = std::mem::replace(&mut self.row_of[slot.index()], NONE);
                self.settle(row, completion.completed);
            }
        }
    }
}

/// The file of one run of several: the run's name comes before the extension.
pub fn path_of_run(path: &Path, name: &str, runs: usize) -> PathBuf {
    if runs == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let safe = |c: char| if c.is_alphanumeric() || "_.+-".contains(c) { c } else { '-' };
    let words: Vec<&str> = name.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().map(safe).collect();
    path.with_file_name(format!("{stem}-{name}.parquet"))
}

/// A file name that says what is in it.
///
/// # Errors
/// It ends in something else.
pub fn parquet_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(extension) if extension == "parquet" => Ok(path),
        _ => Err("allowed: a file name that ends in .parquet (planewise trace convert writes other formats)"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_several_has_a_file_of_its_own() {
        let path = Path::new("out/a.parquet");
        assert_eq!(path_of_run(path, "scheduler noop", 1), path);
        assert_eq!(
            path_of_run(path, "scheduler piq+, queue 32", 2),
            Path::new("out/a-scheduler-piq+-queue-32.parquet")
        );
        assert!(
            parquet_path("a.csv").is_err() && parquet_path("a").is_err() && parquet_path("a.parquet").is_ok()
        );
    }
}
