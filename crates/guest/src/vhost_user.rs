//! The messages by which a kernel sets up its disk (vhost-user).
//!
//! A message is a header of 12 bytes, request, flags and size, and so many bytes; regions of memory come with descriptors. What is said here is what a
//! disk with its kicks in band needs: a kick is a message that is answered, so that a kernel whose time stands still knows that it was heard.

use crate::error::GuestError;
use crate::socket::Socket;
use std::os::fd::OwnedFd;

/// Bytes of a header.
const HEADER_BYTES: usize = 12;
/// Bytes of what follows one, at most: eight regions of memory, or the configuration of a disk, need far less.
const MOST_BYTES: usize = 4096;
/// Regions of memory, at most.
const MOST_REGIONS: u32 = 8;
/// Version of the protocol, in the flags.
const VERSION: u32 = 1;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;
/// The request by which a device tells that a queue has something: of the channel that goes the other way.
const QUEUE_HAS_SOMETHING: u32 = 4;

/// Features of the protocol: configuration, a channel of the device's own, answers, and notifications in band.
pub const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// A region of the guest's memory.
#[derive(Debug)]
pub struct Region {
    /// Where the guest has it.
    pub guest: u64,
    /// Bytes.
    pub size: u64,
    /// Where the kernel's process has it: addresses of rings are its.
    pub process: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// The file that it is in.
    pub file: OwnedFd,
}

/// What a kernel asks for.
#[derive(Debug)]
pub enum Request {
    /// Which features the disk has.
    GetFeatures,
    /// These are used.
    SetFeatures(u64),
    /// It owns the disk now.
    SetOwner,
    /// Here is its memory.
    SetMemory(Vec<Region>),
    /// So many entries has a queue.
    SetSize {
        /// The queue.
        queue: u32,
        /// Entries.
        size: u32,
    },
    /// There are a queue's parts, in addresses of the process.
    SetAddresses {
        /// The queue.
        queue: u32,
        /// Descriptors.
        descriptors: u64,
        /// What the disk has done.
        used: u64,
        /// What it is to do.
        available: u64,
    },
    /// A queue begins there.
    SetBase {
        /// The queue.
        queue: u32,
        /// The next entry.
        base: u32,
    },
    /// Which features of the protocol there are.
    GetProtocolFeatures,
    /// These are used.
    SetProtocolFeatures(u64),
    /// A queue is in use, or not.
    Enable {
        /// The queue.
        queue: u32,
        /// In use.
        is_on: bool,
    },
    /// The channel for what the disk has to say.
    SetChannel(OwnedFd),
    /// Part of the configuration.
    GetConfiguration {
        /// Where it begins.
        offset: u32,
        /// Bytes.
        size: u32,
        /// What came, to be answered in place.
        payload: Vec<u8>,
    },
    /// A queue has something for the disk.
    Kick(u32),
}

/// A request with what its answer needs.
#[derive(Debug)]
pub struct Message {
    /// What is asked for.
    pub request: Request,
    number: u32,
    wants_answer: bool,
}

/// The conversation about the disk.
#[derive(Debug)]
pub struct DiskLink {
    socket: Socket,
}

fn wrong(found: String, allowed: &str) -> GuestError {
    GuestError::protocol("vhost-user", found, allowed)
}

/// Numbers in a payload, which may be too short for them.
struct Payload<'a> {
    bytes: &'a [u8],
    request: u32,
}

