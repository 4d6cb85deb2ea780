//! Batches of requests that do not conflict with one another (TCAD paper, section IV-B.2).
//!
//! A new request joins the oldest batch whose vector it does not touch, else it opens one at the tail. Batches leave in the
//! order of their creation. The batch being issued is open too: its vector covers what of it waits or is outstanding.
//!
//! The vectors are kept transposed: one row for each unit, one bit in it for each batch. First fit over all batches is the
//! OR of the rows that the request touches and a search for the first zero, 64 batches at a time: its cost does not
//! depend on how many requests are queued.

use super::fifo::Lane;
use super::list::{Links, List};
use super::tunables::TunableKind;
use super::{Growth, HostKnowledge, Tunable, TunableValues};
use crate::host::{Gate, QueuedRequest, Slot};
use planewise_model::Ns;
use planewise_model::location::{PageRange, UnitMap};

/// Whether a batch may start while members of the last are in flight: the papers leave it open (docs/schedulers/piq.md).
pub(super) const BARRIER: Tunable = Tunable {
    name: "barrier",
    unit: "",
    summary: "when the next batch may start: once the last is issued (units idle less), or once it is complete (batches never mix)",
    kind: TunableKind::Choice(&["issue", "complete"]),
};

const NO_BATCH: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    Issue,
    Complete,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Since when the oldest of its waiting members waits, as a batch.
    created: Ns,
    waiting: List,
    outstanding: List,
}

/// The batches of one direction.
pub(super) struct Batches {
    barrier: Barrier,
    units: UnitMap,
    /// Words of a row; a ring of `64 * words` batches is never full because every batch has a member.
    words: usize,
    /// `rows[unit * words + word]`: batches that touch the unit.
    rows: Vec<u64>,
    /// Batches with a member that touches every unit, kept apart from the rows: such requests are long but cost no more.
    everywhere: Vec<u64>,
    /// Batches that a request may join.
    open: Vec<u64>,
    scratch: Vec<u64>,
    ring: Vec<Batch>,
    /// Number of the batch being issued; of the next batch to be opened.
    current: u64,
    next: u64,
    waiting: u32,
    /// By slot.
    links: Links,
    batch_of: Vec<u64>,
    pages_of: Vec<PageRange>,
    joined: u64,
}

impl Batches {
    pub(super) fn new(host: &HostKnowledge, values: &TunableValues) -> Batches {
        let words = (host.queue_length as usize).div_ceil(64);
        let units = host.units.units() as usize;
        let batch = Batch { created: Ns::ZERO, waiting: List::EMPTY, outstanding: List::EMPTY };
        Batches {
            barrier: if values.choice("barrier") == "complete" { Barrier::Complete } else { Barrier::Issue },
            units: host.units.clone(),
            words,
            rows: vec![0; units * words],
            everywhere: vec![0; words],
            open: vec![0; words],
            scratch: vec![0; words],
            ring: vec![batch; words * 64],
            current: 0,
            next: 0,
            waiting: 0,
            links: Links::new(host.queue_length),
            batch_of: vec![NO_BATCH; host.queue_length as usize],
            pages_of: vec![PageRange { first: 0, count: 1 }; host.queue_length as usize],
            joined: 0,
        }
    }

    #[inline]
    fn index(&self, batch: u64) -> usize {
        // The ring's length is a multiple of 64 but not always a power of two.
        (batch % self.ring.len() as u64) as usize
    }

    #[inline]
    fn touches_all(&self, pages: PageRange) -> bool {
        pages.count >= self.units.period()
    }

    /// The oldest open batch whose vector the pages do not touch.
    fn first_fit(&mut self, pages: PageRange) -> Option<u64> {
        if self.current == self.next {
            return None;
        }
        let words = self.words;
        if self.touches_all(pages) {
            // Only an empty batch would do, and there is none: the batch being issued ends when its last member completes.
            return None;
        }
        self.scratch.copy_from_slice(&self.everywhere);
        let (rows, scratch) = (&self.rows, &mut self.scratch);
        self.units.for_each_unit(pages, |unit| {
            let row = &rows[unit as usize * words..][..words];
            scratch.iter_mut().zip(row).for_each(|(sum, word)| *sum |= word);
        });
        let head = self.index(self.current);
        let (start, bit) = (head / 64, head % 64);
        for step in 0..=words {
            let word = (start + step) % words;
            let mut fits = self.open[word] & !self.scratch[word];
            if step == 0 {
                fits &= u64::MAX << bit;
            } else if step == words {
                fits &= !(u64::MAX << bit);
            }
            if fits != 0 {
                let found = word * 64 + fits.trailing_zeros() as usize;
                let ahead = (found + self.ring.len() - head) % self.ring.len();
                return Some(self.current + ahead as u64);
            }
        }
        None
    }

    fn set_units(&mut self, batch: u64, pages: PageRange, set: bool) {
        let index = self.index(batch);
        let (word, bit) = (index / 64, 1u64 << (index % 64));
        if self.touches_all(pages) {
            if set {
                self.everywhere[word] |= bit
            } else {
                self.everywhere[word] &= !bit
            }
            return;
        }
        let (rows, words) = (&mut self.rows, self.words);
        self.units.for_each_unit(pages, |unit| {
            let row = &mut rows[unit as usize * words + word];
            if set { *row |= bit } else { *row &= !bit }
        });
    }

