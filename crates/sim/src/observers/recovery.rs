//! What a power cut leaves: an own picture of the flash, kept page by page, from which the map is rebuilt as a controller
//! would, and compared with what the host was told is safe (GC paper, sections 4.1 and 5.2.2).
//!
//! A page of flash carries its logical page and an order that rises with every program (real drives keep both in the spare
//! area). After the cut everything counts that was programmed to its end and not under erase, plus what the capacitor
//! flushes from the valid page buffer; of several copies the latest wins. Programs and erases under way are torn: their
//! pages count as lost.
//!
//! Before a volatile write buffer the host was told less: what counts is what was acknowledged before a flush was sent that is complete, or
//! written with forced unit access. What the host discarded need not be there; that it is there again is no loss.
//!
//! It shares no code with the translation layer. It needs 12 bytes for each physical page.

use super::{ArrayOperation, Completion, Observer, Origin, Work};
use crate::host::{QueuedRequest, Slot};
use planewise_model::{Geometry, Lpn, Ns, Ppn};
use std::collections::{HashMap, HashSet};

/// A write that is not acknowledged.
const NOT_YET: Ns = Ns::MAX;

/// What was found after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Logical pages with data.
    pub pages: u64,
    /// Acknowledged pages, and pages held since before the run, that are gone or there only in an older version.
    pub lost: u64,
    /// The first of them, in words.
    pub examples: Vec<String>,
    /// Pages that were acknowledged into a volatile buffer, not flushed since, and are gone or there only in an older version.
    pub unflushed: u64,
    /// Pages whose program the cut tore.
    pub torn_pages: u64,
    /// Blocks whose erase the cut tore.
    pub torn_blocks: u64,
}

/// A copy of a logical page.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    /// Logical page + 1; 0: nothing.
    owner: u32,
    /// Number of the write + 1; 0: from before the run.
    version: u32,
    /// Rises with every program; 0: from before the run.
    order: u32,
}

/// An acknowledged write that a flush has still to make safe.
#[derive(Clone, Copy, Debug)]
struct Unflushed {
    lpn: u32,
    issued: Ns,
    completed: Ns,
    /// Its number among all acknowledgements: at one instant, too, what was acknowledged before a flush was sent is told from what was after.
    number: u64,
}

/// Watches a run up to a power cut.
#[derive(Default)]
pub struct Recovery {
    /// Whether acknowledged writes are lost unless they are flushed; then those, and when pages were discarded.
    volatile: bool,
    unflushed: Vec<Unflushed>,
    discarded: HashMap<u32, Ns>,
    /// Pages that were discarded and that the device took no data for since.
    gone: HashSet<u32>,
    geometry: Option<Geometry>,
    planes_per_executor: u32,
    flash: Vec<Copy>,
    buffer: Vec<Copy>,
    order: u32,
    /// By executor: pages whose program has not ended; whether it is suspended; the block under erase.
    programming: Vec<Vec<Ppn>>,
    suspended: Vec<bool>,
    /// By executor: blocks under erase.
    erasing: Vec<Vec<u32>>,
    /// By slot of the I/O queue: number of the write, its pages.
    writes: Vec<Option<(u32, u64, u32)>>,
    acknowledged: Vec<Ns>,
    /// Acknowledgements so far and, by slot of the I/O queue, when the request in it was issued.
    acknowledgements: u64,
    acknowledged_before: Vec<u64>,
    /// By logical page: latest issue of an acknowledged write. Looked up, never iterated.
    floors: HashMap<u32, Ns>,
    /// By logical page: held since before the run. Pages from `required` on are neither held nor written.
    held: Vec<bool>,
    required: u32,
    found: Option<Recovered>,
}

impl Recovery {
    /// Watches from the start of a run.
    pub fn new() -> Recovery {
        Recovery::default()
    }

    /// The same on a device whose write buffer is lost with the power.
    pub fn of_volatile() -> Recovery {
        Recovery { volatile: true, ..Recovery::default() }
    }

    /// Pages that a write acknowledged must be there in its version, or a later one.
    fn require(&mut self, lpn: u32, issued: Ns) {
        let floor = self.floors.entry(lpn).or_insert(issued);
        *floor = (*floor).max(issued);
        self.required = self.required.max(lpn + 1);
    }

    /// The flush in a slot is complete: what was acknowledged before it was sent is kept.
    fn flushed(&mut self, slot: Slot) {
        let before = self.acknowledged_before.get(slot.index()).copied().unwrap_or(0);
        let mut unflushed = std::mem::take(&mut self.unflushed);
        unflushed.retain(|write| {
            if write.number < before {
                self.require_unless_discarded(write);
            }
            write.number >= before
        });
        self.unflushed = unflushed;
    }

    fn require_unless_discarded(&mut self, write: &Unflushed) {
        if self.discarded.get(&write.lpn).is_none_or(|&discarded| discarded < write.completed) {
            self.require(write.lpn, write.issued);
        }
    }

