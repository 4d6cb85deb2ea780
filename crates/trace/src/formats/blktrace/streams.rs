//! The per-CPU streams of a binary block trace, merged by time.

use super::record::{RECORD_BYTES, Record};
use super::tar;
use crate::error::{Position, TraceError};
use crate::formats::random_access::into_file;
use crate::input::Input;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Read at once from each stream: a 256-CPU machine's trace takes 16 MiB of buffers.
const BUFFER_BYTES: usize = 64 * 1024;

/// The streams of one trace.
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// The time of each stream's head, the earliest on top; equal times in the order of the streams.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    warnings: Vec<String>,
}

/// The next record of the merged trace.
pub(super) struct Next {
    pub record: Record,
    /// Which stream it comes from.
    pub stream: usize,
    /// Its byte offset there.
    pub at: u64,
}

struct Stream {
    path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    at: u64,
    head: Option<(Record, u64)>,
}

/// `device.blktrace.cpu`, perhaps compressed: the part before the number, and the number.
fn split_name(name: &str) -> Option<(&str, u32)> {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (base, cpu) = name.rsplit_once('.')?;
    let is_number = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    (base.ends_with(".blktrace") && is_number).then_some(())?;
    Some((base, cpu.parse().ok()?))
}

/// Whether a path in an archive names a per-CPU file.
pub(super) fn is_member_name(path: &str) -> bool {
    split_name(path).is_some()
}

/// A candidate per-CPU file: its path's part before the CPU's number, the number, the path.
struct Found<T> {
    base: String,
    cpu: u32,
    source: T,
    bytes: u64,
}

impl Streams {
    /// Opens all that belongs to an input.
    pub fn open(mut input: Input) -> Result<Streams, TraceError> {
        let path = input.path().to_owned();
        if path.is_dir() {
            return Streams::from_folder(&path, None);
        }
        if tar::Header::parse(input.peek(512)?).is_some() {
            return Streams::from_archive(input);
        }
        let name = path.file_name().and_then(|name| name.to_str()).and_then(split_name);
        if let (Some((base, _)), true) = (name, path.is_file()) {
            let folder =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Streams::from_folder(folder, Some(base));
        }
        let reader: Box<dyn Read + Send> = Box::new(input);
        Streams::new(vec![Stream::new(path, reader)], Vec::new())
    }

    /// The per-CPU files of a folder: all of them, or those of one device.
    fn from_folder(folder: &Path, device: Option<&str>) -> Result<Streams, TraceError> {
        let failed = |source| TraceError::io(folder, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some((base, cpu)) = name.to_str().and_then(split_name) else { continue };
            if device.is_none_or(|device| device == base) {
                let bytes = entry.metadata().map_err(failed)?.len();
                found.push(Found { base: base.to_owned(), cpu, source: entry.path(), bytes });
            }
        }
        let warnings = sort_and_check(folder, &mut found)?;
        let mut streams = Vec::new();
        for file in found {
            let reader: Box<dyn Read + Send> = Box::new(Input::open(&file.source)?);
            streams.push(Stream::new(file.source, reader));
        }
        Streams::new(streams, warnings)
    }

    /// The per-CPU files in a tar.
    fn from_archive(input: Input) -> Result<Streams, TraceError> {
        let path = input.path().to_owned();
        let file = Arc::new(into_file(input)?);
        let mut found = Vec::new();
        for member in tar::members(&file, &path)? {
            let Some((base, cpu)) = split_name(&member.name) else { continue };
            let (base, bytes) = (base.to_owned(), member.bytes);
            found.push(Found { base, cpu, source: member, bytes });
        }
        let warnings = sort_and_check(&path, &mut found)?;
        let streams = found
            .into_iter()
            .map(|Found { source: member, .. }| {
                let slice =
                    Slice { file: Arc::clone(&file), at: member.start, end: member.start + member.bytes };
                Stream::new(path.join(&member.name), Box::new(slice))
            })
            .collect();
        Streams::new(streams, warnings)
    }

    fn new(mut streams: Vec<Stream>, warnings: Vec<String>) -> Result<Streams, TraceError> {
        let mut heads = BinaryHeap::with_capacity(streams.len());
        for (number, stream) in streams.iter_mut().enumerate() {
            if let Some(time) = stream.advance()? {
                heads.push(Reverse((time, number)));
            }
        }
        Ok(Streams { streams, heads, warnings })
    }

