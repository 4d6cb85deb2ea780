//! The order of the stages, and what each needs.

use super::domains::Domains;
use super::finding::{Curve, Finding, MOST_SURE};
use super::findings::{FORMAT, Findings, Stage, Subject, USUAL_PAGE};
use super::instrument::{Area, Instrument};
use super::latency::Known;
use super::pairs::Chunks;
use super::parallelism::Parallelism;
use super::read_ahead::ReadAhead;
use super::statistics::median;
use super::{
    ProbeError, array, chunk, collection, domains, flush, interference, latency, mapping, page, parallelism,
    prepare, queue, read_ahead, regions, units, write_buffer,
};
use crate::target::{Operation, Target, TargetError, TargetInfo, TargetKind};
use planewise_model::rng::generator;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use std::sync::atomic::AtomicBool;

/// How to probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The short probe: fewer samples, no long curves, no collection.
    pub quick: bool,
    /// First byte of the area, a multiple of 1 MiB.
    pub start: Bytes,
    /// Size of the area, a multiple of 1 MiB, 64 MiB at least.
    pub area: Bytes,
    /// Seed of all places.
    pub seed: u64,
}

/// Smallest area: fewer places would be read again and again, from caches.
pub const LEAST_AREA: Bytes = Bytes(64 << 20);

/// A stage: its name, what it does in a few words, whether it writes, whether the short probe has it.
pub struct Entry {
    /// Name in files and messages.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Whether it writes to the target.
    pub writes: bool,
    /// Whether the short probe has it.
    pub quick: bool,
    layout: Layout,
    run: fn(&mut Instrument<'_>, &Options, &mut Findings) -> Result<(), ProbeError>,
}

/// What a stage has to do with the layout that filling the area makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// It fills the area itself.
    Makes,
    /// It reads what was filled.
    Reads,
    /// Neither.
    Leaves,
}

/// All stages, in order.
pub static STAGES: &[Entry] = &[
    Entry {
        name: "fill",
        what: "overwrites the area in order",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: fill,
    },
    Entry {
        name: "queue",
        what: "commands at a time, and whether it is an array",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_queue,
    },
    Entry {
        name: "chunk",
        what: "chunk size",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_chunk,
    },
    Entry {
        name: "domains",
        what: "interleaving degree and sub-domains",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_domains,
    },
    Entry {
        name: "curves",
        what: "the curves of the paper's figures 2 and 3",
        writes: false,
        quick: false,
        layout: Layout::Reads,
        run: curves,
    },
    Entry {
        name: "read-ahead",
        what: "read-ahead",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_read_ahead,
    },
    Entry {
        name: "write-buffer",
        what: "size of the write buffer",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: find_write_buffer,
    },
    Entry {
        name: "latency",
        what: "latencies of flash, bus, link and controller",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_latencies,
    },
    Entry {
        name: "parallelism",
        what: "where more operations at a time stop to help",
        writes: false,
        quick: true,
        layout: Layout::Reads,
        run: find_parallelism,
    },
    Entry {
        name: "regions",
        what: "regions and batches for PASS",
        writes: false,
        quick: false,
        layout: Layout::Reads,
        run: find_regions,
    },
    Entry {
        name: "flush",
        what: "what a flush costs",
        writes: true,
        quick: true,
        layout: Layout::Leaves,
        run: find_flush,
    },
    Entry {
        name: "mapping",
        what: "what decides where data go",
        writes: true,
        quick: true,
        layout: Layout::Makes,
        run: find_mapping,
    },
    Entry {
        name: "interference",
        what: "how pairs of workloads disturb each other",
        writes: true,
        quick: false,
        layout: Layout::Makes,
        run: find_interference,
    },
    Entry {
        name: "collection",
        what: "how much can be written before collection slows writes",
        writes: true,
        quick: false,
        layout: Layout::Leaves,
        run: find_collection,
    },
];

/// The options that a target gets when the user says nothing: an area of 1 GiB, as in the paper (256 MiB for the short probe), of a large drive
/// 1 part of 128 (of 512), up to 16 GiB (4 GiB), as the units and the caches of larger drives are more and larger; or what is there.
pub fn options_for(target: &dyn Target, quick: bool) -> Options {
    let capacity = target.info().capacity.0;
    let usual = if quick {
        (capacity / 512).clamp(256 << 20, 4 << 30)
    } else {
        (capacity / 128).clamp(1 << 30, 16 << 30)
    };
    let area = Bytes(capacity.min(usual) >> 20 << 20);
    Options { quick, start: Bytes(0), area, seed: planewise_model::rng::DEFAULT_SEED }
}

