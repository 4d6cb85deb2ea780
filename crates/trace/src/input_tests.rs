use super::*;
use std::io::Write;

fn lines(mut input: Input) -> Result<Vec<String>, TraceError> {
    let mut lines = Vec::new();
    while let Some(line) = input.next_line()? {
        lines.push(String::from_utf8_lossy(line).into_owned());
    }
    Ok(lines)
}

fn unpack(name: &str, bytes: Vec<u8>) -> Result<Input, TraceError> {
    Input::from_reader(name, Box::new(io::Cursor::new(bytes)))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 1).unwrap()
}

/// A source that hands out one byte at a time, with interruptions.
struct Dripping(std::vec::IntoIter<u8>, bool);

impl Read for Dripping {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.0.next() {
            Some(byte) if !bytes.is_empty() => {
                bytes[0] = byte;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}

#[test]
fn plain_gzip_and_zstd_bytes_give_the_same_lines() {
    let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
    let expected: Vec<&str> = text.lines().collect();
    for bytes in [text.clone().into_bytes(), gzip(text.as_bytes()), zstd(text.as_bytes())] {
        assert_eq!(lines(unpack("t", bytes).unwrap()).unwrap(), expected);
    }
}

#[test]
fn concatenated_compressed_parts_are_one_stream() {
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let bytes = [pack(b"a\nb"), pack(b"c\nd\n")].concat();
        assert_eq!(lines(unpack("t", bytes).unwrap()).unwrap(), ["a", "bc", "d"]);
    }
}

#[test]
fn a_compressed_file_that_is_cut_or_followed_by_garbage_is_an_error() {
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let whole = pack(&b"0123456789\n".repeat(50));
        for length in 7..whole.len() {
            let result = unpack("cut.x", whole[..length].to_vec()).and_then(lines);
            assert!(result.unwrap_err().to_string().starts_with("cut.x: "), "cut at {length}");
        }
        let garbage = [whole, b"garbage".to_vec()].concat();
        assert!(unpack("t", garbage).and_then(lines).is_err());
    }
}

#[test]
fn line_ends_of_both_kinds_a_byte_order_mark_and_a_missing_last_newline_are_accepted() {
    let read = |text: &[u8]| lines(unpack("t", text.to_vec()).unwrap()).unwrap();
    assert_eq!(read(b"a\r\nb\n\r\n\nc"), ["a", "b", "", "", "c"]);
    assert_eq!(read(b"\xef\xbb\xbfa\n\xef\xbb\xbf"), ["a", "\u{feff}"]);
    assert_eq!(read(b"a\r"), ["a"]);
    assert_eq!(read(b"\n"), [""]);
    assert!(read(b"").is_empty());
}

#[test]
fn positions_count_lines_and_bytes_of_the_uncompressed_stream() {
    let mut input = unpack("t", gzip(b"ab\r\ncdef\n12345678x")).unwrap();
    assert_eq!((input.line_number(), input.byte_position()), (0, 0));
    input.next_line().unwrap();
    assert_eq!((input.line_number(), input.byte_position()), (1, 4));
    assert_eq!(input.peek(3).unwrap(), b"cde");
    input.next_line().unwrap();
    assert_eq!((input.line_number(), input.byte_position()), (2, 9));
    let mut record = [0; 4];
    assert!(input.read_record(&mut record).unwrap());
    assert_eq!((&record, input.byte_position()), (b"1234", 13));
    assert!(input.read_record(&mut record).unwrap());
    let error = input.read_record(&mut record).unwrap_err().to_string();
    assert_eq!(error, "t: byte 17: a record cut short after 1 bytes; allowed: whole records of 4 bytes");
    assert!(!input.read_record(&mut record).unwrap());
}

#[test]
fn lines_across_buffers_are_whole_and_one_past_the_limit_is_an_error_not_a_hang() {
    let long = vec![b'x'; LINE_BYTES_MAX];
    let bytes = [b"short\n".as_slice(), &long, b"\nend"].concat();
    let read = lines(unpack("t", bytes).unwrap()).unwrap();
    assert_eq!(read.iter().map(String::len).collect::<Vec<_>>(), [5, LINE_BYTES_MAX, 3]);
    let endless = Input::from_reader("endless", Box::new(io::repeat(b'x'))).unwrap();
    let error = lines(endless).unwrap_err().to_string();
    assert!(error.starts_with("endless:1: a line longer than 1 MiB"), "{error}");
}

#[test]
fn a_source_that_drips_and_is_interrupted_gives_all_its_bytes() {
    let bytes = b"one\ntwo\r\nthree".to_vec();
    let input = Input::from_reader("t", Box::new(Dripping(bytes.into_iter(), false))).unwrap();
    assert_eq!(lines(input).unwrap(), ["one", "two", "three"]);
}

#[test]
fn peeking_shows_no_more_than_there_is_and_reading_goes_on_from_the_start() {
    let bytes: Vec<u8> = (0..400_000u32).map(|n| n as u8).collect();
    let mut input = unpack("t", bytes.clone()).unwrap();
    assert_eq!(input.peek(usize::MAX).unwrap(), &bytes[..PEEK_BYTES_MAX]);
    let mut all = Vec::new();
    input.read_to_end(&mut all).unwrap();
    assert!(all == bytes);
    assert_eq!(input.peek(1).unwrap(), b"");
}

#[test]
fn compression_that_is_not_read_here_is_named() {
    for (bytes, what) in [(b"\xfd7zXZ\0..".as_slice(), "an xz file"), (b"PK\x03\x04....", "a zip archive")] {
        let error = unpack("a", bytes.to_vec()).err().unwrap().to_string();
        assert!(error.contains(what) && error.contains("zstd"), "{error}");
    }
}

#[test]
fn a_folder_has_no_bytes_and_a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = Input::open(folder.path()).unwrap();
    assert!(input.is_folder() && !input.is_plain_file());
    assert!(input.next_line().unwrap().is_none());
    let missing = folder.path().join("missing.csv");
    let error = Input::open(&missing).err().unwrap().to_string();
    assert!(error.contains("missing.csv"), "{error}");
    std::fs::write(&missing, "a\n").unwrap();
    assert!(Input::open(&missing).unwrap().is_plain_file());
}
