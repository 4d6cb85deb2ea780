//! What the host asks for beside data: flushes, writes that are kept once acknowledged, and discards.
//!
//! A flush is complete when every page that was in a volatile write buffer when it reached the firmware is in flash. That is more than
//! what NVMe asks for, which is what was complete when the flush was sent: pages of writes that are not complete are in the buffer, too.
//! Later writes are acknowledged as ever: nothing in NVMe holds them, but that the buffer may be full of what is flushed.
//! A write with forced unit access goes through the buffer and is complete when its own pages are in flash. Where the buffer has a capacitor,
//! or there is none, both are complete as any command is.
//!
//! A discard covers whole pages; parts of pages at its ends are left as they are, which every standard allows. What waits in the write
//! buffer is dropped; what is on its way to flash from there arrives first.

use super::{Context, Device};
use crate::ftl::NONE;
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::{Lpn, Operation, Ppn};

impl Device {
    /// Whether acknowledged writes may be lost with the power.
    pub(super) fn is_volatile(&self) -> bool {
        self.write_buffer.as_ref().is_some_and(|buffer| !buffer.is_protected())
    }

    /// Takes in a command that moves no data.
    #[cold]
    pub(super) fn take_in_apart<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        request: &planewise_model::Request,
    ) {
        match request.operation {
            Operation::Transfer => unreachable!("it moves data"),
            Operation::Flush | Operation::FlushWithMetadata => {
                if !self.waits_for_flush(slot) {
                    self.request_done(slot);
                }
            }
            Operation::Discard => {
                let sectors = u64::from(self.sectors_per_page);
                let first = request.start.0.div_ceil(sectors);
                let end = (request.end().0 / sectors).max(first);
                self.forget_or_wait(context, slot, (first as u32..end as u32).map(Lpn));
            }
        }
    }

    /// Forgets those pages of a discard of which nothing is on its way to flash; the others wait until it is there, and are looked at again: a
    /// newer version of one may have been sent behind the older meanwhile.
    fn forget_or_wait<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        pages: impl Iterator<Item = Lpn>,
    ) {
        let mut leaving = Vec::new();
        for lpn in pages {
            match self.write_buffer.as_mut().and_then(|buffer| buffer.discard(lpn)) {
                Some(at) => leaving.push((lpn, at)),
                None => self.discard(context, slot, lpn),
            }
        }
        if leaving.is_empty() {
            // A unit may want no collection any more, or have a victim that costs nothing; requests may wait for that.
            self.load.note_freed();
            self.request_done(slot);
            return;
        }
        let count = leaving.len() as u32;
        if let Some(buffer) = &mut self.write_buffer {
            leaving.iter().for_each(|&(_, at)| buffer.await_slot(slot, at, count));
        }
        self.discarding.push((slot, leaving.into_iter().map(|(lpn, _)| lpn).collect()));
    }

    /// Lets a request wait until all that the write buffer holds is in flash; false when there is nothing to wait for.
    pub(super) fn waits_for_flush(&mut self, slot: Slot) -> bool {
        self.is_volatile() && self.write_buffer.as_mut().is_some_and(|buffer| buffer.await_all(slot))
    }

    /// Forgets a page.
    fn discard<O: Observer>(&mut self, context: &mut Context<'_, O>, slot: Slot, lpn: Lpn) {
        self.forget_read_ahead(lpn);
        let old = self.mapping.unmap(lpn);
        if old < self.flash_pages() {
            self.planes.invalidate(Ppn(old));
        }
        if self.keeps_replicas {
            self.replicas.no_longer_wanted(lpn);
            if let Some(replica) = self.replicas.remove(lpn) {
                self.planes.invalidate(replica);
                context.observer.replica_dropped(context.now, lpn, true);
            }
        }
        context.observer.page_discarded(context.now, slot, lpn);
        if let Some(at) = old.checked_sub(self.flash_pages()).filter(|_| self.buffers && old != NONE) {
            // Nobody writes it back any more; on its way back it frees its slot at the end.
            self.buffer.replace(at);
            if self.buffer.release(at) {
                context.observer.page_replaced(context.now, lpn, Ppn(old));
            }
        }
    }

    /// Requests that waited for pages to be in flash go on.
    pub(super) fn go_on_with_kept<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while let Some(slot) = self.write_buffer.as_mut().and_then(|buffer| buffer.take_kept()) {
            let (request, pages) = *self.front.command(slot);
            let state = &mut self.progress[slot.index()];
            if request.operation == Operation::Discard {
                let at = self.discarding.iter().position(|&(waiting, _)| waiting == slot);
                let (_, pages) = self.discarding.swap_remove(at.expect("it waited"));
                self.forget_or_wait(context, slot, pages.into_iter());
            } else if request.is_transfer()
                && !std::mem::replace(&mut state.is_flushed, true)
                && request.durability.flushes_first()
            {
                self.take_in(context, slot, &request, pages);
            } else {
                self.request_done(slot);
            }
        }
    }
}
