//! The buffer pool: which pages are in memory, which of them are dirty, and which leaves next.
//!
//! One list by last use (InnoDB's midpoint insertion protects it from scans, of which these workloads have none), and one by
//! first change, which is what checkpoints go by. Arrays only: a page is found by its number.

use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// A page of the table.
pub(super) type Page = u32;
/// A place of the pool.
pub(super) type Frame = u32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: Page,
    newer: Frame,
    older: Frame,
    is_reading: bool,
    is_flushing: bool,
    /// Log position of the first change since the page was last clean.
    dirty_since: Option<u64>,
}

/// What became of a page that a thread wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is there.
    Here(Frame),
    /// Another thread reads it.
    Reading,
    /// It has a place now, and must be read.
    ToRead(Frame),
    /// There is no place for it: what was used longest ago is dirty.
    NoPlace,
}

pub(super) struct Pool {
    frame_of: Vec<Frame>,
    entries: Vec<Entry>,
    frames: u32,
    newest: Frame,
    oldest: Frame,
    dirty: u32,
    /// Frames by first change. Entries whose position is not the frame's any more are stale.
    by_change: VecDeque<(Frame, u64)>,
}

/// How many pages are looked at for a clean one before a thread waits for the cleaner.
const SEARCH: u32 = 100;

impl Pool {
    pub(super) fn new(pages: u32, frames: u32) -> Pool {
        Pool {
            frame_of: vec![NONE; pages as usize],
            entries: Vec::with_capacity(frames as usize),
            frames,
            newest: NONE,
            oldest: NONE,
            dirty: 0,
            by_change: VecDeque::new(),
        }
    }

    /// Pages with changes that are not on the device.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Looks a page up, makes it the most recently used, and makes room for it if it is not there.
    pub(super) fn find(&mut self, page: Page) -> Found {
        let frame = self.frame_of[page as usize];
        if frame != NONE {
            self.unlink(frame);
            self.link_newest(frame);
            return if self.entries[frame as usize].is_reading { Found::Reading } else { Found::Here(frame) };
        }
        let entry =
            Entry { page, newer: NONE, older: NONE, is_reading: true, is_flushing: false, dirty_since: None };
        let frame = if (self.entries.len() as u32) < self.frames {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let Some(victim) = self.clean_victim() else { return Found::NoPlace };
            self.unlink(victim);
            self.frame_of[self.entries[victim as usize].page as usize] = NONE;
            self.entries[victim as usize] = entry;
            victim
        };
        self.frame_of[page as usize] = frame;
        self.link_newest(frame);
        Found::ToRead(frame)
    }

    fn clean_victim(&self) -> Option<Frame> {
        let mut frame = self.oldest;
        for _ in 0..SEARCH {
            if frame == NONE {
                return None;
            }
            let entry = &self.entries[frame as usize];
            if entry.dirty_since.is_none() && !entry.is_reading && !entry.is_flushing {
                return Some(frame);
            }
            frame = entry.newer;
        }
        None
    }

    /// The page of a frame was read.
    pub(super) fn read_done(&mut self, page: Page) {
        let frame = self.frame_of[page as usize];
        self.entries[frame as usize].is_reading = false;
    }

    /// A change at a position of the log.
    pub(super) fn change(&mut self, frame: Frame, log: u64) {
        let entry = &mut self.entries[frame as usize];
        if entry.dirty_since.is_none() {
            entry.dirty_since = Some(log);
            self.dirty += 1;
            self.by_change.push_back((frame, log));
        }
    }

    /// The position of the oldest change that is not on the device.
    pub(super) fn oldest_change(&mut self) -> Option<u64> {
        while let Some(&(frame, log)) = self.by_change.front() {
            if self.entries[frame as usize].dirty_since == Some(log) {
                return Some(log);
            }
            self.by_change.pop_front();
        }
        None
    }

    /// Takes up to `most` dirty pages to write: those used longest ago, or those changed longest ago. They are clean from now on,
    /// but stay until [`Pool::flushed`].
    pub(super) fn take_dirty(&mut self, most: usize, by_use: bool, into: &mut Vec<Page>) {
        if by_use {
            let mut frame = self.oldest;
            while frame != NONE && into.len() < most {
                let entry = self.entries[frame as usize];
                if entry.dirty_since.is_some() && !entry.is_flushing {
                    self.take(frame, into);
                }
                frame = entry.newer;
            }
            return;
        }
        let mut place = 0;
        while place < self.by_change.len() && into.len() < most {
            let (frame, log) = self.by_change[place];
            let entry = &self.entries[frame as usize];
            if entry.dirty_since == Some(log) && !entry.is_flushing {
                self.take(frame, into);
            }
            place += 1;
        }
    }

    fn take(&mut self, frame: Frame, into: &mut Vec<Page>) {
        let entry = &mut self.entries[frame as usize];
        entry.dirty_since = None;
        entry.is_flushing = true;
        self.dirty -= 1;
        into.push(entry.page);
    }

    /// Pages that were taken are on the device.
    pub(super) fn flushed(&mut self, pages: &[Page]) {
        for page in pages {
            let frame = self.frame_of[*page as usize];
            self.entries[frame as usize].is_flushing = false;
        }
    }

    fn link_newest(&mut self, frame: Frame) {
        let old = self.newest;
        let entry = &mut self.entries[frame as usize];
        (entry.older, entry.newer) = (old, NONE);
        match old {
            NONE => self.oldest = frame,
            old => self.entries[old as usize].newer = frame,
        }
        self.newest = frame;
    }

    fn unlink(&mut self, frame: Frame) {
        let Entry { newer, older, .. } = self.entries[frame as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_used_longest_ago_leaves_unless_it_is_dirty() {
        let mut pool = Pool::new(10, 2);
        let Found::ToRead(zero) = pool.find(0) else { panic!() };
        pool.read_done(0);
        assert!(matches!(pool.find(1), Found::ToRead(_)));
        assert_eq!(pool.find(1), Found::Reading);
        pool.read_done(1);
        assert_eq!(pool.find(0), Found::Here(zero));
        assert!(matches!(pool.find(2), Found::ToRead(_)), "1 leaves");
        pool.read_done(2);
        assert_eq!(pool.find(0), Found::Here(zero));
        pool.change(zero, 7);
        let Found::Here(two) = pool.find(2) else { panic!() };
        pool.change(two, 9);
        assert_eq!((pool.find(3), pool.dirty(), pool.oldest_change()), (Found::NoPlace, 2, Some(7)));
        let mut taken = Vec::new();
        pool.take_dirty(1, true, &mut taken);
        assert_eq!(
            (taken.as_slice(), pool.find(3), pool.oldest_change()),
            ([0].as_slice(), Found::NoPlace, Some(9))
        );
        pool.flushed(&taken);
        assert!(matches!(pool.find(3), Found::ToRead(frame) if frame == zero));
    }
}
