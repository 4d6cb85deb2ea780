//! Binary blktrace: what `blktrace` records, before `blkparse`.
//!
//! A trace is one stream (`blktrace -o -`), or one file per CPU named `<device>.blktrace.<cpu>`: give any one of them
//! (its siblings in the folder are found by name), the folder, or a tar of them; each may be compressed. Per-CPU files
//! are merged by time in constant memory (a compressed tar goes through an unnamed temporary file).
//!
//! One event makes a request: `Q` (queued) where the trace has any, else `D` (sent to the driver), else `C`, or the
//! user's choice of these and `I`; how this is decided, and how completions give response times, is told in
//! [`super::blkparse`], which reads the same events as text. Messages and payloads are passed over. CPUs without a file
//! or with an empty one are reported ([`Reader::warnings`]): events of those CPUs are missing, as a rule completions.

mod record;
mod streams;
mod tar;
#[cfg(test)]
mod tests;

use super::block_events::Choice;
use super::event_log::{EventLog, Events, Log};
use super::{Certainty, Format, ReadOptions, Reader, blkparse};
use crate::error::{Position, TraceError};
use crate::input::Input;
use record::RECORD_BYTES;
use streams::Streams;

/// Binary blktrace.
pub static FORMAT: Format = Format {
    name: "blktrace",
    description: "blktrace binary: a stream, per-CPU files x.blktrace.N, their folder or a tar (--event Q, D, C)",
    time_unit_open: false,
    completions: true,
    commands: false,
    durability: false,
    detect,
    open,
    create: None,
};

fn detect(head: &[u8], whole: bool) -> Certainty {
    let is_archive_of_traces = || {
        let mut at = 0;
        while let Some(header) = head.get(at..).and_then(tar::Header::parse) {
            if header.is_file() {
                return streams::is_member_name(&header.name);
            }
            // Folders come before the files; a folder has no content.
            at += 512;
        }
        false
    };
    if record::has_magic(head) && (head.len() >= RECORD_BYTES || !whole) || is_archive_of_traces() {
        Certainty::Certain
    } else {
        Certainty::No
    }
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let choice = Choice::from_option(options.event.as_deref(), blkparse::NAMES, blkparse::PREFERENCE)?;
    Ok(Box::new(EventLog::new(Blktrace { streams: Streams::open(input)? }, choice)))
}

struct Blktrace {
    streams: Streams,
}

impl Log for Blktrace {
    fn step(&mut self, events: &mut Events) -> Result<bool, TraceError> {
        let Some(next) = self.streams.next()? else { return Ok(false) };
        let event = next.record.event().map_err(|(found, allowed)| {
            TraceError::malformed(self.streams.path(next.stream), Position::Byte(next.at), found, allowed)
        })?;
        if let Some(event) = event {
            let (major, minor) = next.record.device();
            events.push(event, major, minor, Position::Byte(next.at));
        }
        Ok(true)
    }

    fn warnings(&self) -> Vec<String> {
        self.streams.warnings().to_vec()
    }
}
