//! One run of a kernel: whose turn it is, and what time it is.
//!
//! Either the kernel runs, or it waits; while it waits, time goes on to what comes first, the time that it asked to run at or a drive's next event.
//! A completion is put in the queue, and the kernel told of it, only while it waits: it handles that at once, asks for time if it needs some, and
//! answers. The kernel never gets past a drive's next event without asking: that is checked whenever it says what time it is.

use crate::disk::{Disk, Heard};
use crate::error::GuestError;
use crate::schedule::{KERNEL, Schedule};
use crate::socket::{Socket, wait_for_one};
use crate::time::{Message, NEVER, Operation, TimeLink};
use planewise_model::Ns;
use planewise_sim::observers::Observer;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The time of the day at which a run begins: in November 2023, the same for all.
pub const TIME_OF_DAY: u64 = 1_700_000_000_000_000_000;
/// How often an attendant is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a kernel may go on without asking when no drive has anything for it: whoever looks after it is to see its time move.
const LONGEST_TURN: Ns = Ns(1_000_000_000);

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

/// Who looks after a run in wall time, and hears what the guest has to say.
pub trait Attendant<O> {
    /// Asked now and then. `unchanged` is how long neither a message came nor the guest's time moved.
    ///
    /// # Errors
    /// What ends the run.
    fn look(&mut self, _now: Ns, _unchanged: Duration) -> Result<(), GuestError> {
        Ok(())
    }

    /// The guest has told everybody something.
    ///
    /// # Errors
    /// What ends the run.
    fn hear(&mut self, _message: u64, _now: Ns, _disks: &mut [Disk<O>]) -> Result<(), GuestError> {
        Ok(())
    }
}

/// Nobody: the run goes on as long as the kernel does.
#[derive(Clone, Copy, Debug)]
pub struct Unattended;

impl<O> Attendant<O> for Unattended {}

/// A kernel with its time and its drives.
pub struct Session<O> {
    time: TimeLink,
    disks: Vec<Disk<O>>,
    schedule: Option<Schedule>,
    sharing: Sharing,
    now: Ns,
    /// When the kernel asked to run.
    requested: Ns,
    /// Until when it was told that it may go on.
    free_until: Ns,
    is_waiting: bool,
    is_over: bool,
    /// Past this time it is asked every time.
    limit: Ns,
    /// What the guest has told everybody, until the attendant has heard it.
    told: Vec<u64>,
}

impl<O: Observer> Session<O> {
    /// Begins with a kernel that has connected for its time, and will connect for its disks.
    pub fn new(time: UnixStream, disks: Vec<Disk<O>>, sharing: Sharing) -> Session<O> {
        Session {
            time: TimeLink::new(Socket::new(time, "time travel")),
            disks,
            schedule: None,
            sharing,
            now: Ns::ZERO,
            requested: Ns(NEVER),
            free_until: Ns::ZERO,
            is_waiting: false,
            is_over: false,
            limit: Ns(NEVER),
            told: Vec::new(),
        }
    }

    /// The attendant is asked at once when the time is past this: a guest that sleeps gets there in one step.
    pub fn set_limit(&mut self, limit: Ns) {
        self.limit = limit;
    }

    /// The time.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Messages about time, to and fro.
    pub fn messages(&self) -> u64 {
        self.time.messages
    }

    /// The disks.
    pub fn disks(&self) -> &[Disk<O>] {
        &self.disks
    }

    /// The disks, once the run is over.
    pub fn into_disks(self) -> Vec<Disk<O>> {
        self.disks
    }

