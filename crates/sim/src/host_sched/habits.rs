//! How long a process thinks between its requests and how far it seeks: the decaying means by which Linux's anticipatory
//! scheduler and CFQ decide whether waiting for it pays (`as_update_iohist`, `cfq_update_io_thinktime`).
//!
//! Fixed point, one sample = 256; every new sample counts an eighth.

use planewise_model::Ns;

const ONE: u64 = 256;

/// A decaying mean.
#[derive(Clone, Copy, Default)]
struct Decaying {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Decaying {
    fn add(&mut self, value: u64) {
        self.samples = (7 * self.samples + ONE) / 8;
        self.total = (7 * self.total + ONE * value) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
    }
}

/// Time between the end of a process's request and its next.
#[derive(Clone, Copy, Default)]
pub(super) struct ThinkTime(Decaying);

impl ThinkTime {
    pub(super) fn add(&mut self, time: Ns) {
        self.0.add(time.0);
    }

    /// Whether a first sample was taken.
    pub(super) fn is_known(&self) -> bool {
        self.0.samples > 0
    }

    /// Whether the mean says something: after three samples (`sample_valid`).
    pub(super) fn is_valid(&self) -> bool {
        self.0.samples > 80
    }

    pub(super) fn mean(&self) -> Ns {
        Ns(self.0.mean)
    }
}

/// Distance, sectors, from the end of a process's request to the start of its next.
#[derive(Clone, Copy, Default)]
pub(super) struct SeekDistance(Decaying);

impl SeekDistance {
    /// A single long seek counts as four means and a constant at most: 1 GiB for the first few, 64 MiB later.
    pub(super) fn add(&mut self, sectors: u64) {
        let slack = if self.0.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.0.add(sectors.min(self.0.mean * 4 + slack));
    }

    /// Whether a first sample was taken.
    pub(super) fn is_known(&self) -> bool {
        self.0.samples > 0
    }

    /// Whether the mean says something: after three samples.
    pub(super) fn is_valid(&self) -> bool {
        self.0.samples > 80
    }

    /// Sectors.
    pub(super) fn mean(&self) -> u64 {
        self.0.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_their_samples_and_valid_after_three() {
        let mut think = ThinkTime::default();
        for taken in 1..=3 {
            assert!(!think.is_valid());
            think.add(Ns(8_000));
            assert!(
                think.is_known() && think.mean().0.abs_diff(8_000) < 50,
                "after {taken}: {}",
                think.mean().0
            );
        }
        assert!(think.is_valid());
        (0..60).for_each(|_| think.add(Ns(2_000)));
        assert!(think.mean().0.abs_diff(2_000) < 100, "the old habit is forgotten: {}", think.mean().0);
    }

    #[test]
    fn one_long_seek_does_not_make_a_seeker() {
        let mut seeks = SeekDistance::default();
        (0..30).for_each(|_| seeks.add(0));
        seeks.add(1 << 40);
        assert!(seeks.mean() <= 2 * 1024 * 64 / 7, "{}", seeks.mean());
    }
}
