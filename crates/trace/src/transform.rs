//! Changes to a stream of requests: cut a part out, scale its time, fold it onto a device.
//!
//! A [`Transform`] works on batches in place, so that it goes with every source of requests and costs no copy. With
//! [`Source::then`] they chain:
//!
//! ```
//! use planewise_model::Request;
//! use planewise_trace::transform::{Fold, ScaleTime, Source};
//! let volume = planewise_trace::synth::volume("piq-hm_0").unwrap();
//! let stream = planewise_trace::synth::Generator::new(&volume, 1000, 1).unwrap();
//! let mut faster = stream.then(ScaleTime::new(0.1).unwrap()).then(Fold::new(1 << 21).unwrap());
//! let mut batch: Vec<Request> = Vec::new();
//! while faster.next_batch(&mut batch, 64).unwrap() > 0 {}
//! assert!(batch.len() == 1000 && batch.iter().all(|request| request.end().0 <= 1 << 21));
//! ```

use crate::error::TraceError;
use crate::pipeline::Trace;
use crate::synth::Generator;
use planewise_model::Request;
use planewise_model::units::{Lsn, Ns};
use std::convert::Infallible;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Something that hands out requests in batches.
pub trait Source {
    /// What can go wrong underneath.
    type Error;

    /// Appends requests to `batch`: up to `limit`, except where a split makes one more of one. Returns how many; 0 means
    /// the end.
    ///
    /// # Errors
    /// What the source underneath says.
    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, Self::Error>;

    /// This source, changed.
    fn then<T: Transform>(self, transform: T) -> Then<Self, T>
    where
        Self: Sized,
    {
        Then { source: self, transform }
    }
}

impl Source for Trace {
    type Error = TraceError;

    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, TraceError> {
        Trace::next_batch(self, batch, limit)
    }
}

impl Source for Generator {
    type Error = Infallible;

    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, Infallible> {
        Ok(Generator::next_batch(self, batch, limit))
    }
}

/// A change to requests in arrival order.
pub trait Transform {
    /// Changes `batch[first..]`; may drop requests and add some.
    fn apply(&mut self, batch: &mut Vec<Request>, first: usize);

    /// Whether everything to come would be dropped, so that reading on is in vain.
    fn is_done(&self) -> bool {
        false
    }
}

/// A source and what is done to its requests.
pub struct Then<S, T> {
    source: S,
    transform: T,
}

impl<S: Source, T: Transform> Source for Then<S, T> {
    type Error = S::Error;

    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, S::Error> {
        let first = batch.len();
        // A batch of which nothing is left is not the end.
        while batch.len() == first && !self.transform.is_done() && self.source.next_batch(batch, limit)? > 0 {
            self.transform.apply(batch, first);
        }
        Ok(batch.len() - first)
    }
}

/// A value that no transform works with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found}; allowed: {allowed}")]
pub struct TransformError {
    /// What the value is for.
    pub what: &'static str,
    /// The value.
    pub found: String,
    /// What it may be.
    pub allowed: &'static str,
}

/// A part of a trace. All three ranges hold at once; the first request kept arrives at 0.
#[derive(Clone, Debug)]
pub struct Cut {
    arrivals: Range<Ns>,
    requests: Range<u64>,
    sectors: Range<Lsn>,
    seen: u64,
    base: Option<Ns>,
    done: bool,
}

impl Cut {
    /// Keeps the requests that
    /// * arrive in `arrivals`, counted from the start of the source,
    /// * are, counted from 0 in the source, in `requests`, and
    /// * touch `sectors`. What of a request lies outside is cut off; addresses do not move.
    ///
    /// Use `Ns::ZERO..Ns::MAX`, `0..u64::MAX`, `Lsn(0)..Lsn(u64::MAX)` for what is not to be cut.
    ///
    /// # Errors
    /// An empty range.
    pub fn new(
        arrivals: Range<Ns>,
        requests: Range<u64>,
        sectors: Range<Lsn>,
    ) -> Result<Cut, TransformError> {
        let refuse = |what, found: String| {
            Err(TransformError { what, found, allowed: "a range that ends after it starts" })
        };
        if arrivals.is_empty() {
            return refuse("arrivals to keep", format!("from {} to {}", arrivals.start, arrivals.end));
        }
        if requests.is_empty() {
            return refuse("requests to keep", format!("from {} to {}", requests.start, requests.end));
        }
        if sectors.is_empty() {
            return refuse("sectors to keep", format!("from {} to {}", sectors.start.0, sectors.end.0));
        }
        Ok(Cut { arrivals, requests, sectors, seen: 0, base: None, done: false })
    }

