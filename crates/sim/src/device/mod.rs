//! The device: from commands of the host to operations of channels, dies and planes.
//!
//! An *executor* is what runs one operation at a time: a die where dies interleave, the whole chip where they do not
//! (docs/device-model.md). Each executor has two first-in-first-out lists of waiting transactions, one for each direction,
//! and at most one event pending; each channel is taken by one executor at a time and hands itself to the next in line.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | construction and admission of requests |
//! | `front.rs` | host link, processor, lists of outstanding operations |
//! | `execute.rs` | the phases of operations, and the channels |
//! | `assembly.rs` | units of the write buffer that wait for a program's worth |
//! | `collect.rs` | one collection: its victim, its pages, its erase |
//! | `buffered.rs` | pages in the valid page buffer: reads served, writes absorbed |
//! | `background.rs` | what idle chips do: write-backs, replicas, collections ahead of need |
//! | `fold.rs` | the cache with one bit a cell is emptied while the host is at rest |
//! | `moves.rs` | moves of several units at a time |
//! | `meetings.rs` | which host requests collections are in the way of |
//! | `persistence.rs` | flushes, forced unit access, discards |
//! | `power.rs` | the power cut |
//! | `read_ahead.rs` | pages on their way to the read buffer, and reads served from there |
//! | `write_back.rs` | host writes on their way into the write buffer, and its pages on their way to flash |
//! | `load.rs` | how much each unit has to do |
//! | `transaction.rs` | storage of transactions |
//! | `unbound.rs` | writes that wait for a plane |
//! | `variation.rs` | how long an array operation takes |

mod assembly;
mod background;
mod buffered;
mod collect;
mod execute;
mod fold;
mod front;
mod interface;
mod load;
mod meetings;
mod moves;
mod persistence;
mod power;
mod read_ahead;
mod transaction;
mod unbound;
mod variation;
mod write_back;

pub(crate) use background::HostState;

use crate::alloc::{self, Allocation, PlaneView};
use crate::cache::WriteBuffer;
use crate::error::SimError;
use crate::event::EventQueue;
use crate::flash_sched;
use crate::ftl::{CacheBlocks, Condition, Mapping, NONE, PlanePolicies, Planes, Space, Spread, condition};
use crate::gc::buffer::ValidPageBuffer;
use crate::gc::replicas::Replicas;
use crate::gc::write_back::WriteBackPolicy;
use crate::gc::{self, Collector, PlaneState, victims};
use crate::host::Slot;
use crate::observers::Observer;
use crate::wear;
use execute::{Channel, Executor, Operations};
use front::Front;
use load::Load;
use planewise_model::location::{Chunks, PageRange};
use planewise_model::profile::{AdvancedCommands, Arbitration, Holds, Layout, Mapped, Profile, Timing};
use planewise_model::{Direction, Geometry, Lpn, Ns, Ppn, Request};
use read_ahead::ReadAhead;
use transaction::{Kind, List, Transaction, Transactions};
use variation::Variation;

/// What every step of the device needs from outside.
pub(crate) struct Context<'a, O> {
    pub(crate) now: Ns,
    pub(crate) events: &'a mut EventQueue,
    pub(crate) observer: &'a mut O,
}

/// Progress of the request in a host slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    remaining: u32,
    pub(crate) die_wait: Ns,
    pub(crate) channel_wait: Ns,
    /// Of a write behind a flush: the flush is through.
    is_flushed: bool,
}

