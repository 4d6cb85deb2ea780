//! Parallel collection of planes after Shahidi et al., "Exploring the potentials of parallel garbage collection in SSDs for enterprise storage
//! systems" (SC 2016, PaGC): while a plane is collected the others of its die cannot work for anybody, so those that will need a collection soon
//! have theirs at the same time, by multi-plane commands. It is the traditional collection otherwise: the die is held until all victims are
//! erased.
//!
//! What is decided here is who joins. A plane that is below the threshold does: its turn would come next anyway, and the die would be held for
//! longer. One that is below `ahead` will need a collection soon; it joins if the host waits less that way. Who comes at any time waits for the rest of
//! a collection under way, so that the sum of waits goes with the sum of the squares of the times for which the die is held: one long collection must take
//! less, squared, than both apart. Planes whose open blocks are level, or whose victims hold little, are collected together, others alone.
//!
//! Without multi-plane commands nobody joins, and where these need the same block offset, only planes whose victims are at that of the first do.

use super::{Collector, PlaneState, Scheme};
use planewise_model::Ns;
use planewise_model::profile::Collection;

pub(super) const SCHEME: Scheme = Scheme {
    name: "parallel",
    summary: "traditional, but planes of a die that need it, or will soon, are collected at the same time by multi-plane commands",
    bound: false,
    build: |options| Box::new(Parallel::new(options)),
};

struct Parallel {
    threshold: f64,
    ahead: f64,
}

impl Parallel {
    fn new(options: &Collection) -> Parallel {
        Parallel { threshold: options.threshold, ahead: options.ahead }
    }
}

impl Collector for Parallel {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn collects_side_by_side(&self) -> bool {
        true
    }

    fn joins(&self, plane: PlaneState, apart: [Ns; 2], together: Ns) -> bool {
        let square = |time: Ns| u128::from(time.0) * u128::from(time.0);
        plane.is_below(self.threshold)
            || plane.is_below(self.ahead) && square(together) <= square(apart[0]) + square(apart[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gc::Progress;

    #[test]
    fn a_plane_joins_that_needs_it_or_will_soon_if_the_host_waits_less() {
        let scheme = Parallel { threshold: 0.05, ahead: 0.06 };
        let joins = |free_pages, together| {
            let plane = PlaneState { free_pages, pages: 1000, progress: Progress::default() };
            scheme.joins(plane, [Ns(4_000), Ns(3_000)], Ns(together))
        };
        assert!(joins(49, 6_900), "below the threshold, whatever it takes");
        assert!(joins(50, 5_000) && joins(59, 4_000));
        assert!(!joins(50, 5_001), "one of 5 us for one of 4 and one of 3");
        assert!(!joins(60, 0), "it has room for long enough");
    }
}
