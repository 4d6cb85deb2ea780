//! The invariants of docs/architecture.md, checked from outside: this file keeps its own picture of the flash and of every
//! request, and compares. It shares no code with what it checks; `Simulator::audit` checks the translation layer's tables.
//!
//! Reads must be linearizable, page by page: a read may return a write only if that write was issued before the read
//! completed, and no other write that completed before the read was issued had been issued after the first one completed.
//! Where the host keeps the order of requests that overlap, what takes effect is what arrival order says, sector by sector.

use super::arrival_order::ArrivalOrder;
use super::{ArrayOperation, Completion, Observer, Origin, Work};
use crate::host::{Overlap, QueuedRequest, Slot};
use planewise_model::{Direction, Geometry, Lpn, Ns, Ppn, Request};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of the write whose data a page holds, plus one; 0 for what the device held before the run.
type Version = u64;
const INITIAL: Version = 0;
/// A write that is not complete.
const NOT_YET: Ns = Ns::MAX;

/// Checks every edge of a run; [`Invariants::report`] tells the outcome.
#[derive(Default)]
pub struct Invariants {
    /// Unless the host ignores it.
    order: Option<ArrivalOrder>,
    violations: Vec<String>,
    violated: u64,
    checks: BTreeMap<&'static str, u64>,
    geometry: Option<Geometry>,
    // Maps are looked up, never iterated: their order cannot reach a result.
    contents: HashMap<u32, (Lpn, Version)>,
    current: HashMap<u32, Ppn>,
    live_pages: HashMap<u32, u32>,
    next_page: HashMap<u32, u32>,
    /// By slot of the write buffer: the page that it holds and that is not in flash yet.
    unwritten: HashMap<u32, Lpn>,
    /// Pages that were discarded and not written since.
    discarded: HashSet<u32>,
    /// By page: the latest issue of a write that is complete.
    superseded: HashMap<u32, Ns>,
    /// By write number: when it completed.
    completed_at: Vec<Ns>,
    /// By slot: the request in it, with what its reads must not be older than, page by page.
    slots: Vec<Option<InFlight>>,
    /// By request number: entered and not complete.
    entered: HashMap<u64, Ns>,
    channel_free: Vec<Ns>,
    array_free: Vec<Ns>,
    /// By executor: end of the last transfer to or from its registers.
    transferred: Vec<Ns>,
    operating: Vec<bool>,
    /// By executor: pages whose program has not ended; whether it is suspended.
    programming: Vec<Vec<Ppn>>,
    suspended: Vec<bool>,
    planes_per_executor: u32,
    pending: u128,
    /// The run ended in a power cut: what was under way never completes.
    power_lost: bool,
    last: Ns,
    queue_area: u128,
    sojourn_sum: u128,
}

#[derive(Clone)]
struct InFlight {
    sequence: u64,
    direction: Direction,
    issued: Option<Ns>,
    first_page: u64,
    floors: Vec<Option<Ns>>,
    /// By page: whether it has been read or programmed.
    served: Vec<bool>,
}

impl Invariants {
    /// Checks from the start of a run whose host keeps the order of requests that overlap.
    pub fn new() -> Invariants {
        Invariants { order: Some(ArrivalOrder::default()), ..Invariants::default() }
    }

    /// The same for what a host does with requests that overlap.
    pub fn of(overlap: Overlap) -> Invariants {
        match overlap {
            Overlap::Keep => Invariants::new(),
            Overlap::Ignore => Invariants::default(),
        }
    }

    /// How often each invariant was checked.
    ///
    /// # Errors
    /// The first violations, one a line, and how many there were.
    pub fn report(&self) -> Result<BTreeMap<String, u64>, String> {
        let mut violations = self.violations.clone();
        let mut violated = self.violated;
        let mut finally = |holds: bool, text: String| {
            if !holds {
                violated += 1;
                violations.push(text);
            }
        };
        finally(
            self.entered.is_empty() || self.power_lost,
            format!("{} requests never completed", self.entered.len()),
        );
        finally(
            self.queue_area == self.sojourn_sum || !self.entered.is_empty(),
            format!(
                "Little's law: queue area {} differs from the sum of sojourns {}",
                self.queue_area, self.sojourn_sum
            ),
        );
        if let Some(order) = self.order.as_ref().filter(|_| !self.power_lost) {
            let at_end = order.finally();
            finally(at_end.is_ok(), at_end.err().unwrap_or_default());
        }
        if violated == 0 {
            let mut checks: BTreeMap<String, u64> =
                self.checks.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            checks.insert("little's law".to_owned(), 1);
            return Ok(checks);
        }
        Err(format!("{violated} violations; {}", violations.join("; ")))
    }

