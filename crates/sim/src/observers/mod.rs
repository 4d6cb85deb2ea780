//! Observers: they watch every edge and change nothing.
//!
//! The engine is generic over one [`Observer`]; a pair of observers is an observer. Hooks that a type leaves alone compile to nothing.

mod arrival_order;
pub mod backlog;
mod busy;
pub mod collections;
pub mod groups;
pub mod invariants;
pub mod metrics;
mod processes;
pub mod recovery;
pub mod timeline;

use crate::host::{QueuedRequest, Slot};
use planewise_model::{Geometry, Lpn, Ns, Ppn, Request};

/// Why a page is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The host wrote it: the slot of the request.
    Host(Slot),
    /// Collection moves it from another page of the same chip.
    Collection {
        /// Where it was.
        from: Ppn,
    },
    /// It returns from the valid page buffer, which keeps it until [`Observer::write_back_end`].
    Buffer {
        /// The slot of the buffer, as a page number behind the last of the flash.
        from: Ppn,
    },
    /// The host wrote it into the write buffer some time ago.
    WriteBuffer {
        /// The slot of the buffer, as a page number behind the slots of the valid page buffer.
        from: Ppn,
    },
    /// A copy that leaves the page where it is.
    Replica {
        /// The page itself.
        of: Ppn,
    },
}

/// For whom a channel or an array works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A request of the host.
    Host,
    /// The collection of the chip's own block.
    Collection,
    /// A page that comes from elsewhere: out of the valid page buffer, or a replica.
    Background,
}

/// How a host request met garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// It needs a chip that is being collected.
    Collection,
    /// It needs a chip to which a buffered page or a replica is being written.
    Background,
    /// It needs a chip that a traditional collection, begun when the last one there began, would still hold.
    Released,
}

/// Why a collection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The plane runs out of free pages.
    Space,
    /// Idle time: nothing forced it.
    Ahead,
    /// Wear levelling moves cold data.
    Wear,
    /// The host is at rest: the oldest block of a cache with one bit a cell is emptied.
    Fold,
}

/// A collection that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Its plane.
    pub plane: u32,
    /// Why.
    pub cause: Cause,
    /// When it began.
    pub began: Ns,
    /// Valid pages moved inside the plane.
    pub moved: u32,
    /// Valid pages moved to the valid page buffer.
    pub buffered: u32,
}

/// What an array is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayOperation {
    /// Cells to register.
    Read,
    /// Register to cells.
    Program,
    /// A block.
    Erase,
    /// Cells to register and back without the channel.
    Copyback,
}

/// A completed request with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the request in the run, from 0, in order of submission.
    pub sequence: u64,
    /// The request as submitted.
    pub request: Request,
    /// When it entered the I/O queue: later than its arrival when the queue was full.
    pub entered: Ns,
    /// When no earlier unfinished request that overlaps it was left: its entry, where there was none.
    pub released: Ns,
    /// When it was issued to the device.
    pub issued: Ns,
    /// When it completed.
    pub completed: Ns,
    /// Whether it conflicted with a request in the queue when it entered.
    pub conflict: bool,
    /// Whether it is a read that was issued while an earlier write still waited.
    pub overtakes: bool,
    /// Longest wait of one of its transactions for a die, ns.
    pub die_wait: Ns,
    /// Longest wait of one of its transactions for a channel, ns.
    pub channel_wait: Ns,
}

/// Watches a simulation.
pub trait Observer {
    /// The run begins.
    fn start(&mut self, _geometry: &Geometry, _executors: u32) {}
    /// Whether the observer wants to be told what the device holds before the first request, page by page.
    fn wants_contents(&self) -> bool {
        false
    }
    /// A page that the device holds before the first request.
    fn holds(&mut self, _lpn: Lpn, _ppn: Ppn) {}
    /// A request entered the I/O queue.
    fn enter(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}
    /// A request was merged into the waiting one in `slot`, which grew.
    fn merge(&mut self, _now: Ns, _slot: Slot, _sequence: u64, _request: &Request) {}
    /// A request was issued to the device.
    fn issue(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}
    /// The waiting request in `other`, with all that was merged into it, became part of the one in `into`.
    fn join(&mut self, _now: Ns, _into: Slot, _other: Slot) {}

