//! Read-ahead: whether sequential reads find their data in a buffer, for how many streams, and how far ahead (Chen et al. 2016,
//! section 6.3).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::statistics::{Moments, confidence, in_errors, median, quantile, welch};
use crate::target::Operation;
use planewise_model::words::counted;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// What is read ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadAhead {
    /// Whether sequential reads are faster than random ones.
    pub present: Finding<bool>,
    /// Reads in sequence after which it begins.
    pub trigger: Finding<u32>,
    /// Data that are read ahead of a stream.
    pub window: Finding<Bytes>,
    /// Streams that are told apart.
    pub streams: Finding<u32>,
}

impl ReadAhead {
    /// There is none, or nobody knows.
    pub(super) fn without(present: Finding<bool>) -> ReadAhead {
        fn of<T>(present: &Finding<bool>) -> Finding<T> {
            match present.value {
                Some(_) => Finding::absent(present.confidence, String::new(), "there is no read-ahead"),
                None => Finding::undetermined(String::new(), "whether there is read-ahead is not known"),
            }
        }
        ReadAhead { trigger: of(&present), window: of(&present), streams: of(&present), present }
    }
}

/// Reads that take less than this share of the fastest tenth of random ones come from a buffer.
const CLEARLY: f64 = 0.8;
/// Streams are looked for up to this many.
const MOST_STREAMS: u32 = 32;

/// Looks for read-ahead with reads of `sectors`; `alone` is how long one takes at a random place, ns.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    alone: f64,
    repeats: usize,
) -> Result<(ReadAhead, Vec<Curve>), ProbeError> {
    const LENGTH: u64 = 32;
    let mut by_place = vec![Moments::default(); LENGTH as usize];
    let (mut firsts, mut lates) = (Vec::new(), Vec::new());
    for _ in 0..repeats.max(4) {
        let at = place(instrument, area, sectors, 4 * LENGTH);
        for (number, moments) in by_place.iter_mut().enumerate() {
            let time = instrument.single(read(at, number as u64, sectors))?.0 as f64;
            moments.add(time);
            match number {
                0 => firsts.push(time),
                8.. => lates.push(time),
                _ => {}
            }
        }
    }
    let curve = Curve {
        title: "Read-ahead: latency of reads in sequence".into(),
        x: "number of the read in its stream".into(),
        y: "mean latency, us".into(),
        lines: vec![(
            format!("one stream of {}", Bytes(sectors * SECTOR_BYTES)),
            by_place
                .iter()
                .enumerate()
                .map(|(number, moments)| (number as f64 + 1.0, moments.mean() / 1e3))
                .collect(),
        )],
    };
    let late = by_place[8..].iter().fold(Moments::default(), |sum, moments| sum.and(moments));
    let first = by_place[0];
    let z = welch(&first, &late);
    let statistic = format!(
        "reads 9 to {LENGTH} of a stream take {:.1} us, first reads {:.1} us ({})",
        late.mean() / 1e3,
        first.mean() / 1e3,
        in_errors(z)
    );
    // A few slow ones (a unit that still works for the stream before) say nothing against it.
    let typical = median(&mut lates) / median(&mut firsts).max(1.0);
    let is_there = late.mean() < 0.9 * alone && z > 6.0 || typical < 0.7 && z > 3.0;
    let reason = if is_there {
        "reads in sequence become faster"
    } else {
        "reads in sequence are no faster than the first"
    };
    let is_not = typical > 0.95 && late.mean() > 0.9 * first.mean();
    let present = if is_there || is_not {
        Finding::of(is_there, if is_there { confidence(z) } else { 0.95 }, statistic, reason)
    } else {
        Finding::undetermined(statistic, "reads in sequence are faster, but not clearly")
    };
    if !is_there {
        return Ok((ReadAhead::without(present), vec![curve]));
    }
    let (trigger, limit) = trigger(instrument, area, sectors)?;
    let Some(limit) = limit else {
        let reason = "reads from the buffer are not clearly faster than the fastest from flash";
        let window = Finding::undetermined(String::new(), reason);
        let streams = Finding::undetermined(String::new(), reason);
        return Ok((ReadAhead { present, trigger, window, streams }, vec![curve]));
    };
    let (window, window_curve) = window(instrument, area, sectors, limit, repeats)?;
    let (streams, streams_curve) = streams(instrument, area, sectors, limit)?;
    Ok((ReadAhead { present, trigger, window, streams }, vec![curve, window_curve, streams_curve]))
}

