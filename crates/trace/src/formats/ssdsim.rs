//! SSDsim: the five whole numbers of Hu et al.'s simulator (ICS'11), which MQSim reads too ([`super::mqsim`]).
//!
//! ```text
//! 26214000 0 303574 7 0          time device address length operation
//! ```
//!
//! Address and length count 512-byte sectors; operation 0 writes and 1 reads; the device is the volume. SSDsim takes the
//! time in nanoseconds, but files in its form with microseconds or steps of 100 ns are about, and nothing in the file
//! tells: the user must name the unit.
//!
//! The writer writes nanoseconds; process and response are not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{BLANK, Clock, Columns, Wrong, sector_range};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::io::Write;
use std::path::Path;

/// SSDsim ASCII.
pub static FORMAT: Format = Format {
    name: "ssdsim",
    description: "SSDsim ASCII: time (--time-unit) device address length (sectors) operation (0 write, 1 read)",
    time_unit_open: true,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<SsdSim>,
    open: lines::open::<SsdSim>,
    create: Some(create),
};

/// The five columns. Also MQSim's.
pub(super) struct SsdSim {
    clock: Clock,
}

impl Layout for SsdSim {
    const HEADER: &'static [&'static str] = &[];

    fn new(options: &ReadOptions) -> SsdSim {
        SsdSim { clock: Clock::whole(1).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<BLANK>::new(line);
        let time = columns.time("time", self.clock)?;
        let volume = columns.number32("device")?;
        let start = columns.number("address")?;
        let length = columns.number("length")?;
        let direction = columns.direction("operation", zero_writes, "0 (write) or 1 (read)")?;
        columns.end("5 columns")?;
        let (start, sectors) = sector_range(start, length)?;
        Ok(Some(Request { volume, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // SSDsim, MQSim and, with whole milliseconds, DiskSim look alike.
        Certainty::Possible
    }
}

#[inline]
fn zero_writes(digit: &[u8]) -> Option<Direction> {
    match digit {
        b"0" => Some(Direction::Write),
        b"1" => Some(Direction::Read),
        _ => None,
    }
}

/// Also MQSim's writer.
pub(super) fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    lines::byte_range(request)?;
    let operation = match request.direction {
        Direction::Write => 0,
        Direction::Read => 1,
    };
    let Request { arrival, volume, start, sectors, .. } = request;
    writeln!(sink, "{} {volume} {} {sectors} {operation}", arrival.0, start.0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::TimeUnit;
    use super::super::testing::*;
    use super::*;
    use crate::input::Input;

    #[test]
    fn the_unit_of_time_is_the_users_choice() {
        let read = |unit| {
            let options = ReadOptions { time_unit: Some(unit), ..ReadOptions::default() };
            let trace = read_input(&FORMAT, Input::from_bytes("test", b"12 3 100 8 1\n".to_vec()), &options);
            trace.unwrap().requests[0]
        };
        let request = |ns| Request { volume: 3, ..Request::new(Ns(ns), Lsn(100), 8, Direction::Read) };
        assert_eq!(read(TimeUnit::Nanoseconds), request(12));
        assert_eq!(read(TimeUnit::Microseconds), request(12_000));
        assert_eq!(read(TimeUnit::Seconds), request(12_000_000_000));
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("-1 0 0 8 0", "test:2: time '-1'"),
            ("1.5 0 0 8 0", "test:2: time '1.5'"),
            ("1 0 0 0 0", "test:2: a request of 0 sectors at sector 0"),
            ("1 0 0 8 2", "test:2: operation '2'; allowed: 0 (write) or 1 (read)"),
            ("1 0 0 8", "test:2: no operation: the line ends before it"),
            ("1 0 0 8 0 0", "test:2: a further column '0'; allowed: 5 columns"),
            ("1 0 36028797018963967 8 0", "test:2: a request of 8 sectors at sector 36028797018963967"),
            ("1,0,0,8,0", "test:2: time '1,0,0,8,0'"),
            ("\u{0}\u{1}", "test:2: time '\\x00\\x01'"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("0 0 0 8 0\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts_and_its_last_line_no_newline() {
        if let Some(trace) = read_shared(&FORMAT, "umass/financial1.first10k.ssdsim.ascii.zst", None) {
            Expected::new(10_000, 59.2, 6.1, 4.9, 260.0).check(&trace, "financial1 ssdsim");
            let volumes: std::collections::BTreeSet<u32> = trace.requests.iter().map(|r| r.volume).collect();
            assert_eq!(volumes.len(), 22);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let requests = sample(200, 1);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        let kept: Vec<_> = requests.iter().map(|r| Request { process: 0, response: None, ..*r }).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(6, 1)).unwrap());
    }
}
