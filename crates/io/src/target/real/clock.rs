//! The clock that measurements go by, and how long a wait may sleep.

use planewise_model::Ns;
use std::time::{Duration, Instant};

/// Timers of the kernel wake a sleeper up to their slack of 50 us late, plus the way out of a sleeping processor: the last part
/// of a wait is spent looking instead.
const LOOK: Ns = Ns::from_micros(100);

/// CLOCK_MONOTONIC since the target was opened.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Begins at 0 now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Time since the start.
    #[inline]
    pub fn now(self) -> Ns {
        Ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Look,
    /// Looking again and again.
    Spin,
    /// Asleep, for at most this long.
    Sleep(Duration),
    /// Asleep until something completes.
    Forever,
}

/// How to wait from `now` to `until` and not be late.
pub fn how_to_wait(now: Ns, until: Ns) -> Wait {
    if until == Ns::MAX {
        Wait::Forever
    } else if until <= now {
        Wait::Look
    } else if until - now > LOOK {
        Wait::Sleep(Duration::from_nanos((until - now - LOOK).0))
    } else {
        Wait::Spin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_wait_is_spent_looking() {
        let now = Ns(1_000);
        assert_eq!(how_to_wait(now, Ns(1_000)), Wait::Look);
        assert_eq!(how_to_wait(now, Ns(0)), Wait::Look);
        assert_eq!(how_to_wait(now, Ns(1_000 + LOOK.0)), Wait::Spin);
        assert_eq!(how_to_wait(now, Ns(1_005 + LOOK.0)), Wait::Sleep(Duration::from_nanos(5)));
        assert_eq!(how_to_wait(now, Ns::MAX), Wait::Forever);
    }
}
