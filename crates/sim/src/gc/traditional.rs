//! Traditional collection: starts below the threshold; the executor serves nobody until the victim is erased
//! (GC paper, section 2.1.2).

use super::{Collector, PlaneState, Scheme, Turn};

pub(super) const SCHEME: Scheme = Scheme {
    name: "traditional",
    summary: "starts below the threshold and holds the chip until the victim is erased",
    build: |options| Box::new(Traditional { threshold: options.threshold }),
};

struct Traditional {
    threshold: f64,
}

impl Collector for Traditional {
    fn should_start(&self, plane: PlaneState) -> bool {
        f64::from(plane.free_pages) < self.threshold * f64::from(plane.pages)
    }

    fn turn(&self, _plane: PlaneState) -> Turn {
        Turn::Collection
    }
}
