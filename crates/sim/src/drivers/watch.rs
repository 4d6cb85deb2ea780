//! What a run owes the outside: it says how far it has come, and stops when it is told to.

use crate::engine::Simulator;
use crate::error::SimError;
use crate::observers::Observer;
use planewise_model::Ns;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two looks. A step is an event or a submission, so that a few requests of a gigabyte are no longer than many of a page.
const STEPS: u32 = 1024;
/// Events that a stopped run may still take to finish what it has under way: about a second.
pub(super) const LAST_EVENTS_MAX: u32 = 1 << 20;

/// Looks at the outside now and then.
pub(super) struct Watch<'a> {
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64),
    steps: u32,
}

impl<'a> Watch<'a> {
    pub(super) fn new(stop: &'a AtomicBool, progress: &'a mut dyn FnMut(u64)) -> Watch<'a> {
        Watch { stop, progress, steps: 0 }
    }

    /// A step was made, with so many requests submitted up to now. True when the run is to stop.
    #[inline]
    pub(super) fn step(&mut self, submitted: u64) -> bool {
        self.steps += 1;
        self.steps >= STEPS && self.look(submitted)
    }

    /// Looks at once. True when the run is to stop.
    pub(super) fn look(&mut self, submitted: u64) -> bool {
        self.steps = 0;
        (self.progress)(submitted);
        self.stop.load(Ordering::Relaxed)
    }
}

/// Finishes what a stopped run has under way, if that is little. False when requests are left.
///
/// # Errors
/// As [`Simulator::advance`].
pub(super) fn wind_up<O: Observer>(simulator: &mut Simulator<O>) -> Result<bool, SimError> {
    for _ in 0..LAST_EVENTS_MAX {
        let next = simulator.next_event();
        if simulator.pending() == 0 || next == Ns::MAX {
            break;
        }
        simulator.advance(next)?;
    }
    Ok(simulator.pending() == 0)
}
