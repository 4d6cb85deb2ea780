//! DiskSim: the default ASCII form of Bucy et al.'s simulator (manual of version 4.0, "Input traces").
//!
//! ```text
//! 15849.28847 0 6198696 8 0          time device block length flags
//! ```
//!
//! Time is milliseconds with a fraction, block and length count 512-byte sectors, flags are hexadecimal and their bit 0
//! means a read; the other bits (synchronous, time-critical …) are passed over. The device is the volume.
//!
//! The writer writes all six digits of a nanosecond; process and response are not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{BLANK, Clock, Columns, Wrong, sector_range};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::io::Write;
use std::path::Path;

/// DiskSim ASCII.
pub static FORMAT: Format = Format {
    name: "disksim",
    description: "DiskSim ASCII: time (ms) device block length (sectors) flags (bit 0: read)",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<DiskSim>,
    open: lines::open::<DiskSim>,
    create: Some(create),
};

struct DiskSim {
    clock: Clock,
}

impl Layout for DiskSim {
    const HEADER: &'static [&'static str] = &[];

    fn new(options: &ReadOptions) -> DiskSim {
        DiskSim { clock: Clock::decimal(1_000_000).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<BLANK>::new(line);
        let time = columns.time("time", self.clock)?;
        let volume = columns.number32("device")?;
        let start = columns.number("block")?;
        let length = columns.number("length")?;
        let direction = columns.direction("flags", odd_reads, "hexadecimal digits; bit 0 set for a read")?;
        columns.end("5 columns")?;
        let (start, sectors) = sector_range(start, length)?;
        Ok(Some(Request { volume, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // Where the times have fractions no other format fits; where not, SSDsim and MQSim do.
        Certainty::Possible
    }
}

#[inline]
fn odd_reads(flags: &[u8]) -> Option<Direction> {
    let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    // The codes of 1, 3, … 9 are odd; those of a, c, e and A, C, E too, which stand for even digits.
    let last = digits[digits.len() - 1];
    let is_odd = (last % 2 == 1) == last.is_ascii_digit();
    Some(if is_odd { Direction::Read } else { Direction::Write })
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    lines::byte_range(request)?;
    let flags = match request.direction {
        Direction::Write => 0,
        Direction::Read => 1,
    };
    let (milliseconds, fraction) = (request.arrival.0 / 1_000_000, request.arrival.0 % 1_000_000);
    let Request { volume, start, sectors, .. } = request;
    writeln!(sink, "{milliseconds}.{fraction:06} {volume} {} {sectors} {flags}", start.0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn bit_0_of_hexadecimal_flags_means_a_read() {
        for digit in 0..16u32 {
            let expected = if digit & 1 == 1 { Direction::Read } else { Direction::Write };
            for text in [format!("{digit:x}"), format!("{digit:X}"), format!("0x4{digit:x}")] {
                assert_eq!(odd_reads(text.as_bytes()), Some(expected), "{text}");
            }
        }
        for wrong in ["", "0x", "g", "-1", "123456789"] {
            assert_eq!(odd_reads(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("-0.5 0 0 8 0", "test:2: time '-0.5'"),
            ("inf 0 0 8 0", "test:2: time 'inf'"),
            ("1e3 0 0 8 0", "without exponent"),
            ("0.5 0 0 0 1", "test:2: a request of 0 sectors"),
            ("0.5 0 0 8 z", "test:2: flags 'z'"),
            ("0.5 0 0", "test:2: no length: the line ends before it"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("0.0 0 0 8 0\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts() {
        if let Some(trace) = read_shared(&FORMAT, "disksim/pcmark.trace.zst", None) {
            Expected::new(56_088, 25.4, 76.9, 212.0, 1_466.0).check(&trace, "pcmark");
            assert_eq!(trace.requests[0].arrival, Ns(15_849_288_470));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let requests = sample(200, 1);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        let kept: Vec<_> = requests.iter().map(|r| Request { process: 0, response: None, ..*r }).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Possible);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(6, 1)).unwrap());
    }
}
