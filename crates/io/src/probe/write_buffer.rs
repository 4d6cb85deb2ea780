//! The write buffer: how much is taken at the speed of the link before writes have to wait for flash, and how much stays in it.

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::statistics::median;
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteBuffer {
    /// Whether writes are complete before they are in flash.
    pub present: Finding<bool>,
    /// Its size.
    pub size: Finding<Bytes>,
    /// Share of it that stays full when the device is idle.
    pub kept: Finding<f64>,
    /// What a profile takes for its size where that is not sure; nothing where no burst fills it.
    pub size_about: Option<Bytes>,
}

/// Why there is nothing to say of a buffer.
const UNSEEN: &str = "there is no write buffer to be seen";
/// Data written in a burst, and writes at least and at most.
pub(super) const BURST: u64 = 128 << 20;
pub(super) const WRITES: [u64; 2] = [2048, 32_768];
/// Chunks of a write in bursts of long ones: where commands limit short writes before flash does.
pub(super) const LONG: [u64; 2] = [4, 16];
/// Long writes of a burst.
pub(super) const LONG_WRITES: u64 = 1024;
/// Bursts of a kind, at most: the first may run into something else, such as collection, that the others begin with.
pub(super) const BURSTS: usize = 3;
/// Share by which two bursts may differ that say the same.
const AGREE: f64 = 0.15;

/// Share of the writes up to the step that flash may have had by its later rate: it begins idle, and may be faster or slower at first.
const DRAINED: f64 = 0.1;

/// Looks for a write buffer with writes of `sectors` at random places; `alone` is the latency of such a read on an idle device, ns.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    alone: f64,
) -> Result<(WriteBuffer, Curve), ProbeError> {
    let bytes = (sectors * SECTOR_BYTES) as f64;
    let depth = instrument.depth().min(64);
    let writes = (BURST / (sectors * SECTOR_BYTES)).clamp(WRITES[0], WRITES[1]).min(area.pieces(sectors));
    // All at once: slower than the link only when there is no room left.
    let short = bursts(instrument, area, sectors, (writes, depth))?;
    let (first, places) = (&short.first, &short.places);
    let curve = curve(first, bytes);
    instrument.pause(Ns::from_millis(1000))?;
    let Resident { resident, fastest, is_all } = resident(instrument, places, sectors, alone)?;
    // Programs take longer than reads in all NAND flash: a write that takes no longer than a read was not programmed yet.
    let mut idle = Vec::new();
    for _ in 0..64 {
        let place = area.random_piece(sectors, &mut instrument.rng);
        // Room for one is all that a small buffer has.
        instrument.pause(Ns::from_millis(10))?;
        idle.push(instrument.single(Operation::write(place, sectors as u32))?.0 as f64);
    }
    let idle = median(&mut idle);
    let is_quick = idle < 0.9 * alone;
    // Neither as quick as a link, nor as slow as a program: reads may come from the buffer themselves.
    let is_slow = idle > 1.2 * alone;
    let is_resident = resident >= 8;
    let of_last = format!("{resident} of the last writes are read from a buffer ({:.1} us)", fastest / 1e3);
    let presence = format!(
        "a write on an idle device takes {:.1} us, a read {:.1} us; {of_last}",
        idle / 1e3,
        alone / 1e3
    );
    let unseen = |present: Finding<bool>, reason: &str| WriteBuffer {
        present,
        size: Finding::undetermined(short.said.clone(), reason),
        kept: Finding::undetermined(of_last.clone(), reason),
        size_about: None,
    };
    let none = |present: Finding<bool>| WriteBuffer {
        size: Finding::absent(present.confidence, short.said.clone(), UNSEEN),
        kept: Finding::absent(present.confidence, of_last.clone(), UNSEEN),
        present,
        size_about: None,
    };
    if is_slow && !is_resident {
        // However uneven a burst is: a write that takes as long as a program was programmed.
        let reason = "a write takes longer than a read, and what was written last is read from flash";
        return Ok((none(Finding::of(false, 0.95, presence, reason)), curve));
    }
    if !is_resident && !is_quick {
        let reason =
            "writes take about as long as reads: all of the area may be in a buffer, or there is none";
        return Ok((unseen(Finding::undetermined(presence, reason), reason), curve));
    }
    let present = if is_resident {
        Finding::of(true, 0.99, presence, "what was written last is read from a buffer")
    } else {
        Finding::of(true, 0.95, presence, "writes take no longer than reads, and programs would")
    };
    if is_all {
        let least = Bytes((resident as f64 * bytes) as u64);
        let reason = format!("all that was written is still in the buffer: at least {least}");
        return Ok((unseen(present, &reason), curve));
    }
    let Room { sure, about, said } = room(instrument, area, sectors, &short)?;
    let whole = |room: f64| room + resident as f64;
    let size_about = about.map(|room| Bytes((whole(room) * bytes) as u64));
    let Some((room, confidence)) = sure else {
        let reason = "it never fills, or not twice alike: flash keeps up with what the link and the controller let through, or something else slows writes down";
        let found = WriteBuffer {
            present,
            size: Finding::undetermined(said, reason),
            kept: Finding::undetermined(of_last, "the size of the buffer is not known"),
            size_about,
        };
        return Ok((found, curve));
    };
    let size = whole(room);
    let reason = "writes that were taken before flash could have them, and those that stay";
    let found = WriteBuffer {
        present,
        size: Finding::of(Bytes((size * bytes) as u64), confidence, format!("{said}; {of_last}"), reason),
        kept: if is_resident {
            Finding::of(
                resident as f64 / size,
                confidence.min(LESS_SURE),
                format!("{of_last}, of room for {size:.0}"),
                "what is read from the buffer on an idle device, of its size",
            )
        } else {
            Finding::undetermined(of_last, "hardly any of what was written last is read from a buffer")
        },
        size_about,
    };
    Ok((found, curve))
}

