//! What the Linux block layer's event logs share: blktrace (binary and text) and ftrace.
//!
//! Such a log says several things about one request: that it was queued, sent to the driver, completed. The
//! [`Assembler`] keeps the one event that makes a request, drops the others, and pairs completions with requests to
//! learn the response time, all in bounded memory and in the order of the log.

use crate::error::{Position, TraceError};
use planewise_model::{Direction, Durability, Lsn, Ns, Request, names};
use std::collections::{HashMap, VecDeque};

/// How many requests may wait for their completion before the oldest is handed on without a response time. Larger than
/// the tag space of any common driver (NVMe queues hold 1,023), small enough to be constant memory.
const PENDING_MAX: usize = 16 * 1024;

/// How many data events are looked at, at most, for the preferred event before a less preferred one is taken.
const LOOK_AHEAD_EVENTS: usize = 64 * 1024;

/// The steps of a request's life that logs tell of and readers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Handed to the block layer (blktrace `Q`, `block_bio_queue`).
    Queue,
    /// Put into the I/O scheduler (blktrace `I`, `block_rq_insert`).
    Insert,
    /// Sent to the driver (blktrace `D`, `block_rq_issue`).
    Issue,
    /// Finished (blktrace `C`, `block_rq_complete`).
    Complete,
    /// Taken back by the driver, to be issued again (blktrace `R`, `block_rq_requeue`).
    Requeue,
}

/// What an event's `rwbs` letters (or category bits) say is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Data are moved.
    Data(Direction),
    /// A cache flush: no data.
    Flush,
    /// A discard (trim) or secure erase: no data.
    Discard,
    /// Notifications, zone management, pass-through commands.
    Other,
}

/// One event of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The log's clock, in ns.
    pub time: u64,
    /// First sector.
    pub start: u64,
    /// Sectors; 0 for flushes.
    pub sectors: u32,
    /// What is done.
    pub operation: Operation,
    /// Of writes: what the kernel's letters for "flush first" and "forced unit access" promise.
    pub durability: Durability,
    /// Whether someone waits for it: the kernel's `S`. Reads need no flag.
    pub synchronous: bool,
    /// Which step this is.
    pub action: Action,
    /// Who caused it (process id), 0 when unknown.
    pub process: u32,
    /// The device, numbered by [`Devices`].
    pub volume: u32,
}

/// Reads the kernel's `rwbs` letters (`blk_fill_rwbs`): an optional `F` for "flush first", the operation, then modifiers
/// (F = FUA, A = read-ahead, S = synchronous, M = metadata and a few younger ones). `None` when they are no such letters.
pub(crate) fn classify(rwbs: &[u8]) -> Option<Operation> {
    if rwbs.is_empty() || rwbs.len() > 10 || !rwbs.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let operation = match rwbs {
        [b'F'] => return Some(Operation::Flush),
        [b'F', rest @ ..] => rest,
        all => all,
    };
    match operation[0] {
        b'R' => Some(Operation::Data(Direction::Read)),
        b'W' => Some(Operation::Data(Direction::Write)),
        b'D' => Some(Operation::Discard),
        b'F' => Some(Operation::Flush),
        // "FN" is how blkparse shows a flush; a bare "N" is an event without an operation.
        b'N' if rwbs.len() > 1 && rwbs[0] == b'F' => Some(Operation::Flush),
        b'N' | b'Z' => Some(Operation::Other),
        _ => None,
    }
}

/// What the letters promise of a write: `F` before the operation is a flush first, behind it forced unit access.
pub(crate) fn durability(rwbs: &[u8]) -> Durability {
    match rwbs {
        [b'F', b'W', rest @ ..] => Durability::of(true, rest.contains(&b'F')),
        [b'W', rest @ ..] => Durability::of(false, rest.contains(&b'F')),
        _ => Durability::Volatile,
    }
}

/// Whether the letters say that someone waits: `S` behind the operation.
pub(crate) fn is_synchronous(rwbs: &[u8]) -> bool {
    rwbs.iter().skip(1).any(|letter| *letter == b'S')
}

