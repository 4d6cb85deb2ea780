//! Whether requests that overlap take effect in the order of their arrival, sector by sector: what a read returns and what the
//! flash holds at the end is what arrival order says. A part of [`super::invariants::Invariants`]; it shares no code with the host
//! stack, which sees to it.

use crate::host::Slot;
use planewise_model::{Direction, Lpn, Operation, Request};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Number of a write, plus one; 0 for what the device held before the run.
type Version = u64;

/// A request as it arrived, merged into another or not.
#[derive(Clone)]
struct Part {
    sequence: u64,
    sectors: Range<u64>,
    direction: Direction,
    /// For reads, by sector: the write that arrived last before it.
    expected: Vec<Version>,
}

impl Part {
    fn depends(&self, other: &Part) -> bool {
        self.sectors.start < other.sectors.end
            && other.sectors.start < self.sectors.end
            && (self.direction == Direction::Write || other.direction == Direction::Write)
    }
}

/// What was asked for and what took effect. Maps are looked up, never iterated, but for those in order.
#[derive(Default)]
pub(super) struct ArrivalOrder {
    sectors_per_page: u64,
    /// By sector: the write that arrived last, and the one that took effect last.
    arrived: BTreeMap<u64, Version>,
    effective: HashMap<u64, Version>,
    /// Requests in each slot.
    slots: Vec<Vec<Part>>,
    /// Requests that arrived and are not complete, by number: what of them is in which slot.
    unfinished: BTreeMap<u64, usize>,
}

impl ArrivalOrder {
    pub(super) fn start(&mut self, sectors_per_page: u32) {
        self.sectors_per_page = sectors_per_page.into();
    }

    /// A request arrives, in a slot of its own or merged into the one in `slot`.
    pub(super) fn enter(&mut self, slot: Slot, sequence: u64, request: &Request) {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, Vec::new());
        }
        let sectors = request.start.0..request.end().0;
        let expected = match request.direction {
            Direction::Read => {
                sectors.clone().map(|sector| self.arrived.get(&sector).copied().unwrap_or(0)).collect()
            }
            Direction::Write => {
                let mut written = sectors.clone();
                if request.operation == Operation::Discard {
                    // Pages of which it covers a part are left as they are.
                    let page = self.sectors_per_page;
                    written = written.start.div_ceil(page) * page..written.end / page * page;
                }
                self.arrived.extend(written.map(|sector| (sector, sequence + 1)));
                Vec::new()
            }
        };
        self.slots[slot.index()].push(Part { sequence, sectors, direction: request.direction, expected });
        self.unfinished.insert(sequence, slot.index());
    }

    pub(super) fn join(&mut self, into: Slot, other: Slot) {
        let mut parts = std::mem::take(&mut self.slots[other.index()]);
        for part in &parts {
            self.unfinished.insert(part.sequence, into.index());
        }
        self.slots[into.index()].append(&mut parts);
    }

    /// The request in `slot` goes to the device.
    ///
    /// # Errors
    /// An earlier one that overlaps it is unfinished.
    pub(super) fn issue(&self, slot: Slot) -> Result<(), String> {
        for part in &self.slots[slot.index()] {
            for (&sequence, &other) in self.unfinished.range(..part.sequence) {
                let earlier = self.slots[other].iter().find(|earlier| earlier.sequence == sequence);
                if other != slot.index() && earlier.is_some_and(|earlier| earlier.depends(part)) {
                    return Err(format!(
                        "request {} before request {sequence}, which it overlaps",
                        part.sequence
                    ));
                }
            }
        }
        Ok(())
    }

    fn sectors_of(&self, lpn: Lpn) -> Range<u64> {
        let first = u64::from(lpn.0) * self.sectors_per_page;
        first..first + self.sectors_per_page
    }

    /// The device took what the request in `slot` writes to a page.
    ///
    /// # Errors
    /// It had taken a later write of a sector of it before.
    pub(super) fn written(&mut self, slot: Slot, lpn: Lpn) -> Result<(), String> {
        let page = self.sectors_of(lpn);
        for part in &self.slots[slot.index()] {
            let version = part.sequence + 1;
            for sector in intersection(&part.sectors, &page) {
                let before = self.effective.insert(sector, version).unwrap_or(0);
                if before > version {
                    return Err(format!(
                        "sector {sector} written by request {} after request {}",
                        part.sequence,
                        before - 1
                    ));
                }
            }
        }
        Ok(())
    }

    /// The device returned a page to the read in `slot`.
    ///
    /// # Errors
    /// What took effect last is not the write that arrived last before it.
    pub(super) fn read(&self, slot: Slot, lpn: Lpn) -> Result<(), String> {
        let page = self.sectors_of(lpn);
        for part in &self.slots[slot.index()] {
            for sector in intersection(&part.sectors, &page) {
                let Some(&expected) = part.expected.get((sector - part.sectors.start) as usize) else {
                    continue;
                };
                let found = self.effective.get(&sector).copied().unwrap_or(0);
                if found != expected {
                    return Err(format!(
                        "request {} read sector {sector} of version {found}, arrival order says {expected}",
                        part.sequence
                    ));
                }
            }
        }
        Ok(())
    }

    /// The request in `slot` is complete, with all that were merged into it.
    pub(super) fn complete(&mut self, slot: Slot) {
        if let Some(parts) = self.slots.get_mut(slot.index()) {
            parts.drain(..).for_each(|part| {
                self.unfinished.remove(&part.sequence);
            });
        }
    }

    /// What the flash and its buffers hold at the end.
    ///
    /// # Errors
    /// The first sector of which an older write is the last that took effect.
    pub(super) fn finally(&self) -> Result<(), String> {
        let differs = |&(sector, version): &(&u64, &Version)| {
            self.effective.get(sector).copied().unwrap_or(0) != *version
        };
        match self.arrived.iter().find(differs) {
            Some((sector, version)) if self.unfinished.is_empty() => Err(format!(
                "at the end sector {sector} holds version {:?}, arrival order says {version}",
                self.effective.get(sector)
            )),
            _ => Ok(()),
        }
    }
}

