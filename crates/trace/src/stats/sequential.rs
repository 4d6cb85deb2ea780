//! Which requests are sequential.

/// Streams remembered by default. A server's block layer sees the interleaving of many sequential readers and writers,
/// and Linux' and Windows' read-ahead follow a few tens of them per device.
pub const STREAMS_DEFAULT: usize = 32;
/// Gap forgiven by default, in sectors: 64 KiB, the size at which the MSR hosts' kernel split large transfers. A reader
/// that skips a hole of up to that is still a sequential reader for a disk, a read-ahead and a striped device.
pub const GAP_SECTORS_DEFAULT: u64 = 128;

/// Tells sequential requests from jumps, one volume at a time.
///
/// A request is **sequential** when it starts at most `gap` sectors after the end of one of the `streams` most recently
/// continued streams; it then moves that stream's end. Otherwise it opens a new stream in place of the one continued
/// longest ago. Reads and writes may continue one another. With one stream and no gap this is the strict definition:
/// "starts where the previous request ended".
///
/// The sequential shares of 40 to 99.9 % that the literature prints for server volumes cannot be strict: interleaved
/// streams alone push the strict share of such traces below 10 %.
#[derive(Clone, Debug)]
pub struct SequentialDetector {
    /// Ends of the streams, most recently continued first.
    ends: Vec<u64>,
    streams: usize,
    gap_sectors: u64,
}

impl SequentialDetector {
    /// A detector that remembers `streams` streams (at least 1) and forgives gaps of up to `gap_sectors`.
    pub fn new(streams: usize, gap_sectors: u64) -> SequentialDetector {
        let streams = streams.max(1);
        SequentialDetector { ends: Vec::with_capacity(streams), streams, gap_sectors }
    }

    /// Whether the request `[start, end)`, in sectors, is sequential; remembers it.
    #[inline]
    pub fn observe(&mut self, start: u64, end: u64) -> bool {
        let gap = self.gap_sectors;
        // A start before the stream's end wraps to a huge distance.
        let hit = self.ends.iter().position(|&stream| start.wrapping_sub(stream) <= gap);
        let last = match hit {
            Some(position) => position,
            None => {
                if self.ends.len() < self.streams {
                    self.ends.push(end);
                }
                self.ends.len() - 1
            }
        };
        self.ends.copy_within(..last, 1);
        self.ends[0] = end;
        hit.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_interleaved_streams_are_sequential_for_two_remembered_streams_and_random_for_one() {
        let mut one = SequentialDetector::new(1, 0);
        let mut two = SequentialDetector::new(2, 0);
        let (mut strict, mut streams) = (0, 0);
        for step in 0..10 {
            for base in [0, 1_000_000] {
                strict += u32::from(one.observe(base + step * 8, base + step * 8 + 8));
                streams += u32::from(two.observe(base + step * 8, base + step * 8 + 8));
            }
        }
        assert_eq!((strict, streams), (0, 18), "each stream's first request is a jump");
    }

    #[test]
    fn a_gap_is_forgiven_up_to_its_limit_and_a_rewrite_is_not_sequential() {
        let mut detector = SequentialDetector::new(4, 16);
        assert!(!detector.observe(0, 8));
        assert!(detector.observe(24, 32), "16 sectors after the end");
        assert!(!detector.observe(49, 57), "17 sectors after the end");
        assert!(!detector.observe(49, 57), "the same place again");
    }

    #[test]
    fn the_stream_continued_longest_ago_is_the_one_forgotten() {
        let mut detector = SequentialDetector::new(2, 0);
        detector.observe(0, 8);
        detector.observe(1000, 1008);
        assert!(detector.observe(8, 16), "now 1008 is the older one");
        assert!(!detector.observe(5000, 5008), "a jump takes its place");
        assert!(!detector.observe(1008, 1016));
        assert!(!detector.observe(16, 24), "and two jumps forget both");
    }
}
