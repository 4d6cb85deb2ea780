//! The one-way elevator with short steps back of Linux's anticipatory scheduler and CFQ (`as_choose_req`,
//! `cfq_choose_req`): which of two requests is closer to where the last one ended.

/// Cost of moving against the direction of the elevator.
#[derive(Clone, Copy)]
pub(super) struct OneWay {
    /// Farthest step back, sectors; what lies farther back waits for the next sweep.
    pub(super) back_max: u64,
    /// A step back costs as much as a step forward of this many times its length.
    pub(super) back_penalty: u64,
}

impl OneWay {
    /// Whether a request that starts at `first` is to be served before one at `second`, `position` being the sector behind
    /// the last request.
    pub(super) fn first_is_closer(&self, position: u64, first: u64, second: u64) -> bool {
        match (self.distance(position, first), self.distance(position, second)) {
            (Some(near), Some(far)) if near == far => first >= second,
            (Some(near), Some(far)) => near < far,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => first <= second,
        }
    }

    /// Weighted distance; [`None`] when too far back.
    fn distance(&self, position: u64, start: u64) -> Option<u64> {
        match position.checked_sub(start) {
            None | Some(0) => Some(start - position),
            Some(back) if back <= self.back_max => Some(back.saturating_mul(self.back_penalty)),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OneWay;

    #[test]
    fn a_step_back_costs_twice_a_step_forward_and_is_bounded() {
        let way = OneWay { back_max: 100, back_penalty: 2 };
        let closer = |first, second| way.first_is_closer(1000, first, second);
        assert!(closer(1010, 1020) && !closer(1020, 1010));
        assert!(closer(995, 1020), "10 against 20");
        assert!(!closer(980, 1020), "40 against 20");
        assert!(closer(1020, 990), "a draw goes forward");
        assert!(closer(5000, 899), "beyond the farthest step back");
        assert!(closer(10, 20), "both behind: the sweep begins at the lowest");
    }
}
