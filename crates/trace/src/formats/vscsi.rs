//! VSCSI: the binary traces of VMware's `vscsiStats`, versions 1 and 2, little-endian.
//!
//! ```text
//! version 1, 32 bytes: u32 serial, u32 bytes, u32 segments, u16 command, u16 version 0x0100, u64 sector, u64 time (us)
//! version 2, 40 bytes: u16 command, u16 version 0x0200, u32 serial, u32 bytes, u32 segments, u64 sector, u64 time (us),
//!                      u64 response
//! ```
//!
//! SCSI read and write commands of 6, 10, 12 and 16 bytes are requests, as is SYNCHRONIZE CACHE, a flush; other commands are counted
//! and left out, UNMAP too: what it unmaps is in its data, which are not recorded. Byte
//! counts that are no multiple of 512 cover whole sectors. The response of version 2 is not used: its unit is nowhere
//! stated. The writer writes version 1: times are cut to microseconds; process, volume and response are not kept, so
//! requests of another volume than the first one's are an error.

use super::tokens::quote;
use super::{Certainty, Format, ReadOptions, Reader, Writer};
use crate::error::{Position, TraceError};
use crate::input::Input;
use planewise_model::{Direction, Lsn, Ns, Request, SECTOR_BYTES};
use std::io::Write;
use std::path::{Path, PathBuf};

/// VSCSI binary.
pub static FORMAT: Format = Format {
    name: "vscsi",
    description: "VSCSI binary (CloudPhysics): 32-byte records of version 1, 40-byte records of version 2",
    time_unit_open: false,
    completions: false,
    commands: false,
    durability: false,
    detect,
    open,
    create: Some(create),
};

/// Record layouts, named by the high byte of the version field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// The version field's place in a record.
    const fn field_at(self) -> usize {
        match self {
            Version::One => 14,
            Version::Two => 2,
        }
    }

    /// The SCSI operation code's place in a record.
    const fn command_at(self) -> usize {
        self.field_at() - 2
    }

    const fn field(self) -> u16 {
        match self {
            Version::One => 0x0100,
            Version::Two => 0x0200,
        }
    }

    fn fits(self, record: &[u8]) -> bool {
        u16_at(record, self.field_at()) == self.field()
    }
}

/// What a SCSI operation code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Data(Direction),
    Flush,
    Other,
}

fn command(code: u16) -> Option<Command> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Command::Data(Direction::Read)),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Command::Data(Direction::Write)),
        // SYNCHRONIZE CACHE.
        0x35 | 0x91 => Some(Command::Flush),
        0..=0xff => Some(Command::Other),
        _ => None,
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}

fn detect(head: &[u8], whole: bool) -> Certainty {
    for version in [Version::One, Version::Two] {
        let records = head.chunks_exact(version.record_bytes());
        let cut = whole && !records.remainder().is_empty();
        let count = records.len();
        let is_data =
            |record: &[u8]| matches!(command(u16_at(record, version.command_at())), Some(Command::Data(_)));
        if records.clone().all(|record| version.fits(record)) && records.clone().any(is_data) {
            // One record's version field could be chance; several cannot.
            return if count >= 4 && !cut { Certainty::Certain } else { Certainty::Possible };
        }
    }
    Certainty::No
}

/// A record of either version, or what is wrong with it.
fn parse(version: Version, record: &[u8]) -> Result<Option<Request>, (String, &'static str)> {
    if !version.fits(record) {
        let found = u16_at(record, version.field_at());
        let allowed = match version {
            Version::One => "version 0x0100 in every record, as in the first",
            Version::Two => "version 0x0200 in every record, as in the first",
        };
        return Err((format!("version 0x{found:04x}"), allowed));
    }
    let (code, bytes, sector, time) = match version {
        Version::One => (u16_at(record, 12), u32_at(record, 4), u64_at(record, 16), u64_at(record, 24)),
        Version::Two => (u16_at(record, 0), u32_at(record, 8), u64_at(record, 16), u64_at(record, 24)),
    };
    let Some(command) = command(code) else {
        return Err((format!("SCSI command 0x{code:04x}"), "an operation code of one byte"));
    };
    let Some(nanoseconds) = time.checked_mul(1_000) else {
        return Err((format!("time {time} us"), "at most 18,446,744,073,709,551 us"));
    };
    let direction = match command {
        Command::Data(direction) => direction,
        Command::Flush => return Ok(Some(Request::flush(Ns(nanoseconds)))),
        Command::Other => return Ok(None),
    };
    if bytes == 0 {
        return Err(("a read or write of 0 bytes".to_owned(), "at least 1 byte"));
    }
    let sectors = bytes.div_ceil(SECTOR_BYTES as u32);
    if sector.checked_add(u64::from(sectors)).is_none() {
        return Err((format!("sector {sector}"), "sector + length below 2^64"));
    }
    Ok(Some(Request::new(Ns(nanoseconds), Lsn(sector), sectors, direction)))
}

