//! The kernel's driver for block devices in user space (Linux 6.5 and newer, Documentation/block/ublk.rst and include/uapi/linux/ublk_cmd.h).
//!
//! Written against the kernel's own interface: the crate `libublk` needs libclang to be built. The device is added, given its parameters and started by
//! commands on `/dev/ublk-control`; requests come as completions of commands on `/dev/ublkcN`, all from one thread, which alone may answer: the drive's
//! thread wakes it. Data are copied by reading and writing `/dev/ublkcN` (`UBLK_F_USER_COPY`).

use crate::error::ServeError;
use crate::order::{Order, Orders};
use crate::store::Store;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use planewise_model::SECTOR_BYTES;
use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where devices are made.
pub const CONTROL: &str = "/dev/ublk-control";

/// Requests at a time, and bytes of one, at most.
const DEPTH: u16 = 128;
const REQUEST_MAX: u32 = 512 << 10;
/// A descriptor of a request: operation and flags, sectors, start.
const DESCRIPTOR_BYTES: usize = 24;
/// Where the data of a request are in the device's file: from here on, 32 MiB for each tag.
const DATA: u64 = 0x8000_0000;
const DATA_BITS: u32 = 25;

/// Numbers of commands as `ioctl` has them: which way the data go, their size, the driver's letter, the command.
const fn command(direction: u32, number: u32, bytes: u32) -> u32 {
    direction << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}
const READS: u32 = 2;
const BOTH: u32 = 3;
const CONTROL_BYTES: usize = 32;
const ADD: u32 = command(BOTH, 0x04, CONTROL_BYTES as u32);
const DELETE: u32 = command(BOTH, 0x05, CONTROL_BYTES as u32);
const START: u32 = command(BOTH, 0x06, CONTROL_BYTES as u32);
const STOP: u32 = command(BOTH, 0x07, CONTROL_BYTES as u32);
const SET_PARAMETERS: u32 = command(BOTH, 0x08, CONTROL_BYTES as u32);
const DELETE_LATER: u32 = command(READS, 0x14, CONTROL_BYTES as u32);
const FETCH: u32 = command(BOTH, 0x20, 16);
const COMMIT_AND_FETCH: u32 = command(BOTH, 0x21, 16);

/// Features: commands with the numbers above, and data copied by us.
const IOCTL_NUMBERS: u64 = 1 << 6;
const USER_COPY: u64 = 1 << 7;
/// Attributes: a volatile cache, and forced unit access.
const ATTRIBUTES: u32 = 1 << 2 | 1 << 3;
/// Flag of a request: forced unit access.
const FORCED: u32 = 1 << 13;
/// Any device, and no queue.
const ANY: u32 = u32::MAX;
const NO_QUEUE: u16 = u16::MAX;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
/// Tag of what wakes the thread.
const WAKE: u64 = u64::MAX;

fn failed(what: &str, error: impl Into<io::Error>) -> ServeError {
    ServeError::system(format!("ublk: {what}"), error)
}

/// The file that devices are made by.
struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    fn open() -> io::Result<Control> {
        let file = File::options().read(true).write(true).open(CONTROL)?;
        Ok(Control { file, ring: IoUring::builder().build(4)? })
    }

    /// Sends a command about a device, with data that it reads or fills, and waits for it.
    fn send(&mut self, number: u32, device: u32, buffer: &mut [u8], word: u64) -> io::Result<()> {
        let mut header = [0; 80];
        header[..4].copy_from_slice(&device.to_ne_bytes());
        header[4..6].copy_from_slice(&NO_QUEUE.to_ne_bytes());
        header[6..8].copy_from_slice(&(buffer.len() as u16).to_ne_bytes());
        header[8..16].copy_from_slice(&(buffer.as_mut_ptr() as u64).to_ne_bytes());
        header[16..24].copy_from_slice(&word.to_ne_bytes());
        let file = types::Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(file, number).cmd(header).build();
        // SAFETY: file and buffer outlive the command: it is waited for below.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => match self.ring.completion().next() {
                    None => {}
                    Some(done) if done.result() < 0 => {
                        return Err(io::Error::from_raw_os_error(-done.result()));
                    }
                    Some(_) => return Ok(()),
                },
            }
        }
    }
}

