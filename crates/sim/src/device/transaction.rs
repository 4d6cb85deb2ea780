//! Flash transactions: one page of one request. A slab with intrusive lists, so that nothing is allocated per transaction.

use crate::host::Slot;
use planewise_model::{Direction, Lpn, Ns};

/// "No transaction".
pub(crate) const NIL: u32 = u32::MAX;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads a page for the host.
    Read,
    /// Programs a page of the host.
    Write,
    /// Reads the rest of a page that the host writes in part; becomes a [`Kind::Write`].
    ReadForWrite,
    /// Reads a page into the read buffer.
    ReadAhead,
    /// Programs a page of the write buffer.
    WriteBack,
    /// Reads the rest of a page of the write buffer; becomes a [`Kind::WriteBack`].
    ReadForWriteBack,
}

impl Kind {
    /// The list it waits in.
    #[inline]
    pub(crate) fn direction(self) -> Direction {
        if matches!(self, Kind::Write | Kind::WriteBack) { Direction::Write } else { Direction::Read }
    }

    /// What it becomes when the rest of its page has been read.
    pub(crate) fn after_read(self) -> Kind {
        match self {
            Kind::ReadForWrite => Kind::Write,
            Kind::ReadForWriteBack => Kind::WriteBack,
            other => unreachable!("{other:?} does not read the rest of a page"),
        }
    }

    /// Whether a request of the host waits for it: its slot is one of the I/O queue, else one of a buffer.
    #[inline]
    pub(crate) fn is_host(self) -> bool {
        matches!(self, Kind::Read | Kind::Write | Kind::ReadForWrite)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transaction {
    /// Since when it waits for its executor.
    pub(crate) queued: Ns,
    pub(crate) sequence: u64,
    /// Of the I/O queue, or of the buffer that it works for.
    pub(crate) slot: Slot,
    pub(crate) lpn: Lpn,
    pub(crate) plane: u32,
    /// Sectors that cross the channel.
    pub(crate) sectors: u32,
    pub(crate) next: u32,
    /// The list of outstanding operations that it is in, [`NIL`] for none.
    pub(crate) list: u32,
    /// Of a write that is being programmed: where its page was before, which must stay readable until it is through.
    pub(crate) old: u32,
    pub(crate) kind: Kind,
    /// Reads the same page as the one before it of its request, and costs the processor nothing of its own.
    pub(crate) follows: bool,
}

/// All transactions in flight.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    slab: Vec<Transaction>,
    free: u32,
    live: u32,
}

impl Transactions {
    pub(crate) fn with_capacity(capacity: usize) -> Transactions {
        Transactions { slab: Vec::with_capacity(capacity), free: NIL, live: 0 }
    }

    #[inline]
    pub(crate) fn insert(&mut self, transaction: Transaction) -> u32 {
        self.live += 1;
        if self.free == NIL {
            self.slab.push(transaction);
            return self.slab.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.slab[index as usize].next;
        self.slab[index as usize] = transaction;
        index
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        self.live -= 1;
        self.slab[index as usize].next = self.free;
        self.free = index;
    }

    /// Transactions in flight.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }
}

impl std::ops::Index<u32> for Transactions {
    type Output = Transaction;
    #[inline]
    fn index(&self, index: u32) -> &Transaction {
        &self.slab[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Transactions {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Transaction {
        &mut self.slab[index as usize]
    }
}

/// First in, first out, linked through [`Transaction::next`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NIL, tail: NIL };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(crate) fn push_back(&mut self, transactions: &mut Transactions, index: u32) {
        transactions[index].next = NIL;
        if self.head == NIL {
            self.head = index;
        } else {
            transactions[self.tail].next = index;
        }
        self.tail = index;
    }

    #[inline]
    pub(crate) fn push_front(&mut self, transactions: &mut Transactions, index: u32) {
        transactions[index].next = self.head;
        if self.head == NIL {
            self.tail = index;
        }
        self.head = index;
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, transactions: &Transactions) -> Option<u32> {
        if self.head == NIL {
            return None;
        }
        let index = self.head;
        self.head = transactions[index].next;
        if self.head == NIL {
            self.tail = NIL;
        }
        Some(index)
    }

    /// Removes the element after `previous` ([`NIL`]: the first).
    #[inline]
    pub(crate) fn remove_after(&mut self, transactions: &mut Transactions, previous: u32) -> u32 {
        if previous == NIL {
            return self.pop_front(transactions).unwrap_or(NIL);
        }
        let index = transactions[previous].next;
        let next = transactions[index].next;
        transactions[previous].next = next;
        if next == NIL {
            self.tail = previous;
        }
        index
    }
}
