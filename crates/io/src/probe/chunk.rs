//! Chunk size: the largest run of consecutive data in one place, and so the unit of striping (Chen et al. 2016, section 5.2).
//!
//! A place does one array read at a time. Between two pages of one chunk, reads of both sides wait for one another as those of one page do, and a read
//! across takes two array reads; where a chunk ends, both sides are read at once. So a period is looked for by which some edges between pages are faster
//! than the rest, and the rest is compared with what is inside pages:
//!
//! | edges between pages | a chunk is |
//! |---|---|
//! | all faster than what is inside pages, by whatever part | one page |
//! | every k-th is faster, and the rest waits as long as what is inside pages | k pages |
//! | every k-th is faster, and the rest is faster than what is inside pages, too | one page: some places share a bus, others do not |
//! | none is faster | not known: longer than was looked for, or something in front of the flash hides it |
//!
//! Planes of one die count as one place where nothing reads them together: several planes in turn, a page of each, and a chunk of several pages are the same
//! for the host. Planes that work together are places of their own, which shows in reads so many pages apart.

pub use super::edges::LONGEST;
use super::edges::{Compared, Folded, Grid, OfKind, PAIRS, Period, Samples, TRIFLE, Times, error};
use super::error::ProbeError;
use super::finding::{Curve, Finding};
use super::instrument::{Area, Instrument};
use super::page::{Kind, PERCEPTIBLE, Page, SIGNIFICANT, gcd};
use super::queue::Queue;
use super::rivals::moves_parts;
use super::statistics::{Moments, confidence, in_errors, median, quantile};
use crate::target::Operation;
use planewise_model::words::counted;
use planewise_model::{Bytes, Lsn, SECTOR_BYTES};
use rand::RngExt;

/// Least share of what pairs save at a chunk's edge that a read across two pages of one chunk takes longer than one inside a page.
const SERIAL: f64 = 0.6;
/// Share of what edges save on the average that most of them have to save where all are edges of chunks: some may save only an array read, others
/// a transfer as well; and where they are of one period.
const PART: f64 = 0.2;
const MOST: f64 = 0.4;
/// Confidence of chunks that only long reads show.
const BY_READS: f64 = 0.8;
/// Confidence where places are held for all of a read's latency, or noise hides small differences.
const LESS_SURE: f64 = 0.9;

/// Confidence where all on one bus may look like one place.
const ONE_BUS: f64 = 0.85;

/// What one kind of pairs says.
#[derive(Clone, Copy, Debug)]
enum Said {
    /// No edge is faster than what is inside pages.
    Nothing,
    /// All edges are, by so many standard errors.
    One(f64),
    /// Those of a period are, the rest is not.
    Run(Folded),
    /// It contradicts itself.
    Unclear,
}

impl Said {
    fn of(kind: &OfKind<'_>, grid: Grid) -> Said {
        let (less, error) = kind.less(|_| true);
        let z = less / error;
        let Some(folded) = kind.fold(grid) else {
            return match kind.compared(|_| true, 0.0) {
                Compared::Passes if kind.are_alike(|_| true, PART) => Said::One(z),
                Compared::Passes => Said::Unclear,
                Compared::Waits | Compared::About => Said::Nothing,
                Compared::Unclear => Said::Unclear,
            };
        };
        let compared = kind.compared(|edge| !folded.period.holds(edge), folded.saved);
        match compared {
            Compared::Passes if kind.are_alike(|_| true, PART) => Said::One(z),
            Compared::Waits | Compared::About if kind.are_alike(|edge| folded.period.holds(edge), MOST) => {
                Said::Run(folded)
            }
            _ => Said::Unclear,
        }
    }

    /// Pages of a chunk by this.
    fn pages(&self) -> Option<u64> {
        match self {
            Said::One(_) => Some(1),
            Said::Run(folded) => Some(folded.period.pages),
            Said::Nothing | Said::Unclear => None,
        }
    }

    /// How clear it is, in standard errors.
    fn errors(&self) -> f64 {
        match self {
            Said::One(z) => *z,
            Said::Run(folded) => folded.z,
            Said::Nothing | Said::Unclear => 0.0,
        }
    }
}

