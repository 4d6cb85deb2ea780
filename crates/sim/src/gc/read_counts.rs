//! How often pages were read lately, for dynamic page replication (`dpr.rs`): a set-associative table of counts that decay.
//!
//! A count halves whenever a number of pages has been read. A page has eight places; of those the one with the smallest count goes for it. So
//! memory is bounded, and what is read once passes without a trace. A page that is written is forgotten: its replica would die with its next
//! write, so that only what is read several times between two writes is worth one.

use planewise_model::Lpn;

/// Places that a page may have.
const WAYS: usize = 8;
/// What a read counts for: fractions remain after halving.
const ONE: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: Lpn,
    count: u32,
    /// The half-life in which it was counted last.
    epoch: u64,
}

pub(crate) struct ReadCounts {
    table: Vec<Option<Entry>>,
    /// Pages read in all, and how many halve the counts.
    reads: u64,
    half_life: u64,
}

impl ReadCounts {
    /// Counts for a number of pages, which halve every `half_life` pages read.
    pub(crate) fn new(pages: usize, half_life: u64) -> ReadCounts {
        ReadCounts { table: vec![None; pages], reads: 0, half_life: half_life.max(1) }
    }

    fn places(&self, lpn: Lpn) -> std::ops::Range<usize> {
        let sets = (self.table.len() / WAYS).max(1);
        // Neighbours stay apart: they are read together.
        let first = lpn.0 as usize % sets * WAYS;
        first..(first + WAYS).min(self.table.len())
    }

    fn epoch(&self) -> u64 {
        self.reads / self.half_life
    }

    fn decayed(&self, entry: &Entry) -> u32 {
        let halvings = self.epoch() - entry.epoch;
        if halvings < 32 { entry.count >> halvings } else { 0 }
    }

    fn position(&self, lpn: Lpn) -> Option<usize> {
        self.places(lpn).find(|&place| self.table[place].is_some_and(|entry| entry.lpn == lpn))
    }

    /// Notes that a page is read.
    pub(crate) fn note_read(&mut self, lpn: Lpn) {
        self.reads += 1;
        let smallest = || {
            let count = |&place: &usize| self.table[place].map_or(0, |entry| self.decayed(&entry));
            self.places(lpn).min_by_key(count)
        };
        let (place, before) = match self.position(lpn) {
            Some(place) => (place, self.table[place].map_or(0, |entry| self.decayed(&entry))),
            None => match smallest() {
                Some(place) => (place, 0),
                None => return,
            },
        };
        self.table[place] = Some(Entry { lpn, count: before.saturating_add(ONE), epoch: self.epoch() });
    }

    /// Reads of a page, decayed.
    pub(crate) fn of(&self, lpn: Lpn) -> f64 {
        let count =
            self.position(lpn).and_then(|place| self.table[place]).map_or(0, |entry| self.decayed(&entry));
        f64::from(count) / f64::from(ONE)
    }

    /// The page was written.
    pub(crate) fn forget(&mut self, lpn: Lpn) {
        if let Some(place) = self.position(lpn) {
            self.table[place] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_rise_with_reads_halve_with_those_of_others_and_end_with_a_write() {
        let mut counts = ReadCounts::new(64, 100);
        (0..6).for_each(|_| counts.note_read(Lpn(7)));
        assert_eq!((counts.of(Lpn(7)), counts.of(Lpn(8))), (6.0, 0.0));
        (0..100).for_each(|other| counts.note_read(Lpn(1_000 + other)));
        assert_eq!(counts.of(Lpn(7)), 3.0);
        (0..100).for_each(|other| counts.note_read(Lpn(1_000 + other)));
        assert_eq!(counts.of(Lpn(7)), 1.5, "fractions remain");
        counts.note_read(Lpn(7));
        assert_eq!(counts.of(Lpn(7)), 2.5);
        counts.forget(Lpn(7));
        counts.forget(Lpn(7));
        assert_eq!(counts.of(Lpn(7)), 0.0);
    }

    #[test]
    fn what_is_read_once_does_not_push_out_what_is_read_again_and_again() {
        let mut counts = ReadCounts::new(8, 1_000_000);
        (0..5).for_each(|_| counts.note_read(Lpn(0)));
        (1..500).for_each(|page| counts.note_read(Lpn(page)));
        assert_eq!(counts.of(Lpn(0)), 5.0);
        for size in [0, 1, 7, 9, 100] {
            let mut counts = ReadCounts::new(size, 1);
            (0..50).for_each(|page| counts.note_read(Lpn(page)));
            assert_eq!(counts.of(Lpn(49)) > 0.0, size > 0, "{size} places");
        }
    }
}