/// Confidence of a size that bursts agree on: what is seen once more may still be another store in front of the flash.
const SURE: f64 = 0.9;
/// The same where flash had a good part of them, and bursts of writes of different lengths agree.
const LESS_SURE: f64 = 0.8;

fn curve(ends: &[Ns], bytes: f64) -> Curve {
    let step = (ends.len() / 128).max(1);
    Curve {
        title: "Write buffer: a burst of random writes on an idle device".into(),
        x: "time, ms".into(),
        y: "written, MB".into(),
        lines: vec![(
            format!("writes of {}", Bytes(bytes as u64)),
            ends.iter()
                .enumerate()
                .step_by(step)
                .map(|(count, end)| (end.0 as f64 / 1e6, count as f64 * bytes / 1e6))
                .collect(),
        )],
    }
}

/// What of the last writes is still in the buffer.
struct Resident {
    resident: u64,
    /// Median latency of the reads that looked, ns.
    fastest: f64,
    /// Whether none of them came from flash.
    is_all: bool,
}

/// Reads what was written last, latest first: what is still in the buffer is read at the speed of the link.
fn resident(
    instrument: &mut Instrument<'_>,
    places: &[Lsn],
    sectors: u64,
    alone: f64,
) -> Result<Resident, ProbeError> {
    let (mut resident, mut slow) = (0u64, 0);
    let (mut seen, mut times): (Vec<Lsn>, Vec<f64>) = (Vec::new(), Vec::new());
    for &place in places.iter().rev() {
        if seen.contains(&place) {
            continue;
        }
        if seen.len() < 4096 {
            seen.push(place);
        }
        let time = instrument.single(Operation::read(place, sectors as u32))?.0 as f64;
        times.push(time);
        if time < 0.6 * alone {
            resident += 1;
            slow = 0;
        } else {
            slow += 1;
        }
        if slow >= 8 {
            break;
        }
    }
    Ok(Resident { resident, fastest: median(&mut times), is_all: slow < 8 })
}

/// Bursts of writes of one length.
struct Bursts {
    /// Where each stepped down.
    knees: Vec<Option<Knee>>,
    /// That in words.
    said: String,
    /// Completions of the first.
    first: Vec<Ns>,
    /// Where the last wrote.
    places: Vec<Lsn>,
}

impl Bursts {
    /// Writes taken beyond what flash could have, as two bursts in a row say that leave flash little of them.
    fn alike(&self) -> Option<f64> {
        self.knees.windows(2).enumerate().find_map(|(before, pair)| {
            let (one, other) = (pair[0]?, pair[1]?);
            // A burst that was taken longer than these says that the buffer was not empty before them.
            let is_less = |knee: &Knee| knee.at as f64 > 1.5 * one.at as f64;
            if self.knees[..before].iter().flatten().any(is_less) {
                return None;
            }
            let few = |knee: Knee| knee.drained < DRAINED * knee.at as f64;
            let [room, again] = [one, other].map(|knee| knee.at as f64 - knee.drained / 2.0);
            (few(one) && few(other) && (room - again).abs() < AGREE * room.max(again))
                .then_some((room + again) / 2.0)
        })
    }

    /// The same where flash had more of them, by each burst.
    fn ahead(&self) -> impl Iterator<Item = f64> {
        self.knees.iter().flatten().map(|knee| knee.at as f64 - knee.drained)
    }
}