/// Looks for the chunk size with the pages that were found; `rounds` limits the effort.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    queue: &Queue,
    page: &Page,
    rounds: usize,
) -> Result<Finding<Bytes>, ProbeError> {
    let Some(blocks) = page.step else {
        return Ok(page.size.not_known(page.size.reason.clone()));
    };
    let grid = Grid::of(instrument, area, blocks * u64::from(instrument.block_sectors()));
    let mut samples = Samples::default();
    let mut before = None;
    for round in 1..=rounds {
        samples.take(instrument, grid)?;
        let said = PAIRS.map(|kind| Said::of(&samples.of(kind), grid));
        let sizes: Vec<u64> = said.iter().filter_map(Said::pages).collect();
        // What is one page by one probe is one; else the other may not have seen enough yet.
        let is_clear = sizes.contains(&1) || said.iter().all(|said| !matches!(said, Said::Unclear));
        if round < rounds && (sizes.is_empty() || !is_clear || before.as_ref() != Some(&sizes)) {
            before = Some(sizes);
            continue;
        }
        let statistic = statistic(grid, &samples, &said);
        if sizes.is_empty() && is_clear {
            return by_reads(instrument, grid, page, &samples, statistic);
        }
        let common = sizes.iter().copied().reduce(gcd);
        let Some(pages) = common.filter(|common| is_clear && sizes.contains(common)) else {
            let reason = "some edges between pages may be faster than others, but whether the rest wait as long as one page is not clear";
            return Ok(Finding::undetermined(statistic, reason));
        };
        let z = said.iter().map(Said::errors).fold(0.0, f64::max);
        // What is in one place may be in a drive of an array that takes one command at a time.
        let most = if queue.holds_all() { LESS_SURE } else { 1.0 };
        if pages == 1 {
            let size = Bytes(grid.step * SECTOR_BYTES);
            let reason = "both sides of every edge between pages are read at once, at least in part";
            return Ok(Finding::of(size, confidence(z).min(most), statistic, reason));
        }
        let of_that = said.into_iter().filter_map(|said| match said {
            Said::Run(folded) if folded.period.pages == pages => Some(folded),
            _ => None,
        });
        let Some(folded) = of_that.max_by(|one, other| one.z.total_cmp(&other.z)) else {
            return Ok(Finding::undetermined(statistic, "no probe shows the period by itself"));
        };
        // A bus that is slower than the arrays behind registers holds up all on it alike, if it moves whole pages.
        let moves_parts = !queue.is_cached() && moves_parts(instrument, area, grid.step)?;
        let most = if moves_parts { LESS_SURE } else { ONE_BUS };
        let mut found = several(instrument, grid, &samples, folded, confidence(z).min(most), statistic)?;
        if !moves_parts && found.value.is_some() {
            found.reason += "; or pages on one bus, which moves whole ones more slowly than they are read: reads alone do not tell";
        }
        return Ok(found);
    }
    Ok(Finding::undetermined(String::new(), "nothing was measured"))
}

