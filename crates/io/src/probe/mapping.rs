//! Mapping policy: what decides in which domain a chunk is (Chen et al. 2016, section 5.4).
//!
//! Chunks are overwritten in random order. If the address decides (*static*), pairs of chunks whose addresses share a unit are still slow;
//! if the order of writes decides (*write-order*), pairs are slow whose positions in that order share one. The paper repeats the whole stride
//! experiment in both orders and looks; here the same relation is put to the test on both coordinates. A device that sends writes to idle units
//! (*dynamic*) goes by their order as long as all are idle: it is told apart by writes beside reads. Where a write buffer keeps all units busy with
//! programs of its own, the two are the same.

use super::error::ProbeError;
use super::finding::Finding;
use super::held::companions;
use super::instrument::{Area, Instrument};
use super::pairs::{Chunks, STAGGER};
use super::prepare;
use super::relation::Relation;
use super::statistics::{Moments, confidence, in_errors, welch};
use crate::target::Operation;
use planewise_model::{Bytes, Lsn, Ns, SECTOR_BYTES};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// What decides where a chunk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Its address.
    Static,
    /// The order of the writes.
    WriteOrder,
    /// The order of the writes and who is idle: writes go round busy units.
    Dynamic,
}

impl Mapping {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Mapping::Static => "static",
            Mapping::WriteOrder => "write-order",
            Mapping::Dynamic => "dynamic",
        }
    }
}

/// Data written after the random writes, to the end of the area, so that none of them is left in a write buffer.
const PUSH_OUT: Bytes = Bytes(64 << 20);
/// Chunks that are overwritten, in up to three attempts: the fewer, the farther apart, until no write buffer finds two to write together.
const CHUNKS: [u64; 3] = [1024, 256, 96];
/// Share of the contrast of a pair on one unit that a coordinate must show to be the one that decides, and must not show otherwise.
const DECIDES: f64 = 0.6;
const DOES_NOT: f64 = 0.3;

/// What was found, with the order of the writes for the curves.
#[derive(Clone, Debug)]
pub struct Found {
    /// The policy.
    pub mapping: Finding<Mapping>,
    /// Chunks in the order in which they were overwritten.
    pub order: Vec<u64>,
    /// Share of the contrast of a unit that pairs show that share one by the order of the writes.
    by_order: f64,
}

/// Overwrites chunks of the area in random order and asks which coordinate decides. `contrast` is how much longer the second of two reads
/// takes on the unit of the first, ns; `alone` how long a block takes on an idle device.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    contrast: f64,
    alone: f64,
) -> Result<Found, ProbeError> {
    let mut found = attempt(instrument, chunks, relation, contrast, alone, (CHUNKS[0], &[]))?;
    for count in &CHUNKS[1..] {
        // Positions have to share units, too.
        if found.mapping.value.is_some() || *count < 2 * relation.period() {
            break;
        }
        found = attempt(instrument, chunks, relation, contrast, alone, (*count, &[]))?;
    }
    if found.mapping.value == Some(Mapping::WriteOrder) {
        let count = found.order.len() as u64;
        // Some units are to be busy all the time, and the others idle: writes that go round them lose step with the units.
        let mut places = Vec::new();
        for _ in 0..(relation.units() / 4).clamp(1, 3) {
            places.extend(companions(instrument, chunks, 32, |one, other| relation.holds(one, other)));
        }
        let busy = attempt(instrument, chunks, relation, contrast, alone, (count, &places))?;
        found.mapping.statistic =
            format!("{}; with reads beside the writes: {}", found.mapping.statistic, busy.mapping.statistic);
        if busy.by_order < DOES_NOT {
            found.mapping.value = Some(Mapping::Dynamic);
            found.mapping.reason =
                "chunks go where the order of the writes says while all is idle, and elsewhere when units are busy"
                    .into();
        } else if busy.by_order < DECIDES {
            let reason =
                "the order of the writes decides while all is idle; when units are busy, it partly does";
            found.mapping = found.mapping.not_known(reason);
        }
    }
    Ok(found)
}

