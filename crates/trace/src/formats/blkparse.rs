//! The default text output of `blkparse`.
//!
//! ```text
//! 259,0    3       10     0.000009435  1867  D   W 763360912 + 16 [dmcrypt_write/2]
//! device  cpu sequence        seconds   pid  action rwbs sector + sectors [comm]
//! ```
//!
//! One event makes a request: `Q` (queued) where the log has any, else `D` (sent to the driver), else `C` (completed;
//! the arrival is then the time of completion). This is decided by the first 65,536 `Q`, `D` and `C` events, or by the
//! user's choice of `Q`, `D` or `C`. A completion of the same device, sector, length and direction gives a request its
//! response time; requests that were merged into others have none. Remaps (`A`) are not counted beside the `Q` that
//! follows them; a request that the driver gave back (`R`) counts once, from its last `D`.
//!
//! Flushes, discards and pass-through commands are counted and left out. Passed over: the other actions, messages
//! (`m`), lines that begin with `#`, and the statistics at the end. Any other line is an error.

use super::block_events::{Action, Assembler, Choice, Devices, Event, Operation, classify};
use super::tokens::{self, Tokens, Unexpected};
use super::{Certainty, Format, ReadOptions, Reader};
use crate::error::{Position, TraceError};
use crate::input::Input;
use planewise_model::Request;

/// blkparse text.
pub static FORMAT: Format = Format {
    name: "blkparse",
    description: "blkparse text: device cpu sequence seconds pid action rwbs sector + sectors (--event Q, D, C)",
    time_unit_open: false,
    detect,
    open,
    create: None,
};

/// What a user may name as the event that makes a request, here and in binary blktrace.
pub(super) const NAMES: &[(&str, Action)] =
    &[("Q", Action::Queue), ("D", Action::Issue), ("C", Action::Complete), ("I", Action::Insert)];
/// Which event makes a request when the user does not say, here and in binary blktrace.
pub(super) const PREFERENCE: &[Action] = &[Action::Queue, Action::Issue, Action::Complete];

const SHAPE: &str = "'major,minor cpu sequence seconds pid action rwbs …', a '#' line or blkparse's statistics";

/// How the statistics' lines begin. After the first of them everything that is no event belongs to them (process names
/// of `blkparse -s` have no shape of their own).
const STATISTICS: &[&[u8]] = &[
    b"CPU",
    b"Total (",
    b"Reads ",
    b"Read ",
    b"IO unplugs",
    b"PC Read",
    b"Throughput (",
    b"Events (",
    b"Skips: ",
    b"Input file ",
];

/// A line of the log.
#[derive(Debug)]
enum Line {
    /// An event; the device is still `(major, minor)`.
    Block(Event, u32, u32),
    /// An event that says nothing about requests, a comment, an empty line.
    Other,
    /// A line of the statistics.
    Statistics,
}

fn detect(head: &[u8], whole: bool) -> Certainty {
    let mut lines = head.split(|byte| *byte == b'\n').peekable();
    let mut events = 0;
    let mut in_statistics = false;
    while let Some(line) = lines.next() {
        if !whole && lines.peek().is_none() {
            break; // the head may end inside a line
        }
        match parse(line.trim_ascii_end(), in_statistics) {
            Ok(Line::Block(..)) => events += 1,
            Ok(Line::Other) => {}
            Ok(Line::Statistics) => in_statistics = true,
            Err(_) => return Certainty::No,
        }
    }
    // Seven columns of which the first is a pair and the fifth a fraction: no other format comes near.
    if events > 0 { Certainty::Certain } else { Certainty::No }
}

