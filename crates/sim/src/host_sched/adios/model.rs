//! What ADIOS learns of one kind of requests: a base time of small ones and a slope for each byte more.

use planewise_model::Ns;

/// Samples wait in classes by how they compare with what was predicted: 20 classes for each multiple up to twice, 10 from
/// there on, all that is beyond in the last.
const CLASSES: usize = 64;
/// The samples above this percentile are not learned from.
const PERCENTILE: u64 = 99;
/// So many samples, or so much time since the last update, are enough for one.
const SAMPLES: u64 = 1024;
const INTERVAL: Ns = Ns::from_millis(1_500);

/// How quickly what was learned is forgotten.
#[derive(Clone, Copy)]
pub(super) struct Forgetting {
    /// Small requests, and bytes of large ones, after which a share of both sums is dropped.
    pub(super) requests: u64,
    pub(super) bytes: u64,
    /// The share: 1 of 2 to this power.
    pub(super) resist: u32,
}

/// Sums over samples.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: u64,
    /// ns.
    time: u128,
    bytes: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.count += other.count;
        self.time += other.time;
        self.bytes += other.bytes;
    }

    /// `part` of `self.count` samples, as if all were equal.
    fn share(self, part: u64) -> Sums {
        let of = |value: u128| value * u128::from(part) / u128::from(self.count.max(1));
        Sums { count: part, time: of(self.time), bytes: of(u128::from(self.bytes)) as u64 }
    }

    fn shrink(&mut self, resist: u32) {
        self.count -= self.count >> resist;
        self.time -= self.time >> resist;
        self.bytes -= self.bytes >> resist;
    }
}

/// Samples that are not learned from yet.
struct Pending([Sums; CLASSES]);

impl Pending {
    fn new() -> Pending {
        Pending([Sums::default(); CLASSES])
    }

    fn add(&mut self, class: usize, time: Ns, bytes: u64) {
        self.0[class].add(Sums { count: 1, time: u128::from(time.0), bytes });
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|class| class.count).sum()
    }

    /// All but the highest, which are then forgotten too.
    fn take(&mut self, percentile: u64) -> Sums {
        let mut rest = self.count() * percentile / 100;
        let mut sums = Sums::default();
        for class in &self.0 {
            let part = class.count.min(rest);
            sums.add(if part == class.count { *class } else { class.share(part) });
            rest -= part;
        }
        *self = Pending::new();
        sums
    }
}

/// The model of one kind of requests.
pub(super) struct Model {
    /// Requests up to this size are small.
    small_bytes: u64,
    forgetting: Forgetting,
    small: Sums,
    large: Sums,
    small_pending: Pending,
    large_pending: Pending,
    /// ns; 0 before the first small request.
    base: u64,
    updated: Ns,
}

impl Model {
    pub(super) fn new(small_bytes: u64, forgetting: Forgetting) -> Model {
        Model {
            small_bytes,
            forgetting,
            small: Sums::default(),
            large: Sums::default(),
            small_pending: Pending::new(),
            large_pending: Pending::new(),
            base: 0,
            updated: Ns::ZERO,
        }
    }

    /// Whether a small request has been seen.
    pub(super) fn is_known(&self) -> bool {
        self.base > 0
    }

    /// What a request of this size should take; 0 before anything is known.
    pub(super) fn predict(&self, bytes: u64) -> Ns {
        let more = u128::from(bytes.saturating_sub(self.small_bytes));
        let slope = match self.large.bytes {
            0 => 0,
            counted => self.large.time * more / u128::from(counted),
        };
        Ns(self.base.saturating_add(u64::try_from(slope).unwrap_or(u64::MAX >> 8)))
    }

    /// A request of this size took so long. What was predicted for it orders the samples.
    pub(super) fn add(&mut self, now: Ns, bytes: u64, time: Ns, predicted: Ns) {
        if bytes <= self.small_bytes {
            self.small_pending.add(class(time, Ns(self.base)), time, bytes);
            if !self.is_known() {
                self.update(now);
            }
        } else if self.is_known() {
            // What is beyond the base is what the slope is made of.
            let beyond = Ns(time.0.saturating_sub(self.base));
            self.large_pending.add(class(time, predicted), beyond, bytes - self.small_bytes);
        }
    }