fn read(at: u64, number: u64, sectors: u64) -> Operation {
    Operation::read(Lsn(at + number * sectors), sectors as u32)
}

/// Where a stream of so many reads has room.
fn place(instrument: &mut Instrument<'_>, area: Area, sectors: u64, length: u64) -> u64 {
    let room = Area { sectors: area.sectors.saturating_sub((length + 1) * sectors).max(sectors), ..area };
    room.random_piece(sectors, &mut instrument.rng).0
}

/// Time between reads in which what is read ahead gets to the buffer.
const PAUSE: Ns = Ns::from_millis(2);
/// Share of the reads that must be fast, or slow, for all to be.
const MOST: f64 = 0.75;

/// After how many reads of a stream the first fast one comes, when what is read ahead has time to arrive; and the latency below which a read comes
/// from the buffer, if that is clear.
fn trigger(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
) -> Result<(Finding<u32>, Option<f64>), ProbeError> {
    const LENGTH: u64 = 16;
    const STREAMS: u32 = 12;
    let mut times = vec![Vec::new(); LENGTH as usize];
    let mut random = Vec::new();
    for _ in 0..STREAMS {
        let at = place(instrument, area, sectors, 4 * LENGTH);
        for (number, times) in times.iter_mut().enumerate() {
            times.push(instrument.single(read(at, number as u64, sectors))?.0 as f64);
            instrument.pause(PAUSE)?;
        }
    }
    for _ in 0..64 {
        let elsewhere = area.random_piece(sectors, &mut instrument.rng);
        random.push(instrument.single(Operation::read(elsewhere, sectors as u32))?.0 as f64);
    }
    // Pages of several kinds: the fastest of them must not pass for a buffer.
    let flash = quantile(&mut random, 0.1);
    let buffer = median(&mut times[8..].concat());
    if buffer > CLEARLY * flash {
        let statistic = format!(
            "reads of a stream with pauses take {:.1} us, a tenth of random ones less than {:.1} us",
            buffer / 1e3,
            flash / 1e3
        );
        return Ok((Finding::undetermined(statistic, "no read is clearly the first fast one"), None));
    }
    let limit = (buffer + flash) / 2.0;
    let fast: Vec<u32> =
        times.iter().map(|times| times.iter().filter(|&&time| time < limit).count() as u32).collect();
    let share = |fast: u32| f64::from(fast) / f64::from(STREAMS);
    let first = fast.iter().position(|&fast| share(fast) > MOST);
    let found = match first {
        Some(first) if fast[..first].iter().all(|&fast| share(fast) < 1.0 - MOST) => Finding::of(
            first as u32,
            0.95,
            format!("read {} is the first fast one in {} of {STREAMS} streams", first + 1, fast[first]),
            "reads before the first fast one",
        ),
        _ => Finding::undetermined(
            format!("of reads 1 to {LENGTH} in {STREAMS} streams are fast: {fast:?}"),
            "no single read is clearly the first fast one",
        ),
    };
    Ok((found, Some(limit)))
}

