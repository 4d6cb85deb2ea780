//! The bound without access conflicts: every page of every request, read or written, is served by an idle plane while there is
//! one ("all incoming requests can be distributed to the rest idle parallel units", TCAD paper, section III and figure 3b).

use super::dynamic::Dynamic;
use super::{Allocation, PlaneView};
use planewise_model::Lpn;

#[derive(Default)]
pub(super) struct ConflictFree(Dynamic);

impl Allocation for ConflictFree {
    fn plane(&mut self, lpn: Lpn, view: &PlaneView<'_>) -> u32 {
        self.0.plane(lpn, view)
    }

    fn would_touch(&self, first: Lpn, count: u32, stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        self.0.would_touch(first, count, stripe, visit)
    }

    fn redirects_reads(&self) -> bool {
        true
    }
}
