//! Sockets and connections.

use super::Export;
use super::negotiation::negotiate;
use super::replies::Replies;
use super::transmission::transmit;
use crate::error::ServeError;
use crate::order::Orders;
use crate::store::Store;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections at a time, at most.
const CONNECTIONS_MAX: usize = 16;
/// How long a client may take to say what it wants.
const NEGOTIATION_MAX: Duration = Duration::from_secs(10);
/// How long the last request of a client that was left may take.
const GOODBYE_MAX: Duration = Duration::from_secs(5);
/// How often a listener that nobody connects to looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A local socket.
    Unix(PathBuf),
    /// A port of an address.
    Tcp(SocketAddr),
}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// Waits a while for a client.
    fn wait(&self) {
        let end = match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        };
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as _ };
        // Whatever it says, the listener is asked next.
        let _ = poll(&mut [PollFd::from_borrowed_fd(end, PollFlags::IN)], Some(&look));
    }
}

/// Makes a local socket, in the place of one that nobody listens at.
///
/// # Errors
/// Something else is there, or somebody listens; the system's.
pub fn listen_at(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |error: io::Error| ServeError::system(format!("{}: cannot listen", path.display()), error);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ServeError::Option {
                option: "socket",
                found: format!("{}, which is no socket", path.display()),
                allowed: "a name that no file has".into(),
            });
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(ServeError::Option {
                option: "socket",
                found: format!("{}, at which another server listens", path.display()),
                allowed: "another name, or end that server".into(),
            });
        }
        Ok(_) => std::fs::remove_file(path).map_err(failed)?,
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // For whoever serves, and nobody else.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).map_err(failed)?;
    Ok(listener)
}

struct Shared {
    export: Export,
    store: Arc<Store>,
    orders: Arc<dyn Orders>,
    is_over: AtomicBool,
    /// By number: what to hang up at the end.
    connections: Mutex<BTreeMap<u64, Arc<Replies>>>,
    report: Box<dyn Fn(&str) + Send + Sync>,
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Replies>>> {
        self.connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    place: Place,
}

impl Server {
    /// Listens, and serves whoever connects; `report` is told of clients that do not speak the protocol.
    ///
    /// # Errors
    /// The place cannot be had.
    pub fn start(
        place: &Place,
        export: Export,
        store: Arc<Store>,
        orders: Arc<dyn Orders>,
        report: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Server, ServeError> {
        let (listener, place) = match place {
            Place::Unix(path) => (Listener::Unix(listen_at(path)?, path.clone()), place.clone()),
            Place::Tcp(address) => {
                let failed = |error| ServeError::system(format!("{address}: cannot listen"), error);
                let listener = TcpListener::bind(address).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                (Listener::Tcp(listener), Place::Tcp(address))
            }
        };
        let is_over = AtomicBool::new(false);
        let shared =
            Arc::new(Shared { export, store, orders, is_over, connections: Mutex::default(), report });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nbd".into())
            .spawn(move || accept_all(&listener, &for_thread))
            .map_err(|error| ServeError::system("starting the server's thread", error))?;
        Ok(Server { shared, thread: Some(thread), place })
    }

    /// Where it listens: the port that was found, where 0 was asked for.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Clients.
    pub fn connections(&self) -> usize {
        self.shared.connections().len()
    }

    /// The same for another thread.
    pub fn counter(&self) -> impl Fn() -> usize + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.connections().len()
    }
}

impl Drop for Server {
    /// Takes no more clients, and hangs up on those that there are.
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.connections().values().for_each(|replies| replies.hang_up());
        // What they do to the file they do before it is closed.
        let begin = Instant::now();
        while begin.elapsed() < GOODBYE_MAX && self.connections() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    let set = match listener {
        Listener::Unix(listener, _) => listener.set_nonblocking(true),
        Listener::Tcp(listener) => listener.set_nonblocking(true),
    };
    if let Err(error) = set {
        (shared.report)(&format!("nbd: {error}"));
        return;
    }
    let mut number = 0;
    while !shared.is_over.load(Ordering::SeqCst) {
        let accepted = match listener {
            Listener::Unix(listener, _) => listener.accept().map(|(stream, _)| OwnedFd::from(stream)),
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| {
                // An answer is due now, and not with the next one.
                let _ = stream.set_nodelay(true);
                OwnedFd::from(stream)
            }),
        };
        match accepted {
            Ok(socket) => {
                number += 1;
                if let Err(error) = begin(socket, number, shared) {
                    (shared.report)(&format!("nbd: connection {number}: {error}"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => listener.wait(),
            // No descriptors for another client, say: it is asked again.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    if let Listener::Unix(_, path) = listener {
        let _ = std::fs::remove_file(path);
    }
}

fn begin(socket: OwnedFd, number: u64, shared: &Arc<Shared>) -> io::Result<()> {
    ioctl_fionbio(&socket, false)?;
    let replies = Arc::new(Replies::new(socket.try_clone()?));
    {
        let mut connections = shared.connections();
        if connections.len() >= CONNECTIONS_MAX {
            return Err(io::Error::other(format!("refused: {CONNECTIONS_MAX} clients are there already")));
        }
        connections.insert(number, Arc::clone(&replies));
    }
    let (for_thread, for_connection) = (Arc::clone(shared), Arc::clone(&replies));
    let spawned = std::thread::Builder::new().name(format!("nbd {number}")).spawn(move || {
        if let Err(error) = converse(socket, &for_thread, &for_connection)
            && is_worth_telling(&error)
        {
            (for_thread.report)(&format!("nbd: connection {number}: {error}"));
        }
        for_connection.finish();
        for_connection.hang_up();
        for_thread.connections().remove(&number);
    });
    spawned.map(|_| ()).inspect_err(|_| {
        shared.connections().remove(&number);
    })
}

/// A client that hangs up is none of our business.
fn is_worth_telling(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    !matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

fn converse(socket: OwnedFd, shared: &Shared, replies: &Arc<Replies>) -> io::Result<()> {
    // Both kinds of sockets have the same timeouts.
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(NEGOTIATION_MAX))?;
    stream.set_write_timeout(Some(NEGOTIATION_MAX))?;
    let Some(agreed) = negotiate(&mut stream, &shared.export)? else { return Ok(()) };
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let mut reader = BufReader::with_capacity(1 << 17, File::from(OwnedFd::from(stream)));
    std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, || replies.send_what_is_left())?;
        let outcome = transmit(&mut reader, agreed, &shared.store, &*shared.orders, replies);
        // A client that says that it leaves has its answers first.
        if outcome.is_ok() {
            replies.wait_until_sent();
        } else {
            replies.hang_up();
        }
        replies.finish();
        outcome
    })
}
