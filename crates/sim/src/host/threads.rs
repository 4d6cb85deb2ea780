//! Programs before today's block layer (`blk_mq_get_tag`): a thread that finds no tag sleeps in the system call, and asks for nothing else
//! until it has one. Who began to wait first is woken first; it goes on while there are tags for it, and where there is none it is
//! the last again. So each of many threads has its turn, however many requests one of them would make.
//!
//! Not modelled: write-back has threads of its own in the kernel, and here those of the process that a request names; the kernel wakes nobody until an eighth of the tags came back (eight at most), and a thread that comes just then may be faster than one
//! that is being woken.

use planewise_model::Request;
use std::collections::{BTreeMap, VecDeque};

/// Threads that wait for tags, and what each would ask for behind that.
#[derive(Default)]
pub(super) struct Threads {
    /// By process: its requests in their order, with their numbers.
    lines: BTreeMap<u32, VecDeque<(u64, Request)>>,
    /// Those that sleep, in the order in which they began to.
    asleep: VecDeque<u32>,
    /// The one that got a tag just now and wants more.
    awake: Option<u32>,
    count: usize,
}

impl Threads {
    /// Requests that wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether the process has requests that wait.
    pub(super) fn waits(&self, process: u32) -> bool {
        self.lines.get(&process).is_some_and(|line| !line.is_empty())
    }

    /// A request waits.
    pub(super) fn push(&mut self, number: u64, request: Request) {
        let line = self.lines.entry(request.process).or_default();
        if line.is_empty() {
            self.asleep.push_back(request.process);
        }
        line.push_back((number, request));
        self.count += 1;
    }

    /// The next that gets a tag.
    pub(super) fn next(&mut self, mut goes: impl FnMut(u64, &Request) -> bool) -> Option<(u64, Request)> {
        let mut gets = |lines: &BTreeMap<u32, VecDeque<(u64, Request)>>, process: u32| {
            lines[&process].front().is_some_and(|(number, request)| goes(*number, request))
        };
        let process = match self.awake.take() {
            Some(process) if gets(&self.lines, process) => process,
            other => {
                self.asleep.extend(other);
                let place = self.asleep.iter().position(|&process| gets(&self.lines, process))?;
                self.asleep.remove(place).expect("a place among those asleep")
            }
        };
        let line = self.lines.get_mut(&process).expect("each that waits has a line");
        let found = line.pop_front();
        self.count -= 1;
        if !line.is_empty() {
            self.awake = Some(process);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::{Direction, Lsn, Ns};

    fn request(process: u32, direction: Direction) -> Request {
        Request { process, ..Request::new(Ns::ZERO, Lsn(8), 8, direction) }
    }

    /// The processes in the order in which they get one tag at a time.
    fn order(threads: &mut Threads) -> Vec<u32> {
        let mut order = Vec::new();
        while threads.count() > 0 {
            let mut free = std::cell::Cell::new(1);
            while let Some((_, request)) = threads.next(|_, _| free.get() > 0) {
                *free.get_mut() -= 1;
                order.push(request.process);
            }
        }
        order
    }

    #[test]
    fn each_asks_for_one_tag_at_a_time() {
        let mut threads = Threads::default();
        for number in 0..4 {
            threads.push(number, request(1, Direction::Write));
        }
        threads.push(4, request(2, Direction::Read));
        threads.push(5, request(3, Direction::Read));
        threads.push(6, request(3, Direction::Read));
        assert!(threads.waits(1) && !threads.waits(4));
        assert_eq!(order(&mut threads), [1, 2, 3, 1, 3, 1, 1]);
        assert!(!threads.waits(1));
    }

    #[test]
    fn who_is_kept_out_by_a_limit_keeps_nobody_else_out_and_has_his_place() {
        let mut threads = Threads::default();
        for (number, process) in [1, 2, 1, 2].into_iter().enumerate() {
            let direction = if process == 1 { Direction::Write } else { Direction::Read };
            threads.push(number as u64, request(process, direction));
        }
        let reads = |_, request: &Request| request.direction == Direction::Read;
        assert_eq!(threads.next(reads).unwrap().1.process, 2);
        assert_eq!(threads.next(|_, _| false), None);
        assert_eq!(threads.next(|_, _| true).unwrap().1.process, 1);
    }
}
