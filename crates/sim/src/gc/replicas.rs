//! Replicas for dynamic page replication (`dpr.rs`): which pages are likely to be read, and where their copies are.
//!
//! Both tables are direct-mapped: a page has one place, and who comes later takes it. That bounds memory, needs no
//! hashing of strings or growing maps, and forgets what has not been read for long.

use planewise_model::{Lpn, Ppn};
use std::collections::VecDeque;

/// Reads after which a page counts as likely to be read again.
const LIKELY_READS: u8 = 2;
/// Pages that may wait for an idle chip to take their replica: the controller holds their data meanwhile.
const WAITING_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Heat {
    lpn: u32,
    reads: u8,
}

pub(crate) struct Replicas {
    /// Logical page and place of its replica.
    table: Vec<Option<(Lpn, Ppn)>>,
    heat: Vec<Heat>,
    waiting: VecDeque<Lpn>,
    live: u32,
}

impl Replicas {
    /// Room for `pages` replicas.
    pub(crate) fn new(pages: u32) -> Replicas {
        Replicas {
            table: vec![None; pages as usize],
            // Four pages are watched for each that can have a replica.
            heat: vec![Heat { lpn: u32::MAX, reads: 0 }; 4 * pages as usize],
            waiting: VecDeque::with_capacity(WAITING_MAX),
            live: 0,
        }
    }

    /// Place of a page in a table of `places`: neighbours stay apart, as they are read together.
    #[inline]
    fn place(lpn: Lpn, places: usize) -> usize {
        lpn.0 as usize % places
    }

    /// Notes that the host read a page; whether it is likely to be read again.
    pub(crate) fn note_read(&mut self, lpn: Lpn) -> bool {
        if self.heat.is_empty() {
            return false;
        }
        let place = Self::place(lpn, self.heat.len());
        let heat = &mut self.heat[place];
        if heat.lpn == lpn.0 {
            heat.reads = heat.reads.saturating_add(1).min(15);
        } else if heat.reads > 1 {
            heat.reads -= 1;
        } else {
            *heat = Heat { lpn: lpn.0, reads: 1 };
        }
        heat.lpn == lpn.0 && heat.reads >= LIKELY_READS
    }

    /// Puts a page in line for a replica, unless it has one or waits already; what finds the line full goes without.
    pub(crate) fn want(&mut self, lpn: Lpn) {
        if self.find(lpn).is_none() && self.waiting.len() < WAITING_MAX && !self.waiting.contains(&lpn) {
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
        match self.table[Self::place(lpn, self.table.len())] {
            Some((owner, ppn)) if owner == lpn => Some(ppn),
            _ => None,
        }
    }

    /// Enters a replica; returns the page whose replica had to go for it.
    pub(crate) fn insert(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Lpn> {
        let place = Self::place(lpn, self.table.len());
        let before = self.table[place].replace((lpn, ppn));
        self.live += u32::from(before.is_none());
        before.map(|(owner, _)| owner)
    }

    /// Forgets the replica of a page; whether there was one.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) -> bool {
        let found = self.find(lpn).is_some();
        if found {
            let place = Self::place(lpn, self.table.len());
            self.table[place] = None;
            self.live -= 1;
        }
        found
    }

    /// Replicas now.
    #[cfg(test)]
    fn live(&self) -> u32 {
        self.live
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
        // 16 places: page 19 shares one with page 3, wears it down, then takes it.
        assert!(!replicas.note_read(Lpn(19)));
        assert!(!replicas.note_read(Lpn(19)));
        assert!(replicas.note_read(Lpn(19)));
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
        assert_eq!(replicas.insert(Lpn(9), Ppn(71)), Some(Lpn(5)));
        assert_eq!((replicas.find(Lpn(5)), replicas.live()), (None, 1));
        assert!(replicas.remove(Lpn(9)) && !replicas.remove(Lpn(9)));
        assert_eq!(replicas.live(), 0);
    }

    #[test]
    fn a_table_of_no_replicas_keeps_none() {
        let mut replicas = Replicas::new(0);
        assert!(!replicas.note_read(Lpn(1)) && !replicas.note_read(Lpn(1)));
        assert_eq!(replicas.find(Lpn(1)), None);
    }
}
