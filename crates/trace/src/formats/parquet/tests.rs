//! Round trips, foreign files, corrupt files.

use super::*;
use crate::formats::testing::*;
use planewise_model::{Direction, Durability, Lsn, Ns, Operation};
use proptest::prelude::*;

const DURABILITIES: [Durability; 5] = [
    Durability::Volatile,
    Durability::ForceUnitAccess,
    Durability::FlushFirst,
    Durability::FlushFirstForceUnitAccess,
    Durability::ForceUnitAccessWithMetadata,
];

/// A request of each operation and direction by number.
fn of_operation(number: usize, arrival: Ns, start: Lsn, sectors: u32) -> Request {
    match number {
        0 => Request::new(arrival, start, sectors, Direction::Read),
        1 => Request::new(arrival, start, sectors, Direction::Write),
        2 => Request::flush(arrival),
        3 => Request { operation: Operation::FlushWithMetadata, ..Request::flush(arrival) },
        _ => Request::discard(arrival, start, sectors),
    }
}

fn sample(count: u64) -> Vec<Request> {
    (0..count)
        .map(|n| {
            let start = Lsn(n.wrapping_mul(2_654_435_761) % (1 << 40));
            let mut request = of_operation(n as usize % 11 % 5, Ns(n * 1_003), start, 1 + n as u32 % 2048);
            request.durability = DURABILITIES[n as usize % 7 % 5];
            (request.process, request.volume) = (n as u32 % 7, n as u32 % 3);
            request.synchronous = n % 4 != 1;
            request.response = (n % 5 != 0).then_some(Ns(n % 1_000_000));
            request
        })
        .collect()
}

