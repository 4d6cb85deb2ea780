//! Read-ahead at work: pages of sequential streams on their way from flash to the read buffer, and reads served from there.
//!
//! A run is one task of the processor. Its array reads wait at their executors with those of the host, in the order of arrival: they
//! neither yield nor overtake.

use super::front::Task;
use super::transaction::Kind;
use super::{Context, Device};
use crate::cache::{Found, Run};
use crate::ftl::NONE;
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::{Lpn, Ppn, Request};

impl Device {
    /// The page number that stands for a slot of the read buffer: behind those of the write buffer.
    fn page_of_read_slot(&self, slot: u32) -> Ppn {
        Ppn(self.first_read_slot + slot)
    }

    /// Notes a read of the host and asks for what should be read ahead of it.
    pub(super) fn note_sequence(&mut self, request: &Request) {
        let (Some(streams), queue) = (&mut self.streams, self.front.tasks()) else { return };
        streams.note(request.start.0, request.end().0, |run| queue.push_back(Task::ReadAhead(run)));
    }

    /// Serves a page of a read from the read buffer: true when it was there. It will be when it is coming, and `waits` is told so.
    pub(super) fn serve_from_read_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        lpn: Lpn,
        waits: &mut u32,
    ) -> bool {
        let Some(buffer) = &mut self.read_buffer else { return false };
        match buffer.find(lpn) {
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

    /// Sends a run to the flash: the pages of it that are there and nowhere else already.
    pub(super) fn read_ahead<O: Observer>(&mut self, context: &mut Context<'_, O>, run: Run) {
        for lpn in (run.first..run.first + run.count).map(Lpn) {
            let held = self.write_buffer.as_ref().is_some_and(|buffer| buffer.find(lpn).is_some());
            let Some((ppn, plane)) = self.place(lpn).filter(|_| !held) else { continue };
            let plane = self.read_plane(lpn, ppn, plane);
            let Some(buffer) = &mut self.read_buffer else { return };
            if buffer.find(lpn).is_some() {
                continue;
            }
            let Some(slot) = buffer.take(lpn) else { return };
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
        let Some(buffer) = &mut self.read_buffer else { return };
        let lpn = buffer.arrived(slot);
        while let Some(waiting) = self.read_buffer.as_mut().and_then(|buffer| buffer.next_waiter(slot)) {
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
        if let Some(buffer) = &mut self.read_buffer {
            buffer.discard(lpn);
        }
    }

    /// A write of the host came: firmware with one data buffer uses it for writes now.
    pub(super) fn turn_to_writes(&mut self) {
        if self.dropped_by_writes
            && let (Some(streams), Some(buffer)) = (&mut self.streams, &mut self.read_buffer)
        {
            streams.forget();
            buffer.discard_all();
        }
    }
}