pub(crate) struct Device {
    geometry: Geometry,
    timing: Timing,
    variation: Variation,
    page_transfer: Ns,
    /// What operations of the flash are where they are not single pages, or not all blocks alike.
    operations: Operations,
    /// Operations are not single pages; or only some blocks are unlike others.
    gathers: bool,
    is_apart: bool,
    /// Units of the write buffer that wait for a program's worth.
    assembly: assembly::Assembly,
    /// By executor, where operations are not single pages: what its collection reads, and what it has in the controller.
    reading: Vec<Vec<Ppn>>,
    gathered: Vec<Vec<Ppn>>,
    folding: fold::Folding,
    advanced: AdvancedCommands,
    read_modify_write: bool,
    sectors_per_page: u32,
    user_pages: u32,
    mapping: Mapping,
    planes: Planes,
    allocation: Box<dyn Allocation>,
    /// Pages stay where their number says, and nobody asks which planes are idle.
    static_allocation: bool,
    /// That place is the one of the stripe.
    striped: bool,
    /// Reads are served by any idle plane: a bound, not a device.
    redirects_reads: bool,
    /// A write gets its plane when one can take it; those that wait for one.
    binds_late: bool,
    unbound: List,
    stripe: Vec<u32>,
    /// How pages are dealt out to the positions of the stripe, where they are striped.
    chunks: Chunks,
    collector: Box<dyn Collector>,
    buffer: ValidPageBuffer,
    buffer_read: Ns,
    write_backs: WriteBackPolicy,
    replicas: Replicas,
    keeps_replicas: bool,
    /// What the scheme is, asked once: these questions are on the path of every request.
    buffers: bool,
    collects_ahead: bool,
    suspends: bool,
    suspend: Ns,
    moves_hold_channel: bool,
    /// Pages may be read elsewhere than on their own plane, or written nowhere in flash: the buffer or replicas are in use.
    relocates: bool,
    /// Collections under way.
    collecting: u32,
    /// Operations of background work under way.
    in_background: u32,
    /// Executors whose victim waits for a program that replaces one of its pages.
    erases_waiting: Vec<u32>,
    /// Executors that a collection began on, until the host stack has looked at them.
    begun: Vec<u32>,
    /// Executors that may be collected ahead of need, and whether they are in that list.
    ahead: std::collections::VecDeque<u32>,
    may_collect_ahead: Vec<bool>,
    collecting_ahead: u32,
    /// Executors that waiting requests need: flags, and those set. Known only while a scheme asks.
    wanted: Vec<bool>,
    wanted_list: Vec<u32>,
    /// Working storage.
    needed: Vec<u32>,
    /// The executor that the next background work goes to, if it is idle.
    next_idle: u32,
    /// When the last traditional collection would have ended, had all collections been such.
    released_until: Ns,
    flash_scheduler: &'static flash_sched::Policy,
    /// With cache registers, those of all executors behind them.
    executors: Vec<Executor>,
    executor_count: u32,
    /// Whether there are cache registers.
    pipelines: bool,
    channels: Vec<Channel>,
    arbitration: Arbitration,
    /// Channels that became free at this instant and are waited for; used where commands go first.
    handovers: Vec<u32>,
    transactions: Transactions,
    progress: Vec<Progress>,
    load: Load,
    front: Front,
    whole_page_reads: bool,
    write_buffer: Option<WriteBuffer>,
    /// Writes that wait for a slot of the write buffer, and their next page.
    waiting_writes: std::collections::VecDeque<(Slot, u64)>,
    /// Discards that wait for pages on their way out of it, with these pages.
    discarding: Vec<(Slot, Vec<Lpn>)>,
    read_ahead: Option<ReadAhead>,
    /// Page numbers behind the last of the flash that stand for slots of the buffers.
    first_write_slot: u32,
    first_read_slot: u32,
    /// Executors that may be able to start something.
    kicks: Vec<u32>,
    /// Slots whose last transaction completed, to be taken by the host stack.
    pub(crate) finished: Vec<Slot>,
    sequence: u64,
    host_pages_written: u64,
}

