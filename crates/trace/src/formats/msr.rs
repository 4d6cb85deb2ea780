//! MSR Cambridge: the CSV of Narayanan et al., "Write Off-Loading" (FAST'08), as SNIA IOTTA keeps it.
//!
//! ```text
//! Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
//! 128166372003061629,hm,0,Read,9561407488,32768,9543
//! ```
//!
//! Stamps are Windows file times, steps of 100 ns since 1601; the response time counts the same steps, and 0 is read as
//! unknown. Offset and size are bytes; a range covers whole sectors. The header is optional. Volumes are named
//! `host_disk`, as the published files are: `hm_0`.
//!
//! The writer sets the start of the trace to a fixed day in 2022 and the host to `planewise`; times are cut to 100 ns,
//! an unknown response is written as 0, the process is not kept.

use super::lines::{self, Layout, PutError};
use super::{Certainty, Format, ReadOptions, Writer};
use crate::error::TraceError;
use crate::text::{COMMA, Clock, Columns, Wrong, read_or_write, sectors_of_bytes, wrong};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// MSR Cambridge CSV.
pub static FORMAT: Format = Format {
    name: "msr",
    description: "MSR Cambridge CSV: Timestamp (100 ns),Hostname,DiskNumber,Type,Offset,Size (bytes),ResponseTime",
    time_unit_open: false,
    completions: true,
    commands: false,
    durability: false,
    detect: lines::detect::<Msr>,
    open: lines::open::<Msr>,
    create: Some(create),
};

/// One step of a Windows file time.
const STEP_NS: u64 = 100;
/// The file time at which written traces start: 2022-06-18.
const EPOCH_STEPS: u64 = 133_000_000_000_000_000;
/// A file with more volumes than any machine room has disks is no trace, and would fill the memory with names.
const VOLUMES_MAX: usize = 1 << 16;

struct Msr {
    timestamps: Clock,
    names: Vec<String>,
    /// `host,disk` as it stands in the file → volume. Looked up only, never iterated.
    volumes: HashMap<Vec<u8>, u32>,
    /// The volume of the line before, which is most often the next one's too.
    last: (Vec<u8>, u32),
}

impl Msr {
    #[inline]
    fn volume(&mut self, host: &[u8], disk: u32, host_and_disk: &[u8]) -> Result<u32, Wrong> {
        if self.last.0 == host_and_disk {
            Ok(self.last.1)
        } else {
            self.other_volume(host, disk, host_and_disk)
        }
    }

    #[cold]
    fn other_volume(&mut self, host: &[u8], disk: u32, host_and_disk: &[u8]) -> Result<u32, Wrong> {
        let volume = match self.volumes.get(host_and_disk) {
            Some(volume) => *volume,
            None if self.names.len() == VOLUMES_MAX => {
                return Err(wrong("one more volume", host_and_disk, "at most 65,536 volumes in a file"));
            }
            None => {
                let volume = self.names.len() as u32;
                self.names.push(format!("{}_{disk}", String::from_utf8_lossy(host.trim_ascii())));
                self.volumes.insert(host_and_disk.to_vec(), volume);
                volume
            }
        };
        self.last = (host_and_disk.to_vec(), volume);
        Ok(volume)
    }
}

