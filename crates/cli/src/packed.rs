//! Output that is compressed as its name says: `.gz`, `.zst`, or not.

use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const ZSTD_LEVEL: i32 = 3;

/// A file that is being written.
pub enum Packed {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

impl Packed {
    /// Packs what goes into `file` as the extension of `path` says.
    ///
    /// # Errors
    /// There is no memory for the compressor.
    pub fn new(path: &Path, file: BufWriter<File>) -> io::Result<Packed> {
        Ok(match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Packed::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default()))),
            Some("zst") => Packed::Zstd(Box::new(zstd::Encoder::new(file, ZSTD_LEVEL)?)),
            _ => Packed::Plain(file),
        })
    }

    /// Writes what is left, and the end.
    ///
    /// # Errors
    /// The disk is full.
    pub fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Packed::Plain(file) => file,
            Packed::Gzip(encoder) => encoder.finish()?,
            Packed::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(file) => file.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(file) => file.flush(),
            // Flushing a compressor inside a stream only costs compression; its end flushes.
            Packed::Gzip(_) | Packed::Zstd(_) => Ok(()),
        }
    }
}
