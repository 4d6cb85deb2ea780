//! Read-ahead at work: pages of sequential streams on their way from flash to the read buffer, and reads served from there.
//!
//! A run is one task of the processor, which takes its time for the pages that are still to be read: what is in a buffer, or on its way to
//! one, or behind the end of the stream by then, costs nothing. Its array reads wait at their executors with those of the host, in the order of
//! arrival: they neither yield nor overtake. How far ahead is read depends on how much of it was asked for so far.

use super::front::Task;
use super::transaction::Kind;
use super::{Context, Device};
use crate::cache::{Allowance, Found, ReadBuffer, Run, Streams};
use crate::ftl::NONE;
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::profile::{Layout, Profile};
use planewise_model::{Lpn, Ns, Ppn, Request};

/// What a device that reads ahead has for it.
pub(super) struct ReadAhead {
    streams: Streams,
    buffer: ReadBuffer,
    allowance: Allowance,
    dropped_by_writes: bool,
}

impl ReadAhead {
    /// As the profile says, on so many executors; none where it says nothing.
    pub(super) fn of(
        profile: &Profile,
        user_pages: u32,
        layout: &Layout,
        executors: u32,
    ) -> Option<ReadAhead> {
        let settings = profile.read_ahead?;
        let (geometry, timing) = (&profile.geometry, &profile.timing);
        let of_page = |page: u32| timing.read_ns.of_page(page).0;
        let array =
            (0..geometry.pages_per_block).map(of_page).sum::<u64>() / u64::from(geometry.pages_per_block);
        // What is read ahead is in sequence: an array read brings all that a page has.
        let array = array / u64::from(layout.units_per_page);
        let bus = timing.command_ns + timing.transfer(geometry.page_bytes).0;
        // Either all units are reading, or all channels carry.
        let page = ((array + bus) / u64::from(executors)).max(bus / u64::from(geometry.channels)).max(1);
        // As many at a time as come through in the time that one takes keep all of it busy (Little's law).
        let full_load = (array + bus).div_ceil(page).max(1);
        Some(ReadAhead {
            streams: Streams::new(&settings, user_pages, geometry.sectors_per_page()),
            buffer: ReadBuffer::new(settings.buffer_pages),
            allowance: Allowance::new(Ns(page), full_load, settings.window_pages),
            dropped_by_writes: settings.dropped_by_writes,
        })
    }
}

impl Device {
    /// The page number that stands for a slot of the read buffer: behind those of the write buffer.
    fn page_of_read_slot(&self, slot: u32) -> Ppn {
        Ppn(self.first_read_slot + slot)
    }

    /// The device had no command of the host for so long.
    pub(super) fn note_rest(&mut self, time: Ns) {
        if let Some(ahead) = &mut self.read_ahead {
            ahead.allowance.rested(time);
        }
    }

    /// Notes a read of the host and asks for what should be read ahead of it.
    pub(super) fn note_sequence(&mut self, now: Ns, request: &Request) {
        let Some(ahead) = &mut self.read_ahead else { return };
        ahead.allowance.settle(now, ahead.buffer.take_outcome(), self.front.outstanding());
        let window = ahead.allowance.window(ahead.streams.window());
        let queue = self.front.tasks();
        let given_up = ahead.streams.note(request.start.0, request.end().0, window, |run| {
            queue.push_back(Task::ReadAhead(run));
        });
        given_up.for_each(|page| ahead.buffer.give_up(Lpn(page)));
    }

