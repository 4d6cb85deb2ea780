//! Waiting requests by load, direction and arrival: the first of any of these is found a word of requests at a time.
//!
//! Each waiting request has a *place*, and places are given out in the order of arrival. A set of requests is a bitmap over places,
//! used as a ring; when the places between the oldest and the newest request no longer fit, all move together.

use super::loads::{LOADS, Loads};
use crate::host::Slot;
use planewise_model::Direction;

/// A set of places.
type Places = Vec<u64>;

/// Waiting requests in all the orders that they may be issued in.
pub(super) struct Ranks {
    /// By place in the ring: the slot of its request.
    slots: Vec<Slot>,
    /// By slot: the place of its request, and what it is.
    places: Vec<u64>,
    kinds: Vec<Kind>,
    /// The place of the oldest that may be waiting, and of the next to arrive.
    oldest: u64,
    next: u64,
    all: Places,
    by_direction: [Places; 2],
    short_reads: Places,
    waiting: u32,
    /// A set of slots: those of the load that is looked at.
    level: Vec<u64>,
    /// Those that are not looked at, as the device refused them, and how many.
    refused: Places,
    refusals: u32,
}

#[derive(Clone, Copy)]
struct Kind {
    direction: Direction,
    is_short_read: bool,
}

impl Kind {
    #[inline]
    fn is(self, preferred: Preferred) -> bool {
        match preferred {
            Preferred::Nobody => true,
            Preferred::All(direction) => self.direction == direction,
            Preferred::ShortReads => self.is_short_read,
        }
    }
}

/// Requests of one load that are compared with one another; more are looked for in the order of arrival.
const FEW: u32 = 16;

/// Which requests go before the others of their load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preferred {
    /// None: the oldest goes first.
    Nobody,
    /// Those of a direction.
    All(Direction),
    /// Short reads.
    ShortReads,
}

impl Ranks {
    pub(super) fn new(slots: u32) -> Ranks {
        // A ring of four times the slots is seldom too small: requests that wait long are few.
        let ring = (slots as usize * 4).next_power_of_two().max(256);
        let places = || vec![0; ring / 64];
        Ranks {
            slots: vec![Slot(0); ring],
            places: vec![0; slots as usize],
            kinds: vec![Kind { direction: Direction::Read, is_short_read: false }; slots as usize],
            oldest: 0,
            next: 0,
            all: places(),
            by_direction: std::array::from_fn(|_| places()),
            short_reads: places(),
            waiting: 0,
            level: vec![0; slots.div_ceil(64) as usize],
            refused: places(),
            refusals: 0,
        }
    }

    /// The device refused the request in `slot`: it is not looked at until [`Ranks::ask_again`].
    pub(super) fn refuse(&mut self, slot: Slot) {
        let at = self.ring(self.places[slot.index()]);
        self.refused[at / 64] |= 1 << (at % 64);
        self.refusals += 1;
    }

    /// The request in `slot` is looked at again.
    pub(super) fn ask_again(&mut self, slot: Slot) {
        let at = self.ring(self.places[slot.index()]);
        if contains(&self.refused, at) {
            flip(&mut self.refused, at);
            self.refusals -= 1;
        }
    }

    /// A request waits from now on, behind all others.
    pub(super) fn push(&mut self, slot: Slot, direction: Direction, is_short_read: bool) {
        // The first and the last word in use must not be the same.
        if self.next - self.oldest > (self.slots.len() - 64) as u64 {
            self.close_gaps();
        }
        self.kinds[slot.index()] = Kind { direction, is_short_read };
        self.put(slot);
    }

    fn put(&mut self, slot: Slot) {
        let place = self.next;
        self.next += 1;
        self.places[slot.index()] = place;
        let at = self.ring(place);
        self.slots[at] = slot;
        self.flip(slot);
        self.waiting += 1;
    }

    /// The request in `slot` no longer waits.
    pub(super) fn remove(&mut self, slot: Slot) {
        if self.refusals > 0 {
            self.ask_again(slot);
        }
        self.flip(slot);
        self.waiting -= 1;
        while self.oldest < self.next && !contains(&self.all, self.ring(self.oldest)) {
            self.oldest += 1;
        }
    }

    /// The request in `slot` grew.
    pub(super) fn set_short_read(&mut self, slot: Slot, is_short_read: bool) {
        if self.kinds[slot.index()].is_short_read != is_short_read {
            self.kinds[slot.index()].is_short_read = is_short_read;
            let at = self.ring(self.places[slot.index()]);
            flip(&mut self.short_reads, at);
        }
    }

