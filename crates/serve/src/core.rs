//! The drive in wall time: one thread that has the engine, lets its time pass as the clock does, and answers when it is time.
//!
//! It sleeps until shortly before the next thing happens, then spins. An answer is handed over by this thread itself: to wake another one would be later.

use crate::clerk::{Clerk, Sample};
use crate::clock::{Clock, Floor, sleep_precisely};
use crate::error::ServeError;
use crate::lateness::{Summary, Verdict};
use crate::order::{Done, Order, Orders};
use crate::store::{Store, Syncer};
use planewise_model::Ns;
use planewise_sim::drivers::stepped::Stepped;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::results::{RunResult, Status};
use planewise_sim::{RunConfig, SimError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The engine as it is served.
pub type Engine = Stepped<Option<Invariants>>;

/// How to serve.
#[derive(Clone, Copy, Debug)]
pub struct CoreOptions {
    /// Wall time for each unit of simulated time.
    pub dilation: f64,
    /// Processor to stay on.
    pub processor: Option<usize>,
    /// What this host adds.
    pub floor: Floor,
}

/// What happened up to now.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the beginning.
    pub wall: Duration,
    /// Time on the drive.
    pub simulated: Ns,
    /// Requests answered, by kind: reads, writes, flushes, discards.
    pub answered: [u64; 4],
    /// Their bytes.
    pub bytes: [u64; 4],
    /// Answered with an error.
    pub failed: u64,
    /// Not answered yet.
    pub under_way: usize,
    /// Lateness of reads and writes.
    pub transfers: Summary,
    /// Of what has to wait for the host's disk besides.
    pub flushes: Summary,
}

/// Names of the kinds that a [`Snapshot`] counts.
pub const KINDS: [&str; 4] = ["read", "write", "flush", "discard"];

/// What is left when a drive is no longer served.
pub struct Ended {
    /// What the drive did, as any run.
    pub result: Result<RunResult, SimError>,
    /// Invariants that were violated.
    pub violation: Option<String>,
    /// What happened.
    pub snapshot: Snapshot,
    /// What to think of it.
    pub verdicts: Vec<Verdict>,
    /// Why it ended, if not because it was told to.
    pub failure: Option<SimError>,
}

enum Message {
    Order { arrival: Instant, order: Order, done: Done },
    Synced { tag: u64, is_done: bool },
    Look(Sender<Snapshot>),
    Stop,
}

/// Where messages wait for the thread.
#[derive(Default)]
struct Inbox {
    messages: Mutex<Messages>,
    has_some: AtomicBool,
    arrived: Condvar,
}