    /// A request completed. `slot` is free from now on; requests merged into another complete with it, in its slot.
    fn complete(&mut self, _slot: Slot, _completion: &Completion) {}
    /// A page is read for a host request: by the array, or from a buffer of the controller when `ppn` is behind the last page of the flash (it is
    /// `u32::MAX` for pages that a primed device holds nowhere of its own); `modify` when it is the rest of a page that the host writes in part.
    fn page_read(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, _ppn: Ppn, _modify: bool) {}
    /// The rest of a page of the write buffer, of which the host wrote a part, is read by the array.
    fn rest_read(&mut self, _now: Ns, _lpn: Lpn, _ppn: Ppn) {}
    /// The program of a page starts. It is mapped from now on, except what comes from the buffer, and replicas.
    fn page_program(&mut self, _now: Ns, _origin: Origin, _lpn: Lpn, _ppn: Ppn) {}
    /// A program left so many pages from `first` on without data.
    fn pages_padded(&mut self, _now: Ns, _first: Ppn, _count: u32) {}
    /// A program of parity, of so many pages, goes with the one before it.
    fn parity_programmed(&mut self, _now: Ns, _pages: u32) {}
    /// A collection moved a page into the valid page buffer, at page number `to` behind the last page of the flash; its place in flash is stale.
    fn page_buffered(&mut self, _now: Ns, _lpn: Lpn, _from: Ppn, _to: Ppn) {}
    /// The valid page buffer took a page of a host write in place of the one it held.
    fn page_absorbed(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, _at: Ppn) {}
    /// The valid page buffer forgot a page: the host has written it to flash, past the buffer, or discarded it.
    fn page_replaced(&mut self, _now: Ns, _lpn: Lpn, _at: Ppn) {}
    /// The write buffer took a page of a host write, into the slot with this page number: that is where the host finds it now.
    fn page_cached(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, _at: Ppn) {}
    /// A discard took effect on a page: it is nowhere from now on, and reads as zeros.
    fn page_discarded(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn) {}
    /// A page is read ahead, into the slot of the read buffer with page number `to`.
    fn page_read_ahead(&mut self, _now: Ns, _lpn: Lpn, _from: Ppn, _to: Ppn) {}
    /// The program of a page from the valid page buffer ended. It is mapped to `to` now if it is `current`: not overwritten by the host meanwhile.
    fn write_back_end(&mut self, _now: Ns, _lpn: Lpn, _from: Ppn, _to: Ppn, _current: bool) {}
    /// A read of the host goes to a replica.
    fn replica_read(&mut self, _now: Ns, _lpn: Lpn) {}
    /// A replica was dropped; `written` when the host wrote its page.
    fn replica_dropped(&mut self, _now: Ns, _lpn: Lpn, _written: bool) {}
    /// The erase of a block (numbered plane-major over the device) starts.
    fn erase_start(&mut self, _now: Ns, _block: u32) {}
    /// A block (numbered plane-major over the device) is erased.
    fn block_erase(&mut self, _now: Ns, _block: u32) {}
    /// A channel is taken by an executor for a time.
    fn channel_busy(&mut self, _channel: u32, _executor: u32, _from: Ns, _to: Ns, _work: Work) {}
    /// An array operation of a number of planes runs on an executor. A program or an erase that was suspended comes again for its rest.
    fn array_busy(
        &mut self,
        _executor: u32,
        _from: Ns,
        _to: Ns,
        _what: ArrayOperation,
        _planes: u32,
        _work: Work,
    ) {
    }
    /// The array operation announced last on an executor is suspended: it ends now, `rest` before it would have.
    fn array_suspended(&mut self, _now: Ns, _executor: u32, _rest: Ns) {}
    /// An executor begins an operation: it is busy until the matching [`Observer::operation_end`].
    fn operation_start(&mut self, _now: Ns, _executor: u32, _planes: u32) {}
    /// An executor ends an operation.
    fn operation_end(&mut self, _now: Ns, _executor: u32, _planes: u32) {}
    /// A collection of one victim began on an executor.
    fn collection_start(&mut self, _now: Ns, _executor: u32, _cause: Cause) {}
    /// A collection of one victim ended.
    fn collection_end(&mut self, _now: Ns, _executor: u32, _what: &Collected) {}
    /// A host request met garbage collection, for the first time or again.
    fn meets(&mut self, _now: Ns, _slot: Slot, _meeting: Meeting) {}
    /// Power is lost. `buffered` is what the capacitor flushes: slots of the valid page buffer, as page numbers behind the last page of the
    /// flash, with their logical pages.
    fn power_cut(&mut self, _now: Ns, _buffered: &[(Ppn, Lpn)]) {}
}

