//! Dynamic allocation: idle planes first, round robin; then those whose collection lets the host in. When there are none, a write waits
//! for the first that is (`device/unbound.rs`); behind a controller's lists, where it needs a place at once, simply the next one that has room.

use super::{Allocation, PlaneView};
use planewise_model::Lpn;

#[derive(Default)]
pub(super) struct Dynamic {
    /// Stripe position after the one used last.
    next: usize,
}

impl Allocation for Dynamic {
    fn plane(&mut self, lpn: Lpn, view: &PlaneView<'_>) -> u32 {
        if let Some(plane) = self.plane_now(lpn, view) {
            return plane;
        }
        let planes = view.stripe.len();
        let position = (0..planes)
            .map(|step| (self.next + step) % planes)
            .find(|&position| (view.has_room)(view.stripe[position]))
            .unwrap_or(self.next);
        self.next = (position + 1) % planes;
        view.stripe[position]
    }

    fn plane_now(&mut self, _lpn: Lpn, view: &PlaneView<'_>) -> Option<u32> {
        let planes = view.stripe.len();
        for candidates in [view.idle, view.yielding] {
            let mut position = self.next;
            for _ in 0..planes {
                match next_set(candidates, position, planes) {
                    Some(idle) if (view.has_room)(view.stripe[idle]) => {
                        self.next = (idle + 1) % planes;
                        return Some(view.stripe[idle]);
                    }
                    Some(full) => position = (full + 1) % planes,
                    None => break,
                }
            }
        }
        None
    }

    fn would_touch(&self, _first: Lpn, _count: u32, _stripe: &[u32], _visit: &mut dyn FnMut(u32)) -> bool {
        false
    }
}

/// The first set bit at or after `from`, wrapping around.
fn next_set(words: &[u64], from: usize, bits: usize) -> Option<usize> {
    let start = from / 64;
    for step in 0..=words.len() {
        let index = (start + step) % words.len();
        let mut word = words[index];
        if step == 0 {
            word &= u64::MAX << (from % 64);
        }
        if word != 0 {
            let bit = index * 64 + word.trailing_zeros() as usize;
            return (bit < bits).then_some(bit);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_planes_are_taken_round_robin_and_busy_ones_only_when_none_is_idle() {
        let stripe: Vec<u32> = (0..5).collect();
        let room = |_| true;
        let mut policy = Dynamic::default();
        let mut take = |idle: u64| {
            policy
                .plane(Lpn(0), &PlaneView { stripe: &stripe, idle: &[idle], yielding: &[0], has_room: &room })
        };
        assert_eq!(take(0b11111), 0);
        assert_eq!(take(0b11001), 3);
        assert_eq!(take(0b00011), 0);
        assert_eq!(take(0b00000), 1);
        assert_eq!(take(0b00000), 2);
    }

    #[test]
    fn planes_without_room_are_passed_over() {
        let stripe: Vec<u32> = (0..4).collect();
        let room = |plane| plane == 2;
        let mut policy = Dynamic::default();
        for idle in [0b1111, 0b0000, 0b0011] {
            assert_eq!(
                policy.plane(
                    Lpn(0),
                    &PlaneView { stripe: &stripe, idle: &[idle], yielding: &[0], has_room: &room }
                ),
                2
            );
        }
    }
}
