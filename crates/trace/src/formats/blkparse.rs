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
//! follows them; a request that the driver gave back (`R`) counts again with its next `D`, and is reported.
//!
//! Flushes, discards and forced writes are what they are; pass-through commands are counted and left out. Passed over: the other actions, messages
//! (`m`), lines that begin with `#`, and the statistics at the end. Any other line is an error.

use super::block_events::{Action, Choice, Event, Operation, classify, durability, is_synchronous};
use super::event_log::{EventLog, Events, Log};
use super::tokens::{self, Tokens, Unexpected};
use super::{Certainty, Format, ReadOptions, Reader};
use crate::error::{Position, TraceError};
use crate::input::Input;

/// blkparse text.
pub static FORMAT: Format = Format {
    name: "blkparse",
    description: "blkparse text: device cpu sequence seconds pid action rwbs sector + sectors (--event Q, D, C)",
    time_unit_open: false,
    completions: true,
    commands: false,
    durability: false,
    detect,
    open,
    create: None,
};

/// What a user may name as the event that makes a request, here and in binary blktrace.
pub(super) const NAMES: &[(&str, Action)] =
    &[("Q", Action::Queue), ("D", Action::Issue), ("C", Action::Complete), ("I", Action::Insert)];
/// Which event makes a request when the user does not say, here and in binary blktrace.
pub(super) const PREFERENCE: &[Action] = &[Action::Queue, Action::Issue, Action::Complete];

const SHAPE: &str =
    "'major,minor cpu sequence seconds pid action rwbs …', a '#' line or blkparse's statistics";

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
        b"M" | b"F" | b"G" | b"S" | b"P" | b"U" | b"UT" | b"X" | b"B" | b"A" | b"T" | b"m" => {
            return Ok(Line::Other);
        }
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
    let synchronous = is_synchronous(rwbs);
    let durability = durability(rwbs);
    let mut event =
        Event { time, start: 0, sectors: 0, operation, durability, synchronous, action, process, volume: 0 };
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
                    _ => {
                        return Err(Unexpected::new(
                            "text",
                            tokens.rest(),
                            "'+ sectors', '[…]' or '(command)'",
                        ));
                    }
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
    Ok(Box::new(EventLog::new(Blkparse { input, in_statistics: false }, choice)))
}

struct Blkparse {
    input: Input,
    in_statistics: bool,
}

