//! What a probe is going to write, and about how long it takes: said before the first write.

use super::chunk;
use super::error::ProbeError;
use super::finding::Finding;
use super::findings::Findings;
use super::flush;
use super::instrument::{Area, Instrument};
use super::options::Options;
use super::stages::{Entry, STAGES, refilled, wanted};
use super::statistics::median;
use super::write_buffer;
use crate::target::{Operation, Target, TargetInfo};
use planewise_model::rng::generator;
use planewise_model::{Bytes, SECTOR_BYTES};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Largest page that is looked for.
pub const LARGEST_PAGE: Bytes = Bytes(256 << 10);

/// Units where none were found yet.
const USUAL_UNITS: u64 = 32;

/// What is ahead of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Stages that are left and write, in order.
    pub writing: Vec<&'static str>,
    /// Bytes they write at most if pages are as small as usual, or as has been found.
    pub written: Bytes,
    /// Bytes they write at most, whatever the size of pages.
    pub written_most: Bytes,
    /// About how long all stages take that are left.
    pub time: Duration,
}

/// Times of a target, ns.
struct Speed {
    /// Of a read of a block at a random place.
    block: f64,
    /// Of a byte of a large read.
    byte: f64,
}

/// Costs of a stage.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Operations one after the other.
    serial: u64,
    /// Bytes written at most.
    written: u64,
    /// Time that does not depend on the target, ms.
    pause: u64,
    /// Bytes written at most within that time.
    meanwhile: u64,
}

impl Cost {
    fn all_written(&self) -> u64 {
        self.written + self.meanwhile
    }
}

/// Looks at a few reads and reckons what is ahead of a probe that has these findings.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn expected(
    target: &mut dyn Target,
    options: &Options,
    findings: &Findings,
    stop: &AtomicBool,
) -> Result<Expected, ProbeError> {
    let speed = speed(target, options, stop)?;
    let info = target.info().clone();
    let left: Vec<&Entry> = STAGES
        .iter()
        .filter(|entry| wanted(entry, info.writable, options.quick))
        .filter(|entry| !findings.stages.iter().any(|stage| stage.name == entry.name))
        .collect();
    let units = findings.domains.as_ref().and_then(|domains| domains.units.value);
    let refilled = refilled(&info, options, findings);
    let cost = |entry: &Entry, sizes: [Bytes; 2]| {
        let sizes = sizes.map(|size| size.0.max(u64::from(info.block_bytes)));
        let mut cost = cost(entry.name, options, sizes, units, &info, &speed);
        if refilled == Some(entry.name) {
            let fill = self::cost("fill", options, sizes, units, &info, &speed);
            cost.written += fill.written;
            cost.pause += fill.pause;
        }
        if !info.writable {
            (cost.written, cost.pause, cost.meanwhile) = (0, 0, 0);
        }
        cost
    };
    let sum = |sizes| left.iter().map(|entry| cost(entry, sizes).all_written()).sum::<u64>();
    let known = |of: &Option<Finding<Bytes>>| of.as_ref().and_then(|found| found.value);
    let page = findings.page_bytes();
    let usual = [page, known(&findings.chunk).unwrap_or(page)];
    let most = [
        known(&findings.page).unwrap_or(LARGEST_PAGE),
        known(&findings.chunk).unwrap_or(Bytes(chunk::LONGEST)),
    ];
    let time: f64 = left
        .iter()
        .map(|entry| cost(entry, usual))
        // Flash takes its time to program: half the rate of reading, as a rule of thumb.
        .map(|cost| {
            cost.serial as f64 * speed.block
                + cost.written as f64 * 2.0 * speed.byte
                + cost.pause as f64 * 1e6
        })
        .sum();
    Ok(Expected {
        writing: left
            .iter()
            .filter(|entry| cost(entry, usual).all_written() > 0)
            .map(|entry| entry.name)
            .collect(),
        written: Bytes(sum(usual)),
        written_most: Bytes(sum(most)),
        time: Duration::from_nanos(time as u64),
    })
}

