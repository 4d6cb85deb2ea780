//! Writes that no plane can take yet. Under dynamic allocation a write is bound to a plane when that can begin its program, not before: bound to
//! a busy one it would wait for what that has to do, up to a whole collection, while others fall idle.
//!
//! Behind a controller with lists of operations (`front.rs`) a write needs its place in a list at once, and is bound early.

use super::transaction::NIL;
use super::{Context, Device};
use crate::ftl::Stream;
use crate::observers::Observer;
use planewise_model::Lpn;

/// The plane of a write that has none yet.
pub(super) const UNBOUND: u32 = u32::MAX;

impl Device {
    /// The plane for a write of `lpn`, or [`UNBOUND`] when it has to wait for one.
    #[inline]
    pub(super) fn bind(&mut self, lpn: Lpn) -> u32 {
        if !self.binds_late {
            return self.allocate(lpn);
        }
        if !self.unbound.is_empty() {
            return UNBOUND;
        }
        self.plane_now(lpn).unwrap_or(UNBOUND)
    }

    /// A plane that can take a page now. When all are as full as they may be it is the one that an overwrite stays on.
    fn plane_now(&mut self, lpn: Lpn) -> Option<u32> {
        let plane = self.ask_for_plane(|allocation, view| allocation.plane_now(lpn, view));
        if plane.is_none() && !(0..self.geometry.planes()).any(|plane| self.has_room(plane)) {
            return Some(self.allocate(lpn));
        }
        plane
    }

    /// Binds writes that wait for a plane, first come, first served, as long as there is one.
    #[inline(always)]
    pub(crate) fn bind_waiting_writes<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        // Asked after every event, and where planes are chosen early none ever waits.
        if self.unbound.head != NIL {
            self.bind_all_that_fit(context);
        }
    }

    #[inline(never)]
    fn bind_all_that_fit<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while self.unbound.head != NIL {
            let Some(plane) = self.plane_now(self.transactions[self.unbound.head].lpn) else { return };
            self.bind_next(context, plane);
            self.bind_partners(context, plane);
        }
    }

    fn bind_next<O: Observer>(&mut self, context: &mut Context<'_, O>, plane: u32) {
        let Some(index) = self.unbound.pop_front(&self.transactions) else { return };
        self.transactions[index].plane = plane;
        self.enqueue(index);
        if self.collecting + self.in_background > 0 {
            let executor = self.load.executor_of(plane);
            self.note_meeting(context, self.transactions[index].slot, executor);
        }
    }

    /// Other planes of the die take the writes behind, if they can be programmed in one operation.
    fn bind_partners<O: Observer>(&mut self, context: &mut Context<'_, O>, plane: u32) {
        let planes = self.geometry.planes_per_die;
        if !self.advanced.multi_plane || planes == 1 || !self.can_program(plane) {
            return;
        }
        let Some(offset) = self.planes.write_pointer(plane, Stream::Host) else { return };
        for other in plane / planes * planes..(plane / planes + 1) * planes {
            if self.unbound.is_empty() {
                return;
            }
            if other == plane || !self.has_room(other) || !self.can_program(other) {
                continue;
            }
            let fits = self.planes.write_pointer(other, Stream::Host).is_some_and(|(block, page)| {
                page == offset.1 && (block == offset.0 || !self.advanced.multi_plane_same_block)
            });
            if fits {
                self.bind_next(context, other);
            }
        }
    }

    /// Puts a write in line for a plane: behind those that wait already, or, with its rest read, before those that came after it.
    pub(super) fn wait_for_plane(&mut self, index: u32, first: bool) {
        let Device { unbound, transactions, .. } = self;
        match first {
            true => unbound.push_front(transactions, index),
            false => unbound.push_back(transactions, index),
        }
    }
}
