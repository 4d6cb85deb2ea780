//! Whether a trace at recorded times asks for more than can be served.
//!
//! Two things are watched: how long requests wait before they are issued, outside the host's queue and in it, in the order of their
//! arrival; and the time in which nothing waits, which the system has to spare. Some last part of the window, a quarter of it or more,
//! *holds more work than time* when the wait at its end is longer than the wait at its beginning and all the spare time in it
//! together: requests came faster than they were served, and the rest of that part did not make up for it. Over the whole window this
//! is a window that holds more work than time; over its end, a backlog that grows to its end. A burst that fits leaves more time to
//! spare around it than it takes, and a queue that a scheduler keeps long without it growing waits as long at the beginning.
//!
//! Memory is bounded: the window is told apart in up to 128 parts of as many requests each.

use super::{Completion, Observer};
use crate::host::{QueuedRequest, Slot};
use crate::results::Overload;
use planewise_model::{Ns, Request};

/// Most parts in which the window is remembered. When they are full, two become one.
const PARTS: usize = 128;
/// The shortest end of the window that is judged: what takes less of it is a burst.
const LEAST_SHARE: f64 = 0.25;
/// Fewer waiting requests at the end are no backlog: what a queue is for.
const LEAST_WAITING: f64 = 64.0;
/// By how much work must exceed time. Closer to 1 than this, chance decides.
const MARGIN: f64 = 0.005;
/// How much slower than the rate at which work and time are equal a rate is told to be stable.
const STABLE_MARGIN: f64 = 1.1;

/// Requests that arrived one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// When the first of them arrived, and the time to spare before that.
    arrival: Ns,
    spare: Ns,
    /// Sum of the waits of those that completed, and their number.
    waited: u128,
    completed: u64,
}

impl Part {
    fn mean_wait(&self) -> f64 {
        if self.completed == 0 { 0.0 } else { self.waited as f64 / self.completed as f64 }
    }
}

/// Watches waits and spare time of an open loop.
#[derive(Default)]
pub struct Backlog {
    parts: Vec<Part>,
    /// Requests of a part, as a power of two.
    shift: u32,
    requests: u64,
    last_arrival: Ns,
    /// Requests in the host's queue that are not issued.
    waiting: u32,
    /// Since when none is, if that is so; and the time so far.
    idle_since: Ns,
    spare: Ns,
}

impl Backlog {
    /// Nothing seen yet.
    pub fn new() -> Backlog {
        Backlog::default()
    }

    #[inline]
    fn arrives(&mut self, request: &Request, sequence: u64) {
        if self.waiting == 0 && request.arrival > self.idle_since {
            // What waited outside a full queue waited since its arrival.
            self.spare += request.arrival - self.idle_since;
            self.idle_since = request.arrival;
        }
        let place = (sequence >> self.shift) as usize;
        if place >= self.parts.len() {
            self.begin_part(request.arrival);
        }
        self.requests += 1;
        self.last_arrival = request.arrival;
    }

    #[cold]
    fn begin_part(&mut self, arrival: Ns) {
        if self.parts.len() == PARTS {
            for index in 0..PARTS / 2 {
                let (first, second) = (self.parts[2 * index], self.parts[2 * index + 1]);
                let (waited, completed) = (first.waited + second.waited, first.completed + second.completed);
                self.parts[index] = Part { waited, completed, ..first };
            }
            self.parts.truncate(PARTS / 2);
            self.shift += 1;
        }
        self.parts.push(Part { arrival, spare: self.spare, ..Part::default() });
    }

    /// The verdict: none when everything that was asked for could be served. `scale` is what recorded times were multiplied by.
    pub fn overload(&self, scale: f64) -> Option<Overload> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let window = (self.last_arrival - first.arrival).0 as f64;
        // The last part may be of a few requests only: then the one before it says more.
        let end = match self.parts.as_slice() {
            [.., before, last] if last.completed < before.completed / 2 => before.mean_wait().max(last.mean_wait()),
            _ => last.mean_wait(),
        };
        let mut worst: Option<Overload> = None;
        for (index, part) in self.parts.iter().enumerate() {
            let time = (self.last_arrival - part.arrival).0 as f64;
            if time < LEAST_SHARE * window || time == 0.0 {
                break;
            }
            let wait = if index == 0 { 0.0 } else { part.mean_wait() };
            let spare = (self.spare - part.spare).0 as f64;
            let work = time + end - wait - spare;
            let requests = (self.requests - ((index as u64) << self.shift)) as f64;
            let (work_over_time, backlog) = (work / time, end * requests / work);
            let is_worst = worst.is_none_or(|worst| work_over_time > worst.work_over_time);
            if work_over_time <= 1.0 + MARGIN || backlog < LEAST_WAITING || !is_worst {
                continue;
            }
            let offered_iops = requests / time * 1e9;
            let slower = rounded_up(work_over_time * STABLE_MARGIN * scale) / scale;
            worst = Some(Overload {
                window_share: time / window,
                work_over_time,
                backlog_ns: end as u64,
                backlog_requests: backlog as u64,
                offered_iops,
                stable_iops: offered_iops / slower,
                stable_scale_time: slower * scale,
            });
        }
        worst
    }
}

/// A factor with two significant digits, not below the value.
fn rounded_up(value: f64) -> f64 {
    let step = 10f64.powi(value.log10().floor() as i32 - 1);
    let rounded = (value / step).ceil() * step;
    // Without the digits that a binary fraction has past them.
    format!("{rounded:.12}").parse().unwrap_or(rounded)
}

impl Observer for Backlog {
    #[inline]
    fn enter(&mut self, _now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.arrives(&request.request, request.sequence);
        self.waiting += 1;
    }

    fn merge(&mut self, _now: Ns, _slot: Slot, sequence: u64, request: &Request) {
        self.arrives(request, sequence);
    }

    fn join(&mut self, _now: Ns, _into: Slot, _other: Slot) {
        self.waiting -= 1;
    }

    #[inline]
    fn issue(&mut self, now: Ns, _slot: Slot, _request: &QueuedRequest) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.idle_since = now;
        }
    }

    #[inline]
    fn complete(&mut self, _slot: Slot, completion: &Completion) {
        let part = &mut self.parts[(completion.sequence >> self.shift) as usize];
        part.waited += u128::from((completion.issued - completion.request.arrival).0);
        part.completed += 1;
    }
}

#[cfg(test)]
mod tests;
