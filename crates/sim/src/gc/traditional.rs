//! Traditional collection: starts below the threshold; the executor serves nobody until the victim is erased
//! (GC paper, section 2.1.2).

use super::{Collector, PlaneState, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "traditional",
    summary: "starts below the threshold and holds the chip until the victim is erased",
    bound: false,
    build: |options| Box::new(Traditional { threshold: options.threshold }),
};

struct Traditional {
    threshold: f64,
}

impl Collector for Traditional {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }
}
