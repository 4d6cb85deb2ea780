//! The controller between host and flash: the link, the processor, and the lists of operations that it works off.
//!
//! A command takes its time in the host and crosses the link, with its data if it writes; then the processor decodes it; then its pages are looked up in the
//! caches, or become transactions. Each transaction joins a list of outstanding operations: its region's, or its executor's where
//! there are no regions. The processor takes the next operation of a list when the list's limit allows, which costs it a look at
//! the entries of that list; then the transaction waits for its executor. When a read has all its pages, its data cross the link.
//!
//! A device without any of this has no front: requests become transactions at once, and complete with the last of them.
//!
//! Nothing here acts by itself: everything joins queues, and [`Device::run_front`] starts what can start at this instant.

use super::transaction::{Kind, List, NIL, Transaction};
use super::unbound::UNBOUND;
use super::{Context, Device};
use crate::cache::Run;
use crate::event::Event;
use crate::host::Slot;
use crate::observers::Observer;
use planewise_model::location::PageRange;
use planewise_model::profile::{Link, Processor, Profile};
use planewise_model::{Direction, Lsn, Ns, Request};
use std::collections::VecDeque;

/// What the link carries.
#[derive(Clone, Copy, Debug)]
enum Carried {
    /// A command, with its data if it writes.
    Command(Slot),
    /// What a read asked for.
    Data(Slot),
}

/// What the processor does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Takes a command in.
    Command(Slot),
    /// Starts a transaction, which is the next of its list.
    Operation(u32),
    /// Starts the reads of a run of pages for the read buffer.
    ReadAhead(Run),
    /// Starts the programs of a run of pages of the write buffer, from its first slot on.
    WriteBack { first: u32, count: u32 },
}

/// A list of outstanding operations.
#[derive(Clone, Copy, Debug)]
struct Operations {
    waiting: List,
    /// Waiting, being started, or under way in the flash.
    outstanding: u32,
    under_way: u32,
}

/// One of a kind, working off a queue.
#[derive(Debug)]
struct Server<T> {
    queue: VecDeque<T>,
    current: Option<T>,
}

impl<T> Server<T> {
    fn new(capacity: usize) -> Server<T> {
        Server { queue: VecDeque::with_capacity(capacity), current: None }
    }
}

pub(super) struct Front {
    /// Whether the device has any part of it.
    pub(super) active: bool,
    link: Option<Link>,
    processor: Option<Processor>,
    /// Pages of a region; none: lists are those of the executors.
    region_pages: Option<u64>,
    under_way_most: u32,
    /// By region, or by executor.
    lists: Vec<Operations>,
    /// By executor: transactions of the host that are in a list, or with the processor, and not yet in line there.
    pub(super) coming: Vec<u32>,
    /// Commands on the link, at the processor, or in line for either, in that order.
    arriving: VecDeque<Slot>,
    /// Commands in the host, which takes the same time for each, and when they are through.
    in_host: VecDeque<(Ns, Slot)>,
    /// The ways of the link: to the device and, apart from that only where it is full duplex, from it.
    carrying: [Server<Carried>; 2],
    working: Server<Task>,
    /// Direction of the last command that the processor took in.
    turned_to: Direction,
    /// Where the data path is emptied before it turns: its direction, and the commands let in and not complete.
    path_direction: Direction,
    taken_in: u32,
    /// Commands that wait until those taken in are complete, because they go the other way or came after such.
    turning: VecDeque<Slot>,
    /// By slot of the I/O queue.
    commands: Vec<(Request, PageRange)>,
    /// Pages of commands that were accepted and are not complete.
    outstanding: u64,
    /// Since when there is none.
    rests_since: Option<Ns>,
}

impl Front {
    pub(super) fn new(profile: &Profile, user_pages: u32, executors: u32, queue_length: u32) -> Front {
        let active = profile.has_controller();
        let region_pages = profile.regions.map(|regions| {
            (u64::from(regions.mib) * (1 << 20)).div_ceil(u64::from(profile.geometry.page_bytes))
        });
        let lists = match region_pages {
            _ if !active => 0,
            Some(pages) => u64::from(user_pages).div_ceil(pages) as usize,
            None => executors as usize,
        };
        let none = Operations { waiting: List::EMPTY, outstanding: 0, under_way: 0 };
        let commands = if active { queue_length as usize } else { 0 };
        let nothing = Request::new(Ns::ZERO, Lsn(0), 0, Direction::Read);
        Front {
            active,
            link: profile.link,
            processor: profile.processor,
            region_pages,
            under_way_most: profile.regions.map_or(u32::MAX, |regions| regions.operations),
            lists: vec![none; lists],
            coming: vec![0; if active { executors as usize } else { 0 }],
            arriving: VecDeque::with_capacity(commands),
            in_host: VecDeque::with_capacity(commands),
            carrying: [Server::new(commands), Server::new(commands)],
            working: Server::new(commands * 4),
            turned_to: Direction::Read,
            path_direction: Direction::Read,
            taken_in: 0,
            turning: VecDeque::with_capacity(commands),
            commands: vec![(nothing, PageRange { first: 0, count: 0 }); commands],
            outstanding: 0,
            rests_since: None,
        }
    }

