//! When garbage collection sets in: how much can be written at random before writes become slower (Chen et al. 2016, section 9.3).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::statistics::Moments;
use crate::target::Operation;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Onset {
    /// Random writes after which latency steps up for good.
    pub volume: Finding<Bytes>,
    /// Mean latency of a write before and after, ns.
    pub latency: [f64; 2],
}

/// Windows that are compared.
const WINDOW: u64 = 32 << 20;
/// What a step says, and what it does not.
const STEPS_UP: &str = "latency steps up and stays up: collection, unless a cache of faster cells was full or the drive slowed down to cool";
/// By how much latency must rise.
const STEP: f64 = 1.6;

/// Writes chunks at random places of `area` until latency has stepped up, `most` bytes at most, or for so long at most.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    most: Bytes,
    longest: Ns,
) -> Result<(Onset, Curve), ProbeError> {
    let depth = instrument.depth().min(32);
    let bytes = sectors * SECTOR_BYTES;
    let writes = (WINDOW / bytes).max(256);
    let began = instrument.now();
    let mut windows: Vec<f64> = Vec::new();
    while (windows.len() as u64) * writes * bytes < most.0 && instrument.now().saturating_sub(began) < longest
    {
        let result = instrument.keep(depth, Ns::MAX, |rng, number| {
            (number < writes).then(|| Operation::write(area.random_piece(sectors, rng), sectors as u32))
        })?;
        windows.push(Moments::of(result.latencies.iter().map(|&(_, latency)| latency.0 as f64)).mean());
        // Well past the step, there is nothing more to see.
        if let Some(at) = step(&windows)
            && windows.len() > 2 * at + 8
        {
            break;
        }
    }
    let volume = |windows: usize| Bytes(windows as u64 * writes * bytes);
    let curve = Curve {
        title: "Collection: latency of random writes as they go on".into(),
        x: "written, MiB".into(),
        y: format!("mean latency of {} writes, us", depth),
        lines: vec![(
            "windows of 32 MiB".into(),
            windows
                .iter()
                .enumerate()
                .map(|(at, mean)| ((volume(at + 1).0 >> 20) as f64, mean / 1e3))
                .collect(),
        )],
    };
    let mean = |windows: &[f64]| Moments::of(windows.iter().copied()).mean();
    let statistic = |rest: String| format!("{} windows of {}: {rest}", windows.len(), volume(1));
    Ok(match step(&windows) {
        Some(at) => {
            let latency = [mean(&windows[..at]), mean(&windows[at..])];
            let statistic =
                statistic(format!("{:.0} us before, {:.0} us after", latency[0] / 1e3, latency[1] / 1e3));
            (Onset { volume: Finding::of(volume(at), 0.8, statistic, STEPS_UP), latency }, curve)
        }
        None => {
            let latency = [mean(&windows), 0.0];
            let reason = if area.sectors < instrument.target().info().sectors() / 2 {
                "latency did not step up: what is written again and again in a small part of the device is collected at no cost; an area of the whole device would tell"
            } else {
                "latency did not step up: more spare space than was written, or collection from the beginning"
            };
            (
                Onset {
                    volume: Finding::undetermined(
                        statistic(format!("{:.0} us throughout", latency[0] / 1e3)),
                        reason,
                    ),
                    latency,
                },
                curve,
            )
        }
    })
}

/// The window from which on latency is higher than before for good: where the two means differ most for their spread.
fn step(windows: &[f64]) -> Option<usize> {
    if windows.len() < 8 {
        return None;
    }
    // The first window fills buffers.
    let best = (2..windows.len() - 3)
        .map(|at| {
            let [before, after] =
                [&windows[1..at], &windows[at..]].map(|part| Moments::of(part.iter().copied()));
            let within =
                before.variance() * (before.count - 1.0).max(0.0) + after.variance() * (after.count - 1.0);
            (at, before, after, within)
        })
        .filter(|(_, before, after, _)| after.mean() > STEP * before.mean())
        .min_by(|one, other| one.3.total_cmp(&other.3))?;
    let (at, before, after, _) = best;
    let lowest = windows[at..].iter().copied().fold(f64::MAX, f64::min);
    (lowest > before.mean() + 0.25 * (after.mean() - before.mean())).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is_and_not_where_there_is_none() {
        let mut windows = vec![100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 180.0, 200.0, 190.0, 210.0, 205.0];
        assert_eq!(step(&windows), Some(6));
        windows.truncate(6);
        assert_eq!(step(&windows), None);
        assert_eq!(step(&[100.0; 40]), None);
        // A single slow window is not for good.
        assert_eq!(step(&[100.0, 100.0, 100.0, 300.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]), None);
    }
}
