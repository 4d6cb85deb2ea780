//! What every format shares: which format it is, which volume is wanted, the order of time, and times from zero.
//!
//! A [`Trace`] streams: it holds two sort windows of requests, however long the trace is.
//!
//! **Format.** Every format looks at the first 64 KiB. One that is certain wins. Where none is, a single one that fits is
//! taken if its meaning is fixed; otherwise the user is asked, as a wrong guess of the unit of time would be a silent
//! error of three orders of magnitude.
//!
//! **Order.** Requests are sorted by arrival, equal ones in the order of the file. The sort looks `sort_window` requests
//! ahead: a request that belongs before at most so many of its predecessors is put where it belongs (up to twice as many
//! may be possible); one that comes later still is an error that names its line, never a request out of order.

use crate::error::{Position, TraceError};
use crate::formats::{self, Format, ReadOptions, Reader};
use crate::input::Input;
use detect::detect;
use planewise_model::{Ns, Request};
use stamps::Stamps;
use std::path::{Path, PathBuf};
use volume::{Selection, Volumes};

mod detect;
mod stamps;
mod volume;

/// How to read a trace.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Name of the format; `None` to tell it from the content.
    pub format: Option<String>,
    /// What the format's reader wants to know.
    pub read: ReadOptions,
    /// The only volume to keep, by name (`hm_0`) or number; `None` to keep all.
    pub volume: Option<String>,
    /// How many of its predecessors a request may belong before; 0 to accept none.
    pub sort_window: usize,
    /// Stop after so many requests (of the chosen volume).
    pub limit: Option<u64>,
    /// Requests of one stamp arrive one after the other, evenly, within so much time: the step of the trace's clock.
    pub spread: Option<Ns>,
}

/// Enough for the public traces that were looked at, at 6 MiB of memory. The most is asked by Tencent's, whose stamps are
/// whole seconds: requests belong before as many as 25,640 of their predecessors.
pub const SORT_WINDOW_DEFAULT: usize = 64 * 1024;

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            format: None,
            read: ReadOptions::default(),
            volume: None,
            sort_window: SORT_WINDOW_DEFAULT,
            limit: None,
            spread: None,
        }
    }
}

/// A trace file as a stream of requests in the order of arrival, the first of them arriving at 0.
pub struct Trace {
    path: PathBuf,
    format: &'static Format,
    reader: Box<dyn Reader>,
    selection: Selection,
    window: usize,
    limit: Option<u64>,
    spread: Option<Ns>,
    stamps: Stamps,
    volumes: Volumes,
    /// Requests read and not handed on. Those before `ready` are sorted and final, those before `taken` handed on.
    pending: Vec<Request>,
    taken: usize,
    ready: usize,
    /// Nothing may arrive before the last request that became final.
    floor: Ns,
    /// Absolute arrival of the first request; `None` before it is known.
    base: Option<Ns>,
    read: u64,
    delivered: u64,
    ended: bool,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("path", &self.path)
            .field("format", &self.format.name)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Opens a trace: a file, or a folder of per-CPU block traces.
    ///
    /// # Errors
    /// It cannot be read; no format, or more than one, fits; a name in the options is unknown.
    pub fn open(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Trace, TraceError> {
        Trace::from_input(Input::open(path)?, options)
    }

    /// Reads a trace from an input that is open already.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_input(mut input: Input, options: &TraceOptions) -> Result<Trace, TraceError> {
        let format = match &options.format {
            Some(name) => formats::by_name(name)?,
            None => detect(&mut input)?,
        };
        if input.is_folder() && format.name != detect::OF_FOLDERS.name {
            let allowed =
                format!("a file; of all formats only {} is a folder of files", detect::OF_FOLDERS.name);
            return Err(TraceError::malformed(input.path(), Position::File, "a folder", allowed));
        }
        if format.time_unit_open && options.read.time_unit.is_none() {
            return Err(TraceError::Ambiguous {
                file: input.path().to_owned(),
                reason: format!("nothing in a file of format {} tells the unit of its times", format.name),
                remedy: format!("give it: --format {} --time-unit ns (or us, ms, s)", format.name),
            });
        }
        let path = input.path().to_owned();
        let reader = (format.open)(input, &options.read)?;
        Ok(Trace {
            selection: Selection::new(options.volume.as_deref()),
            path,
            format,
            reader,
            window: options.sort_window,
            limit: options.limit,
            spread: options.spread,
            stamps: Stamps::default(),
            volumes: Volumes::default(),
            pending: Vec::new(),
            taken: 0,
            ready: 0,
            floor: Ns::ZERO,
            base: None,
            read: 0,
            delivered: 0,
            ended: false,
        })
    }