/// Answers for the thread to hand over.
struct Answers {
    waiting: Mutex<Vec<(u16, i32)>>,
    wake: OwnedFd,
}

impl Answers {
    fn put(&self, tag: u16, result: i32) {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((tag, result));
        // It counts: a thread that is awake already finds one more.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<(u16, i32)> {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// The descriptors of requests, which the kernel writes.
struct Descriptors {
    memory: *mut std::ffi::c_void,
    bytes: usize,
}

impl Descriptors {
    fn map(device: &File) -> io::Result<Descriptors> {
        let bytes = (usize::from(DEPTH) * DESCRIPTOR_BYTES).next_multiple_of(rustix::param::page_size());
        // SAFETY: the kernel chooses the place; nobody else has it.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                device,
                0,
            )
        }?;
        Ok(Descriptors { memory, bytes })
    }

    /// That of a tag whose request was announced, which the kernel leaves alone until it is answered.
    fn get(&self, tag: u16) -> [u32; 4] {
        assert!(tag < DEPTH, "a tag of ours");
        let words = self.memory.cast::<u32>().wrapping_add(usize::from(tag) * DESCRIPTOR_BYTES / 4);
        // SAFETY: inside the mapping, by the assertion, and aligned: a page begins it, and descriptors have 24 bytes.
        std::array::from_fn(|index| unsafe { words.add(index).read_volatile() })
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and used by nobody any more. What cannot be unmapped stays.
        let _ = unsafe { munmap(self.memory, self.bytes) };
    }
}

/// The thread that has the requests.
struct Queue {
    device: File,
    store: Arc<Store>,
    orders: Arc<dyn Orders>,
    answers: Arc<Answers>,
    buffer: Vec<u8>,
}

impl Queue {
    /// Fetches and answers until the device is stopped.
    fn run(mut self, is_ready: &Sender<()>) -> io::Result<()> {
        let descriptors = Descriptors::map(&self.device)?;
        let mut ring: IoUring = IoUring::new(u32::from(DEPTH) * 2)?;
        for tag in 0..DEPTH {
            self.push(&mut ring, FETCH, tag, 0)?;
        }
        self.watch(&mut ring)?;
        ring.submit()?;
        let _ = is_ready.send(());
        let mut tags_left = DEPTH;
        while tags_left > 0 {
            match ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let done: Vec<(u64, i32)> =
                ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
            for (tag, result) in done {
                if tag == WAKE {
                    for (tag, result) in self.answers.take() {
                        self.push(&mut ring, COMMIT_AND_FETCH, tag, result)?;
                    }
                    self.watch(&mut ring)?;
                } else if result == 0 {
                    self.serve(tag as u16, descriptors.get(tag as u16));
                } else {
                    // The device is being stopped.
                    tags_left -= 1;
                }
            }
        }
        Ok(())
    }

