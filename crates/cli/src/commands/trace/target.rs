//! A trace file being written: its format, its compression, whole or not at all.

use crate::failure::{Failure, Kind};
use crate::output::WholeFile;
use crate::packed::Packed;
use planewise_model::{Durability, Ns, Request, names};
use planewise_trace::error::TraceError;
use planewise_trace::formats::{FORMATS, Format, Writer, by_name};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A trace file being written.
pub struct Target {
    path: PathBuf,
    whole: WholeFile,
    sink: Sink,
    writer: Box<dyn Writer>,
    written: u64,
    /// What the format can tell apart in time.
    resolution: Ns,
    /// Requests whose times the format cannot say exactly.
    rounded: u64,
    format: &'static Format,
    /// Flushes and discards that it cannot say, and writes of which it cannot say that they are kept.
    left_out: u64,
    weakened: u64,
}

impl Target {
    /// Claims the place and begins the file.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub fn create(path: &Path, format: &'static Format, replace: bool) -> Result<Target, Failure> {
        let create = format.create.ok_or_else(|| not_writable(format.name))?;
        let (whole, file) = WholeFile::create(path, replace)?;
        let packed = Packed::new(path, file).map_err(|error| unwritten(path, &error))?;
        let sink = Sink(Arc::new(Mutex::new(Some(packed))));
        let writer = create(Box::new(sink.clone()), path).map_err(output_error)?;
        let resolution = resolution(format);
        Ok(Target {
            path: path.to_owned(),
            whole,
            sink,
            writer,
            written: 0,
            resolution,
            rounded: 0,
            format,
            left_out: 0,
            weakened: 0,
        })
    }

    /// Writes requests.
    ///
    /// # Errors
    /// The format cannot say one of them, or the disk is full.
    pub fn write(&mut self, requests: &[Request]) -> Result<(), Failure> {
        for request in requests {
            if !request.is_transfer() && !self.format.commands {
                self.left_out += 1;
                continue;
            }
            self.written += 1;
            self.rounded += u64::from(!request.arrival.0.is_multiple_of(self.resolution.0));
            let is_weakened = !self.format.durability && request.durability != Durability::Volatile;
            self.weakened += u64::from(is_weakened);
            self.writer.write(request).map_err(output_error)?;
        }
        Ok(())
    }

    /// Requests written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What the user should know about what was written: that the format rounds times, or has no place for something.
    pub fn note(&self) -> Option<String> {
        let format = self.format.name;
        let rounded = (self.rounded > 0).then(|| {
            format!(
                "the format tells times to {} only: {} requests are rounded to it",
                self.resolution, self.rounded
            )
        });
        let left_out = (self.left_out > 0)
            .then(|| format!("{format} has no flushes and discards: {} of them are left out", self.left_out));
        let weakened = (self.weakened > 0).then(|| {
            format!(
                "{format} has no forced writes: {} that were, or that a flush goes before, are plain writes",
                self.weakened
            )
        });
        let notes: Vec<String> = [rounded, left_out, weakened].into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// Ends the file and gives it its name; returns how many requests it holds.
    ///
    /// # Errors
    /// The disk is full.
    pub fn finish(self) -> Result<u64, Failure> {
        self.writer.finish().map_err(output_error)?;
        self.sink.finish().map_err(|error| unwritten(&self.path, &error))?;
        self.whole.settle()?;
        Ok(self.written)
    }
}

/// The format to write: as asked for; by the file's extension, where that is certain; else the input's, where one is given.
///
/// # Errors
/// Nothing decides, or the format is not written.
pub fn format(path: &Path, asked: Option<&str>, input: Option<&str>) -> Result<&'static Format, Failure> {
    let format = match (asked, by_extension(path), input) {
        (Some(name), ..) => by_name(name)?,
        (None, Some(name), _) | (None, None, Some(name)) => match by_name(name) {
            Ok(format) => format,
            Err(_) => return Err(undecided(path)),
        },
        (None, None, None) => return Err(undecided(path)),
    };
    if format.create.is_none() {
        return Err(not_writable(format.name));
    }
    Ok(format)
}

/// The step in which a format writes times. What is not listed writes nanoseconds.
fn resolution(format: &Format) -> Ns {
    match format.name {
        "tencent" => Ns(1_000_000_000),
        "cloudphysics" | "alibaba" | "vscsi" | "iolog" => Ns(1_000),
        "msr" => Ns(100),
        _ => Ns(1),
    }
}

/// Extensions that mean one format: its name, as in `hm_0.msr.zst`. `.csv` means five.
fn by_extension(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    let (_, extension) = name.rsplit_once('.')?;
    FORMATS.iter().map(|format| format.name).find(|format| *format == extension)
}

