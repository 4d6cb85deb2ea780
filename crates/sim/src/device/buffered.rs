//! Pages in the valid page buffer (GC paper, section 4.1): how they get in, and what the host finds there.
//!
//! A read of a buffered page is served by the controller in no time (the paper counts access to its memory as negligible). A
//! write of one is absorbed: the new data take the place of the old, and the page goes back to flash once. The buffer is
//! protected by a capacitor, so that an absorbed write is acknowledged at once. While a page is being programmed back it
//! still serves reads, but a write goes to flash like any other, and the program under way is wasted.

use super::execute::Phase;
use super::transaction::NIL;
use super::{Context, Device};
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::{Direction, Lpn, Ns, Ppn};

impl Device {
    /// The slot of the buffer that holds a page.
    #[inline]
    fn slot_of(&self, lpn: Lpn) -> Option<u32> {
        let ppn = self.mapping.physical(lpn);
        (ppn >= self.flash_pages() && ppn != crate::ftl::NONE).then(|| ppn - self.flash_pages())
    }

    /// The page number that stands for a slot: behind the last page of the flash.
    pub(super) fn page_of_slot(&self, slot: u32) -> Ppn {
        Ppn(self.flash_pages() + slot)
    }

    /// Whether a write of the page is absorbed by the buffer.
    #[inline]
    pub(super) fn absorbs(&self, lpn: Lpn) -> bool {
        self.slot_of(lpn).is_some_and(|slot| self.buffer.absorbs(slot))
    }

    /// Serves a page of a host request from the buffer, if that can.
    #[inline]
    pub(super) fn serve_from_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        host: Slot,
        direction: Direction,
        lpn: Lpn,
    ) -> bool {
        let Some(slot) = self.slot_of(lpn) else {
            return direction == Direction::Read && self.serve_from_copies(context, host, lpn);
        };
        let page = self.page_of_slot(slot);
        match direction {
            Direction::Read => {
                // What the write buffer has of the page goes over it.
                let from = self.in_write_buffer(lpn).unwrap_or(page);
                context.observer.page_read(context.now, host, lpn, from, false);
            }
            Direction::Write if self.buffer.absorbs(slot) => {
                if self.front.active {
                    self.forget_read_ahead(lpn);
                }
                context.observer.page_absorbed(context.now, host, lpn, page);
            }
            Direction::Write => return false,
        }
        true
    }

    /// Whether the controller has the data of a page, on their way to its replica.
    #[inline]
    pub(super) fn has_copy(&self, lpn: Lpn) -> bool {
        self.keeps_replicas && self.replicas.holds(lpn)
    }

    /// Serves a page that is on its way to its replica: its data are those of its own page.
    fn serve_from_copies<O: Observer>(&self, context: &mut Context<'_, O>, host: Slot, lpn: Lpn) -> bool {
        if !self.has_copy(lpn) {
            return false;
        }
        let page = self.in_write_buffer(lpn).unwrap_or(Ppn(self.mapping.physical(lpn)));
        context.observer.page_read(context.now, host, lpn, page, false);
        context.observer.replica_read(context.now, lpn);
        true
    }

    /// Serves the first of an executor's waiting transactions as long as the buffer can.
    pub(super) fn serve_waiting<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        for list in 0..2 {
            loop {
                let index = self.executors[executor as usize].waiting[list].head;
                if index == NIL || !self.serve_transaction(context, index) {
                    break;
                }
                self.executors[executor as usize].waiting[list].pop_front(&self.transactions);
                self.close_served(context, index);
            }
        }
    }

    fn serve_transaction<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) -> bool {
        use super::transaction::Kind;
        let transaction = self.transactions[index];
        let direction = match transaction.kind {
            Kind::Read => Direction::Read,
            // The rest of a partial write is in the buffer: it is complete there.
            Kind::ReadForWrite | Kind::Write => Direction::Write,
            Kind::ReadAhead => return self.slot_of(transaction.lpn).is_some(),
            // The write buffer's pages go to flash: two buffers in a row would only be one that is harder to follow.
            Kind::WriteBack | Kind::ReadForWriteBack => return false,
        };
        self.serve_from_buffer(context, transaction.slot, direction, transaction.lpn)
    }

    /// A page of the host is in flash: the slot of the buffer that held it before, if one did, is free.
    pub(super) fn release_replaced<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        written: &super::transaction::Transaction,
    ) {
        if written.old >= self.flash_pages() && written.old != crate::ftl::NONE {
            let slot = written.old - self.flash_pages();
            if self.buffer.release(slot) {
                context.observer.page_replaced(context.now, written.lpn, Ppn(written.old));
            }
        }
    }

    fn close_served<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        self.load.remove(self.transactions[index].plane);
        if self.transactions[index].kind.is_host() {
            self.close_transaction(index);
        } else {
            self.read_ahead_elsewhere(context, index);
        }
    }

    /// Opens the way into the buffer for the rest of a collection, if the scheme wants one and there is room.
    pub(super) fn open_stream(&mut self, executor: u32) {
        let collection = self.collection(executor);
        if collection.stream.is_some() || collection.gave_up || !self.buffers {
            return;
        }
        if self.collector.opens_stream(self.is_wanted(executor)) {
            let rest = self.planes.valid_in(collection.plane, collection.victim);
            let stream = self.buffer.open(rest);
            let gave_up = stream.is_none() && !self.collector.asks_again();
            let collection = self.collection_mut(executor);
            (collection.stream, collection.gave_up) = (stream, gave_up);
        }
    }

    /// Everything that goes into the buffer is there: the segment joins the line to be written back.
    pub(super) fn close_stream(&mut self, now: Ns, executor: u32) {
        if let Some(stream) = self.collection_mut(executor).stream.take() {
            self.buffer.close(now, &stream);
        }
    }

    /// The page being moved arrived in the controller and stays there.
    pub(super) fn put_in_buffer<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        lpn: Lpn,
    ) {
        debug_assert_eq!(self.executors[executor as usize].phase, Phase::MoveOut);
        let collection =
            self.executors[executor as usize].collection.as_mut().expect("a page is being moved");
        let stream = collection.stream.as_mut().expect("a stream is open");
        let slot = self.buffer.fill(stream, lpn);
        collection.buffered += 1;
        let from = collection.source;
        let page = self.page_of_slot(slot);
        self.mapping.relocate(lpn, page.0);
        self.planes.invalidate(from);
        context.observer.page_buffered(context.now, lpn, from, page);
        self.serve_those_waiting_for(context, executor, lpn);
        // Requests in front of a blocking interface may have waited for this page alone.
        self.load.note_freed();
    }

    /// Transactions that wait at the executor for a page that just came into the buffer.
    fn serve_those_waiting_for<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        lpn: Lpn,
    ) {
        for list in 0..2 {
            let (mut previous, mut index) = (NIL, self.executors[executor as usize].waiting[list].head);
            while index != NIL {
                let next = self.transactions[index].next;
                if self.transactions[index].lpn == lpn && self.serve_transaction(context, index) {
                    self.executors[executor as usize].waiting[list]
                        .remove_after(&mut self.transactions, previous);
                    self.close_served(context, index);
                } else {
                    previous = index;
                }
                index = next;
            }
        }
    }
}