/// A file with a schema of its own, no rows, and perhaps the key.
fn foreign(schema: &str, version: Option<&str>) -> Vec<u8> {
    let pairs = version.map(|version| vec![KeyValue::new(KEY.to_owned(), version.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(pairs).build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn several_row_groups_come_back_as_they_were() {
    let requests = sample(2 * ROW_GROUP_ROWS as u64 + 12_345);
    let bytes = write_all(&FORMAT, &requests).unwrap();
    println!("{:.1} bytes a request", bytes.len() as f64 / requests.len() as f64);
    assert_eq!((FORMAT.detect)(&bytes, true), Certainty::Certain);
    assert!(read_bytes(&FORMAT, &bytes).unwrap().requests == requests);
}

#[test]
fn the_same_requests_give_the_same_bytes() {
    let requests = sample(5_000);
    assert!(write_all(&FORMAT, &requests).unwrap() == write_all(&FORMAT, &requests).unwrap());
}

#[test]
fn no_requests_make_a_file_without_rows() {
    let bytes = write_all(&FORMAT, &[]).unwrap();
    assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, []);
}

#[test]
fn a_missing_column_is_named_beside_those_found() {
    let bytes = foreign("message m { REQUIRED INT64 arrival_ns; REQUIRED INT64 offset; }", None);
    let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
    assert!(error.contains("no column 'lsn' among arrival_ns, offset"), "{error}");
    let bytes = foreign("message m { REQUIRED DOUBLE arrival_ns; }", None);
    let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
    assert!(error.contains("column 'arrival_ns' of type DOUBLE; allowed: INT64"), "{error}");
}

#[test]
fn another_version_is_refused_and_no_version_is_fine() {
    let error = read_bytes(&FORMAT, &foreign(SCHEMA, Some("2"))).unwrap_err().to_string();
    assert!(error.contains("planewise.trace = 2; allowed: planewise.trace = 1"), "{error}");
    assert!(read_bytes(&FORMAT, &foreign(SCHEMA, None)).is_ok());
}

/// A column of a file that another program wrote: `None` for a null.
enum Column<'a> {
    Wide(&'a [i64]),
    Narrow(&'a [i32]),
    Bool(&'a [bool]),
    Text(&'a [&'a str]),
    WideOrNull(Option<i64>),
    TextOrNull(&'a [Option<&'a str>]),
    /// So many nulls, of no type.
    Nulls(usize),
}

/// A file of one row group, with or without the key.
fn file_of(schema: &str, version: Option<&str>, columns: &[Column<'_>]) -> Vec<u8> {
    let pairs = version.map(|version| vec![KeyValue::new(KEY.to_owned(), version.to_owned())]);
    let properties = WriterProperties::builder().set_key_value_metadata(pairs).build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in columns {
        let mut out = group.next_column().unwrap().unwrap();
        match column {
            Column::Wide(values) => out.typed::<Int64Type>().write_batch(values, None, None).unwrap(),
            Column::Narrow(values) => out.typed::<Int32Type>().write_batch(values, None, None).unwrap(),
            Column::Bool(values) => out.typed::<BoolType>().write_batch(values, None, None).unwrap(),
            Column::Text(values) => {
                let values: Vec<ByteArray> = values.iter().map(|text| ByteArray::from(*text)).collect();
                out.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap()
            }
            Column::WideOrNull(value) => {
                let level = i16::from(value.is_some());
                out.typed::<Int64Type>().write_batch(&Vec::from_iter(*value), Some(&[level]), None).unwrap()
            }
            Column::TextOrNull(values) => {
                let levels: Vec<i16> = values.iter().map(|text| i16::from(text.is_some())).collect();
                let given: Vec<ByteArray> =
                    values.iter().flatten().map(|text| ByteArray::from(*text)).collect();
                out.typed::<ByteArrayType>().write_batch(&given, Some(&levels), None).unwrap()
            }
            Column::Nulls(count) => {
                out.typed::<Int32Type>().write_batch(&[], Some(&vec![0; *count]), None).unwrap()
            }
        };
        out.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A one-row file of nullable signed columns, as other tools write them.
fn row_of_others(arrival: Option<i64>, sectors: i32, direction: &str) -> Vec<u8> {
    let schema = "message m { OPTIONAL INT64 arrival_ns; REQUIRED INT64 lsn; REQUIRED INT32 sectors;
        REQUIRED BYTE_ARRAY direction; REQUIRED INT32 process; REQUIRED INT32 volume; REQUIRED BOOLEAN extra; }";
    use Column::*;
    let columns = [
        WideOrNull(arrival),
        Wide(&[64]),
        Narrow(&[sectors]),
        Text(&[direction]),
        Narrow(&[5]),
        Narrow(&[6]),
        Bool(&[true]),
    ];
    file_of(schema, None, &columns)
}

#[test]
fn files_of_other_tools_are_read_when_every_value_is_there() {
    let mut expected = Request::new(Ns(9), Lsn(64), 8, Direction::Write);
    (expected.process, expected.volume) = (5, 6);
    assert_eq!(read_bytes(&FORMAT, &row_of_others(Some(9), 8, "write")).unwrap().requests, [expected]);
    for (bytes, complaint) in [
        (row_of_others(None, 8, "write"), "a null in column 'arrival_ns'"),
        (row_of_others(Some(-9), 8, "write"), "-9 in column 'arrival_ns'; allowed: 0 or more"),
        (row_of_others(Some(9), 0, "write"), "row 1: 0 sectors at 64"),
        (
            row_of_others(Some(9), 8, "W"),
            "row 1: direction 'W'; allowed: read, write, flush, sync or discard",
        ),
        (row_of_others(Some(9), 8, "Flush"), "row 1: direction 'Flush'"),
        (row_of_others(Some(9), 8, ""), "row 1: direction ''"),
        (row_of_others(Some(9), 0, "discard"), "row 1: 0 sectors at 64; allowed: at least 1 sector"),
        (
            row_of_others(Some(9), 0, "flush"),
            "row 1: a flush of 0 sectors at 64; allowed: a flush or sync of 0 sectors at 0",
        ),
        (row_of_others(Some(9), 8, "sync"), "row 1: a sync of 8 sectors at 64"),
    ] {
        let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

/// Rows 1 to 3: a flush, a discard and a write, with what is given of them behind the columns that every file has.
fn three_rows(schema: &str, further: impl IntoIterator<Item = Column<'static>>) -> Vec<u8> {
    let schema = format!(
        "message m {{ REQUIRED INT64 arrival_ns; REQUIRED INT64 lsn; REQUIRED INT32 sectors; REQUIRED BYTE_ARRAY direction;
        REQUIRED INT32 process; REQUIRED INT32 volume; {schema} }}"
    );
    use Column::*;
    let mut columns = vec![
        Wide(&[1, 2, 3]),
        Wide(&[0, 8, 16]),
        Narrow(&[0, 8, 8]),
        Text(&["flush", "discard", "write"]),
        Narrow(&[0; 3]),
        Narrow(&[0; 3]),
    ];
    columns.extend(further);
    file_of(&schema, None, &columns)
}

fn three_requests() -> [Request; 3] {
    [1, 2, 3].map(|n| of_operation([2, 4, 1][n - 1], Ns(n as u64), Lsn(8 * (n as u64 - 1)), 8))
}

#[test]
fn without_the_columns_that_may_be_missing_flushes_are_waited_for_and_nothing_is_promised() {
    let expected = three_requests();
    assert_eq!(expected.map(|request| request.synchronous), [true, false, false]);
    assert_eq!(read_bytes(&FORMAT, &three_rows("", [])).unwrap().requests, expected);
}

/// What was written before there was a column `durability`, and what programs write that found nothing but nulls in it.
#[test]
fn files_without_a_column_durability_are_read() {
    let schema = SCHEMA.replace("    OPTIONAL BYTE_ARRAY durability (STRING);\n", "");
    assert!(schema.len() < SCHEMA.len());
    use Column::*;
    let columns = [
        Wide(&[7]),
        Wide(&[64]),
        Narrow(&[8]),
        Text(&["write"]),
        Narrow(&[3]),
        Narrow(&[1]),
        WideOrNull(Some(90)),
        Bool(&[true]),
    ];
    let mut expected = Request::new(Ns(7), Lsn(64), 8, Direction::Write);
    (expected.process, expected.volume) = (3, 1);
    (expected.response, expected.synchronous) = (Some(Ns(90)), true);
    let bytes = file_of(&schema, Some(VERSION), &columns);
    assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, [expected]);

    let typeless = "OPTIONAL INT32 response_ns (UNKNOWN); OPTIONAL INT32 durability (UNKNOWN);";
    let bytes = three_rows(typeless, [Nulls(3), Nulls(3)]);
    assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, three_requests());
}

#[test]
fn an_unknown_promise_is_an_error_that_names_its_row() {
    let column = |words| three_rows("OPTIONAL BYTE_ARRAY durability (STRING);", [Column::TextOrNull(words)]);
    let mut expected = three_requests();
    expected[2].durability = Durability::FlushFirst;
    let bytes = column(&[None, None, Some("flush-first")]);
    assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, expected);
    for (bytes, complaint) in [
        (
            column(&[None, None, Some("fua")]),
            "row 3: durability 'fua'; allowed: null (volatile), force-unit-access, flush-first, ",
        ),
        (column(&[None, Some(""), None]), "row 2: durability ''"),
        (column(&[Some("volatile"), None, None]), "row 1: durability 'volatile'"),
        (
            three_rows("REQUIRED INT32 durability;", [Column::Narrow(&[0; 3])]),
            "column 'durability' of type INT32; allowed: BYTE_ARRAY",
        ),
    ] {
        let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn what_the_reader_would_refuse_or_take_for_another_request_is_not_written() {
    let flush = Request::flush(Ns(0));
    let discard = Request::discard(Ns(0), Lsn(8), 8);
    for (request, complaint) in [
        (Request { sectors: 0, ..discard }, "0 sectors at 8; allowed: at least 1 sector"),
        (Request::new(Ns(0), Lsn(8), 0, Direction::Read), "0 sectors at 8"),
        (Request { start: Lsn(u64::MAX - 7), ..discard }, "ending below 2^64"),
        (
            Request { sectors: 1, ..flush },
            "a flush of 1 sectors at 0; allowed: a flush or sync of 0 sectors at 0",
        ),
        (
            Request { start: Lsn(u64::MAX), operation: Operation::FlushWithMetadata, ..flush },
            "a sync of 0 sectors at 18446744073709551615",
        ),
        (Request { direction: Direction::Read, ..flush }, "a flush that reads"),
        (Request { direction: Direction::Read, ..discard }, "a discard that reads"),
    ] {
        let error = write_all(&FORMAT, &[request]).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[test]
fn mutilated_files_never_panic() {
    mutilate(&FORMAT, &write_all(&FORMAT, &sample(20)).unwrap());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_bytes(&FORMAT, &bytes);
        let framed = [b"PAR1".as_slice(), &bytes, &(bytes.len() as u32).to_le_bytes(), b"PAR1"].concat();
        let _ = read_bytes(&FORMAT, &framed);
    }

    #[test]
    fn corrupt_bytes_anywhere_never_panic(
        count in 1..300u64,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write_all(&FORMAT, &sample(count)).unwrap();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = read_bytes(&FORMAT, &bytes);
    }

    #[test]
    fn what_is_written_is_read_back(
        rows in proptest::collection::vec(
            (any::<u64>(), 0..u64::MAX - (1 << 32), 1..=u32::MAX, (0..5usize, 0..5usize, any::<bool>()), any::<[u32; 2]>(), any::<Option<u64>>()),
            0..60)
    ) {
        let requests: Vec<Request> = rows
            .into_iter()
            .map(|(time, start, sectors, (operation, durability, synchronous), [process, volume], response)| Request {
                durability: DURABILITIES[durability],
                synchronous,
                process,
                volume,
                response: response.map(Ns),
                ..of_operation(operation, Ns(time), Lsn(start), sectors)
            })
            .collect();
        let bytes = write_all(&FORMAT, &requests).unwrap();
        prop_assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, requests);
    }

    /// Any request at all: one that is written is read back, and what is not written is not a request.
    #[test]
    fn the_writer_takes_what_the_reader_takes(
        (start, sectors) in (prop_oneof![Just(0), any::<u64>()], prop_oneof![Just(0), any::<u32>()]),
        (operation, reads) in (0..5usize, any::<bool>()),
    ) {
        let mut request = of_operation(operation, Ns(5), Lsn(start), sectors);
        (request.start, request.sectors) = (Lsn(start), sectors);
        if operation > 1 && reads {
            request.direction = Direction::Read;
        }
        let is_flush = request.operation.is_flush();
        let fits = if is_flush { (start, sectors) == (0, 0) } else { sectors > 0 && start.checked_add(u64::from(sectors)).is_some() };
        match write_all(&FORMAT, &[request]) {
            Ok(bytes) => prop_assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, [request]),
            Err(_) => prop_assert!(!fits || (operation > 1 && reads)),
        }
    }
}
