//! Alibaba: the block traces of Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads" (IISWC'20).
//!
//! ```text
//! 419,W,8792731648,16384,1577808144360767          device_id,opcode,offset,length,timestamp
//! ```
//!
//! Offset and length are bytes; a range covers whole sectors. The stamp is microseconds. The device is the volume. The
//! header is optional (the published files have none).
//!
//! The writer cuts times to microseconds; process and response are not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, read_or_write, sectors_of_bytes};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::io::Write;
use std::path::Path;

/// Alibaba CSV.
pub static FORMAT: Format = Format {
    name: "alibaba",
    description: "Alibaba CSV: device_id,opcode (R or W),offset,length (bytes),timestamp (us)",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<Alibaba>,
    open: lines::open::<Alibaba>,
    create: Some(create),
};

struct Alibaba {
    clock: Clock,
}

impl Layout for Alibaba {
    const HEADER: &'static [&'static str] = &["device_id", "opcode", "offset", "length", "timestamp"];

    fn new(options: &ReadOptions) -> Alibaba {
        Alibaba { clock: Clock::whole(1_000).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let volume = columns.number32("device_id")?;
        let direction = columns.direction("opcode", read_or_write, "R or W")?;
        let offset = columns.number("offset")?;
        let length = columns.number("length")?;
        let time = columns.time("timestamp", self.clock)?;
        columns.end("5 columns")?;
        let (start, sectors) = sectors_of_bytes(offset, length)?;
        Ok(Some(Request { volume, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // No other format has a letter for its operation as the second of five columns.
        Certainty::Certain
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    let (offset, bytes) = lines::byte_range(request)?;
    let letter = match request.direction {
        Direction::Read => 'R',
        Direction::Write => 'W',
    };
    writeln!(sink, "{},{letter},{offset},{bytes},{}", request.volume, request.arrival.0 / 1_000)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_line_of_the_published_form_is_read() {
        let text = b"device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,1577808144360767\n";
        let expected =
            Request::new(Ns(1_577_808_144_360_767_000), Lsn(8_792_731_648 / 512), 32, Direction::Write);
        assert_eq!(read_bytes(&FORMAT, text).unwrap().requests, [Request { volume: 419, ..expected }]);
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("x,R,0,512,1", "test:2: device_id 'x'"),
            ("1,T,0,512,1", "test:2: opcode 'T'; allowed: R or W"),
            ("1,R,0,0,1", "test:2: a request of 0 bytes"),
            ("1,R,0,512,-1", "test:2: timestamp '-1'"),
            ("1,R,0,512", "test:2: no timestamp"),
            ("1,R,0,512,1,1", "test:2: a further column '1'"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("1,R,0,512,1\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised() {
        let requests = sample(200, 1_000);
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
