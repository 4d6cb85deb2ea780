//! Replicas for dynamic page replication (`dpr.rs`): which pages are likely to be read, and where their copies are.
//!
//! Both tables are direct-mapped: a page has one place, and who comes later takes it. That bounds memory, needs no
//! hashing of strings or growing maps, and forgets what has not been read for long.

use planewise_model::{Lpn, Ppn};
use std::collections::VecDeque;

/// Reads after which a page counts as likely to be read again.
const LIKELY_READS: u8 = 2;
/// Pages whose reads are counted, for each that can have a replica.
const WATCHED_PER_REPLICA: usize = 8;
/// Pages that may wait for an idle chip to take their replica: the controller holds their data meanwhile.
const WAITING_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Heat {
    lpn: u32,
    reads: u8,
}

#[derive(Clone, Copy)]
struct Replica {
    lpn: Lpn,
    ppn: Ppn,
    /// Reads of its page when it was made, less one for each page that wanted its place since.
    reads: u8,
}

pub(crate) struct Replicas {
    table: Vec<Option<Replica>>,
    heat: Vec<Heat>,
    waiting: VecDeque<Lpn>,
}

impl Replicas {
    /// Room for `pages` replicas.
    pub(crate) fn new(pages: u32) -> Replicas {
        Replicas {
            table: vec![None; pages as usize],
            heat: vec![Heat { lpn: u32::MAX, reads: 0 }; WATCHED_PER_REPLICA * pages as usize],
            waiting: VecDeque::with_capacity(WAITING_MAX),
        }
    }

    /// Place of a page in a table: neighbours stay apart, as they are read together.
    #[inline]
    fn place(lpn: Lpn, places: usize) -> usize {
        lpn.0 as usize % places
    }

    fn reads(&self, lpn: Lpn) -> u8 {
        let heat = self.heat[Self::place(lpn, self.heat.len())];
        if heat.lpn == lpn.0 { heat.reads } else { 0 }
    }

    /// Notes that the host read a page; whether it is likely to be read again.
    pub(crate) fn note_read(&mut self, lpn: Lpn) -> bool {
        if self.heat.is_empty() {
            return false;
        }
        let place = Self::place(lpn, self.heat.len());
        let heat = &mut self.heat[place];
        if heat.lpn == lpn.0 {
            heat.reads = heat.reads.saturating_add(1);
        } else if heat.reads > 1 {
            heat.reads -= 1;
        } else {
            *heat = Heat { lpn: lpn.0, reads: 1 };
        }
        heat.lpn == lpn.0 && heat.reads >= LIKELY_READS
    }

    /// Puts a page in line for a replica, unless it has one, waits already, or its place is taken by a page that is read
    /// more; what finds the line full goes without.
    pub(crate) fn want(&mut self, lpn: Lpn) {
        let reads = self.reads(lpn);
        let place = Self::place(lpn, self.table.len());
        if let Some(replica) = &mut self.table[place]
            && (replica.lpn == lpn || replica.reads >= reads)
        {
            if replica.lpn == lpn {
                replica.reads = reads;
            } else {
                replica.reads -= 1;
            }
            return;
        }
        if self.waiting.len() < WAITING_MAX && !self.waiting.contains(&lpn) {
            self.waiting.push_back(lpn);
        }
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

    /// The replica of a page.
    #[inline]
    pub(crate) fn find(&self, lpn: Lpn) -> Option<Ppn> {
        if self.table.is_empty() {
            return None;
        }
        let replica = self.table[Self::place(lpn, self.table.len())].as_ref()?;
        (replica.lpn == lpn).then_some(replica.ppn)
    }

    /// Enters a replica; returns the one that had to go for it.
    pub(crate) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Option<(Lpn, Ppn)> {
        let place = Self::place(lpn, self.table.len());
        let reads = self.reads(lpn);
        let before = self.table[place].replace(Replica { lpn, ppn, reads });
        before.map(|replica| (replica.lpn, replica.ppn))
    }

    /// Forgets the replica of a page and tells where it was.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.find(lpn)?;
        let place = Self::place(lpn, self.table.len());
        self.table[place] = None;
        Some(ppn)
    }

    /// All replicas.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Lpn, Ppn)> {
        self.table.iter().flatten().map(|replica| (replica.lpn, replica.ppn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_likely_from_its_second_read_and_forgotten_when_others_take_its_place() {
        let mut replicas = Replicas::new(4);
        assert!(!replicas.note_read(Lpn(3)));
        assert!(replicas.note_read(Lpn(3)));
        // 32 places: page 35 shares one with page 3, wears it down, then takes it.
        assert!(!replicas.note_read(Lpn(35)));
        assert!(!replicas.note_read(Lpn(35)));
        assert!(replicas.note_read(Lpn(35)));
    }

    #[test]
    fn replicas_are_found_replaced_and_dropped() {
        let mut replicas = Replicas::new(4);
        replicas.want(Lpn(5));
        replicas.want(Lpn(5));
        assert_eq!(replicas.next_wanted(), Some(Lpn(5)));
        replicas.take_wanted();
        assert_eq!(replicas.next_wanted(), None, "a page waits once");
        assert_eq!(replicas.insert(Lpn(5), Ppn(70)), None);
        assert_eq!(replicas.find(Lpn(5)), Some(Ppn(70)));
        assert_eq!(replicas.insert(Lpn(9), Ppn(71)), Some((Lpn(5), Ppn(70))));
        assert_eq!((replicas.find(Lpn(5)), replicas.all().count()), (None, 1));
        assert_eq!(replicas.remove(Lpn(9)), Some(Ppn(71)));
        assert_eq!(replicas.remove(Lpn(9)), None);
        assert_eq!(replicas.all().count(), 0);
    }

    #[test]
    fn a_page_that_is_read_more_keeps_its_replica_from_one_that_is_read_less() {
        let mut replicas = Replicas::new(4);
        (0..5).for_each(|_| assert!(replicas.note_read(Lpn(5)) || replicas.reads(Lpn(5)) == 1));
        replicas.insert(Lpn(5), Ppn(70));
        (0..2).for_each(|_| assert!(replicas.note_read(Lpn(9)) || replicas.reads(Lpn(9)) == 1));
        replicas.want(Lpn(9));
        assert_eq!(replicas.next_wanted(), None);
        // Five reads against two: after three more that asked in vain the place is free for who comes next.
        (0..3).for_each(|_| replicas.want(Lpn(9)));
        replicas.want(Lpn(9));
        assert_eq!(replicas.next_wanted(), Some(Lpn(9)));
    }

    #[test]
    fn a_table_of_no_replicas_keeps_none() {
        let mut replicas = Replicas::new(0);
        assert!(!replicas.note_read(Lpn(1)) && !replicas.note_read(Lpn(1)));
        assert_eq!(replicas.find(Lpn(1)), None);
    }
}
