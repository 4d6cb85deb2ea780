//! How late completions were, and whether what programs measured is still the drive.

use crate::clock::Floor;
use planewise_model::Ns;
use planewise_sim::observers::metrics::Times;
use planewise_sim::results::Distribution;
use std::fmt;
use std::time::Duration;

/// Lateness past this share of the mean latency is no small thing any more.
pub const SHARE_MAX: f64 = 0.05;

/// Lateness and latency of one kind of requests, both in wall time.
#[derive(Default)]
pub struct Lateness {
    late: Times,
    latency: Times,
    count: u64,
}

impl Lateness {
    /// A request was answered so long after it was due, and should have taken so long.
    pub fn record(&mut self, late: Duration, latency: Duration) {
        self.late.record(nanoseconds(late));
        self.latency.record(nanoseconds(latency));
        self.count += 1;
    }

    /// Sums it up.
    pub fn summary(&self) -> Summary {
        Summary { count: self.count, late: self.late.distribution(), latency: self.latency.distribution() }
    }
}

fn nanoseconds(time: Duration) -> Ns {
    Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Lateness and latency, ns of wall time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests.
    pub count: u64,
    /// From when an answer was due to when it was in the hands of the host's kernel.
    pub late: Distribution,
    /// From a request's arrival to when its answer was due: the drive's own, times the dilation.
    pub latency: Distribution,
}

/// What to think of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    what: &'static str,
    summary: Summary,
    floor: Floor,
    dilation: f64,
}

impl Verdict {
    /// On requests of a kind; nothing where there were none.
    pub fn new(what: &'static str, summary: Summary, floor: Floor, dilation: f64) -> Option<Verdict> {
        (summary.count > 0).then_some(Verdict { what, summary, floor, dilation })
    }

    /// Mean lateness over mean latency.
    pub fn share(&self) -> f64 {
        self.summary.late.mean / self.summary.latency.mean.max(1.0)
    }

    /// The same with the way to the server and back, which the server cannot see, and no answer can make good.
    pub fn share_with_floor(&self) -> f64 {
        (self.summary.late.mean + self.floor.round_trip.as_nanos() as f64)
            / self.summary.latency.mean.max(1.0)
    }

    /// Whether the times that programs measure are the drive's.
    pub fn is_on_time(&self) -> bool {
        self.share_with_floor() <= SHARE_MAX
    }

    /// A dilation at which they would be; nothing where they are.
    pub fn dilation_needed(&self) -> Option<f64> {
        let needed = self.dilation * self.share_with_floor() / SHARE_MAX;
        (!self.is_on_time()).then(|| if needed < 10.0 { needed.ceil() } else { round_up(needed) })
    }
}

/// Up to two digits.
fn round_up(number: f64) -> f64 {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    (number / unit).ceil() * unit
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: f64| Ns(ns as u64);
        let (late, percent) = (&self.summary.late, |share: f64| share * 100.0);
        write!(
            f,
            "{}: {} by {} in the mean, {:.2} % of {} ({:.2} % with this host's own {}), p50 {}, p99 {}, max {}",
            self.what,
            if self.is_on_time() { "on time, late" } else { "LATE" },
            time(late.mean),
            percent(self.share()),
            time(self.summary.latency.mean),
            percent(self.share_with_floor()),
            time(self.floor.round_trip.as_nanos() as f64),
            time(late.p50 as f64),
            time(late.p99 as f64),
            time(late.max as f64),
        )?;
        match self.dilation_needed() {
            None => Ok(()),
            Some(needed) => write!(f, "; --dilate {needed} would hide it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(late: u64, latency: u64, trip: u64, dilation: f64) -> Verdict {
        let mut lateness = Lateness::default();
        for _ in 0..10 {
            lateness.record(Duration::from_nanos(late), Duration::from_nanos(latency));
        }
        let floor = Floor { round_trip: Duration::from_nanos(trip), wake_up: Duration::ZERO };
        Verdict::new("reads and writes", lateness.summary(), floor, dilation).unwrap()
    }

    #[test]
    fn more_than_a_twentieth_is_late_and_the_dilation_that_it_takes_is_told() {
        let on_time = verdict(2_000, 100_000, 3_000, 1.0);
        assert!(on_time.is_on_time() && on_time.dilation_needed().is_none(), "{on_time}");
        let late = verdict(2_100, 100_000, 3_000, 1.0);
        assert!(!late.is_on_time() && late.to_string().contains("LATE"), "{late}");
        assert_eq!(late.dilation_needed(), Some(2.0));
        assert_eq!(verdict(50_000, 100_000, 50_000, 1.0).dilation_needed(), Some(20.0));
        assert_eq!(verdict(50_000, 100_000, 50_000, 3.0).dilation_needed(), Some(60.0));
        // At that dilation latencies are so much longer, and the host is what it was.
        assert!(verdict(50_000, 2_000_000, 50_000, 20.0).is_on_time());
        let floor = Floor { round_trip: Duration::ZERO, wake_up: Duration::ZERO };
        assert!(Verdict::new("flushes", Lateness::default().summary(), floor, 1.0).is_none());
    }
}
