//! Files as byte streams: plain, gzip or zstd, told apart by their magic numbers, never by their names.
//!
//! An [`Input`] is read line by line, record by record, or through [`Read`], and always knows where it stands. It holds
//! one buffer, whatever the size of the file: a trace of a terabyte needs no more memory than one of a page.
//!
//! A folder can be an input too, because a binary block trace is a set of per-CPU files: it has no bytes of its own and
//! [`Input::is_folder`] says so. The format opens what it finds there.

use crate::error::{Position, TraceError};
use crate::words;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes asked of the source at a time: enough that the system's share of the cost vanishes.
const BUFFER_BYTES: usize = 256 * 1024;
/// Longest line a text trace may have. A longer one is binary data, which may go on without a newline for gigabytes.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes [`Input::peek`] can show.
pub const PEEK_BYTES_MAX: usize = BUFFER_BYTES;

/// A file, folder or block of bytes opened for reading; decompressed on the way.
pub struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    /// Unread bytes are `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The source has said that it has no more.
    ended: bool,
    lines: u64,
    /// Bytes of the (uncompressed) stream before `start`.
    consumed: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PlainFile,
    Folder,
    Stream,
}

/// How bytes are packed, told by their first six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
    /// Packed in a way that is not unpacked here.
    Refused(&'static str),
}

/// Enough bytes for every magic number below.
const MAGIC_BYTES: usize = 6;

fn packing(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        // Magic number 0xfd2fb528, little-endian; skippable frames may come first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Packing::Refused("an xz file"),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41] => Packing::Refused("a bzip2 file"),
        [b'P', b'K', 3, 4, ..] => Packing::Refused("a zip archive"),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c] => Packing::Refused("a 7z archive"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Packing::Refused("an lz4 file"),
        _ => Packing::Plain,
    }
}

/// Says of an error of unpacking that it is one: decoders speak of frames and streams that a user never saw.
struct Unpacked<R> {
    decoder: R,
    packing: &'static str,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| match error.raw_os_error() {
            // The disk's own errors speak for themselves.
            Some(_) => error,
            None => {
                let packing = self.packing;
                let found = format!("{packing} data that are cut short or damaged ({error})");
                io::Error::new(error.kind(), format!("{found}; allowed: a whole {packing} file"))
            }
        })
    }
}

