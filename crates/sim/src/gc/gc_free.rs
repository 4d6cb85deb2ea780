//! The bound: a collection moves its pages and erases its block in no time at all (GC paper, figure 1). What it writes
//! and erases still counts, so that write amplification and wear are those of the traditional scheme.

use super::{Collector, PlaneState, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "gc_free",
    summary: "collections take no time: a bound that no device reaches",
    bound: true,
    build: |options| Box::new(GcFree { threshold: options.threshold }),
};

struct GcFree {
    threshold: f64,
}

impl Collector for GcFree {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn takes_time(&self) -> bool {
        false
    }
}
