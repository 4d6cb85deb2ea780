//! How many requests are outstanding on each unit, as bitmaps: which waiting requests have how much to do before them is found a
//! word of requests at a time.

use crate::host::Slot;
use planewise_model::location::{PageRange, UnitMap};

/// Loads told apart: 0 to 7 outstanding requests; 8 stands for more.
pub(super) const LOADS: usize = 8;

/// Requests of no more units are behind others as soon as one unit is busy: it is a quarter of them.
const NARROW: u32 = 4;

/// Outstanding requests by unit, and the units of the request in each slot.
pub(super) struct Loads {
    units: UnitMap,
    /// Words of a set of units.
    words: usize,
    /// By slot: the units of its request, and whether they are no more than [`NARROW`].
    touched: Vec<u64>,
    is_narrow: Vec<bool>,
    /// By unit: requests outstanding.
    outstanding: Vec<u16>,
    /// By load: the units with more than so many requests outstanding.
    above: Vec<u64>,
    /// Words of a set of slots, and by unit: the slots of the waiting requests that touch it.
    slot_words: usize,
    waiting: Vec<u64>,
    /// The slots of waiting requests of more than [`NARROW`] units.
    wide: Vec<u64>,
    /// By load: the slots of waiting requests of that load. Until somebody goes by them, none.
    levels: Vec<u64>,
    follows: bool,
}

impl Loads {
    pub(super) fn new(units: &UnitMap, slots: u32) -> Loads {
        let count = units.units() as usize;
        let words = count.div_ceil(64);
        let slot_words = slots.div_ceil(64) as usize;
        Loads {
            units: units.clone(),
            words,
            touched: vec![0; words * slots as usize],
            is_narrow: vec![false; slots as usize],
            outstanding: vec![0; count],
            above: vec![0; words * LOADS],
            slot_words,
            waiting: vec![0; slot_words * count],
            wide: vec![0; slot_words],
            levels: vec![0; slot_words * (LOADS + 1)],
            follows: false,
        }
    }

    /// A request waits in `slot`.
    pub(super) fn enter(&mut self, slot: Slot, pages: PageRange) {
        let touched = &mut self.touched[slot.index() * self.words..][..self.words];
        touched.fill(0);
        self.units.for_each_unit(pages, |unit| touched[unit as usize / 64] |= 1 << (unit % 64));
        self.flip_waiting(slot);
        if self.follows {
            self.put_in_level(slot);
        }
    }

    /// It no longer waits.
    pub(super) fn leave(&mut self, slot: Slot) {
        self.flip_waiting(slot);
        if self.follows {
            let (at, bit) = (slot.index() / 64, 1 << (slot.0 % 64));
            let mut words = self.levels.iter_mut().skip(at).step_by(self.slot_words);
            if let Some(word) = words.find(|word| **word & bit != 0) {
                *word ^= bit;
            }
        }
    }

    fn put_in_level(&mut self, slot: Slot) {
        let load = (0..LOADS).find(|&load| !self.exceeds(slot, load)).unwrap_or(LOADS);
        self.levels[load * self.slot_words + slot.index() / 64] |= 1 << (slot.0 % 64);
    }

    /// Whether loads of waiting requests are followed.
    #[inline]
    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// They are from now on, with those that wait already.
    #[cold]
    pub(super) fn follow(&mut self, waiting: impl Iterator<Item = Slot>) {
        self.follows = true;
        waiting.for_each(|slot| self.put_in_level(slot));
    }

    /// The slots of waiting requests of a load, 8 for that and more: as much is outstanding on a quarter of their units. The busiest unit
    /// would do wide requests wrong: one of many units always has much to do.
    #[inline]
    pub(super) fn level(&self, load: usize) -> &[u64] {
        &self.levels[load * self.slot_words..][..self.slot_words]
    }

