//! The write buffer: how much is taken at the speed of the link before writes have to wait for flash, and how much stays in it.

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::statistics::median;
use crate::target::Operation;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
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
}

/// Why there is nothing to say of a buffer.
const UNSEEN: &str = "there is no write buffer to be seen";
/// Data written in the burst, at most.
const BURST: u64 = 256 << 20;

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
    instrument.pause(Ns::from_millis(1000))?;
    // All at once: slower than the link only when there is no room left.
    let depth = instrument.depth().min(64);
    let writes = (BURST / (sectors * SECTOR_BYTES)).clamp(2048, 65_536).min(area.pieces(sectors));
    let mut places = Vec::with_capacity(writes as usize);
    let burst = instrument.keep(depth, Ns::MAX, |rng, number| {
        let start = area.random_piece(sectors, rng);
        places.push(start);
        (number < writes).then(|| Operation::write(start, sectors as u32))
    })?;
    places.truncate(writes as usize);
    let interval = burst.second_half_interval();
    let taken = |count: usize, end: Ns| count as f64 - end.0 as f64 / interval.max(1.0);
    let ahead = burst.ends.iter().enumerate().map(|(count, &end)| taken(count + 1, end)).fold(0.0, f64::max);
    let step = (burst.ends.len() / 128).max(1);
    let curve = Curve {
        title: "Write buffer: a burst of random writes on an idle device".into(),
        x: "time, ms".into(),
        y: "written, MB".into(),
        lines: vec![(
            format!("writes of {}", Bytes(sectors * SECTOR_BYTES)),
            burst
                .ends
                .iter()
                .enumerate()
                .step_by(step)
                .map(|(count, end)| (end.0 as f64 / 1e6, count as f64 * bytes / 1e6))
                .collect(),
        )],
    };
    instrument.pause(Ns::from_millis(1000))?;
    // What was written last and is still there is read at the speed of the link.
    let mut resident = 0u64;
    let mut slow = 0;
    let mut seen: Vec<planewise_model::Lsn> = Vec::new();
    let mut times = Vec::new();
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
    let fastest = median(&mut times);
    // Programs take longer than reads in all NAND flash: a write that takes no longer than a read was not programmed yet.
    let mut idle = Vec::new();
    for _ in 0..64 {
        let place = area.random_piece(sectors, &mut instrument.rng);
        idle.push(instrument.single(Operation::write(place, sectors as u32))?.0 as f64);
    }
    let idle = median(&mut idle);
    let is_quick = idle < 0.9 * alone;
    // Neither as quick as a link, nor as slow as a program: reads may come from the buffer themselves.
    let is_slow = idle > 1.2 * alone;
    let all_resident = slow < 8;
    let mut statistic = format!(
        "a write on an idle device takes {:.1} us, a read {:.1} us; ",
        idle / 1e3,
        alone / 1e3
    ) + &format!(
        "a burst is ahead of the sustained rate by up to {:.0} writes; {resident} of the last ones are read from a buffer ({:.1} us)",
        ahead,
        fastest / 1e3
    );
    // Operations under way are ahead, too, and a sustained rate has noise.
    let is_ahead = ahead > 1.25 * f64::from(depth) + 0.01 * writes as f64;
    let is_resident = resident >= 8;
    if is_slow && !is_resident {
        // However uneven a burst is: a write that takes as long as a program was programmed.
        let reason = "a write takes longer than a read, and what was written last is read from flash";
        let found = WriteBuffer {
            present: Finding::of(false, 0.95, statistic.clone(), reason),
            size: Finding::undetermined(String::new(), UNSEEN),
            kept: Finding::undetermined(String::new(), UNSEEN),
        };
        return Ok((found, curve));
    }
    if !is_resident && !is_quick {
        let reason =
            "writes take about as long as reads: all of the area may be in a buffer, or there is none";
        let found = WriteBuffer {
            present: Finding::undetermined(statistic.clone(), reason),
            size: Finding::undetermined(statistic.clone(), reason),
            kept: Finding::undetermined(statistic, reason),
        };
        return Ok((found, curve));
    }
    if is_resident && all_resident {
        let least = Bytes((resident as f64 * bytes) as u64);
        let reason = format!("all that was written is still in the buffer: at least {least}");
        let found = WriteBuffer {
            present: Finding::of(true, 0.99, statistic.clone(), "what was written is read from a buffer"),
            size: Finding::undetermined(statistic.clone(), reason.clone()),
            kept: Finding::undetermined(statistic, reason),
        };
        return Ok((found, curve));
    }
    let reason = "writes that were taken before flash could have them, and those that stay";
    if !is_ahead {
        // Commands may limit short writes before flash does; long ones need fewer.
        let (ahead, said) = burst_of_long_writes(instrument, area, sectors)?;
        statistic += &format!("; {said}");
        if let Some(ahead) = ahead {
            let statistic = statistic.clone();
            let size = ahead + resident as f64;
            let found = WriteBuffer {
                present: Finding::of(true, 0.95, statistic.clone(), reason),
                size: Finding::of(Bytes((size * bytes) as u64), 0.6, statistic.clone(), reason),
                kept: Finding::of(
                    resident as f64 / size,
                    0.6,
                    statistic,
                    "what is read from the buffer on an idle device",
                ),
            };
            return Ok((found, curve));
        }
    }
    if !is_ahead && !is_resident {
        let never = "it never fills: flash keeps up with what the link and the controller let through";
        let found = WriteBuffer {
            present: Finding::of(
                true,
                0.95,
                statistic.clone(),
                "writes take no longer than reads, and programs would",
            ),
            size: Finding::undetermined(statistic.clone(), never),
            kept: Finding::undetermined(statistic, never),
        };
        return Ok((found, curve));
    }
    let size = ahead.max(0.0) + resident as f64;
    let found = WriteBuffer {
        present: Finding::of(true, 0.99, statistic.clone(), reason),
        size: Finding::of(Bytes((size * bytes) as u64), 0.6, statistic.clone(), reason),
        kept: Finding::of(
            resident as f64 / size,
            0.8,
            statistic,
            "what is read from the buffer on an idle device",
        ),
    };
    Ok((found, curve))
}

