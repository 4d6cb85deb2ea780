//! sysbench's OLTP test (version 0.4) on an InnoDB-like database, as the block device sees it.
//!
//! Threads run transactions: each statement descends the B-tree to the pages of its rows, and pages that are not in the buffer pool
//! are read, one after another. A transaction that changed rows ends with its redo log on the device: one thread writes what all have
//! logged, the others wait for it (group commit). A page cleaner writes dirty pages in batches, each first to the doublewrite
//! buffer, then to its place. fsync commits the file system's journal, because the file's time of change did; with flushes that flushes the
//! device's cache, and where there is no journal the thread flushes it itself.

mod cleaner;
mod pool;
mod table;

use super::files::{File, lay_out};
use super::journal::Journal;
use super::{Parameters, Wrong};
use crate::values::percent;
use crate::{Group, Io, Step, Workload};
use cleaner::Cleaner;
use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Operation, Request};
use pool::{Found, Page, Pool};
use rand_distr::Zipf;
use table::{Rows, Tree};

/// What a transaction does.
struct Mix {
    point_selects: u64,
    /// Simple, sum, order and distinct ranges: the same to the device.
    ranges: u64,
    range_rows: u64,
    /// Updates of the indexed and the other column, and a deletion with an insertion of the same row.
    changes: u64,
    /// Redo log of a transaction that changes rows, bytes.
    redo_bytes: u64,
}

struct Oltp {
    groups: Vec<Group>,
    mix: Mix,
    tree: Tree,
    rows: Rows,
    random: Generator,
    pool: Pool,
    page_bytes: u64,
    files: Layout,
    redo: Redo,
    cleaner: Cleaner,
    journal: Journal,
    has_journal: bool,
    flushes: bool,
    threads: Vec<Thread>,
    max_requests: u64,
    begun: u64,
    done: u64,
    finished: u32,
    woken: Vec<u32>,
}

/// Where things are.
struct Layout {
    table: File,
    redo: File,
    doublewrite: File,
}

/// The redo log: positions count bytes since the beginning, the file is used in a circle.
struct Redo {
    block: u64,
    written: u64,
    /// End of what is on the device.
    durable: u64,
    writer: bool,
}

struct Thread {
    state: State,
    /// Pages to look at, last first, and whether they are changed.
    pages: Vec<(Page, bool)>,
    /// End of its log.
    commit_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    /// Reads this page.
    Reading(Page),
    /// Another thread reads it, or there is no place for it.
    WaitingForPage,
    /// Waits for a write of the log by another thread.
    WaitingForLog,
    /// Writes the log up to a position; what is left of it for another request.
    WritingLog {
        until: u64,
        rest: Option<(u64, u64)>,
    },
    /// Has to write the rest of it.
    LogRest {
        until: u64,
        rest: (u64, u64),
    },
    /// Waits for the journal after that, or for its own flush.
    SyncingLog {
        until: u64,
    },
    /// Has to flush after that.
    LogToFlush {
        until: u64,
    },
    /// Its log, and that of the others, is on the device.
    LogWritten {
        until: u64,
    },
    Done,
}

/// Largest request of the device's page cleaner, and of the log: what one I/O of a database has at most.
const LARGEST_BYTES: u64 = 512 << 10;

