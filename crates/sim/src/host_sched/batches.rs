//! Batches of requests that do not conflict with one another (TCAD paper, section IV-B.2).
//!
//! A new request joins the oldest batch whose vector it does not touch, else it opens one at the tail. Batches leave in the
//! order of their creation. The batch being issued is open too, but a vector only ever grows (formula 4): a unit that a member
//! has left is not given to a newcomer while others of the batch wait. So a batch has at most one member for each unit, and no one
//! waits for ever in it or behind it.
//!
//! The vectors are kept transposed: one row for each unit, one bit in it for each batch. First fit over all batches is the
//! OR of the rows that the request touches and a search for the first zero, 64 batches at a time: its cost does not
//! depend on how many requests are queued.

use super::fifo::Lane;
use super::list::{Links, List};
use super::tunables::TunableKind;
use super::{Growth, HostKnowledge, Tunable, TunableValues};
use crate::host::{QueuedRequest, Slot};
use planewise_model::Ns;
use planewise_model::location::{PageRange, UnitMap};

/// Whether a batch may start while members of the last are in flight: the papers leave it open (docs/schedulers/piq.md).
pub(super) const BARRIER: Tunable = Tunable {
    name: "barrier",
    unit: "",
    summary: "when the next batch may start: once the last is issued (units idle less), or once it is complete (batches that conflict never mix)",
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
    /// Members issued and not complete.
    outstanding: u32,
}

/// The batches of one direction.
pub(super) struct Batches {
    barrier: Barrier,
    units: UnitMap,
    /// Words of a row; a ring of `64 * words` batches is never full because every batch has a member.
    words: usize,
    /// `rows[unit * words + word]`: batches that touch the unit.
    rows: Vec<u64>,
    /// The vectors themselves, `vectors[batch * unit_words + word]`: what is to be cleared when a batch is through.
    vectors: Vec<u64>,
    unit_words: usize,
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
        let batch = Batch { created: Ns::ZERO, waiting: List::EMPTY, outstanding: 0 };
        Batches {
            barrier: if values.choice("barrier") == "complete" { Barrier::Complete } else { Barrier::Issue },
            units: host.units.clone(),
            words,
            rows: vec![0; units * words],
            vectors: vec![0; units.div_ceil(64) * words * 64],
            unit_words: units.div_ceil(64),
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
            // Only an empty batch would do, and there is none.
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

    /// Formula 4.
    fn join(&mut self, batch: u64, pages: PageRange) {
        let index = self.index(batch);
        let (word, bit) = (index / 64, 1u64 << (index % 64));
        if self.touches_all(pages) {
            self.everywhere[word] |= bit;
            return;
        }
        let (rows, words) = (&mut self.rows, self.words);
        let vector = &mut self.vectors[index * self.unit_words..][..self.unit_words];
        self.units.for_each_unit(pages, |unit| {
            rows[unit as usize * words + word] |= bit;
            vector[unit as usize / 64] |= 1 << (unit % 64);
        });
    }

    fn open_batch(&mut self, now: Ns) -> u64 {
        let batch = self.next;
        self.next += 1;
        let index = self.index(batch);
        self.ring[index] = Batch { created: now, waiting: List::EMPTY, outstanding: 0 };
        self.open[index / 64] |= 1 << (index % 64);
        batch
    }

    /// Moves on from batches that are through: nothing of them waits, and what is out is complete or need not be waited for.
    /// With nobody behind it a batch whose members are all out stays, for newcomers that share no unit with them.
    fn advance(&mut self) {
        while self.current < self.next {
            let index = self.index(self.current);
            let Batch { waiting, outstanding, .. } = self.ring[index];
            let others_wait = self.current + 1 < self.next;
            let through = waiting.is_empty()
                && (outstanding == 0
                    || (self.barrier == Barrier::Issue && (others_wait || !self.is_open(index))));
            if !through {
                return;
            }
            self.clear(index);
            self.current += 1;
        }
    }

    #[inline]
    fn is_open(&self, index: usize) -> bool {
        self.open[index / 64] >> (index % 64) & 1 == 1
    }

    #[inline]
    fn seal_at(&mut self, index: usize) {
        self.open[index / 64] &= !(1 << (index % 64));
    }

    /// The place of a batch in the ring is free: no unit is its own any more.
    fn clear(&mut self, index: usize) {
        self.seal_at(index);
        let (word, words, mask) = (index / 64, self.words, !(1u64 << (index % 64)));
        self.everywhere[word] &= mask;
        for (units, vector) in
            self.vectors[index * self.unit_words..][..self.unit_words].iter_mut().enumerate()
        {
            let mut left = std::mem::take(vector);
            while left != 0 {
                self.rows[(units * 64 + left.trailing_zeros() as usize) * words + word] &= mask;
                left &= left - 1;
            }
        }
    }

    /// With `barrier = "complete"` a batch that is all out would live on while newcomers join it: it takes none when others wait.
    fn seal_if_issued(&mut self) {
        if self.barrier == Barrier::Complete && self.current + 1 < self.next {
            let index = self.index(self.current);
            if self.ring[index].waiting.is_empty() {
                self.seal_at(index);
            }
        }
    }
}

impl Lane for Batches {
    fn insert(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.seal_if_issued();
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
        self.join(batch, request.pages);
        self.waiting += 1;
        self.advance();
    }

    fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    fn take(&mut self, may_go: impl Fn(Slot) -> bool) -> Option<Slot> {
        let index = self.index(self.current);
        if self.current == self.next {
            return None;
        }
        let mut member = self.ring[index].waiting.first();
        // Members do not conflict: whichever the device takes may go.
        while member.is_some_and(|slot| !may_go(slot)) {
            member = member.and_then(|slot| self.links.next(slot));
        }
        let slot = member?;
        let batch = &mut self.ring[index];
        batch.waiting.remove(&mut self.links, slot);
        batch.outstanding += 1;
        self.waiting -= 1;
        self.advance();
        Some(slot)
    }

    fn completed(&mut self, slot: Slot, _request: &QueuedRequest) {
        let batch = std::mem::replace(&mut self.batch_of[slot.index()], NO_BATCH);
        // Where batches need not be complete, the next may have begun: the units are the device's business then.
        if batch != NO_BATCH && batch >= self.current {
            let index = self.index(batch);
            self.ring[index].outstanding -= 1;
            self.advance();
        }
    }

    /// A batch stays free of conflicts and keeps its members: one may grow over units that no other member touches, by a
    /// request that is in no batch yet.
    fn may_grow(&self, growth: &Growth<'_>) -> bool {
        let &Growth { slot, added, union, joining_slot, .. } = growth;
        if joining_slot.is_some() {
            return false;
        }
        let batch = &self.ring[self.index(self.batch_of[slot.index()])];
        if batch.waiting.count() + batch.outstanding == 1 {
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
        self.pages_of[slot.index()] = after;
        self.join(batch, after);
    }

    fn forget(&mut self, _slot: Slot) {
        unreachable!("may_grow lets no batch give a member away");
    }

    fn oldest_batch(&self) -> Option<(u64, Ns)> {
        // Where batches must be complete, the oldest that waits may be the one behind the batch that is all out.
        (self.current..self.next)
            .map(|batch| (batch, self.ring[self.index(batch)]))
            .find(|(_, batch)| !batch.waiting.is_empty())
            .map(|(number, batch)| (number, batch.created))
    }

    fn turn(&self) -> u64 {
        self.oldest_batch().map_or(self.current, |(batch, _)| batch)
    }

    fn seal(&mut self, batch: u64) {
        self.seal_at(self.index(batch));
    }

    fn blocks(&self, pages: PageRange) -> bool {
        let index = self.index(self.current);
        if self.barrier == Barrier::Issue || self.current == self.next || self.ring[index].outstanding == 0 {
            return false;
        }
        let bit = 1u64 << (index % 64);
        if self.touches_all(pages) || self.everywhere[index / 64] & bit != 0 {
            return true;
        }
        let mut touched = false;
        self.units.for_each_unit(pages, |unit| {
            touched |= self.rows[unit as usize * self.words + index / 64] & bit != 0;
        });
        touched
    }

    fn batch_counts(&self) -> (u64, u64) {
        (self.next, self.joined)
    }
}
