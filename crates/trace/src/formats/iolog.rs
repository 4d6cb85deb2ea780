//! fio's I/O logs (`write_iolog`), versions 2 and 3.
//!
//! ```text
//! fio version 3 iolog
//! 22 f.dat add                          timestamp file action
//! 188 f.dat write 16187392 4096         timestamp file action offset length
//! ```
//!
//! Offsets and lengths are bytes; a range covers whole sectors. Each file is a volume, numbered in order of first
//! appearance.
//!
//! **Time.** Version 3 (fio 3.31 and later): fio's manual does not name the unit, its source writes and replays
//! microseconds, and so does the default here; a log written by hand or by another tool in another unit needs the
//! user's choice of time unit. Version 2 has no stamps: every request arrives at 0 but for `wait` lines, each of which
//! moves the clock on by its offset, in microseconds as the manual says (or the unit the user names).
//!
//! `sync` and `datasync` are flushes, `trim` is a discard; `add`, `open` and `close` only introduce files.
//!
//! The writer writes version 3, a file `volumeN` for each volume, times cut to microseconds; process and response are
//! not kept.

use super::tokens::{Tokens, Unexpected};
use super::{Certainty, Format, ReadOptions, Reader, TimeUnit, Writer};
use crate::error::{Position, TraceError};
use crate::input::Input;
use planewise_model::{Direction, Lsn, Ns, Operation, Request, SECTOR_BYTES, names};
use std::io::Write;
use std::path::{Path, PathBuf};

/// fio iolog.
pub static FORMAT: Format = Format {
    name: "iolog",
    description: "fio iolog 2 and 3: [timestamp] file action [offset length] (bytes; version 3 stamps: us)",
    time_unit_open: false,
    completions: false,
    commands: true,
    durability: false,
    detect,
    open,
    create: Some(create),
};

const ACTIONS: [&str; 9] = ["read", "write", "sync", "datasync", "trim", "wait", "add", "open", "close"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// A line after the header.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Request { time: u64, file: &'a [u8], request: Request },
    Wait(u64),
    File(&'a [u8]),
    Empty,
}

fn version_of(header: &[u8]) -> Option<Version> {
    match header.trim_ascii_end() {
        b"fio version 2 iolog" => Some(Version::Two),
        b"fio version 3 iolog" => Some(Version::Three),
        _ => None,
    }
}

fn detect(head: &[u8], _whole: bool) -> Certainty {
    // Any version: a header of an unknown one is answered by `open` better than by "unknown format".
    if head.starts_with(b"fio version ") { Certainty::Certain } else { Certainty::No }
}

fn parse(version: Version, line: &[u8]) -> Result<Line<'_>, Unexpected> {
    let mut tokens = Tokens::new(line);
    if tokens.rest().is_empty() {
        return Ok(Line::Empty);
    }
    let time = match version {
        Version::Two => 0,
        Version::Three => tokens.number("timestamp", "a whole number")?,
    };
    let file = tokens.token();
    let action = tokens.token();
    match action {
        b"read" | b"write" | b"trim" => {
            let offset = tokens.number("offset", "a number of bytes")?;
            let length = tokens.number("length", "a number of bytes")?;
            end(&mut tokens)?;
            let (start, sectors) = whole_sectors(offset, length)
                .ok_or_else(|| Unexpected::new("range", line, "1 byte to 2 TiB, ending below 2^64"))?;
            let (at, start) = (Ns::ZERO, Lsn(start));
            let request = match action {
                b"read" => Request::new(at, start, sectors, Direction::Read),
                b"write" => Request::new(at, start, sectors, Direction::Write),
                _ => Request::discard(at, start, sectors),
            };
            Ok(Line::Request { time, file, request })
        }
        b"wait" if version == Version::Two => {
            let span = tokens.number("wait", "a whole number")?;
            // fio itself asks for a length too and does not use it.
            tokens.token();
            end(&mut tokens)?;
            Ok(Line::Wait(span))
        }
        b"wait" => {
            Err(Unexpected::new("action", action, "no 'wait' in version 3: its lines have timestamps"))
        }
        b"sync" | b"datasync" => Ok(Line::Request { time, file, request: Request::flush(Ns::ZERO) }),
        b"add" | b"open" | b"close" => {
            end(&mut tokens)?;
            Ok(Line::File(file))
        }
        _ => Err(unknown_action(action)),
    }
}