impl Input {
    /// Opens a file, or a folder (which has no bytes).
    ///
    /// # Errors
    /// The path cannot be opened or read, or holds a kind of compression that is not read here.
    pub fn open(path: impl AsRef<Path>) -> Result<Input, TraceError> {
        let path = path.as_ref();
        let failed = |source| TraceError::io(path, source);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Ok(Input::over(path.to_owned(), Box::new(io::empty()), Kind::Folder));
        }
        let kind = if metadata.is_file() { Kind::PlainFile } else { Kind::Stream };
        Input::unpack(path.to_owned(), Box::new(file), kind)
    }

    /// Reads bytes in memory as they are, packed or not; `name` stands for the path in messages.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Input {
        Input::over(name.into(), Box::new(io::Cursor::new(bytes)), Kind::Stream)
    }

    /// Reads a stream such as standard input; `name` stands for the path in messages.
    ///
    /// # Errors
    /// The first bytes cannot be read, or begin as a kind of compression that is not read here.
    pub fn from_reader(name: impl Into<PathBuf>, source: Box<dyn Read + Send>) -> Result<Input, TraceError> {
        Input::unpack(name.into(), source, Kind::Stream)
    }

    fn unpack(path: PathBuf, mut source: Box<dyn Read + Send>, kind: Kind) -> Result<Input, TraceError> {
        let mut head = [0u8; MAGIC_BYTES];
        let length = read_up_to(&mut source, &mut head).map_err(|source| TraceError::io(&path, source))?;
        let packing = packing(&head[..length]);
        let source = io::Cursor::new(head).take(length as u64).chain(source);
        match packing {
            Packing::Plain => Ok(Input::over(path, Box::new(source), kind)),
            Packing::Gzip => {
                let decoder = flate2::read::MultiGzDecoder::new(source);
                Ok(Input::over(path, Box::new(Unpacked { decoder, packing: "gzip" }), Kind::Stream))
            }
            Packing::Zstd => {
                let decoder =
                    zstd::stream::read::Decoder::new(source).map_err(|e| TraceError::io(&path, e))?;
                Ok(Input::over(path, Box::new(Unpacked { decoder, packing: "zstd" }), Kind::Stream))
            }
            Packing::Refused(what) => Err(TraceError::malformed(
                &path,
                Position::File,
                what,
                "plain, gzip and zstd files; unpack it, or repack it with zstd",
            )),
        }
    }

    fn over(path: PathBuf, source: Box<dyn Read + Send>, kind: Kind) -> Input {
        let buffer = vec![0; if kind == Kind::Folder { 0 } else { BUFFER_BYTES }];
        Input { path, source, buffer, start: 0, end: 0, ended: false, lines: 0, consumed: 0, kind }
    }

    /// What was opened, for messages and for finding files beside it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is a folder, which has no bytes of its own.
    pub fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// Whether the bytes are those of an uncompressed regular file, so that it may be opened anew and read at any offset.
    pub fn is_plain_file(&self) -> bool {
        self.kind == Kind::PlainFile
    }

    /// The number of the line that [`Input::next_line`] returned last, from 1; 0 before the first.
    #[inline]
    pub fn line_number(&self) -> u64 {
        self.lines
    }

    /// The place of the next unread byte in the uncompressed stream, from 0.
    #[inline]
    pub fn byte_position(&self) -> u64 {
        self.consumed
    }

    /// The next line without its end (`\n` or `\r\n`); `None` at the end. The last line needs no newline, and a
    /// byte-order mark before the first is dropped.
    ///
    /// # Errors
    /// Reading or decompressing fails, or the line is longer than [`LINE_BYTES_MAX`].
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let length = match words::newline(&self.buffer[self.start..self.end]) {
            Some(length) => length,
            None => match self.fill_line()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        let mut first = self.start;
        let mut last = first + length;
        // The byte at `last` is the newline, or the end of everything.
        let next = (last + 1).min(self.end);
        self.consumed += (next - first) as u64;
        self.start = next;
        if self.lines == 0 && self.buffer[first..last].starts_with(b"\xef\xbb\xbf") {
            first += 3;
        }
        self.lines += 1;
        if last > first && self.buffer[last - 1] == b'\r' {
            last -= 1;
        }
        Ok(Some(&self.buffer[first..last]))
    }

    /// Reads on until the buffer holds a whole line, and returns its length.
    #[cold]
    fn fill_line(&mut self) -> Result<Option<usize>, TraceError> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(found) = memchr::memchr(b'\n', &unread[searched..]) {
                return Ok(Some(searched + found));
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                return Err(TraceError::malformed(
                    &self.path,
                    Position::Line(self.lines + 1),
                    "a line longer than 1 MiB (binary data?)",
                    "text with lines of at most 1 MiB",
                ));
            }
            if self.ended {
                return Ok((searched > 0).then_some(searched));
            }
            self.fill()?;
        }
    }

    /// Fills `record` and returns true; false at a clean end.
    ///
    /// # Errors
    /// Reading or decompressing fails, or the input ends inside the record.
    pub fn read_record(&mut self, record: &mut [u8]) -> Result<bool, TraceError> {
        let position = self.consumed;
        let length = read_up_to(self, record).map_err(|source| TraceError::io(&self.path, source))?;
        if length == record.len() {
            return Ok(true);
        }
        if length == 0 {
            return Ok(false);
        }
        Err(TraceError::malformed(
            &self.path,
            Position::Byte(position),
            format!("a record cut short after {length} bytes"),
            format!("whole records of {} bytes", record.len()),
        ))
    }

    /// The next bytes without consuming them: `count` of them, or fewer where the input is shorter or `count` is more
    /// than [`PEEK_BYTES_MAX`].
    ///
    /// # Errors
    /// Reading or decompressing fails.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], TraceError> {
        let count = count.min(PEEK_BYTES_MAX);
        while self.end - self.start < count && !self.ended {
            self.fill()?;
        }
        let length = count.min(self.end - self.start);
        Ok(&self.buffer[self.start..self.start + length])
    }

    /// Asks the source once for more bytes, making room for them first.
    fn fill(&mut self) -> Result<(), TraceError> {
        if self.ended || self.kind == Kind::Folder {
            self.ended = true;
            return Ok(());
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Only a long line gets here: lines are bounded, and so is this.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = retry(|| self.source.read(&mut self.buffer[self.end..]))
            .map_err(|source| TraceError::io(&self.path, source))?;
        self.ended = count == 0;
        self.end += count;
        Ok(())
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && !self.ended {
            self.fill().map_err(|error| match error {
                TraceError::Io { source, .. } => source,
                other => io::Error::other(other),
            })?;
        }
        let count = bytes.len().min(self.end - self.start);
        bytes[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.start += count;
        self.consumed += count as u64;
        Ok(count)
    }
}

/// Reads until `bytes` is full or the source ends.
fn read_up_to(source: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match retry(|| source.read(&mut bytes[length..]))? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// A read that a signal interrupted is no failure.
fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