impl Layout for Msr {
    const HEADER: &'static [&'static str] =
        &["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];

    fn new(options: &ReadOptions) -> Msr {
        Msr {
            timestamps: Clock::whole(STEP_NS).or_unit(options.time_unit),
            names: Vec::new(),
            volumes: HashMap::new(),
            // No line has an empty host and disk.
            last: (Vec::new(), 0),
        }
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Wrong> {
        let mut columns = Columns::<COMMA>::new(line);
        let time = columns.time("Timestamp", self.timestamps)?;
        let from = columns.unread();
        let host = columns.text("Hostname")?;
        let disk = columns.number32("DiskNumber")?;
        let host_and_disk = &from[..from.len() - columns.unread().len()];
        let direction = columns.direction("Type", read_or_write, "Read or Write")?;
        let offset = columns.number("Offset")?;
        let size = columns.number("Size")?;
        let response = columns.time("ResponseTime", self.timestamps)?;
        columns.end("7 columns")?;
        let (start, sectors) = sectors_of_bytes(offset, size)?;
        let volume = self.volume(host, disk, host_and_disk)?;
        let response = (response > 0).then_some(Ns(response));
        Ok(Some(Request { volume, response, ..Request::new(Ns(time), Lsn(start), sectors, direction) }))
    }

    fn certainty(_: &[u8]) -> Certainty {
        // No other format has Read or Write as the fourth of seven columns.
        Certainty::Certain
    }

    fn volume_names(&self) -> &[String] {
        &self.names
    }
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    lines::create(sink, path, format_args!(""), put)
}

fn put(sink: &mut dyn Write, request: &Request) -> Result<(), PutError> {
    let word = match request.direction {
        Direction::Read => "Read",
        Direction::Write => "Write",
    };
    // Below 2^64: the epoch and all of 64 bits of nanoseconds are 3.2e17 steps.
    let stamp = EPOCH_STEPS + request.arrival.0 / STEP_NS;
    if stamp.checked_mul(STEP_NS).is_none() {
        let arrival = request.arrival.to_string();
        return Err(
            wrong("arrival", arrival.as_bytes(), "at most 163 years: file times end with 64 bits").into()
        );
    }
    let (offset, bytes) = lines::byte_range(request)?;
    let response = request.response.map_or(0, |response| response.0 / STEP_NS);
    writeln!(sink, "{stamp},planewise,{},{word},{offset},{bytes},{response}", request.volume)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const LINE: &str = "128166372003061629,hm,0,Read,9561407488,32768,9543";

    #[test]
    fn a_line_of_the_published_form_is_read_to_the_last_digit() {
        let trace = read_bytes(&FORMAT, LINE.as_bytes()).unwrap();
        let expected = Request {
            response: Some(Ns(954_300)),
            ..Request::new(Ns(12_816_637_200_306_162_900), Lsn(9_561_407_488 / 512), 64, Direction::Read)
        };
        assert_eq!(
            (trace.requests.as_slice(), trace.volumes.as_slice()),
            (&[expected][..], &["hm_0".to_owned()][..])
        );
    }

    #[test]
    fn the_header_is_optional_blank_lines_are_skipped_and_volumes_are_numbered_as_they_appear() {
        let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n\
                    10,usr,1,Write,0,512,0\r\n\r\n11,hm,0,read,512,1024,3\r\n12,usr,1,Write,100,512,1\r\n\r\n";
        let trace = read_bytes(&FORMAT, text.as_bytes()).unwrap();
        assert_eq!(trace.volumes, ["usr_1", "hm_0"]);
        assert_eq!(trace.requests.iter().map(|r| r.volume).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(trace.requests.iter().map(|r| r.sectors).collect::<Vec<_>>(), [1, 2, 2]);
        assert_eq!(trace.requests[0].response, None, "0 is no response time");
    }

    #[test]
    fn wrong_lines_are_named_with_their_number_and_column() {
        for (line, expected) in [
            ("x,hm,0,Read,0,512,1", "test:2: Timestamp 'x'; allowed: a whole number"),
            ("-5,hm,0,Read,0,512,1", "test:2: Timestamp '-5'"),
            ("1.5,hm,0,Read,0,512,1", "(another unit: --time-unit)"),
            ("1,hm,zero,Read,0,512,1", "test:2: DiskNumber 'zero'"),
            ("1,hm,0,Erase,0,512,1", "test:2: Type 'Erase'; allowed: Read or Write"),
            ("1,hm,0,Read,0,0,1", "test:2: a request of 0 bytes at byte 0"),
            (
                "1,hm,0,Read,18446744073709551615,2,1",
                "test:2: a request of 2 bytes at byte 18446744073709551615",
            ),
            ("1,hm,0,Read,18446744073709551616,2,1", "test:2: Offset '18446744073709551616'"),
            ("1,hm,0,Read,0,512,", "test:2: ResponseTime ''"),
            ("1,hm,0,Read,0", "test:2: no Size: the line ends before it"),
            ("1,hm,0,Read,0,512,1,9", "test:2: a further column '9'; allowed: 7 columns"),
            ("0 0 303567 7 0", "test:2: Timestamp '0 0 303567 7 0'"),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", "test:2: Timestamp 'Timestamp'"),
        ] {
            let error = read_bytes(&FORMAT, format!("{LINE}\n{line}\n").as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_header_of_other_columns_is_answered_with_the_right_ones() {
        let error = read_bytes(&FORMAT, b"Time,Host,Disk\n1,hm,0\n").unwrap_err().to_string();
        assert!(
            error.contains("the header 'Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime'"),
            "{error}"
        );
    }

    #[test]
    fn shared_traces_have_the_known_counts() {
        let shared = [
            ("msr/prxy_0.first20k.csv.zst", Expected::new(20_000, 98.3, 17.7, 2.3, 939.0), "prxy_0"),
            ("msr/hm_0.excerpt1k.csv.zst", Expected::new(1_000, 49.2, 11.7, 7.1, 127.0), "hm_0"),
            (
                "derived/pgbench_tpcb.msrfmt.csv.zst",
                Expected::new(156_403, 54.9, 8.9, 14.7, 30.3),
                "pgbench_0",
            ),
        ];
        for (name, expected, volume) in shared {
            if let Some(trace) = read_shared(&FORMAT, name, None) {
                expected.check(&trace, name);
                assert_eq!(trace.volumes, [volume]);
            }
        }
        if let Some(trace) = read_shared(&FORMAT, "msr/prxy_0.first20k.csv.zst", None) {
            let sum: u64 = trace.requests.iter().map(|r| r.response.unwrap().0).sum();
            let mean_ms = sum as f64 / 1e6 / trace.requests.len() as f64;
            assert!((mean_ms - 0.241).abs() < 0.0005, "{mean_ms}");
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_recognised() {
        let requests = sample(200, 100);
        let bytes = write_all(&FORMAT, &requests).unwrap();
        assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
        let trace = read_bytes(&FORMAT, &bytes).unwrap();
        let names =
            trace.volumes.iter().map(|name| name.strip_prefix("planewise_").unwrap().parse::<u32>().unwrap());
        let names: Vec<u32> = names.collect();
        for (read, written) in trace.requests.iter().zip(&requests) {
            let back = Request {
                arrival: Ns(read.arrival.0 - EPOCH_STEPS * STEP_NS),
                volume: names[read.volume as usize],
                ..*read
            };
            assert_eq!(back, Request { process: 0, ..*written });
        }
    }

    #[test]
    fn mutilated_files_never_panic() {
        mutilate(&FORMAT, &write_all(&FORMAT, &sample(6, 1)).unwrap());
    }
}