#[cold]
fn unknown_action(action: &[u8]) -> Unexpected {
    let mut unexpected = Unexpected::new(
        "action",
        action,
        "read, write, sync, datasync, trim, wait (version 2), add, open, close",
    );
    if let Some(nearest) = names::nearest(&String::from_utf8_lossy(action), ACTIONS) {
        unexpected.found.push_str(&format!(" (did you mean '{nearest}'?)"));
    }
    unexpected
}

fn end(tokens: &mut Tokens<'_>) -> Result<(), Unexpected> {
    match tokens.rest() {
        [] => Ok(()),
        rest => Err(Unexpected::new("text", rest, "the end of the line")),
    }
}

/// The sectors that a byte range touches.
fn whole_sectors(offset: u64, length: u64) -> Option<(u64, u32)> {
    let end = offset.checked_add(length)?.div_ceil(SECTOR_BYTES);
    let start = offset / SECTOR_BYTES;
    let sectors = u32::try_from(end - start).ok()?;
    (length > 0).then_some((start, sectors))
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let path = input.path().to_owned();
    let header = input.next_line()?.unwrap_or_default();
    let Some(version) = version_of(header) else {
        let found = Unexpected::new("header", header.trim_ascii_end(), "").found;
        let allowed = "'fio version 2 iolog' or 'fio version 3 iolog'";
        return Err(TraceError::malformed(&path, Position::Line(1), found, allowed));
    };
    let nanoseconds_per_tick = match options.time_unit.unwrap_or(TimeUnit::Microseconds) {
        TimeUnit::Nanoseconds => 1,
        TimeUnit::Microseconds => 1_000,
        TimeUnit::Milliseconds => 1_000_000,
        TimeUnit::Seconds => 1_000_000_000,
    };
    Ok(Box::new(Iolog {
        input,
        path,
        version,
        nanoseconds_per_tick,
        clock: 0,
        files: Vec::new(),
        last_file: 0,
        position: Position::File,
    }))
}

struct Iolog {
    input: Input,
    path: PathBuf,
    version: Version,
    nanoseconds_per_tick: u64,
    /// Version 2: the sum of the waits so far, in the log's unit.
    clock: u64,
    files: Vec<String>,
    last_file: usize,
    position: Position,
}

/// The number of a file, which is new or known.
fn file_number(files: &mut Vec<String>, last: &mut usize, name: &[u8]) -> u32 {
    if files.get(*last).is_none_or(|known| known.as_bytes() != name) {
        let text = String::from_utf8_lossy(name);
        *last = files.iter().position(|known| *known == text).unwrap_or_else(|| {
            files.push(text.into_owned());
            files.len() - 1
        });
    }
    *last as u32
}

impl Reader for Iolog {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < limit {
            let Some(line) = self.input.next_line()? else { break };
            let parsed = parse(self.version, line.trim_ascii_end());
            let too_late = || Unexpected::new("time", line.trim_ascii_end(), "a time below 2^64 ns");
            let result = match parsed {
                Ok(Line::Request { time, file, mut request }) => {
                    let ticks = if self.version == Version::Two { self.clock } else { time };
                    match ticks.checked_mul(self.nanoseconds_per_tick) {
                        Some(time) => {
                            request.arrival = Ns(time);
                            request.volume = file_number(&mut self.files, &mut self.last_file, file);
                            batch.push(request);
                            count += 1;
                            Ok(true)
                        }
                        None => Err(too_late()),
                    }
                }
                Ok(Line::Wait(span)) => match self.clock.checked_add(span) {
                    Some(clock) => {
                        self.clock = clock;
                        Ok(false)
                    }
                    None => Err(too_late()),
                },
                Ok(Line::File(file)) => {
                    file_number(&mut self.files, &mut self.last_file, file);
                    Ok(false)
                }
                Ok(Line::Empty) => Ok(false),
                Err(wrong) => Err(wrong),
            };
            let position = Position::Line(self.input.line_number());
            match result {
                Ok(true) => self.position = position,
                Ok(false) => {}
                Err(wrong) => {
                    return Err(TraceError::malformed(&self.path, position, wrong.found, wrong.allowed));
                }
            }
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        self.position
    }

