//! `requests.parquet`: one row per completed request of every run.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `run` | u32 | index of the run in `results.json` |
//! | `sequence` | u64 | number of the request in the run, from 0; those below `warmup` are not in the metrics |
//! | `arrival_ns` | u64 | arrival |
//! | `entered_ns` | u64 | entry into the I/O queue: later than the arrival when the queue was full |
//! | `released_ns` | u64 | when no earlier unfinished request that overlaps it was left: its entry, where there was none |
//! | `issued_ns` | u64 | issue to the device |
//! | `completed_ns` | u64 | completion |
//! | `direction` | string | `read`, `write`, `flush` or `discard` |
//! | `lsn` | u64 | first sector of 512 B |
//! | `sectors` | u32 | number of sectors |
//! | `process` | u32 | process |
//! | `volume` | u32 | volume |
//! | `conflict` | bool | met another request on a unit when it entered |
//! | `die_wait_ns` | u64 | longest wait of one of its transactions for a die |
//! | `channel_wait_ns` | u64 | the same for a channel |
//!
//! Rows of a run are in the order of completion. Runs go on at the same time, so each writes a part of its own; the parts
//! are joined in the order of the runs by copying their compressed columns.

use crate::failure::Failure;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use planewise_model::{Operation, Request};
use planewise_sim::host::Slot;
use planewise_sim::observers::{Completion, Observer};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCHEMA: &str = "message requests {
    REQUIRED INT32 run (INTEGER(32, false));
    REQUIRED INT64 sequence (INTEGER(64, false));
    REQUIRED INT64 arrival_ns (INTEGER(64, false));
    REQUIRED INT64 entered_ns (INTEGER(64, false));
    REQUIRED INT64 released_ns (INTEGER(64, false));
    REQUIRED INT64 issued_ns (INTEGER(64, false));
    REQUIRED INT64 completed_ns (INTEGER(64, false));
    REQUIRED BYTE_ARRAY direction (STRING);
    REQUIRED INT64 lsn (INTEGER(64, false));
    REQUIRED INT32 sectors (INTEGER(32, false));
    REQUIRED INT32 process (INTEGER(32, false));
    REQUIRED INT32 volume (INTEGER(32, false));
    REQUIRED BOOLEAN conflict;
    REQUIRED INT64 die_wait_ns (INTEGER(64, false));
    REQUIRED INT64 channel_wait_ns (INTEGER(64, false));
}";

/// Rows of a row group: bounds the memory of a run.
const ROW_GROUP_ROWS: usize = 64 * 1024;

/// Writes one run's completions to a part file.
pub struct RequestLog {
    path: PathBuf,
    run: u32,
    writer: Option<SerializedFileWriter<File>>,
    rows: Vec<Completion>,
    /// The first error; nothing is written after it.
    error: Option<Failure>,
}

impl RequestLog {
    /// The log of run number `run`, in a part file in `directory`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(directory: &Path, run: usize) -> Result<RequestLog, Failure> {
        let path = part(directory, run);
        let writer = writer(&path).map_err(|error| unwritten(&path, &error))?;
        Ok(RequestLog { path, run: run as u32, writer: Some(writer), rows: Vec::new(), error: None })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first failure of writing.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush();
        match (self.error, self.writer) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.close().map(|_| ()).map_err(|error| unwritten(&self.path, &error)),
            (None, None) => Ok(()),
        }
    }

    fn flush(&mut self) {
        if let Some(writer) = &mut self.writer
            && self.error.is_none()
            && !self.rows.is_empty()
            && let Err(error) = write_group(writer, self.run, &self.rows)
        {
            self.error = Some(unwritten(&self.path, &error));
        }
        self.rows.clear();
    }
}

impl Observer for RequestLog {
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        if self.rows.capacity() == 0 {
            self.rows.reserve_exact(ROW_GROUP_ROWS);
        }
        self.rows.push(*completion);
        if self.rows.len() == ROW_GROUP_ROWS {
            self.flush();
        }
    }
}

