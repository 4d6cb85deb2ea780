//! Messages over a local socket, with descriptors of files beside them.

use crate::error::GuestError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Descriptors in one message, at most: the regions of a guest's memory.
pub const MOST_DESCRIPTORS: usize = 8;

/// One end of a conversation.
#[derive(Debug)]
pub struct Socket {
    stream: UnixStream,
    name: &'static str,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Socket {
    /// Takes over a connected stream, called so in errors.
    pub fn new(stream: UnixStream, name: &'static str) -> Socket {
        Socket { stream, name }
    }

    /// Fills a buffer; false where the other end has hung up before its first byte.
    ///
    /// # Errors
    /// The system's; the end in mid-message.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<bool, GuestError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => {
                    return Err(GuestError::protocol(
                        self.name,
                        format!("the end after {filled} bytes of {}", buffer.len()),
                        "whole messages",
                    ));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if hung_up(&error) && filled == 0 => return Ok(false),
                Err(error) => {
                    return Err(GuestError::system(format!("reading from the {} socket", self.name), error));
                }
            }
        }
        Ok(true)
    }

    /// The same for the first part of a message, which descriptors come with.
    ///
    /// # Errors
    /// As [`Socket::read`].
    pub fn read_with_descriptors(&mut self, buffer: &mut [u8]) -> Result<Option<Vec<OwnedFd>>, GuestError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let parts = &mut [IoSliceMut::new(buffer)];
            match recvmsg(&self.stream, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                other => {
                    break other.map_err(|error| {
                        GuestError::system(format!("reading from the {} socket", self.name), error)
                    })?;
                }
            }
        };
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                descriptors.extend(files);
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        let rest = &mut buffer[received.bytes..];
        if !rest.is_empty() && !self.read(rest)? {
            return Err(GuestError::protocol(self.name, "the end in a message", "whole messages"));
        }
        Ok(Some(descriptors))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), GuestError> {
        self.write_with_descriptors(bytes, &[])
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    /// The system's.
    pub fn write_with_descriptors(
        &mut self,
        bytes: &[u8],
        files: &[BorrowedFd<'_>],
    ) -> Result<(), GuestError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut sent = 0;
        while sent < bytes.len() {
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            // With the first byte, and once.
            if sent == 0 && !files.is_empty() {
                ancillary.push(SendAncillaryMessage::ScmRights(files));
            }
            match sendmsg(&self.stream, &[IoSlice::new(&bytes[sent..])], &mut ancillary, SendFlags::NOSIGNAL)
            {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(GuestError::system(format!("writing to the {} socket", self.name), error));
                }
            }
        }
        Ok(())
    }
}

fn hung_up(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe)
}

/// Waits until one of these can be read, or was hung up; says which. None may, where nothing came within `patience`.
///
/// # Errors
/// The system's.
pub fn wait_for_one(ends: &[BorrowedFd<'_>], patience: Duration) -> Result<Vec<bool>, GuestError> {
    let patience = Timespec::try_from(patience).ok();
    loop {
        let mut polled: Vec<PollFd<'_>> =
            ends.iter().map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)).collect();
        match poll(&mut polled, patience.as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(GuestError::system("waiting for a message of the kernel", error)),
            Ok(_) => return Ok(polled.iter().map(|end| !end.revents().is_empty()).collect()),
        }
    }
}
