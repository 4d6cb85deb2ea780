//! The messages by which a kernel asks for time (Linux's `um_timetravel.h`).
//!
//! Each is 16 bytes: what is said, a number that its acknowledgement repeats, and a time. A kernel says when it wants to run next (`Request`) and that it
//! has nothing to do (`Wait`); it runs when it is told to (`Run`), until it waits again. Before it kicks a device it says what time it is (`Update`).

use crate::error::GuestError;
use crate::socket::Socket;
use planewise_model::Ns;
use std::os::fd::BorrowedFd;

/// A time that never comes.
pub const NEVER: u64 = i64::MAX as u64;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// The answer to any other.
    Acknowledge = 0,
    /// The kernel begins; descriptors for the shared schedule come with the answer.
    Start = 1,
    /// It wants to run at this time.
    Request = 2,
    /// It has nothing to do until it is told to run.
    Wait = 3,
    /// It asks what time it is.
    Get = 4,
    /// It says what time it is.
    Update = 5,
    /// It may run, from this time on.
    Run = 6,
    /// It may go on until this time without asking.
    FreeUntil = 7,
    /// It asks what time of the day it is at the start.
    TimeOfDay = 8,
    /// A message to all that share the time.
    Broadcast = 9,
}

impl Operation {
    const ALL: [Operation; 10] = [
        Operation::Acknowledge,
        Operation::Start,
        Operation::Request,
        Operation::Wait,
        Operation::Get,
        Operation::Update,
        Operation::Run,
        Operation::FreeUntil,
        Operation::TimeOfDay,
        Operation::Broadcast,
    ];
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub operation: Operation,
    /// Its number, or that of what it acknowledges.
    pub sequence: u32,
    /// A time, ns; what it means depends on the operation.
    pub time: u64,
}

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 16;

impl Message {
    /// As it is sent.
    pub fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&(self.operation as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    /// From what came.
    ///
    /// # Errors
    /// An operation that there is none of.
    pub fn from_bytes(bytes: [u8; MESSAGE_BYTES]) -> Result<Message, GuestError> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let number = word(0);
        let Some(&operation) = Operation::ALL.get(number as usize) else {
            return Err(GuestError::protocol("time travel", format!("operation {number}"), "0 to 9"));
        };
        let time = u64::from(word(8)) | u64::from(word(12)) << 32;
        let time = if cfg!(target_endian = "big") { time.rotate_left(32) } else { time };
        Ok(Message { operation, sequence: word(4), time })
    }
}

/// The conversation about time.
#[derive(Debug)]
pub struct TimeLink {
    socket: Socket,
    sequence: u32,
    /// Messages in both directions.
    pub messages: u64,
}

impl TimeLink {
    /// On a connected socket.
    pub fn new(socket: Socket) -> TimeLink {
        TimeLink { socket, sequence: 0, messages: 0 }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next message; none where the kernel has ended.
    ///
    /// # Errors
    /// As [`Socket::read`] and [`Message::from_bytes`].
    pub fn receive(&mut self) -> Result<Option<Message>, GuestError> {
        let mut bytes = [0; MESSAGE_BYTES];
        if !self.socket.read(&mut bytes)? {
            return Ok(None);
        }
        self.messages += 1;
        Message::from_bytes(bytes).map(Some)
    }

    /// Acknowledges a message.
    ///
    /// # Errors
    /// As [`Socket::write`].
    pub fn acknowledge(
        &mut self,
        message: Message,
        time: u64,
        files: &[BorrowedFd<'_>],
    ) -> Result<(), GuestError> {
        self.messages += 1;
        let answer = Message { operation: Operation::Acknowledge, time, ..message };
        self.socket.write_with_descriptors(&answer.to_bytes(), files)
    }

    /// Says something; returns the number that its acknowledgement will have.
    ///
    /// # Errors
    /// As [`Socket::write`].
    pub fn say(&mut self, operation: Operation, time: Ns) -> Result<u32, GuestError> {
        self.messages += 1;
        self.sequence += 1;
        self.socket.write(&Message { operation, sequence: self.sequence, time: time.0 }.to_bytes())?;
        Ok(self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_they_were_and_none_is_made_up() {
        for operation in Operation::ALL {
            let message = Message { operation, sequence: 7, time: 0x0123_4567_89ab_cdef };
            assert_eq!(Message::from_bytes(message.to_bytes()).unwrap(), message);
        }
        let mut wrong = [0; MESSAGE_BYTES];
        wrong[0] = 10;
        assert!(Message::from_bytes(wrong).unwrap_err().to_string().contains("operation 10"));
    }
}
