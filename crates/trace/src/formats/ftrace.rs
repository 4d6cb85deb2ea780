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
//! counts again when it is issued again, and is reported.
//!
//! Flushes, discards and forced writes are what they are; other commands without data are counted and left out; lines of other events and the tracers' own
//! headers are passed over; lost events are reported ([`Reader::warnings`]); any other line is an error.

use super::block_events::{Action, Choice, Event, Operation, classify, durability, is_synchronous};
use super::event_log::{EventLog, Events, Log};
use super::tokens::{self, Tokens, Unexpected};
use super::{Certainty, Format, ReadOptions, Reader};
use crate::error::{Position, TraceError};
use crate::input::Input;

/// ftrace, trace-cmd and perf text.
pub static FORMAT: Format = Format {
    name: "ftrace",
    description: "ftrace, trace-cmd or perf script text with block events (--event issue, insert, queue, complete)",
    time_unit_open: false,
    completions: true,
    commands: false,
    durability: false,
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
    let event = Event {
        time: prefix.time,
        start,
        sectors,
        operation,
        durability: durability(rwbs),
        synchronous: is_synchronous(rwbs),
        action,
        process: prefix.process,
        volume: 0,
    };
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
        let open = from + memchr::memchr(b'[', &line[from..])?;
        let close = open + memchr::memchr(b']', &line[open..])?;
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
    Ok(Box::new(EventLog::new(Ftrace { input, lost: 0 }, choice)))
}

struct Ftrace {
    input: Input,
    lost: u64,
}

impl Log for Ftrace {
    fn step(&mut self, events: &mut Events) -> Result<bool, TraceError> {
        let Some(line) = self.input.next_line()? else { return Ok(false) };
        let parsed = parse(trim_end(line));
        let position = Position::Line(self.input.line_number());
        match parsed {
            Ok(Line::Block(event, major, minor)) => events.push(event, major, minor, position),
            Ok(Line::Other) => {}
            Ok(Line::Lost) => self.lost += 1,
            Err(wrong) => {
                return Err(TraceError::malformed(self.input.path(), position, wrong.found, wrong.allowed));
            }
        }
        Ok(true)
    }