    fn check(&mut self, name: &'static str, holds: bool, text: impl FnOnce() -> String) {
        *self.checks.entry(name).or_default() += 1;
        if !holds {
            self.violated += 1;
            if self.violations.len() < 5 {
                self.violations.push(format!("{name}: {}", text()));
            }
        }
    }

    fn check_order(
        &mut self,
        name: &'static str,
        holds: impl FnOnce(&mut ArrivalOrder) -> Result<(), String>,
    ) {
        if let Some(found) = self.order.as_mut().map(holds) {
            self.check(name, found.is_ok(), || found.err().unwrap_or_default());
        }
    }

    fn pass_time(&mut self, now: Ns) {
        let last = self.last;
        self.check("time never goes back", now >= last, || format!("{now} after {last}"));
        self.queue_area += self.pending * u128::from((now.saturating_sub(self.last)).0);
        self.last = now;
    }

    fn enters(&mut self, now: Ns, sequence: u64) {
        self.pass_time(now);
        self.pending += 1;
        let twice = self.entered.insert(sequence, now).is_some();
        self.check("a request enters once", !twice, || format!("request {sequence} at {now}"));
        let wanted = sequence as usize + 1;
        if self.completed_at.len() < wanted {
            self.completed_at.resize(wanted, NOT_YET);
        }
    }

    fn slot(&mut self, slot: Slot) -> &mut Option<InFlight> {
        if self.slots.len() <= slot.index() {
            self.slots.resize(slot.index() + 1, None);
        }
        &mut self.slots[slot.index()]
    }

    fn block_and_page(&self, ppn: Ppn) -> (u32, u32) {
        let pages = self.geometry.expect("the run was started").pages_per_block;
        (ppn.0 / pages, ppn.0 % pages)
    }

    /// A page is where `ppn` says from now on, and nowhere else.
    fn becomes_current(&mut self, lpn: Lpn, ppn: Ppn) {
        self.discarded.remove(&lpn.0);
        if let Some(old) = self.current.insert(lpn.0, ppn) {
            let old_block = self.block_and_page(old).0;
            *self.live_pages.entry(old_block).or_default() -= 1;
        }
        // Slots of the buffer are numbered behind the last page: their "blocks" are never erased.
        let block = self.block_and_page(ppn).0;
        *self.live_pages.entry(block).or_default() += 1;
    }

    /// The device took a page of a write.
    fn takes_effect(&mut self, slot: Slot, lpn: Lpn) {
        self.serve(slot, lpn);
        self.check_order("writes of a sector take effect in the order of arrival", |order| {
            order.written(slot, lpn)
        });
    }

    fn serve(&mut self, slot: Slot, lpn: Lpn) {
        if let Some(in_flight) = self.slot(slot)
            && let Some(served) = in_flight.served.get_mut((u64::from(lpn.0) - in_flight.first_page) as usize)
        {
            *served = true;
        }
    }

    /// The executor that a page of the flash is on; none for slots of buffers, and for pages that are nowhere.
    fn executor_of(&self, ppn: Ppn) -> Option<usize> {
        let geometry = self.geometry.expect("the run was started");
        (ppn.0 < geometry.pages())
            .then(|| (ppn.0 / geometry.pages_per_plane() / self.planes_per_executor) as usize)
    }

    /// What was programmed in part holds neither the old data nor the new.
    fn check_programmed(&mut self, now: Ns, lpn: Lpn, ppn: Ppn) {
        let Some(executor) = self.executor_of(ppn) else { return };
        if self.suspended[executor] {
            let through = !self.programming[executor].contains(&ppn);
            self.check("a page is read only once its program is through", through, || {
                format!("page {} read at {} at {now}, whose program is suspended", lpn.0, ppn.0)
            });
        }
    }