    /// Pages that the host waits for.
    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Since when there is none; no time while there is one.
    pub(super) fn rests_since(&self) -> Option<Ns> {
        self.rests_since
    }

    /// A command of the host is on its way. Returns how long the device had none before.
    pub(super) fn accept(
        &mut self,
        context: &mut Context<'_, impl Observer>,
        slot: Slot,
        request: &Request,
        pages: PageRange,
    ) -> Ns {
        let rest = self.rests_since.take().map_or(Ns::ZERO, |since| context.now - since);
        self.outstanding += u64::from(pages.count);
        self.commands[slot.index()] = (*request, pages);
        self.arriving.push_back(slot);
        let latency = self.link.map_or(0, |link| link.latency_ns);
        if latency > 0 {
            let through = context.now + Ns(latency);
            if self.in_host.is_empty() {
                context.events.schedule(through, Event::Host);
            }
            self.in_host.push_back((through, slot));
        } else {
            self.reach_link(slot);
        }
        rest
    }

    fn reach_link(&mut self, slot: Slot) {
        if self.link.is_some() {
            self.carrying[0].queue.push_back(Carried::Command(slot));
        } else {
            self.arrive(slot);
        }
    }

    /// A command is at the device: it waits for the processor, or before that for the data path to be empty.
    fn arrive(&mut self, slot: Slot) {
        if self.processor.is_some_and(|processor| processor.drains_to_turn) {
            self.turning.push_back(slot);
        } else {
            self.working.queue.push_back(Task::Command(slot));
        }
    }

    /// Hands the processor the commands that need not wait for those of the other direction.
    fn let_in(&mut self) {
        while let Some(&slot) = self.turning.front() {
            let direction = self.commands[slot.index()].0.direction;
            if self.taken_in > 0 && direction != self.path_direction {
                return;
            }
            self.path_direction = direction;
            self.taken_in += 1;
            self.turning.pop_front();
            self.working.queue.push_back(Task::Command(slot));
        }
    }

    /// The way of the link that data of reads take.
    fn way_back(&self) -> usize {
        usize::from(self.link.is_some_and(|link| link.full_duplex))
    }

    /// What waits for the processor.
    pub(super) fn tasks(&mut self) -> &mut VecDeque<Task> {
        &mut self.working.queue
    }

    /// The command in a slot of the I/O queue.
    pub(super) fn command(&self, slot: Slot) -> &(Request, PageRange) {
        &self.commands[slot.index()]
    }

    /// Commands of the host whose pages have not been looked up yet.
    pub(super) fn arriving(&self) -> impl Iterator<Item = &(Request, PageRange)> {
        self.arriving.iter().map(|slot| self.command(*slot))
    }

    /// The link time of what it carries.
    fn carries(&self, link: &Link, what: Carried) -> Ns {
        let data = |slot: Slot| link.transfer(u64::from(self.commands[slot.index()].0.sectors) * 512);
        match what {
            Carried::Command(slot) if self.commands[slot.index()].0.moves_to_device() => {
                Ns(link.command_ns) + data(slot)
            }
            Carried::Command(_) => Ns(link.command_ns),
            Carried::Data(slot) => data(slot),
        }
    }
}

