//! What a byte costs on the bus of a domain and on the link to the host, whether whole chunks are moved, and cache registers.
//!
//! Two slopes are measured: what a byte more costs on an idle device, where bus and link carry it one after the other, and what it holds a unit
//! longer for, which is the bus alone. Where the two are the same, nothing lies between unit and host. Where they differ, it is a link, or
//! the units read their next page while they transfer the last. Large reads tell the two apart: no link gives more than it carries, and a
//! slope whose rate large reads exceed is none of a link.

use super::domains::Domains;
use super::error::ProbeError;
use super::finding::Finding;
use super::held::{ANCHORS, COMMAND_CYCLES, KEPT, busy, companions};
use super::instrument::Instrument;
use super::pairs::Chunks;
use super::statistics::{Moments, confidence};
use crate::target::Operation;
use planewise_model::{Ns, SECTOR_BYTES};

/// What lies between the arrays and the host.
pub(super) struct Bus {
    /// Bus time of a byte, ps.
    pub transfer: Finding<f64>,
    /// Least and most that a byte takes on the bus, ns, by all that was measured.
    pub range: [f64; 2],
    /// Whether units may read while they transfer: then a transfer may or may not hold them.
    pub may_overlap: bool,
    /// Whether whole chunks are moved.
    pub whole_chunks: Finding<bool>,
    /// Whether units read their next page meanwhile.
    pub cache_read: Finding<bool>,
    /// What the link carries, MB/s.
    pub link: Finding<f64>,
}

/// A slope with its standard error, ns a byte.
#[derive(Clone, Copy)]
pub(super) struct Slope {
    pub value: f64,
    pub error: f64,
}

impl Slope {
    /// Of what `bytes` more cost.
    pub(super) fn of(differences: &Moments, bytes: f64) -> Slope {
        let bytes = bytes.max(1.0);
        Slope { value: (differences.mean() / bytes).max(0.0), error: differences.error() / bytes }
    }
}

/// Bus time of a byte that is too little for any flash, ns.
const FASTEST: f64 = 0.25;
/// Time of a byte that is too little for any link, ns: 16 GB/s, as PCIe 5.0 x4 has.
const FASTEST_LINK: f64 = 0.0625;
/// Share by which what is stated may be off.
const TENTH: f64 = 0.1;
/// Share by which large reads may miss the rate of the link that they fill: commands go over it, too.
const FILLS: f64 = 0.06;

/// What is known of what is in front of the flash.
#[derive(Clone, Copy)]
pub(super) struct Front {
    /// It is known to be one drive, with one link.
    pub is_one: bool,
    /// A read holds one place for all of its latency.
    pub holds_all: bool,
}

