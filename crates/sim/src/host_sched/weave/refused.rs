//! Waiting requests that the device refused for a ready line that was down: they are not asked again while it is.
//!
//! On a blocking interface nearly all that wait are refused, and each completion raises few lines.

use super::super::list::{Links, List};
use super::ranks::Ranks;
use crate::host::{Gate, Line, Slot};

/// Refused requests by line.
pub(super) struct Refused {
    by_line: Vec<List>,
    links: Links,
    /// By slot.
    line: Vec<Option<Line>>,
    /// A set of lines: those with requests.
    lines: Vec<u64>,
}

impl Refused {
    pub(super) fn new(slots: u32) -> Refused {
        Refused {
            by_line: Vec::new(),
            links: Links::new(slots),
            line: vec![None; slots as usize],
            lines: Vec::new(),
        }
    }

    /// The request in `slot` was refused.
    pub(super) fn add(&mut self, slot: Slot, line: Line) {
        let index = line.0 as usize;
        if self.by_line.len() <= index {
            self.by_line.resize(index + 1, List::EMPTY);
            self.lines.resize(index / 64 + 1, 0);
        }
        self.lines[index / 64] |= 1 << (index % 64);
        self.by_line[index].push(&mut self.links, slot);
        self.line[slot.index()] = Some(line);
    }

    /// The request in `slot` no longer waits.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(line) = self.line[slot.index()].take() {
            let index = line.0 as usize;
            self.by_line[index].remove(&mut self.links, slot);
            if self.by_line[index].is_empty() {
                self.lines[index / 64] &= !(1 << (index % 64));
            }
        }
    }

    /// Those whose line is up are asked again.
    pub(super) fn ask_again(&mut self, gate: &Gate<'_>, ranks: &mut Ranks) {
        for word in 0..self.lines.len() {
            let mut left = self.lines[word];
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let index = word * 64 + bit.trailing_zeros() as usize;
                if gate.is_down(Line(index as u32)) {
                    continue;
                }
                self.lines[word] ^= bit;
                while let Some(slot) = self.by_line[index].pop(&mut self.links) {
                    self.line[slot.index()] = None;
                    ranks.ask_again(slot);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host::{Answer, Gate, HostQueue, Interface, Line, QueuedRequest, Slot};
    use crate::host_sched::{Decision, HostKnowledge, HostScheduler, TunableValues, find};
    use planewise_model::location::{PageRange, UnitMap};
    use planewise_model::rng::generator;
    use planewise_model::{Direction, Lsn, Ns, Request};
    use rand::RngExt;

    const UNITS: u64 = 70;

    /// Unit `page` modulo [`UNITS`] is a line; some are down.
    struct Lines<'a> {
        down: &'a [bool],
        names_lines: bool,
    }

    impl Interface for Lines<'_> {
        fn ask(&self, request: &QueuedRequest) -> Answer {
            let pages = request.pages.first..request.pages.first + u64::from(request.pages.count);
            match pages.map(|page| (page % UNITS) as u32).find(|&unit| self.down[unit as usize]) {
                None => Answer::Accepted,
                Some(unit) if self.names_lines => Answer::Refused(Line(unit)),
                Some(_) => Answer::RefusedForNow,
            }
        }

        fn is_down(&self, line: Line) -> bool {
            self.down[line.0 as usize]
        }
    }

    /// Lines go up and down as they like, by what the device does by itself as much as by what was issued.
    #[test]
    fn what_is_issued_is_the_same_as_when_all_are_asked_every_time() {
        for seed in 0..60 {
            let mut random = generator(seed, "refused");
            let slots = random.random_range(1..300u32);
            let entry = find("weave").unwrap();
            let host = HostKnowledge {
                queue_length: slots,
                // Right, or not.
                units: UnitMap::modulo(if random.random_bool(0.5) { UNITS as u32 } else { 7 }),
                writes_stay: random.random_bool(0.8),
                page_bytes: 4096,
                capacity_sectors: 1 << 30,
            };
            let build = || (entry.build)(&host, &TunableValues::defaults(entry.tunables)).unwrap();
            let mut schedulers: [Box<dyn HostScheduler>; 2] = [build(), build()];
            let mut queue = HostQueue::new(slots);
            let mut outstanding: Vec<Slot> = Vec::new();
            let mut down = vec![false; UNITS as usize];
            let often_down = random.random_range(0.02..0.9);
            for step in 0..4_000u64 {
                let now = Ns(step * 1_000);
                match random.random_range(0..4) {
                    0 | 1 if queue.pending() < slots => {
                        let direction = Direction::ALL[random.random_range(0..2usize)];
                        let pages = PageRange {
                            first: random.random_range(0..1_000),
                            count: random.random_range(1..=6),
                        };
                        let request = Request::new(now, Lsn(pages.first * 8), pages.count * 8, direction);
                        let slot = queue.enter(QueuedRequest::new(now, step, request, pages, false));
                        schedulers.iter_mut().for_each(|one| one.insert(now, slot, queue.get(slot)));
                    }
                    2 if !outstanding.is_empty() => {
                        let slot = outstanding.swap_remove(random.random_range(0..outstanding.len()));
                        let request = queue.leave(slot);
                        schedulers.iter_mut().for_each(|one| one.completed(now, slot, &request));
                    }
                    _ => down.iter_mut().for_each(|line| *line = random.random_bool(often_down)),
                }
                loop {
                    let [one, other] = [true, false].map(|names_lines| {
                        let lines = Lines { down: &down, names_lines };
                        schedulers[usize::from(names_lines)].dispatch(now, &Gate::new(&queue, &lines))
                    });
                    assert_eq!(one, other, "seed {seed}, step {step}");
                    let Decision::Issue(slot) = one else { break };
                    queue.issue(slot, now, false);
                    outstanding.push(slot);
                }
            }
        }
    }
}
