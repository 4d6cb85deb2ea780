//! How many requests are outstanding on each unit, as bitmaps: a request's load is found a word of units at a time, and only those
//! waiting requests are looked at whose load may have changed.

use super::ranks::Ranks;
use crate::host::Slot;
use planewise_model::location::{PageRange, UnitMap};

/// Loads told apart: 0 to 7 outstanding requests; 8 stands for more.
pub(super) const LOADS: usize = 8;

/// Outstanding requests by unit, and the units of the request in each slot.
pub(super) struct Loads {
    units: UnitMap,
    /// Words of a set of units.
    words: usize,
    /// By slot: the units of its request.
    touched: Vec<u64>,
    /// By unit: requests outstanding.
    outstanding: Vec<u16>,
    /// By load: the units with more than so many requests outstanding.
    above: Vec<u64>,
    /// Words of a set of slots, and by unit: the slots of the waiting requests that touch it.
    slot_words: usize,
    waiting: Vec<u64>,
    /// Whether the ranks of waiting requests follow their loads. Until somebody goes by them, all are 0.
    follows: bool,
}

impl Loads {
    pub(super) fn new(units: &UnitMap, slots: u32) -> Loads {
        let count = units.units() as usize;
        let words = count.div_ceil(64);
        Loads {
            units: units.clone(),
            words,
            touched: vec![0; words * slots as usize],
            outstanding: vec![0; count],
            above: vec![0; words * LOADS],
            slot_words: slots.div_ceil(64) as usize,
            waiting: vec![0; slots.div_ceil(64) as usize * count],
            follows: false,
        }
    }

    /// A request waits in `slot`.
    pub(super) fn enter(&mut self, slot: Slot, pages: PageRange) {
        let touched = &mut self.touched[slot.index() * self.words..][..self.words];
        touched.fill(0);
        self.units.for_each_unit(pages, |unit| touched[unit as usize / 64] |= 1 << (unit % 64));
        self.flip_waiting(slot);
    }

    /// It no longer waits.
    pub(super) fn leave(&mut self, slot: Slot) {
        self.flip_waiting(slot);
    }

    fn flip_waiting(&mut self, slot: Slot) {
        let (at, bit) = (slot.index() / 64, 1 << (slot.0 % 64));
        for word in 0..self.words {
            let mut left = self.touched[slot.index() * self.words + word];
            while left != 0 {
                let unit = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                self.waiting[unit * self.slot_words + at] ^= bit;
            }
        }
    }

    #[inline]
    fn touched(&self, slot: Slot) -> &[u64] {
        &self.touched[slot.index() * self.words..][..self.words]
    }

    /// Whether the ranks of waiting requests follow their loads.
    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// From now on they do; the caller ranks those that wait already.
    pub(super) fn follow(&mut self) {
        self.follows = true;
    }

    /// The load that the request in `slot` is ranked by.
    #[inline]
    pub(super) fn rank(&self, slot: Slot) -> usize {
        if self.follows { self.of(slot) } else { 0 }
    }

    /// Whether a quarter of the units of the request in `slot` are busy at least.
    #[inline]
    pub(super) fn is_behind(&self, slot: Slot) -> bool {
        self.exceeds(slot, 0)
    }

    /// Requests outstanding on a quarter of the units of the request in `slot` at least, up to [`LOADS`]. The busiest unit would do
    /// wide requests wrong: one of many units always has much to do.
    #[inline]
    fn of(&self, slot: Slot) -> usize {
        (0..LOADS).take_while(|&load| self.exceeds(slot, load)).count()
    }

    /// Whether the load of the request in `slot` is more than `load`.
    #[inline]
    fn exceeds(&self, slot: Slot, load: usize) -> bool {
        let Some(above) = self.above.get(load * self.words..(load + 1) * self.words) else { return false };
        let touched = self.touched(slot);
        let (mut busy, mut idle) = (0, 0);
        for (word, &touched) in touched.iter().enumerate() {
            // Counting costs more than looking whether there is anything to count, and most requests are narrow.
            let (more, less) = (touched & above[word], touched & !above[word]);
            busy += if more == 0 { 0 } else { more.count_ones() };
            idle += if less == 0 { 0 } else { less.count_ones() };
        }
        busy > 0 && 3 * busy >= idle
    }

    /// Whether the requests in two slots share a unit.
    #[inline]
    pub(super) fn meet(&self, one: Slot, other: Slot) -> bool {
        let other = self.touched(other);
        self.touched(one).iter().enumerate().any(|(word, one)| one & other[word] != 0)
    }

    /// The request in `slot` was issued: the loads of those waiting for its units rise.
    pub(super) fn add(&mut self, slot: Slot, ranks: &mut Ranks) {
        self.count(slot, true, ranks);
    }

    /// It completed: they fall.
    pub(super) fn remove(&mut self, slot: Slot, ranks: &mut Ranks) {
        self.count(slot, false, ranks);
    }

