//! Writes that bring a device into the state that an experiment begins with. They are not measured.

use crate::target::{Completed, Operation, Target, TargetError};
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES, rng};
use rand::RngExt;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time without a look at whether the user wants to stop.
const LOOK: Ns = Ns::from_millis(50);

/// A part of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

impl Area {
    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Writes, one kind after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// All of an area in order, one request at a time.
    Fill {
        /// Where.
        area: Area,
        /// Bytes of a request.
        size: u32,
    },
    /// All of an area in order, one chunk at a time, and chunks all over another area behind each: on a device that maps by the
    /// order of writes, the first area comes to lie on one domain of every `between + 1`.
    Spread {
        /// Where in order.
        area: Area,
        /// Where the others go.
        elsewhere: Area,
        /// Bytes of a request.
        size: u32,
        /// Others behind each.
        between: u32,
    },
    /// Anywhere in an area, for some time.
    Random {
        /// Where.
        area: Area,
        /// Bytes of a request.
        size: u32,
        /// Requests in flight.
        depth: u32,
        /// How long.
        time: Ns,
    },
}

impl Writes {
    /// Bytes written, where that is known beforehand.
    pub fn volume(&self) -> Option<Bytes> {
        match *self {
            Writes::Fill { area, .. } => Some(Bytes(area.length)),
            Writes::Spread { area, between, .. } => Some(Bytes(area.length * u64::from(between + 1))),
            Writes::Random { .. } => None,
        }
    }

    /// How long they take, where that was asked for.
    pub fn time(&self) -> Option<Ns> {
        match *self {
            Writes::Random { time, .. } => Some(time),
            Writes::Fill { .. } | Writes::Spread { .. } => None,
        }
    }

    /// First byte behind all that they write.
    pub fn end(&self) -> u64 {
        match *self {
            Writes::Fill { area, .. } | Writes::Random { area, .. } => area.end(),
            Writes::Spread { area, elsewhere, .. } => area.end().max(elsewhere.end()),
        }
    }

    /// Requests in flight.
    pub fn depth(&self) -> u32 {
        match *self {
            Writes::Random { depth, .. } => depth,
            // One at a time: the order in which they arrive decides where they come to lie.
            Writes::Fill { .. } | Writes::Spread { .. } => 1,
        }
    }

    /// Carries them out, and waits until they are safe. False when told to stop.
    ///
    /// # Errors
    /// The target fails.
    pub fn carry_out(
        &self,
        target: &mut dyn Target,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<bool, TargetError> {
        let mut random = rng::generator(seed, "experiment writes");
        let mut anywhere = move |area: &Area, size: u32| {
            let places = area.length / u64::from(size);
            area.start + random.random_range(0..places) * u64::from(size)
        };
        let done = match *self {
            Writes::Fill { area, size } => {
                let mut at = area.start;
                write(target, 1, stop, &mut |_| {
                    let bytes = u64::from(size).min(area.end() - at);
                    at += bytes;
                    (bytes > 0).then(|| (at - bytes, bytes))
                })?
            }
            Writes::Spread { area, elsewhere, size, between } => {
                let (mut at, mut turn) = (area.start, 0);
                let mut scattered = Scattered::new(elsewhere, size);
                write(target, 1, stop, &mut |_| {
                    let bytes = u64::from(size);
                    if turn == 0 && at + bytes > area.end() {
                        return None;
                    }
                    let place = if turn == 0 { at } else { scattered.next() };
                    at += if turn == 0 { bytes } else { 0 };
                    turn = (turn + 1) % (between + 1);
                    Some((place, bytes))
                })?
            }
            Writes::Random { area, size, depth, time } => {
                let end = target.now() + time;
                write(target, depth, stop, &mut |now| {
                    (now < end).then(|| (anywhere(&area, size), u64::from(size)))
                })?
            }
        };
        target.flush()?;
        Ok(done)
    }
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writes::Fill { size, .. } => write!(f, "in order, {} at a time", Bytes(u64::from(*size))),
            Writes::Spread { size, between, .. } => {
                write!(
                    f,
                    "in order, {} at a time with {between} elsewhere behind each",
                    Bytes(u64::from(*size))
                )
            }
            Writes::Random { size, depth, time, .. } => {
                write!(f, "anywhere for {time}, {depth} of {} at a time", Bytes(u64::from(*size)))
            }
        }
    }
}