/// A burst of writes of several chunks each: by how many chunks it is ahead of what goes on later, if that is more than is under way.
fn burst_of_long_writes(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
) -> Result<(Option<f64>, String), ProbeError> {
    const DEPTH: u32 = 2;
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES / sectors;
    let (mut clear, mut said): (Vec<f64>, Vec<String>) = (Vec::new(), Vec::new());
    for chunks in [4, 8, 16, 32].into_iter().filter(|&chunks| chunks <= longest) {
        instrument.pause(Ns::from_millis(500))?;
        let burst = instrument.keep(DEPTH, Ns::MAX, |rng, number| {
            let start = area.random_piece(chunks * sectors, rng);
            (number < 1024).then(|| Operation::write(start, (chunks * sectors) as u32))
        })?;
        let interval = burst.second_half_interval().max(1.0);
        let ahead =
            burst.ends.iter().enumerate().map(|(count, end)| (count + 1) as f64 - end.0 as f64 / interval);
        let ahead = ahead.fold(0.0, f64::max);
        said.push(format!("{:.0} for writes of {chunks} chunks", ahead * chunks as f64));
        if ahead > 1.25 * f64::from(DEPTH) {
            // Of the writes under way, half is in the buffer.
            clear.push((ahead + f64::from(DEPTH) / 2.0) * chunks as f64);
        }
    }
    let said = format!("bursts are ahead by chunks: {}", said.join(", "));
    // A burst that ran into something else (collection, a rate that drifts) stands alone.
    let size = median(&mut clear.clone());
    let agree = clear.iter().filter(|&&ahead| ahead < 1.7 * size && size < 1.7 * ahead).count();
    Ok(((agree >= 2).then_some(size), said))
}
