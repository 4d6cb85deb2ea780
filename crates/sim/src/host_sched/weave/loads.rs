//! How many requests are outstanding on each unit, as bitmaps: a request's load is found a word of units at a time.

use crate::host::Slot;
use planewise_model::location::{PageRange, UnitMap};

/// Loads told apart: 0 to 7 outstanding requests; 8 stands for more.
const LOADS: usize = 8;

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

    /// Requests outstanding on a quarter of the units of the request in `slot` at least, up to [`LOADS`]. The busiest unit would do
    /// wide requests wrong: one of many units always has much to do.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> usize {
        let touched = self.touched(slot);
        let is_above = |above: &[u64]| {
            let mut busy = 0;
            let mut idle = 0;
            for (touched, above) in touched.iter().zip(above) {
                busy += (touched & above).count_ones();
                idle += (touched & !above).count_ones();
            }
            busy > 0 && 3 * busy >= idle
        };
        self.above.chunks_exact(self.words).take_while(|above| is_above(above)).count()
    }

    /// Whether the requests in two slots share a unit.
    pub(super) fn meet(&self, one: Slot, other: Slot) -> bool {
        self.touched(one).iter().zip(self.touched(other)).any(|(one, other)| one & other != 0)
    }

    /// The request in `slot` was issued.
    pub(super) fn add(&mut self, slot: Slot) {
        self.count(slot, true);
    }

    /// It completed.
    pub(super) fn remove(&mut self, slot: Slot) {
        self.count(slot, false);
    }

    fn count(&mut self, slot: Slot, more: bool) {
        for word in 0..self.words {
            let mut left = self.touched[slot.index() * self.words + word];
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let outstanding = &mut self.outstanding[word * 64 + bit.trailing_zeros() as usize];
                // The set that it enters or leaves is the one of the smaller of both counts.
                *outstanding -= u16::from(!more);
                if let Some(above) = self.above.get_mut(usize::from(*outstanding) * self.words + word) {
                    *above ^= bit;
                }
                *outstanding += u16::from(more);
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
        // 70 units: two words.
        let mut loads = Loads::new(&UnitMap::modulo(70), 32);
        for slot in 0..20 {
            loads.place(Slot(slot), pages(68, 1));
        }
        let [two, eight, none] = [Slot(29), Slot(30), Slot(31)];
        loads.place(two, pages(68, 2));
        loads.place(eight, pages(66, 8));
        loads.place(none, pages(0, 2));
        let check = |loads: &Loads, on_68: usize| {
            assert_eq!([two, eight, none].map(|slot| loads.of(slot)), [LOADS.min(on_68), 0, 0]);
        };
        for slot in 0..20 {
            check(&loads, slot as usize);
            loads.add(Slot(slot));
        }
        assert!(loads.meet(eight, two) && loads.meet(eight, none) && !loads.meet(two, none));
        loads.add(none);
        assert_eq!(loads.of(eight), 1, "three of eight");
        loads.remove(none);
        for slot in (0..20).rev() {
            loads.remove(Slot(slot));
            check(&loads, slot as usize);
        }
    }
}
