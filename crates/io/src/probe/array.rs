//! Whether it is one drive, or an array of drives that take turns by address (Chen et al. 2016, section 8).
//!
//! Two commands to one drive have to pass the same link and the same controller, whatever units they are for: the second is late by what the first
//! takes there. Two commands to different drives of an array share nothing. So pairs of reads all over are issued at once, and the digit of their
//! addresses is looked for (stripes of so many bytes, over so many drives) that tells those that share nothing from the others. Where all pairs
//! share something, it is one drive. Where what is in front of the flash takes no time that shows, channels and drives are the same from outside.

use super::error::ProbeError;
use super::finding::Finding;
use super::instrument::{Area, Instrument};
use super::queue::Queue;
use super::statistics::{Moments, median};
use crate::target::Operation;
use planewise_model::{Bytes, Ns, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

/// Drives behind one address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// How many; 1: it is no array.
    pub members: u64,
    /// Bytes that follow one another on one of them; 0 where there is one.
    pub stripe: Bytes,
}

/// Pairs of reads.
const PAIRS: usize = 4096;
/// Most drives.
const MOST: u64 = 16;
/// Share of the latency of a read that shows in a pair.
const LEAST: f64 = 0.002;
/// Stripes are powers of two from this to the other, bytes.
const STRIPES: [u64; 2] = [8 << 10, 4 << 20];

/// Reads that were issued at once: places in sectors, and how late the second was, ns.
struct Pair {
    one: u64,
    other: u64,
    late: f64,
}

/// Looks for drives. `byte` is what a byte more of a read costs on an idle device, ns.
///
/// # Errors
/// The target fails; the user wants it to end.
pub fn find(
    instrument: &mut Instrument<'_>,
    area: Area,
    queue: &Queue,
    byte: f64,
) -> Result<Finding<Array>, ProbeError> {
    let block = instrument.block_sectors();
    let mut pairs = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let places = [(); 2].map(|()| area.random_piece(u64::from(block), &mut instrument.rng));
        let (first, second) = (places[0].max(places[1]), places[0].min(places[1]));
        let own = instrument.single(Operation::read(second, block))?.0 as f64;
        let group = [(Operation::read(first, block), Ns::ZERO), (Operation::read(second, block), Ns::ZERO)];
        let late = instrument.group(group)?[1].0 as f64 - own;
        pairs.push(Pair { one: first.0, other: second.0, late });
    }
    let usual = median(&mut pairs.iter().map(|pair| pair.late).collect::<Vec<f64>>());
    // A few wait for a unit: they must not outweigh what all wait for.
    let most = (4.0 * usual.abs()).max(0.5 * queue.alone[0]);
    let least = LEAST * queue.alone[0];
    let waits = |pair: &Pair| f64::from(u8::from(pair.late > least));
    let mut digits = Vec::new();
    let mut stripe = STRIPES[0];
    while stripe <= STRIPES[1].min(area.sectors * SECTOR_BYTES / 64) {
        for members in 2..=MOST {
            let digit = |sector: u64| sector / (stripe / SECTOR_BYTES) % members;
            let mut classes = [Moments::default(); 2];
            for pair in &pairs {
                classes[usize::from(digit(pair.one) == digit(pair.other))].add(waits(pair));
            }
            let [apart, same] = classes;
            // Explained by the digit, as sums of squares.
            let explained =
                apart.count * same.count / pairs.len() as f64 * (same.mean() - apart.mean()).max(0.0).powi(2);
            digits.push((explained, stripe, members, [apart.mean(), same.mean()]));
        }
        stripe *= 2;
    }
    digits.sort_by(|one, other| other.0.total_cmp(&one.0));
    let all = Moments::of(pairs.iter().map(|pair| pair.late.clamp(-most, most)));
    let Some(&(_, stripe, members, shares)) = digits.first() else {
        return Ok(Finding::undetermined(String::new(), "the area is too small for stripes"));
    };
    let of = |is_same: bool| {
        let digit = move |sector: u64| sector / (stripe / SECTOR_BYTES) % members;
        let of_class = pairs.iter().filter(move |pair| (digit(pair.one) == digit(pair.other)) == is_same);
        of_class.map(|pair| pair.late).collect::<Vec<f64>>()
    };
    let (mut apart, mut same) = (of(false), of(true));
    let (low, high) = (median(&mut apart), median(&mut same));
    let statistic = format!(
        "{PAIRS} pairs of reads at once: the second is {:.0} ns late; where both are in one of {members} by stripes of {}, {:.0} % are, by {high:.0} ns, elsewhere {:.0} %, by {low:.0} ns",
        all.mean(),
        Bytes(stripe),
        shares[1] * 100.0,
        shares[0] * 100.0,
    );
    let error = Moments::of(apart.iter().copied()).error();
    // A transfer of a block over a bus makes the second late, too, but not by more than its bytes cost; and a unit for as long as it is held.
    let transfer = f64::from(block) * SECTOR_BYTES as f64 * byte;
    let held = queue.held().unwrap_or(queue.alone[0]);
    let is_front = queue.is_divided || high > 2.0 * transfer && high < 0.5 * held;
    if shares[0] < 0.05 && shares[1] > 0.95 && is_front {
        let array = Array { members, stripe: Bytes(stripe) };
        let reason = "reads of different drives share nothing, not even a controller";
        return Ok(Finding::of(array, if queue.is_divided { 0.98 } else { 0.95 }, statistic, reason));
    }
    let common = all.mean() - 6.0 * all.error();
    let contrast = Moments::of(same.iter().copied()).mean() - Moments::of(apart.iter().copied()).mean();
    if common > 0.0 && low > 0.5 * usual && low > 4.0 * error && (low > 0.5 * high || contrast < 0.3 * usual)
    {
        let array = Array { members: 1, stripe: Bytes(0) };
        return Ok(Finding::of(array, 0.98, statistic, "all pairs of reads wait for something in common"));
    }
    Ok(Finding::undetermined(
        statistic,
        "nothing that all reads have in common takes time that shows: channels and drives look the same",
    ))
}