pub(super) fn build(of: &Parameters<'_>, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, Wrong> {
    let threads = of.count("threads", 1, 4096)? as u32;
    let is_complex = of.get("mode", |text| match text {
        "simple" => Ok(false),
        "complex" => Ok(true),
        _ => Err("simple, complex".to_owned()),
    })?;
    let page_bytes = of.size_within("page_size", 512, LARGEST_BYTES)?;
    let table_bytes = of.size("table_size")?;
    let leaves = table_bytes / page_bytes;
    if leaves == 0 || leaves > 1 << 28 {
        return Err(("table_size", "from 1 to 268435456 pages".to_owned()));
    }
    let tree = Tree::new(leaves, of.count("rows_per_page", 1, 1 << 20)?, of.count("fanout", 2, 1 << 20)?);
    let frames = of.size("buffer_pool")? / page_bytes;
    if !(64..=1 << 28).contains(&frames) {
        return Err(("buffer_pool", "64 pages or more".to_owned()));
    }
    let redo_bytes = of.size("log_size")?;
    let batch = of.count("flush_batch", 1, 1024)?;
    let journal_bytes = of.journal_size()?;
    // Two blocks, one in use at a time, in the system table space.
    let doublewrite = 2 * batch * page_bytes;
    let sizes = [doublewrite, redo_bytes, tree.pages() * page_bytes];
    let laid =
        lay_out(device_bytes, &sizes, of.size("extent")?, of.number("spread", 0.0, 1.0)?, journal_bytes)
            .map_err(|allowed| ("table_size", allowed))?;
    let block = of.size_within("log_block", 512, LARGEST_BYTES)?;
    let redo_per_transaction = of.size("redo_per_transaction")?;
    if redo_per_transaction > redo_bytes / 16 {
        return Err(("redo_per_transaction", format!("up to a sixteenth of log_size, {}", redo_bytes / 16)));
    }
    let count = |key| of.count(key, 0, 10_000);
    let has_journal = of.switch("journal")?;
    let flushes = of.switch("flushes")?;
    let mix = if is_complex {
        Mix {
            point_selects: count("point_selects")?,
            ranges: count("simple_ranges")?
                + count("sum_ranges")?
                + count("order_ranges")?
                + count("distinct_ranges")?,
            range_rows: of.count("range_size", 1, 1 << 30)?,
            changes: count("index_updates")? + count("non_index_updates")? + count("deletes_and_inserts")?,
            redo_bytes: redo_per_transaction,
        }
    } else {
        Mix { point_selects: 1, ranges: 0, range_rows: 1, changes: 0, redo_bytes: 0 }
    };
    let [doublewrite, redo, table] = <[File; 3]>::try_from(laid.files).expect("three files were asked for");
    let group = |name: &str, processes, background| Group { name: name.to_owned(), processes, background };
    let mut groups = vec![group("threads", threads, false)];
    if is_complex {
        groups.push(group("page cleaner", 1, true));
        if has_journal {
            groups.push(group("jbd2", 1, true));
        }
    }
    let thread = |_| Thread { state: State::Idle, pages: Vec::new(), commit_at: 0 };
    let dirty_most = of.get("dirty_pages_max", percent)?;
    Ok(Box::new(Oltp {
        groups,
        rows: rows(of, &tree)?,
        pool: Pool::new(tree.pages() as u32, frames as u32),
        cleaner: Cleaner::new(batch as usize, (frames as f64 * dirty_most / 100.0) as u32, redo_bytes),
        mix,
        tree,
        random: generator(seed, "sysbench oltp"),
        page_bytes,
        files: Layout { table, redo, doublewrite },
        redo: Redo { block, written: 0, durable: 0, writer: false },
        journal: Journal::new(laid.journal_start, journal_bytes, flushes),
        has_journal,
        flushes,
        threads: (0..threads).map(thread).collect(),
        max_requests: of.count("max_requests", 1, u64::MAX >> 16)?,
        begun: 0,
        done: 0,
        finished: 0,
        woken: Vec::new(),
    }))
}

fn rows(of: &Parameters<'_>, tree: &Tree) -> Result<Rows, Wrong> {
    let iterations = of.count("dist_iter", 1, 1000)? as u32;
    let (special, queries) = (of.get("dist_pct", percent)?, of.get("dist_res", percent)?);
    of.get("dist_type", |text| match text {
        "uniform" => Ok(Rows::Uniform),
        "gaussian" => Ok(Rows::Gaussian(iterations)),
        "special" => Ok(Rows::Special { iterations, rows: special, queries }),
        _ => {
            let theta = text.strip_prefix("zipf:").and_then(|theta| theta.parse::<f64>().ok());
            let zipf = theta
                .filter(|theta| (0.01..=10.0).contains(theta))
                .and_then(|theta| Zipf::new(tree.rows() as f64, theta).ok());
            zipf.map(Rows::Zipf).ok_or_else(|| "uniform, gaussian, special, zipf:THETA".to_owned())
        }
    })
}

impl Oltp {
    fn cleaner_process(&self) -> u32 {
        self.threads.len() as u32
    }

    fn journal_process(&self) -> u32 {
        self.threads.len() as u32 + 1
    }

