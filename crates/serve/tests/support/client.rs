//! A client of Network Block Device, as small as a test needs it.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const FORCED: u16 = 1;

/// The beginning of all that clients say: flags, and options behind them.
pub fn hello() -> Vec<u8> {
    3u32.to_be_bytes().to_vec()
}

pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of `GO` and `INFO`.
pub fn wanted(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((kinds.len() as u16).to_be_bytes());
    kinds.iter().for_each(|kind| data.extend(kind.to_be_bytes()));
    data
}

pub fn request(flags: u16, command: u16, cookie: u64, at: u64, bytes: u32) -> Vec<u8> {
    let mut message = 0x2560_9513u32.to_be_bytes().to_vec();
    message.extend(flags.to_be_bytes());
    message.extend(command.to_be_bytes());
    message.extend(cookie.to_be_bytes());
    message.extend(at.to_be_bytes());
    message.extend(bytes.to_be_bytes());
    message
}

pub fn take<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// An option's reply: its kind and data.
pub fn option_reply(stream: &mut impl Read, option: u32) -> io::Result<(u32, Vec<u8>)> {
    assert_eq!(u64::from_be_bytes(take(stream)?), 0x0003_e889_0455_65a9);
    assert_eq!(u32::from_be_bytes(take(stream)?), option);
    let kind = u32::from_be_bytes(take(stream)?);
    let mut data = vec![0; u32::from_be_bytes(take(stream)?) as usize];
    stream.read_exact(&mut data)?;
    Ok((kind, data))
}

/// A connected client in the transmission phase.
pub struct Client {
    pub stream: UnixStream,
    pub bytes: u64,
    pub flags: u16,
    is_structured: bool,
    cookie: u64,
}

/// What a request came to: an error, 0 for none, and data.
pub type Reply = (u64, u32, Vec<u8>);

impl Client {
    pub fn greet(path: &Path) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(path)?;
        assert_eq!(&take::<16>(&mut stream)?, b"NBDMAGICIHAVEOPT");
        assert_eq!(u16::from_be_bytes(take(&mut stream)?), 3);
        stream.write_all(&hello())?;
        Ok(stream)
    }

    pub fn connect(path: &Path, is_structured: bool) -> io::Result<Client> {
        let mut stream = Client::greet(path)?;
        if is_structured {
            stream.write_all(&option(8, b""))?;
            assert_eq!(option_reply(&mut stream, 8)?.0, 1);
        }
        stream.write_all(&option(7, &wanted("", &[3])))?;
        let (mut bytes, mut flags) = (0, 0);
        loop {
            let (kind, data) = option_reply(&mut stream, 7)?;
            match kind {
                1 => break,
                3 if data[..2] == [0, 0] => {
                    bytes = u64::from_be_bytes(data[2..10].try_into().unwrap());
                    flags = u16::from_be_bytes(data[10..12].try_into().unwrap());
                }
                3 => {}
                other => panic!("reply {other:#x}"),
            }
        }
        Ok(Client { stream, bytes, flags, is_structured, cookie: 0 })
    }

    /// Sends a request; returns its cookie.
    pub fn send(&mut self, flags: u16, command: u16, at: u64, bytes: u32, data: &[u8]) -> io::Result<u64> {
        self.cookie += 1;
        let mut message = request(flags, command, self.cookie, at, bytes);
        message.extend(data);
        self.stream.write_all(&message)?;
        Ok(self.cookie)
    }

    /// The next reply; `bytes` tells how many a read of a cookie asked for, and 0 of everything else.
    pub fn receive(&mut self, bytes: impl Fn(u64) -> u32) -> io::Result<Reply> {
        let magic = u32::from_be_bytes(take(&mut self.stream)?);
        if magic == 0x6744_6698 {
            let error = u32::from_be_bytes(take(&mut self.stream)?);
            let cookie = u64::from_be_bytes(take(&mut self.stream)?);
            assert!(!self.is_structured || bytes(cookie) == 0, "reads are answered in structured replies");
            let mut data = vec![0; if error == 0 { bytes(cookie) as usize } else { 0 }];
            self.stream.read_exact(&mut data)?;
            return Ok((cookie, error, data));
        }
        assert!(magic == 0x668e_33ef && self.is_structured, "{magic:#x}");
        let flags = u16::from_be_bytes(take(&mut self.stream)?);
        let kind = u16::from_be_bytes(take(&mut self.stream)?);
        let cookie = u64::from_be_bytes(take(&mut self.stream)?);
        let mut data = vec![0; u32::from_be_bytes(take(&mut self.stream)?) as usize];
        self.stream.read_exact(&mut data)?;
        assert_eq!(flags, 1, "one piece each");
        Ok(match kind {
            1 => (cookie, 0, data.split_off(8)),
            0x8001 => (cookie, u32::from_be_bytes(data[..4].try_into().unwrap()), Vec::new()),
            other => panic!("a piece of kind {other}"),
        })
    }

    /// One request, and its reply.
    pub fn ask(
        &mut self,
        flags: u16,
        command: u16,
        at: u64,
        bytes: u32,
        data: &[u8],
    ) -> io::Result<(u32, Vec<u8>)> {
        let cookie = self.send(flags, command, at, bytes, data)?;
        let expected = if command == READ { bytes } else { 0 };
        let (found, error, data) = self.receive(|_| expected)?;
        assert_eq!(found, cookie);
        Ok((error, data))
    }
}
