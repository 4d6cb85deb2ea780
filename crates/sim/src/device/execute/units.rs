//! Operations on more than one unit of mapping: an array read that returns several units of a page, a program that writes a page, a word line or
//! a superblock's row of them, and what that costs.
//!
//! Who maps whole pages, each programmed alone, has none of this: one transaction is one page (`groups.rs`).

use crate::device::transaction::NIL;
use crate::device::{Context, Device};
use crate::ftl::Stream;
use crate::observers::Observer;
use planewise_model::profile::{Layout, SlcCache};
use planewise_model::{Direction, Ns, Ppn};

/// How far a reordering flash scheduler looks for what an operation can take along, in operations' worth of units.
const OPERATIONS_SEARCHED: u32 = 4;
const FEWEST_SEARCHED: u32 = 64;

/// What operations of the flash are where they are not single pages.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Operations {
    pub(in crate::device) layout: Layout,
    pub(in crate::device) cache: Option<SlcCache>,
}

/// What an operation has of the planes of its die: by plane, how many units, and of which block.
struct Taken {
    units: [u32; 64],
    block: [u32; 64],
    planes: u32,
}

impl Device {
    /// Array time of reading a unit at `(block, unit of the block)` of a plane.
    #[inline]
    pub(in crate::device) fn read_time(&self, plane: u32, (block, unit): (u32, u32)) -> Ns {
        if !self.is_apart {
            return self.timing.read_ns.of_page(unit);
        }
        self.read_time_apart(plane, (block, unit))
    }

    #[inline(never)]
    fn read_time_apart(&self, plane: u32, (block, unit): (u32, u32)) -> Ns {
        match &self.operations.cache {
            Some(cache) if self.planes.is_in_cache(plane, block) => Ns(cache.read_ns),
            _ => self.timing.read_ns.of_page(self.operations.layout.page_of(unit)),
        }
    }

    /// Channel and array time of programming from `(block, unit of the block)` on, in a number of planes at once. Registers of the planes are
    /// loaded back to back, as a controller does not let go of the channel in between; a program of parity follows what it is the parity of.
    #[inline]
    pub(in crate::device) fn program_cost(&self, plane: u32, offset: (u32, u32), planes: u32) -> (Ns, Ns) {
        if !self.is_apart {
            let hold = (self.timing.command_ns + self.page_transfer.0) * u64::from(planes);
            return (Ns(hold), self.timing.program_ns.of_page(offset.1));
        }
        self.program_cost_apart(plane, offset, planes)
    }

    #[inline(never)]
    fn program_cost_apart(&self, plane: u32, offset: (u32, u32), planes: u32) -> (Ns, Ns) {
        let layout = &self.operations.layout;
        let cache = self.operations.cache.filter(|_| self.planes.is_in_cache(plane, offset.0));
        let units = self.units_of_program(plane, offset.0);
        let array = match cache {
            Some(cache) => Ns(cache.program_ns),
            None => self.timing.program_ns.of_page(layout.page_of(offset.1)),
        };
        let commands = self.timing.command_ns * u64::from(units / layout.units_per_page);
        let hold = (commands + self.page_transfer.0 * u64::from(units)) * u64::from(planes);
        let programs = 1 + u64::from(self.is_followed_by_parity(offset.1 / units));
        (Ns(hold * programs), Ns(array.0 * programs))
    }

    /// Whether the program after this one of a block, counted from 0, is of parity.
    fn is_followed_by_parity(&self, program: u32) -> bool {
        let data = self.operations.layout.data_programs();
        data > 0 && (program + 1).is_multiple_of(data)
    }

    /// Units that one program writes in a block of a plane.
    #[inline]
    fn units_of_program(&self, plane: u32, block: u32) -> u32 {
        match self.operations.cache {
            Some(_) if self.planes.is_in_cache(plane, block) => self.operations.layout.read_units(),
            _ => self.operations.layout.program_units(),
        }
    }

