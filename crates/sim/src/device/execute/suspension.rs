//! Programs and erases that the device does for itself stop for a read of the host, and go on after it.

use super::Phase;
use crate::device::{Context, Device};
use crate::event::Event;
use crate::observers::Observer;
use planewise_model::Ns;

/// Suspensions of one program or erase, and reads served during them, in all: reads without end must not keep a block from being
/// erased, nor writes behind it from their turn.
pub(super) const SUSPENSIONS_MAX: u32 = 8;

/// A program or an erase that a read interrupted.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Suspended {
    phase: Phase,
    rest: Ns,
    planes: u32,
}

impl Suspended {
    /// Whether it is the program of a page on its way from a victim to another block of the plane.
    #[inline]
    pub(super) fn is_move(&self) -> bool {
        self.phase == Phase::MoveProgram
    }
}

impl Device {
    /// A read of the host came for an executor that is at work for itself: suspends that, if the scheme does such things.
    pub(in crate::device) fn suspend_for_read<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) {
        if !self.suspends {
            return;
        }
        let state = &mut self.executors[executor as usize];
        if !matches!(state.phase, Phase::MoveProgram | Phase::Erase | Phase::Background)
            || state.suspensions >= SUSPENSIONS_MAX
            || context.now < state.array_from
            || state.event_at == Ns::MAX
        {
            return;
        }
        let rest = state.event_at - context.now;
        // Nothing is won by stopping what is about to end.
        if rest <= self.suspend + self.suspend {
            return;
        }
        state.suspended = Some(Suspended { phase: state.phase, rest, planes: state.group_planes });
        state.suspensions += 1;
        state.phase = Phase::Suspend;
        state.event_at = context.now + self.suspend;
        context.observer.array_suspended(context.now, executor, rest);
        context.events.schedule(state.event_at, Event::Executor(executor));
    }

    /// Goes on with what a read interrupted.
    pub(super) fn resume<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let state = &mut self.executors[executor as usize];
        let Some(suspended) = state.suspended.take() else { return };
        state.group_planes = suspended.planes;
        context.observer.operation_start(context.now, executor, suspended.planes);
        self.ask_channel(context, executor, suspended.phase, Ns::ZERO, self.suspend + suspended.rest);
    }
}
