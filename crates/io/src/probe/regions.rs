//! Regions and batches for PASS: whether the device works on parts of its address space one at a time, how large these are, and how many
//! requests of one direction should go together (Guo et al., PASS, section 2, which left the measurement as future work).

use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::relation::{Fit, Pair, Relation, fit};
use super::statistics::{likelier, median};
use crate::target::Operation;
use planewise_model::{Bytes, Direction, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regions {
    /// Size of a region: two reads inside one wait for one another.
    pub size: Finding<Bytes>,
    /// Reads, or writes, of one direction in a row with which the device does best in a mixed load.
    pub batch: Finding<u32>,
}

/// Pairs of reads.
const PAIRS: usize = 6000;
/// Smallest region looked for.
const SMALLEST: u64 = 16 << 20;

/// Looks for regions all over `readable` (reads only) and for the best batch in `area`. Of a device of which only a part was written,
/// only that part is readable: the rest answers without its flash.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    readable: Area,
    sectors: u64,
    operations: u64,
) -> Result<(Regions, Vec<Curve>), ProbeError> {
    let size = size(instrument, readable, sectors)?;
    let sweep = working_sets(instrument, readable, sectors, operations)?;
    let (batch, batches) = batch(instrument, area, sectors, operations)?;
    let mut curves = vec![sweep];
    curves.extend(batches);
    Ok((Regions { size, batch }, curves))
}

fn size(instrument: &mut Instrument<'_>, device: Area, sectors: u64) -> Result<Finding<Bytes>, ProbeError> {
    let within = within(instrument, device);
    let mut alone = Vec::new();
    for _ in 0..128 {
        let place = device.random_piece(sectors, &mut instrument.rng);
        alone.push(instrument.single(Operation::read(place, sectors as u32))?.0 as f64);
    }
    let alone = median(&mut alone);
    let mut pairs = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let first = device.random_piece(sectors, &mut instrument.rng);
        // Distances of all orders of magnitude.
        let power = instrument.rng.random_range(0.0..1.0f64);
        let reach = (device.sectors as f64 * SECTOR_BYTES as f64 / SMALLEST as f64).max(2.0).powf(power);
        let distance = (reach * SMALLEST as f64 / SECTOR_BYTES as f64 / 2.0) as u64 / sectors * sectors;
        let Some(second) = first.0.checked_sub(distance) else { continue };
        if second == first.0 || second < device.start {
            continue;
        };
        let group = [
            (Operation::read(first, sectors as u32), Ns::ZERO),
            (Operation::read(Lsn(second), sectors as u32), Ns::from_micros(2)),
        ];
        let time = instrument.group(group)?[1].0 as f64;
        pairs.push(Pair { one: first.0, other: second, time: time.min(3.0 * alone) });
    }
    let none = Relation { skipped: 1, inner: 1, gap: 1, outer: 1 };
    let mut fits: Vec<(u64, Fit)> = Vec::new();
    let mut region = SMALLEST;
    while region <= device.sectors * SECTOR_BYTES / 2 {
        let of = region / SECTOR_BYTES;
        if let Some(fit) = fit(&pairs, none, |one, other| one / of == other / of) {
            fits.push((region, fit));
        }
        region *= 2;
    }
    fits.sort_by(|one, other| other.1.evidence.total_cmp(&one.1.evidence));
    let Some(&(region, best)) = fits.first() else {
        return Ok(Finding::undetermined(
            format!("{} pairs of reads{within}", pairs.len()),
            "no distance makes two reads wait for one another",
        ));
    };
    let margin = best.evidence - fits.get(1).map_or(0.0, |next| next.1.evidence);
    let statistic = format!(
        "{} pairs of reads{within}: {:.1} us inside a region, {:.1} us across; {}",
        pairs.len(),
        best.means[1] / 1e3,
        best.means[0] / 1e3,
        likelier(margin)
    );
    // Units that collide now and then make no region: inside one, every pair waits.
    let is_clear = margin > 12.0 && best.means[1] - best.means[0] > 0.2 * alone && best.wrong[0] < 0.3;
    Ok(if is_clear {
        Finding::of(
            Bytes(region),
            1.0 - (-margin).exp(),
            statistic,
            "two reads inside it wait for one another",
        )
    } else {
        Finding::undetermined(
            statistic,
            "reads near one another wait no more than others: no regions to be seen",
        )
    })
}

/// Where reads went, if that was not the whole device, in words.
fn within(instrument: &Instrument<'_>, part: Area) -> String {
    let is_all = part.sectors == instrument.target().info().sectors();
    if is_all { String::new() } else { format!(" within an area of {}", Bytes(part.sectors * SECTOR_BYTES)) }
}