impl Device {
    pub(crate) fn new(
        profile: &Profile,
        advanced: AdvancedCommands,
        condition: Condition,
        queue_length: u32,
        seed: u64,
    ) -> Result<Device, SimError> {
        let Mapped { profile, layout, user_pages } = &profile.mapped();
        let (user_pages, operations) =
            (*user_pages, Operations { layout: *layout, cache: profile.slc_cache });
        let geometry = profile.geometry;
        let chunk_pages = profile.translation.chunk_pages;
        let alloc::Built { allocation, stripe, gangs } =
            alloc::build(&profile.translation.allocation, &geometry, user_pages, chunk_pages)?;
        let collector = gc::find(&profile.collection.scheme)?.collector(&profile.collection);
        let wear = wear::find(&profile.translation.wear_levelling)?;
        let flash_scheduler = flash_sched::find(&profile.interface.flash_scheduler)?;
        let victims = victims::find(&profile.collection.victims)?;
        let hot_cold_separation = profile.collection.hot_cold_separation;
        let reserve = (f64::from(geometry.pages_per_plane()) * profile.collection.threshold).ceil() as u32;
        let cache = profile.slc_cache.map(|cache| CacheBlocks {
            pages_per_block: geometry.pages_per_block / cache.bits_per_cell / layout.read_units()
                * layout.read_units(),
            program_pages: layout.read_units(),
            always: cache.static_blocks,
            most: cache.static_blocks + cache.dynamic_blocks,
            reserve: reserve + geometry.pages_per_block,
        });
        let program_pages = layout.program_units();
        let gathers = *layout != Layout::PLAIN;
        let policies = PlanePolicies { victims, wear, hot_cold_separation, program_pages, cache, seed };
        let mut planes = Planes::fresh(&geometry, &policies);
        let spread = Spread { stripe: &stripe, chunk_pages, gangs };
        let chunks = spread.chunks();
        let mapping = condition::construct(condition, &geometry, user_pages, spread, &mut planes, seed)?;
        let executors = if advanced.die_interleave { geometry.dies() } else { geometry.chips() };
        let per_channel = executors / geometry.channels;
        let pipelines = advanced.cache_read || advanced.cache_program;
        let static_allocation = allocation.is_static();
        let buffer_pages = if collector.buffers() { profile.collection.buffer_pages } else { 0 };
        let replica_pages = if collector.keeps_replicas() { profile.collection.replica_pages } else { 0 };
        let first_write_slot = geometry.pages() + buffer_pages;
        let load = Load::new(&stripe, executors, advanced.multi_plane, !static_allocation);
        Ok(Device {
            geometry,
            page_transfer: profile.timing.transfer(geometry.page_bytes),
            timing: profile.timing.clone(),
            gathers,
            is_apart: gathers || operations.cache.is_some(),
            reading: vec![Vec::new(); if gathers { executors as usize } else { 0 }],
            gathered: vec![Vec::new(); if gathers { executors as usize } else { 0 }],
            operations,
            assembly: assembly::Assembly::new(if gathers { geometry.planes() } else { 0 }),
            folding: fold::Folding::default(),
            variation: Variation::new(profile.timing.variation, seed),
            advanced,
            read_modify_write: profile.translation.read_modify_write,
            sectors_per_page: geometry.sectors_per_page(),
            user_pages,
            mapping,
            planes,
            static_allocation,
            striped: static_allocation && gangs.is_none(),
            redirects_reads: allocation.redirects_reads(),
            binds_late: !static_allocation && !profile.has_controller(),
            unbound: List::EMPTY,
            allocation,
            relocates: buffer_pages > 0 || replica_pages > 0,
            buffer: ValidPageBuffer::new(buffer_pages),
            buffer_read: Ns(profile.collection.buffer_read_ns),
            write_backs: WriteBackPolicy::new(&profile.collection, executors),
            replicas: Replicas::new(replica_pages),
            keeps_replicas: replica_pages > 0,
            buffers: collector.buffers(),
            collects_ahead: collector.collects_ahead(),
            suspends: collector.suspends(),
            suspend: Ns(profile.collection.suspend_ns),
            moves_hold_channel: profile.collection.holds == Holds::Channel,
            collecting: 0,
            in_background: 0,
            erases_waiting: Vec::new(),
            begun: Vec::new(),
            ahead: std::collections::VecDeque::new(),
            may_collect_ahead: vec![false; if collector.collects_ahead() { executors as usize } else { 0 }],
            collecting_ahead: 0,
            wanted: vec![false; executors as usize],
            wanted_list: Vec::new(),
            needed: Vec::new(),
            next_idle: 0,
            released_until: Ns::ZERO,
            collector,
            flash_scheduler,
            executors: (0..if pipelines { 2 * executors } else { executors })
                .map(|index| Executor::new(index % executors / per_channel))
                .collect(),
            executor_count: executors,
            pipelines,
            channels: vec![Channel::FREE; geometry.channels as usize],
            arbitration: profile.interface.arbitration,
            handovers: Vec::new(),
            transactions: Transactions::with_capacity(queue_length as usize * 8),
            progress: vec![Progress::default(); queue_length as usize],
            load,
            front: Front::new(profile, user_pages, executors, queue_length),
            whole_page_reads: profile.timing.whole_page_reads,
            write_buffer: profile
                .write_buffer
                .map(|settings| WriteBuffer::new(&settings, geometry.sectors_per_page())),
            waiting_writes: std::collections::VecDeque::new(),
            discarding: Vec::new(),
            read_ahead: ReadAhead::of(profile, user_pages, layout, executors),
            first_write_slot,
            first_read_slot: first_write_slot + profile.write_buffer.map_or(0, |buffer| buffer.pages),
            kicks: Vec::with_capacity(executors as usize),
            finished: Vec::with_capacity(queue_length as usize),
            stripe,
            chunks,
            sequence: 0,
            host_pages_written: 0,
        })
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn executors(&self) -> u32 {
        self.executor_count
    }

    pub(crate) fn wear(&self) -> (u32, u32) {
        self.planes.wear()
    }

    /// Bytes of state that grow with the number of pages and blocks.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.mapping.bytes() + self.planes.bytes()
    }