    fn volume_names(&self) -> &[String] {
        &self.files
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    let mut writer = IologWriter { sink, path: path.to_owned(), volumes: Vec::new(), last_time: 0 };
    writer.put(format_args!("fio version 3 iolog\n"))?;
    Ok(Box::new(writer))
}

struct IologWriter {
    sink: Box<dyn Write + Send>,
    path: PathBuf,
    volumes: Vec<u32>,
    last_time: u64,
}

impl IologWriter {
    fn put(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), TraceError> {
        self.sink.write_fmt(text).map_err(|source| TraceError::io(&self.path, source))
    }

    /// fio wants a file added and opened before it is used.
    fn introduce(&mut self, volume: u32, time: u64) -> Result<(), TraceError> {
        if let Err(place) = self.volumes.binary_search(&volume) {
            self.volumes.insert(place, volume);
            self.put(format_args!("{time} volume{volume} add\n{time} volume{volume} open\n"))?;
        }
        Ok(())
    }
}

impl Writer for IologWriter {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        let is_flush = request.operation.is_flush();
        let range = request.start.0.checked_mul(SECTOR_BYTES).filter(|_| request.sectors > 0 || is_flush);
        let Some(offset) = range else {
            let found = format!("{} sectors at sector {}", request.sectors, request.start.0);
            return Err(TraceError::malformed(
                &self.path,
                Position::File,
                found,
                "at least 1 sector, below byte 2^64",
            ));
        };
        let time = request.arrival.0 / 1_000;
        self.last_time = time;
        self.introduce(request.volume, time)?;
        let action = match (request.operation, request.direction) {
            (Operation::Transfer, Direction::Read) => "read",
            (Operation::Transfer, Direction::Write) => "write",
            (Operation::Flush | Operation::FlushWithMetadata, _) => "sync",
            (Operation::Discard, _) => "trim",
        };
        let (volume, bytes) = (request.volume, request.bytes().0);
        self.put(format_args!("{time} volume{volume} {action} {offset} {bytes}\n"))
    }

