//! A target with a host stack in front of it: what the simulator is, with a target in the place of the device.
//!
//! The order of things at an instant is the simulator's: what ends ends, what arrives enters the queue, the scheduler is asked,
//! the target starts. So a simulated target behind it gives the latencies that the simulator gives, to the nanosecond.

use super::{DriverError, HostOptions};
use crate::target::{Completed, Operation, Target, TargetError, TargetKind};
use planewise_model::{Direction, Durability, Lsn, Ns, Request, SECTOR_BYTES};
use planewise_sim::SimError;
use planewise_sim::host::{DeviceWaits, HostStack, QueuedRequest, Slot};
use planewise_sim::observers::{Completion, Observer};
use std::collections::VecDeque;

/// Longest time without a look at whether the user wants to stop, against the clock.
const LOOK: Ns = Ns(50_000_000);

/// What of an issued request the target has not taken yet.
#[derive(Clone, Copy)]
struct Rest {
    slot: Slot,
    /// All that is left, which may be longer than the target takes at once.
    operation: Operation,
}

/// Sectors that the target takes of an operation at once. A discard moves nothing, and pieces of one could cut pages in two.
fn longest(of_transfers: u64, operation: &Operation) -> u64 {
    if operation.command == planewise_model::Operation::Transfer { of_transfers } else { u64::MAX }
}

/// A target behind a host stack.
pub struct Front<'a, O> {
    target: &'a mut dyn Target,
    stack: HostStack,
    observer: O,
    /// The target's time when the run began: where the run counts from.
    began: Ns,
    now: Ns,
    is_simulated: bool,
    longest_sectors: u64,
    block_sectors: u64,
    free_tags: Vec<u32>,
    /// By tag.
    slots: Vec<Slot>,
    /// By slot: operations that the request in it still needs.
    operations: Vec<u32>,
    /// Issued requests that wait for tags for all their operations.
    rests: VecDeque<Rest>,
    /// Something changed and the scheduler was not asked yet.
    ask: bool,
    /// A command without data went to a simulated target, where such may take no time at all.
    looks: bool,
    /// Something completed while requests were dispatched, and whoever waits has not heard of it.
    completed_at_once: bool,
    split_requests: u64,
    completed: Vec<Completed>,
}

