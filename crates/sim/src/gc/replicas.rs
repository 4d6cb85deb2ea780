//! Replicas for dynamic page replication (`dpr.rs`): which pages are likely to be read next, and where their copies are.
//!
//! The table is set-associative: a page has eight places. Of those the page goes that was read least often lately, or of several the one whose replica
//! was used longest ago: what nobody comes for is forgotten. A page whose data are in the controller because the host has just read it gets a replica if
//! it was read often enough, and more often than the one that would have to go.

use super::read_counts::ReadCounts;
use planewise_model::location::PageRange;
use planewise_model::{Lpn, Ns, Ppn};
use std::collections::VecDeque;

/// Sequential streams of reads that are followed.
const STREAMS: usize = 16;
/// Pages behind the end of a stream that count as likely to be read soon.
const AHEAD: u32 = 16;
/// Pages that may wait for an idle chip to take their replica: the controller holds their data meanwhile.
const WAITING_MAX: usize = 64;

/// Reads, decayed, from which on a page is worth a replica: it costs a program, and another whenever its block is collected. Four make five
/// times as many replicas on the look-alike volumes for a few more reads that find one; sixteen half as many for fewer.
const FREQUENT: f64 = 10.0;
/// Pages whose reads are counted, and pages read that halve the counts, for each place of the table.
const COUNTED: usize = 8;
const HALF_LIFE: u64 = 12;

/// What may be spent on replicas of pages that are only likely to be read next: in use, one that is read pays for 32, about what it costs to
/// program and to collect them; each collection adds a sixteenth, so that they are tried again.
const ALLOWANCE_MAX: u32 = 512 * ALLOWANCE_REPLICA;
const ALLOWANCE_REPLICA: u32 = 16;
const ALLOWANCE_USE: u32 = 32 * ALLOWANCE_REPLICA;
const ALLOWANCE_COLLECTION: u32 = 1;

/// Places of the table that a page may have.
const WAYS: usize = 8;

/// A replica in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: Lpn,
    at: Ppn,
    /// Rises with every use.
    used: u64,
}

pub(crate) struct Replicas {
    table: Vec<Option<Entry>>,
    counts: ReadCounts,
    allowance: u32,
    uses: u64,
    /// The page behind the last read of each stream and when that was, the one read longest ago first.
    streams: VecDeque<(u32, Ns)>,
    waiting: VecDeque<Lpn>,
}

impl Replicas {
    /// Room for `pages` replicas.
    pub(crate) fn new(pages: u32) -> Replicas {
        Replicas {
            table: vec![None; pages as usize],
            counts: ReadCounts::new(pages as usize * COUNTED, u64::from(pages) * HALF_LIFE),
            allowance: ALLOWANCE_MAX,
            uses: 0,
            streams: VecDeque::with_capacity(STREAMS),
            waiting: VecDeque::with_capacity(WAITING_MAX),
        }
    }

    /// The places that a page may have in the table: neighbours stay apart, as they are read together.
    #[inline]
    fn places(&self, lpn: Lpn) -> std::ops::Range<usize> {
        let sets = (self.table.len() / WAYS).max(1);
        let first = lpn.0 as usize % sets * WAYS;
        // The last set has what does not fill one of its own.
        let end = if first / WAYS + 1 == sets { self.table.len() } else { first + WAYS };
        first..end
    }

    /// Where in the table the replica of a page is.
    #[inline]
    fn position(&self, lpn: Lpn) -> Option<usize> {
        self.places(lpn).find(|&place| self.table[place].is_some_and(|entry| entry.lpn == lpn))
    }

    /// Notes that the host reads pages: they go on a stream that ends before them, or begin one in place of the stalest.
    pub(crate) fn note_read(&mut self, now: Ns, pages: PageRange) {
        (pages.first..pages.first + u64::from(pages.count))
            .for_each(|page| self.counts.note_read(Lpn(page as u32)));
        let first = pages.first as u32;
        // A read of part of a page leaves the rest of it to the next.
        let continued = self.streams.iter().position(|&(end, _)| end == first || end == first + 1);
        match continued {
            Some(stream) => drop(self.streams.remove(stream)),
            None if self.streams.len() == STREAMS => drop(self.streams.pop_front()),
            None => {}
        }
        self.streams.push_back((first + pages.count, now));
    }

    /// A collection begins: whether pages likely to be read during it should have replicas. Where hardly any of those made was read, few are.
    pub(crate) fn tries_likely(&mut self) -> bool {
        self.allow(ALLOWANCE_COLLECTION);
        self.allowance >= ALLOWANCE_REPLICA
    }

    fn allow(&mut self, more: u32) {
        self.allowance = (self.allowance + more).min(ALLOWANCE_MAX);
    }

