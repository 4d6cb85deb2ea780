//! The columns of a trace in a Parquet file: finding them, and decoding them some thousand rows at a time.

use super::failed;
use super::pages::CheckedPages;
use super::row::{self, Refusal};
use crate::error::{Position, TraceError};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::SchemaDescriptor;
use planewise_model::{Ns, Request};
use std::path::Path;

/// Rows decoded at once: some hundred KiB in all columns together.
const CHUNK_ROWS: usize = 8 * 1024;

/// Name and type of each column, in the order of the fields of [`Columns`]. Those from [`RESPONSE`] on may be missing.
const EXPECTED: [(&str, Type); 9] = [
    ("arrival_ns", Type::INT64),
    ("lsn", Type::INT64),
    ("sectors", Type::INT32),
    ("direction", Type::BYTE_ARRAY),
    ("process", Type::INT32),
    ("volume", Type::INT32),
    ("response_ns", Type::INT64),
    ("synchronous", Type::BOOLEAN),
    ("durability", Type::BYTE_ARRAY),
];
const RESPONSE: usize = 6;
const SYNCHRONOUS: usize = 7;
const DURABILITY: usize = 8;

/// Where a column is in the file, and how its values are to be read.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    is_nullable: bool,
    is_unsigned: bool,
}

/// The columns of the file and the readers of its current row group.
pub(super) struct Columns {
    /// In the order of [`EXPECTED`]; `None` for a missing one.
    places: [Option<Place>; 9],
    rows_left: usize,
    wide: [Option<ColumnReaderImpl<Int64Type>>; 3],
    narrow: [Option<ColumnReaderImpl<Int32Type>>; 3],
    direction: Option<ColumnReaderImpl<ByteArrayType>>,
    synchronous: Option<ColumnReaderImpl<BoolType>>,
    durability: Option<ColumnReaderImpl<ByteArrayType>>,
}

/// Decoded rows.
#[derive(Default)]
pub(super) struct Chunk {
    rows: usize,
    /// arrival, lsn, response.
    wide: [Values<i64>; 3],
    /// sectors, process, volume.
    narrow: [Values<i32>; 3],
    direction: Values<ByteArray>,
    responses: Vec<Option<Ns>>,
    synchronous: Values<bool>,
    waits: Vec<Option<bool>>,
    durability: Values<ByteArray>,
    promises: Vec<Option<ByteArray>>,
}

#[derive(Default)]
struct Values<T> {
    values: Vec<T>,
    /// 1 where there is a value; only filled for nullable columns.
    levels: Vec<i16>,
}

/// [`EXPECTED`]'s numbers of the columns in `wide` and `narrow`.
const WIDE: [usize; 3] = [0, 1, RESPONSE];
const NARROW: [usize; 3] = [2, 4, 5];
const DIRECTION: usize = 3;

impl Columns {
    /// Finds the columns in a file's schema.
    ///
    /// # Errors
    /// A column that is missing or of another type, with what the file has instead.
    pub fn find(schema: &SchemaDescriptor, path: &Path) -> Result<Columns, TraceError> {
        let mut places = [None; 9];
        for (number, (name, physical)) in EXPECTED.into_iter().enumerate() {
            let column =
                schema.columns().iter().enumerate().find(|(_, column)| column.path().parts() == [name]);
            let Some((index, column)) = column else {
                if number >= RESPONSE {
                    continue;
                }
                let has: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
                let found = format!("no column '{name}' among {}", has.join(", "));
                let all = EXPECTED.map(|(name, _)| name).join(", ");
                return Err(TraceError::malformed(path, Position::File, found, format!("columns {all}")));
            };
            // What other programs write of a column in which they found nothing but nulls.
            if number >= RESPONSE && matches!(column.logical_type_ref(), Some(LogicalType::Unknown)) {
                continue;
            }
            let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
            if column.physical_type() != physical || !is_flat {
                let found = format!("column '{name}' of type {}", column.physical_type());
                return Err(TraceError::malformed(
                    path,
                    Position::File,
                    found,
                    format!("{physical}, not nested"),
                ));
            }
            let is_unsigned = matches!(
                column.converted_type(),
                ConvertedType::UINT_32 | ConvertedType::UINT_64
            ) || matches!(column.logical_type_ref(), Some(LogicalType::Integer(integer)) if !integer.is_signed);
            places[number] = Some(Place { index, is_nullable: column.max_def_level() == 1, is_unsigned });
        }
        Ok(Columns {
            places,
            rows_left: 0,
            wide: Default::default(),
            narrow: Default::default(),
            direction: None,
            synchronous: None,
            durability: None,
        })
    }

