//! Kyber's histograms: latencies as multiples of a quarter of their target, and the percentiles that decide on depths.

use planewise_model::Ns;

/// Buckets of a histogram; the last holds all that is longer.
const BUCKETS: usize = 8;
/// Buckets within the target.
pub(super) const GOOD: usize = 4;
/// A percentile of fewer samples waits for more, but not longer than [`PATIENCE`].
const SAMPLES: u64 = 500;
const PATIENCE: Ns = Ns::from_millis(1_000);

/// A histogram of one kind of latency.
#[derive(Clone, Copy, Default)]
struct Histogram([u64; BUCKETS]);

impl Histogram {
    fn add(&mut self, latency: Ns, target: Ns) {
        let quarter = (target.0 / GOOD as u64).max(1);
        let bucket = latency.0.saturating_sub(1) / quarter;
        self.0[bucket.min(BUCKETS as u64 - 1) as usize] += 1;
    }

    /// The bucket of a percentile of what is then forgotten.
    fn take(&mut self, percentile: u64) -> usize {
        let counts = std::mem::take(&mut self.0);
        let mut rest = (counts.iter().sum::<u64>() * percentile).div_ceil(100);
        for (bucket, count) in counts[..BUCKETS - 1].iter().enumerate() {
            if *count >= rest {
                return bucket;
            }
            rest -= count;
        }
        BUCKETS - 1
    }
}

/// What a domain's requests took.
pub(super) struct Latencies {
    target: Ns,
    /// In the queue and at the device.
    total: Histogram,
    /// At the device.
    device: Histogram,
    /// Until when a percentile waits for more samples: of either kind, as in Linux.
    deadline: Option<Ns>,
}

impl Latencies {
    pub(super) fn new(target: Ns) -> Latencies {
        Latencies { target, total: Histogram::default(), device: Histogram::default(), deadline: None }
    }

    pub(super) fn add(&mut self, total: Ns, device: Ns) {
        self.total.add(total, self.target);
        self.device.add(device, self.target);
    }

    /// Bucket of the 90th percentile at the device, once there are samples enough.
    pub(super) fn device_p90(&mut self, now: Ns) -> Option<usize> {
        is_due(&self.device, &mut self.deadline, now).then(|| self.device.take(90))
    }

    /// Bucket of the 99th percentile in all, once there are samples enough.
    pub(super) fn total_p99(&mut self, now: Ns) -> Option<usize> {
        is_due(&self.total, &mut self.deadline, now).then(|| self.total.take(99))
    }
}

fn is_due(histogram: &Histogram, deadline: &mut Option<Ns>, now: Ns) -> bool {
    let samples: u64 = histogram.0.iter().sum();
    if samples == 0 {
        return false;
    }
    let until = *deadline.get_or_insert(now + PATIENCE);
    let due = samples >= SAMPLES || until <= now;
    if due {
        *deadline = None;
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_quarter_of_the_target() {
        let mut latencies = Latencies::new(Ns(400));
        for (latency, bucket) in [(0, 0), (100, 0), (101, 1), (400, 3), (401, 4), (799, 7), (9_999, 7)] {
            (0..500).for_each(|_| latencies.add(Ns(latency), Ns(latency)));
            assert_eq!(latencies.device_p90(Ns::ZERO), Some(bucket), "{latency}");
            assert_eq!(latencies.total_p99(Ns::ZERO), Some(bucket), "{latency}");
        }
    }

    #[test]
    fn a_percentile_waits_for_500_samples_or_a_second() {
        let mut latencies = Latencies::new(Ns(400));
        (0..495).for_each(|_| latencies.add(Ns(1), Ns(1)));
        assert_eq!(latencies.device_p90(Ns(5)), None);
        (0..5).for_each(|_| latencies.add(Ns(1_000), Ns(1_000)));
        assert_eq!(latencies.total_p99(Ns(6)), Some(0), "495 of 500 are 99 %");
        latencies.add(Ns(1_000), Ns(1_000));
        assert_eq!(latencies.total_p99(Ns(7)), None);
        assert_eq!(latencies.total_p99(Ns(1_000_000_007)), Some(7));
    }
}
