//! Static allocation: page `p` is always on the plane at position `p / chunk % planes` of the stripe.

use super::{Allocation, PlaneView};
use planewise_model::Lpn;
use planewise_model::location::Chunks;

pub(super) struct StaticOrder {
    stripe: Vec<u32>,
    chunks: Chunks,
    /// What to shift a page's number by and `planes - 1`, when chunk and planes are powers of two, which saves divisions for each page.
    powers: Option<(u32, u32)>,
}

impl StaticOrder {
    pub(super) fn new(stripe: Vec<u32>, chunk_pages: u32) -> StaticOrder {
        let planes = stripe.len() as u32;
        let are_powers = planes.is_power_of_two() && chunk_pages.is_power_of_two();
        StaticOrder {
            chunks: Chunks { pages: chunk_pages, positions: planes },
            powers: are_powers.then(|| (chunk_pages.ilog2(), planes - 1)),
            stripe,
        }
    }

    #[inline]
    fn position(&self, page: u32) -> usize {
        match self.powers {
            Some((shift, mask)) => (page >> shift & mask) as usize,
            None => self.chunks.position(page) as usize,
        }
    }
}

impl Allocation for StaticOrder {
    fn plane(&mut self, lpn: Lpn, _view: &PlaneView<'_>) -> u32 {
        self.stripe[self.position(lpn.0)]
    }

    fn would_touch(&self, first: Lpn, count: u32, _stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        let (from, touched) = self.chunks.touched(first.0.into(), count);
        for position in from..from + touched {
            visit(self.stripe[position as usize % self.stripe.len()]);
        }
        true
    }

    fn is_static(&self) -> bool {
        true
    }
}