    fn count(&mut self, slot: Slot, more: bool, ranks: &mut Ranks) {
        for word in 0..self.words {
            let mut left = self.touched[slot.index() * self.words + word];
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let unit = word * 64 + bit.trailing_zeros() as usize;
                // The set that it enters or leaves is the one of the smaller of both counts.
                let load = usize::from(self.outstanding[unit] - u16::from(!more));
                self.outstanding[unit] = load as u16 + u16::from(more);
                if let Some(above) = self.above.get_mut(load * self.words + word) {
                    *above ^= bit;
                    if self.follows {
                        self.reconsider(unit, load, more, ranks);
                    }
                }
            }
        }
    }

    /// A unit has more, or no longer has more, than `load` requests outstanding. Loads of waiting requests follow one step at a time:
    /// only those of `load` can rise, and only to the next; only those of the next can fall.
    fn reconsider(&self, unit: usize, load: usize, more: bool, ranks: &mut Ranks) {
        let (from, to) = if more { (load, load + 1) } else { (load + 1, load) };
        for (word, &waiting) in self.waiting[unit * self.slot_words..][..self.slot_words].iter().enumerate() {
            let mut left = waiting;
            while left != 0 {
                let slot = Slot(word as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
                if ranks.load(slot) == from && self.exceeds(slot, load) == more {
                    ranks.set_load(slot, to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(first: u64, count: u32) -> PageRange {
        PageRange { first, count }
    }

    #[test]
    fn a_load_is_that_of_a_quarter_of_the_units_up_to_the_most_told_apart() {
        use planewise_model::Direction::Read;
        // 70 units: two words.
        let mut loads = Loads::new(&UnitMap::modulo(70), 32);
        loads.follow();
        let mut ranks = Ranks::new(32);
        let [two, eight, none] = [Slot(29), Slot(30), Slot(31)];
        for (slot, pages) in [(two, pages(68, 2)), (eight, pages(66, 8)), (none, pages(0, 2))] {
            loads.enter(slot, pages);
            ranks.push(slot, Read, false, loads.of(slot));
        }
        for slot in 0..20 {
            loads.enter(Slot(slot), pages(68, 1));
            loads.leave(Slot(slot));
        }
        let check = |loads: &Loads, ranks: &Ranks, on_68: usize| {
            assert_eq!([two, eight, none].map(|slot| loads.of(slot)), [LOADS.min(on_68), 0, 0]);
            assert_eq!([two, eight, none].map(|slot| ranks.load(slot)), [LOADS.min(on_68), 0, 0]);
        };
        for slot in 0..20 {
            check(&loads, &ranks, slot as usize);
            loads.add(Slot(slot), &mut ranks);
        }
        assert!(loads.meet(eight, two) && loads.meet(eight, none) && !loads.meet(two, none));
        loads.leave(none);
        loads.add(none, &mut ranks);
        assert_eq!((loads.of(eight), ranks.load(eight)), (1, 1), "three of eight");
        loads.remove(none, &mut ranks);
        for slot in (0..20).rev() {
            loads.remove(Slot(slot), &mut ranks);
            assert_eq!(ranks.load(two), LOADS.min(slot as usize));
            assert_eq!(loads.of(eight), 0);
        }
    }

    #[test]
    fn loads_that_follow_step_by_step_are_those_counted_anew() {
        use planewise_model::Direction::Read;
        use planewise_model::rng::generator;
        use rand::RngExt;
        for seed in 0..60 {
            let mut random = generator(seed, "loads");
            let units = random.random_range(1..150u32);
            let slots = random.random_range(2..100u32);
            let mut loads = Loads::new(&UnitMap::modulo(units), slots);
            loads.follow();
            let mut ranks = Ranks::new(slots);
            let mut free: Vec<Slot> = (0..slots).map(Slot).collect();
            let (mut waiting, mut outstanding) = (Vec::new(), Vec::new());
            let widest = if random.random_bool(0.5) { 4 } else { 2 * units };
            for step in 0..1_000 {
                match random.random_range(0..3) {
                    0 if !free.is_empty() => {
                        let slot = free.pop().unwrap();
                        loads.enter(
                            slot,
                            pages(random.random_range(0..1_000), random.random_range(1..=widest)),
                        );
                        ranks.push(slot, Read, false, loads.of(slot));
                        waiting.push(slot);
                    }
                    1 if !waiting.is_empty() => {
                        let slot = waiting.swap_remove(random.random_range(0..waiting.len()));
                        ranks.remove(slot);
                        loads.leave(slot);
                        loads.add(slot, &mut ranks);
                        outstanding.push(slot);
                    }
                    2 if !outstanding.is_empty() => {
                        let slot = outstanding.swap_remove(random.random_range(0..outstanding.len()));
                        loads.remove(slot, &mut ranks);
                        free.push(slot);
                    }
                    _ => {}
                }
                for &slot in &waiting {
                    assert_eq!(ranks.load(slot), loads.of(slot), "seed {seed}, step {step}");
                }
            }
        }
    }
}
