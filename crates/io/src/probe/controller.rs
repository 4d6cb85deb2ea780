//! What the controller needs beside the flash: for each command, to turn from reads to writes, and on the link.

use super::domains::Domains;
use super::error::ProbeError;
use super::finding::Finding;
use super::held::{KEPT, READS, companions};
use super::instrument::Instrument;
use super::pairs::Chunks;
use super::queue::Queue;
use super::statistics::{Moments, median, quantile};
use crate::target::Operation;
use planewise_model::Ns;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// How commands follow one another.
pub(super) struct Command {
    /// Least time between two, whatever their units, ns.
    pub(super) distance: Finding<f64>,
    /// By how much the second of two on an idle device completes later, ns.
    pub(super) behind: f64,
    /// What limits them when the distance is undetermined: it, or a queue that takes few at a time, ns.
    pub(super) about: Option<f64>,
}

impl Command {
    /// Nothing is known.
    pub(super) fn unknown(statistic: String, reason: &str) -> Command {
        Command { distance: Finding::undetermined(statistic, reason), behind: 0.0, about: None }
    }
}

/// How a device turns from one direction to the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// It costs so much, ns; nothing where it is 0.
    Costs(f64),
    /// What is under way ends first.
    Drains,
}

/// What a write waits for that is issued right after a read, beyond what two reads wait for one another. `read` and `write` are the latencies of
/// a chunk on an idle device, `command` the least time between two commands, `reads` the time between reads under load, ns.
pub(super) fn turn(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    [read, write]: [f64; 2],
    command: Option<f64>,
    reads: f64,
) -> Result<Finding<Turn>, ProbeError> {
    let sectors = chunks.sectors as u32;
    let (mut later, mut waited, mut each) = (0u32, Moments::default(), Vec::new());
    const TRIALS: u32 = 256;
    for _ in 0..TRIALS {
        let places = [(); 2].map(|()| chunks.at(instrument.rng.random_range(0..chunks.count())).0);
        let ends = instrument.group([
            (Operation::read(places[0], sectors), Ns::ZERO),
            (Operation::write(places[1], sectors), Ns::ZERO),
        ])?;
        later += u32::from(ends[1] > ends[0]);
        waited.add(ends[1].0 as f64 - write);
        each.push(ends[1].0 as f64 - write);
        // What the write left behind must not meet the next read.
        instrument.pause(Ns::from_millis(3))?;
    }
    let share = f64::from(later) / f64::from(TRIALS);
    let costs = waited.mean() - command.unwrap_or(0.0);
    let statistic = format!(
        "a write issued right after a read waits {:.1} us, and ends after it in {:.0} % of {TRIALS} trials (alone: read {:.1} us, write {:.1} us)",
        waited.mean() / 1e3,
        share * 100.0,
        read / 1e3,
        write / 1e3
    );
    let [low, high] = [0.1, 0.9].map(|share| quantile(&mut each, share));
    if share <= 0.9 && high - low > 0.5 * high.abs() && high > 0.1 * write {
        return Ok(Finding::undetermined(statistic, "some writes wait, and others do not"));
    }
    // Without waiting for the read, the write would be the first to end.
    let could_be_first = write + 1.2 * command.unwrap_or(0.0) < 0.9 * read;
    Ok(match share {
        share if share > 0.9 && could_be_first && waited.mean() > 0.5 * (read - write) => {
            Finding::of(Turn::Drains, 0.95, statistic, "the write waits until the read has ended")
        }
        share if share < 0.5 || !could_be_first => {
            // A wait of the size of a read or a write is for a unit or the buffer, and no turn.
            if costs > 0.7 * read.min(write) {
                return Ok(Finding::undetermined(
                    statistic,
                    "it waits, but perhaps for a unit or for room in the buffer",
                ));
            }
            if waited.mean().abs() + 3.0 * waited.error() < 0.05 * write.min(read) {
                let reason = "it waits no longer than a second read does";
                return Ok(Finding::of(Turn::Costs(0.0), 0.9, statistic, reason));
            }
            // What reads under load follow one another at may be the controller's time for the read's command.
            if waited.mean() < 2.0 * reads {
                let reason = "it waits no longer than the controller may need for the read";
                return Ok(Finding::undetermined(statistic, reason));
            }
            // Of what a second command waits for anyway, all or nothing may be in it.
            let error = 3.0 * waited.error();
            let [least, most] = [(costs - error).max(0.0), waited.mean() + error];
            let middle = (least + most) / 2.0;
            if most < 0.0 {
                let reason = "after a read it takes less than on an idle device: what was in the buffer is in the way there";
                return Ok(Finding::undetermined(statistic, reason));
            }
            if most <= command.unwrap_or(0.0).max(0.01 * read) * 1.1 {
                let reason = "it waits no longer than a second read does";
                Finding::of(Turn::Costs(0.0), 0.9, statistic, reason)
            } else if most - middle < 0.1 * middle {
                Finding::of(
                    Turn::Costs(middle),
                    0.9,
                    statistic,
                    "what it waits for beyond the read's command",
                )
            } else {
                Finding::undetermined(statistic, "it waits little longer than a second read does")
            }
        }
        _ => Finding::undetermined(statistic, "some writes wait for the read, others do not"),
    })
}