/// Joins the parts of runs `0..runs` into `requests.parquet` and removes them.
///
/// # Errors
/// The file cannot be written.
pub fn join(directory: &Path, runs: usize) -> Result<(), Failure> {
    let path = directory.join("requests.parquet");
    let mut whole = writer(&path).map_err(|error| unwritten(&path, &error))?;
    for run in 0..runs {
        let part = part(directory, run);
        append(&mut whole, &part).map_err(|error| unwritten(&path, &error))?;
        std::fs::remove_file(&part).map_err(|error| unwritten(&part, &error.into()))?;
    }
    let file = whole.into_inner().map_err(|error| unwritten(&path, &error))?;
    file.sync_all().map_err(|error| unwritten(&path, &error.into()))
}

fn part(directory: &Path, run: usize) -> PathBuf {
    directory.join(format!("requests.{run}.part"))
}

fn unwritten(path: &Path, error: &ParquetError) -> Failure {
    let cause = match error {
        ParquetError::External(inner) => inner.to_string(),
        other => other.to_string(),
    };
    Failure::output(format!("{}: cannot write: {cause}", path.display()))
}

fn writer(path: &Path) -> Result<SerializedFileWriter<File>, ParquetError> {
    let properties = WriterProperties::builder()
        // The library's own name would change the bytes with every release of it.
        .set_created_by("planewise".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(vec![KeyValue::new("planewise.requests".to_owned(), "1".to_owned())]))
        .build();
    SerializedFileWriter::new(
        File::create(path)?,
        Arc::new(parse_message_type(SCHEMA)?),
        Arc::new(properties),
    )
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    run: u32,
    rows: &[Completion],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    // Unsigned numbers are stored as signed ones of the same bits; the schema says how to read them.
    let words = |get: fn(&Completion) -> u64| rows.iter().map(|row| get(row) as i64).collect::<Vec<_>>();
    let halves = |get: fn(&Completion) -> u32| rows.iter().map(|row| get(row) as i32).collect::<Vec<_>>();
    column::<Int32Type>(&mut group, &vec![run as i32; rows.len()])?;
    column::<Int64Type>(&mut group, &words(|row| row.sequence))?;
    column::<Int64Type>(&mut group, &words(|row| row.request.arrival.0))?;
    column::<Int64Type>(&mut group, &words(|row| row.entered.0))?;
    column::<Int64Type>(&mut group, &words(|row| row.released.0))?;
    column::<Int64Type>(&mut group, &words(|row| row.issued.0))?;
    column::<Int64Type>(&mut group, &words(|row| row.completed.0))?;
    let names = ["read", "write", "flush", "discard"].map(ByteArray::from);
    let what = |request: &Request| match request.operation {
        Operation::Transfer => request.direction.index(),
        Operation::Flush | Operation::FlushWithMetadata => 2,
        Operation::Discard => 3,
    };
    let directions: Vec<ByteArray> = rows.iter().map(|row| names[what(&row.request)].clone()).collect();
    column::<ByteArrayType>(&mut group, &directions)?;
    column::<Int64Type>(&mut group, &words(|row| row.request.start.0))?;
    column::<Int32Type>(&mut group, &halves(|row| row.request.sectors))?;
    column::<Int32Type>(&mut group, &halves(|row| row.request.process))?;
    column::<Int32Type>(&mut group, &halves(|row| row.request.volume))?;
    column::<BoolType>(&mut group, &rows.iter().map(|row| row.conflict).collect::<Vec<_>>())?;
    column::<Int64Type>(&mut group, &words(|row| row.die_wait.0))?;
    column::<Int64Type>(&mut group, &words(|row| row.channel_wait.0))?;
    group.close().map(|_| ())
}

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Copies the row groups of a part without decoding them.
fn append(whole: &mut SerializedFileWriter<File>, part: &Path) -> Result<(), ParquetError> {
    let file = File::open(part)?;
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    for group in reader.metadata().row_groups() {
        let mut target = whole.next_row_group()?;
        for column in group.columns() {
            let copied = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            target.append_column(&file, copied)?;
        }
        target.close()?;
    }
    Ok(())
}
