//! A kernel that a test plays: it asks for time, sets up a disk, and finds its requests done at the nanosecond that pen and paper say.

use planewise_guest::contents::Contents;
use planewise_guest::drive::Drive;
use planewise_guest::session::Sharing;
use planewise_guest::{Disk, DiskCounts, GuestError, Session, Unattended};
use planewise_model::{Ns, Profile};
use planewise_sim::RunConfig;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Of a page of 4 KiB on `gc-128g`: 10 ns a byte.
const TRANSFER: u64 = 40_960;
const READ: u64 = 30_000;
const PROGRAM: u64 = 600_000;
const NEVER: u64 = i64::MAX as u64;

/// Where things are in the guest's memory, and where the kernel's process says that this begins.
const MEMORY: u64 = 1 << 20;
const PROCESS: u64 = 0x6000_0000;
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const HEADERS: u64 = 0x4000;
const DATA: u64 = 0x10_000;
const ENTRIES: u64 = 16;

struct Kernel {
    time: UnixStream,
    disk: UnixStream,
    channel: UnixStream,
    sharing: Sharing,
    schedule: Option<MmapRegion>,
    memory: MmapRegion,
    file: OwnedFd,
    now: u64,
    next: u16,
    seen: u16,
    number: u32,
}

fn message(operation: u32, sequence: u32, time: u64) -> Vec<u8> {
    [&operation.to_ne_bytes()[..], &sequence.to_ne_bytes(), &time.to_ne_bytes()].concat()
}

fn send_files(stream: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    assert_eq!(
        sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty()).unwrap(),
        bytes.len()
    );
}

type Run = JoinHandle<(Result<(), GuestError>, DiskCounts)>;