impl<'a, O: Observer> Front<'a, O> {
    /// Puts a host stack before a target, of whose depth it uses what there is. Time begins now, whatever the target's clock says.
    ///
    /// # Errors
    /// As [`HostOptions::stack`].
    pub fn new(
        target: &'a mut dyn Target,
        options: &HostOptions,
        observer: O,
    ) -> Result<Front<'a, O>, SimError> {
        let info = target.info();
        let mut stack = HostStack::new(&options.stack(info)?)?;
        stack.keep_completions();
        let slots = stack.queue().slots() as usize;
        let mut front = Front {
            stack,
            observer,
            began: Ns::ZERO,
            now: Ns::ZERO,
            is_simulated: info.kind == TargetKind::Simulated,
            block_sectors: u64::from(info.block_bytes) / SECTOR_BYTES,
            longest_sectors: info.longest.0.max(info.block_bytes.into()) / u64::from(info.block_bytes)
                * (u64::from(info.block_bytes) / SECTOR_BYTES),
            free_tags: (0..info.depth).rev().collect(),
            slots: vec![Slot(0); info.depth as usize],
            operations: vec![0; slots],
            rests: VecDeque::with_capacity(slots),
            ask: false,
            looks: false,
            completed_at_once: false,
            split_requests: 0,
            completed: Vec::with_capacity(info.depth as usize),
            target,
        };
        front.began = front.target.now();
        Ok(front)
    }

    /// The current instant: when the target was looked at last.
    pub fn now(&self) -> Ns {
        self.now
    }

    /// Looks at the target's clock.
    pub fn look_at_clock(&mut self) -> Ns {
        self.now = self.now.max(self.target.now().saturating_sub(self.began));
        self.now
    }

    /// The target.
    pub fn target(&self) -> &dyn Target {
        self.target
    }

    /// The host stack.
    pub fn stack(&self) -> &HostStack {
        &self.stack
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to change.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the run and returns its observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Requests that were longer than the target's longest operation.
    pub fn split_requests(&self) -> u64 {
        self.split_requests
    }

    /// Operations in the hands of the target.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free_tags.len()
    }

    /// Whether the I/O queue takes a request now.
    pub fn has_room(&mut self, request: &Request) -> bool {
        self.stack.has_room(self.now, request)
    }

    /// Moves the requests that completed since the last call to the end of `to`.
    pub fn take_completions(&mut self, to: &mut Vec<Completion>) {
        self.stack.take_completions(to);
    }

    /// Whether the target can take a request at all, as the next one.
    ///
    /// # Errors
    /// An empty request, one past the end of the target, one that is no whole blocks, a write to a target opened for reading,
    /// arrivals out of order.
    pub fn check(&self, request: &Request) -> Result<(), DriverError> {
        self.stack.check(request)?;
        let number = self.stack.submitted() + 1;
        let start = request.start;
        if !start.0.is_multiple_of(self.block_sectors) || !request.end().0.is_multiple_of(self.block_sectors)
        {
            let info = self.target.info();
            let (target, block_bytes) = (info.name.clone(), info.block_bytes);
            return Err(DriverError::Misaligned { target, number, start, end: request.end().0, block_bytes });
        }
        let changes = request.direction == Direction::Write && !request.operation.is_flush();
        if changes && !self.target.info().writable {
            return Err(DriverError::ReadOnly { target: self.target.info().name.clone(), number, start });
        }
        Ok(())
    }

    /// Puts a request that is due in the I/O queue now.
    ///
    /// # Errors
    /// As [`Front::check`].
    ///
    /// # Panics
    /// When the queue is full, or the request is not due yet.
    pub fn submit(&mut self, request: &Request) -> Result<(), DriverError> {
        self.check(request)?;
        assert!(request.arrival <= self.now, "a request enters the queue when it is due");
        self.stack.enter(self.now, request, &mut self.observer, |_, _, _| {});
        Ok(())
    }

    /// Asks the scheduler, as far as anything changed and the target has tags, and hands what it issues to the target.
    ///
    /// # Errors
    /// The target refuses.
    pub fn dispatch(&mut self) -> Result<(), DriverError> {
        self.issue()?;
        // What a command that took no time leaves free goes to who waits for it, before anybody else comes at this instant: as in the simulator.
        while std::mem::take(&mut self.looks) {
            let free = self.free_tags.len();
            self.wait_for_target(self.now)?;
            self.completed_at_once |= self.free_tags.len() > free;
            self.issue()?;
        }
        Ok(())
    }

    fn issue(&mut self) -> Result<(), DriverError> {
        self.hand_over()?;
        self.ask |= self.stack.take_changed(self.now);
        while self.ask && self.rests.is_empty() && !self.free_tags.is_empty() {
            let Some(slot) = self.stack.next_issue(self.now, &|_: &QueuedRequest| true, &mut self.observer)
            else {
                self.ask = false;
                break;
            };
            let Request { operation: command, direction, durability, start, sectors, .. } =
                self.stack.queue().get(slot).request;
            let operation = Operation { command, direction, durability, start, sectors };
            let pieces = u64::from(sectors).div_ceil(longest(self.longest_sectors, &operation)).max(1);
            self.operations[slot.index()] = pieces as u32;
            self.split_requests += u64::from(pieces > 1);
            self.rests.push_back(Rest { slot, operation });
            self.hand_over()?;
        }
        if self.ask {
            // No tag is free. The next completion has it asked again.
            self.stack.tell_full(self.now);
            self.ask = false;
        }
        Ok(())
    }

    /// Gives the target as many operations of issued requests as it has tags for.
    fn hand_over(&mut self) -> Result<(), TargetError> {
        while let Some(rest) = self.rests.front_mut()
            && let Some(&tag) = self.free_tags.last()
        {
            let left = &mut rest.operation;
            let longest = longest(self.longest_sectors, left);
            let sectors = u64::from(left.sectors).min(longest) as u32;
            self.target.submit(tag, Operation { sectors, ..*left })?;
            self.free_tags.pop();
            self.slots[tag as usize] = rest.slot;
            self.looks |= self.is_simulated && left.command != planewise_model::Operation::Transfer;
            left.start = Lsn(left.start.0 + u64::from(sectors));
            left.sectors -= sectors;
            // What was to be flushed first was, before the first piece.
            left.durability = match left.durability {
                Durability::FlushFirst => Durability::Volatile,
                Durability::FlushFirstForceUnitAccess => Durability::ForceUnitAccess,
                durability => durability,
            };
            if left.sectors == 0 {
                self.rests.pop_front();
            }
        }
        Ok(())
    }

    /// Lets time pass until something completes, the scheduler wants to be asked, `until` has come, or, against the clock, it is
    /// time to see whether the user wants to stop.
    ///
    /// # Errors
    /// The target failed; what completed before is taken note of. Nothing is under way, or due, and requests wait.
    pub fn wait(&mut self, until: Ns) -> Result<(), DriverError> {
        if std::mem::take(&mut self.completed_at_once) {
            return Ok(());
        }
        let until = until.min(self.stack.wake());
        if until == Ns::MAX && self.under_way() == 0 {
            let (queue, scheduler) = (self.stack.queue(), self.stack.scheduler_name().to_owned());
            return Err(
                SimError::Stalled { pending: queue.pending() as usize, now: self.now, scheduler }.into()
            );
        }
        // What is under way wakes whoever waits soon enough.
        let looks = !self.is_simulated && self.under_way() == 0;
        let until = if looks { until.min(self.now + LOOK) } else { until };
        self.wait_for_target(until)
    }

    fn wait_for_target(&mut self, until: Ns) -> Result<(), DriverError> {
        let until = Ns(until.0.saturating_add(self.began.0));
        let waited = self.target.wait(until, &mut self.completed);
        let mut completed = std::mem::take(&mut self.completed);
        for done in completed.drain(..) {
            self.complete(done);
        }
        self.completed = completed;
        self.now = self.now.max(waited?.saturating_sub(self.began));
        Ok(())
    }

    fn complete(&mut self, done: Completed) {
        // Clocks are looked at more often than once: no time lies before one that was acted on.
        self.now = self.now.max(done.completed.saturating_sub(self.began));
        let slot = self.slots[done.tag as usize];
        self.free_tags.push(done.tag);
        self.ask = true;
        let left = &mut self.operations[slot.index()];
        *left -= 1;
        if *left == 0 {
            self.stack.complete(self.now, slot, DeviceWaits::default(), &mut self.observer);
        }
    }

    /// Lets the target finish what it has, and issues nothing more.
    ///
    /// # Errors
    /// The target failed.
    pub fn wind_up(&mut self) -> Result<(), DriverError> {
        self.rests.clear();
        while self.under_way() > 0 {
            self.wait_for_target(Ns::MAX)?;
        }
        Ok(())
    }
}
