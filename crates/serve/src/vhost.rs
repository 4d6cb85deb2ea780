//! A virtio disk for QEMU and Cloud Hypervisor (vhost-user-blk): their guests' rings, in memory that they share with us.
//!
//! The library speaks the protocol; requests are read and answered by `planewise_guest::block`. Data are moved when a request is seen; the status follows when
//! it is time, from the drive's own thread.

use crate::error::ServeError;
use crate::nbd::server::listen_at;
use crate::order::{Order, Orders};
use crate::store::Store;
use planewise_guest::block::{self, GuestRequest, Wanted};
use planewise_model::{Direction, Ns, Operation, Request, SECTOR_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost::vhost_user::{Error as ProtocolError, Listener};
use vhost_user_backend::{
    Error as DaemonError, ShutdownHandle, VhostUserBackend, VhostUserDaemon, VringMutex, VringT,
};
use virtio_queue::QueueT;
use vm_memory::{Bytes, GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::event::{EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier};

/// Queues, at most: one for each processor of the guest.
const QUEUES: usize = 8;
/// Entries of a queue, at most.
const ENTRIES: usize = 1024;
/// There may be several queues (virtio 1.2, section 5.2.3).
const SEVERAL_QUEUES: u64 = 1 << 12;
/// Where the configuration says how many.
const CONFIGURED_QUEUES: usize = 34;
const SERIAL: &str = "planewise";
/// How often a listener that nobody connects to looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// How long a queue that is being stopped waits for what is under way.
const STOP_MAX: Duration = Duration::from_secs(60);

type Memory = GuestMemoryAtomic<GuestMemoryMmap>;

/// Requests under way, by queue.
#[derive(Default)]
struct UnderWay {
    counts: Mutex<[usize; QUEUES]>,
    fewer: Condvar,
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, [usize; QUEUES]> {
        self.counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn leave(&self, queue: usize) {
        self.lock()[queue] -= 1;
        self.fewer.notify_all();
    }
}

struct Disk {
    store: Arc<Store>,
    orders: Arc<dyn Orders>,
    memory: Mutex<Option<Memory>>,
    under_way: Arc<UnderWay>,
    exit: (EventConsumer, EventNotifier),
}

impl Disk {
    fn new(store: Arc<Store>, orders: Arc<dyn Orders>) -> io::Result<Disk> {
        let exit = new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC)?;
        let (memory, under_way) = (Mutex::new(None), Arc::default());
        Ok(Disk { store, orders, memory, under_way, exit })
    }

    fn memory(&self) -> MutexGuard<'_, Option<Memory>> {
        self.memory.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes everything that a queue has.
    fn serve(&self, queue: usize, vring: &VringMutex<Memory>) {
        let Some(space) = self.memory().clone() else { return };
        let memory = space.memory();
        loop {
            let request = {
                let mut ring = vring.get_mut();
                let ring = ring.get_queue_mut();
                // Rings that lie in no memory, or a guest that puts more in its queue than that has room for: it is not listened to.
                if !ring.is_valid(&*memory) || self.under_way.lock()[queue] >= usize::from(ring.size()) {
                    return;
                }
                let Some(chain) = ring.pop_descriptor_chain(&*memory) else { return };
                GuestRequest::read(chain, &memory, self.store.contents(), Ns::ZERO)
            };
            self.carry_out(queue, vring, request, &space);
        }
    }

    fn carry_out(&self, queue: usize, vring: &VringMutex<Memory>, mut request: GuestRequest, space: &Memory) {
        let arrival = Instant::now();
        let memory = space.memory();
        request.take_in(&memory, self.store.contents());
        request.fill(&memory, self.store.contents(), SERIAL);
        let order = match &request.wanted {
            Wanted::Drive(request) => Some(order(request)),
            Wanted::Serial | Wanted::Refused(_) => None,
        };
        self.under_way.lock()[queue] += 1;
        let (vring, under_way) = (vring.clone(), Arc::clone(&self.under_way));
        let store = Arc::clone(&self.store);
        // This memory, whatever the guest is given in the meantime.
        let memory = memory.clone();
        let mut done = move |is_done: bool| {
            if !is_done {
                request.fail();
            }
            let written = request.answer(&memory, store.contents(), SERIAL);
            // A guest that broke its rings meanwhile is not told.
            if vring.add_used(request.head, written).is_ok() && wants_to_be_told(&vring, &memory) {
                let _ = vring.signal_used_queue();
            }
            under_way.leave(queue);
        };
        match order {
            Some(order) => self.orders.submit(arrival, order, Box::new(done)),
            None => done(true),
        }
    }
}

fn wants_to_be_told(vring: &VringMutex<Memory>, memory: &GuestMemoryMmap) -> bool {
    // It may say so after it has looked at what is used; then it looks again, and finds this one.
    fence(Ordering::SeqCst);
    let flags = GuestAddress(vring.get_ref().get_queue().avail_ring());
    memory.read_obj::<u16>(flags).is_ok_and(|flags| flags & 1 == 0)
}

fn order(request: &Request) -> Order {
    let at = request.start.0 * SECTOR_BYTES;
    let bytes = request.bytes().0;
    match (request.operation, request.direction) {
        (Operation::Flush | Operation::FlushWithMetadata, _) => Order::Flush,
        (Operation::Discard, _) => Order::Discard { at, bytes, is_forced: false },
        (Operation::Transfer, Direction::Read) => Order::Read { at, bytes },
        (Operation::Transfer, Direction::Write) => Order::Write { at, bytes, is_forced: false },
    }
}

impl VhostUserBackend for Disk {
    type Bitmap = ();
    type Vring = VringMutex<Memory>;

    fn num_queues(&self) -> usize {
        QUEUES
    }

    fn max_queue_size(&self) -> usize {
        ENTRIES
    }

    fn features(&self) -> u64 {
        block::FEATURES | SEVERAL_QUEUES
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
    }

    fn set_event_idx(&self, _: bool) {}

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        let mut all = block::configuration(self.store.contents().sectors(), 4096);
        all[CONFIGURED_QUEUES..CONFIGURED_QUEUES + 2].copy_from_slice(&(QUEUES as u16).to_le_bytes());
        let at = |index: u32| all.get(offset.saturating_add(index) as usize).copied().unwrap_or(0);
        (0..size).map(at).collect()
    }

    fn update_memory(&self, memory: Memory) -> io::Result<()> {
        *self.memory() = Some(memory);
        Ok(())
    }

    fn exit_event(&self, _: usize) -> Option<(EventConsumer, EventNotifier)> {
        Some((self.exit.0.try_clone().ok()?, self.exit.1.try_clone().ok()?))
    }

    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        let begin = Instant::now();
        let mut counts = self.under_way.lock();
        while counts.get(queue as usize).is_some_and(|count| *count > 0) {
            let left = STOP_MAX.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(io::Error::other("requests of a queue that is being stopped take too long"));
            }
            counts = match self.under_way.fewer.wait_timeout(counts, left) {
                Ok((counts, _)) => counts,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        Ok(())
    }

    fn handle_event(&self, event: u16, _: EventSet, vrings: &[Self::Vring], _: usize) -> io::Result<()> {
        let queue = usize::from(event);
        if let Some(vring) = vrings.get(queue) {
            self.serve(queue, vring);
        }
        Ok(())
    }
}

/// A running server; one guest at a time.
pub struct Server {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    clients: Arc<AtomicUsize>,
    connection: Arc<Mutex<Option<ShutdownHandle>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and serves whoever connects; `report` is told of those that do not speak the protocol.
    ///
    /// # Errors
    /// The place cannot be had.
    pub fn start(
        path: &Path,
        store: Arc<Store>,
        orders: Arc<dyn Orders>,
        report: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Server, ServeError> {
        let failed = |error| ServeError::system("starting the server's thread", error);
        let socket = listen_at(path)?;
        let waiting = socket.try_clone().map_err(failed)?;
        let (is_over, clients, connection) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::default());
        let state = (Arc::clone(&is_over), Arc::clone(&clients), Arc::clone(&connection));
        let serve_all = move || {
            let (is_over, clients, connection): (_, _, Arc<Mutex<Option<ShutdownHandle>>>) = state;
            let mut listener = Listener::from(socket);
            while !is_over.load(Ordering::SeqCst) {
                if !is_wanted(&waiting) {
                    continue;
                }
                let mut serve = || -> Result<(), String> {
                    let disk = Disk::new(Arc::clone(&store), Arc::clone(&orders))
                        .map_err(|error| error.to_string())?;
                    let memory = GuestMemoryAtomic::new(GuestMemoryMmap::new());
                    let mut daemon = VhostUserDaemon::new("vhost-user".into(), Arc::new(disk), memory)
                        .map_err(|error| error.to_string())?;
                    daemon.start(&mut listener).map_err(|error| error.to_string())?;
                    let handle = daemon.shutdown_handle();
                    let set =
                        |handle| *connection.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = handle;
                    set(handle.clone());
                    // Whoever ended us meanwhile has not seen it.
                    if let Some(handle) = handle.filter(|_| is_over.load(Ordering::SeqCst)) {
                        handle.shutdown();
                    }
                    clients.store(1, Ordering::SeqCst);
                    let outcome = daemon.wait();
                    clients.store(0, Ordering::SeqCst);
                    set(None);
                    match outcome {
                        // Guests end as they like.
                        Ok(())
                        | Err(DaemonError::HandleRequest(
                            ProtocolError::Disconnected | ProtocolError::PartialMessage,
                        )) => Ok(()),
                        Err(error) => Err(error.to_string()),
                    }
                };
                if let Err(error) = serve() {
                    report(&format!("vhost-user: {error}"));
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("vhost-user".into()).spawn(serve_all).map_err(failed)?;
        Ok(Server { path: path.to_owned(), is_over, clients, connection, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Guests, for another thread to ask for.
    pub fn counter(&self) -> impl Fn() -> usize + Send + use<> {
        let clients = Arc::clone(&self.clients);
        move || clients.load(Ordering::SeqCst)
    }
}

/// Waits a while for a guest; whether there is one.
fn is_wanted(socket: &impl AsFd) -> bool {
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as _ };
    poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)], Some(&look))
        .is_ok_and(|ready| ready > 0)
}

impl Drop for Server {
    /// Takes no more guests, and hangs up on the one that there is.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let handle = self.connection.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(handle) = handle {
            handle.shutdown();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}