/// Tells bus, link and registers apart; `front` is what is known of what is in front. `idle` is what a byte more costs on an idle device, `held` for how much longer it holds a unit, which the read of
/// a block holds for `unit_hold`, ns.
pub(super) fn find(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    idle: Slope,
    held: Option<Slope>,
    unit_hold: f64,
    Front { is_one, holds_all }: Front,
) -> Result<Bus, ProbeError> {
    let most = large_reads(instrument, chunks)?;
    let bytes = (chunks.sectors * SECTOR_BYTES) as f64;
    let block = f64::from(instrument.block_sectors()) * SECTOR_BYTES as f64;
    let unknown = "units are not known, so that none can be kept busy";
    let Some(held) = held else {
        let nothing = || Finding::undetermined(String::new(), unknown);
        let reason = "what longer reads cost may be the bus's, which is not known";
        let statistic = said(idle, None, most);
        let (whole_chunks, cache_read) =
            (Finding::undetermined(String::new(), unknown), Finding::undetermined(String::new(), unknown));
        let link = Finding::undetermined(statistic, reason);
        return Ok(Bus {
            transfer: nothing(),
            range: [0.0, idle.value],
            may_overlap: true,
            whole_chunks,
            cache_read,
            link,
        });
    };
    let statistic = said(idle, Some(held), most);
    if chunks.sectors == u64::from(instrument.block_sectors()) {
        let reason = "a chunk is one block, so that no read is longer than another";
        return Ok(Bus {
            transfer: none(&statistic, reason),
            range: [0.0, unit_hold / bytes],
            may_overlap: true,
            whole_chunks: none(&statistic, reason),
            cache_read: none(&statistic, reason),
            link: none(&statistic, reason),
        });
    }
    let noise = (idle.error.powi(2) + held.error.powi(2)).sqrt();
    // What is less than any bus takes, or as little as noise, is nothing.
    let least = |error: f64| (4.0 * error).max(0.5 * FASTEST);
    let beyond = idle.value - held.value;
    let is_alike = beyond < (4.0 * noise).max(0.03 * idle.value).max(0.02 * FASTEST);
    let hides = held.value < least(held.error);
    if hides && idle.value < least(idle.error) {
        let sure = confidence(FASTEST / held.error.max(1e-6)).min(0.999);
        let (transfer, range) = shared_bus(instrument, chunks, domains, unit_hold)?;
        let reason = "a short read takes as long as a long one";
        return Ok(Bus {
            transfer,
            range,
            may_overlap: false,
            whole_chunks: if sure > 0.9 {
                Finding::of(true, sure, statistic.clone(), reason)
            } else {
                none(&statistic, "noise is more than what a byte costs")
            },
            cache_read: none(&statistic, "whole chunks are moved, so that no read is longer than another"),
            link: none(&statistic, "nothing beyond the bus is seen to take time for each byte"),
        });
    }
    if is_alike {
        // A byte on the bus that costs as much alone as on a busy unit: there is nothing else.
        let sure = confidence(TENTH * held.value / held.error.max(1e-6)).min(0.999);
        let reason = "what longer reads hold a unit longer for, and cost on an idle device";
        let transfer = if sure > 0.9 {
            Finding::of(held.value * 1e3, sure, statistic.clone(), reason)
        } else {
            none(&statistic, "noise is more than what a byte costs")
        };
        let reason = "a short read holds a unit for less than a long one";
        let of_parts = confidence(held.value / held.error.max(1e-6));
        let whole_chunks = if of_parts > 0.99 {
            Finding::of(false, of_parts, statistic.clone(), reason)
        } else {
            none(&statistic, "noise is more than what a byte costs")
        };
        let reason = "nothing beyond the bus is seen to take time for each byte";
        // Less than any link takes; but where a read holds all there is, a link may be in what is held.
        let is_none = beyond.abs() + 4.0 * noise < FASTEST_LINK && !holds_all;
        let link =
            if is_none { Finding::absent(0.9, statistic.clone(), reason) } else { none(&statistic, reason) };
        return Ok(Bus {
            transfer,
            range: [held.value - 3.0 * held.error, held.value + 3.0 * held.error],
            may_overlap: false,
            whole_chunks,
            cache_read: none(
                &statistic,
                "units are held for their transfers: there are none, or they do not show",
            ),
            link,
        });
    }
    if most > 0.0 && unit_hold + held.value * (bytes - block) < 1.07 * bytes * 1e3 / most {
        // One unit kept busy gets all that the whole device gets: whatever limits both is in front of it.
        let reason =
            "reads of one unit get as much as reads of all: what is in front of them hides what they need";
        let is_several = domains.degree.value.is_some_and(|degree| degree > 1);
        let link = if is_several {
            let reason = "one unit kept busy gets as much as all of them";
            Finding::of(most, 0.95, statistic.clone(), reason)
        } else {
            none(&statistic, reason)
        };
        return Ok(Bus {
            transfer: none(&statistic, reason),
            range: [0.0, idle.value.max(unit_hold / bytes)],
            may_overlap: true,
            whole_chunks: none(&statistic, reason),
            cache_read: none(&statistic, reason),
            link,
        });
    }
    // A link would take `beyond` for a byte, and then large reads could get no more than its rate.
    let rate = 1e3 / beyond;
    let is_exceeded = most > rate / (1.0 - 3.0 * noise / beyond).max(0.2) * (1.0 + FILLS);
    let is_filled =
        !is_exceeded && (most / rate - 1.0).abs() < FILLS + noise / beyond && noise < TENTH * beyond;
    if is_exceeded && !is_one {
        let reason = "large reads get more than a link could give: registers let the bus work while the array does, or there are several drives";
        return Ok(Bus {
            transfer: none(&statistic, reason),
            range: [0.0, idle.value.max(unit_hold / bytes)],
            may_overlap: true,
            whole_chunks: none(&statistic, reason),
            cache_read: none(&statistic, reason),
            link: none(&statistic, reason),
        });
    }
    if is_exceeded {
        let reason = "a unit is held for less than a transfer takes, and large reads get more than a link could give that took the rest: the bus is at work while the array is";
        // A link that large reads just fill may have its part.
        let range = [idle.value - 1e3 / most, idle.value];
        let transfer = if range[1] - range[0] < TENTH * idle.value {
            let middle = (range[0] + range[1]) / 2.0;
            Finding::of(middle * 1e3, 0.95, statistic.clone(), "what longer reads cost on an idle device")
        } else {
            none(&statistic, "what longer reads cost may be the link's in part")
        };
        return Ok(Bus {
            transfer,
            range: [range[0].max(held.value), range[1]],
            may_overlap: true,
            whole_chunks: Finding::of(
                false,
                0.99,
                statistic.clone(),
                "a short read takes less than a long one",
            ),
            cache_read: Finding::of(true, 0.99, statistic.clone(), reason),
            link: none(&statistic, "what longer reads cost beyond what units are held for is the bus's"),
        });
    }
    let registers =
        "a link, or registers that let the array read while the bus is at work: large reads do not tell";
    let transfer = if held.value > idle.value * (1.0 - TENTH) {
        let sure = confidence(TENTH * held.value / held.error.max(1e-6)).min(0.99);
        Finding::of(held.value * 1e3, sure, statistic.clone(), "what longer reads hold a unit longer for")
    } else if is_filled && !hides {
        let sure = confidence(TENTH * held.value / held.error.max(1e-6)).min(0.92);
        Finding::of(
            held.value * 1e3,
            sure,
            statistic.clone(),
            "what longer reads hold a unit longer for; the rest is the link's",
        )
    } else {
        none(&statistic, registers)
    };
    let transfer = if transfer.confidence < 0.9 {
        none(&statistic, "noise is more than what a byte costs")
    } else {
        transfer
    };
    // One bus that registers hide would be filled just so.
    let is_several = domains.degree.value.is_some_and(|degree| degree > 1);
    let (link, cache_read) = if is_filled && hides && !is_several {
        let reason = "what large reads fill may be a link, or the bus behind registers";
        (none(&statistic, reason), none(&statistic, registers))
    } else if is_filled {
        let reason = "what a byte more costs beyond the bus, and all that large reads get";
        (
            Finding::of(rate, 0.92, statistic.clone(), reason),
            none(&statistic, "what units are not held for is the link's"),
        )
    } else {
        (none(&statistic, registers), none(&statistic, registers))
    };
    let (whole_chunks, transfer, range) = if !hides {
        let sure = confidence(held.value / held.error.max(1e-6)).min(0.999);
        let range = if transfer.value.is_some() { [held.value; 2] } else { [held.value, idle.value] };
        let reason = "a short read holds a unit for less than a long one";
        let whole_chunks = if sure > 0.99 {
            Finding::of(false, sure, statistic.clone(), reason)
        } else {
            none(&statistic, "noise is more than what a byte costs")
        };
        (whole_chunks, transfer, range)
    } else if is_filled {
        let (transfer, range) = shared_bus(instrument, chunks, domains, unit_hold)?;
        let reason = "a short read holds a unit as long as a long one: whole chunks are moved, or registers let the array read meanwhile";
        (none(&statistic, reason), transfer, range)
    } else {
        (none(&statistic, registers), transfer, [0.0, idle.value.max(unit_hold / bytes)])
    };
    Ok(Bus { transfer, range, may_overlap: !is_filled, whole_chunks, cache_read, link })
}

