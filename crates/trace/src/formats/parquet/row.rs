//! What a row says: a request, its operation and its promise in words. Reader and writer allow the same rows.

use super::super::tokens::quote;
use planewise_model::{Direction, Durability, Lsn, Ns, Operation, Request};

/// What was found, and what is allowed.
pub(super) type Refusal = (String, &'static str);

/// The words of column `direction`, in the order of [`direction_index`].
pub(super) const DIRECTIONS: [&str; 5] = ["read", "write", "flush", "sync", "discard"];
const DIRECTIONS_ALLOWED: &str = "read, write, flush, sync or discard";

/// The words of column `durability`, each with what it promises. [`Durability::Volatile`] is null.
pub(super) const DURABILITIES: [(&str, Durability); 4] = [
    ("force-unit-access", Durability::ForceUnitAccess),
    ("flush-first", Durability::FlushFirst),
    ("flush-first-force-unit-access", Durability::FlushFirstForceUnitAccess),
    ("force-unit-access-with-metadata", Durability::ForceUnitAccessWithMetadata),
];
const DURABILITIES_ALLOWED: &str = "null (volatile), force-unit-access, flush-first, flush-first-force-unit-access or force-unit-access-with-metadata";

/// Which of [`DIRECTIONS`] a request is.
pub(super) fn direction_index(request: &Request) -> usize {
    match request.operation {
        Operation::Transfer => request.direction.index(),
        Operation::Flush => 2,
        Operation::FlushWithMetadata => 3,
        Operation::Discard => 4,
    }
}

/// Which of [`DURABILITIES`] a request promises; none where it promises nothing.
pub(super) fn durability_index(request: &Request) -> Option<usize> {
    match request.durability {
        Durability::Volatile => None,
        Durability::ForceUnitAccess => Some(0),
        Durability::FlushFirst => Some(1),
        Durability::FlushFirstForceUnitAccess => Some(2),
        Durability::ForceUnitAccessWithMetadata => Some(3),
    }
}

/// A request out of the columns that every file has. Reads and flushes are synchronous, writes and discards are not.
///
/// # Errors
/// An unknown word, or sectors that such a request cannot have.
pub(super) fn request(arrival: u64, start: u64, sectors: u32, direction: &[u8]) -> Result<Request, Refusal> {
    let (arrival, first) = (Ns(arrival), Lsn(start));
    let request = match direction {
        b"read" => Request::new(arrival, first, sectors, Direction::Read),
        b"write" => Request::new(arrival, first, sectors, Direction::Write),
        b"flush" => Request::flush(arrival),
        b"sync" => Request { operation: Operation::FlushWithMetadata, ..Request::flush(arrival) },
        b"discard" => Request::discard(arrival, first, sectors),
        other => {
            return Err((format!("direction '{}'", quote(other)), DIRECTIONS_ALLOWED));
        }
    };
    if request.operation.is_flush() {
        if (start, sectors) != (0, 0) {
            let word = DIRECTIONS[direction_index(&request)];
            return Err((
                format!("a {word} of {sectors} sectors at {start}"),
                "a flush or sync of 0 sectors at 0",
            ));
        }
    } else if sectors == 0 || start.checked_add(u64::from(sectors)).is_none() {
        return Err((format!("{sectors} sectors at {start}"), "at least 1 sector, ending below 2^64"));
    }
    Ok(request)
}

/// The promise of a word.
///
/// # Errors
/// An unknown word.
pub(super) fn durability(word: &[u8]) -> Result<Durability, Refusal> {
    let known = DURABILITIES.iter().find(|(name, _)| name.as_bytes() == word);
    known
        .map(|(_, durability)| *durability)
        .ok_or_else(|| (format!("durability '{}'", quote(word)), DURABILITIES_ALLOWED))
}

/// Whether a row can say a request.
///
/// # Errors
/// The reader would refuse the row, or take it for another request.
pub(super) fn check(given: &Request) -> Result<(), Refusal> {
    let word = DIRECTIONS[direction_index(given)];
    let read = request(given.arrival.0, given.start.0, given.sectors, word.as_bytes())?;
    if read.direction != given.direction {
        return Err((format!("a {word} that reads"), "flushes and discards that count as writes"));
    }
    Ok(())
}
