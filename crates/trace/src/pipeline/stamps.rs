//! Stamps coarser than what they stamp: whole seconds put all requests of a second at one instant, where no drive ever met them so.

use planewise_model::{Ns, Request};

const SECOND: u64 = 1_000_000_000;
/// Requests from which on stamps are judged.
const LEAST: u64 = 64;
/// Requests of a stamp, on average, from which on they are a lump.
const LUMP: u64 = 2;

/// How fine the stamps are that were read.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// One was no whole second.
    is_fine: bool,
    requests: u64,
    /// Stamps that were another than the one before them.
    changes: u64,
}

impl Stamps {
    /// A stamp was read; `before` is the one before it.
    #[inline]
    pub(super) fn note(&mut self, stamp: Ns, before: Ns) {
        if !self.is_fine {
            self.requests += 1;
            self.changes += u64::from(stamp != before || self.requests == 1);
            self.is_fine = !stamp.0.is_multiple_of(SECOND);
        }
    }

    /// What to tell the user, if all stamps are whole seconds.
    pub(super) fn warning(&self) -> Option<String> {
        let each = self.requests / self.changes.max(1);
        (!self.is_fine && self.requests >= LEAST && each >= LUMP).then(|| {
            format!(
                "all stamps are whole seconds: about {each} requests arrive at each instant, as they never did, and latencies are those of such lumps; \
                 --spread-arrivals puts the requests of a second evenly into it"
            )
        })
    }
}

/// Spreads requests of the same arrival evenly over a step of the clock, and not beyond the next arrival, which is `next` for the last. They
/// are in order before and after, whatever the step is.
pub(super) fn spread(requests: &mut [Request], next: Ns, step: Ns) {
    let mut from = 0;
    while let Some(arrival) = requests.get(from).map(|request| request.arrival) {
        let count = requests[from..].partition_point(|request| request.arrival == arrival);
        let end = requests.get(from + count).map_or(next, |request| request.arrival);
        let step = u128::from(step.min(end - arrival).0);
        for (place, request) in requests[from..from + count].iter_mut().enumerate() {
            request.arrival += Ns((step * place as u128 / count as u128) as u64);
        }
        from += count;
    }
}