    /// Pages likely to be read soon, the most likely first: those behind streams read since a time.
    pub(crate) fn likely(&self, since: Ns) -> impl Iterator<Item = Lpn> {
        let recent = self.streams.iter().rev().take_while(move |&&(_, at)| at >= since);
        recent.flat_map(|&(end, _)| (end..end.saturating_add(AHEAD)).map(Lpn))
    }

    /// Puts a page that the host has read in line for a replica, if it is read often enough and more often than one that would have to go.
    pub(crate) fn want_if_frequent(&mut self, lpn: Lpn) {
        let count = self.counts.of(lpn);
        if count >= FREQUENT && self.place_for(lpn).is_some_and(|place| count > self.count_at(place)) {
            self.want(lpn);
        }
    }

    /// How often the page of a place was read lately; less than nothing where there is none.
    fn count_at(&self, place: usize) -> f64 {
        self.table[place].map_or(-1.0, |entry| self.counts.of(entry.lpn))
    }

    /// The place that a page without a replica would take.
    fn place_for(&self, lpn: Lpn) -> Option<usize> {
        let key = |place: usize| (self.count_at(place), self.table[place].map_or(0, |entry| entry.used));
        self.places(lpn).min_by(|&one, &other| key(one).partial_cmp(&key(other)).expect("counts are numbers"))
    }

    /// Puts a page that is likely to be read next in line for a replica: its data were read for that.
    pub(crate) fn want_likely(&mut self, lpn: Lpn) {
        self.allowance = self.allowance.saturating_sub(ALLOWANCE_REPLICA);
        self.want(lpn);
    }

    /// Puts a page whose data are in the controller in line for a replica, unless it has one or waits already; what finds
    /// the line full goes without.
    pub(crate) fn want(&mut self, lpn: Lpn) {
        if self.find(lpn).is_none() && self.waiting.len() < WAITING_MAX && !self.waiting.contains(&lpn) {
            self.waiting.push_back(lpn);
        }
    }

    /// Whether the data of a page are in the controller, on their way to its replica.
    #[inline]
    pub(crate) fn holds(&self, lpn: Lpn) -> bool {
        self.waiting.contains(&lpn)
    }

    /// The page next in line.
    #[inline]
    pub(crate) fn next_wanted(&self) -> Option<Lpn> {
        self.waiting.front().copied()
    }

    /// Takes the page next in line.
    pub(crate) fn take_wanted(&mut self) {
        self.waiting.pop_front();
    }

    /// A page was overwritten: the data that wait in line are stale, and it has to be read anew to be worth a replica.
    pub(crate) fn no_longer_wanted(&mut self, lpn: Lpn) {
        self.counts.forget(lpn);
        self.waiting.retain(|&waiting| waiting != lpn);
    }

    /// The replica of a page.
    #[inline]
    pub(crate) fn find(&self, lpn: Lpn) -> Option<Ppn> {
        self.position(lpn).and_then(|place| self.table[place]).map(|entry| entry.at)
    }

    /// Notes that the replica of a page was read.
    pub(crate) fn note_use(&mut self, lpn: Lpn) {
        self.uses += 1;
        self.allow(ALLOWANCE_USE);
        let uses = self.uses;
        if let Some(place) = self.position(lpn)
            && let Some(entry) = &mut self.table[place]
        {
            entry.used = uses;
        }
    }

    /// Enters a replica; returns the one that had to go for it.
    ///
    /// # Panics
    /// When there is no room for any.
    pub(crate) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Option<(Lpn, Ppn)> {
        self.uses += 1;
        let place = self.position(lpn).or_else(|| self.place_for(lpn)).expect("there is room for replicas");
        let entry = Entry { lpn, at: ppn, used: self.uses };
        self.table[place].replace(entry).map(|gone| (gone.lpn, gone.at))
    }