    pub(crate) fn progress(&self, slot: Slot) -> Progress {
        self.progress[slot.index()]
    }

    /// Transactions waiting or under way; what waits in the controller for company is neither.
    pub(crate) fn transactions_in_flight(&self) -> u32 {
        self.transactions.live() - self.assembly.held()
    }

    /// Where a read of a page goes in flash, page and plane: its own, or a replica's while its chip is collected. None when it
    /// needs no flash.
    #[inline]
    fn place(&self, lpn: Lpn) -> Option<(Ppn, u32)> {
        let ppn = self.mapping.readable(lpn);
        if ppn >= self.flash_pages() {
            return None;
        }
        let plane = self.planes.plane_of(Ppn(ppn));
        if self.relocates
            && self.load.collects(self.load.executor_of(plane))
            && let Some(replica) = self.replicas.find(lpn)
        {
            let elsewhere = self.planes.plane_of(replica);
            if !self.load.collects(self.load.executor_of(elsewhere)) {
                return Some((replica, elsewhere));
            }
        }
        Some((Ppn(ppn), plane))
    }

    /// Pages of the flash: larger page numbers are slots of the buffer, the largest is none.
    #[inline]
    fn flash_pages(&self) -> u32 {
        self.geometry.pages()
    }

    /// Whether a unit became free since the last call: only then can a blocking interface take what it refused before.
    #[inline]
    pub(crate) fn take_freed(&mut self) -> bool {
        self.load.take_freed()
    }

