//! A virtual machine that a test plays: it shares its memory, sets up a ring, and finds its requests done; or fills the ring with nonsense, and harms nobody.

use planewise_guest::contents::Contents;
use planewise_model::rng::generator;
use planewise_serve::order::{Done, Order, Orders};
use planewise_serve::store::Store;
use planewise_serve::vhost::Server;
use rand::RngExt;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const SECTORS: u64 = 2048;
/// The guest's memory, where its process has it, and where things are in it.
const MEMORY: u64 = 1 << 20;
const PROCESS: u64 = 0x7000_0000;
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const HEADERS: u64 = 0x4000;
const DATA: u64 = 0x10_000;
const ENTRIES: u16 = 16;

/// Answers at once, or keeps what it was asked until it is told to.
#[derive(Default)]
struct Orderly {
    keeps: bool,
    orders: Mutex<Vec<(Order, Option<Done>)>>,
}

impl Orders for Orderly {
    fn submit(&self, _: Instant, order: Order, done: Done) {
        if self.keeps {
            self.orders.lock().unwrap().push((order, Some(done)));
        } else {
            self.orders.lock().unwrap().push((order, None));
            done(true);
        }
    }
}

struct Machine {
    frontend: Frontend,
    memory: File,
    kick: EventFd,
    call: EventFd,
    next: u16,
}

impl Machine {
    fn boot(path: &Path) -> Machine {
        let mut frontend = Frontend::connect(path, 8).unwrap();
        let features = frontend.get_features().unwrap();
        assert_ne!(features & (1 << 30 | 1 << 32 | 1 << 9 | 1 << 12), 0, "{features:#x}");
        frontend.set_owner().unwrap();
        frontend.set_features(features).unwrap();
        let offered = frontend.get_protocol_features().unwrap();
        assert!(offered.contains(VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::MQ));
        frontend.set_protocol_features(offered & !VhostUserProtocolFeatures::REPLY_ACK).unwrap();
        assert!(frontend.get_queue_num().unwrap() >= 1);
        let (_, configuration) =
            frontend.get_config(0, 60, VhostUserConfigFlags::WRITABLE, &[0; 60]).unwrap();
        assert_eq!(configuration[..8], SECTORS.to_le_bytes());
        let memory: File = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap().into();
        ftruncate(&memory, MEMORY).unwrap();
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY,
            userspace_addr: PROCESS,
            mmap_offset: 0,
            mmap_handle: memory.as_raw_fd(),
        };
        frontend.set_mem_table(&[region]).unwrap();
        let (kick, call) = (EventFd::new(EFD_NONBLOCK).unwrap(), EventFd::new(EFD_NONBLOCK).unwrap());
        frontend.set_vring_num(0, ENTRIES).unwrap();
        let ring = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: PROCESS + DESCRIPTORS,
            used_ring_addr: PROCESS + USED,
            avail_ring_addr: PROCESS + AVAILABLE,
            log_addr: None,
        };
        frontend.set_vring_addr(0, &ring).unwrap();
        frontend.set_vring_base(0, 0).unwrap();
        frontend.set_vring_call(0, &call).unwrap();
        frontend.set_vring_kick(0, &kick).unwrap();
        frontend.set_vring_enable(0, true).unwrap();
        Machine { frontend, memory, kick, call, next: 0 }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    fn get<const COUNT: usize>(&self, at: u64) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.memory.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn descriptor(&self, index: u16, address: u64, length: u32, flags: u16, next: u16) {
        let bytes =
            [&address.to_le_bytes()[..], &length.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        self.put(DESCRIPTORS + 16 * u64::from(index), &bytes.concat());
    }

    /// Puts a request in the ring: header, data, status.
    fn enqueue(&mut self, kind: u32, sector: u64, bytes: u32, is_read: bool) {
        self.put(HEADERS, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes(), &[0xff]].concat());
        self.descriptor(0, HEADERS, 16, 1, if bytes > 0 { 1 } else { 2 });
        self.descriptor(1, DATA, bytes, 1 | if is_read { 2 } else { 0 }, 2);
        self.descriptor(2, HEADERS + 16, 1, 2, 0);
        self.make_available(0);
    }

    fn make_available(&mut self, head: u16) {
        self.put(AVAILABLE + 4 + 2 * u64::from(self.next % ENTRIES), &head.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        self.put(AVAILABLE + 2, &self.next.to_le_bytes());
        self.kick.write(1).unwrap();
    }

    fn used(&self) -> u16 {
        u16::from_le_bytes(self.get(USED + 2))
    }

    /// Waits until all is used; the status of the last request.
    fn wait(&self) -> u8 {
        let begun = Instant::now();
        while self.used() != self.next {
            assert!(begun.elapsed() < Duration::from_secs(10), "{} of {}", self.used(), self.next);
            std::thread::sleep(Duration::from_micros(200));
        }
        self.get::<1>(HEADERS + 16)[0]
    }

    fn ask(&mut self, kind: u32, sector: u64, bytes: u32, is_read: bool) -> u8 {
        self.enqueue(kind, sector, bytes, is_read);
        self.wait()
    }
}

fn serve(keeps: bool) -> (Server, Arc<Orderly>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let orders = Arc::new(Orderly { keeps, ..Orderly::default() });
    let store = Arc::new(Store::new(Contents::new(SECTORS).unwrap(), false));
    let path = directory.path().join("s");
    let server = Server::start(&path, store, orders.clone(), Box::new(|_| {})).unwrap();
    (server, orders, directory)
}

