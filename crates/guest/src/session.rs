//! One run of a kernel: whose turn it is, and what time it is.
//!
//! Either the kernel runs, or it waits; while it waits, time goes on to what comes first, the time that it asked to run at or the drive's next event.
//! A completion is put in the queue, and the kernel told of it, only while it waits: it handles that at once, asks for time if it needs some, and
//! answers. The kernel never gets past the drive's next event without asking: that is checked whenever it says what time it is.

use crate::block::{self, GuestRequest, Wanted};
use crate::contents::Contents;
use crate::drive::Drive;
use crate::error::GuestError;
use crate::schedule::{KERNEL, Schedule};
use crate::socket::{Socket, wait_for_one};
use crate::time::{Message, NEVER, Operation, TimeLink};
use crate::vhost_user::{self, Channel, DiskLink, Region, Request};
use planewise_model::Ns;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

/// Entries of a queue, at most.
const MOST_ENTRIES: u16 = 1024;
/// Queues: a kernel of this kind has one processor, and the configuration says one.
const MOST_QUEUES: u32 = 16;
/// The time of the day at which a run begins: in November 2023, the same for all.
const TIME_OF_DAY: u64 = 1_700_000_000_000_000_000;

/// How a kernel is told until when it may go on without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// By memory that both share.
    #[default]
    Memory,
    /// By a message before each turn.
    Messages,
    /// Not at all: it asks every time.
    None,
}

/// What went to and fro.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests of the guest that the drive served.
    pub requests: u64,
    /// Requests that were refused: malformed, past the end of the drive, or unknown.
    pub refused: u64,
    /// Messages about time.
    pub messages: u64,
    /// Times that the kernel told of requests, and was told of completions.
    pub kicks: u64,
    /// The latter.
    pub calls: u64,
}

/// A request that is in the drive, or on its way there.
struct InFlight {
    queue: u32,
    request: GuestRequest,
}

/// A kernel with its time and its drive.
pub struct Session {
    time: TimeLink,
    listener: UnixListener,
    disk: Option<DiskLink>,
    channel: Option<Channel>,
    schedule: Option<Schedule>,
    sharing: Sharing,
    now: Ns,
    /// When the kernel asked to run.
    requested: Ns,
    /// Until when it was told that it may go on.
    free_until: Ns,
    is_waiting: bool,
    is_over: bool,
    memory: Option<GuestMemoryMmap>,
    regions: Vec<(u64, u64, u64)>,
    queues: Vec<Queue>,
    drive: Drive,
    contents: Contents,
    unit_bytes: u32,
    serial: String,
    in_flight: BTreeMap<u64, InFlight>,
    /// Requests for which the drive had no room, in their order, and those that need no drive.
    outside: VecDeque<u64>,
    immediate: VecDeque<u64>,
    tags: u64,
    counts: Counts,
}

impl Session {
    /// Begins with a kernel that has connected for its time, and will connect for its disk.
    ///
    /// # Errors
    /// No room for the contents.
    pub fn new(
        time: UnixStream,
        disk: UnixListener,
        drive: Drive,
        unit_bytes: u32,
        sharing: Sharing,
    ) -> Result<Session, GuestError> {
        Ok(Session {
            time: TimeLink::new(Socket::new(time, "time travel")),
            listener: disk,
            disk: None,
            channel: None,
            schedule: None,
            sharing,
            now: Ns::ZERO,
            requested: Ns(NEVER),
            free_until: Ns::ZERO,
            is_waiting: false,
            is_over: false,
            memory: None,
            regions: Vec::new(),
            queues: Vec::new(),
            contents: Contents::new(drive.sectors())?,
            drive,
            unit_bytes,
            serial: "planewise".into(),
            in_flight: BTreeMap::new(),
            outside: VecDeque::new(),
            immediate: VecDeque::new(),
            tags: 0,
            counts: Counts::default(),
        })
    }

    /// The time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// What went to and fro.
    pub fn counts(&self) -> Counts {
        Counts { messages: self.time.messages, ..self.counts }
    }

    /// Requests that the guest waits for.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The drive, once the run is over.
    pub fn into_drive(self) -> Drive {
        self.drive
    }

    /// Runs until the kernel has ended.
    ///
    /// # Errors
    /// What the kernel must not say, a time that nobody can reach, the engine's.
    pub fn run(&mut self) -> Result<(), GuestError> {
        while !self.is_over {
            if self.is_waiting {
                self.let_time_pass()?;
            } else {
                self.listen()?;
            }
        }
        Ok(())
    }

