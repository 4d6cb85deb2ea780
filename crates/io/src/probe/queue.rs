//! How many commands a device takes at a time, and what one place of it needs for a read: found before anything is known of its inside.
//!
//! One block is read over and over, which one unit has to do alone, whichever it is. Behind so many reads of it comes one of another place:
//! as long as the device takes all of them, that one passes those that wait for the unit; the first that it does not take waits for one of them to end.
//! So the latency of the last read, against the number before it, rises by what a unit needs for each from the depth of the device's queue on,
//! and before that by what the controller needs for a command.
//!
//! Whether it is the unit that the reads of one block wait for, and not what is in front of all units, shows in reads of other places: those have to
//! follow one another faster.

use super::error::ProbeError;
use super::finding::Finding;
use super::instrument::{Area, Instrument};
use super::pairs::STAGGER;
use super::statistics::median;
use crate::target::Operation;
use planewise_model::{Lsn, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// Commands that a device takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Commands {
    /// So many.
    Exactly(u32),
    /// All that were tried.
    AtLeast(u32),
}

impl Commands {
    /// The number.
    pub fn number(self) -> u32 {
        match self {
            Commands::Exactly(number) | Commands::AtLeast(number) => number,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Commands at a time.
    pub commands: Finding<Commands>,
    /// Mean time between reads of one block over and over, and between as many reads all over, ns.
    pub intervals: [f64; 2],
    /// Whether some reads wait behind those of one block and others do not, as in an array of drives.
    pub is_divided: bool,
    /// Latency of a block on an idle device, and of one that was just read, ns.
    pub alone: [f64; 2],
    /// Whether reads of one place that wait are done together, so that it looks faster than it is.
    #[serde(default)]
    pub joins: bool,
}

impl Queue {
    /// Time for which one place is held by the read of a block, where it is that place that reads wait for, ns.
    pub fn held(&self) -> Option<f64> {
        let [same, other] = self.intervals;
        // What takes longer than a read alone is a read of another kind: most come from a buffer.
        let is_of_flash = self.keeps_busy() && same < 1.2 * self.alone[0];
        (is_of_flash && same > LIMITS * other).then_some(same)
    }

    /// Whether what was just read comes from a buffer.
    pub fn is_cached(&self) -> bool {
        self.alone[1] < 0.9 * self.alone[0]
    }

    /// Whether reads of one place over and over keep a unit busy, each for as long as a read does.
    pub fn keeps_busy(&self) -> bool {
        !self.is_cached() && !self.joins
    }

    /// Commands at a time as far as they are known: what else is measured must not take the limit for something of the flash.
    pub fn depth(&self, tried: u32) -> u32 {
        self.commands.value.map_or(tried, |commands| commands.number().min(tried))
    }

    /// Whether one place is held for all of a read's latency: nothing is in front of it, or it is a drive that takes one command at a time.
    pub fn holds_all(&self) -> bool {
        self.held().is_some_and(|held| held > 0.93 * self.alone[0])
    }

    /// Whether it takes one command at a time, so that no two of them meet inside.
    pub fn is_serial(&self) -> bool {
        self.commands.value == Some(Commands::Exactly(1))
    }
}

/// By how much reads of one place must be slower than those of others to wait for that place.
pub(super) const LIMITS: f64 = 1.3;
/// Reads under way when a place is kept busy.
pub(super) const BUSY: u32 = 4;
/// Confidence of a number that is concluded from times, behind few commands and behind many.
const COUNTED: f64 = 0.95;
/// Commands by which what is found behind many and behind few may differ.
const AGREE: f64 = 0.3;
/// By how many fewer commands are tried to see what each costs.
const FEWER: u32 = 8;
/// Bursts behind a statement on one number of commands.
const BURSTS: usize = 32;

/// Looks for the depth of the device's queue with reads in `area`.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(instrument: &mut Instrument<'_>, area: Area) -> Result<Queue, ProbeError> {
    let block = instrument.block_sectors();
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..128 {
        let read = random(instrument, area, block);
        first.push(instrument.single(read)?.0 as f64);
        again.push(instrument.single(read)?.0 as f64);
    }
    let alone = [median(&mut first), median(&mut again)];
    let same = one_place(instrument, area, block)?;
    let other = all_over(instrument, area, BUSY.min(instrument.depth()))?;
    let unknown = Finding::undetermined(String::new(), "");
    let joins = joins(instrument, area, block)?;
    let mut queue = Queue { commands: unknown, intervals: [same, other], is_divided: false, alone, joins };
    queue.commands = commands(instrument, area, &mut queue)?;
    Ok(queue)
}

fn random(instrument: &mut Instrument<'_>, area: Area, block: u32) -> Operation {
    Operation::read(area.random_piece(u64::from(block), &mut instrument.rng), block)
}

/// Mean time between reads of so many sectors, of one place over and over, ns: a mean over places, as pages may take different times.
fn one_place(instrument: &mut Instrument<'_>, area: Area, sectors: u32) -> Result<f64, ProbeError> {
    const PLACES: usize = 12;
    let busy = BUSY.min(instrument.depth());
    let mut sum = 0.0;
    for _ in 0..PLACES {
        let read = random(instrument, area, sectors);
        sum += instrument.keep(busy, Ns::MAX, |_, number| (number < 48).then_some(read))?.interval();
    }
    Ok(sum / PLACES as f64)
}

/// Whether several reads of one block that wait are done together: then so many follow one another faster than the second of two does that has to wait
/// for the first, which has begun, beyond what it waits for behind another place.
fn joins(instrument: &mut Instrument<'_>, area: Area, block: u32) -> Result<bool, ProbeError> {
    const PLACES: usize = 24;
    let busy = BUSY.min(instrument.depth());
    let (mut waits, mut intervals) = (0.0, 0.0);
    for _ in 0..PLACES {
        let [read, other] = [(); 2].map(|()| random(instrument, area, block));
        // What it waits for behind a read of any place is in front of the flash.
        let [same, apart] = [read, other].map(|first| instrument.group([(first, Ns::ZERO), (read, STAGGER)]));
        waits += same?[1].0 as f64 - apart?[1].0 as f64;
        intervals += instrument.keep(busy, Ns::MAX, |_, number| (number < 48).then_some(read))?.interval();
    }
    Ok(intervals < JOINED * waits)
}

/// Part of the time for which one read waits for another that several follow one another at, at most, where they are done together.
const JOINED: f64 = 0.75;

/// Mean time between reads of blocks all over, so many under way, ns.
fn all_over(instrument: &mut Instrument<'_>, area: Area, depth: u32) -> Result<f64, ProbeError> {
    let block = instrument.block_sectors();
    let reads = 512.max(16 * u64::from(depth));
    let result = instrument.keep(depth, Ns::MAX, |rng, number| {
        (number < reads).then(|| Operation::read(area.random_piece(u64::from(block), rng), block))
    })?;
    Ok(result.steady_interval(depth))
}

fn commands(
    instrument: &mut Instrument<'_>,
    area: Area,
    queue: &mut Queue,
) -> Result<Finding<Commands>, ProbeError> {
    let [same, other] = queue.intervals;
    let statistic = format!(
        "reads of one block follow one another every {:.2} us, of blocks all over every {:.2} us, {BUSY} at a time; one takes {:.1} us",
        same / 1e3,
        other / 1e3,
        queue.alone[0] / 1e3
    );
    if queue.is_cached() {
        return Ok(Finding::undetermined(
            statistic,
            "what was read comes from a buffer: no unit can be kept busy",
        ));
    }
    if queue.joins {
        let reason = "reads of one place that wait are done together: no number of them keeps a unit busy for a known time";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let Some(held) = queue.held() else {
        return serial(instrument, area, queue, statistic);
    };
    let tried = instrument.depth();
    let least = all_over(instrument, area, tried)?.min(other);
    // Longer reads hold a unit longer, and the controller no longer; all flash has pages of 4 KiB or more.
    let block = instrument.block_sectors();
    let page = ((4096 / SECTOR_BYTES) as u32).max(block);
    let (held, sectors) = match held < 2.0 * least {
        true => (one_place(instrument, area, page)?, page),
        false => (held, block),
    };
    if held < 2.0 * least {
        let reason = "a read holds a unit for little longer than it holds what is in front of all units";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let place = Place { area, sectors, held, least };
    let far = Behind::of(instrument, place, tried - 1)?;
    let statistic = format!(
        "{statistic}; of reads behind {} of one block, {} pass them, {} wait for all of them, {} for some",
        tried - 1,
        far.passing.len(),
        far.last,
        far.waiting.len() - far.last
    );
    let wait = far.waiting.len();
    if far.passing.len() > 3 && wait - far.last > 3 {
        queue.is_divided = true;
        let reason = "some reads wait behind those of one block, and others do not: as in an array of drives";
        return Ok(Finding::undetermined(statistic, reason));
    }
    if far.passing.len() > 4 * wait {
        // Where the controller takes half as long as a unit for each, a part of them may be waited for, which a few less show.
        let fewer = Behind::of(instrument, place, (tried - 1).saturating_sub(FEWER).max(1))?;
        let [most, least] = [&far, &fewer].map(|of| median(&mut of.passing.clone()));
        if most - least > 0.75 * held * f64::from(FEWER) || 4 * fewer.waiting.len() > fewer.passing.len() {
            let reason = "each command more costs what a unit needs, though what they wait for in all is no longer than a controller may need";
            return Ok(Finding::undetermined(statistic, reason));
        }
        let reason = "it passes all that wait for the unit";
        return Ok(Finding::of(Commands::AtLeast(tried), 0.95, statistic, reason));
    }
    if far.passing.len() > 3 {
        let reason = "as many wait for all reads of one block as if there were few units, or few drives";
        return Ok(Finding::undetermined(statistic, reason));
    }
    // As long as commands take their time to come, nothing has to wait for a place in the queue.
    let (mut depth, mut near, mut number) = (far.depth(), None, 0);
    for _ in 0..3 {
        let come = (depth - 1.0).max(0.0) * held / (held - least);
        number = (come.max(depth).ceil() as u32 + 3).clamp(2, tried - 1);
        let found = Behind::of(instrument, place, number)?;
        depth = found.depth();
        near = Some(found);
    }
    let whole = depth.round();
    let statistic = format!("{statistic}; by how long they wait, {depth:.2} are taken at a time");
    let Some(near) = near.filter(|_| number + 4 < tried) else {
        return Ok(Finding::undetermined(statistic, "it takes about as many as were tried"));
    };
    if (far.depth() - near.depth()).abs() > AGREE {
        let reason = "behind more of them it is another number: from no number of commands on does each one more cost what a unit needs";
        return Ok(Finding::undetermined(statistic, reason));
    }
    if (depth - whole).abs() > 0.15 || whole < 1.0 {
        return Ok(Finding::undetermined(statistic, "how long they wait is of no number of commands"));
    }
    let whole = whole as u32;
    // A device that stops at the first command that has to wait takes more of those that do not have to.
    let [at, twice] = [whole, (2 * whole).min(tried)].map(|depth| all_over(instrument, area, depth));
    if at? > 1.2 * twice? {
        let reason = "more commands at a time help when they are for different units: what holds the last up is one that waits";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let reason = "the next is not taken before one of them is complete";
    Ok(Finding::of(Commands::Exactly(whole), COUNTED, statistic, reason))
}

/// Where reads are issued, how long those of one place are and for how long each holds its unit, and how long commands take to come at least, ns.
#[derive(Clone, Copy)]
struct Place {
    area: Area,
    sectors: u32,
    held: f64,
    least: f64,
}

/// Reads of places all over, each behind so many of one block.
struct Behind {
    /// When those that did not wait for them were taken, ns.
    passing: Vec<f64>,
    /// How many commands were taken at a time by how long each waited that did.
    waiting: Vec<f64>,
    /// How many waited for all: they are for the same unit, or few commands are taken at a time.
    last: usize,
}

impl Behind {
    fn of(instrument: &mut Instrument<'_>, place: Place, number: u32) -> Result<Behind, ProbeError> {
        let Place { area, sectors, held, least } = place;
        let block = instrument.block_sectors();
        let mut own = Vec::new();
        for _ in 0..BURSTS {
            let places = [random(instrument, area, sectors), random(instrument, area, block)];
            own.push((places, instrument.single(places[1])?.0 as f64));
        }
        let mut behind = Behind { passing: Vec::new(), waiting: Vec::new(), last: 0 };
        let before = f64::from(number);
        for ([first, last], own_last) in own {
            let mut reads = vec![first; number as usize];
            reads.push(last);
            let mut ends: Vec<f64> = instrument.burst(&reads)?.iter().map(|end| end.0 as f64).collect();
            let time = ends.pop().unwrap_or(0.0);
            ends.sort_unstable_by(f64::total_cmp);
            // It is taken when so many are complete. They are counted, as the first of many may take longer than alone: a controller that takes in commands
            // before it begins with any.
            let depth = before + 1.0 - complete(&ends, time - own_last, held);
            if time < own_last + before * 1.2 * least + 0.5 * held {
                behind.passing.push(time - own_last);
            } else {
                behind.last += usize::from(number > 8 && depth < 1.5 + 0.05 * before);
                behind.waiting.push(depth);
            }
        }
        Ok(behind)
    }

    /// The median of those that waited.
    fn depth(&self) -> f64 {
        if self.waiting.is_empty() { 1.0 } else { median(&mut self.waiting.clone()) }
    }
}

/// How many of these, in order of time, were complete at a moment: between two of them a part of one, before the first and behind the last one more for each time
/// for which the unit is held.
fn complete(ends: &[f64], at: f64, held: f64) -> f64 {
    let after = ends.partition_point(|&end| end <= at);
    match (after.checked_sub(1).map(|before| ends[before]), ends.get(after)) {
        (Some(before), Some(next)) => after as f64 + (at - before) / (next - before),
        (Some(last), None) => after as f64 + (at - last) / held,
        (None, Some(first)) => 1.0 - (first - at) / held,
        (None, None) => 0.0,
    }
}

/// Whether a device on which reads of one place are as fast as those of others takes one command at a time.
fn serial(
    instrument: &mut Instrument<'_>,
    area: Area,
    queue: &Queue,
    statistic: String,
) -> Result<Finding<Commands>, ProbeError> {
    let [same, other] = queue.intervals;
    let alone = queue.alone[0];
    let is_serial = [same, other].iter().all(|interval| *interval > 0.97 * alone && *interval < 1.1 * alone);
    if !is_serial {
        let reason =
            "reads of one place are as fast as those of others: what is in front of the flash limits both";
        return Ok(Finding::undetermined(statistic, reason));
    }
    // One unit alone would be as slow, but could not read a hundred pages in the time of a few.
    let longest = instrument.target().info().longest.0 / SECTOR_BYTES;
    let sectors = longest.min(area.sectors);
    let mut times = Vec::new();
    for _ in 0..16 {
        let place: Lsn = area.random_piece(sectors, &mut instrument.rng);
        times.push(instrument.single(Operation::read(place, sectors as u32))?.0 as f64);
    }
    let large = median(&mut times);
    // Pages of up to 32 KiB.
    let pages = (sectors * SECTOR_BYTES) as f64 / f64::from(32 << 10);
    let statistic = format!("{statistic}; a read of {} KiB takes {:.1} us", sectors / 2, large / 1e3);
    if large < 1.5 * alone {
        let reason = "no two reads overlap, but large ones take as long as small ones: what limits them may be in front of all flash";
        return Ok(Finding::undetermined(statistic, reason));
    }
    if large < 0.5 * pages * alone {
        let reason = "no two reads overlap, but the parts of a large one do";
        return Ok(Finding::of(Commands::Exactly(1), 0.95, statistic, reason));
    }
    Ok(Finding::undetermined(statistic, "no two reads overlap: one command at a time, or one unit"))
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn what_is_complete_is_counted_between_and_beyond_completions() {
        let ends = [10.0, 20.0, 40.0];
        for (at, number) in [(5.0, 0.5), (10.0, 1.0), (15.0, 1.5), (30.0, 2.5), (40.0, 3.0), (60.0, 5.0)] {
            assert_eq!(complete(&ends, at, 10.0), number, "at {at}");
        }
        assert_eq!(complete(&[], 5.0, 10.0), 0.0);
    }
}