    fn push(&self, ring: &mut IoUring, number: u32, tag: u16, result: i32) -> io::Result<()> {
        let mut header = [0; 16];
        header[2..4].copy_from_slice(&tag.to_ne_bytes());
        header[4..8].copy_from_slice(&result.to_ne_bytes());
        let file = types::Fd(self.device.as_raw_fd());
        let entry = opcode::UringCmd16::new(file, number).cmd(header).build().user_data(tag.into());
        // SAFETY: the file outlives the ring, which has no other memory of ours.
        unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    fn watch(&self, ring: &mut IoUring) -> io::Result<()> {
        let file = types::Fd(self.answers.wake.as_raw_fd());
        let entry = opcode::PollAdd::new(file, rustix::event::PollFlags::IN.bits().into()).build();
        // SAFETY: the file outlives the ring, which has no other memory of ours.
        unsafe { ring.submission().push(&entry.user_data(WAKE)) }.map_err(io::Error::other)
    }

    fn serve(&mut self, tag: u16, [operation, sectors, low, high]: [u32; 4]) {
        let arrival = Instant::now();
        let start = u64::from(low) | u64::from(high) << 32;
        let (at, bytes) = (start.saturating_mul(SECTOR_BYTES), u64::from(sectors) * SECTOR_BYTES);
        let is_forced = operation & FORCED != 0;
        let moved = match operation & 0xff {
            0 => self.read(tag, at, bytes).map(|()| (Order::Read { at, bytes }, bytes as i32)),
            1 => self.write(tag, at, bytes).map(|()| (Order::Write { at, bytes, is_forced }, bytes as i32)),
            2 => Ok((Order::Flush, 0)),
            3 | 5 => self
                .store
                .contents()
                .forget_bytes(at, bytes)
                .map(|()| (Order::Discard { at, bytes, is_forced }, 0)),
            _ => Err(io::Error::from_raw_os_error(EINVAL)),
        };
        match moved {
            Err(error) => self.answers.put(tag, -error.raw_os_error().unwrap_or(EIO)),
            Ok((order, result)) => {
                let answers = Arc::clone(&self.answers);
                let done = move |is_done: bool| answers.put(tag, if is_done { result } else { -EIO });
                self.orders.submit(arrival, order, Box::new(done));
            }
        }
    }

    fn part(&mut self, bytes: u64) -> io::Result<&mut [u8]> {
        self.buffer.get_mut(..bytes as usize).ok_or_else(|| io::Error::from_raw_os_error(EINVAL))
    }

    fn read(&mut self, tag: u16, at: u64, bytes: u64) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        let part = self.part(bytes)?;
        store.contents().read_bytes(at, part)?;
        self.device.write_all_at(&self.buffer[..bytes as usize], place(tag))
    }

    fn write(&mut self, tag: u16, at: u64, bytes: u64) -> io::Result<()> {
        self.part(bytes)?;
        self.device.read_exact_at(&mut self.buffer[..bytes as usize], place(tag))?;
        self.store.contents().write_bytes(at, &self.buffer[..bytes as usize])
    }
}

/// Where the data of a tag are in the device's file.
fn place(tag: u16) -> u64 {
    DATA + (u64::from(tag) << DATA_BITS)
}

/// A block device; gone when dropped.
pub struct Server {
    control: Control,
    id: u32,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Makes the device and starts it.
    ///
    /// # Errors
    /// The kernel has no such driver, an old one, or does not let us.
    pub fn start(store: Arc<Store>, orders: Arc<dyn Orders>) -> Result<Server, ServeError> {
        let mut control = Control::open().map_err(|error| failed(CONTROL, error))?;
        let mut about = [0; 64];
        about[..2].copy_from_slice(&1u16.to_ne_bytes());
        about[2..4].copy_from_slice(&DEPTH.to_ne_bytes());
        about[8..12].copy_from_slice(&REQUEST_MAX.to_ne_bytes());
        about[12..16].copy_from_slice(&ANY.to_ne_bytes());
        about[24..32].copy_from_slice(&(IOCTL_NUMBERS | USER_COPY).to_ne_bytes());
        control.send(ADD, ANY, &mut about, 0).map_err(|error| failed("adding a device", error))?;
        let id = u32::from_ne_bytes(about[12..16].try_into().expect("four bytes"));
        let features = u64::from_ne_bytes(about[24..32].try_into().expect("eight bytes"));
        // From here on, what was made is taken away again.
        let mut server = Server { control, id, thread: None };
        if features & USER_COPY == 0 {
            let error = io::Error::other("the kernel is older than 6.5: it cannot leave copying to us");
            return Err(failed("adding a device", error));
        }
        let mut parameters = parameters(store.contents().sectors());
        server
            .control
            .send(SET_PARAMETERS, id, &mut parameters, 0)
            .map_err(|error| failed("setting parameters", error))?;
        let path = format!("/dev/ublkc{id}");
        let device = open_soon(&path).map_err(|error| failed(&path, error))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| failed("making an eventfd", error))?;
        let answers = Arc::new(Answers { waiting: Mutex::default(), wake });
        let queue = Queue { device, store, orders, answers, buffer: vec![0; REQUEST_MAX as usize] };
        let (sender, is_ready) = channel();
        let thread = std::thread::Builder::new()
            .name("ublk".into())
            .spawn(move || queue.run(&sender))
            .map_err(|error| failed("starting the thread", error))?;
        if is_ready.recv().is_err() {
            let error = thread.join().map_or_else(
                |_| io::Error::other("it panicked"),
                |ended| ended.err().unwrap_or_else(|| io::Error::other("it ended")),
            );
            return Err(failed("fetching requests", error));
        }
        server.thread = Some(thread);
        server
            .control
            .send(START, id, &mut [], u64::from(std::process::id()))
            .map_err(|error| failed("starting the device", error))?;
        Ok(server)
    }

    /// The block device.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/ublkb{}", self.id))
    }
}