    fn flip_waiting(&mut self, slot: Slot) {
        let (at, bit) = (slot.index() / 64, 1 << (slot.0 % 64));
        let mut units = 0;
        for word in 0..self.words {
            let mut left = self.touched[slot.index() * self.words + word];
            while left != 0 {
                let unit = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                self.waiting[unit * self.slot_words + at] ^= bit;
                units += 1;
            }
        }
        self.is_narrow[slot.index()] = units <= NARROW;
        if units > NARROW {
            self.wide[at] ^= bit;
        }
    }

    #[inline]
    fn touched(&self, slot: Slot) -> &[u64] {
        &self.touched[slot.index() * self.words..][..self.words]
    }

    /// Whether a quarter of the units of the request in `slot` are busy at least.
    #[inline]
    pub(super) fn is_behind(&self, slot: Slot) -> bool {
        self.exceeds(slot, 0)
    }

    /// Whether the load of the request in `slot` is more than `load`, which is less than [`LOADS`].
    #[inline]
    fn exceeds(&self, slot: Slot, load: usize) -> bool {
        let above = &self.above[load * self.words..][..self.words];
        exceeds(self.touched(slot), self.is_narrow[slot.index()], above)
    }

    /// Whether the requests in two slots share a unit.
    #[inline]
    pub(super) fn meet(&self, one: Slot, other: Slot) -> bool {
        let other = self.touched(other);
        self.touched(one).iter().enumerate().any(|(word, one)| one & other[word] != 0)
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
                let unit = word * 64 + bit.trailing_zeros() as usize;
                // The set that it enters or leaves is the one of the smaller of both counts.
                let load = usize::from(self.outstanding[unit] - u16::from(!more));
                self.outstanding[unit] = load as u16 + u16::from(more);
                if let Some(above) = self.above.get_mut(load * self.words + word) {
                    *above ^= bit;
                    if self.follows {
                        self.follow_unit(unit, load, more);
                    }
                }
            }
        }
    }

    /// A unit has more than `load` requests outstanding, or no longer has. Those that wait for it follow one step at a time: only those of
    /// that load can rise, and only to the next; only those of the next can fall.
    fn follow_unit(&mut self, unit: usize, load: usize, more: bool) {
        let Loads { words, touched, is_narrow, above, slot_words, waiting, wide, levels, .. } = self;
        let (words, slot_words) = (*words, *slot_words);
        let above = &above[load * words..][..words];
        let (lower, upper) = levels[load * slot_words..][..2 * slot_words].split_at_mut(slot_words);
        let waiting = &waiting[unit * slot_words..][..slot_words];
        let levels = lower.iter_mut().zip(upper);
        for (word, ((lower, upper), (waiting, wide))) in levels.zip(waiting.iter().zip(&*wide)).enumerate() {
            let mut moved = waiting & if more { *lower } else { *upper };
            if moved == 0 {
                continue;
            }
            // A narrow one rises with any of its units.
            let mut left = if more { moved & wide } else { moved };
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let slot = word * 64 + bit.trailing_zeros() as usize;
                if exceeds(&touched[slot * words..][..words], is_narrow[slot], above) != more {
                    moved ^= bit;
                }
            }
            *lower ^= moved;
            *upper ^= moved;
        }
    }
}