    /// The first request that `takes` says yes to: by load, if loads are given; of equal loads, the preferred ones first; of those the
    /// oldest. Only the oldest `most` are looked at, without those that were refused.
    pub(super) fn first(
        &mut self,
        loads: Option<&Loads>,
        preferred: Preferred,
        most: u32,
        mut takes: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        if self.refusals == self.waiting {
            return None;
        }
        let end = self.end_of(most);
        let Some(loads) = loads else { return self.first_in_places(preferred, end, takes) };
        (0..=LOADS).find_map(|load| {
            let level = &loads.level(load)[..self.level.len()];
            if level.iter().all(|&word| word == 0) {
                return None;
            }
            if are_few(level) {
                self.level.copy_from_slice(level);
                return self.first_of_few(preferred, end, &mut takes);
            }
            self.first_in_places(preferred, end, |slot| is_in(level, slot) && takes(slot))
        })
    }

    /// The first of the level that is looked at, of which there are few: they are compared with one another.
    fn first_of_few(
        &mut self,
        preferred: Preferred,
        end: u64,
        mut takes: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        loop {
            let mut first: Option<(bool, u64, Slot)> = None;
            for (word, &level) in self.level.iter().enumerate() {
                let mut left = level;
                while left != 0 {
                    let slot = Slot(word as u32 * 64 + left.trailing_zeros());
                    left &= left - 1;
                    let place = self.places[slot.index()];
                    let rank = (!self.kinds[slot.index()].is(preferred), place, slot);
                    let is_asked =
                        place < end && !(self.refusals > 0 && contains(&self.refused, self.ring(place)));
                    if is_asked && first.is_none_or(|first| rank < first) {
                        first = Some(rank);
                    }
                }
            }
            let (_, _, slot) = first?;
            if takes(slot) {
                return Some(slot);
            }
            flip(&mut self.level, slot.index());
        }
    }

    /// The first of all that wait.
    fn first_in_places(
        &self,
        preferred: Preferred,
        end: u64,
        mut takes: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        let preferred = match preferred {
            Preferred::Nobody => None,
            Preferred::All(direction) => Some(&self.by_direction[direction.index()]),
            Preferred::ShortReads => Some(&self.short_reads),
        };
        let asked = |word: usize| self.all[word] & !self.refused[word];
        let Some(preferred) = preferred else { return self.search(end, asked, takes) };
        self.search(end, |word| asked(word) & preferred[word], &mut takes)
            .or_else(|| self.search(end, |word| asked(word) & !preferred[word], &mut takes))
    }

    /// The first of a set that `takes` says yes to, in the order of arrival. `set` gives its words.
    #[inline]
    fn search(
        &self,
        end: u64,
        set: impl Fn(usize) -> u64,
        mut takes: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        for word in self.oldest / 64..end.div_ceil(64) {
            let index = word as usize & (self.all.len() - 1);
            let mut left = set(index);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                if word * 64 + u64::from(bit) >= end {
                    return None;
                }
                let slot = self.slots[index * 64 + bit as usize];
                if takes(slot) {
                    return Some(slot);
                }
            }
        }
        None
    }

    /// The place behind the oldest `most` requests.
    fn end_of(&self, most: u32) -> u64 {
        if self.waiting <= most {
            return self.next;
        }
        let mut left = most;
        let first_behind = |_| {
            let is_behind = left == 0;
            left = left.saturating_sub(1);
            is_behind
        };
        let found = self.search(self.next, |word| self.all[word], first_behind);
        found.map_or(self.next, |slot| self.places[slot.index()])
    }

    /// Gives all requests new places, one behind the other.
    #[cold]
    fn close_gaps(&mut self) {
        let mut waiting = Vec::with_capacity(self.waiting as usize);
        self.search(
            self.next,
            |word| self.all[word],
            |slot| {
                waiting.push(slot);
                false
            },
        );
        let is_refused = |slot: &Slot| contains(&self.refused, self.ring(self.places[slot.index()]));
        let refused: Vec<Slot> = waiting.iter().copied().filter(is_refused).collect();
        self.refused.fill(0);
        self.refusals = 0;
        waiting.iter().for_each(|&slot| self.flip(slot));
        self.waiting = 0;
        self.oldest = self.next;
        waiting.into_iter().for_each(|slot| self.put(slot));
        refused.into_iter().for_each(|slot| self.refuse(slot));
    }

    /// Puts the request in `slot` in its sets, or takes it out of them.
    fn flip(&mut self, slot: Slot) {
        let at = self.ring(self.places[slot.index()]);
        let Kind { direction, is_short_read } = self.kinds[slot.index()];
        flip(&mut self.all, at);
        flip(&mut self.by_direction[direction.index()], at);
        if is_short_read {
            flip(&mut self.short_reads, at);
        }
    }

    #[inline]
    fn ring(&self, place: u64) -> usize {
        place as usize & (self.slots.len() - 1)
    }
}

#[inline]
fn flip(places: &mut Places, at: usize) {
    places[at / 64] ^= 1 << (at % 64);
}

/// Whether a set has at most [`FEW`] members.
#[inline]
fn are_few(slots: &[u64]) -> bool {
    let mut count = 0;
    for &word in slots {
        let mut left = word;
        while left != 0 {
            left &= left - 1;
            count += 1;
            if count > FEW {
                return false;
            }
        }
    }
    true
}

