//! What each stage does, with what those before it found, and what becomes of its findings beside theirs.

use super::domains::Domains;
use super::finding::{Curve, Finding, MOST_SURE};
use super::findings::{Findings, USUAL_PAGE};
use super::instrument::{Area, Instrument};
use super::latency::Known;
use super::options::Options;
use super::pairs::Chunks;
use super::parallelism::Parallelism;
use super::read_ahead::ReadAhead;
use super::statistics::median;
use super::{
    ProbeError, array, chunk, collection, domains, flush, interference, latency, mapping, page, parallelism,
    prepare, queue, read_ahead, regions, rivals, units, write_buffer,
};
use crate::target::{Operation, TargetKind};
use planewise_model::{Bytes, Ns, SECTOR_BYTES};

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

pub(super) fn fill(
    instrument: &mut Instrument<'_>,
    options: &Options,
    _: &mut Findings,
) -> Result<(), ProbeError> {
    // The paper pauses for 5 s.
    let pause = Ns::from_millis(if options.quick { 500 } else { 5000 });
    prepare::fill(instrument, area(options), pause)
}

pub(super) fn find_queue(
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

pub(super) fn find_chunk(
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
    let pages = Chunks::of(area(options), page_sectors(instrument, findings));
    let found = if array.is_none() && is_several && rivals::is_level(instrument, pages)? {
        found.not_known("what pages of one place wait for may be the controller of a drive of an array")
    } else {
        found
    };
    findings.chunk = Some(if found.value.is_some() && found.value == stripe {
        found.not_known("it is the stripe of the array, which hides what is smaller")
    } else {
        found
    });
    Ok(())
}

pub(super) fn find_domains(
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

pub(super) fn curves(
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

pub(super) fn find_read_ahead(
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

pub(super) fn find_write_buffer(
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

pub(super) fn find_latencies(
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

pub(super) fn find_parallelism(
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

pub(super) fn find_regions(
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

pub(super) fn find_flush(
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

pub(super) fn find_mapping(
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

pub(super) fn find_interference(
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

pub(super) fn find_collection(
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