fn speed(target: &mut dyn Target, options: &Options, stop: &AtomicBool) -> Result<Speed, ProbeError> {
    const LARGE: u64 = (256 << 10) / SECTOR_BYTES;
    let mut instrument = Instrument::new(target, stop, generator(options.seed, "expected"));
    let block = u64::from(instrument.block_sectors());
    let area = Area { start: options.start.0 / SECTOR_BYTES, sectors: options.area.0 / SECTOR_BYTES };
    let mut median_of = |sectors: u64, reads: usize| {
        let mut times = Vec::with_capacity(reads);
        for _ in 0..reads {
            let place = area.random_piece(sectors, &mut instrument.rng);
            times.push(instrument.single(Operation::read(place, sectors as u32))?.0 as f64);
        }
        Ok::<f64, ProbeError>(median(&mut times))
    };
    let block = median_of(block, 64)?;
    let large = median_of(LARGE, 16)?;
    Ok(Speed { block, byte: large / (LARGE * SECTOR_BYTES) as f64 })
}

/// Costs of a stage, from what its file does.
fn cost(
    name: &str,
    options: &Options,
    [page, chunk]: [u64; 2],
    units: Option<u64>,
    info: &TargetInfo,
    speed: &Speed,
) -> Cost {
    let (depth, capacity) = (info.depth, info.capacity);
    let behind = (units.unwrap_or(USUAL_UNITS) * 64).clamp(600, 2500);
    let (quick, area) = (options.quick, options.area.0);
    let of = |short: u64, full: u64| if quick { short } else { full };
    match name {
        "fill" => Cost { written: area, pause: of(500, 5000), ..Cost::default() },
        "queue" => Cost { serial: 20_000, ..Cost::default() },
        "chunk" => Cost { serial: 12_288 * of(5, 8), ..Cost::default() },
        "domains" => Cost { serial: 4096 * of(6, 12), ..Cost::default() },
        "curves" => Cost { serial: 60_000, ..Cost::default() },
        "read-ahead" => Cost { serial: of(10_000, 30_000), ..Cost::default() },
        "write-buffer" => {
            let burst = (write_buffer::BURST / page).clamp(write_buffer::WRITES[0], write_buffer::WRITES[1]);
            let long = write_buffer::LONG_WRITES * write_buffer::LONG.iter().sum::<u64>();
            Cost {
                serial: 5000,
                written: area + (write_buffer::BURSTS as u64 * (burst + long) + 64) * page,
                pause: 11_140,
                ..Cost::default()
            }
        }
        "latency" => Cost {
            serial: 20_000,
            // Writes on an idle device; then those behind which reads wait, each with a pause, those right after reads, and sustained
            // ones, twice where no read met a program.
            written: (1024 + behind + 256) * page + 2 * (4096 * page).max(128 << 20),
            // Of what is tried, a quarter is enough as a rule.
            pause: if units.is_some() { 4 * behind + 2816 } else { 2816 },
            ..Cost::default()
        },
        "parallelism" => {
            let (operations, depths) = (of(1024, 8192), u64::from(depth.ilog2()) + 1);
            Cost { serial: 8 * operations, written: 2 * operations * depths * page, ..Cost::default() }
        }
        "regions" => Cost { serial: 30_000, written: 8 * 4 * 512 * page, ..Cost::default() },
        "flush" => {
            let burst = (flush::BURST / page).clamp(flush::WRITES[0], flush::WRITES[1]);
            let single = 2 * (flush::FLUSHES + flush::RESTS) as u64;
            Cost {
                serial: 2 * single,
                written: (single + flush::BURSTS * burst) * page,
                pause: (2 * flush::FLUSHES + 3 * flush::RESTS + flush::BURSTS as usize) as u64
                    * flush::REST.0
                    / 1_000_000,
                ..Cost::default()
            }
        }
        "mapping" => Cost {
            serial: of(15_000, 60_000),
            written: area + ((1024 + 256 + 96) * chunk).min(4 * area) + 3 * (64 << 20),
            pause: 500,
            ..Cost::default()
        },
        "interference" => {
            // Four alone and ten pairs, a second each, with twelve seconds of one writer in all. A buffer takes its writes no faster than
            // the link moves large reads.
            let rate = 1e9 / speed.byte.max(0.01);
            Cost { written: area, pause: 5000 + 14_000, meanwhile: (12.0 * rate) as u64, ..Cost::default() }
        }
        "collection" => {
            let in_ten_minutes = (600e9 / (2.0 * speed.byte).max(1e-3)) as u64;
            Cost { written: (capacity.0 / 2 + (32 << 20)).min(in_ten_minutes), ..Cost::default() }
        }
        _ => Cost::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;
    use crate::target::{SimTarget, TargetKind};
    use planewise_model::Profile;
    use planewise_sim::Condition;

    fn probed(name: &str) -> (Expected, Findings) {
        let profile = Profile::embedded(name).unwrap();
        let mut target = SimTarget::new(&profile, Condition::Filled, 32, 1).unwrap();
        let options = probe::options_for(&target, true);
        let stop = AtomicBool::new(false);
        let mut findings = Findings::default();
        let before = expected(&mut target, &options, &findings, &stop).unwrap();
        let after = |_: &Findings| Ok::<(), ProbeError>(());
        probe::run(&mut target, &options, &mut findings, &stop, |_| (), after).unwrap();
        let nothing = expected(&mut target, &options, &findings, &stop).unwrap();
        assert_eq!((nothing.writing.len(), nothing.written, nothing.time), (0, Bytes(0), Duration::ZERO));
        (before, findings)
    }

    #[test]
    fn a_probe_writes_no_more_than_was_said_and_not_only_a_small_part_of_it() {
        let (before, findings) = probed("ssd-s");
        let written: u64 = findings.stages.iter().map(|stage| stage.written.0).sum();
        assert!(written <= before.written.0 && before.written < before.written_most, "{written}: {before:?}");
        assert!(written > before.written.0 / 2, "{written}: {before:?}");
        let wrote = findings.stages.iter().filter(|stage| stage.written.0 > 0).map(|stage| &stage.name);
        assert_eq!(before.writing, wrote.collect::<Vec<_>>());
    }

    #[test]
    fn pairs_of_workloads_write_no_more_than_was_said_even_into_a_buffer() {
        for name in ["ssd-s", "ssd-m", "tlc-nvme-1t"] {
            let profile = Profile::embedded(name).unwrap();
            let mut target = SimTarget::new(&profile, Condition::Filled, 32, 1).unwrap();
            let options = Options { area: Bytes(64 << 20), ..probe::options_for(&target, true) };
            let stop = AtomicBool::new(false);
            let speed = speed(&mut target, &options, &stop).unwrap();
            let info = target.info().clone();
            let said = cost("interference", &options, [4096; 2], None, &info, &speed).all_written();
            let mut instrument = Instrument::new(&mut target, &stop, generator(1, "test"));
            let area = Area { start: 0, sectors: options.area.0 / SECTOR_BYTES };
            // A tenth of the time, and so a tenth of what may be written.
            let time = planewise_model::Ns::from_millis(100);
            crate::probe::interference::find(&mut instrument, area, 8, time).unwrap();
            let (_, written) = instrument.effort();
            assert!(10 * written.0 <= said - options.area.0, "{name}: {} of {said}", 10 * written.0);
        }
    }

    #[test]
    fn a_probe_that_goes_on_on_a_real_drive_fills_the_area_again_before_it_reads_it() {
        let profile = Profile::embedded("ssd-s").unwrap();
        let target = SimTarget::new(&profile, Condition::Filled, 32, 1).unwrap();
        let options = Options { quick: false, ..probe::options_for(&target, true) };
        let real = TargetInfo { kind: TargetKind::BlockDevice, ..target.info().clone() };
        let mut findings = Findings::default();
        let mut refills = Vec::new();
        for entry in STAGES {
            refills.push(refilled(&real, &options, &findings));
            let only_read = TargetInfo { writable: false, ..real.clone() };
            assert_eq!(refilled(target.info(), &options, &findings), None);
            assert_eq!(refilled(&only_read, &options, &findings), None);
            let (name, written) = (entry.name.to_owned(), Bytes(0));
            findings.stages.push(probe::Stage { name, seconds: 0.0, reads: 0, written });
        }
        let reads =
            ["queue", "chunk", "domains", "curves", "read-ahead", "latency", "parallelism", "regions"];
        let expected: Vec<_> =
            STAGES.iter().map(|entry| reads.contains(&entry.name).then_some(entry.name)).collect();
        assert_eq!(refills, expected);
    }
}
