//! Planewise's own columns in Parquet: what Python, DuckDB and polars read at once.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `arrival_ns` | u64 | arrival, ns |
//! | `lsn` | u64 | first sector of 512 B |
//! | `sectors` | u32 | number of sectors: at least 1, of a flush 0 (at sector 0) |
//! | `direction` | string | `read`, `write`, `flush`, `sync` (a flush with metadata) or `discard` |
//! | `process` | u32 | process, 0 when unknown |
//! | `volume` | u32 | volume |
//! | `response_ns` | u64, nullable | the response time that the trace recorded |
//! | `synchronous` | bool, nullable | whether someone waits for it |
//! | `durability` | string, nullable | what the acknowledgement of a write promises, in the words of [`Durability`](planewise_model::Durability); null when nothing |
//!
//! The file's metadata key `planewise.trace` holds the version, 1. The reader also takes files without the key when all
//! columns are there with these types, signed or nullable too (a null or negative value in any column but
//! the last three is an error); the last three may be missing, or have nulls alone and no type, and then reads and flushes are synchronous, writes and discards are
//! not, and none promises anything. Other columns are ignored. Both directions work in row
//! groups of bounded size; [`Reader::position`] counts rows, from 1.

use super::random_access::into_file;
use super::{Certainty, Format, ReadOptions, Reader, Writer};
use crate::error::{Position, TraceError};
use crate::input::Input;
use columns::{Chunk, Columns};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use planewise_model::Request;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod columns;
mod pages;
mod row;
#[cfg(test)]
mod tests;

/// Parquet with Planewise's columns.
pub static FORMAT: Format = Format {
    name: "parquet",
    description: "Parquet: arrival_ns, lsn, sectors, direction, process, volume, response_ns, synchronous, durability",
    time_unit_open: false,
    completions: true,
    commands: true,
    durability: true,
    detect,
    open,
    create: Some(create),
};

/// The metadata key that says that a file is a trace, and its version.
const KEY: &str = "planewise.trace";
const VERSION: &str = "1";
/// Requests in a row group: a few MiB while it is put together, and enough to compress well.
const ROW_GROUP_ROWS: usize = 64 * 1024;

const SCHEMA: &str = "message trace {
    REQUIRED INT64 arrival_ns (INTEGER(64, false));
    REQUIRED INT64 lsn (INTEGER(64, false));
    REQUIRED INT32 sectors (INTEGER(32, false));
    REQUIRED BYTE_ARRAY direction (STRING);
    REQUIRED INT32 process (INTEGER(32, false));
    REQUIRED INT32 volume (INTEGER(32, false));
    OPTIONAL INT64 response_ns (INTEGER(64, false));
    REQUIRED BOOLEAN synchronous;
    OPTIONAL BYTE_ARRAY durability (STRING);
}";

fn detect(head: &[u8], _whole: bool) -> Certainty {
    if head.starts_with(b"PAR1") { Certainty::Certain } else { Certainty::No }
}

/// A failure of the Parquet library, which sees corrupt content and failing reads alike.
fn failed(path: &Path, error: ParquetError) -> TraceError {
    TraceError::malformed(path, Position::File, error.to_string(), "a whole, uncorrupted Parquet file")
}

fn open(input: Input, _: &ReadOptions) -> Result<Box<dyn Reader>, TraceError> {
    let path = input.path().to_owned();
    let file = SerializedFileReader::new(into_file(input)?).map_err(|error| failed(&path, error))?;
    let metadata = file.metadata().file_metadata();
    let version = metadata.key_value_metadata().into_iter().flatten().find(|pair| pair.key == KEY);
    if let Some(version) = version
        && version.value.as_deref() != Some(VERSION)
    {
        let found = format!("{KEY} = {}", version.value.as_deref().unwrap_or("(nothing)"));
        return Err(TraceError::malformed(&path, Position::File, found, format!("{KEY} = {VERSION}")));
    }
    let columns = Columns::find(metadata.schema_descr(), &path)?;
    Ok(Box::new(ParquetTrace {
        path,
        file,
        columns,
        next_group: 0,
        chunk: Chunk::default(),
        taken: 0,
        row: 0,
    }))
}

struct ParquetTrace {
    path: PathBuf,
    file: SerializedFileReader<File>,
    columns: Columns,
    next_group: usize,
    chunk: Chunk,
    /// Rows of the chunk already handed on.
    taken: usize,
    row: u64,
}