    fn check_read(&mut self, now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, modify: bool) {
        self.check_programmed(now, lpn, ppn);
        let Some(request) = self.slot(slot).clone() else {
            self.check("reads belong to a request", false, || format!("page {} at {now}", lpn.0));
            return;
        };
        let (owner, version) = self.contents.get(&ppn.0).copied().unwrap_or((lpn, INITIAL));
        self.check("a physical page holds the logical page read from it", owner == lpn, || {
            format!("page {} read at {} which holds page {}", lpn.0, ppn.0, owner.0)
        });
        let page = (u64::from(lpn.0) - request.first_page) as usize;
        let is_there = !self.discarded.contains(&lpn.0);
        self.check("what was discarded is not read", is_there, || format!("page {} at {now}", lpn.0));
        if modify {
            return;
        }
        self.serve(slot, lpn);
        self.check_order("a read returns what arrival order says", |order| order.read(slot, lpn));
        if let Some(Some(floor)) = request.floors.get(page).copied() {
            let fresh = version != INITIAL && self.completed_at[version as usize - 1] >= floor;
            self.check("a read returns the last version written before it was issued", fresh, || {
                format!("request {} read version {version} of page {} at {now}", request.sequence, lpn.0)
            });
        }
    }
}

impl Observer for Invariants {
    fn start(&mut self, geometry: &Geometry, executors: u32) {
        self.geometry = Some(*geometry);
        if let Some(order) = &mut self.order {
            order.start(geometry.sectors_per_page());
        }
        self.channel_free = vec![Ns::ZERO; geometry.channels as usize];
        self.array_free = vec![Ns::ZERO; executors as usize];
        self.transferred = vec![Ns::ZERO; executors as usize];
        self.operating = vec![false; executors as usize];
        self.programming = vec![Vec::new(); executors as usize];
        self.suspended = vec![false; executors as usize];
        self.planes_per_executor = geometry.planes() / executors;
    }

    fn enter(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.enters(now, request.sequence);
        let taken = self.slot(slot).is_some();
        self.check("a slot holds one request", !taken, || format!("slot {} at {now}", slot.0));
        if let Some(order) = &mut self.order {
            order.enter(slot, request.sequence, &request.request);
        }
        *self.slot(slot) = Some(InFlight {
            sequence: request.sequence,
            direction: request.request.direction,
            issued: None,
            first_page: request.pages.first,
            floors: Vec::new(),
            served: Vec::new(),
        });
    }

    fn merge(&mut self, now: Ns, slot: Slot, sequence: u64, request: &Request) {
        self.enters(now, sequence);
        if let Some(order) = &mut self.order {
            order.enter(slot, sequence, request);
        }
    }

    fn join(&mut self, now: Ns, into: Slot, other: Slot) {
        if let Some(order) = &mut self.order {
            order.join(into, other);
        }
        let both = self.slot(into).is_some() && self.slot(other).take().is_some();
        self.check("only requests that wait are merged", both, || {
            format!("slots {} and {} at {now}", into.0, other.0)
        });
    }

    fn issue(&mut self, now: Ns, slot: Slot, request: &QueuedRequest) {
        self.pass_time(now);
        let floors: Vec<Option<Ns>> = (0..u64::from(request.pages.count))
            .map(|page| self.superseded.get(&((request.pages.first + page) as u32)).copied())
            .collect();
        let first_page = request.pages.first;
        let before = self.slot(slot).as_ref().map(|in_flight| (in_flight.sequence, in_flight.issued));
        self.check("a request is issued once", before == Some((request.sequence, None)), || {
            format!("request {} at {now}", request.sequence)
        });
        self.check_order("requests that overlap are issued in the order of arrival", |order| {
            order.issue(slot)
        });
        if let Some(in_flight) = self.slot(slot) {
            in_flight.served = vec![false; floors.len()];
            (in_flight.issued, in_flight.floors, in_flight.first_page) = (Some(now), floors, first_page);
        }
    }