fn none<T>(statistic: &str, reason: &str) -> Finding<T> {
    Finding::undetermined(statistic.to_owned(), reason)
}

fn said(idle: Slope, held: Option<Slope>, most: f64) -> String {
    let slope = |slope: Slope| format!("{:.3} ns (standard error {:.3} ns)", slope.value, slope.error);
    let held = held.map_or(String::new(), |held| format!(" and holds a unit for {}", slope(held)));
    format!(
        "a byte more costs {} on an idle device{held}; large random reads get {most:.0} MB/s",
        slope(idle)
    )
}

/// What large reads all over the area get, MB/s.
fn large_reads(instrument: &mut Instrument<'_>, chunks: Chunks) -> Result<f64, ProbeError> {
    let large = (1 << 20) / SECTOR_BYTES;
    let sectors = large.min(instrument.target().info().longest.0 / SECTOR_BYTES).min(chunks.area.sectors);
    let area = chunks.area;
    let depth = instrument.depth().min(32);
    let measured = instrument.keep(depth, Ns::MAX, |rng, number| {
        (number < KEPT / 2).then(|| Operation::read(area.random_piece(sectors, rng), sectors as u32))
    })?;
    Ok((sectors * SECTOR_BYTES) as f64 * 1e3 / measured.second_half_interval().max(1.0))
}

