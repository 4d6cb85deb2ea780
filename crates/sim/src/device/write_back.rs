//! The write buffer at work: host writes on their way in, runs of pages on their way back to flash.
//!
//! A write is complete when all its pages are in the buffer: a capacitor keeps them until they are in flash. When no slot is free it
//! waits, and writes behind it wait in turn. A run is one task of the processor; pages of which the buffer has only some sectors are
//! first read from flash.

use super::front::Task;
use super::transaction::Kind;
use super::{Context, Device};
use crate::cache::NIL;
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::{Lpn, Ppn};

impl Device {
    /// The page number that stands for a slot of the write buffer: behind those of the valid page buffer.
    pub(super) fn page_of_write_slot(&self, slot: u32) -> Ppn {
        Ppn(self.first_write_slot + slot)
    }

    /// The page number that stands for the slot that holds a page, if the write buffer does.
    #[inline]
    pub(super) fn in_write_buffer(&self, lpn: Lpn) -> Option<Ppn> {
        let slot = self.write_buffer.as_ref()?.find(lpn)?;
        Some(self.page_of_write_slot(slot))
    }

    /// Serves a page of a read from the write buffer, if that has all that is asked for.
    pub(super) fn serve_from_write_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        lpn: Lpn,
        sectors: std::ops::Range<u32>,
    ) -> bool {
        let Some(buffer) = &self.write_buffer else { return false };
        let Some(at) = buffer.find(lpn) else { return false };
        // Where there is no page in flash, the rest reads as zeros.
        let serves = buffer.has(at, sectors) || self.place(lpn).is_none();
        if serves {
            let page = self.page_of_write_slot(at);
            context.observer.page_read(context.now, slot, lpn, page, false);
        }
        serves
    }

    /// Takes the pages of a write in, behind those that wait already.
    pub(super) fn take_write_in<O: Observer>(&mut self, context: &mut Context<'_, O>, slot: Slot) {
        let first = self.front.command(slot).1.first;
        if self.waiting_writes.is_empty() {
            self.put_in_write_buffer(context, slot, first);
        } else {
            self.waiting_writes.push_back((slot, first));
        }
    }

    /// Puts the pages of a write from `first` on in the buffer; false when it has to wait for a slot.
    fn put_in_write_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        first: u64,
    ) -> bool {
        let (request, pages) = *self.front.command(slot);
        let forces = request.durability.forces_unit_access() && self.is_volatile();
        for page in first..pages.first + u64::from(pages.count) {
            let lpn = Lpn(page as u32);
            let sectors = self.sectors_of(&request, page);
            let Some(at) = self.write_buffer.as_mut().and_then(|buffer| buffer.put(lpn, sectors)) else {
                self.waiting_writes.push_front((slot, page));
                return false;
            };
            if let Some(buffer) = self.write_buffer.as_mut().filter(|_| forces) {
                buffer.await_slot(slot, at, pages.count);
            }
            let page = self.page_of_write_slot(at);
            context.observer.page_cached(context.now, slot, lpn, page);
            self.forget_read_ahead(lpn);
        }
        if !forces {
            self.request_done(slot);
        }
        true
    }

    /// Lets waiting writes in where slots are free, and starts the runs whose time has come.
    pub(super) fn run_write_buffer<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        if self.write_buffer.is_none() {
            return;
        }
        loop {
            while let Some((first, count)) = self.write_buffer.as_mut().and_then(|buffer| buffer.take_run()) {
                self.front.tasks().push_back(Task::WriteBack { first, count });
            }
            let Some((slot, page)) = self.waiting_writes.pop_front() else { break };
            if !self.put_in_write_buffer(context, slot, page) {
                break;
            }
        }
        if self.gathers {
            self.send_rest(context);
        }
    }

    /// Pages of a run that have to be read from flash before they are written.
    pub(super) fn reads_of_run(&self, first: u32) -> u32 {
        let (mut slot, mut reads) = (first, 0);
        while slot != NIL {
            let Some(buffer) = &self.write_buffer else { break };
            reads += u32::from(self.reads_rest(buffer.page(slot), buffer.missing(slot)));
            slot = buffer.next_of_run(slot);
        }
        reads
    }

    /// Sends a run to the flash.
    pub(super) fn write_run_back<O: Observer>(&mut self, context: &mut Context<'_, O>, first: u32) {
        let mut slot = first;
        while slot != NIL {
            let Some(buffer) = &self.write_buffer else { return };
            let (lpn, missing, next) = (buffer.page(slot), buffer.missing(slot), buffer.next_of_run(slot));
            let kinds = (Kind::ReadForWriteBack, Kind::WriteBack);
            let transaction = self.write_transaction(context.now, Slot(slot), lpn, missing, kinds);
            let index = self.transactions.insert(transaction);
            if self.gathers && transaction.kind == Kind::WriteBack {
                self.assemble(context, index);
            } else {
                self.send_to_flash(context, index);
            }
            slot = next;
        }
    }

    /// A page of the write buffer is in flash.
    pub(super) fn write_back_ended<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let slot = self.transactions[index].slot.0;
        self.transactions.remove(index);
        self.leaves_assembly();
        if let Some(buffer) = &mut self.write_buffer {
            buffer.left(slot);
        }
        self.go_on_with_kept(context);
    }
}