/// Operations at a time that a probe needs of a device with this capacity when the user says nothing: 64, of a large drive one more for every
/// 4 GiB, up to 256, as it has more units.
pub fn depth_for(capacity: Bytes) -> u32 {
    (capacity.0 >> 32).clamp(64, 256) as u32
}

/// Probes a target: runs the stages that `findings` does not have yet, and calls `after` each with all there is. `before` is called with
/// each stage that begins. Returns with [`ProbeError::Interrupted`] when `stop` is set: what `after` got last is whole.
///
/// # Errors
/// Options that the target does not allow, findings of something else, a target that fails, the user who wants it to end, and
/// what `after` returns.
pub fn run<E: From<ProbeError>>(
    target: &mut dyn Target,
    options: &Options,
    findings: &mut Findings,
    stop: &AtomicBool,
    mut before: impl FnMut(&Entry),
    mut after: impl FnMut(&Findings) -> Result<(), E>,
) -> Result<(), E> {
    let subject = subject(target, options)?;
    if findings.stages.is_empty() {
        *findings = Findings { format: FORMAT, subject, ..Findings::default() };
    } else if findings.subject != subject || findings.format != FORMAT {
        let error = ProbeError::Option {
            key: "resume",
            found: format!("a probe of {:?}", findings.subject),
            allowed: format!("one of {subject:?}"),
        };
        return Err(error.into());
    }
    let writes = target.info().writable;
    let refilled = refilled(target.info(), options, findings);
    for (number, entry) in STAGES.iter().enumerate() {
        if !wanted(entry, writes, options.quick)
            || findings.stages.iter().any(|stage| stage.name == entry.name)
        {
            continue;
        }
        before(entry);
        // A stage of its own draws the same places whether those before it ran now or long ago.
        let rng = generator(options.seed.wrapping_add(number as u64), "probe");
        let mut instrument = Instrument::new(target, stop, rng);
        let began = instrument.now();
        if refilled == Some(entry.name) {
            fill(&mut instrument, options, findings)?;
        }
        (entry.run)(&mut instrument, options, findings)?;
        let (reads, written) = instrument.effort();
        let seconds = instrument.now().saturating_sub(began).as_secs_f64();
        findings.stages.push(Stage { name: entry.name.into(), seconds, reads, written });
        after(findings)?;
    }
    Ok(())
}

/// Whether a probe has this stage: one that may write or may not, a short one or a full one.
pub fn wanted(entry: &Entry, writes: bool, quick: bool) -> bool {
    (writes || !entry.writes) && (entry.quick || !quick)
}

/// The stage before which a probe that goes on fills the area again, because nobody knows what became of it meanwhile: the first that
/// reads what was filled, unless one before it fills the area itself. A simulated device has gone through all stages.
pub(super) fn refilled(info: &TargetInfo, options: &Options, findings: &Findings) -> Option<&'static str> {
    if findings.stages.is_empty() || !info.writable || info.kind == TargetKind::Simulated {
        return None;
    }
    let left = STAGES
        .iter()
        .filter(|entry| wanted(entry, info.writable, options.quick))
        .filter(|entry| !findings.stages.iter().any(|stage| stage.name == entry.name));
    let first = left.into_iter().find(|entry| entry.layout != Layout::Leaves)?;
    (first.layout == Layout::Reads).then_some(first.name)
}