    /// Serves a page of a read from the read buffer: true when it was there. It will be when it is coming, and `waits` is told so.
    pub(super) fn serve_from_read_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        lpn: Lpn,
        waits: &mut u32,
    ) -> bool {
        let Some(ReadAhead { buffer, .. }) = &mut self.read_ahead else { return false };
        match buffer.ask(lpn) {
            None => return false,
            Some(Found::Coming(at)) => {
                buffer.wait(at, slot);
                *waits += 1;
            }
            Some(Found::Ready(at)) => {
                let page = self.page_of_read_slot(at);
                context.observer.page_read(context.now, slot, lpn, page, false);
            }
        }
        true
    }

    /// Where a page is in flash, page and plane, if it is nowhere else and should be read ahead.
    fn to_read_ahead(&self, lpn: Lpn) -> Option<(Ppn, u32)> {
        let buffered = self.read_ahead.as_ref().is_none_or(|ahead| ahead.buffer.find(lpn).is_some())
            || self.write_buffer.as_ref().is_some_and(|buffer| buffer.find(lpn).is_some());
        if buffered { None } else { self.place(lpn) }
    }

    /// Pages of a run that are still ahead of its stream.
    fn still_ahead(&self, run: &Run) -> std::ops::Range<u32> {
        self.read_ahead.as_ref().map_or(0..0, |ahead| ahead.streams.still_ahead(run))
    }

    /// Pages of a run that are to be read now.
    pub(super) fn reads_of_run_ahead(&self, run: &Run) -> u32 {
        self.still_ahead(run).filter(|&page| self.to_read_ahead(Lpn(page)).is_some()).count() as u32
    }

    /// Sends a run to the flash: the pages of it that are there and nowhere else already.
    pub(super) fn read_run_ahead<O: Observer>(&mut self, context: &mut Context<'_, O>, run: &Run) {
        for lpn in self.still_ahead(run).map(Lpn) {
            let Some((ppn, plane)) = self.to_read_ahead(lpn) else { continue };
            let plane = self.read_plane(lpn, ppn, plane);
            let Some(slot) = self.read_ahead.as_mut().and_then(|ahead| ahead.buffer.take(lpn)) else {
                return;
            };
            let sectors = self.sectors_per_page;
            let transaction = self.transaction(context.now, Slot(slot), lpn, Kind::ReadAhead, plane, sectors);
            let index = self.transactions.insert(transaction);
            self.send_to_flash(context, index);
        }
    }

    /// The array read of a page begins, or its data were found elsewhere: what the read buffer will hold is settled.
    pub(super) fn note_read_ahead<O: Observer>(&self, context: &mut Context<'_, O>, index: u32, from: Ppn) {
        let transaction = &self.transactions[index];
        let to = self.page_of_read_slot(transaction.slot.0);
        context.observer.page_read_ahead(context.now, transaction.lpn, from, to);
    }

    /// A page is in the read buffer: those that wait for it have it.
    pub(super) fn read_ahead_ended<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let slot = self.transactions[index].slot.0;
        self.transactions.remove(index);
        let page = self.page_of_read_slot(slot);
        let Some(ReadAhead { buffer, .. }) = &mut self.read_ahead else { return };
        let lpn = buffer.arrived(slot);
        let next = |device: &mut Device| device.read_ahead.as_mut()?.buffer.next_waiter(slot);
        while let Some(waiting) = next(self) {
            context.observer.page_read(context.now, waiting, lpn, page, false);
            self.page_done(waiting);
        }
    }

    /// The page left the flash for the valid page buffer while its read waited: it comes from there.
    pub(super) fn read_ahead_elsewhere<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let ppn = self.mapping.physical(self.transactions[index].lpn);
        // The host may have discarded it.
        if ppn != NONE {
            self.note_read_ahead(context, index, Ppn(ppn));
        }
        self.read_ahead_ended(context, index);
    }

    /// The host writes a page: what was read ahead of it is old.
    #[inline]
    pub(super) fn forget_read_ahead(&mut self, lpn: Lpn) {
        if let Some(ahead) = &mut self.read_ahead {
            ahead.buffer.discard(lpn);
        }
    }

    /// A write of the host came: firmware with one data buffer uses it for writes now.
    pub(super) fn turn_to_writes(&mut self) {
        if let Some(ahead) = &mut self.read_ahead
            && ahead.dropped_by_writes
        {
            ahead.streams.forget();
            ahead.buffer.discard_all();
        }
    }
}
