//! Write-order striping: every page written goes to the next plane, so that the order of writes, not the address, decides.
//!
//! What Chen et al. (TOS 2016, section 5.4) found in SSD-S: sequential data written in random order end up scattered, and
//! data written together are read in parallel. With chunks, so many pages in turn go to a plane before the next has its turn.

use super::{Allocation, PlaneView};
use planewise_model::Lpn;

pub(super) struct WriteOrder {
    /// Stripe position whose turn it is, and pages that it has had of its chunk.
    next: usize,
    had: u32,
    chunk: u32,
}

impl WriteOrder {
    pub(super) fn new(chunk_pages: u32) -> WriteOrder {
        WriteOrder { next: 0, had: 0, chunk: chunk_pages }
    }
}

impl Allocation for WriteOrder {
    fn plane(&mut self, _lpn: Lpn, view: &PlaneView<'_>) -> u32 {
        let planes = view.stripe.len();
        let position = (0..planes)
            .map(|step| (self.next + step) % planes)
            .find(|&position| (view.has_room)(view.stripe[position]))
            .unwrap_or(self.next);
        if position != self.next {
            (self.next, self.had) = (position, 0);
        }
        self.had += 1;
        if self.had == self.chunk {
            (self.next, self.had) = ((position + 1) % planes, 0);
        }
        view.stripe[position]
    }

    fn would_touch(&self, _first: Lpn, count: u32, stripe: &[u32], visit: &mut dyn FnMut(u32)) -> bool {
        let turns = (u64::from(self.had) + u64::from(count)).div_ceil(self.chunk.into());
        for step in 0..(turns as usize).min(stripe.len()) {
            visit(stripe[(self.next + step) % stripe.len()]);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_goes_to_one_plane_unless_that_has_no_room_and_is_announced_there() {
        let stripe: Vec<u32> = (0..4).collect();
        for chunk in [1, 2, 3] {
            let mut policy = WriteOrder::new(chunk);
            for page in 0..40 {
                let mut announced = Vec::new();
                policy.would_touch(Lpn(0), chunk + 1, &stripe, &mut |plane| announced.push(plane));
                let expected: Vec<u32> =
                    (page / chunk..=(page + chunk) / chunk).map(|turn| turn % 4).collect();
                assert_eq!(announced, expected, "chunks of {chunk}, page {page}");
                let view = PlaneView { stripe: &stripe, idle: &[15], yielding: &[0], has_room: &|_| true };
                assert_eq!(policy.plane(Lpn(0), &view), page / chunk % 4);
            }
        }
        let mut policy = WriteOrder::new(2);
        let mut take = |full: u32| {
            let has_room = |plane| plane != full;
            let view = PlaneView { stripe: &stripe, idle: &[15], yielding: &[0], has_room: &has_room };
            policy.plane(Lpn(0), &view)
        };
        assert_eq!([take(9), take(0), take(9), take(9)], [0, 1, 1, 2], "the rest of a chunk is given up");
    }
}
