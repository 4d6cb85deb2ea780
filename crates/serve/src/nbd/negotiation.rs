//! What a client and we agree on before the first request: options, until one of them begins the transmission.
//!
//! Nothing that comes is believed: lengths are bounded before anything is read, and a client that asks without end is left.

use super::{Export, PAYLOAD_MAX, TRANSMISSION_FLAGS};
use planewise_model::SECTOR_BYTES;
use std::io::{self, Read, Write};

const MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO_REPLY: u32 = 3;
const UNSUPPORTED: u32 = 1 << 31 | 1;
const POLICY: u32 = 1 << 31 | 2;
const INVALID: u32 = 1 << 31 | 3;
const UNKNOWN: u32 = 1 << 31 | 6;
const TOO_BIG: u32 = 1 << 31 | 9;

const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_BLOCK_SIZE: u16 = 3;

/// Bytes of an option's data, at most: a name has 4096, and few need more; and of data that are passed over before a client is left.
const OPTION_BYTES_MAX: u32 = 8192;
const PASSED_OVER_MAX: u32 = 1 << 20;
/// Options of one client, at most.
const OPTIONS_MAX: usize = 256;

/// What was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Reads are answered in structured replies.
    pub is_structured: bool,
}

/// Negotiates; nothing where the client left, or was left, without a transmission.
///
/// # Errors
/// The connection's; a client that does not speak the protocol.
pub fn negotiate(stream: &mut (impl Read + Write), export: &Export) -> io::Result<Option<Agreed>> {
    let mut hello = Vec::with_capacity(18);
    hello.extend(MAGIC.to_be_bytes());
    hello.extend(OPTION_MAGIC.to_be_bytes());
    hello.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    stream.write_all(&hello)?;
    let flags = u32::from_be_bytes(take(stream)?);
    if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 || flags & u32::from(FIXED_NEWSTYLE) == 0 {
        return Err(wrong(format!("client flags {flags:#x}; allowed: fixed newstyle, 1 or 3")));
    }
    let mut is_structured = false;
    for _ in 0..OPTIONS_MAX {
        let magic = u64::from_be_bytes(take(stream)?);
        if magic != OPTION_MAGIC {
            return Err(wrong(format!("an option that begins with {magic:#018x}; allowed: IHAVEOPT")));
        }
        let option = u32::from_be_bytes(take(stream)?);
        let length = u32::from_be_bytes(take(stream)?);
        if length > OPTION_BYTES_MAX {
            if length > PASSED_OVER_MAX || option == EXPORT_NAME {
                return Err(wrong(format!(
                    "option {option} with {length} bytes; allowed: {OPTION_BYTES_MAX}"
                )));
            }
            io::copy(&mut Read::by_ref(stream).take(length.into()), &mut io::sink())?;
            reply(stream, option, TOO_BIG, b"")?;
            continue;
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match option {
            EXPORT_NAME => {
                // There is no way to refuse but to leave.
                if !is_meant(export, &data) {
                    return Ok(None);
                }
                let mut answer = export.bytes.to_be_bytes().to_vec();
                answer.extend(TRANSMISSION_FLAGS.to_be_bytes());
                if flags & u32::from(NO_ZEROES) == 0 {
                    answer.resize(answer.len() + 124, 0);
                }
                stream.write_all(&answer)?;
                return Ok(Some(Agreed { is_structured }));
            }
            ABORT => {
                // It need not wait for that.
                let _ = reply(stream, option, ACK, b"");
                return Ok(None);
            }
            LIST if export.is_guarded => reply(stream, option, POLICY, b"the name has to be known")?,
            LIST if !data.is_empty() => reply(stream, option, INVALID, b"a list takes no data")?,
            LIST => {
                let mut entry = (export.name.len() as u32).to_be_bytes().to_vec();
                entry.extend(export.name.as_bytes());
                reply(stream, option, SERVER, &entry)?;
                reply(stream, option, ACK, b"")?;
            }
            INFO | GO => match wanted_information(&data) {
                None => reply(stream, option, INVALID, b"lengths that do not fit")?,
                Some((name, _)) if !is_meant(export, name) => {
                    reply(stream, option, UNKNOWN, b"no export of that name")?;
                }
                Some((_, kinds)) => {
                    inform(stream, option, export, &kinds)?;
                    reply(stream, option, ACK, b"")?;
                    if option == GO {
                        return Ok(Some(Agreed { is_structured }));
                    }
                }
            },
            STRUCTURED_REPLY if !data.is_empty() => reply(stream, option, INVALID, b"takes no data")?,
            STRUCTURED_REPLY => {
                is_structured = true;
                reply(stream, option, ACK, b"")?;
            }
            _ => reply(stream, option, UNSUPPORTED, b"not here")?,
        }
    }
    Err(wrong(format!("more than {OPTIONS_MAX} options; allowed: fewer before the transmission begins")))
}

/// Whether a client's name for it is ours: the empty name is the default one.
fn is_meant(export: &Export, name: &[u8]) -> bool {
    name == export.name.as_bytes() || name.is_empty() && !export.is_guarded
}

/// The name and the kinds of information in the data of an option; nothing where lengths do not fit.
fn wanted_information(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    if rest.len() != 2 * usize::from(u16::from_be_bytes(*count)) {
        return None;
    }
    Some((name, rest.chunks_exact(2).map(|kind| u16::from_be_bytes([kind[0], kind[1]])).collect()))
}

fn inform(stream: &mut impl Write, option: u32, export: &Export, kinds: &[u16]) -> io::Result<()> {
    let mut about = INFO_EXPORT.to_be_bytes().to_vec();
    about.extend(export.bytes.to_be_bytes());
    about.extend(TRANSMISSION_FLAGS.to_be_bytes());
    reply(stream, option, INFO_REPLY, &about)?;
    if kinds.contains(&INFO_NAME) {
        let name = [&INFO_NAME.to_be_bytes()[..], export.name.as_bytes()].concat();
        reply(stream, option, INFO_REPLY, &name)?;
    }
    let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    // Requests of odd bytes are served all the same: clients of before this information send them.
    for size in [SECTOR_BYTES as u32, export.preferred_bytes, PAYLOAD_MAX] {
        sizes.extend(size.to_be_bytes());
    }
    reply(stream, option, INFO_REPLY, &sizes)
}

fn reply(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(20 + data.len());
    message.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    message.extend(option.to_be_bytes());
    message.extend(kind.to_be_bytes());
    message.extend((data.len() as u32).to_be_bytes());
    message.extend(data);
    stream.write_all(&message)
}

fn take<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("found {what}"))
}