/// The devices of a log, numbered in order of first appearance and named `major,minor`.
#[derive(Default)]
pub(crate) struct Devices {
    keys: Vec<u64>,
    names: Vec<String>,
    last: usize,
}

impl Devices {
    /// The number of a device.
    #[inline]
    pub fn number(&mut self, major: u32, minor: u32) -> u32 {
        let key = u64::from(major) << 32 | u64::from(minor);
        if self.keys.get(self.last) != Some(&key) {
            self.last = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                self.keys.push(key);
                self.names.push(format!("{major},{minor}"));
                self.keys.len() - 1
            });
        }
        self.last as u32
    }

    /// Names by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Which event makes a request.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// This one.
    Fixed(Action),
    /// The first of these that the log has; only the first [`LOOK_AHEAD_EVENTS`] events are looked at.
    FirstPresent(&'static [Action]),
}

impl Choice {
    /// The action a user named, or the format's own order of preference.
    ///
    /// # Errors
    /// The name is in none of the `names`, which pair what a user may say with what it means.
    pub fn from_option(
        option: Option<&str>,
        names: &[(&'static str, Action)],
        preference: &'static [Action],
    ) -> Result<Choice, TraceError> {
        let Some(found) = option else { return Ok(Choice::FirstPresent(preference)) };
        names
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(found))
            .map(|(_, action)| Choice::Fixed(*action))
            .ok_or_else(|| names::unknown("event", found, names.iter().map(|(name, _)| *name)).into())
    }
}

/// Events that are no requests, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Pass-through commands, notifications, zone management.
    pub others: u64,
    /// Not left out, but to be known: issues after which the driver gave the request back, to be issued again.
    pub requeues: u64,
}

impl Skipped {
    /// A line for the user for each reason that occurred.
    pub fn describe(&self) -> Vec<String> {
        let skipped = "skipped: the model has no such request";
        [
            (self.others, "events without data", skipped),
            (self.requeues, "requests given back by the driver", "count again when issued again"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, what, why)| format!("{count} {what} {why}"))
        .collect()
    }
}

/// What identifies a request until it completes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    start: u64,
    sectors: u32,
    volume: u32,
    write: bool,
    discard: bool,
}

struct Pending {
    request: Request,
    position: Position,
    /// Whether nothing more is to be learnt about it.
    is_settled: bool,
}

/// Turns the events of a log into requests.
pub(crate) struct Assembler {
    choice: Choice,
    chosen: Option<Action>,
    look_ahead: Vec<(Event, Position)>,
    pending: VecDeque<Pending>,
    /// How many requests have left `pending` at the front: the number of the first one still in it.
    departed: u64,
    outstanding: HashMap<Key, u64>,
    ready: bool,
    skipped: Skipped,
}

impl Assembler {
    /// An empty assembler.
    pub fn new(choice: Choice) -> Assembler {
        let chosen = match choice {
            Choice::Fixed(action) => Some(action),
            Choice::FirstPresent(_) => None,
        };
        Assembler {
            choice,
            chosen,
            look_ahead: Vec::new(),
            pending: VecDeque::new(),
            departed: 0,
            outstanding: HashMap::new(),
            ready: false,
            skipped: Skipped::default(),
        }
    }

    /// Takes the next event of the log.
    #[inline]
    pub fn push(&mut self, event: Event, position: Position) {
        match self.chosen {
            Some(chosen) => self.take(chosen, event, position),
            None => self.consider(event, position),
        }
    }

    /// The log has ended: nothing more will complete.
    pub fn finish(&mut self) {
        if self.chosen.is_none() {
            self.decide();
        }
        self.ready = true;
    }

    /// The next request whose fate is known, in the order of the log.
    #[inline]
    pub fn pop(&mut self) -> Option<(Request, Position)> {
        let front = self.pending.front()?;
        if !front.is_settled && !self.ready && self.pending.len() <= PENDING_MAX {
            return None;
        }
        let front = self.pending.pop_front()?;
        if !front.is_settled {
            let key = key_of(&front.request);
            // A later request for the same range may have taken the place.
            if self.outstanding.get(&key) == Some(&self.departed) {
                self.outstanding.remove(&key);
            }
        }
        self.departed += 1;
        Some((front.request, front.position))
    }