/// The version that the first record says it has.
fn version_of(path: &Path, first: &[u8]) -> Result<Version, TraceError> {
    if first.is_empty() {
        return Err(TraceError::malformed(path, Position::File, "an empty file", "at least one record"));
    }
    if first.len() < 16 {
        return Err(TraceError::malformed(
            path,
            Position::File,
            format!("{} bytes", first.len()),
            "records of 32 or 40 bytes",
        ));
    }
    [Version::One, Version::Two].into_iter().find(|version| version.fits(first)).ok_or_else(|| {
        let found = format!(
            "version 0x{:04x} at byte 14 (0x{:04x} at byte 2) in '{}'",
            u16_at(first, 14),
            u16_at(first, 2),
            quote(&first[..16])
        );
        TraceError::malformed(path, Position::Byte(0), found, "0x0100 at byte 14 or 0x0200 at byte 2")
    })
}

fn open(mut input: Input, _: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let path = input.path().to_owned();
    let first = input.peek(16)?;
    let version = version_of(&path, first)?;
    Ok(Box::new(Vscsi { input, path, version, position: Position::File, others: 0 }))
}

struct Vscsi {
    input: Input,
    path: PathBuf,
    version: Version,
    position: Position,
    others: u64,
}

impl Reader for Vscsi {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut record = [0u8; Version::Two.record_bytes()];
        let record = &mut record[..self.version.record_bytes()];
        let mut count = 0;
        while count < limit {
            let position = Position::Byte(self.input.byte_position());
            if !self.input.read_record(record)? {
                break;
            }
            match parse(self.version, record) {
                Ok(Some(request)) => {
                    self.position = position;
                    batch.push(request);
                    count += 1;
                }
                Ok(None) => self.others += 1,
                Err((found, allowed)) => {
                    return Err(TraceError::malformed(&self.path, position, found, allowed));
                }
            }
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        self.position
    }

