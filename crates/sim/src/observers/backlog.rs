//! Whether a trace at recorded times asks for more than can be served.
//!
//! A run is overloaded
//!
//! * when its backlog **grows**: some last part of the window, a quarter of it or more, holds more work than time. It does when the wait at
//!   its end is longer than the wait at its beginning and all the time to spare in it together: requests came faster than they were
//!   served, and the rest of that part did not make up for it. Over the whole window this is a window that holds more work than time;
//!   over its end, a backlog that grows to its end;
//! * when its backlog **stands**: requests wait outside the full queue for a fifth of the window or more. Bursts may fit in the window
//!   one by one, and be most of its requests' latencies nevertheless.
//!
//! A burst that fits leaves more time to spare around it than it takes, and a queue that a scheduler keeps long without it growing
//! waits as long at the beginning. Fewer than 64 waiting requests are what a queue is for, and no backlog.
//!
//! The window begins with the first request that is measured: a warm-up asks for nothing. What it left waiting is the wait at the beginning.
//!
//! Memory is bounded: the window is told apart in up to 1024 parts of as many requests each.

use super::{Completion, Observer};
use crate::host::{QueuedRequest, Slot};
use crate::results::{Cause, Overload};
use planewise_model::{Ns, Request};

/// Most parts in which the window is remembered. When they are full, two become one.
const PARTS: usize = 1024;
/// Requests of a part at first, as a power of two: waits of fewer say little.
const LEAST_SHIFT: u32 = 4;
/// Waits at a point of the window are means over so much of it, or over two parts.
const SMOOTHED: usize = 64;
/// The shortest end of the window in which a backlog is judged to grow.
const LEAST_SHARE: f64 = 0.25;
/// A backlog outside the queue that is there for less of the window is a burst's. On pgbench's storms, runs that keep up have one for 2 to
/// 7 % of the time, those whose latencies are the backlog's for 23 % and more.
const STANDING_SHARE: f64 = 0.2;
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

/// Watches waits and spare time of an open loop.
#[derive(Default)]
pub struct Backlog {
    /// Requests of the warm-up.
    warm_up: u64,
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
    /// Until when requests waited outside the queue, and for how long altogether.
    outside_until: Ns,
    outside: Ns,
    /// Sum of the waits outside.
    waited_outside: u128,
}

impl Backlog {
    /// Nothing seen yet; the window begins behind so many requests.
    pub fn new(warm_up: u64) -> Backlog {
        Backlog { warm_up, shift: LEAST_SHIFT, ..Backlog::default() }
    }

    #[inline]
    fn arrives(&mut self, now: Ns, request: &Request, sequence: u64) {
        let measured = sequence.checked_sub(self.warm_up);
        if now > request.arrival && measured.is_some() {
            // Several wait outside at a time: each adds what the ones before it did not.
            self.outside += now - request.arrival.max(self.outside_until).min(now);
            self.outside_until = now;
            self.waited_outside += u128::from((now - request.arrival).0);
        }
        // Where the queue has two pools, who waited outside of one enters behind later ones of the other: the window goes on as it did.
        let arrival = request.arrival.max(self.last_arrival);
        if self.waiting == 0 && arrival > self.idle_since {
            // What waited outside a full queue waited since its arrival.
            self.spare += arrival - self.idle_since;
            self.idle_since = arrival;
        }
        self.last_arrival = arrival;
        let Some(number) = measured else { return };
        if (number >> self.shift) as usize >= self.parts.len() {
            self.begin_part(arrival);
        }
        self.requests += 1;
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
        let found = self.found()?;
        let scale_time = rounded_up(self.stable_factor() * STABLE_MARGIN * scale);
        let offered_iops = self.requests as f64 / self.window() * 1e9;
        Some(Overload {
            offered_iops,
            stable_iops: offered_iops / (scale_time / scale),
            stable_scale_time: scale_time,
            ..found
        })
    }

    /// From the first arrival to the last, ns.
    fn window(&self) -> f64 {
        self.parts.first().map_or(0.0, |first| (self.last_arrival - first.arrival).0 as f64)
    }

    fn found(&self) -> Option<Overload> {
        let window = self.window();
        self.grows(window).or_else(|| self.stands(window))
    }