impl ParquetTrace {
    /// Decodes the next rows; false at the end of the file.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.taken = 0;
        loop {
            if self.columns.read(&mut self.chunk, &self.path)? {
                return Ok(true);
            }
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group =
                self.file.get_row_group(self.next_group).map_err(|error| failed(&self.path, error))?;
            self.columns.start_group(&*group, &self.path)?;
            self.next_group += 1;
        }
    }
}

impl Reader for ParquetTrace {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < limit {
            if self.taken == self.chunk.rows() && !self.refill()? {
                break;
            }
            let request = self.chunk.request(self.taken).map_err(|(found, allowed)| {
                let found = format!("row {}: {found}", self.row + 1);
                TraceError::malformed(&self.path, Position::File, found, allowed)
            })?;
            self.taken += 1;
            self.row += 1;
            batch.push(request);
            count += 1;
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        Position::Line(self.row)
    }
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let column = |name: &str| ColumnPath::from(name);
    let mut properties = WriterProperties::builder()
        // The library's own name would change the bytes with every release of it.
        .set_created_by("planewise".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), VERSION.to_owned())]));
    // Times and addresses rarely repeat: a dictionary of them only costs.
    for name in ["arrival_ns", "response_ns", "lsn"] {
        properties = properties.set_column_dictionary_enabled(column(name), false);
    }
    Ok(properties.build())
}

fn create(sink: Box<dyn Write + Send>, path: &Path) -> Result<Box<dyn Writer>, TraceError> {
    let start = || -> Result<_, ParquetError> {
        SerializedFileWriter::new(sink, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties()?))
    };
    let file = start().map_err(|error| unwritten(path, error))?;
    Ok(Box::new(ParquetWriter { path: path.to_owned(), file, rows: Vec::with_capacity(ROW_GROUP_ROWS) }))
}

fn unwritten(path: &Path, error: ParquetError) -> TraceError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    TraceError::io(path, source)
}

struct ParquetWriter {
    path: PathBuf,
    file: SerializedFileWriter<Box<dyn Write + Send>>,
    rows: Vec<Request>,
}

impl ParquetWriter {
    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        // Unsigned numbers are stored as signed ones of the same bits; the schema says how to read them.
        write::<Int64Type>(&mut group, rows.iter().map(|r| r.arrival.0 as i64))?;
        write::<Int64Type>(&mut group, rows.iter().map(|r| r.start.0 as i64))?;
        write::<Int32Type>(&mut group, rows.iter().map(|r| r.sectors as i32))?;
        let words = row::DIRECTIONS.map(ByteArray::from);
        write::<ByteArrayType>(&mut group, rows.iter().map(|r| words[row::direction_index(r)].clone()))?;
        write::<Int32Type>(&mut group, rows.iter().map(|r| r.process as i32))?;
        write::<Int32Type>(&mut group, rows.iter().map(|r| r.volume as i32))?;
        write_given::<Int64Type>(&mut group, rows.iter().map(|r| r.response.map(|time| time.0 as i64)))?;
        write::<BoolType>(&mut group, rows.iter().map(|r| r.synchronous))?;
        let words = row::DURABILITIES.map(|(word, _)| ByteArray::from(word));
        let promises = rows.iter().map(|r| row::durability_index(r).map(|index| words[index].clone()));
        write_given::<ByteArrayType>(&mut group, promises)?;
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, Box<dyn Write + Send>>;

/// Writes the next column, with a value in every row.
fn write<T: DataType>(group: &mut Group<'_>, values: impl Iterator<Item = T::T>) -> Result<(), ParquetError> {
    write_column::<T>(group, &values.collect::<Vec<_>>(), None)
}

/// Writes the next column, with nulls.
fn write_given<T: DataType>(
    group: &mut Group<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut levels = Vec::new();
    let given: Vec<T::T> =
        values.inspect(|value| levels.push(i16::from(value.is_some()))).flatten().collect();
    write_column::<T>(group, &given, Some(&levels))
}

fn write_column<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

impl Writer for ParquetWriter {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        row::check(request)
            .map_err(|(found, allowed)| TraceError::malformed(&self.path, Position::File, found, allowed))?;
        self.rows.push(*request);
        if self.rows.len() == ROW_GROUP_ROWS {
            self.write_group().map_err(|error| unwritten(&self.path, error))?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), TraceError> {
        let ParquetWriter { path, .. } = &*self;
        let path = path.clone();
        self.write_group().map_err(|error| unwritten(&path, error))?;
        let mut sink = self.file.into_inner().map_err(|error| unwritten(&path, error))?;
        sink.flush().map_err(|source| TraceError::io(&path, source))
    }
}