    /// Whether a page is there in the version that `floor` asks for.
    fn is_there(&self, copy: Copy, floor: Option<Ns>) -> bool {
        copy.owner != 0
            && floor
                .is_none_or(|floor| copy.version > 0 && self.acknowledged[copy.version as usize - 1] >= floor)
    }

    /// What the power cut left; none before it.
    pub fn found(&self) -> Option<&Recovered> {
        self.found.as_ref()
    }

    fn executor_of(&self, ppn: Ppn) -> usize {
        let geometry = self.geometry.expect("the run was started");
        (ppn.0 / geometry.pages_per_plane() / self.planes_per_executor) as usize
    }

    fn copy(&mut self, ppn: Ppn) -> &mut Copy {
        let flash = self.flash.len();
        if (ppn.0 as usize) < flash {
            return &mut self.flash[ppn.0 as usize];
        }
        let slot = ppn.0 as usize - flash;
        if self.buffer.len() <= slot {
            self.buffer.resize(slot + 1, Copy::default());
        }
        &mut self.buffer[slot]
    }

    fn write(&self, slot: Slot) -> Option<(u32, u64, u32)> {
        self.writes.get(slot.index()).copied().flatten()
    }

    fn rebuild(&mut self, buffered: &[(Ppn, Lpn)]) {
        let pages_per_block = self.geometry.expect("the run was started").pages_per_block;
        let mut found = Recovered::default();
        for ppn in std::mem::take(&mut self.programming).into_iter().flatten() {
            found.torn_pages += 1;
            *self.copy(ppn) = Copy::default();
        }
        for block in std::mem::take(&mut self.erasing).into_iter().flatten() {
            found.torn_blocks += 1;
            for ppn in block * pages_per_block..(block + 1) * pages_per_block {
                *self.copy(Ppn(ppn)) = Copy::default();
            }
        }
        let mut map: Vec<Copy> = Vec::new();
        let mut consider = |copy: Copy| {
            let Some(lpn) = copy.owner.checked_sub(1) else { return };
            if map.len() <= lpn as usize {
                map.resize(lpn as usize + 1, Copy::default());
            }
            let best = &mut map[lpn as usize];
            if best.owner == 0 || copy.order > best.order {
                *best = copy;
            }
        };
        self.flash.iter().for_each(|&copy| consider(copy));
        for &(slot, lpn) in buffered {
            let held = self.buffer.get(slot.0 as usize - self.flash.len()).copied().unwrap_or_default();
            if held.owner == lpn.0 + 1 {
                consider(held);
            }
        }
        found.pages = map.iter().filter(|copy| copy.owner != 0).count() as u64;
        for lpn in 0..self.required {
            if !self.held.get(lpn as usize).copied().unwrap_or(false) && !self.floors.contains_key(&lpn) {
                continue;
            }
            let copy = map.get(lpn as usize).copied().unwrap_or_default();
            let floor = self.floors.get(&lpn).copied();
            if !self.is_there(copy, floor) {
                found.lost += 1;
                if found.examples.len() < 5 {
                    let what = if copy.owner == 0 {
                        "is gone".to_owned()
                    } else {
                        format!("is there as version {}", copy.version)
                    };
                    found.examples.push(format!("page {lpn} {what}, acknowledged after {floor:?}"));
                }
            }
        }
        let unflushed = std::mem::take(&mut self.unflushed);
        let mut lost: Vec<u32> = unflushed
            .iter()
            .filter(|write| {
                let copy = map.get(write.lpn as usize).copied().unwrap_or_default();
                !self.is_there(copy, Some(write.issued))
            })
            .map(|write| write.lpn)
            .collect();
        lost.sort_unstable();
        lost.dedup();
        found.unflushed = lost.len() as u64;
        self.found = Some(found);
    }
}

