//! One disk of a kernel: how it is set up, what its queues ask for, and what is complete.

use crate::block::{self, GuestRequest, Wanted};
use crate::contents::Contents;
use crate::drive::Drive;
use crate::error::GuestError;
use crate::socket::Socket;
use crate::vhost_user::{self, Channel, DiskLink, Message, Region, Request};
use crate::written::Written;
use planewise_model::Ns;
use planewise_sim::observers::Observer;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

/// Entries of a queue, at most.
const MOST_ENTRIES: u16 = 1024;
/// Queues: a kernel of this kind has one processor, and the configuration says one.
const MOST_QUEUES: u32 = 16;

/// What a disk did, besides the drive's own metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Requests of the guest that the drive served.
    pub requests: u64,
    /// Requests that were refused: malformed, past the end of the drive, or unknown.
    pub refused: u64,
    /// Times that the kernel told of requests.
    pub kicks: u64,
    /// Times that it was told of completions.
    pub calls: u64,
}

/// A request that is in the drive, or on its way there.
struct InFlight {
    queue: u32,
    request: GuestRequest,
}

/// A disk.
pub struct Disk<O> {
    listener: UnixListener,
    link: Option<DiskLink>,
    channel: Option<Channel>,
    memory: Option<GuestMemoryMmap>,
    regions: Vec<(u64, u64, u64)>,
    queues: Vec<Queue>,
    drive: Drive<O>,
    contents: Contents,
    unit_bytes: u32,
    serial: String,
    in_flight: BTreeMap<u64, InFlight>,
    /// Those that need no drive.
    immediate: VecDeque<u64>,
    tags: u64,
    counts: DiskCounts,
    /// What was written last, where reads are checked against it.
    written: Option<Written>,
}

impl<O: Observer> Disk<O> {
    /// A disk on a drive, at whose socket a kernel will connect; `unit_bytes` are those of the drive's unit of mapping, `serial` its serial number, of
    /// up to 20 letters.
    pub fn new(
        listener: UnixListener,
        drive: Drive<O>,
        contents: Contents,
        unit_bytes: u32,
        serial: impl Into<String>,
    ) -> Disk<O> {
        Disk {
            listener,
            link: None,
            channel: None,
            memory: None,
            regions: Vec::new(),
            queues: Vec::new(),
            contents,
            drive,
            unit_bytes,
            serial: serial.into(),
            in_flight: BTreeMap::new(),
            immediate: VecDeque::new(),
            tags: 0,
            counts: DiskCounts::default(),
            written: None,
        }
    }

    /// Checks from here on that a read returns the last write.
    pub fn check_contents(&mut self, is_on: bool) {
        self.written = is_on.then(Written::default);
    }

    /// How many reads returned the last write, or the first that did not; none where they are not checked.
    pub fn wrong_reads(&self) -> Option<Result<u64, String>> {
        self.written.as_ref().map(Written::report)
    }

    /// What it did.
    pub fn counts(&self) -> DiskCounts {
        self.counts
    }

    /// Requests that the guest waits for.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The drive.
    pub fn drive(&self) -> &Drive<O> {
        &self.drive
    }

    /// The drive.
    pub fn drive_mut(&mut self) -> &mut Drive<O> {
        &mut self.drive
    }

    /// The drive and what is on it.
    pub fn into_parts(self) -> (Drive<O>, Contents) {
        (self.drive, self.contents)
    }