/// What is probed, and how, as its file says it.
///
/// # Errors
/// Options that the target does not allow.
pub fn subject(target: &dyn Target, options: &Options) -> Result<Subject, ProbeError> {
    const MIB: u64 = 1 << 20;
    let info = target.info();
    let error = |key, found: Bytes, allowed: String| {
        Err(ProbeError::Option { key, found: found.to_string(), allowed })
    };
    if !options.start.0.is_multiple_of(MIB) || options.start.0 >= info.capacity.0 {
        return error(
            "start",
            options.start,
            format!("multiples of 1 MiB below the {} of {}", info.capacity, info.name),
        );
    }
    let room = Bytes((info.capacity.0 - options.start.0) >> 20 << 20);
    if room < LEAST_AREA {
        let from =
            if options.start.0 > 0 { format!(" from --start {} on", options.start) } else { String::new() };
        let target = info.name.clone();
        let problem = format!(
            "found {}{from}, too little to probe; allowed: {LEAST_AREA} or more",
            Bytes(info.capacity.0 - options.start.0)
        );
        return Err(TargetError::Unusable { target, problem }.into());
    }
    if !options.area.0.is_multiple_of(MIB) || options.area < LEAST_AREA || options.area > room {
        return error(
            "area",
            options.area,
            format!("multiples of 1 MiB from {LEAST_AREA} to {room}, what {} has", info.name),
        );
    }
    if info.depth < 4 {
        return Err(ProbeError::Option {
            key: "depth",
            found: info.depth.to_string(),
            allowed: "4 operations at a time or more: what is inside shows in how they wait for one another"
                .into(),
        });
    }
    Ok(Subject {
        target: info.name.clone(),
        kind: info.kind.name().into(),
        engine: info.engine.into(),
        identity: info.identity.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        capacity: info.capacity,
        block_bytes: info.block_bytes,
        depth: info.depth,
        writes: info.writable,
        quick: options.quick,
        area_start: options.start,
        area: options.area,
        seed: options.seed,
    })
}

fn area(options: &Options) -> Area {
    Area { start: options.start.0 / SECTOR_BYTES, sectors: options.area.0 / SECTOR_BYTES }
}

/// What may be read and written at will: the area; of a simulated device, which has all of it filled and nothing to lose, all.
fn known(instrument: &Instrument<'_>, options: &Options) -> Area {
    let info = instrument.target().info();
    match info.kind {
        TargetKind::Simulated => Area { start: 0, sectors: info.sectors() },
        _ => area(options),
    }
}

/// Sectors of a page, or of what is usual.
fn page_sectors(instrument: &Instrument<'_>, findings: &Findings) -> u64 {
    findings.page_bytes().0.max(u64::from(instrument.target().info().block_bytes)) / SECTOR_BYTES
}

/// Pages and chunks of the area as they are found now.
fn chunks(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &Findings,
) -> Result<Chunks, ProbeError> {
    let page = page_sectors(instrument, findings);
    let area = area(options);
    let chunk =
        findings.chunk.as_ref().and_then(|chunk| chunk.value).map_or(page, |size| size.0 / SECTOR_BYTES);
    if !chunk.is_multiple_of(page) {
        return Ok(Chunks::of(area, page));
    }
    // Where the order of the writes decides, what was written since may have moved the beginnings of chunks.
    let shift = chunk::shift(instrument, area, page, chunk)?;
    Ok(Chunks { run: chunk, shift, ..Chunks::of(area, page) })
}

fn add(findings: &mut Findings, stage: &str, curves: impl IntoIterator<Item = Curve>) {
    findings.curves.extend(curves.into_iter().map(|curve| (stage.to_owned(), curve)));
}

fn fill(instrument: &mut Instrument<'_>, options: &Options, _: &mut Findings) -> Result<(), ProbeError> {
    // The paper pauses for 5 s.
    let pause = Ns::from_millis(if options.quick { 500 } else { 5000 });
    prepare::fill(instrument, area(options), pause)
}

fn find_queue(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let area = area(options);
    let queue = queue::find(instrument, area)?;
    let block = u64::from(instrument.block_sectors());
    let longer = [block, 8 * block].map(|sectors| {
        let mut times = Vec::new();
        for _ in 0..256 {
            let place = area.random_piece(sectors, &mut instrument.rng);
            times.push(instrument.single(Operation::read(place, sectors as u32))?.0 as f64);
        }
        Ok::<f64, ProbeError>(median(&mut times))
    });
    let [short, long] = longer;
    let byte = (long? - short?).max(0.0) / (7 * block * SECTOR_BYTES) as f64;
    findings.array = Some(array::find(instrument, area, &queue, byte)?);
    findings.queue = Some(queue);
    Ok(())
}