/// Share of a distance between commands that those who are elsewhere may make up: all that a tenth leaves.
const IDLE: f64 = 0.1;
/// Time between two commands that can be told from none, ns.
const SEEN: f64 = 50.0;

/// Least time between two commands: by how much the second of two reads of different domains completes later. `held` is how long a unit is held by
/// one, `on_bus` how long its bus may be, ns.
pub(super) fn command(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    queue: &Queue,
    [alone, held, on_bus]: [f64; 3],
) -> Result<Command, ProbeError> {
    let block = instrument.block_sectors();
    let apart = |one: u64, other: u64| match (domains.domain, domains.unit) {
        (Some((stride, degree)), _) if degree > 1 => one / stride % degree != other / stride % degree,
        (_, Some(unit)) => !unit.holds(one, other),
        (_, None) => true,
    };
    let mut behind = Vec::new();
    for _ in 0..READS / 2 {
        let pair = companions(instrument, chunks, 2, apart);
        let &[first, second] = pair.as_slice() else { continue };
        let own = [first, second].map(|place| instrument.single(Operation::read(place, block)));
        let [own_first, own_second] = own;
        let difference = own_second?.0 as f64 - own_first?.0 as f64;
        let ends = instrument
            .group([(Operation::read(first, block), Ns::ZERO), (Operation::read(second, block), Ns::ZERO)])?;
        behind.push(ends[1].0 as f64 - ends[0].0 as f64 - difference);
    }
    let moments = Moments::of(behind.iter().copied());
    let late = quantile(&mut behind.clone(), 0.9);
    let value = median(&mut behind).max(0.0);
    let statistic = format!(
        "the second of two reads of different domains ends {value:.0} ns after the first, {:.0} ns standard error",
        moments.error()
    );
    // With all units busy, commands may follow one another more slowly than two of them do: more steps of the controller than one.
    let units = domains.units.value.unwrap_or(1) as f64;
    let depth = instrument.depth();
    let loaded = instrument.keep(depth, Ns::MAX, |rng, number| {
        let start = chunks.at(rng.random_range(0..chunks.count())).0;
        (number < 8 * KEPT).then(|| Operation::read(start, block))
    })?;
    let interval = loaded.second_half_interval();
    // What the units would do if nothing else limited them: a closed network with so many customers.
    let customers = f64::from(queue.depth(depth));
    let closed = |held: f64, places: f64| held * (places + customers - 1.0) / (places * customers);
    // Nor do buses let more through; domains that are not known may be one.
    let by_units = closed(held, units).max(closed(on_bus, domains.degree.value.unwrap_or(1) as f64));
    let statistic = format!(
        "{statistic}; {depth} at a time complete every {interval:.0} ns, by their units and buses every {by_units:.0} ns"
    );
    let is_clear = moments.error() < 0.05 * value && value > SEEN;
    if interval > 1.5 * by_units && interval > alone / customers * 1.2 && interval > value {
        // A queue of so few commands would make it so, too, if nobody knows how many it takes: two at a time would complete twice as fast as one.
        let share = interval / alone;
        if queue.commands.value.is_none() && !(0.55..0.93).contains(&share) {
            let reason = "reads all over the device complete no faster: for the controller, or because so few commands are taken at a time";
            let behind = if is_clear { value.min(interval) } else { 0.0 };
            return Ok(Command {
                distance: Finding::undetermined(statistic, reason),
                behind,
                about: Some(interval),
            });
        }
        // So few at a time do not keep what limits them busy all the time: of what a read spends elsewhere, each of them may leave its share.
        let least = if queue.commands.value.is_some() { customers } else { 2.0 };
        if (alone - interval) / least > IDLE * interval {
            let reason = "reads all over the device complete no faster, in part because so few commands are taken at a time";
            let behind = if is_clear { value.min(interval) } else { 0.0 };
            return Ok(Command {
                distance: Finding::undetermined(statistic, reason),
                behind,
                about: Some(interval),
            });
        }
        let reason = "reads all over the device complete no faster, and their units could";
        let behind = if is_clear { value.min(interval) } else { 0.0 };
        return Ok(Command { distance: Finding::of(interval, 0.92, statistic, reason), behind, about: None });
    }
    let shares_bus = domains.domain.is_none_or(|(_, degree)| degree < 2);
    if shares_bus && value > SEEN && value < 1.2 * on_bus {
        let reason = "commands follow one another no slower than their data on a bus, and all may share one";
        return Ok(Command::unknown(statistic, reason));
    }
    let reason = "commands that share nothing else follow one another at this distance";
    Ok(if is_clear && moments.mean() < 3.0 * value {
        Command { distance: Finding::of(value, 0.92, statistic, reason), behind: value, about: None }
    } else if value + 3.0 * moments.error() < 0.01 * alone && late < 0.01 * alone && behind.len() > READS / 8
    {
        let reason = "no distance between commands can be seen";
        Command { distance: Finding::of(0.0, 0.9, statistic, reason), behind: 0.0, about: None }
    } else {
        let reason = "noise, or what only some commands wait for, hides it";
        Command::unknown(statistic, reason)
    })
}

