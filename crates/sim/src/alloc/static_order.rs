//! Static allocation: page `p` is always on the plane at position `p % planes` of the stripe.

use super::{Allocation, PlaneView};
use planewise_model::Lpn;

pub(super) struct StaticOrder {
    stripe: Vec<u32>,
    /// `planes - 1` when the number of planes is a power of two, which saves a division for each page.
    mask: Option<u32>,
}

impl StaticOrder {
    pub(super) fn new(stripe: Vec<u32>) -> StaticOrder {
        let planes = stripe.len() as u32;
        StaticOrder { stripe, mask: planes.is_power_of_two().then(|| planes - 1) }
    }

    #[inline]
    fn position(&self, page: u32) -> usize {
        match self.mask {
            Some(mask) => (page & mask) as usize,
            None => page as usize % self.stripe.len(),
        }
    }
}

impl Allocation for StaticOrder {
    fn plane(&mut self, lpn: Lpn, _view: &PlaneView<'_>) -> u32 {
        self.stripe[self.position(lpn.0)]
    }

    fn would_touch(&self, first: Lpn, count: u32, _stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        for page in first.0..first.0 + count.min(self.stripe.len() as u32) {
            visit(self.stripe[self.position(page)]);
        }
        true
    }

    fn is_static(&self) -> bool {
        true
    }
}
