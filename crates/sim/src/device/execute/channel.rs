//! Channels: one transfer at a time, in the order in which executors asked.

use super::Phase;
use crate::device::transaction::NIL;
use crate::device::{Context, Device};
use crate::event::Event;
use crate::observers::{ArrayOperation, Observer, Work};
use planewise_model::Ns;

/// Until when it is taken, and who waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Channel {
    busy_until: Ns,
    first_waiter: u32,
    last_waiter: u32,
}

impl Channel {
    pub(in crate::device) const FREE: Channel =
        Channel { busy_until: Ns::ZERO, first_waiter: NIL, last_waiter: NIL };
}

impl Device {
    /// Asks for the executor's channel for `hold`, followed by `then` of array time; the event at the end of both ends `phase`.
    pub(in crate::device) fn ask_channel<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        phase: Phase,
        hold: Ns,
        then: Ns,
    ) {
        let state = &mut self.executors[executor as usize];
        state.phase = phase;
        state.hold = hold;
        state.then = then;
        state.asked = context.now;
        let channel = &mut self.channels[state.channel as usize];
        if hold == Ns::ZERO || (channel.first_waiter == NIL && channel.busy_until <= context.now) {
            self.grant(context, executor);
            return;
        }
        state.next_waiter = NIL;
        if channel.first_waiter == NIL {
            channel.first_waiter = executor;
            context.events.schedule(channel.busy_until, Event::Channel(state.channel));
        } else {
            self.executors[channel.last_waiter as usize].next_waiter = executor;
        }
        channel.last_waiter = executor;
    }

    /// The channel is free: whoever waits longest has it.
    pub(super) fn next_in_line<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let executor = self.channels[index as usize].first_waiter;
        let next = self.executors[executor as usize].next_waiter;
        self.channels[index as usize].first_waiter = next;
        self.grant(context, executor);
        if next != NIL {
            context.events.schedule(self.channels[index as usize].busy_until, Event::Channel(index));
        }
    }

    #[inline]
    fn grant<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let owner = self.owner_of(executor);
        let state = &mut self.executors[executor as usize];
        state.channel_wait += context.now - state.asked;
        let released = context.now + state.hold;
        let done = released + state.then;
        let (what, work) = match state.phase {
            Phase::ReadArray => (Some(ArrayOperation::Read), Work::Host),
            Phase::Program => (Some(ArrayOperation::Program), Work::Host),
            Phase::MoveRead | Phase::ReplicaRead => (Some(ArrayOperation::Read), Work::Collection),
            Phase::MoveProgram => (Some(ArrayOperation::Program), Work::Collection),
            Phase::MoveCopyback => (Some(ArrayOperation::Copyback), Work::Collection),
            Phase::Erase => (Some(ArrayOperation::Erase), Work::Collection),
            Phase::Background => (Some(ArrayOperation::Program), Work::Background),
            Phase::MoveOut | Phase::ReplicaOut => (None, Work::Collection),
            Phase::Idle
            | Phase::ReadTransfer
            | Phase::Suspend
            | Phase::ReadHeld
            | Phase::CacheRead
            | Phase::CacheOut
            | Phase::CacheIn
            | Phase::CacheLoaded => (None, Work::Host),
        };
        if state.hold > Ns::ZERO {
            self.channels[state.channel as usize].busy_until = released;
            context.observer.channel_busy(state.channel, owner, context.now, released, work);
        }
        if let Some(what) = what {
            context.observer.array_busy(executor, released, done, what, state.group_planes, work);
        }
        state.array_from = released;
        state.event_at = done;
        context.events.schedule(done, Event::Executor(executor));
    }
}