fn parse(line: &[u8], in_statistics: bool) -> Result<Line, Unexpected> {
    let mut tokens = Tokens::new(line);
    let Some((major, minor)) = tokens::device(tokens.token()) else { return no_event(line, in_statistics) };
    tokens.number("cpu", "a cpu number")?;
    tokens.number("sequence number", "a number")?;
    let stamp = tokens.token();
    let Some(time) = tokens::seconds(stamp) else {
        return Err(Unexpected::new("time", stamp, "seconds.fraction"));
    };
    let pid = tokens.token();
    let Some(process) = tokens::number32(pid) else {
        return Err(Unexpected::new("process id", pid, "a number below 2^32"));
    };
    let action = match tokens.token() {
        b"Q" => Action::Queue,
        b"I" => Action::Insert,
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        b"R" => Action::Requeue,
        // Merges, remaps, plugs, splits, bounces, messages: steps between the ones that count.
        b"M" | b"F" | b"G" | b"S" | b"P" | b"U" | b"UT" | b"X" | b"B" | b"A" | b"T" | b"m" => return Ok(Line::Other),
        action => {
            return Err(Unexpected::new(
                "action",
                action,
                "Q, I, D, C, R, M, F, G, S, P, U, UT, X, B, A, T or m",
            ));
        }
    };
    let rwbs = tokens.token();
    let Some(operation) = classify(rwbs) else {
        return Err(Unexpected::new("operation", rwbs, "letters as R, WS, RA, FN, D"));
    };
    let mut event = Event { time, start: 0, sectors: 0, operation, action, process, volume: 0 };
    match tokens.rest().first() {
        // "Q FWFS [jbd2]": a flush has no sector at all.
        Some(b'[') => {}
        Some(b'0'..=b'9') => {
            let start = tokens.number("sector", "a sector number")?;
            if tokens.accept(b'+') {
                let length = tokens.token();
                let Some(sectors) = tokens::number32(length) else {
                    return Err(Unexpected::new("length", length, "a number of sectors below 2^32"));
                };
                if start.checked_add(u64::from(sectors)).is_none() {
                    return Err(Unexpected::new("range", line, "sector + length below 2^64"));
                }
                (event.start, event.sectors) = (start, sectors);
            } else {
                match tokens.rest().first() {
                    // "C WFS 575480360 [0]": the flush half of a write has completed; no data.
                    Some(b'[') => {}
                    // "D R 36 (12 00 …)": bytes of a pass-through command.
                    Some(b'(') => event.operation = Operation::Other,
                    _ => return Err(Unexpected::new("text", tokens.rest(), "'+ sectors', '[…]' or '(command)'")),
                }
            }
        }
        Some(b'(') => event.operation = Operation::Other,
        _ => return Err(Unexpected::new("text", tokens.rest(), "a sector number, '[…]' or '(command)'")),
    }
    Ok(Line::Block(event, major, minor))
}

fn no_event(line: &[u8], in_statistics: bool) -> Result<Line, Unexpected> {
    let text = line.trim_ascii();
    if text.is_empty() || text[0] == b'#' {
        return Ok(Line::Other);
    }
    if in_statistics || STATISTICS.iter().any(|start| text.starts_with(start)) {
        return Ok(Line::Statistics);
    }
    Err(Unexpected::new("line", text, SHAPE))
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let choice = Choice::from_option(options.event.as_deref(), NAMES, PREFERENCE)?;
    Ok(Box::new(Blkparse {
        input,
        assembler: Assembler::new(choice),
        devices: Devices::default(),
        position: Position::File,
        in_statistics: false,
        ended: false,
    }))
}

struct Blkparse {
    input: Input,
    assembler: Assembler,
    devices: Devices,
    position: Position,
    in_statistics: bool,
    ended: bool,
}

impl Blkparse {
    /// Feeds the next line to the assembler.
    fn step(&mut self) -> Result<(), TraceError> {
        let Some(line) = self.input.next_line()? else {
            self.assembler.finish();
            self.ended = true;
            return Ok(());
        };
        let parsed = parse(line.trim_ascii_end(), self.in_statistics);
        let position = Position::Line(self.input.line_number());
        match parsed {
            Ok(Line::Block(mut event, major, minor)) => {
                event.volume = self.devices.number(major, minor);
                self.assembler.push(event, position);
            }
            Ok(Line::Other) => {}
            Ok(Line::Statistics) => self.in_statistics = true,
            Err(wrong) => {
                return Err(TraceError::malformed(self.input.path(), position, wrong.found, wrong.allowed));
            }
        }
        Ok(())
    }
}

impl Reader for Blkparse {
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
        self.assembler.skipped().describe()
    }
}
