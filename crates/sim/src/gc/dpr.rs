//! Dynamic page replication after He et al., "Improving update-intensive workloads on flash disks through exploiting
//! multi-chip parallelism" (TPDS 2015): pages that are likely to be read while their chip collects have a replica on
//! another chip beforehand, and reads go there. The collection itself is the traditional one, so that writes gain nothing
//! (as the GC paper finds in section 5.2.1).
//!
//! What the sources leave open is decided so: a page is likely to be read again when it was read at least twice within
//! the memory of a table; its replica is made of the data just read, when its plane is near its next collection; it goes to
//! an idle chip while the host is at rest, to an eighth of the chips at a time. There are `replica_pages` of them, a fixed
//! place for each page: who is read more keeps it. A replica takes a page of flash and counts as valid until the host
//! writes its page or its block is collected: nobody moves it.

use super::{Collector, PlaneState, Scheme};

pub(super) const SCHEME: Scheme = Scheme {
    name: "dpr",
    summary: "traditional, with replicas of pages likely to be read on other chips, where reads go meanwhile",
    bound: false,
    build: |options| Box::new(PageReplication { threshold: options.threshold }),
};

struct PageReplication {
    threshold: f64,
}

impl Collector for PageReplication {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn keeps_replicas(&self) -> bool {
        true
    }

    fn replicates(&self, plane: PlaneState) -> bool {
        // A hundredth of the plane above the threshold: in the steady state a plane is always as near as one victim.
        plane.is_below(self.threshold + 0.01)
    }
}