    /// Learns from what waits, if it is enough.
    pub(super) fn update(&mut self, now: Ns) {
        let is_time = !self.is_known() || now >= self.updated + INTERVAL;
        let mut has_learned = false;
        let count = self.small_pending.count();
        if count > 0 && (is_time || count >= SAMPLES) {
            // The first are taken as they come: there was no prediction to tell what is out of the ordinary.
            let sums = self.small_pending.take(if self.is_known() { PERCENTILE } else { 100 });
            if self.small.count >= self.forgetting.requests {
                self.small.shrink(self.forgetting.resist);
            }
            self.small.add(sums);
            if self.small.count > 0 {
                self.base = ((self.small.time / u128::from(self.small.count)) as u64).max(1);
            }
            has_learned = true;
        }
        let count = self.large_pending.count();
        let is_first = self.large.bytes == 0;
        if count > 0 && (is_time || count >= SAMPLES || is_first) {
            let sums = self.large_pending.take(if is_first { 100 } else { PERCENTILE });
            if self.large.bytes >= self.forgetting.bytes {
                self.large.shrink(self.forgetting.resist);
            }
            self.large.add(sums);
            has_learned = true;
        }
        if has_learned || is_time {
            self.updated = now;
        }
    }
}

fn class(time: Ns, predicted: Ns) -> usize {
    let tenths = u128::from(time.0) * 10 / u128::from(predicted.0.max(1));
    let twentieths = u128::from(time.0) * 20 / u128::from(predicted.0.max(1));
    let class = if twentieths < 40 { twentieths } else { tenths + 20 };
    class.min(CLASSES as u128 - 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPS: Forgetting = Forgetting { requests: u64::MAX, bytes: u64::MAX, resist: 2 };

    #[test]
    fn a_model_converges_to_the_line_that_its_samples_lie_on() {
        let mut model = Model::new(4096, KEEPS);
        assert_eq!(model.predict(131_072), Ns::ZERO);
        let time = |bytes: u64| Ns(70_000 + (bytes.max(4096) - 4096));
        for step in 1..6_000u64 {
            let bytes = [512, 4096, 16_384, 131_072][(step % 4) as usize];
            let predicted = model.predict(bytes);
            model.add(Ns(step * 1_000_000), bytes, time(bytes), predicted);
            if step % 100 == 0 {
                model.update(Ns(step * 1_000_000));
            }
        }
        for bytes in [512, 4096, 8192, 131_072, 1 << 20] {
            let (predicted, truth) = (model.predict(bytes), time(bytes));
            assert!(
                predicted.0.abs_diff(truth.0) <= truth.0 / 1_000,
                "{bytes}: {predicted}, in truth {truth}"
            );
        }
    }

    #[test]
    fn one_in_a_hundred_is_out_of_the_ordinary_and_teaches_nothing() {
        let mut model = Model::new(4096, KEEPS);
        model.add(Ns(1), 4096, Ns(70_000), Ns::ZERO);
        for round in 1..=20u64 {
            for sample in 0..1_100u64 {
                let time = if sample % 110 == 0 { 30_000_000 } else { 70_000 };
                model.add(Ns(round), 4096, Ns(time), model.predict(4096));
            }
            model.update(Ns(round));
        }
        assert_eq!(model.predict(4096), Ns(70_000));
    }

    #[test]
    fn what_was_learned_is_forgotten_by_and_by() {
        let forgets = Forgetting { requests: 2_000, ..KEEPS };
        let mut model = Model::new(4096, forgets);
        let mut teach = |time: u64, samples: u64, from: u64| {
            for sample in 0..samples {
                model.add(Ns(from + sample), 4096, Ns(time), model.predict(4096));
                if sample % 1_024 == 1_023 {
                    model.update(Ns(from + sample));
                }
            }
            model.predict(4096).0
        };
        let before = teach(70_000, 20_000, 1);
        assert!(before.abs_diff(70_000) < 100, "{before}");
        let later = teach(100_000, 40_960, 100_000);
        assert!(later.abs_diff(100_000) < 1_000, "{later}");
    }

    #[test]
    fn large_requests_teach_nothing_before_a_small_one_has_come() {
        let mut model = Model::new(4096, KEEPS);
        (0..5_000).for_each(|at| model.add(Ns(at), 8192, Ns(80_000), Ns::ZERO));
        model.update(Ns::from_millis(9_000));
        assert!(!model.is_known());
        assert_eq!(model.predict(8192), Ns::ZERO);
    }

    #[test]
    fn classes_grow_with_the_time() {
        let classes: Vec<usize> = (0..80).map(|tenths| class(Ns(tenths * 10), Ns(100))).collect();
        assert!(classes.windows(2).all(|pair| pair[0] <= pair[1]), "{classes:?}");
        assert_eq!([class(Ns(100), Ns(100)), class(Ns(199), Ns(100)), class(Ns(200), Ns(100))], [20, 39, 40]);
        assert_eq!(class(Ns(u64::MAX), Ns(0)), 63);
    }
}