/// The verdict on chunks of several pages that pairs of reads show: whatever else looks like them is put to the test.
fn several(
    instrument: &mut Instrument<'_>,
    grid: Grid,
    samples: &Samples,
    folded: Folded,
    sure: f64,
    statistic: String,
) -> Result<Finding<Bytes>, ProbeError> {
    let Folded { period, saved, .. } = folded;
    // Both on different planes of one die are read together if they wait together, and not if the first has begun.
    if samples.of(Kind::Pair).compared(|edge| period.holds(edge), saved) == Compared::Waits {
        let reason = "some edges are read across at once, but only when both sides wait together: planes that work together, and what they are part of does not show";
        return Ok(Finding::undetermined(statistic, reason));
    }
    // A chunk that is a part of it ends at multiples of a largest part.
    for part in parts(period.pages).filter(|part| is_prime(period.pages / part)) {
        for compared in inner(instrument, grid, samples, (folded, part))? {
            match compared {
                Compared::Waits | Compared::About => {}
                Compared::Passes | Compared::Unclear => {
                    let reason = format!(
                        "pages wait for one another at most edges, but it is not clear whether they do at each {}",
                        ordinal(part)
                    );
                    return Ok(Finding::undetermined(statistic, reason));
                }
            }
        }
    }
    let reads = samples.of(Kind::Single);
    let longer = -reads.less(|edge| !period.holds(edge)).0;
    let statistic = format!(
        "{statistic}; a read across two pages of one takes {:.1} us longer than one inside a page",
        longer / 1e3
    );
    // A bus that is slower than the array behind registers makes all on it wait alike.
    let transfer = of_block(instrument, grid)?;
    let statistic = format!("{statistic}, a block's transfer {:.1} us", transfer / 1e3);
    if saved < 2.0 * transfer {
        let reason =
            "pages wait for one another no longer than a transfer may take: in one place, or on one bus";
        return Ok(Finding::undetermined(statistic, reason));
    }
    if longer < SERIAL * saved {
        let reason = "two pages that wait for one another as two commands are read at once by one: a drive of an array that takes one command at a time, or a bus";
        return Ok(Finding::undetermined(statistic, reason));
    }
    // Planes that work together do so only at the same page of their blocks, so not at the edges between their chunks.
    for distance in parts(period.pages) {
        let together = together(instrument, grid, samples, (folded, distance))?;
        if together > 0.9 {
            let size = Bytes(distance * grid.step * SECTOR_BYTES);
            let statistic = format!("{statistic}; pages {distance} apart are read together");
            let reason = "edges between pages are faster every so many of it, and pages as far apart as it is long are read together: by planes that work together";
            return Ok(Finding::of(size, sure, statistic, reason));
        }
        if together > 0.2 {
            let reason = "some pages that seem to be in one place are read together, and others are not";
            return Ok(Finding::undetermined(statistic, reason));
        }
    }
    // Nor where no two commands can wait for them together.
    let (whole, of_whole) = whole_run(instrument, grid, period)?;
    let serial = reads.usual + (whole / grid.step - 1) as f64 * longer;
    let statistic = format!(
        "{statistic}; {} in one read {:.1} us, {:.1} us page by page",
        Bytes(whole * SECTOR_BYTES),
        of_whole / 1e3,
        serial / 1e3
    );
    if of_whole < SERIAL * serial {
        let reason = "a read of all that seems to be in one place is faster than its pages one by one: planes that work together, or several places";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let size = Bytes(period.pages * grid.step * SECTOR_BYTES);
    let reason = "of the edges between pages, those at multiples of it are faster, and at all others reads wait for one another as inside a page: a chunk of several pages, or as many planes that do not work together";
    Ok(Finding::of(size, sure, statistic, reason))
}

/// A read of a whole run of pages, as far as one may be as long: its sectors, and the median of its latency, ns.
fn whole_run(instrument: &mut Instrument<'_>, grid: Grid, period: Period) -> Result<(u64, f64), ProbeError> {
    let sectors = (period.pages * grid.step).min(instrument.target().info().longest.0 / SECTOR_BYTES);
    let mut times = Vec::new();
    for _ in 0..64 {
        let at = Lsn(grid.run(instrument, period) * grid.step);
        times.push(instrument.single(Operation::read(at, sectors as u32))?.0 as f64);
    }
    Ok((sectors, median(&mut times)))
}

/// How edges at multiples of `part` pages inside chunks compare with what is inside pages, by kind of pairs.
fn inner(
    instrument: &mut Instrument<'_>,
    grid: Grid,
    samples: &Samples,
    (folded, part): (Folded, u64),
) -> Result<[Compared; 2], ProbeError> {
    const EDGES: usize = 512;
    const MOST: usize = 8;
    let mut more = Samples { inside: samples.inside.clone(), edges: Vec::new() };
    for round in 1..=MOST {
        let edges: Vec<u64> = (0..EDGES)
            .map(|_| {
                let run = grid.run(instrument, folded.period);
                run + instrument.rng.random_range(1..folded.period.pages / part) * part
            })
            .collect();
        more.take_at(instrument, grid, &edges, &PAIRS)?;
        let found = PAIRS.map(|kind| more.of(kind).compared(|_| true, folded.saved));
        if round == MOST || found.iter().all(|found| matches!(found, Compared::Waits | Compared::Passes)) {
            return Ok(found);
        }
    }
    unreachable!("the last round returns");
}

/// The share of pages of one chunk, so many pages apart, that are read together.
fn together(
    instrument: &mut Instrument<'_>,
    grid: Grid,
    samples: &Samples,
    (folded, distance): (Folded, u64),
) -> Result<f64, ProbeError> {
    const TRIED: usize = 192;
    let places: Vec<[Lsn; 2]> = (0..TRIED)
        .map(|_| {
            let run = grid.run(instrument, folded.period);
            let upper = run + instrument.rng.random_range(distance..folded.period.pages);
            [upper, upper - distance].map(|page| Lsn(page * grid.step))
        })
        .collect();
    let kind = Kind::BusyPair as usize;
    let longer = |times: &Times| times.raw[kind] - times.own[kind];
    let inside = Moments::of(samples.inside.iter().map(longer));
    // Planes share an array read, and not what is on the bus.
    let least = (PERCEPTIBLE * samples.of(Kind::BusyPair).usual).max(2.2 * inside.variance().sqrt());
    let bar = inside.mean() - least.min(folded.saved / 2.0);
    let times = grid.measure(instrument, &places, &[Kind::BusyPair])?;
    let together = times.iter().filter(|times| longer(times) < bar).count();
    Ok(together as f64 / TRIED as f64)
}

/// The verdict where pairs of reads show no edge: something in front of the flash keeps them apart. Parts of one read may still meet.
fn by_reads(
    instrument: &mut Instrument<'_>,
    grid: Grid,
    page: &Page,
    samples: &Samples,
    statistic: String,
) -> Result<Finding<Bytes>, ProbeError> {
    if page.size.value.is_none() {
        let reason = "neighbouring blocks cannot be told from one block: chunks may be of one block or more";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let reads = samples.of(Kind::Single);
    let Some(Folded { period, saved, .. }) = reads.fold(grid) else {
        // Two array reads take longer than the longest of one; the longer of two does not.
        let bar = {
            let inside = samples.inside.iter().map(|times| times.raw[Kind::Single as usize]);
            1.02 * quantile(&mut inside.collect::<Vec<f64>>(), 0.98)
        };
        let longer = samples.edges.iter().filter(|(_, times)| times.raw[Kind::Single as usize] > bar);
        let share = longer.count() as f64 / samples.edges.len().max(1) as f64;
        let statistic = format!(
            "{statistic}; {:.0} % of the reads across two pages take longer than any inside one",
            share * 100.0
        );
        if share < 0.2 {
            let reason =
                "no two reads meet, but both pages of one read are read at once, at any edge between pages";
            return Ok(Finding::of(Bytes(grid.step * SECTOR_BYTES), BY_READS, statistic, reason));
        }
        let reason = "no edge between pages differs from the others, and none is read across at once: chunks are longer than was looked for, or what is in front of the flash hides them";
        return Ok(Finding::undetermined(statistic, reason));
    };
    let rest = reads.class(|edge| !period.holds(edge));
    let longer = -reads.less(|edge| !period.holds(edge)).0;
    // Of the rest, all have to be alike, and to take an array read more; not only a transfer.
    let is_even = parts(period.pages).all(|part| {
        let class = reads.class(|edge| period.is_of_part(edge, part));
        (rest.mean() - class.mean()).abs() < (4.0 * error(&class, &rest)).max(TRIFLE)
    });
    let transfer = of_block(instrument, grid)?;
    // A run that planes read together would be done in less.
    let (whole, of_whole) = whole_run(instrument, grid, period)?;
    let inside = reads.usual;
    let statistic = format!(
        "{statistic}; one read across takes {:.1} us at each {} edge and {:.1} us at others, {:.1} us inside; a block's transfer {:.1} us; {} {:.1} us",
        (inside + longer - saved) / 1e3,
        ordinal(period.pages),
        (inside + longer) / 1e3,
        inside / 1e3,
        transfer / 1e3,
        Bytes(whole * SECTOR_BYTES),
        of_whole / 1e3
    );
    // What a bus takes for all of it must not hide whether the arrays took turns.
    let arrays = (whole / grid.step - 1) as f64 * longer;
    let is_serial = of_whole > 0.8 * (inside + arrays) && arrays > 0.4 * of_whole;
    if !is_even || longer < SERIAL * saved || saved < 2.0 * transfer || !is_serial {
        let reason = "reads across some edges between pages take longer than across others, but not as two array reads would";
        return Ok(Finding::undetermined(statistic, reason));
    }
    let reason = "no two reads meet, but one across two pages takes an array read less at multiples of it";
    Ok(Finding::of(Bytes(period.pages * grid.step * SECTOR_BYTES), BY_READS, statistic, reason))
}

/// What a block more of one page costs, ns.
fn of_block(instrument: &mut Instrument<'_>, grid: Grid) -> Result<f64, ProbeError> {
    let mut longer = Moments::default();
    for _ in 0..256 {
        let at = Lsn((grid.edge(instrument) - 1) * grid.step);
        let [short, long] =
            [grid.block, grid.step].map(|sectors| instrument.single(Operation::read(at, sectors as u32)));
        longer.add(long?.0 as f64 - short?.0 as f64);
    }
    Ok(longer.mean().max(0.0) / (grid.step / grid.block - 1).max(1) as f64)
}

/// By how many sectors positions have to be moved for chunks to begin at multiples of their size: a device that goes by the order of the writes may
/// begin a chunk anywhere. 0 where that does not show, and where a chunk is one page.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn shift(instrument: &mut Instrument<'_>, area: Area, page: u64, chunk: u64) -> Result<u64, ProbeError> {
    let pages = chunk / page.max(1);
    if pages < 2 {
        return Ok(0);
    }
    let grid = Grid::of(instrument, area, page);
    let kind = Kind::BusyPair as usize;
    let (mut classes, mut usual) = (vec![Moments::default(); pages as usize], Moments::default());
    for _ in 0..4 {
        let edges: Vec<u64> = (0..(16 * pages).max(512)).map(|_| grid.edge(instrument)).collect();
        let mut samples = Samples::default();
        samples.take_at(instrument, grid, &edges, &[Kind::BusyPair])?;
        for (edge, times) in samples.edges {
            classes[(edge % pages) as usize].add(times.raw[kind] - times.own[kind]);
            usual.add(times.raw[kind]);
        }
        let fastest =
            (0..classes.len()).min_by(|&one, &other| classes[one].mean().total_cmp(&classes[other].mean()));
        let Some(phase) = fastest else { break };
        let rest = classes.iter().enumerate().filter(|(at, _)| *at != phase);
        let rest = rest.fold(Moments::default(), |sum, (_, class)| sum.and(class));
        let saved = rest.mean() - classes[phase].mean();
        if saved > SIGNIFICANT * error(&rest, &classes[phase]) && saved > PERCEPTIBLE * usual.mean() {
            return Ok((pages - phase as u64) % pages * page);
        }
    }
    Ok(0)
}

fn statistic(grid: Grid, samples: &Samples, said: &[Said; 2]) -> String {
    let mut parts = vec![format!("pages of {}", Bytes(grid.step * SECTOR_BYTES))];
    for (kind, said) in PAIRS.into_iter().zip(said) {
        let of = samples.of(kind);
        parts.push(match said {
            Said::Run(Folded { period, saved, z }) => {
                let (less, _) = of.less(|edge| !period.holds(edge));
                format!(
                    "{}: each {} edge is {:.1} us faster than the others ({}), which take {:+.1} us compared with the inside of pages",
                    kind.name(),
                    ordinal(period.pages),
                    saved / 1e3,
                    in_errors(*z),
                    shown(-less)
                )
            }
            _ => format!(
                "{}: {} take {:+.1} us compared with the inside of pages, {:.1} us",
                kind.name(),
                counted(samples.edges.len() as u64, "edge"),
                shown(-of.less(|_| true).0),
                of.usual / 1e3
            ),
        });
    }
    parts.join("; ")
}

/// In microseconds, and no less than nothing where it rounds to that.
fn shown(time: f64) -> f64 {
    if time.abs() < 50.0 { 0.0 } else { time / 1e3 }
}

fn is_prime(number: u64) -> bool {
    number > 1 && parts(number).all(|part| part == 1)
}

/// Numbers that divide `whole`, but for itself, ascending.
fn parts(whole: u64) -> impl Iterator<Item = u64> {
    (1..whole).filter(move |part| whole.is_multiple_of(*part))
}

/// `2nd`, `3rd`, `16th`.
fn ordinal(number: u64) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

/// The curves of figure 2 of the paper: mean latency of reads of 1, 2, 4 and 8 blocks against their offset from a position aligned to
/// 128 KiB, in blocks.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn curve(instrument: &mut Instrument<'_>, area: Area, reads: usize) -> Result<Curve, ProbeError> {
    const OFFSETS: u64 = 64;
    const ALIGNED: u64 = (128 << 10) / SECTOR_BYTES;
    let block = u64::from(instrument.block_sectors());
    let mut curve = Curve {
        title: "Chunk size: latency of reads against their offset (figure 2 of the paper)".into(),
        x: format!("offset from a position aligned to 128 KiB, in blocks of {} bytes", block * SECTOR_BYTES),
        y: "mean latency, us".into(),
        lines: Vec::new(),
    };
    // The last aligned position would end past the area.
    let places = area.pieces(ALIGNED).saturating_sub(1).max(1);
    for blocks in [1, 2, 4, 8] {
        let mut points = Vec::new();
        for offset in 0..=OFFSETS.min(ALIGNED / block) {
            let mut latency = Moments::default();
            for _ in 0..reads {
                let base = area.piece(ALIGNED, instrument.rng.random_range(0..places)).0;
                let read = Operation::read(Lsn(base + offset * block), (blocks * block) as u32);
                latency.add(instrument.single(read)?.0 as f64);
            }
            points.push((offset as f64, latency.mean() / 1e3));
        }
        curve.lines.push((format!("{}", Bytes(blocks * block * SECTOR_BYTES)), points));
    }
    Ok(curve)
}