impl Observer for Recovery {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.geometry = Some(*geometry);
        self.planes_per_executor = geometry.planes() / executors;
        self.flash = vec![Copy::default(); geometry.pages() as usize];
        self.programming = vec![Vec::new(); executors as usize];
        self.suspended = vec![false; executors as usize];
        self.erasing = vec![Vec::new(); executors as usize];
    }

    fn wants_contents(&self) -> bool {
        true
    }

    fn holds(&mut self, lpn: Lpn, ppn: Ppn) {
        *self.copy(ppn) = Copy { owner: lpn.0 + 1, version: 0, order: 0 };
        if self.held.len() <= lpn.0 as usize {
            self.held.resize(lpn.0 as usize + 1, false);
        }
        self.held[lpn.0 as usize] = true;
        self.required = self.required.max(lpn.0 + 1);
    }

    fn issue(&mut self, _now: Ns, slot: Slot, request: &QueuedRequest) {
        if self.writes.len() <= slot.index() {
            self.writes.resize(slot.index() + 1, None);
            self.acknowledged_before.resize(slot.index() + 1, 0);
        }
        self.acknowledged_before[slot.index()] = self.acknowledgements;
        let number = request.sequence as u32;
        if self.acknowledged.len() <= number as usize {
            self.acknowledged.resize(number as usize + 1, NOT_YET);
        }
        let write = (number, request.pages.first, request.pages.count);
        self.writes[slot.index()] = request.request.moves_to_device().then_some(write);
    }

    fn complete(&mut self, slot: Slot, completion: &Completion) {
        // Requests merged into one complete one after the other in the same slot: the first ends it.
        if completion.request.operation.is_flush() {
            self.flushed(slot);
            return;
        }
        let Some((number, first, count)) = self.writes.get_mut(slot.index()).and_then(Option::take) else {
            return;
        };
        self.acknowledged[number as usize] = completion.completed;
        let durability = completion.request.durability;
        if self.volatile && durability.flushes_first() {
            self.flushed(slot);
        }
        self.acknowledgements += 1;
        for lpn in first as u32..first as u32 + count {
            // Where the host keeps no order, a discard may have come in between.
            if self.gone.contains(&lpn) {
                continue;
            }
            if self.volatile && !durability.forces_unit_access() {
                let (issued, completed) = (completion.issued, completion.completed);
                let number = self.acknowledgements - 1;
                self.unflushed.push(Unflushed { lpn, issued, completed, number });
            } else {
                self.require(lpn, completion.issued);
            }
        }
    }

    fn page_discarded(&mut self, now: Ns, _slot: Slot, lpn: Lpn) {
        self.floors.remove(&lpn.0);
        self.gone.insert(lpn.0);
        if let Some(held) = self.held.get_mut(lpn.0 as usize) {
            *held = false;
        }
        if self.volatile {
            self.discarded.insert(lpn.0, now);
        }
    }

    fn page_program(&mut self, _now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn) {
        self.order += 1;
        let copied = match origin {
            Origin::Host(slot) => {
                self.gone.remove(&lpn.0);
                let version = self.write(slot).map_or(0, |(number, ..)| number + 1);
                Copy { owner: lpn.0 + 1, version, order: self.order }
            }
            // A copy keeps the age of its data: a newer version may be in the write buffer, or overtake it while it is written.
            Origin::Collection { from }
            | Origin::Buffer { from }
            | Origin::WriteBuffer { from }
            | Origin::Replica { of: from } => *self.copy(from),
        };
        *self.copy(ppn) = copied;
        let executor = self.executor_of(ppn);
        self.programming[executor].push(ppn);
    }

    fn page_buffered(&mut self, _now: Ns, _lpn: Lpn, from: Ppn, to: Ppn) {
        *self.copy(to) = *self.copy(from);
    }

    fn page_absorbed(&mut self, _now: Ns, slot: Slot, lpn: Lpn, at: Ppn) {
        self.order += 1;
        self.gone.remove(&lpn.0);
        let version = self.write(slot).map_or(0, |(number, ..)| number + 1);
        *self.copy(at) = Copy { owner: lpn.0 + 1, version, order: self.order };
    }

    fn page_cached(&mut self, now: Ns, slot: Slot, lpn: Lpn, at: Ppn) {
        self.page_absorbed(now, slot, lpn, at);
    }

    fn page_replaced(&mut self, _now: Ns, _lpn: Lpn, at: Ppn) {
        *self.copy(at) = Copy::default();
    }

    fn write_back_end(&mut self, _now: Ns, _lpn: Lpn, from: Ppn, _to: Ppn, _current: bool) {
        *self.copy(from) = Copy::default();
    }

    fn erase_start(&mut self, _now: Ns, block: u32) {
        let geometry = self.geometry.expect("the run was started");
        let executor = self.executor_of(Ppn(block * geometry.pages_per_block));
        self.erasing[executor].push(block);
    }

    fn block_erase(&mut self, _now: Ns, block: u32) {
        let pages = self.geometry.expect("the run was started").pages_per_block;
        let executor = self.executor_of(Ppn(block * pages));
        self.erasing[executor].retain(|&under_way| under_way != block);
        for ppn in block * pages..(block + 1) * pages {
            *self.copy(Ppn(ppn)) = Copy::default();
        }
    }

    fn array_busy(
        &mut self,
        executor: u32,
        _from: Ns,
        _to: Ns,
        _what: ArrayOperation,
        _planes: u32,
        work: Work,
    ) {
        // Only reads of the host come between the parts of what was suspended.
        if work != Work::Host {
            self.suspended[executor as usize] = false;
        }
    }

    fn array_suspended(&mut self, _now: Ns, executor: u32, _rest: Ns) {
        self.suspended[executor as usize] = true;
    }

    fn operation_end(&mut self, _now: Ns, executor: u32, _planes: u32) {
        if !self.suspended[executor as usize] {
            self.programming[executor as usize].clear();
        }
    }

    fn power_cut(&mut self, _now: Ns, buffered: &[(Ppn, Lpn)]) {
        self.rebuild(buffered);
    }
}