    /// Appends up to `limit` requests to `batch`. Returns how many; 0 means the end of the trace.
    ///
    /// # Errors
    /// The first record that the format does not allow, a stamp further back than the window holds, a volume that the
    /// trace does not have, or a trace without any request.
    pub fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let allowed = self.limit.map_or(u64::MAX, |limit| limit - self.delivered);
        let limit = limit.min(usize::try_from(allowed).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(0);
        }
        if self.taken == self.ready {
            self.refill()?;
        }
        let Some(base) = self.base else { return Ok(0) };
        let count = limit.min(self.ready - self.taken);
        let requests = &self.pending[self.taken..self.taken + count];
        batch.extend(requests.iter().map(|request| Request { arrival: request.arrival - base, ..*request }));
        self.taken += count;
        self.delivered += count as u64;
        Ok(count)
    }

    /// The format it is read as.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// Names of the volumes met so far, by number, where the format uses names; empty otherwise.
    pub fn volume_names(&self) -> &[String] {
        self.reader.volume_names()
    }

    /// Requests read from the file so far, of all volumes; somewhat ahead of those handed on.
    pub fn requests_read(&self) -> u64 {
        self.read
    }

    /// Requests handed on so far.
    pub fn requests_delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp of the first request as the file has it, in nanoseconds; `None` before the first batch.
    pub fn first_stamp(&self) -> Option<Ns> {
        self.base
    }

    /// What the user should know about the trace read so far, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.reader.warnings();
        if self.spread.is_none() {
            warnings.extend(self.stamps.warning());
        }
        warnings
    }

    /// How many volumes the requests read so far are of.
    pub fn volumes(&self) -> usize {
        self.volumes.count()
    }

    /// Makes the next requests ready; none are when the trace has ended.
    fn refill(&mut self) -> Result<(), TraceError> {
        // Of two windows the earlier one is final: all that is not read yet belongs behind it, or is an error.
        self.pending.drain(..self.ready);
        (self.taken, self.ready) = (0, 0);
        let is_sorted = self.read_on(self.window.saturating_add(self.window.max(1)))?;
        if !is_sorted {
            self.pending.sort_by_key(|request| request.arrival);
        }
        self.ready = if self.ended { self.pending.len() } else { self.pending.len() - self.window };
        if self.spread.is_some() {
            self.end_with_a_lump()?;
        }
        if let Some(last) = self.ready.checked_sub(1) {
            self.floor = self.pending[last].arrival;
            self.base.get_or_insert(self.pending[0].arrival);
        }
        if let Some(step) = self.spread {
            let (ready, later) = self.pending.split_at_mut(self.ready);
            stamps::spread(ready, later.first().map_or(Ns::MAX, |request| request.arrival), step);
        }
        Ok(())
    }

    /// Moves the end of what is ready to where another stamp begins: requests of one are spread together.
    fn end_with_a_lump(&mut self) -> Result<(), TraceError> {
        while !self.ended {
            // More of the last stamp may come.
            let next = self.pending[self.ready.min(self.pending.len() - 1)].arrival;
            self.ready = self.pending[..self.ready].partition_point(|request| request.arrival < next);
            if self.ready > 0 {
                return Ok(());
            }
            // All of it is one lump so far.
            self.read_on(2 * self.pending.len() + self.window)?;
            self.pending.sort_by_key(|request| request.arrival);
            self.ready = if self.ended { self.pending.len() } else { self.pending.len() - self.window };
        }
        Ok(())
    }

    /// Reads until `wanted` requests are pending or the trace ends. Returns whether they are in order.
    fn read_on(&mut self, wanted: usize) -> Result<bool, TraceError> {
        let mut is_sorted = true;
        let mut latest = self.pending.last().map_or(self.floor, |request| request.arrival);
        while !self.ended && self.pending.len() < wanted {
            // One at a time: the reader knows the line of the last request only, and an error must name the line.
            if self.reader.read(&mut self.pending, 1)? == 0 {
                self.end()?;
                break;
            }
            self.read += 1;
            let Some(request) = self.pending.last() else { break };
            let (arrival, volume) = (request.arrival, request.volume);
            if !self.selection.keeps(volume, self.reader.volume_names(), &self.path)? {
                self.pending.pop();
                continue;
            }
            if arrival < self.floor {
                return Err(self.too_late(arrival));
            }
            self.stamps.note(arrival, latest);
            self.volumes.note(volume);
            is_sorted &= arrival >= latest;
            latest = arrival;
        }
        Ok(is_sorted)
    }

    /// The reader has no more: a trace that had nothing at all is a mistake that the user should hear of.
    fn end(&mut self) -> Result<(), TraceError> {
        self.ended = true;
        if self.read == 0 {
            let found = format!("no request in {} text or data", self.format.name);
            return Err(TraceError::malformed(&self.path, Position::File, found, "at least one request"));
        }
        self.selection.check(self.reader.volume_names())
    }

    #[cold]
    fn too_late(&self, arrival: Ns) -> TraceError {
        let back = self.floor.saturating_sub(arrival);
        let found = format!("a request {back} earlier than one more than {} requests before it", self.window);
        let allowed = format!(
            "requests at most {} places out of order; look further ahead with --sort-window {}",
            self.window,
            self.window.saturating_mul(4).max(SORT_WINDOW_DEFAULT)
        );
        TraceError::malformed(&self.path, self.reader.position(), found, allowed)
    }
}

#[cfg(test)]
mod tests;
