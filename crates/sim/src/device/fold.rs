//! Folding: blocks with one bit a cell are emptied into blocks of the usual kind while the host is at rest.
//!
//! A fold is a collection whose victim is the cache's oldest block. It goes on while no command of the host is outstanding, and stops between two
//! steps when one comes; a plane that runs out of free pages goes on with it as with any collection.

use super::{Context, Device};
use crate::error::SimError;
use crate::event::Event;
use crate::observers::{Cause, Observer};
use planewise_model::Ns;

/// When the device looks whether the host has been at rest for long enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Folding {
    /// An event is due.
    is_armed: bool,
    /// The host has been at rest for long enough, and still is: executors that have nothing to do fold.
    is_on: bool,
}

impl Device {
    /// The host came to rest, or may have: looks again after the time that the cache waits.
    #[inline]
    pub(super) fn note_host_at_rest<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        let Some(cache) = self.operations.cache else { return };
        if !self.folding.is_armed && !self.folding.is_on && self.has_to_fold() {
            self.folding.is_armed = true;
            context.events.schedule(context.now + Ns(cache.idle_ns), Event::Rest);
        }
    }

    fn has_to_fold(&self) -> bool {
        (0..self.geometry.planes()).any(|plane| self.planes.oldest_of_cache(plane).is_some())
    }

    /// Whether the host has had no command outstanding for as long as the cache waits.
    fn is_at_rest(&self, now: Ns) -> bool {
        let Some(cache) = self.operations.cache else { return false };
        self.front.rests_since().is_some_and(|since| since + Ns(cache.idle_ns) <= now)
    }

    /// The time is over: executors fold, if the host is still at rest.
    pub(super) fn fold_at_rest<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        self.folding.is_armed = false;
        if !self.is_at_rest(context.now) {
            // It came back meanwhile. If it is at rest again, the time runs from then.
            if let (Some(since), Some(cache)) = (self.front.rests_since(), self.operations.cache) {
                self.folding.is_armed = true;
                context.events.schedule(since + Ns(cache.idle_ns), Event::Rest);
            }
            return;
        }
        self.folding.is_on = true;
        (0..self.executor_count).for_each(|executor| self.kick(executor));
    }

    /// The host is at rest no longer.
    #[inline]
    pub(super) fn end_of_rest(&mut self) {
        self.folding.is_on = false;
    }

    /// Whether executors that have nothing else to do fold now.
    #[inline]
    pub(super) fn folds_now(&self) -> bool {
        self.folding.is_on
    }

    /// Begins to fold the oldest block of the cache on an idle executor; false when there is none.
    ///
    /// # Errors
    /// Free space exhausted.
    pub(super) fn begin_fold<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<bool, SimError> {
        let oldest = |plane| self.planes.oldest_of_cache(plane).map(|block| (plane, block));
        let Some((plane, block)) = self.load.planes_of(executor).find_map(oldest) else { return Ok(false) };
        self.begin_collection(context, executor, plane, block, Cause::Fold)?;
        // A bound carries it out at once, and kicks the executor for what is next.
        Ok(self.collector.takes_time())
    }

    /// Whether a fold has to wait, and leaves its chip to the host.
    #[inline]
    pub(super) fn fold_waits(&self, plane: u32) -> bool {
        self.front.outstanding() > 0 && !self.collector.should_start(self.plane_state(plane))
    }
}
