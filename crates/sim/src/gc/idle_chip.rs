//! The GC paper's own scheme (section 4): valid pages go to a buffer in the controller, the block is erased and the chip
//! released at once, and the pages return later to chips that are idle.
//!
//! Its rules, and where they are carried out:
//! * only a collection that is in the way of a host request opens a stream to the buffer (section 4.1.1, rule 1): here;
//! * a stream reserves slots for all its pages in advance, as far as there are any; streams that come later get what is
//!   left, and what does not fit moves the traditional way (rule 2, figure 9): `buffer.rs`;
//! * reads of a buffered page are served by the buffer, writes are absorbed by it (4.1.2): `device/buffered.rs`;
//! * segments return first in, first out, to idle chips round robin (4.2): `device/background.rs`, when and how many: `write_back.rs`;
//! * once the buffer is full, the rest of a collection goes the traditional way (algorithm 1): it does not ask again.
//!
//! A collection nobody waits for has nobody to yield to: under rule 1 it moves its pages the traditional way, until somebody
//! comes. The paper decides once, at the start; asking again before every move lets late requests in as well. Its algorithm 1
//! knows no rule 1: there every collection uses the buffer. `streams` of the profile chooses between the two.

use super::{Collector, PlaneState, Scheme};
use planewise_model::profile::StreamRule;

pub(super) const SCHEME: Scheme = Scheme {
    name: "idle_chip",
    summary: "valid pages leave to a controller buffer, the chip is released after the erase, pages return to idle chips",
    bound: false,
    build: |options| {
        Box::new(IdleChip { threshold: options.threshold, all: options.streams == StreamRule::All })
    },
};

struct IdleChip {
    threshold: f64,
    all: bool,
}

impl Collector for IdleChip {
    fn should_start(&self, plane: PlaneState) -> bool {
        plane.is_below(self.threshold)
    }

    fn buffers(&self) -> bool {
        true
    }

    fn opens_stream(&self, conflict: bool) -> bool {
        conflict || self.all
    }
}
