//! Write-order striping: every page written goes to the next plane, so that the order of writes, not the address, decides.
//!
//! What Chen et al. (TOS 2016, section 5.4) found in SSD-S: sequential data written in random order end up scattered, and
//! data written together are read in parallel.

use super::{Allocation, PlaneView};
use planewise_model::Lpn;

#[derive(Default)]
pub(super) struct WriteOrder {
    next: usize,
}

impl Allocation for WriteOrder {
    fn plane(&mut self, _lpn: Lpn, view: &PlaneView<'_>) -> u32 {
        let planes = view.stripe.len();
        let position = (0..planes)
            .map(|step| (self.next + step) % planes)
            .find(|&position| (view.has_room)(view.stripe[position]))
            .unwrap_or(self.next);
        self.next = (position + 1) % planes;
        view.stripe[position]
    }

    fn would_touch(&self, _first: Lpn, count: u32, stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        for step in 0..(count as usize).min(stripe.len()) {
            visit(stripe[(self.next + step) % stripe.len()]);
        }
        true
    }
}