impl Device {
    /// Starts what the link and the processor can start now, until there is nothing left to start.
    #[inline]
    pub(super) fn run_front<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        if self.front.active {
            self.run_servers(context);
        }
    }

    fn run_servers<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        if self.front.outstanding == 0 {
            self.front.rests_since.get_or_insert(context.now);
            self.note_host_at_rest(context);
        }
        loop {
            self.run_write_buffer(context);
            self.front.let_in();
            self.start_carrying(context);
            if !self.start_working(context) {
                return;
            }
        }
    }

    /// Gives the processor its next task; true when that took no time, and there may be more to start.
    fn start_working<O: Observer>(&mut self, context: &mut Context<'_, O>) -> bool {
        if self.front.working.current.is_some() {
            return false;
        }
        let Some(task) = self.front.working.queue.pop_front() else { return false };
        let time = self.task_time(task);
        if time > Ns::ZERO {
            self.front.working.current = Some(task);
            context.events.schedule(context.now + time, Event::Processor);
            return false;
        }
        self.perform(context, task);
        true
    }

    fn start_carrying<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        let Some(link) = self.front.link else { return };
        for way in 0..2 {
            if self.front.carrying[way].current.is_none()
                && let Some(what) = self.front.carrying[way].queue.pop_front()
            {
                let time = self.front.carries(&link, what);
                self.front.carrying[way].current = Some(what);
                context.events.schedule(context.now + time, Event::Link(way as u32));
            }
        }
    }

    /// A way of the link has carried something over.
    pub(super) fn carried(&mut self, way: u32) {
        match self.front.carrying[way as usize].current.take().expect("the link was at work") {
            Carried::Command(slot) => self.front.arrive(slot),
            Carried::Data(slot) => self.complete(slot),
        }
    }

    /// The command that has been in the host longest is through.
    pub(super) fn through_host<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        while let Some(&(through, slot)) = self.front.in_host.front() {
            if through > context.now {
                context.events.schedule(through, Event::Host);
                return;
            }
            self.front.in_host.pop_front();
            self.front.reach_link(slot);
        }
    }

    fn complete(&mut self, slot: Slot) {
        if self.front.active {
            self.front.outstanding -= u64::from(self.front.command(slot).1.count);
        }
        self.front.taken_in = self.front.taken_in.saturating_sub(1);
        self.finished.push(slot);
    }

    /// The processor is through with a task.
    pub(super) fn worked<O: Observer>(&mut self, context: &mut Context<'_, O>) {
        let task = self.front.working.current.take().expect("the processor was at work");
        self.perform(context, task);
    }

    fn task_time(&self, task: Task) -> Ns {
        let Some(processor) = &self.front.processor else { return Ns::ZERO };
        match task {
            Task::Command(slot) => {
                let turns = self.front.command(slot).0.direction != self.front.turned_to;
                Ns(processor.command_ns + if turns { processor.turn_ns } else { 0 })
            }
            Task::Operation(index) => {
                let Transaction { list, kind, follows, .. } = self.transactions[index];
                if follows {
                    return Ns::ZERO;
                }
                let entries = self.front.lists[list as usize].outstanding.min(processor.scan_entries);
                let update = if kind == Kind::Read { 0 } else { processor.update_ns };
                Ns(processor.operation_ns + update + processor.scan_ns * u64::from(entries))
            }
            Task::ReadAhead(run) => match u64::from(self.reads_of_run_ahead(&run)) {
                0 => Ns::ZERO,
                reads => Ns(processor.operation_ns + processor.run_page_ns * (reads - 1)),
            },
            Task::WriteBack { first, count } => {
                let reads = u64::from(self.reads_of_run(first));
                let run = processor.operation_ns + processor.run_page_ns * u64::from(count - 1);
                Ns(run + processor.update_ns + processor.operation_ns * reads)
            }
        }
    }

    fn perform<O: Observer>(&mut self, context: &mut Context<'_, O>, task: Task) {
        match task {
            Task::Command(slot) => {
                let (request, pages) = self.front.commands[slot.index()];
                self.front.turned_to = request.direction;
                let first = self.front.arriving.pop_front();
                debug_assert_eq!(first, Some(slot), "commands are taken in as they came");
                self.take_in(context, slot, &request, pages);
            }
            Task::Operation(index) => {
                let executor = self.load.executor_of(self.transactions[index].plane);
                self.front.coming[executor as usize] -= 1;
                self.send_to_flash(context, index);
            }
            Task::ReadAhead(run) => self.read_run_ahead(context, &run),
            Task::WriteBack { first, .. } => self.write_run_back(context, first),
        }
    }

    /// Puts a transaction of the host in line: in its list, or at its executor where there is no front.
    #[inline]
    pub(super) fn admit<O: Observer>(&mut self, context: &mut Context<'_, O>, index: u32) {
        if self.front.active {
            self.enter_list(index);
        } else if self.transactions[index].plane == UNBOUND {
            self.wait_for_plane(index, false);
        } else {
            self.send_to_flash(context, index);
        }
    }

    fn enter_list(&mut self, index: u32) {
        let (lpn, plane) = (self.transactions[index].lpn, self.transactions[index].plane);
        let executor = self.load.executor_of(plane);
        self.front.coming[executor as usize] += 1;
        let number = match self.front.region_pages {
            Some(pages) => (u64::from(lpn.0) / pages) as u32,
            None => executor,
        };
        self.transactions[index].list = number;
        let most = self.front.under_way_most;
        let list = &mut self.front.lists[number as usize];
        list.outstanding += 1;
        if list.under_way < most {
            list.under_way += 1;
            self.front.working.queue.push_back(Task::Operation(index));
        } else {
            list.waiting.push_back(&mut self.transactions, index);
        }
    }

    /// A transaction of the host is through: the next of its list can be started.
    pub(super) fn leave_list(&mut self, index: u32) {
        let number = self.transactions[index].list;
        debug_assert_ne!(number, NIL, "it entered a list");
        let list = &mut self.front.lists[number as usize];
        list.outstanding -= 1;
        match list.waiting.pop_front(&self.transactions) {
            Some(next) => self.front.working.queue.push_back(Task::Operation(next)),
            None => list.under_way -= 1,
        }
    }

    /// A page of a request that was waited for is there.
    #[inline]
    pub(super) fn page_done(&mut self, slot: Slot) {
        let remaining = &mut self.progress[slot.index()].remaining;
        *remaining -= 1;
        if *remaining == 0 {
            self.request_done(slot);
        }
    }

    /// All pages of a request have been read or written: it is complete, or its data are still to cross the link.
    #[inline]
    pub(super) fn request_done(&mut self, slot: Slot) {
        let reads =
            self.front.link.is_some() && self.front.commands[slot.index()].0.direction == Direction::Read;
        if reads {
            let way = self.front.way_back();
            self.front.carrying[way].queue.push_back(Carried::Data(slot));
        } else {
            self.complete(slot);
        }
    }
}