fn undecided(path: &Path) -> Failure {
    Failure::usage(format!(
        "{}: the name does not decide the format; give it: --to NAME, one of {}",
        path.display(),
        writable().join(", ")
    ))
}

fn not_writable(name: &str) -> Failure {
    Failure::usage(format!(
        "to: format '{name}' is read but not written{}; allowed: --to {}",
        names::nearest(name, writable().iter().copied())
            .map(|near| format!(" (did you mean '{near}'?)"))
            .unwrap_or_default(),
        writable().join(", ")
    ))
}

fn writable() -> Vec<&'static str> {
    FORMATS.iter().filter(|format| format.create.is_some()).map(|format| format.name).collect()
}

/// A failure of writing is one of output, except when the format cannot hold a request.
fn output_error(error: TraceError) -> Failure {
    match error {
        TraceError::Io { .. } => Failure::new(Kind::Output, error),
        other => Failure::from(other),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::output(format!("{}: cannot write: {error}", path.display()))
}

/// The sink that a format writes to. It is shared, because what compresses must be ended after the format is: an error in
/// the last block is an error of the file.
#[derive(Clone)]
struct Sink(Arc<Mutex<Option<Packed>>>);

impl Sink {
    fn finish(&self) -> io::Result<()> {
        self.lock().take().map_or(Ok(()), Packed::finish)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Packed>> {
        self.0.lock().expect("no thread panics while it holds the sink")
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.lock() {
            Some(packed) => packed.write(bytes),
            None => Err(io::Error::other("the file is ended")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().as_mut().map_or(Ok(()), Packed::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Direction, Lsn};

    #[test]
    fn every_format_writes_times_in_the_step_that_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for format in FORMATS.iter().filter(|format| format.create.is_some()) {
            let path = folder.path().join(format.name);
            let mut target = Target::create(&path, format, false).unwrap();
            let at = |arrival| Request::new(Ns(arrival), Lsn(0), 8, Direction::Write);
            target.write(&[at(0), at(3_123_456_789)]).unwrap();
            assert_eq!(target.note().is_some(), resolution(format) > Ns(1), "{}", format.name);
            target.finish().unwrap();
            let options = planewise_trace::pipeline::TraceOptions {
                format: Some(format.name.to_owned()),
                read: planewise_trace::formats::ReadOptions {
                    time_unit: format
                        .time_unit_open
                        .then_some(planewise_trace::formats::TimeUnit::Nanoseconds),
                    event: None,
                },
                ..Default::default()
            };
            let mut requests = Vec::new();
            planewise_trace::pipeline::Trace::open(&path, &options)
                .unwrap()
                .next_batch(&mut requests, 9)
                .unwrap();
            let step = resolution(format).0;
            let off = requests[1].arrival.0.abs_diff(3_123_456_789);
            assert!(off < step && requests[1].arrival.0.is_multiple_of(step), "{}: {off}", format.name);
        }
    }

    #[test]
    fn what_a_format_has_no_place_for_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let forced = Request {
            durability: Durability::ForceUnitAccess,
            ..Request::new(Ns(0), Lsn(0), 8, Direction::Write)
        };
        let requests = [Request::flush(Ns(0)), Request::discard(Ns(0), Lsn(0), 8), forced];
        for format in FORMATS.iter().filter(|format| format.create.is_some()) {
            let mut target = Target::create(&folder.path().join(format.name), format, false).unwrap();
            target.write(&requests).unwrap();
            let (note, written) = (target.note().unwrap_or_default(), target.finish().unwrap());
            let says =
                [note.contains("no flushes and discards: 2 of"), note.contains("no forced writes: 1 ")];
            let expected = match format.name {
                "parquet" => ([false, false], 3),
                "iolog" => ([false, true], 3),
                _ => ([true, true], 1),
            };
            assert_eq!((says, written), expected, "{}: {note}", format.name);
        }
    }

    #[test]
    fn an_extension_decides_only_when_it_means_one_format() {
        assert_eq!(by_extension(Path::new("a/b.parquet")), Some("parquet"));
        assert_eq!(by_extension(Path::new("x.SPC.gz")), Some("spc"));
        assert_eq!(by_extension(Path::new("x.msr.zst")), Some("msr"));
        assert_eq!(by_extension(Path::new("x.csv")), None);
        assert_eq!(by_extension(Path::new("spc")), None);
        assert!(format(Path::new("x.csv"), None, None).is_err());
        assert_eq!(format(Path::new("x.csv"), None, Some("msr")).unwrap().name, "msr");
    }
}
