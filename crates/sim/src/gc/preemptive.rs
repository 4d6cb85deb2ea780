//! Preemptive collection after Lee et al., "Preemptible I/O scheduling of garbage collection for solid state drives"
//! (TCAD 2013): a collection is a chain of page moves and an erase; between any two of them host requests that wait for
//! the chip go first. A move or an erase that has begun is not broken off.
//!
//! Free space decides how far the host may go. Below the hard floor nobody is let in until the block is erased, as in the
//! traditional scheme: else writes could take the last pages faster than the collection gives them back. Half way down to
//! the floor only reads, which use up no space, are let in.

use super::{Collector, PlaneState, Scheme, Turn};
use planewise_model::Direction;

pub(super) const SCHEME: Scheme = Scheme {
    name: "preemptive",
    summary: "lets waiting host requests in between page moves and before the erase, down to a hard floor of free space",
    bound: false,
    build: |options| {
        Box::new(Preemptive {
            threshold: options.threshold,
            reads_only: 0.5 * (options.threshold + options.floor),
            floor: options.floor,
        })
    },
};

struct Preemptive {
    threshold: f64,
    reads_only: f64,
    floor: f64,
}

impl Collector for Preemptive {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn turn(&self, plane: PlaneState, waiting: Direction) -> Turn {
        let limit = match waiting {
            Direction::Read => self.floor,
            Direction::Write => self.reads_only,
        };
        if plane.is_below(limit) { Turn::Collection } else { Turn::Host }
    }

    fn holds_chip(&self, plane: PlaneState) -> bool {
        plane.is_below(self.floor)
    }
}