#[derive(Default)]
struct Messages {
    waiting: Vec<Message>,
    /// Nobody takes them any more.
    is_closed: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Messages> {
        // Who panicked while it pushed has pushed, or has not: either is whole.
        self.messages.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn put(&self, message: Message) {
        let mut messages = self.lock();
        if messages.is_closed {
            drop(messages);
            return refuse(message);
        }
        messages.waiting.push(message);
        self.has_some.store(true, Ordering::Release);
        drop(messages);
        self.arrived.notify_one();
    }

    fn take(&self, to: &mut Vec<Message>) {
        if self.has_some.swap(false, Ordering::Acquire) {
            to.append(&mut self.lock().waiting);
        }
    }

    /// Refuses those that wait, and all that come.
    fn close(&self) {
        let mut messages = self.lock();
        messages.is_closed = true;
        let waiting = std::mem::take(&mut messages.waiting);
        drop(messages);
        waiting.into_iter().for_each(refuse);
    }

    /// Waits for a message, or until an instant: asleep until so long before it, then awake.
    fn wait(&self, until: Option<Instant>, awake: Duration) {
        let mut messages = self.lock();
        loop {
            if !messages.waiting.is_empty() {
                return;
            }
            let sleep = match until {
                None => None,
                Some(until) => match until.checked_duration_since(Instant::now()) {
                    Some(left) if left > awake => Some(left - awake),
                    _ => break,
                },
            };
            messages = match sleep {
                None => self.arrived.wait(messages).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(sleep) => match self.arrived.wait_timeout(messages, sleep) {
                    Ok((messages, _)) => messages,
                    Err(poisoned) => poisoned.into_inner().0,
                },
            };
        }
        drop(messages);
        let Some(until) = until else { return };
        while !self.has_some.load(Ordering::Acquire) && Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

fn refuse(message: Message) {
    if let Message::Order { done, .. } = message {
        done(false);
    }
}

/// A served drive.
pub struct Core {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<Ended>>,
}

/// What fronts have of it.
#[derive(Clone)]
pub struct Handle(Arc<Inbox>);

impl Orders for Handle {
    fn submit(&self, arrival: Instant, order: Order, done: Done) {
        self.0.put(Message::Order { arrival, order, done });
    }
}

impl Handle {
    /// What happened up to now; nothing once the drive is no longer served.
    pub fn look(&self) -> Option<Snapshot> {
        let (sender, receiver): (_, Receiver<Snapshot>) = channel();
        self.0.put(Message::Look(sender));
        receiver.recv_timeout(Duration::from_secs(5)).ok()
    }
}

impl Core {
    /// Begins to serve.
    ///
    /// # Errors
    /// The device cannot be; the system's.
    pub fn start(
        config: &RunConfig,
        checks: bool,
        store: Arc<Store>,
        options: CoreOptions,
    ) -> Result<Core, ServeError> {
        let engine = Stepped::new(config, checks.then(|| Invariants::of(config.overlap)))?;
        let failed = |error| ServeError::system("starting the drive's threads", error);
        let syncer = Syncer::new(store).map_err(failed)?;
        let clerk = Clerk::new().map_err(failed)?;
        let inbox = Arc::new(Inbox::default());
        let mut worker = Worker::new(engine, Arc::clone(&inbox), syncer, clerk, options);
        let thread = std::thread::Builder::new()
            .name("drive".into())
            .spawn(move || {
                stay_on(options.processor);
                sleep_precisely();
                // The time that it took to build the drive, or to begin, is nobody's.
                worker.clock = Clock::new(options.dilation);
                worker.started = Instant::now();
                worker.run()
            })
            .map_err(failed)?;
        Ok(Core { inbox, thread: Some(thread) })
    }

    /// For a front.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.inbox))
    }

    /// Whether it ended by itself: the engine failed, and all requests do.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Answers what is under way, and ends.
    ///
    /// # Panics
    /// Where the drive's thread did.
    pub fn stop(mut self) -> Ended {
        self.inbox.put(Message::Stop);
        let thread = self.thread.take().expect("there until now");
        thread.join().expect("the drive's thread does not panic")
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.inbox.put(Message::Stop);
            let _ = thread.join();
        }
    }
}

fn stay_on(processor: Option<usize>) {
    if let Some(processor) = processor {
        let mut set = rustix::thread::CpuSet::new();
        set.set(processor);
        // Checked when the option was read; a processor that went away since is only slower.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

/// An order under way.
struct UnderWay {
    arrival: Instant,
    /// When the drive had it.
    entered: Ns,
    kind: usize,
    bytes: u64,
    needs_sync: bool,
    is_synced: bool,
    /// When it is due, once the drive has done it.
    due: Option<Instant>,
    is_done: bool,
    done: Done,
}

struct Worker {
    engine: Engine,
    inbox: Arc<Inbox>,
    syncer: Syncer,
    options: CoreOptions,
    clock: Clock,
    started: Instant,
    orders: BTreeMap<u64, UnderWay>,
    tags: u64,
    counts: Snapshot,
    clerk: Clerk,
    failure: Option<SimError>,
}

impl Worker {
    fn new(engine: Engine, inbox: Arc<Inbox>, syncer: Syncer, clerk: Clerk, options: CoreOptions) -> Worker {
        Worker {
            engine,
            inbox,
            syncer,
            options,
            clock: Clock::new(options.dilation),
            started: Instant::now(),
            orders: BTreeMap::new(),
            tags: 0,
            counts: Snapshot::default(),
            clerk,
            failure: None,
        }
    }

    fn run(mut self) -> Ended {
        let (mut messages, mut is_stopping) = (Vec::new(), false);
        loop {
            self.inbox.take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Order { arrival, order, done } => self.accept(arrival, order, done),
                    Message::Synced { tag, is_done } => self.synced(tag, is_done),
                    Message::Look(to) => {
                        let now = self.snapshot();
                        self.clerk.look(move |(transfers, flushes)| {
                            // Who asked may have waited long enough.
                            let _ = to.send(Snapshot { transfers, flushes, ..now });
                        });
                    }
                    Message::Stop => is_stopping = true,
                }
            }
            self.let_time_pass();
            if is_stopping && self.orders.is_empty() || self.failure.is_some() {
                break;
            }
            let next = self.engine.next();
            let until = if next == Ns::MAX { None } else { self.clock.wall(next) };
            self.inbox.wait(until, self.options.floor.wake_up);
        }
        self.end()
    }

    fn accept(&mut self, arrival: Instant, order: Order, done: Done) {
        let (kind, bytes) = match order {
            Order::Read { bytes, .. } => (0, bytes),
            Order::Write { bytes, .. } => (1, bytes),
            Order::Flush => (2, 0),
            Order::Discard { bytes, .. } => (3, bytes),
        };
        self.tags += 1;
        let (tag, at) = (self.tags, self.clock.simulated(arrival));
        let needs_sync = order.needs_sync();
        let mut under_way = UnderWay {
            arrival,
            entered: at,
            kind,
            bytes,
            needs_sync,
            is_synced: !needs_sync,
            due: None,
            is_done: true,
            done,
        };
        match order.request(at).map(|request| self.engine.submit(&request, tag)) {
            Some(Ok(entered)) => under_way.entered = entered,
            // Less than a sector to forget: nothing for the drive to do.
            None => under_way.due = Some(arrival),
            Some(Err(error)) => {
                let is_its_own = matches!(error, SimError::PastEnd { .. } | SimError::Empty { .. });
                (under_way.due, under_way.is_done) = (Some(arrival), false);
                if !is_its_own {
                    self.failure = Some(error);
                }
            }
        }
        let is_due = under_way.due.is_some();
        self.orders.insert(tag, under_way);
        if needs_sync {
            let inbox = Arc::clone(&self.inbox);
            self.syncer.sync(Box::new(move |is_done| inbox.put(Message::Synced { tag, is_done })));
        }
        if is_due {
            self.answer_if_ready(tag);
        }
    }

    fn synced(&mut self, tag: u64, is_done: bool) {
        if let Some(order) = self.orders.get_mut(&tag) {
            order.is_synced = true;
            order.is_done &= is_done;
            self.answer_if_ready(tag);
        }
    }

    fn let_time_pass(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.engine.advance(self.clock.simulated(Instant::now()))
        {
            self.failure = Some(error);
        }
        while let Some((tag, completion)) = self.engine.take() {
            if let Some(order) = self.orders.get_mut(&tag) {
                // From its arrival here: what it waited for this thread is lateness.
                let took = self.clock.span(completion.completed - order.entered).unwrap_or(Duration::MAX);
                order.due = order.arrival.checked_add(took);
                self.answer_if_ready(tag);
            }
        }
    }

    fn answer_if_ready(&mut self, tag: u64) {
        let Some(order) = self.orders.get(&tag) else { return };
        let (Some(due), true) = (order.due, order.is_synced) else { return };
        let order = self.orders.remove(&tag).expect("found just now");
        (order.done)(order.is_done);
        self.counts.answered[order.kind] += 1;
        self.counts.bytes[order.kind] += order.bytes;
        self.counts.failed += u64::from(!order.is_done);
        let late = Instant::now().saturating_duration_since(due);
        let latency = due.saturating_duration_since(order.arrival);
        self.clerk.record(Sample { is_flush: order.needs_sync, late, latency });
    }

    /// All but what the clerk knows.
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            wall: self.started.elapsed(),
            simulated: self.clock.simulated(Instant::now()),
            under_way: self.orders.len(),
            ..self.counts.clone()
        }
    }

    fn end(mut self) -> Ended {
        // Those that the drive can no longer do.
        for (_, order) in std::mem::take(&mut self.orders) {
            (order.done)(false);
            self.counts.failed += 1;
        }
        let (transfers, flushes) = self.clerk.finish();
        let snapshot = Snapshot { transfers, flushes, ..self.snapshot() };
        let (floor, dilation) = (self.options.floor, self.options.dilation);
        let verdicts = [
            Verdict::new("reads and writes", snapshot.transfers.clone(), floor, dilation),
            Verdict::new("flushes and forced writes", snapshot.flushes.clone(), floor, dilation),
        ];
        self.inbox.close();
        Ended {
            result: self.engine.result("served", Status::Complete),
            violation: self
                .engine
                .into_observer()
                .filter(|_| self.failure.is_none())
                .and_then(|invariants| invariants.report().err()),
            snapshot,
            verdicts: verdicts.into_iter().flatten().collect(),
            failure: self.failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_guest::contents::Contents;
    use planewise_model::Profile;

    /// A read of a page takes 30 µs and a transfer of 41 µs, a program 600 µs.
    fn core(dilation: f64) -> Core {
        core_on(Store::new(Contents::new(1 << 20).unwrap(), false), dilation)
    }

    fn core_on(store: Store, dilation: f64) -> Core {
        let mut profile = Profile::embedded("gc-128g").unwrap();
        profile.geometry.blocks_per_plane = 64;
        profile.interface.command_queue = "ncq:32".into();
        let config = RunConfig::new(profile);
        let store = Arc::new(store);
        let floor = Floor { round_trip: Duration::from_micros(20), wake_up: Duration::from_micros(50) };
        Core::start(&config, true, store, CoreOptions { dilation, processor: None, floor }).unwrap()
    }

    fn ask(core: &Core, order: Order) -> (bool, Duration) {
        let ((sender, receiver), start) = (channel(), Instant::now());
        core.handle().submit(start, order, Box::new(move |is_done| sender.send(is_done).unwrap()));
        (receiver.recv_timeout(Duration::from_secs(20)).unwrap(), start.elapsed())
    }

    #[test]
    fn nothing_is_answered_before_the_drive_would_have_done_it() {
        for dilation in [1.0, 20.0] {
            let core = core(dilation);
            for at in [0, 8192, 1 << 20] {
                let (is_done, took) = ask(&core, Order::Write { at, bytes: 4096, is_forced: at == 0 });
                assert!(is_done && took >= Duration::from_micros(640).mul_f64(dilation), "{took:?}");
                let (is_done, took) = ask(&core, Order::Read { at, bytes: 4096 });
                assert!(is_done && took >= Duration::from_micros(70).mul_f64(dilation), "{took:?}");
            }
            assert!(ask(&core, Order::Flush).0);
            assert!(ask(&core, Order::Discard { at: 0, bytes: 4096, is_forced: false }).0);
            assert!(ask(&core, Order::Discard { at: 1, bytes: 5, is_forced: true }).0);
            let snapshot = core.handle().look().unwrap();
            assert_eq!((snapshot.answered, snapshot.failed), ([3, 3, 1, 2], 0));
            let ended = core.stop();
            assert!(ended.failure.is_none() && ended.violation.is_none());
            assert_eq!(ended.verdicts.len(), 2);
            let metrics = ended.result.unwrap().metrics;
            assert_eq!((metrics.requests.reads, metrics.requests.writes), (3, 3));
            // The drive's own time knows nothing of the dilation.
            assert!(metrics.read.latency_ns.max < 1_000_000, "{}", metrics.read.latency_ns.max);
        }
    }

    #[test]
    fn what_the_drive_cannot_do_is_refused_and_harms_no_other() {
        let core = core(1.0);
        for order in [
            Order::Read { at: u64::MAX - 10, bytes: 5 },
            Order::Read { at: 1 << 60, bytes: 4096 },
            Order::Write { at: 1 << 50, bytes: 1, is_forced: true },
        ] {
            assert!(!ask(&core, order).0, "{order:?}");
        }
        assert!(ask(&core, Order::Read { at: 0, bytes: 512 }).0);
        assert_eq!(core.stop().snapshot.failed, 3);
    }

    #[test]
    fn after_a_flush_that_failed_all_flushes_fail() {
        // What is no file on a disk cannot be synchronised.
        let (reader, _writer) = std::io::pipe().unwrap();
        let contents = Contents::in_file(std::os::fd::OwnedFd::from(reader).into(), 0).unwrap();
        let core = core_on(Store::new(contents, true), 0.1);
        assert!(ask(&core, Order::Write { at: 0, bytes: 512, is_forced: false }).0);
        for _ in 0..3 {
            assert!(!ask(&core, Order::Flush).0);
            assert!(!ask(&core, Order::Write { at: 0, bytes: 512, is_forced: true }).0);
        }
        assert!(ask(&core, Order::Read { at: 0, bytes: 512 }).0);
        assert_eq!(core.stop().snapshot.failed, 6);
    }

    #[test]
    fn a_drive_that_fails_ends_and_refuses_whatever_comes() {
        // So fast that its time is past all that the engine has.
        let core = core(1e-12);
        std::thread::sleep(Duration::from_millis(10));
        assert!(!ask(&core, Order::Read { at: 0, bytes: 4096 }).0);
        let begun = Instant::now();
        while !core.has_ended() {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!ask(&core, Order::Flush).0);
        assert!(core.handle().look().is_none());
        let failure = core.stop().failure.unwrap().to_string();
        assert!(failure.contains("arriv"), "{failure}");
    }

    #[test]
    fn what_is_under_way_when_it_stops_is_answered() {
        let core = core(10.0);
        let (sender, receiver) = channel();
        for at in 0..50 {
            let sender = sender.clone();
            let done = Box::new(move |is_done| sender.send(is_done).unwrap());
            core.handle().submit(Instant::now(), Order::Read { at: at * 4096, bytes: 4096 }, done);
        }
        let handle = core.handle();
        assert_eq!(core.stop().snapshot.answered[0], 50);
        assert_eq!(receiver.try_iter().filter(|is_done| *is_done).count(), 50);
        // Whoever comes later is not kept waiting.
        let (sender, receiver) = channel();
        let done = Box::new(move |is_done| sender.send(is_done).unwrap());
        handle.submit(Instant::now(), Order::Flush, done);
        assert_eq!(receiver.try_recv(), Ok(false));
        assert!(handle.look().is_none());
    }
}