fn attempt(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    contrast: f64,
    alone: f64,
    (count, busy): (u64, &[Lsn]),
) -> Result<Found, ProbeError> {
    let area = chunks.area;
    let end = (PUSH_OUT.0 / SECTOR_BYTES).min(area.sectors / 4);
    let front = Chunks { area: Area { sectors: area.sectors - end, ..area }, ..chunks };
    let order = prepare::scatter(instrument, front.area, front.sectors, count, busy)?;
    let back = Area { start: area.start + area.sectors - end, sectors: end };
    prepare::push_out(instrument, back, PUSH_OUT)?;
    let mut classes = [Moments::default(); 3];
    let block = instrument.block_sectors();
    for round in 0..12 {
        for _ in 0..1024 {
            let Some((class, first, second)) = draw(instrument, front, relation, &order) else { continue };
            let group = [
                (Operation::read(front.at(first).0, block), Ns::ZERO),
                (Operation::read(front.at(second).0, block), STAGGER),
            ];
            let time = instrument.group(group)?[1].saturating_sub(STAGGER).0 as f64;
            // What a cache served says nothing of the flash.
            if time > 0.5 * alone {
                classes[class].add(time.min(4.0 * alone));
            }
        }
        let [neither, address, written] = &classes;
        let [by_address, by_order] =
            [address, written].map(|class| (class.mean() - neither.mean()) / contrast);
        let [z_address, z_order] = [address, written].map(|class| welch(class, neither));
        let statistic = format!(
            "{} pairs after {} random writes: those that share a unit by address show {:.0} % of the contrast of one unit ({}), by order of writing {:.0} % ({})",
            (neither.count + address.count + written.count) as u64,
            order.len(),
            by_address * 100.0,
            in_errors(z_address),
            by_order * 100.0,
            in_errors(z_order)
        );
        let verdict = match (by_address, by_order) {
            (address, order) if address > DECIDES && order < DOES_NOT => Some((Mapping::Static, z_address)),
            (address, order) if order > DECIDES && address < DOES_NOT => Some((Mapping::WriteOrder, z_order)),
            _ => None,
        };
        // Few pairs can say anything.
        if let Some((mapping, z)) = verdict
            && z > 10.0
            && classes.iter().all(|class| class.count > 64.0)
        {
            let reason = match mapping {
                Mapping::Static => "chunks stay where their addresses say, whenever they are written",
                Mapping::WriteOrder | Mapping::Dynamic => {
                    "chunks go where the order of the writes says, whatever their addresses"
                }
            };
            let mapping = Finding::of(mapping, confidence(z), statistic, reason);
            return Ok(Found { mapping, order, by_order });
        }
        if round == 11 {
            let reason = "neither addresses nor the order of the writes tell where chunks went";
            return Ok(Found { mapping: Finding::undetermined(statistic, reason), order, by_order });
        }
    }
    unreachable!("the last round returns");
}

/// Draws a pair that shares a unit by neither coordinate, by address alone, or by the order of writing alone: 0, 1, 2.
fn draw(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    relation: Relation,
    order: &[u64],
) -> Option<(usize, u64, u64)> {
    let count = order.len() as u64;
    let wanted = instrument.rng.random_range(0..3usize);
    for _ in 0..4096 {
        let one = instrument.rng.random_range(0..count);
        // Positions near one another: what moves one in the order of writing moves both.
        let near = (4 * relation.period()).min(count - 1).max(1);
        let other = (one + instrument.rng.random_range(1..=near)) % count;
        let [first, second] = [one, other].map(|position| order[position as usize]);
        let by_address = relation.holds(chunks.at(first).1, chunks.at(second).1);
        let by_order = relation.holds(one, other);
        let class = match (by_address, by_order) {
            (false, false) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (true, true) => continue,
        };
        if class == wanted {
            let (first, second) = if first > second { (first, second) } else { (second, first) };
            return Some((class, first, second));
        }
    }
    None
}