/// Places of an area far from one another, each once before one comes again: a place that was written twice while a drive still holds it in its
/// buffer would count as one write, and all that follows would come to lie one domain off.
struct Scattered {
    area: Area,
    size: u64,
    places: u64,
    step: u64,
    place: u64,
}

impl Scattered {
    fn new(area: Area, size: u32) -> Scattered {
        let size = u64::from(size);
        let places = area.length / size;
        // The golden section leaves the largest gaps; a step without a common divisor reaches all places.
        let golden = (places as f64 * 0.618_033_988_749_895) as u64;
        let step = (golden.max(1)..=places).find(|step| divisor(*step, places) == 1).unwrap_or(1);
        Scattered { area, size, places, step, place: 0 }
    }

    fn next(&mut self) -> u64 {
        self.place = (self.place + self.step) % self.places;
        self.area.start + self.place * self.size
    }
}

/// The greatest common divisor.
fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// Writes what `next` says, as `(byte, length)`, with so many in flight, until it says nothing more.
fn write(
    target: &mut dyn Target,
    depth: u32,
    stop: &AtomicBool,
    next: &mut dyn FnMut(Ns) -> Option<(u64, u64)>,
) -> Result<bool, TargetError> {
    let mut free: Vec<u32> = (0..depth.min(target.info().depth)).rev().collect();
    let all = free.len();
    let mut completed: Vec<Completed> = Vec::with_capacity(all);
    let mut now = target.now();
    let mut more = true;
    loop {
        let stopped = stop.load(Ordering::Relaxed);
        while more
            && !stopped
            && let Some(&tag) = free.last()
        {
            let Some((start, length)) = next(now) else {
                more = false;
                break;
            };
            let operation = Operation::write(Lsn(start / SECTOR_BYTES), (length / SECTOR_BYTES) as u32);
            target.submit(tag, operation)?;
            free.pop();
        }
        if free.len() == all {
            return Ok(!stopped);
        }
        now = target.wait(Ns::MAX, &mut completed)?;
        free.extend(completed.drain(..).map(|one| one.tag));
    }
}

/// Bytes that are read to see how fast a target is.
const SAMPLE_BYTES: u64 = 32 << 20;

/// Bytes a second that a target reads in order, 256 KiB at a time: how long writing takes is of the same order.
///
/// # Errors
/// The target fails.
pub fn reading_rate(target: &mut dyn Target) -> Result<f64, TargetError> {
    let request = (256 << 10).min(target.info().longest.0).min(target.info().capacity.0);
    let requests = (SAMPLE_BYTES.min(target.info().capacity.0) / request).max(1);
    let begun = target.now();
    for number in 0..requests {
        let start = Lsn(number * request / SECTOR_BYTES);
        target.submit(0, Operation::read(start, (request / SECTOR_BYTES) as u32))?;
        target.wait(Ns::MAX, &mut Vec::new())?;
    }
    let took = (target.now() - begun).as_secs_f64().max(1e-9);
    Ok((requests * request) as f64 / took)
}

/// Lets time pass. False when told to stop.
///
/// # Errors
/// The target fails.
pub fn rest(target: &mut dyn Target, time: Ns, stop: &AtomicBool) -> Result<bool, TargetError> {
    let end = target.now() + time;
    loop {
        let now = target.now();
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if now >= end {
            return Ok(true);
        }
        target.wait(end.min(now + LOOK), &mut Vec::new())?;
    }
}