impl Kernel {
    /// Boots on a drive.
    fn boot(profile: &str, sharing: Sharing) -> (Kernel, Run) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        let listener = UnixListener::bind(&path).unwrap();
        let (time, theirs) = UnixStream::pair().unwrap();
        let mut profile = Profile::embedded(profile).unwrap();
        profile.geometry.blocks_per_plane = 64;
        profile.interface.command_queue = "ncq:32".into();
        let run = std::thread::spawn(move || {
            let drive = Drive::new(&RunConfig::new(profile), true, ()).unwrap();
            let contents = Contents::new(drive.sectors()).unwrap();
            let disk = Disk::new(listener, drive, contents, 4096, "planewise");
            let mut session = Session::new(theirs, vec![disk], sharing);
            let result = session.run(&mut Unattended);
            let disk = session.into_disks().pop().unwrap();
            let counts = disk.counts();
            disk.into_parts().0.into_observer().1.unwrap();
            (result, counts)
        });
        let disk = UnixStream::connect(&path).unwrap();
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, MEMORY).unwrap();
        let memory =
            MmapRegion::from_file(FileOffset::new(file.try_clone().unwrap().into(), 0), MEMORY as usize)
                .unwrap();
        let (channel, for_disk) = UnixStream::pair().unwrap();
        let mut kernel = Kernel {
            time,
            disk,
            channel,
            sharing,
            schedule: None,
            memory,
            file,
            now: 0,
            next: 0,
            seen: 0,
            number: 0,
        };
        kernel.start();
        kernel.set_up(&for_disk);
        (kernel, run)
    }

    fn start(&mut self) {
        self.time.write_all(&message(1, 1, 0)).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = rustix::net::RecvAncillaryBuffer::new(&mut space);
        let mut answer = [0; 16];
        let parts = &mut [std::io::IoSliceMut::new(&mut answer)];
        rustix::net::recvmsg(&self.time, parts, &mut ancillary, rustix::net::RecvFlags::empty()).unwrap();
        let files: Vec<OwnedFd> = ancillary
            .drain()
            .flat_map(|message| match message {
                rustix::net::RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<_>>(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(files.len(), 2, "descriptors come whether the schedule is shared or not");
        let schedule =
            MmapRegion::from_file(FileOffset::new(files[0].try_clone().unwrap().into(), 0), 4096 + 8 * 128)
                .unwrap();
        let version: u32 = schedule.as_volatile_slice().read_obj(0).unwrap();
        assert_eq!(version, if self.sharing == Sharing::Memory { 2 } else { 0 });
        self.schedule = (version == 2).then_some(schedule);
    }

    /// Sends a request about the disk, and reads the answer.
    fn ask(&mut self, number: u32, payload: &[u8], files: &[BorrowedFd<'_>]) -> Vec<u8> {
        let header = [number, 1 | 8, payload.len() as u32].map(u32::to_le_bytes).concat();
        let bytes = [header, payload.to_vec()].concat();
        if files.is_empty() {
            self.disk.write_all(&bytes).unwrap();
        } else {
            send_files(&self.disk, &bytes, files);
        }
        loop {
            // Before a kick is answered the kernel may be told until when it may go on.
            let heard = planewise_guest::socket::wait_for_one(
                &[self.disk.as_fd(), self.time.as_fd()],
                std::time::Duration::from_secs(20),
            )
            .unwrap();
            if heard[0] {
                break;
            }
            self.hear();
        }
        let mut header = [0; 12];
        self.disk.read_exact(&mut header).unwrap();
        assert_eq!(u32::from_le_bytes(header[..4].try_into().unwrap()), number);
        let mut payload = vec![0; u32::from_le_bytes(header[8..].try_into().unwrap()) as usize];
        self.disk.read_exact(&mut payload).unwrap();
        payload
    }

    fn set_up(&mut self, channel: &UnixStream) {
        let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let pair = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        assert!(self.ask(1, &[], &[])[3] & 0x40 != 0, "features of the protocol");
        self.ask(16, &words(&[1 << 3 | 1 << 5 | 1 << 9 | 1 << 14]), &[]);
        let sectors = self.ask(24, &[pair(0, 60), 0u32.to_le_bytes().to_vec(), vec![0; 60]].concat(), &[]);
        assert!(u64::from_le_bytes(sectors[12..20].try_into().unwrap()) > 1_000_000);
        let file = self.file.try_clone().unwrap();
        let table = [pair(1, 0), words(&[0, MEMORY, PROCESS, 0])].concat();
        self.ask(5, &table, &[file.as_fd()]);
        self.ask(8, &pair(0, ENTRIES as u32), &[]);
        let addresses = [DESCRIPTORS, USED, AVAILABLE].map(|at| PROCESS + at);
        self.ask(9, &[pair(0, 0), words(&addresses), words(&[0])].concat(), &[]);
        self.ask(10, &pair(0, 0), &[]);
        self.ask(21, &[], &[channel.as_fd()]);
        self.ask(18, &pair(0, 1), &[]);
    }

    fn put<T: vm_memory::ByteValued>(&self, at: u64, value: T) {
        self.memory.as_volatile_slice().write_obj(value, at as usize).unwrap();
    }

    fn get<T: vm_memory::ByteValued>(&self, at: u64) -> T {
        self.memory.as_volatile_slice().read_obj(at as usize).unwrap()
    }

    fn descriptor(&self, index: u64, address: u64, length: u32, flags: u16, next: u16) {
        let at = DESCRIPTORS + 16 * index;
        self.put(at, address);
        self.put(at + 8, length);
        self.put(at + 12, flags);
        self.put(at + 14, next);
    }

    /// Puts a request in the queue: three descriptors, header, data, status. Slot `n` uses descriptors from 3n on.
    fn enqueue(&mut self, slot: u64, kind: u32, sector: u64, bytes: u32) {
        let header = HEADERS + 32 * slot;
        self.put(header, kind);
        self.put(header + 8, sector);
        self.put(header + 16, 0xffu8);
        let (first, has_data) = (3 * slot, bytes > 0);
        let reads = matches!(kind, 0 | 8);
        self.descriptor(first, header, 16, 1, if has_data { first + 1 } else { first + 2 } as u16);
        self.descriptor(first + 1, DATA + 0x4000 * slot, bytes, if reads { 3 } else { 1 }, first as u16 + 2);
        self.descriptor(first + 2, header + 16, 1, 2, 0);
        self.put(AVAILABLE + 4 + 2 * (u64::from(self.next) % ENTRIES), first as u16);
        self.next = self.next.wrapping_add(1);
        self.put(AVAILABLE + 2, self.next);
    }

    fn status(&self, slot: u64) -> u8 {
        self.get(HEADERS + 32 * slot + 16)
    }

    /// Tells the disk, at a time.
    fn kick(&mut self, at: u64) {
        self.now = at;
        match &self.schedule {
            Some(schedule) => schedule.as_volatile_slice().write_obj(at, 16).unwrap(),
            None => self.say(5, at),
        }
        self.ask(35, &[0u32.to_le_bytes(), 0u32.to_le_bytes()].concat(), &[]);
    }

    /// Says something about time, and waits for the answer.
    fn say(&mut self, operation: u32, time: u64) {
        self.number += 1;
        self.time.write_all(&message(operation, self.number, time)).unwrap();
        self.hear_answer();
    }

    /// Hears on until what was said last is acknowledged.
    fn hear_answer(&mut self) -> u64 {
        loop {
            if let (0, sequence, time) = self.hear()
                && sequence == self.number
            {
                return time;
            }
        }
    }

    /// Hears something about time; acknowledges what wants that.
    fn hear(&mut self) -> (u32, u32, u64) {
        let mut bytes = [0; 16];
        self.time.read_exact(&mut bytes).unwrap();
        let operation = u32::from_ne_bytes(bytes[..4].try_into().unwrap());
        let time = u64::from_ne_bytes(bytes[8..].try_into().unwrap());
        let sequence = u32::from_ne_bytes(bytes[4..8].try_into().unwrap());
        if operation != 0 && self.schedule.is_none() {
            self.time.write_all(&message(0, sequence, 0)).unwrap();
        }
        (operation, sequence, time)
    }

    fn ask_to_run(&mut self, at: u64) {
        match &self.schedule {
            Some(schedule) => {
                let memory = schedule.as_volatile_slice();
                memory.write_obj(at, 4096 + 128 + 8).unwrap();
                memory.write_obj(1u32, 4096 + 128 + 4).unwrap();
            }
            None => self.say(2, at),
        }
    }

    /// Waits until told of completions or until a time that it asks for; returns the time, and slots whose requests are done.
    fn wait(&mut self, timer: Option<u64>) -> (u64, Vec<u64>) {
        if let Some(at) = timer {
            self.ask_to_run(at);
        }
        self.number += 1;
        self.time.write_all(&message(3, self.number, 0)).unwrap();
        let mut done = Vec::new();
        loop {
            let heard = planewise_guest::socket::wait_for_one(
                &[self.channel.as_fd(), self.time.as_fd()],
                std::time::Duration::from_secs(20),
            )
            .unwrap();
            if heard[0] {
                let mut call = [0; 20];
                self.channel.read_exact(&mut call).unwrap();
                let used: u16 = self.get(USED + 2);
                while self.seen != used {
                    let head: u32 = self.get(USED + 4 + 8 * (u64::from(self.seen) % ENTRIES));
                    done.push(u64::from(head) / 3);
                    self.seen = self.seen.wrapping_add(1);
                }
                self.now = match &self.schedule {
                    Some(schedule) => schedule.as_volatile_slice().read_obj(16).unwrap(),
                    None => self.time_now(),
                };
                self.ask_to_run(self.now);
                let answer =
                    [&4u32.to_le_bytes()[..], &5u32.to_le_bytes(), &8u32.to_le_bytes(), &[0; 8]].concat();
                self.channel.write_all(&answer).unwrap();
                continue;
            }
            if let (6, _, time) = self.hear() {
                self.now = time;
                return (time, done);
            }
        }
    }

    fn time_now(&mut self) -> u64 {
        self.number += 1;
        self.time.write_all(&message(4, self.number, 0)).unwrap();
        self.hear_answer()
    }

    fn power_off(self, run: Run) -> (Result<(), GuestError>, DiskCounts) {
        drop(self);
        run.join().unwrap()
    }
}

const ALL: [Sharing; 3] = [Sharing::Memory, Sharing::Messages, Sharing::None];

#[test]
fn requests_are_done_when_pen_and_paper_say_and_reads_return_what_was_written() {
    for sharing in ALL {
        let (mut kernel, run) = Kernel::boot("gc-128g", sharing);
        let pattern: Vec<u8> = (0..4096u32).map(|at| (at * 7 % 251) as u8).collect();
        kernel.memory.as_volatile_slice().write_slice(&pattern, DATA as usize).unwrap();
        kernel.enqueue(0, 1, 80, 4096);
        kernel.kick(1_000);
        let (at, done) = kernel.wait(None);
        assert_eq!((at, done), (1_000 + TRANSFER + PROGRAM, vec![0]), "{sharing:?}: a write");
        kernel.enqueue(1, 0, 80, 4096);
        kernel.kick(at + 500);
        let (end, done) = kernel.wait(None);
        assert_eq!((end, done), (at + 500 + READ + TRANSFER, vec![1]), "{sharing:?}: a read");
        let mut read = vec![0; 4096];
        kernel.memory.as_volatile_slice().read_slice(&mut read, (DATA + 0x4000) as usize).unwrap();
        assert!(read == pattern, "{sharing:?}: what was written");
        assert_eq!((kernel.status(0), kernel.status(1)), (0, 0));
        let (result, counts) = kernel.power_off(run);
        result.unwrap();
        assert_eq!(
            (counts.requests, counts.refused, counts.kicks, counts.calls),
            (2, 0, 2, 2),
            "{sharing:?}"
        );
    }
}

#[test]
fn a_timer_goes_before_a_completion_and_a_second_request_is_served_beside_the_first() {
    for sharing in ALL {
        let (mut kernel, run) = Kernel::boot("gc-128g", sharing);
        kernel.enqueue(0, 0, 0, 4096);
        kernel.kick(100);
        assert_eq!(kernel.wait(Some(10_000)), (10_000, vec![]), "{sharing:?}");
        // The next page is on another channel.
        kernel.enqueue(1, 0, 8, 4096);
        kernel.kick(12_000);
        assert_eq!(kernel.wait(None), (100 + READ + TRANSFER, vec![0]), "{sharing:?}");
        assert_eq!(kernel.wait(None), (12_000 + READ + TRANSFER, vec![1]), "{sharing:?}");
        kernel.power_off(run).0.unwrap();
    }
}

#[test]
fn discards_read_as_zeros_flushes_end_and_what_is_wrong_is_refused_without_harm() {
    let (mut kernel, run) = Kernel::boot("gc-128g", Sharing::Memory);
    kernel.memory.as_volatile_slice().write_slice(&[9; 8192], DATA as usize).unwrap();
    kernel.enqueue(0, 1, 0, 8192);
    kernel.kick(0);
    let (at, _) = kernel.wait(None);
    kernel.put(DATA + 0x4000, 8u64);
    kernel.put(DATA + 0x4008, 8u32);
    kernel.put(DATA + 0x400c, 0u32);
    kernel.enqueue(1, 11, 0, 16);
    kernel.enqueue(2, 4, 0, 0);
    kernel.kick(at);
    let (at, mut done) = kernel.wait(None);
    done.sort_unstable();
    assert_eq!(done, [1, 2]);
    kernel.enqueue(0, 0, 0, 8192);
    // Past the end of the drive, half a sector, and nothing that there is.
    kernel.enqueue(1, 0, u64::MAX - 3, 4096);
    kernel.enqueue(2, 1, 0, 700);
    kernel.enqueue(3, 77, 0, 512);
    kernel.enqueue(4, 8, 0, 20);
    kernel.kick(at + 5);
    let (now, mut done) = kernel.wait(None);
    done.sort_unstable();
    assert_eq!((now, done), (at + 5, vec![1, 2, 3, 4]), "what needs no drive is done at once");
    assert_eq!([1, 2, 3, 4].map(|slot| kernel.status(slot)), [1, 1, 2, 0]);
    assert_eq!(kernel.wait(None).1, [0]);
    let mut read = vec![1; 8192];
    kernel.memory.as_volatile_slice().read_slice(&mut read, DATA as usize).unwrap();
    assert!(read[..4096].iter().all(|&byte| byte == 9) && read[4096..].iter().all(|&byte| byte == 0));
    let mut serial = [0; 9];
    kernel.memory.as_volatile_slice().read_slice(&mut serial, (DATA + 0x10_000) as usize).unwrap();
    assert_eq!(&serial, b"planewise");
    let (result, counts) = kernel.power_off(run);
    result.unwrap();
    assert_eq!(counts.refused, 3);
}

#[test]
fn a_kernel_that_goes_past_a_completion_or_waits_for_nothing_is_told() {
    for sharing in [Sharing::Messages, Sharing::None] {
        let (mut kernel, run) = Kernel::boot("gc-128g", sharing);
        kernel.enqueue(0, 0, 0, 4096);
        kernel.kick(100);
        kernel.number += 1;
        kernel.time.write_all(&message(5, kernel.number, 10_000_000)).unwrap();
        let error = run.join().unwrap().0.unwrap_err();
        assert!(matches!(error, GuestError::Causality { kernel: Ns(10_000_000), .. }), "{error}");
    }
    let (mut kernel, run) = Kernel::boot("gc-128g", Sharing::Memory);
    kernel.time.write_all(&message(3, 9, NEVER)).unwrap();
    let error = run.join().unwrap().0.unwrap_err();
    assert!(matches!(error, GuestError::Deadlock { .. }), "{error}");
    kernel.now = 0;
}

#[test]
fn rings_full_of_nonsense_end_no_device() {
    use planewise_model::rng::generator;
    use rand::RngExt;
    for seed in 0..60 {
        let mut random = generator(seed, "nonsense");
        let (mut kernel, run) = Kernel::boot("gc-128g", Sharing::Memory);
        // Numbers that may be lengths, flags, descriptors, or addresses near the ends of what there is.
        for at in (0..0x800u64).step_by(8) {
            let value = match random.random_range(0..6) {
                0 => random.random::<u64>(),
                1 => random.random_range(0..64),
                2 => MEMORY - random.random_range(0..64u64),
                3 => u64::MAX - random.random_range(0..64u64),
                4 => HEADERS + random.random_range(0..256u64),
                _ => u64::from(random.random::<u32>() & 0x0007_0fff),
            };
            kernel.put(DESCRIPTORS + at, value);
            kernel.put(HEADERS + at, random.random::<u64>() & 0x0000_000f_0000_000f);
        }
        let entries = random.random_range(1..20u16);
        (0..ENTRIES).for_each(|at| kernel.put(AVAILABLE + 4 + 2 * at, random.random_range(0..40u16)));
        kernel.put(AVAILABLE + 2, entries);
        let schedule = kernel.schedule.as_ref().unwrap();
        schedule.as_volatile_slice().write_obj(5u64, 16).unwrap();
        let kick = [35u32, 1 | 8, 8, 0, 0].map(u32::to_le_bytes).concat();
        kernel.disk.write_all(&kick).unwrap();
        // An answer, or the end of a session that found the rings wrong.
        let _ = kernel.disk.read(&mut [0; 20]);
        let (result, counts) = kernel.power_off(run);
        assert!(
            result.is_ok() || matches!(result, Err(GuestError::Protocol { .. })),
            "seed {seed}: {result:?}"
        );
        assert!(counts.kicks == 1, "seed {seed}");
    }
}