    fn complete(&mut self, slot: Slot, completion: &Completion) {
        let now = completion.completed;
        self.pass_time(now);
        self.pending = self.pending.saturating_sub(1);
        let entered = self.entered.remove(&completion.sequence);
        self.check("a request completes once", entered == Some(completion.entered), || {
            format!("request {} at {now}", completion.sequence)
        });
        let ordered = completion.request.arrival <= completion.entered
            && completion.entered <= completion.issued
            && completion.issued <= now;
        self.check("arrival, entry, issue and completion follow one another", ordered, || {
            format!("{completion:?}")
        });
        self.sojourn_sum += u128::from(now.saturating_sub(completion.entered).0);
        if let Some(order) = &mut self.order {
            order.complete(slot);
        }
        // Requests merged into one complete one after the other in the same slot: the first ends it.
        let Some(in_flight) = self.slot(slot).take() else { return };
        for (page, served) in in_flight.served.iter().enumerate() {
            // A page that somebody wrote is in flash: a read that never went there would return nothing.
            let lpn = (in_flight.first_page + page as u64) as u32;
            let needed = completion.request.is_transfer()
                && (in_flight.direction == Direction::Write || in_flight.floors[page].is_some());
            self.check("every page of a request is read or programmed", *served || !needed, || {
                format!("page {lpn} of request {} at {now}", in_flight.sequence)
            });
        }
        if completion.request.moves_to_device() {
            self.completed_at[in_flight.sequence as usize] = now;
            for page in 0..in_flight.floors.len() as u64 {
                let lpn = (in_flight.first_page + page) as u32;
                // Where the host keeps no order, a discard may have come in between.
                if self.discarded.contains(&lpn) {
                    continue;
                }
                let latest = self.superseded.entry(lpn).or_insert(completion.issued);
                *latest = (*latest).max(completion.issued);
            }
        }
    }

    fn page_read(&mut self, now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, modify: bool) {
        self.check_read(now, slot, lpn, ppn, modify);
    }

    fn page_program(&mut self, now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn) {
        if let Some(executor) = self.executor_of(ppn) {
            self.programming[executor].push(ppn);
        }
        let (block, page) = self.block_and_page(ppn);
        let expected = self.next_page.insert(block, page + 1);
        self.check(
            "pages of a block are programmed in order, once between erases",
            expected.is_none_or(|next| next == page),
            || format!("page {page} of block {block} at {now}, expected {expected:?}"),
        );
        let version = match origin {
            Origin::Host(slot) => match self.slot(slot) {
                Some(in_flight) => in_flight.sequence + 1,
                None => INITIAL,
            },
            Origin::Collection { from } => {
                let (owner, version) = self.contents.get(&from.0).copied().unwrap_or((lpn, INITIAL));
                self.check("collection moves the page that it says", owner == lpn, || {
                    format!("page {} at {now}", lpn.0)
                });
                let current = self.current.get(&lpn.0).copied();
                let is_there = !self.discarded.contains(&lpn.0);
                self.check(
                    "collection moves only valid pages",
                    is_there && current.is_none_or(|current| current == from),
                    || format!("page {} from {} at {now}, current {current:?}", lpn.0, from.0),
                );
                version
            }
            Origin::Buffer { from } => {
                let held = self.contents.get(&from.0).copied();
                self.check(
                    "the buffer writes back the page that it holds",
                    held.is_some_and(|held| held.0 == lpn),
                    || format!("page {} from slot {} at {now}", lpn.0, from.0),
                );
                let current = self.current.get(&lpn.0) == Some(&from);
                self.check("the buffer writes back no page that is elsewhere", current, || {
                    format!("page {} from slot {} at {now}", lpn.0, from.0)
                });
                self.contents.insert(ppn.0, held.unwrap_or((lpn, INITIAL)));
                return;
            }
            Origin::WriteBuffer { from } => {
                let held = self.contents.get(&from.0).copied();
                let waits = self.unwritten.remove(&from.0) == Some(lpn);
                self.check(
                    "the write buffer writes back what it holds, once",
                    waits && held.is_some_and(|held| held.0 == lpn),
                    || format!("page {} from slot {} at {now}", lpn.0, from.0),
                );
                held.map_or(INITIAL, |held| held.1)
            }
            Origin::Replica { of } => {
                let (owner, version) = self.contents.get(&of.0).copied().unwrap_or((lpn, INITIAL));
                self.check("a replica is a copy of its page", owner == lpn, || {
                    format!("page {} at {now}", lpn.0)
                });
                self.contents.insert(ppn.0, (lpn, version));
                return;
            }
        };
        if let Origin::Host(slot) = origin {
            self.takes_effect(slot, lpn);
        }
        self.contents.insert(ppn.0, (lpn, version));
        self.becomes_current(lpn, ppn);
    }

    fn pages_padded(&mut self, now: Ns, first: Ppn, count: u32) {
        let (block, page) = self.block_and_page(first);
        let expected = self.next_page.insert(block, page + count);
        self.check(
            "pages of a block are programmed in order, once between erases",
            expected.is_none_or(|next| next == page),
            || format!("page {page} of block {block} left empty at {now}, expected {expected:?}"),
        );
    }