    /// Links to `first` the waiting transactions that its operation does, too: other units of the same pages, and those of the other planes of
    /// the die at the same place. Returns the number of planes.
    #[inline(never)]
    pub(super) fn gather_units(
        &mut self,
        executor: u32,
        direction: Direction,
        first: u32,
        offset: (u32, u32),
    ) -> u32 {
        let layout = self.operations.layout;
        let planes_per_die = self.geometry.planes_per_die;
        let die = self.transactions[first].plane / planes_per_die;
        let bit_of = |plane: u32| (plane % planes_per_die % 64) as usize;
        let mut taken = Taken { units: [0; 64], block: [0; 64], planes: 1 };
        let first_plane = self.transactions[first].plane;
        taken.units[bit_of(first_plane)] = 1;
        taken.block[bit_of(first_plane)] = offset.0;
        let units = match direction {
            Direction::Read => layout.read_units(),
            Direction::Write => self.units_of_program(first_plane, offset.0),
        };
        let others = if self.advanced.multi_plane { planes_per_die.min(64) } else { 1 };
        let search = (units * others * OPERATIONS_SEARCHED).max(FEWEST_SEARCHED);
        let (mut last, mut previous) = (first, NIL);
        let mut index = self.executors[executor as usize].waiting[direction.index()].head;
        let other = self.executors[executor as usize].waiting[1 - direction.index()].head;
        let limit = if other == NIL { u64::MAX } else { self.transactions[other].sequence };
        for _ in 0..search {
            if index == NIL {
                break;
            }
            let candidate = self.transactions[index];
            let bit = bit_of(candidate.plane);
            let is_new = taken.units[bit] == 0;
            let fits = candidate.plane / planes_per_die == die
                && (!is_new || taken.planes < others)
                && taken.units[bit] < units
                && (self.flash_scheduler.reorders || candidate.sequence < limit)
                && self.fits_operation(
                    direction,
                    index,
                    offset,
                    units,
                    (!is_new).then_some(taken.block[bit]),
                );
            if fits {
                let block = self.block_of(direction, index);
                self.executors[executor as usize].waiting[direction.index()]
                    .remove_after(&mut self.transactions, previous);
                self.transactions[last].next = index;
                self.transactions[index].next = NIL;
                last = index;
                taken.units[bit] += 1;
                taken.planes += u32::from(is_new);
                taken.block[bit] = block;
            } else if self.flash_scheduler.reorders {
                previous = index;
            } else {
                break;
            }
            index = candidate.next;
        }
        taken.planes
    }

    /// Where a waiting transaction goes on its plane: block, and unit of the block.
    fn offset_of(&mut self, direction: Direction, index: u32) -> Option<(u32, u32)> {
        let plane = self.transactions[index].plane;
        match direction {
            Direction::Read => Some(self.planes.offset_of(self.source_of(index)?)),
            Direction::Write if self.can_program(plane) => self.planes.write_pointer(plane, Stream::Host),
            Direction::Write => None,
        }
    }

    fn block_of(&mut self, direction: Direction, index: u32) -> u32 {
        self.offset_of(direction, index).map_or(u32::MAX, |offset| offset.0)
    }

    /// Whether a waiting transaction can be part of an operation at `(block, unit)`, of so many units on each plane; `block` is what the
    /// operation has of its plane already.
    fn fits_operation(
        &mut self,
        direction: Direction,
        index: u32,
        offset: (u32, u32),
        units: u32,
        block: Option<u32>,
    ) -> bool {
        let Some(found) = self.offset_of(direction, index) else { return false };
        let plane = self.transactions[index].plane;
        let same_block = block.map_or_else(
            || found.0 == offset.0 || !self.advanced.multi_plane_same_block,
            |block| found.0 == block,
        );
        let row = self.operations.layout.read_units().min(units);
        let same_kind = direction == Direction::Read || self.units_of_program(plane, found.0) == units;
        same_block && same_kind && found.1 / row == offset.1 / row
    }

    /// Pages of the flash that the reads of an operation touch, each of which takes a command.
    #[inline]
    pub(super) fn pages_touched(&self, first: u32, planes: u32) -> u32 {
        if self.gathers { self.pages_of_units(first, planes) } else { planes }
    }

    #[inline(never)]
    fn pages_of_units(&self, first: u32, planes: u32) -> u32 {
        if self.operations.layout.planes == 1 {
            return planes;
        }
        let units_per_page = self.operations.layout.units_per_page;
        let (mut pages, mut index) = (Vec::new(), first);
        while index != NIL {
            if let Some(ppn) = self.source_of(index) {
                pages.push(ppn.0 / units_per_page);
            }
            index = self.transactions[index].next;
        }
        pages.sort_unstable();
        pages.dedup();
        (pages.len() as u32).max(planes)
    }

    /// The programs of a group have been given their places: what they leave of their pages holds nothing, and parity goes with them.
    pub(in crate::device) fn end_programs<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        plane: u32,
        last: Ppn,
    ) {
        if let Some((first, padded)) = self.planes.pad(plane) {
            context.observer.pages_padded(context.now, first, padded);
        }
        let (block, unit) = self.planes.offset_of(last);
        let units = self.units_of_program(plane, block);
        if self.is_followed_by_parity(unit / units) {
            context.observer.parity_programmed(context.now, units);
        }
    }
}
