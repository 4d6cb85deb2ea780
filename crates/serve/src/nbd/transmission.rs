//! Requests of a client, one after the other; answers come when the drive has them, in any order.

use super::PAYLOAD_MAX;
use super::negotiation::Agreed;
use super::replies::Replies;
use crate::order::{Order, Orders};
use crate::store::Store;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;

/// Flags of requests.
const FORCED: u16 = 1;
const NO_HOLE: u16 = 2;
const IN_ONE_PIECE: u16 = 4;

/// Errors as clients know them.
const IO_ERROR: u32 = 5;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;

/// Structured replies: the last piece; nothing, data, an error.
const LAST_PIECE: u16 = 1;
const PIECE_DATA: u16 = 1;
const PIECE_ERROR: u16 = 1 << 15 | 1;

/// Zeros written at a time.
const ZEROS: usize = 1 << 16;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    flags: u16,
    command: u16,
    cookie: u64,
    at: u64,
    bytes: u32,
}

impl Header {
    /// Nothing at the end, between two requests.
    fn read(stream: &mut impl Read) -> io::Result<Option<Header>> {
        let mut bytes = [0; 28];
        loop {
            match stream.read(&mut bytes[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        stream.read_exact(&mut bytes[1..])?;
        let part = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(part(at)) << 16 | u32::from(part(at + 2));
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if word(0) != REQUEST_MAGIC {
            let what =
                format!("found a request that begins with {:#010x}; allowed: {REQUEST_MAGIC:#010x}", word(0));
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(Some(Header { flags: part(4), command: part(6), cookie: long(8), at: long(16), bytes: word(24) }))
    }

    fn allowed_flags(&self) -> u16 {
        match self.command {
            READ => FORCED | IN_ONE_PIECE,
            WRITE | TRIM => FORCED,
            WRITE_ZEROES => FORCED | NO_HOLE,
            _ => 0,
        }
    }
}

/// Serves a client until it says that it leaves, or hangs up.
///
/// # Errors
/// The connection's; a client that does not speak the protocol, or sends more than was agreed on.
pub fn transmit(
    stream: &mut impl Read,
    agreed: Agreed,
    store: &Store,
    orders: &dyn Orders,
    replies: &Arc<Replies>,
) -> io::Result<()> {
    while let Some(header) = Header::read(stream)? {
        let is_data_to_come = header.command == WRITE;
        if is_data_to_come && header.bytes > PAYLOAD_MAX {
            let what = format!("found a write of {} bytes; allowed: {PAYLOAD_MAX}", header.bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if header.command == DISCONNECT {
            break;
        }
        let held =
            if matches!(header.command, READ | WRITE) { header.bytes.min(PAYLOAD_MAX) as usize } else { 0 };
        if !replies.admit(held) {
            break;
        }
        let mut data = vec![0; if is_data_to_come { held } else { 0 }];
        if let Err(error) = stream.read_exact(&mut data) {
            // Nobody waits for that answer.
            replies.send(Vec::new(), held);
            return Err(error);
        }
        let arrival = Instant::now();
        let answer = Answer { header, is_structured: agreed.is_structured && header.command == READ };
        match carry_out(&answer, &data, store) {
            Err(error) => replies.send(answer.error(error), held),
            Ok((order, message)) => {
                let replies = Arc::clone(replies);
                let done = move |is_done: bool| {
                    replies.send(if is_done { message } else { answer.error(IO_ERROR) }, held);
                };
                orders.submit(arrival, order, Box::new(done));
            }
        }
    }
    Ok(())
}

/// Moves the data of a request at once: those of a write to the file, those of a read to its answer. What the drive is asked for and the whole answer, made
/// here and not by the drive's thread; or the error to answer with.
fn carry_out(answer: &Answer, data: &[u8], store: &Store) -> Result<(Order, Vec<u8>), u32> {
    let (header, contents) = (&answer.header, store.contents());
    let (at, bytes) = (header.at, u64::from(header.bytes));
    let is_forced = header.flags & FORCED != 0;
    let end = contents.sectors() * planewise_model::SECTOR_BYTES;
    let is_inside = bytes > 0 && at.checked_add(bytes).is_some_and(|last| last <= end);
    if header.flags & !header.allowed_flags() != 0 {
        return Err(INVALID);
    }
    let order = match header.command {
        READ if is_inside && header.bytes <= PAYLOAD_MAX => {
            let (mut message, begin) = answer.room_for_data();
            contents.read_bytes(at, &mut message[begin..]).map_err(number)?;
            return Ok((Order::Read { at, bytes }, message));
        }
        FLUSH if at == 0 && bytes == 0 => Order::Flush,
        // The document wants that of writes past the end.
        WRITE | WRITE_ZEROES if bytes > 0 && !is_inside => return Err(NO_SPACE),
        WRITE if is_inside => {
            contents.write_bytes(at, data).map_err(number)?;
            Order::Write { at, bytes, is_forced }
        }
        TRIM | WRITE_ZEROES if is_inside => {
            if header.flags & NO_HOLE != 0 {
                write_zeros(store, at, bytes).map_err(number)?;
            } else {
                contents.forget_bytes(at, bytes).map_err(number)?;
            }
            Order::Discard { at, bytes, is_forced }
        }
        _ => return Err(INVALID),
    };
    Ok((order, answer.simple(0)))
}

/// Zeros that take room on the host's disk.
fn write_zeros(store: &Store, at: u64, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS];
    let mut done = 0;
    while done < bytes {
        let count = (bytes - done).min(ZEROS as u64);
        store.contents().write_bytes(at + done, &zeros[..count as usize])?;
        done += count;
    }
    Ok(())
}

fn number(error: io::Error) -> u32 {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    if is_full { NO_SPACE } else { IO_ERROR }
}

/// How a request is answered.
#[derive(Clone, Copy)]
struct Answer {
    header: Header,
    is_structured: bool,
}

impl Answer {
    /// An answer with room for as many bytes as were asked for, and where that begins.
    fn room_for_data(&self) -> (Vec<u8>, usize) {
        let bytes = self.header.bytes as usize;
        let mut message = if self.is_structured {
            self.piece(PIECE_DATA, 8 + bytes, &self.header.at.to_be_bytes())
        } else {
            self.simple(0)
        };
        let begin = message.len();
        message.resize(begin + bytes, 0);
        (message, begin)
    }

    fn error(&self, error: u32) -> Vec<u8> {
        if !self.is_structured {
            return self.simple(error);
        }
        let mut what = error.to_be_bytes().to_vec();
        // The length of a text for people.
        what.extend(0u16.to_be_bytes());
        self.piece(PIECE_ERROR, what.len(), &what)
    }

    fn simple(&self, error: u32) -> Vec<u8> {
        let mut message = Vec::with_capacity(16);
        message.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
        message.extend(error.to_be_bytes());
        message.extend(self.header.cookie.to_be_bytes());
        message
    }

    /// The only piece of a structured reply, of so many bytes, which begin so.
    fn piece(&self, kind: u16, bytes: usize, begin: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(20 + bytes);
        message.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
        message.extend(LAST_PIECE.to_be_bytes());
        message.extend(kind.to_be_bytes());
        message.extend(self.header.cookie.to_be_bytes());
        message.extend((bytes as u32).to_be_bytes());
        message.extend(begin);
        message
    }
}