impl Log for Blkparse {
    fn step(&mut self, events: &mut Events) -> Result<bool, TraceError> {
        let Some(line) = self.input.next_line()? else { return Ok(false) };
        let parsed = parse(line.trim_ascii_end(), self.in_statistics);
        let position = Position::Line(self.input.line_number());
        match parsed {
            Ok(Line::Block(event, major, minor)) => events.push(event, major, minor, position),
            Ok(Line::Other) => {}
            Ok(Line::Statistics) => self.in_statistics = true,
            Err(wrong) => {
                return Err(TraceError::malformed(self.input.path(), position, wrong.found, wrong.allowed));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use planewise_model::{Direction, Lsn, Ns, Request};
    use proptest::prelude::*;

    const LOG: &[u8] = b"#Maj,Mn CPU   SeqNo     Seconds\n\
        259,0    3        1     0.000000000  1867  A   W 763360912 + 8 <- (253,3) 578805392\n\
        259,0    3        2     0.000000299  1867  Q   W 763360912 + 8 [dmcrypt_write/2]\n\
        259,0    3        3     0.000005809  1867  P   N [dmcrypt_write/2]\n\
        \x20 8,0    3        4     0.000006000  1867  Q   R 16 + 8 [a b]\n\
        259,0   11        5     0.000006100  1889  Q FWFS [jbd2/dm-4-8]\n\
        259,0   11        6     0.000006200  1889  Q  DS 64 + 8 [fstrim]\n\
        \x20 8,0   11        7     0.000006300  1889  D   R 36 (12 00 00 00 24 00 ..) [smartd]\n\
        259,0    3        8     0.000009435  1867  D   W 763360912 + 8 [dmcrypt_write/2]\n\
        259,0   11        9     0.000010000     0  C  FN 0 [0]\n\
        259,0    3       10     0.000100299     0  C   W 763360912 + 8 [0]\r\n\
        \x20 8,0    0        0     0.000100300     0  m   N cfq123 put_queue\n\
        CPU0 (nvme0n1):\n Reads Queued:           0,        0KiB\t Writes Queued:          18,        0KiB\n\
        \n\
        Total (nvme0n1):\n something new\nThroughput (R/W): 0KiB/s / 46KiB/s";

    #[test]
    fn queued_requests_are_read_and_all_else_is_passed_over() {
        let trace = read_bytes(&FORMAT, LOG).unwrap();
        let mut first = Request::new(Ns(299), Lsn(763_360_912), 8, Direction::Write);
        (first.process, first.response) = (1867, Some(Ns(100_000)));
        let mut second = Request::new(Ns(6_000), Lsn(16), 8, Direction::Read);
        (second.process, second.volume) = (1867, 1);
        let mut flush = Request::flush(Ns(6_100));
        (flush.process, flush.response) = (1889, Some(Ns(3_900)));
        let mut discard = Request::discard(Ns(6_200), Lsn(64), 8);
        (discard.process, discard.synchronous) = (1889, true);
        assert_eq!(trace.requests, [first, second, flush, discard]);
        assert_eq!(trace.volumes, ["259,0", "8,0"]);
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
        assert_eq!((FORMAT.detect)(LOG, true), Certainty::Certain);
    }

    #[test]
    fn the_event_can_be_chosen() {
        let trace = read_event(&FORMAT, LOG, "d").unwrap();
        assert_eq!(trace.requests.iter().map(|r| r.arrival).collect::<Vec<_>>(), [Ns(9_435)]);
        assert_eq!(trace.warnings, ["1 events without data skipped: the model has no such request"]);
        let completed = read_event(&FORMAT, LOG, "C").unwrap().requests;
        assert_eq!(completed.iter().map(|r| r.arrival).collect::<Vec<_>>(), [Ns(10_000), Ns(100_299)]);
        assert!(read_event(&FORMAT, LOG, "E").is_err());
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_allowed() {
        for (line, complaint) in [
            ("8,0 1 1 0.0 7 Z W 8 + 8 [a]", "action 'Z'"),
            ("8,0 1 1 0 7 Q W 8 + 8 [a]", "time '0'; allowed: seconds.fraction"),
            ("8,0 1 1 0.0 7 Q W 8 + x [a]", "length 'x'"),
            ("8,0 1 1 0.0 7 Q W x", "text 'x'"),
            ("8,0 1 1 0.0 7 Q W 18446744073709551615 + 8 [a]", "range"),
            ("hello world", "line 'hello world'"),
        ] {
            let error = read_bytes(&FORMAT, format!("\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("test:2: ") && error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn mutilated_logs_never_panic() {
        mutilate(&FORMAT, LOG);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (FORMAT.detect)(&bytes, true);
            let _ = read_bytes(&FORMAT, &bytes);
        }
    }

    #[test]
    fn the_shared_log_of_completions_alone_is_read_by_its_completions() {
        let name = "blktrace-txt/leveldb-ram0.blkparse.txt.zst";
        let Some(trace) = read_shared(&FORMAT, name, None) else { return };
        assert_eq!(trace.requests.len(), 840);
        assert_eq!(trace.volumes, ["1,0"]);
        assert_eq!(trace.write_percent(), 100.0);
    }

    #[test]
    fn remaps_of_the_shared_log_are_not_counted_twice() {
        let name = "blktrace-txt/nvme0n1.blkparse.txt.zst";
        let Some(queued) = read_shared(&FORMAT, name, None) else { return };
        // The log's own statistics: 248 queued of which 23 are flushes; 142 dispatched of which 23 are (it counts those as reads).
        let flushes = |trace: &Trace| trace.requests.iter().filter(|request| !request.is_transfer()).count();
        assert_eq!((queued.requests.len(), flushes(&queued)), (248, 23));
        assert!(queued.warnings.is_empty(), "{:?}", queued.warnings);
        let issued = read_shared(&FORMAT, name, Some("D")).unwrap();
        assert_eq!((issued.requests.len(), flushes(&issued)), (142, 23));
        let kib = |trace: &Trace| trace.requests.iter().map(|request| request.bytes().0).sum::<u64>() / 1024;
        assert_eq!((kib(&queued), kib(&issued)), (1_154, 1_154));
        assert!(issued.requests.iter().all(|request| request.response.is_some()));
    }
}
