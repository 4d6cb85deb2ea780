//! Units of the write buffer on their way to flash, until there is a program's worth of them: what is written together shares a page.
//!
//! Units leave the buffer in runs; those of which only a part was written are read first, and come later. In the order in which they are whole, so
//! many as a program of the next plane writes go there together. What is left over waits for the next run, unless somebody waits for it: a flush, or a
//! write that finds no slot when nothing else will free one. Then the program's other units hold nothing.

use super::transaction::Kind;
use super::{Context, Device};
use crate::observers::Observer;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Transactions that are whole and have no plane yet.
    ready: VecDeque<u32>,
    /// Where the next go.
    plane: Option<u32>,
    /// Units that were sent to flash, and are not there.
    in_flash: u32,
}

impl Assembly {
    /// Units that wait for company.
    pub(super) fn held(&self) -> u32 {
        self.ready.len() as u32
    }
}

impl Device {
    /// A unit is whole: it waits for company.
    pub(super) fn assemble(&mut self, index: u32) {
        self.assembly.ready.push_back(index);
    }

    /// The rest of a unit that was written in part has been read, or needs no read.
    pub(super) fn go_on_as_unit<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let write = &mut self.transactions[index];
        write.kind = write.kind.after_read();
        (write.queued, write.sectors) = (context.now, self.sectors_per_page);
        self.assemble(index);
        self.send_assembled(context);
    }

    /// Sends what makes whole programs.
    pub(super) fn send_assembled<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while let Some(&first) = self.assembly.ready.front() {
            let plane = self.plane_of_next(first);
            let units = self.planes.next_program_pages(plane);
            if (self.assembly.held()) < units {
                return;
            }
            self.send_next(context, units);
        }
    }

    fn plane_of_next(&mut self, first: u32) -> u32 {
        if let Some(plane) = self.assembly.plane
            && self.has_room(plane)
        {
            return plane;
        }
        let plane = self.allocate(self.transactions[first].lpn);
        self.assembly.plane = Some(plane);
        plane
    }

    fn send_next<O: Observer>(&mut self, context: &mut Context<'_, O>, units: u32) {
        let Some(plane) = self.assembly.plane.take() else { return };
        for _ in 0..units {
            let Some(index) = self.assembly.ready.pop_front() else { break };
            debug_assert_eq!(self.transactions[index].kind, Kind::WriteBack);
            self.transactions[index].plane = plane;
            self.assembly.in_flash += 1;
            self.send_to_flash(context, index);
        }
    }

    /// Sends what is left over, if somebody waits for it and nothing more will come: asked when no run is due.
    pub(super) fn send_rest<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        let Some(&first) = self.assembly.ready.front() else { return };
        let Some(buffer) = &self.write_buffer else { return };
        let more_comes = buffer.leaving() > self.assembly.held() + self.assembly.in_flash;
        let is_stuck = !self.waiting_writes.is_empty() && self.assembly.in_flash == 0;
        if !more_comes && (buffer.is_awaited() || is_stuck) {
            self.plane_of_next(first);
            let rest = self.assembly.held();
            self.send_next(context, rest);
        }
    }

    /// A unit is in flash.
    pub(super) fn leaves_assembly(&mut self) {
        self.assembly.in_flash = self.assembly.in_flash.saturating_sub(1);
    }
}