/// Bursts of `writes` at a depth, until two in a row are alike.
fn bursts(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    (writes, depth): (u64, u32),
) -> Result<Bursts, ProbeError> {
    let mut all = Bursts { knees: Vec::new(), said: String::new(), first: Vec::new(), places: Vec::new() };
    let mut said = Vec::new();
    for _ in 0..BURSTS {
        instrument.pause(Ns::from_millis(1000))?;
        all.places.clear();
        let places = &mut all.places;
        let burst = instrument.keep(depth, Ns::MAX, |rng, number| {
            let start = area.random_piece(sectors, rng);
            (number < writes).then(|| {
                places.push(start);
                Operation::write(start, sectors as u32)
            })
        })?;
        let knee = knee(&burst.ends);
        if all.first.is_empty() {
            all.first = burst.ends;
        }
        said.push(match knee {
            Some(Knee { at, drained }) => format!("{at} of which flash had {drained:.0}"),
            None => "no step".to_owned(),
        });
        all.knees.push(knee);
        if all.alike().is_some() {
            break;
        }
    }
    all.said = format!("bursts of writes step down after {}", said.join(", "));
    Ok(all)
}

/// Room for writes, in chunks, on an idle device.
struct Room {
    /// And how sure that is.
    sure: Option<(f64, f64)>,
    /// What is most likely.
    about: Option<f64>,
    said: String,
}

/// How many chunks are taken beyond what flash could have meanwhile: by `short` writes of a chunk, or those of several.
fn room(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    short: &Bursts,
) -> Result<Room, ProbeError> {
    let mut said = short.said.clone();
    if let Some(room) = short.alike() {
        return Ok(Room { sure: Some((room, SURE)), about: Some(room), said });
    }
    let mut ahead: Vec<f64> = short.ahead().collect();
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES / sectors;
    for chunks in LONG.into_iter().filter(|&chunks| chunks <= longest) {
        let writes = LONG_WRITES.min(area.pieces(chunks * sectors));
        let long = bursts(instrument, area, chunks * sectors, (writes, 2))?;
        said = format!("{said}; with {chunks} chunks each: {}", long.said);
        if let Some(room) = long.alike() {
            let room = room * chunks as f64;
            return Ok(Room { sure: Some((room, SURE)), about: Some(room), said });
        }
        ahead.extend(long.ahead().map(|room| room * chunks as f64));
    }
    let about = (!ahead.is_empty()).then(|| median(&mut ahead.clone()));
    let do_agree = ahead.len() == (1 + LONG.len()) * BURSTS
        && about.is_some_and(|about| ahead.iter().all(|room| (room - about).abs() < AGREE * about));
    Ok(Room { sure: about.filter(|_| do_agree).map(|room| (room, LESS_SURE)), about, said })
}

/// Where writes begin to wait for flash.
#[derive(Clone, Copy)]
struct Knee {
    /// Writes complete by then.
    at: usize,
    /// Writes that flash can have had of them, at most: those that complete in the same time later. It may have had none, while it began.
    drained: f64,
}

/// Where completions step down to a steady rate, if they do: the earliest that they keep for three times as long as they took to get there, as what
/// comes later may be collection.
fn knee(ends: &[Ns]) -> Option<Knee> {
    let end = |writes: usize| ends[writes - 1].0 as f64;
    (5..).map(|power| 1usize << power).take_while(|from| 4 * from <= ends.len()).find_map(|from| {
        let [near, far] = [(from, 2 * from), (2 * from, 4 * from)]
            .map(|(from, to)| (end(to) - end(from)) / (to - from) as f64);
        if near <= 0.0 || (far / near - 1.0).abs() > AGREE {
            return None;
        }
        let interval = (end(4 * from) - end(from)) / (3 * from) as f64;
        let ahead = |writes: usize| writes as f64 - end(writes) / interval;
        // The first of them: later on, nothing is gained or lost but noise.
        let at = (1..=from).rev().max_by(|&one, &other| ahead(one).total_cmp(&ahead(other)))?;
        // A few ahead are those under way, or noise of the rate.
        (ahead(at) > 0.05 * at as f64 + 4.0).then_some(Knee { at, drained: end(at) / interval })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completions of writes that take one time each up to a number of them, then another, then a third.
    fn ends(steps: &[(usize, u64)]) -> Vec<Ns> {
        let mut time = 0;
        let mut ends = Vec::new();
        for &(writes, each) in steps {
            for _ in 0..writes {
                time += each;
                ends.push(Ns(time));
            }
        }
        ends
    }

    #[test]
    fn a_burst_has_a_knee_where_the_buffer_is_full_whatever_comes_later() {
        let knee_of = |steps: &[(usize, u64)]| knee(&ends(steps)).map(|knee| knee.at);
        assert_eq!(knee_of(&[(500, 1000), (4000, 20_000), (4000, 90_000)]), Some(500));
        assert_eq!(knee_of(&[(500, 0), (4000, 20_000)]), Some(500));
        assert_eq!(knee_of(&[(8000, 1000)]), None);
        // Too little is left to see whether the rate keeps.
        assert_eq!(knee_of(&[(500, 1000), (1000, 20_000)]), None);
    }
}
