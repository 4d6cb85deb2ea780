//! Planes of a die that are collected at the same time by multi-plane commands (`gc/parallel.rs`).
//!
//! A collection that planes have joined runs as follows; one that nobody joined is `collect.rs` alone.
//!
//! * A program of several planes needs all of them at the same page of their open blocks. The planes whose open blocks are furthest behind, going
//!   round, go first, until all are level: from then on each program moves a page of each plane.
//! * A read of several planes needs pages at the same place of their victims. The next valid pages of the planes about to program are
//!   read together where they are level, else one after the other; each leaves for the controller before the next is read.
//! * Copyback serves a group whose pages are level both where they are and where they go.
//! * When no victim holds a valid page any more, one erase takes all of them.

use super::execute::Phase;
use super::{Context, Device};
use crate::error::SimError;
use crate::ftl::Stream;
use crate::observers::{Cause, Collected, Observer};
use planewise_model::{Ns, Ppn};

/// A plane under collection beside others.
struct Lane {
    plane: u32,
    victim: u32,
    /// Next page of the victim to look at.
    cursor: u32,
    /// The page that was read and is not programmed yet: its data are in the controller.
    read: Option<Ppn>,
    moved: u32,
    began: Ns,
    cause: Cause,
}

/// What an executor collects at the same time.
#[derive(Default)]
pub(super) struct SideBySide {
    /// The collection's own plane first; none at all when nobody joined.
    lanes: Vec<Lane>,
    /// Lanes whose pages are being read, and the pages.
    reads: Vec<(usize, Ppn)>,
    /// How many of them are in the controller.
    out: usize,
}

/// The block and page, of those that planes program next, that is furthest behind: the one from which it is farthest back to the next, going
/// round the pages of a block. The first of several.
fn furthest_behind(targets: impl Iterator<Item = (u32, u32)> + Clone, pages: u32) -> Option<(u32, u32)> {
    let back_from = |page: u32| {
        let back = targets.clone().map(|(_, other)| (page + pages - other) % pages);
        back.filter(|&gap| gap > 0).min().unwrap_or(pages)
    };
    targets
        .clone()
        .enumerate()
        .max_by_key(|&(index, (_, page))| (back_from(page), std::cmp::Reverse(index)))
        .map(|(_, target)| target)
}

/// Whether one operation may program both.
fn are_level(one: (u32, u32), other: (u32, u32), same_block: bool) -> bool {
    one.1 == other.1 && (one.0 == other.0 || !same_block)
}

impl Device {
    /// Whether planes joined the collection under way on an executor.
    #[inline]
    pub(super) fn collects_several(&self, executor: u32) -> bool {
        self.side_by_side.get(executor as usize).is_some_and(|all| !all.lanes.is_empty())
    }