    fn keep(&mut self, request: Request) -> Option<Request> {
        let number = self.seen;
        self.seen += 1;
        self.done |= self.seen >= self.requests.end || request.arrival >= self.arrivals.end;
        let start = request.start.max(self.sectors.start);
        let end = request.end().min(self.sectors.end);
        // A flush has no sectors that could lie outside.
        let lies_outside = start >= end && !request.operation.is_flush();
        if !self.requests.contains(&number) || !self.arrivals.contains(&request.arrival) || lies_outside {
            return None;
        }
        let base = *self.base.get_or_insert(request.arrival);
        let arrival = request.arrival.saturating_sub(base);
        if request.operation.is_flush() {
            return Some(Request { arrival, ..request });
        }
        Some(Request { arrival, start, sectors: (end.0 - start.0) as u32, ..request })
    }
}

impl Transform for Cut {
    fn apply(&mut self, batch: &mut Vec<Request>, first: usize) {
        let mut kept = first;
        for index in first..batch.len() {
            if let Some(request) = self.keep(batch[index]) {
                batch[kept] = request;
                kept += 1;
            }
        }
        batch.truncate(kept);
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// Arrivals times a factor: below 1 the load rises. Recorded response times stay what the recorded device took.
#[derive(Clone, Copy, Debug)]
pub struct ScaleTime {
    factor: f64,
}

impl ScaleTime {
    /// Multiplies by `factor`, rounded to the nanosecond, without ever changing the order of arrivals.
    ///
    /// # Errors
    /// A factor that is not a positive finite number, or above 1e9.
    pub fn new(factor: f64) -> Result<ScaleTime, TransformError> {
        if factor > 0.0 && factor <= 1e9 {
            return Ok(ScaleTime { factor });
        }
        Err(TransformError {
            what: "factor of time",
            found: factor.to_string(),
            allowed: "above 0, up to 1e9",
        })
    }
}

impl Transform for ScaleTime {
    fn apply(&mut self, batch: &mut Vec<Request>, first: usize) {
        // A factor of 1 must not cost the digits that a double does not hold.
        if self.factor != 1.0 {
            for request in &mut batch[first..] {
                // The cast saturates; multiplication and rounding never swap two values, so the order stays.
                request.arrival = Ns((request.arrival.0 as f64 * self.factor).round() as u64);
            }
        }
    }
}

/// What becomes of a request that, folded, reaches past the end of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// It is cut off at the end: as many requests as before, fewer bytes.
    #[default]
    Clamp,
    /// It goes on at sector 0 as a second request of the same arrival: as many bytes as before, more requests.
    Split,
}

/// Folds addresses onto a device: `start % device_sectors`. Volumes of a trace land on top of one another.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    device_sectors: u64,
    at_end: AtEnd,
}

impl Fold {
    /// Folds onto a device of so many sectors; requests past its end are clamped. A request larger than the device
    /// becomes as large as the device.
    ///
    /// # Errors
    /// A device without sectors.
    pub fn new(device_sectors: u64) -> Result<Fold, TransformError> {
        if device_sectors > 0 {
            return Ok(Fold { device_sectors, at_end: AtEnd::Clamp });
        }
        Err(TransformError { what: "sectors of the device", found: "0".to_owned(), allowed: "at least 1" })
    }

    /// What to do at the end of the device.
    pub fn at_end(self, at_end: AtEnd) -> Fold {
        Fold { at_end, ..self }
    }

    /// Folds in place and returns the sectors that do not fit before the end.
    #[inline]
    fn fold(&self, request: &mut Request) -> u32 {
        let whole = u64::from(request.sectors).min(self.device_sectors);
        request.start.0 %= self.device_sectors;
        let fits = whole.min(self.device_sectors - request.start.0);
        request.sectors = fits as u32;
        (whole - fits) as u32
    }
}

impl Transform for Fold {
    fn apply(&mut self, batch: &mut Vec<Request>, first: usize) {
        match self.at_end {
            AtEnd::Clamp => {
                for request in &mut batch[first..] {
                    self.fold(request);
                }
            }
            AtEnd::Split => {
                let mut index = first;
                while index < batch.len() {
                    let rest = self.fold(&mut batch[index]);
                    if rest > 0 {
                        // Rare: only requests over the very end are split.
                        index += 1;
                        batch.insert(index, Request { start: Lsn(0), sectors: rest, ..batch[index - 1] });
                    }
                    index += 1;
                }
            }
        }
    }
}
