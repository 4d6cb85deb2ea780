//! CloudPhysics: VSCSI traces (Waldspurger et al., "SHARDS", FAST'15) as CSV; the binary form is [`super::vscsi`].
//!
//! ```text
//! version,time,op,size,lbn
//! 1,5633898368802,2a,512,42932745
//! ```
//!
//! Time is microseconds, `op` the SCSI operation code in hexadecimal, size bytes (whole sectors are covered), `lbn` the
//! first sector. Reads and writes of 6, 10, 12 and 16 bytes are requests; other commands are counted and left out. The
//! header is optional.
//!
//! The writer writes version 1 and cuts times to microseconds; process and response are not kept, and as there is no
//! column for it, requests of several volumes are refused.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, sector_range, wrong};
use planewise_model::{Direction, Lsn, Ns, Request, SECTOR_BYTES};
use std::io::Write;
use std::path::Path;

/// CloudPhysics CSV.
pub static FORMAT: Format = Format {
    name: "cloudphysics",
    description: "CloudPhysics CSV: version,time (us),op (SCSI, hexadecimal),size (bytes),lbn (sectors)",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<CloudPhysics>,
    open: lines::open::<CloudPhysics>,
    create: Some(create),
};

struct CloudPhysics {
    clock: Clock,
    others: u64,
}

/// What a SCSI operation code asks for: data moved, or something else.
fn command(code: &[u8]) -> Option<Option<Direction>> {
    match code {
        b"28" | b"8" | b"08" | b"88" | b"a8" | b"A8" => Some(Some(Direction::Read)),
        b"2a" | b"2A" | b"a" | b"0a" | b"A" | b"0A" | b"8a" | b"8A" | b"aa" | b"AA" => {
            Some(Some(Direction::Write))
        }
        [digit] if digit.is_ascii_hexdigit() => Some(None),
        [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => Some(None),
        _ => None,
    }
}

impl Layout for CloudPhysics {
    const HEADER: &'static [&'static str] = &["version", "time", "op", "size", "lbn"];

    fn new(options: &ReadOptions) -> CloudPhysics {
        CloudPhysics { clock: Clock::whole(1_000).or_unit(options.time_unit), others: 0 }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let version = columns.number("version")?;
        if !(1..=2).contains(&version) {
            return Err(wrong("version", version.to_string().as_bytes(), "1 or 2"));
        }
        let time = columns.time("time", self.clock)?;
        let code = columns.text("op")?.trim_ascii();
        let Some(command) = command(code.strip_prefix(b"0x").unwrap_or(code)) else {
            return Err(wrong(
                "op",
                code,
                "a SCSI operation code of two hexadecimal digits: 28 reads, 2a writes",
            ));
        };
        let size = columns.number("size")?;
        let start = columns.number("lbn")?;
        columns.end("5 columns")?;
        let Some(direction) = command else {
            self.others += 1;
            return Ok(None);
        };
        let (start, sectors) = sector_range(start, size.div_ceil(SECTOR_BYTES))?;
        Ok(Some(Request::new(Ns(time), Lsn(start), sectors, direction)))
    }

    fn certainty(line: &[u8]) -> Certainty {
        // An operation of digits alone may be a number in another format.
        let is_letter =
            line.split(|byte| *byte == COMMA).nth(2).is_some_and(|op| !op.iter().all(u8::is_ascii_digit));
        if is_letter { Certainty::Certain } else { Certainty::Possible }
    }

    fn warnings(&self) -> Vec<String> {
        match self.others {
            0 => Vec::new(),
            count => vec![format!("{count} SCSI commands other than reads and writes skipped")],
        }
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    let header = <CloudPhysics as Layout>::HEADER.join(",");
    lines::create_single(sink, path, format_args!("{header}\n"), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    let (_, bytes) = lines::byte_range(request)?;
    let code = match request.direction {
        Direction::Read => "28",
        Direction::Write => "2a",
    };
    writeln!(sink, "1,{},{code},{bytes},{}", request.arrival.0 / 1_000, request.start.0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn other_commands_are_counted_and_left_out() {
        let text = b"version,time,op,size,lbn\n1,5,2a,513,7\n1,6,35,0,0\n2,7,0x88,512,8\n";
        let trace = read_bytes(&FORMAT, text).unwrap();
        let expected = [
            Request::new(Ns(5_000), Lsn(7), 2, Direction::Write),
            Request::new(Ns(7_000), Lsn(8), 1, Direction::Read),
        ];
        assert_eq!(trace.requests, expected);
        assert_eq!(trace.warnings, ["1 SCSI commands other than reads and writes skipped"]);
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("3,5,2a,512,7", "test:2: version '3'; allowed: 1 or 2"),
            ("1,5,read,512,7", "test:2: op 'read'; allowed: a SCSI operation code"),
            ("1,5,2a,0,7", "test:2: a request of 0 sectors"),
            ("1,99999999999999999,2a,512,7", "test:2: time '99999999999999999'"),
            ("1,5,2a,512", "test:2: no lbn"),
        ] {
            let error =
                read_bytes(&FORMAT, format!("1,5,2a,512,7\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_is_the_same_as_csv_and_in_binary() {
        let csv = read_shared(&FORMAT, "cloudphysics/cloudPhysicsIO.csv.zst", None);
        let binary = read_shared(&super::super::vscsi::FORMAT, "cloudphysics/cloudPhysicsIO.vscsi.zst", None);
        if let (Some(csv), Some(binary)) = (csv, binary) {
            Expected::new(113_872, 58.7, 37.4, 35.2, 7_200.0).check(&csv, "cloudPhysicsIO.csv");
            assert!(csv.requests == binary.requests);
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised_and_a_second_volume_is_refused() {
        let mut requests = sample(200, 1_000);
        let error = write_all(&FORMAT, &requests).unwrap_err().to_string();
        assert!(error.contains("--volume"), "{error}");
        requests.iter_mut().for_each(|request| request.volume = 0);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        let kept: Vec<_> = requests.iter().map(|r| Request { process: 0, response: None, ..*r }).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, b"version,time,op,size,lbn\n1,5,2a,513,7\n1,6,35,0,0\n2,7,28,512,8\n");
    }
}
