//! The journal of the file system: processes that wait for their changes are committed together by a thread of its own.
//!
//! As jbd2 does it: a commit writes a descriptor with the changed metadata blocks, waits, and writes the commit block. Who comes
//! while a commit is under way waits for the next one. With flushes (the mount option `barrier=1`) the commit block is written behind a
//! flush and with forced unit access, so that what a commit is about is kept before it, and it itself when it is complete.

use super::files::BLOCK;
use crate::{Io, Step};
use planewise_model::{Direction, Durability, Lsn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Body,
    Commit,
}

/// A journal and its thread.
pub(super) struct Journal {
    start: u64,
    blocks: u64,
    /// What the acknowledgement of a commit block promises.
    durability: Durability,
    /// Block after the last one written.
    head: u64,
    state: State,
    is_under_way: bool,
    /// Metadata blocks of the next commit, and who waits for it.
    metadata: u64,
    next: Vec<u32>,
    /// Who waits for the commit under way.
    current: Vec<u32>,
}

impl Journal {
    /// An empty journal at a byte of the device, which flushes or not.
    pub(super) fn new(start: u64, bytes: u64, flushes: bool) -> Journal {
        Journal {
            start,
            blocks: bytes / BLOCK,
            durability: Durability::of(flushes, flushes),
            head: 0,
            state: State::Idle,
            is_under_way: false,
            metadata: 0,
            next: Vec::new(),
            current: Vec::new(),
        }
    }

    /// A process waits until so many changed metadata blocks are committed. The journal's thread must be woken.
    pub(super) fn request(&mut self, process: u32, metadata: u64) {
        self.metadata = self.metadata.max(metadata);
        self.next.push(process);
    }

    /// A process waits for the commit that is under way, or else for the next.
    pub(super) fn join(&mut self, process: u32) {
        if self.state == State::Idle { self.next.push(process) } else { self.current.push(process) }
    }

    /// Whether nothing is under way or asked for.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle && self.next.is_empty()
    }

    /// What the thread does; `begins` says that a commit takes up everything changed until now.
    pub(super) fn next(&mut self, begins: &mut bool) -> Step {
        if self.is_under_way || (self.state == State::Idle && self.next.is_empty()) {
            return Step::Wait;
        }
        self.is_under_way = true;
        if self.state == State::Idle {
            std::mem::swap(&mut self.current, &mut self.next);
            *begins = true;
            self.state = State::Body;
            let body = (1 + std::mem::take(&mut self.metadata)).min(self.blocks);
            Step::Submit(self.write(body))
        } else {
            Step::Submit(Io { durability: self.durability, ..self.write(1) })
        }
    }

    /// A write of the thread completed; those that waited are woken at the end of a commit.
    pub(super) fn completed(&mut self, woken: &mut Vec<u32>) -> bool {
        self.is_under_way = false;
        if self.state == State::Body {
            self.state = State::Commit;
            return false;
        }
        self.state = State::Idle;
        // Taken from the end: who waited first comes first.
        woken.extend(self.current.drain(..).rev());
        true
    }

    fn write(&mut self, blocks: u64) -> Io {
        if self.head + blocks > self.blocks {
            self.head = 0;
        }
        let start = self.start + self.head * BLOCK;
        self.head += blocks;
        Io::transfer(Lsn(start / 512), (blocks * BLOCK / 512) as u32, Direction::Write, true)
    }
}
