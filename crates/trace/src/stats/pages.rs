//! Sets of pages: compact where requests cluster, bounded by the working set everywhere.

use std::collections::HashMap;

/// Words of bits per chunk: a page alone in its chunk costs about 90 bytes, a page among its neighbours 2 bits.
const WORDS: usize = 4;
const CHUNK_PAGES: u64 = 64 * WORDS as u64;

#[derive(Clone, Default)]
struct Chunk {
    touched: [u64; WORDS],
    written: [u64; WORDS],
}

/// What touching a range of pages changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Pages in the range.
    pub pages: u64,
    /// Pages nobody had touched before.
    pub new: u64,
    /// Pages nobody had written before (counted for writes only).
    pub newly_written: u64,
}

/// Which pages of each volume have been touched, and which written.
#[derive(Default)]
pub struct PageSets {
    index: HashMap<(u32, u64), u32>,
    chunks: Vec<Chunk>,
    /// The chunk used last: sequential requests skip the hash.
    last: Option<((u32, u64), u32)>,
}

impl PageSets {
    /// Touches pages `first..=last` of a volume.
    pub fn touch(&mut self, volume: u32, first: u64, last: u64, write: bool) -> Touch {
        let mut sum = Touch { pages: last - first + 1, ..Touch::default() };
        for number in first / CHUNK_PAGES..=last / CHUNK_PAGES {
            let chunk_first = number * CHUNK_PAGES;
            let from = first.max(chunk_first) - chunk_first;
            let to = (last - chunk_first).min(CHUNK_PAGES - 1);
            let chunk = self.chunk(volume, number);
            for word in (from / 64) as usize..=(to / 64) as usize {
                let low = from.saturating_sub(word as u64 * 64);
                let high = (to - word as u64 * 64).min(63);
                let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
                sum.new += u64::from((mask & !chunk.touched[word]).count_ones());
                chunk.touched[word] |= mask;
                if write {
                    sum.newly_written += u64::from((mask & !chunk.written[word]).count_ones());
                    chunk.written[word] |= mask;
                }
            }
        }
        sum
    }

    fn chunk(&mut self, volume: u32, number: u64) -> &mut Chunk {
        let key = (volume, number);
        let index = match self.last {
            Some((last, index)) if last == key => index,
            _ => {
                let next = self.chunks.len() as u32;
                let index = *self.index.entry(key).or_insert(next);
                if index == next {
                    self.chunks.push(Chunk::default());
                }
                index
            }
        };
        self.last = Some((key, index));
        &mut self.chunks[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_count_as_a_plain_set_of_pages_counts_them(
            ranges in prop::collection::vec((0u32..2, 0u64..2000, 1u64..700, any::<bool>()), 1..40),
        ) {
            let (mut touched, mut written) = (BTreeSet::new(), BTreeSet::new());
            let mut sets = PageSets::default();
            for (volume, first, pages, write) in ranges {
                let mut expected = Touch { pages, ..Touch::default() };
                for page in first..first + pages {
                    expected.new += u64::from(touched.insert((volume, page)));
                    expected.newly_written += u64::from(write && written.insert((volume, page)));
                }
                prop_assert_eq!(sets.touch(volume, first, first + pages - 1, write), expected);
            }
        }
    }

    #[test]
    fn the_last_page_of_the_address_space_is_a_page_like_any_other() {
        let mut sets = PageSets::default();
        assert_eq!(sets.touch(0, u64::MAX, u64::MAX, true), Touch { pages: 1, new: 1, newly_written: 1 });
        assert_eq!(sets.touch(0, u64::MAX, u64::MAX, true), Touch { pages: 1, new: 0, newly_written: 0 });
    }
}