#[inline]
fn is_in(slots: &[u64], slot: Slot) -> bool {
    slots[slot.index() / 64] >> (slot.0 % 64) & 1 == 1
}

#[inline]
fn contains(places: &Places, at: usize) -> bool {
    places[at / 64] >> (at % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::location::{PageRange, UnitMap};
    use planewise_model::rng::generator;
    use rand::RngExt;

    /// One waiting request of the model that the bitmaps are compared with.
    #[derive(Clone, Copy)]
    struct Model {
        slot: Slot,
        direction: Direction,
        is_short_read: bool,
        unit: u64,
        is_refused: bool,
    }

    #[test]
    fn the_first_of_every_order_is_the_one_that_a_search_of_all_finds() {
        for seed in 0..60 {
            let mut random = generator(seed, "ranks");
            let slots = random.random_range(1..200u32);
            let units = random.random_range(1..20u64);
            let mut ranks = Ranks::new(slots);
            // Requests of one unit each. What is outstanding has slots of its own.
            let mut loads = Loads::new(&UnitMap::modulo(units as u32), slots + 40);
            loads.follow(std::iter::empty());
            let page = |unit| PageRange { first: unit, count: 1 };
            let mut outstanding: Vec<(Slot, u64)> = Vec::new();
            // In the order of arrival.
            let mut waiting: Vec<Model> = Vec::new();
            let mut free: Vec<Slot> = (0..slots).map(Slot).collect();
            for step in 0..3_000 {
                match random.random_range(0..9) {
                    0 | 1 if !free.is_empty() => {
                        let slot = free.swap_remove(random.random_range(0..free.len()));
                        let direction = Direction::ALL[random.random_range(0..2usize)];
                        let is_short_read = direction == Direction::Read && random.random_bool(0.5);
                        let unit = random.random_range(0..units);
                        ranks.push(slot, direction, is_short_read);
                        loads.enter(slot, page(unit));
                        waiting.push(Model { slot, direction, is_short_read, unit, is_refused: false });
                    }
                    // Mostly younger ones leave: the oldest stay, and the ring fills.
                    2 | 3 if !waiting.is_empty() => {
                        let low = if random.random_bool(0.95) { waiting.len() / 2 } else { 0 };
                        let gone = waiting.remove(random.random_range(low..waiting.len()));
                        ranks.remove(gone.slot);
                        loads.leave(gone.slot);
                        free.push(gone.slot);
                    }
                    4 if outstanding.len() < 40 => {
                        let used = |slot: &Slot| outstanding.iter().any(|(other, _)| other == slot);
                        let slot = (slots..slots + 40).map(Slot).find(|slot| !used(slot)).unwrap();
                        let unit = random.random_range(0..units);
                        loads.enter(slot, page(unit));
                        loads.leave(slot);
                        loads.add(slot);
                        outstanding.push((slot, unit));
                    }
                    5 if !outstanding.is_empty() => {
                        let at = random.random_range(0..outstanding.len());
                        loads.remove(outstanding.swap_remove(at).0);
                    }
                    6 if !waiting.is_empty() => {
                        let at = random.random_range(0..waiting.len());
                        waiting[at].is_short_read = false;
                        ranks.set_short_read(waiting[at].slot, false);
                    }
                    7 if !waiting.is_empty() => {
                        let at = random.random_range(0..waiting.len());
                        if !waiting[at].is_refused {
                            waiting[at].is_refused = true;
                            ranks.refuse(waiting[at].slot);
                        }
                    }
                    8 => {
                        for model in &mut waiting {
                            model.is_refused = false;
                            ranks.ask_again(model.slot);
                        }
                    }
                    _ => {}
                }
                let by_load = random.random_bool(0.5);
                let most = random.random_range(1..=slots + 5);
                let preferred = [
                    Preferred::Nobody,
                    Preferred::ShortReads,
                    Preferred::All(Direction::Read),
                    Preferred::All(Direction::Write),
                ][random.random_range(0..4usize)];
                let unwanted = random.random_range(0..7u32);
                let takes = |slot: Slot| slot.0 % 7 != unwanted;
                let load = |unit| outstanding.iter().filter(|(_, other)| *other == unit).count().min(LOADS);
                let rank = |model: &Model| {
                    let goes_first = match preferred {
                        Preferred::Nobody => true,
                        Preferred::ShortReads => model.is_short_read,
                        Preferred::All(direction) => model.direction == direction,
                    };
                    (if by_load { load(model.unit) } else { 0 }, !goes_first)
                };
                let looked_at = waiting.iter().take(most as usize).filter(|model| takes(model.slot));
                let asked = looked_at.filter(|model| !model.is_refused);
                let expected = asked.min_by_key(|model| rank(model)).map(|model| model.slot);
                let found = ranks.first(by_load.then_some(&loads), preferred, most, takes);
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
        }
    }
}
