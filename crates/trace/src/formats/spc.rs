//! SPC: the comma-separated form of the Storage Performance Council (SPC Trace File Format Specification 1.0.1), in
//! which the UMass repository keeps its Financial and WebSearch traces.
//!
//! ```text
//! ASU,LBA,Size,Opcode,Timestamp[,more]
//! 0,303567,3584,w,0.026214
//! ```
//!
//! The unit (ASU) is the volume, the address counts 512-byte sectors, the size is bytes (whole sectors are covered), the
//! stamp is seconds from the start. The specification allows optional columns behind these; they are passed over.
//!
//! The writer writes all nine digits of a nanosecond; process and response are not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, read_or_write, sector_range};
use planewise_model::{Direction, Lsn, Ns, Request, SECTOR_BYTES};
use std::io::Write;
use std::path::Path;

/// SPC ASCII.
pub static FORMAT: Format = Format {
    name: "spc",
    description: "SPC (UMass): ASU,LBA (sectors),Size (bytes),Opcode (r or w),Timestamp (s)",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<Spc>,
    open: lines::open::<Spc>,
    create: Some(create),
};

struct Spc {
    timestamps: Clock,
}

impl Layout for Spc {
    const HEADER: &'static [&'static str] = &["ASU", "LBA", "Size", "Opcode", "Timestamp"];

    fn new(options: &ReadOptions) -> Spc {
        Spc { timestamps: Clock::decimal(1_000_000_000).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let volume = columns.number32("ASU")?;
        let start = columns.number("LBA")?;
        let size = columns.number("Size")?;
        let direction = columns.direction("Opcode", read_or_write, "r or w")?;
        let time = columns.time("Timestamp", self.timestamps)?;
        let (start, sectors) = sector_range(start, size.div_ceil(SECTOR_BYTES))?;
        Ok(Some(Request { volume, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // No other format has its operation in the fourth of five columns as a letter.
        Certainty::Certain
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    let letter = match request.direction {
        Direction::Read => 'r',
        Direction::Write => 'w',
    };
    lines::byte_range(request)?;
    let (seconds, fraction) = (request.arrival.0 / 1_000_000_000, request.arrival.0 % 1_000_000_000);
    let (start, bytes) = (request.start.0, request.bytes().0);
    writeln!(sink, "{},{start},{bytes},{letter},{seconds}.{fraction:09}", request.volume)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn bytes_that_are_no_multiple_of_a_sector_cover_whole_sectors_and_more_columns_are_passed_over() {
        let trace = read_bytes(&FORMAT, b"0,20941264,8192,W,0.551706\n3,7,513,r,1.25,x,y\n").unwrap();
        let second = Request { volume: 3, ..Request::new(Ns(1_250_000_000), Lsn(7), 2, Direction::Read) };
        assert_eq!(trace.requests[0], Request::new(Ns(551_706_000), Lsn(20_941_264), 16, Direction::Write));
        assert_eq!(trace.requests[1], second);
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("-1,0,512,r,0.0", "test:2: ASU '-1'"),
            (
                "4294967296,0,512,r,0.0",
                "test:2: ASU '4294967296'; allowed: a whole number from 0 to 4294967295",
            ),
            ("0,0,0,r,0.0", "test:2: a request of 0 sectors"),
            ("0,0,512,x,0.0", "test:2: Opcode 'x'; allowed: r or w"),
            ("0,0,512,r,-0.5", "test:2: Timestamp '-0.5'"),
            ("0,0,512,r,nan", "test:2: Timestamp 'nan'"),
            ("0,0,512,r", "test:2: no Timestamp"),
            ("0,0,18446744073709551615,r,0", "sectors at sector 0"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("0,0,512,r,0.0\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts() {
        if let Some(trace) = read_shared(&FORMAT, "derived/financial1.first10k.spc.zst", None) {
            Expected::new(10_000, 59.2, 6.1, 4.9, 260.0).check(&trace, "financial1 spc");
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised() {
        let requests = sample(200, 1);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        let kept: Vec<_> = requests.iter().map(|r| Request { process: 0, response: None, ..*r }).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(6, 1)).unwrap());
    }
}
