//! Writes: room for their pages, their places, and old pages that are the only ones until a program is through.

use super::Phase;
use crate::device::transaction::{Kind, NIL};
use crate::device::unbound::UNBOUND;
use crate::device::{Context, Device};
use crate::error::SimError;
use crate::ftl::{NONE, Stream};
use crate::observers::{Cause, Observer, Origin};
use planewise_model::{Direction, Ppn};

impl Device {
    pub(super) fn start_write<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let list = Direction::Write.index();
        let first = self.executors[executor as usize].waiting[list].head;
        let plane = self.transactions[first].plane;
        if !self.can_program(plane) {
            // No page left but those kept for collection: collect now, whatever the scheme's threshold says.
            if self.executors[executor as usize].collection.is_some() {
                return self.collection_step(context, executor);
            }
            if let Some(victim) = self.planes.pick_victim(plane) {
                self.begin_collection(context, executor, plane, victim, Cause::Space)?;
                if self.collector.takes_time() {
                    return self.collection_step(context, executor);
                }
                self.kick(executor);
                return Ok(());
            }
            if self.drop_replicas_on(context, plane) {
                // They were all that stood in the way of a victim.
                self.kick(executor);
                return Ok(());
            }
            if self.plane_with_room().is_none()
                && (0..self.geometry.planes())
                    .fold(false, |any, plane| any | self.drop_replicas_on(context, plane))
            {
                self.kick(executor);
                return Ok(());
            }
            let Some(other) = self.plane_with_room() else {
                return Err(self.space_exhausted(context.now, plane));
            };
            self.executors[executor as usize].waiting[list].pop_front(&self.transactions);
            self.load.remove(plane);
            self.transactions[first].plane = other;
            self.enqueue(first);
            self.kick(executor);
            return Ok(());
        }
        let (group, offset) = self.gather_writes(executor);
        let (hold, program) = self.program_cost(plane, offset, group.1);
        if self.advanced.cache_program {
            self.load_register(context, executor, group, hold);
            return Ok(());
        }
        self.begin(context, executor, group);
        self.map_writes(context, executor, group.0);
        let program = self.variation.of(program);
        self.ask_channel(context, executor, Phase::Program, hold, program);
        Ok(())
    }

    /// Takes the write that has waited longest, and those that can run with it, out of the line: the first and how many planes, and which
    /// block and page of it they go to.
    #[inline(always)]
    pub(super) fn gather_writes(&mut self, executor: u32) -> ((u32, u32), (u32, u32)) {
        let list = &mut self.executors[executor as usize].waiting[Direction::Write.index()];
        let first = list.pop_front(&self.transactions).expect("a write waits");
        let plane = self.transactions[first].plane;
        let offset = self.planes.write_pointer(plane, Stream::Host).expect("can_program found a page");
        self.transactions[first].next = NIL;
        ((first, self.gather(executor, Direction::Write, first, offset)), offset)
    }

    /// Gives the pages of a group their places.
    #[inline(always)]
    pub(super) fn map_writes<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        first: u32,
    ) {
        let mut index = first;
        while index != NIL {
            let transaction = self.transactions[index];
            let ppn = self.planes.program(transaction.plane, Stream::Host).expect("can_program found a page");
            let old = self.mapping.map(transaction.lpn, ppn);
            if old < self.flash_pages() {
                self.planes.invalidate(Ppn(old));
            } else if old != NONE {
                self.buffer.replace(old - self.flash_pages());
            }
            self.transactions[index].old = old;
            let origin = match transaction.kind {
                Kind::WriteBack => Origin::WriteBuffer { from: self.page_of_write_slot(transaction.slot.0) },
                _ => Origin::Host(transaction.slot),
            };
            context.observer.page_program(context.now, origin, transaction.lpn, ppn);
            if self.front.active {
                self.forget_read_ahead(transaction.lpn);
            }
            if self.keeps_replicas {
                self.replicas.no_longer_wanted(transaction.lpn);
                if let Some(replica) = self.replicas.remove(transaction.lpn) {
                    self.planes.invalidate(replica);
                    context.observer.replica_dropped(context.now, transaction.lpn, true);
                }
            }
            self.host_pages_written += 1;
            self.note_space_used(executor, transaction.plane);
            if self.is_apart {
                self.end_program_of(context, index, ppn);
            }
            index = transaction.next;
        }
    }

    /// A unit of a group was given its place: if it is the last on its plane, so ends what is programmed there.
    #[inline(never)]
    fn end_program_of<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32, ppn: Ppn) {
        let plane = self.transactions[index].plane;
        let mut later = self.transactions[index].next;
        while later != NIL {
            if self.transactions[later].plane == plane {
                return;
            }
            later = self.transactions[later].next;
        }
        self.end_programs(context, plane, ppn);
    }

    /// Whether the host may program a page of the plane. The last free block is kept for collection; while one is under way
    /// there, it may have opened that block, and its valid pages must still fit.
    pub(in crate::device) fn can_program(&self, plane: u32) -> bool {
        let executor = &self.executors[self.load.executor_of(plane) as usize];
        match executor.collection {
            Some(collection) if collection.plane == plane => {
                let pages = self.geometry.pages_per_block;
                self.planes.free_pages(plane) > self.planes.valid_in(plane, collection.victim).max(pages)
            }
            _ => !self.planes.active_is_full(plane) || self.planes.free_blocks(plane) > 1,
        }
    }

    /// The emptiest plane that can take a page of a write whose own plane is full of valid data; none where pages stay put.
    fn plane_with_room(&self) -> Option<u32> {
        let most = self.planes.most_valid();
        (0..self.geometry.planes())
            .filter(|_| !self.static_allocation)
            .min_by_key(|&plane| self.planes.valid_total(plane))
            .filter(|&plane| self.planes.valid_total(plane) <= most)
    }

    /// The rest of a page to be written in part has been read.
    pub(super) fn go_on_as_write<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        if self.gathers {
            return self.go_on_as_unit(context, index);
        }
        let plane = self.bind(self.transactions[index].lpn);
        let write = &mut self.transactions[index];
        write.kind = write.kind.after_read();
        write.plane = plane;
        write.queued = context.now;
        if plane == UNBOUND {
            return self.wait_for_plane(index, true);
        }
        let executor = self.load.add(plane);
        // It keeps its place: the write goes before those that came after the request it belongs to.
        self.executors[executor as usize].waiting[Direction::Write.index()]
            .push_front(&mut self.transactions, index);
        self.kick(executor);
    }

    /// Victims whose erase waited for a program may be free of such pages now.
    pub(super) fn kick_waiting_erases(&mut self) {
        while let Some(executor) = self.erases_waiting.pop() {
            self.kick(executor);
        }
    }

    /// Whether a host program under way replaces a page of these: until it is through, the old page is the only one there is.
    pub(in crate::device) fn is_being_replaced(&self, pages: std::ops::Range<u32>) -> bool {
        self.executors.iter().filter(|state| state.phase == Phase::Program).any(|state| {
            let mut index = state.group;
            while index != NIL {
                if pages.contains(&self.transactions[index].old) {
                    return true;
                }
                index = self.transactions[index].next;
            }
            false
        })
    }

    /// The page that a host program under way replaces is now elsewhere.
    pub(in crate::device) fn replaced_page_moved(&mut self, from: u32, to: u32) {
        for executor in 0..self.executors.len() {
            if self.executors[executor].phase == Phase::Program {
                let mut index = self.executors[executor].group;
                while index != NIL {
                    if self.transactions[index].old == from {
                        self.transactions[index].old = to;
                    }
                    index = self.transactions[index].next;
                }
            }
        }
    }
}