impl Payload<'_> {
    fn u32(&self, at: usize) -> Result<u32, GuestError> {
        let bytes = self.bytes.get(at..at + 4).ok_or_else(|| self.short(at + 4))?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn u64(&self, at: usize) -> Result<u64, GuestError> {
        let bytes = self.bytes.get(at..at + 8).ok_or_else(|| self.short(at + 8))?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn short(&self, needed: usize) -> GuestError {
        wrong(
            format!("request {} with {} bytes", self.request, self.bytes.len()),
            &format!("{needed} and more"),
        )
    }
}

impl DiskLink {
    /// On a connected socket.
    pub fn new(socket: Socket) -> DiskLink {
        DiskLink { socket }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next request; none where the kernel has ended.
    ///
    /// # Errors
    /// As [`Socket::read`]; what is no request of a disk, or lacks what it needs.
    pub fn receive(&mut self) -> Result<Option<Message>, GuestError> {
        let mut header = [0; HEADER_BYTES];
        let Some(files) = self.socket.read_with_descriptors(&mut header)? else { return Ok(None) };
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (number, flags, size) = (word(0), word(4), word(8) as usize);
        if size > MOST_BYTES {
            return Err(wrong(format!("request {number} with {size} bytes"), &format!("0 to {MOST_BYTES}")));
        }
        let mut payload = vec![0; size];
        if size > 0 && !self.socket.read(&mut payload)? {
            return Err(wrong(format!("the end after the header of request {number}"), "whole messages"));
        }
        let request = parse(number, payload, files)?;
        Ok(Some(Message { request, number, wants_answer: flags & WANTS_ANSWER != 0 }))
    }

    /// Answers a request: with these bytes where it asks for something, else with whether it went well, where that is wanted.
    ///
    /// # Errors
    /// As [`Socket::write`].
    pub fn answer(&mut self, message: &Message, bytes: Option<&[u8]>) -> Result<(), GuestError> {
        let done = 0u64.to_le_bytes();
        let Some(bytes) = bytes.or(message.wants_answer.then_some(&done[..])) else { return Ok(()) };
        let mut answer = Vec::with_capacity(HEADER_BYTES + bytes.len());
        for word in [message.number, VERSION | IS_ANSWER, bytes.len() as u32] {
            answer.extend(word.to_le_bytes());
        }
        answer.extend(bytes);
        self.socket.write(&answer)
    }
}

fn parse(number: u32, payload: Vec<u8>, mut files: Vec<OwnedFd>) -> Result<Request, GuestError> {
    let of = Payload { bytes: &payload, request: number };
    Ok(match number {
        1 => Request::GetFeatures,
        2 => Request::SetFeatures(of.u64(0)?),
        3 => Request::SetOwner,
        5 => {
            let count = of.u32(0)?;
            if count > MOST_REGIONS || count as usize != files.len() {
                return Err(wrong(
                    format!("{count} regions of memory with {} descriptors", files.len()),
                    &format!("1 to {MOST_REGIONS}, one each"),
                ));
            }
            let regions = files.into_iter().enumerate().map(|(index, file)| {
                let at = 8 + 32 * index;
                let [guest, size, process, offset] =
                    [of.u64(at)?, of.u64(at + 8)?, of.u64(at + 16)?, of.u64(at + 24)?];
                Ok(Region { guest, size, process, offset, file })
            });
            Request::SetMemory(regions.collect::<Result<_, GuestError>>()?)
        }
        8 => Request::SetSize { queue: of.u32(0)?, size: of.u32(4)? },
        9 => Request::SetAddresses {
            queue: of.u32(0)?,
            descriptors: of.u64(8)?,
            used: of.u64(16)?,
            available: of.u64(24)?,
        },
        10 => Request::SetBase { queue: of.u32(0)?, base: of.u32(4)? },
        15 => Request::GetProtocolFeatures,
        16 => Request::SetProtocolFeatures(of.u64(0)?),
        18 => Request::Enable { queue: of.u32(0)?, is_on: of.u32(4)? != 0 },
        21 => match files.pop() {
            Some(file) => Request::SetChannel(file),
            None => return Err(wrong("a channel without a descriptor".into(), "one descriptor")),
        },
        24 => {
            let (offset, size) = (of.u32(0)?, of.u32(4)?);
            if payload.len() < 12 + size as usize {
                return Err(wrong(
                    format!("{size} bytes of configuration in a message of {}", payload.len()),
                    "as many as the message has room for",
                ));
            }
            Request::GetConfiguration { offset, size, payload }
        }
        35 => Request::Kick(of.u32(0)?),
        other => {
            return Err(wrong(
                format!("request {other}"),
                "1, 2, 3, 5, 8, 9, 10, 15, 16, 18, 21, 24 and 35: a disk whose kicks are in band",
            ));
        }
    })
}

/// The channel for what the disk has to say.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
}

impl Channel {
    /// On a connected socket.
    pub fn new(socket: Socket) -> Channel {
        Channel { socket }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Tells that a queue has something; the answer comes later.
    ///
    /// # Errors
    /// As [`Socket::write`].
    pub fn call(&mut self, queue: u32) -> Result<(), GuestError> {
        let mut message = Vec::with_capacity(20);
        for word in [QUEUE_HAS_SOMETHING, VERSION | WANTS_ANSWER, 8, queue, 0] {
            message.extend(word.to_le_bytes());
        }
        self.socket.write(&message)
    }

    /// Reads that answer; false where the kernel has ended.
    ///
    /// # Errors
    /// As [`Socket::read`].
    pub fn receive_answer(&mut self) -> Result<bool, GuestError> {
        self.socket.read(&mut [0; HEADER_BYTES + 8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_short_unknown_or_lacks_its_descriptors_is_refused() {
        for (number, bytes, words) in [
            (2u32, 4usize, "8 and more"),
            (5, 8, "one each"),
            (9, 24, "32 and more"),
            (21, 0, "one descriptor"),
            (24, 12, "as many as the message has room for"),
            (99, 0, "request 99"),
        ] {
            let mut payload = vec![0; bytes];
            if number == 5 {
                payload[0] = 2;
            }
            if number == 24 {
                payload[4] = 60;
            }
            let error = parse(number, payload, Vec::new()).unwrap_err().to_string();
            assert!(error.contains(words), "{number}: {error}");
        }
    }
}