    /// What to wait at for a message.
    pub fn end(&self) -> BorrowedFd<'_> {
        match &self.link {
            Some(link) => link.socket().as_fd(),
            None => self.listener.as_fd(),
        }
    }

    /// What to wait at for the answer to a call; none where the kernel set none up.
    pub fn channel_end(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(|channel| channel.socket().as_fd())
    }

    /// When it has something next, of this time or later.
    pub fn next(&self, now: Ns) -> Ns {
        if self.immediate.is_empty() { self.drive.next() } else { now }
    }

    /// Hears one message, or that the kernel connects; what it is about, or none where the kernel has hung up.
    ///
    /// # Errors
    /// What the protocol does not allow; the system's.
    pub fn hear(&mut self) -> Result<Option<Heard>, GuestError> {
        let Some(link) = &mut self.link else {
            let (stream, _) = self
                .listener
                .accept()
                .map_err(|error| GuestError::system("waiting for the disk's socket", error))?;
            self.link = Some(DiskLink::new(Socket::new(stream, "vhost-user")));
            return Ok(Some(Heard::SetUp));
        };
        let Some(message) = link.receive()? else { return Ok(None) };
        let mut answer = None;
        match &message.request {
            Request::GetFeatures => answer = Some(block::FEATURES.to_le_bytes().to_vec()),
            Request::GetProtocolFeatures => {
                answer = Some(vhost_user::PROTOCOL_FEATURES.to_le_bytes().to_vec())
            }
            Request::SetFeatures(_) | Request::SetProtocolFeatures(_) | Request::SetOwner => {}
            Request::SetMemory(regions) => self.map_memory(regions)?,
            Request::SetSize { queue, size } => {
                let entries =
                    u16::try_from(*size).ok().filter(|size| size.is_power_of_two() && *size <= MOST_ENTRIES);
                let Some(entries) = entries else {
                    return Err(GuestError::protocol(
                        "vhost-user",
                        format!("a queue of {size} entries"),
                        format!("powers of two up to {MOST_ENTRIES}"),
                    ));
                };
                self.queue(*queue)?.set_size(entries);
            }
            Request::SetAddresses { queue, descriptors, used, available } => {
                let [descriptors, used, available] = [
                    self.guest_address(*descriptors)?,
                    self.guest_address(*used)?,
                    self.guest_address(*available)?,
                ];
                let number = *queue;
                let ring = self.queue(number)?;
                ring.try_set_desc_table_address(descriptors)
                    .and_then(|()| ring.try_set_used_ring_address(used))
                    .and_then(|()| ring.try_set_avail_ring_address(available))
                    .map_err(|error| broken_queue(number, &error))?;
            }
            Request::SetBase { queue, base } => {
                let ring = self.queue(*queue)?;
                ring.set_next_avail(*base as u16);
                ring.set_next_used(*base as u16);
            }
            Request::Enable { queue, is_on } => self.queue(*queue)?.set_ready(*is_on),
            Request::SetChannel(file) => self.channel = Some(channel(file)?),
            Request::GetConfiguration { offset, size, payload } => {
                let all = block::configuration(self.contents.sectors(), self.unit_bytes);
                let mut bytes = payload.clone();
                for (at, byte) in bytes[12..12 + *size as usize].iter_mut().enumerate() {
                    *byte = all.get(*offset as usize + at).copied().unwrap_or(0);
                }
                answer = Some(bytes);
            }
            // Answered when it was looked at.
            Request::Kick(queue) => return Ok(Some(Heard::Kick(*queue, message))),
        }
        self.answer(&message, answer.as_deref())?;
        Ok(Some(Heard::SetUp))
    }

    /// Answers a message.
    ///
    /// # Errors
    /// The system's.
    pub fn answer(&mut self, message: &Message, bytes: Option<&[u8]>) -> Result<(), GuestError> {
        self.link.as_mut().map_or(Ok(()), |link| link.answer(message, bytes))
    }

    fn queue(&mut self, queue: u32) -> Result<&mut Queue, GuestError> {
        if queue >= MOST_QUEUES {
            return Err(GuestError::protocol(
                "vhost-user",
                format!("queue {queue}"),
                format!("0 to {}", MOST_QUEUES - 1),
            ));
        }
        while self.queues.len() <= queue as usize {
            self.queues.push(Queue::new(MOST_ENTRIES).map_err(|error| broken_queue(queue, &error))?);
        }
        Ok(&mut self.queues[queue as usize])
    }

    fn map_memory(&mut self, regions: &[Region]) -> Result<(), GuestError> {
        let mut ranges = Vec::new();
        for region in regions {
            let file = region
                .file
                .try_clone()
                .map_err(|error| GuestError::system("taking the guest's memory", error))?;
            let file = FileOffset::new(file.into(), region.offset);
            ranges.push((GuestAddress(region.guest), region.size as usize, Some(file)));
        }
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges).map_err(|error| {
            GuestError::system("mapping the guest's memory", std::io::Error::other(error))
        })?;
        self.memory = Some(memory);
        self.regions = regions.iter().map(|region| (region.process, region.guest, region.size)).collect();
        Ok(())
    }

    /// Addresses of rings are those of the kernel's process.
    fn guest_address(&self, address: u64) -> Result<GuestAddress, GuestError> {
        let found = self.regions.iter().find_map(|&(process, guest, size)| {
            address
                .checked_sub(process)
                .filter(|offset| *offset < size)
                .map(|offset| GuestAddress(guest + offset))
        });
        found.ok_or_else(|| {
            GuestError::protocol(
                "vhost-user",
                format!("a ring at {address:#x}"),
                "addresses in the guest's memory",
            )
        })
    }

    /// Takes what a queue has for the disk, now.
    ///
    /// # Errors
    /// A queue that is not set up, the engine's.
    pub fn take_in(&mut self, queue: u32, now: Ns) -> Result<(), GuestError> {
        self.counts.kicks += 1;
        self.drive.advance(now)?;
        let Some(memory) = self.memory.clone() else {
            return Err(GuestError::protocol("vhost-user", "a kick before the memory", "the memory first"));
        };
        loop {
            let ring = self.queue(queue)?;
            if !ring.is_valid(&memory) {
                return Err(GuestError::protocol(
                    "vhost-user",
                    format!("a kick of queue {queue}"),
                    "queues that are set up",
                ));
            }
            let Some(chain) = ring.pop_descriptor_chain(&memory) else { break };
            let mut request = GuestRequest::read(chain, &memory, &self.contents, now);
            request.take_in(&memory, &self.contents);
            if let Some(written) = &mut self.written {
                written.take_in(&request, &memory);
            }
            self.tags += 1;
            let wanted = match &request.wanted {
                Wanted::Drive(request) => Some(*request),
                Wanted::Serial | Wanted::Refused(_) => None,
            };
            self.counts.requests += u64::from(wanted.is_some());
            self.counts.refused += u64::from(matches!(request.wanted, Wanted::Refused(_)));
            self.in_flight.insert(self.tags, InFlight { queue, request });
            match wanted {
                Some(request) => self.drive.submit(&request, self.tags)?,
                None => self.immediate.push_back(self.tags),
            }
        }
        self.drive.advance(now)
    }

    /// Puts what is complete now where the kernel looks for it; the queues of which it wants to be told.
    ///
    /// # Errors
    /// A queue that is broken, the engine's.
    pub fn complete(&mut self, now: Ns) -> Result<Vec<u32>, GuestError> {
        self.drive.advance(now)?;
        let mut told = Vec::new();
        while let Some(tag) = self.immediate.pop_front().or_else(|| self.drive.take()) {
            let Some(InFlight { queue, request }) = self.in_flight.remove(&tag) else { continue };
            let Some(memory) = &self.memory else { continue };
            let length = request.answer(memory, &self.contents, &self.serial);
            if let Some(written) = &mut self.written {
                written.answered(&request, memory, now);
            }
            let ring = &mut self.queues[queue as usize];
            ring.add_used(memory, request.head, length).map_err(|error| broken_queue(queue, &error))?;
            // The guest may not want to be told.
            let flags: u16 = memory.read_obj(GuestAddress(ring.avail_ring())).unwrap_or(0);
            if flags & 1 == 0 && !told.contains(&queue) {
                told.push(queue);
            }
        }
        self.drive.advance(now)?;
        Ok(told)
    }

    /// Tells the kernel of completions in a queue; the answer comes at [`Disk::channel_end`].
    ///
    /// # Errors
    /// The system's.
    pub fn call(&mut self, queue: u32) -> Result<(), GuestError> {
        let Some(channel) = &mut self.channel else { return Ok(()) };
        self.counts.calls += 1;
        channel.call(queue)
    }

    /// Reads the answer to a call; false where the kernel has hung up.
    ///
    /// # Errors
    /// The system's.
    pub fn hear_answer(&mut self) -> Result<bool, GuestError> {
        self.channel.as_mut().map_or(Ok(false), Channel::receive_answer)
    }
}

/// What a message was about.
#[derive(Debug)]
pub enum Heard {
    /// How the disk is set up: answered.
    SetUp,
    /// A queue has something: to be taken in, and then answered.
    Kick(u32, Message),
}

fn channel(file: &OwnedFd) -> Result<Channel, GuestError> {
    let file =
        file.try_clone().map_err(|error| GuestError::system("taking the disk's own channel", error))?;
    Ok(Channel::new(Socket::new(UnixStream::from(file), "vhost-user backend")))
}

fn broken_queue(queue: u32, error: &virtio_queue::Error) -> GuestError {
    GuestError::protocol("vhost-user", format!("queue {queue}: {error}"), "rings in the guest's memory")
}