    /// What was left out so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    fn consider(&mut self, event: Event, position: Position) {
        let Choice::FirstPresent(preference) = self.choice else { return };
        // A flush says nothing about which data events the log holds.
        let is_data = matches!(event.operation, Operation::Data(_)) && event.sectors > 0;
        let is_preferred = is_data && preference.first() == Some(&event.action);
        self.look_ahead.push((event, position));
        if is_preferred || self.look_ahead.len() >= LOOK_AHEAD_EVENTS {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let Choice::FirstPresent(preference) = self.choice else { return };
        let has = |action: &Action| {
            self.look_ahead.iter().any(|(event, _)| {
                event.action == *action && matches!(event.operation, Operation::Data(_)) && event.sectors > 0
            })
        };
        let Some(chosen) = preference.iter().copied().find(has).or(preference.first().copied()) else {
            return;
        };
        self.chosen = Some(chosen);
        for (event, position) in std::mem::take(&mut self.look_ahead) {
            self.take(chosen, event, position);
        }
    }

    fn take(&mut self, chosen: Action, event: Event, position: Position) {
        let time = Ns(event.time);
        let mut request = match event.operation {
            Operation::Data(direction) if event.sectors > 0 => Request {
                durability: event.durability,
                ..Request::new(time, Lsn(event.start), event.sectors, direction)
            },
            Operation::Discard if event.sectors > 0 => {
                Request::discard(time, Lsn(event.start), event.sectors)
            }
            // A write of 0 sectors is the flush that goes before one.
            Operation::Data(Direction::Write) | Operation::Flush => Request::flush(time),
            Operation::Data(Direction::Read) | Operation::Discard | Operation::Other => {
                self.skipped.others += u64::from(event.action == chosen);
                return;
            }
        };
        request.volume = event.volume;
        let key = key_of(&request);
        if event.action == chosen {
            request.synchronous |= event.synchronous;
            request.process = event.process;
            let is_settled = chosen == Action::Complete;
            if !is_settled {
                self.outstanding.insert(key, self.departed + self.pending.len() as u64);
            }
            self.pending.push_back(Pending { request, position, is_settled });
        } else if event.action == Action::Complete {
            if let Some(pending) = self.settle(&key) {
                pending.request.response = Some(Ns(event.time).saturating_sub(pending.request.arrival));
            }
        } else if event.action == Action::Requeue && chosen == Action::Issue {
            self.skipped.requeues += 1;
            // The completion to come belongs to the second issue.
            self.settle(&key);
        }
    }

    fn settle(&mut self, key: &Key) -> Option<&mut Pending> {
        let number = self.outstanding.remove(key)?;
        let place = number.checked_sub(self.departed)?;
        let pending = self.pending.get_mut(usize::try_from(place).ok()?)?;
        pending.is_settled = true;
        Some(pending)
    }
}

