//! Channels: one transfer at a time, in the order in which executors asked, or with commands first.

use super::Phase;
use crate::device::transaction::NIL;
use crate::device::{Context, Device};
use crate::event::Event;
use crate::observers::{ArrayOperation, Observer, Work};
use planewise_model::Ns;
use planewise_model::profile::Arbitration;

/// Executors that wait for a channel, in the order in which they asked.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
}

/// Until when it is taken, and who waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Channel {
    busy_until: Ns,
    /// Those that go first, and the others.
    lines: [Line; 2],
}

impl Channel {
    const NOBODY: Line = Line { first: NIL, last: NIL };
    pub(in crate::device) const FREE: Channel = Channel { busy_until: Ns::ZERO, lines: [Channel::NOBODY; 2] };

    fn is_waited_for(&self) -> bool {
        self.lines[0].first != NIL || self.lines[1].first != NIL
    }
}

impl Phase {
    /// Whether what the phase begins with on the channel is a command without data.
    fn is_command(self) -> bool {
        matches!(
            self,
            Phase::ReadArray | Phase::MoveRead | Phase::ReplicaRead | Phase::MoveCopyback | Phase::Erase
        )
    }

    /// Whether it is a step of a move.
    fn is_move(self) -> bool {
        matches!(self, Phase::MoveRead | Phase::MoveOut | Phase::MoveProgram | Phase::MoveCopyback)
    }
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
        let is_passed = self.arbitration == Arbitration::CommandsFirst && !phase.is_command();
        let is_first = !channel.is_waited_for();
        let is_free = is_first && channel.busy_until <= context.now;
        let needs_none = hold == Ns::ZERO && !(self.moves_hold_channel && phase.is_move());
        if needs_none || is_free && !is_passed {
            self.grant(context, executor);
            return;
        }
        state.next_waiter = NIL;
        if is_free {
            self.handovers.push(state.channel);
        } else if is_first {
            context.events.schedule(channel.busy_until, Event::Channel(state.channel));
        }
        let line = &mut channel.lines[usize::from(is_passed)];
        if line.first == NIL {
            line.first = executor;
        } else {
            self.executors[line.last as usize].next_waiter = executor;
        }
        line.last = executor;
    }

    /// The channel is free: whoever waits longest has it. Where commands go first, that is settled when all have asked who do at this
    /// instant: the unit whose transfer was the last may have its next command.
    #[inline]
    pub(super) fn channel_is_free<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        match self.arbitration {
            Arbitration::Fifo => self.next_in_line(context, index),
            Arbitration::CommandsFirst => self.handovers.push(index),
        }
    }

    /// Hands the free channels over that somebody waits for, once all who ask at this instant have asked.
    #[inline]
    pub(crate) fn hand_channels_over<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        if !self.handovers.is_empty() {
            self.hand_all_over(context);
        }
    }

    #[inline(never)]
    fn hand_all_over<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while let Some(index) = self.handovers.pop() {
            self.next_in_line(context, index);
        }
    }

    /// Gives a channel to the first who waits for it.
    #[inline]
    fn next_in_line<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let channel = &mut self.channels[index as usize];
        let line = &mut channel.lines[usize::from(channel.lines[0].first == NIL)];
        let executor = line.first;
        line.first = self.executors[executor as usize].next_waiter;
        self.grant(context, executor);
        let channel = &self.channels[index as usize];
        if channel.is_waited_for() {
            context.events.schedule(channel.busy_until, Event::Channel(index));
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
        if self.moves_hold_channel && state.phase.is_move() {
            self.channels[state.channel as usize].busy_until = done;
        }
        if let Some(what) = what {
            context.observer.array_busy(executor, released, done, what, state.group_planes, work);
        }
        state.array_from = released;
        state.event_at = done;
        context.events.schedule(done, Event::Executor(executor));
    }
}
