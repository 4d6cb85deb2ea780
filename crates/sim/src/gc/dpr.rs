//! Dynamic page replication after He et al., "Improving update-intensive workloads on flash disks through exploiting
//! multi-chip parallelism" (TPDS 2015): pages that are likely to be read while their chip collects have a replica on
//! another chip beforehand, and reads go there. The collection itself is the traditional one, so that writes gain nothing
//! (as the GC paper finds in section 5.2.1).
//!
//! What the sources leave open is decided so. Likely to be read during the next milliseconds are the pages behind the
//! latest reads, if they are no older than the collection will take: the host reads in runs. (Pages that were read often before were tried first: on the look-alike volumes
//! 1 % of their replicas were ever used, and writing them made everything slower.) When a collection begins, up to eight such
//! pages of its chip are read to the controller first; idle chips take their replicas while no host request waits, an eighth of
//! the chips at a time. Reads that find the chip collecting go to a replica. It takes a page of flash and counts as valid
//! until the host writes its page, its block is collected (nobody moves a replica), or another page takes its place among
//! the `replica_pages` there are.

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
}
