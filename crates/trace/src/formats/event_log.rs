//! The reader that all event logs of the Linux block layer share: a log that is fed step by step into the [`Assembler`].

use super::Reader;
use super::block_events::{Assembler, Choice, Devices, Event};
use crate::error::{Position, TraceError};
use planewise_model::Request;

/// One kind of log: how to take its next entry.
pub(crate) trait Log: Send {
    /// Reads the next line or record and feeds what it says to `events`; false at the end.
    fn step(&mut self, events: &mut Events) -> Result<bool, TraceError>;

    /// What only this kind of log can warn of.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Where a log puts its events.
pub(crate) struct Events {
    assembler: Assembler,
    devices: Devices,
}

impl Events {
    /// Takes an event of a device.
    #[inline]
    pub(crate) fn push(&mut self, mut event: Event, major: u32, minor: u32, position: Position) {
        event.volume = self.devices.number(major, minor);
        self.assembler.push(event, position);
    }
}

/// A [`Reader`] over a log.
pub(crate) struct EventLog<L> {
    log: L,
    events: Events,
    position: Position,
    ended: bool,
}

impl<L: Log> EventLog<L> {
    /// A reader that makes requests of the events that `choice` says.
    pub(crate) fn new(log: L, choice: Choice) -> EventLog<L> {
        let events = Events { assembler: Assembler::new(choice), devices: Devices::default() };
        EventLog { log, events, position: Position::File, ended: false }
    }
}

impl<L: Log> Reader for EventLog<L> {
    fn read(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < limit {
            match self.events.assembler.pop() {
                Some((request, position)) => {
                    self.position = position;
                    batch.push(request);
                    count += 1;
                }
                None if self.ended => break,
                None => {
                    if !self.log.step(&mut self.events)? {
                        self.events.assembler.finish();
                        self.ended = true;
                    }
                }
            }
        }
        Ok(count)
    }

    fn position(&self) -> Position {
        self.position
    }

    fn volume_names(&self) -> &[String] {
        self.events.devices.names()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.log.warnings();
        warnings.extend(self.events.assembler.skipped().describe());
        warnings
    }
}