    fn warnings(&self) -> Vec<String> {
        let places = self.lost;
        let warning = || format!("the tracer lost events at {places} places: requests are missing");
        (places > 0).then(warning).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use planewise_model::{Direction, Lsn, Ns, Request};
    use proptest::prelude::*;

    const LOG: &[u8] = b"# tracer: nop\n#\n\
        \x20       postgres-26671   [001] .....  1866.579847: block_rq_issue: 7,1 W 8192 () 3675024 + 16 be,0,4 [postgres]\n\
        \x20      my - [0] x-77      (   70) [000] d..1  1866.579900: block_rq_issue: 8,0 RA 4096 () 80 + 8 [my - [0] x]\r\n\
        CPU:1 [LOST 42 EVENTS]\n\
        \x20         <idle>-0       [000] dNs1.  1866.579950: block_rq_complete: 8,0 RA () 80 + 8 be,0,4 [0]\n\
        \x20    kworker/0-54      [000] .....  1866.580000: block_rq_issue: 7,1 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]\n\
        \x20    kworker/0-54      [000] .....  1866.580001: sched_wakeup: comm=x pid=3 prio=120\n\
        \x20    ksoftirqd-22      [001] ..s..  1866.580847: block_rq_complete: 7,1 W () 3675024 + 16 be,0,4 [0]";

    #[test]
    fn commands_with_blanks_dashes_and_brackets_and_both_devices_are_read() {
        let trace = read_bytes(&FORMAT, LOG).unwrap();
        let mut first = Request::new(Ns(1_866_579_847_000), Lsn(3_675_024), 16, Direction::Write);
        (first.process, first.response) = (26_671, Some(Ns(1_000_000)));
        let mut second = Request::new(Ns(1_866_579_900_000), Lsn(80), 8, Direction::Read);
        (second.process, second.volume, second.response) = (77, 1, Some(Ns(50_000)));
        let mut flush = Request::flush(Ns(1_866_580_000_000));
        flush.process = 54;
        assert_eq!(trace.requests, [first, second, flush]);
        assert_eq!(trace.volumes, ["7,1", "8,0"]);
        assert_eq!(trace.warnings.len(), 1, "one place of lost events: {:?}", trace.warnings);
        assert_eq!((FORMAT.detect)(LOG, true), Certainty::Certain);
    }

    #[test]
    fn perf_and_trace_cmd_print_the_same_events() {
        for line in [
            "fio  4711 [002]   12.345678: block:block_rq_issue: 259,0 WS 4096 () 128 + 8 [fio]",
            "my fio  4700/4711 [002]   12.345678000: block:block_rq_issue: 259,0 WS 4096 () 128 + 8 [my fio]",
            "  fio-4711  [002]    12.345678: block_rq_issue:  259,0 WS 4096 () 128 + 8 be,0,4 [fio]",
            "  fio-4711  [002] ...1 12.345678: block_bio_queue: 259,0 WS 128 + 8 [fio]",
        ] {
            let trace = read_bytes(&FORMAT, line.as_bytes()).unwrap();
            let mut expected = Request::new(Ns(12_345_678_000), Lsn(128), 8, Direction::Write);
            (expected.process, expected.synchronous) = (4711, true);
            assert_eq!(trace.requests, [expected], "{line}");
        }
    }

    #[test]
    fn completions_can_be_chosen_and_an_unknown_event_names_the_known() {
        let trace = read_event(&FORMAT, LOG, "complete").unwrap();
        assert_eq!(trace.requests.iter().map(|r| r.start.0).collect::<Vec<_>>(), [80, 3_675_024]);
        let error = read_event(&FORMAT, LOG, "isue").unwrap_err().to_string();
        assert!(error.contains("did you mean 'issue'?"), "{error}");
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_allowed() {
        for (line, complaint) in [
            ("hello", "line 'hello'"),
            ("a-1 [000] . 1.0: block_rq_issue: 7 W 8192 () 8 + 16 [a]", "device '7'; allowed: major,minor"),
            ("a-1 [000] . 1.0: block_rq_issue: 7,1 Q 8192 () 8 + 16 [a]", "operation 'Q'"),
            ("a-1 [000] . 1.0: block_rq_issue: 7,1 W 8192 () 8 - 16 [a]", "text '- 16 [a]'"),
            ("a-1 [000] . 1.0: block_rq_issue: 7,1 W 8192 () 8 + 4294967296 [a]", "length '4294967296'"),
            ("a-1 [000] . 1.0: block_rq_issue: 7,1 W 8192 () 18446744073709551615 + 1 [a]", "range"),
            ("a-1 [000] . 18446744074.0: block_rq_issue: 7,1 W 8192 () 8 + 1 [a]", "line"),
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

    /// The captures were converted to MSR columns by other means: the two must tell the same, response times included.
    /// The conversion left out what the end of the capture left without a completion.
    fn compare_with_derived(
        capture: &str,
        derived: &str,
        [count, unfinished]: [usize; 2],
        write_percent: f64,
    ) {
        let (Some(mut trace), Some(derived)) = (read_shared(&FORMAT, capture, None), shared(derived)) else {
            return;
        };
        // Nor did it keep flushes.
        let all = trace.requests.len();
        trace.requests.retain(Request::is_transfer);
        assert!(
            (trace.requests.len() + 10_000..2 * trace.requests.len()).contains(&all),
            "{all} with flushes"
        );
        assert_eq!(trace.requests.len(), count + unfinished);
        assert!(trace.requests[count..].iter().all(|request| request.response.is_none()));
        trace.requests.truncate(count);
        assert!((trace.write_percent() - write_percent).abs() < 0.05, "{}", trace.write_percent());
        let mut csv = Input::open(&derived).unwrap();
        let mut rows = Vec::new();
        while let Some(line) = csv.next_line().unwrap() {
            rows.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(rows.len(), count);
        let base = trace.requests[0].arrival;
        for (request, row) in trace.requests.iter().zip(&rows) {
            let kind = if request.direction == Direction::Read { "Read" } else { "Write" };
            let stamp = 133_000_000_000_000_000 + (request.arrival - base).0 / 100;
            let fields: Vec<&str> = row.trim_end().split(',').collect();
            assert_eq!(fields[0], stamp.to_string(), "{row}");
            assert_eq!((fields[3], fields[4]), (kind, (request.start.0 * 512).to_string().as_str()), "{row}");
            assert_eq!(fields[5], request.bytes().0.to_string(), "{row}");
            let response = request.response.map_or(0, |response| response.0 / 100);
            assert_eq!(fields[6], response.to_string(), "{row}");
        }
    }

    #[test]
    fn the_postgres_capture_equals_its_derived_csv() {
        let capture = "self-captured/pgbench_tpcb.loop-ext4.first400k.ftrace.txt.zst";
        compare_with_derived(capture, "derived/pgbench_tpcb.msrfmt.csv.zst", [156_403, 0], 54.9);
    }

    #[test]
    fn the_sqlite_capture_equals_its_derived_csv() {
        let capture = "self-captured/sqlite_wal.loop-ext4.first300k.ftrace.txt.zst";
        compare_with_derived(capture, "derived/sqlite_wal.msrfmt.csv.zst", [115_533, 54], 100.0);
    }
}
