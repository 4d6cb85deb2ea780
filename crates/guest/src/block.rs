//! Requests of a virtio disk (virtio 1.2, section 5.2): what a chain of descriptors asks for, and how it is answered.

use crate::contents::{Contents, is_memory, length};
use planewise_model::{Direction, Lsn, Ns, Request, SECTOR_BYTES};
use virtio_queue::DescriptorChain;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Bytes of the header of a request, and of an entry of a discard.
const HEADER_BYTES: u32 = 16;
const RANGE_BYTES: u32 = 16;
/// Segments of a request, and sectors and ranges of a discard, at most.
const MOST_SEGMENTS: u32 = 126;
const MOST_DISCARDED: u32 = 1 << 22;

/// Status of a request.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const UNKNOWN: u8 = 2;

/// Features that the disk offers: version 1, indirect descriptors, those of the transport; segments, block size, topology, flush, discard, write zeroes.
pub const FEATURES: u64 =
    1 << 32 | 1 << 30 | 1 << 28 | 1 << 2 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 14;

/// The configuration of a disk of so many sectors, whose units of mapping have so many bytes.
pub fn configuration(sectors: u64, unit_bytes: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &sectors.to_le_bytes());
    put(12, &MOST_SEGMENTS.to_le_bytes());
    put(20, &(SECTOR_BYTES as u32).to_le_bytes());
    let blocks = (u64::from(unit_bytes) / SECTOR_BYTES).max(1);
    put(24, &[blocks.ilog2() as u8]);
    put(34, &1u16.to_le_bytes());
    for at in [36, 48] {
        put(at, &MOST_DISCARDED.to_le_bytes());
        put(at + 4, &1u32.to_le_bytes());
    }
    put(44, &(blocks as u32).to_le_bytes());
    put(56, &[1]);
    bytes
}

/// What a chain of descriptors asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Something of the drive.
    Drive(Request),
    /// Its serial number.
    Serial,
    /// Nothing that there is: the status to answer with.
    Refused(u8),
}

/// A request of the guest.
#[derive(Debug)]
pub struct GuestRequest {
    /// Number of the first descriptor, which the answer names.
    pub head: u16,
    /// What it asks for.
    pub wanted: Wanted,
    /// Memory to fill, or to take data from.
    pub data: Vec<(GuestAddress, u32)>,
    status: Option<GuestAddress>,
    /// Status and bytes of data, where these were put ahead of the answer.
    filled: Option<(u8, u32)>,
}

/// Cuts so many bytes off the front of pieces of memory, and returns them; none where there are fewer.
fn cut(pieces: &mut Vec<(GuestAddress, u32)>, mut bytes: u32) -> Option<Vec<(GuestAddress, u32)>> {
    let mut front = Vec::new();
    while bytes > 0 {
        let (address, length) = *pieces.first()?;
        let taken = length.min(bytes);
        front.push((address, taken));
        bytes -= taken;
        if taken == length {
            pieces.remove(0);
        } else {
            pieces[0] = (GuestAddress(address.0.checked_add(taken.into())?), length - taken);
        }
    }
    Some(front)
}

fn bytes_of<const COUNT: usize>(
    pieces: &[(GuestAddress, u32)],
    guest: &GuestMemoryMmap,
) -> Option<[u8; COUNT]> {
    let (mut bytes, mut at) = ([0; COUNT], 0);
    for &(address, length) in pieces {
        guest.read_slice(&mut bytes[at..at + length as usize], address).ok()?;
        at += length as usize;
    }
    Some(bytes)
}

impl GuestRequest {
    /// Reads a chain.
    pub fn read(
        chain: DescriptorChain<&GuestMemoryMmap>,
        guest: &GuestMemoryMmap,
        contents: &Contents,
        now: Ns,
    ) -> GuestRequest {
        let head = chain.head_index();
        let (mut readable, mut writable) = (Vec::new(), Vec::new());
        for descriptor in chain {
            let pieces = if descriptor.is_write_only() { &mut writable } else { &mut readable };
            if descriptor.len() > 0 {
                pieces.push((descriptor.addr(), descriptor.len()));
            }
        }
        // The last byte that may be written is the status.
        let status = writable.last_mut().map(|last: &mut (GuestAddress, u32)| {
            last.1 -= 1;
            GuestAddress(last.0.0.saturating_add(last.1.into()))
        });
        writable.retain(|piece| piece.1 > 0);
        let refused = |status_byte| GuestRequest {
            head,
            wanted: Wanted::Refused(status_byte),
            data: Vec::new(),
            status,
            filled: None,
        };
        if !is_memory(&readable, guest) || !is_memory(&writable, guest) {
            return refused(FAILED);
        }
        let header = cut(&mut readable, HEADER_BYTES).and_then(|header| bytes_of::<16>(&header, guest));
        let Some(header) = header else { return refused(FAILED) };
        let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let sector = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let (wanted, data) = match kind {
            0 => (transfer(sector, &writable, Direction::Read, contents, now), writable),
            1 => (transfer(sector, &readable, Direction::Write, contents, now), readable),
            4 => (Wanted::Drive(Request::flush(now)), Vec::new()),
            8 => (Wanted::Serial, writable),
            11 | 13 => (discard(&mut readable, guest, contents, now), Vec::new()),
            _ => (Wanted::Refused(UNKNOWN), Vec::new()),
        };
        GuestRequest { head, wanted, data, status, filled: None }
    }

