//! What a scheduler keeps about each process.

use std::ops::{Index, IndexMut};

/// Values by process, numbered from 0 in the order in which the processes first appear. A few hundred are active at
/// most: a sorted list, and the last one found first.
pub(super) struct ByProcess<T> {
    /// Process and number, by process.
    sorted: Vec<(u32, usize)>,
    last: usize,
    values: Vec<T>,
}

impl<T: Default> ByProcess<T> {
    pub(super) fn new() -> ByProcess<T> {
        ByProcess { sorted: Vec::new(), last: 0, values: Vec::new() }
    }

    /// The number of a process.
    pub(super) fn number(&mut self, process: u32) -> usize {
        if self.sorted.get(self.last).is_none_or(|&(found, _)| found != process) {
            self.last = self.place(process).unwrap_or_else(|at| {
                self.sorted.insert(at, (process, self.values.len()));
                self.values.push(T::default());
                at
            });
        }
        self.sorted[self.last].1
    }

    /// The number of a process that has appeared.
    pub(super) fn find(&self, process: u32) -> Option<usize> {
        self.place(process).ok().map(|at| self.sorted[at].1)
    }

    /// Processes that have appeared.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    fn place(&self, process: u32) -> Result<usize, usize> {
        self.sorted.binary_search_by_key(&process, |&(found, _)| found)
    }
}

impl<T> Index<usize> for ByProcess<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.values[number]
    }
}

impl<T> IndexMut<usize> for ByProcess<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.values[number]
    }
}

#[cfg(test)]
mod tests {
    use super::ByProcess;

    #[test]
    fn numbers_follow_the_first_appearance() {
        let mut table = ByProcess::<u32>::new();
        assert_eq!([70, 3, 70, 900, 3].map(|process| table.number(process)), [0, 1, 0, 2, 1]);
        table[1] = 5;
        assert_eq!((table.find(3), table.find(4), table.count()), (Some(1), None, 3));
        assert_eq!([table[0], table[1], table[2]], [0, 5, 0]);
    }
}
