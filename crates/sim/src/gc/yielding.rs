//! Beyond the paper: a collection that yields at every level. It joins what the others do apart:
//!
//! * **ahead**: idle time collects planes down to a lower bound of free space before the threshold forces it, as long as
//!   victims are cheap;
//! * **early erase**: valid pages go through the buffer whenever there is room, and the block is erased before they are
//!   written back to idle chips, whether or not a request waits at that moment;
//! * **preemption**: waiting host requests go between two steps. There is no floor: the device itself stops the host when a
//!   plane is down to what the collection under way needs, and then only there;
//! * **suspension**: a read that arrives during a program or an erase of a collection suspends it. The collection pays
//!   with the time to suspend and to resume (`suspend_ns` of the profile, each way).

use super::{Collector, PlaneState, Scheme, Turn};
use planewise_model::Direction;

pub(super) const SCHEME: Scheme = Scheme {
    name: "yielding",
    summary: "collects ahead in idle time, erases early through the buffer, yields between steps and suspends for reads",
    bound: false,
    build: |options| Box::new(Yielding { threshold: options.threshold, ahead: options.ahead }),
};

/// Victims with a larger share of valid pages are left alone in idle time: they will be cheaper later.
const AHEAD_VALID_MAX: f64 = 0.5;

struct Yielding {
    threshold: f64,
    ahead: f64,
}

impl Collector for Yielding {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn collects_ahead(&self) -> bool {
        true
    }

    fn should_start_ahead(&self, plane: PlaneState, valid: f64) -> bool {
        plane.is_below(self.ahead) && valid <= AHEAD_VALID_MAX
    }

    fn turn(&self, _plane: PlaneState, _waiting: Direction) -> Turn {
        Turn::Host
    }

    fn holds_chip(&self, _plane: PlaneState) -> bool {
        false
    }

    fn buffers(&self) -> bool {
        true
    }

    fn opens_stream(&self, _conflict: bool) -> bool {
        true
    }

    fn asks_again(&self) -> bool {
        true
    }

    fn suspends(&self) -> bool {
        true
    }
}
