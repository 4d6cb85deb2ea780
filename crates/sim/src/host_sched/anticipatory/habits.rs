//! What the anticipatory scheduler knows about processes: about each, and about those that just began.

use super::super::habits::{SeekDistance, ThinkTime};
use planewise_model::{Ns, Request};

/// A think time counts this much at most (`MAX_THINKTIME`, less a tick).
const THINK_TIME_MAX: Ns = Ns::from_millis(19);
/// Fixed point of what new processes do.
const ONE: u64 = 256;

/// A process (`as_io_context`).
#[derive(Default)]
pub(super) struct Process {
    pub(super) think: ThinkTime,
    pub(super) seeks: SeekDistance,
    /// Requests that wait.
    pub(super) queued: u32,
    /// Requests on the dispatch list, not yet taken by the device.
    pub(super) dispatched: u32,
    /// End of its last synchronous request.
    pub(super) last_end: Option<Ns>,
    /// Sector behind its last synchronous request.
    position: Option<u64>,
}

/// Means over the first requests of processes.
#[derive(Default)]
pub(super) struct Newcomers {
    think_total: u64,
    seek_total: u64,
}

impl Newcomers {
    fn learn(&mut self, think: Ns) {
        self.think_total = (7 * self.think_total + ONE * think.0) / 8;
    }

    fn learn_seek(&mut self, sectors: u64) {
        self.seek_total =
            (7 * u128::from(self.seek_total) + u128::from(ONE) * u128::from(sectors)) as u64 / 8;
    }

    pub(super) fn think_mean(&self) -> Ns {
        Ns(self.think_total / ONE)
    }

    pub(super) fn seek_mean(&self) -> u64 {
        self.seek_total / ONE
    }
}

impl Process {
    /// Learns from a synchronous request (`as_update_iohist`).
    pub(super) fn learn(&mut self, now: Ns, request: &Request, newcomers: &mut Newcomers) {
        if let Some(position) = self.position {
            let idle = self.queued + self.dispatched == 0;
            let think =
                self.last_end.filter(|_| idle).map_or(Ns::ZERO, |end| (now - end).min(THINK_TIME_MAX));
            if !self.think.is_known() {
                newcomers.learn(think);
            }
            self.think.add(think);
            let distance = position.abs_diff(request.start.0);
            if !self.seeks.is_known() {
                newcomers.learn_seek(distance);
            }
            self.seeks.add(distance);
        }
        self.position = Some(request.end().0);
    }
}