fn intersection(first: &Range<u64>, second: &Range<u64>) -> Range<u64> {
    first.start.max(second.start)..first.end.min(second.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Lsn, Ns};

    /// A write of a page and a request that overlaps it, on a device of 8 sectors a page.
    fn two(second: Direction) -> ArrivalOrder {
        let mut order = ArrivalOrder::default();
        order.start(8);
        order.enter(Slot(0), 0, &Request::new(Ns(0), Lsn(0), 8, Direction::Write));
        order.enter(Slot(1), 1, &Request::new(Ns(1), Lsn(7), 8, second));
        order
    }

    #[test]
    fn a_later_request_that_is_issued_or_takes_effect_first_is_found() {
        let order = two(Direction::Write);
        order.issue(Slot(0)).unwrap();
        assert!(order.issue(Slot(1)).unwrap_err().contains("request 1 before request 0"));
        let mut order = two(Direction::Write);
        order.written(Slot(1), Lpn(0)).unwrap();
        assert!(order.written(Slot(0), Lpn(0)).unwrap_err().contains("sector 7"));
    }

    #[test]
    fn a_read_that_misses_an_earlier_write_or_sees_a_later_one_is_found() {
        let mut order = two(Direction::Read);
        assert!(order.read(Slot(1), Lpn(0)).unwrap_err().contains("arrival order says 1"));
        order.written(Slot(0), Lpn(0)).unwrap();
        order.read(Slot(1), Lpn(0)).unwrap();
        order.enter(Slot(2), 2, &Request::new(Ns(2), Lsn(7), 1, Direction::Write));
        order.written(Slot(2), Lpn(0)).unwrap();
        assert!(order.read(Slot(1), Lpn(0)).is_err());
    }

    #[test]
    fn a_write_that_never_took_effect_is_found_at_the_end() {
        let mut order = two(Direction::Write);
        order.written(Slot(0), Lpn(0)).unwrap();
        order.complete(Slot(0));
        order.complete(Slot(1));
        assert!(order.finally().unwrap_err().contains("sector 7"));
    }
}