    fn page_buffered(&mut self, now: Ns, lpn: Lpn, from: Ppn, to: Ppn) {
        let (owner, version) = self.contents.get(&from.0).copied().unwrap_or((lpn, INITIAL));
        let current = self.current.get(&lpn.0).copied();
        let is_there = !self.discarded.contains(&lpn.0);
        let valid = is_there && owner == lpn && current.is_none_or(|current| current == from);
        self.check("collection moves only valid pages", valid, || {
            format!("page {} from {} to the buffer at {now}, current {current:?}", lpn.0, from.0)
        });
        let free = self.contents.insert(to.0, (lpn, version)).is_none();
        self.check("a slot of the buffer holds one page", free, || format!("slot {} at {now}", to.0));
        self.becomes_current(lpn, to);
    }

    fn page_absorbed(&mut self, now: Ns, slot: Slot, lpn: Lpn, at: Ppn) {
        let held = self.contents.get(&at.0).map(|held| held.0);
        self.check("the buffer absorbs writes of the pages that it holds", held == Some(lpn), || {
            format!("page {} at {now}, the slot holds {held:?}", lpn.0)
        });
        let version = self.slot(slot).as_ref().map_or(INITIAL, |in_flight| in_flight.sequence + 1);
        self.takes_effect(slot, lpn);
        self.contents.insert(at.0, (lpn, version));
    }

    fn page_discarded(&mut self, _now: Ns, slot: Slot, lpn: Lpn) {
        self.takes_effect(slot, lpn);
        if let Some(old) = self.current.remove(&lpn.0) {
            let block = self.block_and_page(old).0;
            *self.live_pages.entry(block).or_default() -= 1;
        }
        self.discarded.insert(lpn.0);
        self.superseded.remove(&lpn.0);
        // Which of them goes first matters not: the order of the map cannot reach a result.
        self.unwritten.retain(|_, held| *held != lpn);
        // Reads under way may return what was there, or zeros.
        for in_flight in self.slots.iter_mut().flatten() {
            let page = u64::from(lpn.0).checked_sub(in_flight.first_page);
            if let Some(floor) = page.and_then(|page| in_flight.floors.get_mut(page as usize)) {
                *floor = None;
            }
        }
    }

    fn page_cached(&mut self, now: Ns, slot: Slot, lpn: Lpn, at: Ppn) {
        self.discarded.remove(&lpn.0);
        let kept = self.unwritten.insert(at.0, lpn).is_none_or(|held| held == lpn);
        self.check("the write buffer keeps a page until it is programmed", kept, || {
            format!("page {} into slot {} at {now}", lpn.0, at.0)
        });
        let version = self.slot(slot).as_ref().map_or(INITIAL, |in_flight| in_flight.sequence + 1);
        self.takes_effect(slot, lpn);
        self.contents.insert(at.0, (lpn, version));
    }

    fn page_read_ahead(&mut self, now: Ns, lpn: Lpn, from: Ppn, to: Ppn) {
        self.check_programmed(now, lpn, from);
        let (owner, version) = self.contents.get(&from.0).copied().unwrap_or((lpn, INITIAL));
        self.check("a physical page holds the logical page read from it", owner == lpn, || {
            format!("page {} read ahead at {} which holds page {} at {now}", lpn.0, from.0, owner.0)
        });
        self.contents.insert(to.0, (lpn, version));
    }

    fn page_replaced(&mut self, now: Ns, lpn: Lpn, at: Ppn) {
        let held = self.contents.remove(&at.0).map(|held| held.0);
        let elsewhere = self.current.get(&lpn.0) != Some(&at);
        self.check(
            "the buffer forgets what is in flash, or discarded",
            held == Some(lpn) && elsewhere,
            || format!("page {} in slot {} at {now}, which holds {held:?}", lpn.0, at.0),
        );
    }

    fn write_back_end(&mut self, now: Ns, lpn: Lpn, from: Ppn, to: Ppn, current: bool) {
        let is_current = self.current.get(&lpn.0) == Some(&from);
        self.check("a page has exactly one mapping, buffered or not", is_current == current, || {
            format!("page {} written back at {now}: current {is_current}, said to be {current}", lpn.0)
        });
        self.contents.remove(&from.0);
        if is_current {
            self.becomes_current(lpn, to);
        }
    }