/// Parameters of a drive (`struct ublk_params`): basic ones, and those of discards.
fn parameters(sectors: u64) -> [u8; 112] {
    let mut bytes = [0; 112];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &112u32.to_ne_bytes());
    put(4, &(1u32 | 1 << 1).to_ne_bytes());
    put(8, &ATTRIBUTES.to_ne_bytes());
    // Logical and physical blocks, best and least transfers, as powers of two.
    put(12, &[9, 12, 12, 12]);
    put(16, &(REQUEST_MAX / SECTOR_BYTES as u32).to_ne_bytes());
    put(24, &sectors.to_ne_bytes());
    put(44, &4096u32.to_ne_bytes());
    put(48, &(1u32 << 22).to_ne_bytes());
    put(52, &(1u32 << 22).to_ne_bytes());
    put(56, &1u16.to_ne_bytes());
    bytes
}

/// A device's file appears a moment after the device, where somebody else makes it.
fn open_soon(path: &str) -> io::Result<File> {
    let begin = Instant::now();
    loop {
        match File::options().read(true).write(true).open(path) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
                    && begin.elapsed() < Duration::from_secs(2) =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

impl Drop for Server {
    /// Requests that nobody answered fail; whoever has the device open has a dead one.
    fn drop(&mut self) {
        let _ = self.control.send(STOP, self.id, &mut [], 0);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Waiting for it would be waiting for whoever has it open; kernels before 6.9 know no other way.
        if self.control.send(DELETE_LATER, self.id, &mut [], 0).is_err() {
            let _ = self.control.send(DELETE, self.id, &mut [], 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_parameters_are_what_the_kernel_s_header_says() {
        // _IOWR('u', 0x04, struct ublksrv_ctrl_cmd) and so on, as a C compiler has them.
        assert_eq!((ADD, FETCH, COMMIT_AND_FETCH), (0xc020_7504, 0xc010_7520, 0xc010_7521));
        assert_eq!(DELETE_LATER, 0x8020_7514);
        let bytes = parameters(2048);
        assert_eq!(u64::from_ne_bytes(bytes[24..32].try_into().unwrap()), 2048);
        assert_eq!(place(3), 0x8000_0000 + 3 * (32 << 20));
    }

    #[test]
    fn a_host_without_the_driver_says_so() {
        if std::path::Path::new(CONTROL).exists() {
            eprintln!("skipped: this host has the driver");
            return;
        }
        struct Nobody;
        impl Orders for Nobody {
            fn submit(&self, _: Instant, _: Order, _: crate::order::Done) {}
        }
        let contents = planewise_guest::contents::Contents::new(8).unwrap();
        let error = Server::start(Arc::new(Store::new(contents, false)), Arc::new(Nobody)).err().unwrap();
        assert!(error.to_string().contains(CONTROL), "{error}");
    }
}