    /// Goes on to a row group.
    pub fn start_group(&mut self, group: &dyn RowGroupReader, path: &Path) -> Result<(), TraceError> {
        let rows = group.metadata().num_rows();
        self.rows_left = usize::try_from(rows).map_err(|_| {
            TraceError::malformed(
                path,
                Position::File,
                format!("a row group of {rows} rows"),
                "0 rows or more",
            )
        })?;
        for (slot, number) in self.wide.iter_mut().zip(WIDE) {
            *slot = self.places[number].map(|place| reader(group, place, path)).transpose()?;
        }
        for (slot, number) in self.narrow.iter_mut().zip(NARROW) {
            *slot = self.places[number].map(|place| reader(group, place, path)).transpose()?;
        }
        self.direction = self.places[DIRECTION].map(|place| reader(group, place, path)).transpose()?;
        self.synchronous = self.places[SYNCHRONOUS].map(|place| reader(group, place, path)).transpose()?;
        self.durability = self.places[DURABILITY].map(|place| reader(group, place, path)).transpose()?;
        Ok(())
    }

    /// Decodes the next rows of the group into `chunk`; false when it has no more.
    pub fn read(&mut self, chunk: &mut Chunk, path: &Path) -> Result<bool, TraceError> {
        let rows = self.rows_left.min(CHUNK_ROWS);
        chunk.rows = 0;
        if rows == 0 {
            return Ok(false);
        }
        for (column, number) in WIDE.into_iter().enumerate() {
            let (reader, values) = (&mut self.wide[column], &mut chunk.wide[column]);
            fill(reader.as_mut(), self.places[number], number, rows, values, path)?;
        }
        for (column, number) in NARROW.into_iter().enumerate() {
            let (reader, values) = (&mut self.narrow[column], &mut chunk.narrow[column]);
            fill(reader.as_mut(), self.places[number], number, rows, values, path)?;
        }
        fill(self.direction.as_mut(), self.places[DIRECTION], DIRECTION, rows, &mut chunk.direction, path)?;
        let (waits, place) = (self.synchronous.as_mut(), self.places[SYNCHRONOUS]);
        fill(waits, place, SYNCHRONOUS, rows, &mut chunk.synchronous, path)?;
        let (words, place) = (self.durability.as_mut(), self.places[DURABILITY]);
        fill(words, place, DURABILITY, rows, &mut chunk.durability, path)?;
        self.check_signs(chunk, path)?;
        spread(self.places[RESPONSE], &chunk.wide[2], rows, |value| Ns(*value as u64), &mut chunk.responses);
        spread(self.places[SYNCHRONOUS], &chunk.synchronous, rows, |value| *value, &mut chunk.waits);
        spread(self.places[DURABILITY], &chunk.durability, rows, ByteArray::clone, &mut chunk.promises);
        chunk.rows = rows;
        self.rows_left -= rows;
        Ok(true)
    }

