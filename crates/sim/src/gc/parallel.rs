//! Parallel collection of planes after Shahidi et al., "Exploring the potentials of parallel garbage collection in SSDs for enterprise storage
//! systems" (SC 2016, PaGC): while a plane is collected the others of its die cannot work for anybody, so those that will need a collection soon
//! have theirs at the same time, by multi-plane commands. It is the traditional collection otherwise: the die is held until all victims are
//! erased.
//!
//! What is decided here is who joins. A plane that is below the threshold does: its turn would come next anyway, and the die would be held for
//! longer. One that is below `ahead` does if its victim has no more valid pages than that of the plane whose collection it is: then
//! nearly all that it adds are transfers, as its reads and programs run with those of the first (`device/side_by_side.rs`). Fuller victims are left
//! alone: they would be cheaper later, and hold the die for longer now.
//!
//! Without multi-plane commands nobody joins, and where these need the same block offset, only planes whose victims are at that of the first do.

use super::{Collector, PlaneState, Scheme};
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

    fn joins(&self, plane: PlaneState, valid: u32, of_first: u32) -> bool {
        plane.is_below(self.threshold) || plane.is_below(self.ahead) && valid <= of_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gc::Progress;

    #[test]
    fn a_plane_joins_that_needs_it_or_will_soon_and_adds_little() {
        let scheme = Parallel { threshold: 0.05, ahead: 0.06 };
        let joins = |free_pages, valid| {
            scheme.joins(PlaneState { free_pages, pages: 1000, progress: Progress::default() }, valid, 20)
        };
        assert!(joins(49, 63), "below the threshold, whatever it takes");
        assert!(joins(50, 20) && joins(59, 0));
        assert!(!joins(50, 21), "its collection would hold the die for longer");
        assert!(!joins(60, 0), "it has room for long enough");
    }
}