    /// Whether no transaction will come any more.
    fn is_over(&self) -> bool {
        self.finished as usize == self.threads.len()
    }

    /// A process waits for its file's time of change to be committed.
    fn sync(&mut self, process: u32) {
        self.journal.request(process, 1);
        self.woken.push(self.journal_process());
    }

    /// The pages of the next transaction, in the order of its statements.
    fn begin(&mut self, thread: usize) {
        let pages = &mut self.threads[thread].pages;
        let count = self.tree.rows();
        for _ in 0..self.mix.point_selects {
            self.tree.descend(self.rows.next(count, &mut self.random), pages);
        }
        for _ in 0..self.mix.ranges {
            let row = self.rows.next(count, &mut self.random);
            self.tree.descend(row, pages);
            self.tree.further_leaves(row, self.mix.range_rows, pages);
        }
        for _ in 0..self.mix.changes {
            self.tree.descend(self.rows.next(count, &mut self.random), pages);
            if let Some(leaf) = pages.last_mut() {
                leaf.1 = true;
            }
        }
        pages.reverse();
        self.begun += 1;
    }

    /// Looks at the next pages until one has to be waited for. None when the transaction has all of them.
    fn look(&mut self, process: u32) -> Option<Step> {
        let thread = process as usize;
        while let Some(&(page, changes)) = self.threads[thread].pages.last() {
            match self.pool.find(page) {
                Found::Here(frame) => {
                    if changes {
                        self.pool.change(frame, self.redo.written);
                    }
                    self.threads[thread].pages.pop();
                }
                Found::ToRead(_) => {
                    self.threads[thread].state = State::Reading(page);
                    let start = self.files.table.at(u64::from(page) * self.page_bytes);
                    return Some(io(start, self.page_bytes, Direction::Read, true));
                }
                found @ (Found::Reading | Found::NoPlace) => {
                    self.threads[thread].state = State::WaitingForPage;
                    if found == Found::NoPlace {
                        self.cleaner.wants_places = true;
                        self.woken.push(self.cleaner_process());
                    }
                    return Some(Step::Wait);
                }
            }
        }
        None
    }

    /// Everything that waits for a page, or for room in the log, looks again.
    fn wake_waiting(&mut self) {
        for (index, thread) in self.threads.iter_mut().enumerate().rev() {
            if thread.state == State::WaitingForPage {
                thread.state = State::Running;
                self.woken.push(index as u32);
            }
        }
    }

    /// Writes the log for everybody, or waits for the thread that does.
    fn commit(&mut self, process: u32) -> Step {
        let thread = &mut self.threads[process as usize];
        if self.redo.durable >= thread.commit_at {
            return self.end(process);
        }
        if self.redo.writer {
            thread.state = State::WaitingForLog;
            return Step::Wait;
        }
        self.redo.writer = true;
        let until = self.redo.written;
        // The last block was not full: it is written again.
        let from = self.redo.durable / self.redo.block * self.redo.block;
        let to = until.div_ceil(self.redo.block) * self.redo.block;
        self.write_log(process, until, from, to)
    }

    fn write_log(&mut self, process: u32, until: u64, from: u64, to: u64) -> Step {
        let capacity = self.files.redo.size / self.redo.block * self.redo.block;
        let end_of_file = (from / capacity + 1) * capacity;
        let end = to.min(end_of_file).min(from + LARGEST_BYTES);
        let rest = (end < to).then_some((end, to));
        self.threads[process as usize].state = State::WritingLog { until, rest };
        io(self.files.redo.at(from % capacity), end - from, Direction::Write, true)
    }

    /// The log is on the device up to a position.
    fn log_written(&mut self, until: u64) {
        self.redo.durable = until;
        self.redo.writer = false;
        for (index, thread) in self.threads.iter().enumerate().rev() {
            if thread.state == State::WaitingForLog {
                self.woken.push(index as u32);
            }
        }
    }

    fn end(&mut self, process: u32) -> Step {
        self.threads[process as usize].state = State::Idle;
        self.done += 1;
        self.next_of_thread(process)
    }