    /// Takes a request and splits it into transactions.
    pub(crate) fn submit<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        request: &Request,
        pages: PageRange,
    ) {
        self.progress[slot.index()] = Progress::default();
        if self.keeps_replicas && request.direction == Direction::Read {
            self.replicas.note_read(context.now, pages);
        }
        if self.front.active {
            let rest = self.front.accept(context, slot, request, pages);
            self.note_rest(rest);
            self.end_of_rest();
        } else {
            self.take_in(context, slot, request, pages);
        }
    }

    /// Looks up the pages of a request that has reached the firmware, and makes transactions of those that need the flash.
    #[inline]
    fn take_in<O: Observer>(
        &mut self,
        context: &mut Context<'_, O>,
        slot: Slot,
        request: &Request,
        pages: PageRange,
    ) {
        let direction = request.direction;
        if direction == Direction::Write && !request.is_transfer() {
            return self.take_in_apart(context, slot, request);
        }
        if self.front.active && direction == Direction::Write {
            self.turn_to_writes();
            if self.write_buffer.is_some() {
                let flushes = request.durability.flushes_first() && !self.progress[slot.index()].is_flushed;
                if flushes && self.waits_for_flush(slot) {
                    return;
                }
                self.progress[slot.index()].is_flushed = true;
                self.take_write_in(context, slot);
                return;
            }
        }
        let mut remaining = 0;
        let mut row = None;
        for page in pages.first..pages.first + u64::from(pages.count) {
            let lpn = Lpn(page as u32);
            let sectors = self.sectors_of(request, page);
            let covered = sectors.len() as u32;
            // The write buffer first: what it has of a page is newer than anything else.
            let reads_caches = self.front.active && direction == Direction::Read;
            let served = reads_caches && self.serve_from_write_buffer(context, slot, lpn, sectors)
                || self.relocates && self.serve_from_buffer(context, slot, direction, lpn)
                || reads_caches && self.serve_from_read_buffer(context, slot, lpn, &mut remaining);
            if served {
                continue;
            }
            let transaction = match direction {
                Direction::Read => {
                    let Some((ppn, plane)) = self.place(lpn) else {
                        // Nothing in flash to read: the controller answers with zeros.
                        continue;
                    };
                    let plane = self.read_plane(lpn, ppn, plane);
                    let mut read = self.transaction(context.now, slot, lpn, Kind::Read, plane, covered);
                    if self.gathers {
                        let before = row.replace(ppn.0 / self.operations.layout.read_units());
                        read.follows = before == row;
                    }
                    read
                }
                Direction::Write => {
                    let missing = self.sectors_per_page - covered;
                    let kinds = (Kind::ReadForWrite, Kind::Write);
                    self.write_transaction(context.now, slot, lpn, missing, kinds)
                }
            };
            let index = self.transactions.insert(transaction);
            self.admit(context, index);
            remaining += 1;
        }
        if self.front.active && direction == Direction::Read {
            self.note_sequence(context.now, request);
        }
        self.progress[slot.index()].remaining = remaining;
        if remaining == 0 {
            self.request_done(slot);
        }
    }

    /// The sectors of a page that a request covers, counted from the page's first.
    #[inline]
    fn sectors_of(&self, request: &Request, page: u64) -> std::ops::Range<u32> {
        let first = page * u64::from(self.sectors_per_page);
        let end = (request.end().0 - first).min(u64::from(self.sectors_per_page));
        request.start.0.saturating_sub(first) as u32..end as u32
    }

    /// Puts a transaction in line at its executor, where its wait for the die begins, and tells whom it finds there.
    #[inline]
    fn send_to_flash<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        self.transactions[index].queued = context.now;
        self.enqueue(index);
        if self.collecting + self.in_background > 0 {
            let Transaction { plane, slot, kind, .. } = self.transactions[index];
            let executor = self.load.executor_of(plane);
            if !kind.is_host() {
                return;
            }
            self.note_meeting(context, slot, executor);
            if kind != Kind::Write {
                self.suspend_for_read(context, executor);
            }
        }
    }

    /// Whether the sectors that a write of a page leaves out have to be read from flash first. What is in the valid page buffer needs
    /// no read from flash, and a primed device has nothing of its own to keep.
    fn reads_rest(&self, lpn: Lpn, missing: u32) -> bool {
        missing > 0 && self.read_modify_write && self.mapping.physical(lpn) < self.flash_pages()
    }

    /// The first transaction of a page's write: of the first of the two kinds if the page has to be read before.
    fn write_transaction(
        &mut self,
        now: Ns,
        slot: Slot,
        lpn: Lpn,
        missing: u32,
        (read, write): (Kind, Kind),
    ) -> Transaction {
        if self.reads_rest(lpn, missing)
            && let Some((ppn, plane)) = self.place(lpn)
        {
            let plane = self.read_plane(lpn, ppn, plane);
            return self.transaction(now, slot, lpn, read, plane, missing);
        }
        // What is gathered for a program gets its plane with the others of that.
        let plane = if self.gathers { unbound::UNBOUND } else { self.bind(lpn) };
        self.transaction(now, slot, lpn, write, plane, self.sectors_per_page)
    }

    #[inline]
    fn transaction(
        &mut self,
        now: Ns,
        slot: Slot,
        lpn: Lpn,
        kind: Kind,
        plane: u32,
        sectors: u32,
    ) -> Transaction {
        self.sequence += 1;
        let whole = self.whole_page_reads && kind.direction() == Direction::Read;
        let sectors = if whole { self.sectors_per_page } else { sectors };
        Transaction {
            queued: now,
            sequence: self.sequence,
            slot,
            lpn,
            plane,
            sectors,
            next: transaction::NIL,
            list: transaction::NIL,
            old: NONE,
            kind,
            follows: false,
        }
    }

    /// The plane that a read of a mapped page goes to.
    #[inline]
    fn read_plane(&mut self, lpn: Lpn, ppn: Ppn, plane: u32) -> u32 {
        debug_assert_eq!(self.planes.plane_of(ppn), plane);
        if self.redirects_reads { self.allocate(lpn) } else { plane }
    }

    /// The plane for a write of `lpn`.
    #[inline]
    fn allocate(&mut self, lpn: Lpn) -> u32 {
        let plane = self.ask_for_plane(|allocation, view| allocation.plane(lpn, view));
        if self.static_allocation || self.has_room(plane) {
            return plane;
        }
        // Every plane is as full as it may be: an overwrite that stays on its plane makes room for itself.
        let ppn = self.mapping.physical(lpn);
        if ppn >= self.flash_pages() { plane } else { self.planes.plane_of(Ppn(ppn)) }
    }

    #[inline]
    fn ask_for_plane<T>(&mut self, ask: impl FnOnce(&mut dyn Allocation, &PlaneView<'_>) -> T) -> T {
        let most = self.planes.most_valid();
        let (planes, load) = (&self.planes, &self.load);
        let has_room = |plane: u32| planes.valid_total(plane) + load.of_plane(plane) < most;
        let view = PlaneView {
            stripe: &self.stripe,
            idle: self.load.idle(),
            yielding: self.load.yielding(),
            has_room: &has_room,
        };
        ask(self.allocation.as_mut(), &view)
    }

    /// Whether a plane can take another page beside those that are on their way to it, now or after collection.
    #[inline]
    fn has_room(&self, plane: u32) -> bool {
        self.planes.valid_total(plane) + self.load.of_plane(plane) < self.planes.most_valid()
    }

    /// Puts a transaction in line at the executor of its plane.
    fn enqueue(&mut self, index: u32) {
        let plane = self.transactions[index].plane;
        let executor = self.load.add(plane);
        let list = self.transactions[index].kind.direction().index();
        self.executors[executor as usize].waiting[list].push_back(&mut self.transactions, index);
        self.kick(executor);
    }

    #[inline]
    fn kick(&mut self, executor: u32) {
        let state = &mut self.executors[executor as usize];
        if !state.kicked {
            state.kicked = true;
            self.kicks.push(executor);
        }
    }

    fn plane_state(&self, plane: u32) -> PlaneState {
        let (free_pages, pages) = (self.planes.free_pages(plane), self.geometry.pages_per_plane());
        PlaneState { free_pages, pages, progress: gc::Progress::default() }
    }

    /// Tells that a request comes soon.
    #[inline]
    pub(crate) fn prefetch(&self, pages: PageRange) {
        if let Ok(first) = u32::try_from(pages.first) {
            self.mapping.prefetch(Lpn(first));
        }
    }

    pub(crate) fn space(&self) -> Space {
        let sum = |of: &dyn Fn(u32) -> u32| {
            (0..self.geometry.planes()).map(|plane| u64::from(of(plane))).sum::<u64>()
        };
        let valid = sum(&|plane| self.planes.valid_total(plane));
        let free = sum(&|plane| self.planes.free_pages(plane));
        Space { valid, invalid: u64::from(self.geometry.pages()) - valid - free, free }
    }

    /// Calls `visit` with every mapped page.
    pub(crate) fn visit_contents(&self, mut visit: impl FnMut(Lpn, Ppn)) {
        for lpn in (0..self.user_pages).map(Lpn) {
            let ppn = self.mapping.physical(lpn);
            if ppn != NONE {
                visit(lpn, Ppn(ppn));
            }
        }
    }

    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut valid_pages = vec![0u32; self.geometry.blocks() as usize];
        for lpn in (0..self.user_pages).map(Lpn) {
            let ppn = self.mapping.physical(lpn);
            if ppn == NONE {
                continue;
            }
            if ppn >= self.flash_pages() {
                if !self.buffer.pages().any(|(slot, held)| held == lpn && slot == ppn - self.flash_pages()) {
                    return Err(format!("logical page {} is mapped to a slot that does not hold it", lpn.0));
                }
                continue;
            }
            if self.mapping.valid_owner(Ppn(ppn)) != Some(lpn) {
                return Err(format!(
                    "logical page {} is mapped to {ppn}, which belongs to another page",
                    lpn.0
                ));
            }
            valid_pages[(ppn / self.geometry.pages_per_block) as usize] += 1;
        }
        for (_, ppn) in self.replicas.all() {
            valid_pages[(ppn.0 / self.geometry.pages_per_block) as usize] += 1;
        }
        self.planes.audit(&valid_pages)
    }

    /// The error for a plane that has nothing left to write to and nothing to collect.
    fn space_exhausted(&self, now: Ns, plane: u32) -> SimError {
        SimError::SpaceExhausted {
            now,
            host_pages: self.host_pages_written,
            plane,
            free_blocks: self.planes.free_blocks(plane),
            valid_pages: u64::from(self.planes.valid_total(plane)),
            pages: u64::from(self.geometry.pages_per_plane()),
            user_pages: u64::from(self.user_pages),
        }
    }
}