    /// Runs until the kernel has ended.
    ///
    /// # Errors
    /// What the kernel must not say, a time that nobody can reach, the engine's, the attendant's.
    pub fn run(&mut self, attendant: &mut impl Attendant<O>) -> Result<(), GuestError> {
        let mut looked = Instant::now();
        while !self.is_over {
            if self.is_waiting {
                self.let_time_pass(attendant)?;
            } else {
                self.listen(attendant)?;
            }
            for message in std::mem::take(&mut self.told) {
                attendant.hear(message, self.now, &mut self.disks)?;
            }
            if self.now > self.limit || looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                attendant.look(self.now, Duration::ZERO)?;
            }
        }
        Ok(())
    }

    /// Hears one message of a kernel that runs.
    fn listen(&mut self, attendant: &mut impl Attendant<O>) -> Result<(), GuestError> {
        let which = self.wait(None, attendant)?;
        match which {
            0 => self.hear_of_time().map(|_| ()),
            disk => self.hear_of_disk(disk - 1),
        }
    }

    /// Waits for a message: 0 about time, 1 and more those of the disks, behind them the answer to a call of disk `call`.
    fn wait(&self, call: Option<usize>, attendant: &mut impl Attendant<O>) -> Result<usize, GuestError> {
        let mut ends = Vec::with_capacity(2 + self.disks.len());
        ends.push(self.time.socket().as_fd());
        match call {
            None => ends.extend(self.disks.iter().map(Disk::end)),
            Some(disk) => ends.extend(self.disks[disk].channel_end()),
        }
        let (mut since, mut time) = (None, self.kernel_time());
        loop {
            let heard = wait_for_one(&ends, LOOK_EVERY)?;
            // The answer first: what the kernel says of time behind it is of its next turn.
            if let Some(place) = heard.iter().rposition(|heard| *heard) {
                return Ok(place);
            }
            let since = since.get_or_insert_with(Instant::now);
            // A kernel that shares the schedule moves time without a word.
            if self.kernel_time() != time {
                (*since, time) = (Instant::now(), self.kernel_time());
            }
            attendant.look(time, since.elapsed())?;
        }
    }

    fn kernel_time(&self) -> Ns {
        self.shared().map_or(self.now, Schedule::now)
    }

    fn shared(&self) -> Option<&Schedule> {
        self.schedule.as_ref().filter(|schedule| schedule.is_shared())
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
                if self.shared().is_some() {
                    return Ok(None);
                }
            }
            Operation::Get => answer = self.now.0,
            Operation::Update => self.reach(Ns(message.time))?,
            Operation::TimeOfDay => answer = TIME_OF_DAY,
            Operation::Broadcast => {
                if let Some(now) = self.shared().map(Schedule::now) {
                    self.reach(now)?;
                }
                self.told.push(message.time);
            }
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
        // A drive that was used before may be at work of its own.
        schedule.set_free_until(self.next_of_drives());
        let number = if is_shared { u64::from(KERNEL) } else { 0 };
        let file = schedule.file();
        self.time.acknowledge(message, number, &[file, file])?;
        self.schedule = Some(schedule);
        Ok(())
    }

    /// The kernel has reached a time.
    fn reach(&mut self, now: Ns) -> Result<(), GuestError> {
        let device = self.next_of_drives();
        if now < self.now || now > device {
            return Err(GuestError::Causality { kernel: now, device, now: self.now });
        }
        self.now = now;
        Ok(())
    }

    /// When a drive has something next, of this time or later.
    fn next_of_drives(&self) -> Ns {
        let next = self.disks.iter().map(|disk| disk.next(self.now)).min();
        next.unwrap_or(Ns(NEVER)).min(Ns(NEVER))
    }

    /// Both wait: what comes first comes now.
    fn let_time_pass(&mut self, attendant: &mut impl Attendant<O>) -> Result<(), GuestError> {
        if let Some(schedule) = self.shared() {
            let (now, requested) = (schedule.now(), schedule.requested());
            schedule.set_running(0);
            self.requested = requested.unwrap_or(Ns(NEVER));
            self.reach(now)?;
        }
        let (device, kernel) = (self.next_of_drives(), self.requested.max(self.now));
        if device > kernel || device == kernel && kernel == Ns(NEVER) {
            return self.let_kernel_run(device, kernel);
        }
        self.now = self.now.max(device);
        if let Some(schedule) = self.shared() {
            schedule.set_now(self.now);
        }
        for disk in 0..self.disks.len() {
            if self.disks[disk].next(self.now) <= self.now {
                let queues = self.disks[disk].complete(self.now)?;
                for queue in queues {
                    self.call(disk, queue, attendant)?;
                }
            }
        }
        self.note_next()
    }

    fn let_kernel_run(&mut self, device: Ns, kernel: Ns) -> Result<(), GuestError> {
        if kernel >= Ns(NEVER) {
            return Err(GuestError::Deadlock { now: self.now });
        }
        let device = device.min(kernel + LONGEST_TURN);
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

    /// Tells the kernel of completions in a queue: it looks at them before it answers.
    fn call(&mut self, disk: usize, queue: u32, attendant: &mut impl Attendant<O>) -> Result<(), GuestError> {
        if self.disks[disk].channel_end().is_none() {
            return Ok(());
        }
        self.disks[disk].call(queue)?;
        while !self.is_over {
            if self.wait(Some(disk), attendant)? == 1 {
                self.is_over |= !self.disks[disk].hear_answer()?;
                return Ok(());
            }
            self.hear_of_time()?;
        }
        Ok(())
    }

    /// A drive's next event may have moved: the kernel must not get past it.
    fn note_next(&mut self) -> Result<(), GuestError> {
        let next = self.next_of_drives();
        match self.sharing {
            Sharing::Memory => {
                if let Some(schedule) = self.shared() {
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

    /// Hears one message about a disk; a kick comes at a time that the kernel has told, or written.
    fn hear_of_disk(&mut self, disk: usize) -> Result<(), GuestError> {
        match self.disks[disk].hear()? {
            None => self.is_over = true,
            Some(Heard::SetUp) => {}
            Some(Heard::Kick(queue, message)) => {
                if let Some(now) = self.shared().map(Schedule::now) {
                    self.reach(now)?;
                }
                self.disks[disk].take_in(queue, self.now)?;
                self.note_next()?;
                self.disks[disk].answer(&message, None)?;
            }
        }
        Ok(())
    }
}