    fn open_batch(&mut self, now: Ns) -> u64 {
        let batch = self.next;
        self.next += 1;
        let index = self.index(batch);
        self.ring[index] = Batch { created: now, waiting: List::EMPTY, outstanding: List::EMPTY };
        self.open[index / 64] |= 1 << (index % 64);
        batch
    }

    /// Moves on from batches that are through.
    fn advance(&mut self) {
        while self.current < self.next {
            let index = self.index(self.current);
            let batch = self.ring[index];
            let others_wait = self.current + 1 < self.next;
            let through = batch.waiting.is_empty()
                && (batch.outstanding.is_empty() || (self.barrier == Barrier::Issue && others_wait));
            if !through {
                return;
            }
            // Members still outstanding no longer belong to a batch: their units are the device's business now.
            let mut member = batch.outstanding.first();
            while let Some(slot) = member {
                self.set_units(self.current, self.pages_of[slot.index()], false);
                self.batch_of[slot.index()] = NO_BATCH;
                member = self.links.next(slot);
            }
            self.open[index / 64] &= !(1 << (index % 64));
            self.current += 1;
        }
    }

    /// With `barrier = "complete"` a batch that is all out would live for ever if newcomers kept joining it: it closes when
    /// others wait.
    fn close_if_issued(&mut self) {
        if self.barrier == Barrier::Complete && self.current + 1 < self.next {
            let index = self.index(self.current);
            if self.ring[index].waiting.is_empty() {
                self.open[index / 64] &= !(1 << (index % 64));
            }
        }
    }
}

impl Lane for Batches {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.close_if_issued();
        let batch = match self.first_fit(request.pages) {
            Some(batch) => {
                self.joined += 1;
                batch
            }
            None => self.open_batch(now),
        };
        let index = self.index(batch);
        if self.ring[index].waiting.is_empty() {
            self.ring[index].created = now;
        }
        self.ring[index].waiting.push(&mut self.links, slot);
        self.batch_of[slot.index()] = batch;
        self.pages_of[slot.index()] = request.pages;
        self.set_units(batch, request.pages, true);
        self.waiting += 1;
        self.advance();
    }

    fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    fn take(&mut self, gate: &Gate<'_>) -> Option<Slot> {
        let index = self.index(self.current);
        if self.current == self.next {
            return None;
        }
        let mut member = self.ring[index].waiting.first();
        // Members do not conflict: whichever the device takes may go.
        while member.is_some_and(|slot| !gate.accepts(slot)) {
            member = member.and_then(|slot| self.links.next(slot));
        }
        let slot = member?;
        let batch = &mut self.ring[index];
        batch.waiting.remove(&mut self.links, slot);
        batch.outstanding.push(&mut self.links, slot);
        self.waiting -= 1;
        self.advance();
        Some(slot)
    }

    fn completed(&mut self, slot: Slot, _request: &QueuedRequest) {
        let batch = std::mem::replace(&mut self.batch_of[slot.index()], NO_BATCH);
        if batch == NO_BATCH {
            return;
        }
        let index = self.index(batch);
        self.ring[index].outstanding.remove(&mut self.links, slot);
        self.set_units(batch, self.pages_of[slot.index()], false);
        self.advance();
    }

    /// A batch stays free of conflicts and keeps its members: one may grow over units that no other member touches, by a
    /// request that is in no batch yet.
    fn may_grow(&self, growth: &Growth<'_>) -> bool {
        let &Growth { slot, added, union, joining_slot, .. } = growth;
        if joining_slot.is_some() {
            return false;
        }
        let batch = &self.ring[self.index(self.batch_of[slot.index()])];
        if batch.waiting.count() + batch.outstanding.count() == 1 {
            return true;
        }
        if self.touches_all(union) {
            return false;
        }
        let (index, own) = (self.index(self.batch_of[slot.index()]), self.pages_of[slot.index()]);
        let mut free = true;
        self.units.for_each_unit(added, |unit| {
            if self.rows[unit as usize * self.words + index / 64] >> (index % 64) & 1 == 1 {
                let mut mine = false;
                self.units.for_each_unit(own, |other| mine |= other == unit);
                free &= mine;
            }
        });
        free
    }

    fn grew(&mut self, slot: Slot, after: PageRange) {
        let batch = self.batch_of[slot.index()];
        self.set_units(batch, self.pages_of[slot.index()], false);
        self.pages_of[slot.index()] = after;
        self.set_units(batch, after, true);
    }

    fn forget(&mut self, _slot: Slot) {
        unreachable!("may_grow lets no batch give a member away");
    }

    fn oldest_batch(&self) -> Option<(u64, Ns)> {
        let batch = &self.ring[self.index(self.current)];
        (self.current < self.next && !batch.waiting.is_empty()).then_some((self.current, batch.created))
    }

    fn is_draining(&self) -> bool {
        self.barrier == Barrier::Complete
            && self.current < self.next
            && !self.ring[self.index(self.current)].outstanding.is_empty()
    }

    fn batch_counts(&self) -> (u64, u64) {
        (self.next, self.joined)
    }
}