    /// The earliest record that no earlier call returned; `None` at the end of all streams.
    ///
    /// # Errors
    /// A record that is none, or one cut short.
    pub fn next(&mut self) -> Result<Option<Next>, TraceError> {
        let Some(Reverse((_, number))) = self.heads.pop() else { return Ok(None) };
        let stream = &mut self.streams[number];
        let Some((record, at)) = stream.head.take() else { return Ok(None) };
        if let Some(time) = stream.advance()? {
            self.heads.push(Reverse((time, number)));
        }
        Ok(Some(Next { record, stream: number, at }))
    }

    /// The file of a stream.
    pub fn path(&self, stream: usize) -> &Path {
        &self.streams[stream].path
    }

    /// What is missing from the trace, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Brings the files into a fixed order, drops empty ones, and says which CPUs' events are missing.
fn sort_and_check<T>(path: &Path, found: &mut Vec<Found<T>>) -> Result<Vec<String>, TraceError> {
    found.sort_by(|a, b| (&a.base, a.cpu).cmp(&(&b.base, b.cpu)));
    let allowed = "per-CPU files named <device>.blktrace.<cpu>";
    if found.is_empty() {
        return Err(TraceError::malformed(path, Position::File, "no such file in it", allowed));
    }
    if let Some(pair) =
        found.windows(2).find(|pair| pair[0].base == pair[1].base && pair[0].cpu == pair[1].cpu)
    {
        let found = format!("CPU {} of {} twice", pair[0].cpu, pair[0].base);
        return Err(TraceError::malformed(path, Position::File, found, allowed));
    }
    let mut warnings = Vec::new();
    let mut expected = 0;
    let mut base = "";
    for file in found.iter() {
        if file.base != base {
            (base, expected) = (&file.base, 0);
        }
        if file.cpu > expected {
            let missing = if file.cpu - expected == 1 {
                format!("CPU {expected}")
            } else {
                format!("CPUs {expected} to {}", file.cpu - 1)
            };
            warnings.push(format!("{base}: no file for {missing}: events are missing"));
        }
        if file.bytes == 0 {
            warnings.push(format!("{base}: the file of CPU {} is empty: events are missing", file.cpu));
        }
        expected = file.cpu.saturating_add(1);
    }
    found.retain(|file| file.bytes > 0);
    Ok(warnings)
}

impl Stream {
    fn new(path: PathBuf, source: Box<dyn Read + Send>) -> Stream {
        Stream { path, reader: BufReader::with_capacity(BUFFER_BYTES, source), at: 0, head: None }
    }

    /// Reads the next record into `head` and returns its time; `None` at a clean end.
    fn advance(&mut self) -> Result<Option<u64>, TraceError> {
        let buffered = self.reader.fill_buf().map_err(|source| TraceError::io(&self.path, source))?;
        if buffered.is_empty() {
            return Ok(None);
        }
        let mut bytes = [0u8; RECORD_BYTES];
        self.fill(&mut bytes)?;
        let record = Record::parse(&bytes).map_err(|(found, allowed)| {
            TraceError::malformed(&self.path, Position::Byte(self.at), found, allowed)
        })?;
        let payload = u64::from(record.payload_bytes);
        if payload > 0 {
            let skipped = io::copy(&mut (&mut self.reader).take(payload), &mut io::sink())
                .map_err(|source| TraceError::io(&self.path, source))?;
            if skipped < payload {
                return Err(self.cut_short());
            }
        }
        self.head = Some((record, self.at));
        self.at += RECORD_BYTES as u64 + payload;
        Ok(Some(record.time))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), TraceError> {
        self.reader.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.cut_short(),
            _ => TraceError::io(&self.path, source),
        })
    }

    fn cut_short(&self) -> TraceError {
        let allowed = "whole records of 48 bytes and their payload";
        TraceError::malformed(&self.path, Position::Byte(self.at), "a record cut short", allowed)
    }
}

/// A range of a file, read without moving the file's own position, so that many can share it.
struct Slice {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Slice {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = (self.end - self.at).min(buffer.len() as u64) as usize;
        let count = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
