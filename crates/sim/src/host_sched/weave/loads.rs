//! How many requests are outstanding on each unit, as bitmaps: a request's load is found a word of units at a time.

use crate::host::Slot;
use planewise_model::Direction;
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
    all: Counts,
    writes: Counts,
}

/// Outstanding requests of a kind.
struct Counts {
    /// By unit.
    outstanding: Vec<u16>,
    /// By load: the units with more than so many.
    above: Vec<u64>,
}

impl Counts {
    fn new(units: usize, words: usize) -> Counts {
        Counts { outstanding: vec![0; units], above: vec![0; words * LOADS] }
    }

    /// The most on a unit of a set, at most [`LOADS`].
    #[inline]
    fn most(&self, units: &[u64]) -> usize {
        let is_above = |above: &[u64]| units.iter().zip(above).any(|(units, above)| units & above != 0);
        self.above.chunks_exact(units.len()).take_while(|above| is_above(above)).count()
    }

    /// One more or less on each unit of a set.
    fn count(&mut self, units: &[u64], more: bool) {
        for (word, &bits) in units.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let outstanding = &mut self.outstanding[word * 64 + bit.trailing_zeros() as usize];
                // The set that it enters or leaves is the one of the smaller of both counts.
                *outstanding -= u16::from(!more);
                if let Some(above) = self.above.get_mut(usize::from(*outstanding) * units.len() + word) {
                    *above ^= bit;
                }
                *outstanding += u16::from(more);
            }
        }
    }
}

impl Loads {
    pub(super) fn new(units: &UnitMap, slots: u32) -> Loads {
        let count = units.units() as usize;
        let words = count.div_ceil(64);
        Loads {
            units: units.clone(),
            words,
            touched: vec![0; words * slots as usize],
            all: Counts::new(count, words),
            writes: Counts::new(count, words),
        }
    }

    /// A request waits in `slot`, or grew there.
    pub(super) fn place(&mut self, slot: Slot, pages: PageRange) {
        let touched = &mut self.touched[slot.index() * self.words..][..self.words];
        touched.fill(0);
        self.units.for_each_unit(pages, |unit| touched[unit as usize / 64] |= 1 << (unit % 64));
    }

    #[inline]
    fn touched(&self, slot: Slot) -> &[u64] {
        &self.touched[slot.index() * self.words..][..self.words]
    }

    /// Requests outstanding on the busiest unit of the request in `slot`, at most [`LOADS`].
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> usize {
        self.all.most(self.touched(slot))
    }

    /// Writes outstanding on the unit of it that has most of them, at most [`LOADS`].
    pub(super) fn of_writes(&self, slot: Slot) -> usize {
        self.writes.most(self.touched(slot))
    }

    /// Whether the requests in two slots share a unit.
    pub(super) fn meet(&self, one: Slot, other: Slot) -> bool {
        self.touched(one).iter().zip(self.touched(other)).any(|(one, other)| one & other != 0)
    }

    /// The request in `slot` was issued.
    pub(super) fn add(&mut self, slot: Slot, direction: Direction) {
        self.count(slot, direction, true);
    }

    /// It completed.
    pub(super) fn remove(&mut self, slot: Slot, direction: Direction) {
        self.count(slot, direction, false);
    }

    fn count(&mut self, slot: Slot, direction: Direction, more: bool) {
        let touched = &self.touched[slot.index() * self.words..][..self.words];
        self.all.count(touched, more);
        if direction == Direction::Write {
            self.writes.count(touched, more);
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
    fn a_load_is_that_of_the_busiest_unit_up_to_the_most_told_apart() {
        // 70 units: two words.
        let mut loads = Loads::new(&UnitMap::modulo(70), 32);
        for slot in 0..20 {
            loads.place(Slot(slot), pages(68, 1));
        }
        loads.place(Slot(30), pages(66, 8));
        loads.place(Slot(31), pages(0, 2));
        assert_eq!(loads.of(Slot(30)), 0);
        for slot in 0..20 {
            assert_eq!(loads.of(Slot(30)), LOADS.min(slot as usize));
            let direction = if slot < 5 { Direction::Write } else { Direction::Read };
            loads.add(Slot(slot), direction);
            assert_eq!(loads.of_writes(Slot(30)), 5.min(slot as usize + 1));
        }
        assert_eq!(loads.of(Slot(31)), 0);
        assert!(loads.meet(Slot(30), Slot(31)) && !loads.meet(Slot(0), Slot(31)));
        for slot in (0..20).rev() {
            let direction = if slot < 5 { Direction::Write } else { Direction::Read };
            loads.remove(Slot(slot), direction);
            assert_eq!(loads.of_writes(Slot(30)), 5.min(slot as usize));
            assert_eq!(loads.of(Slot(30)), LOADS.min(slot as usize));
        }
    }
}
