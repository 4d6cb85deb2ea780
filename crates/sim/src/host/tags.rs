//! Tags of a request queue, as Linux 6.12 hands them out (`lib/sbitmap.c`): a bitmap in words of a few tags each, spread so that processors
//! seldom meet in one. What is given back is free only when its word has nothing else left. A scheduler may limit requests of a kind to
//! a number of tags (`limit_depth`): such a request looks at the first tags of each word only, in proportion, and those that are not limited take
//! first tags too. So it is kept out by the others long before as many of its own kind are in the queue.

/// Fewest words that a bitmap of four tags or more has.
const WORDS: u32 = 4;
/// Most tags of a word.
const WORD_MAX_SHIFT: u32 = 6;

#[derive(Clone, Copy, Default)]
struct Word {
    /// One bit for each tag that is taken, or was and is not free yet.
    taken: u64,
    /// Of those, given back.
    returned: u64,
}

/// The tags of a queue.
pub(crate) struct Tags {
    words: Vec<Word>,
    count: u32,
    /// A word has 2 to this power tags; the last may have fewer.
    shift: u32,
    /// Where the next one is looked for: the tag that came back last, or behind the one taken last.
    hint: u32,
}

/// The first `count` bits, 0 to 64.
fn first(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl Tags {
    /// All free.
    pub(crate) fn new(count: u32) -> Tags {
        let mut shift = WORD_MAX_SHIFT;
        while count >= WORDS && shift > 0 && (WORDS << shift) > count {
            shift -= 1;
        }
        Tags { words: vec![Word::default(); count.div_ceil(1 << shift) as usize], count, shift, hint: 0 }
    }

    /// How many tags there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// How many tags of a word a request that is limited to `limit` of all looks at.
    fn reach(&self, index: usize, limit: u32) -> u32 {
        let begin = (index as u32) << self.shift;
        let of_word = (self.count - begin).min(1 << self.shift);
        if limit >= self.count {
            return of_word;
        }
        let product = of_word * limit;
        // What is left by the division goes to the first words.
        let is_rounded_up = product % self.count >= (index as u32 + 1) * of_word;
        product / self.count + u32::from(is_rounded_up)
    }

    /// Whether a request that is limited to `limit` tags gets one.
    pub(crate) fn has(&self, limit: u32) -> bool {
        let mut words = self.words.iter().enumerate();
        words.any(|(index, word)| (!word.taken | word.returned) & first(self.reach(index, limit)) != 0)
    }

    /// Takes a tag.
    ///
    /// # Panics
    /// When there is none within the limit.
    pub(crate) fn take(&mut self, limit: u32) -> u32 {
        let words = self.words.len();
        let (mut index, mask) = ((self.hint >> self.shift) as usize, (1 << self.shift) - 1);
        // Without a limit the hint tells the word and not the place in it.
        let mut from = if limit < self.count { self.hint & mask } else { 0 };
        for _ in 0..words {
            let reach = self.reach(index, limit);
            if let Some(bit) = self.take_in(index, reach, from) {
                let tag = ((index as u32) << self.shift) + bit;
                if tag == self.hint {
                    self.hint = if tag + 2 >= self.count { 0 } else { tag + 1 };
                }
                return tag;
            }
            from = 0;
            index = (index + 1) % words;
        }
        panic!("the caller checked that there is a tag");
    }

    /// Takes one of the first `reach` tags of a word, from `from` on, then from its beginning, then of what was given back.
    fn take_in(&mut self, index: usize, reach: u32, from: u32) -> Option<u32> {
        let word = &mut self.words[index];
        loop {
            let free = !word.taken & first(reach);
            let ahead = free & !first(from);
            let bit = if ahead != 0 { ahead } else { free };
            if bit != 0 {
                let bit = bit.trailing_zeros();
                word.taken |= 1 << bit;
                return Some(bit);
            }
            if word.returned == 0 {
                return None;
            }
            word.taken &= !std::mem::take(&mut word.returned);
        }
    }

    /// A tag comes back.
    pub(crate) fn give_back(&mut self, tag: u32) {
        let word = &mut self.words[(tag >> self.shift) as usize];
        let bit = 1 << (tag & ((1 << self.shift) - 1));
        debug_assert!(word.taken & bit != 0 && word.returned & bit == 0, "tag {tag} is taken");
        word.returned |= bit;
        self.hint = tag;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use rand::RngExt;

    #[test]
    fn all_tags_are_handed_out_once_and_again_after_they_came_back() {
        let mut random = generator(7, "tags");
        for count in [1, 2, 3, 4, 5, 31, 32, 63, 64, 65, 256, 1000, 4096] {
            let mut tags = Tags::new(count);
            let mut out = vec![false; count as usize];
            let mut held = Vec::new();
            for _ in 0..20_000 {
                if random.random_range(0..2) == 0 && !held.is_empty() {
                    let tag: u32 = held.swap_remove(random.random_range(0..held.len()));
                    out[tag as usize] = false;
                    tags.give_back(tag);
                    continue;
                }
                assert_eq!(tags.has(count), held.len() < count as usize, "{count}");
                if tags.has(count) {
                    let tag = tags.take(count);
                    assert!(!std::mem::replace(&mut out[tag as usize], true), "{count}: {tag} twice");
                    held.push(tag);
                }
            }
        }
    }

    #[test]
    fn a_limit_is_the_most_that_those_limited_have_together() {
        for (count, limit) in [(64, 16), (64, 48), (64, 1), (65, 24), (256, 96), (6, 3), (1, 1), (1000, 375)]
        {
            let mut tags = Tags::new(count);
            let mut taken = 0;
            while tags.has(limit) {
                tags.take(limit);
                taken += 1;
            }
            assert_eq!(taken, limit, "{count}");
            // Others find the rest.
            for _ in taken..count {
                assert!(tags.has(count));
                tags.take(count);
            }
            assert!(!tags.has(count));
        }
    }

    /// 64 tags are four words of 16; limited to 16 of 64, a request looks at four of each, which are also those that others take first.
    #[test]
    fn those_that_are_not_limited_take_the_tags_of_those_that_are() {
        let mut tags = Tags::new(64);
        for _ in 0..4 {
            tags.take(64);
        }
        assert_eq!((0..16).filter(|_| tags.has(16) && tags.take(16) < 64).count(), 12);
        // What comes back is free when its word has nothing else within reach.
        tags.give_back(0);
        assert!(tags.has(16));
        assert_eq!(tags.take(16), 0);
    }
}
