//! Which slot of a buffer holds a logical page.
//!
//! A table of twice as many places as the buffer has slots, whatever the size of the device. A page has its place by
//! multiplication, which keeps neighbours apart, or is in the next free one; look-ups allocate nothing, and nobody goes through the
//! table in its order.

use super::NIL;
use planewise_model::Lpn;

#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: Lpn,
    /// [`NIL`]: the place is free.
    slot: u32,
}

const FREE: Entry = Entry { lpn: Lpn(0), slot: NIL };

#[derive(Debug)]
pub(super) struct PageIndex {
    /// A power of two of them.
    entries: Vec<Entry>,
    /// Bits of a product that are no place.
    shift: u32,
}

impl PageIndex {
    /// For a buffer of so many slots, each of which holds one page at most.
    pub(super) fn new(slots: u32) -> PageIndex {
        let places = (u64::from(slots) * 2).next_power_of_two().max(2);
        PageIndex { entries: vec![FREE; places as usize], shift: u64::BITS - places.ilog2() }
    }

    #[inline]
    fn home(&self, lpn: Lpn) -> usize {
        // 2^64 over the golden ratio: multiples of it are spread evenly (Knuth, The Art of Computer Programming 3, section 6.4).
        (u64::from(lpn.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// The place of a page, or the free one where it would go.
    #[inline]
    fn place(&self, lpn: Lpn) -> usize {
        let mut place = self.home(lpn);
        while self.entries[place].slot != NIL && self.entries[place].lpn != lpn {
            place = self.after(place);
        }
        place
    }

    /// The slot that holds a page.
    #[inline]
    pub(super) fn get(&self, lpn: Lpn) -> Option<u32> {
        let slot = self.entries[self.place(lpn)].slot;
        (slot != NIL).then_some(slot)
    }

    /// Notes the slot that holds a page from now on.
    pub(super) fn set(&mut self, lpn: Lpn, slot: u32) {
        let place = self.place(lpn);
        self.entries[place] = Entry { lpn, slot };
    }

    /// Forgets a page.
    pub(super) fn clear(&mut self, lpn: Lpn) {
        let mut gap = self.place(lpn);
        let mut place = gap;
        let mask = self.entries.len() - 1;
        loop {
            place = self.after(place);
            let entry = self.entries[place];
            if entry.slot == NIL || place == gap {
                break;
            }
            // What would not be found across the gap moves into it.
            let from_home = place.wrapping_sub(self.home(entry.lpn)) & mask;
            if from_home >= place.wrapping_sub(gap) & mask {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use rand::RngExt;
    use std::collections::BTreeMap;

    #[test]
    fn it_holds_what_a_map_holds() {
        for seed in 0..50 {
            let mut random = generator(seed, "page index");
            let slots = random.random_range(1..40u32);
            let (mut index, mut map) = (PageIndex::new(slots), BTreeMap::new());
            // Few pages, so that they come again; far apart, or in a row, up to the last.
            let step = [1, 97, 1 << 20][seed as usize % 3];
            let page = |number: u32| Lpn(u32::MAX - number * step);
            for _ in 0..2_000 {
                let lpn = page(random.random_range(0..64));
                if random.random::<bool>() && (map.contains_key(&lpn) || map.len() < slots as usize) {
                    let slot = random.random_range(0..slots);
                    index.set(lpn, slot);
                    map.insert(lpn, slot);
                } else {
                    index.clear(lpn);
                    map.remove(&lpn);
                }
                for lpn in (0..64).map(page) {
                    assert_eq!(index.get(lpn), map.get(&lpn).copied(), "seed {seed}, page {}", lpn.0);
                }
            }
        }
    }

    #[test]
    fn its_size_is_that_of_the_buffer() {
        for slots in [0, 1, 8, 1_000, 4_096] {
            assert!(PageIndex::new(slots).entries.len() <= 4 * slots.max(1) as usize, "{slots}");
        }
    }
}
