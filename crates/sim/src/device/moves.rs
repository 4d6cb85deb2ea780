//! Moves of a collection where one operation reads or programs several units: the valid units of a page are read together and wait in the
//! controller until there is a program's worth. They are valid where they are until that program begins.

use super::execute::Phase;
use super::{Context, Device};
use crate::error::SimError;
use crate::ftl::Stream;
use crate::observers::{Observer, Origin};
use planewise_model::{Ns, Ppn};

impl Device {
    /// The next read or program of a collection; false when there is nothing left to move.
    pub(super) fn move_units<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<bool, SimError> {
        let mapping = &self.mapping;
        let gathered = &mut self.gathered[executor as usize];
        gathered.retain(|&source| mapping.valid_owner(source).is_some());
        let (count, layout) = (gathered.len() as u32, self.operations.layout);
        let next = self.next_valid_page(executor);
        if count >= layout.program_units() || next.is_none() && count > 0 {
            self.program_gathered(context, executor)?;
            return Ok(true);
        }
        let Some((_, unit)) = next else { return Ok(false) };
        let collection = self.collection(executor);
        let (plane, victim) = (collection.plane, collection.victim);
        let first = self.planes.first_page(plane, victim).0;
        let row = unit / layout.read_units() * layout.read_units();
        let sources = &mut self.reading[executor as usize];
        sources.clear();
        let end = (row + layout.read_units()).min(self.geometry.pages_per_block);
        sources.extend(
            (unit..end).map(|unit| Ppn(first + unit)).filter(|&ppn| mapping.valid_owner(ppn).is_some()),
        );
        let mut pages: Vec<u32> = sources.iter().map(|source| source.0 / layout.units_per_page).collect();
        pages.dedup();
        self.collection_mut(executor).cursor = row + layout.read_units();
        self.start_operation(context, executor);
        let read = self.variation.of(self.read_time(plane, (victim, unit)));
        let command = Ns(self.timing.command_ns * pages.len() as u64);
        self.ask_channel(context, executor, Phase::MoveRead, command, read);
        Ok(true)
    }

    /// Channel time of what a collection has read.
    pub(super) fn transfer_of_moved(&self, executor: u32) -> Ns {
        match self.gathers {
            true => Ns(self.page_transfer.0 * self.reading[executor as usize].len() as u64),
            false => self.page_transfer,
        }
    }

    /// What a collection has read is in the controller.
    pub(super) fn gather_moved(&mut self, executor: u32) {
        let read = std::mem::take(&mut self.reading[executor as usize]);
        self.gathered[executor as usize].extend(&read);
        self.reading[executor as usize] = read;
    }

    /// Gives the units in the controller their new places, and programs them.
    fn program_gathered<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let plane = self.collection(executor).plane;
        let Some(offset) = self.planes.write_pointer(plane, Stream::Collection) else {
            return Err(self.space_exhausted(context.now, plane));
        };
        let units = self.operations.layout.program_units() as usize;
        let mut gathered = std::mem::take(&mut self.gathered[executor as usize]);
        let rest = gathered.split_off(units.min(gathered.len()));
        let mut last = None;
        for &source in &gathered {
            last = Some(self.move_page(context, executor, plane, source)?);
        }
        self.gathered[executor as usize] = rest;
        self.start_operation(context, executor);
        let (hold, array) = self.program_cost(plane, offset, 1);
        if let Some(last) = last {
            self.end_programs(context, plane, last);
        }
        let array = self.variation.of(array);
        self.ask_channel(context, executor, Phase::MoveProgram, hold, array);
        Ok(())
    }

    /// Gives a page of a victim its new place.
    pub(super) fn move_page<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        plane: u32,
        source: Ppn,
    ) -> Result<Ppn, SimError> {
        let lpn = self.mapping.valid_owner(source).expect("checked by the caller");
        let Some(ppn) = self.planes.program(plane, Stream::Collection) else {
            return Err(self.space_exhausted(context.now, plane));
        };
        self.mapping.map(lpn, ppn);
        self.planes.invalidate(source);
        if self.keeps_replicas {
            self.original_moved(source, ppn);
        }
        let collection = self.collection_mut(executor);
        (collection.target, collection.moved) = (ppn, collection.moved + 1);
        context.observer.page_program(context.now, Origin::Collection { from: source }, lpn, ppn);
        Ok(ppn)
    }
}