#[test]
fn what_a_guest_writes_it_reads_and_what_cannot_be_is_refused() {
    let (server, orders, directory) = serve(false);
    let mut machine = Machine::boot(&directory.path().join("s"));
    machine.put(DATA, &[0x5a; 8192]);
    assert_eq!(machine.ask(1, 16, 8192, false), 0);
    machine.put(DATA, &[0; 8192]);
    assert_eq!(machine.ask(0, 16, 8192, true), 0);
    assert_eq!(machine.get::<8192>(DATA), [0x5a; 8192]);
    assert_eq!(machine.ask(4, 0, 0, false), 0);
    machine.put(DATA, &[&16u64.to_le_bytes()[..], &8u32.to_le_bytes(), &[0; 4]].concat());
    assert_eq!(machine.ask(11, 0, 16, false), 0);
    assert_eq!(machine.ask(0, 16, 8192, true), 0);
    let read = machine.get::<8192>(DATA);
    assert!(read[..4096] == [0; 4096] && read[4096..] == [0x5a; 4096]);
    assert_eq!(machine.ask(8, 0, 20, true), 0);
    assert_eq!(&machine.get::<9>(DATA), b"planewise");
    for (kind, sector, bytes, is_read, status) in [
        (0, SECTORS, 512, true, 1),
        (0, u64::MAX, 512, true, 1),
        (1, 0, 100, false, 1),
        (77, 0, 512, true, 2),
    ] {
        assert_eq!(machine.ask(kind, sector, bytes, is_read), status, "{kind} at {sector}");
    }
    let orders: Vec<Order> = orders.orders.lock().unwrap().iter().map(|(order, _)| *order).collect();
    assert_eq!(orders[0], Order::Write { at: 8192, bytes: 8192, is_forced: false });
    assert_eq!(orders[3], Order::Discard { at: 8192, bytes: 4096, is_forced: false });
    assert_eq!(orders.len(), 5);
    assert!(machine.call.read().unwrap() > 0, "the guest was told");
    assert_eq!(server.counter()(), 1);
}

#[test]
fn an_answer_comes_when_the_drive_has_it_and_a_queue_stops_behind_it() {
    let (server, orders, directory) = serve(true);
    let mut machine = Machine::boot(&directory.path().join("s"));
    machine.put(DATA, &[0x5a; 512]);
    machine.enqueue(1, 0, 512, false);
    let begun = Instant::now();
    while orders.orders.lock().unwrap().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((machine.used(), machine.get::<1>(HEADERS + 16)[0]), (0, 0xff), "not before");
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        let done = orders.orders.lock().unwrap()[0].1.take().unwrap();
        done(false);
    });
    assert_eq!(machine.frontend.get_vring_base(0).unwrap(), 1, "the next entry");
    assert_eq!(
        (machine.used(), machine.get::<1>(HEADERS + 16)[0]),
        (1, 1),
        "an error of the drive is one of the guest's"
    );
    later.join().unwrap();
    drop(server);
    assert!(!directory.path().join("s").exists());
}

#[test]
fn rings_full_of_nonsense_harm_no_later_guest() {
    let (_server, _, directory) = serve(false);
    let path = directory.path().join("s");
    for seed in 0..60 {
        let mut random = generator(seed, "nonsense");
        let mut machine = Machine::boot(&path);
        for _ in 0..30 {
            // Descriptors of any kind, or plausible ones with a slip.
            for index in 0..ENTRIES {
                let address = match random.random_range(0..4) {
                    0 => random.random(),
                    1 => MEMORY - random.random_range(0..20),
                    _ => random.random_range(0..MEMORY),
                };
                let length = if random.random_range(0..4) == 0 {
                    random.random()
                } else {
                    random.random_range(0..9000)
                };
                machine.descriptor(
                    index,
                    address,
                    length,
                    random.random_range(0..8),
                    random.random_range(0..20),
                );
            }
            let kinds = [0u32, 1, 4, 8, 11, 13, random.random()];
            let kind = kinds[random.random_range(0..kinds.len())];
            let sector: u64 =
                if random.random_range(0..3) == 0 { random.random() } else { random.random_range(0..3000) };
            machine.put(HEADERS, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
            if random.random() {
                machine.descriptor(0, HEADERS, 16, 1, 1);
            }
            machine.make_available(random.random_range(0..20));
            if random.random_range(0..10) == 0 {
                // More than there are.
                machine.next = machine.next.wrapping_add(random.random());
                machine.put(AVAILABLE + 2, &machine.next.to_le_bytes());
                machine.kick.write(1).unwrap();
            }
        }
    }
    let mut machine = Machine::boot(&path);
    machine.put(DATA, &[7; 512]);
    assert_eq!(machine.ask(1, 5, 512, false), 0);
    assert_eq!(machine.ask(0, 5, 512, true), 0);
}

#[test]
fn messages_without_sense_end_no_server() {
    use std::io::Write;
    let (_server, _, directory) = serve(false);
    let path = directory.path().join("s");
    for seed in 0..40 {
        let mut random = generator(seed, "messages");
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        for _ in 0..10 {
            let request: u32 =
                if random.random_range(0..8) == 0 { random.random() } else { random.random_range(0..45) };
            let mut payload: Vec<u8> = (0..random.random_range(0..300)).map(|_| random.random()).collect();
            if random.random() {
                payload.iter_mut().skip(1).step_by(2).for_each(|byte| *byte = 0);
            }
            let size = if random.random_range(0..8) == 0 { random.random() } else { payload.len() as u32 };
            let header = [request, 1 | 8, size].map(u32::to_le_bytes).concat();
            if stream.write_all(&[header, payload].concat()).is_err() {
                break;
            }
        }
    }
    assert_eq!(Machine::boot(&path).ask(4, 0, 0, false), 0);
}
