//! Units of the write buffer on their way to flash, until there is a program's worth of them: what is written together shares a page.
//!
//! Units leave the buffer in runs; those of which only a part was written are read first, and come later. Each is dealt out to a plane as it is whole;
//! a plane that has a program's worth gets it. What is left over waits for the next run, unless somebody waits for it: a flush, or a write that finds
//! no slot when nothing else will free one. Then the program's other units hold nothing.

use super::transaction::Kind;
use super::{Context, Device};
use crate::observers::Observer;

#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// By plane: transactions that wait for company.
    open: Vec<Vec<u32>>,
    held: u32,
    /// Units that were sent to flash, and are not there.
    in_flash: u32,
}

impl Assembly {
    pub(super) fn new(planes: u32) -> Assembly {
        Assembly { open: vec![Vec::new(); planes as usize], held: 0, in_flash: 0 }
    }

    /// Units that wait for company.
    pub(super) fn held(&self) -> u32 {
        self.held
    }
}

impl Device {
    /// A unit is whole: it gets a plane, and waits there for company.
    pub(super) fn assemble<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        debug_assert_eq!(self.transactions[index].kind, Kind::WriteBack);
        let plane = self.allocate(self.transactions[index].lpn);
        self.transactions[index].plane = plane;
        self.assembly.open[plane as usize].push(index);
        self.assembly.held += 1;
        if self.assembly.open[plane as usize].len() as u32 >= self.planes.next_program_pages(plane) {
            self.send_open(context, plane);
        }
    }

    /// The rest of a unit that was written in part has been read, or needs no read.
    pub(super) fn go_on_as_unit<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        let write = &mut self.transactions[index];
        write.kind = write.kind.after_read();
        (write.queued, write.sectors) = (context.now, self.sectors_per_page);
        self.assemble(context, index);
    }

    fn send_open<O: Observer>(&mut self, context: &mut Context<'_, O>, plane: u32) {
        let mut units = std::mem::take(&mut self.assembly.open[plane as usize]);
        self.assembly.held -= units.len() as u32;
        self.assembly.in_flash += units.len() as u32;
        for index in units.drain(..) {
            self.send_to_flash(context, index);
        }
        self.assembly.open[plane as usize] = units;
    }

    /// Sends what somebody waits for, if nothing more will come to fill its programs: asked when no run is due.
    pub(super) fn send_rest<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        let Some(buffer) = self.write_buffer.as_ref().filter(|_| self.assembly.held > 0) else { return };
        if buffer.leaving() > self.assembly.held + self.assembly.in_flash {
            return;
        }
        let holds_awaited =
            |units: &Vec<u32>| units.iter().any(|&index| buffer.awaits(self.transactions[index].slot.0));
        let mut planes: Vec<usize> = Vec::new();
        if buffer.is_awaited() {
            planes.extend(
                (0..self.assembly.open.len()).filter(|&plane| holds_awaited(&self.assembly.open[plane])),
            );
        }
        // What is held takes up what is awaited, or a write, would need on its way.
        let is_stuck =
            self.assembly.in_flash == 0 && (buffer.is_awaited() || !self.waiting_writes.is_empty());
        if planes.is_empty() && is_stuck {
            planes
                .extend((0..self.assembly.open.len()).filter(|&plane| !self.assembly.open[plane].is_empty()));
        }
        for plane in planes {
            self.send_open(context, plane as u32);
        }
    }

    /// A unit is in flash.
    pub(super) fn leaves_assembly(&mut self) {
        self.assembly.in_flash = self.assembly.in_flash.saturating_sub(1);
    }
}
