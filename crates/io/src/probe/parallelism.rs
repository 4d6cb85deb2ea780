//! Effective parallelism: up to how many operations at a time throughput grows (Chen et al. 2016, section 6.1, figure 5).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use crate::target::Operation;
use planewise_model::{Direction, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// Share of the best throughput that counts as all of it.
const ENOUGH: f64 = 0.95;

/// Share by which throughput at one depth may differ from one time to the next.
const DRIFT: f64 = 0.12;

/// Where more operations at a time stop to help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parallelism {
    /// Random reads of a chunk.
    pub reads: Finding<u32>,
    /// Random writes of a chunk; undetermined without writes.
    pub writes: Finding<u32>,
}

/// Measures throughput of random reads, and of writes, at depths 1, 2, 4 and so on.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    operations: u64,
) -> Result<(Parallelism, Curve), ProbeError> {
    let mut curve = Curve {
        title: "Effective parallelism: throughput against operations at a time (as figure 5 of the paper)"
            .into(),
        x: "operations at a time".into(),
        y: "MB/s".into(),
        lines: Vec::new(),
    };
    let reads = knee(instrument, area, sectors, Direction::Read, operations, &mut curve)?;
    let writes = if instrument.may_write() {
        knee(instrument, area, sectors, Direction::Write, operations, &mut curve)?
    } else {
        Finding::undetermined(String::new(), "nothing may be written")
    };
    Ok((Parallelism { reads, writes }, curve))
}

fn knee(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    direction: Direction,
    operations: u64,
    curve: &mut Curve,
) -> Result<Finding<u32>, ProbeError> {
    let depths =
        (0..).map(|power| 1u32 << power).take_while(|&depth| depth <= instrument.depth()).collect::<Vec<_>>();
    // Up and down again: what changes with time, such as collection, must not pass for what changes with depth.
    let mut runs: Vec<[f64; 2]> = vec![[0.0; 2]; depths.len()];
    let up = depths.iter().enumerate().map(|(at, &depth)| (at, 0, depth));
    let down = depths.iter().enumerate().rev().map(|(at, &depth)| (at, 1, depth));
    for (at, run, depth) in up.chain(down) {
        let result = instrument.keep(depth, Ns::MAX, |rng, number| {
            let start = area.random_piece(sectors, rng);
            (number < operations).then_some(Operation::transfer(direction, start, sectors as u32))
        })?;
        // The beginning fills buffers and queues.
        runs[at][run] = (sectors * SECTOR_BYTES) as f64 / result.steady_interval(depth).max(1.0) * 1e3;
    }
    let points: Vec<(u32, f64)> =
        depths.iter().zip(&runs).map(|(&depth, [up, down])| (depth, (up + down) / 2.0)).collect();
    let drift = runs.iter().map(|[up, down]| (up - down).abs() / up.max(*down).max(1.0)).fold(0.0, f64::max);
    let name = if direction == Direction::Read { "random reads" } else { "random writes" };
    curve.lines.push((name.into(), points.iter().map(|&(depth, rate)| (f64::from(depth), rate)).collect()));
    let best = points.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
    let last = points.last().map_or(0, |&(depth, _)| depth);
    let knee = |rates: &mut dyn Iterator<Item = f64>| {
        let rates: Vec<f64> = rates.collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        rates.iter().position(|&rate| rate >= ENOUGH * best)
    };
    let [up, down] = [0, 1].map(|run| knee(&mut runs.iter().map(|rates| rates[run])));
    let Some(&(depth, rate)) = points.iter().find(|&&(_, rate)| rate >= ENOUGH * best) else {
        return Ok(Finding::undetermined(String::new(), "nothing was measured"));
    };
    let statistic = format!(
        "{rate:.0} MB/s at {depth} at a time; the best of 1 to {last} is {best:.0} MB/s; depth by depth, up and down differ by up to {:.0} %",
        drift * 100.0
    );
    let least = points.iter().map(|&(_, rate)| rate).fold(f64::MAX, f64::min);
    Ok(if best < 1.15 * least {
        Finding::undetermined(
            statistic,
            "throughput hardly depends on the depth: nothing of the flash is to be seen",
        )
    } else if up != down || drift > DRIFT.min((1.0 - least / best) / 3.0) {
        Finding::undetermined(statistic, "throughput changes with time as it does with depth")
    } else if depth == last && last > 1 {
        Finding::undetermined(statistic, "throughput still grows at the largest depth")
    } else {
        Finding::of(depth, 0.93, statistic, "the least depth with 95 % of the best throughput")
    })
}
