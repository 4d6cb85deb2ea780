//! SYSTOR'17: virtual desktop traces of Lee et al., "Understanding Storage Traffic Characteristics on Enterprise Virtual
//! Desktop Infrastructure".
//!
//! ```text
//! Timestamp,Response,IOType,LUN,Offset,Size
//! 1456095145.133076000,0.000806000,R,0,899056122368,131072
//! ```
//!
//! Timestamp and response are seconds with nine digits; the response is sometimes empty. Offset and size are bytes; a
//! range covers whole sectors. The LUN is the volume. Lines are not in the order of their stamps. The header is optional.
//!
//! The writer writes all nine digits; the process is not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, read_or_write, sectors_of_bytes};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::io::Write;
use std::path::Path;

/// SYSTOR'17 CSV.
pub static FORMAT: Format = Format {
    name: "systor",
    description: "SYSTOR'17 CSV: Timestamp (s),Response (s),IOType (R or W),LUN,Offset,Size (bytes)",
    time_unit_open: false,
    completions: true,
    commands: false,
    durability: false,
    detect: lines::detect::<Systor>,
    open: lines::open::<Systor>,
    create: Some(create),
};

struct Systor {
    clock: Clock,
}

impl Layout for Systor {
    const HEADER: &'static [&'static str] = &["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"];

    fn new(options: &ReadOptions) -> Systor {
        Systor { clock: Clock::decimal(1_000_000_000).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let time = columns.time("Timestamp", self.clock)?;
        let response = if columns.unread().first() == Some(&COMMA) {
            columns.text("Response")?;
            None
        } else {
            Some(Ns(columns.time("Response", self.clock)?))
        };
        let direction = columns.direction("IOType", read_or_write, "R or W")?;
        let volume = columns.number32("LUN")?;
        let offset = columns.number("Offset")?;
        let size = columns.number("Size")?;
        columns.end("6 columns")?;
        let (start, sectors) = sectors_of_bytes(offset, size)?;
        Ok(Some(Request { volume, response, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // No other format has a letter for its operation as the third of six columns.
        Certainty::Certain
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    let header = <Systor as Layout>::HEADER.join(",");
    lines::create(sink, path, format_args!("{header}\n"), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    let (offset, bytes) = lines::byte_range(request)?;
    let letter = match request.direction {
        Direction::Read => 'R',
        Direction::Write => 'W',
    };
    let split = |time: Ns| (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    let (seconds, fraction) = split(request.arrival);
    write!(sink, "{seconds}.{fraction:09},")?;
    if let Some((seconds, fraction)) = request.response.map(split) {
        write!(sink, "{seconds}.{fraction:09}")?;
    }
    writeln!(sink, ",{letter},{},{offset},{bytes}", request.volume)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn nine_digits_are_exact_and_the_response_may_be_empty() {
        let text = b"Timestamp,Response,IOType,LUN,Offset,Size\n\
                     1456095145.133076001,0.000806000,R,3,899056122368,131072\n1456095145.1,,Write,0,512,1\n";
        let trace = read_bytes(&FORMAT, text).unwrap();
        let first =
            Request::new(Ns(1_456_095_145_133_076_001), Lsn(899_056_122_368 / 512), 256, Direction::Read);
        assert_eq!(trace.requests[0], Request { volume: 3, response: Some(Ns(806_000)), ..first });
        assert_eq!(
            trace.requests[1],
            Request::new(Ns(1_456_095_145_100_000_000), Lsn(1), 1, Direction::Write)
        );
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("-1.0,,R,0,0,512", "test:2: Timestamp '-1.0'"),
            ("1.0,nan,R,0,0,512", "test:2: Response 'nan'"),
            ("1.0,,Trim,0,0,512", "test:2: IOType 'Trim'; allowed: R or W"),
            ("1.0,,R,0,0,0", "test:2: a request of 0 bytes"),
            ("1.0,,R,0,0", "test:2: no Size"),
            ("99999999999.0,,R,0,0,512", "below 2^64 ns"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("1.0,,R,0,0,512\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts_and_steps_back() {
        if let Some(trace) = read_shared(&FORMAT, "systor17/systor17-traces-sample.csv.zst", None) {
            Expected::new(999, 17.3, 43.0, 15.6, 2.4).check(&trace, "systor17");
            assert_eq!(
                trace.requests.windows(2).filter(|pair| pair[1].arrival < pair[0].arrival).count(),
                243
            );
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised() {
        let requests = sample(200, 1);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        let kept: Vec<_> = requests.iter().map(|r| Request { process: 0, ..*r }).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(4, 1)).unwrap());
    }
}
