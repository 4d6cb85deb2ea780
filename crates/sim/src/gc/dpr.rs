//! Dynamic page replication after He et al., "Improving update-intensive workloads on flash disks through exploiting
//! multi-chip parallelism" (TPDS 2015): pages that are likely to be read while their chip collects have a replica on
//! another chip beforehand, and reads go there. The collection itself is the traditional one, so that writes gain nothing
//! (as the GC paper finds in section 5.2.1).
//!
//! The GC paper says that DPR moves the frequently accessed data (section 5.2.1); how it knows them, and when, neither source says. Two kinds of
//! pages have replicas here:
//! * pages **read often** since they were written last, by counts that decay (`read_counts.rs`). Their data come to the controller with a read of the
//!   host, whether or not a collection is near, and idle chips take them when no request waits;
//! * pages **likely to be read next**: those behind the latest reads, if they are no older than the collection will take, since the host reads in runs. Up to eight
//!   of its chip are read to the controller when a collection begins, before its first step; few, once fewer than one in 32 of them was read.
//!
//! An eighth of the chips take replicas at a time. Reads that find the chip collecting go to a replica, or to the controller while it waits there. A replica takes a
//! page of flash and counts as valid until the host writes its page, its block is collected (nobody moves a replica), or another page takes its place among
//! the `replica_pages` there are. What it gains, and what it could at best, is in docs/claims-gc.md.

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