    /// Hears one message of a kernel that runs.
    fn listen(&mut self) -> Result<(), GuestError> {
        let other = match &self.disk {
            Some(disk) => disk.socket().as_fd(),
            None => self.listener.as_fd(),
        };
        let heard = wait_for_one(&[self.time.socket().as_fd(), other])?;
        if heard[0] {
            return self.hear_of_time().map(|_| ());
        }
        if heard[1] {
            match self.disk {
                Some(_) => self.hear_of_disk()?,
                None => {
                    let (stream, _) = self
                        .listener
                        .accept()
                        .map_err(|error| GuestError::system("waiting for the disk's socket", error))?;
                    self.disk = Some(DiskLink::new(Socket::new(stream, "vhost-user")));
                }
            }
        }
        Ok(())
    }

    /// Hears one message about time; the number of what it acknowledges, if it does.
    fn hear_of_time(&mut self) -> Result<Option<u32>, GuestError> {
        let Some(message) = self.time.receive()? else {
            self.is_over = true;
            return Ok(None);
        };
        let mut answer = 0;
        match message.operation {
            Operation::Acknowledge => return Ok(Some(message.sequence)),
            Operation::Start => return self.begin(message).map(|()| None),
            Operation::Request => self.requested = Ns(message.time),
            Operation::Wait => {
                self.is_waiting = true;
                if self.is_shared() {
                    return Ok(None);
                }
            }
            Operation::Get => answer = self.now.0,
            Operation::Update => self.reach(Ns(message.time))?,
            Operation::TimeOfDay => answer = TIME_OF_DAY,
            Operation::Broadcast => {}
            Operation::Run | Operation::FreeUntil => {
                return Err(GuestError::protocol(
                    "time travel",
                    format!("{:?}", message.operation),
                    "what kernels say",
                ));
            }
        }
        self.time.acknowledge(message, answer, &[])?;
        Ok(None)
    }

    /// A kernel reads descriptors beside the answer whether it shares the schedule or not.
    fn begin(&mut self, message: Message) -> Result<(), GuestError> {
        let is_shared = self.sharing == Sharing::Memory;
        let schedule = Schedule::new(self.now, is_shared)?;
        let number = if is_shared { u64::from(KERNEL) } else { 0 };
        let file = schedule.file();
        self.time.acknowledge(message, number, &[file, file])?;
        self.schedule = Some(schedule);
        Ok(())
    }

    fn is_shared(&self) -> bool {
        self.schedule.as_ref().is_some_and(Schedule::is_shared)
    }

    /// The kernel has reached a time.
    fn reach(&mut self, now: Ns) -> Result<(), GuestError> {
        let device = self.next_of_drive();
        if now < self.now || now > device {
            return Err(GuestError::Causality { kernel: now, device, now: self.now });
        }
        self.now = now;
        Ok(())
    }

    /// When the drive has something next, of this time or later.
    fn next_of_drive(&self) -> Ns {
        if self.immediate.is_empty() { self.drive.next().min(Ns(NEVER)) } else { self.now }
    }

    /// Both wait: what comes first comes now.
    fn let_time_pass(&mut self) -> Result<(), GuestError> {
        if let Some(schedule) = self.schedule.as_ref().filter(|schedule| schedule.is_shared()) {
            let (now, requested) = (schedule.now(), schedule.requested());
            schedule.set_running(0);
            self.requested = requested.unwrap_or(Ns(NEVER));
            self.reach(now)?;
        }
        let (device, kernel) = (self.next_of_drive(), self.requested.max(self.now));
        if device > kernel || device == kernel && kernel == Ns(NEVER) {
            return self.let_kernel_run(device, kernel);
        }
        self.now = self.now.max(device);
        if let Some(schedule) = self.schedule.as_ref().filter(|schedule| schedule.is_shared()) {
            schedule.set_now(self.now);
        }
        self.drive.advance(self.now)?;
        self.complete()
    }

    fn let_kernel_run(&mut self, device: Ns, kernel: Ns) -> Result<(), GuestError> {
        if kernel >= Ns(NEVER) {
            return Err(GuestError::Deadlock { now: self.now });
        }
        (self.now, self.requested, self.is_waiting, self.free_until) = (kernel, Ns(NEVER), false, device);
        match self.sharing {
            Sharing::Memory => {
                if let Some(schedule) = &self.schedule {
                    schedule.set_now(kernel);
                    schedule.set_free_until(device);
                    schedule.clear_request();
                    schedule.set_running(KERNEL);
                }
                self.time.say(Operation::Run, kernel)?;
                Ok(())
            }
            Sharing::Messages => {
                self.tell(Operation::FreeUntil, device)?;
                self.tell(Operation::Run, kernel)
            }
            Sharing::None => self.tell(Operation::Run, kernel),
        }
    }

    /// Says something, and serves the kernel until it has acknowledged that.
    fn tell(&mut self, operation: Operation, time: Ns) -> Result<(), GuestError> {
        let number = self.time.say(operation, time)?;
        while !self.is_over && self.hear_of_time()? != Some(number) {}
        Ok(())
    }