    /// What the drive takes in when the request is issued: data of a write, what is discarded.
    pub fn take_in(&mut self, guest: &GuestMemoryMmap, contents: &Contents) {
        let Wanted::Drive(request) = &self.wanted else { return };
        let is_done = match (request.moves_to_device(), request.is_transfer(), request.operation.is_flush()) {
            (true, ..) => contents.write(request.start.0, &self.data, guest),
            (false, false, false) => contents.forget(request.start.0, request.sectors.into()).is_ok(),
            _ => true,
        };
        if !is_done {
            self.wanted = Wanted::Refused(FAILED);
        }
    }

    /// Puts the data where the guest looks for them, ahead of the answer: what is on the drive now.
    pub fn fill(&mut self, guest: &GuestMemoryMmap, contents: &Contents, serial: &str) {
        self.filled = Some(self.put_data(guest, contents, serial));
    }

    /// It failed, whatever it wanted.
    pub fn fail(&mut self) {
        (self.wanted, self.filled) = (Wanted::Refused(FAILED), None);
    }

    /// Puts data, where [`GuestRequest::fill`] has not, and status where the guest looks for them; returns how many bytes that are.
    pub fn answer(&self, guest: &GuestMemoryMmap, contents: &Contents, serial: &str) -> u32 {
        let (status, written) = self.filled.unwrap_or_else(|| self.put_data(guest, contents, serial));
        let is_told = self.status.is_some_and(|address| guest.write_obj(status, address).is_ok());
        written + u32::from(is_told)
    }

    fn put_data(&self, guest: &GuestMemoryMmap, contents: &Contents, serial: &str) -> (u8, u32) {
        match &self.wanted {
            Wanted::Drive(request) if request.is_transfer() && request.direction == Direction::Read => {
                match contents.read(request.start.0, &self.data, guest) {
                    true => (DONE, length(&self.data) as u32),
                    false => (FAILED, 0),
                }
            }
            Wanted::Drive(_) => (DONE, 0),
            Wanted::Serial => {
                let mut bytes = [0; 20];
                let count = serial.len().min(bytes.len());
                bytes[..count].copy_from_slice(&serial.as_bytes()[..count]);
                match self.data.first() {
                    Some(&(address, room))
                        if guest.write_slice(&bytes[..20.min(room as usize)], address).is_ok() =>
                    {
                        (DONE, 20.min(room))
                    }
                    _ => (FAILED, 0),
                }
            }
            Wanted::Refused(status) => (*status, 0),
        }
    }
}

fn transfer(
    sector: u64,
    data: &[(GuestAddress, u32)],
    direction: Direction,
    contents: &Contents,
    now: Ns,
) -> Wanted {
    let bytes = length(data);
    let sectors = bytes / SECTOR_BYTES;
    let fits = bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) && contents.holds(sector, sectors);
    match u32::try_from(sectors) {
        Ok(sectors) if fits => Wanted::Drive(Request::new(now, Lsn(sector), sectors, direction)),
        _ => Wanted::Refused(FAILED),
    }
}

fn discard(
    data: &mut Vec<(GuestAddress, u32)>,
    guest: &GuestMemoryMmap,
    contents: &Contents,
    now: Ns,
) -> Wanted {
    let range = cut(data, RANGE_BYTES).and_then(|range| bytes_of::<16>(&range, guest));
    // One range: the configuration says so.
    let Some(range) = range.filter(|_| data.is_empty()) else { return Wanted::Refused(FAILED) };
    let sector = u64::from_le_bytes(range[..8].try_into().expect("eight bytes"));
    let sectors = u32::from_le_bytes(range[8..12].try_into().expect("four bytes"));
    match (1..=MOST_DISCARDED).contains(&sectors) && contents.holds(sector, sectors.into()) {
        true => Wanted::Drive(Request::discard(now, Lsn(sector), sectors)),
        false => Wanted::Refused(FAILED),
    }
}
