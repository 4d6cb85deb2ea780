//! Observers: they watch every edge and change nothing.
//!
//! The engine is generic over one [`Observer`]; a pair of observers is an observer. Hooks that a type leaves alone compile to nothing.

pub mod invariants;
pub(crate) mod metrics;
pub mod timeline;

use crate::host::{QueuedRequest, Slot};
use planewise_model::{Geometry, Lpn, Ns, Ppn, Request};

/// Why a page is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The host wrote it: the slot of the request.
    Host(Slot),
    /// Collection moves it from another page.
    Collection {
        /// Where it was.
        from: Ppn,
    },
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
    /// When it was issued to the device.
    pub issued: Ns,
    /// When it completed.
    pub completed: Ns,
    /// Whether it conflicted with a request in the queue when it entered.
    pub conflict: bool,
    /// Longest wait of one of its transactions for a die, ns.
    pub die_wait: Ns,
    /// Longest wait of one of its transactions for a channel, ns.
    pub channel_wait: Ns,
}

/// Watches a simulation.
pub trait Observer {
    /// The run begins.
    fn start(&mut self, _geometry: &Geometry, _executors: u32) {}
    /// A request entered the I/O queue.
    fn enter(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest) {}
    /// A request was merged into the waiting one in `slot`, which grew.
    fn merge(&mut self, _now: Ns, _slot: Slot, _sequence: u64, _request: &Request) {}
    /// A request was issued to the device; `overtakes` when it is a read and a write that came before it still waits.
    fn issue(&mut self, _now: Ns, _slot: Slot, _request: &QueuedRequest, _overtakes: bool) {}
    /// A request completed. `slot` is free from now on; requests merged into another complete with it, in its slot.
    fn complete(&mut self, _slot: Slot, _completion: &Completion) {}
    /// The array reads a page for a host request (`ppn` is `u32::MAX` for pages that a primed device holds nowhere of its own); `modify` when it is the rest of a page that the host writes in part.
    fn page_read(&mut self, _now: Ns, _slot: Slot, _lpn: Lpn, _ppn: Ppn, _modify: bool) {}
    /// A page is programmed and mapped.
    fn page_program(&mut self, _now: Ns, _origin: Origin, _lpn: Lpn, _ppn: Ppn) {}
    /// A block (numbered plane-major over the device) is erased.
    fn block_erase(&mut self, _now: Ns, _block: u32) {}
    /// A channel is taken by an executor for a time.
    fn channel_busy(&mut self, _channel: u32, _executor: u32, _from: Ns, _to: Ns) {}
    /// An array operation of a number of planes runs on an executor.
    fn array_busy(
        &mut self,
        _executor: u32,
        _from: Ns,
        _to: Ns,
        _what: ArrayOperation,
        _planes: u32,
        _collection: bool,
    ) {
    }
    /// An executor begins an operation: it is busy until the matching [`Observer::operation_end`].
    fn operation_start(&mut self, _now: Ns, _executor: u32, _planes: u32) {}
    /// An executor ends an operation.
    fn operation_end(&mut self, _now: Ns, _executor: u32, _planes: u32) {}
    /// A collection of one victim ended.
    fn collected(&mut self, _now: Ns, _plane: u32, _moved: u32) {}
}

/// Watches nothing.
impl Observer for () {}

/// Writes the same list of hooks once for pairs and once for optional observers.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(#[inline] fn $name(&mut self, $($argument: $type),*) {
                self.0.$name($($argument),*);
                self.1.$name($($argument),*);
            })*
        }

        impl<O: Observer> Observer for Option<O> {
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
    fn enter(now: Ns, slot: Slot, request: &QueuedRequest);
    fn merge(now: Ns, slot: Slot, sequence: u64, request: &Request);
    fn issue(now: Ns, slot: Slot, request: &QueuedRequest, overtakes: bool);
    fn complete(slot: Slot, completion: &Completion);
    fn page_read(now: Ns, slot: Slot, lpn: Lpn, ppn: Ppn, modify: bool);
    fn page_program(now: Ns, origin: Origin, lpn: Lpn, ppn: Ppn);
    fn block_erase(now: Ns, block: u32);
    fn channel_busy(channel: u32, executor: u32, from: Ns, to: Ns);
    fn array_busy(executor: u32, from: Ns, to: Ns, what: ArrayOperation, planes: u32, collection: bool);
    fn operation_start(now: Ns, executor: u32, planes: u32);
    fn operation_end(now: Ns, executor: u32, planes: u32);
    fn collected(now: Ns, plane: u32, moved: u32);
}
