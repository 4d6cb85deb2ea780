//! Look-alike volumes: streams of requests that measure as published server volumes do.
//!
//! The traces behind most storage papers may not be redistributed. Their published statistics may, and a stream made to
//! measure the same answers most questions as well: a [`VolumeDescription`] says what to hit, a [`Generator`] hits it
//! at any length, by steering exact counts while the stream is made. What the columns do not fix (the correlation of
//! sizes with places, daily rhythms, who waits for whom) a look-alike does not have; `docs/traces.md` lists it.
//!
//! The same description, seed and length give the same bytes, and a shorter stream is the beginning of a longer one.

mod addresses;
mod arrivals;
mod changes;
mod deck;
mod description;
#[cfg(test)]
mod tests;

pub use description::{Columns, Comparison, Shape, VolumeDescription};

use addresses::Addresses;
use arrivals::Arrivals;
use deck::{Deck, size_deck, unit};
use planewise_model::config::ConfigError;
use planewise_model::names::{self, UnknownName};
use planewise_model::profile::changes::split;
use planewise_model::{Direction, Request, rng};
use std::path::{Path, PathBuf};

/// How many requests a surplus of writes takes to be worked off.
const FEEDBACK_REQUESTS: f64 = 500.0;

macro_rules! volumes {
    ($($name:literal),* $(,)?) => {
        /// The volumes that are built in: name and TOML text, sorted by publication.
        pub static VOLUMES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../volumes/", $name, ".toml")))),*];
    };
}

volumes![
    "piq-hm_0",
    "piq-hm_1",
    "piq-prn_0",
    "piq-prn_1",
    "piq-proj_1",
    "piq-proj_3",
    "piq-proj_4",
    "piq-prxy_0",
    "piq-rsrch_0",
    "piq-src1_2",
    "piq-src2_0",
    "piq-src2_2",
    "piq-stg_0",
    "piq-wdev_0",
    "piq-usr_0",
    "gc-hm_0",
    "gc-prn_0",
    "gc-prn_1",
    "gc-proj_0",
    "gc-prxy_0",
    "gc-stg_0",
    "gc-usr_0",
    "gc-wdev_0",
];

/// Why there is no look-alike.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    /// No built-in volume has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The description is not one.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The description's file cannot be read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A description made in code does not hold together.
    #[error("key '{key}': {problem}")]
    Description {
        /// The key at fault.
        key: &'static str,
        /// What was found and what is allowed.
        problem: String,
    },
    /// The working set of so many requests does not fit the volume's address span.
    #[error("{0}")]
    TooLong(String),
}

/// A built-in volume by name, in any case of letters.
///
/// # Errors
/// [`SynthError::Unknown`] with the nearest name.
pub fn volume(name: &str) -> Result<VolumeDescription, SynthError> {
    let (name, text) = VOLUMES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .ok_or_else(|| names::unknown("volume", name, VOLUMES.iter().map(|&(known, _)| known)))?;
    Ok(VolumeDescription::parse(text, name)?)
}

/// A volume by what a user types: a built-in name, or the path of a description that ends in `.toml`, either with changes of its
/// keys behind a colon.
///
/// # Errors
/// Unknown names, unreadable files, and what [`VolumeDescription::parse`] and [`VolumeDescription::changed`] refuse.
pub fn volume_or_file(name: &str) -> Result<VolumeDescription, SynthError> {
    match split(name, is_volume) {
        Some((base, changes)) => Ok(unchanged(base)?.changed(changes, name)?),
        None => unchanged(name),
    }
}

/// Whether there is a volume of just this name, or a file that may describe one.
pub fn is_volume(name: &str) -> bool {
    let is_built_in = VOLUMES.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    is_built_in || is_description(name) && Path::new(name).is_file()
}

fn is_description(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

fn unchanged(name: &str) -> Result<VolumeDescription, SynthError> {
    let path = Path::new(name);
    if !is_description(name) {
        return volume(name);
    }
    let text =
        std::fs::read_to_string(path).map_err(|source| SynthError::Io { path: path.to_owned(), source })?;
    Ok(VolumeDescription::parse(&text, name)?)
}

/// A stream of requests that measures as its description says.
pub struct Generator {
    columns: Columns,
    left: u64,
    made: u64,
    writes: u64,
    /// Correlation of directions between bursts, and inside them.
    correlation: [f64; 2],
    last: Direction,
    directions: rng::Generator,
    size_random: rng::Generator,
    sizes: [Deck; 2],
    arrivals: Arrivals,
    addresses: Addresses,
}

impl Generator {
    /// A stream of `requests` requests.
    ///
    /// # Errors
    /// A description that fails its check, or a length whose working set does not fit its address span.
    pub fn new(description: &VolumeDescription, requests: u64, seed: u64) -> Result<Generator, SynthError> {
        description.check().map_err(|(key, problem)| SynthError::Description { key, problem })?;
        let shape = &description.shape;
        let sizes = [
            size_deck(&shape.read_sizes, description.read_mean_kib),
            size_deck(&shape.write_sizes, description.write_mean_kib),
        ];
        Ok(Generator {
            columns: description.columns(requests),
            left: requests,
            made: 0,
            writes: 0,
            correlation: [shape.direction_correlation_between_bursts, shape.direction_correlation_in_bursts],
            last: if description.write_ratio >= 0.5 { Direction::Write } else { Direction::Read },
            directions: rng::generator(seed, "synth.directions"),
            size_random: rng::generator(seed, "synth.sizes"),
            sizes,
            arrivals: Arrivals::new(description, seed),
            addresses: Addresses::new(description, requests, seed).map_err(SynthError::TooLong)?,
        })
    }

    /// What the whole stream should measure as.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Appends up to `limit` requests to `batch`; how many, 0 at the end of the stream.
    pub fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> usize {
        let count = limit.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        batch.extend((0..count).map(|_| self.draw()));
        self.left -= count as u64;
        count
    }

    #[inline]
    fn draw(&mut self) -> Request {
        let (arrival, in_burst) = self.arrivals.draw();
        let direction = self.draw_direction(self.correlation[usize::from(in_burst)]);
        let sectors = self.sizes[direction.index()].draw(&mut self.size_random);
        let start = self.addresses.draw(direction, sectors);
        Request::new(arrival, start, sectors as u32, direction)
    }

    /// A two-state chain: the predecessor's direction with the probability of the correlation, else a coin that is
    /// loaded with the write ratio and against what has been made too much of.
    #[inline]
    fn draw_direction(&mut self, correlation: f64) -> Direction {
        let coin = unit(&mut self.directions);
        if self.made == 0 || coin >= correlation {
            let ratio = self.columns.write_ratio;
            let missing = ratio * self.made as f64 - self.writes as f64;
            // A ratio of exactly 0 or 1 has no exceptions, whatever the rounding of the correction.
            let chance =
                if ratio == 0.0 || ratio == 1.0 { ratio } else { ratio + missing / FEEDBACK_REQUESTS };
            let write = unit(&mut self.directions) < chance;
            self.last = if write { Direction::Write } else { Direction::Read };
        }
        self.made += 1;
        self.writes += u64::from(self.last == Direction::Write);
        self.last
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        Some(self.draw())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}