/// How far ahead data are in the buffer once a stream has run and paused: each distance is tried on a new stream, as a read far ahead ends it.
fn window(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    limit: f64,
    repeats: usize,
) -> Result<(Finding<Bytes>, Curve), ProbeError> {
    const REACH: u64 = 4096;
    let mut points = Vec::new();
    let mut farthest = 0;
    let mut distance = 1u64;
    let most = REACH.min(area.pieces(sectors) / 4);
    let mut misses = 0;
    while distance <= most && misses < 3 {
        let mut times = Vec::new();
        for _ in 0..repeats.clamp(3, 9) {
            let at = place(instrument, area, sectors, 16 + most);
            for number in 0..16 {
                instrument.single(read(at, number, sectors))?;
            }
            instrument.pause(Ns::from_millis(5))?;
            times.push(instrument.single(read(at, 15 + distance, sectors))?.0 as f64);
        }
        let time = median(&mut times);
        points.push((distance as f64, time / 1e3));
        if time < limit {
            farthest = distance;
            misses = 0;
        } else {
            misses += 1;
        }
        distance = if distance < 8 { distance + 1 } else { distance + distance / 8 };
    }
    let curve = Curve {
        title: "Read-ahead: what is in the buffer after a stream of 16 reads and a pause".into(),
        x: "distance from the last read, in reads".into(),
        y: "median latency, us".into(),
        lines: vec![("one read".into(), points)],
    };
    let size = Bytes(farthest * sectors * SECTOR_BYTES);
    let finding = if farthest == 0 {
        Finding::undetermined(String::new(), "after a pause nothing is in the buffer")
    } else {
        let statistic =
            format!("reads up to {farthest} ahead come from a buffer, to a distance of one eighth");
        Finding::of(size, 0.9, statistic, "the farthest read that is fast")
    };
    Ok((finding, curve))
}

/// How many streams can take turns and still be read ahead of.
fn streams(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    limit: f64,
) -> Result<(Finding<u32>, Curve), ProbeError> {
    const READS: u64 = 24;
    let mut points = Vec::new();
    let mut served = 0;
    let (mut lost, mut is_clear) = (false, true);
    for count in 1..=MOST_STREAMS {
        let room = area.sectors / u64::from(count) / sectors * sectors;
        if room < (READS + 4) * sectors {
            break;
        }
        // Elsewhere each time, as buffers may still hold what the last ones read.
        let bases: Vec<u64> = (0..u64::from(count))
            .map(|stream| {
                let part = Area { start: area.start + stream * room, sectors: room };
                place(instrument, part, sectors, READS)
            })
            .collect();
        let mut times = Vec::new();
        for number in 0..READS {
            for &at in &bases {
                let time = instrument.single(read(at, number, sectors))?.0 as f64;
                if number >= READS / 2 {
                    times.push(time);
                }
                instrument.pause(PAUSE)?;
            }
        }
        let fast = times.iter().filter(|&&time| time < limit).count() as f64 / times.len() as f64;
        let mean = Moments::of(times.iter().copied()).mean();
        points.push((f64::from(count), mean / 1e3));
        if fast > MOST {
            is_clear &= !lost;
            served = count;
        } else {
            is_clear &= fast < 1.0 - MOST;
            lost = true;
            if count > served + 2 {
                break;
            }
        }
    }
    let curve = Curve {
        title: "Read-ahead: latency when streams take turns".into(),
        x: "streams".into(),
        y: "mean latency, us".into(),
        lines: vec![("reads in turn".into(), points)],
    };
    let statistic = format!(
        "{} in turn {} fast",
        counted(served.into(), "stream"),
        if served == 1 { "is" } else { "are" }
    );
    let finding = match (served, lost) {
        (0, _) => Finding::undetermined(statistic, "not even one stream is clearly faster"),
        (_, true) if !is_clear => {
            Finding::undetermined(statistic, "with more streams, some reads are fast and others slow")
        }
        (_, true) => Finding::of(served, 0.95, statistic, "with one more, reads are as slow as random ones"),
        (_, false) => Finding::undetermined(statistic, "as many streams as were tried are all read ahead of"),
    };
    Ok((finding, curve))
}
