//! When a blocking interface takes a request: when all units that it touches are free.

use super::Device;
use crate::host::{Answer, Interface, Line, QueuedRequest};
use planewise_model::location::PageRange;
use planewise_model::{Direction, Lpn};

impl Interface for Device {
    #[inline]
    fn ask(&self, queued: &QueuedRequest) -> Answer {
        if self.striped && !self.relocates {
            return self
                .busy_in_stripe(queued.pages)
                .map_or(Answer::Accepted, |unit| Answer::Refused(Line(unit)));
        }
        match self.is_free_for(queued.request.direction, queued.pages) {
            true => Answer::Accepted,
            false => Answer::RefusedForNow,
        }
    }

    #[inline]
    fn is_down(&self, line: Line) -> bool {
        self.load.unit_is_busy(line.0)
    }
}

impl Device {
    /// The first unit that pages touch and that is busy, where the address says it.
    fn busy_in_stripe(&self, pages: PageRange) -> Option<u32> {
        let (first, touched) = self.chunks.touched(pages.first, pages.count);
        let mut position = first as usize;
        for _ in 0..touched {
            let unit = self.load.unit_of(position);
            if self.load.unit_is_busy(unit) {
                return Some(unit);
            }
            position += 1;
            if position == self.stripe.len() {
                position = 0;
            }
        }
        None
    }

    /// Whether all units that a request touches are free, where its address does not say which they are.
    fn is_free_for(&self, direction: Direction, pages: PageRange) -> bool {
        let first = Lpn(pages.first as u32);
        let mut every = (first.0..first.0 + pages.count).map(Lpn);
        if direction == Direction::Write || self.redirects_reads {
            if self.relocates {
                return self.is_free_for_write(every);
            }
            let mut free = true;
            let known = self.allocation.would_touch(first, pages.count, &self.stripe, &mut |plane| {
                free &= !self.load.plane_is_busy(plane);
            });
            return if known { free } else { self.some_plane_is_free() };
        }
        every.all(|lpn| {
            self.has_copy(lpn) || self.place(lpn).is_none_or(|(_, plane)| !self.load.plane_is_busy(plane))
        })
    }

    /// Pages that the buffer absorbs need no unit.
    fn is_free_for_write(&self, pages: impl Iterator<Item = Lpn>) -> bool {
        for lpn in pages.filter(|&lpn| !self.absorbs(lpn)) {
            let mut free = true;
            let known = self.allocation.would_touch(lpn, 1, &self.stripe, &mut |plane| {
                free &= !self.load.plane_is_busy(plane);
            });
            if !known {
                return self.some_plane_is_free();
            }
            if !free {
                return false;
            }
        }
        true
    }

    fn some_plane_is_free(&self) -> bool {
        self.load.idle().iter().chain(self.load.yielding()).any(|&word| word != 0)
    }
}