    fn warnings(&self) -> Vec<String> {
        match self.others {
            0 => Vec::new(),
            count => vec![format!("{count} SCSI commands other than reads, writes and flushes skipped")],
        }
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    Ok(Box::new(VscsiWriter { sink, path: path.to_owned(), written: 0, volume: None }))
}

struct VscsiWriter {
    sink: Box<dyn Write + Send>,
    path: PathBuf,
    written: u64,
    volume: Option<u32>,
}

impl VscsiWriter {
    fn refuse(&self, found: String, allowed: &str) -> TraceError {
        TraceError::malformed(&self.path, Position::Byte(self.written * 32), found, allowed)
    }
}

impl Writer for VscsiWriter {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        if *self.volume.get_or_insert(request.volume) != request.volume {
            return Err(self.refuse(
                format!("a request of volume {}", request.volume),
                "one volume: VSCSI has no column for it; choose one with --volume",
            ));
        }
        let Some(bytes) = request.sectors.checked_mul(SECTOR_BYTES as u32).filter(|bytes| *bytes > 0) else {
            return Err(
                self.refuse(format!("a request of {} sectors", request.sectors), "1 to 8,388,607 sectors")
            );
        };
        let code: u16 = match request.direction {
            Direction::Read => 0x28,
            Direction::Write => 0x2a,
        };
        let mut record = [0u8; 32];
        record[..4].copy_from_slice(&(self.written as u32).to_le_bytes());
        record[4..8].copy_from_slice(&bytes.to_le_bytes());
        record[8..12].copy_from_slice(&1u32.to_le_bytes());
        record[12..14].copy_from_slice(&code.to_le_bytes());
        record[14..16].copy_from_slice(&Version::One.field().to_le_bytes());
        record[16..24].copy_from_slice(&request.start.0.to_le_bytes());
        record[24..].copy_from_slice(&(request.arrival.0 / 1_000).to_le_bytes());
        self.sink.write_all(&record).map_err(|source| TraceError::io(&self.path, source))?;
        self.written += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), TraceError> {
        self.sink.flush().map_err(|source| TraceError::io(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use proptest::prelude::*;

    fn version_2(code: u16, bytes: u32, sector: u64, time: u64) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend_from_slice(&code.to_le_bytes());
        record.extend_from_slice(&0x0200u16.to_le_bytes());
        [1, bytes, 1].iter().for_each(|word: &u32| record.extend_from_slice(&word.to_le_bytes()));
        [sector, time, 9].iter().for_each(|word: &u64| record.extend_from_slice(&word.to_le_bytes()));
        record
    }

    fn sample() -> Vec<Request> {
        (0..5u64)
            .map(|n| {
                let direction = Direction::ALL[n as usize % 2];
                Request::new(Ns::from_micros(n * 7), Lsn(n * 1_000_000_007), n as u32 + 1, direction)
            })
            .collect()
    }

    #[test]
    fn version_2_has_its_own_layout() {
        let mut bytes = version_2(0x88, 513, 4096, 3);
        bytes.extend(version_2(0x35, 0, 0, 4));
        bytes.extend(version_2(0x42, 24, 0, 4));
        bytes.extend(version_2(0x0a, 512, 1, 5));
        let trace = read_bytes(&FORMAT, &bytes).unwrap();
        let expected = [
            Request::new(Ns(3_000), Lsn(4096), 2, Direction::Read),
            Request::flush(Ns(4_000)),
            Request::new(Ns(5_000), Lsn(1), 1, Direction::Write),
        ];
        assert_eq!(trace.requests, expected);
        assert_eq!(trace.warnings, ["1 SCSI commands other than reads, writes and flushes skipped"]);
    }

    #[test]
    fn an_unknown_version_is_named() {
        let mut bytes = write_all(&FORMAT, &sample()).unwrap();
        bytes[15] = 7;
        let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
        assert!(error.contains("version 0x0700 at byte 14"), "{error}");
    }

    #[test]
    fn a_record_that_is_wrong_is_named_by_its_byte() {
        let good = write_all(&FORMAT, &sample()).unwrap();
        for (place, value, complaint) in [
            (32 + 15, 3, "test: byte 32: version 0x0300"),
            (32 + 13, 1, "test: byte 32: SCSI command 0x012a"),
            (32 + 31, 0xff, "test: byte 32: time"),
        ] {
            let mut bytes = good.clone();
            bytes[place] = value;
            let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
        assert!(read_bytes(&FORMAT, &good[..good.len() - 1]).unwrap_err().to_string().contains("byte 128"));
        assert!(read_bytes(&FORMAT, b"").is_err());
    }

    #[test]
    fn only_whole_records_of_one_version_are_certain() {
        let bytes = write_all(&FORMAT, &sample()).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        assert_eq!((FORMAT.detect)(&bytes[..bytes.len() - 1], false), Certainty::Certain);
        assert_eq!((FORMAT.detect)(&bytes[..bytes.len() - 1], true), Certainty::Possible);
        assert_eq!((FORMAT.detect)(&bytes[..32], true), Certainty::Possible);
        assert_eq!((FORMAT.detect)(&[0; 320], true), Certainty::No);
    }

    #[test]
    fn a_second_volume_is_refused() {
        let mut requests = sample();
        requests[3].volume = 1;
        let error = write_all(&FORMAT, &requests).unwrap_err().to_string();
        assert!(error.contains("volume 1"), "{error}");
    }

    #[test]
    fn mutilated_traces_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample()).unwrap());
        mutilate(&FORMAT, &version_2(0x28, 512, 1, 5).repeat(5));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (FORMAT.detect)(&bytes, true);
            let _ = read_bytes(&FORMAT, &bytes);
        }

        #[test]
        fn what_is_written_is_read_back(
            rows in proptest::collection::vec((0..1u64 << 50, 0..1u64 << 60, 1..8_388_608u32, any::<bool>()), 1..40)
        ) {
            let requests: Vec<Request> = rows
                .into_iter()
                .map(|(us, start, sectors, write)| {
                    Request::new(Ns::from_micros(us), Lsn(start), sectors, Direction::ALL[usize::from(write)])
                })
                .collect();
            let bytes = write_all(&FORMAT, &requests).unwrap();
            prop_assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, requests);
        }
    }

    #[test]
    fn the_shared_trace_has_the_known_counts_and_survives_a_round_trip() {
        let Some(trace) = read_shared(&FORMAT, "cloudphysics/cloudPhysicsIO.vscsi.zst", None) else { return };
        assert_eq!(trace.requests.len(), 113_872);
        assert!((trace.write_percent() - 58.7).abs() < 0.05, "{}", trace.write_percent());
        assert!((trace.mean_kib(Direction::Read) - 37.4).abs() < 0.05, "{}", trace.mean_kib(Direction::Read));
        assert!(
            (trace.mean_kib(Direction::Write) - 35.2).abs() < 0.05,
            "{}",
            trace.mean_kib(Direction::Write)
        );
        assert!((trace.span_seconds() - 7_200.0).abs() < 1.0, "{}", trace.span_seconds());
        let bytes = write_all(&FORMAT, &trace.requests).unwrap();
        assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, trace.requests);
    }
}