/// Bus time of a byte where whole chunks are always moved, with its bounds: from a domain whose units are all kept busy, if its bus is what limits
/// them. `unit_hold` has the transfer in it.
fn shared_bus(
    instrument: &mut Instrument<'_>,
    chunks: Chunks,
    domains: &Domains,
    unit_hold: f64,
) -> Result<(Finding<f64>, [f64; 2]), ProbeError> {
    let bytes = (chunks.sectors * SECTOR_BYTES) as f64;
    let all = [0.0, (unit_hold - COMMAND_CYCLES).max(0.0) / bytes];
    let (Some((stride, degree)), Some(sub_domains)) = (domains.domain, domains.sub_domains.value) else {
        let reason = "domains are not known, so that no bus can be kept busy";
        return Ok((Finding::undetermined(String::new(), reason), all));
    };
    let block = instrument.block_sectors();
    let mut intervals = Moments::default();
    for _ in 0..ANCHORS {
        let places =
            companions(instrument, chunks, 96, |one, other| one / stride % degree == other / stride % degree);
        let depth = (8 * sub_domains as u32).min(instrument.depth());
        intervals.add(busy(instrument, &places, depth, block)?);
    }
    let interval = intervals.mean();
    let statistic = format!(
        "reads of one domain follow one another every {:.2} us, its {sub_domains} units could do one every {:.2} us",
        interval / 1e3,
        unit_hold / sub_domains as f64 / 1e3
    );
    // No bus carries more than it does when its units are kept busy.
    let most = (interval - COMMAND_CYCLES).max(0.0) / bytes;
    if sub_domains > 1 && interval > 1.3 * unit_hold / sub_domains as f64 {
        // Units that fall into step all read their arrays at a time, and the bus rests meanwhile; otherwise it never does.
        let in_step = (sub_domains as f64 * interval - unit_hold) / (sub_domains as f64 - 1.0);
        let range = [(in_step - COMMAND_CYCLES).max(0.0) / bytes, most];
        let middle = (range[0] + range[1]) / 2.0;
        if range[1] - middle < TENTH / 2.0 * middle {
            let reason = "the bus of a domain kept busy; whole chunks are moved";
            return Ok((Finding::of(middle * 1e3, 0.95, statistic, reason), range));
        }
        let reason = "the bus of a domain rests while all of its units read, or it does not: whole chunks are moved, and no transfer is longer than another";
        return Ok((Finding::undetermined(statistic, reason), range));
    }
    if sub_domains == 1 {
        let reason = "one unit a domain: its transfers cannot be told from its array reads";
        return Ok((Finding::undetermined(statistic, reason), all));
    }
    let reason = "the units of a domain do not fill its bus, and whole chunks are moved: no transfer is longer than another";
    Ok((Finding::undetermined(statistic, reason), [0.0, most.min(all[1])]))
}