/// Watches nothing.
impl Observer for () {}

/// Writes the same list of hooks once for pairs and once for optional observers.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        impl<A: Observer, B: Observer> Observer for (A, B) {
            fn wants_contents(&self) -> bool {
                self.0.wants_contents() || self.1.wants_contents()
            }
            $(#[inline] fn $name(&mut self, $($argument: $type),*) {
                self.0.$name($($argument),*);
                self.1.$name($($argument),*);
            })*
        }

        impl<O: Observer> Observer for Option<O> {
            fn wants_contents(&self) -> bool {
                self.as_ref().is_some_and(O::wants_contents)
            }
            $(#[inline] fn $name(&mut self, $($argument: $type),*) {
                if let Some(inner) = self {
                    inner.$name($($argument),*);
                }
            })*
        }
    };
}

forward! {
    fn start(geometry: &Geometry, executors: u32);
    fn holds(lpn: Lpn, ppn: Ppn);
    fn enter(now: Ns, slot: Slot, request: &QueuedRequest);
    fn merge(now: Ns, slot: Slot, sequence: u64, request: &Request);
    fn join(now: Ns, into: Slot, other: Slot);
    fn issue(now: Ns, slot: Slot, request: &QueuedRequest);
    fn complete(slot: Slot, completion: &Completion);
    fn page_read(now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, modify: bool);
    fn rest_read(now: Ns, lpn: Lpn, ppn: Ppn);
    fn page_program(now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn);
    fn pages_padded(now: Ns, first: Ppn, count: u32);
    fn parity_programmed(now: Ns, pages: u32);
    fn page_buffered(now: Ns, lpn: Lpn, from: Ppn, to: Ppn);
    fn page_absorbed(now: Ns, slot: Slot, lpn: Lpn, at: Ppn);
    fn page_replaced(now: Ns, lpn: Lpn, at: Ppn);
    fn page_cached(now: Ns, slot: Slot, lpn: Lpn, at: Ppn);
    fn page_discarded(now: Ns, slot: Slot, lpn: Lpn);
    fn page_read_ahead(now: Ns, lpn: Lpn, from: Ppn, to: Ppn);
    fn write_back_end(now: Ns, lpn: Lpn, from: Ppn, to: Ppn, current: bool);
    fn replica_read(now: Ns, lpn: Lpn);
    fn replica_dropped(now: Ns, lpn: Lpn, written: bool);
    fn erase_start(now: Ns, block: u32);
    fn block_erase(now: Ns, block: u32);
    fn channel_busy(channel: u32, executor: u32, from: Ns, to: Ns, work: Work);
    fn array_busy(executor: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, work: Work);
    fn array_suspended(now: Ns, executor: u32, rest: Ns);
    fn operation_start(now: Ns, executor: u32, planes: u32);
    fn operation_end(now: Ns, executor: u32, planes: u32);
    fn collection_start(now: Ns, executor: u32, cause: Cause);
    fn collection_end(now: Ns, executor: u32, what: &Collected);
    fn meets(now: Ns, slot: Slot, meeting: Meeting);
    fn power_cut(now: Ns, buffered: &[(Ppn, Lpn)]);
}
