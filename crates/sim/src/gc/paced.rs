//! Paced collection: work in proportion to what the host writes. A collection moves as many pages as the host's writes since it began have
//! to pay for, and lets the host in for the rest; reads, which use up no space, always go first. So a plane gives back pages as fast as they
//! are used, nobody waits for a whole collection, and none is put off until the last page, as under a floor (`preemptive`).
//!
//! A victim of `v` valid pages among `b` costs `v + 1` steps (the last is the erase) and gains `b - v` pages: after `h` pages of the host,
//! `h (v + 1) / (b - v)` steps are due. Idle chips go on all the same.

use super::{Collector, PlaneState, Scheme, Turn};
use planewise_model::Direction;

pub(super) const SCHEME: Scheme = Scheme {
    name: "paced",
    summary: "moves pages in proportion to what the host writes meanwhile; reads go first between two moves",
    bound: false,
    build: |options| Box::new(Paced { threshold: options.threshold }),
};

struct Paced {
    threshold: f64,
}

impl Collector for Paced {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn turn(&self, plane: PlaneState, waiting: Direction) -> Turn {
        let progress = plane.progress;
        let due = u64::from(progress.host_pages + 1) * u64::from(progress.valid + 1);
        let done = u64::from(progress.steps) * u64::from(progress.gains);
        match waiting {
            Direction::Write if done < due => Turn::Collection,
            _ => Turn::Host,
        }
    }

    fn holds_chip(&self, _plane: PlaneState) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gc::Progress;

    /// 20 valid pages of 64: 21 steps for 44 pages gained.
    #[test]
    fn a_write_goes_when_the_steps_that_it_pays_for_are_done_and_a_read_always() {
        let scheme = Paced { threshold: 0.05 };
        let turn = |host_pages, steps, waiting| {
            let progress = Progress { host_pages, steps, valid: 20, gains: 44 };
            scheme.turn(PlaneState { free_pages: 10, pages: 1024, progress }, waiting)
        };
        assert_eq!(turn(0, 0, Direction::Write), Turn::Collection, "the first page pays for half a step");
        assert_eq!(turn(0, 1, Direction::Write), Turn::Host);
        assert_eq!(turn(1, 1, Direction::Write), Turn::Host);
        assert_eq!(turn(2, 1, Direction::Write), Turn::Collection);
        assert_eq!(
            turn(43, 20, Direction::Write),
            Turn::Collection,
            "the erase, before the last page gained is used"
        );
        assert_eq!(turn(43, 0, Direction::Read), Turn::Host);
    }
}
