//! Round trips, foreign files, corrupt files.

use super::*;
use crate::formats::testing::*;
use proptest::prelude::*;

fn sample(count: u64) -> Vec<Request> {
    (0..count)
        .map(|n| {
            let mut request = Request::new(
                Ns(n * 1_003),
                Lsn(n.wrapping_mul(2_654_435_761) % (1 << 40)),
                1 + n as u32 % 2048,
                Direction::ALL[(n % 3 == 0) as usize],
            );
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

/// A one-row file of nullable signed columns, as other tools write them.
fn row_of_others(arrival: Option<i64>, sectors: i32, direction: &str) -> Vec<u8> {
    let schema = "message m { OPTIONAL INT64 arrival_ns; REQUIRED INT64 lsn; REQUIRED INT32 sectors;
        REQUIRED BYTE_ARRAY direction; REQUIRED INT32 process; REQUIRED INT32 volume; REQUIRED BOOLEAN extra; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let level = i16::from(arrival.is_some());
    column.typed::<Int64Type>().write_batch(&Vec::from_iter(arrival), Some(&[level]), None).unwrap();
    column.close().unwrap();
    let mut put = |values: [i32; 1], wide: bool| {
        let mut column = group.next_column().unwrap().unwrap();
        if wide {
            column.typed::<Int64Type>().write_batch(&values.map(i64::from), None, None).unwrap();
        } else {
            column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
        }
        column.close().unwrap();
    };
    put([64], true);
    put([sectors], false);
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(direction)], None, None).unwrap();
    column.close().unwrap();
    let mut put = |values: [i32; 1]| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    };
    put([5]);
    put([6]);
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<parquet::data_type::BoolType>().write_batch(&[true], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
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
        (row_of_others(Some(9), 8, "W"), "row 1: direction 'W'; allowed: read or write"),
    ] {
        let error = read_bytes(&FORMAT, &bytes).unwrap_err().to_string();
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
            (any::<u64>(), 0..u64::MAX - (1 << 32), 1..=u32::MAX, any::<bool>(), any::<[u32; 2]>(), any::<Option<u64>>()),
            0..60)
    ) {
        let requests: Vec<Request> = rows
            .into_iter()
            .map(|(time, start, sectors, write, [process, volume], response)| Request {
                process,
                volume,
                response: response.map(Ns),
                ..Request::new(Ns(time), Lsn(start), sectors, Direction::ALL[usize::from(write)])
            })
            .collect();
        let bytes = write_all(&FORMAT, &requests).unwrap();
        prop_assert_eq!(read_bytes(&FORMAT, &bytes).unwrap().requests, requests);
    }
}
