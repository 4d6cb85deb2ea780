//! Multi-plane groups: transactions of one die that run as one operation.

use crate::device::transaction::{List, NIL};
use crate::device::{Context, Device};
use crate::ftl::Stream;
use crate::observers::Observer;
use planewise_model::{Direction, Ns};

/// How far a reordering flash scheduler looks for multi-plane partners.
const PARTNER_SEARCH_MAX: usize = 64;

impl Device {
    pub(super) fn planes_waited_for(&self, list: &List) -> u32 {
        let mut planes = 0u64;
        let mut index = list.head;
        for _ in 0..PARTNER_SEARCH_MAX {
            if index == NIL {
                break;
            }
            planes |= 1 << (self.transactions[index].plane % self.geometry.planes_per_die % 64);
            index = self.transactions[index].next;
        }
        planes.count_ones()
    }

    /// Links to `first` the waiting transactions that can run with it as one multi-plane operation; returns their number.
    #[inline(always)]
    pub(super) fn gather(
        &mut self,
        executor: u32,
        direction: Direction,
        first: u32,
        offset: (u32, u32),
    ) -> u32 {
        if self.gathers {
            return self.gather_units(executor, direction, first, offset);
        }
        let is_alone = self.executors[executor as usize].waiting[direction.index()].is_empty();
        if is_alone || !self.advanced.multi_plane || self.geometry.planes_per_die == 1 {
            return 1;
        }
        self.gather_planes(executor, direction, first, offset)
    }

    fn gather_planes(&mut self, executor: u32, direction: Direction, first: u32, offset: (u32, u32)) -> u32 {
        let mut count = 1;
        // With dies that do not interleave, an executor spans several: partners must be of the same die.
        let die = self.transactions[first].plane / self.geometry.planes_per_die;
        let mut taken = 1u64 << (self.transactions[first].plane % self.geometry.planes_per_die % 64);
        let (mut last, mut previous) = (first, NIL);
        let mut index = self.executors[executor as usize].waiting[direction.index()].head;
        let other = self.executors[executor as usize].waiting[1 - direction.index()].head;
        let limit = if other == NIL { u64::MAX } else { self.transactions[other].sequence };
        for _ in 0..PARTNER_SEARCH_MAX {
            if index == NIL || count == self.geometry.planes_per_die {
                break;
            }
            let candidate = self.transactions[index];
            let plane_bit = 1u64 << (candidate.plane % self.geometry.planes_per_die % 64);
            let fits = candidate.plane / self.geometry.planes_per_die == die
                && taken & plane_bit == 0
                && self.fits_offset(direction, index, (first, offset));
            if fits && (self.flash_scheduler.reorders || candidate.sequence < limit) {
                let list = &mut self.executors[executor as usize].waiting[direction.index()];
                list.remove_after(&mut self.transactions, previous);
                self.transactions[last].next = index;
                self.transactions[index].next = NIL;
                last = index;
                taken |= plane_bit;
                count += 1;
            } else if self.flash_scheduler.reorders {
                previous = index;
            } else {
                break;
            }
            index = candidate.next;
        }
        count
    }

    /// Whether a waiting transaction goes to the page offset that a multi-plane operation needs.
    fn fits_offset(&mut self, direction: Direction, index: u32, (first, offset): (u32, (u32, u32))) -> bool {
        let plane = self.transactions[index].plane;
        let found = match direction {
            Direction::Read => {
                let Some(ppn) = self.source_of(index) else { return false };
                self.planes.offset_of(ppn)
            }
            Direction::Write => {
                if !self.can_program(plane) || (self.relocates && self.absorbs(self.transactions[index].lpn))
                {
                    return false;
                }
                self.planes.write_pointer(plane, Stream::Host).expect("can_program found a page")
            }
        };
        // Blocks of a cache are programmed and read in another time.
        let alike = !self.is_apart
            || self.planes.is_in_cache(plane, found.0)
                == self.planes.is_in_cache(self.transactions[first].plane, offset.0);
        found.1 == offset.1 && alike && (found.0 == offset.0 || !self.advanced.multi_plane_same_block)
    }

    /// Makes a group the executor's operation.
    pub(super) fn begin<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        (group, planes): (u32, u32),
    ) {
        self.take_group(context.now, executor, (group, planes));
        if self.pipelines {
            self.close_operation(context, executor);
            self.executors[executor as usize].open = planes;
        }
        context.observer.operation_start(context.now, executor, planes);
    }

    /// Gives an executor, or its cache register, a group: its transactions have waited long enough.
    #[inline]
    pub(super) fn take_group(&mut self, now: Ns, taker: u32, (group, planes): (u32, u32)) {
        let state = &mut self.executors[taker as usize];
        state.group = group;
        state.group_planes = planes;
        state.channel_wait = Ns::ZERO;
        let mut index = group;
        while index != NIL {
            let transaction = &self.transactions[index];
            if transaction.kind.is_host() {
                let progress = &mut self.progress[transaction.slot.index()];
                progress.die_wait = progress.die_wait.max(now - transaction.queued);
            }
            index = transaction.next;
        }
    }
}