    fn finish(mut self: Box<Self>) -> Result<(), TraceError> {
        let time = self.last_time;
        for volume in std::mem::take(&mut self.volumes) {
            self.put(format_args!("{time} volume{volume} close\n"))?;
        }
        self.sink.flush().map_err(|source| TraceError::io(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use proptest::prelude::*;

    const LOG: &[u8] = b"fio version 3 iolog\n22 f.dat add\n30 g.dat add\n184 f.dat open\n\
        188 f.dat write 16187392 4096\r\n217 g.dat read 511 2\n300 f.dat sync 0 0\n301 f.dat trim 0 4096\n\n\
        400 f.dat read 0 512\n500 f.dat close";

    fn read_in(unit: TimeUnit, bytes: &[u8]) -> Result<Trace, TraceError> {
        let options = ReadOptions { time_unit: Some(unit), ..ReadOptions::default() };
        read_input(&FORMAT, Input::from_bytes("test", bytes.to_vec()), &options)
    }

    #[test]
    fn version_3_is_in_microseconds_and_each_file_is_a_volume() {
        let trace = read_bytes(&FORMAT, LOG).unwrap();
        let mut second = Request::new(Ns(217_000), Lsn(0), 2, Direction::Read);
        second.volume = 1;
        let expected = [
            Request::new(Ns(188_000), Lsn(31_616), 8, Direction::Write),
            second,
            Request::flush(Ns(300_000)),
            Request::discard(Ns(301_000), Lsn(0), 8),
            Request::new(Ns(400_000), Lsn(0), 1, Direction::Read),
        ];
        assert_eq!(trace.requests, expected);
        assert_eq!(trace.volumes, ["f.dat", "g.dat"]);
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
        assert_eq!((FORMAT.detect)(LOG, true), Certainty::Certain);
    }

    #[test]
    fn the_users_time_unit_wins() {
        let trace = read_in(TimeUnit::Milliseconds, LOG).unwrap();
        assert_eq!(trace.requests[0].arrival, Ns::from_millis(188));
    }

    #[test]
    fn version_2_knows_no_time_but_its_waits() {
        let log = b"fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read 0 4096\n/dev/a wait 150 0\n\
            /dev/a write 4096 4096\n/dev/a wait 50\n/dev/a read 0 512\n/dev/a close\n";
        let trace = read_bytes(&FORMAT, log).unwrap();
        assert_eq!(trace.requests.iter().map(|r| r.arrival.0).collect::<Vec<_>>(), [0, 150_000, 200_000]);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_allowed() {
        for (line, complaint) in [
            ("5 f raed 0 512", "action 'raed' (did you mean 'read'?)"),
            ("5 f wait 100", "no 'wait' in version 3"),
            ("f read 0 512", "timestamp 'f'"),
            ("5 f read 0", "length ''"),
            ("5 f read 0 0", "range"),
            ("5 f read 18446744073709551615 1", "range"),
            ("5 f read 0 512 7", "text '7'"),
            ("18446744073709551615 f read 0 512", "time '"),
        ] {
            let log = format!("fio version 3 iolog\n{line}\n");
            let error = read_bytes(&FORMAT, log.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("test:2: ") && error.contains(complaint), "{error}");
        }
        let error = read_bytes(&FORMAT, b"fio version 4 iolog\n").unwrap_err().to_string();
        assert!(
            error.contains("'fio version 4 iolog'") && error.contains("'fio version 3 iolog'"),
            "{error}"
        );
    }

    #[test]
    fn mutilated_logs_never_panic() {
        mutilate(&FORMAT, LOG);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            for header in ["", "fio version 2 iolog\n", "fio version 3 iolog\n"] {
                let bytes = [header.as_bytes(), &bytes].concat();
                let _ = (FORMAT.detect)(&bytes, true);
                let _ = read_bytes(&FORMAT, &bytes);
            }
        }

        #[test]
        fn what_is_written_is_read_back(
            rows in proptest::collection::vec(
                (0..1u64 << 50, 0..1u64 << 54, 1..=u32::MAX, 0..4usize, 0..4u32), 0..40)
        ) {
            let requests: Vec<Request> = rows
                .into_iter()
                .map(|(us, start, sectors, kind, volume)| {
                    let at = Ns::from_micros(us);
                    let request = match kind {
                        2 => Request::flush(at),
                        3 => Request::discard(at, Lsn(start), sectors),
                        direction => Request::new(at, Lsn(start), sectors, Direction::ALL[direction]),
                    };
                    Request { volume, ..request }
                })
                .collect();
            let trace = read_bytes(&FORMAT, &write_all(&FORMAT, &requests).unwrap()).unwrap();
            // Volumes are numbered anew, in order of appearance; their names tell the old number.
            let renamed = trace.requests.iter().map(|request| {
                let name = &trace.volumes[request.volume as usize];
                Request { volume: name.trim_start_matches("volume").parse().unwrap(), ..*request }
            });
            prop_assert_eq!(renamed.collect::<Vec<_>>(), requests);
        }
    }

    #[test]
    fn the_shared_log_has_the_known_counts() {
        let Some(trace) = read_shared(&FORMAT, "self-captured/fio-3.33.randrw.v3.iolog.zst", None) else {
            return;
        };
        let flushes = trace.requests.iter().filter(|request| !request.is_transfer()).count();
        assert_eq!((flushes, trace.requests.len()), (123, 15_925 + 6_635 + 123));
        assert!((trace.write_percent() - 29.0).abs() < 0.5, "{}", trace.write_percent());
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
        // Nine seconds of fio: in milliseconds it would have been two and a half hours.
        assert!((trace.span_seconds() - 8.98).abs() < 0.01, "{}", trace.span_seconds());
    }
}
