//! Tencent: the cloud block storage traces of Zhang et al., "OSCA" (ATC'20), on SNIA IOTTA.
//!
//! ```text
//! 1538323200,4247200,128,1,1058          Timestamp,Offset,Size,IOType,VolumeID
//! ```
//!
//! The stamp is whole seconds since 1970, offset and size count 512-byte sectors, IOType 0 reads and 1 writes. Requests of
//! one second keep the order of the file. The header is optional (the published files have none).
//!
//! The writer sets the start of the trace to a fixed second in 2018 and **cuts times to seconds**, as the format has no
//! fractions: what lies between requests of one second is lost. Process and response are not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, sector_range, wrong};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::io::Write;
use std::path::Path;

/// Tencent CSV.
pub static FORMAT: Format = Format {
    name: "tencent",
    description: "Tencent CSV: Timestamp (s),Offset,Size (sectors),IOType (0 read, 1 write),VolumeID",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect: lines::detect::<Tencent>,
    open: lines::open::<Tencent>,
    create: Some(create),
};

const SECOND_NS: u64 = 1_000_000_000;
/// The second at which written traces start: 2018-09-30 16:00 UTC, when the published ones do.
const EPOCH_SECONDS: u64 = 1_538_323_200;

struct Tencent {
    clock: Clock,
}

impl Layout for Tencent {
    const HEADER: &'static [&'static str] = &["Timestamp", "Offset", "Size", "IOType", "VolumeID"];

    fn new(options: &ReadOptions) -> Tencent {
        Tencent { clock: Clock::whole(SECOND_NS).or_unit(options.time_unit) }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let time = columns.time("Timestamp", self.clock)?;
        let offset = columns.number("Offset")?;
        let size = columns.number("Size")?;
        let direction = columns.direction("IOType", one_writes, "0 (read) or 1 (write)")?;
        let volume = columns.number32("VolumeID")?;
        columns.end("5 columns")?;
        let (start, sectors) = sector_range(offset, size)?;
        Ok(Some(Request { volume, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(line: &[u8]) -> Certainty {
        // Five numbers could be CloudPhysics, whose first is 1 or 2: seconds since 1970 have ten digits from 2001 on.
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 10 { Certainty::Certain } else { Certainty::Possible }
    }
}

#[inline]
fn one_writes(digit: &[u8]) -> Option<Direction> {
    match digit {
        b"0" => Some(Direction::Read),
        b"1" => Some(Direction::Write),
        _ => None,
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    lines::byte_range(request)?;
    let stamp = EPOCH_SECONDS + request.arrival.0 / SECOND_NS;
    if stamp.checked_mul(SECOND_NS).is_none() {
        let arrival = request.arrival.to_string();
        return Err(wrong("arrival", arrival.as_bytes(), "at most 535 years after the start").into());
    }
    let kind = match request.direction {
        Direction::Read => 0,
        Direction::Write => 1,
    };
    writeln!(sink, "{stamp},{},{},{kind},{}", request.start.0, request.sectors, request.volume)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("1538323200.5,0,8,0,1", "test:2: Timestamp '1538323200.5'"),
            ("1538323200,0,0,0,1", "test:2: a request of 0 sectors"),
            ("1538323200,0,8,2,1", "test:2: IOType '2'; allowed: 0 (read) or 1 (write)"),
            ("1538323200,0,8,0", "test:2: no VolumeID"),
            ("1538323200,0,8,0,4294967296", "test:2: VolumeID '4294967296'"),
            ("99999999999,0,8,0,1", "test:2: Timestamp '99999999999'"),
        ] {
            let text = format!("1538323200,0,8,0,1\n{line}\n");
            let error = read_bytes(&FORMAT, text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts_and_steps_back() {
        if let Some(trace) = read_shared(&FORMAT, "tencent/tencent-cbs-2018-10-01.50k.csv.zst", None) {
            Expected::new(50_000, 51.0, 25.8, 33.4, 1.0).check(&trace, "tencent");
            assert_eq!(
                trace.requests.windows(2).filter(|pair| pair[1].arrival < pair[0].arrival).count(),
                144
            );
            let volumes: std::collections::BTreeSet<u32> = trace.requests.iter().map(|r| r.volume).collect();
            assert_eq!(volumes.len(), 2_038);
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised() {
        let requests = sample(200, SECOND_NS);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        let kept = |r: &Request| {
            let arrival = Ns(r.arrival.0 + EPOCH_SECONDS * SECOND_NS);
            Request { arrival, process: 0, response: None, ..*r }
        };
        let kept: Vec<_> = requests.iter().map(kept).collect();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, kept);
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(6, 1)).unwrap());
    }
}