/// Whether a quarter of the units touched are in a set.
#[inline]
fn exceeds(touched: &[u64], is_narrow: bool, above: &[u64]) -> bool {
    let both = || touched.iter().zip(above);
    // Counting costs more than looking whether there is anything to count, and most requests are narrow.
    if both().all(|(touched, above)| touched & above == 0) {
        return false;
    }
    if is_narrow {
        return true;
    }
    let busy: u32 = both().map(|(touched, above)| (touched & above).count_ones()).sum();
    let idle: u32 = both().map(|(touched, above)| (touched & !above).count_ones()).sum();
    3 * busy >= idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use rand::RngExt;

    fn pages(first: u64, count: u32) -> PageRange {
        PageRange { first, count }
    }

    /// The load of a waiting request as the levels tell it.
    fn load(loads: &Loads, slot: Slot) -> usize {
        let is_in = |load: &usize| loads.level(*load)[slot.index() / 64] >> (slot.0 % 64) & 1 == 1;
        let found: Vec<usize> = (0..=LOADS).filter(is_in).collect();
        assert_eq!(found.len(), 1, "{slot:?} is in levels {found:?}");
        found[0]
    }

    #[test]
    fn a_load_is_that_of_a_quarter_of_the_units_up_to_the_most_told_apart() {
        // 70 units: two words.
        let mut loads = Loads::new(&UnitMap::modulo(70), 32);
        loads.follow(std::iter::empty());
        let [two, eight, none] = [Slot(29), Slot(30), Slot(31)];
        for (slot, pages) in [(two, pages(68, 2)), (eight, pages(66, 8)), (none, pages(0, 2))] {
            loads.enter(slot, pages);
        }
        for slot in 0..20 {
            loads.enter(Slot(slot), pages(68, 1));
            loads.leave(Slot(slot));
        }
        for slot in 0..20 {
            let loads_now = [two, eight, none].map(|slot| load(&loads, slot));
            assert_eq!(loads_now, [LOADS.min(slot as usize), 0, 0], "one of eight is no quarter");
            loads.add(Slot(slot));
        }
        assert!(loads.meet(eight, two) && loads.meet(eight, none) && !loads.meet(two, none));
        loads.leave(none);
        loads.add(none);
        assert_eq!(load(&loads, eight), 1, "three of eight");
        loads.remove(none);
        for slot in (0..20).rev() {
            loads.remove(Slot(slot));
            assert_eq!(load(&loads, two), LOADS.min(slot as usize));
            assert_eq!(load(&loads, eight), 0);
        }
    }

    #[test]
    fn loads_are_those_that_counting_units_gives() {
        for seed in 0..60 {
            let mut random = generator(seed, "loads");
            let units = random.random_range(1..150u32);
            let slots = random.random_range(2..100u32);
            let mut loads = Loads::new(&UnitMap::modulo(units), slots);
            let mut free: Vec<Slot> = (0..slots).map(Slot).collect();
            let (mut waiting, mut outstanding): (Vec<(Slot, PageRange)>, _) = (Vec::new(), Vec::new());
            let mut by_unit = vec![0usize; units as usize];
            let follows_from = random.random_range(0..100);
            let widest = if random.random_bool(0.5) { 4 } else { 2 * units };
            let touched = |pages: PageRange| {
                let all = pages.first..pages.first + u64::from(pages.count.min(units));
                all.map(|page| (page % u64::from(units)) as usize)
            };
            for step in 0..300 {
                match random.random_range(0..3) {
                    0 if !free.is_empty() => {
                        let slot = free.pop().unwrap();
                        let pages = pages(random.random_range(0..1_000), random.random_range(1..=widest));
                        loads.enter(slot, pages);
                        waiting.push((slot, pages));
                    }
                    1 if !waiting.is_empty() => {
                        let (slot, pages) = waiting.swap_remove(random.random_range(0..waiting.len()));
                        loads.leave(slot);
                        loads.add(slot);
                        touched(pages).for_each(|unit| by_unit[unit] += 1);
                        outstanding.push((slot, pages));
                    }
                    2 if !outstanding.is_empty() => {
                        let (slot, pages) =
                            outstanding.swap_remove(random.random_range(0..outstanding.len()));
                        loads.remove(slot);
                        touched(pages).for_each(|unit| by_unit[unit] -= 1);
                        free.push(slot);
                    }
                    _ => {}
                }
                if step == follows_from {
                    loads.follow(waiting.iter().map(|(slot, _)| *slot));
                }
                if !loads.follows() {
                    continue;
                }
                for &(slot, pages) in &waiting {
                    let mut of_units: Vec<usize> = touched(pages).map(|unit| by_unit[unit]).collect();
                    of_units.sort_unstable_by(|one, other| other.cmp(one));
                    let quarter = of_units[of_units.len().div_ceil(4) - 1];
                    assert_eq!(load(&loads, slot), quarter.min(LOADS), "seed {seed}, step {step}");
                }
            }
        }
    }
}
