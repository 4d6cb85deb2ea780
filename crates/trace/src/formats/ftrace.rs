//! Block events of the kernel's function tracer, as `trace_pipe`, `trace-cmd report` and `perf script` print them.
//!
//! ```text
//! postgres-26671   [001] .....  1866.579847: block_rq_issue: 7,1 W 8192 () 3675024 + 16 be,0,4 [postgres]
//! comm-pid         [cpu] flags  seconds:     event: device rwbs bytes (command) sector + sectors [priority] [comm]
//! ```
//!
//! One event makes a request: `issue` (`block_rq_issue`) unless the log has none or the user names another of
//! `queue` (`block_bio_queue`), `insert` (`block_rq_insert`), `issue`, `complete` (`block_rq_complete`). Without a
//! choice of the user's the order is issue, insert, queue, complete: the first that the log has among its first 65,536
//! block events. A completion of the same device, sector, length and direction gives the request its response time;
//! with `complete`, the arrival is the time of completion. A request that the driver gave back (`block_rq_requeue`)
//! counts once, from its last issue.
//!
//! Flushes, discards and commands without data are counted and left out; lines of other events and the tracers' own
//! headers are passed over; lost events are reported ([`Reader::warnings`]); any other line is an error.

use super::block_events::{Action, Assembler, Choice, Devices, Event, Operation, classify};
use super::tokens::{self, Tokens, Unexpected};
use super::{Certainty, Format, ReadOptions, Reader};
use crate::error::{Position, TraceError};
use crate::input::Input;
use planewise_model::Request;

/// ftrace, trace-cmd and perf text.
pub static FORMAT: Format = Format {
    name: "ftrace",
    description: "ftrace, trace-cmd or perf script text with block events (--event issue, insert, queue, complete)",
    time_unit_open: false,
    detect,
    open,
    create: None,
};

const NAMES: &[(&str, Action)] = &[
    ("queue", Action::Queue),
    ("insert", Action::Insert),
    ("issue", Action::Issue),
    ("complete", Action::Complete),
    ("block_bio_queue", Action::Queue),
    ("block_rq_insert", Action::Insert),
    ("block_rq_issue", Action::Issue),
    ("block_rq_complete", Action::Complete),
];
const PREFERENCE: &[Action] = &[Action::Issue, Action::Insert, Action::Queue, Action::Complete];

const SHAPE: &str = "'comm-pid [cpu] flags seconds.fraction: event: …' or a tracer's header line";

/// A line of the log.
#[derive(Debug)]
enum Line {
    /// A block event; the device is still `(major, minor)`.
    Block(Event, u32, u32),
    /// Another event, a header, an empty line.
    Other,
    /// The tracer's own note that events were lost.
    Lost,
}

fn detect(head: &[u8], whole: bool) -> Certainty {
    let mut lines = head.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if !whole && lines.peek().is_none() {
            break; // the head may end inside a line
        }
        match parse(trim_end(line)) {
            Ok(Line::Block(..)) => return Certainty::Certain,
            Ok(Line::Other | Line::Lost) => {}
            Err(_) => return Certainty::No,
        }
    }
    // Headers alone, or an event log that has shown no block event yet.
    let has_event = head.split(|byte| *byte == b'\n').any(|line| prefix(trim_end(line)).is_some());
    if has_event { Certainty::Possible } else { Certainty::No }
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}

fn parse(line: &[u8]) -> Result<Line, Unexpected> {
    let Some(prefix) = prefix(line) else { return other(line) };
    let mut tokens = prefix.tokens;
    let name = tokens.token();
    let Some(name) = name.strip_suffix(b":") else {
        return Err(Unexpected::new("event name", name, "'event:' after the time"));
    };
    let action = match name.strip_prefix(b"block:").unwrap_or(name) {
        b"block_rq_issue" => Action::Issue,
        b"block_rq_complete" => Action::Complete,
        b"block_rq_insert" => Action::Insert,
        b"block_bio_queue" => Action::Queue,
        b"block_rq_requeue" => Action::Requeue,
        _ => return Ok(Line::Other),
    };
    let device = tokens.token();
    let Some((major, minor)) = tokens::device(device) else {
        return Err(Unexpected::new("device", device, "major,minor"));
    };
    let rwbs = tokens.token();
    let Some(operation) = classify(rwbs) else {
        return Err(Unexpected::new("operation", rwbs, "letters as R, WS, RA, FF, D"));
    };
    if matches!(action, Action::Issue | Action::Insert) {
        tokens.number("bytes", "a number of bytes")?;
    }
    let mut tokens = after_command(tokens, action)?;
    let start = tokens.number("sector", "a sector number")?;
    if !tokens.accept(b'+') {
        return Err(Unexpected::new("text", tokens.rest(), "'+' between sector and length"));
    }
    let length = tokens.token();
    let Some(sectors) = tokens::number32(length) else {
        return Err(Unexpected::new("length", length, "a number of sectors below 2^32"));
    };
    if matches!(operation, Operation::Data(_)) && start.checked_add(u64::from(sectors)).is_none() {
        return Err(Unexpected::new("range", line, "sector + length below 2^64"));
    }
    let event = Event { time: prefix.time, start, sectors, operation, action, process: prefix.process, volume: 0 };
    Ok(Line::Block(event, major, minor))
}