/// Whether a command that needs an idle unit waits for one before it that needs a busy unit.
pub(super) fn queues_inside(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    alone: f64,
) -> Result<Finding<bool>, ProbeError> {
    let Some(unit) = domains.unit else {
        return Ok(Finding::undetermined(
            String::new(),
            "units are not known, so that none can be kept busy",
        ));
    };
    let block = instrument.block_sectors();
    let (mut held_back, mut free) = (Moments::default(), Moments::default());
    for _ in 0..128 {
        let same = companions(instrument, chunks, 2, |one, other| unit.holds(one, other));
        let &[first, second] = same.as_slice() else { continue };
        let number = chunks.number(first);
        let other = (0..256).find_map(|_| {
            let (start, of) = chunks.at(instrument.rng.random_range(0..chunks.count()));
            let apart = match domains.domain {
                Some((stride, degree)) if degree > 1 => of / stride % degree != number / stride % degree,
                _ => !unit.holds(number, of),
            };
            apart.then_some(start)
        });
        let Some(other) = other else { continue };
        let read = |place| Operation::read(place, block);
        let ends =
            instrument.group([(read(first), Ns::ZERO), (read(second), Ns::ZERO), (read(other), Ns::ZERO)])?;
        held_back.add(ends[2].0 as f64);
        let ends =
            instrument.group([(read(first), Ns::ZERO), (read(other), Ns::ZERO), (read(second), Ns::ZERO)])?;
        free.add(ends[1].0 as f64);
    }
    let waits = held_back.mean() - free.mean();
    let statistic = format!(
        "behind two reads of one unit, a read of another takes {:.1} us longer than behind one, of {:.1} us",
        waits / 1e3,
        alone / 1e3
    );
    Ok(match waits / alone {
        share if share > 0.7 => {
            Finding::of(false, 0.98, statistic, "it waits for them: commands are taken in order")
        }
        share if share < 0.15 => Finding::of(true, 0.98, statistic, "it overtakes them"),
        _ => Finding::undetermined(statistic, "it waits longer, but not as long as for a unit"),
    })
}