fn find_chunk(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let Some(queue) = &findings.queue else { return Ok(()) };
    let rounds = if options.quick { 4 } else { 8 };
    let page = page::find(instrument, area(options), rounds)?;
    let found = chunk::find(instrument, area(options), queue, &page, rounds)?;
    findings.page = Some(page.size);
    // Where each drive of an array does one thing at a time, a stripe looks like a chunk.
    let array = findings.array.as_ref().and_then(|array| array.value);
    let stripe = array.map(|array| array.stripe);
    let is_several = found.value.is_some_and(|size| size > findings.page_bytes());
    let sure = match (array, is_several) {
        (Some(_), _) => MOST_SURE,
        (None, false) => 0.95,
        // The controller of a drive of an array is one place, too.
        (None, true) => 0.85,
    };
    let found = found.at_most(sure);
    findings.chunk = Some(if found.value.is_some() && found.value == stripe {
        found.not_known("it is the stripe of the array, which hides what is smaller")
    } else {
        found
    });
    Ok(())
}

fn find_domains(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let rounds = if options.quick { 6 } else { 64 };
    let Some(queue) = &findings.queue else { return Ok(()) };
    let array = findings.array.as_ref().and_then(|array| array.value);
    let chunks = chunks(instrument, options, findings)?;
    let mut found = units::find(instrument, chunks, queue, array, rounds)?;
    if findings.chunk.as_ref().is_none_or(|chunk| chunk.value.is_none()) && found.units.value.is_none() {
        let reason = "without a chunk size, chunks cannot be told apart";
        found.degree = Finding::undetermined(found.degree.statistic, reason);
    }
    findings.domains = Some(found);
    Ok(())
}

fn curves(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    add(findings, "curves", [chunk::curve(instrument, area(options), 64)?]);
    let chunks = chunks(instrument, options, findings)?;
    // Twice the period, if that is known and can be looked at.
    let period = findings.domains.as_ref().and_then(|domains| domains.unit).map_or(20, |unit| unit.period());
    let strides = (2 * period + 2).clamp(42, 130);
    add(findings, "curves", [domains::curve(instrument, chunks.whole(), strides, 512, None)?]);
    Ok(())
}

fn alone(findings: &Findings) -> f64 {
    findings.domains.as_ref().map_or(0.0, |domains| domains.alone[1])
}

/// Why throughput and reads in sequence say nothing of a drive.
const NOTHING_INSIDE: &str =
    "neither pages nor units are to be seen: what was measured may be RAM, a cache, or the host";

/// Whether something of the flash showed in reads.
fn is_inside_seen(findings: &Findings) -> bool {
    findings.page.as_ref().is_some_and(|page| page.value.is_some())
        || findings.chunk.as_ref().is_some_and(|chunk| chunk.value.is_some())
        || findings.domains.as_ref().is_some_and(|domains| domains.units.value.is_some())
}

/// Whether there are signs of several drives.
fn is_several(findings: &Findings) -> bool {
    let array = findings.array.as_ref().and_then(|array| array.value);
    let is_divided = findings.queue.as_ref().is_some_and(|queue| queue.is_divided);
    array.map_or(is_divided, |array| array.members > 1)
}

/// Why sizes of buffers are not stated of what may be an array.
const SEVERAL: &str = "there may be several drives, each with buffers of its own";

fn find_read_ahead(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    let repeats = if options.quick { 16 } else { 48 };
    let (found, curves) = read_ahead::find(instrument, area(options), sectors, alone(findings), repeats)?;
    let mut found = if is_inside_seen(findings) || found.present.value == Some(true) {
        found
    } else {
        ReadAhead::without(Finding::undetermined(found.present.statistic, NOTHING_INSIDE))
    };
    if is_several(findings) && found.window.value.is_some() {
        found.window = found.window.not_known(SEVERAL);
    }
    findings.read_ahead = Some(found);
    add(findings, "read-ahead", curves);
    Ok(())
}

fn find_write_buffer(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    let (mut found, curve) = write_buffer::find(instrument, area(options), sectors, alone(findings))?;
    if found.present.value == Some(false) && !is_inside_seen(findings) {
        found.present = found.present.not_known(NOTHING_INSIDE);
        found.size = found.size.not_known(NOTHING_INSIDE);
        found.kept = found.kept.not_known(NOTHING_INSIDE);
    }
    let doubt = match findings.page.as_ref().filter(|page| page.value.is_some()).or(findings.chunk.as_ref()) {
        _ if is_several(findings) => Some(SEVERAL),
        Some(Finding { value: Some(_), .. }) => None,
        _ => Some("without a page size nobody knows what each write takes of it"),
    };
    if let Some(doubt) = doubt.filter(|_| !found.size.absent) {
        found.size = found.size.not_known(doubt);
        found.kept = found.kept.not_known(doubt);
    }
    findings.write_buffer = Some(found);
    add(findings, "write-buffer", [curve]);
    // What follows reads the layout that filling made.
    prepare::fill(instrument, area(options), Ns::from_millis(500))
}