    /// Puts what is complete where the kernel looks for it, and tells it.
    fn complete(&mut self) -> Result<(), GuestError> {
        let mut told = vec![false; self.queues.len()];
        while let Some(tag) = self.immediate.pop_front().or_else(|| self.drive.take()) {
            let Some(InFlight { queue, request }) = self.in_flight.remove(&tag) else { continue };
            let Some(memory) = &self.memory else { continue };
            let written = request.answer(memory, &self.contents, &self.serial);
            let ring = &mut self.queues[queue as usize];
            ring.add_used(memory, request.head, written).map_err(|error| broken_queue(queue, &error))?;
            // The guest may not want to be told.
            let flags: u16 = memory.read_obj(GuestAddress(ring.avail_ring())).unwrap_or(0);
            told[queue as usize] |= flags & 1 == 0;
        }
        self.let_outside_in()?;
        for queue in (0..told.len()).filter(|&queue| told[queue]) {
            self.call(queue as u32)?;
        }
        self.note_next()
    }

    fn let_outside_in(&mut self) -> Result<(), GuestError> {
        while let Some(&tag) = self.outside.front() {
            let Wanted::Drive(request) = &self.in_flight[&tag].request.wanted else { break };
            let request = planewise_model::Request { arrival: self.now, ..*request };
            if !self.drive.has_room(&request) {
                break;
            }
            self.outside.pop_front();
            self.drive.submit(&request, tag)?;
        }
        self.drive.advance(self.now)
    }

    /// Tells the kernel of completions in a queue: it looks at them before it answers.
    fn call(&mut self, queue: u32) -> Result<(), GuestError> {
        let Some(channel) = &mut self.channel else { return Ok(()) };
        self.counts.calls += 1;
        channel.call(queue)?;
        while !self.is_over {
            let Some(channel) = &mut self.channel else { return Ok(()) };
            let heard = wait_for_one(&[channel.socket().as_fd(), self.time.socket().as_fd()])?;
            if heard[0] {
                self.is_over |= !channel.receive_answer()?;
                return Ok(());
            }
            if heard[1] {
                self.hear_of_time()?;
            }
        }
        Ok(())
    }

    /// The drive's next event may have moved: the kernel must not get past it.
    fn note_next(&mut self) -> Result<(), GuestError> {
        let next = self.next_of_drive();
        match self.sharing {
            Sharing::Memory => {
                if let Some(schedule) = self.schedule.as_ref().filter(|schedule| schedule.is_shared()) {
                    let requested = schedule.requested().filter(|_| self.is_waiting);
                    let until = requested.map_or(next, |requested| next.min(requested));
                    if self.is_waiting || until < schedule.free_until() {
                        schedule.set_free_until(until);
                    }
                }
                Ok(())
            }
            Sharing::Messages if !self.is_waiting && next < self.free_until => {
                self.free_until = next;
                self.tell(Operation::FreeUntil, next)
            }
            Sharing::Messages | Sharing::None => Ok(()),
        }
    }

    /// Hears one message about the disk.
    fn hear_of_disk(&mut self) -> Result<(), GuestError> {
        let Some(message) = self.disk.as_mut().map(DiskLink::receive).transpose()?.flatten() else {
            self.is_over = true;
            return Ok(());
        };
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
            Request::Kick(queue) => self.kicked(*queue)?,
        }
        match &mut self.disk {
            Some(disk) => disk.answer(&message, answer.as_deref()),
            None => Ok(()),
        }
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

    /// A queue has something for the disk, at a time that the kernel has told, or written.
    fn kicked(&mut self, queue: u32) -> Result<(), GuestError> {
        self.counts.kicks += 1;
        if let Some(now) = self.schedule.as_ref().filter(|schedule| schedule.is_shared()).map(Schedule::now) {
            self.reach(now)?;
        }
        self.drive.advance(self.now)?;
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
            let mut request = GuestRequest::read(chain, &memory, &self.contents, self.now);
            request.take_in(&memory, &self.contents);
            self.tags += 1;
            let is_for_drive = matches!(request.wanted, Wanted::Drive(_));
            self.counts.requests += u64::from(is_for_drive);
            self.counts.refused += u64::from(matches!(request.wanted, Wanted::Refused(_)));
            self.in_flight.insert(self.tags, InFlight { queue, request });
            let line = if is_for_drive { &mut self.outside } else { &mut self.immediate };
            line.push_back(self.tags);
        }
        self.let_outside_in()?;
        self.note_next()
    }
}

fn channel(file: &OwnedFd) -> Result<Channel, GuestError> {
    let file =
        file.try_clone().map_err(|error| GuestError::system("taking the disk's own channel", error))?;
    Ok(Channel::new(Socket::new(UnixStream::from(file), "vhost-user backend")))
}

fn broken_queue(queue: u32, error: &virtio_queue::Error) -> GuestError {
    GuestError::protocol("vhost-user", format!("queue {queue}: {error}"), "rings in the guest's memory")
}
