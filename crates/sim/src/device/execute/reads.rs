//! Reads: what waits on an executor becomes an operation, which leaves page by page.

use super::Phase;
use crate::device::transaction::{Kind, NIL, Transaction};
use crate::device::unbound::UNBOUND;
use crate::device::{Context, Device};
use crate::error::SimError;
use crate::ftl::NONE;
use crate::observers::Observer;
use planewise_model::{Direction, Ns, Ppn};

impl Device {
    pub(super) fn start_read<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let list = Direction::Read.index();
        let Some(first) = self.executors[executor as usize].waiting[list].pop_front(&self.transactions)
        else {
            return Ok(());
        };
        let Some(ppn) = self.source_of(first) else {
            self.load.remove(self.transactions[first].plane);
            let lpn = self.transactions[first].lpn;
            if let Some((_, plane)) = self.place(lpn) {
                // The page moved while the read waited: follow it.
                self.transactions[first].plane = plane;
                self.enqueue(first);
                let Transaction { slot, kind, .. } = self.transactions[first];
                if kind.is_host() {
                    let executor = self.load.executor_of(plane);
                    self.note_meeting(context, slot, executor);
                    self.suspend_for_read(context, executor);
                }
            } else if self.transactions[first].kind == Kind::ReadAhead {
                self.read_ahead_elsewhere(context, first);
            } else if self.transactions[first].kind == Kind::Read {
                // The host discarded the page meanwhile: it reads as zeros.
                self.close_transaction(first);
            } else {
                // The rest of a page to be written in part: it is in the buffer, on its way back to flash, and needs no read.
                if self.gathers {
                    self.go_on_as_unit(context, first);
                    self.kick(executor);
                    return Ok(());
                }
                let kind = self.transactions[first].kind.after_read();
                let plane = self.bind(lpn);
                let write = &mut self.transactions[first];
                (write.kind, write.plane, write.sectors) = (kind, plane, self.sectors_per_page);
                match plane {
                    UNBOUND => self.wait_for_plane(first, false),
                    _ => self.enqueue(first),
                }
            }
            self.kick(executor);
            return Ok(());
        };
        let offset = self.planes.offset_of(ppn);
        self.transactions[first].next = NIL;
        let planes = self.gather(executor, Direction::Read, first, offset);
        self.begin(context, executor, (first, planes));
        let mut index = first;
        while index != NIL {
            let transaction = self.transactions[index];
            // A primed device has no page of its own for what nobody wrote.
            let unwritten = self.mapping.physical(transaction.lpn) == NONE;
            let ppn = if unwritten { Ppn(NONE) } else { self.source_of(index).expect("it was gathered") };
            let modify = transaction.kind == Kind::ReadForWrite;
            let own = self.programmed_copy(Ppn(self.mapping.readable(transaction.lpn)));
            if !unwritten && own != ppn {
                self.replicas.note_use(transaction.lpn);
                context.observer.replica_read(context.now, transaction.lpn);
            }
            if transaction.kind.is_host() {
                // What the write buffer has of the page goes over what comes from flash.
                let from = match self.front.active && !modify {
                    true => self.in_write_buffer(transaction.lpn).unwrap_or(ppn),
                    false => ppn,
                };
                context.observer.page_read(context.now, transaction.slot, transaction.lpn, from, modify);
            } else if transaction.kind == Kind::ReadAhead {
                self.note_read_ahead(context, index, ppn);
            } else {
                context.observer.rest_read(context.now, transaction.lpn, ppn);
            }
            index = transaction.next;
        }
        let command = Ns(self.timing.command_ns * u64::from(self.pages_touched(first, planes)));
        let plane = self.transactions[first].plane;
        let array = self.variation.of(self.read_time(plane, offset));
        self.ask_channel(context, executor, Phase::ReadArray, command, array);
        Ok(())
    }

    /// The page that a waiting read finds on its plane: its own, or a replica. None when there is none any more.
    pub(super) fn source_of(&self, index: u32) -> Option<Ppn> {
        let transaction = &self.transactions[index];
        let ppn = self.mapping.readable(transaction.lpn);
        if ppn < self.flash_pages()
            && (self.redirects_reads || self.planes.plane_of(Ppn(ppn)) == transaction.plane)
        {
            return Some(self.programmed_copy(Ppn(ppn)));
        }
        self.replicas
            .find(transaction.lpn)
            .filter(|&replica| self.planes.plane_of(replica) == transaction.plane)
    }

    /// A page, or the one that it is a copy of while its own program is suspended: half programmed it cannot be read, and the victim
    /// that it comes from, on the same plane, is not erased before.
    #[inline]
    fn programmed_copy(&self, ppn: Ppn) -> Ppn {
        if !self.suspends || ppn.0 >= self.flash_pages() {
            return ppn;
        }
        let state = &self.executors[self.load.executor_of(self.planes.plane_of(ppn)) as usize];
        match (&state.suspended, &state.collection) {
            (Some(suspended), Some(collection)) if suspended.is_move() && collection.target == ppn => {
                collection.source
            }
            _ => ppn,
        }
    }

    pub(super) fn transfer_out<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let sectors = self.transactions[self.executors[executor as usize].current].sectors;
        let hold = self.timing.transfer(sectors * 512);
        self.ask_channel(context, executor, Phase::ReadTransfer, hold, Ns::ZERO);
    }
}
