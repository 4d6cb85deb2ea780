//! How two workloads disturb each other: bandwidth of pairs of one-job workloads, each in its own part (Chen et al. 2016, section 6.2,
//! Table II).

use super::error::ProbeError;
use super::instrument::{Area, Instrument};
use crate::target::Operation;
use planewise_model::{Direction, Ns};
use serde::{Deserialize, Serialize};

/// The four access patterns, in the order of rows and columns.
pub const PATTERNS: [&str; 4] = ["sequential read", "random read", "sequential write", "random write"];

/// Bandwidths in MB/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// Size of a request, bytes.
    pub request_bytes: u64,
    /// Each pattern alone.
    pub alone: [f64; 4],
    /// For each pair, what the first and the second get.
    pub together: [[[f64; 2]; 4]; 4],
}

/// Measures on an area that was filled in order: all patterns alone and in pairs, one operation of each at a time, for `time` each.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    time: Ns,
) -> Result<Interference, ProbeError> {
    let half = area.sectors / 2 / sectors * sectors;
    let start = area.start.div_ceil(sectors) * sectors;
    let parts = [Area { start, sectors: half }, Area { start: start + half, sectors: half - sectors }];
    let mut found = Interference {
        request_bytes: sectors * planewise_model::SECTOR_BYTES,
        alone: [0.0; 4],
        together: [[[0.0; 2]; 4]; 4],
    };
    for patterns in order() {
        let rates = run(instrument, &parts, sectors, &patterns, time)?;
        match patterns[..] {
            [first, second] => {
                found.together[first][second] = [rates[0], rates[1]];
                found.together[second][first] = [rates[1], rates[0]];
            }
            _ => found.alone[patterns[0]] = rates[0],
        }
    }
    Ok(found)
}

/// Each pattern alone and in pairs. Those that only read come first, then reads (in the first part) beside writes (in the second): no
/// read finds what an earlier pair wrote.
fn order() -> Vec<Vec<usize>> {
    let pairs = |first: usize| (first..4).map(move |second| vec![first, second]);
    let mut order: Vec<Vec<usize>> =
        (0..4).flat_map(|first| std::iter::once(vec![first]).chain(pairs(first))).collect();
    order.sort_by_key(|patterns| {
        patterns.iter().filter(|&&pattern| pattern >= 2).count() * 2 / patterns.len()
    });
    order
}

fn run(
    instrument: &mut Instrument<'_>,
    parts: &[Area; 2],
    sectors: u64,
    patterns: &[usize],
    time: Ns,
) -> Result<Vec<f64>, ProbeError> {
    let mut next = [0u64; 2];
    let loops = instrument.jobs(patterns.len() as u32, 1, time, |rng, job| {
        let (part, pattern) = (parts[job as usize], patterns[job as usize]);
        let direction = if pattern < 2 { Direction::Read } else { Direction::Write };
        let start = if pattern % 2 == 0 {
            let place = next[job as usize];
            next[job as usize] = (place + 1) % part.pieces(sectors).max(1);
            part.piece(sectors, place)
        } else {
            part.random_piece(sectors, rng)
        };
        Operation::transfer(direction, start, sectors as u32)
    })?;
    Ok(loops.iter().map(|result| result.bandwidth() / 1e6).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_never_find_what_an_earlier_pair_wrote() {
        let order = order();
        assert_eq!(order.len(), 4 + 10);
        let mut written = [false; 2];
        for patterns in order {
            for (part, &pattern) in patterns.iter().enumerate() {
                assert!(pattern >= 2 || !written[part], "{patterns:?}");
            }
            for (part, &pattern) in patterns.iter().enumerate() {
                written[part] |= pattern >= 2;
            }
        }
    }
}
