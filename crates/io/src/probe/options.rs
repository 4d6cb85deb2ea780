//! How to probe: the short probe or the full one, and where; what is probed, as its file says it.

use super::ProbeError;
use super::findings::Subject;
use crate::target::{Target, TargetError};
use planewise_model::Bytes;

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