/// Passes over the SCSI command in parentheses that request events print and bio events do not.
fn after_command(mut tokens: Tokens<'_>, action: Action) -> Result<Tokens<'_>, Unexpected> {
    let rest = tokens.rest();
    if action == Action::Queue && rest.first() != Some(&b'(') {
        return Ok(tokens);
    }
    match rest.iter().position(|byte| *byte == b')') {
        Some(close) if rest[0] == b'(' => Ok(Tokens::new(&rest[close + 1..])),
        _ => Err(Unexpected::new("text", rest, "the command in parentheses")),
    }
}

struct Prefix<'a> {
    process: u32,
    time: u64,
    tokens: Tokens<'a>,
}

/// What stands before the event's name. Commands may hold blanks, dashes and brackets, so the anchor is `[cpu]`
/// followed by the time.
fn prefix(line: &[u8]) -> Option<Prefix<'_>> {
    let mut from = 0;
    loop {
        let open = from + line[from..].iter().position(|byte| *byte == b'[')?;
        let close = open + line[open..].iter().position(|byte| *byte == b']')?;
        from = open + 1;
        if close == open + 1 || !line[open + 1..close].iter().all(u8::is_ascii_digit) {
            continue;
        }
        let mut tokens = Tokens::new(&line[close + 1..]);
        let mut stamp = tokens.token();
        if stamp.last() != Some(&b':') {
            stamp = tokens.token(); // the token before it was the flags
        }
        let Some(time) = stamp.strip_suffix(b":").and_then(tokens::seconds) else { continue };
        let Some(process) = process(&line[..open]) else { continue };
        return Some(Prefix { process, time, tokens });
    }
}

/// The process id at the end of `comm-pid`, `comm-pid (tgid)`, `comm pid` or `comm pid/tid`.
fn process(before_cpu: &[u8]) -> Option<u32> {
    let mut text = before_cpu.trim_ascii_end();
    if text.last() == Some(&b')') {
        let open = text.iter().rposition(|byte| *byte == b'(')?;
        text = text[..open].trim_ascii_end();
    }
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let separator = text.len().checked_sub(digits + 1)?;
    if digits == 0 || !matches!(text[separator], b'-' | b' ' | b'/') {
        return None;
    }
    tokens::number32(&text[separator + 1..])
}

/// Lines that are no events: headers, and the notes of lost events.
fn other(line: &[u8]) -> Result<Line, Unexpected> {
    let text = line.trim_ascii();
    let is_header = text.is_empty()
        || text[0] == b'#'
        || text.starts_with(b"cpus=")
        || text.starts_with(b"version = ")
        || text.starts_with(b"trace-cmd")
        || (text.starts_with(b"CPU ") && text.ends_with(b" is empty"));
    if is_header {
        return Ok(Line::Other);
    }
    if (text.starts_with(b"CPU:") && text.ends_with(b"EVENTS]")) || text.starts_with(b"LOST ") {
        return Ok(Line::Lost);
    }
    Err(Unexpected::new("line", text, SHAPE))
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let choice = Choice::from_option(options.event.as_deref(), NAMES, PREFERENCE)?;
    Ok(Box::new(Ftrace {
        input,
        assembler: Assembler::new(choice),
        devices: Devices::default(),
        position: Position::File,
        lost: 0,
        ended: false,
    }))
}

struct Ftrace {
    input: Input,
    assembler: Assembler,
    devices: Devices,
    position: Position,
    lost: u64,
    ended: bool,
}

impl Ftrace {
    /// Feeds the next line to the assembler.
    fn step(&mut self) -> Result<(), TraceError> {
        let Some(line) = self.input.next_line()? else {
            self.assembler.finish();
            self.ended = true;
            return Ok(());
        };
        let parsed = parse(trim_end(line));
        let position = Position::Line(self.input.line_number());
        match parsed {
            Ok(Line::Block(mut event, major, minor)) => {
                event.volume = self.devices.number(major, minor);
                self.assembler.push(event, position);
            }
            Ok(Line::Other) => {}
            Ok(Line::Lost) => self.lost += 1,
            Err(wrong) => {
                return Err(TraceError::malformed(self.input.path(), position, wrong.found, wrong.allowed));
            }
        }
        Ok(())
    }
}

impl Reader for Ftrace {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < limit {
            match self.assembler.pop() {
                Some((request, position)) => {
                    self.position = position;
                    batch.push(request);
                    count += 1;
                }
                None if self.ended => break,
                None => self.step()?,
            }
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        self.position
    }

    fn volume_names(&self) -> &[String] {
        self.devices.names()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.assembler.skipped().describe();
        if self.lost > 0 {
            warnings.push(format!("the tracer lost events at {} places: requests are missing", self.lost));
        }
        warnings
    }
}