fn key_of(request: &Request) -> Key {
    Key {
        start: request.start.0,
        sectors: request.sectors,
        volume: request.volume,
        write: request.direction == Direction::Write,
        discard: request.operation == planewise_model::Operation::Discard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, action: Action, start: u64) -> Event {
        let operation = Operation::Data(Direction::Read);
        let durability = Durability::Volatile;
        Event {
            time,
            start,
            sectors: 8,
            operation,
            durability,
            synchronous: false,
            action,
            process: 7,
            volume: 0,
        }
    }

    fn assemble(choice: Choice, events: &[Event]) -> Vec<Request> {
        let mut assembler = Assembler::new(choice);
        let mut requests = Vec::new();
        for (line, event) in events.iter().enumerate() {
            assembler.push(*event, Position::Line(line as u64 + 1));
            while let Some((request, _)) = assembler.pop() {
                requests.push(request);
            }
        }
        assembler.finish();
        while let Some((request, _)) = assembler.pop() {
            requests.push(request);
        }
        requests
    }

    #[test]
    fn the_letters_of_the_kernel_mean_what_the_kernel_means() {
        use Operation::*;
        for (letters, operation) in [
            ("R", Data(Direction::Read)),
            ("RA", Data(Direction::Read)),
            ("RM", Data(Direction::Read)),
            ("WSM", Data(Direction::Write)),
            ("FWFS", Data(Direction::Write)),
            ("FWS", Data(Direction::Write)),
            ("WFS", Data(Direction::Write)),
            ("F", Flush),
            ("FF", Flush),
            ("FN", Flush),
            ("D", Discard),
            ("DS", Discard),
            ("DE", Discard),
            ("N", Other),
        ] {
            assert_eq!(classify(letters.as_bytes()), Some(operation), "{letters}");
        }
        for (letters, waits) in
            [("WS", true), ("WSM", true), ("FWS", true), ("W", false), ("WM", false), ("R", false)]
        {
            assert_eq!(is_synchronous(letters.as_bytes()), waits, "{letters}");
        }
        for (letters, flushes_first, forces) in [
            ("W", false, false),
            ("WS", false, false),
            ("WFS", false, true),
            ("FW", true, false),
            ("FWS", true, false),
            ("FWFS", true, true),
            ("FWFSM", true, true),
            ("R", false, false),
            ("FF", false, false),
        ] {
            assert_eq!(durability(letters.as_bytes()), Durability::of(flushes_first, forces), "{letters}");
        }
        for wrong in ["", "r", "X", "W5", "FX", "WWWWWWWWWWW"] {
            assert_eq!(classify(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn completions_out_of_order_give_each_request_its_own_response_and_leave_the_order_alone() {
        use Action::*;
        let requests = assemble(
            Choice::Fixed(Issue),
            &[event(10, Issue, 0), event(20, Issue, 8), event(25, Complete, 8), event(40, Complete, 0)],
        );
        let seen: Vec<_> = requests.iter().map(|r| (r.start.0, r.response)).collect();
        assert_eq!(seen, [(0, Some(Ns(30))), (8, Some(Ns(5)))]);
    }

    #[test]
    fn a_completion_after_a_requeue_belongs_to_the_second_issue() {
        use Action::*;
        let requests = assemble(
            Choice::Fixed(Issue),
            &[event(10, Issue, 0), event(11, Requeue, 0), event(30, Issue, 0), event(40, Complete, 0)],
        );
        let seen: Vec<_> = requests.iter().map(|r| (r.arrival, r.response)).collect();
        assert_eq!(seen, [(Ns(10), None), (Ns(30), Some(Ns(10)))]);
    }

    #[test]
    fn the_best_event_present_is_chosen_even_when_others_come_first() {
        use Action::*;
        const PREFERENCE: &[Action] = &[Queue, Issue, Complete];
        let log = [event(1, Complete, 0), event(2, Issue, 8), event(3, Queue, 16), event(4, Queue, 24)];
        assert_eq!(assemble(Choice::FirstPresent(PREFERENCE), &log).len(), 2);
        assert_eq!(assemble(Choice::FirstPresent(PREFERENCE), &log[..2])[0].start, Lsn(8));
        assert_eq!(assemble(Choice::FirstPresent(PREFERENCE), &log[..1])[0].start, Lsn(0));
        assert_eq!(assemble(Choice::FirstPresent(PREFERENCE), &[]), []);
    }

    #[test]
    fn a_log_without_completions_needs_no_more_than_the_window() {
        let mut assembler = Assembler::new(Choice::Fixed(Action::Issue));
        let mut count = 0;
        for n in 0..3 * PENDING_MAX as u64 {
            assembler.push(event(n, Action::Issue, n * 8), Position::File);
            while assembler.pop().is_some() {
                count += 1;
            }
            assert!(assembler.pending.len() <= PENDING_MAX && assembler.outstanding.len() <= PENDING_MAX);
        }
        assert_eq!(count, 2 * PENDING_MAX);
    }

    #[test]
    fn an_unknown_event_is_answered_with_the_ones_known() {
        let names = [("Q", Action::Queue), ("D", Action::Issue)];
        let error = Choice::from_option(Some("X"), &names, &[]).unwrap_err();
        assert_eq!(error.to_string(), "unknown event 'X'; known: Q, D");
    }
}