    /// By how much slower the same requests must come, at least, for the verdict to be another: found by halving.
    fn stable_factor(&self) -> f64 {
        // Bursts shorter than a part flow out of sight: so many times longer did requests wait outside than the fluid says.
        let out_of_sight =
            (self.outside.0 as f64 / (self.slower(1.0, 1.0).outside.0 as f64).max(1.0)).max(1.0);
        let (mut low, mut high) = (1.0, 2.0);
        while self.slower(high, out_of_sight).found().is_some() && high < 1e9 {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..20 {
            let middle = f64::sqrt(low * high);
            if self.slower(middle, out_of_sight).found().is_some() {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// What would be seen if the same requests came slower by a factor, and each part of the window took as long to serve as it did:
    /// the backlog as a fluid that flows in at one rate and out at another, and that stands so many times longer than it says itself.
    fn slower(&self, factor: f64, out_of_sight: f64) -> Backlog {
        let mut slower = Backlog {
            warm_up: self.warm_up,
            requests: self.requests,
            shift: self.shift,
            ..Backlog::default()
        };
        // The warm-up would have come slower, too.
        let left_by_warm_up = self.wait_around(0, 1) / factor;
        let (mut now, mut backlog, mut spare, mut outside) = (0.0, left_by_warm_up, 0.0, 0.0);
        for (index, part) in self.parts.iter().enumerate() {
            let wait = self.wait_around(index, 1);
            slower.parts.push(Part {
                arrival: Ns(now as u64),
                spare: Ns(spare as u64),
                waited: backlog as u128,
                completed: 1,
            });
            let (end, spare_at_end) = self
                .parts
                .get(index + 1)
                .map_or((self.last_arrival, self.spare), |next| (next.arrival, next.spare));
            let recorded = (end - part.arrival).0 as f64;
            let idle = (spare_at_end - part.spare).0 as f64;
            let work = (recorded - idle + self.wait_around(index + 1, 1) - wait).max(0.0);
            let time = recorded * factor;
            let left: f64 = backlog + work - time;
            let backlogged = if left >= 0.0 { time } else { (backlog * time / (time - work)).min(time) };
            (backlog, spare, outside) = (left.max(0.0), spare + time - backlogged, outside + backlogged);
            now += time;
        }
        slower.parts.push(Part {
            arrival: Ns(now as u64),
            spare: Ns(spare as u64),
            waited: backlog as u128,
            completed: 1,
        });
        (slower.last_arrival, slower.spare) = (Ns(now as u64), Ns(spare as u64));
        slower.outside = Ns(((outside + backlog) * out_of_sight) as u64);
        // Whatever its number: there were enough of them.
        slower.waited_outside = u128::MAX;
        slower
    }

    /// The wait at the beginning of a part, or at the end of all of them: the mean of so many parts on either side.
    fn wait_around(&self, index: usize, half: usize) -> f64 {
        if index == 0 && self.warm_up == 0 {
            return 0.0;
        }
        let around = &self.parts[index.saturating_sub(half)..(index + half).min(self.parts.len())];
        let completed: u64 = around.iter().map(|part| part.completed).sum();
        let waited: u128 = around.iter().map(|part| part.waited).sum();
        if completed == 0 { 0.0 } else { waited as f64 / completed as f64 }
    }

    /// The last part of the window that holds most more work than time.
    fn grows(&self, window: f64) -> Option<Overload> {
        let half = (self.parts.len() / SMOOTHED / 2).max(1);
        let end = self.wait_around(self.parts.len(), half);
        let mut worst: Option<Overload> = None;
        for (index, part) in self.parts.iter().enumerate() {
            let time = (self.last_arrival - part.arrival).0 as f64;
            if time < LEAST_SHARE * window || time == 0.0 {
                break;
            }
            let wait = self.wait_around(index, half);
            let spare = (self.spare - part.spare).0 as f64;
            let work = time + end - wait - spare;
            let requests = (self.requests - ((index as u64) << self.shift)) as f64;
            let (factor, backlog) = (work / time, end * requests / work);
            let is_worst = worst.is_none_or(|worst| factor > worst.factor);
            if factor > 1.0 + MARGIN && backlog >= LEAST_WAITING && is_worst {
                worst = Some(Overload {
                    cause: Cause::Grows,
                    window_share: time / window,
                    factor,
                    backlog_ns: end as u64,
                    backlog_requests: backlog as u64,
                    ..Overload::default()
                });
            }
        }
        worst
    }

    /// The backlog outside the queue, when it is there most of the time.
    fn stands(&self, window: f64) -> Option<Overload> {
        let (time, waited) = (self.outside.0 as f64, self.waited_outside as f64);
        // By Little's law, while there are any.
        let backlog = waited / time.max(1.0);
        // The backlog of the last requests may be served after the window.
        let share = time / window;
        (share > STANDING_SHARE && backlog >= LEAST_WAITING && window > 0.0).then(|| Overload {
            cause: Cause::Stands,
            window_share: share.min(1.0),
            factor: share / STANDING_SHARE,
            backlog_ns: (waited / self.requests as f64) as u64,
            backlog_requests: backlog as u64,
            ..Overload::default()
        })
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
    fn enter(&mut self, now: Ns, _slot: Slot, request: &QueuedRequest) {
        self.arrives(now, &request.request, request.sequence);
        self.waiting += 1;
    }

    fn merge(&mut self, now: Ns, _slot: Slot, sequence: u64, request: &Request) {
        self.arrives(now, request, sequence);
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
        let Some(number) = completion.sequence.checked_sub(self.warm_up) else { return };
        let part = &mut self.parts[(number >> self.shift) as usize];
        part.waited += u128::from((completion.issued - completion.request.arrival).0);
        part.completed += 1;
    }
}