    /// Forgets the replica of a page and tells where it was.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) -> Option<Ppn> {
        let place = self.position(lpn)?;
        self.table[place].take().map(|entry| entry.at)
    }

    /// All replicas.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Lpn, Ppn)> {
        self.table.iter().flatten().map(|entry| (entry.lpn, entry.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_behind_the_latest_reads_is_likely_to_be_read_next() {
        let mut replicas = Replicas::new(4);
        replicas.note_read(Ns(10), PageRange { first: 100, count: 4 });
        replicas.note_read(Ns(20), PageRange { first: 7, count: 1 });
        let likely: Vec<u32> = replicas.likely(Ns(0)).map(|lpn| lpn.0).collect();
        assert_eq!(likely, (8..24).chain(104..120).collect::<Vec<_>>());
        assert_eq!(replicas.likely(Ns(15)).count(), 16, "what rests is not likely");
        // A read that goes on moves its stream to the front instead of opening another.
        replicas.note_read(Ns(30), PageRange { first: 104, count: 2 });
        assert_eq!(replicas.likely(Ns(0)).next(), Some(Lpn(106)));
        assert_eq!(replicas.likely(Ns(0)).count(), 32);
        (0..100).for_each(|n| replicas.note_read(Ns(40), PageRange { first: 1_000 * n, count: 1 }));
        assert_eq!(replicas.likely(Ns(0)).count(), 16 * STREAMS, "the stalest streams are forgotten");
    }

    #[test]
    fn replicas_are_found_replaced_and_dropped() {
        let mut replicas = Replicas::new(4);
        replicas.want(Lpn(5));
        replicas.want(Lpn(5));
        assert_eq!(replicas.next_wanted(), Some(Lpn(5)));
        replicas.take_wanted();
        assert_eq!(replicas.next_wanted(), None, "a page waits once");
        replicas.want(Lpn(6));
        replicas.no_longer_wanted(Lpn(6));
        assert_eq!(replicas.next_wanted(), None);
        assert_eq!(replicas.insert(Lpn(5), Ppn(70)), None);
        assert_eq!(replicas.find(Lpn(5)), Some(Ppn(70)));
        // Four places for all: the one used longest ago goes.
        assert_eq!([9, 13, 17].map(|lpn| replicas.insert(Lpn(lpn), Ppn(lpn))), [None; 3]);
        replicas.note_use(Lpn(5));
        assert_eq!(replicas.insert(Lpn(21), Ppn(71)), Some((Lpn(9), Ppn(9))));
        assert_eq!((replicas.find(Lpn(9)), replicas.all().count()), (None, 4));
        assert_eq!(replicas.insert(Lpn(21), Ppn(72)), Some((Lpn(21), Ppn(71))), "a page has one replica");
        assert_eq!(replicas.remove(Lpn(21)), Some(Ppn(72)));
        assert_eq!(replicas.remove(Lpn(21)), None);
        assert_eq!(replicas.all().count(), 3);
    }

    #[test]
    fn pages_that_are_only_likely_have_replicas_while_one_in_32_is_read() {
        let made = |used_every: u32| {
            let (mut replicas, mut made) = (Replicas::new(64), 0);
            for collection in 0..10_000 {
                if replicas.tries_likely() {
                    replicas.want_likely(Lpn(collection));
                    replicas.take_wanted();
                    made += 1;
                    if made % used_every == 0 {
                        replicas.note_use(Lpn(collection));
                    }
                }
            }
            made
        };
        assert_eq!(made(32), 10_000);
        assert!((2_000..4_000).contains(&made(50)), "{}", made(50));
        assert!((512..1_200).contains(&made(100_000)), "{}", made(100_000));
    }

    #[test]
    fn a_page_read_often_takes_the_place_of_one_read_less() {
        let mut replicas = Replicas::new(2);
        let mut read = |lpn: u64, times: u32| {
            (0..times).for_each(|_| replicas.note_read(Ns(0), PageRange { first: lpn, count: 1 }));
            replicas.want_if_frequent(Lpn(lpn as u32));
            let wanted = replicas.next_wanted() == Some(Lpn(lpn as u32));
            if wanted {
                replicas.take_wanted();
                replicas.insert(Lpn(lpn as u32), Ppn(lpn as u32));
            }
            wanted
        };
        assert!(!read(1, 9), "not often enough");
        assert!(read(1, 1) && read(2, 11));
        assert!(!read(3, 10), "both are read as often or more");
        assert!(read(3, 1), "more often than the first");
        assert_eq!((replicas.find(Lpn(1)), replicas.find(Lpn(2))), (None, Some(Ppn(2))));
        replicas.no_longer_wanted(Lpn(3));
        replicas.remove(Lpn(3));
        replicas.want_if_frequent(Lpn(3));
        assert_eq!(replicas.next_wanted(), None, "it was written since");
    }

    #[test]
    fn every_page_has_a_place_in_a_table_of_any_size() {
        for pages in [1, 7, 8, 9, 63, 64, 100] {
            let mut replicas = Replicas::new(pages);
            for lpn in 0..1_000 {
                replicas.insert(Lpn(lpn), Ppn(lpn));
                assert_eq!(replicas.find(Lpn(lpn)), Some(Ppn(lpn)));
            }
            assert_eq!(replicas.all().count(), pages as usize, "nothing of it is idle");
        }
    }

    #[test]
    fn a_table_of_no_replicas_keeps_none() {
        assert_eq!(Replicas::new(0).find(Lpn(1)), None);
    }
}