    fn erase_start(&mut self, now: Ns, block: u32) {
        let live = self.live_pages.get(&block).copied().unwrap_or(0);
        self.check("an erase starts only when no page of the block is valid", live == 0, || {
            format!("block {block} with {live} valid pages at {now}")
        });
    }

    fn power_cut(&mut self, _now: Ns, _buffered: &[(Ppn, Lpn)]) {
        self.power_lost = true;
    }

    fn block_erase(&mut self, now: Ns, block: u32) {
        let live = self.live_pages.get(&block).copied().unwrap_or(0);
        self.check("a block is erased only when none of its pages is valid", live == 0, || {
            format!("block {block} with {live} valid pages at {now}")
        });
        self.next_page.insert(block, 0);
        let pages = self.geometry.expect("the run was started").pages_per_block;
        for page in 0..pages {
            self.contents.remove(&(block * pages + page));
        }
    }

    fn channel_busy(&mut self, channel: u32, executor: u32, from: Ns, to: Ns, _work: Work) {
        self.transferred[executor as usize] = to;
        let free = self.channel_free[channel as usize];
        self.check("a channel carries one transfer at a time", from >= free && to >= from, || {
            format!("channel {channel} from {from}, busy until {free}")
        });
        self.channel_free[channel as usize] = to;
    }

    fn array_busy(&mut self, executor: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, work: Work) {
        // Only reads of the host come between the parts of what was suspended.
        if work != Work::Host {
            self.suspended[executor as usize] = false;
        }
        let free = self.array_free[executor as usize];
        self.check("a die runs one array operation at a time", from >= free && to >= from, || {
            format!("executor {executor}: {what:?} from {from}, busy until {free}")
        });
        let transferred = self.transferred[executor as usize];
        let reads = what == ArrayOperation::Read;
        self.check(
            "registers are idle when a program or an erase starts",
            reads || transferred <= from,
            || format!("executor {executor}: {what:?} from {from}, transfer until {transferred}"),
        );
        let most = self.geometry.expect("the run was started").planes_per_die;
        self.check("an operation spans at most the planes of a die", (1..=most).contains(&planes), || {
            format!("{planes} planes on executor {executor}")
        });
        self.array_free[executor as usize] = to;
    }

    fn array_suspended(&mut self, now: Ns, executor: u32, rest: Ns) {
        let until = self.array_free[executor as usize];
        self.check("only what runs is suspended", until >= now && until - now == rest, || {
            format!("executor {executor} at {now}, busy until {until}, {rest} left")
        });
        self.array_free[executor as usize] = now;
        self.suspended[executor as usize] = true;
    }

    fn operation_start(&mut self, now: Ns, executor: u32, _planes: u32) {
        let busy = std::mem::replace(&mut self.operating[executor as usize], true);
        self.check("an executor runs one operation at a time", !busy, || {
            format!("executor {executor} at {now}")
        });
    }

