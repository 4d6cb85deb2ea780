//! Just enough of the tar format to find the members of an archive: ustar, GNU long names and pax paths.

use crate::error::{Position, TraceError};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK_BYTES: u64 = 512;
/// Longest name an extension record may hold; real ones stay under the 4 KiB of a path.
const NAME_BYTES_MAX: u64 = 64 * 1024;

/// A regular file in an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Path inside the archive.
    pub name: String,
    /// First byte of its content.
    pub start: u64,
    /// Length of its content.
    pub bytes: u64,
}

/// A header block, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Path.
    pub name: String,
    /// Length of the content.
    pub bytes: u64,
    /// Type letter: `0` or NUL is a regular file.
    pub kind: u8,
}

impl Header {
    /// Whether the member is a regular file.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, b'0' | 0)
    }

    /// Reads a header block; `None` when it is none (wrong checksum or magic).
    pub fn parse(block: &[u8]) -> Option<Header> {
        let block: &[u8; BLOCK_BYTES as usize] = block.first_chunk()?;
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(i, b)| if (148..156).contains(&i) { 32 } else { u64::from(*b) })
            .sum();
        if &block[257..262] != b"ustar" || octal(&block[148..156])? != sum {
            return None;
        }
        let mut name = text(&block[..100]);
        // Only POSIX headers have a prefix; GNU's use the field for times.
        if &block[257..263] == b"ustar\0" && block[345] != 0 {
            name = format!("{}/{name}", text(&block[345..500]));
        }
        Some(Header { name, bytes: size(&block[124..136])?, kind: block[156] })
    }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.trim_ascii().split(|byte| matches!(byte, 0 | b' ')).next()?;
    if digits.is_empty() || !digits.iter().all(|digit| matches!(digit, b'0'..=b'7')) {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| value.checked_mul(8)?.checked_add(u64::from(digit - b'0')))
}

/// A size: octal, or big-endian binary when the first bit is set (GNU, for 8 GiB and more).
fn size(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 == 0 {
        return octal(field);
    }
    (field[0] == 0x80 && field[1..4].iter().all(|byte| *byte == 0))
        .then(|| field[4..].iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)))
}

/// All regular files of an archive.
///
/// # Errors
/// A header that is none, a member that runs past the end of the file, or a failure to read.
pub(super) fn members(file: &File, path: &Path) -> Result<Vec<Member>, TraceError> {
    let length = file.metadata().map_err(|source| TraceError::io(path, source))?.len();
    let wrong =
        |at, found: &str, allowed: &str| TraceError::malformed(path, Position::Byte(at), found, allowed);
    let mut members = Vec::new();
    let mut long_name = None;
    let mut at = 0;
    let mut block = [0u8; BLOCK_BYTES as usize];
    while at + BLOCK_BYTES <= length {
        file.read_exact_at(&mut block, at).map_err(|source| TraceError::io(path, source))?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(members);
        }
        let header = Header::parse(&block).ok_or_else(|| wrong(at, "no tar header", "a ustar header"))?;
        let start = at + BLOCK_BYTES;
        let end = start.checked_add(header.bytes).filter(|end| *end <= length);
        let end = end.ok_or_else(|| wrong(at, "a member that ends after the archive", "a whole archive"))?;
        match header.kind {
            b'L' | b'x' if header.bytes <= NAME_BYTES_MAX => {
                let mut content = vec![0; header.bytes as usize];
                file.read_exact_at(&mut content, start).map_err(|source| TraceError::io(path, source))?;
                long_name = if header.kind == b'L' { Some(text(&content)) } else { pax_path(&content) };
            }
            b'L' | b'x' => return Err(wrong(at, "an extension header of more than 64 KiB", "a path")),
            _ => {
                let name = long_name.take().unwrap_or(header.name.clone());
                if header.is_file() {
                    members.push(Member { name, start, bytes: header.bytes });
                }
            }
        }
        at = end.next_multiple_of(BLOCK_BYTES);
    }
    if at < length {
        return Err(wrong(at, "a header cut short", "a whole archive"));
    }
    Ok(members)
}

/// The `path` of a pax extension: lines of `length key=value`.
fn pax_path(content: &[u8]) -> Option<String> {
    content
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.splitn(2, |byte| *byte == b' ').nth(1))
        .find_map(|pair| pair.strip_prefix(b"path="))
        .map(|path| String::from_utf8_lossy(path).into_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Write;

    /// An archive of regular files.
    pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in files {
            let mut block = [0u8; 512];
            block[..name.len()].copy_from_slice(name.as_bytes());
            block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            block[156] = b'0';
            block[257..263].copy_from_slice(b"ustar\0");
            block[148..156].fill(b' ');
            let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
            block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            archive.extend_from_slice(&block);
            archive.extend_from_slice(content);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.resize(archive.len() + 1024, 0);
        archive
    }

    fn members_of(bytes: &[u8]) -> Result<Vec<Member>, TraceError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        members(&file, Path::new("a.tar"))
    }

    #[test]
    fn members_are_found_with_their_places() {
        let found = members_of(&archive(&[("d/a", b"xyz"), ("d/b", &[7; 600])])).unwrap();
        let seen: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.start, m.bytes)).collect();
        assert_eq!(seen, [("d/a", 512, 3), ("d/b", 1536, 600)]);
    }

    #[test]
    fn an_archive_cut_anywhere_is_an_error_or_a_shorter_list_and_never_a_panic() {
        let bytes = archive(&[("a", b"xyz"), ("b", &[7; 600])]);
        for length in 0..bytes.len() {
            let _ = members_of(&bytes[..length]);
        }
        assert!(members_of(&bytes[..1500]).is_err());
    }
}