    /// Lets planes of the die join the collection that begins.
    pub(super) fn let_planes_join<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let first = self.collection(executor);
        if matches!(first.cause, Cause::Wear | Cause::Fold) {
            return;
        }
        let lane = |plane, victim, cause| {
            let began = context.now;
            Lane { plane, victim, cursor: 0, read: None, moved: 0, began, cause }
        };
        let mut lanes = vec![lane(first.plane, first.victim, first.cause)];
        let mut takes = self.time_together(&lanes);
        let planes = self.geometry.planes_per_die;
        let die = first.plane / planes;
        for plane in (die * planes..(die + 1) * planes).filter(|&plane| plane != first.plane) {
            let state = self.plane_state(plane);
            let cause = if self.collector.should_start(state) { Cause::Space } else { Cause::Ahead };
            let Some(victim) = self.planes.pick_victim(plane) else { continue };
            let fits = victim == first.victim || !self.advanced.multi_plane_same_block;
            if !fits {
                continue;
            }
            let joining = lane(plane, victim, cause);
            let alone = self.time_together(std::slice::from_ref(&joining));
            lanes.push(joining);
            let together = self.time_together(&lanes);
            if self.collector.joins(state, [takes, alone], together) {
                takes = together;
                self.fell_below[plane as usize] = false;
                context.observer.collection_start(context.now, executor, cause);
            } else {
                lanes.pop();
            }
        }
        if lanes.len() > 1 {
            self.side_by_side[executor as usize].lanes = lanes;
        }
    }

    /// How long collections side by side hold the die, if nobody waits for the channel and no two pages are read together.
    fn time_together(&mut self, lanes: &[Lane]) -> Ns {
        let pages = self.geometry.pages_per_block;
        let mut open: Vec<(u32, (u32, u32))> = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let target = self.planes.write_pointer(lane.plane, Stream::Collection).unwrap_or_default();
            open.push((self.planes.valid_in(lane.plane, lane.victim), target));
        }
        let valid: u64 = open.iter().map(|&(valid, _)| u64::from(valid)).sum();
        let mut programs = 0;
        loop {
            open.retain(|&(valid, _)| valid > 0);
            let targets = open.iter().map(|&(_, target)| target);
            let Some(next) = furthest_behind(targets, pages) else { break };
            let same_block = self.advanced.multi_plane_same_block;
            for (valid, target) in open.iter_mut().filter(|(_, target)| are_level(*target, next, same_block))
            {
                (*valid, target.1) = (*valid - 1, (target.1 + 1) % pages);
            }
            programs += 1;
        }
        let (timing, command) = (&self.timing, self.timing.command_ns);
        let page = timing.read_ns.mean().0 + 2 * (command + self.page_transfer.0);
        let erase = command * lanes.len() as u64 + timing.erase_ns;
        Ns(programs * timing.program_ns.mean().0 + valid * page + erase)
    }

    /// Starts the next step of collections side by side.
    pub(super) fn step_side_by_side<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
    ) -> Result<(), SimError> {
        let mut all = std::mem::take(&mut self.side_by_side[executor as usize]);
        let begun = self.next_step(context, executor, &mut all);
        self.side_by_side[executor as usize] = all;
        begun
    }

    fn next_step<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        all: &mut SideBySide,
    ) -> Result<(), SimError> {
        let group = self.next_to_program(&mut all.lanes);
        if group.is_empty() {
            self.erase_victims(context, executor, &all.lanes);
            return Ok(());
        }
        all.reads = self.next_to_read(&mut all.lanes, &group);
        all.out = 0;
        if let Some(&(_, source)) = all.reads.first() {
            let planes = all.reads.len() as u32;
            let (_, page) = self.planes.offset_of(source);
            let read = self.timing.read_ns.of_page(page);
            self.begin_step(context, executor, planes);
            let command = Ns(self.timing.command_ns * u64::from(planes));
            if planes as usize == group.len() && self.copies_back(&all.lanes, &group, page) {
                for &(lane, source) in &all.reads {
                    all.lanes[lane].read = Some(source);
                }
                let program = self.program_lanes(context, executor, &mut all.lanes, &group)?;
                let array = self.variation.of(read + program);
                self.ask_channel(context, executor, Phase::MoveCopyback, command, array);
            } else {
                let read = self.variation.of(read);
                self.ask_channel(context, executor, Phase::MoveRead, command, read);
            }
            return Ok(());
        }
        let planes = group.len() as u32;
        self.begin_step(context, executor, planes);
        let program = self.program_lanes(context, executor, &mut all.lanes, &group)?;
        let program = self.variation.of(program);
        let hold = Ns((self.timing.command_ns + self.page_transfer.0) * u64::from(planes));
        self.ask_channel(context, executor, Phase::MoveProgram, hold, program);
        Ok(())
    }

    fn begin_step<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, planes: u32) {
        self.executors[executor as usize].group_planes = planes;
        context.observer.operation_start(context.now, executor, planes);
    }

    /// The lanes that program next, of those with a page left: the ones whose open blocks are furthest behind, going round. Forgets pages that the
    /// host has written elsewhere since they were read.
    fn next_to_program(&mut self, lanes: &mut [Lane]) -> Vec<usize> {
        let mut targets = Vec::with_capacity(lanes.len());
        for (index, lane) in lanes.iter_mut().enumerate() {
            lane.read = lane.read.filter(|&page| self.mapping.valid_owner(page).is_some());
            if lane.read.is_some() || self.valid_page_from(lane.plane, lane.victim, lane.cursor).is_some() {
                let target = self.planes.write_pointer(lane.plane, Stream::Collection);
                // A plane without a page ends the run when it is to program.
                targets.push((index, target.unwrap_or_default()));
            }
        }
        let open = targets.iter().map(|&(_, target)| target);
        let Some(next) = furthest_behind(open, self.geometry.pages_per_block) else { return Vec::new() };
        let same_block = self.advanced.multi_plane_same_block;
        targets.retain(|&(_, target)| are_level(target, next, same_block));
        targets.into_iter().map(|(index, _)| index).collect()
    }

    /// Pages that the lanes of a group have to read before they program, as many as one operation takes: those level with the first.
    fn next_to_read(&self, lanes: &mut [Lane], group: &[usize]) -> Vec<(usize, Ppn)> {
        let mut reads: Vec<(usize, Ppn)> = Vec::new();
        for &index in group {
            let lane = &mut lanes[index];
            if lane.read.is_some() {
                continue;
            }
            let found = self.valid_page_from(lane.plane, lane.victim, lane.cursor);
            let (source, page) = found.expect("a lane of the group has a page left");
            let is_level = reads.first().is_none_or(|&(_, first)| {
                let (block, offset) = self.planes.offset_of(first);
                offset == page && (block == lane.victim || !self.advanced.multi_plane_same_block)
            });
            if is_level {
                lane.cursor = page + 1;
                reads.push((index, source));
            }
        }
        reads
    }

    /// Whether a group whose pages are all at one place can program them without their leaving the planes.
    fn copies_back(&mut self, lanes: &[Lane], group: &[usize], page: u32) -> bool {
        group.iter().all(|&index| self.copyback_fits(lanes[index].plane, page))
    }

    /// Gives the pages that a group has read their new places; returns the time to program them there.
    fn program_lanes<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        executor: u32,
        lanes: &mut [Lane],
        group: &[usize],
    ) -> Result<Ns, SimError> {
        let mut program = Ns::ZERO;
        for &index in group {
            let lane = &mut lanes[index];
            let source = lane.read.take().expect("a group programs what it has read");
            let ppn = self.move_within(context, lane.plane, source)?;
            lane.moved += 1;
            program = self.timing.program_ns.of_page(self.planes.offset_of(ppn).1);
            if index == 0 {
                self.collection_mut(executor).moved += 1;
            }
        }
        Ok(program)
    }

    /// One erase for all victims, unless a program elsewhere still replaces one of their pages.
    fn erase_victims<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32, lanes: &[Lane]) {
        let pages = self.geometry.pages_per_block;
        let first_page = |lane: &Lane| self.planes.first_page(lane.plane, lane.victim).0;
        if lanes.iter().any(|lane| self.is_being_replaced(first_page(lane)..first_page(lane) + pages)) {
            self.erases_waiting.push(executor);
            return;
        }
        let planes = lanes.len() as u32;
        self.begin_step(context, executor, planes);
        for lane in lanes {
            let block = lane.plane * self.geometry.blocks_per_plane + lane.victim;
            context.observer.erase_start(context.now, block);
        }
        let erase = self.variation.of(Ns(self.timing.erase_ns));
        let command = Ns(self.timing.command_ns * u64::from(planes));
        self.ask_channel(context, executor, Phase::Erase, command, erase);
    }

    /// The pages of a read leave for the controller one by one; whether there was another.
    pub(super) fn next_lane_out<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) -> bool {
        let transfer = self.page_transfer;
        let all = &mut self.side_by_side[executor as usize];
        if self.executors[executor as usize].phase == Phase::MoveOut {
            let (lane, source) = all.reads[all.out];
            all.lanes[lane].read = Some(source);
            all.out += 1;
        }
        let more = all.out < all.reads.len();
        if more {
            self.ask_channel(context, executor, Phase::MoveOut, transfer, Ns::ZERO);
        }
        more
    }

    /// The victims of the planes that joined are erased: their collections end with that of the first.
    pub(super) fn reclaim_joined<O: Observer>(&mut self, context: &mut Context<'_, O>, executor: u32) {
        let Some(all) = self.side_by_side.get_mut(executor as usize) else { return };
        for lane in std::mem::take(&mut all.lanes).iter().skip(1) {
            let &Lane { plane, victim, moved, began, cause, .. } = lane;
            self.planes.erase(plane, victim);
            context.observer.block_erase(context.now, plane * self.geometry.blocks_per_plane + victim);
            let collected = Collected { plane, cause, began, moved, buffered: 0 };
            context.observer.collection_end(context.now, executor, &collected);
            self.note_cold_block(executor, plane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_furthest_behind_has_nobody_behind_it_for_longest() {
        let of =
            |pages: &[u32]| furthest_behind(pages.iter().map(|&page| (7, page)), 16).map(|target| target.1);
        assert_eq!(of(&[]), None);
        assert_eq!([of(&[5]), of(&[5, 5]), of(&[3, 9]), of(&[9, 3])], [5, 5, 3, 3].map(Some));
        assert_eq!(of(&[1, 14]), Some(14), "two pages on it is in a new block");
        assert_eq!(of(&[5, 5, 3, 9]), Some(3));
        assert_eq!(of(&[0, 8]), Some(0), "the first, if it is the same either way");
    }
}