    fn next_of_thread(&mut self, process: u32) -> Step {
        let thread = process as usize;
        loop {
            match self.threads[thread].state {
                State::Idle if self.begun == self.max_requests => {
                    self.threads[thread].state = State::Done;
                    self.finished += 1;
                    if self.is_over() && self.groups.len() > 1 {
                        self.woken.push(self.cleaner_process());
                    }
                    return Step::Done;
                }
                State::Idle => {
                    self.begin(thread);
                    self.threads[thread].state = State::Running;
                }
                State::Running => {
                    if self.cleaner.log_is_full(&mut self.pool, self.redo.written) {
                        // Changes would overwrite the log of pages that are not on the device yet.
                        self.threads[thread].state = State::WaitingForPage;
                        self.woken.push(self.cleaner_process());
                        return Step::Wait;
                    }
                    if let Some(step) = self.look(process) {
                        return step;
                    }
                    if self.mix.changes == 0 {
                        self.threads[thread].state = State::Idle;
                        self.done += 1;
                        continue;
                    }
                    self.redo.written += self.mix.redo_bytes;
                    self.threads[thread].commit_at = self.redo.written;
                    if self.cleaner.is_wanted(&mut self.pool, self.redo.written) {
                        self.woken.push(self.cleaner_process());
                    }
                    return self.commit(process);
                }
                State::WaitingForLog => return self.commit(process),
                State::LogRest { until, rest: (from, to) } => {
                    return self.write_log(process, until, from, to);
                }
                State::LogToFlush { until } => {
                    self.threads[thread].state = State::SyncingLog { until };
                    return Step::Submit(Io::flush(Operation::Flush));
                }
                State::LogWritten { until } => {
                    self.log_written(until);
                    return self.end(process);
                }
                State::Done => return Step::Done,
                State::Reading(_)
                | State::WaitingForPage
                | State::WritingLog { .. }
                | State::SyncingLog { .. } => {
                    return Step::Wait;
                }
            }
        }
    }
}

impl Workload for Oltp {
    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn next(&mut self, process: u32, _now: Ns) -> Step {
        if process < self.cleaner_process() {
            self.next_of_thread(process)
        } else if process == self.cleaner_process() {
            self.next_of_cleaner()
        } else if self.is_over() && self.cleaner.is_done() && self.journal.is_idle() {
            Step::Done
        } else {
            self.journal.next(&mut false)
        }
    }

    fn completed(&mut self, process: u32, _request: &Request, _now: Ns) {
        if process == self.cleaner_process() {
            return self.cleaner.completed();
        }
        if process > self.cleaner_process() {
            let before = self.woken.len();
            self.journal.completed(&mut self.woken);
            for index in before..self.woken.len() {
                self.synced(self.woken[index]);
            }
            return;
        }
        let thread = &mut self.threads[process as usize];
        match thread.state {
            State::Reading(page) => {
                thread.state = State::Running;
                self.pool.read_done(page);
                self.wake_waiting();
            }
            State::WritingLog { until, rest: Some(rest) } => thread.state = State::LogRest { until, rest },
            State::WritingLog { until, rest: None } if self.has_journal => {
                thread.state = State::SyncingLog { until };
                self.sync(process);
            }
            State::WritingLog { until, rest: None } if self.flushes => {
                thread.state = State::LogToFlush { until };
            }
            State::WritingLog { until, rest: None } | State::SyncingLog { until } => {
                thread.state = State::LogWritten { until };
            }
            other => debug_assert!(false, "a thread in state {other:?} has nothing under way"),
        }
    }

    fn take_woken(&mut self) -> Option<u32> {
        self.woken.pop()
    }

    fn operations(&self) -> Option<(&'static str, u64)> {
        Some(("transactions", self.done))
    }
}

impl Oltp {
    /// What a process waited for is committed.
    fn synced(&mut self, process: u32) {
        if process == self.cleaner_process() {
            self.cleaner.synced();
        } else if let State::SyncingLog { until } = self.threads[process as usize].state {
            self.threads[process as usize].state = State::LogWritten { until };
        }
    }
}

/// A request of bytes that lie together.
fn io(start: u64, bytes: u64, direction: Direction, synchronous: bool) -> Step {
    Step::Submit(Io::transfer(Lsn(start / 512), (bytes / 512) as u32, direction, synchronous))
}