    /// Signed columns are fine as long as nothing in them is negative.
    fn check_signs(&self, chunk: &Chunk, path: &Path) -> Result<(), TraceError> {
        let wide = WIDE
            .into_iter()
            .zip(&chunk.wide)
            .map(|(number, values)| (number, values.values.iter().copied().find(|value| *value < 0)));
        let narrow = NARROW.into_iter().zip(&chunk.narrow).map(|(number, values)| {
            (number, values.values.iter().copied().find(|value| *value < 0).map(i64::from))
        });
        for (number, negative) in wide.chain(narrow) {
            if let (Some(Place { is_unsigned: false, .. }), Some(value)) = (self.places[number], negative) {
                let found = format!("{value} in column '{}'", EXPECTED[number].0);
                return Err(TraceError::malformed(path, Position::File, found, "0 or more"));
            }
        }
        Ok(())
    }
}

/// Values of a nullable column come without gaps: puts each into its row.
fn spread<T, U>(
    place: Option<Place>,
    values: &Values<T>,
    rows: usize,
    read: impl Fn(&T) -> U,
    into: &mut Vec<Option<U>>,
) {
    into.clear();
    let mut given = values.values.iter().map(read);
    match place {
        None => into.extend((0..rows).map(|_| None)),
        Some(place) if place.is_nullable => {
            into.extend(values.levels.iter().map(|level| if *level == 1 { given.next() } else { None }));
        }
        Some(_) => into.extend(given.map(Some)),
    }
}

/// A reader of a column in a row group. The type was checked with the schema.
fn reader<T: DataType>(
    group: &dyn RowGroupReader,
    place: Place,
    path: &Path,
) -> Result<ColumnReaderImpl<T>, TraceError> {
    let chunk = group.metadata().column(place.index);
    // The library asserts what a corrupt footer need not hold.
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    if start < 0 || chunk.compressed_size() < 0 || chunk.num_values() < 0 {
        let found = "a column at a negative offset or of negative length";
        return Err(TraceError::malformed(path, Position::File, found, "an uncorrupted Parquet file"));
    }
    let pages = group.get_column_page_reader(place.index).map_err(|error| failed(path, error))?;
    let pages = CheckedPages::new(pages, T::get_physical_type(), place.is_nullable);
    Ok(ColumnReaderImpl::new(chunk.column_descr_ptr(), Box::new(pages)))
}

/// Decodes exactly `rows` rows of a column.
fn fill<T: DataType>(
    reader: Option<&mut ColumnReaderImpl<T>>,
    place: Option<Place>,
    number: usize,
    rows: usize,
    into: &mut Values<T::T>,
    path: &Path,
) -> Result<(), TraceError> {
    into.values.clear();
    into.levels.clear();
    let (Some(reader), Some(place)) = (reader, place) else { return Ok(()) };
    let levels = place.is_nullable.then_some(&mut into.levels);
    let (records, values, _) =
        reader.read_records(rows, levels, None, &mut into.values).map_err(|error| failed(path, error))?;
    let name = EXPECTED[number].0;
    if records != rows {
        let found = format!("column '{name}' ends before its row group");
        return Err(TraceError::malformed(path, Position::File, found, "columns of equal length"));
    }
    if values != rows && number < RESPONSE {
        let found = format!("a null in column '{name}'");
        return Err(TraceError::malformed(path, Position::File, found, "a value in every row"));
    }
    Ok(())
}

impl Chunk {
    /// Rows decoded.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A row as a request, or what is wrong with it.
    pub fn request(&self, row: usize) -> Result<Request, Refusal> {
        let mut request = row::request(
            self.wide[0].values[row] as u64,
            self.wide[1].values[row] as u64,
            self.narrow[0].values[row] as u32,
            self.direction.values[row].data(),
        )?;
        request.process = self.narrow[1].values[row] as u32;
        request.volume = self.narrow[2].values[row] as u32;
        request.response = self.responses[row];
        request.synchronous = self.waits[row].unwrap_or(request.synchronous);
        if let Some(word) = &self.promises[row] {
            request.durability = row::durability(word.data())?;
        }
        Ok(request)
    }
}