fn find_latencies(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let chunks = chunks(instrument, options, findings)?;
    let buffered = findings.write_buffer.as_ref().and_then(|buffer| buffer.present.value);
    let (Some(domains), Some(queue)) = (findings.domains.clone(), findings.queue.clone()) else {
        return Ok(());
    };
    let array = findings.array.as_ref().and_then(|array| array.value);
    let (found, curves) =
        latency::find(instrument, chunks, Known { domains: &domains, queue: &queue, array }, buffered)?;
    findings.latencies = Some(found);
    add(findings, "latency", curves);
    Ok(())
}

fn find_parallelism(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    let operations = if options.quick { 1024 } else { 8192 };
    let (found, curve) = parallelism::find(instrument, area(options), sectors, operations)?;
    let found = if is_inside_seen(findings) {
        found
    } else {
        let [reads, writes] =
            [found.reads, found.writes].map(|found| Finding::undetermined(found.statistic, NOTHING_INSIDE));
        Parallelism { reads, writes }
    };
    findings.parallelism = Some(found);
    add(findings, "parallelism", [curve]);
    Ok(())
}

fn find_regions(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    let (found, curves) = regions::find(instrument, area(options), known(instrument, options), sectors, 512)?;
    findings.regions = Some(found);
    add(findings, "regions", curves);
    Ok(())
}

fn find_flush(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    let mut found = flush::find(instrument, area(options), sectors, findings.write_buffer.as_ref())?;
    if !is_inside_seen(findings) && found.volatile.value == Some(false) {
        found.volatile = found.volatile.not_known(NOTHING_INSIDE);
    }
    findings.flush = Some(found);
    Ok(())
}

fn find_mapping(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let Some(Domains { unit: Some(unit), unit_contrast, alone, units, .. }) = findings.domains.clone() else {
        findings.mapping = Some(Finding::undetermined(
            String::new(),
            "units are not known, so that nothing tells where data went",
        ));
        return Ok(());
    };
    // Earlier stages wrote here.
    prepare::fill(instrument, area(options), Ns::from_millis(500))?;
    let chunks = chunks(instrument, options, findings)?;
    let found = mapping::find(instrument, chunks.whole(), unit, unit_contrast, alone[0])?;
    findings.mapping = Some(found.mapping.at_most(units.confidence));
    if !options.quick {
        let mut sorted = found.order.clone();
        sorted.sort_unstable();
        for (order, what) in [(&sorted, "by address"), (&found.order, "in the order of the writes")] {
            let mut curve = domains::curve(instrument, chunks.whole(), 42, 512, Some(order))?;
            curve.title = format!(
                "Mapping: strided reads of randomly overwritten chunks, {what} (figure 4 of the paper)"
            );
            add(findings, "mapping", [curve]);
        }
    }
    Ok(())
}

fn find_interference(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings).min(USUAL_PAGE.0 / SECTOR_BYTES);
    let sectors = sectors.max(u64::from(instrument.block_sectors()));
    // Earlier stages wrote here at random.
    prepare::fill(instrument, area(options), Ns::from_millis(5000))?;
    findings.interference =
        Some(interference::find(instrument, area(options), sectors, Ns::from_millis(1000))?);
    Ok(())
}

fn find_collection(
    instrument: &mut Instrument<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Result<(), ProbeError> {
    let sectors = page_sectors(instrument, findings);
    // Spare space is a share of the device; ten minutes, as in the paper, are enough for a small one.
    let capacity = instrument.target().info().capacity;
    let (found, curve) = collection::find(
        instrument,
        known(instrument, options),
        sectors,
        Bytes(capacity.0 / 2),
        Ns::from_millis(600_000),
    )?;
    findings.collection = Some(found);
    add(findings, "collection", [curve]);
    Ok(())
}
