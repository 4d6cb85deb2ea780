//! Timeline of flash operations as Chrome trace-event JSON, which the Perfetto viewer opens: one track per channel and per
//! die (per chip where dies do not interleave).

use super::{ArrayOperation, Observer, Work};
use planewise_model::{Geometry, Ns};
use std::io::{self, Write};

/// Writes events as they happen. Errors are kept until [`Timeline::finish`].
pub struct Timeline<W: Write> {
    out: W,
    executors: u32,
    channels: u32,
    error: Option<io::Error>,
    /// Events written; no more than `limit` are.
    events: u64,
    limit: u64,
    /// What lies outside is left out.
    window: (Ns, Ns),
    /// By executor: its last array operation, not written yet because it may still be suspended.
    last: Vec<Option<Slice>>,
}

/// An array operation.
#[derive(Clone, Copy)]
struct Slice {
    name: &'static str,
    from: Ns,
    to: Ns,
    planes: u32,
}

impl<W: Write> Timeline<W> {
    /// A timeline of at most `limit` operations: viewers get slow past a few million.
    pub fn new(out: W, limit: u64) -> Timeline<W> {
        Timeline {
            out,
            executors: 0,
            channels: 0,
            error: None,
            events: 0,
            limit,
            window: (Ns::ZERO, Ns::MAX),
            last: Vec::new(),
        }
    }

    /// Of operations that end after the first and begin before the second of these times.
    pub fn within(self, from: Ns, to: Ns) -> Timeline<W> {
        Timeline { window: (from, to), ..self }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        if self.error.is_none()
            && let Err(error) = self.out.write_fmt(text)
        {
            self.error = Some(error);
        }
    }

    fn slice(&mut self, process: u32, track: u32, name: &str, from: Ns, to: Ns, planes: u32) {
        if self.events >= self.limit || to <= self.window.0 || from >= self.window.1 {
            return;
        }
        self.events += 1;
        let (start, length) = (micros(from), micros(to - from));
        self.line(format_args!(
            ",\n{{\"ph\":\"X\",\"pid\":{process},\"tid\":{track},\"name\":\"{name}\",\"ts\":{start},\"dur\":{length},\"args\":{{\"planes\":{planes}}}}}"
        ));
    }

    fn write_last(&mut self, executor: u32) {
        if let Some(slice) = self.last[executor as usize].take() {
            self.slice(DIES, executor, slice.name, slice.from, slice.to, slice.planes);
        }
    }

    /// Ends the document and returns the sink and the number of operations written.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        for executor in 0..self.executors {
            self.write_last(executor);
        }
        self.line(format_args!("\n]}}\n"));
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| (self.out, self.events)),
        }
    }
}

/// Microseconds with nanoseconds behind the point: exact, unlike a float.
fn micros(time: Ns) -> String {
    format!("{}.{:03}", time.0 / 1000, time.0 % 1000)
}

const CHANNELS: u32 = 1;
const DIES: u32 = 2;

impl<W: Write> Observer for Timeline<W> {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        (self.executors, self.channels) = (executors, geometry.channels);
        self.last = vec![None; executors as usize];
        self.line(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"));
        self.line(format_args!("{{\"ph\":\"M\",\"pid\":{CHANNELS},\"name\":\"process_name\",\"args\":{{\"name\":\"channels\"}}}},\n"));
        self.line(format_args!(
            "{{\"ph\":\"M\",\"pid\":{DIES},\"name\":\"process_name\",\"args\":{{\"name\":\"flash\"}}}}"
        ));
        for channel in 0..geometry.channels {
            self.line(format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{CHANNELS},\"tid\":{channel},\"name\":\"thread_name\",\"args\":{{\"name\":\"channel {channel}\"}}}}"
            ));
        }
        let per_channel = executors / geometry.channels;
        let per_chip = executors / geometry.chips();
        for executor in 0..executors {
            let (channel, chip) = (executor / per_channel, executor % per_channel / per_chip);
            let name = if per_chip == 1 {
                format!("channel {channel} chip {chip}")
            } else {
                format!("channel {channel} chip {chip} die {}", executor % per_chip)
            };
            self.line(format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{DIES},\"tid\":{executor},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            ));
        }
    }

    fn channel_busy(&mut self, channel: u32, _executor: u32, from: Ns, to: Ns, _work: Work) {
        self.slice(CHANNELS, channel, "transfer", from, to, 1);
    }

    fn array_busy(&mut self, executor: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, work: Work) {
        let name = match (what, work) {
            (ArrayOperation::Read, Work::Host) => "read",
            (ArrayOperation::Program, Work::Host) => "program",
            (ArrayOperation::Read, _) => "collection: read",
            (ArrayOperation::Program, Work::Collection) => "collection: program",
            (ArrayOperation::Program, Work::Background) => "background: program",
            (ArrayOperation::Copyback, _) => "collection: copyback",
            (ArrayOperation::Erase, _) => "collection: erase",
        };
        self.write_last(executor);
        self.last[executor as usize] = Some(Slice { name, from, to, planes });
    }

    fn array_suspended(&mut self, now: Ns, executor: u32, _rest: Ns) {
        if let Some(slice) = &mut self.last[executor as usize] {
            slice.to = now;
        }
    }
}