    fn operation_end(&mut self, now: Ns, executor: u32, _planes: u32) {
        let busy = std::mem::replace(&mut self.operating[executor as usize], false);
        self.check("an operation that ends has begun", busy, || format!("executor {executor} at {now}"));
        if !self.suspended[executor as usize] {
            self.programming[executor as usize].clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::Lsn;
    use planewise_model::location::PageRange;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    fn started() -> Invariants {
        let mut invariants = Invariants::new();
        invariants.start(&GEOMETRY, 1);
        invariants
    }

    fn request(sequence: u64, direction: Direction) -> QueuedRequest {
        let request = Request::new(Ns::ZERO, Lsn(0), 8, direction);
        QueuedRequest::new(Ns::ZERO, sequence, request, PageRange { first: 0, count: 1 }, false)
    }

    fn completion(sequence: u64, direction: Direction, issued: u64, completed: u64) -> Completion {
        Completion {
            sequence,
            request: Request::new(Ns::ZERO, Lsn(0), 8, direction),
            entered: Ns::ZERO,
            released: Ns::ZERO,
            issued: Ns(issued),
            completed: Ns(completed),
            conflict: false,
            die_wait: Ns::ZERO,
            overtakes: false,
            channel_wait: Ns::ZERO,
        }
    }

    fn broken(invariants: &Invariants, text: &str) {
        let error = invariants.report().unwrap_err();
        assert!(error.contains(text), "{error}");
    }

    /// Writes page 0 at physical page 0, then reads it from `from`.
    fn write_then_read(from: Ppn) -> Invariants {
        let mut invariants = started();
        let (write, read) = (request(0, Direction::Write), request(1, Direction::Read));
        invariants.enter(Ns(0), Slot(0), &write);
        invariants.enter(Ns(0), Slot(1), &read);
        invariants.issue(Ns(0), Slot(0), &write);
        invariants.page_program(Ns(0), Origin::Host(Slot(0)), Lpn(0), Ppn(0));
        invariants.complete(Slot(0), &completion(0, Direction::Write, 0, 10));
        invariants.issue(Ns(20), Slot(1), &read);
        invariants.page_read(Ns(20), Slot(1), Lpn(0), from, false);
        invariants.complete(Slot(1), &completion(1, Direction::Read, 20, 30));
        invariants
    }

    #[test]
    fn a_read_of_the_version_written_passes_and_of_an_older_one_does_not() {
        assert!(write_then_read(Ppn(0)).report().is_ok());
        broken(&write_then_read(Ppn(5)), "last version written");
    }

    #[test]
    fn lost_and_doubled_requests_are_found() {
        let mut lost = started();
        lost.enter(Ns(0), Slot(0), &request(0, Direction::Read));
        broken(&lost, "never completed");
        let mut doubled = write_then_read(Ppn(0));
        doubled.complete(Slot(1), &completion(1, Direction::Read, 20, 30));
        broken(&doubled, "completes once");
    }

    #[test]
    fn programming_twice_out_of_order_or_erasing_valid_data_is_found() {
        let mut twice = write_then_read(Ppn(0));
        twice.page_program(Ns(40), Origin::Collection { from: Ppn(0) }, Lpn(0), Ppn(0));
        broken(&twice, "programmed in order");
        let mut erased = write_then_read(Ppn(0));
        erased.block_erase(Ns(40), 0);
        broken(&erased, "none of its pages is valid");
        let mut stale = write_then_read(Ppn(0));
        stale.page_program(Ns(40), Origin::Collection { from: Ppn(2) }, Lpn(0), Ppn(4));
        broken(&stale, "only valid pages");
    }

    #[test]
    fn overlapping_transfers_and_operations_are_found() {
        let mut channel = started();
        channel.channel_busy(0, 0, Ns(0), Ns(10), Work::Host);
        channel.channel_busy(0, 0, Ns(9), Ns(19), Work::Host);
        broken(&channel, "one transfer at a time");
        let mut array = started();
        array.array_busy(0, Ns(0), Ns(10), ArrayOperation::Read, 1, Work::Host);
        array.array_busy(0, Ns(9), Ns(19), ArrayOperation::Read, 1, Work::Host);
        broken(&array, "one array operation");
        let mut register = started();
        register.channel_busy(0, 0, Ns(0), Ns(10), Work::Host);
        register.array_busy(0, Ns(9), Ns(19), ArrayOperation::Program, 1, Work::Host);
        broken(&register, "registers are idle");
        let mut operation = started();
        operation.operation_start(Ns(0), 0, 1);
        operation.operation_start(Ns(0), 0, 1);
        broken(&operation, "one operation at a time");
    }

    #[test]
    fn a_read_of_a_page_whose_program_is_suspended_is_found() {
        let suspended = |page: u32| {
            let mut invariants = write_then_read(Ppn(0));
            invariants.operation_start(Ns(30), 0, 1);
            invariants.operation_end(Ns(40), 0, 1);
            invariants.operation_start(Ns(40), 0, 1);
            invariants.page_program(Ns(40), Origin::Collection { from: Ppn(0) }, Lpn(0), Ppn(4));
            invariants.array_busy(0, Ns(40), Ns(60), ArrayOperation::Program, 1, Work::Collection);
            invariants.array_suspended(Ns(50), 0, Ns(10));
            invariants.operation_end(Ns(50), 0, 1);
            let read = request(2, Direction::Read);
            invariants.enter(Ns(50), Slot(0), &read);
            invariants.issue(Ns(50), Slot(0), &read);
            invariants.page_read(Ns(50), Slot(0), Lpn(0), Ppn(page), false);
            let read = Completion { entered: Ns(50), ..completion(2, Direction::Read, 50, 55) };
            invariants.complete(Slot(0), &read);
            invariants
        };
        assert!(suspended(0).report().is_ok(), "{:?}", suspended(0).report());
        broken(&suspended(4), "once its program is through");
    }
}