/// Bandwidth of random reads over working sets of growing size, at several depths.
fn working_sets(
    instrument: &mut Instrument<'_>,
    device: Area,
    sectors: u64,
    operations: u64,
) -> Result<Curve, ProbeError> {
    let capacity = device.sectors * SECTOR_BYTES;
    let within = within(instrument, device);
    let mut curve = Curve {
        title: format!("Random reads over a working set{within} (as figures 1 and 2 of the PASS paper)"),
        x: "working set, MiB".into(),
        y: "MB/s".into(),
        lines: Vec::new(),
    };
    let deepest = instrument.depth();
    for depth in [1u32, 4, 16, 64].into_iter().filter(|&depth| depth <= deepest) {
        let mut points = Vec::new();
        let mut set = 64u64 << 20;
        while set <= capacity {
            let area = Area { start: device.start, sectors: set / SECTOR_BYTES };
            let result = instrument.keep(depth, Ns::MAX, |rng, number| {
                (number < operations)
                    .then(|| Operation::read(area.random_piece(sectors, rng), sectors as u32))
            })?;
            points.push(((set >> 20) as f64, result.bandwidth() / 1e6));
            set *= 2;
        }
        curve.lines.push((format!("{depth} at a time"), points));
    }
    Ok(curve)
}

/// Reads and writes, half of each, in batches of one direction.
fn batch(
    instrument: &mut Instrument<'_>,
    area: Area,
    sectors: u64,
    operations: u64,
) -> Result<(Finding<u32>, Option<Curve>), ProbeError> {
    if !instrument.may_write() {
        return Ok((Finding::undetermined(String::new(), "nothing may be written"), None));
    }
    let depth = instrument.depth().min(32);
    let mut points: Vec<(u32, f64)> = Vec::new();
    for batch in [1u32, 2, 4, 8, 16, 32, 64, 128] {
        let result = instrument.keep(depth, Ns::MAX, |rng, number| {
            let direction =
                if number / u64::from(batch) % 2 == 0 { Direction::Read } else { Direction::Write };
            let start = area.random_piece(sectors, rng);
            (number < 4 * operations).then_some(Operation::transfer(direction, start, sectors as u32))
        })?;
        points.push((batch, (sectors * SECTOR_BYTES) as f64 / result.second_half_interval().max(1.0) * 1e3));
    }
    let curve = Curve {
        title: "Batches of one direction: half reads, half writes".into(),
        x: "requests of one direction in a row".into(),
        y: "MB/s".into(),
        lines: vec![(
            format!("{depth} at a time"),
            points.iter().map(|&(batch, rate)| (f64::from(batch), rate)).collect(),
        )],
    };
    let (worst, best) =
        points.iter().fold((f64::MAX, 0.0f64), |(low, high), &(_, rate)| (low.min(rate), high.max(rate)));
    let statistic = format!("{worst:.0} to {best:.0} MB/s for batches of 1 to 128");
    let finding = match points.iter().find(|&&(_, rate)| rate >= 0.9 * best) {
        Some(&(batch, _)) if best > 1.05 * worst => {
            Finding::of(batch, 0.9, statistic, "the least batch with 90 % of the best bandwidth")
        }
        _ => Finding::undetermined(statistic, "batches make no difference"),
    };
    Ok((finding, Some(curve)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Completed, SimTarget, Target, TargetError, TargetInfo};
    use planewise_model::Profile;
    use planewise_model::rng::generator;
    use planewise_sim::Condition;
    use std::sync::atomic::AtomicBool;

    /// A simulated device that refuses what is outside an area.
    struct Fenced {
        inner: SimTarget,
        area: Area,
    }

    impl Target for Fenced {
        fn info(&self) -> &TargetInfo {
            self.inner.info()
        }

        fn now(&mut self) -> Ns {
            self.inner.now()
        }

        fn submit(&mut self, tag: u32, operation: Operation) -> Result<(), TargetError> {
            let end = operation.start.0 + u64::from(operation.sectors);
            assert!(operation.start.0 >= self.area.start && end <= self.area.start + self.area.sectors);
            self.inner.submit(tag, operation)
        }

        fn wait(&mut self, until: Ns, completed: &mut Vec<Completed>) -> Result<Ns, TargetError> {
            self.inner.wait(until, completed)
        }

        fn flush(&mut self) -> Result<Ns, TargetError> {
            self.inner.flush()
        }
    }

    #[test]
    fn nothing_outside_what_is_readable_is_read_and_the_report_says_so() {
        let profile = Profile::embedded("ssd-s").unwrap();
        let inner = SimTarget::new(&profile, Condition::Filled, 32, 1).unwrap();
        let area = Area { start: 6 << 11, sectors: 128 << 11 };
        let (mut target, stop) = (Fenced { inner, area }, AtomicBool::new(false));
        let mut instrument = Instrument::new(&mut target, &stop, generator(1, "test"));
        let (regions, curves) = find(&mut instrument, area, area, 8, 64).unwrap();
        assert!(regions.size.statistic.contains("within an area of 128.0 MiB"), "{}", regions.size.statistic);
        assert!(curves[0].title.contains("within an area of 128.0 MiB"), "{}", curves[0].title);
        assert_eq!(curves[0].lines[0].1.len(), 2);
    }
}
